//! Reading and writing results files.

use super::super::expression::FormulaOperand;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::super::row::{Derivation, MetricSpec, Outcome, Parameter, Provenance, Row, Series};
use super::super::run::{Piece, Run};
use super::*;
use crate::Work;
use crate::measure::{Clock, StoppedBy};
use crate::units::Unit;

/// The first run of a kept file.
fn kept() -> (String, Results) {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("book/results/two-gpus.json.gz");
    let mut results = Results::read(&path).unwrap();
    results.runs.truncate(1);
    let run = results.run().id.clone();
    results.rows.iter_mut().for_each(|row| row.series.retain(|series| series.run == run));
    results.rows.retain(|row| !row.series.is_empty());
    results.timelines.clear();
    (text(&results), results)
}

fn text(results: &Results) -> String {
    String::from_utf8(results.to_content(Path::new("r.json")).unwrap()).unwrap()
}

#[test]
fn a_version_that_is_not_read_is_named_with_the_one_that_is() {
    let refused = |text: &str| Results::parse(text, Path::new("r.json")).unwrap_err().to_string();
    for found in [1, 999] {
        let error = refused(&format!("{{ \"schema_version\": {found} }}"));
        assert!(error.contains(&format!("has the schema version {found}")) && error.contains("reads 2"), "{error}");
    }
    // Whatever stands there is not held in memory.
    let error = refused(r#"{ "schema_version": [0, 0, 0] }"#);
    assert!(error.starts_with("r.json:1:"), "{error}");
}

#[test]
fn a_packed_file_is_read_as_the_plain_one_and_written_where_the_name_says_so() {
    let (text, results) = kept();
    let packed = results.to_content(Path::new("r.json.gz")).unwrap();
    assert!(packed.len() < text.len() / 4 && packed == results.to_content(Path::new("s.json.gz")).unwrap());
    assert_eq!(Results::of_content(&packed, Path::new("r.json.gz")).unwrap(), results);
    assert_eq!(Results::of_content(text.as_bytes(), Path::new("r.json")).unwrap(), results);
}

#[test]
fn a_file_is_read_as_it_was_written() {
    let (text, results) = kept();
    assert!(text.contains("samples_sha256") && Results::parse(&text, Path::new("r.json")).unwrap() == results);
}

#[test]
fn pieces_behind_a_file_are_read_and_a_part_of_the_last_one_is_left_out() {
    let (text, mut results) = kept();
    let run = Run { id: "syncscope-2".to_owned(), ..results.run().clone() };
    let mut row = results.rows[0].clone();
    row.series[0].run.clone_from(&run.id);
    let first = Piece { run: run.clone(), rows: vec![row.clone()], timelines: Vec::new() };
    row.series[0].outcome = Outcome::Interrupted;
    let second = Piece { run: Run { telemetry: Vec::new(), ..run }, rows: vec![row], timelines: Vec::new() };
    let lines = [&first, &second].map(|piece| piece.to_line().unwrap());
    assert!(lines.concat().is_ascii() && lines.iter().all(|line| line.lines().count() == 1));
    let parsed = |text: String| Results::parse(&text, Path::new("r.json")).unwrap();
    results.add(first);
    assert!(parsed(text.clone() + &lines[0]) == results);
    for end in [1, lines[1].len() / 2, lines[1].len() - 1] {
        assert!(parsed(text.clone() + &lines[0] + &lines[1][..end]) == results, "{end}");
    }
    results.add(second);
    assert!(parsed(text + &lines[0] + &lines[1]) == results);
    assert_eq!(results.rows[0].outcome("syncscope-2"), Some(&Outcome::Interrupted));
    assert_eq!(results.runs[1].telemetry, results.runs[0].telemetry, "what the sensors said is added to");
}

#[test]
fn a_plan_of_no_runs_no_time_and_a_timeline_of_no_row_are_refused() {
    let (text, _) = kept();
    let whole: serde_json::Value = serde_json::from_str(&text).unwrap();
    let nothing = serde_json::json!({ "device": "cpu:0", "source": "", "tracks": [], "spans": [], "dropped": 0,
        "region_ns": 0 });
    let timelines = |name: &str| {
        serde_json::json!([{ "name": name, "run": "syncscope-1", "parameters": {},
        "recorded": { "timeline": nothing } }])
    };
    let id = whole["rows"][0]["spec"]["id"].as_str().unwrap();
    for (place, value, says) in [
        ("/plan", serde_json::json!({ "runs": 0 }), Some("its plan is of 0 runs")),
        ("/runs/0/started", "yesterday".into(), Some("the run `syncscope-1` began at `yesterday`, which is no time")),
        ("/runs", vec![whole["runs"][0].clone(); 10_001].into(), Some("it holds 10001 runs, and 10000 are the most")),
        (
            "/runs/0/environment/device/facts",
            vec![serde_json::json!(["a", "b"]); 10_001].into(),
            Some("facts of its environment, and 10000 are the most"),
        ),
        ("/runs/0/started", "2026-13-01T00:00:00Z".into(), Some("which is no time")),
        ("/runs/0/order/0/duration", (-1.0).into(), Some("the run `syncscope-1` took -1 s for `")),
        ("/timelines", timelines("nothing.at.all"), Some("a timeline of `nothing.at.all`, and no row of this name")),
        ("/timelines", timelines(id), None),
    ] {
        let mut altered = whole.clone();
        altered.as_object_mut().unwrap().entry("timelines").or_insert_with(|| serde_json::json!([]));
        *altered.pointer_mut(place).unwrap_or_else(|| panic!("{place}")) = value;
        let error = Results::parse(&altered.to_string(), Path::new("r.json")).err().map(|error| error.to_string());
        match (says, &error) {
            (Some(says), Some(error)) => assert!(error.starts_with("r.json: ") && error.contains(says), "{error}"),
            (says, error) => assert_eq!((says, error), (None, &None), "{place}"),
        }
    }
}

#[test]
fn a_sample_that_was_typed_over_is_found_and_a_file_without_a_digest_is_read() {
    let (text, mut results) = kept();
    let mut altered: serde_json::Value = serde_json::from_str(&text).unwrap();
    let rows = altered["rows"].as_array_mut().unwrap();
    let outcomes = rows.iter_mut().flat_map(|row| row["series"].as_array_mut().unwrap());
    let mut samples = outcomes.filter_map(|series| series["outcome"].get_mut("measured")?.get_mut("samples"));
    samples.next().unwrap()[0] = 0.125.into();
    let error = Results::parse(&altered.to_string(), Path::new("r.json")).unwrap_err().to_string();
    assert!(error.contains("r.json: its samples are not those that were written"), "{error}");
    altered.as_object_mut().unwrap().remove("samples_sha256");
    let read = Results::parse(&altered.to_string(), Path::new("r.json")).unwrap();
    assert!(read.samples_digest() != results.samples_digest());
    results.rows.reverse();
    assert!(read.samples_digest() != results.samples_digest());
}

#[test]
fn a_parameter_that_stands_twice_is_refused_where_it_does() {
    let (text, _) = kept();
    let start = text.find("\"parameters\": {").unwrap() + "\"parameters\": {".len();
    let twice = format!("{}\"size\": 1, \"size\": 2, {}", &text[..start], &text[start..]);
    let error = Results::parse(&twice, Path::new("r.json")).unwrap_err().to_string();
    assert!(error.starts_with("r.json:") && error.contains("the parameter `size` stands twice"), "{error}");
}

#[test]
fn a_row_that_a_run_measured_twice_is_refused_wherever_it_stands() {
    let (_, mut results) = kept();
    let (row, last) = (results.rows[0].clone(), results.rows.len() - 1);
    results.rows.insert(last, row);
    let text = text(&results);
    let error = Results::parse(&text, Path::new("r.json")).unwrap_err().to_string();
    assert!(error.contains("has samples of the run `syncscope-1` twice"), "{error}");
}

#[test]
fn a_row_that_a_later_run_describes_otherwise_is_one_row_of_its_system() {
    let (_, mut results) = kept();
    let mut later = results.runs[0].clone();
    let (first, id) = (later.id.clone(), "later".to_owned());
    later.id.clone_from(&id);
    results.runs.push(later);
    let mut again: Vec<Row> = results.rows.to_vec();
    for row in &mut again {
        row.spec.label.push_str(" by another name");
        row.series.retain(|series| series.run == first);
        row.series.iter_mut().for_each(|series| series.run.clone_from(&id));
    }
    let rows = results.rows.len();
    again.retain(|row| !row.series.is_empty());
    results.merge(again);
    assert_eq!(results.rows.len(), rows);
    let text = text(&results);
    assert!(Results::parse(&text, Path::new("r.json")).is_ok(), "what was measured can be read");
    assert!(results.rows.iter().all(|row| !row.spec.label.contains("another name")));
}

/// A row by hand, in a file by itself.
fn refused(change: impl FnOnce(&mut Vec<Row>)) -> Option<String> {
    let (_, mut results) = kept();
    let two = |row: &&Row| row.series[0].outcome.values().is_some_and(|values| values.len() > 1);
    let of = |is_derived: bool| {
        let is_kind = |row: &&Row| matches!(row.spec.provenance, Provenance::Derived { .. }) == is_derived;
        results.rows.iter().filter(two).find(is_kind).unwrap().clone()
    };
    let mut rows = vec![of(false), of(true)];
    change(&mut rows);
    let mut second = results.runs[0].clone();
    second.id = "second".to_owned();
    results.runs.push(second);
    results.rows = rows.into();
    let text = text(&results);
    Results::parse(&text, Path::new("r.json")).err().map(|error| error.to_string())
}

#[test]
fn a_row_that_contradicts_itself_is_refused_by_its_name() {
    let operand = || FormulaOperand { name: "a".to_owned(), id: "x.y".to_owned(), parameters: None };
    let work = |amount: f64| Some(crate::Work::launches(amount, "1"));
    assert_eq!(refused(|_| ()), None);
    for (change, says) in [
        (Box::new(|rows: &mut Vec<Row>| rows[0].series.clear()) as Box<dyn Fn(&mut Vec<Row>)>, "no run left anything"),
        (
            Box::new(|rows| {
                let samples = rows[0].series[0].outcome.values().unwrap().to_vec();
                rows[0].series[0].outcome = Outcome::Derived { samples };
            }),
            "is measured, and its samples of the run `syncscope-1` are computed",
        ),
        (
            Box::new(|rows| rows[1].series[0].outcome = rows[0].series[0].outcome.clone()),
            "is computed from other rows, and its samples of the run `syncscope-1` are measured",
        ),
        (
            Box::new(|rows| rows[0].spec.provenance = Provenance::Measured { clock: Clock::Host, iterations: 0 }),
            "0 iterations",
        ),
        (Box::new(|rows| rows[0].spec.work = work(-3.0)), "work of -3"),
        (
            Box::new(|rows| {
                let Provenance::Derived { operands, .. } = &mut rows[1].spec.provenance else { panic!() };
                *operands = vec![operand(), operand()];
            }),
            "two rows `a`",
        ),
        (
            Box::new(|rows| {
                let mut split = rows[0].clone();
                split.spec.label.push_str(" once more");
                split.series[0].run = "second".to_owned();
                rows.push(split);
            }),
            "is two rows of syncscope",
        ),
    ] {
        let message = refused(|rows| change(rows)).unwrap_or_else(|| panic!("{says}"));
        assert!(message.starts_with("r.json:") && message.contains(says), "{says}: {message}");
    }
}

/// A text of any characters, also such as end a file or a line of one.
fn word() -> impl Strategy<Value = String> {
    let odd = ["", "\n}\n", "\"\\", "\u{0}\u{7f}", "null", "\u{202e}\u{1f980}"].map(str::to_owned).to_vec();
    prop_oneof![select(odd), vec(any::<char>(), 0..6).prop_map(String::from_iter)]
}

fn number() -> impl Strategy<Value = f64> {
    let edges = vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e308, -1e308, -0.0, 0.0, 5e-324, 1e-310];
    prop_oneof![select(edges), proptest::num::f64::ANY]
}

