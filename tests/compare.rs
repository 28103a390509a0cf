//! Comparing runs of known truth: what is claimed of equal runs, what of a slower one, and what a user is told.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

#[path = "fixtures/comparisons.rs"]
mod comparisons;
#[path = "fixtures/run.rs"]
mod fixture;
#[path = "fixtures/noise.rs"]
mod noise;

use std::ops::Range;
use std::path::Path;
use std::process::{Command, Output};

use comparisons::{Scatter, pairs_said_by_pairs_taken, runs_said_by_runs_taken};
use fixture::row;
use noise::{Rng, alarms, compared, found, in_runs, later, noisy, results_of, spec, timed, timed_in_runs, with_system};
use rand::SeedableRng;
use syncscope::measure::{Clock, Diagnosis};
use syncscope_present::units::Unit;
use syncscope_results::{
    Derivation, MetricSpec, Outcome, Parameter, Parameters, Provenance, Results, Row, Shift, Tolerance, compare, look,
    mismatches,
};

/// A row of observations of five runs.
fn observed(id: &str, unit: Unit, runs: Vec<Vec<f64>>) -> Row {
    Row { spec: spec(id, unit, Clock::Observed), ..timed_in_runs(id, runs) }
}

fn of_row(row: Row) -> Results {
    let runs = row.series.len();
    in_runs(results_of(vec![row]), runs)
}

fn shift(a: Row, b: Row) -> Shift {
    compared(&of_row(a), &of_row(b)).pairs[0].shift
}

#[test]
fn two_files_of_one_distribution_are_hardly_ever_slower_or_faster() {
    let mut changed = 0;
    for seed in 0..60 {
        let mut rng = Rng::seed_from_u64(seed);
        let sizes = [[3, 10], [5, 10], [5, 30]][seed as usize % 3];
        let result = compared(&noisy(&mut rng, 10, sizes, 5.0, false), &noisy(&mut rng, 10, sizes, 5.0, false));
        assert_eq!(result.pairs.len(), 10);
        changed += result.pairs.iter().filter(|pair| pair.shift.is_change()).count();
    }
    assert_eq!(changed, 0);
}

#[test]
fn an_interval_holds_the_true_ratio_as_often_as_its_level_says() {
    for (seed, sizes) in [(1, [3, 10]), (2, [5, 10])] {
        let mut rng = Rng::seed_from_u64(seed);
        let result = compared(&noisy(&mut rng, 1000, sizes, 5.0, true), &noisy(&mut rng, 1000, sizes, 5.0, true));
        let ratios = || result.pairs.iter().filter_map(|pair| pair.ratio);
        let held = ratios().filter(|ratio| ratio.low <= 1.0 && 1.0 <= ratio.high).count() as f64 / 1000.0;
        let level = ratios().next().unwrap().level;
        // Three standard errors are 2.9 % and 1.7 %.
        assert!((held - level).abs() < 3.0 * (level * (1.0 - level) / 1000.0).sqrt(), "{held} at {level}");
    }
}

#[test]
fn ten_percent_slower_is_slower_and_ten_percent_less_is_faster() {
    let mut rng = Rng::seed_from_u64(2);
    let (a, b) = (noisy(&mut rng, 40, [5, 15], 5.0, false), noisy(&mut rng, 40, [5, 15], 5.5, false));
    assert!(compared(&a, &b).count(Shift::Slower) >= 34);
    assert!(compared(&b, &a).count(Shift::Faster) >= 28);
    let more = Tolerance { threshold: 0.2, ..Tolerance::default() };
    assert_eq!(compare(&a, &b, more).count(Shift::Same), 40, "a change of 10 % does not matter at 20 %");
    let moved = compared(&a, &b).moved("syncscope").unwrap();
    assert!(moved.low > 1.08 && moved.high < 1.12, "all of it moved: {moved}");
}

#[test]
fn of_equal_files_no_more_than_one_in_twenty_has_a_change() {
    for runs in [4, 5] {
        let share = alarms(runs, 300);
        // Three standard errors of the simulation are 3.8 %.
        assert!(share <= 0.05 + 0.038, "{runs} runs: {share}");
    }
}

