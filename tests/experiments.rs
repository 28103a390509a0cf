//! Experiments on the CPU engine: every planned row is left, and what goes wrong is a row, not an end.

#![allow(clippy::unwrap_used)]

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use syncscope::device::Device;
use syncscope::experiment::{Entry, Lookup, MissingReason, Outcome, Parameters, Row, Selection, Watcher};
use syncscope::measure::{Progress, Protocol, Sampler};
use syncscope::run::{Attendance, Environment, Run, Suite, resume, run, run_one};

struct Unwatched;

impl Watcher for Unwatched {
    fn begins(&self, _: &[&str], _: &Parameters) {}
    fn advances(&self, _: Progress) {}
}

fn suite(experiments: &str) -> Suite {
    let text = format!("title: T\nsampling: {{ samples: 3, warmup: 1 }}\nexperiments:\n{experiments}");
    Suite::parse(&text, "test").unwrap()
}

const TINY: &str = "  - sync-points: { iters: 2, big: 32, small: 8, steps: 3, samples: 2 }
  - idle-device: { iters: 2, size: 8 }
  - async-frontend: { iters: 2, size: 8, chain: 2, small_branch: 4, large_branch: 8, steps: 4, every: [1, 2], model: 8, operations: [1, 3] }
  - synchronize: { size: 8, iters: 2, elements: 64 }
  - overlap: { draws: 64, elements: 64, adds: 2, scales: 2, steps: 3 }
  - ceilings: { copies: [64], sizes: [8], link: [64] }
";

fn run_tiny(interrupt: bool) -> Run {
    let device = Device::open("cpu:0").unwrap();
    let interrupt = Arc::new(AtomicBool::new(interrupt));
    let watcher: Arc<dyn Watcher> = Arc::new(Unwatched);
    let attendance = Attendance { begins: &|_, _, _| {}, watcher, interrupt };
    run(&suite(TINY), &Selection::default(), &device, Environment::now(&device, vec![]), &attendance)
}

/// There is no bare kernel launch and no pinned memory.
const MEANINGLESS_ON_A_CPU: [&str; 7] = [
    "self-audit.enqueue.raw",
    "self-audit.enqueue.ratio",
    "overlap.implicit.from-pinned.blocks",
    "overlap.implicit.from-pinned.stall",
    "overlap.implicit.to-pinned.blocks",
    "overlap.implicit.to-pinned.stall",
    "overlap.transfer.pin",
];

#[test]
fn every_planned_row_is_measured_on_the_cpu_engine() {
    let run = run_tiny(false);
    let names: Vec<_> = run.experiments.iter().map(|e| e.name.as_str()).collect();
    let expected = ["self-audit", "sync-points", "idle-device", "async-frontend", "synchronize", "overlap", "ceilings"];
    assert_eq!(names, expected);
    let lookup = run.lookup();
    for entry in run.suite.experiments.iter().chain(&Entry::default_for("self-audit", "cpu")) {
        for plan in entry.experiment().rows() {
            let found = lookup.find(plan.id, &Parameters::new(), &Parameters::new());
            if MEANINGLESS_ON_A_CPU.contains(&plan.id) {
                assert!(matches!(found, Err(MissingReason::NotApplicable(_))), "{}: {found:?}", plan.id);
            } else {
                assert_eq!(found.map(|f| f.samples.len()), Ok(3), "{}", plan.id);
            }
        }
    }
    assert!(!run.has_failures() && !run.partial);
}

