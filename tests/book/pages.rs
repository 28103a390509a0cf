//! Pages as files: the same anywhere, whole, safe from what a results file holds.

use std::process::Command;

use syncscope::book::Source;
use syncscope::present::escape;

use super::*;

#[test]
fn the_same_results_make_the_same_bytes_anywhere() {
    let trees = [("UTC", "C", "One"), ("Pacific/Kiritimati", "tr_TR.UTF-8", "Another")].map(|(zone, locale, title)| {
        let out = TempDir::with_prefix(format!("book-{title}")).unwrap();
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "pages::render_where_the_environment_says", "--ignored", "--quiet"])
            .env("SYNCSCOPE_TEST_OUT", out.path().join("deep").join(title))
            .env("TZ", zone)
            .env("LANG", locale)
            .env("LC_ALL", locale)
            .env("MDBOOK_BOOK__TITLE", title)
            .current_dir(out.path())
            .output()
            .unwrap();
        assert!(status.status.success(), "{status:?}");
        tree(&out.path().join("deep").join(title))
    });
    let [one, another] = trees;
    assert!(one.len() > 20);
    assert_eq!(one.keys().collect::<Vec<_>>(), another.keys().collect::<Vec<_>>());
    for (path, content) in &one {
        assert!(*content == another[path], "{} differs", path.display());
    }
}

/// Not a test of its own: `the_same_results_make_the_same_bytes_anywhere` runs it in another process.
#[test]
#[ignore = "run by another test"]
fn render_where_the_environment_says() {
    let Some(out) = std::env::var_os("SYNCSCOPE_TEST_OUT") else { return };
    render(&vec![fixture::run(); runs()], &BookProject::embedded().unwrap(), Path::new(&out)).unwrap();
}

/// How many runs the book is to have, for a look at one by hand.
fn runs() -> usize {
    std::env::var("SYNCSCOPE_TEST_RUNS").map_or(1, |runs| runs.parse().unwrap())
}

#[test]
fn a_hostile_name_is_text_wherever_it_stands() {
    const HOSTILE: &str =
        "<script>alert(1)</script> *a* _b_ [c](http://d) | `e` {{#include book.toml}} # f ]]> &lt; \"'";
    let mut run = fixture::run();
    run.suite.title = HOSTILE.to_owned();
    run.environment.device.model = HOSTILE.to_owned();
    run.environment.device.facts.push((HOSTILE.to_owned(), HOSTILE.to_owned()));
    run.environment.cuda_unavailable = Some(format!("{HOSTILE}\n\n    {HOSTILE}"));
    run.experiments[0].failure = Some(HOSTILE.to_owned());
    for row in run.experiments.iter_mut().flat_map(|experiment| &mut experiment.rows) {
        if let Outcome::Skipped { reason } | Outcome::Failed { reason } = &mut row.outcome {
            *reason = HOSTILE.to_owned();
        }
    }
    let files = rendered(run);
    let plain = rendered(fixture::run());
    for (path, html) in pages(&files) {
        let count =
            |needle: &str| (html.matches(needle).count(), page(&plain, path.to_str().unwrap()).matches(needle).count());
        for needle in ["<script", "<em>", "<a href=\"http", "<code>"] {
            let (hostile, harmless) = count(needle);
            assert_eq!(hostile, harmless, "{needle} in {}", path.display());
        }
        assert!(!html.contains("description = "), "{} includes a file", path.display());
        check_balance(path, html);
    }
    let machine = page(&files, "site/machine.html");
    assert!(machine.contains("{{#include book.toml}}") && machine.contains("&lt;script&gt;alert(1)"));
    assert!(page(&files, "book/src/machine.md").contains(&escape("<script>alert(1)</script>")));
}

#[test]
fn every_page_is_balanced_html_with_unique_identifiers() {
    let files = fixture_book();
    assert!(pages(files).count() >= 4);
    for (path, html) in pages(files) {
        check_balance(path, html);
        let mut seen = std::collections::BTreeSet::new();
        for id in html.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(seen.insert(id), "`{id}` twice in {}", path.display());
        }
    }
}

/// Panics unless every element of `html` that must be closed is, in order.
pub(super) fn check_balance(path: &Path, html: &str) {
    const VOID: [&str; 8] = ["meta", "link", "br", "hr", "img", "input", "col", "base"];
    let mut open: Vec<&str> = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if rest.starts_with("!--") {
            rest = &rest[rest.find("-->").unwrap()..];
            continue;
        }
        let tag = &rest[..rest.find('>').unwrap()];
        let name = tag.trim_start_matches('/').split([' ', '\n', '/']).next().unwrap();
        if tag.starts_with('!') || VOID.contains(&name) || tag.ends_with('/') {
            continue;
        }
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "in {} before {}", path.display(), &rest[..80.min(rest.len())]);
        } else if matches!(name, "script" | "style") {
            rest = &rest[rest.find(&format!("</{name}>")).unwrap() + 2..];
        } else {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?} not closed in {}", path.display());
}

#[test]
fn a_render_that_fails_leaves_the_earlier_book() {
    let out = TempDir::new().unwrap();
    let mut course = BookProject::embedded().unwrap();
    render(&[fixture::run()], &course, out.path()).unwrap();
    let before = tree(out.path());

    assert!(render(&[], &course, out.path()).is_err());
    // mdBook keeps the name `print` for itself, and says so only when it builds.
    course.documents[0].id = "print".to_owned();
    let source = Source::of(&[fixture::run()], &course).unwrap();
    let error = source.write(out.path()).unwrap_err().to_string();
    assert!(error.contains("print.md is reserved"), "{error}");
    assert!(before == tree(out.path()));
}

#[test]
fn the_listing_stands_in_the_chapter() {
    let files = fixture_book();
    let chapter = page(files, "site/sync-points.html");
    assert!(chapter.contains("Sampler::default().sync_between("));
    assert!(!chapter.contains("play-button"));
}

#[test]
fn the_pages_stand_in_the_order_of_the_course() {
    let expected = [
        "README",
        "reading",
        "model",
        "idle-device",
        "async-frontend",
        "synchronize",
        "overlap",
        "sync-points",
        "what-blocks",
        "self-audit",
        "claims",
        "machine",
        "measuring",
        "publishing",
        "glossary",
        "sources",
    ];
    let summary = page(fixture_book(), "book/src/SUMMARY.md");
    let places = expected.map(|id| summary.find(&format!("({id}.md)")).unwrap_or_else(|| panic!("{id} in {summary}")));
    assert!(places.is_sorted(), "{summary}");
}

#[test]
fn a_page_links_the_first_use_of_a_term() {
    let chapter = page(fixture_book(), "site/sync-points.html");
    assert_eq!(chapter.matches("href=\"glossary.html#pending\"").count(), 1);
    assert!(page(fixture_book(), "site/glossary.html").contains("id=\"pending\""));
}
