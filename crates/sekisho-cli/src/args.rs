//! The command line.

use std::{fmt, path::PathBuf};

use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};
use sekisho::{Limit, ListenAddress};

use crate::report::Report;

/// An exact rate limiter: for every request it decides whether this caller may go ahead now.
#[derive(Debug, Parser)]
#[command(
    name = "sekisho",
    version,
    after_help = "Exit codes: 0 done; 1 the work could not be done; 2 the input is wrong.",
    max_term_width = 100
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Answer who may go ahead, over HTTP.
    ///
    /// Without a file: 60 requests a minute for each address, counted exactly in memory, on 127.0.0.1:8080.
    Serve(Serve),
    /// Stand in front of an API: limit requests, and pass those that may on to one server.
    ///
    /// Not a load balancer: there is one server behind it. The access log has one JSON object a decision, in order.
    Proxy(Proxy),
    /// Show which keys are nearest to the end of their limits, on a server that runs.
    ///
    /// It asks the server's admin address, where `sekisho serve` and `sekisho proxy` with `--admin` or `[listen] admin` listen. Fullest
    /// first; then those refused most often. It is what that one process has seen, and a key's numbers are those of its last decision.
    Keys(Keys),
    /// Check a policy file, and show what each limit lets through at worst.
    Lint(Lint),
    /// Show which policies match a request, under which key, and what it is charged. Nothing is counted.
    Explain(Explain),
    /// Show what limits let through: named experiments, experiments of your own, or a trace of requests.
    ///
    /// `sekisho simulate` lists the named experiments, and `sekisho simulate boundary` runs one. `--limit` with `--trace` answers
    /// each request of a trace with one JSON object; a trace line is `seconds[,key[,cost]]`, and empty lines and lines that begin
    /// with `#` are skipped. `--limit` with `--arrivals`, or `--scenario`, is an experiment of your own. All of it happens in memory,
    /// but for `race`, and a trace with `--store`.
    Simulate(Simulate),
    /// Show the most that a limit lets through in a stretch of time, and try it.
    Bound(Bound),
    /// Print the JSON Schema of the policy file.
    Schema(Schema),
    /// Print completions for a shell.
    Completions(Completions),
    /// Print the reference of all commands in Markdown.
    #[command(hide = true)]
    Reference,
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// The policy file; without one a default policy holds.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Where to listen, instead of the file's or the default address; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    pub(crate) listen: Option<std::net::SocketAddr>,
    /// Where health, readiness, metrics and the fullest keys are served, instead of the file's address.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    pub(crate) admin: Option<std::net::SocketAddr>,
}

#[derive(Debug, Args)]
pub(crate) struct Proxy {
    /// The server behind it, like `http://127.0.0.1:3000`; instead of the file's `[listen] gateway`.
    #[arg(long, value_name = "URL", required_unless_present = "config")]
    pub(crate) to: Option<String>,
    /// Where it listens, instead of the file's address or 127.0.0.1:8000; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    pub(crate) listen: Option<std::net::SocketAddr>,
    /// The policy file.
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["limits", "by"])]
    pub(crate) config: Option<PathBuf>,
    /// A limit for every request, like `100/min`; may be repeated.
    #[arg(long = "limit", value_name = "LIMIT", required_unless_present = "config", value_parser = limit)]
    pub(crate) limits: Vec<Limit>,
    /// What requests count under: `ip`, or `header:NAME`, with the address where the header is absent.
    #[arg(long, value_name = "ip|header:NAME", default_value = "ip", value_parser = by)]
    pub(crate) by: String,
    /// Where health, readiness, metrics and the fullest keys are served.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    pub(crate) admin: Option<std::net::SocketAddr>,
    /// Where the access log goes: a file, or `-` for the standard output.
    #[arg(long, value_name = "FILE|-")]
    pub(crate) log: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Keys {
    /// The server's admin address, like `http://127.0.0.1:9090` or `unix:/run/sekisho-admin.sock`; by default the policy file's, or
    /// `http://127.0.0.1:9090` without one.
    #[arg(long, value_name = "URL", value_parser = admin)]
    pub(crate) admin: Option<Admin>,
    /// The server's policy file, whose `[listen] admin` says where to ask.
    #[arg(short, long, value_name = "FILE", conflicts_with = "admin")]
    pub(crate) config: Option<PathBuf>,
    /// Only keys of this policy; empty text for limits that callers of the check API named themselves.
    #[arg(long, value_name = "NAME")]
    pub(crate) policy: Option<String>,
    /// Only keys of this limit: its id, or as the server writes it, like `60/min token-bucket`.
    #[arg(long, value_name = "LIMIT")]
    pub(crate) limit: Option<String>,
    /// At most so many keys, up to 1000.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) top: u16,
    /// Only keys that are at least so full, in percent; 100 for exhausted ones.
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=100))]
    pub(crate) min_used_percent: u8,
    /// How to print; `json` is the server's own answer.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: TextOrJson,
}

