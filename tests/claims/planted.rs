//! Whether each claim can be confirmed and refuted at all: some values of its rows confirm it, and some refute it. A claim
//! that no values refute is no claim.

use std::collections::{BTreeMap, BTreeSet};

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::*;

const RUNS: usize = 5;

/// The rows that a claim names, with values of our own in several runs of the system that it is about.
struct Planted {
    results: Results,
}

impl Planted {
    fn of(document: &Document, claim: &Claim, all: &Results) -> Self {
        let texts = claim.tests.iter().chain(&claim.given);
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        let names: Vec<Vec<&str>> =
            texts.flat_map(|text| text.split(|c| !is_name(c))).map(|name| name.split('.').collect()).collect();
        // The parts of an identifier stand in a name, between values of parameters.
        let is_named = |row: &Row| {
            let id = row.spec.id.replace('-', "_");
            let own = usize::from(row.spec.experiment() == document.id);
            names.iter().any(|name| id.split('.').skip(own).all(|part| name.contains(&part)))
        };
        let system = if claim.on == Some(ClaimSubject::Program) { "syncscope" } else { "PyTorch" };
        let run = all.run().clone();
        let runs = (0..RUNS).map(|place| Run { id: format!("run-{place}"), system: system.to_owned(), ..run.clone() });
        let rows = all.rows.iter().filter(|row| is_named(row));
        let rows = rows.map(|row| Row { spec: row.spec.clone(), series: Vec::new() }).collect::<Vec<Row>>().into();
        Self { results: Results { runs: std::iter::once(run.clone()).chain(runs).collect(), rows, ..all.clone() } }
    }

    /// Plants the value that `value` gives a row: with a scatter of a thousandth between runs, or of what is observed `exact`ly
    /// the same in each trial.
    fn plant(&mut self, exact: bool, mut value: impl FnMut(&MetricSpec) -> Option<f64>) {
        let runs: Vec<String> = self.results.runs.iter().skip(1).map(|run| run.id.clone()).collect();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        for row in self.results.rows.iter_mut() {
            let Some(value) = value(&row.spec) else { continue };
            let scatter = if exact && is_observed(&row.spec) { 0.0 } else { 1e-3 };
            let samples = |level: f64| vec![level; 3];
            let series = runs.iter().map(|run| {
                let level = value * (1.0 + scatter * (rng.random::<f64>() - 0.5));
                Series { run: run.clone(), outcome: fixture::sampled(&row.spec.provenance, samples(level)) }
            });
            row.series = series.collect();
        }
    }

    fn verdict(&self, document: &Document, claim: &Claim) -> ClaimVerdict {
        claim.judge(document, &self.results).verdict
    }
}

fn is_observed(spec: &MetricSpec) -> bool {
    matches!(spec.provenance, Provenance::Measured { clock: Clock::Observed, .. })
}

/// What the values of the rows of one identifier have to do with each other.
enum Values {
    Alike(f64),
    /// They grow with a parameter.
    Grow(f64, String),
    /// One for each value of a parameter, by its text.
    Differ(String, BTreeMap<String, f64>),
}

impl Values {
    /// Of the rows with these, which have one identifier. Not all of them have the same parameters.
    fn choose(specs: &[MetricSpec], rng: &mut Xoshiro256PlusPlus) -> Self {
        let names = |is_taken: fn(&Parameter) -> bool| -> Vec<&String> {
            let parameters = specs.iter().flat_map(|spec| &spec.parameters).filter(|(_, value)| is_taken(value));
            parameters.map(|(name, _)| name).collect::<BTreeSet<_>>().into_iter().collect()
        };
        let (all, numbers) = (names(|_| true), names(|value| value.number().is_some()));
        let is_time = specs[0].unit == Unit::Seconds && !is_observed(&specs[0]);
        match rng.random_range(0..3) {
            0 if is_time && !numbers.is_empty() => {
                Self::Grow(*one_of(&[0.5, 1.0, 2.0], rng), one_of(&numbers, rng).to_string())
            }
            1 if !all.is_empty() => Self::Differ(one_of(&all, rng).to_string(), BTreeMap::new()),
            _ => Self::Alike(level(&specs[0], rng)),
        }
    }

    fn of(&mut self, spec: &MetricSpec, rng: &mut Xoshiro256PlusPlus) -> f64 {
        match self {
            Self::Alike(level) => *level,
            Self::Grow(level, name) => *level * spec.parameters.get(name).and_then(Parameter::number).unwrap_or(1.0),
            Self::Differ(name, levels) => {
                let own = spec.parameters.get(name).map(|value| format!("{value:?}")).unwrap_or_default();
                *levels.entry(own).or_insert_with(|| level(spec, rng))
            }
        }
    }
}

