//! Text that came from outside: made harmless, measured in columns, cut and broken into lines.

/// Stands for a character that must not be shown.
const HIDDEN: char = '\u{fffd}';
const CUT: char = '…';

/// A character as it may be shown: breaks are spaces, and what would steer a terminal, turn the direction of reading
/// or break a document is replaced.
pub(super) fn safe(letter: char) -> char {
    match letter {
        '\n' | '\r' | '\t' => ' ',
        '\u{200e}'
        | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}'
        | '\u{fffe}'
        | '\u{ffff}' => HIDDEN,
        letter => {
            if letter.is_control() {
                HIDDEN
            } else {
                letter
            }
        }
    }
}

/// A text as it may be shown.
pub(super) fn clean(text: &str) -> String {
    text.chars().map(safe).collect()
}

/// How many columns a terminal gives to a character.
fn columns(letter: char) -> usize {
    match letter {
        '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200d}' | '\u{fe00}'..='\u{fe0f}' => 0,
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f300}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

/// How many columns a terminal gives to a text.
pub(super) fn width(text: &str) -> usize {
    text.chars().map(columns).sum()
}

/// The text in at most `room` columns, cut with `…`.
pub(super) fn fit(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let (mut out, mut used) = (String::new(), 1);
    for letter in text.chars() {
        used += columns(letter);
        if used > room {
            break;
        }
        out.push(letter);
    }
    out.truncate(out.trim_end().len());
    if room > 0 {
        out.push(CUT);
    }
    out
}

/// The text in lines of at most `room` columns, broken between words; a word that is too long is cut.
pub(super) fn wrap(text: &str, room: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace().map(|word| fit(word, room)) {
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(&word) <= room => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

/// The text with spaces up to `room` columns.
pub(super) fn pad(text: &str, room: usize) -> String {
    let missing = room.saturating_sub(width(text));
    format!("{text}{}", " ".repeat(missing))
}

/// A label with its unit: `time (s)`.
pub(super) fn with_unit(label: &str, unit: &str) -> String {
    match (label.is_empty(), unit.is_empty()) {
        (false, false) => clean(&format!("{label} ({unit})")),
        (_, true) => clean(label),
        (true, false) => clean(unit),
    }
}

/// A name for an anchor or an id: small letters, digits and `-`, never empty.
pub(super) fn slug(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        if letter.is_ascii_alphanumeric() {
            out.push(letter.to_ascii_lowercase());
        } else if !out.is_empty() && !out.ends_with('-') {
            out.push('-');
        }
    }
    let slug = out.trim_end_matches('-');
    // An id that begins with a letter needs no escape in a style sheet.
    if slug.starts_with(|first: char| first.is_ascii_lowercase()) {
        slug.to_owned()
    } else {
        format!("x{slug}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_a_terminal() {
        assert_eq!(clean("a\u{1b}[2Jb\u{7}\n\tc\u{202e}d"), "a\u{fffd}[2Jb\u{fffd}  c\u{fffd}d");
    }

    #[test]
    fn lines_keep_their_columns() {
        assert_eq!(wrap("one two  three", 7), ["one two", "three"]);
        assert_eq!(wrap("incomprehensible", 6), ["incom…"]);
        assert_eq!(wrap("", 6), [""; 0]);
        assert_eq!((width("関所"), fit("関所番", 5).as_str()), (4, "関所…"));
        assert_eq!(fit("abc", 0), "");
        assert_eq!(pad("関", 4), "関  ");
    }

    #[test]
    fn an_id_is_plain() {
        assert_eq!(slug("60/min fixed-window"), "x60-min-fixed-window");
        assert_eq!([slug("Größe <b>"), slug(""), slug("--a--")], ["gr-e-b", "x", "a"]);
    }
}
