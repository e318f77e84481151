//! `sekisho bound`: the worst case of a limit.

use sekisho::{Limit, Span};

use crate::{
    args::{Bound, TextOrJson},
    report::{Report, out},
};

pub(super) fn run(args: &Bound) -> Result<(), Report> {
    let own = args.limit.as_metered().map(|of| of.period().shortest());
    let stretches = match args.stretches.as_slice() {
        [] => vec![own.unwrap_or(Span::from_secs(1))],
        given => given.to_vec(),
    };
    out(|to| {
        if args.output == TextOrJson::Text {
            writeln!(to, "{}", args.limit)?;
        }
        for stretch in stretches {
            let bound = args.limit.bound(stretch);
            match args.output {
                TextOrJson::Text => writeln!(to, "  {}", in_words(&args.limit, stretch))?,
                TextOrJson::Json => {
                    let row = serde_json::json!({
                        "limit": args.limit.to_string(),
                        "within_ns": stretch.as_nanos(),
                        "half_open": bound.half_open.map(saturated),
                        "closed": bound.closed.map(saturated),
                    });
                    writeln!(to, "{row}")?;
                }
            }
        }
        Ok(())
    })
}

fn saturated(units: u128) -> u64 {
    u64::try_from(units).unwrap_or(u64::MAX)
}

/// Returns the worst case of a limit in a stretch, as a sentence.
pub(super) fn in_words(limit: &Limit, stretch: Span) -> String {
    let bound = limit.bound(stretch);
    match (bound.half_open, bound.closed) {
        (Some(0), _) => "nothing, ever".to_owned(),
        (Some(half_open), Some(closed)) if half_open == closed => {
            format!("at most {half_open} in any {stretch}")
        }
        (Some(half_open), Some(closed)) => {
            format!("at most {half_open} in any {stretch}, {closed} with both its ends")
        }
        _ => "everything".to_owned(),
    }
}
