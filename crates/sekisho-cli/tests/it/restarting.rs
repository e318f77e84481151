//! `[store] snapshot`: what a server counted is there again when it was stopped, killed, or told to stop in the middle of it.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
};

use parking_lot::Mutex;

use crate::serving::{File, Served};

/// A policy file and the snapshot that it names, in a folder that is gone when the test is.
struct Setup {
    folder: PathBuf,
    file: File,
}

impl Setup {
    fn new(name: &str, store: &str, limits: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("sekisho-{name}-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let text = format!(
            "[listen]\nhttp = \"127.0.0.1:0\"\n\
             [store]\nsnapshot = \"{}\"\n{store}\n\
             [[policy]]\nname = \"api\"\nkey = [{{ header = \"x-key\" }}]\non_missing_key = \"deny\"\nlimits = [{limits}]\n",
            folder.join("state").display()
        );
        Self { file: File::new(&format!("{name}-file"), &text), folder }
    }

    fn state(&self) -> PathBuf {
        self.folder.join("state")
    }

    fn start(&self) -> Served {
        Served::start(&["-c", self.file.path()])
    }
}

impl Drop for Setup {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.folder);
    }
}

/// Asks for a key once, and returns the status; none when the server is not there, or goes away before it answers.
fn ask(address: &str, key: &str) -> Option<u16> {
    let mut stream = TcpStream::connect(address).ok()?;
    let head =
        format!("GET /auth HTTP/1.1\r\nhost: x\r\nx-key: {key}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.split(' ').nth(1)?.parse().ok()
}

fn statuses(server: &Served, key: &str, times: usize) -> Vec<u16> {
    (0..times).map(|_| ask(&server.address, key).unwrap()).collect()
}

fn signal(name: &str, id: u32) {
    assert!(Command::new("kill").args([name, &id.to_string()]).status().unwrap().success());
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn what_was_used_is_used_after_a_restart() {
    let setup = Setup::new("restart", "", "\"2/week\", \"5/week sliding-log\"");
    let server = setup.start();
    let wanted = "survive a restart in ";
    assert!(server.said.contains(wanted), "{wanted} is missing in\n{}", server.said);
    assert_eq!(statuses(&server, "a", 3), [200, 200, 429]);
    assert_eq!(statuses(&server, "b", 1), [200]);
    assert_eq!(server.terminate(), Some(0));
    assert_eq!(mode(&setup.state()), 0o600);
    let server = setup.start();
    assert_eq!(statuses(&server, "a", 1), [429]);
    assert_eq!(statuses(&server, "b", 2), [200, 429]);
    assert_eq!(statuses(&server, "c", 3), [200, 200, 429]);
    assert_eq!(server.terminate(), Some(0));
}

/// What is admitted, by key.
type Admitted = Arc<Mutex<BTreeMap<String, usize>>>;

/// Two servers of one file, the next one always started while the last one still finishes what runs, and clients that never
/// pause. The address of whichever serves is passed on to them.
#[test]
fn ten_restarts_in_turn_under_load_admit_exactly_the_limit() {
    const LIMIT: usize = 40;
    let setup = Setup::new("turns", "", "\"40/week\", \"60/week sliding-log\"");
    let mut server = setup.start();
    for _ in 0..LIMIT {
        assert_eq!(ask(&server.address, "exhausted"), Some(200));
    }
    let address = Arc::new(Mutex::new(server.address.clone()));
    let (admitted, over) = (Admitted::default(), Arc::new(AtomicBool::new(false)));
    let clients: Vec<_> = (0..4)
        .map(|client| {
            let (address, admitted) = (Arc::clone(&address), Arc::clone(&admitted));
            let over = Arc::clone(&over);
            thread::spawn(move || {
                let keys = ["exhausted".to_owned(), "busy".to_owned(), format!("own-{client}")];
                let mut asked = 0_usize;
                while !over.load(Relaxed) {
                    let key = &keys[asked % keys.len()];
                    let at = address.lock().clone();
                    asked += 1;
                    if ask(&at, key) == Some(200) {
                        *admitted.lock().entry(key.clone()).or_default() += 1;
                    }
                }
                asked
            })
        })
        .collect();
    for _ in 0..10 {
        // It waits for the other to let go of the file.
        let id = server.id();
        let stopping = thread::spawn(move || {
            signal("-TERM", id);
            server.wait()
        });
        let next = setup.start();
        address.lock().clone_from(&next.address);
        assert_eq!(stopping.join().unwrap(), Some(0));
        server = next;
    }
    // Whatever is left may be had, and not one more.
    let keys = (0..4).map(|client| format!("own-{client}")).chain(["busy".to_owned()]);
    for key in keys {
        while ask(&server.address, &key) == Some(200) {
            *admitted.lock().entry(key.clone()).or_default() += 1;
        }
    }
    over.store(true, Relaxed);
    let asked: usize = clients.into_iter().map(|client| client.join().unwrap()).sum();
    assert_eq!(server.terminate(), Some(0));
    let admitted = admitted.lock().clone();
    assert_eq!(admitted.get("exhausted"), None, "of {asked} asks: {admitted:?}");
    assert_eq!(admitted.len(), 5, "{admitted:?}");
    for (key, count) in &admitted {
        assert_eq!(*count, LIMIT, "{key}: {admitted:?}, of {asked} asks");
    }
}

#[test]
fn a_killed_server_forgets_what_it_used_since_the_last_write_and_nothing_else() {
    let setup = Setup::new("killed", "snapshot_every = \"1s\"", "\"2/week\"");
    let server = Served::start_with_admin(&["-c", setup.file.path()]);
    assert_eq!(statuses(&server, "a", 3), [200, 200, 429]);
    // Until a periodic write has it.
    while metric(&server, "sekisho_snapshot_entries") == 0.0 {
        thread::yield_now();
    }
    signal("-KILL", server.id());
    assert_eq!(server.wait(), None);
    assert_eq!(mode(&setup.state()), 0o600);
    let server = setup.start();
    assert_eq!(statuses(&server, "a", 1), [429]);
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn a_file_that_is_cut_short_starts_no_server_and_says_what_to_do() {
    let setup = Setup::new("cut", "", "\"2/week\"");
    let server = setup.start();
    assert_eq!(statuses(&server, "a", 3), [200, 200, 429]);
    assert_eq!(server.terminate(), Some(0));
    let bytes = fs::read(setup.state()).unwrap();
    fs::write(setup.state(), &bytes[..bytes.len() - 1]).unwrap();
    for command in [&["serve"][..], &["proxy", "--to", "http://127.0.0.1:1"]] {
        let (out, err, code) = crate::sekisho(&[command, &["-c", setup.file.path()]].concat(), "");
        assert_eq!((out.as_str(), code), ("", 2), "{err}");
        let cut = format!("it is cut short: {} of {} bytes", bytes.len() - 1, bytes.len());
        let remove = format!("remove {} to start anew", setup.state().display());
        for words in ["error: `snapshot` of `[store]`", &cut, "hint: ", &remove] {
            assert!(err.contains(words), "{words} is missing in {err}");
        }
    }
    assert_eq!(fs::read(setup.state()).unwrap().len(), bytes.len() - 1, "it stays as it is");
    fs::remove_file(setup.state()).unwrap();
    let server = setup.start();
    assert_eq!(statuses(&server, "a", 3), [200, 200, 429]);
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn a_second_server_waits_for_the_first_and_says_so() {
    let setup = Setup::new("waits", "", "\"2/week\"");
    let server = setup.start();
    assert_eq!(statuses(&server, "a", 2), [200, 200]);
    let mut second = Command::new(env!("CARGO_BIN_EXE_sekisho"))
        .args(["serve", "-c", setup.file.path()])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = BufReader::new(second.stderr.take().unwrap()).lines();
    let line = log.next().unwrap().unwrap();
    let id = format!("process={}", server.id());
    for words in ["another server has the snapshot", "waiting up to 15s", &id] {
        assert!(line.contains(words), "{words} is missing in {line}");
    }
    assert_eq!(server.terminate(), Some(0));
    let line = log.next().unwrap().unwrap();
    assert!(line.contains("counts go on where the snapshot was written"), "{line}");
    signal("-TERM", second.id());
    assert!(second.wait().unwrap().success());
}

/// Returns the end of the line of the metrics page that begins so.
fn metric(server: &Served, name: &str) -> f64 {
    let page = server.metrics();
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|line| line.parse().ok()).unwrap_or_else(|| panic!("no {name} in\n{page}"))
}

#[test]
fn writes_that_fail_are_said_once_and_nobody_is_refused_for_them() {
    let setup = Setup::new("fails", "snapshot_every = \"1s\"", "\"2/week\"");
    let log = setup.folder.join("log");
    let server = Served::start_logged(&["-c", setup.file.path()], fs::File::create(&log).unwrap());
    let written = "sekisho_snapshot_last_success_timestamp_seconds";
    assert!(metric(&server, written) == 0.0 && metric(&server, "sekisho_snapshot_entries") == 0.0);
    let obstacle = setup.folder.join("state.new");
    fs::create_dir(&obstacle).unwrap();
    while metric(&server, "sekisho_snapshot_failures_total") < 2.0 {
        thread::yield_now();
    }
    assert_eq!(statuses(&server, "a", 3), [200, 200, 429]);
    fs::remove_dir(&obstacle).unwrap();
    while metric(&server, written) == 0.0 {
        thread::yield_now();
    }
    let length = fs::metadata(setup.state()).unwrap().len();
    assert_eq!(metric(&server, "sekisho_snapshot_size_bytes").to_string(), length.to_string());
    assert_eq!(metric(&server, "sekisho_snapshot_entries").to_string(), "1");
    assert!(metric(&server, "sekisho_snapshot_write_seconds") > 0.0);
    assert_eq!(server.terminate(), Some(0));
    let log = fs::read_to_string(log).unwrap();
    for words in ["a crash now would forget", "Is a directory", "the snapshot is written again"] {
        assert_eq!(log.matches(words).count(), 1, "{words} in\n{log}");
    }
}

#[test]
fn a_last_write_that_fails_is_said_and_is_a_failure() {
    let setup = Setup::new("last", "", "\"2/week\"");
    let log = setup.folder.join("log");
    let server = Served::start_logged(&["-c", setup.file.path()], fs::File::create(&log).unwrap());
    assert_eq!(statuses(&server, "a", 1), [200]);
    fs::create_dir(setup.folder.join("state.new")).unwrap();
    assert_eq!(server.terminate(), Some(1));
    let log = fs::read_to_string(log).unwrap();
    for words in ["since the last write of the snapshot is lost", "Is a directory", "hint: "] {
        assert!(log.contains(words), "{words} is missing in {log}");
    }
}
