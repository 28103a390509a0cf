//! A course: no command of it is run, and nothing outside of its folder is read.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use tempfile::TempDir;

use super::{code, measured, report, stderr};

const SECRET: &str = "s3cret-outside-of-the-course";

/// A folder with results, a course, and a file beside it that no course may read.
fn course() -> TempDir {
    let folder = measured();
    fs::write(folder.path().join("secret.txt"), SECRET).unwrap();
    assert_eq!(code(&report(&["init", "course"], folder.path())), 0);
    folder
}

/// Renders the course, which is to be refused, and returns why.
fn refusal(folder: &Path) -> String {
    let output = report(&["render", "results.json", "--course", "course", "--out", "out"], folder);
    assert_eq!(code(&output), 2, "{}", stderr(&output));
    assert!(!published(&folder.join("out")), "the secret was published");
    stderr(&output)
}

/// Renders the course.
fn render(folder: &Path) {
    let output = report(&["render", "results.json", "--course", "course", "--out", "out"], folder);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
}

fn published(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    entries.map(|entry| entry.unwrap().path()).any(|path| match path.is_dir() {
        true => published(&path),
        false => String::from_utf8_lossy(&fs::read(path).unwrap()).contains(SECRET),
    })
}

fn append(file: &Path, text: &str) {
    let old = fs::read_to_string(file).unwrap();
    fs::write(file, old + text).unwrap();
}

#[test]
fn a_file_that_is_longer_than_all_of_a_book_is_named_and_not_read_to_its_end() {
    let folder = course();
    // Longer than any memory, and without a byte on the disk.
    fs::File::create(folder.path().join("course/src/huge.png")).unwrap().set_len(1 << 38).unwrap();
    let refusal = refusal(folder.path());
    assert!(refusal.contains("error: course/src/huge.png: the files of a book hold 256 MB at most"), "{refusal}");
}

#[test]
fn a_course_runs_no_commands() {
    for text in ["\n[output.x]\ncommand = \"touch ../ran\"\n", "\n[preprocessor.x]\ncommand = \"touch ../ran\"\n"] {
        let folder = course();
        append(&folder.path().join("course/book.toml"), text);
        assert!(refusal(folder.path()).contains("book.toml:"));
        assert!(!folder.path().join("ran").exists());
    }
}

#[test]
fn a_course_includes_no_file_outside_its_folder() {
    let folder = course();
    let secret = folder.path().join("secret.txt").display().to_string();
    let upwards = "../".repeat(40);
    let place = folder.path().join("course");
    let pristine = fs::read_to_string(place.join("src/measuring.md")).unwrap();
    for path in [secret.clone(), format!("{upwards}{secret}")] {
        for directive in ["include", "rustdoc_include", "playground"] {
            fs::write(place.join("src/measuring.md"), format!("{pristine}\n{{{{#{directive} {path}}}}}\n")).unwrap();
            assert!(refusal(folder.path()).contains("leads out of the book"));
        }
    }
    fs::write(place.join("src/measuring.md"), &pristine).unwrap();
    let document = fs::read_to_string(place.join("documents/overlap.yaml")).unwrap();
    let foreign = document.replacen("question: >\n", &format!("question: >\n  {{{{#include {secret}}}}}\n"), 1);
    assert!(foreign != document, "the document has no question in a block");
    fs::write(place.join("documents/overlap.yaml"), foreign).unwrap();
    assert!(refusal(folder.path()).contains("leads out of the book"));
    fs::write(place.join("documents/overlap.yaml"), document).unwrap();
    append(&place.join("templates/summary.md.j2"), &format!("\n[x]({upwards}{secret})\n"));
    assert!(refusal(folder.path()).contains("is not a page of the book"));
}

