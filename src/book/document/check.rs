//! What the shape of a document file cannot say: that names are unique, and that every name stands for something.

use std::collections::BTreeSet;

use super::super::predicate::{UnknownName, operands_of};
use super::{Document, DocumentTable, Panel, TableCase};
use crate::error::FileError;
use crate::results::{Parameters, nearest};
use crate::units::Unit;

/// Finds the first contradiction in a document.
pub(super) fn check(document: &Document, origin: &str, text: &str) -> Result<(), FileError> {
    let source = Source { origin, text };
    let mut tables = BTreeSet::new();
    let mut rows = BTreeSet::new();
    let figures = document.figures.iter().map(|figure| &figure.id);
    let mut ids = std::iter::once(&document.id).chain(document.tables.iter().map(|table| &table.id)).chain(figures);
    if let Some(id) = ids.find(|id| !is_name(id)) {
        return Err(source.at_id(id, format!("`{id}` is no identifier: lower-case letters, digits and hyphens")));
    }
    for table in &document.tables {
        if !tables.insert(table.id.as_str()) {
            return Err(source.at_id(&table.id, format!("table `{}` is named twice", table.id)));
        }
        for row in &table.rows {
            if !rows.insert(row.id.as_str()) {
                return Err(source.at_id(&row.id, format!("row `{}` is named twice", row.id)));
            }
            if document.names.rows.get(&row.id).is_none() {
                let hint = nearest(&row.id, document.names.rows.ids());
                return Err(source.at(&[&row.id], format!("no experiment has a row `{}`", row.id), hint));
            }
        }
        check_cases(table, &source)?;
        check_parameters(document, table, &source)?;
    }
    check_figures(document, &source)?;
    check_claims(document, &source)?;
    check_sentences(document, &source)
}

/// Every parameter that a table names is one that its rows have, with a value that they can have.
fn check_parameters(document: &Document, table: &DocumentTable, source: &Source<'_>) -> Result<(), FileError> {
    let ids: Vec<&str> = table.rows.iter().map(|row| row.id.as_str()).collect();
    let known = document.names.rows.parameters(&ids);
    let unknown = |name: &str| {
        let hint = nearest(name, known.keys().copied());
        source.at(&[&table.id, name], format!("no row of table `{}` has a parameter `{name}`", table.id), hint)
    };
    let own = table.rows.iter().flat_map(|row| row.published_with.keys());
    let cases = table.cases.iter().flat_map(|case| case.select.keys());
    let named = table.published_with.keys().chain(own).chain(cases).chain(&table.each);
    if let Some(name) = named.into_iter().find(|name| !known.contains_key(name.as_str())) {
        return Err(unknown(name));
    }
    for case in &table.cases {
        let fits = |id: &&str| document.names.rows.refuse(id, &case.select).is_none();
        if !ids.iter().any(fits)
            && let Some(refused) = ids.iter().find_map(|id| document.names.rows.refuse(id, &case.select))
        {
            let value = case.select.values().map(ToString::to_string).next().unwrap_or_default();
            return Err(source.at(&[&table.id, &value], refused, String::new()));
        }
    }
    Ok(())
}

/// Every value in a sentence is one that there is.
fn check_sentences(document: &Document, source: &Source<'_>) -> Result<(), FileError> {
    let answer = document.answer.iter().flat_map(|sentence| [&sentence.then, &sentence.otherwise, &sentence.unclear]);
    let exercises = document.exercises.iter().flat_map(|exercise| [&exercise.task, &exercise.answer]);
    let texts = answer.chain(exercises).chain(document.headline.as_ref().map(|headline| &headline.value));
    let conditions = document.answer.iter().map(|sentence| operands_of(&sentence.condition, document).map(drop));
    let mut checked = conditions.chain(texts.map(|text| text.check(document)));
    checked.try_for_each(|checked| checked.map_err(|unknown| source.unknown(&[], "", unknown)))
}

