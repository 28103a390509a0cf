//! The files of the mdBook: prose by hand, chapters and pages from templates, the configuration with the title.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use minijinja::{Value, context};

use super::claims::Judged;
use super::course::BookProject;
use super::glossary::{self, Glossary};
use super::templates::{Templates, is_template, safe_html};
use super::{chapter, claims, data, landing, machine, notebooks, sources};
use crate::document::{Document, Judgement};
use crate::error::BookError;
use crate::experiment::Entry;
use crate::present::Machines;
use crate::run::Run;

/// The files of an mdBook, by their path within it.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    files: BTreeMap<PathBuf, Vec<u8>>,
    /// What a page is made of, by its path within `src`: a path from there.
    origins: BTreeMap<PathBuf, PathBuf>,
    config: String,
}

impl Source {
    /// The book of `runs` as `course` has it. Its title is that of the first run's suite.
    ///
    /// # Errors
    /// [`BookError::NoRuns`] without runs; otherwise what a template, a plot or a missing file reports.
    pub fn of(runs: &[Run], course: &BookProject) -> Result<Self, BookError> {
        let first = runs.first().ok_or(BookError::NoRuns)?;
        let config = config(course.text("book.toml")?, &first.suite.title);
        let mut source = Self { files: BTreeMap::new(), origins: BTreeMap::new(), config: config.clone() };
        source.files.insert("book.toml".into(), config.into_bytes());
        // What is no template is a file of the theme: the style sheet, the script.
        let theme = course.below("templates").filter(|(path, _)| !is_template(path));
        for (path, content) in theme {
            let name = path.strip_prefix("templates").unwrap_or(path);
            source.files.insert(Path::new("theme").join(name), content.to_vec());
        }
        for (path, content) in course.below("src") {
            source.files.insert(path.to_owned(), content.to_vec());
        }

        let templates = Templates::of(course)?;
        let beyond = undocumented(course, runs);
        // What mirrors a text says what was not measured; a chapter beyond the texts needs something that was.
        let shown = course.documents.iter().map(|document| document.with_tables(runs));
        let shown =
            shown.filter(|document| document.source.is_some() || runs.iter().any(|run| has_rows(run, document)));
        let documents: Vec<Document> = shown.collect();
        let all = documents.iter().chain(&beyond);
        let judged: Vec<Judged<'_>> = all.map(|document| (document, document.judged(runs))).collect();
        for judged in &judged {
            source.add_chapter(&templates, course, judged, runs)?;
        }
        source.add("README.md", "templates/landing.md.j2", landing::render(&templates, &judged, runs)?);
        source.add("claims.md", "templates/claims.md.j2", claims::render(&templates, &judged, runs)?);
        source.add("machine.md", "templates/machine.md.j2", machine::render(&templates, runs)?);
        source.add("sources.md", "templates/sources.md.j2", sources::render(&templates, &documents)?);
        source.link_terms();
        source.files.insert("theme/cell.css".into(), notebooks::STYLE.into());
        // Not searched for terms: a notebook is shown as it is stored.
        source
            .files
            .extend(notebooks::files()?.into_iter().map(|(path, content)| (format!("src/{path}").into(), content)));
        let summary = summary(&templates, &documents, &beyond)?;
        source.add("SUMMARY.md", "templates/summary.md.j2", summary);
        Ok(source)
    }

    /// The files, in the order of their paths.
    pub fn files(&self) -> impl Iterator<Item = (&PathBuf, &[u8])> {
        self.files.iter().map(|(path, content)| (path, content.as_slice()))
    }

    /// The text of `book.toml`.
    pub fn config(&self) -> &str {
        &self.config
    }

    /// What the page at `path` within `src` is made of, where it is not that page itself.
    pub(super) fn origin(&self, path: &Path) -> Option<PathBuf> {
        self.origins.get(path).cloned()
    }

    fn add(&mut self, page: &str, origin: &str, text: String) {
        self.files.insert(Path::new("src").join(page), text.into_bytes());
        self.origins.insert(page.into(), Path::new("..").join(origin));
    }

