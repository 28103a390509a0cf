//! Which rows are to be measured.

use serde::{Deserialize, Serialize};

use super::row::begins;

/// Which rows are to be measured: those that `only` names (all, where it names none) but for those that `skip` names.
///
/// A name is an identifier or the beginning of one up to a dot: `overlap`, `overlap.transfer`.
///
/// ```
/// use syncscope::results::Selection;
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

    /// The first name that stands for none of the rows `ids`.
    pub fn unknown<'a>(&self, ids: impl Iterator<Item = &'a str> + Clone) -> Option<&str> {
        let mut names = self.only.iter().chain(&self.skip).map(String::as_str);
        names.find(|name| !ids.clone().any(|id| begins(id, name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_name_that_stands_for_nothing_is_found() {
        let ids = ["overlap.transfer.h2d.free", "sync-points.big.async", "self-audit.timer.cost"];
        let unknown = |only: &[&str], skip: &[&str]| selection(only, skip).unknown(ids.into_iter()).map(str::to_owned);
        assert_eq!(unknown(&["overlap.transfer", "sync-points"], &["self-audit"]), None);
        assert_eq!(unknown(&["overlap"], &["overlap.transfers"]), Some("overlap.transfers".to_owned()));
    }
}