/// Whether `id` can be the name of a file and an anchor.
fn is_name(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// Every claim has a name of its own, and its predicate names only what there is.
fn check_claims(document: &Document, source: &Source<'_>) -> Result<(), FileError> {
    let mut claims = BTreeSet::new();
    for claim in &document.claims {
        if !is_name(&claim.id) || !claims.insert(claim.id.as_str()) {
            return Err(source.at_id(&claim.id, format!("claim `{}` is named twice, or is no identifier", claim.id)));
        }
        let checked = operands_of(&claim.predicate, document);
        checked.map_err(|unknown| source.unknown(&[&claim.id], &format!("claim `{}`: ", claim.id), unknown))?;
    }
    Ok(())
}

fn check_cases(table: &DocumentTable, source: &Source<'_>) -> Result<(), FileError> {
    if table.each.is_some() && !table.cases.is_empty() {
        let message =
            format!("table `{}` has `cases` and `each`: the cases are named, or taken from the results", table.id);
        return Err(source.at_id(&table.id, message));
    }
    let mut known: BTreeSet<&str> = table.cases.iter().map(|case| case.label.as_str()).collect();
    if table.cases.is_empty() && table.each.is_none() {
        known.insert(TableCase::ALL);
    }
    for row in &table.rows {
        let relative = row.relative.iter().flat_map(|relative| relative.published.keys());
        if let Some(case) = row.published.keys().chain(relative).find(|case| !known.contains(case.as_str())) {
            let known: Vec<&str> = known.into_iter().collect();
            let message = match &table.each {
                Some(each) => format!("row `{}` has a figure for `{case}`; each value of `{each}` is a case", row.id),
                None => format!("row `{}` has a figure for `{case}`; its cases are {}", row.id, known.join(", ")),
            };
            return Err(source.at(&[&row.id, case], message, String::new()));
        }
        if let Some(relative) = row.relative.as_ref().filter(|relative| table.row(&relative.to).is_none()) {
            let message = format!("row `{}` is relative to `{}`, which its table does not hold", row.id, relative.to);
            return Err(source.at(&[&row.id, &relative.to], message, String::new()));
        }
    }
    Ok(())
}

fn check_figures(document: &Document, source: &Source<'_>) -> Result<(), FileError> {
    for figure in &document.figures {
        for panel in &figure.panels {
            check_panel(document, panel).map_err(|(name, what)| {
                source.at(&[&figure.id, &name], format!("figure `{}` {what}", figure.id), String::new())
            })?;
        }
    }
    Ok(())
}

/// Finds what is wrong with a panel: the name that is meant, and what is wrong with it.
fn check_panel(document: &Document, panel: &Panel) -> Result<(), (String, String)> {
    let wrong = |name: &str, what: String| Err((name.to_owned(), what));
    if let Some(scenario) = &panel.timeline {
        if !panel.table.is_empty() || !panel.bars.is_empty() || panel.lines.is_some() {
            return wrong(scenario, format!("draws the timeline `{scenario}` and something else"));
        }
        return match document.names.rows.get(scenario) {
            Some(_) => Ok(()),
            None => {
                let hint = nearest(scenario, document.names.rows.ids());
                wrong(scenario, format!("draws the timeline of a row `{scenario}`, which no experiment has{hint}"))
            }
        };
    }
    let Some(table) = document.table(&panel.table) else {
        let hint = nearest(&panel.table, document.tables.iter().map(|table| table.id.as_str()));
        return wrong(&panel.table, format!("draws table `{}`, which there is not{hint}", panel.table));
    };
    let series = panel.lines.iter().flat_map(|lines| &lines.series);
    let predicted = series.clone().filter_map(|series| series.predicts.as_ref());
    if let Some(other) = predicted.clone().find(|id| !series.clone().any(|series| series.id == **id)) {
        return wrong(other, format!("predicts `{other}`, which it does not draw"));
    }
    let drawn: Vec<(&String, Parameters)> = panel
        .bars
        .iter()
        .map(|id| (id, Parameters::new()))
        .chain(series.map(|series| (&series.id, series.select.clone())))
        .collect();
    if drawn.is_empty() || panel.bars.is_empty() == panel.lines.is_none() {
        return wrong(&table.id, format!("draws table `{}` neither as bars nor as lines, or as both", table.id));
    }
    let mut units: Vec<Unit> = Vec::new();
    for (id, select) in &drawn {
        let Some(row) = table.row(id) else {
            let hint = nearest(id, table.rows.iter().map(|row| row.id.as_str()));
            return wrong(id, format!("draws `{id}`, which table `{}` does not hold{hint}", table.id));
        };
        if let Some(refused) = document.names.rows.refuse(id, select) {
            return wrong(id, format!("selects what is not there: {refused}"));
        }
        units.push(row.unit);
    }
    if let Some(lines) = &panel.lines {
        let ids: Vec<&str> = drawn.iter().map(|(id, _)| id.as_str()).collect();
        let known = document.names.rows.parameters(&ids);
        if !known.contains_key(lines.x.as_str()) {
            let hint = nearest(&lines.x, known.keys().copied());
            return wrong(&lines.x, format!("draws lines over `{}`, which is no parameter of its rows{hint}", lines.x));
        }
    }
    if units.iter().any(|unit| *unit != units[0]) {
        return wrong(&table.id, format!("draws rows of table `{}` whose units differ on one axis", table.id));
    }
    Ok(())
}

/// The text that a document was read from, to find the place of a name in it.
struct Source<'a> {
    origin: &'a str,
    text: &'a str,
}

