//! A scenario as it is written. Nothing is decided here.

use serde::Deserialize;
use toml::Spanned;

use super::compile::{Problem, Problems};

/// All fields of a scenario file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fields {
    /// The word that names it in reports.
    pub name: Option<Spanned<String>>,
    /// What it is about, in a few words.
    pub title: Option<String>,
    /// Limits that are compared, one a row; ` + ` joins those that are decided together.
    #[serde(default)]
    pub limits: Vec<Spanned<String>>,
    /// When requests come: patterns, like `even 2/s for 2min`.
    #[serde(default)]
    pub arrivals: Vec<Spanned<String>>,
    /// A trace file with more requests.
    pub trace: Option<Spanned<String>>,
    /// The stretch of time in which the most is looked for; the longest period of the limits when absent.
    pub window: Option<Spanned<String>>,
    /// What all chance is drawn from; 1 when absent.
    pub seed: Option<Spanned<i64>>,
    /// How many keys the patterns' requests come from; 1 when absent.
    pub keys: Option<Spanned<i64>>,
    /// How unlike the keys are: the k-th is asked for `1 / k^zipf` as often as the first. All alike when absent.
    pub zipf: Option<Spanned<f64>>,
    /// Who decides.
    #[serde(default)]
    pub servers: ServerFields,
    /// What refused clients do.
    #[serde(default)]
    pub clients: ClientFields,
}

/// `[servers]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerFields {
    /// How many there are; as many as there are shares, or 1, when absent.
    pub count: Option<Spanned<i64>>,
    /// The share of the requests that each gets.
    pub shares: Option<Spanned<Vec<i64>>>,
    /// `shared`, `split` or `alone`.
    pub counting: Option<Spanned<String>>,
    /// How far each clock is ahead, like `200ms`, `-1s` or `0`.
    pub ahead: Option<Spanned<Vec<String>>>,
}

/// `[clients]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientFields {
    /// `never`, `obey`, or a time like `500ms`.
    pub retry: Option<Spanned<String>>,
    /// The most that a client waits longer, at random.
    pub jitter: Option<Spanned<String>>,
    /// How often a client comes at most; 10 when absent.
    pub tries: Option<Spanned<i64>>,
}

impl Fields {
    /// Reads a scenario file's text.
    ///
    /// # Errors
    /// The first thing that keeps it from being read, with its place.
    pub fn parse(text: &str) -> Result<Self, Problems> {
        toml::from_str(text).map_err(|error| {
            let message = error.message().to_owned();
            Problems(vec![Problem { field: "", at: error.span().map(|span| span.start), message }])
        })
    }
}
