//! Whether the rows of a table were sampled in turn: read from when their samples began.
//!
//! Rows of different groups are sampled one after the other. What drifts, such as a clock rate, affects the first alike and may look like a
//! difference between the second.

use crate::document::{DocumentTable, TableEntry};
use crate::results::{Outcome, Results, Row};

/// How the rows of a table were sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SamplingOrder {
    /// All in turn.
    InTurn,
    /// Those of each case in turn, the cases one after the other.
    ByCase,
    /// Some one after the other.
    Apart,
    /// The file does not say when.
    Unknown,
}

impl SamplingOrder {
    /// In a sentence, for what a machine is called.
    pub(crate) fn sentence(self, machine: &str) -> String {
        match self {
            SamplingOrder::InTurn => format!("On {machine}, the rows of this table were sampled in turn."),
            SamplingOrder::ByCase => format!(
                "On {machine}, the rows of each case were sampled in turn, and the cases one after the other: a drift \
                 between two cases may look like a difference."
            ),
            SamplingOrder::Apart => format!(
                "On {machine}, not all rows of this table were sampled in turn: a drift between two of them may look \
                 like a difference."
            ),
            SamplingOrder::Unknown => {
                format!("The results from {machine} do not say whether the rows of this table were sampled in turn.")
            }
        }
    }
}

/// How the measured rows of a table were sampled; `None` where there are fewer than two.
pub(crate) fn sampled(table: &DocumentTable, results: &Results) -> Option<SamplingOrder> {
    let (lookup, cases) = (results.lookup(), table.cases_in(std::slice::from_ref(results)));
    let mut rows: Vec<(&str, &Row)> = Vec::new();
    for entry in TableEntry::all(table, &cases) {
        let Ok(measured) = entry.measured(&lookup) else { continue };
        let spec = measured.metric.spec;
        let found = results.rows.iter().find(|row| row.spec.is(&spec.id, &spec.parameters));
        rows.extend(found.filter(|row| is_measured(row)).map(|row| (entry.case.label.as_str(), row)));
    }
    let pairs = || rows.iter().enumerate().flat_map(|(place, one)| rows[..place].iter().map(move |other| (one, other)));
    let mut found = pairs().next().map(|_| SamplingOrder::InTurn)?;
    for ((case, one), (other_case, other)) in pairs() {
        match together(one, other) {
            None => return Some(SamplingOrder::Unknown),
            Some(true) => {}
            Some(false) if case == other_case => found = SamplingOrder::Apart,
            Some(false) if found == SamplingOrder::InTurn => found = SamplingOrder::ByCase,
            Some(false) => {}
        }
    }
    Some(found)
}

fn is_measured(row: &Row) -> bool {
    row.series.iter().any(|series| matches!(series.outcome, Outcome::Measured { .. }))
}

/// Whether two rows were sampled in turn in every run that measured both; `None` where no run says when.
fn together(one: &Row, other: &Row) -> Option<bool> {
    let runs = one.series.iter().filter_map(|series| one.in_turn(other, &series.run));
    runs.reduce(|all, in_turn| all && in_turn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_is_told_of_the_machine_in_a_sentence_of_plain_words() {
        let all = [SamplingOrder::InTurn, SamplingOrder::ByCase, SamplingOrder::Apart, SamplingOrder::Unknown];
        for sentence in all.map(|order| order.sentence("an H200")) {
            assert!(sentence.starts_with("On an H200, ") || sentence.contains(" from an H200 "), "{sentence}");
        }
    }
}
