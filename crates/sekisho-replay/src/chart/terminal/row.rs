//! Rows of text with ink, and how ink becomes the codes of a terminal.

use crate::chart::text;

/// The codes of colours that can be told apart, also by colour-blind eyes, on black as on white.
const COLOURS: [&str; 8] =
    ["38;5;32", "38;5;166", "38;5;36", "38;5;133", "38;5;136", "38;5;102", "38;5;74", "38;5;125"];

/// What a piece of text is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Ink {
    #[default]
    Plain,
    Strong,
    /// Axes and their labels.
    Faint,
    Rule,
    /// The series with this number.
    Series(usize),
}

/// A line of the drawing.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    parts: Vec<(Ink, String)>,
}

impl Row {
    pub(super) fn of(ink: Ink, text: &str) -> Self {
        Self { parts: vec![(ink, text.to_owned())] }
    }

    pub(super) fn push(&mut self, ink: Ink, text: &str) {
        match self.parts.last_mut() {
            Some(last) if last.0 == ink => last.1.push_str(text),
            _ => self.parts.push((ink, text.to_owned())),
        }
    }

    pub(super) fn join(&mut self, other: Self) {
        self.parts.extend(other.parts);
    }

    /// Fills with spaces up to a column.
    pub(super) fn pad(&mut self, column: usize) {
        let missing = column.saturating_sub(self.width());
        self.push(Ink::Plain, &" ".repeat(missing));
    }

    pub(super) fn width(&self) -> usize {
        self.parts.iter().map(|part| text::width(&part.1)).sum()
    }
}

/// The rows as text, each with a newline, without spaces at their ends.
pub(super) fn paint(rows: &[Row], colour: bool) -> String {
    let mut out = String::new();
    for row in rows {
        let plain: String = row.parts.iter().map(|part| part.1.as_str()).collect();
        let mut left = plain.trim_end().len();
        for (ink, text) in &row.parts {
            let text = &text[..text.len().min(left)];
            left -= text.len();
            match code(*ink).filter(|_| colour && !text.trim().is_empty()) {
                Some(code) => out.extend(["\u{1b}[", code, "m", text, "\u{1b}[0m"]),
                None => out.push_str(text),
            }
        }
        out.push('\n');
    }
    out
}

fn code(ink: Ink) -> Option<&'static str> {
    match ink {
        Ink::Plain => None,
        Ink::Strong => Some("1"),
        Ink::Faint => Some("2"),
        Ink::Rule => Some("1;38;5;161"),
        Ink::Series(at) => Some(COLOURS[at % COLOURS.len()]),
    }
}
