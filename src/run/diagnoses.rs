//! What is odd about the measured times of a run.
//!
//! To what [`diagnose`](crate::measure::diagnose) says of a row by itself comes what the run's self-audit says of the
//! instruments: a time within ten times of what its instrument shows of nothing is near its floor. The floor of the
//! host's clock is its step or the cost of a reading, whichever is greater; that of device events, the time between two
//! with nothing in between. Rows that are the mean over the turns of a loop have their instrument read once a loop, and
//! are not held against its floor; neither are the self-audit's own, which are the floors.

use crate::experiment::{Entry, Lookup, Metric, Parameters};
use crate::measure::{Clock, Diagnosis, near_floor};

use super::results::Run;

/// A row of a run with what is odd about it.
pub type Diagnosed = (String, Parameters, Diagnosis);

const AUDIT: &str = "self-audit.";

impl Run {
    /// What is odd about its measured times: the row's identifier, its parameters and what it is, in the order of rows.
    pub fn diagnoses(&self) -> Vec<Diagnosed> {
        let floors = Floors::of(&self.lookup());
        let per_turn = per_turn();
        let mut all = Vec::new();
        for metric in self.rows().filter_map(|row| row.metric().ok()) {
            let id = &metric.row.id;
            let audit = id.starts_with(AUDIT);
            let coarse = |diagnosis: &Diagnosis| matches!(diagnosis, Diagnosis::FewValues { .. });
            let by_itself = metric.diagnose().into_iter().filter(|diagnosis| !(audit && coarse(diagnosis)));
            let spread = audit || per_turn.contains(&id.as_str());
            let near = if spread { None } else { floors.near(&metric) };
            let odd = by_itself.chain(near);
            all.extend(odd.map(|diagnosis| (id.clone(), metric.row.parameters.clone(), diagnosis)));
        }
        all
    }
}

/// The rows that are the mean over the turns of a loop.
fn per_turn() -> Vec<&'static str> {
    let entries = Entry::all("cuda");
    let plans = entries.iter().flat_map(|entry| entry.experiment().rows());
    plans.filter(|plan| plan.per_turn).map(|plan| plan.id).collect()
}

/// The least that each instrument shows, in seconds, where the self-audit measured it.
struct Floors {
    host: Option<f64>,
    device: Option<f64>,
}

impl Floors {
    fn of(lookup: &Lookup<'_>) -> Self {
        let median = |id: &str| lookup.estimate(id, &Parameters::new()).ok().map(|estimate| estimate.median);
        let clock = [median("self-audit.timer.resolution"), median("self-audit.timer.cost")];
        Self { host: clock.into_iter().flatten().reduce(f64::max), device: median("self-audit.event.gap") }
    }

    fn near(&self, metric: &Metric<'_>) -> Option<Diagnosis> {
        let clock = metric.clock()?;
        let floor = if clock == Clock::DeviceEvents { self.device? } else { self.host? };
        near_floor(clock, metric.estimate().ok()?.median, floor)
    }
}
