//! How long to wait before a server is tried again.

use std::{collections::hash_map::RandomState, hash::BuildHasher as _, time::Duration};

use crate::instant;

/// The pause after the first failure that is not forgiven.
const FIRST: Duration = Duration::from_millis(50);
/// The longest pause: what comes back is found within this, and a dial.
const LONGEST: Duration = Duration::from_secs(1);
/// How long a connection must have lasted for its end to be an accident.
const LASTED: Duration = Duration::from_secs(2);

/// The failures in a row.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
    random: RandomState,
}

impl Backoff {
    /// Returns how long to wait after a connection that lasted so long has failed. Nothing when it is the first failure in a
    /// while: it may be dialled at once, and callers wait for that.
    pub(super) fn after(&mut self, lasted: Duration) -> Option<Duration> {
        if lasted >= LASTED {
            self.failures = 0;
        }
        if self.failures == 0 && !lasted.is_zero() {
            self.failures = 1;
            return None;
        }
        Some(self.next())
    }

    /// Returns how long to wait after a server could not be reached: twice as long each time, less up to half by chance, so
    /// that many who lost the same server do not come back to it together.
    pub(super) fn next(&mut self) -> Duration {
        let pause = FIRST.saturating_mul(1 << self.failures.min(10)).min(LONGEST);
        self.failures += 1;
        let half = pause / 2;
        let chance = self.random.hash_one((self.failures, instant::now()));
        // Less than a second in nanoseconds, so it fits.
        let less = chance % u64::try_from(half.as_nanos()).unwrap_or(u64::MAX).max(1);
        // At most half of it.
        pause.saturating_sub(Duration::from_nanos(less))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_second_and_no_two_are_the_same() {
        let mut backoff = Backoff::default();
        let pauses: Vec<Duration> = (0..12).map(|_| backoff.next()).collect();
        for (times, pause) in pauses.iter().enumerate() {
            let most = FIRST.saturating_mul(1 << times).min(LONGEST);
            assert!(*pause > most / 2 && *pause <= most, "{times}: {pause:?}");
        }
        let tails: std::collections::BTreeSet<_> = pauses[6..].iter().collect();
        assert!(tails.len() > 4, "{tails:?}");
    }

    #[test]
    fn one_accident_is_forgiven_and_a_row_of_them_is_not() {
        let mut backoff = Backoff::default();
        assert_eq!(backoff.after(Duration::from_millis(10)), None);
        assert!(backoff.after(Duration::from_millis(10)).is_some());
        assert!(backoff.after(Duration::from_millis(10)).is_some_and(|pause| pause > FIRST));
        assert_eq!(backoff.after(LASTED), None);
    }
}
