use std::sync::Arc;
use std::time::Instant;

use super::super::bench::{RunObserver, Turn};
use super::*;
use crate::experiment::AnyExperiment;
use crate::measure::{Progress, Protocol, Sampler};

struct Unobserved;

impl RunObserver for Unobserved {
    fn experiment(&self, _: usize, _: usize, _: &str) {}
    fn group(&self, _: &[&str], _: &Parameters) {}
    fn progress(&self, _: Progress) {}
}

fn bench() -> Bench {
    let device = Device::open("cpu:0").unwrap();
    let sampler = Sampler::new(Protocol::samples(2).with_warmup(0));
    Bench::new(&device, sampler, Arc::new(Unobserved), "run", Instant::now())
}

#[test]
fn what_a_row_declares_of_its_clock_and_iterations_is_what_its_case_does() {
    let mut bench = bench();
    let group = bench
        .group("G", [])
        .setup(|device| device.stream())
        .host_time("a.host", "Host", |_| Ok(|| Ok(())))
        .host_time_within("a.within", "Within", |_| Ok(|watch: &mut Stopwatch| watch.time(|| Ok(()))))
        .per(3)
        .device_time("a.device", "Device", |stream| Ok((stream.clone(), || Ok(()))))
        .per(5)
        .time_by(Clock::DeviceEvents, "a.by", "By", |_| Ok(|| Ok(1.0)))
        .per(7)
        .observed("a.observed", "Observed", Unit::Number, |_| Ok(|| Ok(1.0)));
    let stream = Device::open("cpu:0").unwrap().stream().unwrap();
    let declared: Vec<_> = group.rows.into_iter().collect();
    assert_eq!(declared.len(), 5);
    for Declared { spec, kind } in declared {
        let Kind::Sampled(make) = kind else { panic!("{} is not sampled", spec.id) };
        let case = make(&stream, spec.id.clone()).unwrap();
        let iterations = case.iterations() as u64;
        assert_eq!(spec.provenance, Provenance::Measured { clock: case.clock(), iterations }, "{}", spec.id);
        assert_eq!(case.name(), spec.id);
    }
}

#[test]
fn a_sample_is_divided_by_the_iterations_and_a_derived_row_is_not() {
    let mut bench = bench();
    bench
        .group("G", [])
        .time_by(Clock::Host, "a.loop", "Loop", |_| Ok(|| Ok(12.0)))
        .per(4)
        .derived("a.double", "Double", Unit::Seconds, Formula::of("2 · loop", [("loop", "a.loop")]))
        .per(4)
        .run();
    let parameters = Parameters::new();
    assert_eq!(bench.samples("a.loop", &parameters), Ok(&[3.0, 3.0][..]));
    assert_eq!(bench.samples("a.double", &parameters), Ok(&[6.0, 6.0][..]));
}

#[test]
fn a_case_that_cannot_be_made_takes_no_other_row_of_its_group_with_it() {
    let mut bench = bench();
    let (what, device, reason) = ("a call".to_owned(), "cpu:0".to_owned(), "no such call".to_owned());
    let none = DeviceError::NotApplicable { what, device, reason };
    bench
        .group("G", [])
        .host_time("a.good", "Good", |_| Ok(|| Ok(())))
        .host_time("a.none", "None", move |_| if true { Err(none) } else { Ok(|| Ok(())) })
        .difference("a.delta", "Difference", ["a.good", "a.none"])
        .run();
    let parameters = Parameters::new();
    assert!(bench.samples("a.good", &parameters).is_ok());
    let absent = Outcome::NotApplicable { reason: "no such call".to_owned() };
    assert_eq!(bench.samples("a.none", &parameters), Err(Box::new(absent.clone())));
    assert_eq!(bench.samples("a.delta", &parameters), Err(Box::new(absent)));
}

#[test]
fn a_setup_that_fails_fails_every_row_of_the_group() {
    let mut bench = bench();
    let error = DeviceError::InvalidArgument { operation: "setup", reason: "wrong".to_owned() };
    bench
        .group("G", [])
        .setup(move |_| if true { Err(error) } else { Ok(()) })
        .host_time("a.one", "One", |()| Ok(|| Ok(())))
        .observed("a.two", "Two", Unit::Number, |()| Ok(|| Ok(1.0)))
        .run();
    for id in ["a.one", "a.two"] {
        let outcome = bench.samples(id, &Parameters::new()).unwrap_err();
        assert!(matches!(&*outcome, Outcome::Failed { reason } if reason.contains("wrong")), "{outcome:?}");
    }
}

