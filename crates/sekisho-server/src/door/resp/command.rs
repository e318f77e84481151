//! The commands that are not about limits: what clients say when they connect, and what people type.

use super::{
    parse::{Words, integer},
    reply::{Replies, Version},
    throttle::short,
};

/// Who is on a connection, as far as it has said.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) number: u64,
    pub(super) name: Vec<u8>,
}

/// Whether the connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    GoOn,
    /// It ends once the reply is out.
    End,
}

const NO_PASSWORD: &str = "ERR AUTH <password> called without any password configured for the default user. \
    Are you sure your configuration is correct?";
const SYNTAX: &str = "ERR syntax error";

/// The commands that this answers, in small letters.
const NAMES: [&str; 13] = [
    "auth",
    "client",
    "cl.throttle",
    "command",
    "config",
    "del",
    "echo",
    "hello",
    "info",
    "ping",
    "quit",
    "reset",
    "throttle",
];

/// Returns what every command but those about limits is answered with.
pub(super) fn answer(
    name: &str,
    (words, buffer): (&Words, &[u8]),
    session: &mut Session,
    to: &mut Replies,
) -> Next {
    let word = |index| words.get(buffer, index);
    match (name, words.len()) {
        ("ping", 1) => to.simple("PONG"),
        ("ping" | "echo", 2) => to.bulk(word(1)),
        ("quit", _) => {
            to.ok();
            return Next::End;
        }
        ("reset", 1) => {
            *to = Replies { bytes: std::mem::take(&mut to.bytes), ..Replies::default() };
            session.name.clear();
            to.simple("RESET");
        }
        ("hello", _) => hello((words, buffer), session, to),
        // Whoever can connect may ask.
        ("auth", 2 | 3) => to.error(NO_PASSWORD),
        ("select", 2) => match integer(word(1)) {
            Some(0) => to.ok(),
            Some(_) => to.error("ERR DB index is out of range"),
            None => to.error("ERR value is not an integer or out of range"),
        },
        ("client", 2..) => client((words, buffer), session, to),
        ("command", 1) => to.array(0),
        ("command", _) => match lower(word(1)).as_str() {
            "count" => to.integer(i64::try_from(NAMES.len()).unwrap_or(0)),
            "docs" => to.map(0),
            "info" => {
                to.array(words.len() - 2);
                (2..words.len()).for_each(|_| to.null());
            }
            "list" => {
                to.array(NAMES.len());
                for name in NAMES {
                    to.bulk(name.as_bytes());
                }
            }
            _ => to.error("ERR unknown subcommand. Try COMMAND COUNT, DOCS, INFO or LIST."),
        },
        // What a server of many settings has; here they are in the policy file.
        ("config", 3..) if lower(word(1)) == "get" => config((words, buffer), to),
        ("info", _) => to.bulk(info(session).as_bytes()),
        ("ping" | "echo" | "auth" | "select" | "client" | "config" | "reset", _) => {
            to.error(&format!("ERR wrong number of arguments for '{name}' command"));
        }
        _ => unknown((words, buffer), to),
    }
    Next::GoOn
}

/// The two settings that benchmarks ask for: what is counted is written to no file of this server's.
fn config((words, buffer): (&Words, &[u8]), to: &mut Replies) {
    let names = (2..words.len()).map(|index| lower(words.get(buffer, index)));
    let known: Vec<_> = names
        .filter_map(|name| match name.as_str() {
            "save" => Some((name, "")),
            "appendonly" => Some((name, "no")),
            _ => None,
        })
        .collect();
    to.map(known.len());
    for (name, value) in known {
        to.bulk(name.as_bytes());
        to.bulk(value.as_bytes());
    }
}

fn unknown((words, buffer): (&Words, &[u8]), to: &mut Replies) {
    use std::fmt::Write as _;
    let mut text = format!(
        "ERR unknown command '{}', with args beginning with: ",
        short(words.get(buffer, 0))
    );
    for index in 1..words.len() {
        if text.len() > 200 {
            break;
        }
        let _never = write!(text, "'{}' ", short(words.get(buffer, index)));
    }
    to.error(&text);
}

fn hello((words, buffer): (&Words, &[u8]), session: &mut Session, to: &mut Replies) {
    let mut version = to.version;
    if words.len() > 1 {
        version = match integer(words.get(buffer, 1)) {
            Some(2) => Version::Two,
            Some(3) => Version::Three,
            Some(_) => return to.error("NOPROTO unsupported protocol version"),
            None => {
                return to.error("ERR Protocol version is not an integer or out of range");
            }
        };
    }
    let (mut at, mut name) = (2, None);
    while at < words.len() {
        match (lower(words.get(buffer, at)).as_str(), words.len() - at) {
            ("auth", 3..) => return to.error(NO_PASSWORD),
            ("setname", 2..) => {
                name = Some(words.get(buffer, at + 1));
                if !name.is_some_and(is_name) {
                    return to.error(BAD_NAME);
                }
                at += 2;
            }
            _ => return to.error(SYNTAX),
        }
    }
    if let Some(name) = name {
        session.name = name.to_vec();
    }
    to.version = version;
    to.map(7);
    to.bulk(b"server");
    to.bulk(b"sekisho");
    to.bulk(b"version");
    to.bulk(env!("CARGO_PKG_VERSION").as_bytes());
    to.bulk(b"proto");
    to.integer(if version == Version::Three { 3 } else { 2 });
    to.bulk(b"id");
    to.integer(i64::try_from(session.number).unwrap_or(i64::MAX));
    to.bulk(b"mode");
    to.bulk(b"standalone");
    to.bulk(b"role");
    to.bulk(b"master");
    to.bulk(b"modules");
    to.array(0);
}

const BAD_NAME: &str = "ERR Client names cannot contain spaces, newlines or special characters.";

fn is_name(name: &[u8]) -> bool {
    name.len() <= 256 && name.iter().all(u8::is_ascii_graphic)
}

fn client((words, buffer): (&Words, &[u8]), session: &mut Session, to: &mut Replies) {
    match (lower(words.get(buffer, 1)).as_str(), words.len()) {
        ("setinfo", 4) | ("no-evict" | "no-touch", 3) => to.ok(),
        ("setname", 3) => {
            let name = words.get(buffer, 2);
            if is_name(name) {
                session.name = name.to_vec();
                to.ok();
            } else {
                to.error(BAD_NAME);
            }
        }
        ("getname", 2) if session.name.is_empty() => to.null(),
        ("getname", 2) => to.bulk(&session.name),
        ("id", 2) => to.integer(i64::try_from(session.number).unwrap_or(i64::MAX)),
        (other, _) => to.error(&format!(
            "ERR unknown subcommand or wrong number of arguments for '{}'. Try CLIENT ID, GETNAME, SETINFO or SETNAME.",
            short(other.as_bytes())
        )),
    }
}

/// What clients look for before they send anything: that nothing is loading, and whose server it is.
fn info(session: &Session) -> String {
    format!(
        "# Server\r\nserver_name:sekisho\r\nsekisho_version:{}\r\nredis_mode:standalone\r\n\r\n\
         # Clients\r\nclient_id:{}\r\n\r\n# Persistence\r\nloading:0\r\n\r\n# Replication\r\nrole:master\r\n",
        env!("CARGO_PKG_VERSION"),
        session.number
    )
}

pub(super) fn lower(word: &[u8]) -> String {
    short(word).to_ascii_lowercase()
}