#[test]
fn a_change_of_20_percent_in_600_rows_is_found_by_five_runs_and_never_by_three() {
    let shares = [5, 3].map(|runs| found(runs, 10));
    assert!(shares[0] >= 0.9 && shares[1] == 0.0, "{shares:?}");
}

/// A tenth of the trials of the table in the chapter on measuring; `.ci/long.d/comparisons` makes the whole.
#[test]
fn equal_runs_of_any_distribution_name_a_change_in_5_percent_of_files() {
    const TRIALS: u64 = 100;
    for scatter in Scatter::ALL.into_iter().filter(|scatter| scatter.is_exchangeable()) {
        let alarms = comparisons::alarms(scatter, TRIALS);
        // Three standard errors are 6.5 %.
        assert!(alarms <= 0.05 + 0.065, "{}: {alarms}", scatter.name());
    }
}

/// A tenth of the trials of the table of programs by turns, of two of its lines. At 2 % rows are the same meanwhile, and stop.
#[test]
fn equal_programs_by_turns_name_a_change_in_5_percent_whenever_they_stop() {
    const TRIALS: u64 = 100;
    for (scatter, threshold) in [(Scatter::Drift, 0.02), (Scatter::TwoModes, 0.0)] {
        let alarms = comparisons::alarms_by_turns(scatter, TRIALS, threshold);
        assert!(alarms <= 0.05 + 0.065, "{} at {threshold}: {alarms}", scatter.name());
    }
}

/// Two programs by turns, of which the second takes `factor` times as long, in so many runs.
fn by_turns(rows: usize, factor: f64, runs: usize) -> [Results; 2] {
    let mut rng = Rng::seed_from_u64(5);
    [1.0, factor].map(|factor| noisy(&mut rng, rows, [runs, 5], 5.0 * factor, false))
}

#[test]
fn by_turns_a_row_is_decided_at_a_look_and_what_comes_later_changes_nothing() {
    let tolerance = Tolerance::default();
    let [[equal, alike], [fast, slow]] = [1.0, 1.2].map(|factor| by_turns(8, factor, 7));
    let same = look(&equal, &alike, tolerance, None);
    assert_eq!((same.count(Shift::Same), same.open().count()), (8, 0));
    let found = look(&fast, &slow, tolerance, None);
    assert_eq!((found.count(Shift::Slower), found.open().count()), (8, 0));
    assert_eq!(look(&slow, &fast, tolerance, None).count(Shift::Faster), 8);
    // Ten runs of a program that became slower meanwhile.
    let [one, other] = by_turns(8, 1.5, 10);
    assert_eq!(look(&one, &other, tolerance, Some(&same)).pairs, same.pairs);
    let few = by_turns(8, 1.5, 6);
    let few = look(&few[0], &few[1], tolerance, None);
    assert!(few.count(Shift::Uncertain) == 8 && few.open().all(|pair| pair.runs_to_decide == Some(7)), "{few:?}");
    assert!(syncscope_book::over_the_file(&few).ends_with("the first look takes 7"));
}

#[test]
fn by_turns_rows_that_two_suites_measure_with_other_parameters_stand_side_by_side() {
    let [a, mut b] = by_turns(2, 1.0, 7);
    b.rows[0].spec.parameters.insert("iters".to_owned(), Parameter::Integer(9));
    let found = look(&a, &b, Tolerance::default(), None);
    assert_eq!((found.pairs.len(), found.unpaired.len(), found.pairs[0].parameters.clone()), (2, 0, Parameters::new()));
}

