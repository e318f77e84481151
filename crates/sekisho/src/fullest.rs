//! Who is nearest to the end of a limit: the names that a store of digests does not keep.
//!
//! A bounded sketch, fed by decisions. It holds a fixed number of places, in sets of [`WAYS`]; a name has its place in one set,
//! which its hash chooses. So noting a decision looks at one set and at nothing else, however many keys there are, and takes one
//! short lock that only names of the same set share. Memory is taken when a name enters, and for nothing else.

mod place;
mod set;

use std::{
    cmp::Ordering,
    fmt,
    hash::Hasher as _,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use parking_lot::Mutex;
use sekisho_core::{Limit, Mode, Outcome, Timestamp, Verdict};
use siphasher::sip::SipHasher13;

use self::{
    place::{Fullness, Seen},
    set::{Noted, Set},
};
use crate::{
    key::Key,
    store::{Charge, Scope},
};

/// How many names [`Fullest::default`] has places for.
pub const FULLEST_PLACES: usize = 1024;

/// How many places a set has: the exhausted keys whose hashes choose it are all kept as long as there are no more of them.
pub const WAYS: usize = 16;

/// The hash is the same in every process, so that the same decisions always leave the same names.
const HASH_KEY: &[u8; 16] = b"sekisho fullest1";

/// The fullest keys: the names of those that have used most of their limits, with the numbers that each limit last said.
///
/// * What is shown is true: the numbers of a key's last decision, from which a store would go on.
/// * A key enters with a check or a force that leaves it fuller than the least full of its set. A look, and a refund, only bring
///   the numbers of a name up to date that is there; a refund that leaves nothing used takes it out.
/// * A key that is fresh again by what its last verdict said goes first; then the least full; of equally full ones the one that
///   was refused least. One that is no fuller and was not refused more never takes another's place: so made-up keys, however
///   many, do not push out exhausted ones.
/// * What may be missed: where more exhausted keys than [`WAYS`] meet in a set, some find no place, and
///   [`crowded_out`](Self::crowded_out) counts that.
///
/// `unlimited` and `block` have no numbers, and are left out.
///
/// ```
/// use sekisho::{Direct, Limiter, Mode, PolicySet};
///
/// let policies = PolicySet::parse("[[policy]]\nname = \"api\"\nkey = [\"ip\"]\nlimits = [\"60/min\"]\n")?;
/// let limiter = Limiter::new(policies);
/// let fullest = limiter.keep_fullest();
/// let limits = ["3/min".parse()?];
/// for key in ["bob", "alice", "alice", "alice", "alice"] {
///     let direct = Direct { limits: &limits, key: key.as_bytes(), cost: 1 };
///     let _decision = limiter.decide_direct_now(&direct, Mode::Check);
/// }
/// let top = fullest.top(limiter.store().clock().now(), 10, |_| true);
/// let seen: Vec<_> = top.iter().map(|of| (of.key.as_str(), of.used, of.capacity, of.denied)).collect();
/// assert_eq!(seen, [("=alice", 3, 3, 1), ("=bob", 1, 3, 0)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Fullest {
    // Invariant: not empty.
    sets: Box<[Mutex<Set>]>,
    crowded_out: AtomicU64,
}

/// One of the fullest keys: the numbers of its last decision.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FullKey {
    /// Which limit of which policy counted it.
    pub scope: Scope,
    /// Who was counted. Secrets are digests in it.
    pub key: Key,
    /// The limit, with the numbers that held.
    pub limit: Limit,
    /// Units that were used: from 1 to the capacity.
    pub used: u64,
    /// The most units that can be there at once; at least 1.
    pub capacity: u64,
    /// What the limit said of the last check or force.
    pub outcome: Outcome,
    /// How many checks this limit has refused since the name is here.
    pub denied: u64,
    /// When its numbers were last seen, by the clock of who decided.
    pub seen: Timestamp,
    /// When one more unit is there, if nothing else is used; not later than `seen` while some remain.
    pub next_at: Timestamp,
    /// When it equals a fresh key, if nothing else is used.
    pub fresh_at: Timestamp,
}

impl FullKey {
    /// Returns the units that are left.
    pub const fn remaining(&self) -> u64 {
        self.capacity.saturating_sub(self.used)
    }

