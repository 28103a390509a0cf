//! The program on a system that needs no GPU: the library's own calls on its CPU engine.

#![allow(clippy::unwrap_used)]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::thread::{sleep, spawn};
use std::time::Duration;

use syncscope::device::{Device, Stream};
use syncscope::measure::{Case, Clock, Protocol};
use syncscope::tensor::Tensor;
use syncscope::units::Unit;
use syncscope_results::{Catalog, MetricSpec, Outcome, Parameter, PeerPlan, Provenance, System as SystemFile};

use crate::arguments::Arguments;
use crate::run::{Ended, Run};
use crate::{Call, Calls, Result, Rows, System};

/// For how long a call holds its own stream.
const HELD: Duration = Duration::from_millis(2);

struct Standin(Device);

struct Fixture {
    stream: Stream,
    other: Stream,
    x: Tensor<f32>,
}

impl System for Standin {
    const NAME: &'static str = "stand-in";
    type Fixture = Fixture;
    const CALLS: &'static [Calls<Fixture>] = &[&[
        ("item", |f| on(f, |f| Ok(f.x.item()?))),
        ("sum", |f| on(f, |f| Ok(f.x.sum()?))),
        ("drop", |f| {
            let stream = f.stream.clone();
            let drops = |tensor: Tensor<f32>| {
                drop(tensor);
                Ok(())
            };
            Ok(Call::on(&f.stream, move || Ok(stream.ones::<f32>([4])?), drops))
        }),
        ("wait-other", |f| Ok(on(f, |f| Ok(f.other.synchronize()?))?.beside(&f.other))),
        ("event", |f| {
            let event = f.stream.device().event()?;
            let (recorded, own) = (event.clone(), Rc::clone(f));
            let call = on(f, move |_| Ok(event.synchronize()?))?;
            Ok(call.behind_work(move || Ok(own.stream.record(&recorded)?)))
        }),
        // Its stream is held until it has begun for as long; before other waits, what holds it is let go.
        ("held", |f| {
            let (own, of_gate) = (Rc::clone(f), Rc::clone(f));
            let begins = Rc::new(RefCell::new(None));
            let (begun, let_go) = (Rc::clone(&begins), Rc::clone(&begins));
            let call = on(f, move |_| {
                drop(begun.borrow_mut().take());
                Ok(own.x.item()?)
            })?;
            let call = call.behind_work(move || {
                let (gate, (began, begin)) = (of_gate.stream.device().gate()?, channel::<()>());
                of_gate.stream.wait_gate(&gate)?;
                spawn(move || {
                    let _ = begin.recv();
                    sleep(HELD);
                    gate.open();
                });
                *begins.borrow_mut() = Some(began);
                Ok(())
            });
            Ok(call.launched_by(move || {
                drop(let_go.borrow_mut().take());
                Ok(())
            }))
        }),
        ("long", |f| on(f, |f| Ok(f.stream.spin(Duration::from_millis(100))?))),
        ("fails", |f| on(f, |_| Err::<(), _>("no such\n thing".into()))),
        ("panics", |f| on(f, |_| if true { panic!("a defect") } else { Ok(()) })),
        ("absent", |_| Err(crate::not_applicable("there is no such library"))),
    ]];
    const ROWS: &'static [Rows<Self>] = &[&[("texts.count", |system, row| {
        let name = system.0.name().len() as f64;
        Ok(Case::observed(row.title(), move || name))
    })]];

    fn versions() -> Vec<(String, String)> {
        vec![("stand-in".to_owned(), "1.2".to_owned())]
    }

    fn open(device: &Device) -> Result<Self> {
        Ok(Self(device.clone()))
    }

    fn fixture(self: &Rc<Self>, _: &MetricSpec) -> Result<Fixture> {
        let (stream, other) = (self.0.stream()?, self.0.stream()?);
        Ok(Fixture { x: stream.ones([1])?, stream, other })
    }
}

fn on<R: 'static>(f: &Rc<Fixture>, call: impl Fn(&Fixture) -> Result<R> + 'static) -> Result<Call> {
    let own = Rc::clone(f);
    Ok(Call::new(&f.stream, move || call(&own)))
}

fn row(id: &str, parameters: &[(&str, &str)]) -> MetricSpec {
    let clock = if id.ends_with("ready") || id.ends_with("behind") { Clock::Host } else { Clock::Observed };
    MetricSpec {
        id: id.to_owned(),
        group: "Calls".to_owned(),
        label: id.to_owned(),
        unit: if clock == Clock::Host { Unit::Seconds } else { Unit::Ratio },
        parameters: parameters.iter().map(|(name, value)| ((*name).to_owned(), Parameter::from(*value))).collect(),
        provenance: Provenance::measured(clock),
        work: None,
        floor: None,
    }
}

/// What is measured of the calls of these names.
fn rows(calls: &[&str]) -> Vec<MetricSpec> {
    let parts = ["blocks", "blocks-other", "recorded", "pending", "ready", "behind"];
    let of = |call: &&str| parts.map(|part| row(&format!("crate-calls.stand-in.{part}"), &[("call", *call)]));
    calls.iter().flat_map(of).collect()
}

