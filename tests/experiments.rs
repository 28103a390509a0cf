//! Experiments on the CPU engine: every registered experiment measures every row that it declares, and what goes wrong is
//! a row, not an end.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use schemars::{JsonSchema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use syncscope::device::{Code, Device, FloatType, HostKind, raw};
use syncscope::error::DeviceError;
use syncscope::measure::Progress;
use syncscope_book::document::TableEntry;
use syncscope_present::units::Unit;
use syncscope_report::carried_book;
use syncscope_results::{
    Environment, Expression, Lookup, Measured, MetricSpec, MissingReason, Outcome, Parameter, Parameters, Plan,
    Recomputation, Recorded, Results, Row, RunOutcome, Selection, titled,
};
use syncscope_suite::experiment::{AnyExperiment, Experiment, Group, GroupBuilder, Registry, RunObserver};
use syncscope_suite::runner::{Session, Suite, empty_results, planned};

struct Unobserved;

impl RunObserver for Unobserved {
    fn experiment(&self, _: usize, _: usize, _: &str) {}
    fn group(&self, _: &[&str], _: &Parameters) {}
    fn progress(&self, _: Progress) {}
}

fn observer() -> Arc<dyn RunObserver> {
    Arc::new(Unobserved)
}

fn device() -> Device {
    Device::open("cpu:0").unwrap()
}

const SAMPLES: usize = 3;

/// A suite of these experiments.
fn suite_of(experiments: &Value, registry: &Registry) -> Suite {
    let sampling = json!({ "samples": SAMPLES, "warmup": 1 });
    let source = json!({ "title": "T", "sampling": sampling, "experiments": experiments });
    Suite::of_results(&source, "test", registry).unwrap()
}

/// All experiments of a registry, each with its own default parameters made tiny: counts are at most 8, and a list holds
/// no value twice.
fn tiny(registry: &Registry) -> Suite {
    fn shrunk(value: &Value) -> Value {
        match value {
            Value::Number(number) => number.as_u64().map_or_else(|| value.clone(), |count| json!(count.min(8))),
            Value::Array(values) => {
                let mut values: Vec<Value> = values.iter().map(shrunk).collect();
                values.dedup();
                Value::Array(values)
            }
            other => other.clone(),
        }
    }
    let mut generator = SchemaGenerator::default();
    let experiments = registry.ready().map(|entry| {
        let schema = entry.schema(&mut generator).to_value();
        let name = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()).unwrap();
        let properties = generator.definitions()[name]["properties"].as_object().unwrap();
        // Where an experiment says itself how many samples there are, they are as many as elsewhere.
        let value = |key: &str, property: &Value| match key {
            "waits" => json!(SAMPLES),
            _ => shrunk(&property["default"]),
        };
        let parameters = properties.iter().map(|(key, property)| (key.clone(), value(key, property)));
        let parameters = parameters.filter(|(_, value)| !value.is_null()).collect::<serde_json::Map<_, _>>();
        assert!(!parameters.is_empty(), "the schema of {} states no default to shrink", entry.name);
        json!({ entry.name: parameters })
    });
    suite_of(&experiments.collect(), registry)
}

fn run_on_cpu(suite: &Suite, registry: &Registry, selection: &Selection, interrupted: bool) -> Results {
    let (device, interrupt) = (device(), Arc::new(AtomicBool::new(interrupted)));
    let environment = Environment::now(&device, vec![]);
    let results = empty_results(suite.source.clone(), selection.clone(), Plan::default(), environment.clone());
    let (device, observer, has_timelines) = (&device, observer(), !registry.entries().is_empty());
    Session { suite, registry, device, observer, interrupt, has_timelines }.next(results, environment)
}

/// One run of all experiments that come with the library.
fn whole() -> &'static Results {
    static WHOLE: OnceLock<Results> = OnceLock::new();
    WHOLE.get_or_init(|| {
        let registry = Registry::builtin();
        run_on_cpu(&tiny(&registry), &registry, &Selection::default(), false)
    })
}

/// The rows of one round of one experiment, stated in YAML, without a warm-up.
fn run_once(experiment: &str, selection: Selection) -> Results {
    let text = format!("title: T\nsampling: {{ samples: 1, warmup: 0 }}\nexperiments:\n  - {experiment}\n");
    let suite = Suite::parse(&text, "test", &Registry::builtin()).unwrap();
    run_on_cpu(&suite, &Registry::new(), &selection, false)
}

