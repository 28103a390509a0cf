//! What a book is made of besides results: its configuration, prose, documents, templates and suites.
//!
//! The program carries a course of its own. An author's lies in a folder, which [`BookProject::write`] begins as a copy of
//! it: `book.toml`, `src/`, `documents/`, `templates/` and `suites/`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use include_dir::{Dir, include_dir};

use crate::document::{DOCUMENTS, Document, is_yaml};
use crate::error::BookError;

static PROSE: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/book/src");
static TEMPLATES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/report-templates");
static SUITES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/book/suites");
const BOOK_TOML: &str = include_str!("../../book/book.toml");

/// What a book is made of besides results.
#[derive(Clone, Debug, PartialEq)]
pub struct BookProject {
    /// The documents, in the order of their chapters.
    pub documents: Vec<Document>,
    /// The files, by their path within the course's folder.
    files: BTreeMap<PathBuf, Vec<u8>>,
    /// Where the files come from, for messages; `None` for the program itself.
    folder: Option<PathBuf>,
}

impl BookProject {
    /// The course that comes with the program.
    ///
    /// # Errors
    /// One of its documents is wrong.
    pub fn embedded() -> Result<Self, BookError> {
        let mut files = BTreeMap::from([(PathBuf::from("book.toml"), BOOK_TOML.as_bytes().to_vec())]);
        for (name, folder) in
            [("src", &PROSE), ("documents", &DOCUMENTS), ("templates", &TEMPLATES), ("suites", &SUITES)]
        {
            collect(Path::new(name), folder, &mut files);
        }
        Self::of(files, None)
    }

    /// The course in a folder.
    ///
    /// # Errors
    /// A file cannot be read, a part is missing, or a document is wrong; the message names the file.
    pub fn read(folder: &Path) -> Result<Self, BookError> {
        let mut files = BTreeMap::new();
        let toml = folder.join("book.toml");
        files.insert(PathBuf::from("book.toml"), fs::read(&toml).map_err(at(&toml))?);
        for name in ["src", "documents", "templates", "suites"] {
            gather(folder, Path::new(name), &mut files)?;
        }
        Self::of(files, Some(folder.to_owned()))
    }

    fn of(files: BTreeMap<PathBuf, Vec<u8>>, folder: Option<PathBuf>) -> Result<Self, BookError> {
        let mut course = Self { documents: Vec::new(), files, folder };
        let texts = course.below("documents").filter(|(path, _)| is_yaml(path));
        course.documents = Document::all(texts.map(|(path, text)| (course.name(path), text)))?;
        Ok(course)
    }

    /// Writes the course into a folder that is empty or not there.
    ///
    /// # Errors
    /// [`BookError::NotEmpty`] if the folder holds anything; otherwise the file that cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), BookError> {
        fs::create_dir_all(folder).map_err(at(folder))?;
        if fs::read_dir(folder).map_err(at(folder))?.next().is_some() {
            return Err(BookError::NotEmpty { path: folder.to_owned() });
        }
        for (path, content) in &self.files {
            let path = folder.join(path);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).map_err(at(parent))?;
            }
            fs::write(&path, content).map_err(at(&path))?;
        }
        Ok(())
    }

    /// The files below one of its folders, by their path within the course.
    pub(super) fn below<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = (&'a Path, &'a [u8])> {
        let files = self.files.iter().filter(move |(path, _)| path.starts_with(folder));
        files.map(|(path, content)| (path.as_path(), content.as_slice()))
    }

    /// A file's text.
    ///
    /// # Errors
    /// There is no such file, or it is not UTF-8.
    pub fn text(&self, path: &str) -> Result<&str, BookError> {
        let content = self.files.get(Path::new(path)).and_then(|content| std::str::from_utf8(content).ok());
        content.ok_or_else(|| BookError::Missing { name: self.name(Path::new(path)) })
    }

    /// The name of a file in messages.
    pub(super) fn name(&self, path: &Path) -> String {
        match &self.folder {
            Some(folder) => folder.join(path).display().to_string(),
            None => {
                let in_tree = match path.strip_prefix("templates") {
                    Ok(rest) => Path::new("report-templates").join(rest),
                    Err(_) => Path::new("book").join(path),
                };
                in_tree.display().to_string()
            }
        }
    }
}

/// All files below an embedded folder.
fn collect(name: &Path, folder: &Dir<'_>, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for file in folder.files() {
        files.insert(name.join(file.path()), file.contents().to_vec());
    }
    folder.dirs().for_each(|folder| collect(name, folder, files));
}

/// All files below a folder of a course but for hidden ones.
fn gather(course: &Path, name: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) -> Result<(), BookError> {
    let folder = course.join(name);
    for entry in fs::read_dir(&folder).map_err(at(&folder))? {
        let entry = entry.map_err(at(&folder))?;
        let path = name.join(entry.file_name());
        let full = course.join(&path);
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        if full.is_dir() {
            gather(course, &path, files)?;
        } else {
            files.insert(path, fs::read(&full).map_err(at(&full))?);
        }
    }
    Ok(())
}

pub(super) fn at(path: &Path) -> impl Fn(io::Error) -> BookError + '_ {
    move |source| BookError::Io { path: path.to_owned(), source }
}
