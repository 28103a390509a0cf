//! `{{#include}}` and its kin in a page, from the files of the book alone.
//!
//! mdBook's own preprocessor reads any file that its process may read; this one knows only the files that the book is made
//! of. The same directives are understood: `include` and `rustdoc_include` with lines (`file.rs:2:8`) or an anchor
//! (`file.rs:loop`), and `playground`. A backslash before the braces keeps them as they are.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use crate::error::FileError;
use crate::results::nearest;
use crate::units::counted;

/// How deep files may include each other.
const MOST_DEEP: usize = 10;
/// The most bytes of a page with all that it includes, of the files that are read for it, and of one directive; the most
/// directives.
const MOST_BYTES: usize = 16 << 20;
const MOST_BYTES_OF_A_DIRECTIVE: usize = 4096;
const MOST_DIRECTIVES: usize = 10_000;

/// The files of a book by their path in it.
pub(super) type Files = BTreeMap<PathBuf, Vec<u8>>;

/// A path as seen from `folder`, without `.` and `..`; `None` where it leads out of the book.
pub(crate) fn within(folder: &Path, path: &Path) -> Option<PathBuf> {
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

/// A directive that cannot be followed.
#[derive(Debug, PartialEq)]
pub(super) struct Refusal {
    /// The file that it stands in, by its path in the book.
    pub(super) file: PathBuf,
    /// Its line and column there, from 1.
    pub(crate) place: (usize, usize),
    /// What it is, and why it cannot be followed.
    pub(super) message: String,
    /// What may have been meant.
    pub(super) hint: String,
}

impl Refusal {
    /// As an error of a file that messages call `origin`.
    pub(crate) fn error(self, origin: String) -> FileError {
        let Self { place: (line, column), message, hint, .. } = self;
        FileError::Invalid { origin, line, column, message, hint }
    }
}

/// The line and column, from 1, of a byte of a text.
pub(crate) fn place(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..at];
    let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
    (before.matches('\n').count() + 1, column)
}

/// Why a directive cannot be followed, and what may have been meant.
type Why = (String, String);

/// The text of the page at `path` with what it includes in place.
///
/// # Errors
/// A directive, where it stands, and why it cannot be followed.
pub(super) fn resolved(text: &str, path: &Path, files: &Files) -> Result<String, Refusal> {
    let mut page = Page { files, text: String::new(), directives: 0, read: 0 };
    page.expand(text, &File { path, whole: text }, 0)?;
    Ok(page.text)
}

/// A file whose text is expanded.
struct File<'a> {
    path: &'a Path,
    whole: &'a str,
}

impl File<'_> {
    fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    /// A refusal of the directive that a part of it begins with.
    fn refusal(&self, directive: &str, (message, hint): Why) -> Refusal {
        let place = place(self.whole, self.whole.find(directive).unwrap_or_default());
        Refusal { file: self.path.to_owned(), place, message: format!("{directive}: {message}"), hint }
    }

    /// How a directive of it names a file of the book.
    fn to(&self, path: &Path) -> String {
        let folder = self.folder();
        match path.strip_prefix(folder) {
            Ok(below) => below.display().to_string(),
            Err(_) => format!("{}{}", "../".repeat(folder.components().count()), path.display()),
        }
    }
}

/// A page as far as it has come.
struct Page<'a> {
    files: &'a Files,
    text: String,
    directives: usize,
    /// The bytes of all files that were read for it, each as often as it was.
    read: usize,
}

