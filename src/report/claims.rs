//! `report claims`: judges the documents' claims by a results file.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::course::CourseArgument;
use super::facts::{Facts, Form};
use super::{AppContext, End, recorded};
use crate::book::claims_text;
use crate::book::document::{Claim, Document};
use crate::book::predicate::{CaseResult, Found, Judgement};
use crate::clean::terminal_line;
use crate::results::Parameters;

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

#[derive(Serialize)]
struct Claims {
    device: String,
    model: String,
    started: String,
    claims: Vec<Judged>,
    /// All of it in words.
    #[serde(skip)]
    text: String,
}

/// A claim with its verdict.
#[derive(Serialize)]
struct Judged {
    document: String,
    id: String,
    claim: String,
    kind: &'static str,
    /// Where the text says it.
    places: Vec<String>,
    #[serde(flatten)]
    outcome: Outcome,
    /// The same on the system that the file is about, where another one decides.
    beside: Option<Outcome>,
}

/// How a claim came out on one system.
#[derive(Serialize)]
struct Outcome {
    verdict: String,
    why: String,
    system: String,
    /// The fewest runs behind a case.
    runs: usize,
    cases: Vec<CaseFacts>,
    /// Quantities beside them, which decide nothing.
    shown: Vec<CaseFacts>,
}

/// A test of a claim in one case.
#[derive(Serialize)]
struct CaseFacts {
    quantity: String,
    parameters: Parameters,
    /// Where it has to lie, in words.
    bounds: Option<String>,
    /// What it came to, in words.
    value: Option<String>,
    number: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    /// Where it lies: inside the bounds, outside, or undecided.
    lies: Option<&'static str>,
    /// Why there is no value.
    missing: Option<String>,
    runs: usize,
}

impl Outcome {
    fn of(judgement: &Judgement) -> Self {
        let cases = |cases: &[CaseResult]| cases.iter().map(CaseFacts::of).collect();
        Self {
            verdict: judgement.verdict.name(),
            why: judgement.why.clone(),
            system: judgement.system.clone(),
            runs: judgement.runs(),
            cases: cases(&judgement.cases),
            shown: cases(&judgement.shown),
        }
    }
}

impl CaseFacts {
    fn of(case: &CaseResult) -> Self {
        let found = case.found.as_ref().ok();
        let numbers = found.map(Found::numbers);
        let interval = numbers.and_then(|(_, interval)| interval);
        Self {
            quantity: case.quantity.clone(),
            parameters: case.select.clone(),
            bounds: case.bounds(),
            value: found.map(Found::written),
            number: numbers.map(|(number, _)| number),
            low: interval.map(|(low, _)| low),
            high: interval.map(|(_, high)| high),
            lies: case.lies(),
            missing: case.found.clone().err(),
            runs: found.map_or(0, |found| found.runs),
        }
    }
}

impl Facts for Claims {
    const COMMAND: &'static str = "claims";

    fn say(&self) {
        let [device, model, started] = [&self.device, &self.model, &self.started].map(|text| terminal_line(text));
        show!("{device} ({model}), {started}\n\n");
        show!("{}", self.text);
    }
}

pub(super) fn execute(arguments: &Arguments, context: &AppContext) -> anyhow::Result<End> {
    let book = arguments.course.project(context)?;
    let results = recorded::shown(&arguments.results)?;
    let documents = book.documents(&recorded::catalog_of(&book, std::slice::from_ref(&results), context))?;
    let judged = |document: &Document| {
        let own = |claim: &Claim| {
            let judgement = claim.judge(document, &results);
            Judged {
                document: document.id.clone(),
                id: claim.id.clone(),
                claim: claim.claim.trim().to_owned(),
                kind: claim.kind.name(),
                places: claim.places.iter().map(ToString::to_string).collect(),
                outcome: Outcome::of(&judgement),
                beside: judgement.beside.as_deref().map(Outcome::of),
            }
        };
        document.claims.iter().map(own).collect::<Vec<_>>()
    };
    let device = &results.environment().device;
    // Judging takes long: for each form once.
    let (claims, text) = match arguments.form.json {
        true => (documents.iter().flat_map(judged).collect(), String::new()),
        false => (Vec::new(), claims_text(&documents, &results)),
    };
    let (device, model, started) = (device.name.clone(), device.model.clone(), results.run().started.clone());
    arguments.form.print(&Claims { device, model, started, claims, text })?;
    Ok(End::Well)
}
