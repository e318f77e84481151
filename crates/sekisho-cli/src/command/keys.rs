//! `sekisho keys`: which keys are nearest to the end of their limits, on a server that runs.

mod ask;
mod table;

use std::{
    fmt::Write as _,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use sekisho::ListenAddress;
use serde::Deserialize;

use self::ask::Answered;
use crate::{
    args::{Admin, Keys, TextOrJson},
    command,
    report::{Report, out},
};

/// Where a server's admin listener is, when nobody says.
const DEFAULT: &str = "127.0.0.1:9090";

/// The answer of a server, as far as it is printed.
#[derive(Debug, Deserialize)]
struct Fullest {
    scope: String,
    places: u64,
    held: u64,
    crowded_out: u64,
    keys: Vec<FullKey>,
}

#[derive(Debug, Deserialize)]
struct FullKey {
    policy: Option<String>,
    limit: String,
    key: String,
    used: u64,
    capacity: u64,
    used_percent: u8,
    outcome: String,
    denied: u64,
    next_after_ns: u64,
}

pub(super) fn run(args: &Keys) -> Result<(), Report> {
    let admin = admin(args)?;
    let Answered { status, body } = ask::get(&admin, &target(args))?;
    let fullest: Option<Fullest> = serde_json::from_str(&body).ok();
    match (status, fullest) {
        (200, Some(fullest)) => match args.output {
            TextOrJson::Text => {
                let colour = table::colour();
                out(|to| table::write(to, &fullest, (&admin.to_string(), colour)))
            }
            TextOrJson::Json => out(|to| writeln!(to, "{}", harmless_json(body.trim_end()))),
        },
        (400, _) => Err(Report::input(format!("{admin}: {}", detail(&body)))),
        (404, _) => Err(Report::failed(format!("{admin} has no `/v1/keys`")).hint(
            "name the admin address of a `sekisho serve`, not that of the check API: `[listen] admin` of its policy file, or its \
             `--admin`",
        )),
        (200, None) => Err(Report::failed(format!("what {admin} answers is not what a Sekisho says"))
            .hint("another program may listen there, or another version of Sekisho")),
        (status, _) => {
            Err(Report::failed(format!("{admin} answers {status}: {}", detail(&body))))
        }
    }
}

/// Returns where to ask.
fn admin(args: &Keys) -> Result<Admin, Report> {
    if let Some(admin) = &args.admin {
        return Ok(admin.clone());
    }
    let Some(path) = &args.config else { return Ok(Admin::Tcp(DEFAULT.to_owned())) };
    let set = command::policies(path)?;
    let no_address = |what: &str| {
        Report::input(format!("{}: {what}", path.display())).hint(
            "name the address that the server says at its start: `--admin http://127.0.0.1:9090`",
        )
    };
    match &set.settings().listen.admin {
        None => Err(no_address("there is no `admin` under `[listen]`")),
        Some(ListenAddress::Tcp(address)) if address.port() == 0 => {
            Err(no_address("`[listen] admin` lets the system choose the port"))
        }
        Some(ListenAddress::Tcp(address)) => Ok(Admin::Tcp(reachable(*address).to_string())),
        Some(ListenAddress::Unix(path)) => Ok(Admin::Unix(path.clone())),
    }
}

/// Who listens on all addresses is reached on this machine's own.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Returns what to ask for. What is written to a string never fails.
fn target(args: &Keys) -> String {
    let mut target =
        format!("/v1/keys?top={}&min_used_percent={}", args.top, args.min_used_percent);
    for (name, value) in [("policy", &args.policy), ("limit", &args.limit)] {
        let Some(value) = value else { continue };
        target.extend(["&", name, "="]);
        for byte in value.bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                target.push(char::from(byte));
            } else {
                let _never = write!(target, "%{byte:02X}");
            }
        }
    }
    target
}

/// Returns what a problem says, or else the beginning of what was answered.
fn detail(body: &str) -> String {
    #[derive(Deserialize)]
    struct Problem {
        detail: String,
    }
    let said = serde_json::from_str(body).map_or_else(|_| body.to_owned(), |of: Problem| of.detail);
    harmless(&said.chars().take(400).collect::<String>())
}

/// Returns a text without what a terminal would act on: a server says nothing of the kind, but who knows who answers.
fn harmless(text: &str) -> String {
    let plain = |of: char| if of == ' ' || of.is_ascii_graphic() { of } else { '?' };
    text.chars().map(plain).collect()
}

/// The same for JSON, whose meaning stays: outside of strings it is ASCII, and inside any character may be written as its number.
fn harmless_json(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for of in json.chars() {
        if of.is_ascii_graphic() || matches!(of, ' ' | '\n' | '\t' | '\r') {
            text.push(of);
        } else {
            let mut units = [0; 2];
            for unit in of.encode_utf16(&mut units) {
                let _never = write!(text, "\\u{unit:04x}");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_acts_on_is_left() {
        assert_eq!(harmless("a\u{1b}[31mb\r\n\u{9b}c\u{7f}é"), "a?[31mb???c??");
        let json = "{\"key\": \"a\u{7f}\u{9b}é😀\"}";
        let text = harmless_json(json);
        assert_eq!(text, "{\"key\": \"a\\u007f\\u009b\\u00e9\\ud83d\\ude00\"}");
        let value = |text| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&text), value(json));
    }

    #[test]
    fn who_listens_everywhere_is_reached_here() {
        for (listens, reached) in [
            ("0.0.0.0:9090", "127.0.0.1:9090"),
            ("[::]:9090", "[::1]:9090"),
            ("192.0.2.1:9090", "192.0.2.1:9090"),
        ] {
            assert_eq!(reachable(listens.parse().unwrap()).to_string(), reached);
        }
    }
}
