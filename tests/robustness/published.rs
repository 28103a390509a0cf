//! What of a foreign course may be published: names, pages and pictures. `report check` says the same as `report render`.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::courses::{self, append, refusal, render};
use super::{code, report, stderr};

const MEASURING: &str = "src/measuring.md";
const SUMMARY: &str = "templates/summary.md.j2";

/// A folder with results and a course, whose pages by hand hold a heading each and which has no documents.
fn course() -> TempDir {
    let folder = courses::course();
    let place = folder.path().join("course");
    for below in ["documents", "notebooks", "src/listings"] {
        fs::remove_dir_all(place.join(below)).unwrap();
        fs::create_dir(place.join(below)).unwrap();
    }
    fs::remove_file(place.join("lessons.yaml")).unwrap();
    let pages = fs::read_dir(place.join("src")).unwrap().map(|entry| entry.unwrap().path());
    for page in pages.filter(|path| path.extension().is_some_and(|ending| ending == "md")) {
        fs::write(page, "# Page\n").unwrap();
    }
    folder
}

/// Why a course is refused, by `render` and by `check` alike.
fn refused(folder: &Path) -> String {
    let checked = report(&["check", "course"], folder);
    assert_eq!(code(&checked), 2, "it is good: {}", stderr(&checked));
    let why = refusal(folder);
    assert_eq!(why, stderr(&checked));
    assert!(!folder.join("out").exists());
    why
}

/// Why a course is refused that has a file more.
fn refused_with(folder: &Path, name: &str, content: &str) -> String {
    let path = folder.join("course").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, content).unwrap();
    let why = refused(folder);
    fs::remove_file(path).unwrap();
    why
}

/// Why a course is refused of which a file has a text more at its end.
fn refused_with_text(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join("course").join(name);
    let old = fs::read_to_string(&path).unwrap();
    append(&path, text);
    let why = refused(folder);
    fs::write(path, old).unwrap();
    why
}

#[test]
fn a_name_that_a_script_or_a_page_would_act_on_is_refused() {
    let folder = course();
    let notebook = "{\"nbformat\": 4, \"cells\": []}";
    for (name, content) in [
        ("src/a';document.title='PWN';'.md", "# A\n"),
        ("src/b\"><script src=x.txt>.md", "# B\n"),
        ("src/c\nd.txt", ""),
        ("src/e\\f.csv", ""),
        ("src/g\u{202e}h.md", ""),
        ("src/part'/x.md", ""),
        ("src/listings/`x`.rs", ""),
        ("src/javascript:x.md", ""),
        ("notebooks/n';window.X=2;'.ipynb", notebook),
        ("documents/d&e.yaml", ""),
        ("templates/f'g.css", ""),
        ("audits/<a>.json", ""),
    ] {
        assert!(refused_with(folder.path(), name, content).contains("a name in a book has letters"), "{name}");
        let _ = fs::remove_dir(folder.path().join("course/src/part'"));
    }
}

#[test]
fn a_name_may_have_letters_of_any_language_and_what_people_write_between_them() {
    let folder = course();
    for name in ["Übung 1, Teil (2) [neu].md", "模型+x.md", "v1.2_a-b@c=d~.md"] {
        let place = folder.path().join("course");
        fs::write(place.join("src").join(name), "# Page\n").unwrap();
        append(&place.join(SUMMARY), &format!("\n[Page](<{name}>)\n"));
    }
    render(folder.path());
    assert!(folder.path().join("out/site/模型+x.html").is_file());
}

#[test]
fn no_ending_within_a_name_and_nothing_packed_stands_for_a_page_of_the_book() {
    let folder = course();
    for name in
        ["d.html.cu", "d.php.rs", "d.svg.toml", "reading.html.gz", "book.js.gz", "d.html.", "d.xhtml", "x.html.br"]
    {
        let why = refused_with(folder.path(), &format!("src/{name}"), "x");
        assert!(why.contains(&format!("error: course/src/{name}: ")), "{why}");
    }
    fs::write(folder.path().join("course/src/own.csv"), "x").unwrap();
    assert!(refused_with(folder.path(), "src/own.csv.gz", "x").contains("in the place of `src/own.csv`"));
}

#[test]
fn two_files_with_one_published_name_are_refused() {
    let folder = course();
    for (name, of) in
        [("glossary.html", "`glossary.md`"), ("Index.html", "`README.md`"), ("print.html", "mdBook makes")]
    {
        let why = refused_with(folder.path(), &format!("src/{name}"), "x");
        assert!(why.contains(&format!("course/src/{name}: ")) && why.contains(of), "{why}");
    }
}

#[test]
fn a_wrong_entry_of_the_contents_is_refused_with_its_place() {
    let folder = course();
    for (entry, says) in [
        ("[x](../book.toml)", "`../book.toml` is not a page of the book"),
        ("[x](kit/shared-gpu.csv)", "is not a page of the book"),
        ("[x](no/../machine.md)", "`no/../machine.md` leads to no page"),
        ("[x](raeding.md)", "did you mean `reading.md`?"),
        ("[x](reading.md)", "two entries lead to the page of `reading.md`"),
        ("[x](./reading.md)", "two entries lead to the page of `./reading.md`"),
        ("- [x](reading.md)", "what it makes is no table of contents: "),
    ] {
        let why = refused_with_text(folder.path(), SUMMARY, &format!("\n{entry}\n"));
        let place = if entry.starts_with('-') { "" } else { ":59:5" };
        assert!(why.contains(says) && !why.contains("mdBook:"), "{why}");
        assert!(why.starts_with(&format!("error: course/{SUMMARY}{place}: ")), "{why}");
    }
}

