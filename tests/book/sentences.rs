//! What the chapters say in sentences, and the first page.

use syncscope::document::Piece;
use syncscope::experiment::{Entry, Outcome, Row};

use super::*;

fn words(pieces: &[Piece]) -> String {
    let piece = |piece: &Piece| match piece {
        Piece::Words(words) => words.clone(),
        Piece::Value { text, .. } => text.clone(),
    };
    pieces.iter().map(piece).collect()
}

/// The run with the samples of the rows `id` multiplied.
fn scaled(mut run: Run, id: &str, factor: f64) -> Run {
    for row in run.experiments.iter_mut().flat_map(|left| &mut left.rows).filter(|row| row.id == id) {
        match &mut row.outcome {
            Outcome::Measured { samples, .. } | Outcome::Derived { samples, .. } => {
                samples.iter_mut().for_each(|sample| *sample *= factor);
            }
            _ => {}
        }
    }
    run
}

#[test]
fn every_document_answers_in_two_sentences_whatever_the_verdict() {
    for document in documents() {
        assert_eq!(document.answer.len(), 2, "{}", document.id);
        for run in [fixture::run(), kept("nvidia-h200.json")] {
            for sentence in &document.answer {
                for text in [&sentence.then, &sentence.otherwise, &sentence.unclear] {
                    // One GPU has no second device: the reason is what is said then.
                    match text.filled(&document, &run) {
                        Ok(pieces) => assert!(pieces.iter().any(|piece| matches!(piece, Piece::Value { .. }))),
                        Err(reason) => assert!(document.id == "idle-device", "{}: {reason}", document.id),
                    }
                }
            }
        }
    }
}

#[test]
fn an_answer_says_when_the_machine_contradicts_the_text() {
    let documents = documents();
    let document = documents.iter().find(|document| document.id == "sync-points").unwrap();
    let said = |run: &Run| words(&document.answer[0].said(document, run).unwrap());
    assert!(said(&fixture::run()).contains("as the text has it"), "{}", said(&fixture::run()));
    let other = scaled(fixture::run(), "sync-points.small.delta", 1e-6);
    assert!(said(&other).contains("contradicts the text"), "{}", said(&other));
    let chapter = rendered(other);
    assert!(page(&chapter, "site/sync-points.html").contains("This machine contradicts what the text claims"));
}

#[test]
fn a_value_in_a_sentence_is_that_of_the_run_and_says_what_is_behind_it() {
    let documents = documents();
    let document = documents.iter().find(|document| document.id == "sync-points").unwrap();
    let value = |run: &Run| {
        let pieces = document.answer[0].said(document, run).unwrap();
        pieces.into_iter().find_map(|piece| match piece {
            Piece::Value { text, detail } if detail.starts_with("small.fp16.async") => Some((text, detail)),
            _ => None,
        })
    };
    let (text, detail) = value(&fixture::run()).unwrap();
    let doubled = scaled(fixture::run(), "sync-points.small.async", 2.0);
    assert_ne!(value(&doubled).unwrap().0, text);
    assert!(detail.contains("n = "), "{detail}");
}

#[test]
fn what_was_not_measured_is_said_in_place_of_an_answer() {
    let mut run = fixture::run();
    run.experiments.retain(|left| left.name != "overlap");
    let files = rendered(run);
    let chapter = page(&files, "site/overlap.html");
    assert!(
        chapter.contains("Not answered here: implicit.copy.blocks was not measured: not in this run."),
        "{chapter}"
    );
}

#[test]
fn exercises_are_folded_and_hold_values() {
    let files = fixture_book();
    for document in documents() {
        let chapter = page(files, &format!("site/{}.html", document.id));
        assert!(!document.exercises.is_empty(), "{}", document.id);
        assert_eq!(
            chapter.matches("<details class=\"exercise\">").count(),
            document.exercises.len(),
            "{}",
            document.id
        );
        assert!(!chapter.contains("{{") && !chapter.contains("}}"), "{}", document.id);
    }
}

#[test]
fn the_first_page_has_five_numbers_three_verdicts_a_timeline_and_the_command() {
    let files = rendered(kept("nvidia-h200.json"));
    let first = page(&files, "site/index.html");
    assert_eq!(first.matches("<span class=\"big\">").count(), 5);
    assert_eq!(first.matches("<li class=\"verdict ").count(), 3);
    assert!(first.contains("Timeline of") && first.contains("cargo run --release --bin report"));
    assert!(!first.contains("not measured here"));
}

#[test]
fn the_first_page_shows_the_run_that_measured_most() {
    let files =
        rendered_as(&BookProject::embedded().unwrap(), &[kept("nvidia-h200-x2.json"), kept("nvidia-h200.json")]);
    assert!(!page(&files, "site/index.html").contains("not measured here"));
}

#[test]
fn a_chapter_beyond_the_texts_stands_where_a_run_measured_its_rows() {
    let without = page(fixture_book(), "book/src/SUMMARY.md");
    assert!(!without.contains("(ceilings.md)"), "{without}");
    let mut run = fixture::run();
    let rows = Entry::default_for("ceilings", "cpu").unwrap().experiment().rows();
    let reason = || Outcome::Skipped { reason: "left out by choice".to_owned() };
    let row = |id: &str, unit, outcome| Row { id: id.to_owned(), parameters: Default::default(), unit, outcome };
    let mut left = run.experiments[0].clone();
    left.name = "ceilings".to_owned();
    left.rows = rows.iter().map(|plan| row(plan.id, plan.unit, reason())).collect();
    run.experiments.push(left);
    let files = rendered(run);
    let chapter = page(&files, "site/ceilings.html");
    // Its tables are those of the experiment: the document has words alone.
    for plan in rows {
        assert!(chapter.contains(&format!("data-id=\"{}\"", plan.id)), "{}", plan.id);
    }
}