#[test]
fn the_ceilings_come_with_a_suite_that_does_not_name_them() {
    let device = Device::open("cpu:0").unwrap();
    let (watcher, interrupt): (Arc<dyn Watcher>, _) = (Arc::new(Unwatched), Arc::new(AtomicBool::new(false)));
    let attendance = Attendance { begins: &|_, _, _| {}, watcher, interrupt };
    let selection = Selection { only: vec!["ceilings.h2d".to_owned()], skip: vec![] };
    let suite = suite("  - idle-device: { iters: 2, size: 8 }");
    let run = run(&suite, &selection, &device, Environment::now(&device, vec![]), &attendance);
    assert_eq!(run.experiments.iter().map(|e| e.name.as_str()).collect::<Vec<_>>(), ["ceilings"]);
    let lookup = run.lookup();
    for plan in ["ceilings.h2d.time", "ceilings.h2d.rate"] {
        assert!(lookup.find(plan, &Parameters::new(), &Parameters::new()).is_ok(), "{plan}");
    }
}

#[test]
fn each_dtype_has_its_own_rows_with_their_parameters() {
    let run = run_tiny(false);
    for dtype in ["fp16", "bf16", "fp32"] {
        let row =
            run.rows().find(|row| row.id == "sync-points.small.forced" && row.parameters["dtype"].to_string() == dtype);
        assert_eq!(row.map(|row| row.parameters["size"].to_string()), Some("8".to_owned()), "{dtype}");
    }
}

#[test]
fn every_section_of_a_summary_names_rows_that_are_planned() {
    for entry in Entry::NAMES.iter().filter_map(|name| Entry::default_for(name, "cpu")) {
        let experiment = entry.experiment();
        let begins =
            |id: &str, prefix: &str| id.strip_prefix(prefix).is_some_and(|r| r.is_empty() || r.starts_with('.'));
        for plan in experiment.rows() {
            let sections = experiment.sections().iter().flat_map(|s| s.rows).filter(|rows| begins(plan.id, rows));
            assert_eq!(sections.count(), 1, "{} stands in one section", plan.id);
        }
    }
}

#[test]
fn an_interrupted_run_is_partial_and_says_so_in_each_row_it_left_out() {
    let run = run_tiny(true);
    assert!(run.partial);
    for row in run.rows() {
        assert!(!matches!(row.outcome, Outcome::Measured { .. } | Outcome::Failed { .. }), "{}", row.id);
        assert!(row.metric().is_err());
    }
}

#[test]
fn a_resumed_run_keeps_what_was_finished_and_measures_the_rest() {
    let device = Device::open("cpu:0").unwrap();
    let attend = || Attendance {
        begins: &|_, _, _| {},
        watcher: Arc::new(Unwatched),
        interrupt: Arc::new(AtomicBool::new(false)),
    };
    let mut partial = run_tiny(false);
    let kept = partial.experiments[2].rows[0].clone();
    partial.partial = true;
    let cut = &mut partial.experiments[2].rows;
    let unfinished = cut.iter().position(|row| row.id == "idle-device.stream.other").unwrap();
    for row in &mut cut[unfinished..] {
        row.outcome = Outcome::Interrupted;
    }
    let whole = resume(partial.clone(), &device, &attend());
    assert!(!whole.partial && whole.resumed.len() == 1);
    assert_eq!(whole.experiments[2].rows[0], kept);
    assert!(whole.experiments[2].rows[unfinished].metric().is_ok());
    assert_eq!(whole.experiments[1], partial.experiments[1]);
}

#[test]
fn only_the_chosen_rows_are_measured() {
    let device = Device::open("cpu:0").unwrap();
    let chosen =
        Selection { only: vec!["sync-points.big".to_owned()], skip: vec!["sync-points.big.forced".to_owned()] };
    let sampler = Sampler::new(Protocol::samples(1).with_warmup(0));
    let entry = &suite(TINY).experiments[0];
    let left = run_one(entry, &chosen, None, &device, sampler, &(Arc::new(Unwatched) as Arc<dyn Watcher>)).rows;
    let measured: Vec<_> = left.iter().filter(|row| row.metric().is_ok()).map(|row| row.id.as_str()).collect();
    assert_eq!(measured, ["sync-points.big.async"; 3]);
    let skipped = |row: &&Row| matches!(row.outcome, Outcome::Skipped { .. });
    assert_eq!(left.iter().filter(skipped).count(), left.len() - 3);
}

