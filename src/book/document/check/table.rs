//! Tables: every row is one that there is, with parameters and figures that are its own, and what a table or a picture shows of a
//! row is one measurement of each system.

use std::collections::BTreeSet;

use super::super::{Document, DocumentRow, DocumentTable, Lines, TableCase};
use super::Check;
use super::at::At;
use crate::predicate::twins;
use crate::results::{MetricSpec, Parameters, holds};

/// Finds the first contradiction in the tables of a document.
pub(super) fn check(top: &At<'_>) -> Check {
    let mut rows = BTreeSet::new();
    for (at, table) in top.each("tables", &top.document.tables) {
        if table.rows.is_empty() {
            return at.key("rows").refuse(format!("table `{}` has no rows", table.id));
        }
        for (at, row) in at.each("rows", &table.rows) {
            if !rows.insert(&row.id) {
                return at.key("id").refuse(format!("row `{}` is named twice", row.id));
            }
            check_row(&at, table, row)?;
        }
        check_cases(&at, table)?;
        if let Some((place, several)) = in_table(at.document, table) {
            let hint = "; name a parameter, by `select`, `cases`, `each` or `published_with`".to_owned();
            return at.key("rows").item(place).key("id").refuse_for(several, hint);
        }
    }
    Ok(())
}

/// A row is one that there is, set against a row of its table, and with parameters of its own.
fn check_row(at: &At<'_>, table: &DocumentTable, row: &DocumentRow) -> Check {
    let id = row.id.as_str();
    at.key("id").known(id, at.document.names.rows.ids(), format!("no experiment has a row `{id}`"))?;
    for (key, parameters) in [("published_with", &row.published_with), ("select", &row.select)] {
        at.key(key).parameters(&[id], parameters, &format!("row `{id}` does not have"))?;
    }
    if let Some(relative) = &row.relative {
        let what = format!("row `{id}` is relative to `{}`, which its table does not hold", relative.to);
        at.key("relative").key("to").known(&relative.to, table.rows.iter().map(|row| row.id.as_str()), what)?;
    }
    check_published(at, table, row)
}

/// Every figure of a row is one for a case of its table.
fn check_published(at: &At<'_>, table: &DocumentTable, row: &DocumentRow) -> Check {
    let mut known: BTreeSet<&str> = table.cases.iter().map(|case| case.label.as_str()).collect();
    if table.cases.is_empty() && table.each.is_none() {
        known.insert(TableCase::ALL);
    }
    let known = Vec::from_iter(known);
    let cases = match &table.each {
        Some(each) => format!("each value of `{each}` is a case"),
        None => format!("its cases are {}", known.join(", ")),
    };
    let relative = row.relative.iter().map(|relative| (at.key("relative").key("published"), &relative.published));
    for (at, published) in relative.chain([(at.key("published"), &row.published)]) {
        for case in published.keys() {
            let what = format!("row `{}` has a figure for `{case}`; {cases}", row.id);
            at.name(case).known(case, known.iter().copied(), what)?;
        }
    }
    Ok(())
}

/// The cases of a table, and the parameters with which the document measured: each is one that its rows have.
fn check_cases(at: &At<'_>, table: &DocumentTable) -> Check {
    let cases = at.key("cases");
    let (labels, selects): (Vec<_>, Vec<_>) = table.cases.iter().map(|case| (&case.label, &case.select)).unzip();
    cases.once(&labels, Some("label"), |at| format!("table `{}` has two cases `{}`", table.id, labels[at]))?;
    let selects_again = |at: usize| format!("the case `{}` selects what another one selects", labels[at]);
    cases.once(&selects, Some("select"), selects_again)?;
    let ids: Vec<&str> = table.rows.iter().map(|row| row.id.as_str()).collect();
    let whose = format!("no row of table `{}` has", table.id);
    at.key("published_with").parameters(&ids, &table.published_with, &whose)?;
    let selects = || at.each("cases", &table.cases).map(|(at, case)| (at.key("select"), case));
    selects().try_for_each(|(at, case)| at.parameters(&ids, &case.select, &whose))?;
    for (at, case) in selects() {
        if !ids.iter().any(|id| at.document.names.rows.unknown_parameter(&[id], &case.select).is_none()) {
            return at.refuse(format!("{whose} all parameters of the case `{}`", case.label));
        }
    }
    let cases = Some(format!("table `{}`", table.id)).filter(|_| !table.cases.is_empty());
    at.each_value(&ids, table.each.as_deref(), cases.as_deref(), &whose)
}

/// A place in a list, and which measurements there are to choose from.
pub(super) type Several = (usize, String);

/// The first row of a table that fits several measurements in one of its cases.
fn in_table(document: &Document, table: &DocumentTable) -> Option<Several> {
    let every = [Parameters::new()];
    let named: Vec<Parameters> = table.cases.iter().map(|case| case.select.clone()).collect();
    let cases = if named.is_empty() { &every[..] } else { &named };
    let several = |id: &str| {
        let (prefer, each) = (table.published_with(id), table.each.as_deref());
        cases.iter().find_map(|case| fits_several(document, id, [&table.selected(id, case), &prefer], each))
    };
    table.rows.iter().enumerate().find_map(|(place, row)| Some((place, several(&row.id)?)))
}

