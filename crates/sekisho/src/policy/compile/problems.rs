//! Collects what is wrong, and finds the line and field of each place in the file.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use crate::policy::lint::{Code, Diagnostic, Severity};

/// What is wrong with a file, so far.
#[derive(Debug)]
pub(crate) struct Problems<'a> {
    text: &'a str,
    /// Where each line begins.
    lines: Vec<usize>,
    /// Each field's path and where its value stands; empty when the file is not TOML.
    fields: Vec<(Range<usize>, String)>,
    found: Vec<Diagnostic>,
}

impl<'a> Problems<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let mut fields = Vec::new();
        if let Ok(tree) = DeTable::parse(text) {
            collect_table(tree.get_ref(), "", &mut fields);
        }
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let lines = std::iter::once(0).chain(newlines.map(|(at, _)| at + 1)).collect();
        Self { text, lines, fields, found: Vec::new() }
    }

    pub(crate) fn add(&mut self, code: Code, span: Range<usize>, message: impl Into<String>) {
        let line = self.line(span.start);
        let line_start = self.lines.get(line - 1).copied().unwrap_or(0);
        let before = self.text.get(line_start..span.start).unwrap_or_default();
        self.found.push(Diagnostic {
            code,
            line,
            column: before.chars().count() + 1,
            field: printable(&self.field(&span)),
            message: printable(&message.into()),
        });
    }

    /// Returns what stands in a place of the file.
    pub(crate) fn text(&self, span: Range<usize>) -> &'a str {
        self.text.get(span).unwrap_or_default()
    }

    /// Returns the line, from 1, on which a place stands.
    pub(crate) fn line(&self, at: usize) -> usize {
        self.lines.partition_point(|start| *start <= at)
    }

    /// Returns the smallest field that holds the place.
    fn field(&self, span: &Range<usize>) -> String {
        let holds = |field: &Range<usize>| field.start <= span.start && span.end <= field.end;
        let holding = self.fields.iter().filter(|(field, _)| holds(field) && !span.is_empty());
        holding
            .min_by_key(|(field, path)| (field.len(), usize::MAX - path.len()))
            .map(|(_, path)| path.clone())
            .unwrap_or_default()
    }

    /// Returns the errors and the warnings, each in the file's order.
    pub(crate) fn finish(self) -> (Vec<Diagnostic>, Vec<Diagnostic>) {
        let mut found = self.found;
        found.sort_by_key(|problem| (problem.line, problem.column, problem.code));
        found.dedup();
        found.into_iter().partition(|problem| problem.code.severity() == Severity::Error)
    }
}

/// The longest text of a diagnostic that is shown whole, in characters: it may quote the file.
const SHOWN_MAX: usize = 600;

/// Returns a text that is fit for a terminal, whatever the file has in it.
fn printable(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .take(SHOWN_MAX)
        .flat_map(|letter| {
            let escape = letter.is_control() && letter != '\n';
            let escaped = escape.then(|| letter.escape_default());
            escaped.into_iter().flatten().chain((!escape).then_some(letter))
        })
        .collect();
    if text.chars().nth(SHOWN_MAX).is_some() {
        shown.push('…');
    }
    shown
}

fn collect_table(table: &DeTable<'_>, path: &str, fields: &mut Vec<(Range<usize>, String)>) {
    for (key, value) in table {
        let dot = if path.is_empty() { "" } else { "." };
        let path = format!("{path}{dot}{}", key.get_ref());
        fields.push((key.span(), path.clone()));
        fields.push((value.span(), path.clone()));
        collect_value(value.get_ref(), &path, fields);
    }
}

fn collect_value(value: &DeValue<'_>, path: &str, fields: &mut Vec<(Range<usize>, String)>) {
    match value {
        DeValue::Table(table) => collect_table(table, path, fields),
        DeValue::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                let path = format!("{path}[{index}]");
                fields.push((value.span(), path.clone()));
                collect_value(value.get_ref(), &path, fields);
            }
        }
        _ => {}
    }
}
