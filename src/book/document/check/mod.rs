//! What the shape of a document file cannot say: that names are unique, and that every name stands for something.

mod claim;
mod figure;
mod lesson;
mod sentence;
mod single;

use std::collections::BTreeSet;

use super::super::predicate::UnknownName;
use super::{Document, DocumentRow, DocumentTable, TableCase, is_taken};
use crate::error::FileError;
use crate::results::{UnknownParameter, nearest};
use crate::yaml::Way;

/// Finds the first contradiction in a document.
pub(super) fn check(document: &Document, origin: &str, text: &str) -> Result<(), FileError> {
    let source = Source { origin, text };
    let top = Way::default();
    if !is_name(&document.id) {
        return Err(source.no_name(&top.key("id"), &document.id));
    }
    if is_taken(&document.id, &document.names.pages) {
        let message = format!("the book has a page `{}` of its own: a chapter takes another name", document.id);
        return Err(source.error(&top.key("id"), message, String::new()));
    }
    check_source(document, &source)?;
    check_anchors(document, &source)?;
    let mut rows = BTreeSet::new();
    for (place, table) in document.tables.iter().enumerate() {
        let way = top.key("tables").item(place);
        check_rows(document, table, &way, &mut rows, &source)?;
        check_cases(document, table, &way, &source)?;
        if let Some((place, several)) = single::in_table(document, table) {
            let hint = "; name a parameter, by `select`, `cases`, `each` or `published_with`".to_owned();
            return Err(source.error(&way.key("rows").item(place).key("id"), several, hint));
        }
    }
    figure::check(document, &source)?;
    claim::check(document, &source)?;
    sentence::check(document, &source)?;
    lesson::check(document, &source)
}

/// A text that the project does not name is cited by its file; one that is nearly named is a mistake.
fn check_source(document: &Document, source: &Source<'_>) -> Result<(), FileError> {
    let Some(file) = document.source.as_deref() else { return Ok(()) };
    let texts = &document.names.texts;
    let hint = nearest(file, texts.files());
    if texts.of_file(file).is_some() || hint.is_empty() {
        return Ok(());
    }
    Err(source.error(&Way::default().key("source"), format!("the project has no text in the file `{file}`"), hint))
}

/// Tables, figures and claims are anchors of one page: each identifier is a name, and there once.
fn check_anchors(document: &Document, source: &Source<'_>) -> Result<(), FileError> {
    let tables = document.tables.iter().map(|table| table.id.as_str()).enumerate();
    let figures = document.figures.iter().map(|figure| figure.id.as_str()).enumerate();
    let claims = document.claims.iter().map(|claim| claim.id.as_str()).enumerate();
    let all = tables.map(|own| ("table", own)).chain(figures.map(|own| ("figure", own)));
    let mut taken = BTreeSet::new();
    for (what, (place, id)) in all.chain(claims.map(|own| ("claim", own))) {
        let way = Way::default().key(&format!("{what}s")).item(place).key("id");
        if !is_name(id) {
            return Err(source.no_name(&way, id));
        }
        if !taken.insert(id) {
            let message = format!("{what} `{id}` has the name of another table, figure or claim");
            return Err(source.error(&way, message, String::new()));
        }
    }
    Ok(())
}

/// Every row is one that there is, once, set against rows of its table and with parameters of its own.
fn check_rows<'a>(
    document: &Document,
    table: &'a DocumentTable,
    way: &Way,
    rows: &mut BTreeSet<&'a str>,
    source: &Source<'_>,
) -> Result<(), FileError> {
    let known = &document.names.rows;
    for (place, row) in table.rows.iter().enumerate() {
        let way = way.key("rows").item(place);
        if !rows.insert(&row.id) {
            return Err(source.error(&way.key("id"), format!("row `{}` is named twice", row.id), String::new()));
        }
        if known.get(&row.id).is_none() {
            let message = format!("no experiment has a row `{}`", row.id);
            return Err(source.error(&way.key("id"), message, nearest(&row.id, known.ids())));
        }
        for (key, parameters) in [("published_with", &row.published_with), ("select", &row.select)] {
            if let Some(unknown) = known.unknown_parameter(&[&row.id], parameters) {
                let whose = format!("row `{}` does not have", row.id);
                return Err(source.parameter(&way.key(key), &whose, unknown));
            }
        }
        if let Some(relative) = row.relative.as_ref().filter(|relative| table.row(&relative.to).is_none()) {
            let message = format!("row `{}` is relative to `{}`, which its table does not hold", row.id, relative.to);
            let hint = nearest(&relative.to, table.rows.iter().map(|row| row.id.as_str()));
            return Err(source.error(&way.key("relative").key("to"), message, hint));
        }
        check_published(table, row, &way, source)?;
    }
    Ok(())
}