#[test]
fn rows_that_find_no_memory_fail_with_the_reason_and_the_others_run() {
    let entry = &suite("  - sync-points: { dtypes: [fp32], iters: 1, big: 8000000, small: 8, steps: 1, samples: 1 }\n")
        .experiments[0];
    let left = run_once(entry);
    let lookup = Lookup::new(&left);
    let big = lookup.find("sync-points.big.delta", &Parameters::new(), &Parameters::new());
    assert!(matches!(&big, Err(MissingReason::Failed(reason)) if reason.contains("no room")), "{big:?}");
    assert!(lookup.find("sync-points.small.async", &Parameters::new(), &Parameters::new()).is_ok());
}

#[test]
fn the_turns_of_a_loop_can_be_chosen_and_an_unknown_choice_is_refused() {
    let entry = Entry::default_for("sync-points", "cuda").unwrap();
    let chosen = entry.clone().with("bf16".parse().ok(), NonZeroUsize::new(7)).unwrap();
    let Entry::SyncPoints(chosen) = chosen else { panic!("another experiment") };
    assert_eq!((chosen.dtypes.len(), chosen.iters.get(), chosen.big.get()), (1, 7, 8192));
    assert!(Entry::default_for("self-audit", "cuda").unwrap().with("fp16".parse().ok(), None).is_err());
    assert!(Entry::default_for("none", "cuda").is_none());
}

#[test]
fn what_is_known_beforehand_comes_out() {
    // The stream that writes is held up for so long that no pause of the machine lets it come first.
    let entry = &suite("  - synchronize: { size: 8, iters: 2, elements: 64, busy: 0.3 }\n").experiments[0];
    let rows = run_once(entry);
    assert_eq!(medians(&rows, "synchronize.streams.none.stale"), [64.0]);
    assert_eq!(medians(&rows, "synchronize.streams.event.stale"), [0.0]);
    assert_eq!(medians(&rows, "synchronize.streams.device.stale"), [0.0]);
    let run = run_tiny(false);
    let rows: Vec<Row> = run.rows().cloned().collect();
    assert_eq!(medians(&rows, "async-frontend.graph.value"), [3.0, 3.0]);
    assert_eq!(medians(&rows, "overlap.double-buffer.wrong"), [0.0]);
}

#[test]
fn calls_that_need_a_value_wait_and_calls_that_need_none_do_not() {
    let entry = &suite("  - overlap: { draws: 64, elements: 64, adds: 2, scales: 2, steps: 3, patience: 0.5 }\n")
        .experiments[0];
    let rows = run_once(entry);
    for call in ["item", "copy", "array", "print", "any", "nonzero"] {
        assert_eq!(medians(&rows, &format!("overlap.implicit.{call}.blocks")), [1.0], "{call}");
    }
    for call in ["view", "rows-from-host", "rows-on-device", "sum", "upload", "from-pageable", "to-pageable"] {
        let waited = medians(&rows, &format!("overlap.implicit.{call}.blocks"));
        assert!(!waited.is_empty() && waited.iter().all(|share| *share == 0.0), "{call}: {waited:?}");
    }
}

/// The rows of one round without a warm-up.
fn run_once(entry: &Entry) -> Vec<Row> {
    let device = Device::open("cpu:0").unwrap();
    let sampler = Sampler::new(Protocol::samples(1).with_warmup(0));
    run_one(entry, &Selection::default(), None, &device, sampler, &(Arc::new(Unwatched) as Arc<dyn Watcher>)).rows
}

/// The medians of a row, one for each set of its parameters.
fn medians(rows: &[Row], id: &str) -> Vec<f64> {
    let rows = rows.iter().filter(|row| row.id == id);
    rows.map(|row| row.metric().unwrap().estimate().unwrap().median).collect()
}
