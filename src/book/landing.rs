//! The first page: what one machine does, in one screen.

use minijinja::{Value, context};

use super::claims::Judged;
use super::document::{Claim, Document, Kind, Panel};
use super::predicate::Verdict;
use super::recorded;
use super::tables::machine_labels;
use super::templates::{Templates, safe_html};
use crate::error::BookError;
use crate::present::escape;
use crate::results::Results;

/// How many verdicts are shown.
const VERDICTS: usize = 3;

/// The page as Markdown; it shows the machine that has measured most of the numbers on it, of several the one with the most
/// rows, of several the first.
pub(super) fn render(
    templates: &Templates<'_>,
    judged: &[Judged<'_>],
    results: &[Results],
) -> Result<String, BookError> {
    let rows = |results: &Results| results.lookup().metrics().filter(|(_, metric)| metric.is_ok()).count();
    let headlines = || judged.iter().filter_map(|(document, _)| Some((document.headline.as_ref()?, document)));
    let numbers =
        |results: &Results| headlines().filter(|(headline, document)| headline.said(document, results).is_ok()).count();
    let measured = |results: &Results| (numbers(results), rows(results));
    let named: Vec<(&Results, String)> = results.iter().zip(machine_labels(results)).collect();
    let shown =
        named.iter().enumerate().max_by_key(|(place, (results, _))| (measured(results), std::cmp::Reverse(*place)));
    let Some((shown, (results, machine))) = shown else { return Err(BookError::NoRuns) };
    let others = named.iter().enumerate().filter(|(place, _)| *place != shown).map(|(_, (_, label))| label.as_str());
    let context = context! {
        title => results.title(),
        machine => machine.as_str(),
        others => others.collect::<Vec<_>>().join(", "),
        started => results.run().started.as_str(),
        numbers => judged.iter().filter_map(|(document, _)| number(document, results)).collect::<Vec<Value>>(),
        timeline => timeline(judged, results, machine)?,
        verdicts => verdicts(judged, shown),
    };
    templates.render("landing.md.j2", context)
}

/// A document's number with its interval, and where it comes from.
fn number(document: &Document, results: &Results) -> Option<Value> {
    let headline = document.headline.as_ref()?;
    let (number, missing) = match headline.said(document, results) {
        Ok(number) => (Some(number), None),
        Err(reason) => (None, Some(reason)),
    };
    let number = number.map(|number| {
        let value =
            format!("<span class=\"measured\" title=\"{}\">{}</span>", escape(&number.detail), escape(&number.value));
        context! { value => safe_html(value), interval => number.interval, may_be_none => number.may_be_none }
    });
    let (caption, chapter, of) = (headline.caption.as_str(), document.id.as_str(), document.title.as_str());
    Some(context! { number, caption, missing, chapter, of })
}

/// The first recorded timeline that a document puts forward.
fn timeline(judged: &[Judged<'_>], results: &Results, machine: &str) -> Result<Option<Value>, BookError> {
    for (document, _) in judged {
        let Some(scenario) = document.headline.as_ref().and_then(|headline| headline.timeline.as_ref()) else {
            continue;
        };
        let panels = document.figures.iter().flat_map(|figure| &figure.panels);
        let drawn = panels.into_iter().find(|panel: &&Panel| panel.timeline.as_ref() == Some(scenario));
        if let Some(drawn) = drawn.filter(|_| results.timeline(scenario).is_some()) {
            let svg = recorded::picture(drawn, scenario, (results, machine), "landing-timeline".to_owned())?;
            return Ok(svg.map(|svg| context! { svg => safe_html(svg), chapter => document.id.as_str() }));
        }
    }
    Ok(None)
}

/// The verdicts that surprise most: what the machine refutes comes first, then what it leaves open; of each document
/// one, as long as there are others. `run` is the place of the machine's run.
fn verdicts(judged: &[Judged<'_>], run: usize) -> Vec<Value> {
    let mut found: Vec<(usize, usize, &Document, &Claim, &Verdict)> = Vec::new();
    for &(document, ref judgements) in judged {
        let claims = document.claims.iter().zip(judgements).filter(|(claim, _)| is_news(claim));
        let mut own: Vec<_> = claims
            .filter_map(|(claim, judgements)| {
                let verdict = &judgements.get(run)?.verdict;
                Some((rank(verdict)?, claim, verdict))
            })
            .collect();
        own.sort_by_key(|(rank, ..)| *rank);
        found.extend(
            own.into_iter().enumerate().map(|(place, (rank, claim, verdict))| (rank, place, document, claim, verdict)),
        );
    }
    found.sort_by_key(|(rank, place, ..)| (*rank, *place));
    let shown = found.into_iter().take(VERDICTS).map(|(.., document, claim, verdict)| {
        context! {
            name => verdict.name(),
            class => verdict.class(),
            claim => safe_html(escape(&claim.plain())),
            chapter => document.id.as_str(),
            id => claim.id.as_str(),
        }
    });
    shown.collect()
}

/// Whether a verdict on a claim says something of the machine: not one on printed figures, nor one on a formula that its
/// text calls conceptual, nor on a figure that the text has from its own machine.
fn is_news(claim: &Claim) -> bool {
    !matches!(claim.kind, Kind::Arithmetic | Kind::Model | Kind::Value)
}

/// The place of a verdict among those that are shown; none of one that says nothing.
fn rank(verdict: &Verdict) -> Option<usize> {
    match verdict {
        Verdict::Refuted => Some(0),
        Verdict::Inconclusive => Some(1),
        Verdict::Confirmed => Some(2),
        Verdict::CarriesOver | Verdict::DiffersHere | Verdict::GoodToWithin(_) | Verdict::NotJudged(_) => None,
    }
}