/// Where a server's admin listener is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Admin {
    /// A host and port, as in a URL.
    Tcp(String),
    /// The path of a unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Admin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(place) => write!(f, "http://{place}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Lint {
    /// The policy file.
    #[arg(short, long, value_name = "FILE", required_unless_present = "codes")]
    pub(crate) config: Option<PathBuf>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: TextOrJson,
    /// Warnings count as errors.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Print what every code means, in Markdown, and do nothing else.
    #[arg(long)]
    pub(crate) codes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The policy file.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// The request, like `POST /v1/x?y=z`.
    #[arg(value_name = "METHOD PATH")]
    pub(crate) request: String,
    /// A header line, like `x-api-key: a`; may be repeated.
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    pub(crate) headers: Vec<String>,
    /// The address that connects.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) peer: Option<std::net::IpAddr>,
    /// The host that is asked for.
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: TextOrJson,
}

/// What only an experiment of a user's own has; a trace, which is the first, can be answered alone too.
const OWN: [&str; 13] = [
    "trace", "arrivals", "keys", "zipf", "servers", "shares", "counting", "ahead", "retry",
    "jitter", "tries", "window", "seed",
];

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("requests").args(["trace", "arrivals"]).multiple(true))]
pub(crate) struct Simulate {
    /// A named experiment, like `boundary`. With nothing at all, they are listed.
    #[arg(value_name = "EXPERIMENT", conflicts_with_all = ["all", "scenario", "limits"], conflicts_with_all = OWN)]
    pub(crate) name: Option<String>,
    /// Run all named experiments; `race` only with `--store`.
    #[arg(long, conflicts_with_all = ["scenario", "limits"], conflicts_with_all = OWN)]
    pub(crate) all: bool,
    /// An experiment of your own: a TOML file, or `-` for the standard input.
    #[arg(long, value_name = "FILE|-", conflicts_with = "limits", conflicts_with_all = OWN)]
    pub(crate) scenario: Option<PathBuf>,
    /// A limit, like `7/60s burst 7 token-bucket`, or several that are decided together, like `10/s + 100/min`. Given more than
    /// once: they are decided together for a trace alone, and compared in an experiment, a row each.
    #[arg(long = "limit", value_name = "LIMIT", value_parser = limits, requires = "requests")]
    pub(crate) limits: Vec<Limits>,
    /// The trace: a file, or `-` for the standard input.
    #[arg(long, value_name = "FILE|-", requires = "limits")]
    pub(crate) trace: Option<PathBuf>,
    /// A Redis or Valkey server, like `redis://127.0.0.1:6379`, for `race`, or to answer a trace there: its times are then whole
    /// microseconds. The keys have a prefix of their own and are removed afterwards.
    #[arg(long, value_name = "URL", conflicts_with = "scenario", conflicts_with_all = &OWN[1..])]
    pub(crate) store: Option<StoreUrl>,
    /// How often `race` tries each way of counting; 20 when absent.
    #[arg(
        long,
        value_name = "N",
        requires = "store",
        conflicts_with = "limits",
        value_parser = clap::value_parser!(u32).range(1..=1000)
    )]
    pub(crate) trials: Option<u32>,
    /// Be one process of a race, which says on the standard input what to do.
    #[arg(long, hide = true, exclusive = true)]
    pub(crate) racer: bool,
    /// How to print. By default one JSON object a request for a trace alone, and a table for all else; with `jsonl` that is one
    /// object a row. `svg` needs `--out`.
    #[arg(long, value_enum)]
    pub(crate) output: Option<Form>,
    /// Draw charts below each table; on a terminal that is done without asking.
    #[arg(long)]
    pub(crate) charts: bool,
    /// Where to write: a file instead of the standard output, or with `svg` a directory that gets one file a chart.
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    // It is by far the largest part of the command line.
    pub(crate) own: Box<Own>,
}

