//! `driver-calls`: which calls of the driver come back while work is pending, on which stream, and what they cost.
//!
//! - *blocks*: the call is made while a closed gate holds a stream. A watchdog opens the gate when the patience is over (and
//!   four times the time that the call takes by itself). A call that comes back only then has waited: 1, else 0. The
//!   parameter `held` says what the gate holds: `same`, the stream that the call is given; `other`, another stream created
//!   with the default flags; `non-blocking`, another stream that is ordered against no other; `legacy`, the legacy default
//!   stream; `thread`, a non-blocking stream of another thread, which waits for it meanwhile; `device`, a stream of another
//!   device.
//! - *ready*: the host's time in the call with nothing pending: what stands before it, such as the record of an event, is over.
//! - *behind*: the host's time in the call behind work of a known length, on the stream that it is given or, where it is given
//!   none, on another stream with the default flags. A gate holds the work until the call begins.
//!
//! The parameter `wait` says how the thread waits in the driver. A call that waits for the work, as trials behind the gate show,
//! is timed behind it in each way; for another one the way makes no difference.
//!
//! The first trial of each state, and the first time behind work, are taken when their row is made ready, so that a state that is
//! not here is told of at once; they count as those of the first round.
//!
//! A call that makes or ends a context takes most of a second each time: one trial of each process decides, two times are
//! taken, in one way to wait, and the work lasts longer. A gate is opened after twice the time that such a call takes by itself.
//!
//! A call that leaves its trace in the process is measured after those that it would change: NCCL's behind all others but
//! `cuStreamAttachMemAsync`, which slows all later calls.
//!
//! Each call is a group by itself: one that fails leaves the others as they are. The CPU engine has a catalogue of its own
//! interface, which declares what each call waits for: there the method itself is tested.
//!
//! What it does not cover: a call can wait for reasons that no gate shows, such as a lock that another thread's call holds for a
//! short time. A call that does not wait in a trial may do so on another driver, with other memory or other sizes.
//! `cuStreamCreate` and `cuGraphInstantiate` come back here, but wait for all work of the device each time the driver needs more
//! memory for its own objects, which was for some forty of them on an H200: what trials made and ended leaves room for the next.

mod library;

use crate::calls::catalogue::{Call, calls};
use crate::calls::{CallUnderTest, Family, StreamRole, WaitMode};
use crate::experiment::prelude::*;

/// How often a call that makes a context is timed.
const FEW: Count = count(2);

parameters! {
    /// Which calls of the driver wait, and for what.
    pub struct DriverCalls {
        /// How many trials decide whether a call waits.
        trials: Count = count(3),
        /// After how long a call that has not come back counts as one that waits.
        patience: Seconds = Seconds::milliseconds(4),
        /// The length of the work before a timed call.
        busy: Seconds = Seconds::milliseconds(1),
        /// The same before one that makes or ends a context: longer than the call.
        busy_for_contexts: Seconds = Seconds::of(1.0),
        /// Bytes of what is copied, filled and allocated.
        sizes: Vec<Size> = [4, 1 << 16, (1 << 16) + 1, 1 << 20, 40_000_000].map(count).to_vec(),
    }
}

impl Experiment for DriverCalls {
    const NAME: &'static str = "driver-calls";
    const SUMMARY: &'static str = "Which calls of the driver wait while work is pending, for what, and what they cost";

    fn groups(&self, engine: &str) -> Vec<Group> {
        let sizes: Vec<usize> = self.sizes.iter().map(|size| size.get()).collect();
        let mut groups = Vec::new();
        for (family, [blocks, ready, behind]) in FAMILIES {
            let heading = heading(family);
            // One group of trials and one of times for each call.
            for call in calls(engine, family, &sizes) {
                groups
                    .extend([self.trials(&call, heading, blocks), self.times(engine, &call, heading, [ready, behind])]);
            }
        }
        groups.extend((engine == "cuda").then(library::group));
        groups.extend(same(engine));
        groups
    }
}

/// The first call of the catalogue with all that stands around it, twice.
fn same(engine: &str) -> Option<Group> {
    let call = calls(engine, Family::Wait, &[]).into_iter().next()?;
    let mode = WaitMode::of(engine)[0];
    let stated = parameters(&call).into_iter().chain([waits_by(mode)]);
    let twice = Group::of("The same code twice", stated)
        .setup(move |device| rehearsed(device, &call))
        .twice(["driver-calls.same.a", "driver-calls.same.b", "driver-calls.same.ratio"], move |(call, _)| {
            call.borrow_mut().time(None, mode)
        });
    Some(twice)
}

/// The families with their rows: whether a call waits, its time with nothing pending, and behind work.
const FAMILIES: [(Family, [&str; 3]); 9] = [
    (Family::Wait, ["driver-calls.wait.blocks", "driver-calls.wait.ready", "driver-calls.wait.behind"]),
    (Family::Copy, ["driver-calls.copy.blocks", "driver-calls.copy.ready", "driver-calls.copy.behind"]),
    (Family::Fill, ["driver-calls.fill.blocks", "driver-calls.fill.ready", "driver-calls.fill.behind"]),
    (Family::Memory, ["driver-calls.memory.blocks", "driver-calls.memory.ready", "driver-calls.memory.behind"]),
    (Family::Code, ["driver-calls.code.blocks", "driver-calls.code.ready", "driver-calls.code.behind"]),
    (Family::Object, ["driver-calls.object.blocks", "driver-calls.object.ready", "driver-calls.object.behind"]),
    (Family::Graph, ["driver-calls.graph.blocks", "driver-calls.graph.ready", "driver-calls.graph.behind"]),
    (Family::Launch, ["driver-calls.launch.blocks", "driver-calls.launch.ready", "driver-calls.launch.behind"]),
    (Family::Device, ["driver-calls.device.blocks", "driver-calls.device.ready", "driver-calls.device.behind"]),
];

