//! Sentences with measured values, as Markdown.

use minijinja::{Value, context};

use super::templates::safe_html;
use crate::document::{Document, Exercise, Judgement, Piece, Text};
use crate::experiment::{Entry, Lookup};
use crate::measure::Verdict;
use crate::present::{Machines, escape};
use crate::run::Run;

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
    let answer = |(place, (run, machine)): (usize, (&Run, &str))| {
        let claims = document.claims.iter().zip(judged).filter(|(claim, judgements)| {
            let refuted = matches!(judgements.get(place).map(|j| &j.verdict), Some(Verdict::Refuted(_)));
            refuted && !claim.is_about_figures(document)
        });
        let refuted = claims.map(|(claim, _)| {
            context! { id => claim.id.as_str(), claim => safe_html(claim.claim.trim()) }
        });
        context! { machine, text => safe_html(answer(document, run)), refuted => refuted.collect::<Vec<Value>>() }
    };
    machines.named().enumerate().map(answer).collect()
}

/// The sentences of a document's answer, or what an experiment without a document concludes. Empty for none.
fn answer(document: &Document, run: &Run) -> String {
    if document.answer.is_empty() {
        let entry = Entry::default_for(&document.id, &run.environment.device.engine);
        let rows = run.experiments.iter().filter(|left| left.name == document.id).flat_map(|left| &left.rows);
        let takeaways = entry.map(|entry| entry.experiment().takeaways(&Lookup::new(rows))).unwrap_or_default();
        return takeaways.iter().map(|sentence| escape(sentence)).collect::<Vec<_>>().join(" ");
    }
    let mut sentences: Vec<String> = Vec::new();
    for sentence in &document.answer {
        let text = match sentence.said(document, run) {
            Ok(pieces) => render_text(&pieces),
            Err(reason) => format!("Not answered here: {}.", escape(&reason)),
        };
        if !sentences.contains(&text) {
            sentences.push(text);
        }
    }
    sentences.join(" ")
}

/// The exercises of a document. A text without values stands once, one with values for each run.
pub(super) fn exercises(document: &Document, machines: &Machines<'_>) -> Vec<Value> {
    let filled = |text: &Text| -> Vec<Value> {
        let shown = if text.is_measured() { machines.runs.len() } else { 1 };
        let versions = machines.named().take(shown).map(|(run, machine)| {
            let words = match text.filled(document, run) {
                Ok(pieces) => render_text(&pieces),
                Err(reason) => format!("Not answered here: {}.", escape(&reason)),
            };
            context! { machine => (shown > 1).then_some(machine), words => safe_html(words) }
        });
        versions.collect()
    };
    let exercise =
        |exercise: &Exercise| context! { task => filled(&exercise.task), answer => filled(&exercise.answer) };
    document.exercises.iter().map(exercise).collect()
}
