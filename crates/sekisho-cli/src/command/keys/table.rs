//! The fullest keys, for people.

use std::io::{self, IsTerminal as _, Write};

use super::{FullKey, Fullest, harmless};

/// How many steps a bar has.
const BAR: usize = 10;

const HEADING: [&str; 7] = ["used", "full", "wait", "last", "denied", "policy", "limit"];

/// Returns whether the standard output shows colours, and nobody has asked for none.
pub(super) fn colour() -> bool {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    io::stdout().is_terminal() && !plain
}

/// Writes the table. The keys come last: they may be long, and everything else stays in line.
pub(super) fn write(
    to: &mut dyn Write,
    of: &Fullest,
    (admin, colour): (&str, bool),
) -> io::Result<()> {
    if of.keys.is_empty() {
        writeln!(to, "no key uses any of what was asked for")?;
    } else {
        let rows: Vec<_> = of.keys.iter().map(cells).collect();
        let mut widths = HEADING.map(str::len);
        for row in &rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.len());
            }
        }
        row(to, &widths, &HEADING, "key")?;
        for (key, cells) in of.keys.iter().zip(&rows) {
            let (on, off) = match (colour, key.outcome.as_str(), key.used_percent) {
                (true, "deny" | "never", _) => ("\x1b[31m", "\x1b[0m"),
                (true, _, 100) => ("\x1b[33m", "\x1b[0m"),
                _ => ("", ""),
            };
            to.write_all(on.as_bytes())?;
            row(to, &widths, cells, &format!("{}{off}", harmless(&key.key)))?;
        }
    }
    let count = match of.keys.len() {
        1 => "1 key".to_owned(),
        count => format!("{count} keys"),
    };
    let places = format!("{} of {} places are taken", of.held, of.places);
    writeln!(to, "{count}, as seen by one {} at {admin}; {places}", harmless(&of.scope))?;
    if of.crowded_out > 0 {
        writeln!(
            to,
            "not all are shown: exhausted keys found no place, or lost it, {} times since the server's start",
            of.crowded_out
        )?;
    }
    Ok(())
}

fn cells(of: &FullKey) -> [String; HEADING.len()] {
    let policy = of.policy.as_deref().unwrap_or("-");
    [
        format!("{}/{}", of.used, of.capacity),
        format!("{} {:>3}%", bar(of.used_percent), of.used_percent),
        wait(of.next_after_ns),
        harmless(&of.outcome),
        of.denied.to_string(),
        harmless(policy),
        harmless(&of.limit),
    ]
}

fn row<T: AsRef<str>>(
    to: &mut dyn Write,
    widths: &[usize; HEADING.len()],
    cells: &[T; HEADING.len()],
    key: &str,
) -> io::Result<()> {
    for (place, (width, cell)) in widths.iter().zip(cells).enumerate() {
        // Numbers end in line, and words begin in line.
        match place {
            0 | 2 | 4 => write!(to, "{:>width$}  ", cell.as_ref())?,
            _ => write!(to, "{:<width$}  ", cell.as_ref())?,
        }
    }
    writeln!(to, "{key}")
}

/// Returns a bar that is full for an exhausted key only, and empty for one that uses less than a step.
fn bar(percent: u8) -> String {
    let steps = (usize::from(percent) * BAR / 100).min(BAR);
    format!("{}{}", "#".repeat(steps), ".".repeat(BAR - steps))
}

/// Returns a wait in the largest unit that says enough, rounded up: whoever waits so long waits long enough.
fn wait(ns: u64) -> String {
    const MS: u64 = 1_000_000;
    const S: u64 = 1_000 * MS;
    const UNITS: [(u64, &str, u64); 5] = [
        (MS, "ms", 1_000),
        (S, "s", 600),
        (60 * S, "min", 600),
        (3_600 * S, "h", 240),
        (86_400 * S, "d", u64::MAX),
    ];
    if ns == 0 {
        return "-".to_owned();
    }
    let fits = |(unit, _, most): &&(u64, &str, u64)| ns.div_ceil(*unit) < *most;
    let (unit, name, _) = UNITS.iter().find(fits).unwrap_or(&UNITS[4]);
    format!("{} {name}", ns.div_ceil(*unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_rounded_up() {
        for (ns, words) in [
            (0, "-"),
            (1, "1 ms"),
            (999_000_000, "999 ms"),
            (999_000_001, "1 s"),
            (599_000_000_000, "599 s"),
            (599_000_000_001, "10 min"),
            (35_940_000_000_001, "10 h"),
            (u64::MAX, "213504 d"),
        ] {
            assert_eq!(wait(ns), words, "{ns}");
        }
    }

    fn key(key: &str, used: u64, outcome: &str) -> FullKey {
        FullKey {
            policy: (outcome != "allow").then(|| "api".to_owned()),
            limit: "10/min token-bucket".to_owned(),
            key: key.to_owned(),
            used,
            capacity: 10,
            used_percent: u8::try_from(used * 10).unwrap(),
            outcome: outcome.to_owned(),
            denied: 3,
            next_after_ns: 1,
        }
    }

    fn shown(keys: Vec<FullKey>, crowded_out: u64, colour: bool) -> String {
        let fullest =
            Fullest { scope: "process".into(), places: 1_024, held: 7, crowded_out, keys };
        let mut text = Vec::new();
        write(&mut text, &fullest, ("http://a", colour)).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn columns_stand_in_line_and_keys_come_last() {
        let keys = || vec![key("ip=192.0.2.1", 10, "deny"), key("=\u{1b}[2J", 9, "allow")];
        let lines = [
            " used  full             wait  last   denied  policy  limit                key",
            "10/10  ########## 100%  1 ms  deny        3  api     10/min token-bucket  ip=192.0.2.1",
            " 9/10  #########.  90%  1 ms  allow       3  -       10/min token-bucket  =?[2J",
            "2 keys, as seen by one process at http://a; 7 of 1024 places are taken",
        ];
        assert_eq!(shown(keys(), 0, false).lines().collect::<Vec<_>>(), lines);
        let coloured = shown(keys(), 0, true);
        assert!(
            coloured.contains("\n\x1b[31m10/10 ") && coloured.contains("ip=192.0.2.1\x1b[0m\n")
        );
        assert!(coloured.contains("\n 9/10 "), "{coloured}");
    }

    #[test]
    fn what_is_missing_is_said() {
        assert_eq!(
            shown(Vec::new(), 2, true),
            "no key uses any of what was asked for\n\
             0 keys, as seen by one process at http://a; 7 of 1024 places are taken\n\
             not all are shown: exhausted keys found no place, or lost it, 2 times since the server's start\n"
        );
    }
}
