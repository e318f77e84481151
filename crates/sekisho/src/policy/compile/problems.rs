//! Collects what is wrong, and finds the line and field of each place in the file.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use crate::policy::lint::{Code, Diagnostic, Severity};

/// What is wrong with a file, so far.
#[derive(Debug)]
pub(crate) struct Problems<'a> {
    text: &'a str,
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
        Self { text, fields, found: Vec::new() }
    }

    pub(crate) fn add(&mut self, code: Code, span: Range<usize>, message: impl Into<String>) {
        let before = self.text.get(..span.start).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        self.found.push(Diagnostic {
            code,
            line: self.line(span.start),
            column: before[line_start..].chars().count() + 1,
            field: self.field(&span),
            message: message.into(),
        });
    }

    /// Returns the line, from 1, on which a place stands.
    pub(crate) fn line(&self, at: usize) -> usize {
        1 + self.text.get(..at).unwrap_or_default().matches('\n').count()
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
