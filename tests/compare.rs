//! Comparing runs of known truth: what is claimed of equal runs, what of a slower one, and what a user is told.

#![cfg(feature = "report")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

#[path = "fixtures/run.rs"]
mod fixture;

use std::path::Path;
use std::process::{Command, Output};

use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand_distr::{Distribution, LogNormal, Normal};
use syncscope::experiment::{Derivation, Outcome, Parameters, Row};
use syncscope::measure::{Clock, Diagnosis, Ratio, StoppedBy};
use syncscope::run::{Compared, Run, Tolerance, Verdict, compare, mismatches};
use syncscope::units::Unit;

type Rng = Xoshiro256PlusPlus;

fn timed(id: &str, samples: Vec<f64>) -> Row {
    let outcome = Outcome::Measured { instrument: Clock::Host, samples, stopped_by: StoppedBy::Samples };
    Row { id: id.to_owned(), parameters: Parameters::new(), unit: Unit::Seconds, outcome }
}

fn observed(id: &str, unit: Unit, samples: Vec<f64>) -> Row {
    let outcome = Outcome::Measured { instrument: Clock::Observed, samples, stopped_by: StoppedBy::Samples };
    Row { unit, outcome, ..timed(id, vec![]) }
}

fn run_of(rows: Vec<Row>) -> Run {
    let mut run = fixture::run();
    run.experiments.truncate(1);
    run.experiments[0].rows = rows;
    run
}

/// `rows` rows of `n` times around `scale` microseconds: a bell of 2 % or a skewed spread of 30 %.
fn noisy(rng: &mut Rng, rows: usize, n: usize, scale: f64, skewed: bool) -> Run {
    let (bell, tail) = (Normal::new(1.0, 0.02).unwrap(), LogNormal::new(0.0, 0.3).unwrap());
    let mut sample = || if skewed { tail.sample(rng) } else { bell.sample(rng) };
    run_of((0..rows).map(|row| timed(&format!("r.{row}"), (0..n).map(|_| scale * 1e-6 * sample()).collect())).collect())
}

/// Synthetic samples know no other process: 5 % are enough to tell what they are.
fn compared(a: &Run, b: &Run) -> Compared {
    compare(a, b, Tolerance { threshold: 0.05, ..Tolerance::default() })
}

fn verdict(a: Row, b: Row) -> Verdict {
    compared(&run_of(vec![a]), &run_of(vec![b])).pairs[0].verdict
}

#[test]
fn two_runs_of_one_distribution_are_never_slower_or_faster() {
    let mut changed = 0;
    for seed in 0..60 {
        let mut rng = Rng::seed_from_u64(seed);
        let n = [15, 30, 50][seed as usize % 3];
        let result = compared(&noisy(&mut rng, 10, n, 5.0, false), &noisy(&mut rng, 10, n, 5.0, false));
        assert_eq!(result.pairs.len(), 10);
        assert!(result.count(Verdict::Same) >= 8, "{result:?}");
        changed += result.pairs.iter().filter(|pair| pair.verdict.is_change()).count();
    }
    assert_eq!(changed, 0);
}

#[test]
fn samples_that_scatter_widely_are_uncertain_rather_than_slower() {
    let mut rng = Rng::seed_from_u64(1);
    let result = compared(&noisy(&mut rng, 200, 15, 5.0, true), &noisy(&mut rng, 200, 15, 5.0, true));
    let changed = result.pairs.iter().filter(|pair| pair.verdict.is_change()).count();
    assert!(changed <= 2, "{changed} of 200");
}

#[test]
fn ten_percent_slower_is_slower_and_ten_percent_less_is_faster() {
    let mut rng = Rng::seed_from_u64(2);
    let (a, b) = (noisy(&mut rng, 40, 15, 5.0, false), noisy(&mut rng, 40, 15, 5.5, false));
    assert!(compared(&a, &b).count(Verdict::Slower) >= 36);
    assert!(compared(&b, &a).count(Verdict::Faster) >= 30);
    let more = Tolerance { threshold: 0.2, ..Tolerance::default() };
    assert_eq!(compare(&a, &b, more).count(Verdict::Same), 40, "a change of 10 % does not matter at 20 %");
}

