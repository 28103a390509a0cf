//! What the pages of a book, and its slides, are made of.

use std::collections::BTreeMap;

use super::document::Document;
use super::notebooks::{self, Notebook};
use super::project::BookProject;
use super::syllabus::{self, CourseLesson};
use super::tables::Machines;
use super::templates::Templates;
use crate::error::BookError;
use crate::results::Results;

/// What the pages of a book, and its slides, are made of.
pub(super) struct Book<'a> {
    pub(super) templates: Templates<'a>,
    pub(super) project: &'a BookProject,
    pub(super) results: &'a [Results],
    pub(super) machines: Machines<'a>,
    /// Those that have a chapter, in its order.
    pub(super) documents: &'a [Document],
    /// The titles of the chapters, by their identifiers.
    pub(super) titles: BTreeMap<String, String>,
    pub(super) lessons: Vec<CourseLesson>,
    pub(super) notebooks: Vec<Notebook>,
}

impl<'a> Book<'a> {
    pub(super) fn of(
        results: &'a [Results],
        project: &'a BookProject,
        documents: &'a [Document],
    ) -> Result<Self, BookError> {
        Ok(Self {
            templates: Templates::of(project)?,
            project,
            results,
            machines: Machines::of(results),
            documents,
            titles: documents.iter().map(|document| (document.id.clone(), document.title.clone())).collect(),
            lessons: syllabus::lessons(project, documents)?,
            notebooks: notebooks::of(project)?,
        })
    }
}