#[test]
fn a_link_out_of_a_course_is_refused_and_one_within_it_is_followed() {
    for (file, target) in [
        ("src/x.md", "../../secret.txt"),
        ("src/folder", "../.."),
        ("notebooks/x.ipynb", "/etc/passwd"),
        ("hardware.yaml", "../secret.txt"),
    ] {
        let folder = course();
        let place = folder.path().join("course").join(file);
        let _ = fs::remove_file(&place);
        symlink(target, &place).unwrap();
        assert!(refusal(folder.path()).contains("the link leads out of the folder"), "{file}");
    }
    let folder = course();
    symlink("measuring.md", folder.path().join("course/src/again.md")).unwrap();
    let output = report(&["render", "results.json", "--course", "course", "--out", "out"], folder.path());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
}

#[test]
fn links_that_lead_into_each_other_end() {
    let folder = course();
    let place = |name: &str| folder.path().join("course/src").join(name);
    (0..=8).for_each(|level| fs::create_dir(place(&format!("level{level}"))).unwrap());
    for (level, link) in (0..8).flat_map(|level| (0..8).map(move |link| (level, link))) {
        symlink(format!("../level{}", level + 1), place(&format!("level{level}/{link}"))).unwrap();
    }
    assert!(refusal(folder.path()).contains("files and folders at most"));
}

#[test]
fn a_page_in_a_folder_of_a_course_has_its_pictures_and_tables() {
    let folder = course();
    let course = folder.path().join("course");
    fs::create_dir(course.join("src/part")).unwrap();
    let parts = ["<svg class=\"plot\" id=\"own\"></svg>", "<table class=\"results\"><tr><td>cell</td></tr></table>"];
    fs::write(course.join("src/part/own.md"), format!("# Own\n\n{}\n\n{}\n", parts[0], parts[1])).unwrap();
    let summary = course.join("templates/summary.md.j2");
    let text = fs::read_to_string(&summary).unwrap();
    fs::write(summary, text + "\n[Own](part/own.md)\n").unwrap();
    render(folder.path());
    let page = fs::read_to_string(folder.path().join("out/site/part/own.html")).unwrap();
    assert!(parts.iter().all(|part| page.contains(part)), "{page}");
}

#[test]
fn folders_of_a_course_that_lie_in_each_other_without_an_end_are_refused_in_time() {
    let folder = course();
    fs::create_dir_all(folder.path().join("course/src").join("d/".repeat(900))).unwrap();
    assert!(refusal(folder.path()).contains("lie 40 deep in each other at most"));
}

/// A notebook may be another's: its words are shown, and run nothing.
#[test]
fn of_the_outputs_of_a_notebook_no_script_has_the_nonce_of_its_page() {
    const FOREIGN: &str = "foreign()";
    let folder = measured();
    let markdown = serde_json::json!({"cell_type": "markdown", "source": "# A\n\n</main><script>foreign()</script>\n"});
    let data = serde_json::json!({"text/html": "<script>foreign()</script>\n<script src=\"x.txt\"></script>"});
    let output = serde_json::json!({"output_type": "display_data", "metadata": {}, "data": data});
    let code_cell = serde_json::json!({"cell_type": "code", "source": "1", "outputs": [output]});
    let notebook = serde_json::json!({"nbformat": 4, "cells": [markdown, code_cell]});
    fs::write(folder.path().join("00-quick-start.ipynb"), notebook.to_string()).unwrap();
    let output = report(&["render", "results.json", "--notebook", "00-quick-start.ipynb"], folder.path());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let page = fs::read_to_string(folder.path().join("target/report/site/00-quick-start.html")).unwrap();
    let policy = page.split("content=\"").nth(1).unwrap().split('"').next().unwrap();
    let nonce = policy.split("script-src 'nonce-").nth(1).unwrap().split('\'').next().unwrap();
    assert!(!policy.contains("script-src 'self'") && policy.contains("base-uri 'none'"), "{policy}");
    let begin = format!("<script nonce=\"{nonce}\"");
    let run: Vec<&str> = page.split(&begin).skip(1).map(|rest| rest.split("</script>").next().unwrap()).collect();
    assert!(run.len() > 5 && page.contains(FOREIGN), "{run:?}");
    assert!(run.iter().all(|script| !script.contains(FOREIGN) && !script.contains("x.txt")), "{run:?}");
}

