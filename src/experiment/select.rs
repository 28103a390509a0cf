//! Which rows are to be measured.

use serde::{Deserialize, Serialize};

use super::Entry;

/// Which rows are to be measured: those that `only` names (all, where it names none) but for those that `skip` names.
///
/// A name is an identifier or the beginning of one up to a dot: `overlap`, `overlap.transfer`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "report", derive(schemars::JsonSchema))]
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

    /// The first name that stands for no row of any experiment.
    pub fn unknown(&self) -> Option<&str> {
        let entries = Entry::all("cuda");
        let ids: Vec<&str> = entries.iter().flat_map(|entry| entry.experiment().rows()).map(|row| row.id).collect();
        let names = self.only.iter().chain(&self.skip);
        names.map(String::as_str).find(|name| !ids.iter().any(|id| begins(id, name)))
    }
}

/// Whether `id` is `name` or begins with it and a dot.
pub(super) fn begins(id: &str, name: &str) -> bool {
    id.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
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
        assert_eq!(selection(&["overlap.transfer", "sync-points"], &["self-audit"]).unknown(), None);
        assert_eq!(selection(&["overlap"], &["overlap.transfers"]).unknown(), Some("overlap.transfers"));
    }
}