#[test]
fn a_row_near_the_floor_of_its_instrument_is_never_slower() {
    let times = |id: &str, seconds: f64| timed(id, (0..30).map(|i| seconds * (1.0 + 1e-3 * f64::from(i))).collect());
    let audited = |seconds: f64| {
        run_of(vec![times("self-audit.timer.cost", 20e-9), times("overlap.implicit.view.stall", seconds)])
    };
    let verdict = |a: f64, b: f64| compared(&audited(a), &audited(b)).pairs[1].verdict;
    assert_eq!(verdict(100e-9, 180e-9), Verdict::Uncertain);
    assert_eq!(verdict(100e-6, 180e-6), Verdict::Slower);
}

/// How often two equal runs are told apart, and how often an interval of 99 % holds the truth.
#[test]
#[ignore = "prints a table; takes minutes in a debug build"]
fn table_of_false_alarms() {
    for skewed in [false, true] {
        for n in [8, 10, 15, 20, 30, 50, 100] {
            let mut rng = Rng::seed_from_u64(n as u64);
            let rows = 5_000;
            let result = compared(&noisy(&mut rng, rows, n, 5.0, skewed), &noisy(&mut rng, rows, n, 5.0, skewed));
            let share = |count: usize| count as f64 / rows as f64;
            let changed = result.pairs.iter().filter(|pair| pair.verdict.is_change()).count();
            let holds = |ratio: &Ratio| ratio.low <= 1.0 && 1.0 <= ratio.high;
            let held = result.pairs.iter().filter(|pair| pair.ratio.as_ref().is_some_and(holds)).count();
            let same = share(result.count(Verdict::Same));
            println!(
                "skewed {skewed}, n = {n:3}: coverage {:.4}, slower or faster {:.5}, same {same:.3}",
                share(held),
                share(changed)
            );
        }
    }
}

#[test]
fn a_rate_that_falls_is_slower_and_a_count_that_changes_is_different() {
    let rate = |value: f64| {
        observed("r", Unit::BytesPerSecond, (0..15).map(|i| value * (1.0 + 1e-3 * f64::from(i))).collect())
    };
    assert_eq!(verdict(rate(55e9), rate(40e9)), Verdict::Slower);
    assert_eq!(verdict(rate(40e9), rate(55e9)), Verdict::Faster);
    let count = |value: f64| observed("n", Unit::Number, vec![value; 15]);
    assert_eq!(verdict(count(64.0), count(64.0)), Verdict::Same);
    assert_eq!(verdict(count(64.0), count(32.0)), Verdict::Different);
    assert_eq!(verdict(count(0.0), count(0.0)), Verdict::Same);
    assert_eq!(verdict(count(0.0), count(7.0)), Verdict::Different);
}

#[test]
fn a_share_of_yes_is_judged_by_its_interval() {
    let yes = |count: usize| observed("b", Unit::Ratio, (0..15).map(|i| f64::from(i < count)).collect());
    assert_eq!(verdict(yes(15), yes(15)), Verdict::Same);
    assert_eq!(verdict(yes(15), yes(0)), Verdict::Different);
    assert_eq!(verdict(yes(15), yes(13)), Verdict::Uncertain);
}

#[test]
fn a_difference_is_never_slower() {
    let delta = |value: f64| {
        let samples = (0..15).map(|i| value + 1e-9 * f64::from(i)).collect();
        let outcome = Outcome::Derived { derivation: Derivation::Difference, formula: "b − a".to_owned(), samples };
        Row { outcome, ..timed("d", vec![]) }
    };
    assert_eq!(verdict(delta(1e-6), delta(9e-6)), Verdict::Different);
    assert_eq!(verdict(delta(-1e-6), delta(9e-6)), Verdict::Different);
    assert_eq!(verdict(delta(-7e-9), delta(-8e-9)), Verdict::Uncertain);
}

#[test]
fn too_few_samples_are_uncertain() {
    assert_eq!(verdict(timed("a", vec![1.0; 7]), timed("a", vec![9.0; 7])), Verdict::Uncertain);
}

