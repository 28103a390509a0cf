use std::sync::Arc;
use std::time::Instant;

use super::super::bench::RunObserver;
use super::*;
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
        .derived("a.double", "Double", Unit::Seconds, Formula::of("2 · loop", ["a.loop"], |[time]| 2.0 * time))
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
    assert_eq!(bench.samples("a.none", &parameters), Err(absent.clone()));
    assert_eq!(bench.samples("a.delta", &parameters), Err(absent));
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
        assert!(matches!(&outcome, Outcome::Failed { reason } if reason.contains("wrong")), "{outcome:?}");
    }
}
