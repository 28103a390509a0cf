//! The first page: what the book is, the largest effects on one machine, a timeline, and how to start.
//!
//! An effect is a document's headline, a ratio to which 1 would be no difference. It is shown where its whole interval between
//! runs lies to one side of 1. Those come first whose samples one interval describes, and of these those whose intervals
//! lie farthest from 1: what is certain counts, not what is large. Where all machines are emulations, the results of a GPU
//! that come with the program stand before them.

use std::cmp::Reverse;

use minijinja::{Value, context};

use super::claims::Judged;
use super::data;
use super::document::{Document, Effect, Headline, Number};
use super::emulation::is_emulated;
use super::in_order::listed;
use super::render_text::{readers_order, render_text};
use super::source::Book;
use super::templates::safe_html;
use crate::error::BookError;
use crate::present::escape;
use crate::results::Results;

/// How many effects are shown of a machine.
const EFFECTS: usize = 3;

/// A document with its headline.
type Headed<'a> = (&'a Document, &'a Headline);

/// The page as Markdown. Of several machines it shows a GPU before an emulation, then the one that has measured most of the
/// numbers on it, then the one with the most rows, then the first.
pub(super) fn render(book: &Book<'_>, title: &str, judged: &[Judged<'_>]) -> Result<String, BookError> {
    let headed: Vec<Headed<'_>> =
        judged.iter().filter_map(|(document, _)| Some((*document, document.headline.as_ref()?))).collect();
    let rows = |results: &Results| results.lookup().metrics().filter(|(_, metric)| metric.is_ok()).count();
    let numbers = |results: &Results| headed.iter().filter(|headed| said(headed, results).is_ok()).count();
    let weight = |results: &Results| (!is_emulated(results), numbers(results), rows(results));
    let named: Vec<(&Results, &str)> = book.machines.named().collect();
    let shown = named.iter().enumerate().max_by_key(|(place, (results, _))| (weight(results), Reverse(*place)));
    let Some((shown, (own, label))) = shown else { return Err(BookError::NoRuns) };
    let others: Vec<&str> =
        named.iter().enumerate().filter(|(place, _)| *place != shown).map(|(_, (_, label))| *label).collect();
    let kept = if is_emulated(own) { book.project.kept().next().transpose()? } else { None };
    // Only where they have a number for this book.
    let of_another = kept.filter(|kept| headed.iter().any(|headed| said(headed, kept).is_ok()));
    let (leading, whose) = match of_another {
        Some(kept) => (kept, kept.environment().device.model.as_str()),
        None => (*own, *label),
    };
    let context = context! {
        title,
        lead => machine(&headed, leading, whose),
        own => of_another.map(|_| machine(&headed, own, label)),
        others => listed(&others),
        timeline => timeline(&headed, leading, whose),
        first => judged.first().map(|(document, _)| document.id.as_str()),
        notebook => book.notebooks.first().map(|notebook| safe_html(notebook.name.as_str())),
    };
    book.templates.render("landing.md.j2", context)
}

/// The number of a headline by the first system that has one, with that system; else why the one that the results are about has
/// none.
fn said<'r>((document, headline): &Headed<'_>, results: &'r Results) -> Result<(&'r str, Number), String> {
    let of = |system| Ok((system, headline.said(document, results, system)?));
    let found = readers_order(results).into_iter().find_map(|system| of(system).ok());
    found.map_or_else(|| of(&results.run().system), Ok)
}

/// What the page says of a machine: the largest effects, and what shows none.
fn machine(headed: &[Headed<'_>], results: &Results, label: &str) -> Value {
    let (mut certain, mut others) = (Vec::new(), Vec::new());
    for (document, headline) in headed {
        let (chapter, of) = (document.id.as_str(), document.title.as_str());
        let other = |why: String| context! { chapter, of, why };
        match said(&(document, headline), results) {
            Err(reason) => others.push(other(reason)),
            Ok((system, number)) => match number.effect.least() {
                Some(least) => certain.push((number.is_steady, least, (*document, *headline), (system, number))),
                None if number.effect == Effect::MayBeNone => {
                    others.push(other(format!("{}: may be no difference", number.interval)));
                }
                None => others.push(other(number.interval)),
            },
        }
    }
    // A sort keeps the order of equals: that of the chapters.
    certain.sort_by(|(steady, least, ..), (other, more, ..)| other.cmp(steady).then(more.total_cmp(least)));
    let effects: Vec<Value> =
        certain.iter().take(EFFECTS).map(|(_, _, headed, number)| effect(headed, number, results)).collect();
    context! {
        machine => label,
        started => results.run().started.as_str(),
        count => certain.len(),
        effects,
        others,
    }
}

/// An effect with its interval, what follows from it, and what other systems measured of the same.
fn effect((document, headline): &Headed<'_>, (of, number): &(&str, Number), results: &Results) -> Value {
    let means = match number.effect {
        // What follows for a GPU does not follow from an emulation.
        _ if is_emulated(results) => None,
        Effect::Above(_) => headline.above.as_ref(),
        _ => headline.below.as_ref(),
    };
    let means = means.and_then(|text| text.filled(document, results, of).ok());
    let others = results.systems().into_iter().filter(|system| system != of);
    let beside = others.filter_map(|system| {
        let number = headline.said(document, results, system).ok()?;
        Some(context! { system, value => shown(&number), interval => interval(&number) })
    });
    context! {
        value => shown(number),
        interval => interval(number),
        caption => headline.caption.as_str(),
        means => means.map(|pieces| safe_html(render_text(&pieces))),
        system => (results.systems().len() > 1).then_some(*of),
        beside => beside.collect::<Vec<Value>>(),
        chapter => document.id.as_str(),
        of => document.title.as_str(),
    }
}

/// The interval; where none describes the samples, why is said in the chapter and where the words are pointed at.
fn interval(number: &Number) -> Value {
    if number.is_steady {
        return Value::from(number.interval.as_str());
    }
    safe_html(format!("<span title=\"{}\">no one interval describes it</span>", escape(&number.interval)))
}

/// A number, with the values behind it where it is pointed at.
fn shown(number: &Number) -> Value {
    let (detail, value) = (escape(&number.detail), escape(&number.value));
    safe_html(format!("<span class=\"measured\" title=\"{detail}\">{value}</span>"))
}

/// The first recorded timeline that a document puts forward.
fn timeline(headed: &[Headed<'_>], results: &Results, machine: &str) -> Option<Value> {
    for (document, headline) in headed {
        let Some(scenario) = &headline.timeline else { continue };
        let drawn = document.panels().find(|panel| panel.timeline.as_ref() == Some(scenario));
        if let Some(drawn) = drawn.filter(|_| results.timeline(scenario).is_some()) {
            let svg = data::timeline_picture(drawn, (results, machine), "landing-timeline");
            return svg.map(|svg| context! { svg => safe_html(svg), chapter => document.id.as_str() });
        }
    }
    None
}
