//! What a browser would run of a course's own files, or ask others for: a course is somebody else's, and its pages run the
//! program's scripts alone.
//!
//! A script is taken where it is the program's, byte by byte. Names are those of [`name`](super::name); a picture in SVG and a
//! page in HTML are text in UTF-8, and hold nothing that acts.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::policy::MARKUP;
use super::{markup, name, picture};

/// The first file that would run something, and why it is refused.
pub(super) fn found(files: &BTreeMap<PathBuf, Vec<u8>>, own: &BTreeMap<PathBuf, Vec<u8>>) -> Option<(PathBuf, String)> {
    let mut files = files.iter().filter(|(path, content)| own.get(*path) != Some(*content));
    files.find_map(|(path, content)| Some((path.clone(), refusal(path, content)?)))
}

fn refusal(path: &Path, content: &[u8]) -> Option<String> {
    let named = name::refusal(path).or_else(|| name::refused_endings(path));
    if named.is_some() {
        return named;
    }
    let ending = path.extension().and_then(OsStr::to_str).unwrap_or_default().to_lowercase();
    let check = match &*ending {
        name::PICTURE => picture::refusal,
        page if MARKUP.contains(&page) => markup::refusal,
        // A page by hand is not published as it is.
        "md" => return None,
        _ if path.starts_with("src") => return is_guessed(content),
        _ => return None,
    };
    // In another encoding a browser could read other characters than were checked.
    match std::str::from_utf8(content) {
        Ok(text) => check(text),
        Err(_) => Some("it is not UTF-8".to_owned()),
    }
}

/// A server that does not know a name says nothing of what it is, and a browser takes for a page what begins as one
/// (<https://mimesniff.spec.whatwg.org/#identifying-a-resource-with-an-unknown-mime-type>).
fn is_guessed(content: &[u8]) -> Option<String> {
    let first = content.iter().find(|byte| !byte.is_ascii_whitespace());
    (first == Some(&b'<'))
        .then(|| "a browser may take it for a page, as it begins with `<`: begin it with a comment".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_the_programs_byte_by_byte_or_refused_whatever_it_is_called() {
        let own = BTreeMap::from([(PathBuf::from("templates/own.js"), b"own()".to_vec())]);
        let taken = |path: &str, content: &[u8]| {
            found(&BTreeMap::from([(PathBuf::from(path), content.to_vec())]), &own).is_none()
        };
        assert!(taken("templates/own.js", b"own()") && taken("src/x.cu", b"x") && taken("src/js", b"x"));
        for path in ["templates/own.js", "templates/book.js", "src/own.js", "src/book-1a2b3c4d.JS", "src/a/x.mjs"] {
            assert!(!taken(path, b"foreign()"), "{path}");
        }
        assert!(!taken("src/own.js", b"own()"));
    }

    #[test]
    fn what_begins_as_a_page_is_one_by_its_name_or_refused() {
        let files = |path: &str| BTreeMap::from([(PathBuf::from(path), b"\n\x0c <script>foreign()</script>".to_vec())]);
        for path in ["src/x.md", "src/x.html", "templates/macros.md.j2"] {
            assert_eq!(found(&files(path), &BTreeMap::new()), None, "{path}");
        }
        for path in ["src/Makefile", "src/x.cu", "src/x.1", "src/a/x.txt"] {
            assert!(found(&files(path), &BTreeMap::new()).is_some(), "{path}");
        }
    }

    #[test]
    fn what_is_checked_as_text_is_utf_8() {
        for path in ["src/x.svg", "src/x.html", "src/x.HTM"] {
            for content in [&b"\xff\xfe<\0s\0"[..], b"\xfe\xff", b"<svg>\xe9</svg>"] {
                let files = BTreeMap::from([(PathBuf::from(path), content.to_vec())]);
                let (_, refusal) = found(&files, &BTreeMap::new()).unwrap();
                assert_eq!(refusal, "it is not UTF-8");
            }
        }
    }
}