/// The medians of a row, one for each set of its parameters.
fn medians(lookup: &Lookup<'_>, id: &str) -> Vec<f64> {
    let none = Parameters::new();
    let specs = lookup.specs_of(id, &none);
    specs.map(|spec| lookup.estimate(id, &spec.parameters).unwrap().median).collect()
}

/// What the device says that it does not have.
fn lacking(device: &Device) -> Vec<String> {
    let stream = device.stream().unwrap();
    let buffers = [HostKind::Pageable, HostKind::Pinned, HostKind::WriteCombined];
    let buffers = buffers.into_iter().map(|kind| device.host_buffer::<f32>(kind, 1).map(drop));
    let code = device.load(&Code::cuda("none.cu", "")).map(drop);
    let tried = buffers.chain([raw::launch_loop(&stream, 1).map(drop), code]);
    // Some rows have another reason: what is PyTorch's own or a crate's, the flushing of a cache that the workers do not have,
    // streams that there are not, and calls without one.
    let known = [
        "PyTorch, which its profiler records",
        "PyTorch's own",
        "it is a call of the crate",
        "the workers share the host's caches",
        "the call is given no stream",
        "this engine has no default stream",
        "all streams of this engine are non-blocking",
        "a thread of this engine waits for a condition variable",
        "the program that measures is not `report`",
        "this engine stands on no driver",
        "the devices of this engine are one host",
        "no device reads it across a link",
    ]
    .map(str::to_owned);
    let reason = |tried: Result<(), DeviceError>| match tried {
        Err(DeviceError::NotApplicable { reason, .. }) => Some(reason),
        _ => None,
    };
    tried.filter_map(reason).chain(known).collect()
}

#[test]
fn what_experiments_compute_is_what_their_formulas_say() {
    let Recomputation { contradictions, unchecked } = whole().recompute();
    assert_eq!((contradictions, unchecked), (vec![], vec![]));
}

#[test]
fn every_experiment_measures_each_row_it_declares_on_cpu() {
    let (results, registry) = (whole(), Registry::builtin());
    let names = registry.ready().map(|entry| entry.name);
    assert!(
        results.experiments().into_iter().eq(names),
        "the rows stand in the order of the suite, whatever ran first"
    );
    let ran: HashSet<&str> = results.run().order.iter().map(|experiment| experiment.name.as_str()).collect();
    assert_eq!(ran.len(), results.experiments().len());
    let suite = tiny(&registry);
    let planned = suite.experiments_on("cpu").iter().flat_map(|experiment| experiment.plan("cpu"));
    let declared: Vec<MetricSpec> = planned.collect();
    assert_eq!(results.rows.iter().map(|row| row.spec.clone()).collect::<Vec<_>>(), declared);
    let lacking = lacking(&device());
    for (row, outcome) in results.outcomes() {
        match outcome {
            Outcome::Measured(Measured { samples, .. }) => {
                assert!(samples.iter().all(|sample| sample.value.is_finite()), "{}: {samples:?}", row.spec.title());
                assert!(samples.iter().all(|sample| sample.order.is_some() && sample.started.is_some()));
                assert_eq!(samples.len(), SAMPLES, "{}", row.spec.title());
            }
            Outcome::Derived { samples } => assert_eq!(samples.len(), SAMPLES, "{}", row.spec.title()),
            Outcome::NotApplicable { reason } => {
                let known = lacking.iter().any(|known| reason.contains(known.as_str()));
                assert!(known, "{}: {reason}", row.spec.title());
            }
            other => panic!("{}: {other:?}", row.spec.title()),
        }
    }
    assert!(!results.has_failures() && !results.is_partial());
}

#[test]
fn every_scenario_is_recorded_and_named_by_a_row() {
    let results = whole();
    assert!(!results.timelines.is_empty());
    for scenario in &results.timelines {
        assert!(results.rows.iter().any(|row| row.spec.id == scenario.name), "{}", scenario.name);
        assert!(matches!(scenario.recorded, Recorded::Timeline(_)), "{}: {:?}", scenario.name, scenario.recorded);
    }
}

