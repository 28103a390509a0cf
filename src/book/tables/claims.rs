//! Results as text for a console: claims with their verdicts, and the summary of an experiment.

use super::comparison::row_cell;
use crate::clean::terminal_line;
use crate::document::{Claim, Document};
use crate::in_order::grouped;
use crate::predicate::{CaseResult, ClaimVerdict, Judgement};
use crate::present::{Column, Role, Table, TableGroup, TableRow};
use crate::results::{MissingReason, Results, begins, in_words};

/// All claims of `documents`, judged by one file of results: for each its verdict, what it claims, where it stands, its tests
/// with what they came to, and why.
pub fn claims_text(documents: &[Document], results: &Results) -> String {
    let mut text = String::new();
    let (mut verdicts, mut of_figures) = (Vec::new(), Vec::new());
    for document in documents.iter().filter(|document| !document.claims.is_empty()) {
        text.push_str(&format!("{}: {}\n", document.id, document.title));
        for claim in &document.claims {
            let judgement = claim.judge(document, results);
            text.push_str(&lines(claim, document, &judgement));
            let counted = if claim.is_about_figures() { &mut of_figures } else { &mut verdicts };
            counted.push(judgement.verdict);
        }
        text.push('\n');
    }
    text.push_str(&format!("{}\n", verdict_totals(verdicts.iter())));
    if !of_figures.is_empty() {
        text.push_str(&format!("from the figures alone: {}\n", verdict_totals(of_figures.iter())));
    }
    text
}

fn lines(claim: &Claim, document: &Document, judgement: &Judgement) -> String {
    let mut text = format!("  {:<13} {}: {}\n", judgement.verdict.name().to_uppercase(), claim.id, claim.claim.trim());
    let mut line = |what: &str| text.push_str(&format!("{:16}{}\n", "", terminal_line(what)));
    let about = claim.on.map_or("figures", |on| on.words());
    let places = if claim.places.is_empty() { "of this book".to_owned() } else { claim.sources(document).join("; ") };
    line(&format!("{places}; {}, about {about}", claim.kind.name()));
    let mut judged = |judgement: &Judgement| {
        let system = if claim.is_about_figures() { "the figures" } else { &judgement.system };
        let sign = if matches!(judgement.verdict, ClaimVerdict::NotJudged(_)) { ':' } else { '.' };
        line(&format!("{system}: {}{sign} {}", judgement.verdict.name(), judgement.why));
        judgement.cases.iter().for_each(|case| line(&format!("  {}", case_text(case))));
        judgement.shown.iter().for_each(|case| line(&format!("  beside it: {}", case_text(case))));
    };
    judged(judgement);
    if let Some(beside) = &judgement.beside {
        judged(beside);
    }
    if document.source.is_some() && claim.places.is_empty() {
        line("No text says it.");
    }
    text
}

fn case_text(case: &CaseResult) -> String {
    let of = if case.case.is_empty() { String::new() } else { format!("[{}] ", case.case) };
    let Ok(found) = &case.found else {
        return format!("{of}{}: {}", case.quantity, case.missing().unwrap_or_default());
    };
    let rounds = if found.by_rounds { ", round by round" } else { "" };
    let filled = found.filled.as_ref().map(|filled| format!(" = {filled}{rounds}")).unwrap_or_default();
    let lies = case.lies().map(|lies| format!(": {lies}")).unwrap_or_default();
    let bounds = case.bounds().map(|bounds| format!("; to be {bounds}{lies}")).unwrap_or_default();
    format!("{of}{}{filled} = {}{bounds}", case.quantity, found.written())
}

/// How many verdicts there are of each kind, in words.
pub(crate) fn verdict_totals<'a>(verdicts: impl Iterator<Item = &'a ClaimVerdict>) -> String {
    const KINDS: [&str; 8] = [
        "confirmed",
        "refuted",
        "not seen here",
        "carries over",
        "differs here",
        "good to within",
        "inconclusive",
        "not judged",
    ];
    let names: Vec<String> = verdicts.map(ClaimVerdict::name).collect();
    let counted = KINDS.iter().map(|kind| (*kind, names.iter().filter(|name| name.starts_with(kind)).count()));
    let words = |(kind, count): (&str, usize)| match kind {
        "good to within" => format!("{kind} an error {count}"),
        kind => format!("{kind} {count}"),
    };
    counted.filter(|(_, count)| *count > 0).map(words).collect::<Vec<_>>().join(", ")
}

/// The rows of an experiment, as text: what it asks, then a table a heading.
pub fn summary(results: &Results, experiment: &str) -> String {
    let ran = results.runs.iter().flat_map(|run| &run.order).find(|ran| ran.name == experiment);
    let asks = ran.map(|ran| ran.summary.as_str()).unwrap_or_default();
    let mut text = format!("{experiment}: {asks}\n\n");
    let lookup = results.lookup();
    // What has no meaning in a system takes no line.
    let has_meaning = |metric: &Result<_, MissingReason>| !matches!(metric, Err(MissingReason::NotApplicable(_)));
    let own = lookup.metrics().filter(|(spec, metric)| begins(&spec.id, experiment) && has_meaning(metric));
    let rows = own.map(|(spec, metric)| {
        let row = TableRow::new(&spec.label, vec![row_cell(metric)]).of(&spec.id);
        (spec.group.as_str(), (&spec.parameters, row))
    });
    for (heading, rows) in grouped(rows) {
        let columns = vec![Column::new(Role::Label, ""), Column::new(Role::Measured, "measured")];
        let group = |(parameters, rows)| TableGroup { label: Some(in_words(parameters)), rows };
        let groups = grouped(rows).into_iter().map(group).collect();
        text.push_str(&Table { title: heading.to_owned(), columns, groups }.to_console());
        text.push('\n');
    }
    text
}
