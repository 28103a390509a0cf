//! Raw samples of one case, in the order in which they were taken.

use syncscope_present::Estimate;

use super::clock::Clock;
use super::estimate::of_sorted;
use super::statistics::{Diagnosis, near_floor};
use crate::error::MeasureError;
use crate::units::Unit;

/// The samples of one case: at least one, all finite, in the order in which they were taken.
///
/// Times are in seconds; other values are in the unit of their case. Sample *i* is of round *i*, so that sets from the same
/// rounds are paired.
///
/// ```
/// use syncscope::measure::Samples;
///
/// let samples = Samples::new("read", vec![3.0, 1.0, 2.0])?;
/// assert_eq!(samples.estimate().median, 2.0);
/// # Ok::<(), syncscope::error::MeasureError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Samples {
    name: String,
    values: Vec<f64>,
    clock: Clock,
    /// What the clock shows for no work, in seconds, where each sample is one reading of it and that is known.
    floor: Option<f64>,
}

impl Samples {
    /// Times by the name of their case, in the order in which they were taken.
    ///
    /// ```
    /// use syncscope::measure::Samples;
    ///
    /// assert!(Samples::new("none", vec![]).is_err() && Samples::new("nan", vec![f64::NAN]).is_err());
    /// ```
    ///
    /// # Errors
    /// [`MeasureError::TooFewSamples`] for none; [`MeasureError::NotFinite`] names the first that is not finite.
    pub fn new(name: impl Into<String>, values: Vec<f64>) -> Result<Self, MeasureError> {
        let name = name.into();
        if values.is_empty() {
            return Err(MeasureError::TooFewSamples { case: name, needed: 1, got: 0 });
        }
        match values.iter().position(|value| !value.is_finite()) {
            Some(index) => Err(MeasureError::NotFinite { case: name, index, value: values[index] }),
            None => Ok(Self { name, values, clock: Clock::Host, floor: None }),
        }
    }

    /// The same, taken by this clock, which shows so much for no work.
    pub(super) fn taken_by(self, clock: Clock, floor: Option<f64>) -> Self {
        Self { clock, floor, ..self }
    }

    /// The unit of the values: seconds, or none where no clock took them.
    pub fn unit(&self) -> Unit {
        if self.clock == Clock::Observed { Unit::Number } else { Unit::Seconds }
    }

    /// That the median is not far from what the clock shows for no work, where it is not.
    pub fn near_floor(&self) -> Option<Diagnosis> {
        near_floor(self.clock, self.estimate().median, self.floor?)
    }

    /// The name of the case.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The values, in the order in which they were taken.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The values without their name.
    pub fn into_values(self) -> Vec<f64> {
        self.values
    }

    /// The number of samples: never 0.
    #[allow(clippy::len_without_is_empty, reason = "there is always one")]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// The median with its interval. The order of the samples does not matter to it.
    pub fn estimate(&self) -> Estimate {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        of_sorted(&sorted)
    }

    /// The paired difference: this case's sample minus the other's of the same round, named `this − other`.
    ///
    /// What affects both samples of a round (a clock rate, a temperature) cancels. Its median is the median of the
    /// differences, which is in general not the difference of the medians.
    ///
    /// ```
    /// use syncscope::measure::Samples;
    ///
    /// let (a, b) = (Samples::new("a", vec![3.0, 5.0])?, Samples::new("b", vec![1.0, 1.0])?);
    /// assert_eq!(a.minus(&b)?.values(), [2.0, 4.0]);
    /// # Ok::<(), syncscope::error::MeasureError>(())
    /// ```
    ///
    /// # Errors
    /// [`MeasureError::Unpaired`] where the numbers of samples differ.
    pub fn minus(&self, other: &Samples) -> Result<Samples, MeasureError> {
        if self.len() != other.len() {
            return Err(MeasureError::Unpaired {
                a: self.name.clone(),
                len_a: self.len(),
                b: other.name.clone(),
                len_b: other.len(),
            });
        }
        let differences = self.values.iter().zip(&other.values).map(|(a, b)| a - b).collect();
        let difference = Samples::new(format!("{} − {}", self.name, other.name), differences)?;
        Ok(difference.taken_by(self.clock, None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_not_finite_is_refused_by_its_place() {
        let refused = Samples::new("read", vec![1.0, f64::NAN]).unwrap_err();
        assert!(matches!(refused, MeasureError::NotFinite { index: 1, .. }), "{refused}");
        assert!(matches!(Samples::new("read", vec![]), Err(MeasureError::TooFewSamples { .. })));
    }

    #[test]
    fn a_difference_is_taken_within_each_round() {
        let a = Samples::new("a", vec![5.0, 7.0, 1.0]).unwrap();
        let b = Samples::new("b", vec![1.0, 2.0, 3.0]).unwrap();
        let difference = a.minus(&b).unwrap();
        assert_eq!(difference.values(), [4.0, 5.0, -2.0]);
        assert_eq!(difference.name(), "a − b");
    }

    #[test]
    fn sets_of_different_length_are_not_subtracted() {
        let a = Samples::new("a", vec![5.0, 7.0]).unwrap();
        let b = Samples::new("b", vec![1.0]).unwrap();
        assert!(matches!(a.minus(&b), Err(MeasureError::Unpaired { len_a: 2, len_b: 1, .. })));
    }

    #[test]
    fn an_estimate_does_not_depend_on_the_order_of_the_samples() {
        let rising: Vec<f64> = (0..40).map(|i| f64::from(i * i)).collect();
        let falling = rising.iter().rev().copied().collect();
        let estimate = |values| Samples::new("x", values).unwrap().estimate();
        assert_eq!(estimate(rising.clone()), estimate(falling));
    }
}
