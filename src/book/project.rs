//! What a book is made of besides results: its configuration, prose, documents, hardware, templates, suites and notebooks.
//!
//! A program carries a project of its own ([`BookProject::of_program`]). An author's lies in a folder, which [`BookProject::write`] begins as a copy
//! of it: `book.toml`, `hardware.yaml`, `texts.yaml`, `lessons.yaml`, `src/`, `documents/`, `templates/`, `suites/` and
//! `notebooks/`; an author may add `audits/`, of which each file becomes a chapter, and may leave out `lessons.yaml`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use super::document::{Document, Hardware, Names, Texts, is_yaml};
use super::folder::{Folder, has_ending};
use crate::error::{BookError, FileError};
use crate::files::{fill, is_missing};
use crate::results::{Catalog, Results};
use crate::yaml;

/// The files at its top, and the folders.
const FILES: [&str; 4] = [CONFIGURATION, HARDWARE, TEXTS, LESSONS];
const FOLDERS: [&str; 5] = ["src", "documents", "templates", "suites", "notebooks"];
const CONFIGURATION: &str = "book.toml";
/// The folder that a project may have, of audits.
const AUDITS: &str = "audits";
const HARDWARE: &str = "hardware.yaml";
const TEXTS: &str = "texts.yaml";
/// The file that a project may have, of lessons.
const LESSONS: &str = "lessons.yaml";
/// The files of YAML in a project, or their folders, with the names of their schemas.
const SCHEMAS: [(&str, &str); 5] =
    [("suites", "suite"), ("documents", "document"), (LESSONS, "lessons"), (TEXTS, "texts"), (HARDWARE, "hardware")];

/// Results that come with a program, which are read when they are first asked for.
pub type KeptResults = LazyLock<Result<Results, FileError>>;

/// What a book is made of besides results.
///
/// ```
/// use syncscope_book::BookProject;
///
/// let project = BookProject::of_program([("suites/own.yaml".into(), b"title: Own".to_vec())], &[]);
/// assert!(project.suites().eq(["own"]));
/// ```
#[derive(Clone, Debug)]
pub struct BookProject {
    /// The files, by their path within the project's folder.
    files: BTreeMap<PathBuf, Vec<u8>>,
    /// Where the files come from, for messages; `None` for the program itself.
    folder: Option<PathBuf>,
    /// The program's own chapters, which a project may leave out.
    carried: BTreeSet<String>,
    /// The results of a real GPU that come with the program, for a reader who has none: of the suite of the course, then others.
    kept: &'static [KeptResults],
    /// The pages of audits, by their names.
    pub(super) audits: Vec<AuditPage>,
}

/// An audit as a chapter, as whoever can read audits made it.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditPage {
    /// What it is called: its page is named after it.
    pub name: String,
    /// The audit's own text (JSON), to download.
    pub json: String,
    /// What stands below the title, as Markdown. A link to a chapter is an element `<a href="ID.html">`.
    pub content: String,
}

