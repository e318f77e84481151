//! The table beside a plain map, over random operations.

use std::collections::BTreeMap;

use sekisho_core::{FixedWindow, LeakyQueue, Limit, State, Timestamp, TokenBucket};

use super::{NoRoom, STATE_BYTES_MAX, Sweep, Table, Words, leaf::Leaf, slot::Slot};

/// A generator that needs no crate: xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    /// A digest among few, all of whose parts are random.
    fn digest(&mut self, among: u64) -> u128 {
        let number = u128::from(self.below(among)) + 1;
        number.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
    }
}

fn window(used: u64) -> State {
    State::FixedWindow(FixedWindow { start: Timestamp::EPOCH, used })
}

/// A state that does not fit its entry.
fn queue(units: u64) -> State {
    let limit: Limit = "1/s leaky-queue".parse().unwrap();
    let bucket = TokenBucket::full_of(limit.as_metered().unwrap());
    let queue = LeakyQueue {
        next: bucket.tat,
        last_at: Timestamp::EPOCH,
        last_units: units,
        debt_at: None,
    };
    State::LeakyQueue(queue)
}

fn state(number: u64) -> State {
    if number % 3 == 0 { queue(number) } else { window(number) }
}

#[test]
fn a_leaf_finds_what_is_in_it_and_nothing_else() {
    for seed in 1..40 {
        let mut random = Random(seed);
        let buckets = usize::try_from(1 + random.below(20)).unwrap();
        let (mut leaf, mut model) = (Leaf::new(buckets), BTreeMap::new());
        for step in 0..2_000_u64 {
            let digest = random.digest(4 * buckets as u64 + 3);
            let found = leaf.find(digest);
            let words = Words::of(&window(step + 1), Timestamp::from_secs(step + 1)).unwrap();
            match (found, model.contains_key(&digest)) {
                (Some(at), true) => {
                    assert_eq!(leaf.slot(at).words, model[&digest]);
                    if random.below(2) == 0 {
                        leaf.remove(at);
                        let _old = model.remove(&digest);
                    } else {
                        leaf.slot_mut(at).words = words;
                        let _old = model.insert(digest, words);
                    }
                }
                (None, false) if model.len() < 4 * buckets => {
                    let (at, replaced) = leaf.insert(digest, words, |_| false);
                    assert_eq!((leaf.find(digest), replaced), (Some(at), None));
                    let _new = model.insert(digest, words);
                }
                (None, false) => {}
                (found, expected) => panic!("seed {seed}, step {step}: {found:?}, {expected}"),
            }
            assert_eq!(leaf.len(), model.len());
        }
        let mut held: Vec<_> = leaf.iter().map(|slot| (slot.digest, slot.words)).collect();
        held.sort_by_key(|(digest, _)| *digest);
        assert!(held.into_iter().eq(model), "seed {seed}");
    }
}

#[test]
fn cleaning_a_leaf_takes_what_may_go_and_loses_nothing_else() {
    for seed in 1..200 {
        let mut random = Random(seed);
        let mut leaf = Leaf::new(6);
        for _ in 0..random.below(24) {
            let digest = random.digest(1_000);
            if leaf.find(digest).is_none() {
                let words = Words::of(&window(1), Timestamp::from_secs(1 + random.below(9)));
                let _place = leaf.insert(digest, words.unwrap(), |_| false);
            }
        }
        let stays = |slot: &&Slot| slot.words.fresh_at() > Timestamp::from_secs(5);
        let left: Vec<_> = leaf.iter().filter(stays).map(|slot| slot.digest).collect();
        let mut gone = 0;
        // Those that wrap around the end may need a second round.
        for _ in 0..2 {
            let all = leaf.slots();
            let _end = leaf.clean(
                0,
                all,
                |slot| slot.words.fresh_at() <= Timestamp::from_secs(5),
                |_| gone += 1,
            );
        }
        assert_eq!(leaf.len(), left.len(), "seed {seed}, {gone} gone");
        assert!(left.iter().all(|digest| leaf.find(*digest).is_some()), "seed {seed}");
    }
}

