//! A timer that is moved with every request and fires almost never.
//!
//! Registering a timer costs more than looking at the clock. So the one behind this is left where it is when its end moves
//! away, and finds out when it fires that it has to go on.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep_until};

/// A point in time that can be waited for.
#[derive(Debug)]
pub(crate) struct Deadline {
    at: Instant,
    timer: Pin<Box<Sleep>>,
}

impl Deadline {
    /// Returns a deadline that far from now.
    pub(crate) fn after(time: Duration) -> Self {
        let at = now() + time;
        Self { at, timer: Box::pin(sleep_until(at)) }
    }

    /// Moves it to that far from now.
    pub(crate) fn restart(&mut self, time: Duration) {
        self.at = now() + time;
    }

    /// Is ready once the deadline has passed.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.at < self.timer.deadline() {
            self.timer.as_mut().reset(self.at);
        }
        loop {
            ready!(self.timer.as_mut().poll(context));
            if self.timer.deadline() >= self.at {
                return Poll::Ready(());
            }
            self.timer.as_mut().reset(self.at);
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a peer's patience is real time; no decision depends on it"
)]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    const STEP: Duration = Duration::from_millis(50);

    async fn waits(deadline: &mut Deadline) -> Duration {
        let begin = now();
        poll_fn(|context| deadline.poll(context)).await;
        begin.elapsed()
    }

    #[tokio::test]
    async fn it_can_be_moved_both_ways_and_again_after_it_has_passed() {
        let mut deadline = Deadline::after(STEP);
        deadline.restart(4 * STEP);
        assert!(waits(&mut deadline).await >= 4 * STEP);
        deadline.restart(STEP);
        assert!(waits(&mut deadline).await >= STEP);
        let mut deadline = Deadline::after(1_000 * STEP);
        let polled = poll_fn(|context| Poll::Ready(deadline.poll(context))).await;
        assert!(polled.is_pending());
        deadline.restart(STEP);
        assert!((STEP..500 * STEP).contains(&waits(&mut deadline).await));
    }
}
