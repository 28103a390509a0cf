//! `{{#include}}` and its kin in a page, from the files of the book alone.
//!
//! mdBook's own preprocessor reads any file that its process may read; this one knows only the files that the book is made
//! of. The same directives are understood: `include` and `rustdoc_include` with lines (`file.rs:2:8`) or an anchor
//! (`file.rs:loop`), and `playground`. A backslash before the braces keeps them as they are.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

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

/// The text of the page at `path` with what it includes in place.
///
/// # Errors
/// A directive, and why it cannot be followed.
pub(super) fn resolved(text: &str, path: &Path, files: &Files) -> Result<String, String> {
    let mut page = Page { files, text: String::new(), directives: 0, read: 0 };
    page.expand(text, folder_of(path), 0)?;
    Ok(page.text)
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
    fn expand(&mut self, text: &str, folder: &Path, depth: usize) -> Result<(), String> {
        let mut rest = text;
        while let Some(start) = rest.find("{{") {
            let (before, from) = rest.split_at(start);
            self.text.push_str(before.strip_suffix('\\').filter(|_| from.starts_with("{{#")).unwrap_or(before));
            let directive = Directive::at(from).filter(|_| !before.ends_with('\\'));
            let Some(directive) = directive else {
                self.text.push_str("{{");
                rest = &from[2..];
                continue;
            };
            self.follow(&directive, folder, depth).map_err(|why| format!("{}: {why}", directive.text))?;
            rest = &from[directive.text.len()..];
        }
        self.text.push_str(rest);
        match self.text.len() > MOST_BYTES {
            true => Err(format!("the page is longer than {} MB with all that it includes", MOST_BYTES >> 20)),
            false => Ok(()),
        }
    }

    fn follow(&mut self, directive: &Directive<'_>, folder: &Path, depth: usize) -> Result<(), String> {
        let mut words = directive.arguments.split_whitespace();
        let first = words.next().ok_or("it names no file")?;
        let is_playground = directive.kind.starts_with("play");
        let (name, part) = match first.split_once(':') {
            Some((name, part)) if !is_playground => (name, Part::of(part)),
            _ => (first, Part::All),
        };
        let path = within(folder, Path::new(name)).ok_or("the path leads out of the book")?;
        let content = self.files.get(&path).ok_or("the book has no such file")?;
        let content = std::str::from_utf8(content).map_err(|_| "the file is not text")?;
        self.directives += 1;
        self.read += content.len();
        if self.read > MOST_BYTES {
            return Err(format!("the files that the page includes hold more than {} MB", MOST_BYTES >> 20));
        }
        if depth == MOST_DEEP || self.directives > MOST_DIRECTIVES {
            return Err("files include each other without an end".to_owned());
        }
        if is_playground {
            let attributes: Vec<&str> = std::iter::once("rust").chain(words).collect();
            self.text.push_str(&format!("```{}\n{}\n```\n", attributes.join(","), content.trim_end_matches('\n')));
            return Ok(());
        }
        let text = part.of_text(content, directive.kind == "rustdoc_include");
        self.expand(&text, folder_of(&path), depth + 1)
    }
}

fn folder_of(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new(""))
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
        let known = ["include", "rustdoc_include", "playground", "playpen"];
        let of_kind = |kind: &&str| begin.strip_prefix(*kind).is_some_and(|rest| rest.starts_with(char::is_whitespace));
        let kind = known.into_iter().find(of_kind)?;
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
            ("src/round.md", "{{#include round.md}}"),
            ("src/code.rs", "use x;\n// ANCHOR: main\nfn main() {\n}\n// ANCHOR_END: main\nend"),
        ];
        files.into_iter().map(|(path, text)| (PathBuf::from(path), text.as_bytes().to_vec())).collect()
    }

    fn page(text: &str) -> Result<String, String> {
        resolved(text, Path::new("src/page.md"), &files())
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
            let refusal = resolved(&directive.repeat(9), Path::new("src/page.md"), &files).unwrap_err();
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
}
