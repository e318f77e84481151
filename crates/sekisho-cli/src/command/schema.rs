//! `sekisho schema`: the policy file's JSON Schema, or the HTTP API's description.

use crate::{
    args::Schema,
    report::{Report, out},
};

pub(super) fn run(args: &Schema) -> Result<(), Report> {
    if args.openapi {
        return out(|to| to.write_all(sekisho_server::door::openapi::OPENAPI.as_bytes()));
    }
    let schema = serde_json::to_string_pretty(&sekisho::policy_schema()).map_err(Report::failed)?;
    out(|to| writeln!(to, "{schema}"))
}
