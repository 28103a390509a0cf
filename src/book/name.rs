//! What the files of a book may be called: a course is somebody else's, and its names become paths, links and text of scripts.
//!
//! mdBook writes the path of a page into a script and into a page as it is, so the characters that are taken are listed. What a
//! browser takes a file for, and what a server serves in its place, follows from any of the endings of its name: they are listed, too.

use std::path::{Component, Path};

use super::policy::MARKUP;
use crate::clean::is_unseen;

/// The characters of ASCII that a name may have beside letters and digits. Of others it may have those that are seen.
const SIGNS: &str = " .-_+,()[]@=~";
/// What a browser takes for a script by its name.
const SCRIPTS: [&str; 3] = ["js", "mjs", "cjs"];
/// The endings that a browser acts on: of pages, which get a policy, of style sheets, and of pictures that are documents.
const ACTIVE: [&[&str]; 2] = [&MARKUP, &["css", PICTURE]];
/// The ending of pictures that are documents.
pub(super) const PICTURE: &str = "svg";
/// The endings of files that hold no scripts for a browser, by what they are: text, code, data, pictures, sound and films, fonts,
/// documents. What has no ending is text.
const PASSIVE: [&[&str]; 7] = [
    &["md", "markdown", "txt", "text", "log", "tex", "bib", "rst", "adoc", "org", "diff", "patch", "vtt", "srt"],
    &[
        "rs", "py", "pyi", "cu", "cuh", "c", "h", "cc", "cpp", "cxx", "hh", "hpp", "f90", "jl", "go", "java", "r", "m",
        "hip", "cl", "wgsl", "metal", "ptx", "sass", "asm", "s", "ll", "mlir", "sh", "bash", "zsh", "fish", "ps1",
        "bat", "cmake", "mk", "lua", "sql", "j2", "hbs", "in", "sbatch", "slurm", "dot", "gv", "mmd", "puml", "ts",
        "ipynb",
    ],
    &[
        "json", "jsonl", "yaml", "yml", "toml", "lock", "ini", "cfg", "conf", "env", "csv", "tsv", "parquet", "npy",
        "npz", "bin", "nsys-rep", "ncu-rep", "sqlite", "db",
    ],
    &["png", "jpg", "jpeg", "gif", "webp", "avif", "bmp", "ico", "tif", "tiff"],
    &["mp3", "ogg", "oga", "wav", "flac", "m4a", "mp4", "m4v", "webm", "mov"],
    &["woff", "woff2", "ttf", "otf", "eot"],
    &["pdf", "docx", "xlsx", "pptx", "odt", "ods", "odp"],
];
/// Those of archives and of what is packed, which a server may serve in the place of what is in it.
const PACKED: [&str; 8] = ["zip", "gz", "tgz", "tar", "xz", "bz2", "zst", "7z"];
/// What some servers take for orders.
const ORDERS: [&str; 4] = ["_headers", "_redirects", "_routes.json", "cname"];
/// What may stand before the ending beside the endings of files that hold no scripts, numbers and words that are none.
const WITHIN: [&str; 5] = ["trace", "pt", "min", "test", "example"];

/// Why a file of a book may not have this path.
pub(super) fn refusal(path: &Path) -> Option<String> {
    path.components().find_map(refused_part)
}

fn refused_part(part: Component<'_>) -> Option<String> {
    let Component::Normal(name) = part else {
        return Some("a file of this name would lie outside of the book".to_owned());
    };
    let Some(name) = name.to_str() else { return Some("its name is not UTF-8".to_owned()) };
    let is_taken = |c: char| match c.is_ascii() {
        true => c.is_ascii_alphanumeric() || SIGNS.contains(c),
        false => !c.is_whitespace() && !is_unseen(c),
    };
    if let Some(other) = name.chars().find(|c| !is_taken(*c)) {
        let other = if is_unseen(other) || other.is_whitespace() {
            format!("U+{:04X}", u32::from(other))
        } else {
            format!("`{other}`")
        };
        return Some(format!("a name in a book has letters, digits, blanks and `{}`, and not {other}", SIGNS.trim()));
    }
    let is_cut = name.starts_with(' ') || name.ends_with([' ', '.']);
    is_cut.then(|| "a name in a book neither begins with a blank nor ends with one or with a dot".to_owned())
}