/// Every operation of a shard beside a map; entries, bytes and states agree after each.
#[test]
fn a_table_is_a_map() {
    for (seed, keys) in (1..12).zip([50, 700, 9_000].into_iter().cycle()) {
        let mut random = Random(seed);
        let table = Table::new(1, usize::MAX, usize::MAX, false);
        let mut model: BTreeMap<u128, (State, u64)> = BTreeMap::new();
        let mut now = 0;
        for step in 1..12_000_u64 {
            let digest = random.digest(keys);
            let mut shard = table.lock(0);
            let sweep = Sweep { now: Timestamp::from_nanos(now), spare: &[] };
            let place = shard.find(digest);
            // Who equals a fresh one may have been dropped at any time.
            if place.is_none() && model.get(&digest).is_some_and(|(_, fresh_at)| *fresh_at <= now) {
                let _stale = model.remove(&digest);
            }
            assert_eq!(place.is_some(), model.contains_key(&digest), "seed {seed}, step {step}");
            match (place, random.below(8)) {
                (Some(place), 0..4) => {
                    let (held, _) = &model[&digest];
                    shard.with_state(place, |state| assert_eq!(state, held));
                }
                (Some(place), 4..6) => {
                    let taken = shard.take(place);
                    assert_eq!(taken, model[&digest].0);
                    shard.put_back(place, taken);
                }
                (Some(_), _) => {
                    assert!(shard.remove(&table, digest));
                    let _old = model.remove(&digest);
                }
                (None, _) => {
                    let place = shard.insert(&table, digest, sweep, false).unwrap();
                    let (new, fresh_at) = (state(step), now + 1 + random.below(3_000));
                    let words = Words::of(&new, Timestamp::from_nanos(fresh_at));
                    shard.set(&table, place, new.clone(), (words, Timestamp::from_nanos(fresh_at)));
                    let _new = model.insert(digest, (new, fresh_at));
                }
            }
            now += random.below(2);
            drop(shard);
            if step % 3_000 == 0 {
                let mut leaf = 0;
                while table.lock(0).tend(&table, leaf, Timestamp::from_nanos(now)).is_some() {
                    leaf += 1;
                }
                while table.lock(0).merge(&table) {}
            }
        }
        let shard = table.lock(0);
        model.retain(|digest, _| shard.find(*digest).is_some());
        assert_eq!(table.entries(), model.len(), "seed {seed}");
        let (mut seen, mut leaf) = (0, 0);
        while shard.visit(leaf, &mut |digest, state, _| {
            assert_eq!(*state, model[&digest].0);
            seen += 1;
        }) {
            leaf += 1;
        }
        assert_eq!(seen, model.len());
        drop(shard);
        for digest in model.into_keys() {
            assert!(table.lock(0).remove(&table, digest));
        }
        while table.lock(0).merge(&table) {}
        let mut leaf = 0;
        while table.lock(0).tend(&table, leaf, Timestamp::MAX).is_some() {
            leaf += 1;
        }
        while table.lock(0).merge(&table) {}
        assert_eq!((table.entries(), table.bytes()), (0, 0), "seed {seed}: all is given back");
    }
}

#[test]
fn only_who_equals_a_fresh_one_makes_room_and_never_who_is_spared() {
    let table = Table::new(1, 17, usize::MAX, false);
    let mut random = Random(3);
    let digests: Vec<u128> = (0..16).map(|_| random.digest(1 << 40)).collect();
    let until = |second| (None, Timestamp::from_secs(second));
    let at = |second, spare| Sweep { now: Timestamp::from_secs(second), spare };
    for (digest, second) in digests.iter().zip(10..) {
        let mut shard = table.lock(0);
        let place = shard.insert(&table, *digest, at(0, &[]), false).unwrap();
        shard.set(&table, place, queue(1), until(second));
    }
    let mut shard = table.lock(0);
    let new = random.digest(1 << 40);
    assert_eq!(shard.insert(&table, new, at(9, &[]), false).err(), Some(NoRoom));
    assert_eq!(shard.insert(&table, new, at(10, &digests[..1]), false).err(), Some(NoRoom));
    assert!(shard.insert(&table, new, at(10, &[]), false).is_ok());
    assert!(shard.find(digests[0]).is_none() && shard.find(digests[1]).is_some());
    assert_eq!((table.dropped(), table.entries()), (1, 16));
    assert!(
        shard.insert(&table, random.digest(1 << 40), at(10, &[]), true).is_ok(),
        "a reserved one"
    );
}

#[test]
fn bytes_are_bounded_at_every_step() {
    let most = 40_000;
    let table = Table::new(1, usize::MAX, most, false);
    let mut random = Random(9);
    let sweep = Sweep { now: Timestamp::EPOCH, spare: &[] };
    let (mut inserted, mut refused) = (0, 0);
    for _ in 0..5_000 {
        let digest = random.digest(1 << 40);
        let mut shard = table.lock(0);
        match shard.insert(&table, digest, sweep, false) {
            Ok(place) if table.grow(STATE_BYTES_MAX).is_ok() => {
                table.shrink(STATE_BYTES_MAX);
                shard.set(&table, place, queue(1), (None, Timestamp::NEVER));
                inserted += 1;
            }
            Ok(_) => assert!(shard.remove(&table, digest)),
            Err(NoRoom) => refused += 1,
        }
        assert!(table.bytes() <= most, "{}", table.bytes());
    }
    assert!(inserted > 100, "{inserted} inserted, {refused} refused");
}

/// What other limits cost is written down in the documentation; this is where the figures come from.
#[test]
fn a_states_cost_is_known() {
    assert!(size_of::<State>() <= 80, "{}", size_of::<State>());
    const { assert!(STATE_BYTES_MAX <= 32 * 80 + 128) };
}
