//! The RESP door, spoken to byte by byte.

use std::{sync::Arc, time::Duration};

use sekisho::{Clock as _, Span};
use sekisho_testkit::redis_server::RedisServer;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinSet,
    time::timeout,
};

use crate::harness::{PATIENCE, Running};

const FILE: &str = "[[policy]]\nname = \"api\"\nkey = [\"ip\"]\nlimits = [\"60/min\"]\n";

/// A connection to a server's RESP door.
struct Talk(TcpStream);

impl Talk {
    async fn to(server: &Running) -> Self {
        Self(TcpStream::connect(server.resp).await.unwrap())
    }

    async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).await.unwrap();
    }

    /// Sends commands, a line each, in one write as arrays, and returns what the first read brings.
    async fn ask(&mut self, lines: &str) -> String {
        self.send(arrays(lines)).await;
        self.read().await
    }

    async fn read(&mut self) -> String {
        let mut bytes = vec![0; 1 << 20];
        let length = timeout(PATIENCE, self.0.read(&mut bytes)).await.expect("a reply").unwrap();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    /// Returns all that comes until the server closes the connection.
    async fn rest(&mut self) -> String {
        let mut bytes = Vec::new();
        // A connection that is cut may end with a reset.
        let _end = timeout(PATIENCE, self.0.read_to_end(&mut bytes)).await.expect("an end");
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

fn arrays(lines: &str) -> String {
    let array = |line: &str| {
        let words: Vec<_> = line.split(' ').collect();
        let bulks = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
        format!("*{}\r\n{}", words.len(), bulks.collect::<String>())
    };
    lines.lines().map(array).collect()
}

/// Returns five numbers as they are sent.
fn five(numbers: &str) -> String {
    let numbers = numbers.split(' ').map(|number| format!(":{number}\r\n"));
    format!("*5\r\n{}", numbers.collect::<String>())
}

/// What the module redis-cell 0.5 was seen to answer, all at the same instant.
const REDIS_CELL: [(&str, &str); 16] = [
    ("user123 15 30 60", "0 16 15 -1 2"),
    ("user123 15 30 60", "0 16 14 -1 4"),
    ("user123 15 30 60", "0 16 13 -1 6"),
    ("user123 15 30 60 0", "0 16 13 -1 6"),
    ("new 15 30 60 0", "0 16 16 -1 0"),
    ("new 15 30 60 17", "1 16 16 -1 0"),
    ("new 15 30 60 16", "0 16 0 -1 32"),
    ("new 15 30 60 1", "1 16 0 2 32"),
    ("new 15 30 60 -5", "0 16 5 -1 22"),
    ("z 0 1 1", "0 1 0 -1 1"),
    ("z 0 1 1", "1 1 0 1 1"),
    ("s 2 7 60", "0 3 2 -1 9"),
    ("s 2 7 60", "0 3 1 -1 18"),
    ("s 2 7 60", "0 3 0 -1 26"),
    ("s 2 7 60", "1 3 0 9 26"),
    ("below -1 30 60", "1 0 0 -1 0"),
];

#[tokio::test]
async fn the_replies_are_those_of_redis_cell() {
    let server = Running::start(FILE).await;
    let mut talk = Talk::to(&server).await;
    for (words, wanted) in REDIS_CELL {
        assert_eq!(talk.ask(&format!("CL.THROTTLE {words}")).await, five(wanted), "{words}");
    }
    for (line, wanted) in [
        ("cl.throttle a 1 0 60", "-Cell error: Store error: Zero rates are not supported\r\n"),
        ("cl.throttle a 1 1 0", "-Cell error: Store error: Zero rates are not supported\r\n"),
        ("cl.throttle a 1 1 a", "-Cell error: Couldn't parse as integer: a\r\n"),
        (
            "CL.throttle a",
            "-Cell error: Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]\r\n",
        ),
    ] {
        assert_eq!(talk.ask(line).await, wanted, "{line}");
    }
    // Nothing ends before the day does, so it is an error and not a limit that is another.
    let reply = talk.ask("CL.THROTTLE a 9223372036854775806 1 60").await;
    assert!(reply.starts_with("-Cell error: "), "{reply}");
}

#[tokio::test]
async fn throttle_has_its_own_order_and_no_faults_of_its_model() {
    let server = Running::start(FILE).await;
    let mut talk = Talk::to(&server).await;
    for (words, wanted) in [
        ("THROTTLE t 2 10 60", "1 2 1 6 0"),
        ("throttle t 2 10 60 0", "1 2 1 6 0"),
        ("THROTTLE t 2 10 60 2", "0 2 1 6 6"),
        ("THROTTLE t 2 10 60 3", "0 2 1 6 -1"),
        // With a burst of one, one passes.
        ("THROTTLE one 1 1 3600", "1 1 0 3600 0"),
        ("THROTTLE one 1 1 3600", "0 1 0 3600 3600"),
    ] {
        assert_eq!(talk.ask(words).await, five(wanted), "{words}");
    }
    for (line, wanted) in [
        ("THROTTLE t", "-ERR wrong number of arguments for 'throttle' command\r\n"),
        ("THROTTLE t x 1 1", "-ERR invalid max_burst\r\n"),
        ("THROTTLE t 1 x 1", "-ERR invalid count_per_period\r\n"),
        ("THROTTLE t 1 1 x", "-ERR invalid period\r\n"),
        ("THROTTLE t 1 1 1 x", "-ERR invalid quantity\r\n"),
        ("THROTTLE t 1 1 1 -1", "-ERR quantity is at least 0\r\n"),
        ("THROTTLE t 0 1 1", "-ERR max_burst is at least 1\r\n"),
        ("THROTTLE t 1 0 1", "-ERR count_per_period and period are at least 1\r\n"),
    ] {
        assert_eq!(talk.ask(line).await, wanted, "{line}");
    }
    // After a partial rest the burst is what has come back: of ten, eight after eight of ten tenths.
    let burst = "THROTTLE rested 10 10 10\n".repeat(30);
    let passed = |replies: &str| replies.matches("*5\r\n:1\r\n").count();
    assert_eq!(passed(&talk.ask(&burst).await), 10);
    server.clock.advance(Span::from_secs(8));
    assert_eq!(passed(&talk.ask(&burst).await), 8);
}

/// The state belongs to the key alone, as in redis-cell: other numbers meet the same usage.
#[tokio::test]
async fn other_numbers_on_a_key_meet_the_same_usage() {
    let server = Running::start(FILE).await;
    let mut talk = Talk::to(&server).await;
    assert_eq!(talk.ask("CL.THROTTLE k 9 10 60 10").await, five("0 10 0 -1 60"));
    // A burst twice as large has the other half left. Over twice the time, half of what was used has come back.
    assert_eq!(talk.ask("CL.THROTTLE k 19 10 60 0").await, five("0 20 10 -1 60"));
    assert_eq!(talk.ask("CL.THROTTLE k 9 10 120 0").await, five("0 10 5 -1 60"));
    // Under another count the units that are used stay used; redis-cell would say 5.
    assert_eq!(talk.ask("CL.THROTTLE k 9 5 60 0").await, five("0 10 0 -1 60"));
    // A smaller burst holds less than is used: even a look is refused until it is not.
    assert_eq!(talk.ask("CL.THROTTLE k 4 10 60 0").await, five("1 5 0 30 60"));
    assert_eq!(talk.ask("CL.THROTTLE k 4 10 60").await, five("1 5 0 36 60"));
    assert_eq!(talk.ask("THROTTLE k 10 10 60").await, five("0 10 0 60 6"));
    assert_eq!(talk.ask("DEL k other").await, ":1\r\n");
    assert_eq!(talk.ask("CL.THROTTLE k 9 10 60 0").await, five("0 10 10 -1 0"));
}

/// All that one write asks is answered in one; a pipeline is not one reply a delayed packet.
#[tokio::test]
async fn a_pipeline_is_answered_in_one_write_and_in_order() {
    let server = Running::start(FILE).await;
    let mut talk = Talk::to(&server).await;
    let lines =
        "CL.THROTTLE p 4 5 60\nPING\nCL.THROTTLE p 4 5 60\nTHROTTLE p 5 5 60 9\nECHO x\nNO a\n";
    let wanted = [
        &five("0 5 4 -1 12"),
        "+PONG\r\n",
        &five("0 5 3 -1 24"),
        &five("0 5 3 24 -1"),
        "$1\r\nx\r\n",
        "-ERR unknown command 'NO', with args beginning with: 'a' \r\n",
    ];
    assert_eq!(talk.ask(lines).await, wanted.concat());
    // More than are decided together.
    let many = talk.ask(&"CL.THROTTLE many 99 1 60\n".repeat(300)).await;
    assert_eq!(many.matches("*5\r\n:0\r\n").count(), 100);
    assert_eq!(many.matches("*5\r\n:1\r\n").count(), 200);
}

#[tokio::test]
async fn a_command_may_come_in_pieces_or_as_a_line() {
    let server = Running::start(FILE).await;
    let mut talk = Talk::to(&server).await;
    for byte in arrays("CL.THROTTLE a 4 5 60").into_bytes() {
        talk.send([byte]).await;
    }
    assert_eq!(talk.read().await, five("0 5 4 -1 12"));
    talk.send("CL.THROTTLE 'a' \"4\" 5 60\r\n\r\nPING\n").await;
    assert_eq!(talk.read().await, format!("{}+PONG\r\n", five("0 5 3 -1 24")));
}

#[tokio::test]
async fn clients_are_told_what_they_ask_when_they_connect() {
    let server = Running::start(FILE).await;
    let mut talk = Talk::to(&server).await;
    for (line, wanted) in [
        ("CLIENT SETINFO LIB-NAME redis-py", "+OK\r\n"),
        ("CLIENT SETNAME me", "+OK\r\n"),
        ("CLIENT GETNAME", "$2\r\nme\r\n"),
        ("CLIENT NO-EVICT on", "+OK\r\n"),
        ("SELECT 0", "+OK\r\n"),
        ("SELECT 1", "-ERR DB index is out of range\r\n"),
        ("COMMAND DOCS", "*0\r\n"),
        ("COMMAND", "*0\r\n"),
        ("CONFIG GET save", "*2\r\n$4\r\nsave\r\n$0\r\n\r\n"),
        ("PING hey", "$3\r\nhey\r\n"),
        ("HELLO 4", "-NOPROTO unsupported protocol version\r\n"),
        ("HELLO x", "-ERR Protocol version is not an integer or out of range\r\n"),
        ("HELLO 3 SETNAME", "-ERR syntax error\r\n"),
        ("GET a", "-ERR unknown command 'GET', with args beginning with: 'a' \r\n"),
        ("PING a b", "-ERR wrong number of arguments for 'ping' command\r\n"),
    ] {
        assert_eq!(talk.ask(line).await, wanted, "{line}");
    }
    let auth = talk.ask("AUTH x").await;
    assert!(auth.starts_with("-ERR AUTH <password> called without any password"), "{auth}");
    assert!(talk.ask("INFO").await.contains("\r\nloading:0\r\n"));
    assert!(talk.ask("HELLO").await.starts_with("*14\r\n$6\r\nserver\r\n$7\r\nsekisho\r\n"));
    let three = talk.ask("HELLO 3 SETNAME me").await;
    assert!(three.starts_with("%7\r\n") && three.contains("$5\r\nproto\r\n:3\r\n"), "{three}");
    assert_eq!(talk.ask("COMMAND DOCS").await, "%0\r\n");
    assert_eq!(talk.ask("COMMAND INFO get").await, "*1\r\n_\r\n");
    assert_eq!(talk.ask("RESET").await, "+RESET\r\n");
    assert_eq!(talk.ask("COMMAND INFO get").await, "*1\r\n$-1\r\n");
    assert_eq!(talk.ask("CLIENT GETNAME").await, "$-1\r\n");
    assert_eq!(talk.ask("QUIT\nPING").await, "+OK\r\n");
    assert_eq!(talk.rest().await, "");
}

/// Whatever the key is made of, and wherever it is put, a reply is one reply.
#[tokio::test]
async fn no_bytes_of_a_client_become_a_reply_of_their_own() {
    let server = Running::start(FILE).await;
    let mut talk = Talk::to(&server).await;
    let key = "a\r\n+OK\r\n";
    talk.send(format!(
        "*5\r\n$11\r\nCL.THROTTLE\r\n${}\r\n{key}\r\n$1\r\n4\r\n$1\r\n5\r\n$2\r\n60\r\n",
        key.len()
    ))
    .await;
    assert_eq!(talk.read().await, five("0 5 4 -1 12"));
    talk.send(format!("*2\r\n$2\r\nNO\r\n${}\r\n{key}\r\n", key.len())).await;
    let reply = talk.read().await;
    assert!(
        reply.starts_with("-ERR unknown command 'NO'") && reply.matches("\r\n").count() == 1,
        "{reply:?}"
    );
    talk.send("*1\r\n$0\r\n\r\n").await;
    assert!(talk.read().await.starts_with("-ERR unknown command ''"));
}

#[tokio::test]
async fn garbage_costs_its_own_connection() {
    let server = Running::start(FILE).await;
    let mut other = Talk::to(&server).await;
    for (bytes, wanted) in [
        ("*1\r\n:1\r\n", "-ERR Protocol error: expected '$', got ':'\r\n"),
        ("*100000\r\n", "-ERR Protocol error: invalid multibulk length\r\n"),
        ("*1\r\n$999999999\r\n", "-ERR Protocol error: invalid bulk length\r\n"),
        ("PING\r\n*x\r\nPING\r\n", "+PONG\r\n-ERR Protocol error: invalid multibulk length\r\n"),
        ("\"\r\n", "-ERR Protocol error: unbalanced quotes in request\r\n"),
    ] {
        let mut talk = Talk::to(&server).await;
        talk.send(bytes).await;
        assert_eq!(talk.rest().await, wanted, "{bytes:?}");
        assert_eq!(other.ask("PING").await, "+PONG\r\n");
    }
    let http = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n".to_vec();
    for bytes in [vec![0xff; 100_000], vec![0; 70_000], http] {
        let mut talk = Talk::to(&server).await;
        let _cut = talk.0.write_all(&bytes).await;
        talk.0.shutdown().await.unwrap();
        let said = talk.rest().await;
        assert!(said.is_empty() || said.starts_with("-ERR "), "{said}");
        assert_eq!(other.ask("PING").await, "+PONG\r\n");
    }
}

#[tokio::test]
async fn who_sends_or_reads_slowly_is_cut_off() {
    let short = Duration::from_millis(100);
    let server = Running::with(FILE, |options| {
        options.limits.header_timeout = short;
        options.limits.write_timeout = short;
        options.limits.idle_timeout = Duration::from_millis(300);
    })
    .await;
    let mut slow = Talk::to(&server).await;
    slow.send("*5\r\n$11\r\nCL.THR").await;
    assert_eq!(slow.rest().await, "");
    let mut idle = Talk::to(&server).await;
    assert_eq!(idle.ask("PING").await, "+PONG\r\n");
    assert_eq!(idle.rest().await, "");
    // It asks for more than the sockets hold, and reads nothing of it.
    let mut deaf = Talk::to(&server).await;
    let word = "x".repeat(60_000);
    let echo = format!("*2\r\n$4\r\nECHO\r\n${}\r\n{word}\r\n", word.len()).repeat(500);
    let sent = timeout(PATIENCE, deaf.0.write_all(echo.as_bytes())).await.expect("an end");
    assert!(sent.is_err(), "all of it was read");
}

#[tokio::test]
async fn exactly_the_limit_passes_whoever_asks() {
    let server = Arc::new(Running::start(FILE).await);
    assert_eq!(admitted(&server).await, 777);
}

/// Returns how many of 10,000 pass over 50 connections, pipelined and not.
async fn admitted(server: &Arc<Running>) -> usize {
    let mut tasks = JoinSet::new();
    for number in 0..50 {
        let server = Arc::clone(server);
        tasks.spawn(async move {
            let mut talk = Talk::to(&server).await;
            let each = [1, 4, 20][number % 3];
            let lines = "CL.THROTTLE all 776 1 3600000\n".repeat(each);
            let mut passed = 0;
            for _ in 0..200 / each {
                talk.send(arrays(&lines)).await;
                let mut replies = String::new();
                while !(replies.ends_with('\n') && replies.matches(':').count() == 5 * each) {
                    replies.push_str(&talk.read().await);
                }
                passed += replies.matches("*5\r\n:0\r\n").count();
            }
            passed
        });
    }
    tasks.join_all().await.into_iter().sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shared_store_answers_the_same() {
    let redis = RedisServer::start();
    let file = format!("[store]\nurl = \"{}\"\ntimeout = \"5s\"\n{FILE}", redis.url());
    let server = Arc::new(Running::start(&file).await);
    let mut talk = Talk::to(&server).await;
    for (words, wanted) in REDIS_CELL {
        let reply = talk.ask(&format!("CL.THROTTLE {words}")).await;
        // Its clock goes on; a second is the most that a busy machine takes here.
        let numbers = |text: &str| -> Vec<i64> {
            text.lines().filter_map(|line| line.strip_prefix(':')?.parse().ok()).collect()
        };
        let (got, wanted) = (numbers(&reply), numbers(&five(wanted)));
        let near = |(got, wanted): (&i64, &i64)| (got - wanted).abs() <= 1;
        assert!(got.len() == 5 && got.iter().zip(&wanted).all(near), "{words}: {reply}");
        assert_eq!(got[..2], wanted[..2], "{words}");
    }
    assert_eq!(admitted(&server).await, 777);
    assert_eq!(talk.ask("DEL all").await, ":1\r\n");
    // Another program's key.
    let _length = redis.command(&["RPUSH", "sk1:{=list}:throttle", "x"]);
    let reply = talk.ask("CL.THROTTLE list 4 5 60").await;
    assert!(reply.starts_with("-WRONGTYPE "), "{reply}");
    drop(redis);
    let reply = talk.ask("CL.THROTTLE user123 15 30 60").await;
    assert!(reply.starts_with("-ERR the store "), "{reply}");
    assert_eq!(talk.ask("PING").await, "+PONG\r\n");
}

#[tokio::test]
async fn decisions_are_counted_as_this_doors() {
    let server = Running::start(FILE).await;
    let mut talk = Talk::to(&server).await;
    let lines =
        "CL.THROTTLE m 1 1 60\nCL.THROTTLE m 1 1 60\nCL.THROTTLE m 1 1 60\nCL.THROTTLE m 1 1 60 9";
    let _replies = talk.ask(lines).await;
    let page = server.page().await.body;
    for (outcome, count) in [("allow", 2), ("deny", 1), ("never", 1)] {
        let line = format!(
            "sekisho_decisions_total{{policy=\"(none)\",outcome=\"{outcome}\",door=\"resp\"}} {count}\n"
        );
        assert!(page.contains(&line), "{line} is missing in {page}");
    }
    assert!(server.clock.now().as_nanos() > 0);
}

#[tokio::test]
async fn what_runs_is_finished_at_the_end() {
    let mut server = Running::start(FILE).await;
    let mut talk = Talk::to(&server).await;
    assert_eq!(talk.ask("PING").await, "+PONG\r\n");
    server.stop();
    assert_eq!(talk.rest().await, "");
    timeout(PATIENCE, &mut server.ended).await.expect("an end").unwrap();
}
