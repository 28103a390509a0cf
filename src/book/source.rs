//! The files of the mdBook: prose by hand, chapters and pages from templates, the configuration with the title.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use mdbook_driver::config::Config;
use minijinja::{Value, context};
use pulldown_cmark::{Event, Parser, Tag};

use super::claims::{self, Judged};
use super::document::{Document, is_taken};
use super::folder::has_ending;
use super::glossary::{self, Glossary};
use super::in_order::each_once;
use super::includes::{Files, place};
use super::notebooks::{self, Notebook};
use super::predicate::Judgement;
use super::project::{AuditPage, BookProject};
use super::syllabus::{self, CourseLesson};
use super::tables::Machines;
use super::templates::{self, Templates, safe_html};
use super::{chapter, classroom, config, data, emulation, includes, landing, machine, slides};
use crate::clean;
use crate::error::{BookError, FileError};
use crate::present::escape;
use crate::results::{Catalog, Machine, Results, SYNCSCOPE, System, nearest};

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
        let titles = documents.iter().map(|document| (document.id.clone(), document.title.clone())).collect();
        let (templates, machines) = (Templates::of(project)?, Machines::of(results));
        let (lessons, notebooks) = (syllabus::lessons(project, documents)?, notebooks::of(project)?);
        Ok(Self { templates, project, results, machines, documents, titles, lessons, notebooks })
    }
}

/// The files of an mdBook, by their path within it.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    pub(super) files: Files,
    /// What a page is made of, by its path within `src`: a path from there.
    pub(super) origins: BTreeMap<PathBuf, PathBuf>,
    /// The configuration of mdBook.
    pub(super) config: Config,
}

impl Source {
    /// The book of `results`, one file a machine, as `project` has it, with the title that most of the suites have, of
    /// several the first. Documents may name the rows of `catalog` and those that are in the results.
    ///
    /// # Errors
    /// [`BookError::NoRuns`] without results; otherwise what a document, a template or a missing file reports.
    pub fn of(results: &[Results], project: &BookProject, catalog: &Catalog) -> Result<Self, BookError> {
        let title = title_of(results).ok_or(BookError::NoRuns)?;
        let mut source = Self { files: BTreeMap::new(), origins: BTreeMap::new(), config: Config::default() };
        // What is no template is a file of the theme: the style sheet, the script. Slides have their own.
        let is_theme = |path: &Path| !has_ending(path, templates::ENDING) && !path.starts_with(slides::FOLDER);
        for (path, content) in project.below("templates").filter(|(path, _)| is_theme(path)) {
            let name = path.strip_prefix("templates").unwrap_or(path);
            source.files.insert(Path::new("theme").join(name), content.to_vec());
        }
        for (path, content) in project.below("src") {
            source.files.insert(path.to_owned(), content.to_vec());
        }
        source.files.insert("theme/cell.css".into(), notebooks::STYLE.into());
        source.configure(project, title)?;

        let catalog = catalog.clone().with_results(results);
        let described = project.documents(&catalog)?;
        let mut pages = project.pages();
        let taken = pages.iter().cloned().chain(described.iter().map(|document| document.id.clone())).collect();
        let audits = audit_names(&project.audits, taken);
        pages.extend(audits.iter().cloned());
        // Chapters of a text are always shown; others need measured rows.
        let shown = described.iter().map(|document| document.with_tables(results, &described));
        let shown =
            shown.filter(|document| document.source.is_some() || results.iter().any(|one| has_rows(one, document)));
        let documents: Vec<Document> = shown.chain(undocumented(&described, results, &pages)?).collect();
        let book = &Book::of(results, project, &documents)?;
        let judged: Vec<Judged<'_>> = documents.iter().map(|document| (document, document.judged(results))).collect();
        judged.iter().try_for_each(|judged| source.add_chapter(book, judged))?;
        for (page, template, text) in [
            ("README", "landing", landing::render(book, title, &judged)?),
            ("claims", "claims", claims::render(book, &judged)?),
            ("machine", "machine", machine::render(book, &catalog)?),
            ("sources", "sources", sources_page(book)?),
            ("syllabus", "syllabus", syllabus::render(book)?),
            ("classroom", "classroom", classroom::render(book)?),
        ] {
            source.add(&format!("{page}.md"), &format!("templates/{template}.md.j2"), text);
        }
        source.files.insert(Path::new("src").join(claims::DATA), claims::data(&judged, &book.machines)?);
        for (number, results) in (1..).zip(results) {
            source.files.insert(Path::new("src").join(machine::place(number)), machine::data(results)?);
        }
        let chapters = project.chapters();
        let left_out = || chapters.iter().filter(|id| !book.titles.contains_key(*id));
        source.finish_pages(&left_out().map(|id| format!("]({id}.md")).collect::<Vec<_>>(), &book.machines);
        // Not searched for terms: a notebook is shown as it is stored.
        for notebook in &book.notebooks {
            let page = |ending: &str| Path::new("src").join(format!("{}.{ending}", notebook.name));
            if source.files.insert(page("md"), notebook.chapter.clone().into_bytes()).is_some() {
                let name = project.name(&Path::new("notebooks").join(format!("{}.ipynb", notebook.name)));
                let message = "the book has a page of this name already: rename the notebook";
                return Err(FileError::whole(name, message).into());
            }
            source.files.insert(page("ipynb"), notebook.text.clone().into_bytes());
        }
        // Nor an audit: its words are another program's.
        for (audit, name) in project.audits.iter().zip(&audits) {
            let written = format!("audits/{}.json", audit.name);
            source.add(&format!("{name}.md"), &written, audit_chapter(audit, name, left_out()));
            source.files.insert(Path::new("src").join(format!("{name}.json")), audit.json.clone().into_bytes());
        }
        let audits =
            audits.iter().zip(&project.audits).map(|(name, audit)| entry(name, &format!("Audit: {}", audit.name)));
        source.add("SUMMARY.md", "templates/summary.md.j2", summary(book, audits.collect())?);
        source.check_links(project)?;
        includes::check_pages(&source, project)?;
        Ok(source)
    }