/// An experiment of a user's own, on the command line. A scenario file has the same fields.
#[derive(Debug, Args)]
#[command(next_help_heading = "Experiments of your own, with --limit")]
pub(crate) struct Own {
    /// When requests come: `even RATE`, `poisson RATE`, `bursts N every TIME`, `on-off RATE on TIME off TIME` or `ramp RATE to
    /// RATE`, and then `for TIME`, and if need be `from TIME` and `cost N`: `even 2/s for 2min`. May be repeated.
    #[arg(long, value_name = "PATTERN", requires = "limits")]
    pub(crate) arrivals: Vec<String>,
    /// How many keys the requests come from; 1 when absent.
    #[arg(long, value_name = "N", requires = "limits", allow_negative_numbers = true)]
    pub(crate) keys: Option<i64>,
    /// How unlike the keys are: the k-th is asked for 1/k^S as often as the first. All alike when absent.
    #[arg(long, value_name = "S", requires = "limits", allow_negative_numbers = true)]
    pub(crate) zipf: Option<f64>,
    /// How many servers decide; as many as there are shares, or 1, when absent.
    #[arg(long, value_name = "N", requires = "limits", allow_negative_numbers = true)]
    pub(crate) servers: Option<i64>,
    /// The share of the requests that each server gets, like `80,20`.
    #[arg(
        long,
        value_name = "N,…",
        requires = "limits",
        value_delimiter = ',',
        allow_negative_numbers = true
    )]
    pub(crate) shares: Option<Vec<i64>>,
    /// Where several servers count: `shared` (in one place), `split` (each its part of the limit) or `alone` (each the whole limit).
    #[arg(long, value_name = "shared|split|alone", requires = "limits")]
    pub(crate) counting: Option<String>,
    /// How far each server's clock is ahead, like `0,200ms` or `0,-1s`.
    #[arg(
        long,
        value_name = "TIME,…",
        requires = "limits",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    pub(crate) ahead: Option<Vec<String>>,
    /// When refused clients come back: `never`, `obey` (after `Retry-After`), or after a time of their own, like `500ms`.
    #[arg(long, value_name = "never|obey|TIME", requires = "limits")]
    pub(crate) retry: Option<String>,
    /// The most that a client waits longer, at random.
    #[arg(long, value_name = "TIME", requires = "limits")]
    pub(crate) jitter: Option<String>,
    /// How often a client comes at most; 10 when absent.
    #[arg(long, value_name = "N", requires = "limits", allow_negative_numbers = true)]
    pub(crate) tries: Option<i64>,
    /// The stretch of time in which the most is looked for; the longest period of the limits when absent.
    #[arg(long, value_name = "TIME", requires = "limits")]
    pub(crate) window: Option<String>,
    /// What all chance is drawn from; 1 when absent. The same seed gives the same output on every machine.
    #[arg(long, value_name = "N", requires = "limits", allow_negative_numbers = true)]
    pub(crate) seed: Option<i64>,
}

impl Own {
    /// Returns whether anything is given: a trace alone is answered request by request.
    pub(crate) fn is_given(&self) -> bool {
        let Self { arrivals, keys, zipf, servers, shares, counting, .. } = self;
        let Self { ahead, retry, jitter, tries, window, seed, .. } = self;
        let numbers = [keys, servers, tries, seed].iter().any(|number| number.is_some());
        let words = [counting, retry, jitter, window].iter().any(|word| word.is_some());
        !arrivals.is_empty()
            || numbers
            || words
            || zipf.is_some()
            || shares.is_some()
            || ahead.is_some()
    }
}

/// Limits that are decided together.
#[derive(Clone, Debug)]
pub(crate) struct Limits(pub(crate) Vec<Limit>);

/// Where a shared store is. It may hold a password, so it is read where it is used and nobody prints it.
#[derive(Clone)]
pub(crate) struct StoreUrl(pub(crate) String);

impl From<String> for StoreUrl {
    fn from(url: String) -> Self {
        Self(url)
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreUrl(…)")
    }
}

/// How an experiment is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// For people.
    Table,
    /// One JSON object; with `--all` an array of them.
    Json,
    /// One JSON object a line.
    Jsonl,
    /// One row a line, with a heading.
    Csv,
    /// One picture a chart, as files.
    Svg,
    /// One page that needs nothing else.
    Html,
}

