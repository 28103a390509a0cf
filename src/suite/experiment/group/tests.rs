use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;

use super::*;
use crate::experiment::{AnyExperiment, Bench, Experiment, Registry, RunObserver};
use crate::measure::{Progress, Protocol, Sampler};
use crate::results::{Environment, Outcome, Plan, Selection};
use crate::runner::{Session, Suite, empty_results};

struct Unobserved;

impl RunObserver for Unobserved {
    fn experiment(&self, _: usize, _: usize, _: &str) {}
    fn group(&self, _: &[&str], _: &Parameters) {}
    fn progress(&self, _: Progress) {}
}

/// What is left of a group that is sampled and computed.
fn measured(group: Group) -> Bench {
    let mut bench = bench();
    bench.sample(&group);
    bench.compute(&group);
    bench
}

fn bench() -> Bench {
    let device = Device::open("cpu:0").unwrap();
    let sampler = Sampler::new(Protocol::samples(2).with_warmup(0));
    Bench::new(&device, sampler, Arc::new(Unobserved), "run", Instant::now())
}

#[test]
fn what_a_row_declares_of_its_clock_and_iterations_is_what_its_case_does() {
    let group = Group::of("G", [])
        .setup(|device| device.stream())
        .host_time("a.host", "Host", |_| Ok(|| Ok(())))
        .host_time_within("a.within", "Within", |_| Ok(|watch: &mut Stopwatch| watch.time(|| Ok(()))))
        .per(3)
        .device_time("a.device", "Device", |stream| Ok((stream.clone(), || Ok(()))))
        .per(5)
        .time_by(Clock::DeviceEvents, "a.by", "By", |_| Ok(|| Ok(1.0)))
        .per(7)
        .observed("a.observed", "Observed", Unit::Number, |_| Ok(|| Ok(1.0)));
    let stream = Rc::new(Device::open("cpu:0").unwrap().stream().unwrap());
    assert_eq!(group.makes.len(), 5);
    for (spec, make) in group.group.rows.into_iter().zip(group.makes) {
        let Some(make) = make else { panic!("{} is not sampled", spec.id) };
        let case = make(&stream, spec.id.clone()).unwrap();
        let iterations = case.iterations() as u64;
        assert_eq!(spec.provenance, Provenance::Measured { clock: case.clock(), iterations }, "{}", spec.id);
        assert_eq!(case.name(), spec.id);
    }
}

#[test]
fn what_cannot_be_launched_behind_a_gate_fails_alone() {
    let group = Group::of("G", [])
        .setup(|device| device.stream())
        .device_time_by(Clock::DeviceBatch, "a.batch", "Batch", |stream| {
            let own = stream.clone();
            Ok((DeviceClock::new(stream)?.behind_gate(), move || {
                own.spin(Duration::ZERO).and_then(|()| own.synchronize())
            }))
        })
        .device_time("a.events", "Events", |stream| {
            let own = stream.clone();
            Ok((stream.clone(), move || own.spin(Duration::ZERO)))
        });
    let bench = measured(group.build());
    let parameters = Parameters::new();
    let failed = bench.outcome("a.batch", &parameters);
    assert!(matches!(failed, Some(Outcome::Failed { reason }) if reason.contains("time it by events")), "{failed:?}");
    assert!(bench.samples("a.events", &parameters).is_ok_and(|samples| samples.len() == 2));
}

#[test]
fn a_sample_is_divided_by_the_iterations_and_a_derived_row_is_not() {
    let group = Group::of("G", [])
        .time_by(Clock::Host, "a.loop", "Loop", |_| Ok(|| Ok(12.0)))
        .per(4)
        .derived("a.double", "Double", Unit::Seconds, "2 · loop")
        .per(4);
    let bench = measured(group.build());
    let parameters = Parameters::new();
    assert_eq!(bench.samples("a.loop", &parameters).as_deref(), Ok(&[3.0, 3.0][..]));
    assert_eq!(bench.samples("a.double", &parameters).as_deref(), Ok(&[6.0, 6.0][..]));
}

#[test]
fn a_case_that_cannot_be_made_takes_no_other_row_of_its_group_with_it() {
    let (what, device, reason) = ("a call".to_owned(), "cpu:0".to_owned(), "no such call".to_owned());
    let none = DeviceError::NotApplicable { what, device, reason };
    let group = Group::of("G", [])
        .host_time("a.good", "Good", |_| Ok(|| Ok(())))
        .host_time("a.none", "None", move |_| if true { Err(none.clone()) } else { Ok(|| Ok(())) })
        .difference("a.delta", "Difference", ["a.good", "a.none"]);
    let bench = measured(group.build());
    let parameters = Parameters::new();
    assert!(bench.samples("a.good", &parameters).is_ok());
    let absent = Outcome::NotApplicable { reason: "no such call".to_owned() };
    assert_eq!(bench.samples("a.none", &parameters), Err(Box::new(absent.clone())));
    assert_eq!(bench.samples("a.delta", &parameters), Err(Box::new(absent)));
}

