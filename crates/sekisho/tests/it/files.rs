//! Policy files: right ones, wrong ones, and what is said of them.

use sekisho::PolicySet;

const DESIGN: &str = include_str!("data/design.toml");

#[test]
fn the_design_is_parsed_whole_and_what_is_not_there_yet_is_named() {
    let errors = PolicySet::parse(DESIGN).unwrap_err();
    for e in errors.diagnostics() { println!("{e}"); }
    for e in errors.warnings() { println!("{e}"); }
    panic!();
}
