//! One connection of a wire: two directions, each of which takes bytes as they come and gives them as the fault allows.

use std::{future, io, net::SocketAddr};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpStream,
        tcp::{ReadHalf, WriteHalf},
    },
    sync::{mpsc, watch},
    time::{self, Instant},
};

use crate::faulty_wire::{
    Fault,
    ledger::{Book, Ledger},
};

/// The most that is taken at once.
const CHUNK_BYTES_MAX: usize = 16 * 1024;
/// The most chunks held in one direction; then its sender has to wait.
const CHUNKS_MAX: usize = 1_024;

/// Bytes and when they came; no bytes are the end.
type Chunk = (Instant, Vec<u8>);

/// Passes between a client and a server until one of them ends it, or the wire does.
pub(super) async fn serve(mut client: TcpStream, server: SocketAddr, ledger: Ledger) {
    let Some(number) = ledger.open() else {
        reset(client);
        return;
    };
    let mut book = ledger.watch();
    let whole = tokio::select! {
        result = pass(&mut client, server, &ledger, number) => result.is_ok(),
        _ = book.wait_for(|book| book.cuts(number)) => false,
    };
    if whole {
        drop(client);
    } else {
        reset(client);
    }
    // Only now: who waits for its end finds it ended.
    ledger.close(number);
}

/// Closes with RST: whoever reads or writes next is told that the connection broke.
fn reset(client: TcpStream) {
    // It fails for a socket that is broken already.
    let _ignored = client.set_zero_linger();
    drop(client);
}

/// Ends well when both sides have said that they end.
async fn pass(
    client: &mut TcpStream,
    server: SocketAddr,
    ledger: &Ledger,
    number: u64,
) -> io::Result<()> {
    let mut server = TcpStream::connect(server).await?;
    // A wire holds nothing back to fill its packets.
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    let lane = |replies| Lane { ledger, book: ledger.watch(), number, replies };
    let requests = lane(false).run(from_client, to_server);
    let replies = lane(true).run(from_server, to_client);
    tokio::try_join!(requests, replies).map(|_| ())
}

/// One direction of a connection.
struct Lane<'a> {
    ledger: &'a Ledger,
    book: watch::Receiver<Book>,
    number: u64,
    replies: bool,
}

impl Lane<'_> {
    async fn run(self, from: ReadHalf<'_>, to: WriteHalf<'_>) -> io::Result<()> {
        let counted = (!self.replies).then_some(self.ledger);
        let (sender, chunks) = mpsc::channel(CHUNKS_MAX);
        tokio::try_join!(take(from, sender, counted), self.give(chunks, to)).map(|_| ())
    }

    /// Gives what has come, in order, when its time has come.
    async fn give(
        mut self,
        mut chunks: mpsc::Receiver<Chunk>,
        mut to: WriteHalf<'_>,
    ) -> io::Result<()> {
        while let Some((came, bytes)) = chunks.recv().await {
            if !self.passes(came, bytes.len()).await {
                continue;
            }
            if bytes.is_empty() {
                return to.shutdown().await;
            }
            if self.replies {
                let (passes, cuts) = self.ledger.reply(bytes.len());
                to.write_all(&bytes[..passes]).await?;
                if cuts {
                    self.ledger.cut();
                    return future::pending().await;
                }
            } else {
                to.write_all(&bytes).await?;
            }
        }
        // The end itself was lost: the other side waits on, until the connection is cut.
        future::pending().await
    }

    /// Waits until what came at `came` may pass; or returns that it is lost.
    async fn passes(&mut self, came: Instant, bytes: usize) -> bool {
        loop {
            let fault = self.book.borrow_and_update().fault;
            match fault {
                Fault::Pass | Fault::Refuse => return true,
                Fault::HalfOpen if !self.replies => return true,
                Fault::HalfOpen if self.ledger.lose(self.number, bytes) => return false,
                // It is over already; the next look shows what holds instead.
                Fault::HalfOpen => {}
                Fault::Stall => self.change().await,
                Fault::Delay(delay) => tokio::select! {
                    () = time::sleep_until(came + delay) => return true,
                    () = self.change() => {}
                },
            }
        }
    }

    async fn change(&mut self) {
        self.book.changed().await.expect("the ledger lives as long as the lane");
    }
}

/// Takes bytes as they come, whatever becomes of them.
async fn take(
    mut from: ReadHalf<'_>,
    chunks: mpsc::Sender<Chunk>,
    requests: Option<&Ledger>,
) -> io::Result<()> {
    loop {
        let mut bytes = vec![0; CHUNK_BYTES_MAX];
        let count = from.read(&mut bytes).await?;
        bytes.truncate(count);
        if let Some(ledger) = requests {
            ledger.requested(count);
        }
        if chunks.send((now(), bytes)).await.is_err() || count == 0 {
            return Ok(());
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the delay of a real wire is in real time")]
fn now() -> Instant {
    Instant::now()
}
