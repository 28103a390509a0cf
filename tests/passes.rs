//! A run goes through its experiments in passes: each row takes a share of its samples in each, and what a pass left stays,
//! whatever becomes of a later one.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use syncscope::device::{Device, Injected};
use syncscope::error::DeviceError;
use syncscope::measure::{Progress, StoppedBy};
use syncscope_present::units::Unit;
use syncscope_results::{
    Environment, Measured, Outcome, Parameters, Pass, Piece, Plan, Results, Row, RunOutcome, SYNCSCOPE, Selection,
};
use syncscope_suite::experiment::{Experiment, Formula, Group, GroupBuilder, Part, Registry, RunObserver};
use syncscope_suite::runner::{Session, Suite, empty_results};

const PASSES: usize = 3;
const SAMPLES: usize = 7;
/// The warm-up of a pass: nothing falls. That of a later pass is a round shorter where the first of it takes long.
const WARMUP: [usize; PASSES] = [2, 2, 2];

/// What happens at the calls of the case `passes.a`, which are counted from 0. Each test has its own.
#[derive(Default)]
struct Script {
    calls: usize,
    interrupt_at: Option<usize>,
    fail_at: Option<usize>,
    panic_at: Option<usize>,
    lose_at: Option<(usize, Device)>,
    interrupt: Arc<AtomicBool>,
}

static SCRIPTS: LazyLock<Mutex<HashMap<u64, Script>>> = LazyLock::new(Mutex::default);

/// The next value of the case: 1, 2, 3, …
fn call(script: u64) -> Result<f64, DeviceError> {
    let mut scripts = SCRIPTS.lock().unwrap();
    let script = scripts.get_mut(&script).unwrap();
    let call = script.calls;
    script.calls += 1;
    if script.interrupt_at == Some(call) {
        script.interrupt.store(true, Ordering::Relaxed);
    }
    if let Some((_, device)) = script.lose_at.as_ref().filter(|(at, _)| *at == call) {
        device.inject(Injected::DeviceLoss, 1);
        return device.synchronize().map(|()| 0.0);
    }
    let (fails, panics) = (script.fail_at == Some(call), script.panic_at == Some(call));
    drop(scripts);
    assert!(!panics, "a defect in a later pass");
    match fails {
        true => Err(DeviceError::InvalidArgument { operation: "call", reason: "no luck".to_owned() }),
        false => Ok(call as f64 + 1.0),
    }
}

#[derive(Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Passes {
    script: u64,
}

impl Experiment for Passes {
    const NAME: &'static str = "passes";
    const SUMMARY: &'static str = "Rows that are sampled in passes";

    fn groups(&self, _: &str) -> Vec<Group> {
        let script = self.script;
        let together = Group::of("Together", [])
            .observed("passes.a", "A", Unit::Number, move |_| Ok(move || call(script)))
            .observed("passes.b", "B", Unit::Number, |_| Ok(|| Ok(1.0)))
            .derived("passes.sum", "Sum", Unit::Number, "a + b")
            .derived("passes.none", "None", Unit::Ratio, "b / (b − b)");
        // Its rounds take longer than those of short rows, whatever the speed of the machine.
        let long = Group::of("Long", []).observed("passes.l", "L", Unit::Number, |_| {
            Ok(|| {
                std::thread::sleep(Duration::from_millis(11));
                Ok(1.0)
            })
        });
        let apart = Group::of("Apart", []).observed("passes.c", "C", Unit::Number, |_| Ok(|| Ok(1.0)));
        let decided = Group::of("Decided", []).trials(NonZeroUsize::new(2).unwrap());
        let decided = decided.observed("passes.d", "D", Unit::Number, |_| Ok(|| Ok(1.0)));
        let recorded = Group::of("Recorded", []).measured_in(Part::Recorded);
        let recorded = recorded.observed("passes.e", "E", Unit::Number, |_| Ok(|| Ok(1.0)));
        let late = Formula::of("a + e", [("a", "passes.a"), ("e", "passes.e")]);
        let recorded = recorded.derived("passes.late", "Late", Unit::Number, late);
        [together, long, apart, decided, recorded].map(GroupBuilder::build).into()
    }
}

/// Keeps the pieces that a killed process would have left, after each experiment of each pass.
#[derive(Default)]
struct Kept(Mutex<Vec<Piece>>);

