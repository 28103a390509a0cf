//! Whether the intervals hold what they promise, on synthetic samples of known truth. The figures for every size are
//! printed by `cargo run --release --example coverage`.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "fixtures/truths.rs"]
mod truths;

use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Normal};
use syncscope::measure::{
    Clock, Comparison, Protocol, Sampler, Samples, diagnose, judge, near_floor, timer_cost, timer_resolution,
};
use syncscope_results::statistics::{
    Ratio, RowByRun, Tail, chances_over_rows, change_points, outliers, smallest_shift,
};
use truths::*;

#[test]
fn the_interval_of_a_median_holds_it_in_95_percent_of_trials() {
    for truth in truths() {
        for n in SIZES {
            let share = coverage(&truth, n, TRIALS);
            assert!((0.93..=0.97).contains(&share), "{}, n = {n}: {:.1} %", truth.name, share * 100.0);
        }
    }
}

#[test]
fn the_coverage_that_an_estimate_states_is_the_one_it_has() {
    for truth in truths() {
        for n in (6..=14).chain([18, 40]) {
            let stated = draw(&truth.source, n, &mut Rng::seed_from_u64(0)).estimate().coverage;
            let scatter = (stated * (1.0 - stated) / TRIALS as f64).sqrt();
            let share = coverage(&truth, n, TRIALS);
            // Below twelve samples the extremes, which choose the side, are among the ranks that bound the interval or
            // next to them: there it may cover more.
            let above = if n < 12 { 0.04 } else { 4.0 * scatter };
            assert!(
                (-4.0 * scatter..=above).contains(&(share - stated)),
                "{}, n = {n}: {share} for {stated}",
                truth.name
            );
        }
    }
}

#[test]
fn equal_cases_are_claimed_to_differ_in_at_most_6_percent_of_trials() {
    for truth in truths() {
        for n in SIZES {
            let share = false_claims(&truth, n, TRIALS);
            assert!(share <= 0.06, "{}, n = {n}: {:.1} %", truth.name, share * 100.0);
        }
    }
}

#[test]
fn a_clock_that_steps_coarsely_makes_the_interval_no_less_sure() {
    let normal = Normal::new(10.0_f64, 2.0).unwrap();
    let stepped = truth("rounded normal", 10.0, move |rng| normal.sample(rng).round());
    for n in SIZES {
        assert!(coverage(&stepped, n, TRIALS) >= 0.93, "n = {n}");
    }
}

#[test]
fn nothing_is_diagnosed_of_plain_samples_in_more_than_2_percent_of_trials() {
    for truth in plain_shapes() {
        for n in DIAGNOSED {
            let shares = diagnosed(|rng, _| (truth.source)(rng), n, TRIALS);
            for (kind, share) in KINDS.iter().zip(shares) {
                assert!(share <= 0.02, "{kind} of {}, n = {n}: {:.2} %", truth.name, share * 100.0);
            }
        }
    }
}

#[test]
fn a_drift_and_two_clocks_are_found_in_most_trials() {
    assert!(diagnosed(|rng, i| drifting(rng, i, 30), 30, 300)[0] > 0.95);
    assert!(diagnosed(|rng, _| two_clocks(rng, 0.5), 30, 300)[1] > 0.95);
}

#[test]
fn the_interval_between_runs_holds_with_dependent_samples() {
    for factor in [0.0, 0.4, 0.6, 0.8] {
        for count in [3, 5] {
            let covered = runs_covered(Kind::Dependent(factor), count, 10, TRIALS);
            // 95 % are expected; three standard errors of 2,000 trials are 1.5 %.
            assert!((0.93..=0.97).contains(&covered), "{factor}, R = {count}: {covered}");
        }
    }
}

#[test]
fn equal_rows_are_said_to_differ_in_one_file_of_twenty() {
    for count in [3, 5] {
        let share = false_verdicts(Kind::Dependent(0.6), count, 10, TRIALS);
        assert!(share <= 0.05 + 3.0 * (0.05 * 0.95 / TRIALS as f64).sqrt(), "R = {count}: {share}");
    }
}

#[test]
fn two_states_of_the_machine_are_said_more_often_than_chance_would() {
    let said = runs_diagnosed(Kind::LevelsWithin, 5, 10, 500);
    assert!(said > 0.25, "{said} of the files have a diagnosis");
    let plain = runs_diagnosed(Kind::Dependent(0.0), 5, 10, 500);
    assert!(plain < 0.1, "{plain}");
}

#[test]
fn a_disturbance_that_meets_one_pass_of_several_widens_the_interval_less() {
    let [[one, _, one_wide], [five, _, five_wide]] = [1, 5].map(|passes| disturbed(passes, 12, TRIALS));
    assert!(
        five > one + 0.3 && five_wide < one_wide / 3.0,
        "{one} and {five} covered, {one_wide} and {five_wide} wide"
    );
}

/// A verdict about a quantity with two levels in its runs, of which no table shows an interval, is wrong no more often.
#[test]
fn equal_rows_with_two_levels_alarm_in_at_most_one_file_of_twenty() {
    for count in COUNTS {
        let share = false_verdicts(Kind::LevelsWithin, count, 10, TRIALS);
        assert!(share <= 0.05 + 3.0 * (0.05 * 0.95 / TRIALS as f64).sqrt(), "R = {count}: {share}");
    }
}

