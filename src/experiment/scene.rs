//! Scenes: representative passes of an experiment, recorded as timelines.
//!
//! A scene runs once before it is recorded, so that nothing is loaded or searched for in it. Recording costs, and on
//! CUDA leaves CUPTI attached to the process: scenes are recorded after all rows have been timed, and no time is taken
//! from one.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::{Deserialize, Serialize};

use super::row::Parameters;
use super::{Experiment, Selection};
use crate::device::Device;
use crate::error::{DeviceError, panic_message};
use crate::timeline::Timeline;

/// A scene that was recorded, or why it was not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "report", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RecordedTimeline {
    /// The scene: `overlap.finish`.
    pub name: String,
    /// What it ran with.
    pub parameters: Parameters,
    /// What was recorded.
    pub recorded: Recorded,
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
        let recorded = match self.record(make) {
            Ok(timeline) => Recorded::Timeline(timeline),
            Err(error) => Recorded::Failed(error.to_string()),
        };
        self.recorded.push(RecordedTimeline { name: name.to_owned(), parameters: parameters.clone(), recorded });
    }

    fn record(&self, make: impl FnOnce(&Device) -> Result<Pass, DeviceError>) -> Result<Timeline, DeviceError> {
        let mut pass = make(&self.device)?;
        pass()?;
        self.device.synchronize()?;
        // What starting a recording does must not be waited for within it.
        self.device.record(|| Ok(()))?;
        Ok(self.device.record(&mut pass)?.1)
    }
}

/// Plays the scenes of an experiment that `selection` holds, on `device`. A panic ends them; those before it are kept.
pub fn scenes(experiment: &dyn Experiment, selection: &Selection, device: &Device) -> Vec<RecordedTimeline> {
    let mut stage = Stage { device: device.clone(), selection: selection.clone(), recorded: Vec::new() };
    let playing = AssertUnwindSafe(|| experiment.play(&mut stage));
    let panicked = catch_unwind(playing).err();
    let mut recorded = stage.recorded;
    if let Some(panic) = panicked {
        recorded.push(RecordedTimeline {
            name: "panic".to_owned(),
            parameters: Parameters::new(),
            recorded: Recorded::Failed(panic_message(&*panic)),
        });
    }
    recorded
}