impl RunObserver for Kept {
    fn experiment(&self, _: usize, _: usize, _: &str) {}
    fn group(&self, _: &[&str], _: &Parameters) {}
    fn progress(&self, _: Progress) {}
    fn keep(&self, piece: &Piece) {
        self.0.lock().unwrap().push(piece.clone());
    }
}

struct Trial {
    registry: Registry,
    suite: Suite,
    device: Device,
    kept: Arc<Kept>,
    selection: Selection,
    interrupt: Arc<AtomicBool>,
}

impl Trial {
    fn new(name: u64, script: Script) -> Self {
        Self::sampled(name, script, json!({ "samples": SAMPLES, "warmup": WARMUP[0], "passes": PASSES }))
    }

    fn sampled(name: u64, script: Script, sampling: Value) -> Self {
        let interrupt = Arc::clone(&script.interrupt);
        SCRIPTS.lock().unwrap().insert(name, script);
        let registry = Registry::builtin().with::<Passes>();
        let source = json!({ "title": "T", "sampling": sampling, "experiments": [{ "passes": { "script": name } }] });
        let suite = Suite::of_results(&source, "test", &registry).unwrap();
        let selection = Selection { only: vec!["passes".to_owned()], skip: Vec::new() };
        let (device, kept) = (Device::open("cpu:0").unwrap(), Arc::default());
        Self { registry, suite, device, kept, selection, interrupt }
    }

    fn empty(&self) -> Results {
        let environment = Environment::now(&self.device, Vec::new());
        empty_results(self.suite.source.clone(), self.selection.clone(), Plan::default(), environment)
    }

    fn first(&self) -> Results {
        self.next(self.empty())
    }

    fn next(&self, results: Results) -> Results {
        let observer: Arc<dyn RunObserver> = self.kept.clone();
        let (suite, registry, device) = (&self.suite, &self.registry, &self.device);
        let interrupt = Arc::clone(&self.interrupt);
        let session = Session { suite, registry, device, observer, interrupt, has_timelines: true };
        session.next(results, Environment::now(device, Vec::new()))
    }
}

fn run() -> String {
    format!("{SYNCSCOPE}-1")
}

fn row<'a>(results: &'a Results, id: &str) -> &'a Row {
    results.rows.iter().find(|row| row.spec.id == id).unwrap()
}

/// The samples, the passes and the rule that ended the sampling of a measured row.
fn measured<'a>(results: &'a Results, id: &str) -> (Vec<f64>, &'a [Pass], StoppedBy) {
    match row(results, id).outcome(&run()) {
        Some(Outcome::Measured(Measured { samples, passes, stopped_by, .. })) => {
            (samples.iter().map(|sample| sample.value).collect(), passes, *stopped_by)
        }
        other => panic!("{id}: {other:?}"),
    }
}

fn counts(passes: &[Pass]) -> Vec<usize> {
    passes.iter().map(|pass| pass.samples).collect()
}

/// That every row has all of its samples, and the file can be read again.
fn assert_complete(results: &Results) {
    for id in ["passes.a", "passes.b", "passes.c"] {
        let (samples, passes, stopped_by) = measured(results, id);
        assert_eq!((samples.len(), counts(passes), stopped_by), (SAMPLES, vec![3, 2, 2], StoppedBy::Samples), "{id}");
    }
    // One of them is computed from rows of an earlier part of the run, too.
    for id in ["passes.sum", "passes.late"] {
        let computed = row(results, id).outcome(&run()).unwrap().values().unwrap().to_vec();
        let expected: Vec<f64> = measured(results, "passes.a").0.iter().map(|a| a + 1.0).collect();
        assert_eq!(computed, expected, "{id}");
    }
    assert_eq!(results.run().outcome, RunOutcome::Complete);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.json");
    results.write(&path).unwrap();
    assert_eq!(Results::read(&path).unwrap().rows, results.rows);
}

