//! The book on disk: `book/`, what mdBook reads, and `site/`, what a browser reads.
//!
//! A render that fails leaves what was there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use mdbook_driver::MDBook;
use mdbook_driver::book::BookItem;
use mdbook_driver::builtin_preprocessors::IndexPreprocessor;
use mdbook_summary::{Link, Summary, SummaryItem, parse_summary};

use super::folder::at;
use super::includes;
use super::place::{BOOK, OutputPlace};
use super::policy::{self, Scripts};
use super::project::BookProject;
use super::slim;
use super::source::Source;
use crate::error::{BookError, explained};
use crate::present::styled_once;
use crate::results::{Catalog, Results, nearest};

/// Where a rendered book lies.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rendered {
    /// The folder with the book's source.
    pub source: PathBuf,
    /// The first page of the site.
    pub index: PathBuf,
}

/// Renders the results, one file a machine, as `project` has it into `out/book` and `out/site`. Documents may name the rows
/// of `catalog` and those that are in the results.
///
/// # Errors
/// What went wrong and where; `out/book` and `out/site` are then as they were.
pub fn render(
    results: &[Results],
    project: &BookProject,
    catalog: &Catalog,
    out: &Path,
) -> Result<Rendered, BookError> {
    Source::of(results, project, catalog)?.write(out)
}

impl Source {
    /// Writes the book into `out/book` and has mdBook build the site into `out/site`.
    ///
    /// # Errors
    /// As [`render`].
    pub fn write(&self, out: &Path) -> Result<Rendered, BookError> {
        write(self, out)
    }
}

fn write(source: &Source, out: &Path) -> Result<Rendered, BookError> {
    check_pages(source)?;
    let place = OutputPlace::claim(out, BOOK)?;
    let [book, site] = BOOK.map(|name| place.working(name));
    for (path, content) in source.files() {
        // Names come from documents and results, which may be anybody's.
        if !path.components().all(|part| matches!(part, Component::Normal(_))) {
            let message = "a file of this name would lie outside of the book".to_owned();
            return Err(BookError::Reference { page: path.display().to_string(), message });
        }
        let path = book.join(path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(at(folder))?;
        }
        fs::write(&path, content).map_err(at(&path))?;
    }
    build(source, &book, &site, &place.working("print"))?;
    slim::apply(&site, |path| source.is_copied(path))?;
    policy::apply(&site, Scripts::OfFrame, |path| source.is_copied(path))?;
    let [source, site] = place.put()?;
    Ok(Rendered { source, index: site.join("index.html") })
}

/// The part of the table of contents that is printed, beside the pages that stand in no part.
const PRINTED: &str = "Course";

/// Has mdBook build the site, with the pages of the course alone on the page to print. Its `load` would let `MDBOOK_` variables of the environment in, and its own preprocessor
/// would include any file of this machine; this does neither.
fn build(source: &Source, book: &Path, site: &Path, print: &Path) -> Result<(), BookError> {
    let left_out = not_printed(&summary_of(source)?);
    build_without(&BTreeSet::new(), source, book, site)?;
    let path = site.join(PRINT);
    // An author may have switched it off.
    if left_out.is_empty() || !path.is_file() {
        return Ok(());
    }
    build_without(&left_out, source, book, print)?;
    let [whole, course] = [&path, &print.join(PRINT)].map(|path| fs::read_to_string(path).map_err(at(path)));
    fs::write(&path, printed(&whole?, &course?)).map_err(at(&path))
}

/// The page to print.
const PRINT: &str = "print.html";

/// The pages of all parts but the one that is printed; none where there is no such part.
fn not_printed(summary: &Summary) -> BTreeSet<PathBuf> {
    let (mut part, mut found, mut is_there) = (None, BTreeSet::new(), false);
    for item in &summary.numbered_chapters {
        match item {
            SummaryItem::PartTitle(title) => {
                is_there |= title == PRINTED;
                part = Some(title.as_str());
            }
            SummaryItem::Link(link) if part.is_some_and(|part| part != PRINTED) => {
                found.extend(link.location.clone());
            }
            _ => {}
        }
    }
    if is_there { found } else { BTreeSet::new() }
}

/// The page to print of the whole book with the content of that of the course, and everything in it unfolded.
fn printed(whole: &str, course: &str) -> String {
    let parts = |page: &str| {
        let (start, end) = (page.find("<main>")?, page.rfind("</main>")?);
        Some((page[..start].to_owned(), page[start..end].to_owned(), page[end..].to_owned()))
    };
    match (parts(whole), parts(course)) {
        (Some((before, _, behind)), Some((_, main, _))) => {
            before + &without_hints(&main.replace("<details", "<details open")) + &behind
        }
        _ => whole.to_owned(),
    }
}

