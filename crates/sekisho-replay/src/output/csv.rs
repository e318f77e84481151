//! Reports as comma-separated values (RFC 4180), one row a line, with the same names as in JSON.

use super::fields;
use crate::experiment::Report;

/// Returns the rows of all reports under one heading. Figures that only some have are empty elsewhere.
pub fn csv(reports: &[Report]) -> String {
    let rows =
        || reports.iter().flat_map(|report| report.rows.iter().map(move |row| (report, row)));
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in rows().flat_map(|(_, row)| fields::of(row)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let mut text = line(["experiment"].iter().chain(&names).map(|name| (*name).to_owned()));
    for (report, row) in rows() {
        let mut values = fields::of(row);
        let cells = names.iter().map(|name| {
            let at = values.iter().position(|(own, _)| own == name);
            at.map(|at| values.swap_remove(at).1.into_cell()).unwrap_or_default()
        });
        text += &line(std::iter::once(report.name.clone()).chain(cells));
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
