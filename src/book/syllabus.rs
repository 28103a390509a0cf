//! The lessons of a course, from the project's `lessons.yaml`: which chapters each teaches, what to read, which labs belong to
//! it. Without that file, each chapter that is a lesson is one of its own.

use serde::Deserialize;

use super::document::Document;
use super::project::BookProject;
use crate::error::FileError;
use crate::results::nearest;
use crate::yaml::{self, Way};

/// A lesson of the course.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CourseLesson {
    /// What it is called.
    pub(super) title: String,
    /// The chapters that it teaches.
    pub(super) chapters: Vec<String>,
    /// The pages to read beside them.
    #[serde(default)]
    pub(super) read: Vec<String>,
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
        let own = documents.iter().filter(|document| document.lesson.is_some());
        return Ok(own.map(of_chapter).collect());
    };
    let lessons: Vec<CourseLesson> = yaml::parse_filled(text, &origin, None)?;
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
                return Err(Way::default().item(place).key(key).item(item).error(text, &origin, message, hint));
            }
        }
    }
    Ok(lessons.into_iter().filter(|lesson| !lesson.taught(documents).is_empty()).collect())
}

fn of_chapter(document: &Document) -> CourseLesson {
    let (title, chapters) = (document.title.clone(), vec![document.id.clone()]);
    CourseLesson { title, chapters, read: Vec::new(), labs: Vec::new() }
}
