//! The rules that hold in every crate.

use std::path::Path;

use crate::codegen;
use crate::rust::{Rust, line_of};
use crate::tidy::Finding;

/// A file above this is looked at twice.
const LINES_WARN: usize = 500;
/// A file above this is split.
const LINES_MAX: usize = 800;
/// The formatter holds code to 100; this holds comments, strings and prose too.
const WIDTH_MAX: usize = 140;

/// What a file is to the rules; any other file is data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    Rust,
    Text,
}

impl FileKind {
    pub(crate) fn of(path: &str) -> Option<Self> {
        if codegen::FILES.iter().any(|generated| generated.path == path) {
            return None;
        }
        match Path::new(path).extension().and_then(|extension| extension.to_str()) {
            Some("rs") => Some(Self::Rust),
            Some("lua" | "md" | "proto" | "sh" | "toml" | "yaml" | "yml") => Some(Self::Text),
            None if path == "test" || path == ".ci/run" => Some(Self::Text),
            _ => None,
        }
    }
}

/// `thing.rs` beside `thing/`, never `thing/mod.rs`: tabs and searches then tell files apart.
pub(crate) fn name(path: &str) -> Option<Finding> {
    let wrong = Path::new(path).file_name().is_some_and(|name| name == "mod.rs");
    wrong.then(|| Finding::error(0, "a `mod.rs`; name the file after its module"))
}

/// The first words of a file say what it is for.
pub(crate) fn module_doc(rust: &Rust) -> Option<Finding> {
    let first = rust.text.lines().map(str::trim).find(|line| {
        let plain_comment = line.starts_with("//") && !line.starts_with("//!");
        !line.is_empty() && !plain_comment
    });
    match first {
        Some(line) if line.starts_with("#![doc") => None,
        Some(line) if line.starts_with("//!") => {
            let says = line.trim_start_matches("//!").trim();
            let empty = says.is_empty() || says == "placeholder";
            empty.then(|| Finding::error(1, "the module doc says nothing"))
        }
        _ => Some(Finding::error(1, "no `//!` module doc at the top")),
    }
}

pub(crate) fn size(rust: &Rust) -> Option<Finding> {
    let lines = rust.text.lines().count();
    if lines <= LINES_WARN || rust.text.starts_with("// @generated") {
        None
    } else if lines <= LINES_MAX {
        Some(Finding::warning(0, format!("{lines} lines; look twice above {LINES_WARN}")))
    } else {
        Some(Finding::error(0, format!("{lines} lines; split above {LINES_MAX}")))
    }
}

/// Lines that cannot be broken are let through: addresses, table rows and shown output in prose, a
/// text that stands alone on its line (a message is found by searching for it), the inside of a
/// literal that spans lines, and a dependency with its reason.
pub(crate) fn width(path: &str, text: &str, begins_in_literal: &[bool]) -> Vec<Finding> {
    let is_prose = Path::new(path).extension().is_some_and(|extension| extension == "md");
    let is_manifest = path.ends_with("Cargo.toml");
    let mut fenced = false;
    let lines = text.lines().enumerate();
    lines
        .filter(|(at, line)| {
            let trimmed = line.trim_start();
            fenced ^= is_prose && trimmed.starts_with("```");
            let unbreakable = line.contains("://")
                || is_manifest
                || (is_prose && (fenced || trimmed.starts_with('|')))
                || trimmed.starts_with('"')
                || begins_in_literal.get(*at).is_some_and(|inside| *inside);
            !unbreakable && line.chars().count() > WIDTH_MAX
        })
        .map(|(at, line)| {
            let width = line.chars().count();
            Finding::error(at + 1, format!("{width} columns; break at {WIDTH_MAX}"))
        })
        .collect()
}

/// Work that was left for later, and tests that do not run.
pub(crate) fn leftovers(rust: &Rust) -> Vec<Finding> {
    const IN_CODE: &[&str] = &["todo!(", "unimplemented!(", "dbg!(", "#[ignore"];
    const IN_COMMENTS: &str = concat!("FIX", "ME");
    let in_code = IN_CODE.iter().map(|word| (&rust.code, *word));
    let in_comments = std::iter::once((&rust.comments, IN_COMMENTS));
    in_code
        .chain(in_comments)
        .flat_map(|(view, word)| {
            let places = view.match_indices(word);
            places.map(move |(at, _)| Finding::error(line_of(view, at), format!("a `{word}`")))
        })
        .collect()
}

