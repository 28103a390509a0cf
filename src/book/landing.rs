//! The first page: what one machine does, in one screen.

use minijinja::{Value, context};

use super::claims::Judged;
use super::document::{Claim, Document, Panel};
use super::recorded;
use super::render_text::render_text;
use super::tables::machine_labels;
use super::templates::{Templates, safe_html};
use crate::error::BookError;
use crate::measure::Verdict;
use crate::present::escape;
use crate::results::Results;

/// How many verdicts are shown.
const VERDICTS: usize = 3;

/// The page as Markdown; it shows the machine that has measured most, of several the first.
pub(super) fn render(
    templates: &Templates<'_>,
    judged: &[Judged<'_>],
    results: &[Results],
) -> Result<String, BookError> {
    let measured = |results: &Results| results.lookup().metrics().filter(|(_, metric)| metric.is_ok()).count();
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

/// A document's number, with where it comes from.
fn number(document: &Document, results: &Results) -> Option<Value> {
    let headline = document.headline.as_ref()?;
    let (value, missing) = match headline.value.filled(document, results) {
        Ok(pieces) => (render_text(&pieces), None),
        Err(reason) => ("—".to_owned(), Some(reason)),
    };
    let caption = headline.caption.as_str();
    Some(
        context! { value => safe_html(value), caption, missing, chapter => document.id.as_str(), of => document.title.as_str() },
    )
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
    let mut found: Vec<(usize, usize, &Document, &Claim, &'static str)> = Vec::new();
    for &(document, ref judgements) in judged {
        let claims = document.claims.iter().zip(judgements).filter(|(claim, _)| !claim.is_about_figures(document));
        let mut own: Vec<_> = claims
            .filter_map(|(claim, judgements)| {
                let verdict = &judgements.get(run)?.verdict;
                let rank = match verdict {
                    Verdict::Refuted(_) => 0,
                    Verdict::Inconclusive(_) => 1,
                    Verdict::Confirmed(_) => 2,
                    Verdict::NotTestable(_) => return None,
                };
                Some((rank, claim, verdict.name()))
            })
            .collect();
        own.sort_by_key(|(rank, ..)| *rank);
        found.extend(
            own.into_iter().enumerate().map(|(place, (rank, claim, name))| (rank, place, document, claim, name)),
        );
    }
    found.sort_by_key(|(rank, place, ..)| (*rank, *place));
    let shown = found.into_iter().take(VERDICTS).map(|(.., document, claim, name)| {
        let words = claim.claim.trim();
        context! { name, class => name.split(' ').next(), claim => safe_html(escape(words)), chapter => document.id.as_str(), id => claim.id.as_str() }
    });
    shown.collect()
}
