//! What a reader finds of the rows in the documents that come with the program: what an answer cites, and all that an experiment
//! measures.

use crate::document::{AdviceRow, Document, DocumentTable, Matrix, Text};
use crate::predicate::{Operand, Several, Test, is_selected, operands_of, parsed};
use crate::results::{MetricSpec, Parameters, holds, preferred};
use crate::tests::{catalog, project};

fn documents() -> Vec<Document> {
    project().documents(&catalog()).unwrap()
}

/// The rows in the tables and the matrices of a document.
fn in_tables_and_matrices(document: &Document) -> Vec<&MetricSpec> {
    let of_matrices = document.matrices().flat_map(|matrix| in_matrix(document, matrix));
    document.tables.iter().flat_map(|table| in_table(document, table)).chain(of_matrices).collect()
}

fn in_table<'a>(document: &'a Document, table: &'a DocumentTable) -> Vec<&'a MetricSpec> {
    let mut found = Vec::new();
    for row in &table.rows {
        for specs in document.names.rows.together(&row.id) {
            let specs: Vec<&MetricSpec> = specs.iter().collect();
            let mut cases: Vec<Parameters> = table.cases.iter().map(|case| case.select.clone()).collect();
            if let Some(each) = &table.each {
                let value = |spec: &&MetricSpec| Some((each.clone(), spec.parameters.get(each)?.clone()));
                cases = specs.iter().filter_map(value).map(|value| Parameters::from([value])).collect();
            }
            if cases.is_empty() {
                cases.push(Parameters::new());
            }
            for case in cases {
                let select = table.selected(&row.id, &case);
                let fits = specs.iter().copied().filter(|spec| holds(&spec.parameters, &select));
                found.extend(preferred(fits, &table.published_with(&row.id)));
            }
        }
    }
    found
}

fn in_matrix<'a>(document: &'a Document, matrix: &'a Matrix) -> Vec<&'a MetricSpec> {
    let of = |id: &'a str| document.names.rows.together(id).flatten().collect::<Vec<&MetricSpec>>();
    let cells = matrix.columns.iter().flat_map(|column| {
        let value = matrix.across.as_ref().zip(column.value.as_ref());
        let is_here =
            move |spec: &&MetricSpec| value.is_none_or(|(across, value)| spec.parameters.get(across) == Some(value));
        of(column.id.as_ref().unwrap_or(&matrix.id)).into_iter().filter(is_here)
    });
    let times = matrix.data.iter().flat_map(|id| of(id));
    cells.chain(times).filter(|spec| holds(&spec.parameters, &matrix.select)).collect()
}

/// The points of the lines of a document.
fn in_lines(document: &Document) -> Vec<&MetricSpec> {
    let lines = document.panels().filter_map(|panel| panel.lines.as_ref());
    let points = lines.flat_map(|lines| lines.series.iter().map(move |series| (lines, series)));
    let of_series = points.flat_map(|(lines, series)| {
        let all = document.names.rows.together(&series.id).flatten();
        all.filter(|spec| holds(&spec.parameters, &series.select) && spec.parameters.contains_key(&lines.x))
    });
    of_series.collect()
}

/// The expressions in a text.
fn expressions(text: &Text) -> impl Iterator<Item = &str> {
    text.source().split("{{").skip(1).filter_map(|rest| Some(rest.split_once("}}")?.0.trim()))
}

fn has(known: &[&MetricSpec], spec: &MetricSpec) -> bool {
    known.iter().any(|known| known.is(&spec.id, &spec.parameters))
}

/// The greatest or the least of several rows may stand on a line, whose picture names both. A chapter whose document has no
/// tables has those of all rows of its experiment.
#[test]
fn each_value_that_an_answer_cites_stands_in_a_table_or_a_matrix_of_its_chapter() {
    let mut missing: Vec<String> = Vec::new();
    for document in documents() {
        let (shown, drawn) = (in_tables_and_matrices(&document), in_lines(&document));
        let rows: Vec<&AdviceRow> = document.advice.iter().flat_map(|advice| &advice.rows).collect();
        let advised = rows.iter().map(|row| (&row.choose, row.values.as_slice()));
        for (answer, values) in document.answer.iter().map(|answer| (answer, &[][..])).chain(advised) {
            let tests = Test::all(&answer.condition).unwrap().into_iter().map(|test| test.quantity);
            let texts = [&answer.then, &answer.otherwise, &answer.unclear].into_iter().chain(values);
            let cited = texts.flat_map(expressions);
            // Without the filter that writes it.
            let cited = cited.map(|text| parsed(text.split('|').next().unwrap_or_default(), &[]).unwrap());
            for (name, operand) in tests.chain(cited).flat_map(|text| operands_of(&text, &document).unwrap()) {
                let Operand::Measured { id, selectors, of_several, .. } = operand else { continue };
                let is_extreme = matches!(of_several, Some(Several::One(_)));
                let mut specs =
                    document.names.rows.together(&id).flatten().filter(|spec| is_selected(spec, &selectors));
                let in_own_tables = |spec: &MetricSpec| document.tables.is_empty() && spec.experiment() == document.id;
                let is_seen =
                    |spec: &MetricSpec| has(&shown, spec) || is_extreme && has(&drawn, spec) || in_own_tables(spec);
                let line = format!("{}: {name}", document.id);
                if !specs.all(is_seen) && !missing.contains(&line) {
                    missing.push(line);
                }
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// Of an experiment that a document is about, nothing is measured and not shown: each row with each of its parameters. A chapter
/// with a text behind it shows the parameters of its text. The same code twice is shown of all experiments together.
#[test]
fn every_measurement_of_the_experiment_that_a_document_is_about_is_shown() {
    let documents = documents();
    let rows = |document| [in_tables_and_matrices(document), in_lines(document)].concat();
    let shown: Vec<&MetricSpec> = documents.iter().flat_map(rows).collect();
    let catalog = catalog();
    let missing = catalog.specs().iter().filter(|spec| spec.group != "The same code twice").filter(|spec| {
        let about = documents.iter().find(|one| one.id == spec.experiment() && !one.tables.is_empty());
        about.is_some_and(|document| match document.source {
            Some(_) => shown.iter().all(|known| known.id != spec.id),
            None => !has(&shown, spec),
        })
    });
    let missing: Vec<String> = missing.map(MetricSpec::title).collect();
    assert!(missing.is_empty(), "{} are not shown:\n{}", missing.len(), missing.join("\n"));
}

/// What a text leaves open cannot be attributed to it.
#[test]
fn no_claim_rests_on_the_silence_of_a_text() {
    let documents = documents();
    let claims = documents.iter().flat_map(|document| &document.claims);
    let silent: Vec<&str> = claims
        .filter(|claim| {
            let words = claim.rationale.split_whitespace().collect::<Vec<_>>().join(" ");
            ["does not say", "do not say", "does not mention", "says nothing", "does not name"]
                .iter()
                .any(|silent| words.contains(silent))
        })
        .map(|claim| claim.id.as_str())
        .collect();
    assert!(silent.is_empty(), "{silent:?} say what their text does not");
}
