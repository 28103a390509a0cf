//! Claims and their verdicts, as text for a console and as a table for a page.

use super::comparison::machine_labels;
use crate::book::document::{Claim, Document};
use crate::book::predicate::Judgement;
use crate::measure::Verdict;
use crate::present::{Cell, Column, Group, Missing, Role, Table, TableRow};
use crate::results::Results;

/// All claims of `documents`, judged by one file of results: for each its verdict, what it claims, its predicate and the numbers that
/// decided it.
pub fn claims_text(documents: &[Document], results: &Results) -> String {
    let mut text = String::new();
    let mut counts: Vec<(&'static str, usize)> = Vec::new();
    for document in documents.iter().filter(|document| !document.claims.is_empty()) {
        text.push_str(&format!("{}: {}\n", document.id, document.title));
        for claim in &document.claims {
            let judgement = claim.judge(document, results);
            let name = judgement.verdict.name();
            match counts.iter_mut().find(|(known, _)| *known == name) {
                Some((_, count)) => *count += 1,
                None => counts.push((name, 1)),
            }
            text.push_str(&format!("  {:<12} {}: {}\n", upper(&judgement.verdict), claim.id, claim.claim.trim()));
            if let Verdict::NotTestable(reason) = &judgement.verdict {
                text.push_str(&format!("{:15}{reason}\n", ""));
            }
            text.push_str(&format!("{:15}{}\n", "", claim.predicate.trim()));
            if let Some(calculation) = &judgement.calculation {
                text.push_str(&format!("{:15}{calculation}\n", ""));
            }
            for (name, value) in &judgement.evidence {
                text.push_str(&format!("{:17}{name} = {value}\n", ""));
            }
            if let Some(beside) = &judgement.beside {
                text.push_str(&format!("{:15}{} here: {}\n", "", beside.system, beside.verdict));
            }
        }
        text.push('\n');
    }
    let counts: Vec<String> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    text.push_str(&format!("{}\n", counts.join(", ")));
    text
}

fn upper(verdict: &Verdict) -> String {
    match verdict {
        Verdict::NotTestable(_) => "NOT TESTABLE".to_owned(),
        other => other.name().to_uppercase(),
    }
}

/// All claims of documents with their verdicts, a column a machine. Beside each document stands what [`Document::judged`] gives.
pub fn claims_table(judged: &[(&Document, Vec<Vec<Judgement>>)], results: &[Results]) -> Table {
    let mut columns = vec![Column::new(Role::Label, "claim")];
    columns.extend(machine_labels(results).into_iter().map(|label| Column::new(Role::Fact, "verdict").of(label)));
    let row = |(claim, judgements): (&Claim, &Vec<Judgement>)| {
        let cells = judgements.iter().map(|judgement| verdict_cell(&judgement.verdict)).collect();
        TableRow { id: Some(claim.id.clone()), label: claim.claim.trim().to_owned(), cells }
    };
    let group = |(document, judgements): &(&Document, Vec<Vec<Judgement>>)| Group {
        label: Some(document.title.clone()),
        rows: document.claims.iter().zip(judgements).map(row).collect(),
    };
    let groups = judged.iter().filter(|(document, _)| !document.claims.is_empty()).map(group).collect();
    Table { title: "Verdicts by machine".to_owned(), columns, groups }
}

fn verdict_cell(verdict: &Verdict) -> Cell {
    match verdict {
        Verdict::NotTestable(reason) => {
            Cell::Missing(Missing { state: "not testable here".to_owned(), reason: Some(reason.clone()) })
        }
        verdict => Cell::Text(verdict.name().to_owned()),
    }
}
