//! The gateway over real sockets: what it promises to clients, upstreams and operators.
#![expect(clippy::unwrap_used, reason = "a test may end early")]

mod gateway {
    pub(crate) mod counted;
    pub(crate) mod decisions;
    pub(crate) mod fields;
    pub(crate) mod grpc;
    pub(crate) mod harness;
    pub(crate) mod logged;
    pub(crate) mod peers;
    pub(crate) mod pieces;
    pub(crate) mod queue;
    pub(crate) mod smuggling;
    pub(crate) mod streams;
    pub(crate) mod upstreams;
    pub(crate) mod websocket;
}