#[test]
fn what_is_measured_by_turns_is_a_suite_a_results_file_or_a_program() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let suite = "title: A\nsampling: { samples: 2 }\ndevice: cpu:0\nexperiments: [ceilings: { copies: [64], sizes: [8], link: [64] }]";
    file("suite.yaml", suite);
    file("fails", "#!/bin/sh\necho 'error: the disk is full' >&2\nexit 1\n");
    file("no-program", "");
    let mut runs = std::fs::metadata(folder.path().join("fails")).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut runs, 0o755);
    std::fs::set_permissions(folder.path().join("fails"), runs).unwrap();
    let measured = |a: &str, b: &str| ended(&["compare", "--measure", a, b, "--for", "0s", "--quiet"], folder.path());
    let (code, said, errors) = measured("suite.yaml", "suite.yaml");
    assert!(
        code == 0 && errors.is_empty() && said.contains("1 and 1 alternating runs can name no change"),
        "{said}{errors}"
    );
    let run = ["run", "--suite", "suite.yaml", "--only", "ceilings.copy", "--runs", "1", "--out", "r.json", "--quiet"];
    assert_eq!(ended(&run, folder.path()).0, 0);
    let (code, said, errors) = measured("r.json", env!("CARGO_BIN_EXE_report"));
    assert!(code == 0 && said.contains("ceilings.copy.time") && errors.is_empty(), "{said}{errors}");
    for (program, code, error) in [
        ("nowhere", 2, "there is no suite `nowhere` and no such file"),
        ("nowhere.json", 2, "nowhere.json: "),
        ("no-program", 2, "no-program cannot be started: "),
        ("fails", 1, "fails left no run: the disk is full"),
    ] {
        let (ends, said, errors) = measured("suite.yaml", program);
        assert!(ends == code && errors.contains(error) && errors.trim().lines().count() == 1, "{ends}: {said}{errors}");
    }
    let (_, _, errors) = ended(&["bench", "launch-path", "--against", "nowhere"], folder.path());
    assert!(errors.contains("nowhere: No such file"), "{errors}");
}

#[test]
fn an_undecided_row_says_how_many_runs_decide_it() {
    // `.ci/long.d/comparisons` takes ten times as many files.
    for quotients in [runs_said_by_runs_taken(1), pairs_said_by_pairs_taken(2)] {
        let middle = syncscope::measure::median(quotients.concat());
        assert!((0.7..=1.3).contains(&middle), "{middle}");
    }
    let mut rng = Rng::seed_from_u64(13);
    let [a, b] = [(); 2].map(|()| noisy(&mut rng, 9, [2, 10], 5.0, true));
    let said = syncscope_book::undecided(&compared(&a, &b)).unwrap();
    assert!(said.starts_with("half of ") && said.contains(" runs in each file or fewer"), "{said}");
}

#[test]
fn every_system_of_both_files_is_compared_with_itself_and_one_of_one_file_is_named() {
    let mut rng = Rng::seed_from_u64(11);
    let mut file = |scale: f64| noisy(&mut rng, 12, [5, 10], scale, false);
    let alone = file(5.0);
    let (a, b) = (with_system(alone.clone(), "PyTorch", &file(8.0)), with_system(file(5.0), "PyTorch", &file(12.0)));
    let result = compared(&a, &b);
    let slower =
        |system: &str| result.pairs.iter().filter(|pair| pair.system == system && pair.shift == Shift::Slower).count();
    assert_eq!((result.pairs.len(), slower("PyTorch"), slower("syncscope")), (24, 12, 0));
    assert!(result.moved("PyTorch").unwrap().low > 1.4 && result.moved("syncscope").unwrap().high < 1.02);

    let folder = tempfile::tempdir().unwrap();
    for (name, results) in [("a.json", &a), ("b.json", &b), ("alone.json", &alone)] {
        results.write(&folder.path().join(name)).unwrap();
    }
    let (code, out, _) = ended(&["compare", "a.json", "b.json", "--fail-on", "slower"], folder.path());
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("PyTorch moved as a whole") && out.contains("over all 24 rows together"), "{out}");
    let lines: Vec<&str> = out.lines().map(str::trim).collect();
    assert!(lines.contains(&"PyTorch") && lines.contains(&"syncscope"), "the table names the systems:\n{out}");
    let (_, json, _) = ended(&["compare", "a.json", "b.json", "--json"], folder.path());
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let pairs = json["pairs"].as_array().unwrap().iter();
    let found = pairs.filter(|pair| pair["system"] == "PyTorch" && pair["shift"] == "slower");
    assert_eq!(found.count(), 12);
    let (code, out, _) = ended(&["compare", "a.json", "alone.json", "--fail-on", "missing"], folder.path());
    assert!(code == 1 && out.contains("PyTorch is in A alone"), "{code}\n{out}");
    let (code, out, _) = ended(&["compare", "alone.json", "a.json", "--fail-on", "missing"], folder.path());
    assert!(code == 0 && out.contains("PyTorch is in B alone"), "{code}\n{out}");
}

