//! Slides for a teacher: a deck of HTML for each lesson of the course, of the documents and results that its chapters are
//! made of.
//!
//! A deck is a page that needs nothing from elsewhere. Its script shows one slide at a time; without it the slides stand
//! below each other. On paper each is a page.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use minijinja::{Value, context};
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

use super::document::{Document, DocumentFigure, Effect, Piece, Sentence};
use super::emulation::is_emulated;
use super::folder::at;
use super::in_order::each_once;
use super::place::{OutputPlace, SLIDES};
use super::policy;
use super::project::BookProject;
use super::source::{Book, has_rows};
use super::syllabus::CourseLesson;
use super::tables::{Machines, drawn};
use super::templates::safe_html;
use super::{data, render_text};
use crate::error::BookError;
use crate::present::{escape, styled_once};
use crate::results::{Catalog, Results};

/// The folder of a project that holds the decks' templates, style sheet and script.
pub(super) const FOLDER: &str = "templates/slides";
/// How many pictures stand on a slide.
const PICTURES: usize = 2;
/// How many figures of a chapter have slides.
const FIGURES: usize = 3;

/// Writes the decks of a project's lessons into `out/slides`, and gives the page that lists them. Without results they show
/// those that come with the program, and say so.
///
/// # Errors
/// What went wrong and where; `out/slides` is then as it was.
pub fn render_slides(
    results: &[Results],
    project: &BookProject,
    catalog: &Catalog,
    out: &Path,
) -> Result<PathBuf, BookError> {
    let files = decks(results, project, catalog)?;
    let place = OutputPlace::claim(out, SLIDES)?;
    let folder = place.working("slides");
    fs::create_dir_all(&folder).map_err(at(&folder))?;
    for (name, content) in files {
        let path = folder.join(name);
        fs::write(&path, content).map_err(at(&path))?;
    }
    policy::apply(&folder, |_| false)?;
    place.put()?;
    Ok(out.join("slides/index.html"))
}

/// The files of all decks, by their names.
fn decks(
    results: &[Results],
    project: &BookProject,
    catalog: &Catalog,
) -> Result<BTreeMap<String, Vec<u8>>, BookError> {
    let is_kept = results.is_empty();
    let kept = project.kept().filter(|_| is_kept).map(|kept| kept.cloned()).collect::<Result<Vec<Results>, _>>()?;
    let results = if is_kept { &kept } else { results };
    let described = project.documents(&catalog.clone().with_results(results))?;
    let documents: Vec<Document> = described.iter().map(|document| document.with_tables(results, &described)).collect();
    let deck = Deck { book: Book::of(results, project, &documents)?, is_kept };
    let mut files = BTreeMap::from([("index.html".to_owned(), deck.index()?.into_bytes())]);
    for number in 1..=deck.book.lessons.len() {
        files.insert(page_of(number), deck.lesson(number)?.into_bytes());
    }
    for (folder, name) in [("templates", "syncscope.css"), (FOLDER, "slides.css"), (FOLDER, "slides.js")] {
        files.insert(name.to_owned(), project.text(&format!("{folder}/{name}"))?.into());
    }
    Ok(files)
}

fn page_of(number: usize) -> String {
    format!("lesson-{number}.html")
}

/// What the decks are made of.
struct Deck<'a> {
    book: Book<'a>,
    /// Whether the results are those that come with the program.
    is_kept: bool,
}

