//! Machines beside each other: the slow ones are found, those that are alike raise few alarms, and a page of a thousand is
//! small.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "fixtures/run.rs"]
mod fixture;
#[path = "fixtures/fleet.rs"]
mod fleet;
#[path = "fixtures/forty.rs"]
mod forty;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use forty::{named_in, normal};
use rand::{SeedableRng, rngs::StdRng};
use syncscope_fleet::{Fleet, page};
use syncscope_results::statistics::{Tail, outliers, smallest_shift};
use syncscope_results::store::{Index, Listed, collect};
use syncscope_results::{Direction, Results};

const GPUS: usize = 1000;
const ROWS: usize = 20;
const SPREAD: f64 = 0.004;

/// The GPUs that are named in the first row alone and in all rows of a fleet of which some are slow: by 3 % in the first row
/// and by 20 % in the second.
fn named(rng: &mut StdRng, slow: &[usize]) -> [BTreeSet<usize>; 2] {
    let mut row = |row: usize| -> Vec<f64> {
        let shift = [0.03, 0.2].get(row).copied().unwrap_or(0.0);
        let factor = |gpu: usize| if slow.contains(&gpu) { 1.0 + shift } else { 1.0 };
        (0..GPUS).map(|gpu| factor(gpu) * (SPREAD * normal(rng)).exp()).collect()
    };
    let named = named_in(&(0..ROWS).map(&mut row).collect::<Vec<_>>());
    [named[0].clone(), named.into_iter().flatten().collect()]
}

/// A tenth of the fleets that `.ci/long.d/fleet` takes.
#[test]
fn equal_machines_of_any_scatter_raise_an_alarm_in_one_fleet_of_twenty_and_a_slow_one_is_found() {
    const FLEETS: u64 = 200;
    for scatter in forty::SCATTERS {
        let [alarms, found] = forty::alarms_and_found(scatter, FLEETS);
        // Three standard errors are 4.6 %.
        assert!(alarms <= 0.05 + 0.046, "{}: {alarms}", scatter.0);
        assert!(scatter.0 != "normal" || found >= 0.8, "{found}");
    }
}

#[test]
fn all_five_slow_gpus_of_a_thousand_are_found_and_few_others() {
    const FLEETS: usize = 20;
    let mut rng = StdRng::seed_from_u64(3);
    let slow = [17, 250, 251, 700, 999];
    let (mut whole, mut of_three_percent, mut alarms) = (0, 0, 0);
    for _ in 0..FLEETS {
        let [in_first, in_all] = named(&mut rng, &slow);
        let has_all = |named: &BTreeSet<usize>| usize::from(slow.iter().all(|gpu| named.contains(gpu)));
        whole += has_all(&in_all);
        of_three_percent += has_all(&in_first);
        alarms += usize::from(in_all.iter().any(|gpu| !slow.contains(gpu)));
    }
    assert!(whole >= FLEETS * 95 / 100 && alarms <= FLEETS / 20, "{whole} {alarms}");
    // By the row of 3 % alone all five are found in 98 of 100 fleets.
    assert!(of_three_percent >= FLEETS * 9 / 10, "the shift of 3 % alone: {of_three_percent}");
}

#[test]
fn a_shift_of_the_stated_size_is_found_in_four_of_five_cases() {
    let mut rng = StdRng::seed_from_u64(4);
    let shift = smallest_shift(SPREAD, GPUS, ROWS);
    let found = (0..200).filter(|_| {
        let mut values: Vec<f64> = (0..GPUS).map(|_| (SPREAD * normal(&mut rng)).exp()).collect();
        values[5] *= 1.0 + shift;
        outliers(&values, ROWS, Tail::NORMAL).unwrap().found.iter().any(|outlier| outlier.place == 5)
    });
    let share = found.count() as f64 / 200.0;
    assert!((0.7..0.9).contains(&share), "{share}");
}

/// Between the machines of a fleet there is at least what is between the runs of one.
#[test]
fn the_book_states_the_smallest_shift_for_the_spread_of_the_kept_results() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let kept = Results::read(&root.join("book/results/one-gpu.json.gz")).unwrap();
    let lookup = kept.lookup();
    let mut spreads: Vec<f64> = lookup
        .metrics()
        .filter_map(|(_, metric)| metric.ok().filter(|metric| Direction::of(metric) != Direction::Neither))
        .map(|metric| metric.run_medians())
        .filter(|medians| medians.len() > 1 && medians.iter().all(|median| *median > 0.0))
        .map(|medians| {
            let logarithms: Vec<f64> = medians.iter().map(|median| median.ln()).collect();
            let count = logarithms.len() as f64;
            let mean = logarithms.iter().sum::<f64>() / count;
            let variance = logarithms.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
            (variance / count).sqrt()
        })
        .collect();
    spreads.sort_by(f64::total_cmp);
    let shift = 100.0 * smallest_shift(spreads[spreads.len() / 2], GPUS, spreads.len());
    let stated = format!("it finds a shift of {shift:.0} % in the median row with a power of 80 %");
    let page = fs::read_to_string(root.join("book/src/publishing.md")).unwrap().replace('\n', " ");
    assert!(page.contains(&stated), "{stated}");
}

