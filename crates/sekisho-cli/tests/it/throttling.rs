//! The RESP door with the clients that there are, and beside the module whose replies it gives.

use std::{
    env,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::Path,
    process::Command,
};

use sekisho_testkit::{
    generate::Rng,
    redis_server::{RedisServer, free_port},
};

use crate::serving::{File, Served};

/// How many commands are compared.
const CALLS: usize = 5_000;

fn server() -> (Served, u16, File) {
    let port = free_port();
    let file = File::new(
        "throttling",
        &format!("[listen]\nhttp = \"127.0.0.1:0\"\nresp = \"127.0.0.1:{port}\"\n"),
    );
    (Served::start_with_admin(&["-c", file.path()]), port, file)
}

fn told(variable: &str, what: &str) -> String {
    env::var(variable).unwrap_or_else(|_| {
        panic!(
            "this test needs {what}: run it by `./test`, which fetches it, or name it in {variable}"
        )
    })
}

fn said_ok(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(out.trim(), "ok", "{err}");
}

fn script(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/clients").join(name)
}

#[test]
fn redis_cli_asks_and_is_answered() {
    let (_server, port, _file) = server();
    let ask = |arguments: &[&str]| {
        let output =
            Command::new("redis-cli").args(["-p", &port.to_string()]).args(arguments).output();
        String::from_utf8(output.expect("redis-cli, which comes with redis-server").stdout).unwrap()
    };
    assert_eq!(ask(&["CL.THROTTLE", "user123", "15", "30", "60"]), "0\n16\n15\n-1\n2\n");
    assert_eq!(ask(&["-3", "THROTTLE", "other", "3", "3", "60"]), "1\n3\n2\n20\n0\n");
    assert_eq!(ask(&["PING"]), "PONG\n");
}

#[test]
fn redis_benchmark_runs_through() {
    let (server, port, _file) = server();
    let run = Command::new("redis-benchmark")
        .args(["-p", &port.to_string(), "-n", "20000", "-c", "20", "-P", "16", "-r", "1000", "-q"])
        .args(["CL.THROTTLE", "key:__rand_int__", "100", "100", "60"])
        .output()
        .expect("redis-benchmark, which comes with redis-server");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let allowed =
        "sekisho_decisions_total{policy=\"(none)\",outcome=\"allow\",door=\"resp\"} 20000\n";
    let page = server.metrics();
    assert!(page.contains(allowed), "{page}");
}

#[test]
fn redis_py_is_content() {
    let (_server, port, _file) = server();
    let python = told("SEKISHO_PYTHON", "a Python with redis-py");
    said_ok(Command::new(python).arg(script("redis_py.py")).arg(port.to_string()));
}

#[test]
fn ioredis_is_content() {
    let (_server, port, _file) = server();
    let modules = told("SEKISHO_NODE_MODULES", "a folder with ioredis in it, and node");
    let mut node = Command::new("node");
    node.env("NODE_PATH", modules).arg(script("ioredis.cjs")).arg(port.to_string());
    said_ok(&mut node);
}

/// A connection that sends lines and reads replies.
struct Talk(BufReader<TcpStream>);

impl Talk {
    fn to(port: u16) -> Self {
        Self(BufReader::new(TcpStream::connect(("127.0.0.1", port)).unwrap()))
    }

    /// Returns the numbers of a reply; an error's text instead.
    fn ask(&mut self, command: &str) -> Result<Vec<i64>, String> {
        self.0.get_mut().write_all(format!("{command}\r\n").as_bytes()).unwrap();
        let mut line = self.line();
        if let Some(error) = line.strip_prefix('-') {
            return Err(error.to_owned());
        }
        assert_eq!(line, "*5", "{command}");
        let mut numbers = Vec::new();
        for _ in 0..5 {
            line = self.line();
            numbers.push(line.strip_prefix(':').unwrap().parse().unwrap());
        }
        Ok(numbers)
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        let _length = self.0.by_ref().read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

/// Random commands on random keys, sent to the module and to us one after the other. Units come back ten seconds apart or more,
/// and a key is asked a few times in a row, so none comes back between the two; seconds may differ by one.
#[test]
fn the_module_answers_the_same() {
    let module = told("SEKISHO_REDIS_CELL", "the module redis-cell 0.2.2");
    let theirs = RedisServer::builder().arg("--loadmodule").arg(module).start();
    let (_server, port, _file) = server();
    let (mut ours, mut theirs) = (Talk::to(port), Talk::to(theirs.port()));
    let given = env::var("SEKISHO_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or(1);
    let mut rng = Rng::new(seed);
    let mut refused = 0;
    for key in 0..CALLS / 10 {
        let count = rng.between(1, 20);
        let period = count * rng.between(10, 100) + rng.between(0, count - 1);
        let burst = rng.between(0, 10);
        for _ in 0..10 {
            // Another burst on the same key meets the same usage.
            let burst = burst + *rng.pick(&[0, 0, 0, 3]);
            let quantity = match rng.between(0, 9) {
                0..=4 => String::new(),
                5 => " 0".to_owned(),
                6 => format!(" {}", burst + 2),
                7 => " -1".to_owned(),
                _ => format!(" {}", rng.between(1, burst + 1)),
            };
            let command = format!("CL.THROTTLE k{key} {burst} {count} {period}{quantity}");
            // Theirs holds more than it may when more is given back than was used, and takes nothing back while more is used than a
            // smaller burst holds.
            if quantity == " -1" {
                let look = theirs.ask(&command.replace(" -1", " 0")).unwrap();
                if look[4] == 0 || look[0] == 1 {
                    continue;
                }
            }
            // Where less than a millisecond is left it cannot say when its key ends.
            let Ok(wanted) = theirs.ask(&command) else { break };
            let got = ours.ask(&command).unwrap();
            let near = |index: usize| (wanted[index] - got[index]).abs() <= 1;
            let same = wanted[..3] == got[..3] && (wanted[3] < 0) == (got[3] < 0);
            assert!(
                same && near(3) && near(4),
                "SEKISHO_SEED={seed}: {command}: {wanted:?}, {got:?}"
            );
            refused += usize::from(got[0] == 1);
        }
    }
    assert!(refused > CALLS / 20, "only {refused} were refused");
    // A rate of nothing is an error in 0.5, and here.
    for command in ["CL.THROTTLE k", "CL.THROTTLE k x 1 1"] {
        assert_eq!(ours.ask(command), theirs.ask(command), "{command}");
    }
}
