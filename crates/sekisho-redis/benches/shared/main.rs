//! The shared store beside a client that sends one script call a decision, on one real server: `cargo xtask bench redis`.
//!
//! Every figure is a ratio of two that were taken in turn in this run. Medians of `ROUNDS` rounds; `BENCH_SECONDS` is how long
//! each is measured. `--json` prints one object a ratio, in an array.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::print_stdout,
    reason = "it measures time, prints what it measured, and may end early"
)]

mod measure;

use std::{env, sync::Arc, time::Duration};

use sekisho::Span;
use sekisho_redis::{RedisOptions, RedisStore};
use sekisho_testkit::redis_server::RedisServer;

use crate::measure::{
    BARE, Client, KEYS, Measured, SOURCE, bare_call, ceiling, load, measure, memory, our_call,
};

const ROUNDS: usize = 5;

/// What is compared, how it came out, and what it should be.
struct Row {
    what: String,
    ratio: f64,
    target: &'static str,
}

/// Everything that is measured.
#[derive(Default)]
struct Report {
    table: Vec<(usize, &'static str, Measured)>,
    rows: Vec<Row>,
}

/// The clients, each on the server that it is measured on.
struct Setting {
    server: RedisServer,
    digest: String,
    alone: Client,
    spread: Client,
    hot: Client,
    bare_server: RedisServer,
    bare: Client,
    length: Duration,
}

impl Setting {
    async fn new(length: Duration) -> Self {
        let (server, bare_server) = (RedisServer::start(), RedisServer::start());
        let digest = load(&server, SOURCE).await;
        let options = RedisOptions { timeout: Span::from_secs(10), ..RedisOptions::default() };
        let store = Arc::new(RedisStore::new(&server.url(), options).unwrap());
        Self {
            alone: Client::Alone { calls: our_call, digest: digest.clone() },
            bare: Client::Alone { calls: bare_call, digest: load(&bare_server, BARE).await },
            spread: Client::Store { store: Arc::clone(&store), keys: KEYS },
            hot: Client::Store { store, keys: 1 },
            server,
            bare_server,
            digest,
            length,
        }
    }
}

impl Report {
    fn row(&mut self, what: impl Into<String>, ratio: f64, target: &'static str) {
        self.rows.push(Row { what: what.into(), ratio, target });
    }

    /// Measures so many callers, each way in its turn.
    async fn callers(&mut self, setting: &Setting, callers: usize) {
        let Setting { server, alone, spread, hot, length, .. } = setting;
        let (mut a, mut b, mut c) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            a.push(measure(server, alone, callers, *length).await);
            b.push(measure(server, spread, callers, *length).await);
            c.push(measure(server, hot, callers, *length).await);
        }
        let (a, b, c) = (medians(&a), medians(&b), medians(&c));
        self.table.push((callers, "one call a decision", a));
        self.table.push((callers, "the store", b));
        self.table.push((callers, "the store, one key", c));
        match callers {
            1 => self.row("time of a lone caller / of a raw call", b.p50_us / a.p50_us, "<= 1.15"),
            10 => {}
            _ => {
                let target = if callers == 100 { ">= 2.5" } else { ">= 4" };
                self.row(format!("decisions/s, {callers} callers"), b.rate / a.rate, target);
                self.row(format!("p50, {callers} callers"), b.p50_us / a.p50_us, "< 1");
            }
        }
        if callers == 100 {
            self.cpu(setting, b).await;
        }
        if callers == 1_000 {
            let mut ceilings = Vec::new();
            for _ in 0..ROUNDS {
                ceilings.push(ceiling(server, &setting.digest, *length).await);
            }
            let most = medians(&ceilings);
            self.table.push((2, "64 keys a call, made beforehand", most));
            self.row("decisions/s, 1000 callers / 64 keys a call", b.rate / most.rate, ">= 0.8");
        }
    }

    /// Measures the server's own time.
    async fn cpu(&mut self, setting: &Setting, store: Measured) {
        let Setting { server, alone, bare_server, bare, length, .. } = setting;
        let (mut bares, mut alones) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            bares.push(measure(bare_server, bare, 100, *length).await);
            alones.push(measure(server, alone, 100, *length).await);
        }
        let (bare, alone) = (medians(&bares), medians(&alones));
        self.table.push((100, "one call of a bare GCRA a decision", bare));
        self.row("server's CPU, a call a decision / bare", alone.cpu_us / bare.cpu_us, "<= 1.3");
        self.row("server's CPU, the store / bare", store.cpu_us / bare.cpu_us, "<= 0.7");
    }

    /// Measures what a key takes.
    async fn memory(&mut self) {
        let at = |number| 1_796_069_035_451_950 + number;
        let digits = memory(|number| at(number).to_string()).await;
        let whole = memory(|number| format!("b {} 0 1000000", at(number))).await;
        let rest = memory(|number| format!("b {} 3 7", at(number))).await;
        let long = memory(|number| format!("b {} 123456 999983", at(number))).await;
        self.row("bytes a key, no remainder / 16 digits", whole / digits, "<= 1.3");
        self.row("bytes a key, a remainder / 16 digits", rest / digits, "<= 1.5");
        self.row("bytes a key, a long remainder / 16 digits", long / digits, "<= 1.5");
    }

    fn print(&self) {
        println!(
            "| callers | client | decisions/s | p50 us | p99 us | server's CPU us | ours us |"
        );
        println!("|---:|---|---:|---:|---:|---:|---:|");
        for (callers, name, of) in &self.table {
            let Measured { rate, p50_us, p99_us, cpu_us, own_cpu_us } = of;
            println!(
                "| {callers} | {name} | {rate:.0} | {p50_us:.0} | {p99_us:.0} | {cpu_us:.1} | {own_cpu_us:.1} |"
            );
        }
        println!("\n| ratio | measured | target |");
        println!("|---|---:|---:|");
        for Row { what, ratio, target } in &self.rows {
            println!("| {what} | {ratio:.2} | {target} |");
        }
    }

    fn print_json(&self) {
        let row = |Row { what, ratio, target }: &Row| {
            format!(r#"{{"what":"{what}","ratio":{ratio:.3},"target":"{target}"}}"#)
        };
        let rows: Vec<String> = self.rows.iter().map(row).collect();
        println!("[{}]", rows.join(","));
    }
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

fn medians(rounds: &[Measured]) -> Measured {
    let of = |field: fn(&Measured) -> f64| median(rounds.iter().map(field).collect());
    Measured {
        rate: of(|round| round.rate),
        p50_us: of(|round| round.p50_us),
        p99_us: of(|round| round.p99_us),
        cpu_us: of(|round| round.cpu_us),
        own_cpu_us: of(|round| round.own_cpu_us),
    }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let json = env::args().any(|argument| argument == "--json");
    let seconds = env::var("BENCH_SECONDS").ok().and_then(|text| text.parse().ok());
    let setting = Setting::new(Duration::from_secs_f64(seconds.unwrap_or(1.0))).await;
    let mut report = Report::default();
    for callers in [1, 10, 100, 1_000] {
        report.callers(&setting, callers).await;
    }
    report.memory().await;
    if json { report.print_json() } else { report.print() }
}
