//! `sekisho completions`: for the shell that is named.

use crate::{
    args::{self, Completions},
    report::{Report, out},
};

pub(super) fn run(args: &Completions) -> Result<(), Report> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut args::describe(), "sekisho", &mut script);
    out(|to| to.write_all(&script))
}