/// Its own mdBook: its pages may hold what HTML they like, and its settings may name scripts of its own.
#[test]
fn a_course_may_have_scripts_pictures_and_pages_of_its_own() {
    let folder = course();
    let place = folder.path().join("course");
    let page = "<!DOCTYPE html><html><head></head><body onload=\"own()\"></body></html>";
    fs::write(place.join("src/own.html"), page).unwrap();
    fs::write(place.join("src/own.svg"), "<svg xmlns='http://www.w3.org/2000/svg' onload='own()'/>").unwrap();
    fs::write(place.join("templates/own.js"), "own()").unwrap();
    append(&place.join("src/measuring.md"), "\n<link rel=preconnect href=http://example.com>\n");
    let settings = fs::read_to_string(place.join("book.toml")).unwrap();
    let own = settings.replace("\"theme/timeline.js\"", "\"theme/timeline.js\", \"theme/own.js\"");
    assert!(settings != own);
    fs::write(place.join("book.toml"), own).unwrap();
    render(folder.path());
    let site = |name: &str| fs::read_to_string(folder.path().join("out/site").join(name)).unwrap();
    assert_eq!(site("own.html"), page);
    assert!(site("own.svg").contains("onload") && site("measuring.html").contains("rel=\"preconnect\""));
    assert!(site("measuring.html").contains("src=\"theme/own-"), "{}", site("measuring.html"));
}

#[test]
fn audits_of_a_course_are_chapters_and_other_files_are_refused_by_name() {
    const AUDIT: &str = include_str!("../audit/kineto-audit.json");
    let folder = course();
    let place = folder.path().join("course/audits");
    fs::create_dir(&place).unwrap();
    fs::write(place.join("mine.json"), AUDIT).unwrap();
    render(folder.path());
    let page = fs::read_to_string(folder.path().join("out/site/audit-mine.html")).unwrap();
    // What a reader can do leads to the chapter that explains it.
    assert!(page.contains("train.py") && page.contains("chapter <a href=\"overlap.html\">"), "{page}");
    fs::remove_dir_all(folder.path().join("out")).unwrap();
    let changed = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut audit = serde_json::from_str(AUDIT).unwrap();
        change(&mut audit);
        audit.to_string()
    };
    for (content, why) in [
        ("{".to_owned(), "not audit"),
        (changed(&|audit| audit["format"] = 9.into()), "format 9"),
        (changed(&|audit| audit["processes"][0]["wall_ns"] = 1.into()), "do not add up to 1 ns"),
        (changed(&|audit| audit["places"][0]["count"] = 0.into()), "are not those of calls"),
    ] {
        fs::write(place.join("mine.json"), content).unwrap();
        let refused = refusal(folder.path());
        assert!(refused.contains("course/audits/mine.json") && refused.contains(why), "{refused}");
    }
}

#[test]
fn a_wrong_entry_of_the_contents_is_refused_with_its_place() {
    const SUMMARY: &str = "templates/summary.md.j2";
    let folder = course();
    let summary = folder.path().join("course").join(SUMMARY);
    let old = fs::read_to_string(&summary).unwrap();
    for (entry, says) in [
        ("[x](../book.toml)", "`../book.toml` is not a page of the book"),
        ("[x](kit/shared-gpu.csv)", "is not a page of the book"),
        ("[x](no/../machine.md)", "`no/../machine.md` leads to no page"),
        ("[x](raeding.md)", "did you mean `reading.md`?"),
        ("[x](reading.md)", "two entries lead to the page of `reading.md`"),
        ("[x](./reading.md)", "two entries lead to the page of `./reading.md`"),
        ("- [x](reading.md)", "what it makes is no table of contents: "),
    ] {
        append(&summary, &format!("\n{entry}\n"));
        let checked = report(&["check", "course"], folder.path());
        assert_eq!(code(&checked), 2, "it is good: {}", stderr(&checked));
        let why = refusal(folder.path());
        assert_eq!(why, stderr(&checked));
        let place = if entry.starts_with('-') { "" } else { ":59:5" };
        assert!(why.contains(says) && !why.contains("mdBook:"), "{why}");
        assert!(why.starts_with(&format!("error: course/{SUMMARY}{place}: ")), "{why}");
        fs::write(&summary, &old).unwrap();
    }
}

