//! Rows over time: what changed is found with its size, what did not raises few alarms, and CI is told.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "fixtures/run.rs"]
mod fixture;
#[path = "fixtures/fleet.rs"]
mod fleet;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rand::{RngExt, SeedableRng, rngs::StdRng};
use syncscope_fleet::history::History;
use syncscope_results::error::FileError;
use syncscope_results::statistics::change_points;
use syncscope_results::store::{Index, collect};
use syncscope_results::{MetricSpec, Results};

const SUITE: &str = "title: Few\nsampling: { samples: 8 }\nexperiments: [idle-device: {}]";
/// The day on which the new driver comes, and from which on one row is slower.
const CHANGED: u32 = 30;
const DAYS: u32 = 45;

/// A store of a machine whose rows scatter by 0.4 %; from a day on `row` takes `factor` of its time.
fn store(folder: &Path, row: &str, factor: f64) -> PathBuf {
    let mut rng = StdRng::seed_from_u64(5);
    let days: Vec<PathBuf> = (0..DAYS)
        .map(|day| {
            let started = format!("2026-{:02}-{:02}T09:30:00Z", 3 + day / 28, 1 + day % 28);
            let noise = 1.0 + 0.004 * (rng.random::<f64>() - 0.5);
            let is_new = day >= CHANGED;
            let mut results = fleet::measured(SUITE, "node7", &started, |spec| {
                if is_new && spec.id == row { noise * factor } else { noise }
            });
            if is_new {
                results.runs[0].environment.device.facts[0].1 = "590.00".to_owned();
            }
            fleet::write(&results, &folder.join("job"), &format!("{day}.json"))
        })
        .collect();
    let store = folder.join("results");
    assert_eq!(collect(&days, &store, &Results::read).unwrap().added.len(), days.len());
    store
}

/// A row of the suite that is a measured time.
fn row() -> String {
    let results = fleet::measured(SUITE, "m", "2026-01-01T00:00:00Z", |_| 1.0);
    let lookup = results.lookup();
    let time = lookup.metrics().find(|(_, metric)| metric.as_ref().is_ok_and(|metric| metric.clock().is_some()));
    time.unwrap().0.id.clone()
}

fn report(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_report")).args(arguments).current_dir(folder).output().unwrap()
}

