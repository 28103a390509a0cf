//! Writes made-up results files of the suite `quick`, one for each machine and day, to see what many of them take:
//! `cargo run --release --example store_of -- DIR 1000 1`, then `report collect DIR --into results`.

#![allow(clippy::unwrap_used, reason = "an example may panic")]

#[path = "../tests/fixtures/run.rs"]
mod fixture;
#[path = "../tests/fixtures/fleet.rs"]
mod fleet;

use std::path::PathBuf;

use rand::{RngExt, SeedableRng, rngs::StdRng};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, machines, days] = arguments.as_slice() else { panic!("DIR, a number of machines, a number of days") };
    let (folder, machines, days): (_, u32, u32) =
        (PathBuf::from(folder), machines.parse().unwrap(), days.parse().unwrap());
    let suite = fleet::quick();
    let mut rng = StdRng::seed_from_u64(1);
    for machine in 0..machines {
        let own = 1.0 + 0.004 * (rng.random::<f64>() - 0.5);
        for day in 0..days {
            let name = format!("node{machine:04}");
            let started = format!("2026-{:02}-{:02}T09:30:00Z", 1 + day / 28, 1 + day % 28);
            let factor = own * (1.0 + 0.004 * (rng.random::<f64>() - 0.5));
            fleet::write(&fleet::measured(&suite, &name, &started, |_| factor), &folder, &format!("{name}-{day}.json"));
        }
    }
}
