//! Why a row has no samples, in a run or in all of them.

use std::fmt;

/// Why a row has no samples.
///
/// ```
/// use syncscope_results::MissingReason;
///
/// let skipped = MissingReason::Skipped("there is one GPU".to_owned());
/// assert_eq!((skipped.state(), skipped.reason()), ("skipped", Some("there is one GPU")));
/// assert_eq!(skipped.to_string(), "skipped: there is one GPU");
/// assert_eq!(MissingReason::NotInRun.reason(), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MissingReason {
    /// There is no such row.
    NotInRun,
    /// It has no meaning on the engine.
    NotApplicable(String),
    /// The run was interrupted before it was reached.
    Interrupted,
    /// It could have been measured and was not.
    Skipped(String),
    /// It was tried and failed.
    Failed(String),
    /// The rows contradict themselves.
    Inconsistent(String),
}

impl MissingReason {
    /// Ends the reason of what whoever ran it chose not to measure.
    pub const BY_CHOICE: &str = "left out by choice";

    /// The state in a word or two.
    pub fn state(&self) -> &'static str {
        self.parts().0
    }

    /// Whether whoever ran it chose not to measure it.
    pub fn is_by_choice(&self) -> bool {
        matches!(self, Self::Skipped(reason) if reason.ends_with(Self::BY_CHOICE))
    }

    /// The reason, where one is known.
    pub fn reason(&self) -> Option<&str> {
        self.parts().1
    }

    fn parts(&self) -> (&'static str, Option<&str>) {
        match self {
            MissingReason::NotInRun => ("not in this run", None),
            MissingReason::Interrupted => ("not reached: the run was interrupted", None),
            MissingReason::NotApplicable(reason) => ("not applicable", Some(reason)),
            MissingReason::Skipped(reason) => ("skipped", Some(reason)),
            MissingReason::Failed(reason) => ("failed", Some(reason)),
            MissingReason::Inconsistent(reason) => ("inconsistent", Some(reason)),
        }
    }
}

impl fmt::Display for MissingReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason() {
            Some(reason) => write!(f, "{}: {reason}", self.state()),
            None => f.write_str(self.state()),
        }
    }
}

/// A run that left no samples of a row which others measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lacking<'a> {
    /// The run's identifier.
    pub run: &'a str,
    /// Why it has none.
    pub reason: MissingReason,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_chosen_is_told_from_what_was_skipped() {
        let is_by_choice = |reason: &str| MissingReason::Skipped(reason.to_owned()).is_by_choice();
        assert!(is_by_choice("left out by choice"));
        assert!(is_by_choice("the rows that it is computed from were left out by choice"));
        assert!(!is_by_choice("this engine has only one device here"));
        assert!(!MissingReason::Failed("left out by choice".to_owned()).is_by_choice());
    }
}
