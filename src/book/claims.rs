//! Claims with their verdicts: a line each in a chapter, and all on one page with what decided each.

use minijinja::{Value, context};

use super::data;
use super::document::{Claim, Document};
use super::in_order::{each_once, grouped, listed};
use super::predicate::{CaseResult, ClaimVerdict, Found, Judgement};
use super::source::Book;
use super::tables::{Machines, verdict_totals};
use super::templates::safe_html;
use crate::error::BookError;
use crate::present::escape;

/// A document with its claims judged by all runs.
pub(super) type Judged<'a> = (&'a Document, Vec<Vec<Judgement>>);

/// Where the tests of all claims lie, beside the chapters.
pub(super) const DATA: &str = "data/claims.csv";

/// The page of all claims as Markdown: those of the texts, then those of the book itself.
pub(super) fn render(book: &Book<'_>, judged: &[Judged<'_>]) -> Result<String, BookError> {
    let all = judged.iter().flat_map(|(_, judged)| judged).flatten().flat_map(each);
    let mut systems: Vec<&str> = each_once(all.map(|judgement| judgement.system.as_str()));
    // Those that the texts are about stand before the one that was run.
    systems.sort_by_key(|system| book.results.iter().any(|results| results.run().system == *system));
    let documents = |of_texts: bool| -> Vec<Value> {
        let document = |(document, judged): &Judged<'_>| {
            let claims = document.claims.iter().zip(judged).filter(|(claim, _)| claim.places.is_empty() != of_texts);
            let rows = claims.map(|(claim, judgements)| row(document, claim, judgements, &systems, book));
            let rows = rows.collect::<Vec<Value>>();
            let (id, title) = (safe_html(document.id.as_str()), document.title.as_str());
            (!rows.is_empty()).then(|| context! { id, title, rows })
        };
        judged.iter().filter_map(document).collect()
    };
    // What printed figures show counts once: no machine has a say in it.
    let on = |of_figures: bool, place: usize| {
        let counted = judged.iter().flat_map(|(document, judged)| document.claims.iter().zip(judged));
        let counted =
            counted.filter(move |(claim, _)| !claim.places.is_empty() && claim.is_about_figures() == of_figures);
        counted.filter_map(move |(_, of)| of.get(place))
    };
    let totals = |of_figures, place| verdict_totals(on(of_figures, place).map(|judgement| &judgement.verdict));
    let machines = book.machines.named().enumerate();
    let machines =
        machines.flat_map(|(place, named)| on(false, place).map(move |judgement| ((place, named.1), judgement)));
    let machines = each_once(that_judged(machines).into_iter().map(|(machine, _)| machine)).into_iter();
    let machines = machines.map(|(place, label)| context! { label, totals => totals(false, place) });
    let context = context! {
        systems => systems.iter().map(|system| Value::from(*system)).collect::<Vec<Value>>(),
        of_figures => totals(true, 0),
        machines => machines.collect::<Vec<Value>>(),
        of_texts => documents(true),
        own => documents(false),
        data => DATA,
    };
    book.templates.render("claims.md.j2", context)
}

/// A judgement on each system that has one, the one that decides first.
fn each(judgement: &Judgement) -> impl Iterator<Item = &Judgement> {
    std::iter::once(judgement).chain(judgement.beside.as_deref())
}

/// Those that judged, or all where none did: a machine that measured nothing of a claim says nothing about it.
fn that_judged<'a, T>(found: impl Iterator<Item = (T, &'a Judgement)>) -> Vec<(T, &'a Judgement)> {
    let found: Vec<_> = found.collect();
    let is_judged = |judgement: &Judgement| !matches!(judgement.verdict, ClaimVerdict::NotJudged(_));
    let has_judged = found.iter().any(|(_, judgement)| is_judged(judgement));
    found.into_iter().filter(|(_, judgement)| is_judged(judgement) || !has_judged).collect()
}

/// Verdicts by their names, each with the machines that it was found on where these differ.
fn verdicts<'a>(found: impl Iterator<Item = (&'a str, &'a Judgement)>) -> Option<Value> {
    let found = that_judged(found).into_iter();
    let found = grouped(found.map(|(machine, of)| ((of.verdict.name(), of.verdict.class()), machine)));
    let several = found.len() > 1;
    let class = found.first()?.0.1;
    let words = found.iter().map(|((name, _), machines)| match several {
        true => format!("{name} (on {})", listed(&each_once(machines.iter().copied()))),
        false => name.clone(),
    });
    Some(context! { class, words => words.collect::<Vec<String>>().join(", ") })
}

