//! Which order statistics bound a median.
//!
//! # Method
//! Let `x(1) ≤ … ≤ x(n)` be independent draws of one distribution with median `m`. The number of draws below `m` is
//! binomial, `B ~ Bin(n, ½)`, whatever the distribution, so `x(r) ≤ m ≤ x(n+1−s)` holds with probability
//! `1 − P(B < r) − P(B < s)`: at least that for a distribution with ties, exactly that for one without. (The interval
//! of the sign test: W. R. Thompson, Ann. Math. Stat. 7, 1936; H. A. David and H. N. Nagaraja, *Order Statistics*, 3rd
//! ed., 2003, §7.1.)
//!
//! Coverage changes in steps with `r` and `s`. With `r = s` the steps are wide: at n = 16 the choice is between 92.3 % and
//! 97.9 %. Here `s` may be `r + 1`, which halves the steps. The pair is chosen whose coverage is nearest to 95.5 %, slightly
//! on the safe side, and at least 94.5 %. From n = 15 to n = 100 that gives 94.6 % to 96.9 %, and from n = 34 on at most
//! 96.4 %.
//!
//! # Why not interpolate
//! Interpolation between neighbouring order statistics (Hettmansperger and Sheather, Stat. Probab. Lett. 4, 1986)
//! brings smooth distributions to 95 %, but not a median in the gap between two modes, where coverage stays on the
//! steps of `r = s`. A device that throttles produces two modes.

use syncscope_present::LEAST_COVERAGE;

/// The target coverage.
const AIM: f64 = 0.955;

/// The ranks, counted from 1 at either end of the sorted samples, that bound a median.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ranks {
    /// The rank at the end that reaches further out.
    pub(crate) outer: usize,
    /// The rank at the other end: `outer` or `outer + 1`.
    pub(crate) inner: usize,
    /// The probability that the interval holds the median.
    pub(crate) coverage: f64,
}

impl Ranks {
    /// The ranks for `n` samples; for fewer than six, where no pair reaches 94.5 %, the whole range with its coverage.
    pub(super) fn of(n: usize) -> Self {
        let below = tails(n);
        let tail = |rank: usize| below.get(rank).copied().unwrap_or(0.5);
        let middle = n.div_ceil(2);
        let pairs = (1..=middle).flat_map(|outer| [(outer, outer), (outer, outer + 1)]);
        pairs
            .filter(|&(_, inner)| inner <= middle)
            .map(|(outer, inner)| Ranks { outer, inner, coverage: 1.0 - tail(outer) - tail(inner) })
            .filter(|ranks| ranks.coverage >= LEAST_COVERAGE)
            .min_by(|a, b| (a.coverage - AIM).abs().total_cmp(&(b.coverage - AIM).abs()))
            .unwrap_or_else(|| Ranks { outer: 1, inner: 1, coverage: (1.0 - 2.0 * tail(1)).max(0.0) })
    }
}

/// `P(Bin(n, ½) < r)` for `r` from 0 to `n / 2 + 1`.
///
/// The weights are relative to the largest, so that no relevant one underflows at a large `n`.
fn tails(n: usize) -> Vec<f64> {
    let half = n / 2;
    let mut weights = vec![1.0; half + 1];
    for k in (0..half).rev() {
        weights[k] = weights[k + 1] * (k + 1) as f64 / (n - k) as f64;
    }
    let lower: f64 = weights.iter().sum();
    let total = if n.is_multiple_of(2) { 2.0 * lower - weights[half] } else { 2.0 * lower };
    let mut below = vec![0.0];
    let mut sum = 0.0;
    for weight in weights {
        sum += weight / total;
        below.push(sum);
    }
    below
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_those_of_the_binomial_table() {
        assert!((tails(15)[4] - 0.017_578).abs() < 1e-6);
        assert!((tails(16)[5] - 0.038_406).abs() < 1e-6);
        assert!((tails(100)[40] - 0.017_600).abs() < 1e-6);
    }

    #[test]
    fn ranks_of_a_few_sizes_are_those_of_the_table() {
        let at = |n| (Ranks::of(n).outer, Ranks::of(n).inner);
        assert_eq!(at(6), (1, 1));
        assert_eq!(at(16), (4, 5));
        assert_eq!(at(30), (10, 10));
        assert_eq!(at(50), (18, 19));
        assert!((Ranks::of(50).coverage - 0.9511).abs() < 1e-4);
    }

    #[test]
    fn coverage_is_near_the_nominal_one_at_every_size() {
        for n in 15..=2_000 {
            let coverage = Ranks::of(n).coverage;
            let most = if n < 34 { 0.9695 } else { 0.9645 };
            assert!((LEAST_COVERAGE..=most).contains(&coverage), "n = {n}: {coverage}");
        }
    }

    #[test]
    fn fewer_than_six_samples_give_the_range_and_its_coverage() {
        assert_eq!(Ranks::of(1), Ranks { outer: 1, inner: 1, coverage: 0.0 });
        assert_eq!(Ranks::of(5), Ranks { outer: 1, inner: 1, coverage: 0.9375 });
    }

    #[test]
    fn a_large_number_of_samples_does_not_underflow() {
        let ranks = Ranks::of(100_000);
        assert!((ranks.coverage - AIM).abs() < 1e-3);
        assert!((ranks.outer as f64 - (50_000.0 - 0.5 * 2.0047 * 100_000_f64.sqrt())).abs() < 2.0);
    }
}
