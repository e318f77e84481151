//! Pictures as data: what is drawn, before anyone says where. A terminal, an SVG file and a page draw the same.
//!
//! Numbers here are for eyes, so they are floats; nothing is decided by them.

mod markup;
pub mod page;
mod plan;
#[cfg(test)]
mod samples;
mod scale;
pub mod svg;
pub mod terminal;
mod text;
#[cfg(test)]
mod wellformed;

/// A picture with axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// A word that names it within its report, for file names and anchors: small letters, digits and `-`.
    pub name: String,
    /// What it shows, in a few words.
    pub title: String,
    /// What to see in it, in one or two sentences.
    pub caption: String,
    /// From left to right.
    pub x: Axis,
    /// From bottom to top.
    pub y: Axis,
    /// What is drawn, the most important first.
    pub series: Vec<Series>,
}

/// One axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What is measured, like `time`.
    pub label: String,
    /// Its unit, like `s`; empty when it is a number of things.
    pub unit: String,
}

/// One thing that is drawn. Its name stands beside it, and its shape tells it from others as well as its colour.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What it is, like `60/min fixed-window`.
    pub name: String,
    /// How it is drawn.
    pub shape: Shape,
    /// Points from left to right.
    pub points: Vec<(f64, f64)>,
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Points joined by straight lines.
    Line,
    /// A value that stays until the next point.
    Steps,
    /// A bar from zero at each point. Bars of several series stand side by side.
    Bars,
    /// Points alone.
    Points,
    /// A horizontal line over the whole width at the first point's height, like a limit.
    Rule,
}
