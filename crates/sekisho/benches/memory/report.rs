//! The table, the chart and the JSON.

/// What is compared, how it came out, and what it should be.
struct Row {
    what: String,
    ours: f64,
    other: f64,
    unit: &'static str,
    ratio: f64,
    target: Target,
}

/// What a ratio should be.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    AtMost(f64),
    AtLeast(f64),
    /// For the record.
    None,
}

impl Target {
    fn is_met(self, ratio: f64) -> bool {
        match self {
            Self::AtMost(most) => ratio <= most,
            Self::AtLeast(least) => ratio >= least,
            Self::None => true,
        }
    }

    fn text(self) -> String {
        match self {
            Self::AtMost(most) => format!("<= {most}"),
            Self::AtLeast(least) => format!(">= {least}"),
            Self::None => "-".to_owned(),
        }
    }
}

/// Everything that is measured.
#[derive(Default)]
pub(crate) struct Report {
    rows: Vec<Row>,
}

impl Report {
    /// Notes a figure of ours beside another one.
    pub(crate) fn row(
        &mut self,
        what: impl Into<String>,
        (ours, other): (f64, f64),
        unit: &'static str,
        target: Target,
    ) {
        let what = what.into();
        let ratio = ours / other;
        eprintln!("  {what}: {ours:.1} / {other:.1} {unit} = {ratio:.2} ({})", target.text());
        self.rows.push(Row { what, ours, other, unit, ratio, target });
    }

    pub(crate) fn print(&self) {
        println!("| what | ours | other | unit | ratio | target | met |");
        println!("|---|---:|---:|---|---:|---:|---|");
        for Row { what, ours, other, unit, ratio, target } in &self.rows {
            let met = if target.is_met(*ratio) { "yes" } else { "NO" };
            let target = target.text();
            println!(
                "| {what} | {ours:.1} | {other:.1} | {unit} | {ratio:.2} | {target} | {met} |"
            );
        }
        println!("\nRatios: `#` up to where ours is, `|` where the target is; a full bar is 2.\n");
        for Row { what, ratio, target, .. } in &self.rows {
            println!("{what:>52} {} {ratio:.2}", bar(*ratio, *target));
        }
    }

    pub(crate) fn print_json(&self) {
        let row = |row: &Row| {
            let Row { what, ours, other, unit, ratio, target } = row;
            format!(
                r#"{{"what":"{what}","ours":{ours:.2},"other":{other:.2},"unit":"{unit}","ratio":{ratio:.3},"target":"{}","met":{}}}"#,
                target.text(),
                target.is_met(*ratio)
            )
        };
        let rows: Vec<String> = self.rows.iter().map(row).collect();
        println!("[{}]", rows.join(",\n"));
    }
}

/// Returns a bar of 40 characters.
fn bar(ratio: f64, target: Target) -> String {
    let at = |ratio: f64| (ratio.clamp(0.0, 2.0) * 20.0).round() as usize;
    let mut bar: Vec<char> =
        (0..=40).map(|cell| if cell < at(ratio) { '#' } else { '.' }).collect();
    match target {
        Target::AtMost(target) | Target::AtLeast(target) => bar[at(target)] = '|',
        Target::None => {}
    }
    bar.into_iter().collect()
}
