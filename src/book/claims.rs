//! Claims with their verdicts: at the end of a chapter with the numbers that decided, and all on one page.

use minijinja::{Value, context};

use super::templates::{Templates, finished};
use crate::document::{Claim, Document, Judgement};
use crate::error::BookError;
use crate::measure::Verdict;
use crate::present::{claims_table, machine_labels};
use crate::run::Run;

/// The page of all claims as Markdown.
pub(super) fn render(templates: &Templates, documents: &[Document], runs: &[Run]) -> Result<String, BookError> {
    let table = finished(claims_table(documents, runs).to_html());
    templates.render("claims.md.j2", context! { table })
}

/// The claims of a document, judged by each run.
pub(super) fn of(document: &Document, runs: &[Run]) -> Vec<Value> {
    let claim = |claim: &Claim| {
        let machines: Vec<(&Run, String)> = match runs.first() {
            Some(run) if claim.is_about_figures(document) => vec![(run, "The figures alone".to_owned())],
            _ => runs.iter().zip(machine_labels(runs)).collect(),
        };
        let verdicts: Vec<Value> =
            machines.iter().map(|(run, machine)| verdict(machine, &claim.judge(document, run))).collect();
        context! {
            id => claim.id.as_str(),
            claim => finished(claim.claim.trim()),
            holds => claim.holds.trim(),
            because => finished(claim.because.trim()),
            verdicts,
        }
    };
    document.claims.iter().map(claim).collect()
}

fn verdict(machine: &str, judgement: &Judgement) -> Value {
    let (share, reason) = match &judgement.verdict {
        Verdict::Confirmed(share) | Verdict::Refuted(share) | Verdict::Inconclusive(share) => (Some(*share), None),
        Verdict::NotTestable(reason) => (None, Some(reason.as_str())),
    };
    let evidence: Vec<Value> = judgement
        .evidence
        .iter()
        .map(|(name, value)| context! { name => name.as_str(), value => value.as_str() })
        .collect();
    context! {
        machine,
        name => judgement.verdict.name(),
        class => judgement.verdict.name().split(' ').next(),
        share => share.map(|share| format!("{:.1} %", 100.0 * share)),
        reason,
        evidence,
        calculation => judgement.calculation.as_deref(),
    }
}
