//! Heads that two servers could read differently never reach the parser whole.
//!
//! hyper refuses most of them itself. It lets one pass: `Content-Length` beside `Transfer-Encoding`, of which it drops the
//! first. Nothing behind the parser can tell that it was there, so it is looked for in front of it. This follows the framing of
//! what comes in, and spoils the end of such a head, which the parser then answers with 400 and its last word.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The bytes of a line that are looked at. A longer line is none of the two that matter, or is refused.
const LINE_MAX: usize = 256;
/// Begins every connection of HTTP/2, which frames by itself.
const PREFACE: &[u8] = b"PRI * HTTP/2.0";
/// No line of a head may have this byte, and none may end without a line feed.
const SPOILT: u8 = 0;

/// Whether a connection speaks another protocol by now.
#[derive(Debug, Default)]
pub(crate) struct Opaque(AtomicBool);

impl Opaque {
    pub(super) fn set(&self) {
        self.0.store(true, Relaxed);
    }
}

/// A socket whose bytes are watched on their way in.
#[derive(Debug)]
pub(super) struct Framed<S> {
    socket: S,
    opaque: Arc<Opaque>,
    framing: Framing,
}

impl<S> Framed<S> {
    pub(super) fn new(socket: S, opaque: Arc<Opaque>) -> Self {
        Self { socket, opaque, framing: Framing::default() }
    }
}

/// Where in the framing a connection is.
#[derive(Debug, Default)]
struct Framing {
    place: Place,
    /// The line so far, without its line feed, cut off at [`LINE_MAX`].
    line: Vec<u8>,
    /// Whether the line has been cut off.
    long: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Before or within a head, and what its lines have said so far.
    Head(Said),
    /// This many bytes of a body are to come.
    Body(u64),
    /// A chunk's first line.
    Size,
    /// This many bytes of a chunk are to come, the line end behind it included.
    Chunk(u64),
    /// The lines behind the last chunk.
    Trailers,
    /// Not looked at any more.
    Opaque,
}

impl Default for Place {
    fn default() -> Self {
        Self::Head(Said::default())
    }
}

/// What a head has said of its body's length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Said {
    began: bool,
    length: Option<u64>,
    chunked: bool,
    /// Whether two servers could read it differently.
    ambiguous: bool,
}

impl Said {
    /// Takes a header line into account.
    fn header(&mut self, line: &[u8], long: bool) {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { return };
        let (name, value) = (line[..colon].trim_ascii(), line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"content-length") {
            let length = digits(value);
            self.ambiguous |= long || length.is_none() || self.chunked;
            self.ambiguous |= self.length.is_some() && self.length != length;
            self.length = length;
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            // No other coding is understood here, and a second line is a second coding.
            self.ambiguous |= long || !value.eq_ignore_ascii_case(b"chunked");
            self.ambiguous |= self.chunked || self.length.is_some();
            self.chunked = true;
        }
    }
}

impl Framing {
    /// Follows some bytes, and spoils the end of a head that is ambiguous.
    fn follow(&mut self, bytes: &mut [u8]) {
        let mut at = 0;
        while at < bytes.len() {
            let left = &mut bytes[at..];
            at += match self.place {
                Place::Opaque => return,
                Place::Body(rest) => self.skip(rest, left.len(), Place::Body),
                Place::Chunk(rest) => self.skip(rest, left.len(), Place::Chunk),
                Place::Head(_) | Place::Size | Place::Trailers => self.read_line(left),
            };
        }
    }

    /// Skips what is there of a body or chunk; returns how many bytes.
    fn skip(&mut self, rest: u64, there: usize, place: fn(u64) -> Place) -> usize {
        let skipped = rest.min(there as u64);
        self.place = match (rest - skipped, place(0)) {
            (0, Place::Chunk(_)) => Place::Size,
            (0, _) => Place::default(),
            (rest, _) => place(rest),
        };
        usize::try_from(skipped).unwrap_or(there)
    }

    /// Reads up to the end of the line, if it is there; returns how many bytes.
    fn read_line(&mut self, bytes: &mut [u8]) -> usize {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let taken = &bytes[..end.unwrap_or(bytes.len())];
        let room = LINE_MAX.saturating_sub(self.line.len());
        self.long |= taken.len() > room;
        self.line.extend_from_slice(&taken[..taken.len().min(room)]);
        let Some(end) = end else { return bytes.len() };
        if self.end_line() {
            bytes[end] = SPOILT;
        }
        self.line.clear();
        self.long = false;
        end + 1
    }

