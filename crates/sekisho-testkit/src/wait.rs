//! Waiting for what another process does: often asked, and never without an end.

use std::{
    thread,
    time::{Duration, Instant},
};

/// How long anything may take on a busy machine before a test fails.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// How long to wait before asking again.
const STEP: Duration = Duration::from_millis(10);

/// Asks until there is an answer, and returns it.
///
/// ```
/// let mut asked = 0;
/// let answer = sekisho_testkit::wait::until("the third time", || {
///     asked += 1;
///     (asked == 3).then_some("yes")
/// });
/// assert_eq!(answer, "yes");
/// ```
///
/// # Panics
/// When there is none within [`PATIENCE`], with `what` was waited for.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "other processes tell nobody when they are done")]
pub fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(start.elapsed() < PATIENCE, "waited {PATIENCE:?} in vain: {what}");
        thread::sleep(STEP);
    }
}
