//! What a test says to a server itself, beside the client that it tests: one command, one reply, never waiting for ever.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

/// What a server replies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A word such as `OK`.
    Status(String),
    /// The server refused; its whole message, which begins with a code such as `MOVED`.
    Error(String),
    /// A number.
    Integer(i64),
    /// Bytes.
    Bulk(Vec<u8>),
    /// Nothing there.
    Nil,
    /// Several replies.
    Array(Vec<Self>),
}

impl Reply {
    /// Returns a status, bytes or a number as text.
    ///
    /// # Panics
    /// When it is anything else, an error for one; it is shown.
    #[track_caller]
    pub fn text(&self) -> String {
        match self {
            Self::Status(text) => text.clone(),
            Self::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Self::Integer(number) => number.to_string(),
            Self::Error(_) | Self::Nil | Self::Array(_) => panic!("no text but {self:?}"),
        }
    }

    /// Returns a number.
    ///
    /// # Panics
    /// When it is none; it is shown.
    #[track_caller]
    pub fn integer(&self) -> i64 {
        self.text().parse().unwrap_or_else(|_| panic!("no number but {self:?}"))
    }

    /// Returns the parts of an array.
    ///
    /// # Panics
    /// When it is none; it is shown.
    #[track_caller]
    pub fn array(&self) -> &[Self] {
        let Self::Array(parts) = self else { panic!("no array but {self:?}") };
        parts
    }

    /// Returns the message of an error, if it is one.
    pub fn error(&self) -> Option<&str> {
        if let Self::Error(message) = self { Some(message) } else { None }
    }
}

/// A connection over the server's socket.
#[derive(Debug)]
pub(crate) struct Client(BufReader<UnixStream>);

impl Client {
    /// Connects; no reply is waited for longer than `patience`.
    pub(crate) fn connect(socket: &Path, patience: Duration) -> io::Result<Self> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        Ok(Self(BufReader::new(stream)))
    }

    pub(crate) fn call<W: AsRef<[u8]>>(&mut self, words: &[W]) -> io::Result<Reply> {
        let mut sent = format!("*{}\r\n", words.len()).into_bytes();
        for word in words.iter().map(AsRef::as_ref) {
            sent.extend(format!("${}\r\n", word.len()).bytes());
            sent.extend_from_slice(word);
            sent.extend(b"\r\n");
        }
        self.0.get_mut().write_all(&sent)?;
        read(&mut self.0)
    }
}

fn read(from: &mut impl BufRead) -> io::Result<Reply> {
    let line = line(from)?;
    let (kind, rest) = line.split_at_checked(1).ok_or_else(|| strange(&line))?;
    match kind {
        "+" => Ok(Reply::Status(rest.to_owned())),
        "-" => Ok(Reply::Error(rest.to_owned())),
        ":" => Ok(Reply::Integer(number(rest)?)),
        "$" => match usize::try_from(number(rest)?) {
            Ok(length) => bulk(from, length),
            Err(_) => Ok(Reply::Nil),
        },
        "*" => match usize::try_from(number(rest)?) {
            Ok(count) => {
                (0..count).map(|_| read(from)).collect::<io::Result<_>>().map(Reply::Array)
            }
            Err(_) => Ok(Reply::Nil),
        },
        _ => Err(strange(&line)),
    }
}

fn line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    from.read_line(&mut line)?;
    match line.strip_suffix("\r\n") {
        Some(whole) => Ok(whole.to_owned()),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn bulk(from: &mut impl Read, length: usize) -> io::Result<Reply> {
    let mut bytes = vec![0; length + 2];
    from.read_exact(&mut bytes)?;
    bytes.truncate(length);
    Ok(Reply::Bulk(bytes))
}

fn number(text: &str) -> io::Result<i64> {
    text.parse().map_err(|_| strange(text))
}

fn strange(line: &str) -> io::Error {
    io::Error::other(format!("`{line}` is no reply"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &Reply) {
        assert_eq!(&read(&mut text.as_bytes()).unwrap(), expected);
    }

    #[test]
    fn every_kind_of_reply_is_read() {
        check("+OK\r\n", &Reply::Status("OK".into()));
        check("-MOVED 1 a:2\r\n", &Reply::Error("MOVED 1 a:2".into()));
        check(":-7\r\n", &Reply::Integer(-7));
        check("$4\r\n\r\n\r\n\r\n", &Reply::Bulk(b"\r\n\r\n".to_vec()));
        check("$-1\r\n", &Reply::Nil);
        let inner = Reply::Array(vec![Reply::Nil, Reply::Integer(1)]);
        check("*2\r\n*2\r\n$-1\r\n:1\r\n*0\r\n", &Reply::Array(vec![inner, Reply::Array(vec![])]));
        for cut in ["", "+O", "$4\r\nab", "*1\r\n", "what\r\n"] {
            assert!(read(&mut cut.as_bytes()).is_err(), "{cut:?}");
        }
    }
}
