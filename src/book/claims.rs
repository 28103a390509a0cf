//! Claims with their verdicts: at the end of a chapter with the numbers that decided, and all on one page.

use minijinja::{Value, context};

use super::document::{Claim, Document};
use super::predicate::Judgement;
use super::tables::{Machines, claims_table};
use super::templates::{Templates, safe_html};
use crate::error::BookError;
use crate::measure::Verdict;
use crate::results::Results;
use crate::units::Scale;

/// A document with its claims judged by all runs.
pub(super) type Judged<'a> = (&'a Document, Vec<Vec<Judgement>>);

/// The page of all claims as Markdown.
pub(super) fn render(
    templates: &Templates<'_>,
    judged: &[Judged<'_>],
    results: &[Results],
) -> Result<String, BookError> {
    let table = safe_html(claims_table(judged, results).to_html());
    templates.render("claims.md.j2", context! { table })
}

/// The claims of a document, judged by the runs that its chapter shows.
pub(super) fn of(document: &Document, machines: &Machines<'_>, judged: &[Vec<Judgement>]) -> Vec<Value> {
    let claim = |(claim, judgements): (&Claim, &Vec<Judgement>)| {
        let named: Vec<(&str, &Judgement)> = match judgements.first() {
            Some(judgement) if claim.is_about_figures(document) => vec![("The figures alone", judgement)],
            _ => machines.labels.iter().map(String::as_str).zip(judgements).collect(),
        };
        let both = |(machine, judgement): (&str, &Judgement)| -> Vec<Value> {
            let on = |judgement: &Judgement| format!("{}, on {machine}", judgement.system);
            match &judgement.beside {
                Some(beside) => vec![verdict(&on(judgement), judgement), verdict(&on(beside), beside)],
                None => vec![verdict(machine, judgement)],
            }
        };
        let verdicts: Vec<Value> = named.into_iter().flat_map(both).collect();
        context! {
            id => claim.id.as_str(),
            claim => safe_html(claim.claim.trim()),
            predicate => claim.predicate.trim(),
            rationale => safe_html(claim.rationale.trim()),
            verdicts,
        }
    };
    document.claims.iter().zip(judged).map(claim).collect()
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
        one_run => judgement.runs == 1,
        share => share.map(|share| Scale::PERCENT.fixed(share, 1)),
        reason,
        evidence,
        calculation => judgement.calculation.as_deref(),
    }
}