#[test]
fn a_slower_row_is_found_with_its_size_its_day_and_the_new_driver_and_fails_once() {
    let folder = tempfile::tempdir().unwrap();
    let row = row();
    store(folder.path(), &row, 1.03);
    let history = |more: &[&str]| report(&[&["history", "results"], more].concat(), folder.path());
    let output = history(&["--since", "2026-03-01", "--page", "h.html"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let line = text.lines().find(|line| line.contains("slower")).unwrap();
    for part in [&*format!("node7 {row}"), "1.03", "since 2026-04-03", "driver: 580.00, then 590.00"] {
        assert!(line.contains(part), "{part}: {line}");
    }
    let page = fs::read_to_string(folder.path().join("h.html")).unwrap();
    assert!(page.contains("changes of level") && !page.contains("<script") && page.contains("<b class=\"slower\">"));
    // It was found some days after the change.
    let later = history(&["--since", "2026-4-12"]);
    assert_eq!(later.status.code(), Some(0), "{}", String::from_utf8_lossy(&later.stdout));
    assert_eq!(history(&["--since", "2026-4-3"]).status.code(), Some(1));
    assert_eq!(history(&["--since", "yesterday"]).status.code(), Some(2));
    // A file of another day makes it neither new nor old, and one that is to come does not count.
    for (day, factor) in [("2025-01-01T09:30:00Z", 1.0), ("2099-01-01T09:30:00Z", 2.0)] {
        let file =
            fleet::write(&fleet::measured(SUITE, "node7", day, |_| factor), &folder.path().join("more"), "more.json");
        collect(&[file], &folder.path().join("results"), &Results::read).unwrap();
        assert_eq!(history(&["--since", "2026-04-03"]).status.code(), Some(1), "{day}");
        assert_eq!(history(&["--since", "2026-04-12"]).status.code(), Some(0), "{day}");
    }
    let said = String::from_utf8_lossy(&history(&[]).stdout).into_owned();
    assert!(said.contains("it began at 2099-01-01T09:30:00Z, which is to come") && said.contains("46 files"), "{said}");
    assert_eq!(history(&["--since", "2026-03-01", "--fail-on", "faster"]).status.code(), Some(0));
    assert_eq!(history(&["--since", "2026-03-01", "--threshold", "10%"]).status.code(), Some(0));
}

#[test]
fn a_name_that_moves_to_another_machine_begins_a_series() {
    let folder = tempfile::tempdir().unwrap();
    let row = row();
    let days: Vec<PathBuf> = (0..40)
        .map(|day| {
            let started = format!("2026-{:02}-{:02}T09:30:00Z", 3 + day / 28, 1 + day % 28);
            let noise = 1.0 + 1e-4 * f64::from(day * 7 % 11);
            let scale = if day < 20 { noise } else { 2.0 * noise };
            let mut results = fleet::measured(SUITE, "ci", &started, |_| scale);
            if day >= 20 {
                results.runs.iter_mut().for_each(|run| run.environment.host.memory_bytes = Some(1 << 34));
            }
            fleet::write(&results, &folder.path().join("job"), &format!("{day}.json"))
        })
        .collect();
    collect(&days, &folder.path().join("results"), &Results::read).unwrap();
    let output = report(&["history", "results", "--since", "2026-03-01", "--json"], folder.path());
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}");
    let facts: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(facts["changes"].as_array().map(Vec::len), Some(0), "{text}");
    assert!(facts["rows"].as_u64().unwrap() > 1, "{row}");
}

/// Each day, the change is found anew or was found before: a clock that is wrong once must not keep it new.
#[test]
fn one_file_of_a_day_to_come_never_keeps_a_change_new() {
    let folder = tempfile::tempdir().unwrap();
    let row = row();
    let mut rng = StdRng::seed_from_u64(5);
    for day in 0..DAYS {
        let started = format!("2026-{:02}-{:02}T09:30:00Z", 3 + day / 28, 1 + day % 28);
        let factor = (1.0 + 0.004 * (rng.random::<f64>() - 0.5)) * if day >= CHANGED { 1.03 } else { 1.0 };
        let slower = |spec: &MetricSpec| if spec.id == row { factor } else { 1.0 };
        let results = fleet::measured(SUITE, "node7", &started, slower);
        let mut files = vec![fleet::write(&results, folder.path(), "today.json")];
        if day == 0 {
            let results = fleet::measured(SUITE, "node7", "2099-01-01T09:30:00Z", |_| 1.03);
            files.push(fleet::write(&results, folder.path(), "to-come.json"));
        }
        collect(&files, &folder.path().join("results"), &Results::read).unwrap();
    }
    for (since, code) in [("2026-04-03", 1), ("2026-04-18", 0)] {
        assert_eq!(
            report(&["history", "results", "--since", since], folder.path()).status.code(),
            Some(code),
            "{since}"
        );
    }
}

#[test]
fn days_are_in_the_order_of_time_whatever_their_time_zones() {
    let mut history = History::default();
    let folder = tempfile::tempdir().unwrap();
    // Half an hour later each, in the order of the texts the other way round.
    for (place, started) in
        ["2026-03-02T00:30:00+02:00", "2026-03-01T23:00:00Z", "2026-03-01T18:30:00-05:00"].iter().enumerate()
    {
        let file = fleet::write(&fleet::measured(SUITE, "m", started, |_| 1.0 + place as f64), folder.path(), "r.json");
        collect(&[file], &folder.path().join("store"), &Results::read).unwrap();
    }
    Index::of(&folder.path().join("store"), &Results::read, |listed, results| {
        history.add(listed, results);
        Ok::<_, FileError>(())
    })
    .unwrap();
    history.finish(0.05);
    let values = &history.machines[0].tracks[0].values;
    assert!(values.len() == 3 && values.is_sorted_by(|a, b| a.median < b.median), "{values:?}");
    assert!(history.machines[0].entries.iter().all(|entry| entry.day().to_string() == "2026-03-01"));
}

#[test]
fn an_empty_store_is_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let output = report(&["history", "results"], folder.path());
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("report collect DIR --into results"));
}

/// Values of heavy tails, which a rank test has to bear: a quotient of a normal and a uniform variable.
fn heavy(rng: &mut StdRng) -> f64 {
    let sum: f64 = (0..6).map(|_| rng.random::<f64>() - 0.5).sum();
    1.0 + 0.01 * sum / (0.02 + rng.random::<f64>())
}

#[test]
fn at_most_one_row_in_a_hundred_raises_a_false_alarm_within_a_year() {
    const ROWS: usize = 200;
    let mut rng = StdRng::seed_from_u64(19);
    let alarms = (0..ROWS).filter(|_| {
        let values: Vec<f64> = (0..365).map(|_| heavy(&mut rng)).collect();
        !change_points(&values).is_empty()
    });
    assert!(alarms.count() <= ROWS / 100);
}

/// A machine that is warm for some days.
#[test]
fn values_that_depend_on_their_neighbours_raise_an_alarm_in_at_most_one_row_in_twenty_a_year() {
    const ROWS: usize = 100;
    let mut rng = StdRng::seed_from_u64(23);
    let alarms = (0..ROWS).filter(|_| {
        let mut level = 0.0;
        let mut value = || {
            level = 0.5 * level + (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
            level
        };
        !change_points(&(0..365).map(|_| value()).collect::<Vec<f64>>()).is_empty()
    });
    assert!(alarms.count() <= ROWS / 20);
}