    /// Goes on behind a line. Returns whether it ends a head that must not pass.
    fn end_line(&mut self) -> bool {
        let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
        let empty = line.is_empty() && !self.long;
        match &mut self.place {
            // Empty lines before a head are skipped, as the parser does.
            Place::Head(said) if empty && !said.began => {}
            Place::Head(said) if !said.began => {
                said.began = true;
                if line == PREFACE {
                    self.place = Place::Opaque;
                }
            }
            Place::Head(said) if !empty => said.header(line, self.long),
            Place::Head(said) => {
                let said = *said;
                self.place = match said {
                    Said { ambiguous: true, .. } => Place::Opaque,
                    Said { chunked: true, .. } => Place::Size,
                    Said { length: Some(length @ 1..), .. } => Place::Body(length),
                    _ => Place::default(),
                };
                return said.ambiguous;
            }
            Place::Size => self.place = chunk(line),
            Place::Trailers if empty => self.place = Place::default(),
            Place::Trailers | Place::Body(_) | Place::Chunk(_) | Place::Opaque => {}
        }
        false
    }
}

/// Returns what follows a chunk's first line. One that is no number the parser refuses, and the connection ends.
fn chunk(line: &[u8]) -> Place {
    let digits = line.split(|byte| matches!(byte, b';' | b' ' | b'\t')).next().unwrap_or_default();
    let size = std::str::from_utf8(digits).ok().and_then(|hex| u64::from_str_radix(hex, 16).ok());
    match size {
        Some(0) => Place::Trailers,
        Some(size) => Place::Chunk(size.saturating_add(2)),
        None => Place::Opaque,
    }
}

fn digits(value: &[u8]) -> Option<u64> {
    let all = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(value).ok().filter(|_| all)?.parse().ok()
}

impl<S: AsyncRead + Unpin> AsyncRead for Framed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.socket).poll_read(context, buffer))?;
        if !self.opaque.0.load(Relaxed) {
            self.framing.follow(&mut buffer.filled_mut()[before..]);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Framed<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether any of it was spoilt, fed whole and byte by byte, which must agree.
    fn spoils(text: &str) -> bool {
        let (mut whole, mut bytes) = (text.as_bytes().to_vec(), text.as_bytes().to_vec());
        Framing::default().follow(&mut whole);
        let mut framing = Framing::default();
        for byte in &mut bytes {
            framing.follow(std::slice::from_mut(byte));
        }
        assert_eq!(whole, bytes, "{text:?}");
        whole != text.as_bytes()
    }

    const BOTH: &str = "POST / HTTP/1.1\r\nContent-Length: 5\r\ntransfer-encoding: chunked\r\n\r\n";

    #[test]
    fn a_head_with_two_lengths_is_spoilt() {
        assert!(spoils(BOTH));
        assert!(spoils(&BOTH.replace("\r\n", "\n")));
        let head = |lines: &str| spoils(&format!("POST / HTTP/1.1\r\n{lines}\r\n\r\n"));
        assert!(head("transfer-encoding: chunked\r\ncontent-length: 0"));
        assert!(head("content-length: 1\r\ncontent-length: 2"));
        assert!(head("content-length: +1") && head("content-length: 1, 1"));
        assert!(head("transfer-encoding: gzip, chunked") && head("transfer-encoding: xchunked"));
        assert!(head("transfer-encoding: chunked\r\ntransfer-encoding: chunked"));
        assert!(head(&format!("content-length: {}1", "0".repeat(300))));
        assert!(!head("content-length: 0") && !head("content-length: 0\r\ncontent-length: 0"));
        assert!(!head("transfer-encoding: Chunked") && !head("x: content-length: 5"));
        assert!(!head(&format!("x: {}\r\ncontent-length: 0", "a".repeat(9_000))));
    }

    #[test]
    fn a_body_is_not_taken_for_a_head() {
        let (length, size) = (BOTH.len(), BOTH.len());
        let plain = format!("POST / HTTP/1.1\r\ncontent-length: {length}\r\n\r\n{BOTH}");
        let chunked = format!(
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n{size:X};a=b\r\n{BOTH}\r\n0\r\nx: y\r\n\r\n"
        );
        for first in [plain, chunked] {
            assert!(!spoils(&first));
            let next = "\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n";
            assert!(!spoils(&format!("{first}{next}{first}")));
            assert!(spoils(&format!("{first}{next}{BOTH}")), "the third head");
        }
        assert!(!spoils(&format!("PRI * HTTP/2.0\r\n\r\n{BOTH}")));
    }
}