/// A page whose values, tables and timelines are without what a pointer or a script finds there: there is neither on paper.
fn without_hints(page: &str) -> String {
    let without = |tag: String, name: &str| match tag.split_once(&format!(" {name}=\"")) {
        Some((before, behind)) => behind.split_once('"').map_or(tag.clone(), |(_, behind)| before.to_owned() + behind),
        None => tag,
    };
    let piece = |piece: &str| {
        let (text, tag) = piece.split_at(piece.rfind('<').unwrap_or(piece.len()));
        let has_hints = ["<tr ", "<th ", "<td ", "<span ", "<div "].iter().any(|kind| tag.starts_with(kind));
        let names: &[&str] = if has_hints { &["title", "data-id", "data-spans"] } else { &[] };
        text.to_owned() + &names.iter().fold(tag.to_owned(), |tag, name| without(tag, name))
    };
    page.split_inclusive('>').map(piece).collect()
}

/// Has mdBook build the pages but for some.
fn build_without(left_out: &BTreeSet<PathBuf>, source: &Source, book: &Path, site: &Path) -> Result<(), BookError> {
    let message = |error: anyhow::Error| BookError::Build { message: explained(&error) };
    let summary = summary_of(source)?;
    let mut config = source.config().clone();
    config.build.build_dir = site.to_owned();
    if !left_out.is_empty() {
        // Of this build the page to print alone is taken. What is said of single chapters' search may be of one left out.
        config.set("output.html.search", BTreeMap::from([("enable", false)])).map_err(message)?;
    }
    let mut book = MDBook::load_with_config_and_summary(book, config, summary).map_err(message)?;
    book.with_preprocessor(IndexPreprocessor::new());
    let is_left_out = |item: &BookItem| match item {
        BookItem::Chapter(chapter) => chapter.path.as_ref().is_some_and(|path| left_out.contains(path)),
        _ => false,
    };
    book.book.items.retain(|item| !is_left_out(item));
    let mut failed = Ok(());
    let mut aside = SetAside::default();
    book.book.for_each_mut(|item| {
        let BookItem::Chapter(chapter) = item else { return };
        let Some(path) = chapter.path.as_ref() else { return };
        match expanded(&chapter.content, path, source) {
            Ok(content) => chapter.content = aside.taken_from(&styled_once(&content)),
            Err(error) => failed = Err(error),
        }
        // An edit link leads to what a page is made of.
        chapter.source_path = source.origin(path).or(chapter.source_path.take());
    });
    failed?;
    book.build().map_err(message)?;
    aside.put_back(source, site)
}

/// The pictures and the tables of values of all pages, which mdBook is not to read: their numbers would be a large part of the
/// index that a search loads. Each of their words is searched for once.
#[derive(Default)]
struct SetAside(Vec<String>);

impl SetAside {
    /// How they begin and end.
    const KINDS: [(&str, &str); 2] = [("<svg class=\"plot\" ", "</svg>"), ("<table class=\"results\">", "</table>")];
    const PLACE: &str = "<svg data-aside=\"";

    /// A page with a small element in the place of each.
    fn taken_from(&mut self, page: &str) -> String {
        let mut out = String::with_capacity(page.len());
        let mut rest = page;
        while let Some((before, aside, behind)) = first_aside(rest) {
            out.push_str(before);
            out.push_str(&Self::place(self.0.len(), &words(aside)));
            self.0.push(plain(&aside.replace(SPOKEN, "")));
            rest = behind;
        }
        out + rest
    }

    fn place(number: usize, words: &str) -> String {
        format!("{}{number}\"><desc>{words}</desc></svg>", Self::PLACE)
    }

    /// Puts them back into the pages of the site that mdBook made.
    fn put_back(&self, source: &Source, site: &Path) -> Result<(), BookError> {
        policy::each_file(site, &mut |path| {
            let is_copied = path.strip_prefix(site).is_ok_and(|path| source.is_copied(path));
            if is_copied || path.extension().is_none_or(|ending| ending != "html") {
                return Ok(());
            }
            let page = fs::read_to_string(path).map_err(at(path))?;
            fs::write(path, self.put_into(&page)).map_err(at(path))
        })
    }

    fn put_into(&self, page: &str) -> String {
        let mut parts = page.split(Self::PLACE);
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let number = part.split_once("\">").and_then(|(number, _)| self.0.get(number.parse::<usize>().ok()?));
            match number.zip(part.split_once("</svg>")) {
                Some((aside, (_, behind))) => out.extend([aside, behind]),
                None => out.extend([Self::PLACE, part]),
            }
        }
        out
    }
}

/// What a screen reader says before an interval. Of a site, the style sheet says it: the element would stand there thousands of times.
const SPOKEN: &str = "<span class=\"spoken\">95 % interval: </span>";

/// The words of a picture or table, each once: no tags, entities, numbers and what is too short to be searched for.
fn words(markup: &str) -> String {
    let text = markup.split('<').flat_map(|part| part.split_once('>').map(|(_, text)| text));
    let parts = text.flat_map(|text| {
        text.split('&').enumerate().map(|(place, part)| match part.split_once(';') {
            Some((_, behind)) if place > 0 => behind,
            _ => part,
        })
    });
    let words = parts.flat_map(|part| part.split(|char: char| !char.is_alphanumeric() && char != '_'));
    let searched = words.filter(|word| word.chars().count() > 2 && word.starts_with(char::is_alphabetic));
    let mut seen = BTreeSet::new();
    let once: Vec<&str> = searched.filter(|word| seen.insert(word.to_lowercase())).collect();
    once.join(" ")
}

