//! A small, strict reader of XML, so that tests see every element that is written.

use std::collections::BTreeMap;

/// An element as it was read.
#[derive(Clone, Debug)]
pub(super) struct Element {
    pub(super) tag: String,
    pub(super) attributes: BTreeMap<String, String>,
    /// How many elements it stands in.
    pub(super) depth: usize,
}

/// Reads a document, or says what is wrong in it.
pub(super) fn read(document: &str) -> Result<Vec<Element>, String> {
    let (mut elements, mut open) = (Vec::new(), Vec::<String>::new());
    let mut rest = document;
    while let Some(at) = rest.find('<') {
        text(&rest[..at])?;
        rest = &rest[at + 1..];
        let end = rest.find('>').ok_or("a tag that does not end")?;
        let inside = &rest[..end];
        rest = &rest[end + 1..];
        if let Some(tag) = inside.strip_prefix('/') {
            let last = open.pop().ok_or_else(|| format!("</{tag}> closes nothing"))?;
            if last != tag {
                return Err(format!("</{tag}> closes <{last}>"));
            }
            continue;
        }
        let element = element(inside.strip_suffix('/').unwrap_or(inside), open.len())?;
        if open.is_empty() && !elements.is_empty() {
            return Err(format!("<{inside}> stands after the document"));
        }
        if !inside.ends_with('/') {
            open.push(element.tag.clone());
        }
        elements.push(element);
    }
    text(rest)?;
    if open.is_empty() && rest.trim().is_empty() {
        Ok(elements)
    } else {
        Err(format!("{open:?} are open"))
    }
}

fn element(inside: &str, depth: usize) -> Result<Element, String> {
    let (tag, mut rest) = inside.split_once(' ').unwrap_or((inside, ""));
    let is_name = |name: &str| {
        !name.is_empty()
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-')
    };
    let mut attributes = BTreeMap::new();
    while !rest.is_empty() {
        let (name, value) = rest.split_once("=\"").ok_or_else(|| format!("<{inside}>"))?;
        let (value, after) = value.split_once('"').ok_or_else(|| format!("<{inside}>"))?;
        text(value)?;
        let is_first = attributes.insert(name.to_owned(), value.to_owned()).is_none();
        if !is_name(name) || !is_first || value.contains('<') {
            return Err(format!("`{name}` in <{inside}>"));
        }
        rest = after.strip_prefix(' ').unwrap_or(after);
        if after == rest && !rest.is_empty() {
            return Err(format!("no space in <{inside}>"));
        }
    }
    if is_name(tag) {
        Ok(Element { tag: tag.to_owned(), attributes, depth })
    } else {
        Err(format!("<{inside}>"))
    }
}

fn text(text: &str) -> Result<(), String> {
    let is_bad = |letter: char| {
        (letter.is_control() && letter != '\n') || matches!(letter, '\u{fffe}' | '\u{ffff}')
    };
    if text.contains(is_bad) {
        return Err(format!("a control character in {text:?}"));
    }
    let references = ["amp;", "lt;", "gt;", "quot;", "#39;"];
    let is_known = |after: &str| references.iter().any(|reference| after.starts_with(reference));
    match text.split('&').skip(1).find(|after| !is_known(after)) {
        Some(after) => Err(format!("&{after}")),
        None => Ok(()),
    }
}

#[test]
fn the_reader_is_strict() {
    let bad = [
        "<a>",
        "<a></b>",
        "<a/><b/>",
        "<a b=c/>",
        "<a b=\"1\" b=\"2\"/>",
        "<a>&x;</a>",
        "<a>\u{1b}</a>",
        "<a/>x",
        "<1<",
    ];
    for document in bad {
        assert!(read(document).is_err(), "{document}");
    }
    assert_eq!(read("<a b=\"&lt;\"><c/>x\n</a>").unwrap().len(), 2);
}
