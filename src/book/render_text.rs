//! Sentences with measured values, as Markdown: answers, advice, exercises, and the lesson of a chapter.

use std::collections::BTreeMap;

use minijinja::{Value, context};

use super::document::{Advice, AdviceRow, Document, Exercise, Lesson, Piece, Question, QuizChoice, Sentence, Text};
use super::in_order::each_once;
use super::predicate::{ClaimVerdict, Judgement};
use super::tables::Machines;
use super::templates::safe_html;
use crate::present::escape;
use crate::results::Results;
use crate::units::capitalized;

/// How many characters of a value stand in one line.
const SHORT: usize = 20;

/// A text whose values are filled in; each value says what is behind it where it is pointed at, and its interval on paper.
pub(super) fn render_text(pieces: &[Piece]) -> String {
    let piece = |piece: &Piece| match piece {
        Piece::Words(words) => words.clone(),
        Piece::Value { text, detail, interval } => {
            let interval = interval.as_deref().map(|ends| format!(" data-interval=\"{}\"", escape(ends)));
            let class = if text.chars().count() > SHORT { "measured long" } else { "measured" };
            let (detail, text, interval) = (escape(detail), escape(text), interval.unwrap_or_default());
            format!("<span class=\"{class}\" title=\"{detail}\"{interval}>{text}</span>")
        }
    };
    pieces.iter().map(piece).collect()
}

/// What each run answers to a document's question, system by system, and the claims that it contradicts, each with its reason.
pub(super) fn answers(document: &Document, machines: &Machines<'_>, judged: &[Vec<Judgement>]) -> Vec<Value> {
    let said: Vec<Vec<Said>> = machines.named().map(|machine| said(&document.answer, document, machine)).collect();
    let is_answered = said.iter().flatten().any(|said| said.is_answer);
    let answer = |place: usize| {
        let claims = document.claims.iter().zip(judged).filter(|(claim, judgements)| {
            let refuted = matches!(judgements.get(place).map(|j| &j.verdict), Some(ClaimVerdict::Refuted));
            refuted && !claim.is_about_figures() && !claim.places.is_empty()
        });
        let refuted = claims.map(|(claim, _)| {
            // It stands in HTML, where marks of Markdown would be shown as they are.
            let [claimed, reason] = [claim.plain(), claim.reason()].map(|words| safe_html(escape(&words)));
            context! { id => claim.id.as_str(), claim => claimed, reason }
        });
        let refuted = refuted.collect::<Vec<Value>>();
        let lines = spoken(&said[place], is_answered && refuted.is_empty());
        let is_answer = !lines.is_empty() || !refuted.is_empty();
        is_answer.then(|| context! { lines, refuted })
    };
    (0..said.len()).filter_map(answer).collect()
}

/// What each run advises, system by system, as the lines of a table; nothing of a system that says nothing of any case.
pub(super) fn advice(document: &Document, machines: &Machines<'_>) -> Option<Value> {
    let advice = document.advice.as_ref()?;
    let mut advised = Vec::new();
    for (results, machine) in machines.named() {
        for system in readers_order(results) {
            advised.extend(advised_by(advice, document, results, system).map(|(rows, undecided)| {
                context! { machine => heading(results, machine, system), rows, undecided => safe_html(undecided) }
            }));
        }
    }
    Some(context! {
        title => advice.title.as_str(),
        caption => safe_html(advice.caption.trim()),
        columns => advice.columns.iter().map(|head| safe_html(in_a_cell(head))).collect::<Vec<Value>>(),
        machines => advised,
    })
}

/// The lines of a system, and why the samples decide nothing where one run says nothing of another.
fn advised_by(advice: &Advice, document: &Document, results: &Results, system: &str) -> Option<(Vec<Value>, String)> {
    let (mut rows, mut undecided, mut is_said) = (Vec::new(), Vec::new(), false);
    for AdviceRow { case, choose, values } in &advice.rows {
        let chosen = choose.said(document, results, system).map(|said| {
            undecided.extend(said.undecided.iter().map(|reason| undecided_by(&escape(reason))));
            render_text(&said.pieces)
        });
        let values = values.iter().map(|text| of_system(text, document, results, system));
        let cells: Vec<Result<String, String>> = std::iter::once(chosen).chain(values).collect();
        is_said |= cells.iter().any(Result::is_ok);
        let cells = cells.into_iter().map(|cell| safe_html(in_a_cell(&cell.unwrap_or_else(not_here))));
        rows.push(context! { case => safe_html(in_a_cell(case)), cells => cells.collect::<Vec<Value>>() });
    }
    is_said.then(|| (rows, each_once(undecided).join(" ")))
}

