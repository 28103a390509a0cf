//! Whether the rows of a table were sampled in turn: read from when their samples began.
//!
//! Rows of different groups are sampled one after the other. What drifts, such as a clock rate, affects the first alike and may look like a
//! difference between the second.

use crate::document::{DocumentTable, TableEntry};
use crate::results::{Outcome, Results, Row};

/// How the measured rows of a table were sampled, in a sentence for what the machine is called; `None` where there are fewer
/// than two.
pub(crate) fn sampled(table: &DocumentTable, results: &Results, machine: &str) -> Option<String> {
    let (lookup, cases) = (results.lookup(), table.cases_in(std::slice::from_ref(results)));
    let mut rows: Vec<(&str, &Row)> = Vec::new();
    for entry in TableEntry::all(table, &cases) {
        let Ok(measured) = entry.measured(&lookup) else { continue };
        let spec = measured.metric.spec;
        let found = results.rows.iter().find(|row| row.spec.is(&spec.id, &spec.parameters));
        rows.extend(found.filter(|row| is_measured(row)).map(|row| (entry.case.label.as_str(), row)));
    }
    let pairs = || rows.iter().enumerate().flat_map(|(place, one)| rows[..place].iter().map(move |other| (one, other)));
    pairs().next()?;
    let apart = |of_one_case: bool| {
        let of_case = move |((case, _), (other, _)): &(&(&str, &Row), &(&str, &Row))| (case == other) == of_one_case;
        pairs().filter(of_case).any(|((_, one), (_, other))| together(one, other) == Some(false))
    };
    Some(if pairs().any(|((_, one), (_, other))| together(one, other).is_none()) {
        format!("The results from {machine} do not say whether the rows of this table were sampled in turn.")
    } else if apart(true) {
        format!(
            "On {machine}, not all rows of this table were sampled in turn: a drift between two of them may look like a \
             difference."
        )
    } else if apart(false) {
        format!(
            "On {machine}, the rows of each case were sampled in turn, and the cases one after the other: a drift between \
             two cases may look like a difference."
        )
    } else {
        format!("On {machine}, the rows of this table were sampled in turn.")
    })
}

fn is_measured(row: &Row) -> bool {
    row.series.iter().any(|series| matches!(series.outcome, Outcome::Measured { .. }))
}

/// Whether two rows were sampled in turn in every run that measured both; `None` where no run says when.
fn together(one: &Row, other: &Row) -> Option<bool> {
    let runs = one.series.iter().filter_map(|series| one.in_turn(other, &series.run));
    runs.reduce(|all, in_turn| all && in_turn)
}
