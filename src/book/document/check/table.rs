//! Tables: every row is one that there is, with parameters and figures that are its own.

use std::collections::BTreeSet;

use super::super::{Document, DocumentRow, DocumentTable, TableCase};
use super::{Source, single, twice};
use crate::error::FileError;
use crate::results::nearest;
use crate::yaml::Way;

/// Finds the first contradiction in the tables of a document.
pub(super) fn check(document: &Document, source: &Source<'_>) -> Result<(), FileError> {
    let mut rows = BTreeSet::new();
    for (place, table) in document.tables.iter().enumerate() {
        let way = Way::default().key("tables").item(place);
        if table.rows.is_empty() {
            let message = format!("table `{}` has no rows", table.id);
            return Err(source.error(&way.key("rows"), message, String::new()));
        }
        check_rows(document, table, &way, &mut rows, source)?;
        check_cases(document, table, &way, source)?;
        if let Some((place, several)) = single::in_table(document, table) {
            let hint = "; name a parameter, by `select`, `cases`, `each` or `published_with`".to_owned();
            return Err(source.error(&way.key("rows").item(place).key("id"), several, hint));
        }
    }
    Ok(())
}

/// Every row is one that there is, once, set against rows of its table and with parameters of its own.
fn check_rows<'a>(
    document: &Document,
    table: &'a DocumentTable,
    way: &Way,
    rows: &mut BTreeSet<&'a str>,
    source: &Source<'_>,
) -> Result<(), FileError> {
    let known = &document.names.rows;
    for (place, row) in table.rows.iter().enumerate() {
        let way = way.key("rows").item(place);
        if !rows.insert(&row.id) {
            return Err(source.error(&way.key("id"), format!("row `{}` is named twice", row.id), String::new()));
        }
        if known.get(&row.id).is_none() {
            let message = format!("no experiment has a row `{}`", row.id);
            return Err(source.error(&way.key("id"), message, nearest(&row.id, known.ids())));
        }
        for (key, parameters) in [("published_with", &row.published_with), ("select", &row.select)] {
            if let Some(unknown) = known.unknown_parameter(&[&row.id], parameters) {
                let whose = format!("row `{}` does not have", row.id);
                return Err(source.parameter(&way.key(key), &whose, unknown));
            }
        }
        if let Some(relative) = row.relative.as_ref().filter(|relative| table.row(&relative.to).is_none()) {
            let message = format!("row `{}` is relative to `{}`, which its table does not hold", row.id, relative.to);
            let hint = nearest(&relative.to, table.rows.iter().map(|row| row.id.as_str()));
            return Err(source.error(&way.key("relative").key("to"), message, hint));
        }
        check_published(table, row, &way, source)?;
    }
    Ok(())
}

/// Every figure of a row is one for a case of its table.
fn check_published(table: &DocumentTable, row: &DocumentRow, way: &Way, source: &Source<'_>) -> Result<(), FileError> {
    let mut known: BTreeSet<&str> = table.cases.iter().map(|case| case.label.as_str()).collect();
    if table.cases.is_empty() && table.each.is_none() {
        known.insert(TableCase::ALL);
    }
    let own = (way.key("published"), &row.published);
    let relative = row.relative.iter().map(|relative| (way.key("relative").key("published"), &relative.published));
    for (way, published) in std::iter::once(own).chain(relative) {
        let Some(case) = published.keys().find(|case| !known.contains(case.as_str())) else { continue };
        let hint = nearest(case, known.iter().copied());
        let cases = match &table.each {
            Some(each) => format!("each value of `{each}` is a case"),
            None => format!("its cases are {}", known.into_iter().collect::<Vec<_>>().join(", ")),
        };
        let message = format!("row `{}` has a figure for `{case}`; {cases}", row.id);
        return Err(source.error(&way.name(case), message, hint));
    }
    Ok(())
}

/// The cases of a table, and the parameters with which the document measured: each is one that its rows have.
fn check_cases(document: &Document, table: &DocumentTable, way: &Way, source: &Source<'_>) -> Result<(), FileError> {
    if table.each.is_some() && !table.cases.is_empty() {
        let message =
            format!("table `{}` has `cases` and `each`: the cases are named, or taken from the results", table.id);
        return Err(source.error(&way.name("each"), message, String::new()));
    }
    let cases = way.key("cases");
    if let Some(place) = twice(table.cases.iter().map(|case| &case.label)) {
        let message = format!("table `{}` has two cases `{}`", table.id, table.cases[place].label);
        return Err(source.error(&cases.item(place).key("label"), message, String::new()));
    }
    if let Some(place) = twice(table.cases.iter().map(|case| &case.select)) {
        let message = format!("the case `{}` selects what another one selects", table.cases[place].label);
        return Err(source.error(&cases.item(place).key("select"), message, String::new()));
    }
    let ids: Vec<&str> = table.rows.iter().map(|row| row.id.as_str()).collect();
    let known = &document.names.rows;
    let whose = format!("no row of table `{}` has", table.id);
    let selects = table.cases.iter().enumerate().map(|(place, case)| (case_way(way, place), &case.select));
    for (way, parameters) in std::iter::once((way.key("published_with"), &table.published_with)).chain(selects) {
        if let Some(unknown) = known.unknown_parameter(&ids, parameters) {
            return Err(source.parameter(&way, &whose, unknown));
        }
    }
    for (place, case) in table.cases.iter().enumerate() {
        if !ids.iter().any(|id| known.unknown_parameter(&[id], &case.select).is_none()) {
            let message = format!("{whose} all parameters of the case `{}`", case.label);
            return Err(source.error(&case_way(way, place), message, String::new()));
        }
    }
    let each: Option<&String> = table.each.as_ref();
    let parameters = known.parameters(&ids);
    if let Some(each) = each.filter(|each| !parameters.contains_key(each.as_str())) {
        let hint = nearest(each, parameters.keys().copied());
        return Err(source.error(&way.key("each"), format!("{whose} a parameter `{each}`"), hint));
    }
    Ok(())
}

fn case_way(table: &Way, place: usize) -> Way {
    table.key("cases").item(place).key("select")
}

#[cfg(test)]
mod tests {
    use super::super::tests::{HEAD, error, parse};

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
}