fn one_of<'a, T>(all: &'a [T], rng: &mut Xoshiro256PlusPlus) -> &'a T {
    &all[rng.random_range(0..all.len())]
}

fn level(spec: &MetricSpec, rng: &mut Xoshiro256PlusPlus) -> f64 {
    let levels: &[f64] = match spec.unit {
        _ if is_observed(spec) => &[0.0, 1.0],
        Unit::Ratio => &[0.01, 0.5, 1.0, 2.0],
        _ => &[1e-6, 1e-5, 2e-5, 1e-4, 1e-3, 2e-3, 5e-3, 2e-2],
    };
    *one_of(levels, rng)
}

/// Whether some values of its rows confirm a claim, and some refute it.
fn reached(document: &Document, claim: &Claim, all: &Results) -> [bool; 2] {
    const TRIALS: u64 = 600;
    let mut planted = Planted::of(document, claim, all);
    let mut of_id: BTreeMap<String, Vec<MetricSpec>> = BTreeMap::new();
    for row in planted.results.rows.iter() {
        of_id.entry(row.spec.id.clone()).or_default().push(row.spec.clone());
    }
    let mut reached = [false; 2];
    for seed in 0..TRIALS {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut chosen: BTreeMap<String, Values> =
            of_id.iter().map(|(id, specs)| (id.clone(), Values::choose(specs, &mut rng))).collect();
        // Whether a call waits is the same in each run, a share that was recorded is not.
        let exact = rng.random_bool(0.5);
        planted.plant(exact, |spec| chosen.get_mut(&spec.id).map(|values| values.of(spec, &mut rng)));
        match planted.verdict(document, claim) {
            ClaimVerdict::Confirmed | ClaimVerdict::CarriesOver => reached[0] = true,
            ClaimVerdict::Refuted | ClaimVerdict::DiffersHere | ClaimVerdict::NotSeen => reached[1] = true,
            ClaimVerdict::GoodToWithin(share) => reached[usize::from(share > 0.5)] |= !(0.05..=0.5).contains(&share),
            ClaimVerdict::Inconclusive | ClaimVerdict::NotJudged(_) => {}
        }
        if reached == [true; 2] {
            break;
        }
    }
    reached
}

