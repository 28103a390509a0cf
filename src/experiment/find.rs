//! Metric a row among those that were left, and what its samples come to.
//!
//! A row is asked for by its identifier and by those of its parameters that matter to the asker; rows may have more.
//! What has no samples says why.

use std::fmt;

use super::row::{Derivation, Outcome, Parameters, Row};
use crate::measure::{Clock, Diagnosis, Estimate, Samples, diagnose, median};
use crate::units::Unit;

/// Rows to find things in.
#[derive(Clone, Debug)]
pub struct Lookup<'a> {
    rows: Vec<&'a Row>,
}

/// A row that has samples.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Metric<'a> {
    /// The row.
    pub row: &'a Row,
    /// Its samples, in the row's unit, in the order of the rounds.
    pub samples: &'a [f64],
    /// How they were taken.
    pub origin: Provenance<'a>,
}

/// How samples came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provenance<'a> {
    /// An instrument took them.
    Measured(Clock),
    /// They were computed from rows that an instrument took, by this formula.
    Derived(Derivation, &'a str),
}

impl Metric<'_> {
    /// The median with its interval; for observations of yes and no (a ratio whose samples are all 0 or 1) the share
    /// of yes, since their median would say nothing.
    ///
    /// The share's interval is Wilson's score interval (E. B. Wilson, *Probable inference, the law of succession, and
    /// statistical inference*, J. Am. Stat. Assoc. 22, 1927).
    ///
    /// # Errors
    /// There is no sample, or one that is no finite number.
    pub fn estimate(&self) -> Result<Estimate, MissingReason> {
        let samples = Samples::new(&*self.row.id, self.samples.to_vec());
        let estimate = samples.map_err(|error| MissingReason::Inconsistent(error.to_string()))?.estimate();
        Ok(if self.is_share() { share(self.samples, estimate) } else { estimate })
    }

    /// Whether it is the share of yes among observations of yes and no.
    pub fn is_share(&self) -> bool {
        let yes_or_no = self.samples.iter().all(|sample| *sample == 0.0 || *sample == 1.0);
        yes_or_no && self.origin == Provenance::Measured(Clock::Observed) && self.row.unit == Unit::Ratio
    }

    /// What `samples` of this row come to: their median, or the share of yes.
    pub fn middle_of(&self, samples: &[f64]) -> f64 {
        if self.is_share() {
            return samples.iter().sum::<f64>() / samples.len() as f64;
        }
        median(samples.to_vec())
    }

    /// The clock that took it, where it is a measured time.
    pub fn clock(&self) -> Option<Clock> {
        match self.origin {
            Provenance::Measured(clock @ (Clock::Host | Clock::DeviceEvents)) if self.row.unit == Unit::Seconds => {
                Some(clock)
            }
            _ => None,
        }
    }

    /// What is odd about its samples, where it is a measured time. Nothing of what it is near to: that takes the other
    /// rows of its run.
    pub fn diagnose(&self) -> Vec<Diagnosis> {
        if self.clock().is_some() { diagnose(self.samples) } else { Vec::new() }
    }

    /// Whether it is a difference, which may be indistinguishable from 0.
    pub fn is_difference(&self) -> bool {
        matches!(self.origin, Provenance::Derived(Derivation::Difference, _))
    }
}

fn share(samples: &[f64], estimate: Estimate) -> Estimate {
    /// The two-sided 97.5 % point of the normal distribution.
    const Z: f64 = 1.959_964;
    let n = samples.len() as f64;
    let share = samples.iter().sum::<f64>() / n;
    let denominator = 1.0 + Z * Z / n;
    let centre = (share + Z * Z / (2.0 * n)) / denominator;
    let half_width = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt() / denominator;
    let (low, high) = ((centre - half_width).max(0.0), (centre + half_width).min(1.0));
    Estimate { median: share, low, high, ..estimate }
}

/// Why a row has no samples.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MissingReason {
    /// No such row was left.
    NotInRun,
    /// It has no meaning on the engine.
    NotApplicable(String),
    /// The run was interrupted before it was reached.
    Interrupted,
    /// It could have been measured and was not.
    Skipped(String),
    /// It was tried and failed.
    Failed(String),
    /// The rows contradict themselves.
    Inconsistent(String),
}

impl MissingReason {
    /// The state in a word or two.
    pub fn state(&self) -> &'static str {
        match self {
            MissingReason::NotInRun => "not in this run",
            MissingReason::Interrupted => "not reached: the run was interrupted",
            MissingReason::NotApplicable(_) => "not applicable",
            MissingReason::Skipped(_) => "skipped",
            MissingReason::Failed(_) => "failed",
            MissingReason::Inconsistent(_) => "inconsistent",
        }
    }

    /// The reason, where one is known.
    pub fn reason(&self) -> Option<&str> {
        match self {
            MissingReason::NotInRun | MissingReason::Interrupted => None,
            MissingReason::NotApplicable(reason)
            | MissingReason::Skipped(reason)
            | MissingReason::Failed(reason)
            | MissingReason::Inconsistent(reason) => Some(reason),
        }
    }
}

impl fmt::Display for MissingReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason() {
            Some(reason) => write!(f, "{}: {reason}", self.state()),
            None => f.write_str(self.state()),
        }
    }
}