/// The tables are what `cargo run --example coverage -- runs` prints.
#[test]
fn the_tables_of_the_method_chapter_hold_what_is_simulated_for_every_kind_of_runs() {
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../report-templates/machine.md.j2")).unwrap();
    let table = |heading: &str| -> Vec<Vec<&str>> {
        let lines = page.lines().skip_while(|line| !line.starts_with(heading)).take_while(|line| line.starts_with('|'));
        lines.map(|line| line.split('|').map(str::trim).collect()).collect()
    };
    // Three standard errors of 2,000 trials, at the least favourable share.
    let agrees = |cell: &str, share: f64| {
        let said: f64 = cell.trim_end_matches(" %").parse().unwrap();
        (100.0 * share - said).abs() < 3.4
    };
    let row = |rows: &[Vec<&str>], label: &str| {
        let row = rows.iter().find(|row| row.get(1) == Some(&label));
        let cells = row.unwrap_or_else(|| panic!("the table has no row `{label}`"));
        cells.iter().map(|cell| (*cell).to_owned()).collect::<Vec<String>>()
    };
    let covered = table("| Runs |");
    for (kind, n) in Kind::tabled() {
        let label = kind.label(n);
        let row = row(&covered, &label);
        for (place, count) in (2..).zip(COUNTS) {
            let share = runs_covered(kind, count, n, TRIALS);
            assert!(agrees(&row[place], share), "{label}, R = {count}: {share} covered and not {}", row[place]);
            let share = runs_diagnosed(kind, count, n, TRIALS);
            assert!(
                agrees(&row[place + 3], share),
                "{label}, R = {count}: {share} diagnosed and not {}",
                row[place + 3]
            );
        }
    }
    let passes = table("| Passes |");
    for count in Kind::PASSES {
        let ([covered, ..], row) = (disturbed(count, 12, TRIALS), row(&passes, &count.to_string()));
        assert!(agrees(&row[2], covered), "{count} passes: {covered} covered and not {}", row[2]);
    }
    let tied = table("| Two equal rows |");
    for kind in Kind::TIED {
        let row = row(&tied, &kind.label(10));
        for (place, count) in (2..).zip(COUNTS) {
            let share = false_verdicts(kind, count, 10, TRIALS);
            assert!(agrees(&row[place], share), "{}, R = {count}: {share} and not {}", row[1], row[place]);
        }
    }
}

/// What a public function is given may be empty, of any length, and any number.
#[test]
fn nothing_that_is_given_as_samples_ends_the_program() {
    let numbers = [0.0, -0.0, 1.0, 1.5, -1.0, f64::MAX, f64::MIN_POSITIVE, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    let mut rng = Rng::seed_from_u64(5);
    let mut sets: Vec<Vec<f64>> = (0..=13).flat_map(|len| numbers.map(|number| vec![number; len])).collect();
    sets.extend(
        (0..200).map(|len: usize| (0..len % 40).map(|_| numbers[rng.random_range(0..numbers.len())]).collect()),
    );
    sets.extend((0..40).map(|len| (0..len).map(|place| f64::from(place / 20)).collect()));
    for set in &sets {
        let set = set.as_slice();
        diagnose(&[set]);
        diagnose(&[&[], set, set]);
        change_points(set);
        outliers(set, 0, Tail::NORMAL);
        outliers(set, 10, Tail::of(&[set.iter().copied().map(Some).collect()]));
        syncscope_results::statistics::estimate_of_runs(&[set, set]);
        syncscope_results::statistics::estimate_of_runs(&[set, &[1.0]]);
        syncscope_results::statistics::estimate_of_runs(&[set, &[1e150, 1e150 + 1e134], &[0.0, 1e-4, 2e-4], &[1.0]]);
        Ratio::of_runs(set, &[1.0, 2.0], 0.95).map(|ratio| ratio.change(f64::NAN));
        Ratio::of_pairs(&set.iter().map(|value| (*value, 1.0)).collect::<Vec<_>>(), 0.0).map(|ratio| ratio.change(2.0));
        let row = RowByRun { values: set.iter().copied().map(Some).collect(), margin: 0.0 };
        let chances = chances_over_rows(&[row.clone(), row], set.len() / 2, set.len());
        assert!(chances.iter().all(|chance| (0.0..=1.0).contains(chance)), "{set:?}: {chances:?}");
        if let Ok(samples) = Samples::new("set", set.to_vec()) {
            samples.estimate().scaled(f64::NAN).excludes_zero();
            judge([&samples, &samples], |[a, b]| a < b);
            let _ = samples.minus(&samples).map(|difference| difference.estimate());
            let _ = Comparison::new(samples.clone(), samples).map(|comparison| comparison.to_string());
        }
    }
    judge([], |[]| true);
    diagnose(&[]);
    syncscope_results::statistics::estimate_of_runs(&[]);
    near_floor(Clock::Host, f64::NAN, f64::NAN);
    smallest_shift(f64::NAN, 0, 0);
    assert!(timer_cost(0).is_empty() && timer_resolution(0).is_empty());
    assert!(Sampler::new(Protocol::samples(0)).sample(Vec::<syncscope::measure::Case>::new()).is_err());
}