/// When each sample of a row began.
fn started(bench: &Bench, id: &str, parameters: &Parameters) -> Vec<f64> {
    match bench.outcome(id, parameters) {
        Some(Outcome::Measured { started, .. }) => started.clone(),
        other => panic!("{id}: {other:?}"),
    }
}

#[test]
fn rows_that_differ_in_parameters_alone_are_sampled_in_turn_and_computed_from_their_own_operands() {
    let mut bench = bench();
    let mut group = bench.group("G", [("kind", "k".into())]);
    for count in [2_usize, 3] {
        group = group
            .having([("count", count.into())])
            .time_by(Clock::Host, "a.one", "One", move |_| Ok(move || Ok(count as f64)))
            .time_by(Clock::Host, "a.two", "Two", |_| Ok(|| Ok(1.0)))
            .difference("a.delta", "Difference", ["a.one", "a.two"]);
    }
    group.run();
    let parameters =
        |count: usize| Parameters::from([("kind".to_owned(), "k".into()), ("count".to_owned(), count.into())]);
    assert_eq!(bench.samples("a.delta", &parameters(2)), Ok(&[1.0, 1.0][..]));
    assert_eq!(bench.samples("a.delta", &parameters(3)), Ok(&[2.0, 2.0][..]));
    let (one, other) = (started(&bench, "a.one", &parameters(2)), started(&bench, "a.one", &parameters(3)));
    assert!(one[0].max(other[0]) < one[1].min(other[1]), "{one:?} {other:?}");
}

#[test]
fn the_same_code_twice_is_two_rows_and_the_ratio_of_each_round() {
    let mut bench = bench();
    bench.group("G", []).twice(["a.same.a", "a.same.b", "a.same.ratio"], |_| Ok(|| Ok(()))).run();
    let none = Parameters::new();
    let [a, b, ratio] = ["a.same.a", "a.same.b", "a.same.ratio"].map(|id| bench.samples(id, &none).unwrap().to_vec());
    assert_eq!(ratio, [b[0] / a[0], b[1] / a[1]]);
}

#[test]
fn a_row_of_another_system_is_declared_and_has_no_meaning_here() {
    let mut bench = bench();
    bench.group("G", []).foreign("a.theirs", "Theirs", Unit::Ratio, "it is theirs").run();
    let absent = Outcome::NotApplicable { reason: "it is theirs".to_owned() };
    assert_eq!(bench.samples("a.theirs", &Parameters::new()), Err(Box::new(absent)));
}

#[test]
fn recorded_rows_and_those_that_change_the_process_belong_to_their_own_parts_of_a_run_and_a_plan_holds_all() {
    #[derive(Clone, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    struct Both;
    impl crate::experiment::Experiment for Both {
        const NAME: &'static str = "both";
        const SUMMARY: &'static str = "Rows of both parts";
        fn run(&self, bench: &mut Bench) {
            let connected = bench.group("G", []).connected();
            connected.observed("both.connected", "Connected", Unit::Number, |_| Ok(|| Ok(4.0))).run();
            bench.group("G", []).last().observed("both.last", "Last", Unit::Number, |_| Ok(|| Ok(3.0))).run();
            bench.group("G", []).recorded().observed("both.span", "Span", Unit::Number, |_| Ok(|| Ok(1.0))).run();
            bench.group("G", []).observed("both.time", "Time", Unit::Number, |_| Ok(|| Ok(2.0))).run();
        }
    }
    let ids = |specs: Vec<MetricSpec>| specs.into_iter().map(|spec| spec.id).collect::<Vec<_>>();
    assert_eq!(ids(Bench::plan(&Both, "cpu")), ["both.connected", "both.last", "both.span", "both.time"]);
    assert_eq!(ids(Bench::plan_of(&Both, "cpu", Part::Timed)), ["both.time"]);
    let mut bench = bench();
    bench.begin(Part::Timed, Turn::All);
    AnyExperiment::run(&Both, &mut bench);
    let none = Parameters::new();
    assert_eq!(bench.outcome("both.connected", &none), None);
    bench.begin(Part::Connected, Turn::All);
    AnyExperiment::run(&Both, &mut bench);
    assert_eq!(bench.outcome("both.span", &none), None);
    bench.begin(Part::Recorded, Turn::All);
    AnyExperiment::run(&Both, &mut bench);
    assert_eq!(bench.outcome("both.last", &none), None);
    bench.begin(Part::Last, Turn::All);
    AnyExperiment::run(&Both, &mut bench);
    let all = ["both.time", "both.connected", "both.span", "both.last"].map(|id| started(&bench, id, &none));
    assert!(all.windows(2).all(|parts| parts[0][1] < parts[1][0]), "{all:?}");
}