impl Page<'_> {
    fn expand(&mut self, text: &str, file: &File<'_>, depth: usize) -> Result<(), Refusal> {
        let mut rest = text;
        while let Some(start) = rest.find("{{") {
            let (before, from) = rest.split_at(start);
            self.text.push_str(before.strip_suffix('\\').filter(|_| from.starts_with("{{#")).unwrap_or(before));
            if before.ends_with('\\') {
                self.text.push_str("{{");
                rest = &from[2..];
                continue;
            }
            let Some(directive) = Directive::at(from) else {
                if let Some((text, why)) = misspelt(from) {
                    return Err(file.refusal(text, why));
                }
                self.text.push_str("{{");
                rest = &from[2..];
                continue;
            };
            self.follow(&directive, file, depth)?;
            rest = &from[directive.text.len()..];
        }
        self.text.push_str(rest);
        match self.text.len() > MOST_BYTES {
            true => {
                let message = format!("the page is longer than {} MB with all that it includes", MOST_BYTES >> 20);
                Err(Refusal { file: file.path.to_owned(), place: (0, 0), message, hint: String::new() })
            }
            false => Ok(()),
        }
    }

    fn follow(&mut self, directive: &Directive<'_>, file: &File<'_>, depth: usize) -> Result<(), Refusal> {
        let refused = |why: Why| file.refusal(directive.text, why);
        let plain = |why: &str| refused((why.to_owned(), String::new()));
        let mut words = directive.arguments.split_whitespace();
        let first = words.next().ok_or_else(|| plain("it names no file"))?;
        let is_playground = directive.kind.starts_with("play");
        let (name, part) = match first.split_once(':') {
            Some((name, part)) if !is_playground => (name, Part::of(part)),
            _ => (first, Part::All),
        };
        let path = within(file.folder(), Path::new(name)).ok_or_else(|| plain("the path leads out of the book"))?;
        let missing = || {
            let names = self.files.keys().map(|path| file.to(path)).collect::<Vec<String>>();
            refused(("the book has no such file".to_owned(), nearest(name, names.iter().map(String::as_str))))
        };
        let content = self.files.get(&path).ok_or_else(missing)?;
        let content = std::str::from_utf8(content).map_err(|_| plain("the file is not text"))?;
        part.check(content).map_err(refused)?;
        self.directives += 1;
        self.read += content.len();
        if self.read > MOST_BYTES {
            return Err(plain(&format!("the files that the page includes hold more than {} MB", MOST_BYTES >> 20)));
        }
        if depth == MOST_DEEP || self.directives > MOST_DIRECTIVES {
            return Err(plain("files include each other without an end"));
        }
        if is_playground {
            let attributes: Vec<&str> = std::iter::once("rust").chain(words).collect();
            self.text.push_str(&format!("```{}\n{}\n```\n", attributes.join(","), content.trim_end_matches('\n')));
            return Ok(());
        }
        let text = part.of_text(content, directive.kind == "rustdoc_include");
        self.expand(&text, &File { path: &path, whole: content }, depth + 1)
    }
}

/// The directives that there are.
const KINDS: [&str; 4] = ["include", "rustdoc_include", "playground", "playpen"];

/// The beginning of a directive whose kind is nearly one that there is.
fn misspelt(text: &str) -> Option<(&str, Why)> {
    let begin = text.get(2..)?.trim_start().strip_prefix('#')?;
    let kind = &begin[..begin.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-'))?];
    let hint = nearest(kind, KINDS.into_iter());
    let is_wrong = !KINDS.contains(&kind) && !hint.is_empty();
    let end = text.len() - begin.len() + kind.len();
    is_wrong.then(|| (&text[..end], (format!("there is no directive `{kind}`"), hint)))
}

/// `{{#kind arguments}}`.
struct Directive<'a> {
    text: &'a str,
    kind: &'a str,
    arguments: &'a str,
}

impl<'a> Directive<'a> {
    /// The directive that `text` begins with.
    fn at(text: &'a str) -> Option<Self> {
        // Its first word before its end, which may be far: a page may hold braces without an end.
        let begin = text.get(2..)?.trim_start().strip_prefix('#')?;
        let of_kind = |kind: &&str| begin.strip_prefix(*kind).is_some_and(|rest| rest.starts_with(char::is_whitespace));
        let kind = KINDS.into_iter().find(of_kind)?;
        let mut most = text.len().min(MOST_BYTES_OF_A_DIRECTIVE);
        while !text.is_char_boundary(most) {
            most -= 1;
        }
        let end = text[..most].find('}')?;
        let rest = text.len() - begin.len() + kind.len();
        let arguments = text.get(rest..end).filter(|_| text[end..].starts_with("}}"))?;
        Some(Self { text: &text[..end + 2], kind, arguments })
    }
}

/// Which part of a file is meant.
enum Part<'a> {
    All,
    /// From this line, from 0, to before that one.
    Lines(usize, usize),
    Anchor(&'a str),
}

impl<'a> Part<'a> {
    /// What stands behind the file's name: `2`, `2:8`, `:8`, `2:` or the name of an anchor.
    fn of(text: &'a str) -> Self {
        let (first, second) = match text.split_once(':') {
            Some((first, second)) => (first, Some(second)),
            None => (text, None),
        };
        let start = match first.parse::<usize>() {
            Ok(line) => line.saturating_sub(1),
            Err(_) if first.is_empty() => 0,
            Err(_) => return Part::Anchor(first),
        };
        match (second, first.is_empty()) {
            (Some(end), _) => Part::Lines(start, end.parse().unwrap_or(usize::MAX)),
            (None, true) => Part::All,
            (None, false) => Part::Lines(start, start.saturating_add(1)),
        }
    }

    /// Refuses a part that the text does not have.
    fn check(&self, text: &str) -> Result<(), Why> {
        let lines = text.lines().count();
        match self {
            Part::Lines(start, end) if start >= end || *start >= lines => {
                Err((format!("the file has {}, and none of these", counted(lines, "line")), String::new()))
            }
            Part::Anchor(name) => {
                let anchors: Vec<&str> = text.lines().filter_map(anchor).map(|(_, found)| found).collect();
                let hint = || nearest(name, anchors.iter().copied());
                if anchors.contains(name) { Ok(()) } else { Err((format!("the file has no anchor `{name}`"), hint())) }
            }
            _ => Ok(()),
        }
    }