/// Whether a path leads down alone: from folder to folder, each of which has to be there.
pub(super) fn leads_down(path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

/// Why a file of a course may not have these endings.
pub(super) fn refused_endings(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?.to_lowercase();
    if ORDERS.contains(&&*name) {
        return Some("a server may take it for an order of what to send to readers, or where: rename it".to_owned());
    }
    let mut endings = name.trim_start_matches('.').split('.').skip(1).collect::<Vec<&str>>();
    let last = endings.pop()?;
    if SCRIPTS.contains(&last) {
        let message = "a course has no scripts of its own: take it away, or put the program's in its place, as `report init` writes it";
        return Some(message.to_owned());
    }
    let is_listed = |lists: &[&[&str]], ending: &str| lists.iter().any(|list| list.contains(&ending));
    if !is_listed(&ACTIVE, last) && !is_listed(&PASSIVE, last) && !PACKED.contains(&last) {
        return Some(format!(
            "a browser may run scripts in a file whose name ends with `.{last}`: take it away, or make a text or a picture of it"
        ));
    }
    // A template is not published.
    if path.starts_with("templates") && last == "j2" {
        return None;
    }
    let is_ending = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic()) && part.chars().all(|c| c.is_ascii_alphanumeric())
    };
    let is_taken = |part: &str| is_listed(&PASSIVE, part) || PACKED.contains(&part) || WITHIN.contains(&part);
    let within = endings.into_iter().find(|part| is_ending(part) && !is_taken(part))?;
    Some(format!("a server may take it for what `.{within}` within its name says: put a dash in the place of that dot"))
}

/// The name of what a server may serve this file in the place of.
pub(super) fn unpacked(path: &Path) -> Option<&Path> {
    let ending = path.extension()?.to_str()?.to_lowercase();
    let stem = path.to_str()?.get(..path.to_str()?.len() - ending.len() - 1)?;
    PACKED.contains(&&*ending).then(|| Path::new(stem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_letters_of_any_language_and_no_sign_that_a_script_or_a_page_acts_on() {
        for name in
            ["a", "Übung 1", "模型", "हिन्दी", "a-b_c+d,e (1) [2] @3=4~", ".nojekyll", "part/x.md", "µs.csv", "…", "“a”"]
        {
            assert_eq!(refusal(Path::new(name)), None, "{name}");
        }
        for name in [
            "a'b.md",
            "a\"b",
            "a<b",
            "a>b",
            "a&b",
            "a`b",
            "a\\b",
            "a\nb",
            "a\tb",
            "a\u{7f}b",
            "a\u{2028}b",
            "a\u{202e}b",
            "a\u{a0}b",
            "javascript:a",
            "a;b",
            "a#b",
            "a?b",
            "a%27b",
            "{{a}}",
            "a|b",
            "a*b",
            "a$b",
            "a!b",
            "a^b",
            " a",
            "a ",
            "a.",
            "part'/x.md",
            "..",
            "a/../b",
            "/a",
        ] {
            assert!(refusal(Path::new(name)).is_some(), "{name}");
        }
    }

    #[test]
    fn each_ending_of_a_name_decides() {
        for name in [
            "a",
            "Makefile",
            "a.html",
            "a.HTM",
            "a.svg",
            "a.css",
            "a.tar.gz",
            "a.trace.json",
            "a.pt.trace.json.gz",
            "a.csv.gz",
            "v1.2.json",
            "a.2026-01-02.csv",
            "a.b c.txt",
            "Dr. B.pdf",
            ".gitignore",
            "a.ipynb",
            "a.json.html",
        ] {
            assert_eq!(refused_endings(Path::new(name)), None, "{name}");
        }
        for name in [
            "_redirects",
            "CNAME",
            "a.js",
            "a.MJS",
            "a.xml",
            "a.atom",
            "a.Shtm",
            "a.shtml",
            "a.xhtml",
            "a.xht",
            "a.hta",
            "a.webmanifest",
            "a.svgz",
            "a.html.br",
            "a.html.cu",
            "a.php.rs",
            "a.svg.toml",
            "a.HTML.gz",
            "a.js.gz",
            "a.css.gz",
            "a.svg.zst",
            "a.html.en.md",
            "a.php5.txt",
            "a.cgi.txt",
            "a.xml.html",
            "a.html.html",
            "a.phar.2.txt",
            "x.asis.txt",
            "a.var.md",
        ] {
            assert!(refused_endings(Path::new(name)).is_some(), "{name}");
        }
        assert_eq!(refused_endings(Path::new("templates/slides/frame.html.j2")), None);
        assert!(refused_endings(Path::new("src/frame.html.j2")).is_some());
    }

    #[test]
    fn what_is_packed_names_what_it_may_stand_for() {
        assert_eq!(unpacked(Path::new("data/a.csv.GZ")), Some(Path::new("data/a.csv")));
        assert_eq!(unpacked(Path::new("a.csv")), None);
    }
}
