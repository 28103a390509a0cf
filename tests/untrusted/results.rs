//! Results files: what can be read of a mutated one can be looked up, compared and made a book of.

use std::path::Path;

use syncscope_book::document::{Document, TableEntry};
use syncscope_book::{Source, Warning, Wording, compared, drawn, summary, system_table, tally};
use syncscope_report::carried_book;
use syncscope_results::{
    MissingReason, Outcome, Parameters, Results, Run, Series, Tolerance, compare, mismatches, remarks, share_of_peak,
    throttle_reasons,
};
use syncscope_suite::experiment::Registry;
use syncscope_suite::runner::Suite;

use super::mutation::{Seed, change};
use super::{Uses, catalog, documents, fixture, hold};

/// The row whose scenario is recorded.
const SCENARIO: &str = "overlap.finish.complete";

/// A small results file with every outcome, two runs and a timeline: mutations of it hit structure rather than one of
/// thousands of samples.
pub(crate) fn small_results() -> String {
    let mut results = fixture::run_with_every_outcome();
    let mut seen = std::collections::BTreeSet::new();
    results.rows.retain(|row| {
        let outcome = serde_json::to_value(&row.series[0].outcome).unwrap();
        let kind = outcome.as_object().map_or_else(|| outcome.to_string(), |map| map.keys().next().unwrap().clone());
        let provenance = serde_json::to_value(&row.spec.provenance).unwrap();
        let words = ["measured", "derived", "observed"].map(|word| provenance.get(word).is_some());
        let is_new = seen.insert(format!("{kind} {:?} {words:?}", row.spec.unit));
        is_new || row.spec.id == SCENARIO
    });
    let only = &mut results.runs[0];
    only.order.truncate(2);
    only.telemetry.truncate(2);
    let second = Run { id: "PyTorch-1".to_owned(), system: "PyTorch".to_owned(), ..results.run().clone() };
    results.runs.push(second);
    for row in results.rows.iter_mut() {
        let mut outcome = row.series[0].outcome.clone();
        match &mut outcome {
            Outcome::Measured(measured) => measured.samples.truncate(3),
            Outcome::Derived { samples } => samples.truncate(3),
            _ => {}
        }
        row.series.push(Series { run: "PyTorch-1".to_owned(), outcome });
    }
    results.timelines.push(fixture::recorded(SCENARIO));
    serde_json::to_string(&results).unwrap()
}

/// Does to results all that can be done without a device. Whatever it says, it says it without a panic.
fn use_results(results: &Results, documents: &[Document]) {
    for system in results.systems() {
        let lookup = results.lookup_of(system);
        for metric in lookup.metrics().filter_map(|(_, metric)| metric.ok()) {
            match metric.estimate() {
                Ok(estimate) => {
                    assert!(estimate.median.is_finite() && estimate.low <= estimate.high, "{estimate:?}");
                    let _ = (estimate.to_string(), estimate.relative_error());
                    let share = share_of_peak(&lookup, &metric, &estimate);
                    assert!(share.is_none_or(|found| found.share.is_finite()), "{share:?}");
                }
                Err(reason) => assert!(matches!(reason, MissingReason::Inconsistent(_)), "{reason}"),
            }
            let _ = (metric.diagnose(), metric.is_difference(), metric.is_share());
        }
        let _ = system_table(results, system).to_markdown();
    }
    for document in documents {
        for table in &document.tables {
            let cases = table.cases_in(std::slice::from_ref(results));
            for entry in TableEntry::all(table, &cases) {
                let _ = entry.measured(&results.lookup());
            }
        }
        for claim in &document.claims {
            let _ = claim.judge(document, results);
        }
        let advised = document.advice.iter().flat_map(|advice| &advice.rows).map(|row| &row.choose);
        for sentence in document.answer.iter().chain(advised) {
            let _ = sentence.said(document, results, &results.run().system);
        }
    }
    let named = results.rows.iter().map(|row| row.spec.experiment());
    for name in named.chain(results.runs.iter().flat_map(|run| &run.order).map(|ran| ran.name.as_str())).take(12) {
        let undocumented = Document::of_experiment(name, 0, std::slice::from_ref(results));
        for figure in &undocumented.figures {
            for panel in figure.panels.iter().filter(|panel| panel.timeline.is_none()) {
                drawn(undocumented.table(&panel.table), panel, "M", results, "p");
            }
        }
        let _ = summary(results, name);
    }
    let _ = throttle_reasons(&results.run().telemetry);
    results.diagnoses().iter().for_each(|(_, diagnosis)| drop(diagnosis.to_string()));
    Warning::of(results).iter().for_each(|warning| drop(warning.to_string()));
    let _ = (results.selection.unknown(catalog().ids()), results.has_failures(), results.is_partial());
    let _ = Suite::of_results(&results.suite, "r.json", &Registry::builtin()).map_err(|error| error.to_string());
    let _ = results.lookup().find("overlap.finish.complete", &Parameters::new(), &Parameters::new());
}

fn use_both(a: &Results, b: &Results) {
    let result = compare(a, b, Tolerance::default());
    let ratios = result.pairs.iter().filter_map(|pair| pair.ratio);
    assert!(ratios.into_iter().all(|ratio| ratio.low <= ratio.high && ratio.high.is_finite()), "{result:?}");
    let _ = tally(&result);
    for table in compared(&result, Wording::Compare) {
        let _ = (table.to_console(), table.to_markdown(), table.to_html());
    }
    let _ = (mismatches(a, b), remarks(a, b), serde_json::to_string(&result).unwrap());
}

/// Reads mutations of a results file, and uses what can be read.
fn mutate_results(text: &str, cases: u32) {
    let documents = documents();
    let good = Results::parse(text, Path::new("r.json")).unwrap();
    use_results(&good, &documents);
    use_both(&good, &good);
    let (seed, uses, project) = (Seed::of_json(text), Uses::default(), carried_book());
    let property = |change| {
        match Results::parse(&seed.mutated(&change), Path::new("r.json")) {
            Err(error) => drop(error.to_string()),
            Ok(results) => uses.turn(|used| {
                use_results(&results, &documents);
                // Dear: a part of them is enough.
                if used % 8 == 0 {
                    use_both(&good, &results);
                    use_both(&results, &good);
                }
                if used % 16 == 1 {
                    let book = Source::of(&[results], &project, catalog());
                    assert!(book.is_ok(), "{:?}", book.err());
                }
            }),
        }
        Ok(())
    };
    hold(cases, &change(), property);
    uses.end();
}

#[test]
fn a_mutated_results_file_is_refused_or_can_be_used() {
    mutate_results(&small_results(), 300);
}