#[test]
fn a_book_does_not_become_a_part_of_the_course_that_it_is_made_of() {
    let folder = course();
    symlink("course/src", folder.path().join("link")).unwrap();
    for out in ["course/src", "course/documents/new/folder", "course/src/../templates", "link/x"] {
        let output = report(&["render", "results.json", "--course", "course", "--out", out], folder.path());
        assert_eq!(code(&output), 2, "{out}: {}", stderr(&output));
        assert!(stderr(&output).contains("a part of the course"), "{out}: {}", stderr(&output));
    }
    for out in ["course", "course/target", "coursesrc"] {
        let output = report(&["render", "results.json", "--course", "course", "--out", out], folder.path());
        assert_eq!(code(&output), 0, "{out}: {}", stderr(&output));
    }
}

#[test]
fn an_experiment_named_like_a_page_of_the_book_has_a_page_beside_it() {
    let folder = measured();
    let text = fs::read_to_string(folder.path().join("results.json")).unwrap();
    for name in ["glossary", "print", "toc", "404", "index", "00-quick-start"] {
        fs::write(folder.path().join("named.json"), text.replace("launch-path", name)).unwrap();
        let output = report(&["render", "named.json", "--out", "out"], folder.path());
        assert_eq!(code(&output), 0, "{name}: {}", stderr(&output));
        assert!(folder.path().join(format!("out/site/experiment-{name}.html")).is_file(), "{name}");
    }
}

#[test]
fn names_and_headings_of_any_length_have_pages_and_data() {
    let folder = measured();
    let text = fs::read_to_string(folder.path().join("results.json")).unwrap();
    let long = "long".repeat(100);
    let mut results: serde_json::Value = serde_json::from_str(&text.replace("launch-path", &long)).unwrap();
    for row in results["rows"].as_array_mut().unwrap() {
        let heading = format!("{long} {}", row["spec"]["group"].as_str().unwrap());
        row["spec"]["group"] = heading.into();
    }
    fs::write(folder.path().join("long.json"), results.to_string()).unwrap();
    let output = report(&["render", "long.json", "--out", "out"], folder.path());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
}

#[test]
fn a_pipe_and_a_device_in_a_course_are_refused_before_they_are_read() {
    let folder = course();
    let pipe = folder.path().join("course/src/pipe");
    assert!(std::process::Command::new("mkfifo").arg(pipe).status().unwrap().success());
    assert!(refusal(folder.path()).contains("not a plain file"));
}

#[test]
fn a_name_in_a_results_file_makes_no_file_outside_of_the_book() {
    let folder = measured();
    let text = fs::read_to_string(folder.path().join("results.json")).unwrap();
    fs::write(folder.path().join("evil.json"), text.replace("launch-path", "../../../escaped/launch-path")).unwrap();
    let output = report(&["render", "evil.json", "--out", "a/b/out"], folder.path());
    assert!(matches!(code(&output), 0 | 2), "{}", stderr(&output));
    for place in ["escaped", "a/escaped", "a/b/escaped"] {
        assert!(!folder.path().join(place).exists(), "{place}");
    }
}

#[test]
fn a_bad_template_is_found_before_anything_is_measured() {
    let folder = course();
    for text in ["\n{{ nobody.there }}\n", "\n{% if %}\n"] {
        let template = folder.path().join("course/templates/machine.md.j2");
        let old = fs::read_to_string(&template).unwrap();
        append(&template, text);
        let arguments = ["--suite", "suite.yaml", "--device", "cpu:0", "--course", "course", "--out", "new"];
        let output = report(&arguments, folder.path());
        assert_eq!(code(&output), 2, "{}", stderr(&output));
        assert!(stderr(&output).contains("machine.md.j2") && !folder.path().join("new/results.json").exists());
        fs::write(template, old).unwrap();
    }
}
