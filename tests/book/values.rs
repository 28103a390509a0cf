//! Published and measured values in the chapters.

use syncscope::document::Comparison;
use syncscope::experiment::Parameter;
use syncscope::present::Machines;

use super::*;

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
            row.parameters.insert("size".to_owned(), Parameter::Integer(1024));
        }
    }
    let files = rendered(run);
    let chapter = page(&files, "site/sync-points.html");
    assert!(chapter.contains("size 1024, in the document 8192"));
    assert!(chapter.contains("measured with other parameters"));
}

#[test]
fn an_empty_run_still_shows_every_row() {
    let mut run = fixture::run();
    run.experiments.clear();
    let files = rendered(run);
    let chapter = page(&files, "site/sync-points.html");
    assert!(chapter.contains("25.0359 ms") && chapter.contains(">not in this run</span>"));
}

#[test]
fn two_runs_stand_side_by_side_and_are_told_apart() {
    let files = rendered_as(&BookProject::embedded().unwrap(), &[fixture::run(), fixture::run()]);
    let chapter = page(&files, "site/sync-points.html");
    assert!(chapter.contains("Measured on Test device, test:0 (2) with iters 50, size 8192."));
    assert!(chapter.contains("Test device, test:0</span>") && chapter.contains("Test device, test:0 (2)</span>"));
}

#[test]
fn the_console_shows_the_same_values_as_the_chapter() {
    let run = [fixture::run()];
    let documents = documents();
    let files = fixture_book();
    let chapter = page(files, "site/sync-points.html");
    let document = documents.iter().find(|document| document.id == "sync-points").unwrap();
    for table in &document.tables {
        let console = syncscope::present::mirrored(document, table, &Machines::of(&run)).to_console();
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
    let files = rendered_as(&BookProject::embedded().unwrap(), &[fixture::run(), other]);
    let chapter = page(&files, "site/async-frontend.html");
    let places = [1, 2, 5, 10, 20, 50, 100, 1000]
        .map(|operations| chapter.find(&format!("<th scope=\"rowgroup\">operations {operations}</th>")).unwrap());
    assert!(places.is_sorted(), "{places:?}");
    assert_eq!(chapter.matches("scope=\"rowgroup\">operations ").count(), places.len());
    // What one of the runs has and the other has not is said to be missing, not left out.
    assert!(chapter.contains("not in this run"));
}

#[test]
fn every_row_of_a_document_has_a_row_in_its_chapter_for_every_case() {
    let files = fixture_book();
    for document in documents() {
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
fn every_row_of_the_run_that_a_document_asks_for_stands_in_its_chapter() {
    let run = fixture::run();
    let files = rendered(run.clone());
    for document in documents() {
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
