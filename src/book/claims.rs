//! Claims with their verdicts: at the end of a chapter with what decided each, and all on one page.

use minijinja::{Value, context};

use super::document::{Claim, Document};
use super::predicate::{CaseResult, ClaimVerdict, Found, Judgement, operands_in_words};
use super::source::Book;
use super::tables::{Machines, verdict_totals};
use super::templates::safe_html;
use crate::error::BookError;
use crate::present::escape;

/// A document with its claims judged by all runs.
pub(super) type Judged<'a> = (&'a Document, Vec<Vec<Judgement>>);

/// The page of all claims as Markdown.
pub(super) fn render(book: &Book<'_>, judged: &[Judged<'_>]) -> Result<String, BookError> {
    let documents = judged.iter().filter(|(document, _)| !document.claims.is_empty()).map(|(document, judged)| {
        let rows = document.claims.iter().zip(judged).map(|(claim, judgements)| row(document, claim, judgements));
        context! { title => document.title.as_str(), rows => rows.collect::<Vec<Value>>() }
    });
    // What printed figures show counts once: no machine has a say in it.
    let totals = |of_figures: bool, place: usize| {
        let counted = judged.iter().flat_map(|(document, judged)| document.claims.iter().zip(judged));
        let counted = counted.filter(|(claim, _)| claim.is_about_figures() == of_figures);
        verdict_totals(counted.filter_map(|(_, of)| Some(&of.get(place)?.verdict)))
    };
    let machines = book.machines.named().enumerate().map(|(place, (results, label))| {
        context! { label, own => results.run().system.as_str(), totals => totals(false, place) }
    });
    let context = context! {
        columns => 1 + 2 * book.results.len(),
        of_figures => totals(true, 0),
        machines => machines.collect::<Vec<Value>>(),
        documents => documents.collect::<Vec<Value>>(),
    };
    book.templates.render("claims.md.j2", context)
}

/// A claim with its verdict for each machine: of the system that decides, and of the one that the file is about. One about
/// printed figures has one verdict.
fn row(document: &Document, claim: &Claim, judgements: &[Judgement]) -> Value {
    let cell = |judgement: &Judgement| {
        let reason = if let ClaimVerdict::NotJudged(reason) = &judgement.verdict { Some(reason) } else { None };
        context! {
            name => judgement.verdict.name(),
            class => judgement.verdict.class(),
            system => if claim.is_about_figures() { "the figures alone" } else { judgement.system.as_str() },
            reason,
        }
    };
    let machine = |judgement: &Judgement| context! { decides => cell(judgement), beside => judgement.beside.as_deref().map(cell) };
    context! {
        id => claim.id.as_str(),
        chapter => document.id.as_str(),
        claim => safe_html(escape(&claim.plain())),
        places => claim.sources(document).join("; "),
        kind => claim.kind.name(),
        about => claim.on.map(|on| on.words()),
        of_figures => judgements.first().filter(|_| claim.is_about_figures()).map(cell),
        machines => judgements.iter().map(machine).collect::<Vec<Value>>(),
    }
}

/// The claims of a document, judged by the runs that its chapter shows.
pub(crate) fn of(document: &Document, machines: &Machines<'_>, judged: &[Vec<Judgement>]) -> Vec<Value> {
    let claim = |(claim, judgements): (&Claim, &Vec<Judgement>)| {
        let mut verdicts = Vec::new();
        for (machine, judgement) in machines.labels.iter().zip(judgements) {
            for judgement in std::iter::once(judgement).chain(judgement.beside.as_deref()) {
                let heading = match claim.is_about_figures() {
                    true if judgement.shown.is_empty() => "From the figures alone".to_owned(),
                    true => format!("From the figures alone; beside it {}, on {machine}", judgement.system),
                    false => format!("{}, on {machine}", judgement.system),
                };
                verdicts.push(verdict(&heading, judgement));
            }
            if claim.is_about_figures() && judgement.shown.is_empty() {
                break;
            }
        }
        context! {
            id => claim.id.as_str(),
            claim => safe_html(claim.claim.trim()),
            places => claim.sources(document),
            is_own => document.source.is_some() && claim.places.is_empty(),
            about => claim.on.map(|on| on.words()),
            kind => claim.kind.sentence(),
            rationale => safe_html(claim.rationale.trim()),
            verdicts,
        }
    };
    document.claims.iter().zip(judged).map(claim).collect()
}

fn verdict(heading: &str, judgement: &Judgement) -> Value {
    let several = judgement.cases.len() > 1;
    let one = |case: &CaseResult| {
        let found = case.found.as_ref().ok();
        let operands = found.map(|found| operands_in_words(&found.operands)).unwrap_or_default();
        context! {
            quantity => case.quantity.as_str(),
            case => case.case.as_str(),
            filled => found.and_then(|found| found.filled.as_deref()),
            by_rounds => found.is_some_and(|found| found.by_rounds),
            bounds => case.bounds(),
            lies => case.lies(),
            held_together => several && case.is_open_together(),
            value => found.map(Found::written),
            missing => case.missing(),
            operands,
        }
    };
    context! {
        heading,
        name => judgement.verdict.name(),
        class => judgement.verdict.class(),
        why => judgement.why.as_str(),
        cases => judgement.cases.iter().map(one).collect::<Vec<Value>>(),
        shown => judgement.shown.iter().map(one).collect::<Vec<Value>>(),
    }
}
