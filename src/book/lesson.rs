//! The lesson of a chapter for its template: texts with their values filled in, for each machine.

use std::collections::BTreeMap;

use minijinja::{Value, context};

use super::document::{Document, Lesson, Question, QuizChoice, Text};
use super::render_text::{by_machine, versions};
use super::tables::Machines;
use super::templates::safe_html;
use crate::present::escape;

/// What the template shows of a document's lesson. `titles` are those of the book's chapters, by their identifiers: a chapter
/// that this book leaves out is not named.
pub(crate) fn of(document: &Document, machines: &Machines<'_>, titles: &BTreeMap<String, String>) -> Option<Value> {
    let Lesson { learn, know, minutes, predict, quiz, takeaways, measured, next } = document.lesson.as_ref()?;
    let texts = |texts: &[_]| texts.iter().map(|text| versions(text, document, machines)).collect::<Vec<_>>();
    let next = next.iter().filter_map(|id| Some(context! { id => safe_html(id.as_str()), title => titles.get(id)? }));
    Some(context! {
        id => safe_html(document.id.as_str()),
        learn => texts(learn),
        know => texts(know),
        minutes => minutes.get(),
        predict => context! {
            ask => versions(&predict.ask, document, machines),
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
        context! {
            say => of_a_label(say),
            right,
            rationale => versions(rationale, document, machines),
        }
    };
    context! { ask => versions(ask, document, machines), choices => choices.iter().map(choice).collect::<Vec<Value>>() }
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