    /// The part, or, with `hiding`, the whole with a mark before each line outside of it.
    fn of_text(&self, text: &str, hiding: bool) -> String {
        let mut part = String::new();
        let mut inside = matches!(self, Part::All);
        for (number, line) in text.lines().enumerate() {
            match self {
                Part::All => {}
                Part::Lines(start, end) => inside = (*start..*end).contains(&number),
                Part::Anchor(name) => {
                    if let Some((is_end, found)) = anchor(line) {
                        if found == *name {
                            inside = !is_end;
                        }
                        continue;
                    }
                }
            }
            if inside || hiding {
                part.push_str(if inside { "" } else { "# " });
                part.push_str(line);
                part.push('\n');
            }
        }
        part.pop();
        part
    }
}

/// The anchor that a line begins or ends, and whether it ends it.
fn anchor(line: &str) -> Option<(bool, &str)> {
    let (is_end, rest) = match (line.split_once("ANCHOR_END:"), line.split_once("ANCHOR:")) {
        (Some((_, rest)), _) => (true, rest),
        (None, Some((_, rest))) => (false, rest),
        (None, None) => return None,
    };
    let rest = rest.trim_start();
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-')).unwrap_or(rest.len());
    (end > 0).then(|| (is_end, &rest[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> Files {
        let files = [
            ("src/a.md", "from a"),
            ("src/part/b.md", "b and {{#include ../a.md}}"),
            ("src/part/c.md", "c and\n{{#include ../b.md}}"),
            ("src/round.md", "{{#include round.md}}"),
            ("src/code.rs", "use x;\n// ANCHOR: main\nfn main() {\n}\n// ANCHOR_END: main\nend"),
        ];
        files.into_iter().map(|(path, text)| (PathBuf::from(path), text.as_bytes().to_vec())).collect()
    }

    fn page(text: &str) -> Result<String, String> {
        resolved(text, Path::new("src/page.md"), &files()).map_err(|refusal| {
            let Refusal { file, place: (line, column), message, hint } = refusal;
            format!("{}:{line}:{column}: {message}{hint}", file.display())
        })
    }

    #[test]
    fn a_page_includes_files_of_the_book_whole_by_lines_and_by_anchors() {
        for (text, is) in [
            ("x {{#include a.md}} y", "x from a y"),
            ("{{ #include part/b.md }}", "b and from a"),
            ("{{#include code.rs:3:4}}", "fn main() {\n}"),
            ("{{#include code.rs:1}}", "use x;"),
            ("{{#include code.rs:6:}}", "end"),
            ("{{#include code.rs::1}}", "use x;"),
            ("{{#include code.rs:main}}", "fn main() {\n}"),
            ("{{#rustdoc_include code.rs:main}}", "# use x;\nfn main() {\n}\n# end"),
            (
                "{{#playground code.rs ignore}}",
                "```rust,ignore\nuse x;\n// ANCHOR: main\nfn main() {\n}\n// ANCHOR_END: main\nend\n```\n",
            ),
            ("\\{{#include a.md}}", "{{#include a.md}}"),
            ("{{ name }} and {{#other a}}", "{{ name }} and {{#other a}}"),
        ] {
            assert_eq!(page(text).as_deref(), Ok(is), "{text}");
        }
    }

    #[test]
    fn braces_without_an_end_and_files_without_number_are_found_out_in_time() {
        for text in
            ["{{".repeat(1 << 20), "{{#include ".repeat(1 << 15), "{{ ".repeat(1 << 19) + &" ".repeat(1 << 20) + "}}"]
        {
            assert_eq!(page(&text).as_deref(), Ok(text.as_str()));
        }
        let mut files = files();
        files.insert("src/large.rs".into(), vec![b'x'; 4 << 20]);
        for directive in ["{{#include large.rs:1}}", "{{#playground large.rs}}", "{{#rustdoc_include large.rs:1}}"] {
            let refusal = resolved(&directive.repeat(9), Path::new("src/page.md"), &files).unwrap_err().message;
            assert!(refusal.contains("more than 16 MB") || refusal.contains("longer than 16 MB"), "{refusal}");
        }
    }

    #[test]
    fn nothing_outside_of_the_book_is_included() {
        for text in [
            "{{#include /etc/passwd}}",
            "{{#include ../../../../etc/passwd}}",
            "{{#include ../../src/a.md}}",
            "{{#include\n/etc/passwd}}",
            "{{  #rustdoc_include /etc/passwd:1:2}}",
            "{{#playground /etc/passwd}}",
            "{{#playpen /etc/passwd}}",
            "{{#include missing.md}}",
            "{{#include round.md}}",
        ] {
            assert!(page(text).is_err(), "{text}");
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
                "src/page.md:1:3: {{#include code.rs:mian}}: the file has no anchor `main`; did you mean `main`?",
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
            let says = says.replace("no anchor `main`", "no anchor `mian`");
            let message = page(text).unwrap_err();
            assert!(message.starts_with(&says), "{text}: {message}");
        }
    }
}
