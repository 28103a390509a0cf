//! A document that names what there is not is refused, with the place and the nearest name.

use std::fmt::Write;

use syncscope_book::Source;

use super::probe::{DOCUMENT, project, results};
use super::*;

/// The message of the error that the document with a change gives; `change` is a part of it, and what stands there then.
fn refused(from: &str, to: &str) -> String {
    assert_eq!(DOCUMENT.matches(from).count(), 1, "`{from}` stands there once");
    let document = DOCUMENT.replace(from, to);
    let error = Source::of(&[results()], &project(&document), &catalog()).err();
    error.map_or_else(|| "it is accepted".to_owned(), |error| error.to_string())
}

/// Where `word` stands in the changed document, as `book/documents/probe.yaml:LINE:COLUMN`.
fn place(from: &str, to: &str, word: &str) -> String {
    let (document, start) = (DOCUMENT.replace(from, to), DOCUMENT.find(from).unwrap());
    let before = &document[..start + document[start..].find(word).unwrap()];
    let column = before.len() - before.rfind('\n').map_or(0, |newline| newline + 1) + 1;
    format!("book/documents/probe.yaml:{}:{column}: ", before.matches('\n').count() + 1)
}

/// What is changed (a part of the document that stands there once), what it is changed to, the word that is wrong then,
/// and the nearest that is right.
type Misspelt = (&'static str, &'static str, &'static str, &'static str);

const ROWS: &[Misspelt] = &[
    ("{id: probe.fast, published", "{id: probe.fats, published", "probe.fats", "probe.fast"),
    ("{id: probe.gain, published", "{id: probe.gian, published", "probe.gian", "probe.gain"),
    ("relative: {to: probe.fast", "relative: {to: probe.fats", "probe.fats", "probe.fast"),
    ("bars: [probe.slow]", "bars: [probe.slwo]", "probe.slwo", "probe.slow"),
    ("{id: probe.gain, select", "{id: probe.gian, select", "probe.gian", "probe.gain"),
    ("predicts: probe.gain", "predicts: probe.gian", "probe.gian", "probe.gain"),
    ("- {timeline: probe.slow}", "- {timeline: probe.slwo}", "probe.slwo", "probe.slow"),
    ("caption: as slow, timeline: probe.slow", "caption: as slow, timeline: probe.slwo", "probe.slwo", "probe.slow"),
    ("if: slow.fp16.size_8 >", "if: slwo.fp16.size_8 >", "slwo.fp16.size_8", "slow"),
    ("Slow, {{ slow.fp16", "Slow, {{ slwo.fp16", "slwo.fp16.size_8", "slow"),
    ("{{ (fast.fp16.size_8 /", "{{ (fats.fp16.size_8 /", "fats.fp16.size_8", "fast"),
    ("Fast, {{ fast.fp16", "Fast, {{ fats.fp16", "fats.fp16.size_8", "fast"),
    ("Open, {{ delta.fp16", "Open, {{ dleta.fp16", "dleta.fp16.size_8", "delta"),
    ("value: gain.fp16.size_8", "value: gian.fp16.size_8", "gian.fp16.size_8", "gain"),
    ("tests: [delta.fp16", "tests: [dleta.fp16", "dleta.fp16.size_64", "delta"),
    (
        "published.pairs.half.fast",
        "published.pairs.half.fats",
        "published.pairs.half.fats",
        "published.pairs.half.fast",
    ),
    ("Add {{ fast.fp32", "Add {{ fats.fp32", "fats.fp32.size_8", "fast"),
    ("is {{ slow.fp32", "is {{ slwo.fp32", "slwo.fp32.size_8", "slow"),
];

