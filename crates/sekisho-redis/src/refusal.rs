//! What a server's error means: by its first word, as Redis and Valkey write it.

use sekisho::StoreError;

use crate::{question::Question, stats::Trouble};

/// Who does not get in is told this.
const STRANGER: &str = " (see the user and the password of the store's address)";
/// Who gets in and may not do all: not every server says what is missing.
const RIGHTS: &str = " (the user of the store's address needs the keys of the store and `+evalsha +eval +time +get +set \
    +pttl +pexpire +del`; in another database than 0 `+select`, on a cluster `+cluster|slots +asking`)";

/// Why a server did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) meaning: Meaning,
    /// What it said, the first word included.
    message: String,
}

/// What is to be done about it. None of these has charged anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// `NOSCRIPT`: the script has to be sent in full.
    UnknownScript,
    /// `MOVED`: the slot lives there.
    Moved { slot: u16, to: String },
    /// `ASK`: the slot is on its way there, and this key has arrived or is new.
    Ask { to: String },
    /// `READONLY`, `MASTERDOWN`, `LOADING`: this server is not, or not yet, the one that decides.
    Elsewhere,
    /// `CLUSTERDOWN`, `TRYAGAIN`: the cluster is on its way to another shape.
    Moving,
    /// `OOM`, `MISCONF`, `NOREPLICAS`, `BUSY`: it does not write at the moment.
    NoWrites,
    /// `NOAUTH`, `WRONGPASS`, `NOPERM`: somebody has to change the settings, here or there.
    Rights,
    /// Anything else: a key that is not ours, or a fault.
    Other,
}

/// Why a request has no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Nobody can do better.
    Store(StoreError),
    /// Nothing was charged, so it may be asked elsewhere, or once more.
    Refused(Refusal, Option<Box<Question>>),
    /// It was never sent, for the reason given.
    NotSent(StoreError, Option<Box<Question>>),
}

impl Refusal {
    /// Reads what a server says.
    pub(crate) fn of(message: &str) -> Self {
        let (word, rest) = message.split_once(' ').unwrap_or((message, ""));
        let meaning = match word {
            "NOSCRIPT" => Meaning::UnknownScript,
            "MOVED" => slot_and_host(rest)
                .map_or(Meaning::Moving, |(slot, to)| Meaning::Moved { slot, to }),
            "ASK" => slot_and_host(rest).map_or(Meaning::Moving, |(_, to)| Meaning::Ask { to }),
            "READONLY" | "MASTERDOWN" | "LOADING" => Meaning::Elsewhere,
            "CLUSTERDOWN" | "TRYAGAIN" => Meaning::Moving,
            "OOM" | "MISCONF" | "NOREPLICAS" | "BUSY" => Meaning::NoWrites,
            "NOAUTH" | "WRONGPASS" | "NOPERM" => Meaning::Rights,
            // What the script may not do; the second is Redis before 7.2, which does not say what that was.
            "ERR"
                if rest.starts_with("ACL failure in script")
                    || rest.starts_with("The user executing the script can't run") =>
            {
                Meaning::Rights
            }
            _ => Meaning::Other,
        };
        // No more than a log line takes.
        let message = message.chars().take(200).filter(|of| !of.is_control()).collect();
        Self { meaning, message }
    }

    /// Returns what a caller is told.
    pub(crate) fn error(&self) -> StoreError {
        let hint = match self.meaning {
            Meaning::Moved { .. } | Meaning::Ask { .. } => {
                " (this is a cluster: write its address as redis-cluster://)"
            }
            Meaning::Rights if self.message.starts_with("NOAUTH") => STRANGER,
            Meaning::Rights if self.message.starts_with("WRONGPASS") => STRANGER,
            Meaning::Rights => RIGHTS,
            _ => "",
        };
        StoreError::Unavailable(format!("it says `{}`{hint}", self.message).into())
    }

    /// Returns what a caller is told whom the servers of a cluster send in a circle.
    pub(crate) fn circle(&self) -> StoreError {
        let why = format!(
            "it says `{}`, and that server sends back (it may be that the user lacks `+asking`)",
            self.message
        );
        StoreError::Unavailable(why.into())
    }

    /// Returns what it counts as.
    pub(crate) const fn trouble(&self) -> Trouble {
        match self.meaning {
            Meaning::Rights => Trouble::Rights,
            Meaning::UnknownScript | Meaning::Other => Trouble::Script,
            _ => Trouble::Refused,
        }
    }

    pub(crate) fn failure(self) -> Failure {
        Failure::Refused(self, None)
    }
}

/// Reads `3999 127.0.0.1:6381`.
fn slot_and_host(rest: &str) -> Option<(u16, String)> {
    let (slot, to) = rest.split_once(' ')?;
    let slot = slot.parse().ok().filter(|slot| *slot < 16384)?;
    Some((slot, to.trim().to_owned()))
}

impl Failure {
    /// Returns the same of a question, which goes back to who asked.
    pub(crate) fn with(&self, question: Question) -> Self {
        match self {
            Self::Store(error) => Self::Store(error.clone()),
            Self::Refused(refusal, _) => Self::Refused(refusal.clone(), Some(Box::new(question))),
            Self::NotSent(error, _) => Self::NotSent(error.clone(), Some(Box::new(question))),
        }
    }

    /// Returns what a caller is told.
    pub(crate) fn error(self) -> StoreError {
        match self {
            Self::Store(error) | Self::NotSent(error, _) => error,
            Self::Refused(refusal, _) => refusal.error(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_says_what_is_to_be_done() {
        let moved = Meaning::Moved { slot: 3999, to: "127.0.0.1:6381".to_owned() };
        for (message, wanted) in [
            ("NOSCRIPT No matching script. Please use EVAL.", Meaning::UnknownScript),
            ("MOVED 3999 127.0.0.1:6381", moved),
            ("MOVED 99999 127.0.0.1:6381", Meaning::Moving),
            ("MOVED", Meaning::Moving),
            ("ASK 3999 [::1]:6381", Meaning::Ask { to: "[::1]:6381".to_owned() }),
            ("READONLY You can't write against a read only replica.", Meaning::Elsewhere),
            ("LOADING Redis is loading the dataset in memory", Meaning::Elsewhere),
            ("CLUSTERDOWN Hash slot not served", Meaning::Moving),
            ("TRYAGAIN Multiple keys request during rehashing of slot", Meaning::Moving),
            ("OOM command not allowed when used memory > 'maxmemory'.", Meaning::NoWrites),
            ("NOREPLICAS Not enough good replicas to write.", Meaning::NoWrites),
            ("NOAUTH Authentication required.", Meaning::Rights),
            ("ERR ACL failure in script: User app has no permissions", Meaning::Rights),
            ("ERR The user executing the script can't run this command", Meaning::Rights),
            ("ERR unknown command", Meaning::Other),
            ("WRONGTYPE Operation against a key holding", Meaning::Other),
            ("", Meaning::Other),
        ] {
            assert_eq!(Refusal::of(message).meaning, wanted, "{message}");
        }
    }

    #[test]
    fn what_is_told_is_short_and_plain() {
        let StoreError::Unavailable(text) = Refusal::of(&"ERR \x1b[31mx".repeat(100)).error()
        else {
            panic!("it is a refusal");
        };
        assert!(text.len() < 300 && !text.contains('\x1b'), "{text}");
    }
}
