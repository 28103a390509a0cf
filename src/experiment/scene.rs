//! Scenes: representative passes of an experiment, recorded as timelines.
//!
//! A scene runs once before it is recorded, so that nothing is loaded or searched for in it. Passes are timed without and
//! with a recording, in this order, so that its cost is known; it costs, and on
//! CUDA leaves CUPTI attached to the process: scenes are recorded after all rows have been timed, and no time is taken
//! from one.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::{Deserialize, Serialize};

use super::row::Parameters;
use super::{Experiment, Selection};
use crate::device::Device;
use crate::error::{DeviceError, panic_message};
use crate::measure::host_time;
use crate::timeline::Timeline;

/// A scene that was recorded, or why it was not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "report", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RecordedTimeline {
    /// The scene, by the row that times it: `overlap.finish.complete`.
    pub name: String,
    /// What it ran with.
    pub parameters: Parameters,
    /// What was recorded.
    pub recorded: Recorded,
    /// How long a pass held the host while nobody recorded, in seconds: taken before the recorded passes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unrecorded_s: Vec<f64>,
    /// How long a pass held the host while it was recorded, in seconds: what recording costs is seen in the difference.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recorded_s: Vec<f64>,
}

/// What became of a scene.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "report", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Recorded {
    /// It was recorded.
    Timeline(Timeline),
    /// It was not, for this reason.
    Failed(String),
}

/// Where an experiment plays its scenes.
pub struct Stage {
    device: Device,
    selection: Selection,
    recorded: Vec<RecordedTimeline>,
}

/// How many passes are timed of each kind, and from how many seconds on a pass is long enough for one to do.
const PASSES: usize = 9;
const LONG: f64 = 0.3;

/// A pass that can be played again.
pub(super) type Pass = Box<dyn FnMut() -> Result<(), DeviceError>>;

impl Stage {
    /// Plays the scene that `make` builds, once unrecorded and once recorded.
    pub(super) fn play(
        &mut self,
        name: &'static str,
        parameters: &Parameters,
        make: impl FnOnce(&Device) -> Result<Pass, DeviceError>,
    ) {
        if !self.selection.holds(name) {
            return;
        }
        let mut left = RecordedTimeline::failed(name, String::new());
        left.parameters = parameters.clone();
        left.recorded = match self.record(make, &mut left) {
            Ok(timeline) => Recorded::Timeline(timeline),
            Err(error) => Recorded::Failed(error.to_string()),
        };
        self.recorded.push(left);
    }

    /// The timeline of the last of a few recorded passes. One pass of each kind is not timed: it loads and searches.
    fn record(
        &self,
        make: impl FnOnce(&Device) -> Result<Pass, DeviceError>,
        left: &mut RecordedTimeline,
    ) -> Result<Timeline, DeviceError> {
        let mut pass = make(&self.device)?;
        let first = host_time(&mut pass)?.1;
        let passes = if first > LONG { 1 } else { PASSES };
        for _ in 0..passes {
            self.device.synchronize()?;
            left.unrecorded_s.push(host_time(&mut pass)?.1);
        }
        self.device.synchronize()?;
        if passes > 1 {
            self.device.record(&mut pass)?;
        }
        let mut timeline = None;
        for _ in 0..passes {
            let ((_, seconds), recorded) = self.device.record(|| host_time(&mut pass))?;
            left.recorded_s.push(seconds);
            timeline = Some(recorded);
        }
        timeline.ok_or(DeviceError::InvalidArgument { operation: "play", reason: "no pass was recorded".to_owned() })
    }
}

impl RecordedTimeline {
    fn failed(name: &str, reason: String) -> Self {
        let (recorded, parameters) = (Recorded::Failed(reason), Parameters::new());
        Self { name: name.to_owned(), parameters, recorded, unrecorded_s: Vec::new(), recorded_s: Vec::new() }
    }
}

/// Plays the scenes of an experiment that `selection` holds, on `device`. A panic ends them; those before it are kept.
pub fn scenes(experiment: &dyn Experiment, selection: &Selection, device: &Device) -> Vec<RecordedTimeline> {
    let mut stage = Stage { device: device.clone(), selection: selection.clone(), recorded: Vec::new() };
    let playing = AssertUnwindSafe(|| experiment.play(&mut stage));
    let panicked = catch_unwind(playing).err();
    let mut recorded = stage.recorded;
    if let Some(panic) = panicked {
        recorded.push(RecordedTimeline::failed("panic", panic_message(&*panic)));
    }
    recorded
}