/// A picture or table with the characters themselves in the place of entities, but for those that HTML reads as its own.
fn plain(markup: &str) -> String {
    let mut parts = markup.split("&#");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let found = part.split_once(';').and_then(|(number, behind)| Some((number.parse::<u8>().ok()?, behind)));
        match found.filter(|(byte, _)| byte.is_ascii_punctuation() && !b"\"&'<>".contains(byte)) {
            Some((byte, behind)) => {
                out.push(char::from(byte));
                out.push_str(behind);
            }
            None => out.extend(["&#", part]),
        }
    }
    out
}

/// The first picture or table of a page, with what stands before and behind it.
fn first_aside(page: &str) -> Option<(&str, &str, &str)> {
    let found = SetAside::KINDS.iter().filter_map(|(begin, end)| {
        let start = page.find(begin)?;
        Some((start, start + page[start..].find(end)? + end.len()))
    });
    let (start, end) = found.min()?;
    Some((&page[..start], &page[start..end], &page[end..]))
}

/// The table of contents.
fn summary_of(source: &Source) -> Result<Summary, BookError> {
    let summary = parse_summary(source.text("src/SUMMARY.md")?);
    summary.map_err(|error| BookError::Build { message: explained(&error) })
}

/// A page with what it includes.
fn expanded(content: &str, path: &Path, source: &Source) -> Result<String, BookError> {
    let page = Path::new("src").join(path);
    includes::resolved(content, &page, source.all()).map_err(|refusal| {
        let origin = refusal.file.display().to_string();
        refusal.error(origin).into()
    })
}

/// Finds a chapter that is not a page of the book, and an include that leads out of it.
pub(super) fn check_pages(source: &Source) -> Result<(), BookError> {
    let summary = summary_of(source)?;
    let chapters = [&summary.prefix_chapters, &summary.numbered_chapters, &summary.suffix_chapters];
    chapters.into_iter().flatten().try_for_each(|item| check_chapter(item, source))
}

/// mdBook would read any file for a chapter.
fn check_chapter(item: &SummaryItem, source: &Source) -> Result<(), BookError> {
    let SummaryItem::Link(Link { location, nested_items, .. }) = item else { return Ok(()) };
    if let Some(location) = location {
        let page = includes::within(Path::new("src"), location).unwrap_or_default();
        if !source.all().contains_key(&page) {
            let pages = source.all().keys().filter_map(|path| path.strip_prefix("src").ok()?.to_str());
            let hint = nearest(&location.to_string_lossy(), pages.filter(|page| page.ends_with(".md")));
            let message = format!("`{}` is not a page of the book{hint}", location.display());
            return Err(BookError::Reference { page: "SUMMARY.md".to_owned(), message });
        }
        expanded(source.text(&page.display().to_string())?, page.strip_prefix("src").unwrap_or(&page), source)?;
    }
    nested_items.iter().try_for_each(|item| check_chapter(item, source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_aside_is_put_back_where_it_was_and_nothing_else_is_taken_for_it() {
        let page = "a <svg class=\"plot\" viewBox=\"0\"><text>word</text></svg> b <svg>own</svg> \
                    <table class=\"results\"><tr><td>1&#46;5 row</td></tr></table> <svg class=\"plot\" id=\"2\"></svg>";
        let mut aside = SetAside::default();
        let without = aside.taken_from(page);
        assert!(!without.contains("1&#46;5") && without.contains("<svg>own</svg>"), "{without}");
        assert!(without.contains("<desc>word</desc>") && without.contains("<desc>row</desc>"), "{without}");
        assert_eq!(aside.put_into(&without), page.replace("&#46;", "."));
        assert_eq!(plain("&#40;a&#41; &#60;b&#62; &#38;amp; &#300; &#x"), "(a) &#60;b&#62; &#38;amp; &#300; &#x");
        let foreign = "<svg data-aside=\"9\"></svg> <svg data-aside=\"x";
        assert_eq!(aside.put_into(foreign), foreign);
    }

    #[test]
    fn the_words_of_a_picture_are_those_that_a_reader_searches_for_each_once() {
        let picture =
            "<svg a=\"no\"><text>cuMemAlloc&#44; 4 KiB</text><text>Waits, waits of record_stream 12.5 µs</text></svg>";
        assert_eq!(words(picture), "cuMemAlloc KiB Waits record_stream");
    }

    #[test]
    fn a_value_on_paper_has_no_hints() {
        let page = "a title=\"b\" <tr data-id=\"x\"><td class=\"c\" title=\"1 &#62; 0\" colspan=\"2\">v</td><td title=\"a>b\"> \
                    <span class=\"measured\" title=\"n = 3\" data-interval=\"1 … 2\">v</span>";
        let paper = "a title=\"b\" <tr><td class=\"c\" colspan=\"2\">v</td><td title=\"a>b\"> \
                     <span class=\"measured\" data-interval=\"1 … 2\">v</span>";
        assert_eq!(without_hints(page), paper);
        assert_eq!(without_hints("<a title=\"b\">1 < 2"), "<a title=\"b\">1 < 2");
    }
}