#[test]
fn a_setup_that_fails_fails_every_row_of_the_group() {
    let error = DeviceError::InvalidArgument { operation: "setup", reason: "wrong".to_owned() };
    let group = Group::of("G", [])
        .setup(move |_| if true { Err(error.clone()) } else { Ok(()) })
        .host_time("a.one", "One", |()| Ok(|| Ok(())))
        .observed("a.two", "Two", Unit::Number, |()| Ok(|| Ok(1.0)));
    let bench = measured(group.build());
    for id in ["a.one", "a.two"] {
        let outcome = bench.samples(id, &Parameters::new()).unwrap_err();
        assert!(matches!(&*outcome, Outcome::Failed { reason } if reason.contains("wrong")), "{outcome:?}");
    }
}

/// When each sample of a row began.
fn started(bench: &Bench, id: &str, parameters: &Parameters) -> Vec<f64> {
    match bench.outcome(id, parameters) {
        Some(Outcome::Measured(own)) => own.samples.iter().filter_map(|sample| sample.started).collect(),
        other => panic!("{id}: {other:?}"),
    }
}

#[test]
fn rows_that_differ_in_parameters_are_sampled_in_turn() {
    let mut group = Group::of("G", [("kind", "k".into())]);
    for count in [2_usize, 3] {
        group = group
            .with_parameters([("count", count.into())])
            .time_by(Clock::Host, "a.one", "One", move |_| Ok(move || Ok(count as f64)))
            .time_by(Clock::Host, "a.two", "Two", |_| Ok(|| Ok(1.0)))
            .difference("a.delta", "Difference", ["a.one", "a.two"]);
    }
    let bench = measured(group.build());
    let parameters =
        |count: usize| Parameters::from([("kind".to_owned(), "k".into()), ("count".to_owned(), count.into())]);
    assert_eq!(bench.samples("a.delta", &parameters(2)).as_deref(), Ok(&[1.0, 1.0][..]));
    assert_eq!(bench.samples("a.delta", &parameters(3)).as_deref(), Ok(&[2.0, 2.0][..]));
    let (one, other) = (started(&bench, "a.one", &parameters(2)), started(&bench, "a.one", &parameters(3)));
    assert!(one[0].max(other[0]) < one[1].min(other[1]), "{one:?} {other:?}");
}

#[test]
fn the_same_code_twice_is_two_rows_and_the_ratio_of_each_round() {
    let bench = measured(Group::of("G", []).twice(["a.same.a", "a.same.b", "a.same.ratio"], |_| Ok(())));
    let none = Parameters::new();
    let [a, b, ratio] = ["a.same.a", "a.same.b", "a.same.ratio"].map(|id| bench.samples(id, &none).unwrap().to_vec());
    assert_eq!(ratio, [b[0] / a[0], b[1] / a[1]]);
}

#[test]
fn a_row_of_another_system_is_declared_and_has_no_meaning_here() {
    let bench = measured(Group::of("G", []).foreign("a.theirs", "Theirs", Unit::Ratio, "it is theirs").build());
    let absent = Outcome::NotApplicable { reason: "it is theirs".to_owned() };
    assert_eq!(bench.samples("a.theirs", &Parameters::new()), Err(Box::new(absent)));
}

#[test]
fn recorded_rows_and_those_that_change_the_process_run_apart() {
    #[derive(Clone, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    struct Both {}
    impl Experiment for Both {
        const NAME: &'static str = "both";
        const SUMMARY: &'static str = "Rows of both parts";
        fn groups(&self, _: &str) -> Vec<Group> {
            let row =
                |group: GroupBuilder<Device>, id| group.observed(id, "Row", Unit::Number, |_| Ok(|| Ok(1.0))).build();
            vec![
                row(Group::of("G", []).measured_in(Part::Connected), "both.connected"),
                row(Group::of("G", []).measured_in(Part::Last), "both.last"),
                row(Group::of("G", []).measured_in(Part::Recorded), "both.span"),
                row(Group::of("G", []), "both.time"),
            ]
        }
    }
    let both: &dyn AnyExperiment = &Both {};
    let ids: Vec<String> = both.plan("cpu").into_iter().map(|spec| spec.id).collect();
    assert_eq!(ids, ["both.connected", "both.last", "both.span", "both.time"]);
    let registry = Registry::new().with::<Both>();
    let source = json!({ "title": "T", "sampling": { "samples": 2, "warmup": 0 }, "experiments": [{ "both": {} }] });
    let suite = Suite::of_results(&source, "test", &registry).unwrap();
    let device = Device::open("cpu:0").unwrap();
    let environment = Environment::now(&device, Vec::new());
    let (selection, plan) = (Selection::default(), Plan::default());
    let empty = empty_results(suite.source.clone(), selection, plan, environment.clone());
    let (suite, registry, device, observer) = (&suite, &registry, &device, Arc::new(Unobserved));
    let interrupt = Arc::default();
    let session = Session { suite, registry, device, observer, interrupt, has_timelines: true };
    let results = session.next(empty, environment);
    let begin = |id: &str| {
        let row = results.rows.iter().find(|row| row.spec.id == id).unwrap();
        match row.outcome(&results.run().id) {
            Some(Outcome::Measured(own)) => [0, 1].map(|place| own.samples[place].started.unwrap()),
            other => panic!("{id}: {other:?}"),
        }
    };
    let all = ["both.time", "both.connected", "both.span", "both.last"].map(begin);
    assert!(all.windows(2).all(|parts| parts[0][1] < parts[1][0]), "{all:?}");
}