impl BookProject {
    /// The project that a program carries: its files by their path within a project's folder, and the results of a real GPU for
    /// a reader who has none, those of the course first.
    pub fn of_program(files: impl IntoIterator<Item = (PathBuf, Vec<u8>)>, kept: &'static [KeptResults]) -> Self {
        let files = without_folders_beside_notebooks(files.into_iter().collect());
        let documents = files.keys().filter(|path| path.starts_with("documents"));
        let carried = documents.filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned())).collect();
        Self { files, folder: None, carried, kept, audits: Vec::new() }
    }

    /// Whether a folder has the settings of a book, which each project has, as far as it can be looked at.
    pub fn is_begun(folder: &Path) -> bool {
        !is_missing(&folder.join(CONFIGURATION))
    }

    /// Whether a file is one of a project that says nothing without the others: its settings, hardware, texts, lessons.
    pub fn is_part(file: &Path) -> bool {
        FILES.iter().any(|name| file.ends_with(name)) && file.parent().is_some_and(Self::is_begun)
    }

    /// The project in a folder: nothing outside of it is read. What comes with the program is that of `program`.
    ///
    /// # Errors
    /// A file cannot be read, a part is missing, or a link leads out of the folder; the message names the file.
    pub fn read(folder: &Path, program: &Self) -> Result<Self, BookError> {
        let mut read = Folder::open(folder)?;
        for name in FILES {
            // Courses were begun before there were lessons.
            if name != LESSONS || !is_missing(&folder.join(name)) {
                read.file(Path::new(name))?;
            }
        }
        for name in FOLDERS {
            read.all_below(Path::new(name))?;
        }
        if !is_missing(&folder.join(AUDITS)) {
            read.all_below(Path::new(AUDITS))?;
        }
        let files = without_folders_beside_notebooks(read.into_files());
        let (carried, kept) = (program.carried.clone(), program.kept);
        Ok(Self { files, folder: Some(folder.to_owned()), carried, kept, audits: Vec::new() })
    }

    /// The results that come with the program, those of the course first.
    ///
    /// # Errors
    /// A file is none that this program can read.
    pub(super) fn kept(&self) -> impl Iterator<Item = Result<&'static Results, BookError>> {
        let unreadable = |error: &FileError| BookError::Build { message: error.to_string() };
        self.kept.iter().map(move |kept| kept.as_ref().map_err(unreadable))
    }

    /// With a file at this path in the project: `documents/NAME.yaml`, `suites/NAME.yaml`, `notebooks/NAME.ipynb`.
    #[must_use]
    pub fn with_file(mut self, path: impl Into<PathBuf>, text: &str) -> Self {
        self.files.insert(path.into(), text.as_bytes().to_vec());
        self
    }

    /// With an audit as a chapter, in the place of one of its name.
    #[must_use]
    pub fn with_audit(mut self, audit: AuditPage) -> Self {
        self.audits.retain(|other| other.name != audit.name);
        self.audits.push(audit);
        self.audits.sort_by(|one, other| one.name.cmp(&other.name));
        self
    }

    /// The audits in its folder: what each is called, the name of its file in messages, and its text.
    ///
    /// # Errors
    /// A file is not UTF-8.
    pub fn audits(&self) -> Result<Vec<(String, String, &str)>, BookError> {
        let files = self.below(AUDITS).filter(|(path, _)| has_ending(path, "json"));
        let audit = |path: &Path| {
            let text = self.text(&path.display().to_string())?;
            Ok((path.file_stem().unwrap_or_default().to_string_lossy().into_owned(), self.name(path), text))
        };
        files.map(|(path, _)| audit(path)).collect()
    }

    /// The JSON Schema of `lessons.yaml`.
    pub fn lessons_schema() -> schemars::Schema {
        schemars::schema_for!(Vec<super::syllabus::CourseLesson>)
    }

    /// With JSON Schemas by their names, and in each file of that kind the line by which an editor finds its schema: `suite` and
    /// `document` are of the files in a folder, `lessons`, `texts` and `hardware` of one file each.
    #[must_use]
    pub fn with_schemas<'a>(mut self, schemas: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        for (name, schema) in schemas {
            let Some((place, _)) = SCHEMAS.iter().find(|(_, own)| *own == name) else { continue };
            let up = if is_yaml(Path::new(place)) { "" } else { "../" };
            let line = format!("# yaml-language-server: $schema={up}schemas/{name}.json\n");
            let files = self.files.iter_mut().filter(|(path, _)| path.starts_with(place) && is_yaml(path));
            // A project that was begun so has the line.
            for (_, content) in files.filter(|(_, content)| !content.starts_with(line.as_bytes())) {
                content.splice(..0, line.bytes());
            }
            self.files.insert(PathBuf::from(format!("schemas/{name}.json")), schema.as_bytes().to_vec());
        }
        self
    }

    /// The names of its notebooks.
    pub fn notebooks(&self) -> impl Iterator<Item = String> {
        let notebooks = self.below("notebooks").filter(|(path, _)| has_ending(path, "ipynb"));
        notebooks.filter_map(|(path, _)| Some(path.file_stem()?.to_string_lossy().into_owned()))
    }

    /// The names of its suites.
    pub fn suites(&self) -> impl Iterator<Item = &str> {
        let suites = self.below("suites").filter(|(path, _)| is_yaml(path));
        suites.filter_map(|(path, _)| path.file_stem()?.to_str())
    }

    /// The text of the suite in the file `suites/NAME.yaml`, with the file's name in messages.
    pub fn suite(&self, name: &str) -> Option<(String, &str)> {
        let path = format!("suites/{name}.yaml");
        self.text(&path).ok().map(|text| (self.name(Path::new(&path)), text))
    }

    /// The peak rates of hardware.
    ///
    /// # Errors
    /// The file does not describe hardware; the message says where.
    pub fn hardware(&self) -> Result<Hardware, FileError> {
        let (name, text) = self.named(HARDWARE)?;
        Hardware::parse(&name, text)
    }

    /// The texts that claims stand in.
    ///
    /// # Errors
    /// The file does not describe texts; the message says where.
    pub fn texts(&self) -> Result<Texts, FileError> {
        let (name, text) = self.named(TEXTS)?;
        Texts::parse(&name, text)
    }

    /// The file that describes the lessons, where there is one: its name in messages, and its text.
    pub(super) fn lessons(&self) -> Option<(String, &str)> {
        self.named(LESSONS).ok()
    }

    fn named(&self, path: &str) -> Result<(String, &str), FileError> {
        let name = self.name(Path::new(path));
        let text = self.text(path).map_err(|error| FileError::whole(&name, error.to_string()))?;
        Ok((name, text))
    }

    /// The documents, in the order of their chapters, which may name the rows of `catalog`.
    ///
    /// # Errors
    /// One of them is wrong; the message says where.
    pub fn documents(&self, catalog: &Catalog) -> Result<Vec<Document>, FileError> {
        let texts = self.below("documents").filter(|(path, _)| is_yaml(path));
        Document::all(texts.map(|(path, text)| (self.name(path), text)), &self.names(catalog)?)
    }

    /// What names in documents may stand for.
    ///
    /// # Errors
    /// As [`hardware`](Self::hardware) and [`texts`](Self::texts).
    pub fn names(&self, catalog: &Catalog) -> Result<Names, FileError> {
        let files = self.below("src").filter_map(|(path, _)| Some(path.strip_prefix("src").ok()?.to_str()?.to_owned()));
        let (rows, files) = (Arc::new(catalog.clone()), Arc::new(files.collect()));
        let (hardware, texts) = (Arc::new(self.hardware()?), Arc::new(self.texts()?));
        let (chapters, pages) = (Arc::new(self.chapters()), Arc::new(self.pages()));
        Ok(Names { rows, hardware, texts, chapters, pages, files })
    }

    /// The chapters of its documents by their identifiers, with their titles.
    pub fn titles(&self) -> BTreeMap<String, String> {
        let own = self.below("documents").filter(|(path, _)| is_yaml(path));
        // What is wrong with a document is said where it is read.
        let own = own.filter_map(|(_, text)| yaml::parse::<Titled>(std::str::from_utf8(text).ok()?, "").ok());
        own.map(|Titled { id, title }| (id, title)).collect()
    }

    /// The chapters that there are: of its documents, and of the program's own, which a project may leave out.
    pub(super) fn chapters(&self) -> BTreeSet<String> {
        self.titles().into_keys().chain(self.carried.iter().cloned()).collect()
    }

    /// The pages that a chapter cannot be named as: those of its own text, and its notebooks.
    pub(super) fn pages(&self) -> BTreeSet<String> {
        let texts = self.below("src").filter(|(path, _)| has_ending(path, "md") || has_ending(path, "html"));
        let names = texts.filter_map(|(path, _)| Some(path.file_stem()?.to_string_lossy().into_owned()));
        names.chain(self.notebooks()).map(|name| name.to_lowercase()).collect()
    }

    /// Whether what lies at `place`, or will, is a part of this project: what is written there is read the next time.
    pub fn takes_in(&self, place: &Path) -> bool {
        let there =
            place.ancestors().find_map(|above| Some((above, fs::canonicalize(Path::new(".").join(above)).ok()?)));
        let (Some(folder), Some((above, found))) = (&self.folder, there) else { return false };
        let place = found.join(place.strip_prefix(above).unwrap_or(Path::new("")));
        let mut folders =
            FOLDERS.into_iter().chain([AUDITS]).filter_map(|name| fs::canonicalize(folder.join(name)).ok());
        folders.any(|folder| place.starts_with(folder))
    }

    /// Writes the project into a folder that is empty or not there, or that was left by a process that was killed here.
    ///
    /// # Errors
    /// The folder holds anything else; otherwise the file that cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), BookError> {
        fill(folder, &self.files)?.then_some(()).ok_or_else(|| BookError::not_empty(folder))
    }

    /// The files below one of its folders, by their path within the project.
    pub fn below<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = (&'a Path, &'a [u8])> {
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
        let path = match (&self.folder, path.strip_prefix("templates")) {
            (Some(folder), _) => folder.join(path),
            (None, Ok(rest)) => Path::new("report-templates").join(rest),
            (None, Err(_)) if path.starts_with("notebooks") => path.to_owned(),
            (None, Err(_)) => Path::new("book").join(path),
        };
        path.display().to_string()
    }
}

/// What every document begins with.
#[derive(serde::Deserialize)]
struct Titled {
    id: String,
    title: String,
}

/// Without what lies in a folder beside the notebooks, such as the worked answers: a book shows none of it.
fn without_folders_beside_notebooks(mut files: BTreeMap<PathBuf, Vec<u8>>) -> BTreeMap<PathBuf, Vec<u8>> {
    files.retain(|path, _| !path.starts_with("notebooks") || path.parent() == Some(Path::new("notebooks")));
    files
}