    fn add_chapter(
        &mut self,
        templates: &Templates<'_>,
        course: &BookProject,
        (document, judged): &Judged<'_>,
        runs: &[Run],
    ) -> Result<(), BookError> {
        let shown = holding(runs, document);
        let judged: Vec<Vec<Judgement>> =
            judged.iter().map(|all| shown.iter().map(|place| all[*place].clone()).collect()).collect();
        let runs: &[Run] = &shown.iter().map(|place| runs[*place].clone()).collect::<Vec<_>>();
        let listing = document.listing.as_ref().map(|name| course.text(&format!("src/{name}"))).transpose()?;
        let text = chapter::render(templates, document, listing, &Machines::of(runs), &judged)?;
        for (path, content) in data::files(document, runs)?.into_iter().chain(data::timelines(document, runs)?) {
            self.files.insert(Path::new("src").join(path), content);
        }
        let written = format!("documents/{}.yaml", document.id);
        let origin = if course.text(&written).is_ok() { &written } else { "templates/chapter.md.j2" };
        self.add(&format!("{}.md", document.id), origin, text);
        Ok(())
    }

    /// Links the first use of each term on each page, where the course has a glossary.
    fn link_terms(&mut self) {
        let page = Path::new("src").join(glossary::PAGE);
        let Some(terms) = self.files.get(&page).and_then(|text| std::str::from_utf8(text).ok()) else { return };
        let glossary = Glossary::of(terms);
        let pages = self.files.iter_mut().filter(|(path, _)| {
            **path != page && path.parent() == Some(Path::new("src")) && path.extension().is_some_and(|e| e == "md")
        });
        for (_, content) in pages {
            if let Ok(text) = std::str::from_utf8(content) {
                *content = glossary.linked(text).into_bytes();
            }
        }
    }
}

/// The experiments in the runs that no document describes, in the order of the registry.
fn undocumented(course: &BookProject, runs: &[Run]) -> Vec<Document> {
    let ran = |entry: &Entry| runs.iter().flat_map(|run| &run.experiments).any(|left| left.name == entry.name());
    let described = |entry: &Entry| course.documents.iter().any(|document| document.id == entry.name());
    let entries = Entry::all("cuda").into_iter().filter(|entry| ran(entry) && !described(entry));
    (0..).zip(entries).map(|(order, entry)| Document::of_experiment(&entry, order, runs)).collect()
}

fn summary(templates: &Templates<'_>, documents: &[Document], beyond: &[Document]) -> Result<String, BookError> {
    let entry =
        |document: &Document| context! { id => safe_html(document.id.as_str()), title => document.title.as_str() };
    let (mirrored, others): (Vec<_>, Vec<_>) = documents.iter().partition(|document| document.source.is_some());
    let beyond = others.into_iter().chain(beyond).map(entry).collect::<Vec<Value>>();
    let documents = mirrored.into_iter().map(entry).collect::<Vec<Value>>();
    let notebook = |(id, title): (&str, String)| context! { id => safe_html(id), title };
    let notebooks = notebooks::titles()?.into_iter().map(notebook).collect::<Vec<Value>>();
    templates.render("summary.md.j2", context! { documents, beyond, notebooks })
}

/// Whether the run ran an experiment of which the document shows rows.
fn has_rows(run: &Run, document: &Document) -> bool {
    let names = document.experiments();
    run.experiments.iter().any(|left| names.contains(&left.name.as_str()))
}

/// The places of the runs that ran an experiment of which the document shows rows; of all where none did, so that the
/// chapter says so.
fn holding(runs: &[Run], document: &Document) -> Vec<usize> {
    let holding: Vec<usize> = (0..runs.len()).filter(|place| has_rows(&runs[*place], document)).collect();
    if holding.is_empty() { (0..runs.len()).collect() } else { holding }
}

/// `book.toml` with the title in its first table.
fn config(text: &str, title: &str) -> String {
    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    let title: String = title.chars().filter(|c| !c.is_control()).collect();
    // A JSON string without control characters is a basic string of TOML.
    let title = serde_json::Value::String(title);
    text.replacen("[book]\n", &format!("[book]\ntitle = {title}\n"), 1)
}
