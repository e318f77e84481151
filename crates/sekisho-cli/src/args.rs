//! The command line.

use std::path::PathBuf;

use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};
use sekisho::Limit;

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
    /// Check a policy file, and show what each limit lets through at worst.
    Lint(Lint),
    /// Show which policies match a request, under which key, and what it is charged. Nothing is counted.
    Explain(Explain),
    /// Run a trace of requests through limits, and print one JSON object a request.
    ///
    /// A trace line is `seconds[,key[,cost]]`; empty lines and lines that begin with `#` are skipped.
    Simulate(Simulate),
    /// Show the most that a limit lets through in a stretch of time.
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
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<std::net::SocketAddr>,
    /// Where health, readiness and metrics are served, instead of the file's address.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) admin: Option<std::net::SocketAddr>,
}

#[derive(Debug, Args)]
pub(crate) struct Proxy {
    /// The server behind it, like `http://127.0.0.1:3000`; instead of the file's `[listen] gateway`.
    #[arg(long, value_name = "URL", required_unless_present = "config")]
    pub(crate) to: Option<String>,
    /// Where it listens, instead of the file's address or 127.0.0.1:8000; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS:PORT")]
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
    /// Where health, readiness and metrics are served.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) admin: Option<std::net::SocketAddr>,
    /// Where the access log goes: a file, or `-` for the standard output.
    #[arg(long, value_name = "FILE|-")]
    pub(crate) log: Option<PathBuf>,
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

#[derive(Debug, Args)]
pub(crate) struct Simulate {
    /// A limit, like `7/60s burst 7 token-bucket`; given more than once, they are decided together.
    #[arg(long = "limit", value_name = "LIMIT", required = true, value_parser = limit)]
    pub(crate) limits: Vec<Limit>,
    /// The trace: a file, or `-` for the standard input.
    #[arg(long, value_name = "FILE|-")]
    pub(crate) trace: PathBuf,
    /// How to print: one JSON object a request.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: Lines,
}

#[derive(Debug, Args)]
pub(crate) struct Bound {
    /// The limit, like `60/min burst 10`.
    #[arg(value_parser = limit)]
    pub(crate) limit: Limit,
    /// The stretch of time, like `60s`; the limit's own period when absent. May be repeated.
    #[arg(long = "within", value_name = "TIME", value_parser = stretch)]
    pub(crate) stretches: Vec<sekisho::Span>,
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

/// How the answers to a trace are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Lines {
    /// One JSON object a line.
    #[default]
    Jsonl,
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
