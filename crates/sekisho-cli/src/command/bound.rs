//! `sekisho bound`: the worst case of a limit, and arrivals that reach it.

use std::io;

use sekisho::{Algorithm, Limit, Metered, Period, Span};
use sekisho_replay::{
    trace,
    worst::{Untried, Worst, worst},
};

use crate::{
    args::{Bound, TextOrJson},
    report::{Report, out},
};

pub(super) fn run(args: &Bound) -> Result<(), Report> {
    let own = args.limit.as_metered().map(|of| of.period().shortest());
    let stretches = match args.stretches.as_slice() {
        [] => vec![own.unwrap_or(Span::from_secs(1))],
        given => given.to_vec(),
    };
    let tries: Vec<_> = stretches.iter().map(|stretch| Tried::of(&args.limit, *stretch)).collect();
    if args.pattern {
        let [tried] = tries.as_slice() else {
            return Err(Report::input("`--pattern` prints the arrivals of one stretch")
                .hint("give `--within` once"));
        };
        return tried.pattern();
    }
    out(|to| {
        if args.output == TextOrJson::Text {
            writeln!(to, "{}", args.limit)?;
        }
        tries.iter().try_for_each(|tried| match args.output {
            TextOrJson::Text => tried.text(to),
            TextOrJson::Json => writeln!(to, "{}", tried.json()),
        })
    })
}

/// A stretch, and what the simulator passes in it of the arrivals that try for the most.
struct Tried<'a> {
    limit: &'a Limit,
    stretch: Span,
    half_open: Result<Worst, Untried>,
    closed: Result<Worst, Untried>,
}

impl<'a> Tried<'a> {
    fn of(limit: &'a Limit, stretch: Span) -> Self {
        let attempt = |closed| worst(limit, stretch, closed);
        Self { limit, stretch, half_open: attempt(false), closed: attempt(true) }
    }

    fn text(&self, to: &mut dyn io::Write) -> io::Result<()> {
        writeln!(to, "  {}", in_words(self.limit, self.stretch))?;
        let bound = self.limit.bound(self.stretch);
        writeln!(to, "    {}", self.found(&self.closed, bound.closed))?;
        // Of the shorter stretch only what differs: that one is reached and the other is not, or the other way round.
        let reached = |tried: &Result<Worst, Untried>, bound: Option<u128>| {
            tried.as_ref().is_ok_and(|worst| Some(worst.found) == bound)
        };
        if self.half_open != Err(Untried::Empty)
            && reached(&self.half_open, bound.half_open) != reached(&self.closed, bound.closed)
        {
            writeln!(to, "    without its end {}", self.found(&self.half_open, bound.half_open))?;
        }
        Ok(())
    }

    /// Says whether the bound is reached.
    fn found(&self, tried: &Result<Worst, Untried>, bound: Option<u128>) -> String {
        match tried {
            Err(Untried::Unlimited) => "nothing to confirm: it counts nothing".to_owned(),
            Err(untried) => format!("not tried: {untried}"),
            Ok(worst) => {
                let found = worst.found;
                if Some(found) == bound {
                    return format!("confirmed: the simulator passes {found} of it");
                }
                let why = unreached(self.limit).unwrap_or("the pattern is not the worst");
                format!("not reached: the simulator passes {found}: {why}")
            }
        }
    }

    fn json(&self) -> serde_json::Value {
        let bound = self.limit.bound(self.stretch);
        let found =
            |tried: &Result<Worst, Untried>| tried.as_ref().ok().map(|it| saturated(it.found));
        serde_json::json!({
            "limit": self.limit.to_string(),
            "within_ns": self.stretch.as_nanos(),
            "half_open": bound.half_open.map(saturated),
            "closed": bound.closed.map(saturated),
            "found_half_open": found(&self.half_open),
            "found_closed": found(&self.closed),
        })
    }

    /// Prints the arrivals as a trace, with what they show as comments.
    fn pattern(&self) -> Result<(), Report> {
        let worst = match &self.closed {
            Ok(worst) => worst,
            Err(untried) => return Err(Report::input(format!("there is no pattern: {untried}"))),
        };
        let bound = self.limit.bound(self.stretch);
        out(|to| {
            writeln!(to, "# {}", self.limit)?;
            writeln!(to, "# {}", in_words(self.limit, self.stretch))?;
            writeln!(to, "# {}", self.found(&self.closed, bound.closed))?;
            worst.arrivals.iter().try_for_each(|arrival| {
                writeln!(to, "{},{},{}", trace::seconds(arrival.at), arrival.key, arrival.cost)
            })
        })
    }
}

/// Returns why no arrivals reach the bound of a limit, where that can be.
fn unreached(limit: &Limit) -> Option<&'static str> {
    let metered = limit.as_metered()?;
    match (metered.algorithm(), Metered::period(metered)) {
        (_, Period::Calendar(..)) => {
            Some("calendar windows differ in length, and the bound takes the shortest for all")
        }
        (Algorithm::TokenBucket | Algorithm::LeakyQueue, _) => Some(
            "units come back between two nanoseconds, and a full bucket loses the rest of the second one",
        ),
        _ => None,
    }
}

fn saturated(units: u128) -> u64 {
    u64::try_from(units).unwrap_or(u64::MAX)
}

/// Returns the worst case of a limit in a stretch, as a sentence.
pub(super) fn in_words(limit: &Limit, stretch: Span) -> String {
    let bound = limit.bound(stretch);
    match (bound.half_open, bound.closed) {
        (Some(0), _) => "nothing, ever".to_owned(),
        (Some(half_open), Some(closed)) if half_open == closed => {
            format!("at most {half_open} in any {stretch}")
        }
        (Some(half_open), Some(closed)) => {
            format!("at most {half_open} in any {stretch}, {closed} with both its ends")
        }
        _ => "everything".to_owned(),
    }
}
