//! The pages of a book before mdBook reads them: which there are, and what they include.
//!
//! mdBook would read any file for a page, and follows `{{#include}}` and its kin to any file that its process may read, and leaves out
//! what it does not find: so they are looked at before anything is measured or written. What is taken for a directive here is
//! whatever that one takes for one (`find_links` of `builtin_preprocessors/links.rs`), and more. A backslash before the braces keeps
//! them as they are.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use mdbook_summary::{Link, Summary, SummaryItem, parse_summary};

use super::folder::has_ending;
use super::project::BookProject;
use super::source::Source;
use crate::error::{BookError, FileError};
use crate::results::nearest;
use crate::units::counted;

/// How deep files may include each other: mdBook leaves out what lies deeper.
const MAX_DEPTH: usize = 10;
/// The most characters of a directive, whose end is looked for.
const MAX_CHARACTERS: usize = 4096;
/// The directives that name a file.
const KINDS: [&str; 4] = ["include", "rustdoc_include", "playground", "playpen"];

/// The files of a book by their path in it.
pub(super) type Files = BTreeMap<PathBuf, Vec<u8>>;

/// A path as seen from `folder`, without `.` and `..`; `None` where it leads out of the book.
pub(super) fn within(folder: &Path, path: &Path) -> Option<PathBuf> {
    let mut found = folder.to_owned();
    for part in path.components() {
        match part {
            Component::Normal(name) => found.push(name),
            Component::CurDir => {}
            Component::ParentDir if found.pop() => {}
            _ => return None,
        }
    }
    Some(found)
}

/// The line and column, from 1, of a byte of a text.
pub(super) fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
    (before.matches('\n').count() + 1, column)
}

/// Why a directive cannot be followed, and what may have been meant.
type Why = (String, String);

/// The pages of a book with what they include.
struct Pages<'a> {
    files: &'a Files,
    /// What messages call a file.
    name: &'a dyn Fn(&Path) -> String,
    /// The files that are good.
    done: BTreeSet<PathBuf>,
    /// The files that are being looked at, each included by the one before.
    above: Vec<PathBuf>,
}

impl Pages<'_> {
    /// Finds the first directive of the page at `path` that cannot be followed, or of a file that it includes.
    ///
    /// # Errors
    /// Where it stands, and why.
    fn check(&mut self, path: &Path) -> Result<(), FileError> {
        let (files, name) = (self.files, self.name);
        let text = files.get(path).and_then(|content| std::str::from_utf8(content).ok()).unwrap_or_default();
        self.above.push(path.to_owned());
        for (at, _) in text.match_indices('{') {
            let wrong = |words: &str, (message, hint): Why| {
                let ((line, column), message) = (place(text, at), format!("{words}: {message}"));
                FileError::Invalid { origin: name(path), line, column, message, hint }
            };
            match Directive::at(text, at) {
                Ok(None) => {}
                Err((words, why)) => return Err(wrong(words, why)),
                Ok(Some(directive)) => {
                    let file = self.file(&directive, path).map_err(|why| wrong(directive.text, why))?;
                    if self.above.len() > MAX_DEPTH || self.above.contains(&file) {
                        return Err(wrong(directive.text, plain("files include each other without an end")));
                    }
                    if !self.done.contains(&file) {
                        self.check(&file)?;
                    }
                }
            }
        }
        self.above.pop();
        self.done.insert(path.to_owned());
        Ok(())
    }

    /// The file that a directive leads to.
    fn file(&self, directive: &Directive<'_>, page: &Path) -> Result<PathBuf, Why> {
        let folder = page.parent().unwrap_or(Path::new(""));
        let first = directive.arguments.split_whitespace().next().ok_or_else(|| plain("it names no file"))?;
        let is_whole = directive.kind.starts_with("play");
        let (name, part) = first.split_once(':').filter(|_| !is_whole).unwrap_or((first, ""));
        let path = within(folder, Path::new(name)).ok_or_else(|| plain("the path leads out of the book"))?;
        // As a directive of this page would name them.
        let named = |path: &PathBuf| match path.strip_prefix(folder) {
            Ok(below) => below.display().to_string(),
            Err(_) => format!("{}{}", "../".repeat(folder.components().count()), path.display()),
        };
        let missing = || {
            let names: Vec<String> = self.files.keys().map(named).collect();
            ("the book has no such file".to_owned(), nearest(name, names.iter().map(String::as_str)))
        };
        let content = self.files.get(&path).ok_or_else(missing)?;
        let content = std::str::from_utf8(content).map_err(|_| plain("the file is not text"))?;
        check_part(part, content).map(|()| path)
    }
}

fn plain(why: &str) -> Why {
    (why.to_owned(), String::new())
}

/// `{{#kind arguments}}`.
struct Directive<'a> {
    text: &'a str,
    kind: &'a str,
    arguments: &'a str,
}