const PARAMETERS: &[Misspelt] = &[
    ("published_with: {size: 8}", "published_with: {sise: 8}", "sise", "size"),
    ("published_with: {dtype: fp16}", "published_with: {dtpye: fp16}", "dtpye", "dtype"),
    ("published_with: {dtype: fp16}", "published_with: {dtype: fp61}", "fp61", "fp16"),
    ("select: {dtype: fp16}}", "select: {dtpye: fp16}}", "dtpye", "dtype"),
    ("select: {dtype: fp16}}", "select: {dtype: fp61}}", "fp61", "fp16"),
    ("each: size", "each: szie", "szie", "size"),
    ("x: size", "x: szie", "szie", "size"),
    ("select: {dtype: fp32}}\n            -", "select: {dtpye: fp32}}\n            -", "dtpye", "dtype"),
    ("select: {dtype: fp32}}\n            -", "select: {dtype: fp23}}\n            -", "fp23", "fp32"),
    ("if: slow.fp16.size_8", "if: slow.fp61.size_8", "slow.fp61.size_8", "fp16"),
    ("if: slow.fp16.size_8", "if: slow.fp16.szie_8", "slow.fp16.szie_8", "size_8"),
    ("Slow, {{ slow.fp16", "Slow, {{ slow.fp61", "slow.fp61.size_8", "fp16"),
    ("Fast, {{ fast.fp16.size_8", "Fast, {{ fast.fp16.szie_8", "fast.fp16.szie_8", "size_8"),
    ("Open, {{ delta.fp16", "Open, {{ delta.fp61", "delta.fp61.size_8", "fp16"),
    ("value: gain.fp16.size_8", "value: gain.fp61.size_8", "gain.fp61.size_8", "fp16"),
    ("tests: [delta.fp16", "tests: [delta.fp61", "delta.fp61.size_64", "fp16"),
    ("Add {{ fast.fp32", "Add {{ fast.fp23", "fast.fp23.size_8", "fp32"),
    ("is {{ slow.fp32.size_8", "is {{ slow.fp32.szie_8", "slow.fp32.szie_8", "size_8"),
];

/// A text writes a value in its row's unit, or by a filter; no key of a document states a unit.
const UNITS: &[Misspelt] = &[
    ("slow.fp16.size_8)|percent }}", "slow.fp16.size_8)|precent }}", "precent", "percent"),
    ("form: times", "form: tiems", "tiems", "times"),
];

/// Tables, cases and peak rates.
const OTHERS: &[Misspelt] = &[
    ("- {table: pairs", "- {table: pirs", "pirs", "pairs"),
    ("- table: gains", "- table: gians", "gians", "gains"),
    ("published: {half: 28.00e-6}", "published: {hlaf: 28.00e-6}", "hlaf", "half"),
    ("published: {half: 0.5}", "published: {hlaf: 0.5}", "hlaf", "half"),
    ("published.pairs.half", "published.pirs.half", "published.pirs.half.fast", "published.pairs.half.fast"),
    ("published.pairs.half", "published.pairs.hlaf", "published.pairs.hlaf.fast", "published.pairs.half.fast"),
    ("peak.h100.fp16", "peak.h010.fp16", "peak.h010.fp16", "peak.h100.fp16"),
    ("peak.h100.fp16", "peak.h100.pf16", "peak.h100.pf16", "peak.h100.fp16"),
];

#[test]
fn the_document_of_these_tests_is_right_as_it_stands() {
    assert!(Source::of(&[results()], &project(DOCUMENT), &catalog()).is_ok());
}

