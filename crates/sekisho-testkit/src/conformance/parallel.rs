//! Threads that meet on one key, and a runtime of no more than the thread at hand.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{
        Arc, Barrier,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
};

use sekisho::{Ask, Charge, Key, Limit, Mode, Now, Scope, Seed, Store};
use serde::Deserialize;

use super::Failure;

/// Threads that ask at once for one key, round after round with a new key.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parallel {
    /// What it shows.
    pub name: String,
    /// The limits; several are decided together.
    pub limits: Vec<String>,
    /// How many threads ask once each.
    pub threads: usize,
    /// How many units are used before.
    #[serde(default)]
    pub primed: u64,
    /// How many times.
    pub rounds: u64,
    /// How many of the threads pass, in every round.
    pub admitted: u64,
}

/// Runs a future to its end on the thread that asks: a store that needs a runtime brings its own.
pub trait Runtime: Sync {
    /// Returns what the future comes to.
    fn run<F: Future>(&self, future: F) -> F::Output;
}

/// The thread that asks, and nothing else.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThisThread;

impl Runtime for ThisThread {
    fn run<F: Future>(&self, future: F) -> F::Output {
        block_on(future)
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future to its end, sleeping while it has nothing to do.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// Lets the threads meet, and counts who passes. The store's own clock is asked, so the limits must be so slow that nothing comes
/// back meanwhile. `scope_prefix` keeps the state apart from that of other runs.
///
/// # Errors
/// The first round in which another number passed.
pub fn run_parallel<S: Store>(
    store: &S,
    (case, parallel): (&str, &Parallel),
    scope_prefix: &str,
    runtime: &impl Runtime,
) -> Result<(), Failure> {
    let fail =
        |what: String| Failure::new(format_args!("{case} parallel ({})", parallel.name), what);
    let meeting = Meeting::new(&format!("{scope_prefix}{case}"), parallel).map_err(&fail)?;
    let (passed, barrier) = (AtomicU64::new(0), Barrier::new(parallel.threads + 1));
    let meet = || {
        for round in 0..parallel.rounds {
            let _all_are_here = barrier.wait();
            // Were a thread to end early, the others would wait for it for ever.
            let ask = AssertUnwindSafe(|| runtime.run(meeting.ask(store, round, 1)));
            let admitted = matches!(catch_unwind(ask), Ok(Ok(true)));
            let _before = passed.fetch_add(u64::from(admitted), SeqCst);
            let _all_are_done = barrier.wait();
        }
    };
    thread::scope(|scope| {
        for _ in 0..parallel.threads {
            scope.spawn(meet);
        }
        let mut wrong = None;
        for round in 0..parallel.rounds {
            if parallel.primed > 0
                && runtime.run(meeting.ask(store, round, parallel.primed)) != Ok(true)
            {
                wrong.get_or_insert_with(|| format!("round {round}: it cannot be primed"));
            }
            let _go = barrier.wait();
            let _done = barrier.wait();
            let passed = passed.swap(0, SeqCst);
            if passed != parallel.admitted {
                let wanted = parallel.admitted;
                wrong.get_or_insert_with(|| {
                    format!("round {round}: wanted {wanted}, {passed} passed")
                });
            }
        }
        wrong.map_or(Ok(()), |what| Err(fail(what)))
    })
}

struct Meeting {
    limits: Vec<(Limit, Scope)>,
    seed: Seed,
}

impl Meeting {
    fn new(scope: &str, parallel: &Parallel) -> Result<Self, String> {
        let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
        let name: String = parallel.name.chars().map(plain).collect();
        let limit = |(index, text): (usize, &String)| {
            let limit = text.parse().map_err(|error| format!("`{text}`: {error}"))?;
            Ok((limit, Scope::new(&format!("{scope}-{name}"), &index.to_string())))
        };
        let limits =
            parallel.limits.iter().enumerate().map(limit).collect::<Result<_, String>>()?;
        Ok(Self { limits, seed: Seed::from_bytes([7; 16]) })
    }

    async fn ask<S: Store>(&self, store: &S, round: u64, cost: u64) -> Result<bool, String> {
        let key = Key::plain(&round.to_le_bytes(), &self.seed);
        let charge = |(limit, scope)| Charge { limit, scope, key: &key, cost };
        let charges: Vec<_> =
            self.limits.iter().map(|(limit, scope)| charge((limit, scope))).collect();
        let ask = Ask::new(&charges, Mode::Check);
        let answer = store.decide(&[ask], Now::StoreClock).await.pop();
        let answer = answer.ok_or("no answer")?.map_err(|error| error.to_string())?;
        Ok(answer.joint().outcome == sekisho::Outcome::Allow)
    }
}
