//! `report claims`: judges the documents' claims by a results file.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::course::CourseArgument;
use super::output::Form;
use super::{AppContext, End, recorded};
use crate::book::claims_text;
use crate::book::document::{Claim, Document};
use crate::book::predicate::{CaseResult, Found, Judgement};
use crate::clean::terminal_line;
use crate::results::Results;

/// Judge the documents' claims by a results file; needs no device
#[derive(Args)]
#[command(after_help = "Example:\n  report claims target/report/results.json")]
pub(super) struct Arguments {
    /// The results file
    #[arg(value_name = "RESULTS.json")]
    results: PathBuf,
    #[command(flatten)]
    form: Form,
    #[command(flatten)]
    course: CourseArgument,
}

pub(super) fn execute(arguments: &Arguments, context: &AppContext) -> anyhow::Result<End> {
    let book = arguments.course.project(context)?;
    let results = recorded::shown(&arguments.results)?;
    let documents = book.documents(&recorded::catalog_of(&book, std::slice::from_ref(&results), context))?;
    let device = &results.environment().device;
    let started = &results.run().started;
    // Judging takes long: for each form once.
    let claims: Vec<Value> = match arguments.form.json {
        true => documents.iter().flat_map(|document| judged(document, &results)).collect(),
        false => Vec::new(),
    };
    let facts = json!({ "device": device.name, "model": device.model, "started": started, "claims": claims });
    arguments.form.print("claims", &facts, || {
        let [device, model, started] = [&device.name, &device.model, started].map(|text| terminal_line(text));
        show!("{device} ({model}), {started}\n\n{}", claims_text(&documents, &results));
    })?;
    Ok(End::Well)
}

/// The claims of a document with their verdicts. Where another system decides than that of the file, the same on the file's
/// own stands beside it.
fn judged(document: &Document, results: &Results) -> Vec<Value> {
    let own = |claim: &Claim| {
        let judgement = claim.judge(document, results);
        let mut judged = outcome(&judgement);
        judged["document"] = json!(document.id);
        judged["id"] = json!(claim.id);
        judged["claim"] = json!(claim.claim.trim());
        judged["kind"] = json!(claim.kind.name());
        judged["places"] = claim.places.iter().map(|place| json!(place.to_string())).collect();
        judged["beside"] = json!(judgement.beside.as_deref().map(outcome));
        judged
    };
    document.claims.iter().map(own).collect()
}

/// How a claim came out on one system.
fn outcome(judgement: &Judgement) -> Value {
    let cases = |cases: &[CaseResult]| cases.iter().map(case_facts).collect::<Vec<_>>();
    json!({
        "verdict": judgement.verdict.name(),
        "why": judgement.why,
        "system": judgement.system,
        "runs": judgement.runs(),
        "cases": cases(&judgement.cases),
        "shown": cases(&judgement.shown),
    })
}

/// A test of a claim in one case, or a quantity beside it, which decides nothing.
fn case_facts(case: &CaseResult) -> Value {
    let found = case.found.as_ref().ok();
    let numbers = found.map(Found::numbers);
    let interval = numbers.and_then(|(_, interval)| interval);
    json!({
        "quantity": case.quantity,
        "parameters": case.select,
        "bounds": case.bounds(),
        "value": found.map(Found::written),
        "number": numbers.map(|(number, _)| number),
        "low": interval.map(|(low, _)| low),
        "high": interval.map(|(_, high)| high),
        "lies": case.lies(),
        "missing": case.found.as_ref().err(),
        "runs": found.map_or(0, |found| found.runs),
    })
}
