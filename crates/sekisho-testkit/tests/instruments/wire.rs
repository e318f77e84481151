//! The wire that fails, in front of a real server.
#![expect(clippy::disallowed_methods, reason = "how long things take is what is tested")]

use std::{
    io::{self, ErrorKind, Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use sekisho_testkit::{
    faulty_wire::{Counts, Fault, FaultyWire},
    redis_server::{RedisServer, Reply},
    wait,
};

const SHORT: Duration = Duration::from_millis(200);
const LONG: Duration = Duration::from_secs(10);
const INCR: &[u8] = b"INCR key\r\n";

struct Setting {
    server: RedisServer,
    wire: FaultyWire,
}

impl Setting {
    fn new() -> Self {
        let server = RedisServer::start();
        let wire = FaultyWire::to(server.port());
        Self { server, wire }
    }

    fn client(&self) -> TcpStream {
        let client = TcpStream::connect(("127.0.0.1", self.wire.port())).unwrap();
        client.set_nodelay(true).unwrap();
        client
    }

    /// What the server has counted, by its own word.
    fn counted(&self) -> i64 {
        match self.server.command(&["GET", "key"]) {
            Reply::Nil => 0,
            reply => reply.integer(),
        }
    }
}

/// Reads what comes within a time, up to `length` bytes.
fn read(client: &mut TcpStream, length: usize, patience: Duration) -> io::Result<String> {
    client.set_read_timeout(Some(patience))?;
    let mut bytes = vec![0; length];
    client.read_exact(&mut bytes)?;
    Ok(String::from_utf8(bytes).unwrap())
}

fn incr(client: &mut TcpStream, patience: Duration) -> io::Result<String> {
    client.write_all(INCR)?;
    read(client, 4, patience)
}

#[track_caller]
fn silent(client: &mut TcpStream) {
    let error = read(client, 1, SHORT).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
}

#[track_caller]
fn broken(client: &mut TcpStream) {
    let error = read(client, 1, LONG).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
}

#[test]
fn it_passes_on_and_counts() {
    let setting = Setting::new();
    let (mut one, mut other) = (setting.client(), setting.client());
    assert_eq!(incr(&mut one, LONG).unwrap(), ":1\r\n");
    assert_eq!(incr(&mut other, LONG).unwrap(), ":2\r\n");
    let counts = Counts {
        connections: 2,
        open: 2,
        request_bytes: 2 * INCR.len() as u64,
        reply_bytes: 8,
        ..Counts::default()
    };
    assert_eq!(setting.wire.counts(), counts);
    // More than it holds at once, both ways.
    let long = "x".repeat(40 << 20);
    let reply = std::thread::scope(|scope| {
        let mut sender = one.try_clone().unwrap();
        scope.spawn(move || {
            write!(sender, "ECHO {0}\r\nSET big {0}\r\n", "short").unwrap();
            write!(sender, "*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n${}\r\n{long}\r\n", long.len())
                .unwrap();
            write!(sender, "GET big\r\n").unwrap();
        });
        read(&mut one, 11 + 5 + 5 + 11 + (40 << 20) + 2, LONG).unwrap()
    });
    assert!(reply.starts_with("$5\r\nshort\r\n+OK\r\n+OK\r\n$41943040\r\nxxx"));
    // What ends on one side ends on the other.
    one.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(one.read(&mut [0]).unwrap(), 0);
    drop(other);
    wait::until("both are closed", || (setting.wire.counts().open == 0).then_some(()));
}

#[test]
fn it_is_late_in_each_direction_and_nothing_waits_for_its_turn() {
    let setting = Setting::new();
    let mut client = setting.client();
    incr(&mut client, LONG).unwrap();
    setting.wire.set(Fault::Delay(Duration::from_millis(400)));
    let start = Instant::now();
    for number in 0..5 {
        client.write_all(INCR).unwrap();
        if number == 0 {
            assert_eq!(setting.counted(), 1);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let replies = read(&mut client, 20, LONG).unwrap();
    assert_eq!(replies, ":2\r\n:3\r\n:4\r\n:5\r\n:6\r\n");
    let took = start.elapsed();
    // The last is sent 40 ms after the first. Had each waited for the one before, it were two and a half seconds.
    assert!(took >= Duration::from_millis(840), "{took:?}");
    assert!(took < Duration::from_millis(2_300), "{took:?}");
    client.write_all(INCR).unwrap();
    setting.wire.set(Fault::Delay(LONG));
    silent(&mut client);
    setting.wire.set(Fault::Pass);
    assert_eq!(read(&mut client, 4, LONG).unwrap(), ":7\r\n");
}

#[test]
fn a_stalled_wire_takes_everything_and_passes_it_on_later() {
    let setting = Setting::new();
    let mut early = setting.client();
    incr(&mut early, LONG).unwrap();
    setting.wire.set(Fault::Stall);
    let mut late = setting.client();
    let before = setting.wire.counts().request_bytes;
    for client in [&mut early, &mut late] {
        client.write_all(INCR).unwrap();
        silent(client);
    }
    assert_eq!(setting.wire.counts().request_bytes - before, 2 * INCR.len() as u64);
    assert_eq!(setting.counted(), 1);
    setting.wire.set(Fault::Pass);
    for client in [&mut early, &mut late] {
        assert_eq!(&read(client, 4, LONG).unwrap()[..1], ":");
    }
    assert_eq!(setting.counted(), 3);
}

#[test]
fn on_a_half_open_wire_the_server_obeys_and_nobody_hears() {
    let setting = Setting::new();
    let (mut client, mut idle) = (setting.client(), setting.client());
    incr(&mut client, LONG).unwrap();
    incr(&mut idle, LONG).unwrap();
    setting.wire.set(Fault::HalfOpen);
    client.write_all(INCR).unwrap();
    silent(&mut client);
    assert_eq!(setting.counted(), 3);
    assert_eq!(setting.wire.counts().lost_bytes, 4);
    setting.wire.set(Fault::Pass);
    // No later reply is taken for the one that is lost; who lost nothing goes on.
    broken(&mut client);
    assert_eq!(incr(&mut idle, LONG).unwrap(), ":4\r\n");
    assert_eq!(incr(&mut setting.client(), LONG).unwrap(), ":5\r\n");
}

#[test]
fn a_cut_breaks_every_connection_at_once() {
    let setting = Setting::new();
    let mut clients = [setting.client(), setting.client()];
    for client in &mut clients {
        incr(client, LONG).unwrap();
    }
    setting.wire.cut();
    assert_eq!(setting.wire.counts().open, 0);
    for client in &mut clients {
        broken(client);
    }
    assert_eq!(incr(&mut setting.client(), LONG).unwrap(), ":3\r\n");
    // Whatever else is wrong with it.
    for fault in [Fault::Stall, Fault::HalfOpen, Fault::Delay(LONG), Fault::Refuse] {
        setting.wire.set(Fault::Pass);
        let mut client = setting.client();
        incr(&mut client, LONG).unwrap();
        setting.wire.set(fault);
        client.write_all(INCR).unwrap();
        setting.wire.cut();
        let error = loop {
            // Under the last fault the reply may have come first.
            if let Err(error) = read(&mut client, 1, LONG) {
                break error;
            }
        };
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{fault:?}");
    }
}

#[test]
fn a_cut_can_wait_for_the_middle_of_a_reply() {
    let setting = Setting::new();
    let mut client = setting.client();
    incr(&mut client, LONG).unwrap();
    setting.wire.cut_after(6);
    assert_eq!(incr(&mut client, LONG).unwrap(), ":2\r\n");
    client.write_all(INCR).unwrap();
    assert_eq!(read(&mut client, 2, LONG).unwrap(), ":3");
    broken(&mut client);
    assert_eq!(setting.counted(), 3);
    // Once.
    let mut client = setting.client();
    assert_eq!(incr(&mut client, LONG).unwrap(), ":4\r\n");
    // In front of a reply, and behind one.
    setting.wire.cut_after(0);
    client.write_all(INCR).unwrap();
    broken(&mut client);
    assert_eq!(setting.counted(), 5);
    setting.wire.cut_after(4);
    let mut client = setting.client();
    assert_eq!(incr(&mut client, LONG).unwrap(), ":6\r\n");
    broken(&mut client);
}

#[test]
fn new_connections_are_refused_and_old_ones_go_on() {
    let setting = Setting::new();
    let mut old = setting.client();
    incr(&mut old, LONG).unwrap();
    setting.wire.set(Fault::Refuse);
    let mut new = setting.client();
    // It may be closed before or after it has sent something.
    let error = incr(&mut new, LONG).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{error}");
    assert_eq!(incr(&mut old, LONG).unwrap(), ":2\r\n");
    let counts = setting.wire.counts();
    assert_eq!((counts.connections, counts.refused, counts.open), (2, 1, 1));
    setting.wire.set(Fault::Pass);
    assert_eq!(incr(&mut setting.client(), LONG).unwrap(), ":3\r\n");
}

#[test]
fn a_server_that_is_gone_is_a_broken_connection_and_so_is_a_wire() {
    let mut setting = Setting::new();
    let mut client = setting.client();
    incr(&mut client, LONG).unwrap();
    setting.server.stop();
    assert_eq!(client.read(&mut [0]).unwrap(), 0);
    broken(&mut setting.client());
    setting.server.restart();
    let mut client = setting.client();
    assert_eq!(incr(&mut client, LONG).unwrap(), ":1\r\n");
    drop(setting.wire);
    assert_eq!(client.read(&mut [0]).unwrap(), 0);
}