/// A claim with the verdict of each system, and what decided it. One about printed figures has one verdict.
fn row(document: &Document, claim: &Claim, judgements: &[Judgement], systems: &[&str], book: &Book<'_>) -> Value {
    let machines = || book.machines.labels.iter().map(String::as_str).zip(judgements);
    let on = |system: &&str| {
        let of_system = |(machine, of)| each(of).filter(|of| of.system == *system).map(move |of| (machine, of));
        verdicts(machines().flat_map(of_system))
    };
    let about_figures = claim.is_about_figures();
    // The tests of the book's own claims, and those of systems that do not decide, stand in the data alone.
    let has_tests = |(_, judgement): &(&str, &Judgement)| !judgement.cases.is_empty() || !judgement.shown.is_empty();
    let judged = if claim.places.is_empty() { Vec::new() } else { that_judged(machines()) };
    let mut judged: Vec<(&str, &Judgement)> = judged.into_iter().filter(has_tests).collect();
    if about_figures {
        // Each machine says the same of the figures, and what is shown beside them is best of one that measured it.
        let missing = |judgement: &Judgement| judgement.shown.iter().filter(|case| case.found.is_err()).count();
        judged.sort_by_key(|(_, judgement)| missing(judgement));
        judged.truncate(1);
    }
    let heading = |machine: &str, judgement: &Judgement| match (about_figures, judgement.shown.is_empty()) {
        (true, true) => "Figures alone".to_owned(),
        (true, false) => format!("Figures alone, and beside them {machine}"),
        (false, _) => format!("{}, {machine}", judgement.system),
    };
    let found = judged.iter().map(|(machine, judgement)| evidence(&heading(machine, judgement), judgement));
    let found = found.collect::<Vec<Value>>();
    context! {
        id => claim.id.as_str(),
        claim => safe_html(escape(&claim.plain())),
        places => if claim.places.is_empty() { claim.reason() } else { claim.sources(document).join("; ") },
        kind => claim.kind.name(),
        rationale => safe_html(escape(&claim.why())),
        of_figures => about_figures.then(|| verdicts(machines().take(1))),
        verdicts => systems.iter().map(on).collect::<Vec<Option<Value>>>(),
        found,
    }
}

/// What decided a verdict.
fn evidence(heading: &str, judgement: &Judgement) -> Value {
    let several = judgement.cases.len() > 1;
    let one = |case: &CaseResult| {
        let found = case.found.as_ref().ok();
        context! {
            quantity => case.quantity.as_str(),
            case => case.case.as_str(),
            bounds => case.bounds(),
            lies => case.lies(),
            held_together => several && case.is_open_together(),
            value => found.map(Found::written),
            missing => case.missing(),
        }
    };
    context! {
        heading,
        why => judgement.why.as_str(),
        cases => judgement.cases.iter().map(one).collect::<Vec<Value>>(),
        shown => judgement.shown.iter().map(one).collect::<Vec<Value>>(),
    }
}

/// What a chapter says of its text's claims: how many got which verdict, each in a line, and how many are the book's own.
pub(crate) fn of(document: &Document, machines: &Machines<'_>, judged: &[Vec<Judgement>]) -> Option<Value> {
    let claims = || document.claims.iter().zip(judged).filter(|(claim, _)| !claim.places.is_empty());
    let line = |(claim, judgements): (&Claim, &Vec<Judgement>)| {
        let verdict = verdicts(machines.labels.iter().map(String::as_str).zip(judgements))?;
        Some(context! { id => claim.id.as_str(), claim => safe_html(escape(&claim.plain())), verdict })
    };
    let lines = claims().filter_map(line).collect::<Vec<Value>>();
    // By the machine whose verdict stands first in the line.
    let totals = verdict_totals(claims().filter_map(|(_, of)| {
        let judged = that_judged(of.iter().map(|of| ((), of)));
        judged.first().map(|(_, of)| &of.verdict)
    }));
    let own = document.claims.len() - claims().count();
    (!document.claims.is_empty()).then(|| context! { lines, totals, own })
}

/// Every test of every claim, with what it came to on each machine.
pub(super) fn data(judged: &[Judged<'_>], machines: &Machines<'_>) -> Result<Vec<u8>, BookError> {
    let mut records = Vec::new();
    for (document, judged) in judged {
        for (claim, judgements) in document.claims.iter().zip(judged) {
            let found =
                machines.labels.iter().zip(judgements).flat_map(|(machine, of)| each(of).map(move |of| (machine, of)));
            for (machine, judgement) in found {
                let known = [
                    claim.id.clone(),
                    document.id.clone(),
                    claim.plain(),
                    claim.sources(document).join("; "),
                    claim.kind.name().to_owned(),
                    claim.on.map(|on| on.words().to_owned()).unwrap_or_default(),
                    machine.clone(),
                    judgement.system.clone(),
                    judgement.verdict.name(),
                    judgement.why.clone(),
                ];
                let test = |case: Option<&CaseResult>| {
                    let found = case.and_then(|case| case.found.as_ref().ok());
                    let text = |of: Option<&str>| of.unwrap_or_default().to_owned();
                    let test = [
                        text(case.map(|case| case.quantity.as_str())),
                        text(case.map(|case| case.case.as_str())),
                        text(found.and_then(|found| found.filled.as_deref())),
                        found.map(Found::written).unwrap_or_default(),
                        case.and_then(CaseResult::bounds).unwrap_or_default(),
                        text(case.and_then(CaseResult::lies)),
                        text(case.and_then(CaseResult::missing)),
                    ];
                    let mut record: [String; CLAIM.len()] = Default::default();
                    record.iter_mut().zip(known.iter().cloned().chain(test)).for_each(|(cell, text)| *cell = text);
                    record
                };
                let cases = judgement.cases.iter().chain(&judgement.shown);
                let cases: Vec<_> = cases.map(|case| test(Some(case))).collect();
                records.extend(if cases.is_empty() { vec![test(None)] } else { cases });
            }
        }
    }
    data::csv(CLAIM, records)
}

/// What stands in a line of that data.
const CLAIM: [&str; 17] = [
    "claim", "chapter", "words", "places", "kind", "about", "machine", "system", "verdict", "why", "quantity", "case",
    "filled", "value", "bounds", "lies", "missing",
];