    /// The files, in the order of their paths.
    pub fn files(&self) -> impl Iterator<Item = (&PathBuf, &[u8])> {
        self.files.iter().map(|(path, content)| (path, content.as_slice()))
    }

    /// The text of a file.
    pub fn text(&self, path: &str) -> Result<&str, BookError> {
        let content = self.files.get(Path::new(path)).and_then(|content| std::str::from_utf8(content).ok());
        content.ok_or_else(|| BookError::Missing { name: path.to_owned() })
    }

    /// Whether a file of the site is one of the book as it lies there, and not made by mdBook.
    pub(super) fn is_copied(&self, path: &Path) -> bool {
        ["src", ""].iter().any(|folder| self.files.contains_key(&Path::new(folder).join(path)))
    }

    /// Takes the project's `book.toml`, with the title. The files that it may name are there already.
    fn configure(&mut self, project: &BookProject, title: &str) -> Result<(), BookError> {
        let text = project.text("book.toml")?;
        let config = config::parse(text, &project.name(Path::new("book.toml")), |path| self.files.contains_key(path))?;
        let title = clean::line(title).split_whitespace().collect::<Vec<_>>().join(" ");
        self.files.insert("book.toml".into(), config::titled(text, &title)?.into_bytes());
        self.config = config;
        self.config.book.title = Some(title);
        Ok(())
    }

    fn add(&mut self, page: &str, origin: &str, text: String) {
        self.files.insert(Path::new("src").join(page), text.into_bytes());
        self.origins.insert(page.into(), Path::new("..").join(origin));
    }

    fn add_chapter(&mut self, book: &Book<'_>, (document, judged): &Judged<'_>) -> Result<(), BookError> {
        let shown = holding(book.results, document);
        let judged: Vec<Vec<Judgement>> =
            judged.iter().map(|all| shown.iter().map(|place| all[*place].clone()).collect()).collect();
        // A machine has one name in the whole book.
        let labels = shown.iter().map(|place| book.machines.labels[*place].clone()).collect();
        let some: Vec<Results>;
        let results = if shown.len() == book.results.len() {
            book.results
        } else {
            some = shown.iter().map(|place| book.results[*place].clone()).collect();
            &some
        };
        let machines = Machines { labels, ..Machines::of(results) };
        let text = chapter::render(book, &(document, judged), &machines)?;
        for (path, content) in data::files(document, results)? {
            self.files.insert(Path::new("src").join(path), content);
        }
        let written = format!("documents/{}.yaml", document.id);
        let origin = if book.project.text(&written).is_ok() { &written } else { "templates/chapter.md.j2" };
        self.add(&format!("{}.md", document.id), origin, emulation::marked(text, &machines));
        Ok(())
    }

