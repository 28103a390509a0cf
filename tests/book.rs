//! What a reader of a rendered book relies on.
//!
//! `tests/fixtures/results-v1.json` is written by `fixture::run` below: after a change of the schema, run the tests
//! once with `SYNCSCOPE_REGENERATE=1`.
#![cfg(feature = "report")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

#[path = "fixtures/run.rs"]
mod fixture;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use syncscope::book::{Source, render};
use syncscope::document::{Comparison, Document};
use syncscope::experiment::{Derivation, Entry, Outcome, Parameter, Recorded, RecordedTimeline, Selection, scenes};
use syncscope::present::{Point, escape, line_plot};
use syncscope::run::Run;
use tempfile::TempDir;

/// All files below a folder, by their path within it.
fn tree(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.insert(path.strip_prefix(root).unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    files
}

fn rendered(run: Run) -> (TempDir, BTreeMap<PathBuf, Vec<u8>>) {
    let out = TempDir::new().unwrap();
    render(&[run], out.path()).unwrap();
    let files = tree(out.path());
    (out, files)
}

/// The fixture's book, rendered once for all tests that only look at it.
fn fixture_book() -> &'static BTreeMap<PathBuf, Vec<u8>> {
    static FILES: LazyLock<BTreeMap<PathBuf, Vec<u8>>> = LazyLock::new(|| rendered(fixture::run()).1);
    &FILES
}

fn page<'a>(files: &'a BTreeMap<PathBuf, Vec<u8>>, name: &str) -> &'a str {
    std::str::from_utf8(&files[Path::new(name)]).unwrap()
}

fn pages(files: &BTreeMap<PathBuf, Vec<u8>>) -> impl Iterator<Item = (&PathBuf, &str)> {
    let html = files.iter().filter(|(path, _)| path.extension().is_some_and(|e| e == "html"));
    html.map(|(path, bytes)| (path, std::str::from_utf8(bytes).unwrap()))
}

#[test]
fn the_results_fixture_is_the_run_that_the_tests_build() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/results-v1.json");
    let text = serde_json::to_string_pretty(&fixture::run()).unwrap() + "\n";
    if std::env::var_os("SYNCSCOPE_REGENERATE").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let run: Run = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert!(run == fixture::run(), "run once with SYNCSCOPE_REGENERATE=1");
}

#[test]
fn the_fixture_has_every_outcome() {
    let run = fixture::run();
    let names = run.rows().map(|row| match row.outcome {
        Outcome::Measured { .. } => "measured",
        Outcome::Derived { derivation: Derivation::Difference, .. } => "difference",
        Outcome::Derived { .. } => "derived",
        Outcome::NotApplicable { .. } => "not applicable",
        Outcome::Interrupted => "interrupted",
        Outcome::Skipped { .. } => "skipped",
        Outcome::Failed { .. } => "failed",
    });
    assert_eq!(names.collect::<std::collections::BTreeSet<_>>().len(), 7);
}

#[test]
fn every_row_of_a_document_has_a_row_in_its_chapter_for_every_case() {
    let files = fixture_book();
    for document in Document::embedded().unwrap() {
        let chapter = page(files, &format!("site/{}.html", document.id));
        for table in &document.tables {
            let cases = table.cases_in(&[fixture::run()]);
            for row in &table.rows {
                let found = chapter.matches(&format!("data-id=\"{}\"", row.id)).count();
                assert_eq!(found, cases.len(), "{}", row.id);
            }
        }
    }
}

#[test]
fn published_figures_keep_the_digits_of_the_document() {
    let files = fixture_book();
    let chapter = page(files, "site/sync-points.html");
    for figure in [
        "25.0359 ms",
        "25.2747 ms",
        "238.9 µs",
        "0.95 % of async",
        "21.4733 ms",
        "21.4827 ms",
        "9.4 µs",
        "0.04 % of async",
        "72.4066 ms",
        "72.2672 ms",
        "−139.4 µs",
        "−0.19 % of async",
        "17.4 µs",
        "31.8 µs",
        "14.4 µs",
        "83.26 % of async",
        "21.3 µs",
        "35.3 µs",
        "14.0 µs",
        "66.01 % of async",
        "41.0 µs",
        "55.6 µs",
        "14.7 µs",
        "35.84 % of async",
        "26.908 ms",
        "18.719 ms",
        "71.855 ms",
        "28.499 ms",
        "20.658 ms",
        "75.765 ms",
        "131 µs",
        "103 µs",
        "169 µs",
        "25 s + 26 s = 51 s",
    ] {
        assert!(chapter.contains(&format!(">{figure}</span>")), "{figure}");
    }
}

