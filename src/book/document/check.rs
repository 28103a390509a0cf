//! What the shape of a document file cannot say: that names are unique and references lead somewhere.

use std::collections::BTreeSet;

use super::claim::quantities_of;
use super::{Case, Document, DocumentTable, Panel};
use crate::error::DocumentError;

/// Finds the first contradiction in a document.
pub(super) fn check(document: &Document, origin: &str, text: &str) -> Result<(), DocumentError> {
    let source = Source { origin, text };
    let mut tables = BTreeSet::new();
    let mut rows = BTreeSet::new();
    let figures = document.figures.iter().map(|figure| &figure.id);
    let mut ids = std::iter::once(&document.id).chain(document.tables.iter().map(|table| &table.id)).chain(figures);
    if let Some(id) = ids.find(|id| !is_name(id)) {
        return Err(source.invalid(id, format!("`{id}` is no identifier: lower-case letters, digits and hyphens")));
    }
    for table in &document.tables {
        if !tables.insert(table.id.as_str()) {
            return Err(source.invalid(&table.id, format!("table `{}` is named twice", table.id)));
        }
        for row in &table.rows {
            if !rows.insert(row.id.as_str()) {
                return Err(source.invalid(&row.id, format!("row `{}` is named twice", row.id)));
            }
            if document.source.is_some() && !begins(&row.id, &document.id) {
                let message =
                    format!("row `{}` does not begin with the document's identifier `{}`", row.id, document.id);
                return Err(source.invalid(&row.id, message));
            }
        }
        check_cases(table, &source)?;
    }
    check_figures(document, &source)?;
    check_claims(document, &source)?;
    check_sentences(document, &source)
}

/// Whether a row's identifier begins with that of a document.
fn begins(row: &str, document: &str) -> bool {
    row.strip_prefix(document).is_some_and(|rest| rest.starts_with('.'))
}

/// Every value in a sentence is one that there is.
fn check_sentences(document: &Document, source: &Source<'_>) -> Result<(), DocumentError> {
    let answer = document.answer.iter().flat_map(|sentence| [&sentence.then, &sentence.otherwise, &sentence.unclear]);
    let exercises = document.exercises.iter().flat_map(|exercise| [&exercise.task, &exercise.answer]);
    let texts = answer.chain(exercises).chain(document.headline.as_ref().map(|headline| &headline.value));
    let conditions = document.answer.iter().map(|sentence| quantities_of(&sentence.condition, document).map(drop));
    let mut checked = conditions.chain(texts.map(|text| text.check(document)));
    checked.try_for_each(|checked| checked.map_err(|message| source.invalid(&document.id, message)))
}

/// Whether `id` can be the name of a file and an anchor.
fn is_name(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// Every claim has a name of its own, and its predicate names only what there is.
fn check_claims(document: &Document, source: &Source<'_>) -> Result<(), DocumentError> {
    let mut claims = BTreeSet::new();
    for claim in &document.claims {
        if !is_name(&claim.id) || !claims.insert(claim.id.as_str()) {
            return Err(source.invalid(&claim.id, format!("claim `{}` is named twice, or is no identifier", claim.id)));
        }
        let checked = claim.quantities(document);
        checked.map_err(|message| source.invalid(&claim.id, format!("claim `{}`: {message}", claim.id)))?;
    }
    Ok(())
}

fn check_cases(table: &DocumentTable, source: &Source<'_>) -> Result<(), DocumentError> {
    if table.each.is_some() && !table.cases.is_empty() {
        let message =
            format!("table `{}` has `cases` and `each`: the cases are named, or taken from the runs", table.id);
        return Err(source.invalid(&table.id, message));
    }
    let mut known: BTreeSet<&str> = table.cases.iter().map(|case| case.label.as_str()).collect();
    if table.cases.is_empty() && table.each.is_none() {
        known.insert(Case::ALL);
    }
    for row in &table.rows {
        let relative = row.relative.iter().flat_map(|relative| relative.published.keys());
        if let Some(case) = row.published.keys().chain(relative).find(|case| !known.contains(case.as_str())) {
            let known: Vec<&str> = known.into_iter().collect();
            let message = match &table.each {
                Some(each) => format!("row `{}` has a figure for `{case}`; each value of `{each}` is a case", row.id),
                None => format!("row `{}` has a figure for `{case}`; its cases are {}", row.id, known.join(", ")),
            };
            return Err(source.invalid(&row.id, message));
        }
        if let Some(relative) = row.relative.as_ref().filter(|relative| table.row(&relative.to).is_none()) {
            let message = format!("row `{}` is relative to `{}`, which its table does not hold", row.id, relative.to);
            return Err(source.invalid(&row.id, message));
        }
    }
    Ok(())
}

fn check_figures(document: &Document, source: &Source<'_>) -> Result<(), DocumentError> {
    for figure in &document.figures {
        for panel in &figure.panels {
            if let Some(scene) = &panel.timeline {
                if panel.table.is_empty() && panel.bars.is_empty() && panel.lines.is_none() {
                    continue;
                }
                let message = format!("figure `{}` draws the timeline `{scene}` and something else", figure.id);
                return Err(source.invalid(&figure.id, message));
            }
            let Some(table) = document.table(&panel.table) else {
                let message = format!("figure `{}` draws table `{}`, which there is not", figure.id, panel.table);
                return Err(source.invalid(&figure.id, message));
            };
            check_panel(panel, table)
                .map_err(|what| source.invalid(&figure.id, format!("figure `{}` {what}", figure.id)))?;
        }
    }
    Ok(())
}

/// Finds what is wrong with a panel that draws from `table`.
fn check_panel(panel: &Panel, table: &DocumentTable) -> Result<(), String> {
    let series = panel.lines.iter().flat_map(|lines| &lines.series);
    let predicted = series.clone().filter_map(|series| series.predicts.as_ref());
    if let Some(other) = predicted.clone().find(|id| !series.clone().any(|series| series.id == **id)) {
        return Err(format!("predicts `{other}`, which it does not draw"));
    }
    let drawn: Vec<&String> = panel.bars.iter().chain(series.map(|series| &series.id)).collect();
    if drawn.is_empty() || panel.bars.is_empty() == panel.lines.is_none() {
        return Err(format!("draws table `{}` neither as bars nor as lines, or as both", table.id));
    }
    let mut units = Vec::new();
    for id in drawn {
        let row = table.row(id);
        units.push(row.ok_or_else(|| format!("draws `{id}`, which table `{}` does not hold", table.id))?.unit);
    }
    if units.iter().any(|unit| *unit != units[0]) {
        return Err(format!("draws rows of table `{}` whose units differ on one axis", table.id));
    }
    Ok(())
}

/// The text that a document was read from, to find the line of a name in it.
struct Source<'a> {
    origin: &'a str,
    text: &'a str,
}

