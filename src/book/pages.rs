//! The pages of a book before mdBook reads them: which there are, what they include, and what they may hold.
//!
//! mdBook would read any file for a page, and takes a time that grows as the square of the headings that are alike and of the
//! attributes of an element. What is wrong with a page is said here, before anything is measured or written.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use mdbook_summary::{Link, Summary, SummaryItem, parse_summary};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::aside::SetAside;
use super::includes::{self, place};
use super::project::BookProject;
use super::source::Source;
use super::{markup, name};
use crate::error::{BookError, FileError};
use crate::present::styled_once;
use crate::results::nearest;

/// The most headings and other names of places in a book that differ from another one in no letter: a place has one name on the
/// page to print.
const MOST_ALIKE: usize = 4_000;
/// The template of the table of contents.
const SUMMARY: &str = "templates/summary.md.j2";
/// The pages that mdBook makes itself.
const MADE: [&str; 3] = ["print.html", "toc.html", "404.html"];

/// The table of contents.
pub(super) fn summary_of(source: &Source) -> Result<Summary, BookError> {
    let summary = parse_summary(source.text("src/SUMMARY.md")?);
    summary.map_err(|error| BookError::Build { message: error.root_cause().to_string() })
}

/// What is wrong with the table of contents where an entry leads to `location`, at the last one that does.
fn wrong_entry(project: &BookProject, location: &str, message: String) -> BookError {
    let text = project.text(SUMMARY).unwrap_or_default();
    let found = text.rfind(&format!("]({location})")).map(|at| place(text, at + "](".len()));
    let (origin, (line, column)) = (project.name(Path::new(SUMMARY)), found.unwrap_or_default());
    FileError::Invalid { origin, line, column, message, hint: String::new() }.into()
}

/// What mdBook finds wrong with the table of contents. The places that it names are of what the template makes.
fn not_a_summary(project: &BookProject, message: &str) -> BookError {
    const TWICE: &str = "Duplicate file in SUMMARY.md: ";
    if let Some(location) = message.strip_prefix(TWICE) {
        let location = location.trim_matches('"');
        return wrong_entry(project, location, twice(Path::new(location)));
    }
    let why = message.split_once("column ").and_then(|(_, rest)| rest.split_once(": ")).map_or(message, |(_, why)| why);
    FileError::whole(project.name(Path::new(SUMMARY)), format!("what it makes is no table of contents: {why}")).into()
}

fn twice(location: &Path) -> String {
    format!("two entries lead to the page of `{}`: leave one", location.display())
}

/// A page with what it includes, as mdBook reads it: without the pictures and tables that are set aside.
pub(super) fn prepared(content: &str, path: &Path, source: &Source, aside: &mut SetAside) -> Result<String, BookError> {
    let page = Path::new("src").join(path);
    let expanded = includes::resolved(content, &page, source.all()).map_err(|refusal| {
        let origin = refusal.file.display().to_string();
        BookError::from(refusal.error(origin))
    })?;
    Ok(aside.taken_from(&styled_once(&expanded)))
}

/// Refuses a file whose name is none or which would stand in the place of another, an entry of the table of contents that leads
/// to no page, and a page that holds what it may not.
pub(crate) fn check(source: &Source, project: &BookProject) -> Result<(), BookError> {
    let mut published: BTreeMap<String, &Path> = BTreeMap::new();
    for path in source.all().keys() {
        let refused = |message: String| BookError::Reference { page: project.name(path), message };
        if let Some(message) = name::refusal(path) {
            return Err(refused(message));
        }
        if let Some(other) = name::unpacked(path).filter(|other| source.all().contains_key(*other)) {
            return Err(refused(format!("a server may serve it in the place of `{}`: rename one", other.display())));
        }
        if let Ok(place) = path.strip_prefix("src") {
            published.insert(place.to_string_lossy().to_lowercase(), path);
        }
    }
    let clash = |name: &str, of: &str| match published.get(&name.to_lowercase()) {
        Some(path) => {
            let message = format!("it would stand in the place of {of}: rename it");
            Err(BookError::Reference { page: project.name(path), message })
        }
        None => Ok(()),
    };
    MADE.iter().try_for_each(|name| clash(name, "a page that mdBook makes"))?;
    let (mut pages, mut held, options) = (BTreeSet::new(), Held::default(), markdown(source));
    let summary = summary_of(source).map_err(|error| match error {
        BookError::Build { message } => not_a_summary(project, &message),
        other => other,
    })?;
    for location in locations(&summary) {
        let wrong = |message| wrong_entry(project, &location.to_string_lossy(), message);
        let page = page_at(&location, source).map_err(wrong)?;
        let place = page.strip_prefix("src").unwrap_or(&page);
        let html = html_of(place);
        clash(&html, &format!("the page of `{}`", place.display()))?;
        if !pages.insert(html.to_lowercase()) {
            return Err(wrong(twice(&location)));
        }
        let mut aside = SetAside::default();
        let text = prepared(source.text(&page.display().to_string())?, place, source, &mut aside)?;
        let refused = aside.taken().find_map(markup::refusal).or_else(|| held.refusal(&text, options));
        if let Some(message) = refused {
            return Err(BookError::Reference { page: project.name(&source.written(place, project)), message });
        }
    }
    // mdBook makes a page of it without being asked.
    let not_found = source.config().html_config().and_then(|html| html.input_404).unwrap_or("404.md".to_owned());
    let not_found = Path::new("src").join(not_found);
    let text = source.text(&not_found.display().to_string()).unwrap_or_default();
    match held.refusal(text, options) {
        Some(message) => Err(BookError::Reference { page: project.name(&not_found), message }),
        None => Ok(()),
    }
}