#[test]
fn every_claim_can_be_confirmed_and_refuted_by_values_of_its_rows() {
    let all = fixture::run();
    let mut wrong = Vec::new();
    for (document, claim) in claims().filter(|(_, claim)| !claim.is_about_figures()) {
        // That no fault was seen shows nothing, so that a claim of none can be refuted alone.
        let counts = claim.tests.iter().all(|test| test.ends_with("== 0"))
            && matches!(claim.id.as_str(), "c-final-sync-orders" | "c-printed-order");
        let [confirmed, refuted] = reached(document, claim, &all);
        if !refuted || confirmed == counts {
            wrong.push(format!("{}: confirmed {confirmed}, refuted {refuted}", claim.id));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_claim_that_no_values_refute_is_found() {
    let rows = [time("t.a", &STEADY)];
    let claim = |test: &str| {
        let document = document(&format!("kind: always, on: pytorch, tests: [{test}]"), &rows);
        reached(&document, &document.claims[0], &results(&rows))
    };
    assert_eq!(claim("t.a > 1e-3"), [true, true]);
    assert_eq!(claim("t.a * t.a > -1"), [true, false]);
    assert_eq!(claim("t.a < -1"), [false, true]);
}

/// The verdict on a claim where the rows have the values that their identifier and parameters give; other rows have none.
fn with(id: &str, value: impl Fn(&str, &dyn Fn(&str) -> f64) -> Option<f64>) -> ClaimVerdict {
    let (document, claim) = claims().find(|(_, claim)| claim.id == id).unwrap();
    let mut planted = Planted::of(document, claim, &fixture::run());
    planted.plant(true, |spec| {
        let parameter = |name: &str| spec.parameters.get(name).and_then(Parameter::number).unwrap_or(f64::NAN);
        value(&spec.id, &parameter)
    });
    planted.verdict(document, claim)
}

#[test]
fn two_pageable_buffers_that_hide_kernels_refute_that_pinned_ones_are_required() {
    let hiding = |hidden: f64| {
        with("c-pinned-required", |id, _| match id {
            "overlap.pageable.copies" => Some(5.6e-3),
            "overlap.pageable.computes" => Some(5.5e-3),
            "overlap.pageable.total" => Some(11.1e-3 - hidden * 5.5e-3),
            _ => None,
        })
    };
    assert_eq!([0.0, -0.2, 0.9].map(hiding), [ClaimVerdict::Confirmed, ClaimVerdict::Confirmed, ClaimVerdict::Refuted]);
    let ClaimVerdict::NotJudged(reason) = with("c-pinned-required", |_, _| None) else { panic!("without its rows") };
    assert!(reason.ends_with("” was not measured (not in this run)"), "{reason}");
}

#[test]
fn about_is_a_tenth_for_the_cost_of_a_synchronization_and_for_its_share() {
    let cost = |seconds: f64| with("c-sync-cost", |id, _| (id == "sync-points.small.delta").then_some(seconds));
    let expected =
        [ClaimVerdict::DiffersHere, ClaimVerdict::CarriesOver, ClaimVerdict::CarriesOver, ClaimVerdict::DiffersHere];
    assert_eq!([8.8e-6, 9.2e-6, 16.3e-6, 16.7e-6].map(cost), expected);
    let share = |share: f64| {
        with("c-big-negligible", |id, _| match id {
            "sync-points.big.delta" => Some(share * 1e-3),
            "sync-points.big.async" => Some(1e-3),
            _ => None,
        })
    };
    let expected =
        [ClaimVerdict::DiffersHere, ClaimVerdict::DiffersHere, ClaimVerdict::CarriesOver, ClaimVerdict::DiffersHere];
    assert_eq!([-0.02, 0.001, 0.0105, 0.02].map(share), expected);
}

#[test]
fn printing_that_is_much_slower_is_slower_and_not_slightly() {
    let times = |claim: &str, factor: f64| {
        with(claim, |id, _| match id {
            "sync-points.item.pending" | "sync-points.item.ready" => Some(1e-3),
            "sync-points.print.pending" => Some(1e-3 * (1.0 + (factor - 1.0) / 2.0)),
            "sync-points.print.ready" => Some(1e-3 * factor),
            _ => None,
        })
    };
    assert_eq!(
        [0.9, 1.1, 30.0].map(|factor| times("c-print-slower", factor)),
        [ClaimVerdict::Refuted, ClaimVerdict::Confirmed, ClaimVerdict::Confirmed]
    );
    assert_eq!(
        [1.1, 30.0].map(|factor| times("c-print-slightly", factor)),
        [ClaimVerdict::Confirmed, ClaimVerdict::Refuted]
    );
}

#[test]
fn what_overlap_loses_is_the_cause_only_where_it_makes_up_the_difference() {
    let launch = |each: f64, launch: f64| {
        move |claim: &str| {
            with(claim, |id, _| match id {
                "synchronize.loop.each" => Some(each),
                "synchronize.loop.complete" => Some(60e-3),
                "synchronize.timing.without" => Some(launch),
                _ => None,
            })
        }
    };
    // The loop has 1,000 iterations: 10 µs each are lost.
    let [both, other, none] = [launch(70e-3, 9e-6), launch(70e-3, 2e-6), launch(50e-3, 9e-6)];
    assert_eq!(["c-overuse-hurts", "c-overuse-because"].map(both), [ClaimVerdict::Confirmed, ClaimVerdict::Confirmed]);
    assert_eq!(["c-overuse-hurts", "c-overuse-because"].map(other), [ClaimVerdict::Confirmed, ClaimVerdict::Refuted]);
    assert_eq!(none("c-overuse-hurts"), ClaimVerdict::Refuted);
    assert!(
        matches!(none("c-overuse-because"), ClaimVerdict::NotJudged(_)),
        "there is no slowdown whose cause it could be"
    );
}

#[test]
fn events_have_to_be_right_from_five_microseconds_on() {
    let shown = |excess: f64| {
        with("c-events-right", |id, parameter| {
            let spin = parameter("spin_seconds");
            id.starts_with("self-audit.stopwatch.events").then_some(spin + excess)
        })
    };
    assert_eq!(
        [0.0, 0.3e-6, 1e-6].map(shown),
        [ClaimVerdict::Confirmed, ClaimVerdict::Confirmed, ClaimVerdict::Refuted]
    );
}

#[test]
fn what_a_text_says_with_about_is_tested_with_about() {
    for (_, claim) in claims() {
        let words = claim.plain();
        let says = words.contains("about 1") || words.contains("about 2") || words.contains(" nearly ");
        let tests = claim.tests.iter().any(|test| test.contains(" about "));
        assert!(!says || tests, "{}: {words}", claim.id);
        assert!(!claim.tests.iter().any(|test| test.contains("0.9 <=")), "{}: about is declared once", claim.id);
    }
}
