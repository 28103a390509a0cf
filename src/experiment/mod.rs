//! Experiments: what runs, and what it leaves behind.
//!
//! An experiment is one file here and one line in the registry below. It is a struct of its parameters, which a suite
//! names, and a list of the rows that it leaves. It knows devices and measuring, and nothing of suites, files or books.

mod async_frontend;
mod bench;
mod ceilings;
mod find;
mod idle_device;
mod launch_path;
mod overlap;
mod row;
mod scene;
mod select;
mod self_audit;
mod sync_points;
mod synchronize;
mod work;

use std::num::NonZeroUsize;

use serde::{Deserialize, Serialize};

pub use async_frontend::AsyncFrontend;
pub use bench::{Bench, Watcher};
pub use ceilings::Ceilings;
pub use find::{Lookup, Metric, MissingReason, Provenance};
pub use idle_device::IdleDevice;
pub use launch_path::LaunchPath;
pub use overlap::Overlap;
pub use row::{Derivation, Outcome, Parameter, Parameters, Row, in_words, titled};
pub use scene::{Recorded, RecordedTimeline, Stage, scenes};
pub use select::Selection;
pub use self_audit::SelfAudit;
pub use sync_points::SyncPoints;
pub use synchronize::Synchronize;
pub use work::{Ceiling, CeilingShare, WORK, Work, share_of_ceiling};

use crate::device::FloatType;
use crate::measure::Clock;
use crate::units::Unit;

/// A row that an experiment leaves.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct RowPlan {
    /// The identifier.
    pub id: &'static str,
    /// What runs, in a few words: the row's label on a console.
    pub what: &'static str,
    /// The unit of its values.
    pub unit: Unit,
    /// What takes its samples.
    pub instrument: Clock,
    /// Whether a sample is the time of a loop divided by its turns, so that the instrument's own cost is spread.
    pub per_turn: bool,
}

impl RowPlan {
    const fn host_time(id: &'static str, what: &'static str) -> Self {
        Self { id, what, unit: Unit::Seconds, instrument: Clock::Host, per_turn: false }
    }

    const fn device_time(id: &'static str, what: &'static str) -> Self {
        Self { id, what, unit: Unit::Seconds, instrument: Clock::DeviceEvents, per_turn: false }
    }

    /// The row, said to be the mean over the turns of a loop.
    const fn per_turn(self) -> Self {
        Self { per_turn: true, ..self }
    }

    const fn observed(id: &'static str, what: &'static str, unit: Unit) -> Self {
        Self { id, what, unit, instrument: Clock::Observed, per_turn: false }
    }
}

/// A count that is known not to be 0.
const fn count(value: usize) -> NonZeroUsize {
    match NonZeroUsize::new(value) {
        Some(value) => value,
        None => NonZeroUsize::MIN,
    }
}

/// A part of an experiment's console summary.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Section {
    /// The heading.
    pub title: &'static str,
    /// The rows in it: each identifier that equals one of these or begins with it and a dot.
    pub rows: &'static [&'static str],
}

impl Section {
    /// Whether the row `id` stands in it.
    pub fn holds(&self, id: &str) -> bool {
        self.rows.iter().any(|name| select::begins(id, name))
    }
}

/// An experiment with its parameters.
pub trait Experiment {
    /// The rows that it leaves, in the order in which they are shown.
    fn rows(&self) -> Vec<RowPlan>;

    /// The parts of its summary, in the order of the document that it mirrors.
    fn sections(&self) -> &'static [Section];

    /// The turns of its timed loop, which a command line may set.
    fn turns(&mut self) -> &mut NonZeroUsize;

    /// The element types that it is run with, where there is a choice.
    fn element_types(&mut self) -> Option<&mut Vec<FloatType>> {
        None
    }

    /// Runs it: every planned row ends in `bench`, measured or with the reason why not.
    fn run(&self, bench: &mut Bench);

    /// Plays its scenes, which are recorded as timelines; none where it has none.
    fn play(&self, _stage: &mut Stage) {}

    /// What follows from the values just measured, in sentences; nothing where nothing was measured.
    fn takeaways(&self, _findings: &Lookup<'_>) -> Vec<String> {
        Vec::new()
    }
}

macro_rules! registry {
    ($($name:literal, $type:ident: $summary:literal;)+) => {
        /// An experiment with its parameters, by its name.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(feature = "report", derive(schemars::JsonSchema))]
        pub enum Entry {
            $(
                #[doc = $summary]
                #[serde(rename = $name)]
                $type($type),
            )+
        }

        impl Entry {
            /// The names of all experiments, in the order of the documents.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// The experiment `name` with the parameters that suit an engine; `None` for an unknown name.
            pub fn default_for(name: &str, engine: &str) -> Option<Self> {
                match name {
                    $($name => Some(Entry::$type($type::default_for(engine))),)+
                    _ => None,
                }
            }

            /// All experiments, in the order of the documents, with the parameters that suit an engine.
            pub fn all(engine: &str) -> Vec<Self> {
                Self::NAMES.iter().filter_map(|name| Self::default_for(name, engine)).collect()
            }

            /// The experiment's name.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Entry::$type(_) => $name,)+
                }
            }

            /// What the experiment asks.
            pub fn summary(&self) -> &'static str {
                match self {
                    $(Entry::$type(_) => $summary,)+
                }
            }

            /// With the element type and the turns of a loop that a command line names.
            ///
            /// # Errors
            /// The experiment has no such parameter.
            pub fn with(mut self, dtype: Option<FloatType>, iters: Option<NonZeroUsize>) -> Result<Self, String> {
                let name = self.name();
                let experiment: &mut dyn Experiment = match &mut self {
                    $(Entry::$type(experiment) => experiment,)+
                };
                if let Some(iters) = iters {
                    *experiment.turns() = iters;
                }
                if let Some(dtype) = dtype {
                    let types = experiment.element_types();
                    *types.ok_or_else(|| format!("{name} has no element type to choose"))? = vec![dtype];
                }
                Ok(self)
            }

            /// The experiment.
            pub fn experiment(&self) -> &dyn Experiment {
                match self {
                    $(Entry::$type(experiment) => experiment,)+
                }
            }
        }
    };
}

registry! {
    "self-audit", SelfAudit: "What the instruments resolve and cost, and what the library adds to a bare launch";
    "idle-device", IdleDevice: "Whether waiting for a busy device each step costs more than waiting for an idle one";
    "async-frontend", AsyncFrontend: "How far the host runs ahead of the device, and what makes it wait";
    "synchronize", Synchronize: "What each kind of synchronize waits for, and what it costs in a loop";
    "overlap", Overlap: "Which calls wait for the device, what transfers cost, and how far they overlap with work";
    "sync-points", SyncPoints: "What explicit and implicit synchronization costs, for large and small kernels";
    "launch-path", LaunchPath: "What launching the same work one by one, batched and as a graph costs";
    "ceilings", Ceilings: "The most that the device was seen to do: copies, products, the link";
}
