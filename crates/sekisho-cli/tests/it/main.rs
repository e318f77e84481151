//! The program as a user meets it: output, errors, exit codes.
#![expect(clippy::unwrap_used, reason = "a test may end early")]

mod commands;
mod files;
mod keys;
mod proxying;
mod racing;
mod restarting;
mod serving;
mod sharing;
mod simulating;
mod storing;
mod throttling;

use std::{
    io::Write,
    process::{Command, Output, Stdio},
};

/// Runs the program with something on its standard input.
fn sekisho(arguments: &[&str], input: &str) -> (String, String, i32) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_sekisho"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A program that fails early does not read its input.
    let _unread = stdin.write_all(input.as_bytes());
    drop(stdin);
    let Output { stdout, stderr, status } = child.wait_with_output().unwrap();
    (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap(), status.code().unwrap())
}