/// The Markdown that mdBook reads (`new_cmark_parser` of `mdbook-markdown`): what is text in another one may be markup in it.
fn markdown(source: &Source) -> Options {
    let html = source.config().html_config().unwrap_or_default();
    let mut options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_HEADING_ATTRIBUTES;
    options.set(Options::ENABLE_SMART_PUNCTUATION, html.smart_punctuation);
    options.set(Options::ENABLE_DEFINITION_LIST, html.definition_lists);
    options.set(Options::ENABLE_GFM, html.admonitions);
    options
}

/// Where the entries of the table of contents lead.
fn locations(summary: &Summary) -> Vec<PathBuf> {
    fn add(items: &[SummaryItem], found: &mut Vec<PathBuf>) {
        for item in items {
            if let SummaryItem::Link(Link { location, nested_items, .. }) = item {
                found.extend(location.clone());
                add(nested_items, found);
            }
        }
    }
    let mut found = Vec::new();
    let parts = [&summary.prefix_chapters, &summary.numbered_chapters, &summary.suffix_chapters];
    parts.into_iter().for_each(|items| add(items, &mut found));
    found
}

/// The page that an entry leads to.
fn page_at(location: &Path, source: &Source) -> Result<PathBuf, String> {
    let is_page = |path: &PathBuf| {
        let is_text = path.starts_with("src") && path.extension().is_some_and(|ending| ending == "md");
        is_text && source.all().contains_key(path)
    };
    let found = includes::within(Path::new("src"), location).filter(|_| name::leads_down(location));
    found.filter(is_page).ok_or_else(|| {
        let pages = source.all().keys().filter_map(|path| path.strip_prefix("src").ok()?.to_str());
        let hint = nearest(&location.to_string_lossy(), pages.filter(|page| page.ends_with(".md")));
        format!("`{}` is not a page of the book{hint}", location.display())
    })
}

/// Where mdBook publishes a page.
fn html_of(page: &Path) -> String {
    let is_first = page.file_stem().is_some_and(|stem| stem.eq_ignore_ascii_case("readme"));
    let page = if is_first { page.with_file_name("index.html") } else { page.with_extension("html") };
    page.to_string_lossy().into_owned()
}

/// What the pages of a book hold together.
#[derive(Default)]
struct Held {
    /// The letters of the headings and of other names of places.
    places: HashSet<String>,
    alike: usize,
}

impl Held {
    /// Why the next page is refused.
    fn refusal(&mut self, page: &str, options: Options) -> Option<String> {
        let mut html = String::new();
        // The text of a heading that has not ended.
        let mut heading: Option<String> = None;
        for event in Parser::new_ext(page, options) {
            match event {
                Event::Html(text) | Event::InlineHtml(text) => html.push_str(&text),
                Event::Start(Tag::Heading { id: Some(id), .. }) => self.add(&id),
                Event::Start(Tag::Heading { .. } | Tag::DefinitionListTitle) => heading = Some(String::new()),
                Event::Text(text) | Event::Code(text) => {
                    heading.iter_mut().for_each(|heading| heading.push_str(&text));
                }
                Event::End(TagEnd::Heading(_) | TagEnd::DefinitionListTitle) => {
                    heading.take().iter().for_each(|heading| self.add(heading));
                }
                Event::FootnoteReference(name) | Event::Start(Tag::FootnoteDefinition(name)) => self.add(&name),
                _ => {}
            }
        }
        let refused = markup::refusal(&html);
        markup::identifiers(&html.to_ascii_lowercase()).for_each(|id| self.add(&id));
        let many =
            || format!("the book has more than {MOST_ALIKE} headings and places with the letters of another one");
        refused.or_else(|| (self.alike > MOST_ALIKE).then(many))
    }

    /// Numbers make no difference: mdBook tells places that are alike by them.
    fn add(&mut self, place: &str) {
        let letters: String = place.chars().filter(|c| c.is_alphabetic()).flat_map(char::to_lowercase).collect();
        self.alike += usize::from(!self.places.insert(letters));
    }
}
