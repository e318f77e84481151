//! Reports as comma-separated values (RFC 4180), one row a line, with the same names as in JSON.

use crate::experiment::{Extra, Report};

/// Returns the rows of all reports under one heading. Figures that only some have are columns at the end, and empty elsewhere.
pub fn csv(reports: &[Report]) -> String {
    let rows =
        || reports.iter().flat_map(|report| report.rows.iter().map(move |row| (report, row)));
    let mut own: Vec<&str> = Vec::new();
    for extra in rows().flat_map(|(_, row)| &row.extras) {
        if !own.contains(&extra.name) {
            own.push(extra.name);
        }
    }
    let heading = [
        "experiment",
        "limit",
        "passed",
        "denied",
        "most_in_window",
        "longest_wait_ns",
        "published",
    ];
    let mut text = line(heading.into_iter().chain(own.iter().copied()).map(str::to_owned));
    for (report, row) in rows() {
        let mut cells = vec![
            report.name.clone(),
            row.title(),
            row.passed.to_string(),
            row.denied.to_string(),
            row.most_in_window.map(|most| most.to_string()).unwrap_or_default(),
            row.longest_wait.as_nanos().to_string(),
            row.published.map(|figure| figure.to_string()).unwrap_or_default(),
        ];
        let value = |name: &&str| row.extras.iter().find(|extra| extra.name == *name);
        let shown = |extra: Option<&Extra>| extra.map(|extra| extra.value.to_string());
        cells.extend(own.iter().map(|name| shown(value(name)).unwrap_or_default()));
        text += &line(cells);
    }
    text
}

fn line(cells: impl IntoIterator<Item = String>) -> String {
    let cells: Vec<_> = cells.into_iter().map(quoted).collect();
    cells.join(",") + "\n"
}

/// Quotes what would be read as more than one cell.
fn quoted(cell: String) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", cell.replace('"', "\"\""));
    }
    cell
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stay_one() {
        assert_eq!(quoted("a, \"b\"".to_owned()), "\"a, \"\"b\"\"\"");
        assert_eq!(quoted("a b".to_owned()), "a b");
    }
}