#[test]
fn a_plan_needs_no_device_and_names_each_row_of_its_experiment_once() {
    for engine in ["cuda", "cpu"] {
        for entry in Registry::builtin().ready() {
            let plan = entry.default_for(engine).plan(engine);
            assert!(!plan.is_empty(), "{} declares no row on {engine}", entry.name);
            let mut titles = HashSet::new();
            for spec in &plan {
                assert_eq!(spec.id.split_once('.').map(|(experiment, _)| experiment), Some(entry.name), "{}", spec.id);
                assert!(!spec.label.trim().is_empty() && !spec.group.trim().is_empty(), "{}", spec.id);
                assert!(titles.insert(spec.title()), "{} is declared twice", spec.title());
            }
        }
    }
}

#[test]
fn rows_with_different_identifiers_differ_in_their_label_or_heading() {
    let plan = Registry::builtin().plan("cuda");
    for (place, one) in plan.iter().enumerate() {
        let same = |other: &&MetricSpec| {
            let shown = |spec: &MetricSpec| (spec.experiment().to_owned(), spec.group.clone(), spec.label.clone());
            other.id != one.id && shown(other) == shown(one)
        };
        let other = plan[..place].iter().find(same);
        assert!(other.is_none(), "{} and {} are both `{}`", one.id, other.unwrap().id, one.label);
    }
}

#[test]
fn the_formula_of_the_work_of_a_row_gives_its_amount() {
    let mut checked = 0;
    for spec in Registry::builtin().plan("cuda") {
        let Some(work) = &spec.work else { continue };
        let value = |word: &str| match (word, spec.parameters.get("dtype")) {
            ("width", Some(Parameter::Text(dtype))) if dtype != "fp32" => Some(2.0),
            ("width", _) => Some(4.0),
            _ => spec.parameters.get(word)?.number(),
        };
        let amount = Expression::formula(&work.formula).and_then(|formula| formula.evaluate(&value));
        let amount =
            amount.unwrap_or_else(|| panic!("{}: `{}` is no formula of its parameters", spec.id, work.formula));
        assert_eq!(amount, work.amount, "{}: {}", titled(&spec.id, &spec.parameters), work.formula);
        checked += 1;
    }
    assert!(checked > 0);
}

#[test]
fn the_rows_of_the_kept_results_are_declared_by_their_experiments_of_today() {
    let registry = Registry::builtin();
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("book/results");
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let paths: Vec<_> = paths.filter(|path| path.extension().is_some_and(|ending| ending == "gz")).collect();
    assert!(!paths.is_empty());
    for path in paths {
        let results = Results::read(&path).unwrap();
        let origin = path.display().to_string();
        let suite = Suite::of_results(&results.suite, &origin, &registry).unwrap();
        let engine = results.environment().device.engine.as_str();
        let stated = suite.experiments_on(engine);
        let unstated = registry.entries().iter().filter(|entry| stated.iter().all(|one| one.name() != entry.name));
        let unstated: Vec<std::sync::Arc<dyn AnyExperiment>> =
            unstated.map(|entry| entry.default_for(engine)).collect();
        let ran = |name: &str| results.run().order.iter().any(|experiment| experiment.name == name);
        let experiments = stated.iter().chain(&unstated).filter(|experiment| ran(experiment.name()));
        let plan = experiments.flat_map(|experiment| experiment.plan(engine));
        // A row may have been added since; none may have gone, or changed its unit.
        let planned: BTreeMap<String, Unit> = plan.map(|spec| (spec.title(), spec.unit)).collect();
        for row in results.rows.iter() {
            assert_eq!(planned.get(&row.spec.title()), Some(&row.spec.unit), "{origin}: {}", row.spec.title());
        }
    }
}

#[test]
fn the_peak_rates_come_with_a_suite_that_does_not_name_them() {
    let registry = Registry::builtin();
    let suite = suite_of(&json!([{ "idle-device": { "iters": 2, "size": 8 } }]), &registry);
    let selection = Selection { only: vec!["ceilings.h2d".to_owned()], skip: vec![] };
    let results = run_on_cpu(&suite, &registry, &selection, false);
    assert_eq!(results.run().order.iter().map(|e| e.name.as_str()).collect::<Vec<_>>(), ["ceilings"]);
    let lookup = results.lookup();
    for id in ["ceilings.h2d.time", "ceilings.h2d.rate"] {
        assert!(lookup.metrics().any(|(spec, metric)| spec.id == id && metric.is_ok()), "{id}");
    }
}