/// A fleet of the suite `quick`, of which `slow` takes 20 % longer in all times: one machine with noise of its own each.
fn fleet_of(machines: usize, models: usize, slow: usize) -> Fleet {
    let base = fleet::measured(&fleet::quick(), "base", "2026-11-20T09:30:00Z", |_| 1.0);
    let mut rng = StdRng::seed_from_u64(6);
    let folder = tempfile::tempdir().unwrap();
    let mut fleet = Fleet::default();
    fleet.add(&listed(folder.path()), &base);
    let member = fleet.members.remove(0);
    for machine in 0..machines {
        let mut member = member.clone();
        (member.name, member.model) = (format!("node{machine:04}"), format!("Model {}", machine % models));
        fleet.members.push(member);
        for row in &mut fleet.rows {
            let factor: f64 = (SPREAD * normal(&mut rng)).exp() * if machine == slow { 1.2 } else { 1.0 };
            let mut own = row.values[0].clone();
            if let Some(newest) = &mut own {
                newest.median *= factor;
                newest.interval = newest.interval.map(|(low, high)| (low * factor, high * factor));
            }
            row.values.push(own);
        }
    }
    fleet.rows.iter_mut().for_each(|row| _ = row.values.remove(0));
    fleet
}

/// A file of a store, of which other ones are made.
fn listed(folder: &Path) -> Listed {
    let suite = "title: Few\nsampling: { samples: 8 }\nexperiments: [idle-device: {}]";
    let file = fleet::write(&fleet::measured(suite, "node", "2026-11-20T09:30:00Z", |_| 1.0), folder, "r.json");
    collect(&[file], &folder.join("store"), &Results::read).unwrap();
    let index = Index::of(&folder.join("store"), &Results::read, |_: &Listed, _: &Results| {
        Ok::<_, syncscope_results::error::FileError>(())
    });
    index.unwrap().files.remove(0)
}

#[test]
fn a_page_of_a_thousand_machines_is_small_and_names_the_slow_one() {
    let fleet = fleet_of(GPUS, 1, 321);
    let different = fleet.different();
    let page = page(&fleet, &different).unwrap();
    assert!(page.len() < 500_000, "{} bytes", page.len());
    assert!(different.iter().any(|own| own.machine == "node0321" && own.is_slower), "{different:?}");
    assert!(page.contains("node0321") && page.contains("1 of 1000 machines"), "{different:?}");
}

/// Many models, each with as many rows and as long names as a page has no place for: it says how much it leaves out.
#[test]
fn the_page_of_any_fleet_is_small_and_says_what_it_leaves_out() {
    for (machines, models) in [(1_000, 1), (1_000, 30), (300, 150)] {
        let mut fleet = fleet_of(machines, models, 7);
        for member in &mut fleet.members {
            member.name = format!("{}.a-row-of-racks.a-cluster-with-a-long-name.example.org/gpu-7", member.name);
            member.model += ", of a model whose name is as long as that of a workstation's edition";
        }
        let rows = fleet.rows.clone();
        fleet.rows.extend(rows.clone());
        fleet.rows.extend(rows);
        let page = page(&fleet, &fleet.different()).unwrap();
        assert!(page.len() < 500_000, "{machines} machines of {models} models: {} bytes", page.len());
        assert!(page.contains("for which this page has no place"), "{machines} machines of {models} models");
        assert!(page.ends_with("</html>\n"));
    }
}

#[test]
fn a_faster_rate_is_no_slower_machine_and_models_are_not_mixed() {
    let fleet = fleet_of(60, 2, 7);
    for different in fleet.different() {
        assert_eq!(different.machine, "node0007", "{different:?}");
        let row = fleet.rows.iter().find(|row| row.title == different.row).unwrap();
        let is_time = row.unit == syncscope_present::units::Unit::Seconds;
        assert_eq!(different.is_slower, is_time, "{different:?}");
    }
    let page = page(&fleet, &fleet.different()).unwrap();
    assert!(!page.contains("<script"));
    assert!(page.contains("Model&#32;") || page.contains("Model 0"));
}

#[test]
fn a_newer_file_of_a_machine_takes_the_place_of_an_older_one() {
    let folder = tempfile::tempdir().unwrap();
    let listed = listed(folder.path());
    let suite = "title: Few\nsampling: { samples: 8 }\nexperiments: [idle-device: {}]";
    let of = |factor: f64| fleet::measured(suite, "node", "2026-11-20T09:30:00Z", |_| factor);
    let at = |day: &str| {
        let mut listed = listed.clone();
        listed.started = format!("2026-11-{day}T09:30:00Z");
        listed
    };
    let mut fleet = Fleet::default();
    fleet.add(&at("20"), &of(1.0));
    fleet.add(&at("22"), &of(3.0));
    fleet.add(&at("21"), &of(2.0));
    let mut only = Fleet::default();
    only.add(&at("22"), &of(3.0));
    assert_eq!(fleet, only);
}

fn report(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_report")).args(arguments).current_dir(folder).output().unwrap()
}

#[test]
fn the_command_names_the_machine_that_differs() {
    let folder = tempfile::tempdir().unwrap();
    let suite = "title: Few\nsampling: { samples: 8 }\nexperiments: [idle-device: {}]";
    let mut rng = StdRng::seed_from_u64(8);
    let files: Vec<PathBuf> = (0..20)
        .map(|machine| {
            let noise = (SPREAD * normal(&mut rng)).exp() * if machine == 4 { 1.2 } else { 1.0 };
            let name = format!("node{machine:02}");
            let results = fleet::measured(suite, &name, "2026-11-20T09:30:00Z", |_| noise);
            fleet::write(&results, folder.path(), &format!("{name}.json"))
        })
        .collect();
    collect(&files, &folder.path().join("results"), &Results::read).unwrap();
    let output = report(&["machines", "--page", "m.html"], folder.path());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("slower")).collect();
    assert!(!lines.is_empty() && lines.iter().all(|line| line.starts_with("node04: slower: +")), "{text}");
    let page = fs::read_to_string(folder.path().join("m.html")).unwrap();
    assert!(page.contains("node04"), "{page}");
    assert_eq!(report(&["machines", "none"], folder.path()).status.code(), Some(2));
}
