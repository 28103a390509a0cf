//! The diagnoses of the measured times of a results file.
//!
//! To what [`diagnose`](crate::measure::diagnose) says of a row by itself comes what the run says of its clocks: a time
//! within ten times of what its clock shows of nothing is near the floor. Rows that measure a clock's floor say so; of
//! several the greatest counts. Rows that are the mean over the iterations of a loop read their clock once a loop, and
//! are not held against its floor.

use crate::measure::{Clock, Diagnosis, near_floor};

use super::lookup::Lookup;
use super::metric::Metric;
use super::row::{MetricSpec, Provenance};
use super::run::Results;

/// A row with what is odd about its samples.
pub type Diagnosed<'a> = (&'a MetricSpec, Diagnosis);

impl Results {
    /// The diagnoses of the measured times of the system that the file is about, in the order of the rows.
    pub fn diagnoses(&self) -> Vec<Diagnosed<'_>> {
        self.diagnoses_of(&self.run().system)
    }

    /// Those of one system.
    pub fn diagnoses_of(&self, system: &str) -> Vec<Diagnosed<'_>> {
        let lookup = self.lookup_of(system);
        let of_row = |row| lookup.diagnoses(row).iter().map(move |diagnosis| (&row.spec, *diagnosis));
        lookup.rows().flat_map(of_row).collect()
    }
}

impl<'a> Lookup<'a> {
    /// The diagnoses of the samples of each row, by its place.
    pub(super) fn diagnosed(&self) -> Vec<Vec<Diagnosis>> {
        let near = near(self);
        let of_row = |row| {
            let Ok(metric) = self.metric(row) else { return Vec::new() };
            let coarse = |diagnosis: &Diagnosis| matches!(diagnosis, Diagnosis::FewValues { .. });
            let by_itself = metric.diagnose().into_iter().filter(|found| !(row.spec.floor.is_some() && coarse(found)));
            by_itself.chain(near(&metric)).collect()
        };
        let mut all = vec![Vec::new(); self.rows.len()];
        self.rows().for_each(|row| all[self.rows.place(row)] = of_row(row));
        all
    }

    /// The rows that are near the floor of their clock.
    pub(super) fn near_floor(&self) -> Vec<&'a MetricSpec> {
        let near = near(self);
        let metrics = self.metrics().filter_map(|(_, metric)| metric.ok());
        metrics.filter(|metric| near(metric).is_some()).map(|metric| metric.spec).collect()
    }
}

/// Whether a row of a system is near the floor of its clock: what that shows of nothing, where the system measured it.
fn near(lookup: &Lookup<'_>) -> impl Fn(&Metric<'_>) -> Option<Diagnosis> + use<> {
    let floors = [Clock::Host, Clock::DeviceEvents].map(|clock| (clock, floor(lookup, clock)));
    move |metric| {
        let looped = matches!(metric.spec.provenance, Provenance::Measured { iterations, .. } if iterations > 1);
        let clock = metric.clock().filter(|_| !looped && metric.spec.floor.is_none())?;
        let (_, floor) = floors.iter().find(|(own, _)| *own == clock)?;
        near_floor(clock, metric.estimate().ok()?.median, (*floor)?)
    }
}

/// The least that a clock shows, in seconds, where the run measured it.
fn floor(lookup: &Lookup<'_>, clock: Clock) -> Option<f64> {
    let floors = lookup.measured_of(|spec| spec.floor == Some(clock));
    let medians = floors.filter_map(|metric| metric.estimate().ok());
    medians.map(|estimate| estimate.median).reduce(f64::max)
}
