//! How long a question is asked again of a cluster that changes.

use std::time::Duration;

use sekisho::Span;
use tokio::time::{Instant, sleep_until};

use crate::instant;

/// How often one question is sent on at once, from server to server.
const SENT_ON_MAX: usize = 4;
/// How long to wait before a cluster that is changing is asked again; twice as long each time.
const CHANGING: Duration = Duration::from_millis(5);
/// The longest such wait.
const CHANGING_MAX: Duration = Duration::from_millis(80);

/// How long somebody waits for a cluster that changes.
pub(super) struct Patience {
    pub(super) over: Instant,
    /// How often the question was sent on since the last pause.
    sent_on: usize,
    pause: Duration,
}

impl Patience {
    pub(super) fn new(timeout: Span) -> Self {
        Self { over: instant::now() + timeout.into(), sent_on: 0, pause: CHANGING }
    }

    /// Returns whether the question may be sent on at once. Servers that have not heard of a change send it in a circle.
    pub(super) fn sends_on(&mut self) -> bool {
        self.sent_on += 1;
        self.sent_on <= SENT_ON_MAX && instant::now() < self.over
    }

    /// Waits for a change, and returns whether there is time left.
    pub(super) async fn pause(&mut self) -> bool {
        sleep_until(self.over.min(instant::now() + self.pause)).await;
        self.pause = CHANGING_MAX.min(2 * self.pause);
        self.sent_on = 0;
        instant::now() < self.over
    }
}
