//! A report as one HTML file: text, tables and charts, readable on a phone, on paper, in the dark and without a network.

mod numbers;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use super::{
    Chart,
    markup::Markup,
    svg::{self, View},
    text,
};

const STYLE: &str = include_str!("page/style.css");
/// Nothing is loaded and nothing runs. The style sheet is in the page itself.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";
/// Cells up to so many columns are not broken into lines.
const SHORT: usize = 32;

/// A part of the page with a heading.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// A word for its anchor.
    pub name: String,
    /// Its heading.
    pub title: String,
    /// Its paragraphs. What stands between two `` ` `` is code.
    pub text: Vec<String>,
    /// Tables, shown after the charts.
    pub tables: Vec<Table>,
    /// Charts, shown after the text.
    pub charts: Vec<Chart>,
}

/// A table. A column of nothing but numbers is aligned at the right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// What it shows.
    pub caption: String,
    /// The heads of its columns.
    pub columns: Vec<String>,
    /// Its cells, row by row. The first cell names its row.
    pub rows: Vec<Vec<String>>,
}

/// Writes a page. The same input gives the same bytes.
///
/// ```
/// use sekisho_replay::chart::page::{Section, write};
///
/// let section = Section { name: "boundary".to_owned(), title: "Boundary".to_owned(), ..Section::default() };
/// let page = write("What gets through", "Five limits & one minute.", &[section]);
/// assert!(page.starts_with("<!doctype html>") && page.contains("Five limits &amp; one minute."));
/// ```
pub fn write(title: &str, intro: &str, sections: &[Section]) -> String {
    let anchors = anchors(sections);
    let mut page = Markup::default();
    page.raw("<!doctype html>\n");
    page.open("html", &[("lang", "en")]);
    head(&mut page, title);
    page.open("body", &[]);
    page.element("a", &[("class", "skip"), ("href", "#main")], "Skip to the content");
    page.open("header", &[]);
    page.prose("h1", &[], title);
    if !intro.is_empty() {
        page.prose("p", &[("class", "intro")], intro);
    }
    contents(&mut page, sections, &anchors);
    page.close();
    page.open("main", &[("id", "main")]);
    for (section, anchor) in sections.iter().zip(&anchors) {
        write_section(&mut page, section, anchor);
    }
    page.finish()
}

fn head(page: &mut Markup, title: &str) {
    page.open("head", &[]);
    page.leaf("meta", &[("charset", "utf-8")]);
    page.leaf("meta", &[("http-equiv", "Content-Security-Policy"), ("content", POLICY)]);
    page.leaf("meta", &[("name", "viewport"), ("content", "width=device-width, initial-scale=1")]);
    page.leaf("meta", &[("name", "color-scheme"), ("content", "light dark")]);
    page.element("title", &[], title);
    page.open("style", &[]);
    page.raw("\n");
    page.raw(svg::STYLE);
    page.raw(STYLE);
    page.close();
    page.close();
}

fn contents(page: &mut Markup, sections: &[Section], anchors: &[String]) {
    // A list of one helps nobody.
    if sections.len() < 2 {
        return;
    }
    page.open("nav", &[("aria-labelledby", "contents")]);
    page.element("h2", &[("id", "contents")], "Contents");
    page.open("ol", &[]);
    for (section, anchor) in sections.iter().zip(anchors) {
        page.open("li", &[]);
        page.prose("a", &[("href", &format!("#{anchor}"))], &section.title);
        page.close();
    }
    page.close();
    page.close();
}

fn write_section(page: &mut Markup, section: &Section, anchor: &str) {
    page.open("section", &[("aria-labelledby", anchor)]);
    page.open("h2", &[("id", anchor)]);
    page.prose("a", &[("href", &format!("#{anchor}"))], &section.title);
    page.close();
    for paragraph in &section.text {
        page.prose("p", &[], paragraph);
    }
    for (at, chart) in section.charts.iter().enumerate() {
        figure(page, chart, &format!("{anchor}-figure-{}", at + 1));
    }
    for (at, table) in section.tables.iter().enumerate() {
        write_table(page, table, &format!("{anchor}-table-{}", at + 1));
    }
    page.close();
}

/// A picture twice, for wide and for narrow screens: letters keep their size and lines get the room there is.
fn figure(page: &mut Markup, chart: &Chart, id: &str) {
    page.open("figure", &[("id", id)]);
    page.open("figcaption", &[]);
    page.prose("strong", &[], &chart.title);
    if !chart.caption.is_empty() {
        page.prose("span", &[], &chart.caption);
    }
    page.close();
    page.open("div", &[("class", "wide")]);
    page.raw(&svg::render(chart, &View::wide(format!("{id}-wide"))));
    page.close();
    page.open("div", &[("class", "narrow")]);
    page.raw(&svg::render(chart, &View::narrow(format!("{id}-narrow"))));
    page.close();
    page.close();
}

/// A table in a box of its own, that scrolls when the table is too wide, also by keys.
fn write_table(page: &mut Markup, table: &Table, id: &str) {
    let is_number =
        |column: usize| numbers::are_numbers(table.rows.iter().filter_map(|row| row.get(column)));
    let is_short = |column: usize| {
        table.rows.iter().filter_map(|row| row.get(column)).all(|cell| text::width(cell) <= SHORT)
    };
    let class = |column: usize| match (is_number(column), is_short(column)) {
        (true, _) => "number",
        (false, true) => "short",
        (false, false) => "text",
    };
    let classes: Vec<&str> = (0..table.columns.len()).map(class).collect();
    // A caption inside the box would scroll away with the table, and be cut on a phone.
    page.prose("p", &[("class", "caption"), ("id", id)], &table.caption);
    page.open(
        "div",
        &[("class", "scroll"), ("role", "region"), ("aria-labelledby", id), ("tabindex", "0")],
    );
    page.open("table", &[("aria-labelledby", id)]);
    page.open("thead", &[]);
    page.open("tr", &[]);
    for (name, class) in table.columns.iter().zip(&classes) {
        page.prose("th", &[("scope", "col"), ("class", class)], name);
    }
    page.close();
    page.close();
    page.open("tbody", &[]);
    for row in &table.rows {
        page.open("tr", &[]);
        for (at, class) in classes.iter().enumerate() {
            let cell = row.get(at).map_or("", String::as_str);
            if at == 0 {
                page.prose("th", &[("scope", "row"), ("class", class)], cell);
            } else {
                page.prose("td", &[("class", class)], cell);
            }
        }
        page.close();
    }
    page.close();
    page.close();
    page.close();
}

/// A different anchor for each section. Those of the page itself are taken.
fn anchors(sections: &[Section]) -> Vec<String> {
    let mut taken: BTreeSet<String> = ["main", "contents"].map(str::to_owned).into();
    let free = |section: &Section| {
        let name = text::slug(&section.name);
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let anchor = std::iter::once(name.clone())
            .chain(numbered)
            .find(|anchor| taken.insert(anchor.clone()));
        anchor.unwrap_or(name)
    };
    sections.iter().map(free).collect()
}
