//! What a page holds.

use std::collections::BTreeSet;

use super::{Section, Table, write};
use crate::chart::{
    samples::{HOSTILE, awkward, boundary, steady},
    wellformed::{Element, read},
};

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn table() -> Table {
    Table {
        caption: "Totals <all>".to_owned(),
        columns: strings(&["limit", "passed", "wait"]),
        rows: vec![
            strings(&["60/min <b>", "120", "—"]),
            strings(&["1/s", "11", "10.5 s"]),
            strings(&["short"]),
        ],
    }
}

fn section(name: &str) -> Section {
    Section {
        name: name.to_owned(),
        title: format!("About {name}"),
        text: strings(&["Some `code` & <text>."]),
        tables: vec![table(), table()],
        charts: vec![boundary(), steady(), steady()],
    }
}

fn page() -> String {
    write(
        "A <title>",
        "An intro & more.",
        &[section("main"), section("main"), section("b"), section("")],
    )
}

/// The page is also XML: every element is closed.
fn elements(page: &str) -> Vec<Element> {
    let body = page.strip_prefix("<!doctype html>\n").expect("a doctype");
    read(body).unwrap_or_else(|wrong| panic!("{wrong}"))
}

fn attribute<'a>(elements: &'a [Element], name: &str) -> Vec<&'a str> {
    elements.iter().filter_map(|element| element.attributes.get(name)).map(String::as_str).collect()
}

#[test]
fn ids_are_unique_and_every_reference_has_one() {
    let page = page();
    let elements = elements(&page);
    let ids = attribute(&elements, "id");
    let unique: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(ids.len(), unique.len());
    let mut references: Vec<&str> =
        attribute(&elements, "aria-labelledby").iter().flat_map(|ids| ids.split(' ')).collect();
    references.extend(
        attribute(&elements, "href").iter().map(|href| href.strip_prefix('#').expect("an anchor")),
    );
    references.extend(page.split("url(#").skip(1).map(|after| after.split(')').next().unwrap()));
    assert!(references.len() > 20);
    for reference in references {
        assert!(unique.contains(reference), "{reference}");
    }
}

#[test]
fn nothing_is_loaded_and_nothing_runs() {
    let all = Section { charts: awkward(), ..section("all") };
    let page = write(
        HOSTILE,
        HOSTILE,
        &[Section { name: HOSTILE.to_owned(), title: HOSTILE.to_owned(), ..all }],
    );
    let outside = page.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    assert!(
        !outside.contains("http:") && !outside.contains("https:") && !outside.contains("url(//")
    );
    let elements = elements(&page);
    let forbidden = ["script", "link", "img", "iframe", "object", "embed", "base", "form"];
    assert!(elements.iter().all(|element| !forbidden.contains(&element.tag.as_str())));
    let runs = |element: &Element| {
        element
            .attributes
            .keys()
            .any(|name| name.starts_with("on") || name == "src" || name == "style")
    };
    assert!(!elements.iter().any(runs));
    let policy =
        elements.iter().find(|element| element.attributes.contains_key("http-equiv")).unwrap();
    assert!(policy.attributes["content"].starts_with("default-src &#39;none&#39;"));
}

#[test]
fn every_picture_stands_in_a_figure_with_a_caption() {
    let page = page();
    let elements = elements(&page);
    let count = |tag: &str| elements.iter().filter(|element| element.tag == tag).count();
    assert_eq!((count("figure"), count("figcaption"), count("svg")), (12, 12, 24));
    assert_eq!(page.matches("class=\"chart\" role=\"img\"").count(), 24);
    // The style of all charts is in the head, once.
    assert_eq!((count("style"), page.matches("--s0:#").count()), (1, 2));
}

#[test]
fn contents_lead_to_every_section() {
    let page = page();
    for (anchor, title) in
        [("main-2", "About main"), ("main-3", "About main"), ("b", "About b"), ("x", "About ")]
    {
        assert!(page.contains(&format!("<li><a href=\"#{anchor}\">{title}</a>")), "{anchor}");
        assert!(page.contains(&format!("<h2 id=\"{anchor}\">")), "{anchor}");
    }
    assert!(!write("a", "", &[section("one")]).contains("<nav"));
    assert!(page.contains("<html lang=\"en\">"));
}

#[test]
fn columns_of_numbers_are_at_the_right() {
    let page = page();
    for cell in [
        "<th scope=\"row\" class=\"short\">60/min &lt;b&gt;</th>",
        "<td class=\"number\">120</td>",
        "<td class=\"number\">10.5 s</td>",
        "<th scope=\"col\" class=\"number\">wait</th>",
        "<td class=\"number\"></td>",
    ] {
        assert!(page.contains(cell), "{cell}");
    }
}

#[test]
fn text_is_escaped_and_code_is_code() {
    let page = page();
    assert!(page.contains("<p>Some <code>code</code> &amp; &lt;text&gt;.</p>"));
    assert!(page.contains("<title>A &lt;title&gt;</title>"));
}

#[test]
fn an_empty_page_is_a_page() {
    assert_eq!(
        elements(&write("", "", &[])).first().map(|element| element.tag.clone()),
        Some("html".to_owned())
    );
}
