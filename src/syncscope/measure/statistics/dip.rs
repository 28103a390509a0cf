//! Hartigan's dip: how far samples are from having one mode.
//!
//! # Method
//! The dip is the least distance, over all distributions with one mode, between such a distribution and the empirical
//! one: the greatest difference of the two (J. A. Hartigan and P. M. Hartigan, *The dip test of unimodality*, Ann.
//! Stat. 13, 1985). It is computed as in P. M. Hartigan, Algorithm AS 217, Appl. Stat. 34, 1985, by the greatest convex
//! minorant and the least concave majorant over an interval that shrinks to the modal one, with the two later
//! corrections (the first value of the dip, and the comparison at its update).
//!
//! # What it does not cover
//! It counts equal samples as modes: where the clock's step is coarse, the dip is that of the steps.

/// The dip of `sorted`, in ascending order: from `1 / 2n` for one uniform mode to 0.25 for two points of equal weight. 0 for
/// fewer than four samples, for equal samples and for a range that is not finite.
pub(super) fn dip(sorted: &[f64]) -> f64 {
    let n = sorted.len();
    if n < 4 || sorted[0] == sorted[n - 1] || !(sorted[n - 1] - sorted[0]).is_finite() {
        return 0.0;
    }
    let minorant = convex_knots(sorted);
    let majorant = concave_knots(sorted);
    let (mut low, mut high) = (0, n - 1);
    // In units of 1 / 2n.
    let mut dip: f64 = 1.0;
    loop {
        let left = chain(high, low, &minorant);
        let right = chain(low, high, &majorant);
        let (distance, at_left, at_right) = widest(sorted, &left, &right);
        if distance < dip {
            break;
        }
        let below = left[at_left..].windows(2).map(|ends| deviation(sorted, ends[1], ends[0], Side::Minorant));
        let above = right[at_right..].windows(2).map(|ends| deviation(sorted, ends[0], ends[1], Side::Majorant));
        dip = below.chain(above).fold(dip, f64::max);
        let modal = (left[at_left], right[at_right]);
        // Rounding may cross the ends; the interval shrinks in each iteration or the search is over.
        if modal == (low, high) || modal.0 >= modal.1 {
            break;
        }
        (low, high) = modal;
    }
    dip / (2.0 * n as f64)
}

/// For each place the one to its left that is the next knot of the greatest convex minorant ending there.
fn convex_knots(x: &[f64]) -> Vec<usize> {
    let mut knots = vec![0; x.len()];
    for j in 1..x.len() {
        let mut knot = j - 1;
        while knot != 0 {
            let next = knots[knot];
            if (x[j] - x[knot]) * ((knot - next) as f64) < (x[knot] - x[next]) * ((j - knot) as f64) {
                break;
            }
            knot = next;
        }
        knots[j] = knot;
    }
    knots
}

/// For each place the one to its right that is the next knot of the least concave majorant beginning there.
fn concave_knots(x: &[f64]) -> Vec<usize> {
    let last = x.len() - 1;
    let mut knots = vec![last; x.len()];
    for k in (0..last).rev() {
        let mut knot = k + 1;
        while knot != last {
            let next = knots[knot];
            if (x[knot] - x[k]) * ((next - knot) as f64) < (x[next] - x[knot]) * ((knot - k) as f64) {
                break;
            }
            knot = next;
        }
        knots[k] = knot;
    }
    knots
}

/// The knots from `from` on until `to`, both included.
fn chain(from: usize, to: usize, knots: &[usize]) -> Vec<usize> {
    let mut chain = vec![from];
    let mut at = from;
    while if from > to { at > to } else { at < to } {
        at = knots[at];
        chain.push(at);
    }
    chain
}

/// The greatest distance between the minorant and the majorant, and the places in their chains that bound it.
///
/// `left` runs down and `right` up; both are walked from the lower end.
fn widest(x: &[f64], left: &[usize], right: &[usize]) -> (f64, usize, usize) {
    if left.len() == 2 && right.len() == 2 {
        return (1.0, 1, 1);
    }
    let (mut ix, mut iv) = (left.len() - 2, 1);
    let (mut distance, mut at_left, mut at_right) = (0.0, left.len() - 1, right.len() - 1);
    loop {
        let (knot, peak) = (left[ix], right[iv]);
        if knot > peak {
            let before = left[ix + 1];
            let slope = (knot - before) as f64 / (x[knot] - x[before]);
            let d = (peak as f64 - before as f64 + 1.0) - (x[peak] - x[before]) * slope;
            iv += 1;
            if d >= distance {
                (distance, at_left, at_right) = (d, ix + 1, iv - 1);
            }
        } else {
            let before = right[iv - 1];
            let slope = (peak - before) as f64 / (x[peak] - x[before]);
            let d = (x[knot] - x[before]) * slope - (knot as f64 - before as f64 - 1.0);
            if d >= distance {
                (distance, at_left, at_right) = (d, ix, iv);
            }
            ix = ix.saturating_sub(1);
        }
        iv = iv.min(right.len() - 1);
        if left[ix] == right[iv] || (ix == 0 && iv == right.len() - 1) {
            return (distance, at_left, at_right);
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Minorant,
    Majorant,
}

/// The greatest distance between the samples from `from` to `to` and the chord between the two.
fn deviation(x: &[f64], from: usize, to: usize, side: Side) -> f64 {
    if to - from <= 1 || x[to] == x[from] {
        return 1.0;
    }
    let slope = (to - from) as f64 / (x[to] - x[from]);
    let distance = |place: usize| {
        let (steps, chord) = ((place - from) as f64, (x[place] - x[from]) * slope);
        if side == Side::Minorant { steps + 1.0 - chord } else { chord - (steps - 1.0) }
    };
    (from..=to).map(distance).fold(1.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_even_grid_has_the_least_dip_there_is() {
        for n in [4_usize, 10, 33, 100] {
            let grid: Vec<f64> = (0..n).map(|i| i as f64).collect();
            assert!((dip(&grid) - 0.5 / n as f64).abs() < 1e-12, "n = {n}: {}", dip(&grid));
        }
    }

    #[test]
    fn two_points_of_equal_weight_have_a_dip_of_a_quarter() {
        let two: Vec<f64> = (0..40).map(|i| f64::from(i / 20)).collect();
        assert!((dip(&two) - 0.25).abs() < 1e-12, "{}", dip(&two));
    }

    #[test]
    fn the_dip_does_not_change_with_unit_place_or_direction() {
        let mut x: Vec<f64> = (0..31).map(|i| f64::from(i * i % 97)).collect();
        x.sort_by(f64::total_cmp);
        let scaled: Vec<f64> = x.iter().map(|v| 3e-6 * v + 1e-3).collect();
        let mirrored: Vec<f64> = x.iter().rev().map(|v| -v).collect();
        assert!((dip(&x) - dip(&scaled)).abs() < 1e-9 && (dip(&x) - dip(&mirrored)).abs() < 1e-9);
    }

    #[test]
    fn few_and_equal_samples_have_none() {
        assert_eq!((dip(&[]), dip(&[1.0, 2.0, 3.0]), dip(&[7.0; 20])), (0.0, 0.0, 0.0));
    }
}