/// Returns the checkout's own path in the form searched for. A path of one part is too short to
/// mean the checkout for sure.
pub(crate) fn own_path(root: &Path) -> Option<String> {
    (root.components().count() > 2).then(|| format!("{}/", root.display()))
}

/// No file names a folder that only one machine has.
pub(crate) fn machine_paths(text: &str, own_path: Option<&str>) -> Vec<Finding> {
    let homes = ["home", "root", "Users"].map(|home| format!("/{home}/"));
    let wanted = homes.iter().map(String::as_str).chain(own_path);
    let mut findings = Vec::new();
    for path in wanted {
        let starts = text.match_indices(path).map(|(at, _)| at).filter(|at| {
            let before = text[..*at].chars().next_back();
            before.is_none_or(|before| !before.is_alphanumeric() && !"._-}*/".contains(before))
        });
        findings.extend(starts.map(|at| {
            Finding::error(line_of(text, at), format!("`{path}` is a path of one machine"))
        }));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rust(text: &str) -> Rust {
        Rust::new(text.to_owned())
    }

    #[test]
    fn generated_and_data_files_are_not_judged() {
        assert_eq!(FileKind::of("docs/cli.md"), None);
        assert_eq!(FileKind::of("a/data.jsonl"), None);
        assert_eq!(FileKind::of("README.md"), Some(FileKind::Text));
        assert_eq!(FileKind::of("test"), Some(FileKind::Text));
    }

    #[test]
    fn mod_rs_is_refused() {
        assert!(name("src/a/mod.rs").is_some());
        assert!(name("src/a.rs").is_none());
    }

    #[test]
    fn a_file_says_what_it_is_for() {
        for good in ["//! Why.\n", "// @generated\n\n//! Why.\n", "#![doc = \"x\"]\n"] {
            assert_eq!(module_doc(&rust(good)), None, "{good}");
        }
        for bad in ["", "fn main() {}\n", "//!\n", "//! placeholder\n", "// Why.\nuse a;\n"] {
            assert!(module_doc(&rust(bad)).is_some(), "{bad}");
        }
    }

    #[test]
    fn long_files_warn_then_fail() {
        assert_eq!(size(&rust(&"\n".repeat(500))), None);
        assert!(!size(&rust(&"\n".repeat(501))).unwrap().fatal);
        assert!(!size(&rust(&"\n".repeat(800))).unwrap().fatal);
        assert!(size(&rust(&"\n".repeat(801))).unwrap().fatal);
        assert_eq!(size(&rust(&format!("// @generated{}", "\n".repeat(900)))), None);
    }

    #[test]
    fn wide_lines_fail_unless_they_cannot_be_broken() {
        let wide = "é".repeat(141);
        assert_eq!(width("a.toml", &format!("x\n{wide}"), &[])[0].line, 2);
        assert_eq!(width("a.toml", &"é".repeat(140), &[]), []);
        assert_eq!(width("a.md", &format!("| {wide} |"), &[]), []);
        assert_eq!(width("a.md", &format!("see https://{wide}"), &[]), []);
        assert_eq!(width("a.rs", &wide, &[true]), []);
        assert_eq!(width("a.rs", &format!("    \"{wide}\","), &[]), []);
        assert_eq!(width("a.md", &format!("```text\n{wide}\n```\n{wide}"), &[])[0].line, 4);
    }

    #[test]
    fn leftovers_are_found_in_code_and_comments_only() {
        let bad = "fn f() { todo!() }\n#[ignore]\nfn g() { dbg!(1); unimplemented!() }\n";
        assert_eq!(leftovers(&rust(bad)).len(), 4);
        let comment = format!("// {}: later\n", concat!("FIX", "ME"));
        assert_eq!(leftovers(&rust(&comment))[0].line, 1);
        assert_eq!(leftovers(&rust("let x = \"todo!()\"; // todo!()\n")), []);
    }

    #[test]
    fn paths_of_one_machine_are_found() {
        let home = ["home", "me", "x"].join("/");
        assert_eq!(machine_paths(&format!("a\n\"/{home}\""), None)[0].line, 2);
        assert_eq!(machine_paths(&format!("example.com/{home}"), None), []);
        let own = own_path(Path::new("/srv/checkout"));
        assert_eq!(machine_paths("in /srv/checkout/src", own.as_deref()).len(), 1);
        assert_eq!(own_path(Path::new("/src")), None);
    }
}