#[test]
fn a_page_leads_nowhere_by_itself_and_asks_no_other_host() {
    let folder = course();
    let settings = folder.path().join("course/book.toml");
    let text = fs::read_to_string(&settings).unwrap();
    fs::write(settings, text.replace("input-404 = \"\"", "input-404 = \"./404.md\"")).unwrap();
    fs::write(folder.path().join("course/src/404.md"), "# Not found\n").unwrap();
    for markup in [
        "<meta http-equiv=\"refresh\" content=\"0;url=http://example.com\">",
        "<p title='<META HTTP-EQUIV=refresh'>",
        "<link rel=preconnect href=http://example.com>",
        "<link rel=\"dns-prefetch\" href=http://example.com>",
        "<base href=http://example.com>",
        "<iframe srcdoc='&lt;link rel=preconnect href=http://example.com>'></iframe>",
        "<svg class=\"plot\" ><meta http&#45;equiv=refresh></svg>",
    ] {
        let says = "a course's page may not have ";
        assert!(refused_with_text(folder.path(), MEASURING, &format!("\n{markup}\n")).contains(says), "{markup}");
        // That is one where the book puts its pictures back alone.
        if !markup.contains("&#45;") {
            assert!(refused_with(folder.path(), "src/own.html", markup).contains(says), "{markup}");
            assert!(refused_with_text(folder.path(), "src/404.md", markup).contains(says), "{markup}");
        }
    }
    let shown = "\n`<link rel=x>` and `http-equiv`\n\n```html\n<meta http-equiv=refresh>\n<base href=x>\n```\n";
    append(&folder.path().join("course").join(MEASURING), shown);
    fs::write(folder.path().join("course/src/own.html"), "<meta charset=Shift_JIS><script>foreign()</script>").unwrap();
    render(folder.path());
    let page = fs::read_to_string(folder.path().join("out/site/own.html")).unwrap();
    let (policy, rest) = page.split_once("><meta charset=\"utf-8\">").unwrap();
    assert!(policy.starts_with("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'"), "{page}");
    assert!(rest.ends_with("<script>foreign()</script>"), "{page}");
}

#[test]
fn a_frame_of_slides_leads_nowhere_by_itself() {
    let folder = course();
    for markup in
        ["<meta http-equiv=\"refresh\" content=\"0;url=http://example.com\">", "<link rel=preconnect href=//x>"]
    {
        let frame = folder.path().join("course/templates/slides/frame.html.j2");
        let old = fs::read_to_string(&frame).unwrap();
        fs::write(&frame, old.replace("</head>", &format!("{markup}</head>"))).unwrap();
        let output = report(&["slides", "results.json", "--course", "course", "--out", "out"], folder.path());
        assert_eq!(code(&output), 2, "{}", stderr(&output));
        assert!(stderr(&output).contains("a course's page may not have"), "{}", stderr(&output));
        assert!(!folder.path().join("out/slides").exists());
        fs::write(frame, old).unwrap();
    }
    let output = report(&["slides", "results.json", "--course", "course", "--out", "out"], folder.path());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
}

/// Each would take minutes and more.
#[test]
fn what_takes_a_time_that_grows_as_its_square_is_limited_by_a_count_or_grows_as_itself() {
    let folder = course();
    let attributes: String = (0..100_000).map(|number| format!(" a{number}=\"\"")).collect();
    let alike = "course/src/measuring.md: the book has more than 4000 headings";
    for (text, says) in [
        ("# same\n\n".repeat(100_000), alike),
        ((0..100_000).map(|number| format!("# same {number}\n\n")).collect(), alike),
        ("<i id=same></i>\n".repeat(100_000), alike),
        (format!("<div{attributes}>\n"), "course/src/measuring.md: an element has more than 256 attributes"),
    ] {
        let why = refused_with_text(folder.path(), MEASURING, &format!("\n{text}"));
        assert!(why.contains(says), "{why}");
    }
    let cell = serde_json::json!({"cell_type": "markdown", "source": "# same\n".repeat(100_000)});
    let notebook = serde_json::json!({"nbformat": 4, "cells": [cell]}).to_string();
    let why = refused_with(folder.path(), "notebooks/same.ipynb", &notebook);
    assert!(why.contains("course/notebooks/same.ipynb: the book has more than 4000 headings"), "{why}");
    let levels: String = (0..50_000).map(|level| format!("<g xmlns:a{level}=\"u{level}\">")).collect();
    let nested = format!("<svg xmlns=\"http://www.w3.org/2000/svg\">{levels}{}</svg>", "</g>".repeat(50_000));
    assert!(refused_with(folder.path(), "src/x.svg", &nested).contains("more than 256 declarations of namespaces"));
    let wide = format!("<svg xmlns=\"http://www.w3.org/2000/svg\"{attributes}/>");
    assert!(refused_with(folder.path(), "src/x.svg", &wide).contains("more than 256 attributes"));
    append(&folder.path().join("course").join(MEASURING), &"\n<svg class=\"plot\" x></svg>".repeat(20_000));
    render(folder.path());
}
