//! A report in every form: for people (a table, terminal charts, pictures, a page) and for machines (JSON, JSON lines, CSV).
//!
//! Nothing here prints: texts are returned, and the program puts them where they belong.

mod csv;
mod fields;
mod json;
mod page;
mod table;

pub use self::{
    csv::csv,
    json::{json, json_array, json_lines},
    page::{course, page},
    table::{list, table},
};
use crate::{chart::svg, experiment::Report};

/// Returns one file a chart: its name, and what is in it.
pub fn pictures(report: &Report) -> impl Iterator<Item = (String, String)> + '_ {
    report
        .charts
        .iter()
        .map(|chart| (format!("{}-{}.svg", report.name, chart.name), svg::draw(chart)))
}
