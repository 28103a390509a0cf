//! What is refused in a document.

mod shown;

use std::sync::Arc;

use super::super::{Names, Texts};
use super::*;
use crate::measure::Clock;
use crate::results::{Catalog, MetricSpec, Parameter, Provenance};
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
        files: Arc::new(["listing.rs", "other.rs", "listing.txt"].map(str::to_owned).into()),
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
fn below_each_head_of_the_advice_stands_a_value_that_there_is() {
    let advice = |choice: &str, values: &str| {
        let row = format!("{{case: N, choose: {{if: '{choice}', then: T, else: E, unclear: U}}, values: {values}}}");
        format!("advice: {{title: A, caption: C, columns: [case, choice, value], rows: [{row}]}}\n")
    };
    assert!(parse(&format!("{HEAD}{}", advice("a > 1e-6", "['{{ a }}']"))).is_ok());
    for (choice, values, says) in [
        ("a > 1e-6", "[]", "d.yaml:14:145: a case, its advice and 0 values stand below 3 heads"),
        ("a > 1e-6", "['{{ aa }}']", "`aa` names no measurement; did you mean `a`?"),
        ("aa > 1e-6", "['{{ a }}']", "`aa` names no measurement; did you mean `a`?"),
        ("a", "['{{ a }}']", "`a` has no bound"),
        ("a > 1e-6", "['{{ (a / b)|interval }}']", "`(a / b)` is no name alone: `interval` is of one"),
        ("a > 1e-6", "['{{ (a + b)|trials }}']", "`(a + b)` is no name alone: `trials` is of one"),
        ("a > 1e-6", "['{{ (seen.count / a)|share }}']", "`(seen.count / a)` is no share of counts"),
        ("a > 1e-6", "['{{ seen.count|share }}']", "`seen.count` is no share of counts"),
    ] {
        let message = error(&advice(choice, values));
        assert!(message.contains(says), "{message}");
    }
}

#[test]
fn an_unknown_field_is_reported_with_its_line() {
    let message = error("      - {id: d.b, publisched: {}}\n");
    assert!(message.starts_with("d.yaml:14:") && message.contains("publisched"), "{message}");
}

#[test]
fn a_misspelt_file_of_a_text_is_refused_and_an_unknown_one_is_cited() {
    let of = |file: &str| HEAD.replacen("source: f.txt", &format!("source: {file}"), 1);
    let named = names().texts.files().next().unwrap().to_owned();
    let misspelt = of(&named.replacen('.', "_.", 1));
    let message = parse(&misspelt).unwrap_err().to_string();
    assert!(message.contains("no text in the file") && message.contains(&format!("`{named}`")), "{message}");
    assert!(parse(&of("own-lecture-notes.pdf")).is_ok() && parse(&of(&named)).is_ok());
}

#[test]
fn two_documents_share_neither_identifier_nor_order() {
    let files = |second: &str| {
        let files = [("a.yaml".to_owned(), HEAD.as_bytes()), ("b.yaml".to_owned(), second.as_bytes())];
        Document::all(files.into_iter(), &names()).map(|all| all.len()).map_err(|error| error.to_string())
    };
    let other = HEAD.replacen("id: d\n", "id: other\n", 1);
    assert_eq!(files(HEAD), Err("b.yaml:1:5: another file has the document `d`, too".to_owned()));
    assert_eq!(files(&other), Err("b.yaml:2:8: the document `d` has the order 1, too".to_owned()));
    assert_eq!(files(&other.replacen("order: 1", "order: 2", 1)), Ok(2));
}

#[test]
fn a_listing_that_there_is_not_has_its_place_and_the_nearest_file() {
    let message = error("listings: [listing.rs, lisitng.rs]\n");
    assert_eq!(message, "d.yaml:14:24: the book has no file `lisitng.rs` in `src`; did you mean `listing.rs`?");
    let message = error("listings: [listing.rs, other.rs]\n");
    assert_eq!(message, "d.yaml:14:24: another listing is in Rust, too");
    let message = error("listings: [listing.txt]\n");
    assert!(
        message.starts_with("d.yaml:14:12: `listing.txt` does not end with the ending of a language: "),
        "{message}"
    );
    assert!(parse(&format!("{HEAD}listings: [listing.rs]\n")).is_ok());
}

#[test]
fn a_parameter_that_is_no_number_and_no_name_is_refused_with_its_place() {
    for (value, found) in [("true", "`true`"), ("~", "nothing"), ("[8]", "a list")] {
        let text = HEAD.replace("id: d.a,", &format!("id: d.a, published_with: {{size: {value}}},"));
        let message = parse(&text).unwrap_err().to_string();
        let column = 7 + text.lines().nth(12).unwrap().find("size: ").unwrap();
        assert!(message.starts_with(&format!("d.yaml:13:{column}: tables[0].rows[0].published_with")), "{message}");
        assert!(message.contains(&format!("found {found}, expected a number or a name")), "{message}");
    }
    let text = HEAD.replace("id: d.a,", "id: d.a, published_with: {size: 99},");
    let message = parse(&text).unwrap_err().to_string();
    assert_eq!(message, "d.yaml:13:42: row `d.a` does not have a `size` that is `99`; the only value is 8");
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
    let answer = |name: &str| format!("answer: [{{if: {name} > 0, then: T, else: E, unclear: '{{{{ {name} }}}}'}}]\n");
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
    let read = crate::tests::project().documents(&crate::tests::catalog());
    assert!(read.is_ok(), "{}", read.unwrap_err());
}
