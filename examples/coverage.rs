//! What the intervals of medians cover, within a run and between runs, how often equal cases are said to differ, and how
//! often a diagnosis is made of plain and of odd samples, for every size: `cargo run --release --example coverage`; with
//! `-- runs` what concerns several runs alone.

#![allow(clippy::unwrap_used, reason = "an example may panic")]

#[path = "../tests/fixtures/truths.rs"]
mod truths;

use truths::*;

fn main() {
    // `runs` alone takes a minute; the others take many.
    if std::env::args().nth(1).as_deref() != Some("runs") {
        medians();
        diagnoses();
    }
    runs();
}

/// What the interval between runs covers: of runs that are exchangeable, for any dependence within them, and of runs that
/// are not, with the share of files whose diagnosis says so; and how often two equal rows of such runs are said to differ. The
/// tables of the page *The machines and the method*.
fn runs() {
    const FILES: usize = 10_000;
    let percent =
        |shares: Vec<f64>| -> String { shares.into_iter().map(|share| format!(" {:.1} % |", 100.0 * share)).collect() };
    println!("| Runs | R = 3 | R = 5 | R = 10 | Diagnosed, R = 3 | R = 5 | R = 10 |\n|---|---|---|---|---|---|---|");
    for (kind, n) in Kind::tabled() {
        let covered = COUNTS.map(|count| runs_covered(kind, count, n, FILES));
        let diagnosed = COUNTS.map(|count| runs_diagnosed(kind, count, n, FILES));
        println!("| {} |{}", kind.label(n), percent([covered, diagnosed].concat()));
    }
    println!("\n| Passes | covered | half width, in the middle | nine in ten |\n|---|---|---|---|");
    for passes in Kind::PASSES {
        println!("| {passes} |{}", percent(disturbed(passes, 12, FILES).into()));
    }
    println!("\n| Two equal rows | R = 3 | R = 5 | R = 10 |\n|---|---|---|---|");
    for kind in Kind::TIED {
        println!(
            "| {} |{}",
            kind.label(10),
            percent(COUNTS.map(|count| false_verdicts(kind, count, 10, FILES)).into())
        );
    }
}

fn medians() {
    for truth in truths() {
        let shares: Vec<(f64, usize)> = (15..=100).map(|n| (coverage(&truth, n, TRIALS), n)).collect();
        let claims: Vec<(f64, usize)> = (15..=100).map(|n| (false_claims(&truth, n, TRIALS), n)).collect();
        let least =
            |shares: &[(f64, usize)]| shares.iter().copied().fold((1.0, 0), |a, b| if b.0 < a.0 { b } else { a });
        let most =
            |shares: &[(f64, usize)]| shares.iter().copied().fold((0.0, 0), |a, b| if b.0 > a.0 { b } else { a });
        let mean = |shares: &[(f64, usize)]| shares.iter().map(|s| s.0).sum::<f64>() / shares.len() as f64;
        println!(
            "{:24} coverage {:.4}, {:?} to {:?}; false claims {:.4}, {:?} to {:?}",
            truth.name,
            mean(&shares),
            least(&shares),
            most(&shares),
            mean(&claims),
            least(&claims),
            most(&claims)
        );
    }
}

fn diagnoses() {
    for n in DIAGNOSED {
        for truth in plain_shapes() {
            let shares = diagnosed(|rng, _| (truth.source)(rng), n, 20_000);
            println!("n = {n:3} {:22} {shares:.4?}", truth.name);
        }
        let found = |upper| diagnosed(|rng, _| two_clocks(rng, upper), n, 2_000)[1];
        let drift = diagnosed(|rng, i| drifting(rng, i, n), n, 2_000)[0];
        println!(
            "n = {n:3} found: drift of 10 % {drift:.3}, two clocks 50 % {:.3}, 30 % {:.3}",
            found(0.5),
            found(0.3)
        );
    }
}
