//! What has no interval has none anywhere, and says why in each place.

use syncscope_book::predicate::CaseResult;
use syncscope_results::Outcome;

use super::probe::{DOCUMENT, project, results};
use super::*;

/// Samples of two levels, a factor of two apart.
fn two_levels() -> Vec<f64> {
    (0..40).map(|round| if round % 2 == 0 { 1e-3 } else { 2e-3 } + 1e-7 * f64::from(round)).collect()
}

/// The probe's results, of which the slow call, and what is computed from it, has two levels.
fn unsteady() -> Results {
    let mut results = results();
    for id in ["probe.slow", "probe.fast"] {
        let one = (0..40).map(|round| 1e-3 + 1e-6 * f64::from(round * 7 % 40)).collect();
        fixture::replace(&mut results, id, &fixture::measured(one));
    }
    fixture::replace(&mut results, "probe.slow", &fixture::measured(two_levels()));
    let of_slow = |shift: f64, factor: f64| Outcome::Derived {
        samples: two_levels().into_iter().map(|sample| factor * (sample - shift)).collect(),
    };
    fixture::replace(&mut results, "probe.delta", &of_slow(0.5e-3, 1.0));
    fixture::replace(&mut results, "probe.gain", &of_slow(0.0, 1e3));
    results
}

#[test]
fn values_computed_from_two_levels_show_no_interval_anywhere() {
    let files = source_as(&project(DOCUMENT), &[unsteady()]);
    let slow = page(&files, "book/src/data/probe-drawn-bars-1.csv");
    let line = slow.lines().find(|line| line.starts_with("probe.slow,")).unwrap();
    assert!(line.contains(",,,40,") && line.contains("measured; no interval: two levels"), "{line}");
    let gain = page(&files, "book/src/data/probe-drawn-lines-1.csv");
    let line = gain.lines().find(|line| line.starts_with("probe.gain,")).unwrap();
    assert!(line.contains("measured; no interval: two levels"), "{line}");
    let row = |chapter: &str| {
        let rest = chapter.split("data-id=\"probe.gain\"").nth(1).unwrap();
        rest.split("</tr>").next().unwrap().to_owned()
    };
    let chapter = read(&files, "probe");
    assert!(row(&chapter).contains("no interval: two levels"), "{}", row(&chapter));
    let first = read(&files, "README");
    assert!(first.contains("no interval: two levels"), "{first}");
}

/// The claim of the probe, with a test of another quantity, judged by three runs.
fn judged(test: &str, results: Results) -> CaseResult {
    let marked = DOCUMENT.replace("tests: [delta.fp16.size_64 > 0]", &format!("tests: ['{test}']"));
    let documents = project(&marked).documents(&catalog()).unwrap();
    let document = documents.iter().find(|document| document.id == "probe").unwrap();
    let results = fixture::with_pytorch(fixture::three_runs(results));
    document.claims[0].judge(document, &results).cases[0].clone()
}

#[test]
fn a_claim_about_a_quantity_with_two_levels_shows_these_and_no_interval() {
    let round_by_round = "slow.fp16.size_64 - fast.fp16.size_64 > 0";
    for test in ["delta.fp16.size_64 > 0", round_by_round] {
        let case = judged(test, in_turn(unsteady()));
        let found = case.found.unwrap();
        let written = found.written();
        assert!(written.contains("3 runs, no interval: two levels, "), "{written}");
        assert!(!written.contains('…') && found.numbers().1.is_none(), "{written}");
        assert_eq!(found.by_rounds, test == round_by_round);
    }
    let runs = fixture::with_pytorch(fixture::three_runs(unsteady()));
    let claims = read(&source_as(&project(DOCUMENT), &[runs]), "claims");
    let card = claims[claims.find("id=\"c-slow\"").unwrap()..].split("</tr>").next().unwrap();
    assert!(card.contains("no interval: two levels") && !card.contains('…'), "{card}");
}

