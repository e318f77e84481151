//! *race*: several processes of this program ask one shared store at the same moment.

mod message;
mod process;
mod racer;

use std::{
    io::{self, IsTerminal as _},
    time::Duration,
};

use redis::{RedisError, RedisResult, aio::MultiplexedConnection, cmd};
use sekisho::{Clock as _, Key, Scope, Seed, Span, Store as _, StoreError, SystemClock};
use sekisho_redis::RedisStore;
use sekisho_replay::experiment::race::{ALLOWED, METHODS, Method, PROCESSES, REQUESTS, Raced};
use tokio::time::sleep;

pub(super) use self::racer::run as be_a_racer;
use self::{message::Heat, process::Process};
use super::place::{Place, Stop, runtime, stopped};
use crate::{args::StoreUrl, report::Report};

/// How often the server is pinged for a median.
const PINGS: usize = 201;
/// How long a key of the faulty way lives at most, in seconds; what ours leave expires with the limit's period.
const EXPIRY_S: u64 = 3_600;
/// The length of the windows, in seconds, and how much of one has to be left for a trial.
const WINDOW_S: u64 = 3_600;
const TRIAL_S: u64 = 20;

/// Races every method, and leaves nothing in the store.
pub(super) fn run(url: &StoreUrl, trials: u32) -> Result<Vec<Raced>, Report> {
    let place = Place::new(url)?;
    runtime()?.block_on(async {
        let mut stop = Stop::new()?;
        let plain = place.connect().await?;
        let (mut processes, mut keys) = (Vec::new(), Vec::new());
        let race = Race {
            place: &place,
            plain: plain.clone(),
            clock: SystemClock::new(),
            trials,
            processes: &mut processes,
            keys: &mut keys,
        };
        let raced = tokio::select! {
            raced = race.run() => raced,
            () = stop.asked() => Err(stopped()),
        };
        progress("");
        for process in processes {
            process.end().await;
        }
        let removed = remove(&place, &place.store()?, plain, &keys).await;
        place.closed(raced, removed)
    })
}

/// A race that is going on.
struct Race<'a> {
    place: &'a Place,
    plain: MultiplexedConnection,
    clock: SystemClock,
    trials: u32,
    processes: &'a mut Vec<Process>,
    /// Every key that may have been used.
    keys: &'a mut Vec<(Method, String)>,
}

impl Race<'_> {
    async fn run(mut self) -> Result<Vec<Raced>, Report> {
        for _ in 0..PROCESSES {
            self.processes.push(Process::start(self.place).await?);
        }
        let mut all = Vec::new();
        for (number, method) in METHODS.into_iter().enumerate() {
            let ping_median =
                self.ping_median().await.map_err(|error| self.place.failed(&error))?;
            let took = Span::ZERO;
            let mut raced = Raced { method, passed: Vec::new(), calls: Some(0), took, ping_median };
            for trial in 1..=self.trials {
                let trials = self.trials;
                let count = METHODS.len();
                progress(&format!("{}/{count} {}: {trial}/{trials}", number + 1, method.name));
                let tried = self.trial(method, format!("{number}-{trial}")).await?;
                raced.passed.push(tried.passed);
                raced.calls = raced.calls.zip(tried.calls).map(|(sum, calls)| sum + calls);
                let took = raced.took.as_nanos().saturating_add(tried.took.as_nanos());
                raced.took = Span::from_nanos(took);
            }
            all.push(raced);
        }
        Ok(all)
    }

    /// Runs one trial on a key of its own, and returns what came out.
    async fn trial(&mut self, method: Method, key: String) -> Result<Tried, Report> {
        self.prepare(method, &key).await.map_err(|error| self.place.failed(&error))?;
        let heat = Heat {
            limit: method.limit.to_owned(),
            key,
            requests: REQUESTS,
            allowed: ALLOWED,
            at_once: method.at_once,
            pause_ns: method.pause.map(Span::as_nanos),
        };
        for process in &mut *self.processes {
            process.say(&heat).await?;
        }
        for process in &mut *self.processes {
            process.is_ready().await?;
        }
        let before = self.calls(method).await;
        let began = self.clock.now();
        for process in &mut *self.processes {
            process.say(&"go").await?;
        }
        let mut passed = 0;
        for process in &mut *self.processes {
            passed += process.passed().await?;
        }
        let took = self.clock.now().since(began);
        let calls = before.zip(self.calls(method).await).map(|(before, now)| now - before.min(now));
        Ok(Tried { passed, calls, took })
    }

    /// Returns how many calls of the method's kind the server has run, if this user may know. Those of others are among them.
    async fn calls(&mut self, method: Method) -> Option<u64> {
        let kinds: &[&str] =
            if method.pause.is_some() { &["get", "incr"] } else { &["eval", "evalsha"] };
        let info: RedisResult<String> =
            cmd("INFO").arg("commandstats").query_async(&mut self.plain).await;
        Some(calls_in(&info.ok()?, kinds))
    }

    /// Waits for a window that is long enough, and gives the faulty way a count that expires.
    async fn prepare(&mut self, method: Method, key: &str) -> RedisResult<()> {
        let (now, _): (u64, u64) = cmd("TIME").query_async(&mut self.plain).await?;
        let wait = until_room(now);
        if wait > 0 {
            progress(&format!("{}: waits {wait} s for the next hour", method.name));
            sleep(Duration::from_secs(wait)).await;
        }
        self.keys.push((method, key.to_owned()));
        if method.pause.is_some() {
            let key = plain_key(self.place, key);
            let mut set = cmd("SET");
            let _reply: () =
                set.arg(key).arg(0).arg("EX").arg(EXPIRY_S).query_async(&mut self.plain).await?;
        }
        Ok(())
    }

    async fn ping_median(&mut self) -> RedisResult<Span> {
        let mut took = Vec::with_capacity(PINGS);
        for _ in 0..PINGS {
            let began = self.clock.now();
            let _pong: String = cmd("PING").query_async(&mut self.plain).await?;
            took.push(self.clock.now().since(began));
        }
        took.sort_unstable();
        Ok(took[PINGS / 2])
    }
}