/// Markdown in a cell of a table of Markdown: it stands in one line, and no bar ends the cell.
fn in_a_cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// What sentences of a document say of each machine, system by system.
pub(super) fn by_machine(sentences: &[Sentence], document: &Document, machines: &Machines<'_>) -> Vec<Value> {
    let said: Vec<Said> = machines.named().flat_map(|machine| said(sentences, document, machine)).collect();
    spoken(&said, said.iter().any(|said| said.is_answer))
}

/// What sentences say of a system.
struct Said {
    lines: Value,
    /// Whether one of them was answered.
    is_answer: bool,
}

/// The lines; of a system that answers nothing none, where others do: it was run for something else.
fn spoken(said: &[Said], is_answered: bool) -> Vec<Value> {
    said.iter().filter(|said| said.is_answer || !is_answered).map(|said| said.lines.clone()).collect()
}

/// A system of a machine by its name: a figure of one is no figure of another.
fn heading(results: &Results, machine: &str, system: &str) -> String {
    if results.systems().len() > 1 { format!("{machine}, {system}") } else { machine.to_owned() }
}

/// What sentences of a document say of each system of a run. Nothing of a system that has nothing to say.
fn said(all: &[Sentence], document: &Document, (results, machine): (&Results, &str)) -> Vec<Said> {
    let of_system = |system: &str| {
        let (sentences, undecided) = sentences_of(all, document, results, system);
        let is_answer = sentences.iter().any(Result::is_ok);
        let sentences = sentences.into_iter().map(|said| said.map_or_else(not_here, |pieces| render_text(&pieces)));
        let undecided = undecided.iter().map(|reason| undecided_by(&escape(reason)));
        let sentences = each_once(sentences.chain(undecided)).into_iter().map(safe_html).collect::<Vec<Value>>();
        let is_said = !sentences.is_empty();
        is_said.then(|| Said { lines: context! { machine => heading(results, machine, system), sentences }, is_answer })
    };
    readers_order(results).into_iter().filter_map(of_system).collect()
}

/// The systems of a file as a page names them: other ones, such as PyTorch, before the one that the file is about.
pub(super) fn readers_order(results: &Results) -> Vec<&str> {
    let mut systems = results.systems();
    systems.rotate_left(1);
    systems
}

/// What each sentence says of a system, with the reasons why some decide nothing. What another system did not measure is left
/// out, and so is what has no meaning in the system that the file is about.
pub(super) fn sentences_of(
    all: &[Sentence],
    document: &Document,
    results: &Results,
    system: &str,
) -> (Vec<Result<Vec<Piece>, String>>, Vec<String>) {
    let is_own = system == results.run().system;
    let is_alone = results.systems().len() == 1;
    let (mut sentences, mut undecided) = (Vec::new(), Vec::new());
    for sentence in all {
        match sentence.said(document, results, system) {
            Ok(said) => {
                undecided.extend(said.undecided);
                sentences.push(Ok(said.pieces));
            }
            Err(reason) if is_own && (is_alone || !sentence.is_foreign(document, results)) => {
                sentences.push(Err(reason));
            }
            Err(_) => {}
        }
    }
    (sentences, undecided)
}

/// Why the sentences before it decide nothing, as a sentence.
fn undecided_by(reason: &str) -> String {
    capitalized(reason) + "."
}

/// What the documents answer from results, as plain text, each system by its name where there are several; nothing of those
/// whose experiment did not run.
pub fn takeaways(documents: &[Document], results: &Results) -> Vec<String> {
    let plain = |piece: Piece| match piece {
        Piece::Words(text) | Piece::Value { text, .. } => text,
    };
    let systems = readers_order(results);
    let (mut sentences, mut reasons): (Vec<String>, Vec<String>) = Default::default();
    let ran = |document: &&Document| results.run().order.iter().any(|ran| ran.name == document.id);
    for document in documents.iter().filter(ran) {
        for system in &systems {
            let (said, undecided) = sentences_of(&document.answer, document, results, system);
            for pieces in said.into_iter().flatten() {
                let text: String = pieces.into_iter().map(plain).collect();
                let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                sentences.push(if systems.len() > 1 { format!("{system}: {text}") } else { text });
            }
            reasons.extend(undecided.iter().map(|reason| undecided_by(reason)));
        }
    }
    sentences.extend(reasons);
    each_once(sentences)
}

