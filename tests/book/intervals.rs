//! What has no interval has none anywhere, and says why in each place.

use super::probe::{DOCUMENT, project, results};
use super::*;

/// Samples of two regimes, a factor of two apart.
fn two_regimes() -> Vec<f64> {
    (0..40).map(|round| if round % 2 == 0 { 1e-3 } else { 2e-3 } + 1e-7 * f64::from(round)).collect()
}

/// The probe's results, of which the slow call has two regimes.
fn unsteady() -> Results {
    let mut results = results();
    for id in ["probe.slow", "probe.fast"] {
        let one = (0..40).map(|round| 1e-3 + 1e-6 * f64::from(round * 7 % 40)).collect();
        fixture::replace(&mut results, id, &fixture::measured(one));
    }
    fixture::replace(&mut results, "probe.slow", &fixture::measured(two_regimes()));
    results
}

#[test]
fn what_was_computed_from_a_row_with_two_regimes_has_no_interval_in_tables_data_and_headlines() {
    let files = source_as(&project(DOCUMENT), &[unsteady()]);
    let slow = page(&files, "book/src/data/probe-drawn-bars-1.csv");
    let line = slow.lines().find(|line| line.starts_with("probe.slow,")).unwrap();
    assert!(line.contains(",,,40,") && line.contains("measured; no interval: two regimes"), "{line}");
    let gain = page(&files, "book/src/data/probe-drawn-lines-1.csv");
    let line = gain.lines().find(|line| line.starts_with("probe.gain,")).unwrap();
    assert!(line.contains("measured; no interval: probe.slow: two regimes"), "{line}");
    let chapter = read(&files, "probe");
    assert!(chapter.contains("no interval: probe.slow: two regimes"), "{chapter}");
    let first = read(&files, "README");
    assert!(first.contains("no interval: probe.slow: two regimes"), "{first}");
    let card = read(&files, "probe");
    let card = &card[card.find("c-slow").unwrap()..];
    assert!(card.contains("; unsteady: delta.fp16.size_64: probe.slow: two regimes"), "{card}");
}

#[test]
fn a_cell_of_another_system_says_why_it_has_no_interval_as_the_own_does() {
    let reasons = |results: Results| {
        let chapter = read(&source_as(&project(DOCUMENT), &[results]), "probe");
        chapter.matches("<span class=\"note\">no interval: two regimes").count()
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