#[test]
fn what_was_not_measured_is_shown_with_its_reason() {
    let files = fixture_book();
    let chapter = page(files, "site/sync-points.html");
    for (state, reason) in [
        ("not applicable", "this engine takes indices from its own memory alone"),
        ("skipped", "left out by choice"),
        ("not reached: the run was interrupted", ""),
        ("failed", "the stream reported an error"),
    ] {
        assert!(chapter.contains(&format!(">{state}</span>")), "{state}");
        assert!(chapter.contains(reason), "{reason}");
    }
    assert!(chapter.contains("not distinguishable from 0"));
    let machine = page(files, "site/machine.html");
    assert!(machine.contains("SW power cap") && machine.contains("The run was interrupted during"));
}

#[test]
fn a_row_measured_at_another_size_says_so_and_has_no_ratio() {
    let mut run = fixture::run();
    for row in run.experiments.iter_mut().flat_map(|experiment| &mut experiment.rows) {
        if row.id.starts_with("sync-points.big.") {
            row.parameters.insert("size".to_owned(), syncscope::experiment::Parameter::Integer(1024));
        }
    }
    let (_out, files) = rendered(run);
    let chapter = page(&files, "site/sync-points.html");
    assert!(chapter.contains("size 1024, in the document 8192"));
    assert!(chapter.contains("measured with other parameters"));
}

#[test]
fn an_empty_run_still_shows_every_row() {
    let mut run = fixture::run();
    run.experiments.clear();
    let (_out, files) = rendered(run);
    let chapter = page(&files, "site/sync-points.html");
    assert!(chapter.contains("25.0359 ms") && chapter.contains(">not in this run</span>"));
}

#[test]
fn two_runs_stand_side_by_side_and_are_told_apart() {
    let out = TempDir::new().unwrap();
    render(&[fixture::run(), fixture::run()], out.path()).unwrap();
    let chapter = fs::read_to_string(out.path().join("site/sync-points.html")).unwrap();
    assert!(chapter.contains("Measured on Test device, test:0 (2) with iters 50, size 8192."));
    assert!(chapter.contains("Test device, test:0</span>") && chapter.contains("Test device, test:0 (2)</span>"));
}

/// Not a test of its own: `the_same_results_make_the_same_bytes_anywhere` runs it in another process.
#[test]
#[ignore = "run by another test"]
fn render_where_the_environment_says() {
    let Some(out) = std::env::var_os("SYNCSCOPE_TEST_OUT") else { return };
    render(&vec![fixture::run(); runs()], Path::new(&out)).unwrap();
}

/// How many runs the book is to have, for a look at one by hand.
fn runs() -> usize {
    std::env::var("SYNCSCOPE_TEST_RUNS").map_or(1, |runs| runs.parse().unwrap())
}