impl Source<'_> {
    /// An error at the last of `names`, each looked for behind the one before it.
    fn at(&self, names: &[&str], message: String, hint: String) -> FileError {
        let mut at = 0;
        for name in names {
            at = self.find(name, at).unwrap_or(at);
        }
        self.error(at, message, hint)
    }

    /// An error at the last place that gives `id` as an identifier: of two of one name, the second is the wrong one.
    fn at_id(&self, id: &str, message: String) -> FileError {
        let mut place = None;
        let mut from = 0;
        while let Some(found) = self.find(id, from) {
            if self.text[..found].trim_end_matches(['"', '\'', ' ']).ends_with("id:") {
                place = Some(found);
            }
            from = found + id.len().max(1);
        }
        self.error(place.unwrap_or(0), message, String::new())
    }

    /// An error at a name that stands for nothing, behind `names`.
    fn unknown(&self, names: &[&str], before: &str, unknown: UnknownName) -> FileError {
        let names: Vec<&str> = names.iter().copied().chain(unknown.name.as_deref()).collect();
        self.at(&names, format!("{before}{}", unknown.message), unknown.hint)
    }

    /// Where `name` stands as a whole word, from `from` on.
    fn find(&self, name: &str, from: usize) -> Option<usize> {
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_');
        let whole = |at: &usize| {
            let before = self.text[..*at].chars().next_back();
            let after = self.text[at + name.len()..].chars().next();
            !before.is_some_and(is_part) && !after.is_some_and(is_part)
        };
        if name.is_empty() {
            return None;
        }
        self.text.get(from..)?.match_indices(name).map(|(at, _)| at + from).find(whole)
    }

    fn error(&self, at: usize, message: String, hint: String) -> FileError {
        let before = &self.text[..at];
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        FileError::Invalid { origin: self.origin.to_owned(), line, column, message, hint }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::Names;
    use super::*;
    use crate::measure::Clock;
    use crate::results::{Catalog, MetricSpec, Parameter, Provenance};

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
      - {id: d.a, published: {fp16: 14.0e-6}}
";

    /// Rows `d.a` and `d.b`, of times, and `d.share`, of shares, all of one element type and one size.
    fn names() -> Names {
        let row = |id: &str, unit| {
            let pairs = [("dtype", Parameter::from("fp16")), ("size", Parameter::from(8_usize))];
            let parameters = pairs.map(|(name, value)| (name.to_owned(), value)).into();
            let (id, group, label) = (id.to_owned(), "G".to_owned(), "Label of the row".to_owned());
            let provenance = Provenance::measured(Clock::Host);
            MetricSpec { id, group, label, unit, parameters, provenance, work: None, floor: None }
        };
        let rows = [row("d.a", Unit::Seconds), row("d.b", Unit::Seconds), row("d.share", Unit::Ratio)];
        Names { rows: Arc::new(Catalog::new(rows)), hardware: Arc::default() }
    }

    fn parse(text: &str) -> Result<Document, FileError> {
        Document::parse("d.yaml", text, &names())
    }

    fn error(tail: &str) -> String {
        parse(&format!("{HEAD}{tail}")).unwrap_err().to_string()
    }

    #[test]
    fn a_whole_document_is_read() {
        let row = &parse(HEAD).unwrap().tables[0].rows[0];
        assert_eq!(row.published["fp16"].as_ref().unwrap().digits, 3);
        assert_eq!((row.label.as_str(), row.unit), ("Label of the row", Unit::Seconds));
        let own = parse(&HEAD.replace("id: d.a,", "id: d.a, label: own word,")).unwrap();
        assert_eq!(own.tables[0].rows[0].label, "own word");
    }

    #[test]
    fn a_row_named_twice_is_reported_at_its_second_line() {
        assert_eq!(error("      - {id: d.a}\n"), "d.yaml:14:14: row `d.a` is named twice");
    }

    #[test]
    fn a_figure_for_an_unknown_case_names_the_known_ones() {
        let message = error("      - {id: d.b, published: {fp61: 1}}\n");
        assert_eq!(message, "d.yaml:14:31: row `d.b` has a figure for `fp61`; its cases are fp16");
    }

    #[test]
    fn a_claim_that_names_no_measurement_is_reported_with_its_line() {
        let tail = "claims:\n  - {id: c-x, claim: C, predicate: fp61.a > 0, rationale: B}\n";
        let message = error(tail);
        assert_eq!(message, "d.yaml:15:36: claim `c-x`: `fp61.a` names no measurement; did you mean `fp16`?");
    }

    #[test]
    fn an_unknown_field_is_reported_with_its_line() {
        let message = error("      - {id: d.b, publisched: {}}\n");
        assert!(message.starts_with("d.yaml:14:") && message.contains("publisched"), "{message}");
    }

    #[test]
    fn an_identifier_that_could_leave_its_folder_is_refused() {
        let text = HEAD.replacen("id: d\n", "id: ../d\n", 1);
        let message = parse(&text).unwrap_err().to_string();
        assert!(message.starts_with("d.yaml:1:5: `../d` is no identifier"), "{message}");
    }

    #[test]
    fn a_plot_of_a_row_that_there_is_not_is_refused() {
        let tail = "figures: [{id: f, title: F, caption: C, panels: [{table: t, bars: [d.z]}]}]\n";
        assert!(error(tail).contains("figure `f` draws `d.z`, which table `t` does not hold"));
    }
    #[test]
    fn rows_of_different_units_share_no_axis() {
        let tail = "      - {id: d.share}\n\
                    figures: [{id: f, title: F, caption: C, panels: [{table: t, bars: [d.a, d.share]}]}]\n";
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
        let message = parse(&text).unwrap_err().to_string();
        assert!(message.contains("table `t` has `cases` and `each`"), "{message}");
    }

    #[test]
    fn a_misspelt_row_unit_or_parameter_has_its_place_and_the_nearest_name() {
        let row = parse(&HEAD.replace("d.a,", "d.aa,")).unwrap_err().to_string();
        assert_eq!(row, "d.yaml:13:14: no experiment has a row `d.aa`; did you mean `d.a`?");
        let unit = parse(&HEAD.replace("id: d.a,", "id: d.a, unit: seconds,")).unwrap_err().to_string();
        assert!(unit.starts_with("d.yaml:13:") && unit.contains("unknown field `unit`"), "{unit}");
        let parameter = parse(&HEAD.replace("{dtype: fp16}", "{dtyp: fp16}")).unwrap_err().to_string();
        assert_eq!(parameter, "d.yaml:11:36: no row of table `t` has a parameter `dtyp`; did you mean `dtype`?");
        let value = parse(&HEAD.replace("{dtype: fp16}", "{dtype: fp17}")).unwrap_err().to_string();
        assert!(value.starts_with("d.yaml:11:43:") && value.ends_with("did you mean `fp16`?"), "{value}");
    }
}
