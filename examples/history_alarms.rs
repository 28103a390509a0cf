//! How often a row that does not change raises an alarm within a year of daily runs, and how soon a shift is found: the
//! numbers behind `report history`. `cargo run --release --example history_alarms -- 5000` takes so many rows.

#![allow(clippy::unwrap_used, reason = "an example may panic")]

use rand::{RngExt, SeedableRng, rngs::StdRng};
use syncscope_results::statistics::change_points;

const YEAR: usize = 365;

/// A sum of uniform values: nearly normal, with a standard deviation of 1.
fn normal(rng: &mut StdRng) -> f64 {
    (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0
}

fn main() {
    let rows: usize = std::env::args().nth(1).map_or(1000, |count| count.parse().unwrap());
    let mut rng = StdRng::seed_from_u64(19);
    for dependence in [0.0, 0.3, 0.5, 0.7] {
        let mut alarms = [0; 2];
        for _ in 0..rows {
            let mut level = 0.0;
            let mut value = || {
                level = dependence * level + normal(&mut rng);
                level
            };
            let values: Vec<f64> = (0..2 * YEAR).map(|_| value()).collect();
            let changes = change_points(&values);
            for (year, alarms) in alarms.iter_mut().enumerate() {
                *alarms += usize::from(changes.iter().any(|change| change.found / YEAR == year));
            }
        }
        for (year, alarms) in (1..).zip(alarms) {
            let share = alarms as f64 / rows as f64;
            println!(
                "false alarms in year {year}, each value depending on the last by {dependence}: {alarms} of {rows} rows ({share:.4})"
            );
        }
    }
    for (before, shift) in
        [30, 90, 365].into_iter().flat_map(|before| [0.5, 1.0, 2.0, 5.0].map(|shift| (before, shift)))
    {
        let mut days: Vec<usize> = (0..rows / 10)
            .map(|_| {
                let level = |place: usize| if place < before { 0.0 } else { shift };
                let values: Vec<f64> = (0..before + 90).map(|place| level(place) + normal(&mut rng)).collect();
                let found = change_points(&values).into_iter().map(|change| change.found);
                found.filter(|found| *found >= before).map(|found| found - before + 1).next().unwrap_or(usize::MAX)
            })
            .collect();
        days.sort_unstable();
        let found = days.iter().filter(|days| **days <= 90).count() as f64 / days.len() as f64;
        let middle = Some(days[days.len() / 2]).filter(|days| *days <= 90);
        let middle = middle.map_or_else(|| "not within 90 days".to_owned(), |days| format!("after {days} days"));
        println!(
            "a shift of {shift} standard deviations after {before} days: found in {found:.2} of 90 days; in the middle {middle}"
        );
    }
}
