//! Experiments on the CPU engine: every planned row is left, and what goes wrong is a row, not an end.

#![allow(clippy::unwrap_used)]

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use syncscope::device::Device;
use syncscope::experiment::{Absence, Entry, Findings, Outcome, Parameters, Watcher};
use syncscope::measure::{Progress, Sampler, Sampling};
use syncscope::run::{Environment, ExperimentRun, Run, Suite, run, run_one};

struct Unwatched;

impl Watcher for Unwatched {
    fn begins(&self, _: &[&str], _: &Parameters) {}
    fn advances(&self, _: Progress) {}
}

fn suite(experiments: &str) -> Suite {
    let text = format!("title: T\nsampling: {{ samples: 3, warmup: 1 }}\nexperiments:\n{experiments}");
    Suite::parse(&text, "test").unwrap()
}

const TINY: &str = "  - sync-points: { iters: 2, big: 32, small: 8, steps: 3, samples: 2 }\n";

fn run_tiny(interrupt: bool) -> Run {
    let device = Device::open("cpu:0").unwrap();
    let flag = Arc::new(AtomicBool::new(interrupt));
    let watcher: Arc<dyn Watcher> = Arc::new(Unwatched);
    run(&suite(TINY), &device, Environment::now(&device, vec![]), &flag, &watcher, |_, _, _| {})
}

#[test]
fn every_planned_row_is_measured_on_the_cpu_engine() {
    let run = run_tiny(false);
    let names: Vec<_> = run.experiments.iter().map(|e| e.name.as_str()).collect();
    assert_eq!(names, ["self-audit", "sync-points"]);
    let findings = run.findings();
    for entry in run.suite.experiments.iter().chain(&Entry::suited_to("self-audit", "cpu")) {
        for plan in entry.experiment().rows() {
            let found = findings.find(plan.id, &Parameters::new(), &Parameters::new());
            match (plan.id, found) {
                ("self-audit.enqueue.raw" | "self-audit.enqueue.ratio", found) => {
                    assert!(matches!(found, Err(Absence::NotApplicable(_))), "{}: {found:?}", plan.id);
                }
                (_, found) => assert_eq!(found.map(|f| f.samples.len()), Ok(3), "{}", plan.id),
            }
        }
    }
    assert!(!run.has_failures() && !run.partial);
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
    for entry in Entry::NAMES.iter().filter_map(|name| Entry::suited_to(name, "cpu")) {
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
        assert!(row.finding().is_err());
    }
}

#[test]
fn rows_that_find_no_memory_fail_with_the_reason_and_the_others_run() {
    let device = Device::open("cpu:0").unwrap();
    let entry = &suite("  - sync-points: { dtypes: [fp32], iters: 1, big: 8000000, small: 8, steps: 1, samples: 1 }\n")
        .experiments[0];
    let left: ExperimentRun = run_one(
        entry,
        &device,
        Sampler::new(Sampling::samples(1).with_warmup(0)),
        &(Arc::new(Unwatched) as Arc<dyn Watcher>),
    );
    let findings = Findings::new(&left.rows);
    let big = findings.find("sync-points.big.delta", &Parameters::new(), &Parameters::new());
    assert!(matches!(&big, Err(Absence::Failed(reason)) if reason.contains("no room")), "{big:?}");
    assert!(findings.find("sync-points.small.async", &Parameters::new(), &Parameters::new()).is_ok());
    assert!(left.has_failures());
}

#[test]
fn the_turns_of_a_loop_can_be_chosen_and_an_unknown_choice_is_refused() {
    let entry = Entry::suited_to("sync-points", "cuda").unwrap();
    let chosen = entry.clone().with("bf16".parse().ok(), NonZeroUsize::new(7)).unwrap();
    let Entry::SyncPoints(chosen) = chosen else { panic!("another experiment") };
    assert_eq!((chosen.dtypes.len(), chosen.iters.get(), chosen.big.get()), (1, 7, 8192));
    assert!(Entry::suited_to("self-audit", "cuda").unwrap().with("fp16".parse().ok(), None).is_err());
    assert!(Entry::suited_to("none", "cuda").is_none());
}