fn finite() -> impl Strategy<Value = f64> {
    number().prop_filter("finite", |value| value.is_finite())
}

fn measured() -> impl Strategy<Value = Outcome> {
    let parts = (any::<[bool; 3]>(), finite(), any::<u32>());
    (vec(finite(), 1..5), parts).prop_map(|(values, ([has_order, has_start, has_slowdown], part, place))| {
        let mut outcome = Outcome::of_samples(values, StoppedBy::Samples);
        for sample in &mut outcome.measured_mut().unwrap().samples {
            sample.order = has_order.then_some(place);
            (sample.started, sample.slowdown) = (has_start.then_some(part), has_slowdown.then_some(part));
        }
        outcome
    })
}

fn computed() -> impl Strategy<Value = Outcome> {
    let formula = select(vec!["a / b", "a · b", "a − b", "a³", "max(a, b)", "a = b", "a / unknown"]);
    (formula, vec(number(), 0..4), vec(number(), 1..4))
        .prop_map(|(formula, a, b)| Outcome::computed(formula, &[("a", &a), ("b", &b)], &[].into()))
}

fn without_a_value() -> impl Strategy<Value = Outcome> {
    let outcome = |(kind, reason): (u8, String)| match kind {
        0 => Outcome::NotApplicable { reason },
        1 => Outcome::Skipped { reason },
        2 => Outcome::Failed { reason },
        _ => Outcome::Interrupted,
    };
    (0..4_u8, word()).prop_map(outcome)
}