#[test]
fn a_suite_of_the_program_measures_what_is_added_to_the_registry() {
    let registry = Registry::builtin().with::<Defective>();
    let registered: HashSet<&str> = registry.ready().map(|entry| entry.name).collect();
    let project = carried_book();
    for engine in ["cuda", "cpu"] {
        let mut of_any = HashSet::new();
        for name in project.suites() {
            let (origin, text) = project.suite(name).unwrap();
            let suite = Suite::parse(text, &origin, &registry).unwrap();
            let planned = planned(&suite, &registry, engine);
            let names: HashSet<String> = planned.iter().map(|spec| spec.experiment().to_owned()).collect();
            let left_out = |name: &&str| suite.except.iter().any(|own| own == name);
            let expected: HashSet<&str> = registered.iter().copied().filter(|name| !left_out(name)).collect();
            let found: HashSet<&str> = names.iter().map(String::as_str).collect();
            assert!(!suite.all || found == expected, "{name} on {engine}: {found:?}");
            of_any.extend(names);
        }
        assert_eq!(of_any.len(), registered.len(), "no suite has one of {registered:?} on {engine}: {of_any:?}");
    }
}

#[test]
fn an_interrupted_run_is_partial_and_says_so_in_each_row_it_left_out() {
    let registry = Registry::builtin();
    let results = run_on_cpu(&tiny(&registry), &registry, &Selection::default(), true);
    assert!(results.is_partial() && !results.has_failures());
    assert!(results.outcomes().all(|(_, outcome)| *outcome == Outcome::Interrupted));
    assert_eq!(results.rows.len(), whole().rows.len());
}

#[test]
fn a_resumed_run_keeps_what_was_finished_and_measures_the_rest() {
    let (registry, before) = (Registry::builtin(), whole());
    let cut = |row: &Row| row.spec.id.starts_with("idle-device.stream") || row.spec.experiment() == "ceilings";
    let mut partial = before.clone();
    partial.runs[0].outcome = RunOutcome::Interrupted;
    for row in partial.rows.iter_mut().filter(|row| cut(row)) {
        row.series[0].outcome = Outcome::Interrupted;
    }
    let suite = Suite::of_results(&partial.suite, "test", &registry).unwrap();
    let (device, interrupt) = (device(), Arc::new(AtomicBool::new(false)));
    let (suite, registry, device, observer) = (&suite, &registry, &device, observer());
    let session = Session { suite, registry, device, observer, interrupt, has_timelines: true };
    let after = session.next(partial, before.environment().clone());
    assert!(!after.is_partial() && after.run().resumed.len() == 1);
    assert_eq!(after.rows.len(), before.rows.len());
    for (row, kept) in after.rows.iter().zip(before.rows.iter()) {
        assert_eq!(row.spec, kept.spec);
        if cut(row) {
            let outcome = &row.series[0].outcome;
            assert!(matches!(outcome, Outcome::Measured { .. } | Outcome::Derived { .. }), "{}", row.spec.title());
        } else {
            assert_eq!(row.series, kept.series, "{}", row.spec.title());
        }
    }
}

#[test]
fn only_the_chosen_rows_are_measured() {
    let only = vec!["sync-points.big".to_owned()];
    let selection = Selection { only, skip: vec!["sync-points.big.forced".to_owned()] };
    let results = run_once("sync-points: { iters: 2, big: 16, small: 8, steps: 3, samples: 2 }", selection);
    let lookup = results.lookup();
    let measured = lookup.metrics().filter(|(_, found)| found.is_ok()).map(|(spec, _)| spec.id.as_str());
    assert_eq!(measured.collect::<Vec<_>>(), ["sync-points.big.async"; FloatType::ALL.len()]);
    for (spec, found) in lookup.metrics().filter(|(spec, _)| spec.id != "sync-points.big.async") {
        assert!(matches!(found, Err(MissingReason::Skipped(_))), "{}: {found:?}", spec.title());
    }
}

#[test]
fn rows_that_find_no_memory_fail_with_the_reason_and_the_others_run() {
    let experiment = "sync-points: { dtypes: [fp32], iters: 1, big: 1000000, small: 8, steps: 1, samples: 1 }";
    let results = run_once(experiment, Selection::default());
    let lookup = results.lookup();
    for id in ["sync-points.big.async", "sync-points.big.forced", "sync-points.big.delta"] {
        let big = lookup.find(id, &Parameters::new(), &Parameters::new());
        assert!(matches!(&big, Err(MissingReason::Failed(reason)) if reason.contains("no room")), "{id}: {big:?}");
    }
    assert!(lookup.find("sync-points.small.async", &Parameters::new(), &Parameters::new()).is_ok());
    assert!(results.has_failures());
}

