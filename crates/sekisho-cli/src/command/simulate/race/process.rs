//! A process of a race, as the race sees it.

use std::{env, process::Stdio};

use serde::Serialize;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
};

use super::message::{Said, Start};
use crate::{command::simulate::place::Place, report::Report};

/// A running process. It ends when this is dropped.
pub(super) struct Process {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Process {
    /// Starts this program once more, and tells it where the store is: on its input, as everybody may read arguments.
    pub(super) async fn start(place: &Place) -> Result<Self, Report> {
        let program = env::current_exe().map_err(Report::failed)?;
        let mut child = Command::new(program)
            .args(["simulate", "--racer"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| Report::failed(format!("a process cannot be started: {error}")))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Report::failed("a process without input and output was started"));
        };
        let output = BufReader::new(output).lines();
        let mut process = Self { child, input, output };
        process.say(&Start { url: place.url.clone(), prefix: place.prefix.clone() }).await?;
        Ok(process)
    }

    /// Tells it something.
    pub(super) async fn say(&mut self, what: &impl Serialize) -> Result<(), Report> {
        let line = serde_json::to_string(what).map_err(Report::failed)?;
        // One that has ended said why on the standard error.
        self.input.write_all(format!("{line}\n").as_bytes()).await.map_err(|_| ended())
    }

    /// Waits until it is ready.
    pub(super) async fn is_ready(&mut self) -> Result<(), Report> {
        match self.hear().await? {
            Said::Ready => Ok(()),
            said => Err(unexpected(said)),
        }
    }

    /// Waits for its count.
    pub(super) async fn passed(&mut self) -> Result<u64, Report> {
        match self.hear().await? {
            Said::Passed(passed) => Ok(passed),
            said => Err(unexpected(said)),
        }
    }

    /// Ends it, whatever it is doing.
    pub(super) async fn end(mut self) {
        // One that cannot be killed has ended already.
        let _ended = self.child.kill().await;
    }

    async fn hear(&mut self) -> Result<Said, Report> {
        let line = self.output.next_line().await.map_err(Report::failed)?.ok_or_else(ended)?;
        serde_json::from_str(&line).map_err(Report::failed)
    }
}

fn ended() -> Report {
    Report::failed("a process of the race has ended before the race")
}

fn unexpected(said: Said) -> Report {
    match said {
        Said::Failed(why) => Report::failed(format!("a process of the race cannot go on: {why}")),
        said => Report::failed(format!("a process of the race says {said:?} out of turn")),
    }
}
