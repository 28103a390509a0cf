//! Sentences with measured values, as Markdown.

use minijinja::{Value, context};

use super::document::{Document, Exercise, Piece, Sentence, Text};
use super::predicate::{ClaimVerdict, Judgement};
use super::tables::Machines;
use super::templates::safe_html;
use crate::present::escape;
use crate::results::Results;

/// A text whose values are filled in; each value says what is behind it where it is pointed at.
pub(super) fn render_text(pieces: &[Piece]) -> String {
    let piece = |piece: &Piece| match piece {
        Piece::Words(words) => words.clone(),
        Piece::Value { text, detail } => {
            format!("<span class=\"measured\" title=\"{}\">{}</span>", escape(detail), escape(text))
        }
    };
    pieces.iter().map(piece).collect()
}

/// What each run answers to a document's question, and the claims that it contradicts.
pub(super) fn answers(document: &Document, machines: &Machines<'_>, judged: &[Vec<Judgement>]) -> Vec<Value> {
    let answer = |(place, (results, machine)): (usize, (&Results, &str))| {
        let claims = document.claims.iter().zip(judged).filter(|(claim, judgements)| {
            let refuted = matches!(judgements.get(place).map(|j| &j.verdict), Some(ClaimVerdict::Refuted));
            refuted && !claim.is_about_figures() && !claim.places.is_empty()
        });
        let refuted = claims.map(|(claim, _)| {
            // It stands in HTML, where marks of Markdown would be shown as they are.
            context! { id => claim.id.as_str(), claim => safe_html(escape(&claim.plain())) }
        });
        let (text, refuted) = (said(&document.answer, document, results), refuted.collect::<Vec<Value>>());
        let is_answer = !text.is_empty() || !refuted.is_empty();
        is_answer.then(|| context! { machine, text => safe_html(text), refuted })
    };
    machines.named().enumerate().filter_map(answer).collect()
}

/// What sentences of a document say of a run. Empty for none.
pub(super) fn said(all: &[Sentence], document: &Document, results: &Results) -> String {
    let (mut sentences, mut undecided): (Vec<String>, Vec<String>) = Default::default();
    for sentence in all {
        let text = match sentence.said(document, results) {
            Ok(said) => {
                undecided.extend(said.undecided.map(|reason| undecided_by(&escape(&reason))));
                render_text(&said.pieces)
            }
            Err(reason) => format!("Not answered here: {}.", escape(&reason)),
        };
        sentences.push(text);
    }
    sentences.extend(undecided);
    distinct(sentences).join(" ")
}

/// Why the sentences before it decide nothing, as a sentence.
fn undecided_by(reason: &str) -> String {
    let mut letters = reason.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

/// Each text once, where it comes first.
fn distinct(texts: Vec<String>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for text in texts {
        if !found.contains(&text) {
            found.push(text);
        }
    }
    found
}

/// What the documents answer from results, as plain text; nothing of those whose experiment did not run.
pub fn takeaways(documents: &[Document], results: &Results) -> Vec<String> {
    let plain = |piece: Piece| match piece {
        Piece::Words(text) | Piece::Value { text, .. } => text,
    };
    let answers = documents
        .iter()
        .filter(|document| results.run().order.iter().any(|ran| ran.name == document.id))
        .flat_map(|document| document.answer.iter().filter_map(|sentence| sentence.said(document, results).ok()));
    let (mut sentences, mut undecided): (Vec<String>, Vec<String>) = Default::default();
    for said in answers {
        let text: String = said.pieces.into_iter().map(plain).collect();
        sentences.push(text.split_whitespace().collect::<Vec<_>>().join(" "));
        undecided.extend(said.undecided.as_deref().map(undecided_by));
    }
    sentences.extend(undecided);
    distinct(sentences)
}

/// A text of a document, once where it has no values, with values for each run.
pub(super) fn versions(text: &Text, document: &Document, machines: &Machines<'_>) -> Vec<Value> {
    let shown = if text.is_measured() { machines.results.len() } else { 1 };
    let versions = machines.named().take(shown).map(|(results, machine)| {
        let words = match text.filled(document, results) {
            Ok(pieces) => render_text(&pieces),
            Err(reason) => format!("Not answered here: {}.", escape(&reason)),
        };
        context! { machine => (shown > 1).then_some(machine), words => safe_html(words) }
    });
    versions.collect()
}

/// The exercises of a document.
pub(super) fn exercises(document: &Document, machines: &Machines<'_>) -> Vec<Value> {
    let filled = |text: &Text| versions(text, document, machines);
    let exercise =
        |exercise: &Exercise| context! { task => filled(&exercise.task), answer => filled(&exercise.answer) };
    document.exercises.iter().map(exercise).collect()
}