    /// Takes the links out of the pages that lead to chapters which this book leaves out (`](overlap.md`), marks pages of
    /// emulations, and links the first use of each term, where the project has a glossary.
    fn finish_pages(&mut self, left_out: &[String], machines: &Machines<'_>) {
        let all_emulated = machines.results.iter().all(emulation::is_emulated);
        let is_marked = |name: &str, is_prose: bool| match name {
            // The first page of emulations alone says itself which of its numbers are theirs.
            "README.md" => !all_emulated,
            "claims.md" | "machine.md" => true,
            _ => all_emulated && is_prose,
        };
        let terms = self.files.get(&Path::new("src").join(glossary::PAGE));
        let glossary = terms.and_then(|text| std::str::from_utf8(text).ok()).map(Glossary::of);
        for (path, content) in self.files.iter_mut().filter(|(path, _)| is_page(path)) {
            let Some((name, text)) =
                path.file_name().and_then(|name| name.to_str()).zip(std::str::from_utf8(content).ok())
            else {
                continue;
            };
            let mut text = left_out.iter().fold(text.to_owned(), |text, link| without_link(&text, link));
            let is_prose = name == "sources.md" || !self.origins.contains_key(Path::new(name));
            if is_marked(name, is_prose) {
                text = emulation::marked(text, machines);
            }
            if let Some(glossary) = glossary.as_ref().filter(|_| name != glossary::PAGE) {
                text = glossary.linked(&text);
            }
            *content = text.into_bytes();
        }
    }

    /// Every link of a page to another one leads to a page that there is.
    fn check_links(&self, project: &BookProject) -> Result<(), BookError> {
        for (path, content) in self.files.iter().filter(|(path, _)| is_page(path)) {
            let text = String::from_utf8_lossy(content);
            let targets = Parser::new(&text).filter_map(|event| match event {
                Event::Start(Tag::Link { dest_url, .. }) => Some(dest_url),
                _ => None,
            });
            for target in targets {
                let page = target.split('#').next().unwrap_or_default();
                let is_page = page.ends_with(".md") && !page.contains(':');
                if is_page && !self.files.contains_key(&Path::new("src").join(page)) {
                    let pages = self.files.keys().filter(|path| self::is_page(path));
                    let names = pages.filter_map(|path| path.file_name()?.to_str());
                    let (message, hint) = (format!("its link to `{page}` leads to no page"), nearest(page, names));
                    let written = self.written(path.strip_prefix("src").unwrap_or(path), project);
                    let text = project.text(&written.display().to_string()).unwrap_or_default();
                    let found = text.find(&format!("]({target})")).map(|at| place(text, at + "](".len()));
                    let (origin, (line, column)) = (project.name(&written), found.unwrap_or_default());
                    return Err(FileError::Invalid { origin, line, column, message, hint }.into());
                }
            }
        }
        Ok(())
    }

    /// The file of the project that the page at `path` within `src` is made of.
    pub(super) fn written(&self, path: &Path, project: &BookProject) -> PathBuf {
        let notebook = Path::new("notebooks").join(path).with_extension("ipynb");
        match self.origins.get(path) {
            Some(origin) => origin.strip_prefix("..").unwrap_or(origin).to_owned(),
            None if project.text(&notebook.display().to_string()).is_ok() => notebook,
            None => Path::new("src").join(path),
        }
    }
}

/// The title that most of the results have, of several the first.
fn title_of(results: &[Results]) -> Option<&str> {
    let count = |title: &str| results.iter().filter(|other| other.title() == title).count();
    let titles = results.iter().map(Results::title).enumerate();
    titles.max_by_key(|(place, title)| (count(title), Reverse(*place))).map(|(_, title)| title)
}

/// Whether a file of the book is a page.
fn is_page(path: &Path) -> bool {
    path.parent() == Some(Path::new("src")) && has_ending(path, "md")
}

/// A text whose links of this end, such as `](overlap.md`, are the words that they had.
fn without_link(text: &str, end: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(end) {
        let target = after.find(')').filter(|place| *place == 0 || after.starts_with('#'));
        match (before.rsplit_once('['), target) {
            (Some((before, words)), Some(place)) => {
                out.push_str(before);
                out.push_str(words);
                rest = &after[place + 1..];
            }
            _ => {
                out.push_str(before);
                out.push_str(end);
                rest = after;
            }
        }
    }
    out + rest
}

/// The most pages of experiments that no document describes: mdBook writes the names of all pages for each.
const MAX_UNDOCUMENTED: usize = 200;

/// The experiments in the results that no document describes, in the order in which they ran first. Their pages take no
/// name of `pages`, which are the project's own.
fn undocumented(
    documents: &[Document],
    results: &[Results],
    pages: &BTreeSet<String>,
) -> Result<Vec<Document>, BookError> {
    let names = each_once(results.iter().flat_map(|results| results.rows.iter()).map(|row| row.spec.experiment()));
    let is_new = |name: &&str| !documents.iter().any(|document| document.id == *name);
    let names: Vec<&str> = names.into_iter().filter(is_new).collect();
    if names.len() > MAX_UNDOCUMENTED {
        let count = names.len();
        let message = format!(
            "they hold {count} experiments that no document describes, each of which is a page, and {MAX_UNDOCUMENTED} are \
             the most: name files with fewer"
        );
        return Err(FileError::whole("the results", message).into());
    }
    let mut taken: BTreeSet<String> = documents.iter().map(|document| document.id.clone()).collect();
    let made = (0..).zip(names).map(|(order, name)| {
        let mut document = Document::of_experiment(name, order, results);
        let mut is_free = |id: &str| !id.is_empty() && !is_taken(id, pages) && taken.insert(id.to_owned());
        while !is_free(&document.id) {
            document.id = format!("experiment-{}", document.id);
        }
        document
    });
    Ok(made.collect())
}

