//! Keyed digests. A secret seed keeps clients from choosing keys that collide, and keeps secrets out of stores and logs.

use std::{fmt, hash::Hasher as _};

use siphasher::sip128::{Hasher128 as _, SipHasher13, SipHasher24};

/// The bits of a digest that choose the part of a table, the same for all states of one key.
pub(crate) const PART_MASK: u64 = (1 << 10) - 1;

/// A secret that digests are made with; 128 random bits.
#[derive(Clone, PartialEq, Eq)]
pub struct Seed([u8; 16]);

impl Seed {
    /// Returns a new seed from the operating system.
    ///
    /// # Panics
    /// When the operating system has no randomness to give, without which no digest is safe.
    pub fn random() -> Self {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
        Self(bytes)
    }

    /// Returns a seed that is known: for tests, and for machines that must agree.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns the bits, for a file that keeps them as well as they are kept here.
    pub(crate) const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Returns the seed that everybody who knows a text gets from it.
    pub(crate) fn derived(text: &str) -> Self {
        let mut hasher = SipHasher24::new_with_key(b"sekisho digest 1");
        hasher.write(text.as_bytes());
        Self(hasher.finish128().as_u128().to_le_bytes())
    }

    /// Returns the digest of a key, whatever it is counted under. The place of its state is this, combined by exclusive or with the
    /// [mark](Self::mark) of what it is counted under: so a key that several limits count is digested once.
    ///
    /// Marks and digests come from functions that share no secret. Two states of n meet with odds of n²/2¹²⁹ where their keys
    /// differ, for ten million keys one in 10²⁴; two limits have equal marks with odds of one in 2¹¹⁸.
    #[inline]
    pub(crate) fn digest(&self, key: &[u8]) -> u128 {
        SipHasher13::new_with_key(&self.0).hash(key).as_u128()
    }

    /// Returns what tells the states of one scope from those of all others. Its lowest bits are 0, so that the states of one key
    /// lie in one part of a table.
    pub(crate) fn mark(&self, scope: &[u8]) -> u128 {
        let mut own = SipHasher24::new_with_key(&self.0);
        own.write(b"sekisho marks 1");
        let key = own.finish128().as_u128().to_le_bytes();
        SipHasher24::new_with_key(&key).hash(scope).as_u128() & !u128::from(PART_MASK)
    }

    /// Returns the digest that stands for a secret: a header's or cookie's value. Without the seed it says nothing about it.
    pub(crate) fn conceal(&self, secret: &[u8]) -> u128 {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        hasher.write(secret);
        hasher.finish128().as_u128()
    }
}

impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seed(secret)")
    }
}
