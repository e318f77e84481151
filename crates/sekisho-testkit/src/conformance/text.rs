//! Limits' texts: what they mean in canonical form, or why they are refused.

use sekisho::Limit;
use serde::Deserialize;

use super::Failure;

/// A limit's text, and what becomes of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Text {
    /// The text.
    pub limit: String,
    /// Its canonical form, when it is right.
    pub canonical: Option<String>,
    /// Words that the refusal has, when it is wrong.
    #[serde(default)]
    pub refused: Vec<String>,
}

/// Reads the text, and compares.
///
/// # Errors
/// What is not as it should be.
pub fn run_text(case: &str, text: &Text) -> Result<(), Failure> {
    let fail = |what: String| Err(Failure::new(format_args!("{case} text `{}`", text.limit), what));
    match (text.limit.parse::<Limit>(), &text.canonical) {
        (Ok(limit), Some(canonical)) => {
            let printed = limit.to_string();
            let again = printed.parse::<Limit>();
            if printed != *canonical || !text.refused.is_empty() {
                return fail(format!("wanted `{canonical}`, got `{printed}`"));
            }
            if again == Ok(limit) {
                return Ok(());
            }
            fail(format!("`{printed}` is read as {again:?}"))
        }
        (Err(error), None) => {
            let said = error.to_string();
            match text.refused.iter().find(|word| !said.contains(word.as_str())) {
                Some(word) => fail(format!("`{word}` is not in `{said}`")),
                None if text.refused.is_empty() => {
                    fail("it says neither form nor refusal".to_owned())
                }
                None => Ok(()),
            }
        }
        (Ok(limit), None) => fail(format!("it should be refused, and is `{limit}`")),
        (Err(error), Some(canonical)) => fail(format!("wanted `{canonical}`, got: {error}")),
    }
}