/// A text of a document with its values: those of the first system of the first machine that measured them, by its name where
/// there are several.
pub(crate) fn filled(text: &Text, document: &Document, machines: &Machines<'_>) -> Value {
    let of_machine =
        |(results, machine)| readers_order(results).into_iter().map(move |system| (results, machine, system));
    let all: Vec<(&Results, &str, &str)> = machines.named().flat_map(of_machine).collect();
    let named = |(results, machine, system): (&Results, &str, &str), words: String| match all.len() {
        1 => words,
        _ => format!("*On {}:* {words}", escape(&heading(results, machine, system))),
    };
    let found = all.iter().map(|one| of_system(text, document, one.0, one.2).map(|words| (*one, words)));
    let words = match found.reduce(|first, next| first.or(next)) {
        _ if !text.is_measured() => text.source().trim().to_owned(),
        Some(Ok((one, words))) => named(one, words),
        Some(Err(reason)) => not_here(reason),
        None => String::new(),
    };
    safe_html(words)
}

fn of_system(text: &Text, document: &Document, results: &Results, system: &str) -> Result<String, String> {
    text.filled(document, results, system).map(|pieces| render_text(&pieces))
}

fn not_here(reason: String) -> String {
    format!("Not answered here: {}.", escape(&reason))
}

/// The exercises of a document.
pub(super) fn exercises(document: &Document, machines: &Machines<'_>) -> Vec<Value> {
    let filled = |text: &Text| filled(text, document, machines);
    let exercise =
        |exercise: &Exercise| context! { task => filled(&exercise.task), answer => filled(&exercise.answer) };
    document.exercises.iter().map(exercise).collect()
}

/// What the template shows of a document's lesson. `titles` are those of the book's chapters, by their identifiers: a chapter
/// that this book leaves out is not named.
pub(super) fn lesson(document: &Document, machines: &Machines<'_>, titles: &BTreeMap<String, String>) -> Option<Value> {
    let Lesson { learn, know, minutes, predict, quiz, takeaways, measured, next } = document.lesson.as_ref()?;
    let texts = |texts: &[_]| texts.iter().map(|text| filled(text, document, machines)).collect::<Vec<_>>();
    let next = next.iter().filter_map(|id| Some(context! { id => safe_html(id.as_str()), title => titles.get(id)? }));
    Some(context! {
        id => safe_html(document.id.as_str()),
        learn => texts(learn),
        know => texts(know),
        minutes => minutes.get(),
        predict => context! {
            ask => filled(&predict.ask, document, machines),
            choices => predict.choices.iter().map(of_a_label).collect::<Vec<Value>>(),
            answers => by_machine(std::slice::from_ref(&predict.answer), document, machines),
        },
        quiz => quiz.iter().map(|asked| question(asked, document, machines)).collect::<Vec<Value>>(),
        takeaways => texts(takeaways),
        measured => by_machine(measured, document, machines),
        next => next.collect::<Vec<Value>>(),
    })
}

fn question(Question { ask, choices }: &Question, document: &Document, machines: &Machines<'_>) -> Value {
    let choice = |QuizChoice { say, right, rationale }: &QuizChoice| {
        context! { say => of_a_label(say), right, rationale => filled(rationale, document, machines) }
    };
    context! { ask => filled(ask, document, machines), choices => choices.iter().map(choice).collect::<Vec<Value>>() }
}

/// A text that stands within an element of HTML, where Markdown is not read: its words, with the marks of code as elements.
fn of_a_label(text: &Text) -> Value {
    // What is escaped has no space at its ends, and words beside code have one.
    let space = |is_there: bool| if is_there { " " } else { "" };
    let part = |(place, part): (usize, &str)| match place % 2 {
        1 => format!("<code>{}</code>", escape(part)),
        _ => {
            let ends = [part.starts_with(char::is_whitespace), part.ends_with(char::is_whitespace)].map(space);
            format!("{}{}{}", ends[0], escape(part), ends[1])
        }
    };
    safe_html(text.source().trim().split('`').enumerate().map(part).collect::<String>())
}