/// What came out of a trial.
struct Tried {
    passed: u64,
    calls: Option<u64>,
    took: Span,
}

/// Returns how many calls of some commands the server's statistics say.
fn calls_in(statistics: &str, kinds: &[&str]) -> u64 {
    let calls = statistics.lines().filter_map(|line| {
        let (kind, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        let digits = rest.split(',').next()?;
        if kinds.contains(&kind) { digits.parse::<u64>().ok() } else { None }
    });
    calls.sum()
}

/// Removes every key of a race.
async fn remove(
    place: &Place,
    store: &RedisStore,
    mut plain: MultiplexedConnection,
    keys: &[(Method, String)],
) -> Result<(), StoreError> {
    // What a process had sent when it ended is done after this: a count that is raised later would come back.
    let pong: RedisResult<String> = cmd("PING").query_async(&mut plain).await;
    pong.map_err(|error| unavailable(&error))?;
    for (method, key) in keys {
        if method.pause.is_some() {
            let removed = cmd("DEL").arg(plain_key(place, key)).query_async(&mut plain).await;
            let _count: u64 = removed.map_err(|error| unavailable(&error))?;
        } else {
            let (scope, key) = counted_under(method.limit, key);
            store.forget(&scope, &key).await?;
        }
    }
    Ok(())
}

fn unavailable(error: &RedisError) -> StoreError {
    StoreError::Unavailable(error.to_string().into())
}

/// Returns what ours count under.
fn counted_under(limit: &str, key: &str) -> (Scope, Key) {
    // The seed is for keys that are too long to be kept as they are, which these are not.
    (Scope::new("race", limit), Key::plain(key.as_bytes(), &Seed::from_bytes([0; 16])))
}

/// Returns the key of the faulty way.
fn plain_key(place: &Place, key: &str) -> String {
    format!("{}:{key}", place.prefix)
}

/// Returns how many seconds to wait. A window that ends in the middle of a trial would let the next one's units pass too.
const fn until_room(now: u64) -> u64 {
    let left = WINDOW_S - now % WINDOW_S;
    if left < TRIAL_S { left } else { 0 }
}

/// Shows people how far it is.
#[expect(clippy::print_stderr, reason = "progress is neither a result nor an error")]
fn progress(line: &str) {
    if io::stderr().is_terminal() {
        eprint!("\r\u{1b}[K{line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_those_of_the_commands_named() {
        let statistics = "# Commandstats\r\ncmdstat_get:calls=7,usec=9,failed_calls=0\r\ncmdstat_evalsha:calls=40,usec=1\r\n\
                          cmdstat_eval:calls=2,usec=1\r\ncmdstat_getex:calls=99,usec=1\r\n";
        assert_eq!(calls_in(statistics, &["eval", "evalsha"]), 42);
        assert_eq!((calls_in(statistics, &["get", "incr"]), calls_in("", &["get"])), (7, 0));
    }

    #[test]
    fn no_trial_begins_where_an_hour_ends() {
        assert_eq!([0, 3_580, 3_581, 3_599, 3_600].map(until_room), [0, 0, 19, 1, 0]);
    }
}
