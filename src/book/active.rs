//! What a browser would run of a course's own files: a course is somebody else's, and its pages run the program's scripts alone.
//!
//! A script is taken where it is the program's, byte by byte. A picture in SVG is a document of its own where a reader opens it,
//! and no policy can stand in it: one that could do more than show itself is refused. Which other names a browser takes for
//! documents that can hold scripts differs from system to system: so the endings that are taken are listed.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use roxmltree::{Document, Node};

use super::policy::MARKUP;

/// What a browser takes for a script by its name.
const SCRIPTS: [&str; 3] = [".js", ".mjs", ".cjs"];
/// The endings of pages, which get a policy, and of files that hold no scripts for a browser, by what they are: text, code, data,
/// pictures, sound and films, fonts, documents, archives. What has no ending is text.
const TAKEN: [&[&str]; 9] = [
    &MARKUP,
    &["css", "md", "markdown", "txt", "text", "log", "tex", "bib", "rst", "adoc", "org", "diff", "patch", "vtt", "srt"],
    &[
        "rs", "py", "pyi", "cu", "cuh", "c", "h", "cc", "cpp", "cxx", "hh", "hpp", "f90", "jl", "go", "java", "r", "m",
        "hip", "cl", "wgsl", "metal", "ptx", "sass", "asm", "s", "ll", "mlir", "sh", "bash", "zsh", "fish", "ps1",
        "bat", "cmake", "mk", "lua", "sql", "j2", "hbs", "in", "sbatch", "slurm", "dot", "gv", "mmd", "puml", "ts",
        "ipynb",
    ],
    &[
        "json", "jsonl", "yaml", "yml", "toml", "lock", "ini", "cfg", "conf", "env", "csv", "tsv", "parquet", "npy",
        "npz", "bin",
    ],
    &["svg", "png", "jpg", "jpeg", "gif", "webp", "avif", "bmp", "ico", "tif", "tiff"],
    &["mp3", "ogg", "oga", "wav", "flac", "m4a", "mp4", "m4v", "webm", "mov"],
    &["woff", "woff2", "ttf", "otf", "eot"],
    &["pdf", "docx", "xlsx", "pptx", "odt", "ods", "odp"],
    &["zip", "gz", "tgz", "tar", "xz", "bz2", "zst", "7z", "nsys-rep", "ncu-rep", "sqlite", "db"],
];

/// The first file that would run something, and why it is refused.
pub(super) fn found(files: &BTreeMap<PathBuf, Vec<u8>>, own: &BTreeMap<PathBuf, Vec<u8>>) -> Option<(PathBuf, String)> {
    let mut files = files.iter().filter(|(path, content)| own.get(*path) != Some(*content));
    files.find_map(|(path, content)| Some((path.clone(), refusal(path, content)?)))
}

fn refusal(path: &Path, content: &[u8]) -> Option<String> {
    let name = path.file_name()?.to_string_lossy().to_lowercase();
    let is_one = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    if is_one(&SCRIPTS) {
        let message = "a course has no scripts of its own: take it away, or put the program's in its place, as `report init` writes it";
        return Some(message.to_owned());
    }
    let ending = Path::new(&name).extension().and_then(OsStr::to_str).filter(|ending| !ending.is_empty());
    if let Some(ending) = ending.filter(|ending| !TAKEN.iter().any(|known| known.contains(ending))) {
        return Some(format!(
            "a browser may run scripts in a file whose name ends with `.{ending}`: take it away, or make a text or a picture of it"
        ));
    }
    let why = is_one(&[".svg"]).then(|| acts(content))??;
    Some(format!("this picture can do more than show itself: {why}; take that out of it, or make a PNG of it"))
}