#[test]
fn each_pass_takes_a_share_of_the_samples_of_every_row_before_the_next_begins() {
    let results = Trial::new(1, Script::default()).first();
    assert_complete(&results);
    // The case counts its calls: those of the warm-ups are not kept.
    let values = measured(&results, "passes.a").0;
    let [first @ .., d, e, f, g] = &values[..] else { panic!("too few") };
    assert_eq!((first, e - d, g - f), (&[3.0, 4.0, 5.0][..], 1.0, 1.0));
    assert!(*d >= 7.0 && f - e >= 2.0, "{d} {e} {f}");
    let began = |id: &str| measured(&results, id).1.iter().map(|pass| pass.began).collect::<Vec<_>>();
    let (together, apart) = (began("passes.a"), began("passes.c"));
    assert_eq!(together, began("passes.b"));
    for pass in 1..PASSES {
        assert!(together[pass - 1].max(apart[pass - 1]) < together[pass].min(apart[pass]), "{together:?} {apart:?}");
    }
    let left = |id: &str| row(&results, id).outcome(&run()).unwrap();
    let in_turn = |one: &str, other: &str| left(one).in_turn(left(other));
    assert_eq!((in_turn("passes.a", "passes.b"), in_turn("passes.a", "passes.c")), (Some(true), Some(false)));
    assert_eq!(in_turn("passes.a", "passes.d"), Some(false));
}

#[test]
fn slow_rows_take_one_sample_a_pass_up_to_the_least_number() {
    // Whatever the speed of the machine: no round is as short.
    let sampling = json!({ "samples": 12, "warmup": 1, "time_limit": 1e-9, "fewest": 3, "passes": 6 });
    let results = Trial::sampled(7, Script::default(), sampling).first();
    for id in ["passes.a", "passes.c"] {
        let (samples, passes, stopped_by) = measured(&results, id);
        assert_eq!((samples.len(), counts(passes), stopped_by), (3, vec![1, 1, 1], StoppedBy::TimeLimit), "{id}");
    }
    assert_eq!(results.run().outcome, RunOutcome::Complete);
}

#[test]
fn rows_with_long_rounds_share_passes_and_keep_their_samples() {
    let sampling = json!({ "samples": 12, "warmup": 0, "passes": 2, "short_passes": 6 });
    let results = Trial::sampled(8, Script::default(), sampling).first();
    let (samples, passes, _) = measured(&results, "passes.l");
    // In its first pass nobody knows how long it takes.
    assert_eq!((samples.len(), counts(passes)), (2 + 6, vec![2, 6]));
    let (samples, passes, _) = measured(&results, "passes.c");
    assert!(samples.len() == 12 && counts(passes) == [2; 6] || passes.len() == 2, "{passes:?}");
    assert_eq!(results.run().outcome, RunOutcome::Complete);
}

#[test]
fn what_is_decided_by_trials_or_comes_from_recordings_is_measured_once() {
    let results = Trial::new(2, Script::default()).first();
    for (id, count) in [("passes.d", 2), ("passes.e", SAMPLES)] {
        let (samples, passes, _) = measured(&results, id);
        assert_eq!((samples.len(), passes), (count, &[][..]), "{id}");
    }
}

#[test]
fn an_interrupt_in_a_later_pass_keeps_all_and_the_next_try_adds_what_is_missing() {
    // In the second round of the second pass that is kept.
    let at = WARMUP[0] + 3 + WARMUP[1] + 1;
    let trial = Trial::new(3, Script { interrupt_at: Some(at), ..Script::default() });
    let cut = trial.first();
    assert_eq!(cut.run().outcome, RunOutcome::Interrupted);
    for id in ["passes.a", "passes.b", "passes.c"] {
        let (samples, passes, stopped_by) = measured(&cut, id);
        assert_eq!(stopped_by, StoppedBy::Interrupt, "{id}");
        assert!((3..=5).contains(&samples.len()) && counts(passes)[0] == 3, "{id}: {passes:?}");
    }
    trial.interrupt.store(false, Ordering::Relaxed);
    let whole = trial.next(cut.clone());
    assert_complete(&whole);
    assert_eq!(measured(&whole, "passes.a").0[..3], measured(&cut, "passes.a").0[..3]);
    assert_eq!(measured(&whole, "passes.c").1[0], measured(&cut, "passes.c").1[0], "it was not measured again");
}

