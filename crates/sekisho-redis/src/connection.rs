//! One connection that all callers share, dialled when it is first needed and again when it has failed.
//!
//! Nothing here is tried twice: a charge whose reply was lost may have been counted.

use std::{fmt, time::Duration};

use redis::{
    AsyncConnectionConfig, Client, ErrorKind, Pipeline, RedisError, RedisResult, ServerErrorKind,
    Value, aio::MultiplexedConnection,
};
use sekisho::{Span, StoreError};
use tokio::{sync::Mutex, time::timeout};

/// The way to one server.
pub(crate) struct Connection {
    client: Client,
    connect_timeout: Span,
    response_timeout: Span,
    // Held while dialling, so that a thousand callers dial once.
    live: Mutex<Live>,
}

/// The connection in use.
struct Live {
    connection: Option<MultiplexedConnection>,
    /// How often it was dialled: who saw an old one fail does not hang up the new one.
    dialled: u64,
}

impl Connection {
    /// Returns a way to the server at `url`, without going there.
    pub(crate) fn new(
        url: &str,
        connect_timeout: Span,
        response_timeout: Span,
    ) -> Result<Self, StoreError> {
        let client = Client::open(url).map_err(|error| unavailable(&error))?;
        let live = Mutex::new(Live { connection: None, dialled: 0 });
        Ok(Self { client, connect_timeout, response_timeout, live })
    }

    /// Sends some commands in one go, and returns a reply for each.
    pub(crate) async fn send(
        &self,
        pipeline: &mut Pipeline,
    ) -> Result<Vec<RedisResult<Value>>, StoreError> {
        let waited = timeout(Duration::from(self.connect_timeout), self.connection()).await;
        let (mut connection, dialled) = match waited {
            Err(_) => return Err(StoreError::Timeout(self.connect_timeout)),
            Ok(Err(error)) => return Err(error_of(&error, self.connect_timeout)),
            Ok(Ok(connection)) => connection,
        };
        let replies: RedisResult<Vec<RedisResult<Value>>> =
            pipeline.ignore_errors().query_async(&mut connection).await;
        match replies {
            Ok(replies) => {
                if replies.iter().filter_map(|reply| reply.as_ref().err()).any(is_elsewhere) {
                    self.hang_up(dialled).await;
                }
                Ok(replies)
            }
            Err(error) => {
                self.hang_up(dialled).await;
                Err(error_of(&error, self.response_timeout))
            }
        }
    }

    /// Returns the connection in use and its number.
    async fn connection(&self) -> RedisResult<(MultiplexedConnection, u64)> {
        let mut live = self.live.lock().await;
        if let Some(connection) = &live.connection {
            return Ok((connection.clone(), live.dialled));
        }
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.connect_timeout.into()))
            .set_response_timeout(Some(self.response_timeout.into()));
        let connection = self.client.get_multiplexed_async_connection_with_config(&config).await?;
        live.dialled += 1;
        live.connection = Some(connection.clone());
        Ok((connection, live.dialled))
    }

    /// Lets go of a connection that failed; the next caller dials anew.
    async fn hang_up(&self, dialled: u64) {
        let mut live = self.live.lock().await;
        if live.dialled == dialled {
            live.connection = None;
        }
    }
}

impl fmt::Debug for Connection {
    // The client's own text may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Connection({})", self.client.get_connection_info().addr())
    }
}

/// Returns what a failed round trip means to a caller, who allowed it that long.
fn error_of(error: &RedisError, allowed: Span) -> StoreError {
    if error.is_timeout() { StoreError::Timeout(allowed) } else { unavailable(error) }
}

/// Returns what a failed command means to a caller.
pub(crate) fn unavailable(error: &RedisError) -> StoreError {
    StoreError::Unavailable(error.to_string().into())
}

/// Returns whether the script has to be sent in full: the server has forgotten it.
pub(crate) fn is_unknown_script(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}

/// Returns whether this server is not, or not yet, the one that decides. After a failover the name may lead to another.
fn is_elsewhere(error: &RedisError) -> bool {
    use ServerErrorKind::{BusyLoading, ClusterDown, MasterDown, Moved, ReadOnly};
    matches!(
        error.kind(),
        ErrorKind::Server(BusyLoading | ClusterDown | MasterDown | Moved | ReadOnly)
    )
}