    /// Returns the used share of the capacity in percent, from 0 to 100, rounded down: only an exhausted key has 100.
    pub fn used_percent(&self) -> u8 {
        let percent = u128::from(self.used) * 100 / u128::from(self.capacity.max(1));
        u8::try_from(percent).unwrap_or(100)
    }

    /// Fullest first; of equally full ones those refused more often; then by name.
    fn order(&self, other: &Self) -> Ordering {
        let fullness = |of: &Self| Fullness { used: of.used, capacity: of.capacity };
        let names = |of: &Self, other: &Self| {
            let policies = of.scope.policy().cmp(other.scope.policy());
            policies.then_with(|| of.scope.limit().cmp(other.scope.limit()))
        };
        fullness(other)
            .cmp(&fullness(self))
            .then_with(|| other.denied.cmp(&self.denied))
            .then_with(|| names(self, other))
            .then_with(|| self.key.cmp(&other.key))
    }
}

impl Fullest {
    /// Returns a sketch with room for that many names, rounded up to whole sets; at least one set. A place takes 176 bytes, and a
    /// name at most about 500 more.
    ///
    /// ```
    /// assert_eq!(sekisho::Fullest::new(100).places(), 112);
    /// ```
    pub fn new(places: usize) -> Self {
        let sets = places.div_ceil(WAYS).max(1);
        Self {
            sets: (0..sets).map(|_| Mutex::new(Set::default())).collect(),
            crowded_out: AtomicU64::new(0),
        }
    }

    /// Returns how many names there is room for.
    pub const fn places(&self) -> usize {
        self.sets.len() * WAYS
    }

    /// Returns how many names are held. Some of them may have become fresh, and wait for their place to be taken.
    pub fn held(&self) -> usize {
        self.sets.iter().map(|set| set.lock().held()).sum()
    }

    /// Returns how often an exhausted or refused key found no place, or lost its own to another such. Above 0 the list may not be
    /// whole.
    pub fn crowded_out(&self) -> u64 {
        self.crowded_out.load(Relaxed)
    }

    /// Notes what a limit said of a charge. A [`Limiter`](crate::Limiter) that keeps a sketch does this itself.
    ///
    /// Of one key, what was seen up to a second before what is there already is late: its numbers are not taken. More is a clock
    /// that was set back.
    pub fn note(&self, charge: &Charge<'_>, verdict: &Verdict, at: Timestamp, mode: Mode) {
        let Some(seen) = Seen::of(charge, verdict, at, mode) else { return };
        let hash = hash(charge);
        // Sets are far fewer than 2³², and the remainder is below their number.
        let index = usize::try_from(hash % self.sets.len() as u64).unwrap_or(0);
        let Some(set) = self.sets.get(index) else { return };
        let noted = set.lock().note(hash, charge, seen);
        if noted == Noted::CrowdedOut {
            let _before = self.crowded_out.fetch_add(1, Relaxed);
        }
    }

    /// Returns the fullest keys that are wanted and not fresh again at `now`, at most `most`: fullest first, then those refused
    /// most often, then by policy, limit and key.
    pub fn top(
        &self,
        now: Timestamp,
        most: usize,
        wanted: impl Fn(&FullKey) -> bool,
    ) -> Vec<FullKey> {
        let mut places = Vec::with_capacity(self.places());
        for set in &self.sets {
            // Nothing is allocated under the lock.
            places.extend(set.lock().living(now));
        }
        let mut keys: Vec<_> = places.iter().map(place::Place::show).filter(wanted).collect();
        keys.sort_by(FullKey::order);
        keys.truncate(most);
        keys
    }
}

impl Default for Fullest {
    fn default() -> Self {
        Self::new(FULLEST_PLACES)
    }
}

impl fmt::Debug for Fullest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fullest").field("places", &self.places()).finish_non_exhaustive()
    }
}

fn hash(charge: &Charge<'_>) -> u64 {
    let mut hasher = SipHasher13::new_with_key(HASH_KEY);
    hasher.write(charge.scope.as_bytes());
    hasher.write(charge.key.as_bytes());
    hasher.finish()
}