#[test]
fn iterations_and_element_types_can_be_chosen_where_an_experiment_has_them() {
    let registry = Registry::builtin();
    let entry = registry.get("sync-points").unwrap();
    let (iterations, types) = (entry.iterations.unwrap(), entry.element_types.unwrap());
    let chosen = serde_json::json!({ iterations: 7, types: ["bf16"] });
    let plan = entry.suited("cuda", chosen.as_object().unwrap()).unwrap().plan("cuda");
    let loops: Vec<&MetricSpec> = plan.iter().filter(|spec| spec.id == "sync-points.big.async").collect();
    assert_eq!(loops.len(), 1);
    assert_eq!((&loops[0].parameters["iters"], &loops[0].parameters["dtype"]), (&7_usize.into(), &"bf16".into()));
    assert!(registry.get("self-audit").unwrap().element_types.is_none());
    // Each names a parameter that it has.
    for entry in registry.ready() {
        for (parameter, value) in [(entry.iterations, "7"), (entry.element_types, "[\"fp32\"]")] {
            let stated = parameter.map(|name| (name.to_owned(), value.parse().unwrap())).into_iter().collect();
            assert!(entry.suited("cuda", &stated).is_ok(), "{}", entry.name);
        }
    }
    assert!(registry.unknown("sync-point").contains("did you mean `sync-points`?"));
}

#[test]
fn each_element_type_has_rows_of_its_own() {
    for dtype in FloatType::ALL {
        let select = Parameters::from([("dtype".to_owned(), Parameter::from(dtype.name()))]);
        for id in ["sync-points.small.forced", "ceilings.matmul.rate"] {
            assert!(whole().lookup().estimate(id, &select).is_ok(), "{id} {}", dtype.name());
        }
    }
}

#[test]
fn what_is_known_beforehand_comes_out() {
    // The stream that writes is held up for so long that no pause of the machine lets it come first.
    let results = run_once("synchronize: { size: 8, iters: 2, elements: 64, busy: 0.3 }", Selection::default());
    let lookup = results.lookup();
    assert_eq!(medians(&lookup, "synchronize.streams.none.stale"), [64.0]);
    assert_eq!(medians(&lookup, "synchronize.streams.event.stale"), [0.0]);
    assert_eq!(medians(&lookup, "synchronize.streams.device.stale"), [0.0]);
    let lookup = whole().lookup();
    assert_eq!(medians(&lookup, "async-frontend.graph.value"), [3.0, 3.0]);
    assert_eq!(medians(&lookup, "overlap.double-buffer.wrong"), [0.0]);
}

/// A row's estimate for these values of its parameters.
fn median_of<const N: usize>(lookup: &Lookup<'_>, id: &str, select: [(&str, Parameter); N]) -> f64 {
    let select = Parameters::from(select.map(|(name, value)| (name.to_owned(), value)));
    lookup.estimate(id, &select).unwrap_or_else(|missing| panic!("{id}: {missing}")).median
}

#[test]
fn calls_that_need_a_value_wait_and_calls_that_need_none_do_not() {
    let experiment =
        "overlap: { draws: 64, elements: 64, adds: 2, scales: 2, steps: 3, host_buffers: [40, 65536], patience: 0.5 }";
    let results = run_once(experiment, Selection { only: vec!["overlap.implicit".to_owned()], skip: vec![] });
    let lookup = results.lookup();
    for call in ["item", "array", "print", "any", "nonzero"] {
        assert_eq!(medians(&lookup, &format!("overlap.implicit.{call}.blocks")), [1.0], "{call}");
    }
    assert_eq!(median_of(&lookup, "overlap.implicit.copy.blocks", [("origin", "pageable".into())]), 1.0);
    for call in ["launch", "view", "rows-from-host", "rows-on-device", "sum", "upload", "to-pageable"] {
        let waited = medians(&lookup, &format!("overlap.implicit.{call}.blocks"));
        assert!(!waited.is_empty() && waited.iter().all(|share| *share == 0.0), "{call}: {waited:?}");
    }
    for bytes in [40_usize, 65536] {
        for (mode, waits) in [("blocking", 1.0), ("non-blocking", 0.0)] {
            let select = [("bytes", bytes.into()), ("mode", mode.into())];
            assert_eq!(median_of(&lookup, "overlap.implicit.from-pageable.blocks", select), waits, "{bytes} {mode}");
        }
    }
}

