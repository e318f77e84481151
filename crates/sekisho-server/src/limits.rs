//! The bounds of the server, by name: no peer can make it hold, read or wait for more than this.

use std::time::Duration;

/// The most bytes of a request's head, start line included. More is answered with 431.
pub const HEADER_BYTES_MAX: usize = 16 * 1024;
/// The most header lines. More is answered with 431.
pub const HEADERS_MAX: usize = 100;
/// The time in which a head arrives, counted from its first byte, and for the first head from the connection's beginning.
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// The most bytes of a check's body. More is answered with 413.
pub const BODY_BYTES_MAX: usize = 64 * 1024;
/// The most bytes of a longer body that are read and thrown away so that its sender reads the answer.
pub const BODY_DISCARD_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The time in which a body arrives. A slower one is answered with 408.
pub const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// The time that a connection may be idle between requests. Longer than the pools of the usual proxies keep theirs (nginx
/// 60 s, Traefik 90 s, Caddy 120 s), so that the proxy closes first and no request meets a closing connection.
pub const IDLE_TIMEOUT: Duration = Duration::from_mins(3);
/// The time for which a peer may leave an answer unread.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// The most bytes of a PROXY protocol header of version 2, with what a proxy adds to it. A longer one ends the connection.
pub const PROXY_HEADER_BYTES_MAX: usize = 4 * 1024;
/// The most connections of one listener. More wait in the system's queue.
pub const CONNECTIONS_MAX: usize = 10_000;
/// The time in which running requests are finished when the server stops.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// How often what has become fresh is dropped from the memory store.
pub const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
/// How long a server that starts waits for another that has its snapshot: longer than that one takes to finish what runs and to
/// write.
pub const SNAPSHOT_TIMEOUT: Duration = Duration::from_secs(15);
/// How often it looks meanwhile whether the snapshot is free.
pub const SNAPSHOT_PAUSE: Duration = Duration::from_millis(20);
/// How long no connection is accepted after the system refused to hand one out.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// The most checks of one body.
pub const CHECKS_MAX: usize = 1_000;
/// The most limits of one check.
pub const LIMITS_MAX: usize = 16;
/// The longest text that says what is wrong with a body, in bytes: it may quote the body.
pub const DETAIL_BYTES_MAX: usize = 400;
/// The most keys that one answer of `GET /v1/keys` has.
pub const TOP_MAX: usize = 1_000;
/// How many it has when nobody says.
pub const TOP_DEFAULT: usize = 20;

/// The most words of a command over RESP, its name among them.
pub const RESP_ARGS_MAX: usize = 64;
/// The most bytes of one of them.
pub const RESP_BULK_BYTES_MAX: usize = 64 * 1024;
/// The most bytes of a command that is a line of words.
pub const RESP_LINE_BYTES_MAX: usize = 64 * 1024;
/// How many bytes one read asks for at most.
pub const RESP_READ_BYTES: usize = 16 * 1024;
/// How many bytes of replies wait at most before they are sent, but for the last one.
pub const RESP_REPLY_BYTES_MAX: usize = 64 * 1024;
/// How many commands are decided together at most.
pub const RESP_BATCH_MAX: usize = 128;

/// The bounds that a server may be given others of; the default is this module's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// See [`HEADER_BYTES_MAX`].
    pub header_bytes: usize,
    /// See [`HEADERS_MAX`].
    pub headers: usize,
    /// See [`HEADER_TIMEOUT`].
    pub header_timeout: Duration,
    /// See [`BODY_BYTES_MAX`].
    pub body_bytes: usize,
    /// See [`BODY_TIMEOUT`].
    pub body_timeout: Duration,
    /// See [`IDLE_TIMEOUT`].
    pub idle_timeout: Duration,
    /// See [`WRITE_TIMEOUT`].
    pub write_timeout: Duration,
    /// See [`CONNECTIONS_MAX`]. At least 1.
    pub connections: usize,
    /// See [`DRAIN_TIMEOUT`].
    pub drain_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header_bytes: HEADER_BYTES_MAX,
            headers: HEADERS_MAX,
            header_timeout: HEADER_TIMEOUT,
            body_bytes: BODY_BYTES_MAX,
            body_timeout: BODY_TIMEOUT,
            idle_timeout: IDLE_TIMEOUT,
            write_timeout: WRITE_TIMEOUT,
            connections: CONNECTIONS_MAX,
            drain_timeout: DRAIN_TIMEOUT,
        }
    }
}