impl Deck<'_> {
    /// The page that lists the decks.
    fn index(&self) -> Result<String, BookError> {
        let lesson = |(number, lesson): (usize, &CourseLesson)| {
            let taught = lesson.taught(self.book.documents);
            let minutes: u32 = taught.iter().map(|document| document.minutes()).sum();
            let chapters = taught.iter().map(|document| Value::from(document.title.as_str()));
            context! {
                page => safe_html(page_of(number)),
                title => lesson.title.as_str(),
                minutes,
                chapters => chapters.collect::<Vec<Value>>(),
            }
        };
        let lessons = (1..).zip(&self.book.lessons).map(lesson).collect::<Vec<Value>>();
        let text = self.book.templates.render("slides/index.md.j2", context! { lessons })?;
        self.framed("Slides", &text, false)
    }

    /// The deck of a lesson.
    fn lesson(&self, number: usize) -> Result<String, BookError> {
        let lesson = &self.book.lessons[number - 1];
        let chapters = lesson.taught(self.book.documents).into_iter().map(|document| self.chapter(document));
        let labs =
            lesson.labs.iter().filter_map(|name| self.book.notebooks.iter().find(|notebook| notebook.name == *name));
        let next = self.book.lessons.get(number).map(|next| {
            context! { page => safe_html(page_of(number + 1)), title => next.title.as_str() }
        });
        let context = context! {
            number,
            title => lesson.title.as_str(),
            chapters => chapters.collect::<Vec<Value>>(),
            labs => labs.map(|lab| context! { name => lab.name.as_str(), title => lab.title.as_str() }).collect::<Vec<_>>(),
            next,
        };
        let text = self.book.templates.render("slides/deck.md.j2", context)?;
        self.framed(&format!("{number}. {}", lesson.title), &text, true)
    }

    fn chapter(&self, document: &Document) -> Value {
        // A machine that measured nothing of a chapter has no slides in it. The files that come with the program are of one
        // machine.
        let most = if self.is_kept { 1 } else { self.book.results.len() };
        let measured = self.book.machines.named().filter(|(results, _)| has_rows(results, document)).take(most);
        let measured = measured.map(|(results, label)| (results.clone(), self.called(results, label).to_owned()));
        let (measured, labels): (Vec<Results>, Vec<String>) = measured.unzip();
        let (measured, machines) = (&measured, &Machines { labels, ..Machines::of(&measured) });
        let figures = shown_figures(document).into_iter().flat_map(|figure| slides_of(document, figure, machines));
        let texts = if measured.is_empty() { &self.book.machines } else { machines };
        let exercises = render_text::exercises(document, texts);
        context! {
            id => safe_html(document.id.as_str()),
            title => document.title.as_str(),
            question => safe_html(document.question.trim()),
            lesson => render_text::lesson(document, texts, &self.book.titles),
            answers => machines.named().map(|machine| answer(document, machine)).collect::<Vec<Value>>(),
            figures => figures.collect::<Vec<Value>>(),
            exercise => exercises.into_iter().next(),
        }
    }

    /// What a machine is called: in the decks that come with the program by its model alone.
    fn called<'b>(&self, results: &'b Results, label: &'b str) -> &'b str {
        if self.is_kept { &results.environment().device.model } else { label }
    }

    /// A page of slides, made of Markdown.
    fn framed(&self, title: &str, text: &str, is_deck: bool) -> Result<String, BookError> {
        let machines = each_once(self.book.machines.named().map(|(results, label)| {
            let day = results.run().started.split('T').next();
            context! { machine => self.called(results, label), day, is_emulated => is_emulated(results) }
        }));
        let context = context! {
            title,
            is_deck,
            is_kept => self.is_kept,
            machines,
            content => safe_html(self.html(text)),
        };
        self.book.templates.render("slides/frame.html.j2", context)
    }

    /// Markdown as HTML. A link to a chapter leads to its slides; one to another page of the book is its words alone, as is a
    /// picture from elsewhere.
    fn html(&self, text: &str) -> String {
        let mut links = Vec::new();
        let events = Parser::new_ext(text, Options::ENABLE_TABLES).filter_map(|event| match event {
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                let target = self.target(&dest_url).map(CowStr::from);
                links.push(target.is_some());
                target.map(|dest_url| Event::Start(Tag::Link { link_type, dest_url, title, id }))
            }
            Event::End(TagEnd::Link) => links.pop().unwrap_or_default().then_some(Event::End(TagEnd::Link)),
            Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => None,
            event => Some(event),
        });
        let mut page = String::with_capacity(2 * text.len());
        html::push_html(&mut page, events);
        styled_once(&page)
    }

    /// Where a link of a chapter leads to from a slide.
    fn target(&self, link: &str) -> Option<String> {
        let is_deck = (1..=self.book.lessons.len()).any(|number| page_of(number) == link) || link == "index.html";
        if is_deck || ["https://", "http://"].iter().any(|scheme| link.starts_with(scheme)) {
            return Some(link.to_owned());
        }
        let id = link.split('#').next()?.strip_suffix(".md")?;
        let place = self.book.lessons.iter().position(|lesson| lesson.chapters.iter().any(|chapter| chapter == id))?;
        Some(format!("{}#{id}", page_of(place + 1)))
    }
}