/// The first series whose points fit several measurements.
pub(super) fn in_lines(document: &Document, table: &DocumentTable, lines: &Lines) -> Option<Several> {
    lines.series.iter().enumerate().find_map(|(place, series)| {
        let (prefer, select) = (table.published_with(&series.id), table.selected(&series.id, &series.select));
        Some((place, fits_several(document, &series.id, [&select, &prefer], Some(&lines.x))?))
    })
}

/// Two measurements of one system that a row could stand for, in words. Of the parameter `each`, those that have it are
/// taken value by value.
fn fits_several(of: &Document, id: &str, [select, prefer]: [&Parameters; 2], each: Option<&str>) -> Option<String> {
    let is_shown = |spec: &MetricSpec| {
        holds(&spec.parameters, select) && each.is_none_or(|each| spec.parameters.contains_key(each))
    };
    let [one, other] = twins(of, (id, each), prefer, &is_shown)?;
    Some(format!("`{id}` fits several rows, such as {one} and {other}"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{HEAD, error, parse, two_sizes};
    use super::*;
    use crate::results::Catalog;
    use std::sync::Arc;

    #[test]
    fn a_row_named_twice_is_reported_at_its_second_line() {
        assert_eq!(error("      - {id: d.a}\n"), "d.yaml:14:14: row `d.a` is named twice");
    }

    #[test]
    fn a_figure_for_an_unknown_case_names_the_known_ones() {
        let message = error("      - {id: d.b, published: {fp61: 1}}\n");
        assert_eq!(
            message,
            "d.yaml:14:31: row `d.b` has a figure for `fp61`; its cases are fp16; did you mean `fp16`?"
        );
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

    #[test]
    fn two_cases_of_one_name_or_one_selection_are_refused_at_the_second() {
        let of = |cases: &str| {
            let text = HEAD.replace("{label: fp16, select: {dtype: fp16}}", cases);
            parse(&text).unwrap_err().to_string()
        };
        let label = of("{label: fp16, select: {dtype: fp16}}, {label: fp16, select: {size: 8}}");
        assert_eq!(label, "d.yaml:11:59: table `t` has two cases `fp16`");
        let select = of("{label: fp16, select: {dtype: fp16}}, {label: half, select: {dtype: fp16}}");
        assert_eq!(select, "d.yaml:11:73: the case `half` selects what another one selects");
        assert!(error("  - {id: u, title: U, caption: C, rows: []}\n").contains("table `u` has no rows"));
    }

    #[test]
    fn a_row_that_fits_several_measurements_is_refused_where_it_stands() {
        let parsed = |text: &str| Document::parse("d.yaml", text, &two_sizes());
        let refused = |text: &str, place: &str| {
            let message = parsed(text).unwrap_err().to_string();
            assert!(message.starts_with(&format!("d.yaml:{place}: ")), "{message}");
            assert!(message.contains("`d.a` fits several rows, such as d.a (dtype fp16, size 8) and"), "{message}");
        };
        let of = |tail: &str| HEAD.replace("      - {id: d.a, published: {fp16: 14.0e-6}}\n", tail);
        refused(&of("      - {id: d.a}\n"), "13:14");
        assert!(parsed(&of("      - {id: d.a, published_with: {size: 16}}\n")).is_ok(), "the document says which");
        let cases = "cases: [{label: fp16, select: {dtype: fp16}}]";
        assert!(parsed(&of("      - {id: d.a}\n").replace(cases, "each: size")).is_ok(), "one after the other");
        assert!(parsed(&of("      - {id: d.a}\n").replace("{dtype: fp16}", "{dtype: fp16, size: 8}")).is_ok());
        assert!(parsed(&of("      - {id: d.a, select: {size: 16}}\n")).is_ok());
        let unknown = parsed(&of("      - {id: d.a, select: {siz: 16}}\n")).unwrap_err().to_string();
        assert!(unknown.contains("row `d.a` does not have a parameter `siz`"), "{unknown}");
    }

    #[test]
    fn a_line_whose_points_fit_several_measurements_is_refused_where_it_stands() {
        let mut names = two_sizes();
        let with_iters = |spec: &MetricSpec| {
            let mut spec = spec.clone();
            let size = spec.parameters.insert("size".to_owned(), 8_usize.into());
            spec.parameters.extend(size.map(|size| ("iters".to_owned(), size)));
            spec
        };
        let all: Vec<MetricSpec> = names.rows.specs().iter().map(with_iters).collect();
        names.rows = Arc::new(Catalog::default().with_together(all));
        let table = HEAD.replace("cases: [{label: fp16, select: {dtype: fp16}}]", "each: iters");
        let table = table.replace(", published: {fp16: 14.0e-6}", "");
        let read = |x: &str| {
            let text = format!(
                "{table}figures:\n  - id: f\n    title: F\n    caption: C\n    panels:\n      - table: t\n        lines:\n          \
                 x: {x}\n          series:\n            - {{id: d.a}}\n"
            );
            Document::parse("d.yaml", &text, &names)
        };
        assert!(read("iters").is_ok());
        let message = read("size").unwrap_err().to_string();
        assert!(
            message.starts_with("d.yaml:23:20: figure `f` draws a row of which `d.a` fits several rows"),
            "{message}"
        );
    }
}
