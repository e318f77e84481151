//! Reports as JSON. The names and the order of the fields are part of the interface.

use serde::{Serialize, Serializer, ser::SerializeMap as _};

use super::fields;
use crate::experiment::{Report, Row};

/// A report as `{"experiment":…,"rows":[…]}`.
#[derive(Serialize)]
struct JsonReport<'a> {
    experiment: &'a str,
    rows: Vec<JsonRow<'a>>,
}

/// A row; as a line of its own it begins with its experiment's name.
struct JsonRow<'a> {
    experiment: Option<&'a str>,
    row: &'a Row,
}

impl Serialize for JsonRow<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(experiment) = self.experiment {
            map.serialize_entry("experiment", experiment)?;
        }
        for (name, value) in fields::of(self.row) {
            map.serialize_entry(name, &value)?;
        }
        map.end()
    }
}

fn of(report: &Report) -> JsonReport<'_> {
    let rows = report.rows.iter().map(|row| JsonRow { experiment: None, row });
    JsonReport { experiment: &report.name, rows: rows.collect() }
}

/// Returns one report as one object.
///
/// # Errors
/// None that is known: numbers and texts are always JSON.
pub fn json(report: &Report) -> serde_json::Result<String> {
    serde_json::to_string(&of(report)).map(ended)
}

/// Returns several reports as one array of such objects.
///
/// # Errors
/// As [`json`].
pub fn json_array(reports: &[Report]) -> serde_json::Result<String> {
    serde_json::to_string(&reports.iter().map(of).collect::<Vec<_>>()).map(ended)
}

/// Returns one object a row and line, each with its experiment's name.
///
/// # Errors
/// As [`json`].
pub fn json_lines(reports: &[Report]) -> serde_json::Result<String> {
    let mut lines = String::new();
    for report in reports {
        for row in &report.rows {
            let row = JsonRow { experiment: Some(&report.name), row };
            lines += &ended(serde_json::to_string(&row)?);
        }
    }
    Ok(lines)
}

fn ended(mut line: String) -> String {
    line.push('\n');
    line
}