/// The figures that are about what the lesson asks for; else the chapter's first.
fn shown_figures(document: &Document) -> Vec<&DocumentFigure> {
    let is_asked = document.asked_figures();
    let found: Vec<&DocumentFigure> = document.figures.iter().filter(|figure| is_asked(figure)).take(FIGURES).collect();
    if found.is_empty() { document.figures.iter().take(1).collect() } else { found }
}

/// The slides of a figure: so many pictures on each, of one machine.
fn slides_of(document: &Document, figure: &DocumentFigure, machines: &Machines<'_>) -> Vec<Value> {
    let mut slides = Vec::new();
    for (number, machine) in (1..).zip(machines.named()) {
        let mut pictures = Vec::new();
        for (place, panel) in (1..).zip(&figure.panels) {
            let id = format!("{}-{}-{place}-{number}", document.id, figure.id);
            match panel.timeline {
                Some(_) => pictures.extend(data::timeline_picture(panel, machine, &id)),
                None => {
                    let table = document.table(&panel.table);
                    pictures.extend(drawn(table, panel, machine.1, machine.0, &id).pictures);
                }
            }
        }
        let parts = pictures.chunks(PICTURES);
        let of = parts.len();
        for (part, pictures) in (1..).zip(parts) {
            let which = if of > 1 { format!(" ({part} of {of})") } else { String::new() };
            slides.push(context! {
                title => format!("{}{which}", figure.title),
                caption => (part == 1).then(|| safe_html(figure.caption.trim())),
                machine => machine.1,
                pictures => pictures.iter().map(|svg| safe_html(svg.as_str())).collect::<Vec<Value>>(),
            });
        }
    }
    slides
}

/// What a machine answers in three lines: its number with the interval, what was to be predicted, what to keep in mind; and
/// the values behind them.
fn answer(document: &Document, (results, machine): (&Results, &str)) -> Value {
    let number = document.headline.as_ref().and_then(|headline| {
        let number = headline.said(document, results, &results.run().system).ok()?;
        let is_open = matches!(number.effect, Effect::MayBeNone);
        Some(context! { value => number.value, interval => number.interval, caption => headline.caption.as_str(), is_open })
    });
    let lesson = document.lesson.iter();
    let lines = lesson.flat_map(|lesson| std::iter::once(&lesson.predict.answer).chain(&lesson.measured));
    let lines: Vec<Sentence> = lines.cloned().collect();
    let mut values: Vec<String> = Vec::new();
    let mut said = Vec::new();
    let systems = results.systems();
    // A slide has room for the values of one system: those of several stand in the chapter, and each has one paragraph.
    let is_alone = systems.len() == 1;
    for system in systems {
        let (sentences, _) = render_text::sentences_of(&lines, document, results, system);
        let mut of_system = Vec::new();
        for pieces in sentences.into_iter().flatten() {
            values.extend(pieces.iter().filter_map(|piece| match piece {
                Piece::Value { detail, .. } if is_alone => Some(detail.clone()),
                _ => None,
            }));
            of_system.push(render_text::render_text(&pieces));
        }
        if is_alone {
            said.extend(of_system.into_iter().map(safe_html));
        } else if !of_system.is_empty() {
            said.push(safe_html(format!("{}: {}", escape(system), of_system.join(" "))));
        }
    }
    context! { machine, number, said, values => each_once(values) }
}

#[cfg(test)]
mod tests;