#[test]
fn a_row_by_which_the_device_is_lost_fails_and_the_next_process_measures_the_others() {
    // In a later pass: what the first left stays.
    let device = Device::open("cpu:0").unwrap();
    let at = WARMUP[0] + 3;
    let trial =
        Trial { device: device.clone(), ..Trial::new(20, Script { lose_at: Some((at, device)), ..Script::default() }) };
    let lost = trial.first();
    assert_eq!(lost.run().outcome, RunOutcome::Interrupted);
    let trial = Trial { device: Device::open("cpu:0").unwrap(), ..trial };
    let whole = trial.next(lost);
    assert_eq!(whole.run().outcome, RunOutcome::Complete);
    for id in ["passes.a", "passes.b"] {
        assert_eq!(measured(&whole, id).2, StoppedBy::Failure, "{id}: in one group with what lost it");
    }
    for id in ["passes.l", "passes.c", "passes.d", "passes.e"] {
        assert_ne!(measured(&whole, id).2, StoppedBy::Failure, "{id}");
    }
    assert_eq!(measured(&whole, "passes.c").0.len(), SAMPLES);
}

#[test]
fn a_process_that_is_killed_between_two_passes_leaves_what_the_next_goes_on_with() {
    let trial = Trial::new(4, Script::default());
    let first = trial.first();
    let pieces = trial.kept.0.lock().unwrap().clone();
    // What each end of the process would have left: the pieces until then.
    let left = pieces.into_iter().scan(trial.empty(), |results, piece| {
        results.add(piece);
        Some(results.clone())
    });
    let passes = |results: &Results| {
        let row = results.rows.iter().find(|row| row.spec.id == "passes.c");
        row.map_or(0, |_| measured(results, "passes.c").1.len())
    };
    let after_one = left.into_iter().find(|results| passes(results) == 1).unwrap();
    assert_eq!(after_one.run().outcome, RunOutcome::Interrupted);
    let whole = trial.next(after_one);
    assert_complete(&whole);
    assert_eq!(measured(&whole, "passes.c").1[0], measured(&first, "passes.c").1[0]);
}

#[test]
fn a_row_that_fails_in_a_later_pass_keeps_its_samples_and_the_run_says_why() {
    let at = WARMUP[0] + 3;
    let results = Trial::new(5, Script { fail_at: Some(at), ..Script::default() }).first();
    for id in ["passes.a", "passes.b"] {
        let (samples, passes, stopped_by) = measured(&results, id);
        assert_eq!((samples.len(), counts(passes), stopped_by), (3, vec![3], StoppedBy::Failure), "{id}");
    }
    assert_eq!(measured(&results, "passes.c").0.len(), SAMPLES);
    let said = results.run().order[0].failure.clone().unwrap();
    assert!(said.contains("passes.a") && said.contains("pass 2") && said.contains("no luck"), "{said}");
    assert!(results.has_failures() && results.run().outcome == RunOutcome::Complete);
}

#[test]
fn a_panic_in_a_later_pass_keeps_what_was_measured() {
    let at = WARMUP[0] + 3;
    let results = Trial::new(6, Script { panic_at: Some(at), ..Script::default() }).first();
    assert_eq!(measured(&results, "passes.a").0, [3.0, 4.0, 5.0]);
    assert_eq!(measured(&results, "passes.a").2, StoppedBy::Failure);
    assert_eq!(measured(&results, "passes.c").0.len(), SAMPLES, "the other groups of the experiment go on");
    assert_eq!(results.run().order[0].failure.as_deref(), Some("a defect in a later pass"));
}

#[test]
fn a_ratio_to_zero_is_no_value_and_its_run_is_read_and_resumed() {
    let trial = Trial::new(9, Script { interrupt_at: Some(WARMUP[0] + 3 + WARMUP[1]), ..Script::default() });
    let begun = String::from_utf8(trial.empty().to_content("r.json".as_ref()).unwrap()).unwrap();
    let cut = trial.first();
    let lines = trial.kept.0.lock().unwrap().iter().map(|piece| piece.to_line().unwrap()).collect::<String>();
    let read = Results::parse(&(begun + &lines), "r.json".as_ref()).unwrap();
    for results in [&read, &cut] {
        let reason = "the formula `b / (b − b)` gives no finite number in round 1".to_owned();
        assert_eq!(row(results, "passes.none").outcome(&run()), Some(&Outcome::Failed { reason }));
    }
    trial.interrupt.store(false, Ordering::Relaxed);
    assert_complete(&trial.next(read));
}