impl<'a> Directive<'a> {
    /// The directive that begins at a byte of a text, or how one begins that is wrong, and why it is.
    fn at(text: &'a str, at: usize) -> Result<Option<Self>, (&'a str, Why)> {
        let (before, from) = text.split_at(at);
        let Some(begin) = from.strip_prefix("{{").and_then(|inside| inside.trim_start().strip_prefix('#')) else {
            return Ok(None);
        };
        let line = from.lines().next().unwrap_or_default();
        if before.ends_with('\\') && from.starts_with("{{#") && line.contains("}}") {
            return Ok(None);
        }
        let end = begin.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(begin.len());
        let (kind, rest) = begin.split_at(end);
        let start = &from[..from.len() - rest.len()];
        if !KINDS.contains(&kind) {
            let hint = nearest(kind, KINDS.into_iter());
            let is_meant = !hint.is_empty() && !rest.is_empty();
            return if is_meant { Err((start, (format!("there is no directive `{kind}`"), hint))) } else { Ok(None) };
        }
        if !rest.starts_with(char::is_whitespace) {
            return Ok(None);
        }
        let window = rest.char_indices().nth(MAX_CHARACTERS).map_or(rest, |(end, _)| &rest[..end]);
        match window.split_once('}') {
            Some((arguments, behind)) if behind.starts_with('}') => {
                let text = &from[..start.len() + arguments.len() + "}}".len()];
                Ok(Some(Self { text, kind, arguments }))
            }
            None if window.len() < rest.len() => Err((start, plain("it does not end"))),
            _ => Ok(None),
        }
    }
}

/// Refuses a part that a text does not have: what stands behind a file's name, `2`, `2:8`, `:8`, `2:` or the name of an anchor.
fn check_part(part: &str, text: &str) -> Result<(), Why> {
    let (first, end) = part.split_once(':').map_or((part, None), |(first, end)| (first, Some(end)));
    let start = match first.parse::<usize>() {
        Ok(line) => line.saturating_sub(1),
        Err(_) if first.is_empty() => 0,
        Err(_) => {
            let mut anchors = text.lines().filter_map(anchor);
            let is_there = anchors.clone().any(|anchor| anchor == first);
            let wrong = || (format!("the file has no anchor `{first}`"), nearest(first, &mut anchors));
            return is_there.then_some(()).ok_or_else(wrong);
        }
    };
    let end = end.map_or(usize::MAX, |end| end.parse().unwrap_or(usize::MAX));
    let lines = text.lines().count();
    let is_there = part.is_empty() || start < end && start < lines;
    is_there.then_some(()).ok_or_else(|| plain(&format!("the file has {}, and none of these", counted(lines, "line"))))
}

/// The anchor that a line begins or ends.
fn anchor(line: &str) -> Option<&str> {
    let rest = ["ANCHOR_END:", "ANCHOR:"].iter().find_map(|mark| line.split_once(mark))?.1.trim_start();
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-')).unwrap_or(rest.len());
    (end > 0).then(|| &rest[..end])
}

/// The template of the table of contents.
const SUMMARY: &str = "templates/summary.md.j2";

/// The table of contents.
pub(super) fn summary_of(source: &Source) -> Result<Summary, BookError> {
    let summary = parse_summary(source.text("src/SUMMARY.md")?);
    summary.map_err(|error| BookError::Build { message: error.root_cause().to_string() })
}

/// What is wrong with the table of contents where an entry leads to `location`, at the last one that does.
fn wrong_entry(project: &BookProject, location: &Path, message: String) -> BookError {
    let text = project.text(SUMMARY).unwrap_or_default();
    let found = text.rfind(&format!("]({})", location.display())).map(|at| place(text, at + "](".len()));
    let (origin, (line, column)) = (project.name(Path::new(SUMMARY)), found.unwrap_or_default());
    FileError::Invalid { origin, line, column, message, hint: String::new() }.into()
}

/// What mdBook finds wrong with the table of contents. The places that it names are of what the template makes.
fn not_a_summary(project: &BookProject, message: &str) -> BookError {
    const TWICE: &str = "Duplicate file in SUMMARY.md: ";
    if let Some(location) = message.strip_prefix(TWICE) {
        let location = Path::new(location.trim_matches('"'));
        return wrong_entry(project, location, twice(location));
    }
    let why = message.split_once("column ").and_then(|(_, rest)| rest.split_once(": ")).map_or(message, |(_, why)| why);
    FileError::whole(project.name(Path::new(SUMMARY)), format!("what it makes is no table of contents: {why}")).into()
}

fn twice(location: &Path) -> String {
    format!("two entries lead to the page of `{}`: leave one", location.display())
}

/// Refuses an entry of the table of contents that leads to no page, and a page with a directive that cannot be followed.
pub(super) fn check_pages(source: &Source, project: &BookProject) -> Result<(), BookError> {
    let summary = summary_of(source).map_err(|error| match error {
        BookError::Build { message } => not_a_summary(project, &message),
        other => other,
    })?;
    let mut pages = BTreeSet::new();
    for location in locations(&summary) {
        let page = page_at(&location, source).and_then(|page| pages.insert(page).then_some(()).ok_or(twice(&location)));
        page.map_err(|message| wrong_entry(project, &location, message))?;
    }
    let all = source.files.keys().filter(|path| path.starts_with("src") && has_ending(path, "md"));
    let name = |path: &Path| project.name(&source.written(path.strip_prefix("src").unwrap_or(path), project));
    let mut pages = Pages { files: &source.files, name: &name, done: BTreeSet::new(), above: Vec::new() };
    Ok(all.into_iter().try_for_each(|page| pages.check(page))?)
}