#[test]
fn rows_that_one_run_lacks_are_listed_with_the_reason() {
    let skipped = Row { outcome: Outcome::Skipped { reason: "no room".to_owned() }, ..timed("skipped", vec![]) };
    let a = run_of(vec![timed("both", vec![1.0; 15]), timed("skipped", vec![1.0; 15]), timed("gone", vec![1.0])]);
    let b = run_of(vec![skipped, timed("both", vec![1.0; 15]), timed("new", vec![1.0])]);
    let result = compared(&a, &b);
    assert_eq!(result.pairs.iter().map(|pair| pair.id.as_str()).collect::<Vec<_>>(), ["both"]);
    let reasons: Vec<_> = result
        .unpaired
        .iter()
        .map(|row| (row.id.as_str(), [&row.a, &row.b].map(|side| side.as_ref().map(ToString::to_string))))
        .collect();
    let not_there = || Some("not in this run".to_owned());
    let expected = [
        ("skipped", [None, Some("skipped: no room".to_owned())]),
        ("gone", [None, not_there()]),
        ("new", [not_there(), None]),
    ];
    assert_eq!(reasons, expected);
    assert_eq!(result.missing().count(), 2);
}

#[test]
fn rows_of_an_experiment_that_runs_twice_are_paired_in_order() {
    let a = run_of(vec![timed("r", vec![1.0; 15]), timed("r", vec![2.0; 15])]);
    let b = run_of(vec![timed("r", vec![1.0; 15]), timed("r", vec![4.0; 15])]);
    let verdicts: Vec<_> = compared(&a, &b).pairs.iter().map(|pair| pair.verdict).collect();
    assert_eq!(verdicts, [Verdict::Same, Verdict::Slower]);
}

#[test]
fn what_forbids_a_comparison_is_named() {
    let run = fixture::run();
    assert!(mismatches(&run, &run).is_empty());
    let mut other = run.clone();
    other.environment.device.model = "Another device".to_owned();
    other.environment.device.facts[0].1 = "590.00".to_owned();
    other.suite.sampling = other.suite.sampling.with_samples(3);
    let what: Vec<_> = mismatches(&run, &other).into_iter().map(|mismatch| mismatch.what).collect();
    assert_eq!(what, ["device model", "driver", "sampling of the suite"]);
    let retitled = Run { suite: syncscope::run::Suite { title: "T".to_owned(), ..run.suite.clone() }, ..run.clone() };
    assert!(mismatches(&run, &retitled).is_empty(), "a title changes no measurement");
}

#[test]
fn times_near_the_floor_of_their_clock_are_diagnosed_but_not_those_of_loops() {
    let around = |value: f64| (0..15).map(|i| value * (1.0 + 0.01 * f64::from(i * 4 % 15))).collect::<Vec<_>>();
    let run = run_of(vec![
        timed("self-audit.timer.cost", around(20e-9)),
        timed("self-audit.timer.resolution", around(30e-9)),
        timed("overlap.finish.host-free", around(200e-9)),
        timed("overlap.finish.complete", around(900e-9)),
        timed("async-frontend.model.t1", around(100e-9)),
    ]);
    let found = run.diagnoses();
    let near = |d: &Diagnosis| matches!(d, Diagnosis::NearFloor { floor, .. } if (floor / 32e-9 - 1.0).abs() < 0.1);
    assert!(matches!(&found[..], [(id, _, d)] if id == "overlap.finish.host-free" && near(d)), "{found:?}");
}

fn report(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_report")).args(arguments).current_dir(folder).output().unwrap()
}

fn ended(arguments: &[&str], folder: &Path) -> (i32, String, String) {
    let output = report(arguments, folder);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

/// A folder with a run, one that is 40 % slower, and one of another device.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut rng = Rng::seed_from_u64(3);
    let (a, slow) = (noisy(&mut rng, 5, 30, 5.0, false), noisy(&mut rng, 5, 30, 7.0, false));
    let mut other = a.clone();
    other.environment.device.model = "Another device".to_owned();
    for (name, run) in [("a.json", &a), ("slow.json", &slow), ("other.json", &other)] {
        run.write(&folder.path().join(name)).unwrap();
    }
    folder
}

