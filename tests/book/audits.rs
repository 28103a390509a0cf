//! Chapters of audits: of one that is given, and of one that is anybody's.

use syncscope_audit::AuditReport;
use syncscope_book::AuditPage;
use syncscope_present::escape;

use super::*;

/// The audit of a trace that was made by hand (`tests/audit/kineto.json`).
const AUDIT: &str = include_str!("../audit/kineto-audit.json");

fn with(project: BookProject) -> Files {
    source_as(&project, &[fixture::run()])
}

/// A page of an audit, as the command line makes it.
fn page_of(name: &str, json: &str) -> AuditPage {
    let link = |id: &str| match id {
        "overlap" => "<a href=\"overlap.html\">Overlap</a>".to_owned(),
        other => escape(other),
    };
    let content = AuditReport::parse(json, "a.json").unwrap().to_chapter("audit-longest", &link);
    AuditPage { name: name.to_owned(), json: json.to_owned(), content }
}

fn changed(change: impl FnOnce(&mut serde_json::Value)) -> String {
    let mut audit = serde_json::from_str(AUDIT).unwrap();
    change(&mut audit);
    audit.to_string()
}

#[test]
fn an_audit_chapter_shows_places_shares_and_its_longest_wait() {
    let files = with(carried_book().with_audit(page_of("Train 1", AUDIT)));
    let summary = read(&files, "SUMMARY");
    assert!(summary.contains("# Audits\n\n- [Audit: Train 1](audit-train-1.md)\n"), "{summary}");
    let chapter = page(&files, "book/src/audit-train-1.md");
    assert!(chapter.contains("<svg") && chapter.contains("id=\"audit-longest"), "{chapter}");
    // What a reader can do leads to the chapter that explains it.
    assert!(chapter.contains("chapter <a href=\"overlap.html\">"), "{chapter}");
    let chapter = read(&files, "audit-train-1");
    for part in [
        "# Audit: Train 1",
        "step, train.py, from line 31",
        "cudaMemcpyAsync",
        "1.00 ms",
        "## Place by place",
        "## Where the time went",
    ] {
        assert!(chapter.contains(part), "{part}: {chapter}");
    }
    assert!(chapter.contains("Device 0, idle, by what the host did"), "{chapter}");
    assert_eq!(page(&files, "book/src/audit-train-1.json"), AUDIT);
    assert!(!read(whole_source(), "SUMMARY").contains("Train 1"));
}

#[test]
fn a_link_of_an_audit_to_a_chapter_that_the_book_leaves_out_is_no_link() {
    let content = format!("<a href=\"{}.html\">Memory</a>.\n", escape("driver-calls"));
    let project = carried_book().with_audit(AuditPage { content, ..page_of("a", AUDIT) });
    assert!(page(&with(project.clone()), "book/src/audit-a.md").contains("\n\n<a href"));
    let mut results = fixture::run();
    results.rows.retain(|row| row.spec.experiment() != "driver-calls");
    assert!(page(&source_as(&project, &[results]), "book/src/audit-a.md").contains("\n\nMemory.\n"));
}

#[test]
fn two_audits_and_a_page_of_one_name_are_three_pages() {
    let project = carried_book().with_audit(page_of("a b", AUDIT)).with_audit(page_of("a-b", AUDIT));
    let project = project.with_file("notebooks/audit-a-b.ipynb", r#"{"nbformat": 4, "cells": []}"#);
    let files = with(project);
    for name in ["audit-a-b", "audit-a-b-2", "audit-a-b-2-2"] {
        assert!(files.contains_key(Path::new(&format!("book/src/{name}.md"))), "{name}");
    }
}

#[test]
fn a_hostile_audit_is_text_wherever_it_stands_and_its_length_is_limited() {
    const HOSTILE: &str = "<script>alert(1)</script> [c](http://d) `e` {{#include book.toml}}\n\n# f \u{1b}[2J";
    let audit = changed(|audit| {
        for name in ["source", "command"] {
            audit[name] = HOSTILE.into();
        }
        audit["warnings"] = vec![HOSTILE].into();
        audit["processes"][0]["command"] = HOSTILE.into();
        audit["longest_wait"]["device"] = HOSTILE.into();
        audit["longest_wait"]["spans"][0]["name"] = HOSTILE.into();
        let place = &mut audit["places"][0];
        for name in ["place", "function", "call", "operator", "waited_for", "advice", "chapter"] {
            place[name] = HOSTILE.into();
        }
        place["stack"] = serde_json::json!([{ "file": HOSTILE, "line": 1, "function": HOSTILE }]);
        let place = place.clone();
        audit["places"].as_array_mut().unwrap().extend(vec![place; 1_000]);
    });
    let files = with(carried_book().with_audit(page_of(HOSTILE, &audit)));
    let is_chapter = |path: &str| path.contains("src/audit-") && path.ends_with(".md");
    let (path, chapter) = files.iter().find(|(path, _)| is_chapter(path.to_str().unwrap())).unwrap();
    let chapter = std::str::from_utf8(chapter).unwrap();
    assert!(path.to_str().unwrap().bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-./".contains(&byte)));
    for needle in ["<script", "](http", "{{#", "\u{1b}", "\n# f", "`"] {
        assert!(!chapter.contains(needle), "{needle}");
    }
    assert!(chapter.contains("more places") && chapter.matches("<tr").count() < 300);
    assert!(!read(&files, "SUMMARY").contains("\n# f"));
}
