//! `sekisho reference`: every command's help as one Markdown page, so that the documentation cannot drift.

use crate::{
    args,
    report::{Report, out},
};

pub(super) fn run() -> Result<(), Report> {
    let mut page = String::from(
        "# The commands\n\nWritten by `cargo xtask codegen` from the program's own help; changes belong there.\n",
    );
    let mut root = args::describe().term_width(100).disable_help_subcommand(true);
    root.build();
    section(&mut page, &mut root.clone(), "sekisho");
    for command in root.get_subcommands().filter(|command| !command.is_hide_set()) {
        let name = format!("sekisho {}", command.get_name());
        section(&mut page, &mut command.clone(), &name);
    }
    out(|to| to.write_all(page.as_bytes()))
}

fn section(page: &mut String, command: &mut clap::Command, name: &str) {
    let help = command.render_long_help().to_string();
    let lines: Vec<_> = help.lines().map(str::trim_end).collect();
    for part in ["\n## `", name, "`\n\n```text\n", lines.join("\n").trim_end(), "\n```\n"] {
        page.push_str(part);
    }
}
