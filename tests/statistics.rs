//! Whether the intervals hold what they promise, on synthetic samples of known truth. The figures for every size are
//! printed by `cargo run --release --example coverage`.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "fixtures/truths.rs"]
mod truths;

use rand::SeedableRng;
use rand_distr::{Distribution, Normal};
use syncscope::measure::Bootstrap;
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

/// Why an estimate does not resample: the percentile bootstrap of the median misses the mark at small n.
#[test]
fn the_plain_percentile_bootstrap_of_a_median_is_too_narrow_for_some_sizes() {
    let normal = &truths()[0];
    let bootstrap = Bootstrap::default().with_resamples(200);
    let median = |sets: &[Vec<f64>]| {
        let mut values = sets[0].clone();
        let middle = values.len() / 2;
        *values.select_nth_unstable_by(middle, f64::total_cmp).1
    };
    let share = share(400, 7, |rng| {
        let samples = draw(&normal.source, 9, rng);
        let (low, high) = bootstrap.interval(&[samples.values()], 0.95, median).unwrap();
        low <= normal.median && normal.median <= high
    });
    assert!(share < 0.94, "{share}");
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
fn the_interval_between_runs_holds_whatever_the_samples_of_a_run_have_to_do_with_each_other() {
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
        let share = false_verdicts(count, 10, TRIALS);
        assert!(share <= 0.05 + 3.0 * (0.05 * 0.95 / TRIALS as f64).sqrt(), "R = {count}: {share}");
    }
}

#[test]
fn two_states_of_the_machine_are_said_more_often_than_chance_would() {
    let said = runs_diagnosed(Kind::RegimesWithin, 5, 10, 500);
    assert!(said > 0.25, "{said} of the files have a diagnosis");
    let plain = runs_diagnosed(Kind::Dependent(0.0), 5, 10, 500);
    assert!(plain < 0.1, "{plain}");
}

/// The table is what `cargo run --example coverage -- runs` prints.
#[test]
fn the_table_of_coverage_of_the_method_chapter_holds_every_kind_of_runs_with_its_coverage() {
    let page = include_str!("../report-templates/machine.md.j2");
    let rows: Vec<Vec<&str>> = page.lines().map(|line| line.split('|').map(str::trim).collect()).collect();
    for kind in Kind::ALL {
        let label = kind.label();
        let row = rows.iter().find(|row| row.get(1) == Some(&label.as_str()));
        let row = row.unwrap_or_else(|| panic!("the table has no row `{label}`"));
        for (place, count) in (2..).zip([3, 5, 10]) {
            let said: f64 = row[place].trim_end_matches(" %").parse().unwrap();
            let covered = 100.0 * runs_covered(kind, count, 10, TRIALS);
            // Three standard errors of 2,000 trials, at the least favourable share.
            assert!((covered - said).abs() < 3.4, "{label}, R = {count}: {covered} and not {said}");
        }
    }
}
