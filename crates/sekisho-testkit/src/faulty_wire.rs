//! A wire between a client and a server that fails as it is told to: late, mute, half dead, cut, or refused.
//!
//! It stands on a port of its own and passes on to the server's. One thread serves all its connections.

mod connection;
mod ledger;

use std::{net::SocketAddr, sync::mpsc, thread, time::Duration};

use tokio::{net::TcpListener, runtime, sync::watch, task::JoinSet};

pub use crate::faulty_wire::ledger::Counts;
use crate::{faulty_wire::ledger::Ledger, wait};

/// What the wire does. Set anew, it holds for every connection at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    /// Passes everything on.
    #[default]
    Pass,
    /// Passes everything on, that much later in each direction; nothing overtakes.
    Delay(Duration),
    /// Takes what the client sends and accepts who comes, and passes nothing on in either direction until the fault is
    /// over; then everything.
    Stall,
    /// Passes requests on and loses the replies: the server does it, and the client never hears. A connection that has
    /// lost something is cut when the fault is over, as later replies would be taken for those that are lost.
    HalfOpen,
    /// Cuts new connections at once; those that are there go on.
    Refuse,
}

/// A wire to one server, which is gone, with its connections, when this is dropped.
///
/// ```no_run
/// use sekisho_testkit::{
///     faulty_wire::{Fault, FaultyWire},
///     redis_server::RedisServer,
/// };
///
/// let server = RedisServer::start();
/// let wire = FaultyWire::to(server.port());
/// // … a client connects to `wire.url()` and asks …
/// wire.set(Fault::HalfOpen);
/// // … it asks again: the server obeys, and the client hears nothing …
/// wire.set(Fault::Pass);
/// wire.cut_after(100);
/// ```
#[derive(Debug)]
pub struct FaultyWire {
    port: u16,
    ledger: Ledger,
    /// Ends the thread when it is dropped.
    end: Option<watch::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl FaultyWire {
    /// A wire to a port of 127.0.0.1, which passes everything on.
    ///
    /// # Panics
    /// When the machine has no free port.
    pub fn to(port: u16) -> Self {
        let (end, ended) = watch::channel(());
        let (sender, own_port) = mpsc::channel();
        let ledger = Ledger::default();
        let (server, shared) = (([127, 0, 0, 1], port).into(), ledger.clone());
        let thread = thread::spawn(move || serve(server, &shared, ended, &sender));
        let port = own_port.recv().expect("127.0.0.1 has a free port");
        Self { port, ledger, end: Some(end), thread: Some(thread) }
    }

    /// Returns its own port on 127.0.0.1, for clients.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the address for clients that speak Redis.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Sets what it does from now on.
    ///
    /// # Panics
    /// When its thread is gone.
    pub fn set(&self, fault: Fault) {
        self.ledger.set(fault);
        // Else what a client asks next might go through a connection that is about to be cut.
        wait::until("connections that lost replies are cut", || {
            (!self.ledger.has_lame()).then_some(())
        });
    }

    /// Cuts every connection now, with RST on the client's side. On return they are gone.
    ///
    /// # Panics
    /// When its thread is gone.
    pub fn cut(&self) {
        let last = self.ledger.cut();
        wait::until("the connections are cut", || (!self.ledger.has_open(last)).then_some(()));
    }

    /// Cuts every connection once `bytes` more bytes of replies have been passed on, all connections together: so a reply
    /// can end in its middle. It is done once; 0 cuts in front of the next reply.
    pub fn cut_after(&self, bytes: usize) {
        self.ledger.cut_after(bytes);
    }

    /// Returns what has gone through since it was made.
    pub fn counts(&self) -> Counts {
        self.ledger.counts()
    }
}

impl Drop for FaultyWire {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // It has said why, if it panicked.
            let _ignored = thread.join();
        }
    }
}

fn serve(
    server: SocketAddr,
    ledger: &Ledger,
    mut ended: watch::Receiver<()>,
    port: &mpsc::Sender<u16>,
) {
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a thread can have a runtime").block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("there is a free port");
        let address = listener.local_addr().expect("a listener has an address");
        port.send(address.port()).expect("the wire waits for its port");
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                // Nothing is ever sent; it is closed.
                _ = ended.changed() => return,
                accepted = listener.accept() => {
                    let (client, _) = accepted.expect("connections can be accepted");
                    connections.spawn(connection::serve(client, server, ledger.clone()));
                }
                Some(_) = connections.join_next() => {}
            }
        }
    });
}