#[test]
fn a_misspelt_name_is_refused_with_its_place_and_the_nearest_wherever_it_stands() {
    let mut wrong = String::new();
    for (from, to, word, right) in [ROWS, PARAMETERS, UNITS, OTHERS].concat() {
        let error = refused(from, to);
        let (start, end) = (place(from, to, word), format!("; did you mean `{right}`?"));
        if !(error.starts_with(&start) && error.contains(word) && error.ends_with(&end)) {
            write!(wrong, "\n{to}\n  expected {start}…{end}\n  found    {error}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn a_unit_in_a_document_is_refused_where_it_stands() {
    for (from, to) in [
        ("{id: probe.fast, published", "{id: probe.fast, unit: seconds, published"),
        ("    title: Pairs\n", "    title: Pairs\n    unit: seconds\n"),
        ("gpu: Printed GPU\n", "gpu: Printed GPU\nunit: seconds\n"),
    ] {
        let error = refused(from, to);
        assert!(error.starts_with(&place(from, to, "unit")), "{error}");
        assert!(error.contains("unknown field `unit`"), "{error}");
    }
}

/// A name that is right in an earlier place and wrong in a later one.
#[test]
fn the_place_is_that_of_the_wrong_use_of_a_name() {
    for (from, to, word, what) in [
        (
            "bars: [probe.slow]",
            "bars: [probe.gain]",
            "probe.gain",
            "draws `probe.gain`, which table `pairs` does not hold",
        ),
        ("{to: probe.fast", "{to: probe.gain", "probe.gain", "relative to `probe.gain`, which its table does not hold"),
        (
            "{id: probe.gain, published_with: { dtype: fp16 }}\nfig",
            "{id: probe.fast}\nfig",
            "probe.fast",
            "row `probe.fast` is named twice",
        ),
        ("id: c-printed", "id: c-slow", "c-slow", "claim `c-slow` has the name of another table, figure or claim"),
        ("id: gains", "id: pairs", "pairs", "table `pairs` has the name of another table, figure or claim"),
        ("published: {half: 0.5}", "published: {size: 0.5}", "size", "has a figure for `size`"),
        ("x: size", "x: dtype", "dtype", "draws lines over `dtype`, whose values are no numbers"),
        ("id: drawn-lines", "id: pairs", "pairs", "figure `pairs` has the name of another table, figure or claim"),
        (
            "id: drawn-lines",
            "id: drawn-bars",
            "drawn-bars",
            "figure `drawn-bars` has the name of another table, figure or claim",
        ),
    ] {
        let error = refused(from, to);
        let start = place(from, to, word);
        assert!(error.starts_with(&start) && error.contains(what), "{error}\n{start}…{what}");
    }
}

/// Without its first part the name would be that of another row.
#[test]
fn a_name_whose_first_part_is_misspelt_is_refused_with_the_nearest() {
    let project = carried_book();
    let text = project.text("documents/idle-device.yaml").unwrap().replace("if: stream.delta", "if: strem.delta");
    let error = Document::parse("d.yaml", &text, &project.names(&catalog()).unwrap()).unwrap_err().to_string();
    assert!(error.starts_with("d.yaml:10:9: `strem.delta`"), "{error}");
    assert!(error.ends_with("did you mean `stream.delta`?"), "{error}");
}

/// Every document that comes with the program: each row that it names, misspelt.
#[test]
fn a_misspelt_row_of_any_document_is_refused() {
    let project = carried_book();
    let names = project.names(&catalog()).unwrap();
    for document in documents() {
        let text = project.text(&format!("documents/{}.yaml", document.id)).unwrap();
        for id in document.tables.iter().flat_map(|table| &table.rows).map(|row| &row.id) {
            let whole = |at: &usize| text[at + 4 + id.len()..].starts_with(['}', ',', '\n']);
            let at = text.match_indices(&format!("id: {id}")).map(|(at, _)| at).find(whole).unwrap() + "id: ".len();
            let misspelt = format!("{}zz{}", &text[..at + id.len()], &text[at + id.len()..]);
            let error = Document::parse("d.yaml", &misspelt, &names).unwrap_err().to_string();
            let line = text[..at].matches('\n').count() + 1;
            assert!(error.starts_with(&format!("d.yaml:{line}:")) && error.contains(&format!("`{id}zz`")), "{error}");
            assert!(error.contains("did you mean"), "{error}");
        }
    }
}

#[test]
fn a_test_that_can_never_have_a_value_is_refused_whatever_is_measured() {
    let right = "if: slow.fp16.size_8 >";
    for wrong in ["[0]", "()", "|abs(1, 2)", " + none", " ~ 1", "|string", "|batch(10000000000)"] {
        let message = refused(right, &format!("if: slow.fp16.size_8{wrong} >"));
        assert!(message.starts_with("book/documents/probe.yaml:"), "{wrong}: {message}");
    }
}

#[test]
fn a_test_of_any_length_is_refused_and_overflows_no_stack() {
    let right = "if: slow.fp16.size_8 >";
    for link in [" + 1", "|abs", ".x", " ** 1"] {
        let message = refused(right, &format!("if: slow.fp16.size_8{} >", link.repeat(50_000)));
        assert!(message.contains("longer than"), "{link}: {message}");
    }
}

#[test]
fn a_condition_without_a_bound_is_refused_where_it_stands() {
    let message = refused("if: slow.fp16.size_8 > 2 * fast.fp16.size_8", "if: slow.fp16.size_8 + fast.fp16.size_8");
    assert!(message.starts_with("book/documents/probe.yaml:") && message.contains("has no bound"), "{message}");
}