/// An entry of the table of contents.
fn entry(id: &str, title: &str) -> Value {
    context! { id => safe_html(id), title }
}

fn summary(book: &Book<'_>, audits: Vec<Value>) -> Result<String, BookError> {
    let entries = |documents: Vec<&Document>| -> Vec<Value> {
        documents.into_iter().map(|document| entry(&document.id, &document.title)).collect()
    };
    // The course is the lessons, and what has a text behind it.
    let (course, reference) =
        book.documents.iter().partition(|document| document.lesson.is_some() || document.source.is_some());
    let (course, reference) = (entries(course), entries(reference));
    let notebooks = book.notebooks.iter().map(|notebook| entry(&notebook.name, &notebook.title));
    let notebooks = notebooks.collect::<Vec<Value>>();
    book.templates.render("summary.md.j2", context! { course, reference, notebooks, audits })
}

/// Whether the results hold rows that the document shows.
pub(super) fn has_rows(results: &Results, document: &Document) -> bool {
    let names = document.experiments();
    names.iter().any(|name| results.rows.of_experiment(name).next().is_some())
}

/// The places of the results that hold rows that the document shows; of all where none do, so that the chapter says so.
fn holding(results: &[Results], document: &Document) -> Vec<usize> {
    let holding: Vec<usize> = (0..results.len()).filter(|place| has_rows(&results[*place], document)).collect();
    if holding.is_empty() { (0..results.len()).collect() } else { holding }
}

/// Makes the book's pages of no measurement at all, and writes nothing.
///
/// # Errors
/// As of rendering: a document, a template, an included file or a setting is wrong.
pub fn check(project: &BookProject, catalog: &Catalog) -> Result<(), BookError> {
    Source::of(&[nothing()], project, catalog).map(drop)
}

/// A run without rows on an unknown machine.
pub(super) fn nothing() -> Results {
    let machine = Machine::of_model("unknown");
    let (name, started, versions) = (SYNCSCOPE.to_owned(), machine.model.clone(), Vec::new());
    let system = System { schema_version: 0, name, started, versions, machine, code: None, rows: Vec::new() };
    let mut results = system.into_results(&Catalog::default());
    results.suite = serde_json::json!({ "title": "Nothing measured" });
    results
}

/// The page of sources as Markdown: the texts, and where peak rates come from.
fn sources_page(book: &Book<'_>) -> Result<String, BookError> {
    let texts = book.documents.iter().filter_map(|document| {
        let (id, title, gpu) = (document.id.as_str(), document.title.as_str(), document.gpu.as_deref());
        let (text, source) = (document.cited()?, document.source.as_deref());
        Some(context! { id, title, source, text, gpu })
    });
    let hardware = book.project.hardware()?;
    let chips = hardware.chips().map(|chip| context! { model => chip.model.as_str(), source => chip.source.as_str() });
    let context = context! { documents => texts.collect::<Vec<Value>>(), chips => chips.collect::<Vec<Value>>() };
    book.templates.render("sources.md.j2", context)
}

/// The names of the pages of audits: none is one of `taken`.
fn audit_names(audits: &[AuditPage], mut taken: BTreeSet<String>) -> Vec<String> {
    let name = |audit: &AuditPage| {
        let letters = audit.name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' });
        let mut name = format!("audit-{}", letters.collect::<String>());
        while !taken.insert(name.clone()) {
            name.push_str("-2");
        }
        name
    };
    audits.iter().map(name).collect()
}

/// The chapter as Markdown, which has this name. Links to chapters that this book leaves out are their words alone.
fn audit_chapter<'a>(audit: &AuditPage, name: &str, left_out: impl Iterator<Item = &'a String>) -> String {
    let unlinked = |content: String, id: &String| {
        let link = format!("<a href=\"{}.html\">", escape(id));
        let mut parts = content.split(&link);
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |out, part| out + &part.replacen("</a>", "", 1))
    };
    let content = left_out.fold(audit.content.clone(), unlinked);
    let title = escape(&format!("Audit: {}", audit.name));
    format!("# {title}\n\n{content}<p class=\"source\"><a href=\"{name}.json\" download>The audit (JSON)</a></p>\n")
}
