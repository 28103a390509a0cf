//! How often equal machines of a fleet raise an alarm, and how often a slow one is found: the numbers behind `report machines`.
//! `cargo run --release --example fleet_alarms -- 2000` takes so many fleets.

#![allow(clippy::unwrap_used, reason = "an example may panic")]

#[path = "../tests/fixtures/forty.rs"]
mod forty;

fn main() {
    let fleets: u64 = std::env::args().nth(1).map_or(200, |count| count.parse().unwrap());
    for scatter in forty::SCATTERS {
        let [alarms, found] = forty::alarms_and_found(scatter, fleets);
        println!(
            "{}: equal machines raise an alarm in {:.1} % of fleets; one that is 5 % slower is found in {:.1} %",
            scatter.0,
            100.0 * alarms,
            100.0 * found
        );
        // One in twenty, and three standard errors.
        let most = 0.05 + 3.0 * (0.05 * 0.95 / fleets as f64).sqrt();
        assert!(alarms <= most, "more than one fleet in twenty has a false alarm");
        assert!(scatter.0 != "normal" || found >= 0.8, "the slow machine is found too seldom");
    }
}
