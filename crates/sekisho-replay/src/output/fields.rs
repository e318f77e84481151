//! What machines are told of a row: the same names, in the same order, as JSON and as CSV.

use std::borrow::Cow;

use serde::Serialize;

use crate::experiment::Row;

/// One value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(super) enum Value<'a> {
    Text(Cow<'a, str>),
    Number(Option<u64>),
}

impl Value<'_> {
    /// Returns it as a cell; what is not there is empty.
    pub(super) fn into_cell(self) -> String {
        match self {
            Self::Text(text) => text.into_owned(),
            Self::Number(number) => number.map(|number| number.to_string()).unwrap_or_default(),
        }
    }
}

/// Returns a row's names and values.
pub(super) fn of(row: &Row) -> Vec<(&'static str, Value<'_>)> {
    let number = |number| Value::Number(Some(number));
    let mut fields = match &row.trials {
        None => vec![
            ("limit", Value::Text(row.title().into())),
            ("passed", number(row.passed)),
            ("denied", number(row.denied)),
            ("most_in_window", Value::Number(row.most_in_window)),
            ("longest_wait_ns", number(row.longest_wait.as_nanos())),
            ("published", Value::Number(row.published)),
        ],
        Some(trials) => vec![
            ("limit", Value::Text(row.limit.as_str().into())),
            ("method", Value::Text(row.method.as_deref().unwrap_or_default().into())),
            ("trials", number(trials.count)),
            ("passed_min", number(trials.passed_min)),
            ("passed_max", number(trials.passed_max)),
            ("trials_over", number(trials.over)),
            ("published", Value::Number(row.published)),
            ("at_once", number(trials.at_once)),
            ("server_calls", Value::Number(trials.calls)),
            ("decisions_per_second", number(trials.per_second)),
            ("ping_median_ns", number(trials.ping_median.as_nanos())),
        ],
    };
    fields.extend(row.extras.iter().map(|extra| (extra.name, number(extra.value))));
    fields
}