/// What in an SVG does more than show a picture.
fn acts(content: &[u8]) -> Option<String> {
    const OTHER: [&str; 2] = ["http://www.w3.org/1999/xhtml", "http://www.w3.org/1998/Math/MathML"];
    const ACTIVE: [&str; 6] = ["script", "foreignObject", "handler", "listener", "set", "animate"];
    let Ok(text) = std::str::from_utf8(content) else { return Some("it is not UTF-8".to_owned()) };
    // A document type may give any element any attribute: one is an error here.
    let document = match Document::parse(text) {
        Ok(document) => document,
        Err(error) => return Some(format!("it is not the XML that a picture is ({error})")),
    };
    let of_node = |node: Node<'_, '_>| {
        if let Some(instruction) = node.pi() {
            return Some(format!("it has the instruction `{}`", instruction.target));
        }
        let tag = node.tag_name();
        if ACTIVE.contains(&tag.name()) || tag.namespace().is_some_and(|space| OTHER.contains(&space)) {
            return Some(format!("it has an element `{}`", tag.name()));
        }
        node.attributes().find_map(|attribute| {
            let (name, value) = (attribute.name().to_lowercase(), attribute.value());
            let is_inside = value.starts_with('#') || value.starts_with("data:image/") && !value.contains("svg");
            let acts = name.starts_with("on") || name == "href" && !is_inside;
            acts.then(|| format!("it has the attribute `{name}` of `{}`", tag.name()))
        })
    };
    document.root().descendants().find_map(of_node)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn svg(inside: &str) -> String {
        format!(
            "<?xml version='1.0'?><svg xmlns='http://www.w3.org/2000/svg' xmlns:x='http://www.w3.org/1999/xlink' {inside}</svg>"
        )
    }

    #[test]
    fn a_picture_that_shows_itself_is_taken_and_one_that_acts_is_refused() {
        for inside in [
            "viewBox='0 0 1 1'><style>path { fill: red }</style><path d='M0 0' id='a'/><use x:href='#a'/>",
            "><image href='data:image/png;base64,AA=='/><text>onload script</text>",
        ] {
            assert_eq!(acts(svg(inside).as_bytes()), None, "{inside}");
        }
        for inside in [
            "onload='alert(1)'>",
            "><script>alert(1)</script>",
            "><s:script xmlns:s='http://www.w3.org/2000/svg' x:href='x.txt'/>",
            "><a x:href='java&#115;cript:alert(1)'><text>x</text></a>",
            "><foreignObject><iframe xmlns='http://www.w3.org/1999/xhtml' srcdoc='x'/></foreignObject>",
            "><iframe xmlns='http://www.w3.org/1999/xhtml' srcdoc='x'/>",
            "><set attributeName='href' to='javascript:alert(1)'/>",
            "><use href='data:image/svg+xml,x'/>",
            "><not closed>",
        ] {
            assert!(acts(svg(inside).as_bytes()).is_some(), "{inside}");
        }
        let typed = "<!DOCTYPE svg [<!ATTLIST svg onload CDATA 'alert(1)'>]><svg xmlns='http://www.w3.org/2000/svg'/>";
        let styled = "<?xml-stylesheet type='text/xsl' href='x.txt'?><svg xmlns='http://www.w3.org/2000/svg'/>";
        assert!(acts(typed.as_bytes()).is_some() && acts(styled.as_bytes()).is_some() && acts(b"\xff\xfe").is_some());
    }

    #[test]
    fn a_script_is_the_programs_byte_by_byte_or_refused_whatever_it_is_called() {
        let own = BTreeMap::from([(PathBuf::from("templates/own.js"), b"own()".to_vec())]);
        let taken = |path: &str, content: &[u8]| {
            found(&BTreeMap::from([(PathBuf::from(path), content.to_vec())]), &own).is_none()
        };
        assert!(taken("templates/own.js", b"own()") && taken("src/x.cu", b"x") && taken("src/js", b"x"));
        for path in ["src/Makefile", "src/a.tar.gz", "src/x.HTML", "src/x.", "src/x.ipynb", ".nojekyll", ".gitignore"] {
            assert!(taken(path, b"x"), "{path}");
        }
        for path in [
            "templates/own.js",
            "templates/book.js",
            "src/own.js",
            "src/book-1a2b3c4d.JS",
            "src/a/x.mjs",
            "src/x.xml",
            "src/x.atom",
            "src/x.Shtm",
            "src/x.html.ehtml",
            "src/x.hta",
            "src/x.webmanifest",
        ] {
            assert!(!taken(path, b"foreign()"), "{path}");
        }
        assert!(!taken("src/own.js", b"own()"));
    }
}
