//! Replies, written to the end of a buffer.

/// Which version of the protocol a connection speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Version {
    #[default]
    Two,
    Three,
}

/// What is to be sent.
#[derive(Debug, Default)]
pub(super) struct Replies {
    pub(super) bytes: Vec<u8>,
    pub(super) version: Version,
}

impl Replies {
    pub(super) fn ok(&mut self) {
        self.simple("OK");
    }

    /// Writes a status. It has no line end.
    pub(super) fn simple(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    /// Writes an error: its first word says of what kind. What a client sent is not quoted with its line ends.
    pub(super) fn error(&mut self, text: &str) {
        self.bytes.push(b'-');
        let harmless = text.bytes().map(|byte| if byte.is_ascii_control() { b' ' } else { byte });
        self.bytes.extend(harmless);
        self.bytes.extend_from_slice(b"\r\n");
    }

    pub(super) fn bulk(&mut self, bytes: &[u8]) {
        self.header(b'$', bytes.len());
        self.bytes.extend_from_slice(bytes);
        self.bytes.extend_from_slice(b"\r\n");
    }

    pub(super) fn null(&mut self) {
        let null: &[u8] = match self.version {
            Version::Two => b"$-1\r\n",
            Version::Three => b"_\r\n",
        };
        self.bytes.extend_from_slice(null);
    }

    pub(super) fn integer(&mut self, number: i64) {
        let mut digits = itoa::Buffer::new();
        self.line(b':', digits.format(number).as_bytes());
    }

    /// Begins an array of so many replies.
    pub(super) fn array(&mut self, len: usize) {
        self.header(b'*', len);
    }

    /// Begins a map of so many pairs; an array of twice as many in version 2.
    pub(super) fn map(&mut self, pairs: usize) {
        match self.version {
            Version::Two => self.header(b'*', 2 * pairs),
            Version::Three => self.header(b'%', pairs),
        }
    }

    fn header(&mut self, kind: u8, len: usize) {
        let mut digits = itoa::Buffer::new();
        self.line(kind, digits.format(len).as_bytes());
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        self.bytes.push(kind);
        self.bytes.extend_from_slice(text);
        self.bytes.extend_from_slice(b"\r\n");
    }
}