/// What came of each row, by its title, as a reader of the file has it.
fn measured(rows: Vec<MetricSpec>, protocol: Protocol, interrupted: bool) -> BTreeMap<String, Outcome> {
    let folder = tempfile::tempdir().unwrap();
    let (planned, out) = (folder.path().join("plan.json"), folder.path().join("measured.json"));
    let written = PeerPlan::new(protocol, "cpu:0", rows.clone());
    std::fs::write(&planned, serde_json::to_string(&written).unwrap()).unwrap();
    let (plan, device) = (PeerPlan::read(&planned).unwrap(), Device::open("cpu:0").unwrap());
    let interrupt = Arc::new(AtomicBool::new(interrupted));
    let run = Run::new(&plan, &device, Standin::open(&device).unwrap(), interrupt, &out);
    assert_eq!(run.measure().unwrap(), Ended::Well);
    let system = SystemFile::read(&out, &Catalog::new(rows)).unwrap();
    assert_eq!((system.name.as_str(), system.machine.model.is_empty()), ("stand-in", false));
    let title = |id: &str, call: Option<&Parameter>| {
        format!("{} {}", id.rsplit('.').next().unwrap(), call.map(Parameter::to_string).unwrap_or_default())
    };
    system.rows.into_iter().map(|row| (title(&row.id, row.parameters.get("call")), row.outcome)).collect()
}

fn yes(outcome: &Outcome) -> bool {
    let values = outcome.values().unwrap();
    assert!(values.iter().all(|value| *value == values[0]), "{values:?}");
    values[0] == 1.0
}

#[test]
fn a_gate_tells_calls_that_wait_from_those_that_do_not() {
    let calls = ["item", "sum", "drop", "wait-other", "event"];
    let found = measured(rows(&calls), Protocol::samples(2), false);
    let which =
        |part: &str| calls.into_iter().filter(|call| yes(&found[&format!("{part} {call}")])).collect::<Vec<_>>();
    assert_eq!(which("blocks"), ["item", "event"]);
    assert_eq!(which("blocks-other"), ["wait-other"]);
    // The work may be over before a busy machine comes to the call: a wait may be missing, and none may be there too many.
    assert!(which("recorded").iter().all(|call| ["item", "event"].contains(call)));
    assert_eq!(found.len(), 30);
}

#[test]
fn a_wait_for_work_on_its_stream_is_timed_and_recorded() {
    let asked = |call, part| rows(&[call]).into_iter().filter(move |row| row.id.ends_with(part));
    let asked = asked("held", "behind").chain(asked("held", "recorded")).chain(asked("sum", "recorded"));
    let found = measured(asked.collect(), Protocol::samples(2), false);
    assert!(found["behind held"].values().unwrap().iter().all(|seconds| *seconds >= HELD.as_secs_f64()));
    assert!(yes(&found["recorded held"]) && !yes(&found["recorded sum"]));
    assert_eq!(found.len(), 3);
}

#[test]
fn work_that_is_left_on_the_stream_is_pending() {
    let found = measured(rows(&["long", "item"]), Protocol::samples(2), false);
    assert!(yes(&found["pending long"]) && !yes(&found["pending item"]));
}

#[test]
fn a_call_that_fails_or_panics_says_so_and_the_others_are_measured() {
    let found = measured(rows(&["fails", "panics", "absent", "unknown", "sum"]), Protocol::samples(1), false);
    let failed = |reason: &str| Outcome::Failed { reason: reason.to_owned() };
    assert_eq!(found["ready fails"], failed("no such"));
    assert_eq!(found["blocks panics"], failed("a defect"));
    let absent = |reason: &str| Outcome::NotApplicable { reason: reason.to_owned() };
    assert_eq!(found["ready absent"], absent("there is no such library"));
    assert_eq!(found["blocks unknown"], absent("the program for stand-in has no call `unknown`"));
    assert!(found["ready sum"].values().is_some());
}

#[test]
fn rows_of_other_systems_and_computed_ones_are_left_out() {
    let other = row("crate-calls.another.blocks", &[("call", "sum")]);
    let found = measured([rows(&["sum"]), vec![other, row("texts.count", &[])]].concat(), Protocol::samples(1), false);
    assert_eq!(found.len(), 7);
    assert_eq!(found["count "].values().unwrap()[..], [5.0]);
}

#[test]
fn a_run_that_is_interrupted_says_which_rows_it_did_not_reach() {
    let found = measured(rows(&["sum"]), Protocol::samples(1), true);
    let skipped = |outcome: &Outcome| matches!(outcome, Outcome::Skipped { .. });
    assert!(found.len() == 6 && found.values().all(skipped), "{found:?}");
}

#[test]
fn each_pass_adds_its_share_of_the_samples() {
    let passes = NonZeroUsize::new(2).unwrap();
    let found = measured(rows(&["sum"]), Protocol { passes, ..Protocol::samples(5) }, false);
    let outcome = &found["ready sum"];
    assert_eq!((outcome.values().unwrap().len(), outcome.passes().len()), (5, 2));
}

#[test]
fn the_version_of_what_is_measured_is_the_one_in_the_manifest() {
    let manifest = include_str!("../../Cargo.toml");
    for dependency in ["cudarc", "candle-core", "burn"] {
        let version = crate::pinned(manifest, dependency);
        assert!(
            version.split('.').count() == 3 && version.split('.').all(|part| part.parse::<u32>().is_ok()),
            "{version}"
        );
    }
    assert_eq!(crate::pinned(manifest, "candle"), "unknown");
}

#[test]
fn the_arguments_are_those_of_the_script_for_pytorch() {
    let of = |line: &str| Arguments::of(line.split(' ').map(OsString::from));
    let wanted = Arguments { plan: PathBuf::from("p.json"), out: PathBuf::from("o.json"), attended: true };
    assert_eq!(of("--plan p.json --out o.json --attended"), Some(wanted));
    for wrong in ["--plan p.json", "--plan", "--plan p.json --out o.json --else"] {
        assert_eq!(of(wrong), None, "{wrong}");
    }
}
