//! Where the memory store's state is kept over a restart.

use sekisho_core::Span;

use super::{Problems, filled};
use crate::policy::{environment::Lookup, file::StoreFile, lint::Code, settings::SnapshotSettings};

/// The time between two writes of a snapshot: the shortest that is worth a file, the longest that a crash may cost.
const EVERY_MIN: Span = Span::from_secs(1);
const EVERY_MAX: Span = Span::from_secs(86_400);

/// Compiles where the memory store's state is kept over a restart. A shared store outlives a server.
pub(super) fn compile(
    file: &StoreFile,
    lookup: Lookup<'_>,
    problems: &mut Problems<'_>,
) -> Option<SnapshotSettings> {
    let fields = [("snapshot", &file.snapshot), ("snapshot_every", &file.snapshot_every)];
    if file.url.is_some() || file.shards.is_some() {
        for (name, given) in fields {
            let Some(given) = given else { continue };
            let message = format!(
                "`{name}` is about the memory store, and counts are in a store that outlives this server: leave it out"
            );
            problems.add(Code::Snapshot, given.span(), message);
        }
        return None;
    }
    let Some(text) = &file.snapshot else {
        if let Some(every) = &file.snapshot_every {
            let message = "nothing is written without a file: name one, as in `snapshot = \"state.snapshot\"`";
            problems.add(Code::Snapshot, every.span(), message);
        }
        return None;
    };
    let path = filled(text, lookup, problems);
    // A folder's name would be found to be one only when the server starts.
    let is_wrong = |path: &String| path.is_empty() || path.contains('\0') || path.ends_with('/');
    if path.as_ref().is_some_and(is_wrong) {
        problems.add(Code::Snapshot, text.span(), "this is the path of a file");
    }
    let every = file.snapshot_every.as_ref().map_or(Some(SnapshotSettings::EVERY), |text| {
        let every = text.get_ref().parse().ok();
        let every = every.filter(|every| (EVERY_MIN..=EVERY_MAX).contains(every));
        if every.is_none() {
            let message = "a snapshot is written every 1 s to 1 day, like `1min`";
            problems.add(Code::Number, text.span(), message);
        }
        every
    });
    Some(SnapshotSettings { path: path?.into(), every: every? })
}
