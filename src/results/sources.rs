//! What a computed row has of the measured rows that it comes of, also by way of other computed ones: found once for all rows of
//! a system, for each from what its operands have.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use super::lookup::{Lookup, slowed_rounds, takes_time};
use super::row::{Outcome, Provenance, Row};
use super::run::throttle_reasons;

/// What the rows of a system come of, by the place of each in the file.
#[derive(Debug)]
pub(super) struct Sources {
    of: Vec<Source>,
    /// The places of the rows, each behind those that it is computed from.
    order: Vec<usize>,
    unsteady: OnceLock<Vec<Unsteady>>,
}

/// What the measured rows that a row comes of have together. A measured row comes of itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Source {
    /// Whether all that have samples are observations; `None` where none has.
    pub(super) observed: Option<bool>,
    /// The most samples of one.
    most: usize,
    /// The rounds in which a sample of one is of a slowed host, by the place of the run.
    slowed: BTreeMap<usize, Arc<BTreeSet<usize>>>,
    /// Why the device held its clocks back within a pass of one.
    pub(super) held: BTreeSet<Arc<str>>,
}

/// Why measured rows have no interval, each of which has more samples than the one before: how many, and the reason.
type Unsteady = Arc<Vec<(usize, Arc<str>)>>;

impl Sources {
    pub(super) fn of(lookup: &Lookup<'_>) -> Self {
        let (order, mut of) = (in_order(lookup), vec![Source::default(); lookup.rows.len()]);
        for &place in &order {
            let row = &lookup.rows[place];
            of[place] = match operands(lookup, row) {
                None => Source::measured(lookup, row),
                Some(operands) => operands.iter().fold(Source::default(), |known, operand| known.and(&of[*operand])),
            };
        }
        Self { of, order, unsteady: OnceLock::new() }
    }

    /// Of the row with this place.
    pub(super) fn at(&self, place: usize) -> &Source {
        &self.of[place]
    }

    /// Why a measured row that the row with this place comes of has no interval, where one with more samples than `count` has none.
    pub(super) fn unsteady(&self, lookup: &Lookup<'_>, place: usize, count: usize) -> Option<Arc<str>> {
        // To ask takes long.
        if self.of[place].most <= count {
            return None;
        }
        let all = self.unsteady.get_or_init(|| {
            let mut all = vec![Unsteady::default(); self.of.len()];
            for &place in &self.order {
                let row = &lookup.rows[place];
                all[place] = match operands(lookup, row) {
                    None => {
                        unsteady(lookup, row).map(|why| vec![(self.of[place].most, why)]).unwrap_or_default().into()
                    }
                    Some(operands) => {
                        operands.iter().fold(Unsteady::default(), |known, operand| longer(known, &all[*operand]))
                    }
                };
            }
            all
        });
        all[place].iter().find(|(most, _)| *most > count).map(|(_, why)| why.clone())
    }
}

impl Source {
    fn measured(lookup: &Lookup<'_>, row: &Row) -> Self {
        let metric = lookup.metric(row).ok();
        let slowed = lookup.outcomes(row).enumerate().filter_map(|(place, (_, outcome))| {
            let slowed = slowed_rounds(&row.spec, outcome?);
            (!slowed.is_empty()).then(|| (place, Arc::new(slowed)))
        });
        let held = |(run, outcome): (&str, Option<&Outcome>)| {
            let outcome = outcome.filter(|outcome| takes_time(&row.spec, outcome));
            let passes = outcome.map_or(&[][..], Outcome::passes);
            let is_within = |at: f64| passes.iter().any(|pass| pass.began <= at && at <= pass.ended);
            let sensed = lookup.sensed.get(run).copied().unwrap_or_default().iter();
            throttle_reasons(sensed.filter(|sample| sample.at.is_some_and(is_within)))
        };
        Self {
            observed: metric.as_ref().map(|metric| metric.is_observed()),
            most: metric.map_or(0, |metric| metric.count() + metric.left_out),
            slowed: slowed.collect(),
            held: lookup.outcomes(row).flat_map(held).map(Arc::from).collect(),
        }
    }

    fn and(mut self, other: &Self) -> Self {
        for (place, rounds) in &other.slowed {
            let known = self.slowed.entry(*place).or_insert_with(|| rounds.clone());
            if !rounds.is_subset(known) {
                Arc::make_mut(known).extend(rounds.iter());
            }
        }
        let observed = self.observed.into_iter().chain(other.observed).reduce(|one, other| one && other);
        self.held.extend(other.held.iter().cloned());
        Self { observed, most: self.most.max(other.most), ..self }
    }

    /// The rounds of the run with this place in which a sample is of a slowed host.
    pub(super) fn slowed(&self, place: usize) -> Option<&BTreeSet<usize>> {
        self.slowed.get(&place).map(|rounds| &**rounds)
    }
}

/// The places of the rows of a system, each behind those that it is computed from. Rows that name each other come to an end.
fn in_order(lookup: &Lookup<'_>) -> Vec<usize> {
    let (mut order, mut seen) = (Vec::new(), vec![false; lookup.rows.len()]);
    for row in lookup.rows() {
        let mut open = vec![(lookup.rows.place(row), false)];
        while let Some((place, is_done)) = open.pop() {
            if is_done {
                order.push(place);
            } else if !std::mem::replace(&mut seen[place], true) {
                open.push((place, true));
                open.extend(
                    operands(lookup, &lookup.rows[place]).into_iter().flatten().map(|operand| (operand, false)),
                );
            }
        }
    }
    order
}

/// The places of the rows that the formula of a computed row names, measured ones first; nothing of a measured row.
fn operands(lookup: &Lookup<'_>, row: &Row) -> Option<Vec<usize>> {
    let Provenance::Derived { operands, .. } = &row.spec.provenance else { return None };
    let mut found: Vec<&Row> = operands.iter().filter_map(|operand| lookup.operand(operand, row)).collect();
    found.sort_by_key(|operand| matches!(operand.spec.provenance, Provenance::Derived { .. }));
    Some(found.into_iter().map(|operand| lookup.rows.place(operand)).collect())
}

fn unsteady(lookup: &Lookup<'_>, row: &Row) -> Option<Arc<str>> {
    let why = lookup.metric(row).ok()?.unsteady()?;
    Some(why.replacen("no interval:", &format!("no interval: {}:", row.spec.id), 1).into())
}

/// With those of `other` that have more samples than all before.
fn longer(mut known: Unsteady, other: &Unsteady) -> Unsteady {
    for (count, why) in &**other {
        if known.last().is_none_or(|(most, _)| count > most) {
            // Where they are of one row, they stay one list.
            if known.is_empty() {
                known = other.clone();
                break;
            }
            Arc::make_mut(&mut known).push((*count, why.clone()));
        }
    }
    known
}
