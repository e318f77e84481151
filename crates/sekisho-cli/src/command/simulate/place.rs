//! A part of a shared store that belongs to one run, and what ends the run early.

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher as _, Hasher as _},
    time::Duration,
};

use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _,
    RedisConnectionInfo, aio::MultiplexedConnection,
};
use sekisho::{StoreAddress, StoreAddressError, StoreError, Topology};
use sekisho_redis::{RedisOptions, RedisStore};
use tokio::{
    runtime::{Builder, Runtime},
    signal::unix::{Signal, SignalKind, signal},
};

use crate::{args::StoreUrl, report::Report};

/// How long a connection or a reply may take. An experiment waits longer than a request would; one without a reply may have been
/// counted, so it is never sent again.
const TIMEOUT: Duration = Duration::from_secs(10);
/// What to do about a store that is not there.
const HINT: &str = "is a Redis or Valkey server listening there, and may this user use it?";

/// Where a run counts.
#[derive(Clone)]
pub(super) struct Place {
    // With the password, as it was given.
    pub(super) url: String,
    pub(super) prefix: String,
    // What is shown: its text has no password.
    address: StoreAddress,
}

impl Place {
    /// Returns a place with a prefix that no other run has.
    pub(super) fn new(url: &StoreUrl) -> Result<Self, Report> {
        // The standard library's hashers begin with the system's random bytes.
        let random = RandomState::new().build_hasher().finish();
        Self::with_prefix(&url.0, format!("simulate-{random:016x}"))
    }

    pub(super) fn with_prefix(url: &str, prefix: String) -> Result<Self, Report> {
        let address = url.parse().map_err(|error: StoreAddressError| malformed(&error))?;
        Ok(Self { url: url.to_owned(), prefix, address })
    }

    /// Returns the store, which dials when it is first asked.
    pub(super) fn store(&self) -> Result<RedisStore, Report> {
        let mut options = RedisOptions { prefix: self.prefix.clone(), ..RedisOptions::default() };
        options.timeout = TIMEOUT.into();
        RedisStore::new(&self.url, options).map_err(|error| self.failed(&error))
    }

    /// Returns a connection for plain commands.
    pub(super) async fn connect(&self) -> Result<MultiplexedConnection, Report> {
        let failed = |error| self.failed(&error).hint(HINT);
        let client = Client::open(self.plainly()?).map_err(failed)?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(TIMEOUT))
            .set_response_timeout(Some(TIMEOUT));
        client.get_multiplexed_async_connection_with_config(&config).await.map_err(failed)
    }

    /// Returns the address for plain commands, which only a single server takes all of.
    fn plainly(&self) -> Result<ConnectionInfo, Report> {
        let StoreAddress { topology, hosts, tls, user, password, database, .. } = &self.address;
        let address = match (topology, hosts.as_slice()) {
            (Topology::Single, [host]) if !tls => ConnectionAddr::Tcp(host.name.clone(), host.port),
            (Topology::Unix(path), _) => ConnectionAddr::Unix(path.clone()),
            _ => {
                return Err(Report::input(format!(
                    "{}: this needs one server, without TLS",
                    self.address
                )));
            }
        };
        let mut settings = RedisConnectionInfo::default().set_db((*database).into());
        if let Some(user) = user {
            settings = settings.set_username(user);
        }
        if let Some(password) = password {
            settings = settings.set_password(password);
        }
        let info = address.into_connection_info().map_err(|error| self.failed(&error))?;
        Ok(info.set_redis_settings(settings))
    }

    /// Returns what it means that the store cannot be asked at all.
    pub(super) fn unusable(&self, error: &StoreError) -> Report {
        match error {
            StoreError::Unsupported(_) => Report::input(format!("{}: {error}", self.address)),
            error => self.failed(error).hint(HINT),
        }
    }

    pub(super) fn failed(&self, error: &dyn std::error::Error) -> Report {
        Report::failed(format!("{}: {error}", self.address))
    }

    /// Returns how a run ended whose keys were to be removed. What ended it early is said first.
    pub(super) fn closed<T>(
        &self,
        ended: Result<T, Report>,
        removed: Result<(), impl std::error::Error>,
    ) -> Result<T, Report> {
        let Err(error) = removed else { return ended };
        let Self { address, prefix, .. } = self;
        let left = format!("keys that begin with `{prefix}` are left, until they expire");
        match ended {
            Ok(_) => Err(Report::failed(format!("{address}: {error}")).hint(left)),
            Err(report) => Err(report.hint(left)),
        }
    }
}

fn malformed(error: &dyn std::error::Error) -> Report {
    Report::input(format!("`--store`: {error}")).hint("a store is like `redis://127.0.0.1:6379`")
}

/// Returns what runs a connection. One thread is enough for whoever only waits.
pub(super) fn runtime() -> Result<Runtime, Report> {
    Builder::new_current_thread().enable_all().build().map_err(Report::failed)
}

/// Ctrl-C, and what else asks a program to end: keys are removed then too.
pub(super) struct Stop([Signal; 3]);

impl Stop {
    /// From here on the signals no longer end the program by themselves.
    pub(super) fn new() -> Result<Self, Report> {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let [interrupt, terminate, hangup] = kinds.map(signal);
        let [interrupt, terminate, hangup] =
            [interrupt, terminate, hangup].map(|signal| signal.map_err(Report::failed));
        Ok(Self([interrupt?, terminate?, hangup?]))
    }

    /// Is ready once the program is asked to end.
    pub(super) async fn asked(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}

/// What a run says that was asked to end.
pub(super) fn stopped() -> Report {
    Report::failed("stopped before the end")
}
