//! `wait-parts`: what a wait consists of: enqueueing, what is left of the work, and the call itself.
//!
//! A thread enqueues work of a known length, and then makes a call that waits for it: one that synchronizes (*synchronize*), or
//! a copy of a few bytes (*item*) or of many (*array*). The parameter `wait` says what is waited by in the words of all engines,
//! `call` the engine's own call, `memory` the kind of memory on the host; `work_seconds` is the length of the work.
//!
//! - *enqueue*: from before the work is enqueued until the call begins;
//! - *residual*: from there to the end of the work, as the device's clock says ([`parts`](crate::device::calls::parts));
//! - *call*: the same call with nothing pending;
//! - *total*: from before the work is enqueued until the call has returned;
//! - *error*: the total less the three parts: what the call takes longer behind work than with nothing pending, or, below 0,
//!   what it does while it waits.
//!
//! The first two and the total are of the same wait. The thread waits by spinning, where there is a choice.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::each_round::EachRound;
use super::{Bench, Experiment, Formula};
use crate::device::Device;
use crate::device::calls::catalogue::{Action, Allocate, Call, Copy, CopyDirection, Memory, Wait, calls};
use crate::device::calls::parts::{CallInParts, Parts};
use crate::device::calls::{Family, OwnCall, WaitMode};
use crate::error::DeviceError;
use crate::measure::Clock;
use crate::results::Parameter;
use crate::units::{Seconds, Unit};

/// The bytes of the copies, and of what is freed.
const SIZES: [usize; 2] = [4, 40_000_000];

/// What a wait consists of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WaitParts {
    /// The length of the work.
    pub length: Seconds,
}

impl Default for WaitParts {
    fn default() -> Self {
        Self { length: Seconds::of(5e-5) }
    }
}

impl Experiment for WaitParts {
    const NAME: &'static str = "wait-parts";
    const SUMMARY: &'static str = "What a wait consists of: enqueueing, what is left of the work, and the call itself";

    fn run(&self, bench: &mut Bench) {
        let length = self.length.duration();
        let families = [Family::Wait, Family::Copy, Family::Memory];
        let engine = bench.engine().to_owned();
        let all = families.into_iter().flat_map(|family| calls(&engine, family, &SIZES));
        for call in all {
            if let Some((kind, waits_by)) = kind(&call) {
                parts(bench, kind, waits_by, &call, length);
            }
        }
        same(bench);
    }
}

/// The rows of calls of one kind.
struct Kind {
    heading: &'static str,
    /// The parts of the wait, the whole, and what it exceeds the sum of the parts by.
    enqueue: &'static str,
    residual: &'static str,
    call: &'static str,
    total: &'static str,
    error: &'static str,
}

const SYNCHRONIZE: Kind = Kind {
    heading: "Synchronizing",
    enqueue: "wait-parts.synchronize.enqueue",
    residual: "wait-parts.synchronize.residual",
    call: "wait-parts.synchronize.call",
    total: "wait-parts.synchronize.total",
    error: "wait-parts.synchronize.error",
};

const ITEM: Kind = Kind {
    heading: "One item",
    enqueue: "wait-parts.item.enqueue",
    residual: "wait-parts.item.residual",
    call: "wait-parts.item.call",
    total: "wait-parts.item.total",
    error: "wait-parts.item.error",
};

const ARRAY: Kind = Kind {
    heading: "An array",
    enqueue: "wait-parts.array.enqueue",
    residual: "wait-parts.array.residual",
    call: "wait-parts.array.call",
    total: "wait-parts.array.total",
    error: "wait-parts.array.error",
};

