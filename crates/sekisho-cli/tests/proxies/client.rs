//! A client with an address of its own, on a connection that it keeps.
//!
//! Any address of 127.0.0.0/8 is this machine's, so that clients differ from the proxy and from each other.

use std::{
    io::{self, BufRead, BufReader, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    time::Duration,
};

use tokio::{net::TcpSocket, runtime::Builder};

/// How long an answer is waited for.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// What a client asks.
#[derive(Clone, Copy)]
pub(crate) struct Ask<'a> {
    pub(crate) method: &'a str,
    /// As it stands in the request line.
    pub(crate) target: &'a [u8],
    pub(crate) headers: &'a [(&'a str, &'a str)],
    pub(crate) body: &'a str,
}

impl<'a> Ask<'a> {
    pub(crate) const fn get(target: &'a str) -> Self {
        Self { method: "GET", target: target.as_bytes(), headers: &[], body: "" }
    }

    pub(crate) const fn post(target: &'a str) -> Self {
        Self { method: "POST", ..Self::get(target) }
    }

    pub(crate) const fn with(self, headers: &'a [(&'a str, &'a str)]) -> Self {
        Self { headers, ..self }
    }

    fn to_bytes(self) -> Vec<u8> {
        let mut bytes = [self.method.as_bytes(), b" ", self.target, b" HTTP/1.1\r\n"].concat();
        if !self.headers.iter().any(|(name, _)| *name == "host") {
            bytes.extend(b"host: site.example\r\n");
        }
        for (name, value) in self.headers {
            bytes.extend(format!("{name}: {value}\r\n").as_bytes());
        }
        bytes.extend(format!("content-length: {}\r\n\r\n{}", self.body.len(), self.body).bytes());
        bytes
    }
}

/// What it is told.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// Returns the field of that name; an empty text when there is none.
    pub(crate) fn field(&self, name: &str) -> &str {
        let found = self.fields.iter().find(|(field, _)| field == name);
        found.map_or("", |(_, value)| value)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A client, and its connection while it has one.
pub(crate) struct Client {
    own: Ipv4Addr,
    server: SocketAddr,
    connection: Option<BufReader<TcpStream>>,
}

impl Client {
    /// Returns a client whose address is `127.0.0.number`.
    pub(crate) const fn new(number: u8, server: SocketAddr) -> Self {
        Self { own: Ipv4Addr::new(127, 0, 0, number), server, connection: None }
    }

    pub(crate) fn ask(&mut self, ask: Ask<'_>) -> Answer {
        self.try_ask(ask).unwrap()
    }

    /// Asks; an error is a connection that was cut before the answer was whole.
    pub(crate) fn try_ask(&mut self, ask: Ask<'_>) -> io::Result<Answer> {
        let mut connection = self.connection.take().unwrap_or_else(|| self.connect());
        // A server that answers before it has read everything may close before everything is written.
        let _unread = connection.get_mut().write_all(&ask.to_bytes());
        let answer = read_answer(&mut connection)?;
        if !answer.field("connection").eq_ignore_ascii_case("close") {
            self.connection = Some(connection);
        }
        Ok(answer)
    }

    /// Asks the same several times and returns the statuses.
    pub(crate) fn statuses(&mut self, times: usize, ask: Ask<'_>) -> Vec<u16> {
        (0..times).map(|_| self.ask(ask).status).collect()
    }

    fn connect(&self) -> BufReader<TcpStream> {
        // What std has no words for: where a connection begins.
        let runtime = Builder::new_current_thread().enable_io().build().unwrap();
        let stream = runtime.block_on(async {
            let socket = TcpSocket::new_v4().unwrap();
            socket.set_reuseaddr(true).unwrap();
            socket.bind(SocketAddr::from((self.own, 0))).unwrap();
            socket.connect(self.server).await.unwrap().into_std().unwrap()
        });
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(ANSWER_TIMEOUT)).unwrap();
        stream.set_nodelay(true).unwrap();
        BufReader::new(stream)
    }
}

fn read_answer(reader: &mut impl BufRead) -> io::Result<Answer> {
    let mut line = || {
        let mut line = String::new();
        match reader.read_line(&mut line)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok::<_, io::Error>(line.trim_end().to_owned()),
        }
    };
    let status = line()?.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
    let mut fields = Vec::new();
    loop {
        let line = line()?;
        let Some((name, value)) = line.split_once(':') else { break };
        fields.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut answer = Answer { status, fields, body: Vec::new() };
    assert_eq!(answer.field("transfer-encoding"), "", "these answers are short");
    match answer.field("content-length").parse() {
        Ok(length) => {
            answer.body.resize(length, 0);
            reader.read_exact(&mut answer.body)?;
        }
        // Caddy's refusal of a bad head.
        Err(_) => drop(reader.read_to_end(&mut answer.body)?),
    }
    Ok(answer)
}