impl<'a> Lookup<'a> {
    /// Lookup among `rows`, in the order in which they were left.
    pub fn new(rows: impl IntoIterator<Item = &'a Row>) -> Self {
        Self { rows: rows.into_iter().collect() }
    }

    /// The rows with this identifier whose parameters hold all of `select`.
    pub fn rows_of<'b>(&'b self, id: &'b str, select: &'b Parameters) -> impl Iterator<Item = &'a Row> + 'b {
        self.rows.iter().copied().filter(move |row| row.id == id && holds(&row.parameters, select))
    }

    /// The row with this identifier and these parameters. Of several, one that also holds all of `prefer` wins, else
    /// the first.
    ///
    /// # Errors
    /// Says why there are no samples.
    pub fn find(&self, id: &str, select: &Parameters, prefer: &Parameters) -> Result<Metric<'a>, MissingReason> {
        let row = self.rows_of(id, select).find(|row| holds(&row.parameters, prefer));
        row.or_else(|| self.rows_of(id, select).next()).ok_or(MissingReason::NotInRun)?.metric()
    }

    /// The estimate of the row with this identifier and these parameters.
    ///
    /// # Errors
    /// Says why there is none.
    pub fn estimate(&self, id: &str, select: &Parameters) -> Result<Estimate, MissingReason> {
        self.find(id, select, &Parameters::new())?.estimate()
    }
}

impl Row {
    /// The row's samples and where they came from.
    ///
    /// # Errors
    /// Says why there are none.
    pub fn metric(&self) -> Result<Metric<'_>, MissingReason> {
        let (samples, origin) = match &self.outcome {
            Outcome::Measured { instrument, samples, .. } => (samples, Provenance::Measured(*instrument)),
            Outcome::Derived { derivation, formula, samples } => (samples, Provenance::Derived(*derivation, formula)),
            Outcome::NotApplicable { reason } => return Err(MissingReason::NotApplicable(reason.clone())),
            Outcome::Interrupted => return Err(MissingReason::Interrupted),
            Outcome::Skipped { reason } => return Err(MissingReason::Skipped(reason.clone())),
            Outcome::Failed { reason } => return Err(MissingReason::Failed(reason.clone())),
        };
        if samples.is_empty() {
            return Err(MissingReason::Inconsistent(format!(
                "`{}` is marked as measured and holds no samples",
                self.id
            )));
        }
        Ok(Metric { row: self, samples, origin })
    }
}

fn holds(parameters: &Parameters, select: &Parameters) -> bool {
    select.iter().all(|(name, value)| parameters.get(name) == Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Parameter;
    use crate::measure::StoppedBy;

    fn text(name: &str, value: &str) -> Parameters {
        Parameters::from([(name.to_owned(), Parameter::Text(value.to_owned()))])
    }

    fn row(id: &str, dtype: &str, unit: Unit, outcome: Outcome) -> Row {
        Row { id: id.to_owned(), parameters: text("dtype", dtype), unit, outcome }
    }

    fn measured(instrument: Clock, samples: &[f64]) -> Outcome {
        Outcome::Measured { instrument, samples: samples.to_vec(), stopped_by: StoppedBy::Samples }
    }

    #[test]
    fn of_several_rows_the_preferred_parameters_win() {
        let events = Clock::DeviceEvents;
        let rows = [
            row("a", "fp16", Unit::Seconds, measured(events, &[1.0])),
            row("a", "fp32", Unit::Seconds, measured(events, &[7.0])),
        ];
        let lookup = Lookup::new(&rows);
        let found = lookup.find("a", &Parameters::new(), &text("dtype", "fp32")).unwrap();
        assert_eq!(found.samples, [7.0]);
        assert_eq!(lookup.estimate("a", &text("dtype", "none")), Err(MissingReason::NotInRun));
    }

    #[test]
    fn a_row_without_samples_says_why() {
        let skipped = row("a", "fp16", Unit::Seconds, Outcome::Skipped { reason: "no room".to_owned() });
        assert_eq!(skipped.metric(), Err(MissingReason::Skipped("no room".to_owned())));
        let hollow = row("a", "fp16", Unit::Seconds, measured(Clock::Host, &[]));
        assert!(matches!(hollow.metric(), Err(MissingReason::Inconsistent(_))));
    }

    #[test]
    fn a_sample_that_is_no_number_is_no_estimate() {
        let (derivation, formula) = (Derivation::Computation, "a / b".to_owned());
        let outcome = Outcome::Derived { derivation, formula, samples: vec![1.0, f64::INFINITY] };
        let absent = row("a", "fp16", Unit::Ratio, outcome).metric().unwrap().estimate().unwrap_err();
        assert!(matches!(absent, MissingReason::Inconsistent(_)), "{absent}");
    }

    #[test]
    fn yes_and_no_come_to_their_share() {
        let samples = [1.0, 1.0, 1.0, 0.0];
        let observed = row("a", "fp16", Unit::Ratio, measured(Clock::Observed, &samples));
        let share = observed.metric().unwrap().estimate().unwrap();
        assert_eq!(share.median, 0.75);
        assert!(share.low > 0.25 && share.high < 1.0, "{share:?}");
        let timed = row("a", "fp16", Unit::Ratio, measured(Clock::Host, &samples));
        assert_eq!(timed.metric().unwrap().estimate().unwrap().median, 1.0);
    }
}