/// Every figure of a row is one for a case of its table.
fn check_published(table: &DocumentTable, row: &DocumentRow, way: &Way, source: &Source<'_>) -> Result<(), FileError> {
    let mut known: BTreeSet<&str> = table.cases.iter().map(|case| case.label.as_str()).collect();
    if table.cases.is_empty() && table.each.is_none() {
        known.insert(TableCase::ALL);
    }
    let own = (way.key("published"), &row.published);
    let relative = row.relative.iter().map(|relative| (way.key("relative").key("published"), &relative.published));
    for (way, published) in std::iter::once(own).chain(relative) {
        let Some(case) = published.keys().find(|case| !known.contains(case.as_str())) else { continue };
        let hint = nearest(case, known.iter().copied());
        let cases = match &table.each {
            Some(each) => format!("each value of `{each}` is a case"),
            None => format!("its cases are {}", known.into_iter().collect::<Vec<_>>().join(", ")),
        };
        let message = format!("row `{}` has a figure for `{case}`; {cases}", row.id);
        return Err(source.error(&way.name(case), message, hint));
    }
    Ok(())
}

/// The cases of a table, and the parameters with which the document measured: each is one that its rows have.
fn check_cases(document: &Document, table: &DocumentTable, way: &Way, source: &Source<'_>) -> Result<(), FileError> {
    if table.each.is_some() && !table.cases.is_empty() {
        let message =
            format!("table `{}` has `cases` and `each`: the cases are named, or taken from the results", table.id);
        return Err(source.error(&way.name("each"), message, String::new()));
    }
    let ids: Vec<&str> = table.rows.iter().map(|row| row.id.as_str()).collect();
    let known = &document.names.rows;
    let whose = format!("no row of table `{}` has", table.id);
    let selects = table.cases.iter().enumerate().map(|(place, case)| (case_way(way, place), &case.select));
    for (way, parameters) in std::iter::once((way.key("published_with"), &table.published_with)).chain(selects) {
        if let Some(unknown) = known.unknown_parameter(&ids, parameters) {
            return Err(source.parameter(&way, &whose, unknown));
        }
    }
    for (place, case) in table.cases.iter().enumerate() {
        if !ids.iter().any(|id| known.unknown_parameter(&[id], &case.select).is_none()) {
            let message = format!("{whose} all parameters of the case `{}`", case.label);
            return Err(source.error(&case_way(way, place), message, String::new()));
        }
    }
    let each: Option<&String> = table.each.as_ref();
    let parameters = known.parameters(&ids);
    if let Some(each) = each.filter(|each| !parameters.contains_key(each.as_str())) {
        let hint = nearest(each, parameters.keys().copied());
        return Err(source.error(&way.key("each"), format!("{whose} a parameter `{each}`"), hint));
    }
    Ok(())
}

fn case_way(table: &Way, place: usize) -> Way {
    table.key("cases").item(place).key("select")
}

/// Whether `id` can be the name of a file and an anchor.
fn is_name(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// The text that a document was read from, to say where in it something is wrong.
struct Source<'a> {
    origin: &'a str,
    text: &'a str,
}