/// Of equal rows 0.5 % have intervals that do not meet; of 4,000 three standard errors are 0.34 %.
#[test]
fn one_in_200_equal_rows_has_disjoint_intervals() {
    let mut rng = Rng::seed_from_u64(21);
    let mut apart = 0;
    for runs in [3, 5] {
        let (a, b) = (noisy(&mut rng, 2000, [runs, 10], 5.0, false), noisy(&mut rng, 2000, [runs, 10], 5.0, false));
        let [found] = compared(&a, &b).agreement().try_into().unwrap();
        // A few are diagnosed by chance, and publish none.
        assert!(found.rows > 1900 && found.factor.is_none(), "{found:?}");
        apart += found.apart;
    }
    assert!((6..=34).contains(&apart), "{apart} of 4000");
}

/// Changes the samples of some rows.
fn change(file: &mut Results, rows: Range<usize>, to: impl Fn(f64) -> f64) {
    for series in file.rows[rows].iter_mut().flat_map(|row| &mut row.series) {
        series.outcome.values_mut().into_iter().for_each(|sample| *sample = to(*sample));
    }
}

#[test]
fn a_factor_of_the_machine_is_said_before_the_rows_that_moved_besides() {
    let mut rng = Rng::seed_from_u64(22);
    let (a, mut b) = (noisy(&mut rng, 200, [5, 10], 5.0, false), noisy(&mut rng, 200, [5, 10], 5.5, false));
    // Seven rows take half as long again.
    change(&mut b, 0..7, |sample| sample * 1.5);
    let [found] = compared(&a, &b).agreement().try_into().unwrap();
    let factor = found.factor.unwrap();
    assert!(factor.low < 1.1 && 1.1 < factor.high && factor.high < 1.12, "{factor}");
    assert!(found.apart > 150 && (7..=12).contains(&found.apart_without_factor), "{found:?}");
    // Runs scatter by 1 %: five of them give 2.776 / √5 %, and a little more from the samples.
    for widths in found.half_widths {
        let widths = widths.unwrap();
        assert!((0.010..0.016).contains(&widths.middle), "{widths:?}");
        assert!(widths.nine_in_ten > widths.middle && widths.nine_in_ten < 0.025, "{widths:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, results) in [("a.json", &a), ("b.json", &b)] {
        results.write(&folder.path().join(name)).unwrap();
    }
    let (_, out, _) = ended(&["compare", "a.json", "b.json"], folder.path());
    let (moved, rest) = out.split_once("syncscope moved as a whole").unwrap_or_else(|| panic!("{out}"));
    assert!(
        !moved.contains("do not meet") && rest.contains(" rows do not meet; with that factor taken out, of "),
        "{out}"
    );
    assert!(rest.contains("intervals of times and rates: A ± ") && rest.contains("for nine in ten"), "{out}");
    let (_, json, _) = ended(&["compare", "a.json", "b.json", "--json"], folder.path());
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let agreement = &json["agreement"][0];
    assert_eq!(
        (agreement["system"].as_str(), agreement["rows"].as_u64()),
        (Some("syncscope"), Some(found.rows as u64))
    );
    assert_eq!(agreement["apart_without_factor"].as_u64(), Some(found.apart_without_factor as u64));
    assert!(agreement["half_widths"][1]["nine_in_ten"].as_f64().unwrap() > 0.01);
}

/// Most rows take a little longer, within their intervals; the others have narrow intervals and did not move.
#[test]
fn a_factor_of_some_rows_is_none_of_the_machine() {
    let mut rng = Rng::seed_from_u64(23);
    let (mut a, mut b) = (noisy(&mut rng, 200, [5, 10], 5.0, false), noisy(&mut rng, 200, [5, 10], 5.0, false));
    for file in [&mut a, &mut b] {
        change(file, 0..80, |sample| 5e-6 + (sample - 5e-6) * 1e-2);
    }
    change(&mut b, 80..200, |sample| sample * 1.008);
    let result = compared(&a, &b);
    let [found] = result.agreement().try_into().unwrap();
    assert!(result.moved("syncscope").unwrap().low > 1.0, "the middle of all rows did move");
    assert!(found.factor.is_none() && found.apart < 10 && found.apart_without_factor == found.apart, "{found:?}");
}

/// One figure would be of neither level.
#[test]
fn a_comparison_shows_no_interval_of_two_levels() {
    let levels = |scale: f64| -> Vec<f64> {
        (0..30).map(|i| scale * (f64::from(1 + i % 2) + 1e-3 * f64::from(i * 7 % 30))).collect()
    };
    let file = |scale: f64| {
        let runs = [1.0, 1.001, 0.999].map(|level| levels(level * scale)).to_vec();
        in_runs(results_of(vec![timed_in_runs("two", runs)]), 3)
    };
    let result = compared(&file(1e-3), &file(5e-3));
    assert_eq!((result.agreement()[0].rows, result.agreement()[0].apart), (0, 0));
    let tables = syncscope_book::compared(&result, syncscope_book::Wording::Compare);
    let said = tables[0].to_markdown();
    // Its punctuation is escaped.
    assert!(said.matches("two levels").count() == 2 && !said.contains('…'), "{said}");
}

#[test]
fn trials_and_counts_are_counted_by_run() {
    let yes = |runs: &[usize]| {
        let trials = |yes: &usize| (0..9).map(|trial| f64::from(trial < *yes)).collect();
        observed("b", Unit::Ratio, runs.iter().map(trials).collect())
    };
    assert_eq!(shift(yes(&[9; 5]), yes(&[0; 5])), Shift::Different);
    assert_eq!(shift(yes(&[9; 5]), yes(&[9; 5])), Shift::Same);
    assert_eq!(shift(yes(&[9; 3]), yes(&[0; 3])), Shift::Uncertain, "three runs are too few");
    assert_eq!(shift(yes(&[9, 9, 0, 9, 9]), yes(&[0, 9, 0, 0, 0])), Shift::Uncertain, "a run decides all its trials");
    let count = |runs: Vec<f64>| observed("n", Unit::Number, runs.into_iter().map(|count| vec![count; 9]).collect());
    assert_eq!(shift(count(vec![64.0; 5]), count(vec![0.0; 5])), Shift::Different);
    assert_eq!(shift(count(vec![64.0; 3]), count(vec![0.0; 3])), Shift::Uncertain);
}

#[test]
fn readings_of_a_coarse_clock_are_compared_as_any() {
    let readings = |runs: [f64; 5]| timed_in_runs("t", runs.map(|run| vec![run * 1e-7; 9]).to_vec());
    assert_eq!(shift(readings([2.0; 5]), readings([2.0; 5])), Shift::Same);
    assert_eq!(shift(readings([2.0; 5]), readings([3.0; 5])), Shift::Slower);
    assert_eq!(shift(readings([2.0, 2.0, 3.0, 2.0, 2.0]), readings([2.0, 3.0, 2.0, 3.0, 2.0])), Shift::Uncertain);
}

#[test]
fn files_that_share_runs_are_not_judged() {
    let mut rng = Rng::seed_from_u64(12);
    let [a, mut b] = [(); 2].map(|()| later(noisy(&mut rng, 5, [5, 10], 5.0, false)));
    let judged = |a: &Results, b: &Results| {
        let result = compare(a, b, Tolerance::default());
        let said = syncscope_book::over_the_file(&result);
        assert_eq!(said.contains("share"), result.shared_runs > 0, "{said}");
        (result.shared_runs, result.count(Shift::Uncertain))
    };
    assert_eq!(judged(&a, &b), (0, 0), "they begin at the same time, as those of two machines may");
    assert_eq!(judged(&a, &a), (5, 5));
    b.rows.iter_mut().zip(a.rows.iter()).for_each(|(row, of_a)| row.series[2].outcome = of_a.series[2].outcome.clone());
    assert_eq!(judged(&a, &b), (1, 5));
    assert_eq!(judged(&a, &later_still(b)), (0, 0));
}

fn later_still(mut results: Results) -> Results {
    results.runs.iter_mut().for_each(|run| "2026-03-03T00:00:00Z".clone_into(&mut run.started));
    results
}

#[test]
fn one_run_a_side_tells_no_change() {
    let mut rng = Rng::seed_from_u64(4);
    let (a, b) = (noisy(&mut rng, 5, [1, 50], 5.0, false), noisy(&mut rng, 5, [1, 50], 50.0, false));
    assert_eq!(compared(&a, &b).count(Shift::Uncertain), 5);
}

#[test]
fn a_row_near_the_floor_of_its_clock_is_never_slower() {
    let run = |seconds: f64| (0..30).map(|i| seconds * (1.0 + 1e-3 * f64::from(i))).collect::<Vec<f64>>();
    let levels = [1.0, 1.001, 0.999, 1.002, 0.998];
    let times = |id: &str, seconds: f64| timed_in_runs(id, levels.map(|level| run(level * seconds)).to_vec());
    let audited =
        |seconds: f64| in_runs(results_of(vec![floor(times("audit.timer", 20e-9)), times("calls.view", seconds)]), 5);
    let shift = |a: f64, b: f64| compared(&audited(a), &audited(b)).pairs[1].shift;
    assert_eq!(shift(100e-9, 180e-9), Shift::Uncertain);
    assert_eq!(shift(100e-6, 180e-6), Shift::Slower);
}

/// The row, said to be the floor of the host's clock.
fn floor(row: Row) -> Row {
    Row { spec: MetricSpec { floor: Some(Clock::Host), ..row.spec }, ..row }
}

#[test]
fn a_rate_that_falls_is_slower_and_a_count_that_changes_is_different() {
    let rate = |value: f64| {
        let samples = |run: f64| (0..15).map(|i| run * value * (1.0 + 1e-3 * f64::from(i))).collect();
        observed("r", Unit::BytesPerSecond, [1.0, 1.001, 0.999, 1.002].map(samples).to_vec())
    };
    assert_eq!(shift(rate(55e9), rate(40e9)), Shift::Slower);
    assert_eq!(shift(rate(40e9), rate(55e9)), Shift::Faster);
    let count = |value: f64| observed("n", Unit::Number, vec![vec![value; 15]; 4]);
    assert_eq!(shift(count(64.0), count(64.0)), Shift::Same);
    assert_eq!(shift(count(64.0), count(32.0)), Shift::Different);
    assert_eq!(shift(count(0.0), count(0.0)), Shift::Same);
    assert_eq!(shift(count(0.0), count(7.0)), Shift::Different);
}

/// A driver in which one call of a thousand rows came to wait.
#[test]
fn a_call_that_begins_to_wait_is_a_change_among_any_number_of_rows() {
    let yes =
        |id: &str, count: usize| observed(id, Unit::Ratio, vec![(0..9).map(|i| f64::from(i < count)).collect(); 4]);
    let others = || (0..1000).map(|i| yes(&format!("b.other-{i}"), 4));
    let file = |counts: [usize; 3]| {
        let own = ["b.flip", "b.mixed", "b.same"].into_iter().zip(counts).map(|(id, count)| yes(id, count));
        in_runs(results_of(own.chain(others()).collect()), 4)
    };
    let result = compared(&file([0, 0, 9]), &file([9, 3, 9]));
    let changed: Vec<&str> = result.changed_behaviour().map(|pair| pair.id.as_str()).collect();
    assert_eq!(changed, ["b.flip", "b.mixed"]);
    assert_eq!(result.count(Shift::Different), 2);
    let tables = syncscope_book::compared(&result, syncscope_book::Wording::Compare);
    let said = tables[0].to_console();
    assert!(said.contains("Behaviour that changed") && said.contains("b.mixed") && !said.contains("b.same"), "{said}");
}

/// A process that was stopped while a gate was closed.
#[test]
fn one_trial_of_one_run_that_differs_is_no_changed_behaviour() {
    let file = |last: f64| {
        let runs = (0..5).map(|run| vec![1.0, 1.0, if run == 3 { last } else { 1.0 }]).collect();
        in_runs(results_of(vec![observed("b.call", Unit::Ratio, runs)]), 5)
    };
    for (a, b) in [(1.0, 0.0), (0.0, 1.0)] {
        assert_eq!(compared(&file(a), &file(b)).changed_behaviour().count(), 0);
    }
}

#[test]
fn calls_that_wait_under_one_driver_differ_by_four_runs_not_by_three() {
    let call = |name: &str, waits: bool, runs: usize| {
        let row = timed_in_runs("driver-calls.wait.blocks", vec![vec![f64::from(waits); 3]; runs]);
        let parameters = Parameters::from([("call".to_owned(), name.into())]);
        Row { spec: MetricSpec { parameters, ..spec(&row.spec.id, Unit::Ratio, Clock::Observed) }, ..row }
    };
    let file = |waits: [bool; 2], runs: usize| {
        let rows = vec![call("cuMemAlloc", waits[0], runs), call("cuMemFree", waits[1], runs)];
        in_runs(results_of(rows), runs)
    };
    let changed = |runs: usize| {
        let pairs = compared(&file([false, true], runs), &file([true, true], runs)).pairs;
        let changed = pairs.iter().filter(|pair| pair.shift == Shift::Different);
        changed.map(|pair| pair.parameters["call"].to_string()).collect::<Vec<_>>()
    };
    assert_eq!(changed(4), ["cuMemAlloc"]);
    assert!(changed(3).is_empty());
}

#[test]
fn a_difference_is_never_slower() {
    let delta = |value: f64| {
        let (derivation, formula, operands) = (Derivation::Difference, "b − a".to_owned(), Vec::new());
        let provenance = Provenance::Derived { derivation, formula, operands };
        let samples = |run: u32| (0..15).map(|i| value + 1e-9 * f64::from(i + run)).collect();
        let row = timed_in_runs("d", (0..4).map(samples).collect());
        Row { spec: MetricSpec { provenance, ..row.spec }, ..row }
    };
    assert_eq!(shift(delta(1e-6), delta(9e-6)), Shift::Different);
    assert_eq!(shift(delta(-1e-6), delta(9e-6)), Shift::Different);
    assert_eq!(shift(delta(-7e-9), delta(-8e-9)), Shift::Uncertain);
}

#[test]
fn rows_that_one_run_lacks_are_listed_with_the_reason() {
    let skipped = spec("skipped", Unit::Seconds, Clock::Host);
    let skipped = row(skipped, Outcome::Skipped { reason: "no room".to_owned() });
    let a = results_of(vec![timed("both", vec![1.0; 15]), timed("skipped", vec![1.0; 15]), timed("gone", vec![1.0])]);
    let b = results_of(vec![skipped, timed("both", vec![1.0; 15]), timed("new", vec![1.0])]);
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
fn what_forbids_a_comparison_is_named() {
    let results = fixture::run();
    assert!(mismatches(&results, &results).is_empty());
    let mut other = results.clone();
    other.runs[0].environment.device.model = "Another device".to_owned();
    other.runs[0].environment.device.facts[0].1 = "590.00".to_owned();
    other.suite["sampling"]["samples"] = 3.into();
    let what =
        |other: &Results| mismatches(&results, other).into_iter().map(|mismatch| mismatch.what).collect::<Vec<_>>();
    assert_eq!(what(&other), ["device model", "driver", "sampling of the suite"]);
    let mut retitled = results.clone();
    retitled.suite["title"] = "T".into();
    assert!(what(&retitled).is_empty(), "a title changes no measurement");
    let mut fewer = results.clone();
    let name = results.rows[0].spec.experiment().to_owned();
    fewer.rows.remove(0);
    assert_eq!(what(&fewer), [format!("set of parameters of `{name}`")]);
}

#[test]
fn times_near_the_floor_of_their_clock_are_diagnosed_but_not_those_of_loops() {
    let around = |value: f64| (0..15).map(|i| value * (1.0 + 0.01 * f64::from(i * 4 % 15))).collect::<Vec<_>>();
    let mut looped = timed("model.t1", around(100e-9));
    looped.spec.provenance = Provenance::Measured { clock: Clock::Host, iterations: 100 };
    let results = results_of(vec![
        floor(timed("audit.cost", around(20e-9))),
        floor(timed("audit.resolution", around(30e-9))),
        timed("finish.dispatch", around(200e-9)),
        timed("finish.completion", around(900e-9)),
        looped,
    ]);
    let found = results.diagnoses();
    let near = |d: &Diagnosis| matches!(d, Diagnosis::NearFloor { floor, .. } if (floor / 32e-9 - 1.0).abs() < 0.1);
    assert!(matches!(&found[..], [(spec, d)] if spec.id == "finish.dispatch" && near(d)), "{found:?}");
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
    let (a, slow) = (noisy(&mut rng, 5, [5, 10], 5.0, false), noisy(&mut rng, 5, [5, 10], 7.0, false));
    let mut other = later(a.clone());
    other.runs[0].environment.device.model = "Another device".to_owned();
    for (name, run) in [("a.json", &a), ("slow.json", &slow), ("other.json", &other)] {
        run.write(&folder.path().join(name)).unwrap();
    }
    folder
}

#[test]
fn the_exit_code_is_1_only_where_it_was_asked_for() {
    let folder = folder();
    for (arguments, code) in [
        (&["compare", "a.json", "a.json", "--fail-on", "slower,missing"][..], 0),
        (&["compare", "a.json", "a.json", "--fail-on", "uncertain"], 1),
        (&["compare", "a.json", "slow.json"], 0),
        (&["compare", "a.json", "slow.json", "--fail-on", "slower"], 1),
        (&["compare", "slow.json", "a.json", "--fail-on", "slower"], 0),
        (&["compare", "a.json", "slow.json", "--fail-on", "slower", "--threshold", "50%"], 0),
        (&["compare", "a.json", "none.json"], 2),
        (&["compare", "a.json", "a.json", "--threshold", "5"], 2),
        (&["compare", "a.json", "a.json", "--level", "1"], 2),
    ] {
        let (ended, _, error) = ended(arguments, folder.path());
        assert_eq!(ended, code, "{arguments:?}: {error}");
        assert!(!error.contains("panicked"), "{error}");
    }
}

#[test]
fn runs_of_different_devices_are_refused_unless_a_mismatch_is_allowed() {
    let folder = folder();
    let (code, out, error) = ended(&["compare", "a.json", "other.json"], folder.path());
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(error.contains("device model differs: Test device and Another device"), "{error}");
    assert!(error.contains("--allow-mismatch"), "{error}");
    let (code, out, _) = ended(&["compare", "a.json", "other.json", "--allow-mismatch"], folder.path());
    assert_eq!(code, 0);
    assert!(out.contains("device model differs") && out.contains("5 same"), "{out}");
}

#[test]
fn what_differs_is_escaped_in_markdown() {
    let folder = folder();
    let text = std::fs::read_to_string(folder.path().join("other.json")).unwrap();
    std::fs::write(folder.path().join("other.json"), text.replace("Another device", "<img src=x>`*")).unwrap();
    let arguments = ["compare", "a.json", "other.json", "--allow-mismatch", "--format", "markdown"];
    let (code, out, error) = ended(&arguments, folder.path());
    assert_eq!(code, 0, "{error}");
    assert!(out.contains(r"\<img src=x>\`\*") && !out.replace(r"\<", "").contains("<img"), "{out}");
}

#[test]
fn the_formats_hold_the_same_rows() {
    let folder = folder();
    let arguments = |format| ["compare", "a.json", "slow.json", "--format", format];
    let (_, text, _) = ended(&arguments("text"), folder.path());
    assert!(text.contains("5 slower") && text.contains("r.4"), "{text}");
    let (_, markdown, _) = ended(&arguments("markdown"), folder.path());
    assert!(markdown.contains("| --- |") && markdown.contains("| r.4 |"), "{markdown}");
    let (_, json, _) = ended(&["compare", "a.json", "slow.json", "--json"], folder.path());
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["pairs"].as_array().unwrap().len(), 5);
    assert_eq!(json["pairs"][0]["shift"], "slower");
    assert!(json["pairs"][0]["ratio"]["low"].as_f64().unwrap() > 1.05);
}
