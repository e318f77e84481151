//! The site behind the proxy: it answers everything, and remembers what reached it.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::mpsc::{self, Receiver, Sender},
    thread,
};

/// What each of its answers begins with.
pub(crate) const GREETING: &str = "this is the site";

/// A site on a port of its own. Its threads end with the test process.
pub(crate) struct Site {
    address: SocketAddr,
    heads: Receiver<String>,
}

impl Site {
    /// Starts one that works.
    pub(crate) fn start() -> Self {
        Self::answering(true)
    }

    /// Starts one that reads requests and closes the connection instead of an answer.
    pub(crate) fn start_broken() -> Self {
        Self::answering(false)
    }

    fn answering(works: bool) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, heads) = mpsc::channel();
        drop(thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let sender = sender.clone();
                drop(thread::spawn(move || serve(&stream, &sender, works)));
            }
        }));
        Self { address, heads }
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the heads of the requests that reached it since this was last asked.
    pub(crate) fn reached(&self) -> Vec<String> {
        self.heads.try_iter().collect()
    }
}

/// Answers one connection's requests, with their bodies, until it is closed.
fn serve(stream: &TcpStream, heads: &Sender<String>, works: bool) {
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    while let Some(head) = read_head(&mut reader) {
        let length = head
            .lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            .map_or(0, |(_, value)| value.trim().parse().unwrap());
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        // First, so that who has the answer finds the head.
        let _unread = heads.send(head);
        if !works {
            return;
        }
        let answer = format!("{GREETING}: {}", String::from_utf8_lossy(&body));
        let length = answer.len();
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {length}\r\n\r\n{answer}"
        );
        if writer.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// Returns the next head as text; `None` at the end.
fn read_head(reader: &mut impl BufRead) -> Option<String> {
    let mut head = Vec::new();
    loop {
        let length = reader.read_until(b'\n', &mut head).ok()?;
        match length {
            0 => return None,
            2 => return Some(String::from_utf8_lossy(&head).into_owned()),
            _ => {}
        }
    }
}
