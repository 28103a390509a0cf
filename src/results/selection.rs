//! Which rows are to be measured.

use serde::{Deserialize, Serialize};

use super::row::{MetricSpec, Provenance, begins};

/// Which rows are to be measured: those that `only` names (all, where it names none) but for those that `skip` names.
///
/// A name is an identifier or the beginning of one up to a dot: `overlap`, `overlap.transfer`.
///
/// ```
/// use syncscope_results::Selection;
///
/// assert!(Selection::default().is_all() && Selection::default().holds("overlap.finish"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Selection {
    /// Names of the rows to measure; all where there is none.
    pub only: Vec<String>,
    /// Names of the rows to leave out.
    pub skip: Vec<String>,
}

impl Selection {
    /// Whether the row `id` is to be measured.
    pub fn holds(&self, id: &str) -> bool {
        let named = |names: &[String]| names.iter().any(|name| begins(id, name));
        (self.only.is_empty() || named(&self.only)) && !named(&self.skip)
    }

    /// Whether it leaves nothing out.
    pub fn is_all(&self) -> bool {
        self.only.is_empty() && self.skip.is_empty()
    }

    /// With the rows from which the derived ones among those that `only` names are computed, but for those that `skip` names.
    pub fn with_operands(mut self, rows: &[MetricSpec]) -> Self {
        let mut seen = 0;
        // What an operand is computed from comes with it.
        while let Some(name) = self.only.get(seen).cloned() {
            seen += 1;
            for row in rows.iter().filter(|row| begins(&row.id, &name)) {
                let Provenance::Derived { operands, .. } = &row.provenance else { continue };
                for operand in operands {
                    if !self.only.iter().any(|only| begins(&operand.id, only)) {
                        self.only.push(operand.id.clone());
                    }
                }
            }
        }
        self
    }

    /// The first name that stands for none of the rows `ids`.
    pub fn unknown<'a>(&self, ids: impl Iterator<Item = &'a str> + Clone) -> Option<&str> {
        let mut names = self.only.iter().chain(&self.skip).map(String::as_str);
        names.find(|name| !ids.clone().any(|id| begins(id, name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Clock;
    use crate::units::Unit;
    use crate::{Derivation, FormulaOperand, Parameters};

    fn selection(only: &[&str], skip: &[&str]) -> Selection {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Selection { only: names(only), skip: names(skip) }
    }

    #[test]
    fn a_name_stands_for_what_begins_with_it_up_to_a_dot() {
        let transfer = selection(&["overlap.transfer"], &["overlap.transfer.d2h"]);
        assert!(transfer.holds("overlap.transfer.h2d.free"));
        assert!(!transfer.holds("overlap.transfer.d2h.free"));
        assert!(!transfer.holds("overlap.transfers"));
        assert!(Selection::default().holds("overlap.finish"));
    }

    #[test]
    fn what_a_row_is_computed_from_comes_with_it() {
        let row = |id: &str, from: &[&str]| {
            let operand = |id: &&str| FormulaOperand { name: (*id).to_owned(), id: (*id).to_owned(), parameters: None };
            let operands: Vec<FormulaOperand> = from.iter().map(operand).collect();
            let provenance = match operands.as_slice() {
                [] => Provenance::Measured { clock: Clock::Host, iterations: 1 },
                _ => Provenance::Derived { derivation: Derivation::Computation, formula: "a".to_owned(), operands },
            };
            MetricSpec {
                id: id.to_owned(),
                group: "Rows".to_owned(),
                label: id.to_owned(),
                unit: Unit::Seconds,
                parameters: Parameters::new(),
                provenance,
                work: None,
                floor: None,
            }
        };
        let rows = [row("a.one", &[]), row("a.two", &[]), row("a.sum", &["a.one", "a.two"]), row("a.half", &["a.sum"])];
        let only = |names: &[&str]| selection(names, &["a.two"]).with_operands(&rows);
        assert_eq!(only(&["a.half"]).only, ["a.half", "a.sum", "a.one", "a.two"]);
        assert!(only(&["a.half"]).holds("a.one") && !only(&["a.half"]).holds("a.two"));
        assert_eq!(only(&["a"]).only, ["a"]);
        assert!(only(&[]).only.is_empty());
    }

    #[test]
    fn a_name_that_stands_for_nothing_is_found() {
        let ids = ["overlap.transfer.h2d.free", "sync-points.big.async", "self-audit.timer.cost"];
        let unknown = |only: &[&str], skip: &[&str]| selection(only, skip).unknown(ids.into_iter()).map(str::to_owned);
        assert_eq!(unknown(&["overlap.transfer", "sync-points"], &["self-audit"]), None);
        assert_eq!(unknown(&["overlap"], &["overlap.transfers"]), Some("overlap.transfers".to_owned()));
    }
}
