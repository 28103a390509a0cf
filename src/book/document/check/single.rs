//! What a table or a picture shows of a row is one measurement of each system: where its parameters leave several, the
//! document has to say which.

use super::super::{Document, DocumentTable, Lines, Matrix, MatrixTime};
use crate::results::{MetricSpec, Parameters, preferred};

/// A place in a list, and which measurements there are to choose from.
pub(super) type Several = (usize, String);

/// The first row of a table that fits several measurements in one of its cases.
pub(super) fn in_table(document: &Document, table: &DocumentTable) -> Option<Several> {
    let every = [Parameters::new()];
    let named: Vec<Parameters> = table.cases.iter().map(|case| case.select.clone()).collect();
    let cases = if named.is_empty() { &every[..] } else { &named };
    let several = |id: &str| {
        let prefer = table.published_with(id);
        cases.iter().find_map(|case| twins(document, id, &table.selected(id, case), &prefer, table.each.as_deref()))
    };
    table.rows.iter().enumerate().find_map(|(place, row)| Some((place, several(&row.id)?)))
}

/// The first series whose points fit several measurements.
pub(super) fn in_lines(document: &Document, table: &DocumentTable, lines: &Lines) -> Option<Several> {
    lines.series.iter().enumerate().find_map(|(place, series)| {
        let (prefer, select) = (table.published_with(&series.id), table.selected(&series.id, &series.select));
        Some((place, twins(document, &series.id, &select, &prefer, Some(&lines.x))?))
    })
}

/// The first of some times of a matrix that fits several measurements.
pub(super) fn in_matrix(document: &Document, matrix: &Matrix, times: &[MatrixTime]) -> Option<Several> {
    let rows = &document.names.rows;
    let own = |spec: &MetricSpec| -> Parameters {
        let named = |name: &String| Some((name.clone(), spec.parameters.get(name)?.clone()));
        matrix.rows.iter().filter_map(named).collect()
    };
    times.iter().enumerate().find_map(|(place, time)| {
        let drawn = rows.together(&matrix.id).flatten().filter(|spec| holds(spec, &matrix.select));
        let mut selects: Vec<Parameters> = Vec::new();
        for spec in drawn {
            let mut select = own(spec);
            select.extend(matrix.select.clone());
            select.extend(time.select.clone());
            if !selects.contains(&select) {
                selects.push(select);
            }
        }
        let several = |select: &Parameters| twins(document, &time.id, select, &time.prefer, None);
        Some((place, selects.iter().find_map(several)?))
    })
}

/// Two measurements of one system that a row could stand for, in words. Of the parameter `each`, those that have it are
/// taken value by value.
fn twins(
    document: &Document,
    id: &str,
    select: &Parameters,
    prefer: &Parameters,
    each: Option<&str>,
) -> Option<String> {
    let value = |spec: &MetricSpec| each.and_then(|each| spec.parameters.get(each)).cloned();
    document.names.rows.together(id).find_map(|specs| {
        let is_shown = |spec: &&MetricSpec| holds(spec, select) && (each.is_none() || value(spec).is_some());
        let fits: Vec<&MetricSpec> = specs.iter().filter(is_shown).collect();
        fits.iter().find_map(|spec| {
            let own = fits.iter().copied().filter(|other| value(other) == value(spec));
            match preferred(own, prefer).as_slice() {
                [one, other, ..] => {
                    Some(format!("`{id}` fits several rows, such as {} and {}", one.title(), other.title()))
                }
                _ => None,
            }
        })
    })
}

pub(super) fn holds(spec: &MetricSpec, select: &Parameters) -> bool {
    select.iter().all(|(name, value)| spec.parameters.get(name) == Some(value))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::tests::{HEAD, two_sizes};
    use super::*;
    use crate::results::Catalog;

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
