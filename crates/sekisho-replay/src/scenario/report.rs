//! Runs a scenario, and says what it was and what came out of it.

use std::io::BufRead;

use sekisho::{Span, Timestamp};

use super::{Scenario, ScenarioError};
use crate::{
    chart::{Chart, Series, Shape},
    experiment::{
        Extra, Report,
        trial::{Bins, Traffic, Trial, axis, series, time},
    },
    world::{Counting, Retry},
};

/// How many stretches of time a picture shows, about.
const STRETCHES: u64 = 60;
/// The most that a picture shows: clients may go on coming back long after the last pattern.
const STRETCHES_MAX: u64 = 600;

impl Scenario {
    /// Runs it on its patterns and on the trace, which is to be given if [`Scenario::trace`] names one.
    ///
    /// # Errors
    /// [`ScenarioError`].
    pub fn run(&self, trace: Option<&mut dyn BufRead>) -> Result<Report, ScenarioError> {
        let traffic = self.traffic(trace)?;
        let from = traffic.requests.first().map_or(Timestamp::EPOCH, |request| request.at);
        let last = traffic.requests.last().map_or(from, |request| request.at);
        let width = round(last.since(from).as_nanos() / STRETCHES);
        let (mut rows, mut asked, mut passed) = (Vec::new(), Vec::new(), Vec::new());
        for limits in &self.rows {
            let trial =
                Trial { limits: limits.clone(), world: self.world.clone(), window: self.window };
            let (mut came, mut went) = (Bins::new(width), Bins::new(width));
            let (mut second, mut until) = (Bins::new(Span::from_secs(1)), last);
            let mut row = trial.run(&traffic, |event, _| {
                came.add(event.at, event.cost);
                went.add_passed(event);
                second.add(event.at, 1);
                until = until.max(event.at);
            })?;
            let shown = from.plus(Span::from_nanos(width.as_nanos().saturating_mul(STRETCHES_MAX)));
            let until = until.min(shown);
            asked.push(series(&row.limit, Shape::Steps, came.points(from, until)));
            passed.push(series(&row.limit, Shape::Steps, went.points(from, until)));
            if self.world.clients.retry != Retry::Never {
                let (name, title) = ("most_arrivals_per_second", "most arrivals in a second");
                row.extras.push(Extra { name, title, value: second.most() });
            }
            rows.push(row);
        }
        // What comes is the same for all, unless clients come back.
        if self.world.clients.retry == Retry::Never {
            asked.truncate(1);
            for of in &mut asked {
                "all".clone_into(&mut of.name);
            }
        }
        Ok(Report {
            name: self.name.clone(),
            title: self.title.clone(),
            question: String::new(),
            setting: self.in_words(&traffic),
            reading: String::new(),
            rows,
            charts: vec![
                chart("asked", "Units that are asked for", asked, width),
                chart("passed", "Units that pass", passed, width),
            ],
        })
    }

    /// Says what is done.
    fn in_words(&self, traffic: &Traffic) -> String {
        let mut said: Vec<String> = self.patterns.iter().map(|(text, _)| text.clone()).collect();
        said.extend(self.trace.as_ref().map(|_| "a trace".to_owned()));
        let mut words = vec![format!("{}: {} requests", said.join("; "), traffic.requests.len())];
        match traffic.names.len() {
            1 => {}
            keys => words.push(format!(" from {keys} keys")),
        }
        words.extend(self.servers_in_words());
        let clients = &self.world.clients;
        let tries = clients.tries;
        match clients.retry {
            Retry::Never => {}
            Retry::Obey => words.push(format!(
                ". Refused clients come back after `Retry-After`, {tries} times at most"
            )),
            Retry::Every(span) => words
                .push(format!(". Refused clients come back after {span}, {tries} times at most")),
        }
        if !clients.jitter.is_zero() {
            words.push(format!(", each up to {} later", clients.jitter));
        }
        words.push(format!(". The window is {}.", self.window));
        words.concat()
    }

    fn servers_in_words(&self) -> Vec<String> {
        let servers = &self.world.servers;
        let mut words = Vec::new();
        if servers.shares.len() > 1 {
            let counting = match servers.counting {
                Counting::Shared => "which count in one place",
                Counting::Split => "each with its part of the limit",
                Counting::Alone => "each with the whole limit",
            };
            words.push(format!(", over {} servers, {counting}", servers.shares.len()));
        }
        if servers.ahead_ns.iter().any(|ns| *ns != 0) {
            let ahead = |ns: &i64| {
                let sign = if *ns < 0 { "-" } else { "" };
                format!("{sign}{}", Span::from_nanos(ns.unsigned_abs()))
            };
            let ahead: Vec<_> = servers.ahead_ns.iter().map(ahead).collect();
            words.push(format!(", with clocks that are ahead by {}", ahead.join(", ")));
        }
        words
    }
}

fn chart(name: &str, title: &str, series: Vec<Series>, width: Span) -> Chart {
    Chart {
        name: name.to_owned(),
        title: format!("{title}, in each {width}"),
        caption: String::new(),
        x: time(),
        y: axis(&format!("units in {width}"), ""),
        series,
    }
}

/// Rounds up to 1, 2 or 5 times a power of ten.
fn round(ns: u64) -> Span {
    let mut step = 1_u64;
    loop {
        for times in [1, 2, 5] {
            let width = step.saturating_mul(times);
            if width >= ns {
                return Span::from_nanos(width);
            }
        }
        step = step.saturating_mul(10);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_round() {
        for (ns, width) in [(0, 1), (1, 1), (3, 5), (6, 10), (11, 20), (1_999, 2_000)] {
            assert_eq!(round(ns).as_nanos(), width);
        }
    }
}
