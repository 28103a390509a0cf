//! How likely it is to see what was seen, were nothing there; and which of many such findings count together.
//!
//! # Method
//! Of a value that was measured in several runs, Student's t against a number.
//!
//! Of many findings, S. Holm's procedure (*A simple sequentially rejective multiple test procedure*, Scand. J. Stat. 6, 1979)
//! holds the chance that one of them or more is wrong, whatever they have to do with each other.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::runs::{mean, standard_error, t_quantile};

/// A value from several runs, with what Student's t needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Student {
    /// The value.
    pub centre: f64,
    error: f64,
    freedom: f64,
}

impl Student {
    /// The mean of two values or more. `None` where they show no scatter.
    pub fn of(values: &[f64]) -> Option<Self> {
        let error = standard_error(values)?;
        Some(Self { centre: mean(values), error, freedom: values.len() as f64 - 1.0 })
    }

    /// How far the interval of `level` reaches to either side.
    pub fn half_width(&self, level: f64) -> f64 {
        t_quantile(self.freedom, level) * self.error
    }

    /// The chance of a value as large as this one, or larger, were the true one no greater than `bound`.
    pub fn chance_above(&self, bound: f64) -> f64 {
        let statistic = (self.centre - bound) / self.error;
        // Of values so small or so large that their scatter is no number, nothing is known.
        let t = StudentsT::new(0.0, 1.0, self.freedom).ok().filter(|_| statistic.is_finite());
        t.map_or(1.0, |t| t.sf(statistic))
    }

    /// The chance of a value as small as this one, or smaller, were the true one no less than `bound`.
    pub fn chance_below(&self, bound: f64) -> f64 {
        Self { centre: -self.centre, ..*self }.chance_above(-bound)
    }
}

/// Which of several chances are small enough, so that one or more of them is wrong with a chance of `error` at most.
pub fn holm(chances: &[f64], error: f64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..chances.len()).collect();
    order.sort_by(|a, b| chances[*a].total_cmp(&chances[*b]));
    let mut small = vec![false; chances.len()];
    for (rank, place) in order.into_iter().enumerate() {
        if chances[place] > error / (chances.len() - rank) as f64 {
            break;
        }
        small[place] = true;
    }
    small
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chance_of_a_mean_is_the_tail_of_students_t() {
        // Mean 2, standard error 0.57735, two degrees of freedom: t = 3.4641 has a tail of 0.0371.
        let student = Student::of(&[1.0, 2.0, 3.0]).unwrap();
        assert!((student.chance_above(0.0) - 0.037_09).abs() < 1e-4, "{}", student.chance_above(0.0));
        assert!((student.chance_below(4.0) - student.chance_above(0.0)).abs() < 1e-12);
    }

    #[test]
    fn whatever_the_values_a_chance_is_between_0_and_1() {
        let extremes = [5e-324, 1e-323, 0.0, -0.0, 1.0, 1e160, -1e160, 1e308, -1e308, f64::MAX, f64::MIN];
        for (a, b) in extremes.iter().flat_map(|a| extremes.iter().map(move |b| (*a, *b))) {
            for values in [[a, b, b], [b, a, 1.0]] {
                for (student, bound) in Student::of(&values).into_iter().zip([a, b]) {
                    let chances = [student.chance_above(bound), student.chance_below(bound)];
                    assert!(chances.iter().all(|chance| (0.0..=1.0).contains(chance)), "{values:?}: {chances:?}");
                }
                assert!(Student::of(&values).is_none_or(|student| student.half_width(0.95).signum() != -1.0));
            }
        }
    }

    #[test]
    fn values_without_scatter_show_no_chance() {
        assert_eq!(Student::of(&[2.0, 2.0]), None);
    }

    #[test]
    fn holm_asks_the_more_of_a_case_the_more_there_are() {
        // 0.025 / 3, / 2, / 1.
        assert_eq!(holm(&[0.008, 0.012, 0.024], 0.025), [true, true, true]);
        assert_eq!(holm(&[0.024, 0.008, 0.013], 0.025), [false, true, false]);
        assert_eq!(holm(&[0.009, 0.009, 0.009], 0.025), [false, false, false]);
        assert!(holm(&[], 0.025).is_empty());
    }
}