impl Source<'_> {
    /// An error at the last line that gives `id` as an identifier: of two of one name, the second is the wrong one.
    fn invalid(&self, id: &str, message: String) -> DocumentError {
        let place = self.text.lines().enumerate().filter_map(|(index, line)| {
            let at = line.find("id:")?;
            let value = line[at + 3..].trim_start();
            let rest = value.trim_start_matches(['"', '\'']).strip_prefix(id)?;
            let ends = rest.chars().next().is_none_or(|next| !(next.is_alphanumeric() || matches!(next, '.' | '-')));
            ends.then_some((index + 1, line.len() - value.len() + 1))
        });
        let (line, column) = place.last().unwrap_or((0, 0));
        DocumentError::Invalid { origin: self.origin.to_owned(), line, column, message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "\
id: d
order: 1
title: T
source: d.txt
question: Q
method: M
tables:
  - id: t
    title: T
    caption: C
    cases: [{label: fp16, select: {dtype: fp16}}]
    rows:
      - {id: d.a, label: a, published: {fp16: 14.0e-6}}
";

    fn error(tail: &str) -> String {
        Document::parse("d.yaml", &format!("{HEAD}{tail}")).unwrap_err().to_string()
    }

    #[test]
    fn a_whole_document_is_read() {
        let document = Document::parse("d.yaml", HEAD).unwrap();
        assert_eq!(document.tables[0].rows[0].published["fp16"].as_ref().unwrap().digits, 3);
    }

    #[test]
    fn a_row_named_twice_is_reported_at_its_second_line() {
        assert_eq!(error("      - {id: d.a, label: b}\n"), "d.yaml:14:14: row `d.a` is named twice");
    }

    #[test]
    fn a_figure_for_an_unknown_case_names_the_known_ones() {
        let message = error("      - {id: d.b, label: b, published: {fp61: 1}}\n");
        assert_eq!(message, "d.yaml:14:14: row `d.b` has a figure for `fp61`; its cases are fp16");
    }

    #[test]
    fn a_claim_that_names_no_measurement_is_reported_with_its_line() {
        let tail = "claims:\n  - {id: c-x, claim: C, holds: small.delta > 0, because: B}\n";
        let message = error(tail);
        assert!(message.starts_with("d.yaml:") && message.contains("claim `c-x`"), "{message}");
        assert!(message.contains("`small.delta` names no measurement"), "{message}");
    }

    #[test]
    fn an_unknown_field_is_reported_with_its_line() {
        let message = error("      - {id: d.b, label: b, publisched: {}}\n");
        assert!(message.starts_with("d.yaml:14:") && message.contains("publisched"), "{message}");
    }

    #[test]
    fn an_identifier_that_could_leave_its_folder_is_refused() {
        let text = HEAD.replacen("id: d\n", "id: ../d\n", 1);
        let message = Document::parse("d.yaml", &text).unwrap_err().to_string();
        assert!(message.starts_with("d.yaml:1:5: `../d` is no identifier"), "{message}");
    }

    #[test]
    fn a_plot_of_a_row_that_there_is_not_is_refused() {
        let tail = "figures: [{id: f, title: F, caption: C, panels: [{table: t, bars: [d.z]}]}]\n";
        assert!(error(tail).contains("figure `f` draws `d.z`, which table `t` does not hold"));
    }
    #[test]
    fn rows_of_different_units_share_no_axis() {
        let tail = "      - {id: d.b, label: b, unit: ratio}\n\
                    figures: [{id: f, title: F, caption: C, panels: [{table: t, bars: [d.a, d.b]}]}]\n";
        assert!(error(tail).contains("figure `f` draws rows of table `t` whose units differ"));
    }

    #[test]
    fn a_panel_with_a_timeline_holds_nothing_else() {
        let figure = |panel: &str| format!("figures: [{{id: f, title: F, caption: C, panels: [{{{panel}}}]}}]\n");
        let message = error(&figure("timeline: d.a, table: t, bars: [d.a]"));
        assert!(message.contains("the timeline `d.a` and something else"), "{message}");
    }

    #[test]
    fn a_panel_is_bars_or_lines() {
        let tail = "figures: [{id: f, title: F, caption: C, panels: [{table: t}]}]\n";
        assert!(error(tail).contains("neither as bars nor as lines"));
    }

    #[test]
    fn cases_are_named_or_taken_from_the_runs() {
        let text = HEAD.replace("    cases:", "    each: size\n    cases:");
        let message = Document::parse("d.yaml", &text).unwrap_err().to_string();
        assert!(message.contains("table `t` has `cases` and `each`"), "{message}");
    }
}