#[test]
fn a_call_that_waits_stalls_at_least_as_long_as_the_kernel_before_it() {
    let select = Parameters::new();
    for call in ["item", "print", "any"] {
        let id = format!("overlap.implicit.{call}.stall");
        let stall = whole().lookup().find(&id, &select, &select).unwrap();
        assert!(stall.samples().iter().all(|stall| *stall >= 0.001), "{call}: {:?}", stall.samples());
    }
}

#[test]
fn only_the_device_synchronize_waits_for_another_stream() {
    let experiment = "synchronize: { size: 8, iters: 2, elements: 64, patience: 0.5 }";
    let only = ["device", "stream", "item", "event"].map(|scope| format!("synchronize.scope.{scope}.blocks"));
    let results = run_once(experiment, Selection { only: only.to_vec(), skip: vec![] });
    let waited = only.map(|id| medians(&results.lookup(), &id));
    assert_eq!(waited, [[1.0], [0.0], [0.0], [0.0]]);
}

#[test]
fn a_queue_without_a_limit_takes_all_launches_and_none_of_them_blocks() {
    let selection = Selection { only: vec!["launch-path.queue".to_owned()], skip: vec![] };
    let results = run_once("launch-path: { operations: [1], patience: 60 }", selection);
    assert_eq!(medians(&results.lookup(), "launch-path.queue.depth"), [4096.0]);
}

#[test]
fn every_stopwatch_that_waits_for_a_kernel_shows_at_least_its_length() {
    let selection = Selection { only: vec!["self-audit.stopwatch".to_owned()], skip: vec![] };
    let results = run_once("self-audit: { spins: [0.002] }", selection);
    let lookup = results.lookup();
    for stopwatch in ["host-wait", "events", "events-idle", "span", "loop"] {
        let time = medians(&lookup, &format!("self-audit.stopwatch.{stopwatch}"));
        assert!(time.iter().all(|time| *time >= 0.002), "{stopwatch}: {time:?}");
    }
    let clocks = "synchronize: { size: 8, iters: 2, elements: 64, spins: [0, 0.002] }";
    let results = run_once(clocks, Selection { only: vec!["synchronize.clock".to_owned()], skip: vec![] });
    assert!(median_of(&results.lookup(), "synchronize.clock.with", [("spin_seconds", 0.002.into())]) >= 0.002);
}

#[test]
fn rows_that_come_from_recordings_are_measured_after_all_others() {
    let recorded = ["self-audit.stopwatch.span", "sync-points.idle", "implementation.order"];
    let is_recorded = |row: &Row| recorded.iter().any(|name| row.spec.id.starts_with(name));
    let times = |of_recorded: bool| {
        let rows = whole().outcomes().filter(move |(row, _)| is_recorded(row) == of_recorded);
        let samples = rows.filter_map(|(_, outcome)| outcome.measured()).flat_map(|measured| &measured.samples);
        samples.filter_map(|sample| sample.started).collect::<Vec<f64>>()
    };
    let (last, first) =
        (times(false).into_iter().fold(0.0, f64::max), times(true).into_iter().fold(f64::MAX, f64::min));
    assert!(last < first && first < f64::MAX, "{last} {first}");
    assert_eq!(medians(&whole().lookup(), "implementation.order.starts-in-order"), [1.0]);
    for share in medians(&whole().lookup(), "sync-points.idle.each") {
        assert!((0.0..=1.0).contains(&share), "{share}");
    }
}

#[test]
fn every_chapter_with_a_document_measures_the_same_code_twice_in_turn() {
    let documents = carried_book().documents(&Registry::builtin().catalog("cpu")).unwrap();
    let experiments = whole().experiments().into_iter();
    for experiment in experiments.filter(|name| documents.iter().any(|document| document.id == *name)) {
        let ratio = medians(&whole().lookup(), &format!("{experiment}.same.ratio"));
        assert!(
            ratio.len() == 1 && ratio[0] > 0.0,
            "{experiment} needs one group with `.twice`; the ratios of its same code twice are {ratio:?}"
        );
    }
}

/// When the samples of a row began in the run; none where it was not measured.
fn began(results: &Results, spec: &MetricSpec) -> Vec<f64> {
    let found = results.outcomes().find(|(row, _)| row.spec == *spec);
    let samples = found.and_then(|(_, outcome)| outcome.measured()).into_iter().flat_map(|measured| &measured.samples);
    samples.filter_map(|sample| sample.started).collect()
}