#[derive(Debug, Args)]
pub(crate) struct Bound {
    /// The limit, like `60/min burst 10`.
    #[arg(value_parser = limit)]
    pub(crate) limit: Limit,
    /// The stretch of time, like `60s`; the limit's own period when absent. May be repeated.
    #[arg(long = "within", value_name = "TIME", value_parser = stretch)]
    pub(crate) stretches: Vec<sekisho::Span>,
    /// Print arrivals that reach the bound, as a trace for `sekisho simulate --limit LIMIT --trace -`.
    #[arg(long, conflicts_with = "output")]
    pub(crate) pattern: bool,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: TextOrJson,
}

#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// The description of the HTTP API instead.
    #[arg(long)]
    pub(crate) openapi: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell.
    pub(crate) shell: clap_complete::Shell,
}

/// How answers that people and machines read are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TextOrJson {
    /// For people.
    #[default]
    Text,
    /// For machines.
    Json,
}

fn limit(text: &str) -> Result<Limit, String> {
    let limit: Limit = text.parse().map_err(|error: sekisho::LimitError| error.to_string())?;
    if let Some(sekisho::Period::Calendar(_, zone)) =
        limit.as_metered().map(sekisho::Metered::period)
        && !sekisho::Zones::knows(zone)
    {
        return Err(format!("there is no time zone `{}`", zone.as_str()));
    }
    Ok(limit)
}

/// Reads limits that are decided together.
fn limits(text: &str) -> Result<Limits, String> {
    text.split(" + ").map(limit).collect::<Result<_, _>>().map(Limits)
}

/// Reads an address of the network. Whether policies fit a unix socket is found when their file is read, so that names it.
fn address(text: &str) -> Result<std::net::SocketAddr, String> {
    text.parse().map_err(|_| {
        if text.starts_with("unix:") {
            "a unix socket is named in the policy file: `[listen] http = \"unix:/run/sekisho.sock\"`".to_owned()
        } else {
            "an address is like `127.0.0.1:8080` or `[::1]:8080`".to_owned()
        }
    })
}

/// Reads where an admin listener is.
fn admin(text: &str) -> Result<Admin, String> {
    let wrong = || {
        "an admin address is like `http://127.0.0.1:9090`, `127.0.0.1:9090` or `unix:/run/sekisho-admin.sock`".to_owned()
    };
    if text.starts_with("unix:") {
        return match text.parse() {
            Ok(ListenAddress::Unix(path)) => Ok(Admin::Unix(path)),
            Ok(ListenAddress::Tcp(_)) | Err(_) => Err(wrong()),
        };
    }
    if text.starts_with("https://") {
        return Err(
            "the admin listener speaks plain HTTP: `http://` instead of `https://`".to_owned()
        );
    }
    let place = text.strip_prefix("http://").unwrap_or(text);
    let place: http::uri::Authority =
        place.strip_suffix('/').unwrap_or(place).parse().map_err(|_| wrong())?;
    if place.port_u16().is_none_or(|port| port == 0)
        || place.as_str().contains('@')
        || place.host().is_empty()
    {
        return Err(wrong());
    }
    Ok(Admin::Tcp(place.as_str().to_owned()))
}

/// Reads what requests count under, and returns the part of a key that says so in a policy file.
fn by(text: &str) -> Result<String, String> {
    match text.split_once(':') {
        None if text == "ip" => Ok("\"ip\"".to_owned()),
        Some(("header", name))
            if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
                && !name.is_empty() =>
        {
            Ok(format!("{{ header = \"{name}\", or = \"ip\" }}"))
        }
        _ => Err("requests count by `ip` or by `header:NAME`, like `header:x-api-key`".to_owned()),
    }
}

/// Reads a stretch of time as the period of a limit is written.
fn stretch(text: &str) -> Result<sekisho::Span, String> {
    let limit: Limit = format!("1/{text} fixed-window")
        .parse()
        .map_err(|error: sekisho::LimitError| error.to_string())?;
    match limit.as_metered().map(sekisho::Metered::period) {
        Some(sekisho::Period::Fixed(ns)) => Ok(sekisho::Span::from_nanos(ns.get())),
        _ => Err("a stretch has a fixed length, like `60s`".to_owned()),
    }
}

/// Reads the command line. Help and version are printed and end the program, as does a wrong argument.
#[expect(clippy::unnecessary_wraps, reason = "the first of the steps that `main` chains")]
pub(crate) fn parse() -> Result<Cli, Report> {
    Ok(Cli::parse())
}

/// Returns the description of the command line.
pub(crate) fn describe() -> clap::Command {
    Cli::command()
}