fn provenance() -> impl Strategy<Value = Provenance> {
    let operand = || FormulaOperand { name: "a".to_owned(), id: "a.b".to_owned(), parameters: None };
    let derivation = Derivation::Computation;
    let derived = move |formula| Provenance::Derived { derivation, formula, operands: vec![operand()] };
    let measured = |iterations| Provenance::Measured { clock: Clock::Host, iterations };
    prop_oneof![(1..=u64::MAX).prop_map(measured), word().prop_map(derived)]
}

/// Rows of any values and names that a run may leave of an experiment.
fn rows(experiment: &'static str) -> impl Strategy<Value = Vec<Row>> {
    let parameter = prop_oneof![
        any::<u64>().prop_map(Parameter::Integer),
        finite().prop_map(Parameter::Number),
        word().prop_map(Parameter::Text)
    ];
    let spec = (word(), word(), proptest::collection::btree_map(word(), parameter, 0..3), provenance(), finite());
    let row =
        (spec, measured(), computed(), without_a_value(), any::<bool>()).prop_map(|(spec, own, other, none, has)| {
            let (group, label, parameters, provenance, amount) = spec;
            let outcome = match provenance {
                _ if !has => none,
                Provenance::Measured { .. } => own,
                Provenance::Derived { .. } => other,
            };
            let (unit, floor, work) = (Unit::Number, None, Some(Work::launches(amount.abs(), &label)));
            let spec = MetricSpec { id: String::new(), group, label, unit, parameters, provenance, work, floor };
            Row { spec, series: vec![Series { run: "syncscope-1".to_owned(), outcome }] }
        });
    vec(row, 0..6).prop_map(move |mut rows| {
        (0..).zip(&mut rows).for_each(|(place, row)| row.spec.id = format!("{experiment}.{place}"));
        rows
    })
}

proptest! {
    #[test]
    fn whatever_a_run_leaves_is_read_as_it_was_written(left in rows("first"), then in rows("second")) {
        let mut results = empty();
        results.rows = left.into();
        let text = text(&results);
        let read = Results::parse(&text, Path::new("r.json")).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(&read, &results);
        let piece = Piece { run: results.runs[0].clone(), rows: then, timelines: Vec::new() };
        let line = piece.to_line().unwrap();
        results.add(piece);
        let read = Results::parse(&(text + &line), Path::new("r.json"));
        prop_assert_eq!(read.map_err(|error| TestCaseError::fail(error.to_string()))?, results);
    }
}

/// The kept run without what it left.
fn empty() -> Results {
    static EMPTY: std::sync::LazyLock<Results> = std::sync::LazyLock::new(|| {
        let (_, mut results) = kept();
        results.rows.clear();
        results.runs[0].telemetry.clear();
        results
    });
    EMPTY.clone()
}