impl Source<'_> {
    /// What is wrong at the end of a way.
    fn error(&self, way: &Way, message: String, hint: String) -> FileError {
        let (line, column) = way.place(self.text).unwrap_or((0, 0));
        FileError::Invalid { origin: self.origin.to_owned(), line, column, message, hint }
    }

    fn no_name(&self, way: &Way, id: &str) -> FileError {
        let message = format!("`{id}` is no identifier: lower-case letters, digits and hyphens");
        self.error(way, message, String::new())
    }

    /// A parameter, of those at the end of a way, that is unknown.
    fn parameter(&self, way: &Way, whose: &str, unknown: UnknownParameter) -> FileError {
        let UnknownParameter { name, value, hint } = unknown;
        match value {
            Some(value) => self.error(&way.key(&name), format!("{whose} a `{name}` that is `{value}`"), hint),
            None => self.error(&way.name(&name), format!("{whose} a parameter `{name}`"), hint),
        }
    }

    /// A name that stands for nothing, in the text at the end of a way.
    fn unknown(&self, way: &Way, before: &str, unknown: UnknownName) -> FileError {
        let error = self.error(way, format!("{before}{}", unknown.message), unknown.hint);
        match (error, unknown.name) {
            (FileError::Invalid { origin, line, column, message, hint }, Some(name)) => {
                let (line, column) = self.word(&name, (line, column)).unwrap_or((line, column));
                FileError::Invalid { origin, line, column, message, hint }
            }
            (error, _) => error,
        }
    }

    /// Where `name` stands as a whole word, from a place on.
    fn word(&self, name: &str, (line, column): (usize, usize)) -> Option<(usize, usize)> {
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_');
        let lines = self.text.lines().enumerate().skip(line.checked_sub(1)?);
        for (place, text) in lines {
            let from = if place + 1 == line { text.char_indices().nth(column - 1).map_or(0, |(at, _)| at) } else { 0 };
            let whole = |at: &usize| {
                let (before, after) = (&text[..*at], &text[at + name.len()..]);
                !before.ends_with(is_part) && !after.starts_with(is_part)
            };
            if let Some(at) = text[from..].match_indices(name).map(|(at, _)| at + from).find(whole) {
                return Some((place + 1, text[..at].chars().count() + 1));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::{Names, Texts};
    use super::*;
    use crate::measure::Clock;
    use crate::results::{Catalog, MetricSpec, Parameter, Provenance, Results};
    use crate::units::Unit;

    const TEXTS: &str = "'003': {file: f.txt, title: T, lines: 9}";

    pub(super) const HEAD: &str = "\
id: d
order: 1
title: T
source: f.txt
question: Q
method: M
tables:
  - id: t
    title: T
    caption: C
    cases: [{label: fp16, select: {dtype: fp16}}]
    rows:
      - {id: d.a, published: {fp16: 14.0e-6}}
";

    /// Rows `d.a` and `d.b`, of times, `d.share`, of shares, and `d.seen`, which was observed, all of one element type and
    /// one size.
    fn names() -> Names {
        let row = |id: &str, unit| {
            let pairs = [("dtype", Parameter::from("fp16")), ("size", Parameter::from(8_usize))];
            let parameters = pairs.map(|(name, value)| (name.to_owned(), value)).into();
            let (id, group, label) = (id.to_owned(), "G".to_owned(), "Label of the row".to_owned());
            let provenance = Provenance::measured(Clock::Host);
            MetricSpec { id, group, label, unit, parameters, provenance, work: None, floor: None }
        };
        let mut seen = row("d.seen", Unit::Ratio);
        seen.provenance = Provenance::measured(Clock::Observed);
        let rows = [row("d.a", Unit::Seconds), row("d.b", Unit::Seconds), row("d.share", Unit::Ratio), seen];
        let texts = Arc::new(Texts::parse("texts.yaml", TEXTS).unwrap());
        Names {
            rows: Arc::new(Catalog::new(rows)),
            hardware: Arc::default(),
            texts,
            chapters: Arc::new(["overlap".to_owned()].into()),
            pages: Arc::new(["glossary".to_owned()].into()),
        }
    }

    pub(super) fn parse(text: &str) -> Result<Document, FileError> {
        Document::parse("d.yaml", text, &names())
    }

    pub(super) fn error(tail: &str) -> String {
        parse(&format!("{HEAD}{tail}")).unwrap_err().to_string()
    }

    #[test]
    fn a_whole_document_is_read() {
        let row = &parse(HEAD).unwrap().tables[0].rows[0];
        assert_eq!(row.published["fp16"].as_ref().unwrap().digits, 3);
        assert_eq!((row.label.as_str(), row.unit), ("Label of the row", Unit::Seconds));
        let own = parse(&HEAD.replace("id: d.a,", "id: d.a, label: own word,")).unwrap();
        assert_eq!(own.tables[0].rows[0].label, "own word");
    }

    #[test]
    fn a_row_named_twice_is_reported_at_its_second_line() {
        assert_eq!(error("      - {id: d.a}\n"), "d.yaml:14:14: row `d.a` is named twice");
    }

    #[test]
    fn a_figure_for_an_unknown_case_names_the_known_ones() {
        let message = error("      - {id: d.b, published: {fp61: 1}}\n");
        assert_eq!(
            message,
            "d.yaml:14:31: row `d.b` has a figure for `fp61`; its cases are fp16; did you mean `fp16`?"
        );
    }

    #[test]
    fn an_unknown_field_is_reported_with_its_line() {
        let message = error("      - {id: d.b, publisched: {}}\n");
        assert!(message.starts_with("d.yaml:14:") && message.contains("publisched"), "{message}");
    }

    #[test]
    fn a_text_whose_file_is_misspelt_is_refused_and_one_that_nobody_names_is_cited_by_its_file() {
        let of = |file: &str| HEAD.replacen("source: f.txt", &format!("source: {file}"), 1);
        let named = names().texts.files().next().unwrap().to_owned();
        let misspelt = of(&named.replacen('.', "_.", 1));
        let message = parse(&misspelt).unwrap_err().to_string();
        assert!(message.contains("no text in the file") && message.contains(&format!("`{named}`")), "{message}");
        assert!(parse(&of("own-lecture-notes.pdf")).is_ok() && parse(&of(&named)).is_ok());
    }

    #[test]
    fn an_identifier_that_is_a_page_of_the_book_is_refused() {
        for page in ["index", "readme", "toc", "claims", "glossary"] {
            let text = HEAD.replacen("id: d\n", &format!("id: {page}\n"), 1);
            let message = parse(&text).unwrap_err().to_string();
            assert!(message.starts_with("d.yaml:1:5: the book has a page"), "{message}");
        }
    }

    #[test]
    fn an_identifier_that_could_leave_its_folder_is_refused() {
        let text = HEAD.replacen("id: d\n", "id: ../d\n", 1);
        let message = parse(&text).unwrap_err().to_string();
        assert!(message.starts_with("d.yaml:1:5: `../d` is no identifier"), "{message}");
    }

    /// Names with a second size of the row `d.a`, which one file holds.
    pub(super) fn two_sizes() -> Names {
        let mut names = names();
        let mut second = names.rows.get("d.a").unwrap().clone();
        second.parameters.insert("size".to_owned(), Parameter::from(16_usize));
        let all: Vec<MetricSpec> = names.rows.specs().iter().cloned().chain([second]).collect();
        names.rows = Arc::new(Catalog::default().with_together(all));
        names
    }

    #[test]
    fn a_name_that_fits_several_rows_is_refused_where_it_stands_unless_it_says_which() {
        let answer =
            |name: &str| format!("answer: [{{if: {name} > 0, then: T, else: E, unclear: '{{{{ {name} }}}}'}}]\n");
        let headline = |name: &str| format!("headline: {{value: {name} / b, form: times, caption: C}}\n");
        let exercise = |name: &str| format!("exercises: [{{task: T, answer: 'It is {{{{ {name} }}}}.'}}]\n");
        let claim = |name: &str| {
            format!("claims: [{{id: c, claim: C, rationale: R, kind: always, on: cuda, tests: [{name} > 0]}}]\n")
        };
        let each = |name: &str| claim(name).replace("on: cuda", "on: cuda, each: size");
        let head = HEAD.replace("{id: d.a,", "{id: d.a, select: {size: 8},");
        let parsed = |tail: String| Document::parse("d.yaml", &format!("{head}{tail}"), &two_sizes());
        for tail in [answer, headline, exercise, claim] {
            let text = tail("fp16.a");
            let column = text.find("fp16.a").unwrap() + 1;
            let message = parsed(text).unwrap_err().to_string();
            assert!(message.starts_with(&format!("d.yaml:14:{column}: ")), "{message}");
            assert!(message.contains("`fp16.a` fits several rows") && message.contains("fp16.a.max"), "{message}");
            for one in ["fp16.a.max", "a.min", "a.size_8", "a.size_16"] {
                assert!(parsed(tail(one)).is_ok(), "{one}");
            }
        }
        assert!(parsed(each("a")).is_ok());
    }

    #[test]
    fn every_name_of_the_own_documents_stands_for_one_row_of_each_kept_file() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("book/results");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let files = files.filter(|path| path.extension().is_some_and(|ending| ending == "json"));
        let kept: Vec<Results> = files.map(|path| Results::read(&path).unwrap()).collect();
        assert!(!kept.is_empty());
        let together = |catalog: Catalog, (results, system): (&Results, &str)| {
            catalog.with_together(results.lookup_of(system).specs().cloned())
        };
        let systems = kept.iter().flat_map(|results| results.systems().into_iter().map(move |own| (results, own)));
        let catalog = systems.fold(crate::experiment::Registry::builtin().catalog("cuda"), together);
        let read = crate::book::BookProject::embedded().documents(&catalog);
        assert!(read.is_ok(), "{}", read.unwrap_err());
    }

    #[test]
    fn a_plot_of_a_row_that_there_is_not_is_refused() {
        let tail = "figures: [{id: f, title: F, caption: C, panels: [{table: t, bars: [d.z]}]}]\n";
        assert!(error(tail).contains("figure `f` draws `d.z`, which table `t` does not hold"));
    }
    #[test]
    fn rows_of_different_units_share_no_axis() {
        let tail = "      - {id: d.share}\n\
                    figures: [{id: f, title: F, caption: C, panels: [{table: t, bars: [d.a, d.share]}]}]\n";
        assert!(error(tail).contains("figure `f` draws rows of table `t` whose units differ"));
    }

    #[test]
    fn a_panel_with_a_timeline_holds_nothing_else() {
        let figure = |panel: &str| format!("figures: [{{id: f, title: F, caption: C, panels: [{{{panel}}}]}}]\n");
        let message = error(&figure("timeline: d.a, table: t, bars: [d.a]"));
        assert!(message.contains("the timeline `d.a` and something else"), "{message}");
    }

    #[test]
    fn a_matrix_is_alone_and_of_shares_by_parameters_that_they_have() {
        let rest = "rows: [], across: held, columns: [], legend: [a, b, c]";
        let error_of = |id: &str, beside: &str| {
            let panel = format!("{{matrix: {{id: {id}, {rest}}}{beside}}}");
            error(&format!("figures: [{{id: f, title: F, caption: C, panels: [{panel}]}}]\n"))
        };
        for (id, beside, says) in [
            ("d.a", "", "figure `f` draws `d.a`, which is no share of yes, as a matrix"),
            ("d.z", "", "figure `f` draws `d.z`, which no experiment has"),
            ("d.share", "", "figure `f` names `held`, which is no parameter of `d.share`"),
            ("d.share", ", table: t, bars: [d.a]", "figure `f` draws the matrix of `d.share` and something else"),
        ] {
            let message = error_of(id, beside);
            assert!(message.contains(says), "{message}");
        }
    }

    #[test]
    fn a_panel_is_bars_or_lines() {
        let tail = "figures: [{id: f, title: F, caption: C, panels: [{table: t}]}]\n";
        assert!(error(tail).contains("neither as bars nor as lines"));
    }

    #[test]
    fn cases_are_named_or_taken_from_the_runs() {
        let text = HEAD.replace("    cases:", "    each: size\n    cases:");
        let message = parse(&text).unwrap_err().to_string();
        assert!(message.contains("table `t` has `cases` and `each`"), "{message}");
    }

    #[test]
    fn a_misspelt_row_unit_or_parameter_has_its_place_and_the_nearest_name() {
        let row = parse(&HEAD.replace("d.a,", "d.aa,")).unwrap_err().to_string();
        assert_eq!(row, "d.yaml:13:14: no experiment has a row `d.aa`; did you mean `d.a`?");
        let unit = parse(&HEAD.replace("id: d.a,", "id: d.a, unit: seconds,")).unwrap_err().to_string();
        assert!(unit.starts_with("d.yaml:13:") && unit.contains("unknown field `unit`"), "{unit}");
        let parameter = parse(&HEAD.replace("{dtype: fp16}", "{dtyp: fp16}")).unwrap_err().to_string();
        assert_eq!(parameter, "d.yaml:11:36: no row of table `t` has a parameter `dtyp`; did you mean `dtype`?");
        let value = parse(&HEAD.replace("{dtype: fp16}", "{dtype: fp17}")).unwrap_err().to_string();
        assert!(value.starts_with("d.yaml:11:43:") && value.ends_with("did you mean `fp16`?"), "{value}");
    }
}