#[test]
fn the_exit_code_is_1_only_where_it_was_asked_for() {
    let folder = folder();
    for (arguments, code) in [
        (&["compare", "a.json", "a.json", "--fail-on", "slower,uncertain,missing"][..], 0),
        (&["compare", "a.json", "slow.json"], 0),
        (&["compare", "a.json", "slow.json", "--fail-on", "slower"], 1),
        (&["compare", "slow.json", "a.json", "--fail-on", "slower"], 0),
        (&["compare", "a.json", "slow.json", "--fail-on", "slower", "--threshold", "50%"], 0),
        (&["compare", "a.json", "none.json"], 2),
        (&["compare", "a.json", "a.json", "--threshold", "5"], 2),
        (&["compare", "a.json", "a.json", "--level", "0.99999"], 2),
    ] {
        let (ended, _, error) = ended(arguments, folder.path());
        assert_eq!(ended, code, "{arguments:?}: {error}");
        assert!(!error.contains("panicked"), "{error}");
    }
}

#[test]
fn runs_of_different_devices_are_refused_unless_across() {
    let folder = folder();
    let (code, out, error) = ended(&["compare", "a.json", "other.json"], folder.path());
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(error.contains("device model differs: Test device and Another device"), "{error}");
    assert!(error.contains("--across"), "{error}");
    let (code, out, _) = ended(&["compare", "a.json", "other.json", "--across"], folder.path());
    assert_eq!(code, 0);
    assert!(out.contains("device model differs") && out.contains("5 same"), "{out}");
}

#[test]
fn the_formats_hold_the_same_rows() {
    let folder = folder();
    let arguments = |format| ["compare", "a.json", "slow.json", "--format", format];
    let (_, text, _) = ended(&arguments("text"), folder.path());
    assert!(text.contains("5 slower") && text.contains("r.4"), "{text}");
    let (_, markdown, _) = ended(&arguments("markdown"), folder.path());
    assert!(markdown.contains("| --- |") && markdown.contains("| r&#46;4 |"), "{markdown}");
    let (_, json, _) = ended(&arguments("json"), folder.path());
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["pairs"].as_array().unwrap().len(), 5);
    assert_eq!(json["pairs"][0]["verdict"], "slower");
    assert!(json["pairs"][0]["ratio"]["low"].as_f64().unwrap() > 1.05);
}

#[test]
fn verify_runs_the_recorded_suite_again_and_ends_with_a_table() {
    let folder = tempfile::tempdir().unwrap();
    let suite = "title: Tiny
sampling: { samples: 3, warmup: 1 }
experiments:
  - sync-points: { iters: 2, big: 32, small: 8, steps: 3, samples: 2 }
";
    std::fs::write(folder.path().join("suite.yaml"), suite).unwrap();
    let run = ["run", "--suite", "suite.yaml", "--device", "cpu:0", "--only", "sync-points.timing", "--out", "r.json"];
    assert_eq!(ended(&run, folder.path()).0, 0);
    let (code, out, error) = ended(&["verify", "r.json", "--out", "v.json"], folder.path());
    assert!(code == 0 || code == 1, "{code}: {error}");
    assert!(out.contains("here / recorded") && out.contains("sync-points.timing.wall"), "{out}");
    assert!(out.contains("uncertain") && out.contains("not measured"), "{out}");
    let again = Run::read(&folder.path().join("v.json")).unwrap();
    assert_eq!(again.selection.only, ["sync-points.timing"]);
    assert_eq!(again.suite, Run::read(&folder.path().join("r.json")).unwrap().suite);

    let (code, _, error) = ended(&["verify", "r.json", "--out", "r.json"], folder.path());
    assert!(code == 2 && error.contains("overwrite"), "{code}: {error}");
    fixture::run().write(&folder.path().join("other.json")).unwrap();
    let (code, _, error) = ended(&["verify", "other.json"], folder.path());
    assert!(code == 2 && error.contains("there is no device `test:0`"), "{code}: {error}");
}
