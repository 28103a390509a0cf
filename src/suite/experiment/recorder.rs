//! Scenarios: representative passes of an experiment, recorded as timelines.
//!
//! A scenario runs once before it is recorded, so that nothing is loaded or searched for in it. Passes are timed without
//! and with tracing, in this order, so that its overhead is known; on CUDA tracing leaves CUPTI attached to the process:
//! scenarios are recorded after all rows have been measured, and no time is taken from one.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Result;
use super::registry::AnyExperiment;
use crate::device::Device;
use crate::error::panic_message;
use crate::measure::host_time;
use crate::results::{Parameter, Parameters, Recorded, RecordedTimeline, Selection};
use crate::timeline::Timeline;

/// Where an experiment records its scenarios.
pub struct TraceRecorder {
    device: Device,
    run: String,
    selection: Selection,
    /// Whether scenarios are only named.
    names: bool,
    recorded: Vec<RecordedTimeline>,
}

/// How many passes are timed of each kind, and from how many seconds on a pass is long enough for one to do.
const PASSES: usize = 9;
const LONG: f64 = 0.3;

/// A pass that can be run again.
pub type Pass = Box<dyn FnMut() -> Result<()>>;

impl TraceRecorder {
    /// Records the scenario that `make` builds, named by the row that times it.
    pub fn record<const N: usize>(
        &mut self,
        name: &'static str,
        parameters: [(&str, Parameter); N],
        make: impl FnOnce(&Device) -> Result<Pass>,
    ) {
        if !self.selection.holds(name) {
            return;
        }
        let mut entry = self.entry(name, String::new());
        entry.parameters = parameters.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        if !self.names {
            entry.recorded = match self.passes(make, &mut entry) {
                Ok(timeline) => Recorded::Timeline(timeline),
                Err(error) => Recorded::Failed(error.to_string()),
            };
        }
        self.recorded.push(entry);
    }

    /// The timeline of the last of a few traced passes. One pass of each kind is not timed: it loads and searches.
    fn passes(&self, make: impl FnOnce(&Device) -> Result<Pass>, entry: &mut RecordedTimeline) -> Result<Timeline> {
        let mut pass = make(&self.device)?;
        let first = host_time(&mut pass)?.1;
        let passes = if first > LONG { 1 } else { PASSES };
        for _ in 0..passes {
            self.device.synchronize()?;
            entry.untraced_s.push(host_time(&mut pass)?.1);
        }
        self.device.synchronize()?;
        if passes > 1 {
            self.device.record(&mut pass)?;
        }
        loop {
            let ((_, seconds), timeline) = self.device.record(|| host_time(&mut pass))?;
            entry.traced_s.push(seconds);
            if entry.traced_s.len() == passes {
                return Ok(timeline);
            }
        }
    }

    fn entry(&self, name: &str, reason: String) -> RecordedTimeline {
        let (run, name, parameters) = (self.run.clone(), name.to_owned(), Parameters::new());
        let (untraced_s, traced_s) = (Vec::new(), Vec::new());
        RecordedTimeline { run, name, parameters, recorded: Recorded::Failed(reason), untraced_s, traced_s }
    }
}

/// Records the scenarios of an experiment that `selection` holds, on `device`, for the run with this identifier. A panic
/// ends them; those before it are kept.
pub fn record_scenarios(
    experiment: &dyn AnyExperiment,
    selection: &Selection,
    device: &Device,
    run: &str,
) -> Vec<RecordedTimeline> {
    recorded(experiment, selection, device, run, false)
}

/// Whether an experiment has scenarios; nothing is run.
pub fn has_scenarios(experiment: &dyn AnyExperiment, device: &Device) -> bool {
    !recorded(experiment, &Selection::default(), device, "", true).is_empty()
}

fn recorded(
    experiment: &dyn AnyExperiment,
    selection: &Selection,
    device: &Device,
    run: &str,
    names: bool,
) -> Vec<RecordedTimeline> {
    let (device, run, selection) = (device.clone(), run.to_owned(), selection.clone());
    let mut recorder = TraceRecorder { device, run, selection, names, recorded: Vec::new() };
    let recording = AssertUnwindSafe(|| experiment.record(&mut recorder));
    if let Some(panic) = catch_unwind(recording).err() {
        let entry = recorder.entry("panic", panic_message(&*panic));
        recorder.recorded.push(entry);
    }
    recorder.recorded
}