#[test]
fn the_same_results_make_the_same_bytes_anywhere() {
    let trees = [("UTC", "C", "One"), ("Pacific/Kiritimati", "tr_TR.UTF-8", "Another")].map(|(zone, locale, title)| {
        let out = TempDir::with_prefix(format!("book-{title}")).unwrap();
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "render_where_the_environment_says", "--ignored", "--quiet"])
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
    let (_out, files) = rendered(run);
    let plain = rendered(fixture::run()).1;
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
fn check_balance(path: &Path, html: &str) {
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
    render(&[fixture::run()], out.path()).unwrap();
    let before = tree(out.path());

    // mdBook keeps the name `print` for itself, and says so only when it builds.
    let mut documents = Document::embedded().unwrap();
    documents[0].id = "print".to_owned();
    let source = Source::of(&[fixture::run()], &documents).unwrap();
    let error = source.write(out.path()).unwrap_err().to_string();
    assert!(error.contains("print.md is reserved"), "{error}");
    assert!(render(&[], out.path()).is_err());
    assert!(before == tree(out.path()));
}

#[test]
fn the_listing_stands_in_the_chapter() {
    let files = fixture_book();
    let chapter = page(files, "site/sync-points.html");
    assert!(chapter.contains("Sampler::default().settle_on("));
    assert!(!chapter.contains("play-button"));
}

#[test]
fn the_console_shows_the_same_values_as_the_chapter() {
    let run = [fixture::run()];
    let documents = Document::embedded().unwrap();
    let files = fixture_book();
    let chapter = page(files, "site/sync-points.html");
    let document = documents.iter().find(|document| document.id == "sync-points").unwrap();
    for table in &document.tables {
        let console = syncscope::present::mirrored(document, table, &run).to_console();
        println!("{console}");
        for comparison in Comparison::all(table, &table.cases_in(&run)) {
            assert!(console.contains(&comparison.row.label));
        }
        let values = console.split_whitespace().filter(|word| word.parse::<f64>().is_ok_and(|n| n.fract() != 0.0));
        for value in values {
            assert!(chapter.contains(value), "{value} of\n{console}");
        }
    }
}

#[test]
fn every_row_of_the_run_that_a_document_asks_for_stands_in_its_chapter() {
    let run = fixture::run();
    let (_out, files) = rendered(run.clone());
    for document in Document::embedded().unwrap() {
        let chapter = page(&files, &format!("site/{}.html", document.id));
        let rows = run.rows().filter(|row| row.id.starts_with(&format!("{}.", document.id)));
        for row in rows {
            assert!(chapter.contains(&format!("data-id=\"{}\"", row.id)), "{} is in no table", row.id);
        }
        // The fixture's training loops of that document have one model of two.
        let partial = document.id == "sync-points";
        assert!(partial || !chapter.contains("not in this run"), "the fixture lacks rows of {}", document.id);
    }
}

#[test]
fn the_chapters_stand_in_the_order_of_the_documents() {
    let ids = Document::embedded().unwrap().into_iter().map(|document| document.id);
    let expected = ["idle-device", "async-frontend", "synchronize", "overlap", "sync-points"];
    assert_eq!(ids.collect::<Vec<_>>(), expected);
    let files = fixture_book();
    let summary = page(files, "book/src/SUMMARY.md");
    let places = expected.map(|id| summary.find(&format!("({id}.md)")).unwrap());
    assert!(places.is_sorted(), "{summary}");
}

#[test]
fn published_figures_of_the_texts_without_a_gpu_stand_in_their_chapters() {
    let files = fixture_book();
    for (id, figures) in
        [("idle-device", &["18 ms", "21 ms", "3 ms"][..]), ("async-frontend", &["374.7 ms", "700 µs", "1.1 ms", "3"])]
    {
        let chapter = page(files, &format!("site/{id}.html"));
        for figure in figures {
            let cell = format!("<td class=\"published\"><span class=\"value\">{figure}</span>");
            assert!(chapter.contains(&cell), "{figure} in {id}");
        }
        assert!(chapter.contains("names no GPU"));
    }
    for id in ["synchronize", "overlap"] {
        let chapter = page(files, &format!("site/{id}.html"));
        assert!(chapter.contains("prints no figure") && !chapter.contains("class=\"published\""), "{id}");
    }
}

#[test]
fn a_case_for_each_value_of_a_parameter_comes_from_the_runs_in_numeric_order() {
    let mut other = fixture::run();
    for row in other.experiments.iter_mut().flat_map(|experiment| &mut experiment.rows) {
        if row.parameters.get("operations") == Some(&Parameter::Integer(2)) {
            row.parameters.insert("operations".to_owned(), Parameter::Integer(1000));
        }
    }
    let out = TempDir::new().unwrap();
    render(&[fixture::run(), other], out.path()).unwrap();
    let chapter = fs::read_to_string(out.path().join("site/async-frontend.html")).unwrap();
    let places = [1, 2, 5, 10, 20, 50, 100, 1000]
        .map(|operations| chapter.find(&format!("<th scope=\"rowgroup\">operations {operations}</th>")).unwrap());
    assert!(places.is_sorted(), "{places:?}");
    assert_eq!(chapter.matches("scope=\"rowgroup\">operations ").count(), places.len());
    // What one of the runs has and the other has not is said to be missing, not left out.
    assert!(chapter.contains("not in this run"));
}

#[test]
fn lines_hold_every_point_and_name_the_extremes() {
    let run = fixture::run();
    let documents = Document::embedded().unwrap();
    let panels = documents.iter().flat_map(|document| {
        let panels = document.figures.iter().flat_map(|figure| &figure.panels);
        panels.filter_map(move |panel| Some((document.table(&panel.table)?, panel, panel.lines.as_ref()?)))
    });
    let mut drawn = 0;
    for (table, panel, lines) in panels {
        let plot = line_plot(table, panel, lines, "M", &run);
        for (line, series) in plot.lines.iter().zip(&lines.series) {
            let rows = run.rows().filter(|row| row.id == series.id && row.parameters.contains_key(&lines.x)).count();
            assert!(rows > 1 && line.points.len() == rows, "{}", series.id);
            assert!(line.points.windows(2).all(|pair| pair[0].x < pair[1].x), "{}", series.id);
            let description = plot.description();
            let value = |point: &Point| point.value.0;
            let least = line.points.iter().min_by(|a, b| value(a).total_cmp(&value(b))).unwrap();
            let largest = line.points.iter().max_by(|a, b| value(a).total_cmp(&value(b))).unwrap();
            for (word, point) in [("least", least), ("largest", largest)] {
                let words = format!("{word} {} at {} {}", point.text, plot.x, point.x);
                assert!(description.contains(&words), "{words} is not in {description}");
            }
        }
        drawn += 1;
    }
    assert!(drawn >= 2);
}

#[test]
fn a_line_of_which_nothing_was_measured_says_so() {
    let mut run = fixture::run();
    run.experiments.retain(|experiment| experiment.name != "async-frontend");
    let (_out, files) = rendered(run);
    let chapter = page(&files, "site/async-frontend.html");
    assert!(chapter.contains("queued, measured: not in this run"));
}

#[test]
fn bars_take_their_unit_from_the_rows() {
    let files = fixture_book();
    let chapter = page(files, "site/overlap.html");
    assert!(chapter.contains("20 GB/s") && chapter.contains("write-combined, blocking"));
}

#[test]
fn a_recorded_scene_is_drawn_with_its_trace_and_one_that_was_not_says_so() {
    let device = syncscope::device::Device::open("cpu:0").unwrap();
    let stream = device.stream().unwrap();
    let (_, timeline) = device.record(|| stream.ones::<f32>([64])?.sum()?.item()).unwrap();
    let mut run = fixture::run();
    let scene = |name: &str, recorded| RecordedTimeline {
        name: name.to_owned(),
        parameters: Default::default(),
        recorded,
        unrecorded_s: vec![1e-3],
        recorded_s: vec![2e-3],
    };
    run.experiments[0].timelines = vec![
        scene("overlap.finish.complete", Recorded::Timeline(timeline.clone())),
        scene("overlap.nonzero.whole", Recorded::Failed("<the reason>".to_owned())),
    ];
    let text = serde_json::to_string(&run).unwrap();
    assert_eq!(Run::parse(&text, Path::new("r.json")).unwrap(), run);
    let (_out, files) = rendered(run);
    let chapter = page(&files, "site/overlap.html");
    for part in ["Timeline of", "fill (enqueue)", "took 1.00", "not recorded in this run", "the reason"] {
        assert!(chapter.contains(part), "{part} is missing");
    }
    let trace = "traces/overlap.finish.complete-1.trace.json";
    assert!(chapter.contains(&format!("href=\"{trace}\"")));
    assert_eq!(files[&Path::new("site").join(trace)], timeline.to_trace().into_bytes());
}

/// Every scene that a document draws is one that an experiment plays.
#[test]
fn every_scene_of_the_documents_is_played() {
    let device = syncscope::device::Device::open("cpu:0").unwrap();
    let documents = Document::embedded().unwrap();
    let figures = documents.iter().flat_map(|document| &document.figures);
    let wanted: Vec<&String> = figures.flat_map(|f| &f.panels).filter_map(|panel| panel.timeline.as_ref()).collect();
    let small = [
        r#"{"overlap": {"draws": 1000, "elements": 1000, "adds": 5, "scales": 3, "steps": 4}}"#,
        r#"{"sync-points": {"big": 32, "small": 16}}"#,
    ];
    let entries = small.map(|text| serde_json::from_str::<Entry>(text).unwrap());
    let all = Selection::default();
    let played: Vec<RecordedTimeline> =
        entries.iter().flat_map(|entry| scenes(entry.experiment(), &all, &device)).collect();
    for name in wanted {
        let scene = played.iter().find(|scene| scene.name == *name).unwrap_or_else(|| panic!("nobody plays {name}"));
        assert!(matches!(scene.recorded, Recorded::Timeline(_)), "{scene:?}");
        assert_eq!(scene.unrecorded_s.len(), scene.recorded_s.len());
    }
}
