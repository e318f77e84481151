//! A server as a process: what it says while it starts, its signals, its time on a processor.

use std::{
    fmt::Write as _,
    fs,
    io::{BufRead, BufReader},
    process::ChildStdout,
    sync::mpsc,
    thread,
    time::Duration,
};

use rustix::{
    param::clock_ticks_per_second,
    process::{Pid, Signal, kill_process},
};

use crate::wait::{self, PATIENCE};

/// What a server says last before it serves; a sentinel says the second.
const READY: [&str; 2] = ["ready to accept connections", "sentinel id is"];

/// Reads what the server says until it says that it is ready, and goes on reading so that its pipe never fills.
pub(super) fn await_ready(output: ChildStdout) -> Result<(), String> {
    let (sender, lines) = mpsc::channel();
    // Ends with the output, which ends with the server.
    drop(thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            // Nobody listens any more once it is ready.
            let _ignored = sender.send(line);
        }
    }));
    let mut said = String::new();
    loop {
        match lines.recv_timeout(PATIENCE) {
            Ok(line) => {
                let lower = line.to_ascii_lowercase();
                if READY.iter().any(|ready| lower.contains(ready)) {
                    return Ok(());
                }
                let _never = writeln!(said, "{line}");
            }
            Err(_) => return Err(said),
        }
    }
}

/// Stops the process, and waits until it stands: a signal is on its way for a moment.
pub(super) fn pause(pid: u32) {
    signal(pid, Signal::STOP);
    wait::until("the process stands still", || (fields(pid)[0] == "T").then_some(()));
}

pub(super) fn resume(pid: u32) {
    signal(pid, Signal::CONT);
}

/// The time on a processor of all threads, ours and the kernel's for it.
pub(super) fn cpu(pid: u32) -> Duration {
    // `utime` and `stime`, the 14th and 15th of proc_pid_stat(5).
    let ticks: u64 =
        fields(pid)[11..13].iter().map(|field| field.parse::<u64>().expect("a number")).sum();
    Duration::from_millis(ticks * 1_000 / clock_ticks_per_second())
}

fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process has a number");
    kill_process(pid, signal).expect("our own child takes signals");
}

/// What the kernel says of it, from its state on, which is the third field.
fn fields(pid: u32) -> Vec<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).expect("Linux tells of processes");
    // Its name stands before, in brackets, and may hold anything.
    let (_, fields) = text.rsplit_once(") ").expect("a name in brackets");
    fields.split_whitespace().map(str::to_owned).collect()
}
