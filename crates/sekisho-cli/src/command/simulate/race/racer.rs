//! One process of a race: gets ready, waits for the signal, sends its requests, and says how many passed.

use std::{io, sync::Arc, time::Duration};

use redis::{RedisError, aio::MultiplexedConnection, cmd};
use sekisho::{Ask, Charge, Key, Limit, Mode, Now, Outcome, Scope, Store as _, StoreError};
use sekisho_redis::RedisStore;
use serde::Serialize;
use tokio::{task::JoinSet, time::sleep};

use super::{
    counted_under,
    message::{Heat, Said, Start},
    plain_key,
};
use crate::{
    command::simulate::place::{Place, runtime},
    report::{Report, out},
};

/// Races until nobody has anything more to say.
pub(in crate::command::simulate) fn run() -> Result<(), Report> {
    let runtime = runtime()?;
    let mut lines = io::stdin().lines();
    let mut next = || lines.next().transpose().map_err(Report::failed);
    let Some(start) = next()? else { return Ok(()) };
    let Start { url, prefix } = serde_json::from_str(&start).map_err(Report::input)?;
    let place = Place::with_prefix(&url, prefix)?;
    let store = Arc::new(place.store()?);
    let mut plain = runtime.block_on(place.connect())?;
    while let Some(heat) = next()? {
        let heat: Heat = serde_json::from_str(&heat).map_err(Report::input)?;
        let limit: Limit = heat.limit.parse().map_err(Report::input)?;
        let (scope, key) = counted_under(&heat.limit, &heat.key);
        let heat = Arc::new(Prepared { heat, limit, scope, key, store: Arc::clone(&store) });
        say(&runtime.block_on(heat.ready()).map_or_else(failed, |()| Said::Ready))?;
        if next()?.is_none() {
            return Ok(());
        }
        let said = match heat.heat.pause_ns.map(Duration::from_nanos) {
            None if heat.heat.at_once => {
                runtime.block_on(all_at_once(&heat)).map_or_else(failed, Said::Passed)
            }
            None => runtime.block_on(heat.one_by_one()).map_or_else(failed, Said::Passed),
            Some(pause) => {
                let key = plain_key(&place, &heat.heat.key);
                let passed = check_then_incr(&mut plain, &heat.heat, &key, pause);
                runtime.block_on(passed).map_or_else(failed, Said::Passed)
            }
        };
        say(&said)?;
    }
    Ok(())
}

/// Ours, with all that can be made before the signal.
struct Prepared {
    heat: Heat,
    limit: Limit,
    scope: Scope,
    key: Key,
    store: Arc<RedisStore>,
}

impl Prepared {
    /// Connects, and lets the server learn the script. A look counts nothing.
    async fn ready(&self) -> Result<(), StoreError> {
        self.ask(Mode::Look, 0).await.map(drop)
    }

    /// Sends each request after the answer to the one before it.
    async fn one_by_one(&self) -> Result<u64, StoreError> {
        let mut passed = 0;
        for _ in 0..self.heat.requests {
            passed += u64::from(self.ask(Mode::Check, 1).await?);
        }
        Ok(passed)
    }

    /// Returns whether a request may go ahead.
    async fn ask(&self, mode: Mode, cost: u64) -> Result<bool, StoreError> {
        let Self { limit, scope, key, .. } = self;
        let charges = [Charge { limit, scope, key, cost }];
        let answers = self.store.decide(&[Ask::new(&charges, mode)], Now::StoreClock).await;
        let missing = StoreError::Unavailable("no answer".into());
        let answer = answers.into_iter().next().unwrap_or(Err(missing))?;
        Ok(answer.joint().outcome == Outcome::Allow)
    }
}

/// Sends all requests without waiting for an answer, as a server does that many clients ask at once.
async fn all_at_once(heat: &Arc<Prepared>) -> Result<u64, StoreError> {
    let mut requests = JoinSet::new();
    for _ in 0..heat.heat.requests {
        let heat = Arc::clone(heat);
        requests.spawn(async move { heat.ask(Mode::Check, 1).await });
    }
    let answers = requests.join_all().await;
    let passed: Vec<bool> = answers.into_iter().collect::<Result<_, _>>()?;
    Ok(passed.into_iter().filter(|passed| *passed).count() as u64)
}

/// The fault on show: what is read may be old when the count is raised.
async fn check_then_incr(
    plain: &mut MultiplexedConnection,
    heat: &Heat,
    key: &str,
    pause: Duration,
) -> Result<u64, RedisError> {
    let mut passed = 0;
    for _ in 0..heat.requests {
        let used: Option<u64> = cmd("GET").arg(key).query_async(plain).await?;
        if used.unwrap_or(0) >= heat.allowed {
            continue;
        }
        if !pause.is_zero() {
            sleep(pause).await;
        }
        let _used: u64 = cmd("INCR").arg(key).query_async(plain).await?;
        passed += 1;
    }
    Ok(passed)
}

#[expect(clippy::needless_pass_by_value, reason = "what an error is handed over to")]
fn failed(error: impl ToString) -> Said {
    Said::Failed(error.to_string())
}

fn say(said: &impl Serialize) -> Result<(), Report> {
    let line = serde_json::to_string(said).map_err(Report::failed)?;
    out(|to| writeln!(to, "{line}"))
}
