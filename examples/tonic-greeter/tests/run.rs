//! Runs the example's server, and its client against it.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

#[test]
fn the_fourth_greeting_in_a_minute_is_refused() {
    let mut server = Command::new(env!("CARGO_BIN_EXE_tonic-greeter"))
        .arg("127.0.0.1:0")
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut address = String::new();
    let output = server.stdout.as_mut().expect("its output");
    let _bytes = BufReader::new(output).read_line(&mut address).expect("a line");
    let client = Command::new(env!("CARGO_BIN_EXE_tonic-greeter"))
        .args(["ask", address.trim()])
        .output()
        .expect("it asks");
    server.kill().expect("it ends");
    let _status = server.wait().expect("it has ended");
    let said = String::from_utf8(client.stdout).expect("text");
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines[..3], ["Hello tonic!"; 3], "{said}");
    assert!(lines[3].starts_with("ResourceExhausted: the quota `greetings` is used up;"), "{said}");
    let wait = lines[3].rsplit(' ').nth(1).and_then(|wait| wait.parse::<u64>().ok());
    assert!(wait.is_some_and(|wait| (50_000..=60_000).contains(&wait)), "{said}");
}