fn heading(family: Family) -> &'static str {
    match family {
        Family::Wait => "Waiting and ordering",
        Family::Copy => "Copies",
        Family::Fill => "Filling memory",
        Family::Memory => "Allocating and freeing",
        Family::Code => "Loading code",
        Family::Object => "Streams and events",
        Family::Graph => "Graphs",
        Family::Launch => "Launches and limits",
        Family::Device => "Contexts and devices",
    }
}

impl DriverCalls {
    fn trials(&self, call: &Call, heading: &str, blocks: &'static str) -> Group {
        let (patience, tried) = (self.patience.duration(), call.clone());
        let trials = if call.takes_long() { count(1) } else { self.trials };
        let mut group = group(heading, call).trials(*trials).setup(move |device| rehearsed(device, &tried));
        for held in StreamRole::ALL {
            group = group.with_parameters([("held", held.name().into())]).observed(
                blocks,
                "Waited for the gate",
                Unit::Ratio,
                move |(call, alone)| {
                    let (call, alone) = (Rc::clone(call), *alone);
                    first_kept(move || {
                        let tried = call.borrow_mut().trial(held, patience, alone)?;
                        Ok(f64::from(tried.waited))
                    })
                },
            );
        }
        group.build()
    }

    fn times(&self, engine: &str, call: &Call, heading: &str, [ready, behind]: [&'static str; 2]) -> Group {
        let (timed, trials, patience) = (call.clone(), self.trials.get(), self.patience.duration());
        let (mut modes, mut busy) = (WaitMode::of(engine), self.busy.duration());
        let (first, mut group) = (modes[0], group(heading, call));
        if call.takes_long() {
            (modes, busy) = (&modes[..1], self.busy_for_contexts.duration());
            group = group.trials(*FEW);
        }
        let has_choice = modes.len() > 1;
        let setup = move |device: &Device| {
            let (call, alone) = rehearsed(device, &timed)?;
            let waits = if has_choice { call.borrow_mut().waits(trials, patience, alone) } else { Ok(false) };
            Ok((call, waits))
        };
        let mut group = group.setup(setup).with_parameters([waits_by(first)]).seconds_of(
            Clock::Host,
            ready,
            "Time of the call, nothing pending",
            move |(call, _)| call.borrow_mut().time(None, first),
        );
        for &mode in modes {
            group = group.with_parameters([("busy_seconds", busy.as_secs_f64().into()), waits_by(mode)]).time_by(
                Clock::Host,
                behind,
                "Time of the call behind work",
                move |(call, waits)| {
                    if mode != first && !waits.clone()? {
                        let reason = "the call does not wait for the work, in whichever way";
                        return Err(DeviceError::not_applicable("another way to wait", "", reason));
                    }
                    let call = Rc::clone(call);
                    first_kept(move || call.borrow_mut().time(Some(busy), mode))
                },
            );
        }
        group.build()
    }
}

/// Makes a first trial, so that a state that is not here, or in which the call fails, is a row by itself, and counts it: it is
/// that of the first round, or of the warm-up. Trials of a context take seconds, and one more than are asked for says nothing new.
fn first_kept(mut trial: impl FnMut() -> Result<f64> + 'static) -> Result<impl FnMut() -> Result<f64> + 'static> {
    let mut first = Some(trial()?);
    Ok(move || first.take().map_or_else(&mut trial, Ok))
}

/// A group of rows of one call.
fn group(heading: &str, call: &Call) -> GroupBuilder<Device> {
    let group = Group::of(heading, parameters(call));
    if call.slows_the_process() {
        group.measured_in(Part::Last)
    } else if call.connects() {
        group.measured_in(Part::Connected)
    } else {
        group
    }
}

/// How a thread waits in the driver, as a parameter.
fn waits_by(mode: Option<WaitMode>) -> (&'static str, Parameter) {
    ("wait", mode.map_or("condition variable", WaitMode::name).into())
}

/// A call, and how long it takes by itself.
type Rehearsed = (Rc<RefCell<CallUnderTest>>, Duration);

fn rehearsed(device: &Device, call: &Call) -> Result<Rehearsed> {
    let mut call = CallUnderTest::new(device, call)?;
    let alone = call.rehearse()?;
    Ok((Rc::new(RefCell::new(call)), alone))
}

/// What says which call a row is about.
fn parameters(call: &Call) -> Vec<(&'static str, Parameter)> {
    let mut parameters = vec![("call", call.name.into())];
    parameters.extend(call.way.map(|way| ("way", way.into())));
    parameters.extend(call.memories().map(|memories| ("memory", memories.as_str().into())));
    parameters.extend(call.bytes.map(|bytes| ("bytes", bytes.into())));
    parameters
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_state_is_tried_as_often_as_asked_and_fails_before_the_rounds() {
        let made = Rc::new(Cell::new(0));
        let counted = Rc::clone(&made);
        let mut trial = first_kept(move || Ok(f64::from(counted.replace(counted.get() + 1)))).unwrap();
        assert_eq!([(); 3].map(|()| trial().unwrap()), [0.0, 1.0, 2.0]);
        assert_eq!(made.get(), 3);
        let fails = || DeviceError::InvalidArgument { operation: "trial", reason: String::new() };
        assert!(first_kept(move || Err(fails())).is_err());
    }
}