/// Where the entries of the table of contents lead.
fn locations(summary: &Summary) -> Vec<PathBuf> {
    let parts = [&summary.prefix_chapters, &summary.numbered_chapters, &summary.suffix_chapters];
    let (mut found, mut left): (_, Vec<&SummaryItem>) = (Vec::new(), parts.into_iter().flatten().rev().collect());
    while let Some(item) = left.pop() {
        if let SummaryItem::Link(Link { location, nested_items, .. }) = item {
            found.extend(location.clone());
            left.extend(nested_items.iter().rev());
        }
    }
    found
}

/// The page that an entry leads to.
fn page_at(location: &Path, source: &Source) -> Result<PathBuf, String> {
    let is_page = |path: &PathBuf| path.starts_with("src") && has_ending(path, "md") && source.files.contains_key(path);
    let found = within(Path::new("src"), location).filter(is_page);
    found.ok_or_else(|| {
        let pages = source.files.keys().filter_map(|path| path.strip_prefix("src").ok()?.to_str());
        let hint = nearest(&location.to_string_lossy(), pages.filter(|page| page.ends_with(".md")));
        format!("`{}` is not a page of the book{hint}", location.display())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &str) -> Result<(), String> {
        let files = [
            ("src/page.md", text),
            ("src/a.md", "from a"),
            ("src/part/b.md", "b and {{#include ../a.md}}"),
            ("src/part/c.md", "c and\n{{#include ../b.md}}"),
            ("src/round.md", "{{#include round.md}}"),
            ("src/code.rs", "use x;\n// ANCHOR: main\nfn main() {\n}\n// ANCHOR_END: main\nend"),
        ];
        let files = files.into_iter().map(|(path, text)| (PathBuf::from(path), text.as_bytes().to_vec())).collect();
        let name = |path: &Path| path.display().to_string();
        let mut pages = Pages { files: &files, name: &name, done: BTreeSet::new(), above: Vec::new() };
        pages.check(Path::new("src/page.md")).map_err(|error| error.to_string())
    }

    #[test]
    fn a_page_includes_files_of_the_book_whole_by_lines_and_by_anchors() {
        for text in [
            "x {{#include a.md}} y",
            "{{ #include part/b.md }}",
            "{{#include code.rs:3:4}} {{#include code.rs:1}} {{#include code.rs:6:}} {{#include code.rs::1}}",
            "{{#include code.rs:main}} {{#rustdoc_include code.rs:main}}",
            "{{#playground code.rs ignore}}",
            "\\{{#include /etc/passwd}}",
            "{{ name }} and {{#other a}} {{#title A}}",
        ] {
            assert_eq!(checked(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn braces_without_an_end_are_found_out_in_time() {
        for text in ["{{".repeat(1 << 20), "{{ ".repeat(1 << 12) + &" ".repeat(1 << 20) + "}}"] {
            assert_eq!(checked(&text), Ok(()));
        }
        assert!(checked(&"{{#include ".repeat(1 << 15)).unwrap_err().contains("it does not end"));
    }

    #[test]
    fn nothing_outside_of_the_book_is_included() {
        for text in [
            "{{#include /etc/passwd}}",
            "{{{#include /etc/passwd}}",
            "{{#include ../../../../etc/passwd}}",
            "{{#include ../../src/a.md}}",
            "{{#include\n/etc/passwd}}",
            "\\{{#include\n/etc/passwd}}",
            "\\{{ #include /etc/passwd}}",
            "{{  #rustdoc_include /etc/passwd:1:2}}",
            "{{#playground /etc/passwd}}",
            "{{#playpen /etc/passwd}}",
            "{{#include missing.md}}",
            "{{#include round.md}}",
        ] {
            assert!(checked(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_followed_has_its_place_and_the_nearest_name() {
        for (text, says) in [
            (
                "x\n  {{#include coed.rs}}",
                "src/page.md:2:3: {{#include coed.rs}}: the book has no such file; did you mean `code.rs`?",
            ),
            (
                "{{#include prat/b.md}}",
                "src/page.md:1:1: {{#include prat/b.md}}: the book has no such file; did you mean `part/b.md`?",
            ),
            (
                "µ {{#include code.rs:mian}}",
                "src/page.md:1:3: {{#include code.rs:mian}}: the file has no anchor `mian`; did you mean `main`?",
            ),
            (
                "{{#include code.rs:7:9}}",
                "src/page.md:1:1: {{#include code.rs:7:9}}: the file has 6 lines, and none of these",
            ),
            (
                "a {{#inclde a.md}}",
                "src/page.md:1:3: {{#inclde: there is no directive `inclde`; did you mean `include`?",
            ),
            ("{{#include part/c.md}}", "src/part/c.md:2:1: {{#include ../b.md}}: the book has no such file"),
        ] {
            let message = checked(text).unwrap_err();
            assert!(message.starts_with(says), "{text}: {message}");
        }
    }
}
