//! Which columns of a table are numbers.

/// The longest unit behind a number, like `req/s`.
const UNIT_MAX: usize = 5;

/// Whether the cells are numbers, with units or without. Empty cells and dashes may stand between them.
pub(super) fn are_numbers<'a>(cells: impl Iterator<Item = &'a String>) -> bool {
    let mut any = false;
    for cell in cells.map(|cell| cell.trim()).filter(|cell| !matches!(*cell, "" | "-" | "–" | "—"))
    {
        if !is_number(cell) {
            return false;
        }
        any = true;
    }
    any
}

/// `60`, `−7.5 ms`, `12,000`, `99.9%`, `1.5e-9 s`, but not `60/min`.
fn is_number(cell: &str) -> bool {
    let unsigned =
        cell.trim_start_matches(['-', '−', '+', '±', '≤', '≥', '<', '>', '~', '×']).trim_start();
    let is_part = |letter: char| {
        letter.is_ascii_digit() || matches!(letter, '.' | ',' | '_' | '\u{202f}' | '\u{a0}')
    };
    let rest = unsigned.trim_start_matches(is_part);
    let is_address = unsigned[..unsigned.len() - rest.len()].matches('.').count() > 1;
    let rest = rest.strip_prefix(['e', 'E']).map_or(rest, |power| {
        let digits = power
            .trim_start_matches(['-', '−', '+'])
            .trim_start_matches(|digit: char| digit.is_ascii_digit());
        if digits.len() < power.len() { digits } else { rest }
    });
    let unit = rest.trim_start();
    let is_separate = unit.len() < rest.len() || !unit.starts_with('/');
    let has_digit = unsigned.starts_with(|first: char| first.is_ascii_digit());
    has_digit
        && !is_address
        && is_separate
        && unit.chars().count() <= UNIT_MAX
        && !unit.contains(|letter: char| letter.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_may_have_a_sign_and_a_unit() {
        for number in
            ["60", "−7.5 ms", "12,000", "99.9%", "1.5e-9 s", "+3", "12µs", "0", "5 req/s", "≤ 4"]
        {
            assert!(is_number(number), "{number}");
        }
        for text in
            ["60/min", "fixed-window", "10.0.0.1 (a)", "", "e5", "1 of 2", "2 windows", "3-4"]
        {
            assert!(!is_number(text), "{text}");
        }
    }

    #[test]
    fn a_column_needs_one_number_and_nothing_else() {
        let column = |cells: &[&str]| {
            are_numbers(cells.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>().iter())
        };
        assert!(column(&["1", "—", "", "20"]));
        assert!(!column(&["1", "many"]));
        assert!(!column(&["—", ""]));
    }
}