#[test]
fn rows_of_a_case_are_sampled_in_turn_but_for_four_tables() {
    let (results, catalog) = (whole(), Registry::builtin().catalog("cpu"));
    let documents = carried_book().documents(&catalog).unwrap();
    let mut apart = Vec::new();
    for document in &documents {
        let document = document.with_tables(std::slice::from_ref(results), &documents);
        for table in &document.tables {
            for case in table.cases_in(std::slice::from_ref(results)) {
                let entries = table.rows.iter().map(|row| TableEntry { table, row, case: &case });
                let found = entries.filter_map(|entry| entry.measured(&results.lookup()).ok());
                let times: Vec<Vec<f64>> = found.map(|measured| began(results, measured.metric.spec)).collect();
                let measured = || times.iter().filter(|times| !times.is_empty());
                let last_begin = measured().map(|times| times[0]).fold(0.0, f64::max);
                let first_end = measured().map(|times| times[times.len() - 1]).fold(f64::MAX, f64::min);
                if last_begin > first_end {
                    apart.push(format!("{}/{}", document.id, table.id));
                }
            }
        }
    }
    // Long work of the host alone, and a recorded row, which comes after all others.
    apart.dedup();
    assert_eq!(apart, ["async-frontend/loop", "overlap/execution", "self-audit/stopwatches"]);
}

/// An experiment with a defect, while it measures or while it declares.
#[derive(Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Defective {
    while_declaring: bool,
}

impl Experiment for Defective {
    const NAME: &'static str = "defective";
    const SUMMARY: &'static str = "What becomes of a run with a defect";

    fn groups(&self, _: &str) -> Vec<Group> {
        assert!(!self.while_declaring, "a defect while declaring");
        let before = Group::of("Before", []).host_time("defective.before", "Before", |_| Ok(|| Ok(())));
        let defect = Group::of("Defect", []).host_time("defective.at", "At", |_| {
            let holds = true;
            Ok(move || if holds { panic!("a defect while measuring") } else { Ok(()) })
        });
        let after = Group::of("After", []).host_time("defective.after", "After", |_| Ok(|| Ok(())));
        [before, defect, after].map(GroupBuilder::build).into()
    }
}

#[test]
fn an_experiment_that_panics_leaves_what_it_measured_and_the_others_run() {
    let registry = Registry::builtin().with::<Defective>();
    let others = json!([{ "defective": {} }, { "idle-device": { "iters": 2, "size": 8 } }]);
    let selection = Selection { only: vec!["defective".to_owned(), "idle-device".to_owned()], skip: vec![] };
    let results = run_on_cpu(&suite_of(&others, &registry), &registry, &selection, false);
    let lookup = results.lookup();
    let found = |id: &str| lookup.find(id, &Parameters::new(), &Parameters::new()).map(|metric| metric.count());
    let failed = Err(MissingReason::Failed("a defect while measuring".to_owned()));
    assert_eq!(found("defective.before"), Ok(SAMPLES));
    assert_eq!((found("defective.at"), found("defective.after")), (failed, Ok(SAMPLES)));
    assert_eq!(found("idle-device.stream.same"), Ok(SAMPLES));
    assert_eq!(results.run().order[0].failure.as_deref(), Some("a defect while measuring"));
    assert!(results.has_failures() && !results.is_partial());
}

#[test]
fn a_panic_in_groups_fails_its_experiment_alone() {
    let registry = Registry::builtin().with::<Defective>();
    let others = json!([{ "defective": { "while_declaring": true } }, { "idle-device": { "iters": 2, "size": 8 } }]);
    let selection = Selection { only: vec!["defective".to_owned(), "idle-device".to_owned()], skip: vec![] };
    let results = run_on_cpu(&suite_of(&others, &registry), &registry, &selection, false);
    let ids: Vec<&str> = results.rows.iter().map(|row| row.spec.id.as_str()).collect();
    assert_eq!(ids[0], "idle-device.other", "what it declares is not known");
    assert_eq!(results.run().order[0].failure.as_deref(), Some("a defect while declaring"));
    assert!(
        results
            .rows
            .iter()
            .all(|row| matches!(row.series[0].outcome, Outcome::Measured { .. } | Outcome::Derived { .. }))
    );
    assert!(results.has_failures());
}
