//! Two programs whose runs are made by turns, row by row, until each row is slower, faster, or the same.
//!
//! # Method
//! A run of the one and the run of the other at the same place are a pair ([`chances_over_pairs`]). The pairs are looked at
//! several times ([`looks`]), and what a look decides of a row stands. A row that is decided needs no further pairs, and those
//! that it gets nevertheless change nothing.
//!
//! The table of verdicts is that of [`compare`](super::compare()). A change is named where its chance is at most the share of
//! the error that the look has, held over all rows together, and the whole interval says so. The row is the same where
//! [`is_within`] says so. Where there is no quotient, the same is what has the same values in all pairs.

use super::compare::{Compared, Pair, Shift, Tolerance, paired};
use super::direction::Direction;
use super::row::Row;
use super::run::Results;
use crate::statistics::{
    Change, Ratio, RowByPair, chances_over_pairs, is_within, looks, pairs_to_decide, share_of_look,
};

/// Looks once more at two programs whose runs were made by turns: at `before`, and at the pairs that were made since.
pub fn look(a: &Results, b: &Results, tolerance: Tolerance, before: Option<&Compared>) -> Compared {
    let mut compared = paired(a, &with_parameters_of(a, b), tolerance);
    compared.looks = before.map_or(0, |before| before.looks) + 1;
    let decided: Vec<&Pair> = before.iter().flat_map(|before| &before.pairs).filter(|pair| !pair.is_open()).collect();
    for pair in &mut compared.pairs {
        let is_it =
            |own: &&&Pair| (&own.system, &own.id, &own.parameters) == (&pair.system, &pair.id, &pair.parameters);
        match decided.iter().find(is_it) {
            Some(decided) => *pair = (*decided).clone(),
            None if pair.ratio.is_some() => pair.ratio = Ratio::of_turns(&pair.differences(), tolerance.level),
            None => {}
        }
    }
    compared.judge_by_turns();
    compared
}

/// The second with the parameters of the first in the rows of which each has one of an identifier: two suites may ask for
/// other parameters, and those are compared.
fn with_parameters_of(a: &Results, b: &Results) -> Results {
    let only = |results: &Results, id: &str| {
        let mut rows = results.rows.of(id);
        rows.next().filter(|_| rows.next().is_none()).map(|row| row.spec.parameters.clone())
    };
    let renamed = |row: &Row| {
        let mut row = row.clone();
        if let (Some(parameters), Some(_)) = (only(a, &row.spec.id), only(b, &row.spec.id)) {
            row.spec.parameters = parameters;
        }
        row
    };
    Results { rows: b.rows.iter().map(renamed).collect::<Vec<Row>>().into(), ..b.clone() }
}

impl Compared {
    fn judge_by_turns(&mut self) {
        let Tolerance { threshold, error, .. } = self.tolerance;
        let pairs = self.runs[0].min(self.runs[1]);
        let share = share_of_look(self.looks);
        let row = |pair: &Pair| {
            let mut differences = vec![None; pairs];
            // What has been named a change hides no other one.
            for (place, difference) in pair.by_pair().filter(|_| pair.may_change && !pair.shift.is_change()) {
                differences[place] = Some(difference);
            }
            RowByPair { differences, margin: pair.margin(threshold) }
        };
        let rows: Vec<RowByPair> = self.pairs.iter().map(row).collect();
        let all = rows.len();
        for (pair, chance) in self.pairs.iter_mut().zip(chances_over_pairs(&rows, pairs)) {
            if pair.is_open() {
                pair.chance = (chance / share).min(1.0);
                pair.shift = pair.judged_by_turns(threshold, error, share);
                let is_told = pair.is_open() && pair.ratio.is_some();
                let to_decide = || pairs_to_decide(&pair.differences(), threshold.ln_1p(), error, all);
                pair.runs_to_decide = is_told.then(to_decide).flatten();
            }
        }
    }

    /// Whether so many pairs of runs are the next to be looked at.
    pub fn is_next_look(before: Option<&Self>, pairs: usize) -> bool {
        looks().nth(before.map_or(0, |before| before.looks)).is_some_and(|next| pairs >= next)
    }

    /// The rows that further pairs of runs can decide.
    pub fn open(&self) -> impl Iterator<Item = &Pair> {
        self.pairs.iter().filter(|pair| pair.is_open())
    }
}

impl Pair {
    /// Whether further pairs of runs can decide it.
    fn is_open(&self) -> bool {
        self.shift == Shift::Uncertain && (self.may_change || self.ratio.is_some())
    }

    /// The second less the first in the runs that both have a value of, by their places.
    fn by_pair(&self) -> impl Iterator<Item = (usize, f64)> {
        let [a, b] = &self.by_run;
        a.iter().filter_map(|(place, first)| {
            let (_, second) = b.iter().find(|(other, _)| other == place)?;
            Some((*place, second - first))
        })
    }

    fn differences(&self) -> Vec<f64> {
        self.by_pair().map(|(_, difference)| difference).collect()
    }

    fn judged_by_turns(&self, threshold: f64, error: f64, share: f64) -> Shift {
        let (changed, differences) = (self.chance <= error, self.differences());
        let is_same = |margin: f64| is_within(&differences, margin, error * share);
        match &self.ratio {
            Some(ratio) => match self.faster.shift(ratio.change(threshold)) {
                shift if shift.is_change() && changed => shift,
                _ if is_same(threshold.ln_1p()) => self.faster.shift(Change::Within),
                _ => Shift::Uncertain,
            },
            None if self.faster == Direction::Neither && changed => Shift::Different,
            None if differences.iter().all(|difference| *difference == 0.0) && is_same(f64::MIN_POSITIVE) => {
                Shift::Same
            }
            None => Shift::Uncertain,
        }
    }
}
