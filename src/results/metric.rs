//! A row that has samples, and what they come to.

use std::borrow::Cow;
use std::sync::Arc;

use super::missing::{Lacking, MissingReason};
use super::row::{Derivation, MetricSpec, Provenance};
use crate::measure::{Clock, Diagnosis, Estimate, Samples, diagnose, median};
use crate::statistics::{LEVEL, estimate_of_runs};
use crate::units::Unit;

/// A row that has samples.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Metric<'a> {
    /// What it is.
    pub spec: &'a MetricSpec,
    /// The samples of each run that has some, in the row's unit and in the order of the rounds: at least one run. Without those of
    /// a slowed host, where a run has others.
    pub runs: Vec<Cow<'a, [f64]>>,
    /// How many samples these runs have besides, all of a slowed host.
    pub left_out: usize,
    /// How many of these runs have samples of a slowed host alone.
    pub slowed_runs: usize,
    /// Which runs these are: the place of each among those of its system, in their order.
    pub(super) places: Vec<usize>,
    /// The runs that have none, and why.
    pub lacking: Vec<Lacking<'a>>,
    /// Whether its samples are observations and no times, or were computed from observations alone.
    pub(super) observed: bool,
    /// Why a measured row with more samples that it comes of has no interval, where one has none.
    pub(super) of_longer: Option<Arc<str>>,
}

impl<'a> Metric<'a> {
    /// What it has in the runs that another row has samples of, too. Runs of two systems are a pair where they have the same
    /// place among those of their system: those were neighbours.
    #[must_use]
    pub fn paired(&self, other: &Metric<'_>) -> Self {
        let both = self.places.iter().zip(&self.runs).filter(|(place, _)| other.places.binary_search(place).is_ok());
        let (places, runs) = both.map(|(place, run)| (*place, run.clone())).unzip();
        Self { runs, places, ..self.clone() }
    }

    /// How many runs the system made, whether they left samples or not.
    pub fn planned(&self) -> usize {
        self.runs.len() + self.lacking.len()
    }

    /// All samples, run by run.
    pub fn samples(&self) -> Vec<f64> {
        self.runs.concat()
    }

    /// The samples of each run.
    pub(super) fn slices(&self) -> Vec<&[f64]> {
        self.runs.iter().map(|samples| &**samples).collect()
    }

    /// The number of samples.
    pub fn count(&self) -> usize {
        self.runs.iter().map(|samples| samples.len()).sum()
    }

    /// The expected median of a run with the interval that holds between runs; of one run, its median with the interval
    /// that its samples give. For observations of yes and no (a ratio whose samples are all 0 or 1) the share of yes, since
    /// their median would say nothing.
    ///
    /// The share's interval is that of `share_interval` over the trials of all runs.
    ///
    /// # Errors
    /// There is no sample, or one that is no finite number.
    pub fn estimate(&self) -> Result<Estimate, MissingReason> {
        let samples = Samples::new(&*self.spec.id, self.samples());
        let samples = samples.map_err(|error| MissingReason::Inconsistent(error.to_string()))?;
        if self.is_share() {
            return Ok(Estimate { runs: self.runs.len(), ..share(samples.values(), samples.estimate()) });
        }
        let found = estimate_of_runs(&self.slices()).unwrap_or_else(|| samples.estimate());
        // A count may be the same in all runs: there is no clock whose step hides a scatter.
        let is_certain = self.is_counted() && found.runs > 1;
        let found = Estimate { coverage: if is_certain { LEVEL } else { found.coverage }, ..found };
        // What is never below 0 has no interval that is.
        let is_amount = !self.is_difference() && samples.values().iter().all(|sample| *sample >= 0.0);
        Ok(Estimate { low: if is_amount { found.low.max(0.0) } else { found.low }, ..found })
    }

    /// Whether it is the share of yes among observations of yes and no.
    pub fn is_share(&self) -> bool {
        self.runs.iter().all(|run| are_yes_or_no(run)) && self.is_observed() && self.spec.unit == Unit::Ratio
    }

    /// Whether its samples are observations and no times, or were computed from observations alone.
    pub fn is_observed(&self) -> bool {
        self.observed
    }

    /// Whether it was observed and is neither a time nor a share of one, which scatter as what a clock took does.
    pub(super) fn is_counted(&self) -> bool {
        self.is_observed() && (self.is_share() || !matches!(self.spec.unit, Unit::Seconds | Unit::Ratio))
    }

    /// What each run came to: its median.
    pub fn run_medians(&self) -> Vec<f64> {
        self.runs.iter().map(|samples| median(samples.to_vec())).collect()
    }

    /// The clock that took it, where it is a measured time.
    pub fn clock(&self) -> Option<Clock> {
        match self.spec.provenance {
            Provenance::Measured { clock: clock @ (Clock::Host | Clock::DeviceEvents), .. }
                if self.spec.unit == Unit::Seconds =>
            {
                Some(clock)
            }
            _ => None,
        }
    }

    /// The diagnoses of its samples, where it is a measured time. Nothing of what it is near to: that takes the other
    /// rows of its run.
    pub fn diagnose(&self) -> Vec<Diagnosis> {
        if self.clock().is_some() { diagnose(&self.slices()) } else { Vec::new() }
    }

    /// Whether it is a difference, which may be indistinguishable from 0.
    pub fn is_difference(&self) -> bool {
        matches!(self.spec.provenance, Provenance::Derived { derivation: Derivation::Difference, .. })
    }

    /// Whether it is a difference that nothing shows to be other than 0.
    pub fn may_be_zero(&self) -> bool {
        self.is_difference() && !self.estimate().is_ok_and(|estimate| estimate.excludes_zero())
    }
}

fn share(samples: &[f64], estimate: Estimate) -> Estimate {
    let (yes, n) = (samples.iter().sum::<f64>(), samples.len() as f64);
    let (low, high) = share_interval(yes, n);
    Estimate { median: yes / n, low, high, coverage: LEVEL, ..estimate }
}

/// The 95 % interval of the share of yes where `yes` of `n` are yes: Wilson's score interval (E. B. Wilson, *Probable inference,
/// the law of succession, and statistical inference*, J. Am. Stat. Assoc. 22, 1927).
pub fn share_interval(yes: f64, n: f64) -> (f64, f64) {
    /// The two-sided 97.5 % point of the normal distribution.
    const Z: f64 = 1.959_964;
    let share = yes / n;
    let denominator = 1.0 + Z * Z / n;
    let centre = (share + Z * Z / (2.0 * n)) / denominator;
    let half_width = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt() / denominator;
    ((centre - half_width).max(0.0), (centre + half_width).min(1.0))
}

pub(super) fn are_yes_or_no(samples: &[f64]) -> bool {
    samples.iter().all(|sample| *sample == 0.0 || *sample == 1.0)
}
