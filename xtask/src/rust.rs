//! A Rust file split into code, comments and literals, without parsing it.
//!
//! The rules search for words. A word in a string or a comment means something else than the same
//! word in code, so each view blanks out the other kinds and keeps every line where it was.

/// One Rust file in three views of the same length.
#[derive(Debug)]
pub(crate) struct Rust {
    /// The file as it is.
    pub(crate) text: String,
    /// Only the code: comments and literals are blank.
    pub(crate) code: String,
    /// Only the comments, doc comments included.
    pub(crate) comments: String,
    /// For each line, whether it begins inside a literal.
    pub(crate) begins_in_literal: Vec<bool>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Code,
    Comment,
    Literal,
}

impl Rust {
    /// Splits a file. Never fails: what does not lex counts as code.
    pub(crate) fn new(text: String) -> Self {
        let bytes = text.as_bytes();
        let mut kinds = Vec::with_capacity(bytes.len());
        while kinds.len() < bytes.len() {
            let (kind, end) = token(bytes, kinds.len());
            kinds.resize(end.min(bytes.len()), kind);
        }
        let mut begins_in_literal = Vec::new();
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let open = at > 0 && kinds[at - 1] == Kind::Literal && kinds[at] == Kind::Literal;
            begins_in_literal.push(open);
            at += line.len();
        }
        let code = view(bytes, &kinds, Kind::Code);
        let comments = view(bytes, &kinds, Kind::Comment);
        Self { text, code, comments, begins_in_literal }
    }

    /// Returns the code view with every `#[cfg(test)]` item blank too.
    pub(crate) fn code_outside_tests(&self) -> String {
        const MARK: &str = "#[cfg(test)]";
        let mut code = self.code.clone();
        while let Some(start) = code.find(MARK) {
            let end = item_end(code.as_bytes(), start + MARK.len());
            let blank = blanked(&code.as_bytes()[start..end]);
            code.replace_range(start..end, &blank);
        }
        code
    }
}

/// Returns the line, counted from 1, that holds the byte at `at`.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    1 + text[..at].matches('\n').count()
}

/// Returns where `word` stands alone: no letter, digit or underscore touches it.
pub(crate) fn find_word(text: &str, word: &str) -> Option<usize> {
    text.match_indices(word).map(|(at, _)| at).find(|at| {
        let before = text[..*at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn view(bytes: &[u8], kinds: &[Kind], wanted: Kind) -> String {
    let kept = bytes
        .iter()
        .zip(kinds)
        .map(|(byte, kind)| if *kind == wanted || *byte == b'\n' { *byte } else { b' ' });
    String::from_utf8_lossy(&kept.collect::<Vec<u8>>()).into_owned()
}

fn blanked(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| if *byte == b'\n' { '\n' } else { ' ' }).collect()
}

/// Returns where the item that starts at `from` ends: its `;`, or the brace that closes it.
fn item_end(code: &[u8], from: usize) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in code.iter().enumerate().skip(from) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth <= 1 => return at + 1,
            b'}' => depth -= 1,
            b';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

/// Returns the kind of the token at `at` and where it ends.
fn token(bytes: &[u8], at: usize) -> (Kind, usize) {
    let rest = &bytes[at..];
    if rest.starts_with(b"//") {
        return (Kind::Comment, at + position(rest, b'\n'));
    }
    if rest.starts_with(b"/*") {
        return (Kind::Comment, at + block_comment(rest));
    }
    if let Some(length) = raw_string(rest) {
        return (Kind::Literal, at + length);
    }
    match rest[0] {
        b'"' => (Kind::Literal, at + string(rest)),
        b'\'' => character(rest).map_or((Kind::Code, at + 1), |end| (Kind::Literal, at + end)),
        first if is_ident(first) => {
            let length = rest.iter().take_while(|byte| is_ident(**byte)).count();
            (Kind::Code, at + length)
        }
        _ => (Kind::Code, at + 1),
    }
}

const fn is_ident(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn position(rest: &[u8], wanted: u8) -> usize {
    rest.iter().position(|byte| *byte == wanted).unwrap_or(rest.len())
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut at, mut depth) = (0, 0_usize);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// Returns the length of the raw string that starts here, if one does.
fn raw_string(rest: &[u8]) -> Option<usize> {
    let prefix = usize::from(matches!(rest[0], b'b' | b'c'));
    if rest.get(prefix) != Some(&b'r') {
        return None;
    }
    let hashes = rest[prefix + 1..].iter().take_while(|byte| **byte == b'#').count();
    let body = prefix + 1 + hashes;
    if rest.get(body) != Some(&b'"') {
        return None;
    }
    let mut close = vec![b'"'];
    close.resize(1 + hashes, b'#');
    let inside = &rest[body + 1..];
    let length = inside.windows(close.len()).position(|window| window == close);
    Some(length.map_or(rest.len(), |length| body + 1 + length + close.len()))
}

fn string(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// Returns the length of a character literal, or `None` for a lifetime.
fn character(rest: &[u8]) -> Option<usize> {
    if rest.get(1) == Some(&b'\\') {
        return Some(3 + position(rest.get(3..)?, b'\'') + 1);
    }
    let width = match rest.get(1)? {
        0..0x80 => 1,
        0x80..0xe0 => 2,
        0xe0..0xf0 => 3,
        _ => 4,
    };
    (rest.get(1 + width) == Some(&b'\'')).then_some(2 + width)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        Rust::new(text.to_owned()).code
    }

    #[test]
    fn comments_and_literals_leave_the_code() {
        assert_eq!(code("a // b\nc").trim_end(), "a     \nc");
        assert_eq!(code("a /* b /* c */ d */ e"), format!("a {} e", " ".repeat(17)));
        assert_eq!(code(r#"f("x\"y", z)"#), "f(      , z)");
        assert_eq!(code(r##"f(r#"x"y"#, z)"##), "f(        , z)");
        assert_eq!(code(r#"f(br"x\", z)"#), "f(      , z)");
        assert_eq!(code("f('\"', '\\'', 'é')"), "f(   ,     ,     )");
    }

    #[test]
    fn lifetimes_and_raw_identifiers_are_code() {
        for text in ["fn f<'a>(x: &'a str) {}", "let r#type = r;", "'outer: loop {}"] {
            assert_eq!(code(text), text);
        }
    }

    #[test]
    fn comments_are_kept_in_their_own_view() {
        let rust = Rust::new("let x = 1; // why\n".to_owned());
        assert_eq!(rust.comments.trim(), "// why");
    }

    #[test]
    fn a_line_knows_that_it_begins_inside_a_literal() {
        let rust = Rust::new("let x = \"one\ntwo\";\nthree\n".to_owned());
        assert_eq!(rust.begins_in_literal, [false, true, false]);
    }

    #[test]
    fn test_items_can_be_left_out() {
        let text = "a;\n#[cfg(test)]\nmod tests { fn f() { b } }\n#[cfg(test)]\nuse c;\nd;\n";
        let outside = Rust::new(text.to_owned()).code_outside_tests();
        assert_eq!(outside.split_whitespace().collect::<Vec<_>>(), ["a;", "d;"]);
        assert_eq!(outside.lines().count(), text.lines().count());
    }

    #[test]
    fn words_stand_alone() {
        assert_eq!(find_word("xf64 f64", "f64"), Some(5));
        assert_eq!(find_word("f64x", "f64"), None);
    }

    #[test]
    fn broken_files_still_split() {
        for text in ["\"open", "/* open", "r#\"open", "'", "'\\", "b", "r", "br#"] {
            assert_eq!(code(text).len(), text.len());
        }
    }
}
