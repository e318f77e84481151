//! What a test asks a server itself.

use std::{io, time::Duration};

use crate::{
    redis_server::{RedisServer, Reply, builder::ADMIN, client::Client},
    wait::PATIENCE,
};

impl RedisServer {
    /// Asks it, and returns the reply, an error too. Each call is a connection of its own over the socket, as a user of the
    /// testkit's who may do all.
    ///
    /// # Panics
    /// When it does not answer.
    #[track_caller]
    pub fn command<W: AsRef<[u8]>>(&self, words: &[W]) -> Reply {
        match self.try_command(words, PATIENCE) {
            Ok(reply) => reply,
            Err(error) => panic!("no answer: {error}"),
        }
    }

    /// Asks it as [`command`](Self::command) does; an error is no answer, or none in time.
    pub fn try_command<W: AsRef<[u8]>>(
        &self,
        words: &[W],
        patience: Duration,
    ) -> io::Result<Reply> {
        self.client(patience)?.call(words)
    }

    /// Returns a field of `INFO`, as text.
    ///
    /// # Panics
    /// When it does not answer, or has no such field.
    #[track_caller]
    pub fn info(&self, field: &str) -> String {
        match self.try_info(field, PATIENCE) {
            Some(value) => value,
            None => panic!("no `{field}` in INFO"),
        }
    }

    /// Returns a field of `INFO` if it answers in time and has it: one that sentinels have just made a replica hangs up on
    /// everybody.
    pub fn try_info(&self, field: &str, patience: Duration) -> Option<String> {
        let text = self.try_command(&["INFO", "everything"], patience).ok()?;
        let Reply::Bulk(text) = text else { return None };
        String::from_utf8_lossy(&text)
            .lines()
            .find_map(|line| line.strip_prefix(field)?.strip_prefix(':').map(str::to_owned))
    }

    /// Returns the keys that begin with `prefix` and will never expire, in order; they stay for ever.
    ///
    /// # Panics
    /// When it does not answer.
    #[track_caller]
    pub fn keys_without_expiry(&self, prefix: &str) -> Vec<String> {
        let mut client = self.client(PATIENCE).expect("it does not answer");
        let mut call = |words: &[&[u8]]| client.call(words).expect("it does not answer");
        let (mut keys, mut cursor) = (Vec::new(), "0".to_owned());
        loop {
            let page = call(&[b"SCAN", cursor.as_bytes(), b"COUNT", b"1000"]);
            for key in page.array()[1].array() {
                let Reply::Bulk(bytes) = key else { panic!("no key but {key:?}") };
                if bytes.starts_with(prefix.as_bytes())
                    && call(&[b"PTTL", bytes]) == Reply::Integer(-1)
                {
                    keys.push(key.text());
                }
            }
            cursor = page.array()[0].text();
            if cursor == "0" {
                // While a table grows, a scan may show a key twice.
                keys.sort();
                keys.dedup();
                return keys;
            }
        }
    }

    fn client(&self, patience: Duration) -> io::Result<Client> {
        let mut client = Client::connect(&self.socket(), patience)?;
        match client.call(&["AUTH", ADMIN, "none"])? {
            Reply::Error(message) => Err(io::Error::other(message)),
            _ => Ok(client),
        }
    }
}