#[test]
fn levels_that_a_difference_cancels_leave_it_its_interval() {
    let mut results = unsteady();
    let faster = two_levels().into_iter().enumerate().map(|(round, it)| it - 1e-4 - 1e-8 * (round * 7 % 40) as f64);
    fixture::replace(&mut results, "probe.fast", &fixture::measured(faster.collect()));
    let case = judged("slow.fp16.size_64 - fast.fp16.size_64 > 0", in_turn(results));
    let found = case.found.unwrap();
    assert!(found.by_rounds && found.numbers().1.is_some(), "{found:?}");
    assert!(!found.operands.is_empty() && found.operands.iter().all(|(_, value)| value.contains("two levels")));
}

/// The results with times at which the samples began: those of the calls were taken in turn.
fn in_turn(mut results: Results) -> Results {
    for series in results.rows.iter_mut().flat_map(|row| &mut row.series) {
        let samples = series.outcome.measured_mut().into_iter().flat_map(|measured| &mut measured.samples);
        samples.enumerate().for_each(|(round, sample)| sample.started = Some(round as f64));
    }
    results
}

/// What a table withholds, no card, sentence or headline prints: in the results that come with the program, a claim about a
/// row has an interval exactly where the row has one.
#[test]
fn no_sentence_prints_an_interval_that_a_table_withholds() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("book/results");
    let files = ["one-gpu.json.gz", "calls.json.gz"].map(|name| Results::read(&folder.join(name)).unwrap());
    let mut withheld = 0;
    let documents = documents();
    for (kept, document) in files.iter().flat_map(|kept| documents.iter().map(move |document| (kept, document))) {
        for claim in &document.claims {
            let judgement = claim.judge(document, kept);
            let beside = judgement.beside.iter().flat_map(|beside| beside.cases.iter().chain(&beside.shown));
            for case in judgement.cases.iter().chain(&judgement.shown).chain(beside) {
                let Ok(found) = &case.found else { continue };
                let written = found.written();
                let whole = format!("{} {}: {written}", claim.id, case.quantity);
                if written.contains("no interval") {
                    withheld += 1;
                    assert!(!written.contains('…') && found.numbers().1.is_none(), "{whole}");
                }
                // A quantity that is one row is written as the row is.
                if let [(name, row)] = found.operands.as_slice()
                    && *name == case.quantity
                    && !written.contains("trials of")
                {
                    assert_eq!(row.contains('…'), written.contains('…'), "{whole}; {row}");
                }
            }
        }
        let Some(headline) = &document.headline else { continue };
        for system in kept.systems() {
            let Ok(number) = headline.said(document, kept, system) else { continue };
            assert_eq!(number.is_steady, number.interval.contains('…'), "{}: {number:?}", document.id);
        }
    }
    assert!(withheld > 0, "no interval is withheld: the results try nothing");
}

#[test]
fn a_cell_of_another_system_says_why_it_has_no_interval_as_the_own_does() {
    let reasons = |results: Results| {
        let chapter = read(&source_as(&project(DOCUMENT), &[results]), "probe");
        chapter.matches("<span class=\"note\">no interval: two levels").count()
    };
    let own = reasons(unsteady());
    assert!(own > 0);
    assert_eq!(reasons(fixture::with_pytorch(unsteady())), 2 * own);
}

#[test]
fn the_first_page_shows_the_machine_that_measured_its_numbers() {
    let mut many = fixture::run();
    many.rows.retain(|row| row.spec.experiment() != "probe");
    let mut own = results();
    own.runs[0].environment.device.model = "The one with the number".to_owned();
    let few = own.rows.len();
    assert!(many.rows.len() > few);
    // Without what the other headlines need, the machine with most rows has no number at all.
    many.rows.retain(|row| row.spec.experiment() == "self-audit" || row.spec.experiment() == "driver-calls");
    assert!(many.rows.len() > few);
    let first = read(&source_as(&project(DOCUMENT), &[many, own]), "README");
    assert!(first.contains("What counts on The one with the number"), "{first}");
}