/// The kind of a call that waits for its stream, and what is waited by, in the words of all engines; none of a call that is not
/// taken apart.
fn kind(call: &Call) -> Option<(&'static Kind, &'static str)> {
    let waits_by = match call.action {
        Action::Wait(Wait::Context) | Action::Own(OwnCall::SynchronizeDevice) => "device",
        Action::Wait(Wait::Stream) | Action::Own(OwnCall::SynchronizeStream) => "stream",
        Action::Wait(Wait::Legacy) => "legacy stream",
        Action::Wait(Wait::Event) | Action::Own(OwnCall::SynchronizeEvent) => "event",
        Action::Wait(Wait::BlockingEvent) => "blocking event",
        Action::Memory(Allocate::Free(bytes)) if bytes == SIZES[0] => "free",
        Action::Own(OwnCall::Download) => return Some((&ITEM, "read")),
        Action::Copy(Copy { direction, memory: Memory::Pageable | Memory::Pinned, bytes, asynchronous: false }) => {
            let kind = if bytes == SIZES[0] { &ITEM } else { &ARRAY };
            return match direction {
                CopyDirection::ToHost => Some((kind, "read")),
                CopyDirection::ToDevice => Some((kind, "write")),
                _ => None,
            };
        }
        _ => return None,
    };
    Some((&SYNCHRONIZE, waits_by))
}

/// What says which wait a row is about.
fn parameters(call: &Call, waits_by: &str, length: Duration) -> Vec<(&'static str, Parameter)> {
    let mut parameters = vec![("wait", waits_by.into()), ("call", call.name.into())];
    // The CPU engine has no other memory.
    let copies = matches!(waits_by, "read" | "write");
    parameters.extend(copies.then(|| ("memory", call.memory.unwrap_or(Memory::Pageable).name().into())));
    parameters.push(("work_seconds", length.as_secs_f64().into()));
    parameters
}

/// A call, and how a thread waits in it.
#[derive(Clone)]
struct Called {
    call: Rc<RefCell<CallInParts>>,
    mode: Option<WaitMode>,
}

impl Called {
    fn new(device: &Device, call: &Call) -> Result<Self, DeviceError> {
        let mode = WaitMode::of(device.properties().engine)[0];
        Ok(Self { call: Rc::new(RefCell::new(device.call_in_parts(call)?)), mode })
    }

    fn behind(&self, length: Duration) -> Result<Parts, DeviceError> {
        self.call.borrow_mut().behind(length, self.mode)
    }

    fn alone(&self) -> Result<f64, DeviceError> {
        self.call.borrow_mut().alone(self.mode)
    }
}

/// One call: one group. The rows but that of the call alone are of the same wait.
fn parts(bench: &mut Bench, kind: &'static Kind, waits_by: &str, call: &Call, length: Duration) {
    let (parameters, call) = (parameters(call, waits_by, length), call.clone());
    let setup = move |device: &Device| {
        let called = Called::new(device, &call)?;
        called.behind(length)?;
        let waiting = called.clone();
        Ok((called, EachRound::new(move || waiting.behind(length))))
    };
    let part = |row: usize, part: fn(&Parts) -> f64| {
        move |(_, waits): &(Called, Rc<EachRound<Parts>>)| {
            let waits = Rc::clone(waits);
            Ok(move || waits.part(row, part))
        }
    };
    let error = Formula::of(
        "total − enqueue − residual − call",
        [("total", kind.total), ("enqueue", kind.enqueue), ("residual", kind.residual), ("call", kind.call)],
    );
    bench
        .group(kind.heading, parameters)
        .setup(setup)
        .time_by(Clock::Host, kind.enqueue, "Enqueue the work", part(0, |parts| parts.enqueue))
        .time_by(Clock::Host, kind.residual, "The rest of the work", part(1, |parts| parts.residual))
        .time_by(Clock::Host, kind.call, "The call, with nothing pending", |(called, _)| {
            let called = called.clone();
            Ok(move || called.alone())
        })
        .time_by(Clock::Host, kind.total, "The whole wait", part(2, |parts| parts.total))
        .derived(kind.error, "Closing error", Unit::Seconds, error)
        .run();
}

/// The first call with its work, twice.
fn same(bench: &mut Bench) {
    const LENGTH: Duration = Duration::from_millis(1);
    let Some(call) = calls(bench.engine(), Family::Wait, &[]).into_iter().next() else { return };
    bench
        .group("The same code twice", [("call", call.name.into()), ("work_seconds", LENGTH.as_secs_f64().into())])
        .setup(move |device| Called::new(device, &call))
        .twice(["wait-parts.same.a", "wait-parts.same.b", "wait-parts.same.ratio"], |called| {
            let called = called.clone();
            Ok(move || called.behind(LENGTH))
        })
        .run();
}
