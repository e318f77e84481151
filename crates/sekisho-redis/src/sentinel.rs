//! Where the server is, as sentinels say.

use std::{future::poll_fn, pin::Pin, task::Poll, time::Duration};

use redis_protocol::resp2::types::BytesFrame as Frame;
use sekisho::{Host, StoreError};
use tokio::time::{sleep, timeout};

use crate::{
    link::{
        Manners,
        handshake::{Said, ask},
    },
    wire::{Place, Wire},
};

/// How often they are asked whether the server is still where it was.
const WATCHED: Duration = Duration::from_secs(1);

/// Which part of the time that a sentinel has is a long one.
const SLOW: u32 = 5;

/// The sentinels that watch over a server.
#[derive(Debug)]
pub(crate) struct Sentinels {
    pub(crate) hosts: Vec<Host>,
    /// What they call it.
    pub(crate) master: String,
}

impl Sentinels {
    /// Returns what it is called, for people.
    pub(crate) fn name(&self) -> String {
        format!("sentinel:{}", self.master)
    }

    /// Returns where the server is: what the first of them says that answers. The next is asked as soon as one has failed,
    /// or is slow, so that a caller need not wait out the silence of each.
    pub(crate) async fn master(&self, manners: &Manners) -> Result<Place, StoreError> {
        let slow = Duration::from(manners.timeout) / SLOW;
        let mut why = StoreError::Unavailable("there is no sentinel to ask".into());
        let mut asked = Vec::with_capacity(self.hosts.len());
        let mut next = self.hosts.iter();
        loop {
            let host = next.next();
            asked.extend(host.map(|host| Box::pin(self.ask_in_time(host, manners))));
            if asked.is_empty() {
                return Err(why);
            }
            let more = next.len() > 0;
            tokio::select! {
                told = first_of(&mut asked) => match told {
                    Ok(place) => return Ok(place),
                    Err(error) => why = error,
                },
                () = sleep(slow), if more => {}
            }
        }
    }

    async fn ask_in_time(&self, host: &Host, manners: &Manners) -> Result<Place, StoreError> {
        let told = timeout(manners.timeout.into(), self.ask(host, manners)).await;
        told.unwrap_or(Err(StoreError::Timeout(manners.timeout)))
    }

    async fn ask(&self, host: &Host, manners: &Manners) -> Result<Place, StoreError> {
        let unusable = |why: &dyn std::fmt::Display| {
            StoreError::Unavailable(format!("the sentinel at {host}: {why}").into())
        };
        let place = Place::Host(host.clone());
        let mut wire =
            Wire::dial(&place, manners.tls.as_ref()).await.map_err(|error| unusable(&error))?;
        let words: [&[u8]; 3] = [b"SENTINEL", b"GET-MASTER-ADDR-BY-NAME", self.master.as_bytes()];
        let told = ask(&mut wire, &words).await.map_err(|said| match said {
            Said::Refusal(refusal) => unusable(&refusal.error()),
            Said::Io(error) => unusable(&error),
        })?;
        match told {
            Frame::Null => Err(unusable(&format!("it knows no master `{}`", self.master))),
            told => host_of(&told).map(Place::Host).ok_or_else(|| unusable(&"a strange reply")),
        }
    }

    /// Returns when the server is somewhere else than it was.
    pub(crate) async fn moved(&self, from: &Place, manners: &Manners) {
        loop {
            sleep(WATCHED).await;
            // What no sentinel can say has not changed.
            if self.master(manners).await.is_ok_and(|place| place != *from) {
                return;
            }
        }
    }
}

/// Returns what comes of the first that ends, and takes it out of the list.
async fn first_of<T, F: Future<Output = T> + Unpin>(asked: &mut Vec<F>) -> T {
    poll_fn(|context| {
        for (place, one) in asked.iter_mut().enumerate() {
            if let Poll::Ready(told) = Pin::new(one).poll(context) {
                drop(asked.swap_remove(place));
                return Poll::Ready(told);
            }
        }
        Poll::Pending
    })
    .await
}

/// Reads a host and a port.
fn host_of(told: &Frame) -> Option<Host> {
    let Frame::Array(items) = told else { return None };
    let [Frame::BulkString(name), Frame::BulkString(port)] = items.as_slice() else { return None };
    let port = str::from_utf8(port).ok()?.parse().ok().filter(|port| *port != 0)?;
    Some(Host { name: str::from_utf8(name).ok()?.to_owned(), port })
}
