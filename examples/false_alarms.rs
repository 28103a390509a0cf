//! How often two equal files are told apart, how often an interval of 95 % holds the truth, and how often a slower row is found: the numbers behind the defaults of `report compare`.
//! With a number of trials it prints the table of the chapter on measuring, and with `by-turns` behind it the one of programs
//! that are measured by turns. With a number of files and `runs-needed` it says how near what undecided rows are said to take is
//! to what they take.

#![allow(clippy::unwrap_used, reason = "an example may panic")]

#[path = "../tests/fixtures/comparisons.rs"]
mod comparisons;
#[path = "../tests/fixtures/run.rs"]
mod fixture;
#[path = "../tests/fixtures/noise.rs"]
mod noise;

use noise::{Rng, alarms, compared, found, noisy};
use rand::SeedableRng;
use syncscope_results::Shift;
use syncscope_results::statistics::Ratio;

fn main() {
    if let Some(trials) = std::env::args().nth(1) {
        let trials = trials.parse().unwrap();
        let table = match std::env::args().nth(2).as_deref() {
            Some("by-turns") => comparisons::table_by_turns(trials),
            Some("runs-needed") => comparisons::table_of_runs_needed(trials),
            _ => comparisons::table(trials),
        };
        print!("{table}");
        return;
    }
    for skewed in [false, true] {
        for sizes in [[2, 10], [3, 10], [3, 30], [5, 10], [5, 30], [10, 10]] {
            let mut rng = Rng::seed_from_u64(sizes[0] as u64);
            let rows = 5_000;
            let result =
                compared(&noisy(&mut rng, rows, sizes, 5.0, skewed), &noisy(&mut rng, rows, sizes, 5.0, skewed));
            let share = |count: usize| count as f64 / rows as f64;
            let changed = result.pairs.iter().filter(|pair| pair.shift.is_change()).count();
            let holds = |ratio: &Ratio| ratio.low <= 1.0 && 1.0 <= ratio.high;
            let held = result.pairs.iter().filter(|pair| pair.ratio.as_ref().is_some_and(holds)).count();
            let same = share(result.count(Shift::Same));
            println!(
                "skewed {skewed}, {sizes:?} runs and samples: coverage {:.4}, slower or faster {:.5}, same {same:.3}",
                share(held),
                share(changed)
            );
        }
    }
    for runs in [3, 4, 5] {
        let share = alarms(runs, 1000);
        println!("{runs} runs, equal files of 60 rows, no threshold: a change is named in {share:.3}");
        println!("{runs} runs, one row of 600 takes 20 % longer: it is found in {:.3}", found(runs, 300));
    }
}
