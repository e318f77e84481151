//! `${NAME}` in a text of the policy file: what must not stand in the file stands in the environment.

/// Looks a name up.
pub(crate) type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Why a text cannot be filled in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EnvironmentError {
    #[error("the environment has no `{0}`, or it is no text: set it, or write `$$` for a `$`")]
    Unset(String),
    #[error(
        "a `$` begins a name of the environment, as in `${{REDIS_PASSWORD}}` (letters, digits and `_`): write `$$` for a `$`"
    )]
    Shape,
}

/// Fills the names of a text in, once: what stands in for one is not looked through.
pub(crate) fn fill_in(text: &str, lookup: Lookup<'_>) -> Result<String, EnvironmentError> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        filled.push_str(before);
        if let Some(behind) = after.strip_prefix('$') {
            filled.push('$');
            rest = behind;
            continue;
        }
        let inside = after.strip_prefix('{').and_then(|inside| inside.split_once('}'));
        let (name, behind) = inside.ok_or(EnvironmentError::Shape)?;
        if !is_name(name) {
            return Err(EnvironmentError::Shape);
        }
        filled.push_str(&lookup(name).ok_or_else(|| EnvironmentError::Unset(name.to_owned()))?);
        rest = behind;
    }
    filled.push_str(rest);
    Ok(filled)
}

fn is_name(text: &str) -> bool {
    let begins = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
    text.as_bytes().first().is_some_and(begins)
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_filled_in_once() {
        let lookup = |name: &str| match name {
            "A" => Some("one".to_owned()),
            "_B2" => Some("${A}$".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        for (text, filled) in [
            ("", Ok("")),
            ("plain {A}", Ok("plain {A}")),
            ("${A}", Ok("one")),
            ("x${A}y${_B2}z", Ok("xoney${A}$z")),
            ("$$", Ok("$")),
            ("$${A}", Ok("${A}")),
            ("$$${A}", Ok("$one")),
            ("a${EMPTY}b", Ok("ab")),
            ("${C}", Err(EnvironmentError::Unset("C".into()))),
            ("$", Err(EnvironmentError::Shape)),
            ("$A", Err(EnvironmentError::Shape)),
            ("${", Err(EnvironmentError::Shape)),
            ("${A", Err(EnvironmentError::Shape)),
            ("${}", Err(EnvironmentError::Shape)),
            ("${2}", Err(EnvironmentError::Shape)),
            ("${A-B}", Err(EnvironmentError::Shape)),
            ("${ A}", Err(EnvironmentError::Shape)),
            ("${A}$", Err(EnvironmentError::Shape)),
        ] {
            assert_eq!(fill_in(text, &lookup), filled.map(str::to_owned), "{text}");
        }
    }
}
