//! How likely it is to see what was seen, were nothing there; and which of many such findings count together.
//!
//! # Method
//! Of values that were each measured in several runs, Student's t: of one set against a number, or of two sets against each
//! other with Welch's degrees of freedom, which come from both scatters (B. L. Welch, *The generalization of 'Student's'
//! problem when several different population variances are involved*, Biometrika 34, 1947). Of trials of yes and no, Fisher's
//! exact test (R. A. Fisher, *The logic of inductive inference*, J. R. Stat. Soc. 98, 1935).
//!
//! Of many findings, S. Holm's procedure (*A simple sequentially rejective multiple test procedure*, Scand. J. Stat. 6, 1979)
//! holds the chance that one of them or more is wrong, whatever they have to do with each other.

use statrs::distribution::{ContinuousCDF, DiscreteCDF, Hypergeometric, StudentsT};

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

    /// The mean of `b` less that of `a`, which are no pairs; of two values or more each. `None` where neither shows scatter.
    pub fn between(b: &[f64], a: &[f64]) -> Option<Self> {
        let scatter = [b, a].map(standard_error);
        if scatter == [None, None] {
            return None;
        }
        let [of_b, of_a] = scatter.map(|error| error.unwrap_or(0.0).powi(2));
        let error = of_b + of_a;
        let freedom = |of: f64, count: usize| of.powi(2) / (count as f64 - 1.0);
        let freedom = error.powi(2) / (freedom(of_b, b.len()) + freedom(of_a, a.len()));
        Some(Self { centre: mean(b) - mean(a), error: error.sqrt(), freedom })
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

    /// The chance of a value as far outside of `low … high`, or further, were the true one inside.
    pub fn chance_outside(&self, low: f64, high: f64) -> f64 {
        (2.0 * self.chance_above(high).min(self.chance_below(low))).min(1.0)
    }
}

/// The chance that two sets of trials of yes (1) and no (0) differ as much as `a` and `b` do, or more, were yes equally
/// likely in both.
pub fn chance_of_shares(a: &[f64], b: &[f64]) -> f64 {
    let yes = |trials: &[f64]| trials.iter().sum::<f64>() as u64;
    let (of_a, of_b) = (yes(a), yes(b));
    // How many of the yes are in `b`, were they spread by chance alone.
    let spread = Hypergeometric::new((a.len() + b.len()) as u64, of_a + of_b, b.len() as u64);
    let tails = |spread: Hypergeometric| {
        let at_least = if of_b == 0 { 1.0 } else { spread.sf(of_b - 1) };
        (2.0 * at_least.min(spread.cdf(of_b))).min(1.0)
    };
    spread.map_or(1.0, tails)
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
        assert!((student.chance_outside(-9.0, 0.0) - 2.0 * 0.037_09).abs() < 2e-4);
        assert_eq!(student.chance_outside(0.0, 4.0), 1.0, "it lies inside");
    }

    #[test]
    fn whatever_the_values_a_chance_is_between_0_and_1() {
        let extremes = [5e-324, 1e-323, 0.0, -0.0, 1.0, 1e160, -1e160, 1e308, -1e308, f64::MAX, f64::MIN];
        for (a, b) in extremes.iter().flat_map(|a| extremes.iter().map(move |b| (*a, *b))) {
            for values in [[a, b, b], [b, a, 1.0]] {
                let students = [Student::of(&values), Student::between(&values, &[a, 0.0, b])];
                for (student, bound) in students.into_iter().flatten().zip([a, b]) {
                    let chances =
                        [student.chance_above(bound), student.chance_below(bound), student.chance_outside(a, b)];
                    assert!(chances.iter().all(|chance| (0.0..=1.0).contains(chance)), "{values:?}: {chances:?}");
                }
                assert!(Student::of(&values).is_none_or(|student| student.half_width(0.95).signum() != -1.0));
            }
        }
    }

    #[test]
    fn values_without_scatter_show_no_chance() {
        assert_eq!(Student::of(&[2.0, 2.0]), None);
        assert_eq!(Student::between(&[2.0, 2.0], &[1.0, 1.0]), None);
        assert!(Student::between(&[2.0, 2.0], &[1.0, 1.1]).is_some(), "one side shows some");
    }

    #[test]
    fn trials_that_all_changed_are_the_surer_the_more_there_are() {
        let trials = |count: usize, value: f64| vec![value; count];
        // One of 20 ways to choose three of six, on either side.
        assert!((chance_of_shares(&trials(3, 1.0), &trials(3, 0.0)) - 0.1).abs() < 1e-9);
        assert!(chance_of_shares(&trials(15, 0.0), &trials(15, 1.0)) < 1e-7);
        assert_eq!(chance_of_shares(&trials(9, 1.0), &trials(9, 1.0)), 1.0);
        assert_eq!(chance_of_shares(&[1.0, 0.0, 1.0], &[0.0, 1.0, 1.0]), 1.0);
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
