//! The lessons of a course, from the project's `lessons.yaml`: which chapters each teaches, what to read, which labs belong to
//! it. Without that file, each chapter that is a lesson is one of its own.

use minijinja::{Value, context};
use serde::Deserialize;

use super::document::Document;
use super::project::BookProject;
use super::render_text::filled;
use super::source::Book;
use super::templates::safe_html;
use crate::error::{BookError, FileError};
use crate::results::nearest;
use crate::yaml::{self, Fault, Way};

/// A lesson of the course.
#[derive(Clone, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CourseLesson {
    /// What it is called.
    pub(super) title: String,
    /// The chapters that it teaches.
    pub(super) chapters: Vec<String>,
    /// The pages to read beside them.
    #[serde(default)]
    pub(crate) read: Vec<String>,
    /// Its notebooks.
    #[serde(default)]
    pub(super) labs: Vec<String>,
}

impl CourseLesson {
    /// Its chapters among some, in its order: those that are lessons.
    pub(super) fn taught<'a>(&self, documents: &'a [Document]) -> Vec<&'a Document> {
        let lesson = |id: &String| documents.iter().find(|document| document.id == *id && document.lesson.is_some());
        self.chapters.iter().filter_map(lesson).collect()
    }
}

/// The lessons of a project, which teach chapters of `documents`. Those that teach none of these are left out.
///
/// # Errors
/// The file describes no lessons, or names a chapter, a page or a notebook that there is not; the message says where.
pub(super) fn lessons(project: &BookProject, documents: &[Document]) -> Result<Vec<CourseLesson>, FileError> {
    let Some((origin, text)) = project.lessons() else {
        let own = documents.iter().filter(|document| document.lesson.is_some()).map(|document| {
            let (title, chapters) = (document.title.clone(), vec![document.id.clone()]);
            CourseLesson { title, chapters, read: Vec::new(), labs: Vec::new() }
        });
        return Ok(own.collect());
    };
    let mut lessons: Vec<CourseLesson> = yaml::parse_filled(text, &origin, None)?;
    // A course may leave all notebooks out; one that has some names its own.
    if project.below("notebooks").next().is_none() {
        lessons.iter_mut().for_each(|lesson| lesson.labs.clear());
    }
    let (chapters, pages) = (project.chapters(), project.pages());
    for (place, lesson) in lessons.iter().enumerate() {
        for (key, named, known) in [
            ("chapters", &lesson.chapters, &chapters), //
            ("read", &lesson.read, &pages),
            ("labs", &lesson.labs, &pages),
        ] {
            if let Some((item, name)) = named.iter().enumerate().find(|(_, name)| !known.contains(*name)) {
                let hint = nearest(name, known.iter().map(String::as_str));
                let message = format!("a lesson names `{name}`, which the book does not have");
                let way = Way::default().item(place).key(key).item(item);
                return Err(Fault { way, message, hint }.error(text, &origin));
            }
        }
    }
    Ok(lessons.into_iter().filter(|lesson| !lesson.taught(documents).is_empty()).collect())
}

/// The page for a teacher as Markdown: what each lesson teaches, in how many minutes, with which labs.
pub(super) fn render(book: &Book<'_>) -> Result<String, BookError> {
    let page = |id: &String| context! { id => safe_html(id.as_str()), title => title_of(book, id) };
    let chapter = |document: &Document| {
        let learn = document.lesson.iter().flat_map(|lesson| &lesson.learn);
        context! {
            id => safe_html(document.id.as_str()),
            title => document.title.as_str(),
            learn => learn.map(|text| filled(text, document, &book.machines)).collect::<Vec<Value>>(),
        }
    };
    let lesson = |lesson: &CourseLesson| {
        let taught = lesson.taught(book.documents);
        context! {
            title => lesson.title.as_str(),
            minutes => taught.iter().map(|document| document.minutes()).sum::<u32>(),
            chapters => taught.into_iter().map(chapter).collect::<Vec<Value>>(),
            read => lesson.read.iter().map(page).collect::<Vec<Value>>(),
            labs => lesson.labs.iter().map(page).collect::<Vec<Value>>(),
        }
    };
    let lessons = book.lessons.iter().map(lesson).collect::<Vec<Value>>();
    book.templates.render("syllabus.md.j2", context! { lessons })
}

/// The title of a page: a notebook's own, or the first heading of a page of prose.
fn title_of<'a>(book: &'a Book<'_>, page: &'a str) -> &'a str {
    let notebook = book.notebooks.iter().find(|notebook| notebook.name == page);
    let text = || book.project.text(&format!("src/{page}.md")).ok();
    let heading = || text()?.lines().find_map(|line| line.strip_prefix("# "));
    notebook.map(|notebook| notebook.title.as_str()).or_else(heading).unwrap_or(page)
}
