//! One row of an experiment: limits, requests and a world, and what is counted on the way.

use std::collections::BTreeMap;

use sekisho::{Limit, Outcome, Span, Timestamp};

use super::{Figure, Row};
use crate::{
    chart::{Axis, Series, Shape},
    measure::Meter,
    pattern::Request,
    trace::NO_KEY,
    world::{Event, World, WorldError, title},
};

/// Requests, and the names of those they come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Traffic {
    pub(crate) requests: Vec<Request>,
    pub(crate) names: Vec<String>,
}

impl Traffic {
    /// Returns requests that all come from one.
    pub(crate) fn of_one(requests: Vec<Request>) -> Self {
        Self { requests, names: vec![NO_KEY.to_owned()] }
    }
}

/// What is tried: limits that are decided together, in a world.
#[derive(Clone, Debug)]
pub(crate) struct Trial {
    pub(crate) limits: Vec<Limit>,
    pub(crate) world: World,
    pub(crate) window: Span,
}

impl Trial {
    /// Returns one limit on one server, looked at by the minute.
    pub(crate) fn of(limit: &str) -> Self {
        Self {
            limits: vec![super::limit(limit)],
            world: World::default(),
            window: Span::from_secs(60),
        }
    }

    /// Runs it, and calls `see` for each request and the units of its key that were admitted in the window behind it.
    pub(crate) fn run(
        &self,
        traffic: &Traffic,
        mut see: impl FnMut(&Event, u64),
    ) -> Result<Row, WorldError> {
        let mut meter = Meter::new(self.window);
        self.world.run(&self.limits, &traffic.requests, &traffic.names, |event| {
            meter.see(event);
            see(event, meter.in_window(event.key, event.at));
        })?;
        let measured = meter.measured();
        Ok(Row {
            limit: title(&self.limits),
            method: None,
            passed: measured.passed,
            denied: measured.denied,
            most_in_window: Some(measured.most_in_window),
            longest_wait: measured.longest_wait,
            published: None,
            published_for: Figure::Passed,
            trials: None,
            extras: Vec::new(),
        })
    }
}

/// Units in stretches of equal length that follow each other.
#[derive(Clone, Debug)]
pub(crate) struct Bins {
    width: u64,
    units: BTreeMap<u64, u64>,
}

impl Bins {
    pub(crate) fn new(width: Span) -> Self {
        Self { width: width.as_nanos().max(1), units: BTreeMap::new() }
    }

    pub(crate) fn add(&mut self, at: Timestamp, units: u64) {
        let bin = self.units.entry(at.as_nanos() / self.width).or_default();
        *bin = bin.saturating_add(units);
    }

    /// Counts a request that passed, when it came.
    pub(crate) fn add_passed(&mut self, event: &Event) {
        if event.outcome == Outcome::Allow {
            self.add(event.at, event.cost);
        }
    }

    pub(crate) fn most(&self) -> u64 {
        self.units.values().copied().max().unwrap_or_default()
    }

    /// Returns a point at each bin's beginning, from one instant to another, with those that are empty.
    pub(crate) fn points(&self, from: Timestamp, to: Timestamp) -> Vec<(f64, f64)> {
        (from.as_nanos() / self.width..=to.as_nanos() / self.width)
            .map(|bin| {
                let units = self.units.get(&bin).copied().unwrap_or_default();
                (seconds(Timestamp::from_nanos(bin.saturating_mul(self.width))), number(units))
            })
            .collect()
    }
}

/// A number for a picture.
#[expect(clippy::cast_precision_loss, reason = "a picture needs no more than 53 bits")]
pub(crate) const fn number(of: u64) -> f64 {
    of as f64
}

/// An instant for a picture, in seconds.
pub(crate) fn seconds(at: Timestamp) -> f64 {
    number(at.as_nanos()) / 1e9
}

/// The axis of time.
pub(crate) fn time() -> Axis {
    axis("time", "s")
}

pub(crate) fn axis(label: &str, unit: &str) -> Axis {
    Axis { label: label.to_owned(), unit: unit.to_owned() }
}

pub(crate) fn series(name: impl Into<String>, shape: Shape, points: Vec<(f64, f64)>) -> Series {
    Series { name: name.into(), shape, points }
}
