//! `wait-modes`: in which ways a host thread can wait for a device, and what each of them costs.
//!
//! The parameter `wait` says how the thread waits: in the driver, which spins, yields or blocks; by asking again and again,
//! for the stream (*query*) or for a word of host memory that the work writes (*flag*); in the driver for another stream that
//! waits for the word (*wait-value*); by a condition variable that a function behind the work notifies (*host-function*).
//! The parameter `work_seconds` is the length of the work.
//!
//! - *latency*: from the end of the work to the waiting thread's next instruction. The device's clock says when the work ended,
//!   and that is told on the host's clock ([`waiting`](crate::calls::waiting));
//! - *bound*: by how much the latency may be off, in either direction, because two clocks were compared;
//! - *processor*: in which share of the wait the waiting thread computes;
//! - *neighbour*: the host's time of a launch by another thread meanwhile; beside it, while nobody waits (*alone*).
//!
//! Spinning, yielding and blocking are a flag of the driver's context, which is set for each wait, read back, and set back at the
//! end. A wait in a way that is not in force afterwards is an error.
//!
//! Waits of a millisecond and longer are as many as stated, whatever time the run's protocol gives a group.
//! What a wait does to the power and the clocks of the processor is not measured.

use crate::calls::waiting::{Manner, Waited, Waits};
use crate::experiment::prelude::*;

parameters! {
    /// How a host thread can wait, and what that costs.
    pub struct WaitModes {
        /// The lengths of the work that is waited for.
        lengths: Vec<Seconds> = [5e-6, 1e-4, 1e-3, 1e-2, 1e-1].map(Seconds::of).to_vec(),
        /// How many waits of a millisecond and longer there are in each way. Of longer ones as many as a second holds, at least ten.
        waits: Count = count(20),
        /// The length of the work while a neighbour launches.
        busy: Seconds = Seconds::milliseconds(2),
        /// How many launches of the neighbour are timed together.
        launches: Count = count(64),
    }
}

impl Experiment for WaitModes {
    const NAME: &'static str = "wait-modes";
    const SUMMARY: &'static str = "How a host thread can wait for a device, how late it wakes, and what that costs";

    fn groups(&self, _engine: &str) -> Vec<Group> {
        let waits = |length: &Seconds| waits(length.duration(), self.waits_of(length.duration()));
        self.lengths.iter().map(waits).chain([self.neighbours(), same()]).collect()
    }
}

/// Waits in one way, tried once; why there are none.
type Tried = Result<Rc<EachRound<Waited>>>;

fn tried(waits: &Rc<Waits>, manner: Manner, length: Duration) -> Tried {
    let waits = Rc::clone(waits);
    waits.wait(manner, length)?;
    Ok(EachRound::new(move || waits.wait(manner, length)))
}

/// From which length on there are as many waits as are stated.
const LONG: Duration = Duration::from_millis(1);

/// All ways for one length: one group. The rows of a way are of the same wait.
fn waits(length: Duration, count: Option<Count>) -> Group {
    let setup = move |device: &Device| {
        let waits = Rc::new(Waits::new(device)?);
        Ok(Manner::ALL.map(|manner| tried(&waits, manner, length)))
    };
    let mut group = Group::of("Waits", [("work_seconds", length.as_secs_f64().into())]);
    if let Some(count) = count {
        group = group.trials(*count);
    }
    let mut group = group.setup(setup);
    for (place, manner) in Manner::ALL.into_iter().enumerate() {
        let waits = move |tried: &[Tried; Manner::ALL.len()]| tried[place].clone();
        let (late, error) = ("From the end of the work to the host", "Largest error of the latency");
        let computed = "Processor time as a share of the wait";
        group = group.with_parameters([("wait", manner.name().into())]).parts(
            place,
            waits,
            [
                ("wait-modes.latency", late, Unit::Seconds, Clock::Host, |waited| waited.latency),
                ("wait-modes.bound", error, Unit::Seconds, Clock::Observed, |waited| waited.within),
                ("wait-modes.processor", computed, Unit::Ratio, Clock::Observed, |waited| waited.computed),
            ],
        );
    }
    group.build()
}

impl WaitModes {
    /// How many waits of a length there are, where it is not the run's protocol that says so.
    fn waits_of(&self, length: Duration) -> Option<Count> {
        let in_a_second = (1.0 / length.as_secs_f64()) as usize;
        (length >= LONG).then(|| self.waits.min(count(in_a_second.max(10))))
    }

    /// What the ways cost a thread that launches meanwhile: one group.
    fn neighbours(&self) -> Group {
        let (busy, launches) = (self.busy.duration(), self.launches.get());
        let all = [("busy_seconds", busy.as_secs_f64().into()), ("launches", launches.into())];
        let group = Group::of("A neighbour's launches", all).setup(|device| Waits::new(device).map(Rc::new));
        let shared = group.parameters();
        let launch = move |manner: Option<Manner>| {
            move |waits: &Rc<Waits>| {
                let waits = Rc::clone(waits);
                let launch = move || waits.neighbour(manner, busy, launches);
                launch().map(|_: f64| launch)
            }
        };
        let mut group =
            group.time_by(Clock::Host, "wait-modes.neighbour.alone", "One launch, while no thread waits", launch(None));
        for manner in Manner::ALL {
            let both = [("launch", "wait-modes.neighbour.launch"), ("alone", "wait-modes.neighbour.alone")];
            let ratio = Formula::of("launch / alone", both).from_row("alone", &shared);
            group = group
                .with_parameters([("wait", manner.name().into())])
                .time_by(
                    Clock::Host,
                    "wait-modes.neighbour.launch",
                    "One launch, while another thread waits",
                    launch(Some(manner)),
                )
                .derived(
                    "wait-modes.neighbour.ratio",
                    "One launch, during a wait / while no thread waits",
                    Unit::Ratio,
                    ratio,
                );
        }
        group.build()
    }
}

/// A wait by asking for the stream, twice.
fn same() -> Group {
    const LENGTH: Duration = Duration::from_millis(1);
    let manner = Manner::Query;
    Group::of("The same code twice", [("work_seconds", LENGTH.as_secs_f64().into()), ("wait", manner.name().into())])
        .setup(|device| Waits::new(device).map(Rc::new))
        .twice(["wait-modes.same.a", "wait-modes.same.b", "wait-modes.same.ratio"], move |waits| {
            let waits = Rc::clone(waits);
            let wait = move || waits.wait(manner, LENGTH);
            wait().map(|_| wait)
        })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn long_waits_are_as_many_as_stated_and_short_ones_as_the_protocol_says() {
        let modes = WaitModes { waits: count(7), ..WaitModes::default() };
        let of =
            |milliseconds: f64| modes.waits_of(Duration::from_secs_f64(milliseconds * 1e-3)).map(|count| count.get());
        assert_eq!([0.005, 0.1, 1.0, 10.0, 100.0].map(of), [None, None, Some(7), Some(7), Some(7)]);
    }
}
