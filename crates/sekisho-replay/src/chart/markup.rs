//! Writes SVG and HTML so that every element is closed and every text escaped.

use super::text;

/// A document that is being written.
#[derive(Debug, Default)]
pub(super) struct Markup {
    out: String,
    open: Vec<&'static str>,
}

type Attributes<'a> = &'a [(&'a str, &'a str)];

impl Markup {
    /// Begins an element that [`Self::close`] ends.
    pub(super) fn open(&mut self, tag: &'static str, attributes: Attributes<'_>) {
        self.begin(tag, attributes);
        self.out.push('>');
        self.open.push(tag);
    }

    /// Ends the innermost open element.
    pub(super) fn close(&mut self) {
        if let Some(tag) = self.open.pop() {
            self.out.push_str("</");
            self.out.push_str(tag);
            self.out.push_str(">\n");
        }
    }

    /// An element without content.
    pub(super) fn leaf(&mut self, tag: &'static str, attributes: Attributes<'_>) {
        self.begin(tag, attributes);
        self.out.push_str("/>\n");
    }

    /// An element with a text only.
    pub(super) fn element(&mut self, tag: &'static str, attributes: Attributes<'_>, text: &str) {
        self.open(tag, attributes);
        self.text(text);
        self.close();
    }

    /// An element in which `` `words` `` are code.
    pub(super) fn prose(&mut self, tag: &'static str, attributes: Attributes<'_>, text: &str) {
        self.open(tag, attributes);
        let mut parts = text.split('`').peekable();
        let mut is_code = false;
        while let Some(part) = parts.next() {
            let last = parts.peek().is_none();
            match (is_code, last) {
                (true, false) => {
                    self.out.push_str("<code>");
                    self.text(part);
                    self.out.push_str("</code>");
                }
                (true, true) => {
                    // The last quote has no partner, so it is a character like any other.
                    self.out.push('`');
                    self.text(part);
                }
                (false, _) => self.text(part),
            }
            is_code = !is_code;
        }
        self.close();
    }

    /// A text from outside.
    pub(super) fn text(&mut self, text: &str) {
        for letter in text.chars() {
            match text::safe(letter) {
                '&' => self.out.push_str("&amp;"),
                '<' => self.out.push_str("&lt;"),
                '>' => self.out.push_str("&gt;"),
                '"' => self.out.push_str("&quot;"),
                '\'' => self.out.push_str("&#39;"),
                safe => self.out.push(safe),
            }
        }
    }

    /// What is markup already: a style sheet of ours, or a finished document.
    pub(super) fn raw(&mut self, markup: &str) {
        self.out.push_str(markup);
    }

    /// The whole document.
    pub(super) fn finish(mut self) -> String {
        while !self.open.is_empty() {
            self.close();
        }
        self.out
    }

    fn begin(&mut self, tag: &str, attributes: Attributes<'_>) {
        self.out.push('<');
        self.out.push_str(tag);
        for (name, value) in attributes {
            self.out.push(' ');
            self.out.push_str(name);
            self.out.push_str("=\"");
            self.text(value);
            self.out.push('"');
        }
    }
}

/// A length in a drawing, with one fixed place and without a minus before nought.
pub(super) fn length(value: f64) -> String {
    let text = format!("{value:.1}");
    if text == "-0.0" { "0.0".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_escaped() {
        let mut markup = Markup::default();
        markup.open("a", &[("b", "\"<&>'\u{1b}\n")]);
        markup.element("c", &[], "]]><script>\u{0}");
        let expected = "<a b=\"&quot;&lt;&amp;&gt;&#39;\u{fffd} \"><c>]]&gt;&lt;script&gt;\u{fffd}</c>\n</a>\n";
        assert_eq!(markup.finish(), expected);
    }

    #[test]
    fn code_stands_between_two_quotes() {
        let prose = |text: &str| {
            let mut markup = Markup::default();
            markup.prose("p", &[], text);
            markup.finish()
        };
        assert_eq!(
            prose("use `a<b`, not `c`."),
            "<p>use <code>a&lt;b</code>, not <code>c</code>.</p>\n"
        );
        assert_eq!(prose("one ` alone"), "<p>one ` alone</p>\n");
        assert_eq!(prose("`all`"), "<p><code>all</code></p>\n");
    }

    #[test]
    fn a_length_has_one_place() {
        assert_eq!([-0.01, 1.25, 100.0].map(length), ["0.0", "1.2", "100.0"]);
    }
}
