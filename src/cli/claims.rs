//! `report claims`: judges the documents' claims by a results file.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::course::Course;
use super::facts::{Facts, Form};
use super::{Carried, End, recorded};
use crate::book::claims_text;
use crate::book::document::{Claim, Document};
use crate::book::predicate::Judgement;
use crate::measure;

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
    course: Course,
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
    predicate: String,
    #[serde(flatten)]
    judgement: Verdict,
    /// The same on the system that the file is about, where the claim is about another.
    beside: Option<Verdict>,
}

#[derive(Serialize)]
struct Verdict {
    verdict: &'static str,
    /// In which share of the draws the predicate held, where it was judged.
    share: Option<f64>,
    /// Why it was not judged, where it was not.
    reason: Option<String>,
    system: String,
    /// The least number of runs behind an operand.
    runs: usize,
    /// The operands of the predicate, by name.
    evidence: BTreeMap<String, String>,
    calculation: Option<String>,
}

impl Verdict {
    fn of(judgement: &Judgement) -> Self {
        let (share, reason) = match &judgement.verdict {
            measure::Verdict::Confirmed(share)
            | measure::Verdict::Refuted(share)
            | measure::Verdict::Inconclusive(share) => (Some(*share), None),
            measure::Verdict::NotTestable(reason) => (None, Some(reason.clone())),
        };
        Self {
            verdict: judgement.verdict.name(),
            share,
            reason,
            system: judgement.system.clone(),
            runs: judgement.runs,
            evidence: judgement.evidence.iter().cloned().collect(),
            calculation: judgement.calculation.clone(),
        }
    }
}

impl Facts for Claims {
    const COMMAND: &'static str = "claims";

    fn say(&self) {
        say!("{} ({}), {}\n", self.device, self.model, self.started);
        show!("{}", self.text);
    }
}

pub(super) fn execute(arguments: &Arguments, carried: &Carried) -> anyhow::Result<End> {
    let book = arguments.course.project(carried)?;
    let results = recorded::read(&arguments.results, carried)?;
    let documents = book.documents(&recorded::catalog(std::slice::from_ref(&results), carried))?;
    let judged = |document: &Document| {
        let own = |claim: &Claim| {
            let judgement = claim.judge(document, &results);
            Judged {
                document: document.id.clone(),
                id: claim.id.clone(),
                claim: claim.claim.trim().to_owned(),
                predicate: claim.predicate.trim().to_owned(),
                judgement: Verdict::of(&judgement),
                beside: judgement.beside.as_deref().map(Verdict::of),
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
