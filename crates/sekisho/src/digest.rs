//! Keyed digests. A secret seed keeps clients from choosing keys that collide, and keeps secrets out of stores and logs.

use std::{fmt, hash::Hasher as _};

use siphasher::sip128::{Hasher128 as _, SipHasher13, SipHasher24};

/// A secret that digests are made with; 128 random bits.
#[derive(Clone)]
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

    /// Returns the seed that everybody who knows a text gets from it.
    pub(crate) fn derived(text: &str) -> Self {
        let mut hasher = SipHasher24::new_with_key(b"sekisho digest 1");
        hasher.write(text.as_bytes());
        Self(hasher.finish128().as_u128().to_le_bytes())
    }

    /// Returns the digest that finds a key in a table. Two keys in a table of n collide with odds of n²/2¹²⁹: for ten
    /// million keys, one in 10²⁴.
    pub(crate) fn locate(&self, parts: [&[u8]; 2]) -> u128 {
        let mut hasher = SipHasher13::new_with_key(&self.0);
        let [scope, key] = parts;
        // Without its length, the end of one part could pass for the beginning of the next.
        hasher.write(&(scope.len() as u64).to_le_bytes());
        hasher.write(scope);
        hasher.write(key);
        hasher.finish128().as_u128()
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
