//! What is said first on a new connection, until the server has shown that it can decide.

use std::io;

use redis_protocol::resp2::types::BytesFrame as Frame;
use sekisho::{StoreError, Timestamp};
use tokio::time::timeout;

use super::{Manners, Shared, Target};
use crate::{
    command::command,
    refusal::{Meaning, Refusal},
    script::{DIGEST, SOURCE},
    state::timestamp,
    stats::Trouble,
    wire::{Place, Wire},
};

/// Finds the server, opens a connection and says who we are. Returns the connection, where
/// it leads, and the server's time.
pub(super) async fn connect(
    shared: &Shared,
) -> Result<(Wire, Place, Timestamp), (Trouble, StoreError)> {
    let manners = &*shared.manners;
    let limit = shared.timeout();
    let over = || (Trouble::Timeout, StoreError::Timeout(manners.timeout));
    let place = match &shared.target {
        Target::Place(place) => place.clone(),
        Target::Sentinels(sentinels) => {
            sentinels.master(manners).await.map_err(|error| (Trouble::Connect, error))?
        }
    };
    let dialled = timeout(limit, Wire::dial(&place, manners.tls.as_ref())).await;
    let cannot = |error: io::Error| {
        (Trouble::Connect, StoreError::Unavailable(format!("it cannot be reached: {error}").into()))
    };
    let mut wire = dialled.map_err(|_| over())?.map_err(cannot)?;
    let at = timeout(limit, introduce(&mut wire, manners)).await.map_err(|_| over())??;
    Ok((wire, place, at))
}

/// Says who we are, chooses the database, and runs the script once with nothing to decide. So the script is known there, and
/// a server that loads its data or does not know us is found out before anybody waits for it.
async fn introduce(wire: &mut Wire, manners: &Manners) -> Result<Timestamp, (Trouble, StoreError)> {
    greet(wire, manners).await?;
    // No keys, this server's clock, and no requests.
    let nothing: [&[u8]; 3] = [b"0", b"", b""];
    let by_digest = [&[b"EVALSHA", DIGEST.as_bytes()][..], &nothing].concat();
    match ask(wire, &by_digest).await {
        Err(Said::Refusal(refusal)) if refusal.meaning == Meaning::UnknownScript => {
            let in_full = [&[b"EVAL", SOURCE.as_bytes()][..], &nothing].concat();
            ask(wire, &in_full).await
        }
        told => told,
    }
    .map_err(Said::into_trouble)
    .and_then(|told| clock(&told).ok_or_else(strange))
}

/// Says who we are, and chooses the database.
pub(crate) async fn greet(wire: &mut Wire, manners: &Manners) -> Result<(), (Trouble, StoreError)> {
    if let Some(password) = &manners.password {
        let mut words: Vec<&[u8]> = vec![b"AUTH"];
        words.extend(manners.user.as_deref().map(str::as_bytes));
        words.push(password.as_bytes());
        ask(wire, &words).await.map_err(Said::into_trouble)?;
    }
    if manners.database != 0 {
        let database = manners.database.to_string();
        ask(wire, &[b"SELECT", database.as_bytes()]).await.map_err(Said::into_trouble)?;
    }
    Ok(())
}

/// What went wrong with one command.
pub(crate) enum Said {
    Refusal(Refusal),
    Io(io::Error),
}

impl Said {
    pub(crate) fn into_trouble(self) -> (Trouble, StoreError) {
        match self {
            Self::Refusal(refusal) => (refusal.trouble(), refusal.error()),
            Self::Io(error) => {
                let why = format!("the connection broke: {error}");
                (Trouble::Io, StoreError::Unavailable(why.into()))
            }
        }
    }
}

/// Asks one thing, and returns what it says.
pub(crate) async fn ask(wire: &mut Wire, words: &[&[u8]]) -> Result<Frame, Said> {
    command(&mut wire.out, words);
    match wire.reply().await {
        Ok(Frame::Error(said)) => Err(Said::Refusal(Refusal::of(&said))),
        Ok(frame) => Ok(frame),
        Err(error) => Err(Said::Io(error)),
    }
}

fn clock(told: &Frame) -> Option<Timestamp> {
    let Frame::Array(items) = told else { return None };
    match items.as_slice() {
        [Frame::Integer(us)] => u64::try_from(*us).ok().and_then(timestamp),
        _ => None,
    }
}

fn strange() -> (Trouble, StoreError) {
    (Trouble::Script, StoreError::Unavailable("a strange reply of the script".into()))
}
