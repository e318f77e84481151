//! A name that leads to one server, and later to another: connections that are there stay where they are.

use std::sync::{
    Arc,
    atomic::{AtomicU16, Ordering},
};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

#[derive(Debug)]
pub(crate) struct Switch {
    port: u16,
    target: Arc<AtomicU16>,
    task: JoinHandle<()>,
}

impl Switch {
    pub(crate) async fn to(port: u16) -> Self {
        let target = Arc::new(AtomicU16::new(port));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let task = tokio::spawn(serve(listener, Arc::clone(&target)));
        Self { port, target, task }
    }

    /// New connections lead there from now on.
    pub(crate) fn set(&self, port: u16) {
        self.target.store(port, Ordering::Relaxed);
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, target: Arc<AtomicU16>) {
    while let Ok((mut client, _)) = listener.accept().await {
        let port = target.load(Ordering::Relaxed);
        drop(tokio::spawn(async move {
            if let Ok(mut server) = TcpStream::connect(("127.0.0.1", port)).await {
                let _set = (client.set_nodelay(true), server.set_nodelay(true));
                // One side ends it, as connections end.
                let _ended = copy_bidirectional(&mut client, &mut server).await;
            }
        }));
    }
}
