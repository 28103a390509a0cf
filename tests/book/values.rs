//! Measured values in the chapters, and what stands in their place.

use syncscope_book::document::TableEntry;
use syncscope_book::{Machines, comparison_table};
use syncscope_present::units::Unit;
use syncscope_results::{Outcome, Parameter, Series};

use super::probe::{DOCUMENT, project, results};
use super::*;

fn chapter(results: &[Results]) -> String {
    read(&source_as(&project(DOCUMENT), results), "probe")
}

/// The line of the first case in the data of the chapter.
fn data(results: &[Results], id: &str) -> String {
    let files = source_as(&project(DOCUMENT), results);
    let all = page(&files, "book/src/data/probe.rows-1.csv");
    all.lines().find(|line| line.starts_with(&format!("{id},"))).unwrap().to_owned()
}

/// The table row of the first case.
fn row<'a>(chapter: &'a str, id: &str) -> &'a str {
    chapter.lines().find(|line| line.starts_with(&format!("<tr data-id=\"{id}\">"))).unwrap()
}

/// What a row stands for on a page: its outcomes, each with the words that must be read.
#[test]
fn what_was_not_measured_is_shown_with_its_reason() {
    let reason = || "the reason".to_owned();
    for (outcome, state, reason) in [
        (Outcome::NotApplicable { reason: reason() }, "not applicable", ": the reason"),
        (Outcome::Skipped { reason: reason() }, "skipped", ": the reason"),
        (Outcome::Failed { reason: reason() }, "failed", ": the reason"),
        (Outcome::Interrupted, "not reached: the run was interrupted", ""),
        (fixture::measured(Vec::new()), "inconsistent", ": `probe.fast` is marked as measured and holds no samples"),
    ] {
        let mut results = results();
        fixture::replace(&mut results, "probe.fast", &outcome);
        let files = source_as(&project(DOCUMENT), std::slice::from_ref(&results));
        let (chapter, machine) = (read(&files, "probe"), page(&files, "book/src/data/machine-1.csv"));
        assert!(row(&chapter, "probe.fast").contains(&format!(">{state}</span>")), "{state}");
        assert!(chapter.contains(&format!("- {state}{reason}")), "{state}{reason}");
        assert!(machine.contains(state), "{state}");
    }
}

#[test]
fn a_run_that_was_cut_short_and_a_device_that_slowed_down_are_warned_of() {
    let files = fixture_book();
    let machine = page(files, "site/machine.html");
    for words in ["SW power cap", "The run syncscope-1 was interrupted", "uncommitted changes"] {
        assert!(machine.contains(words), "{words}");
    }
}

/// A flag of a whole page would disown values that nothing held back.
#[test]
fn a_row_is_marked_where_the_clocks_were_held_back_within_its_passes_and_so_is_what_is_computed_from_it() {
    let mut results = results();
    let marked = |results: &Results| {
        let document = DOCUMENT.replace("- {id: probe.fast,", "- {id: probe.delta}\n      - {id: probe.fast,");
        let files = source_as(&project(&document), std::slice::from_ref(results));
        let chapter = read(&files, "probe");
        let is_marked = |id| row(&chapter, id).contains("⚠ SW power cap");
        (["probe.fast", "probe.delta", "probe.slow"].map(is_marked), chapter.contains("within rows of probe"))
    };
    fixture::hold_clocks(&mut results, "probe.fast", 1.5);
    assert_eq!(marked(&results), ([false; 3], false));
    fixture::hold_clocks(&mut results, "probe.fast", 0.5);
    assert_eq!(marked(&results), ([true, true, false], true));
}

#[test]
fn a_difference_that_may_be_0_is_not_written_as_a_number() {
    let mut results = results();
    let samples = (0..12).map(|round| if round % 2 == 0 { 1e-6 } else { -1e-6 }).collect();
    fixture::replace(&mut results, "probe.delta", &Outcome::Derived { samples });
    let document = DOCUMENT.replace("- {id: probe.fast,", "- {id: probe.delta}\n      - {id: probe.fast,");
    let files = source_as(&project(&document), &[results]);
    assert!(row(&read(&files, "probe"), "probe.delta").contains(">not distinguishable from 0<"));
}

#[test]
fn a_value_is_of_the_samples_that_nothing_slowed_and_says_how_many_it_leaves_out() {
    let mut results = results();
    let mut outcome =
        fixture::measured((0..12).map(|round| if round < 5 { 9.0 } else { 2.0 + f64::from(round) * 1e-3 }).collect());
    for (round, sample) in outcome.measured_mut().unwrap().samples.iter_mut().enumerate() {
        sample.slowdown = Some(if round < 5 { 1.8 } else { 1.05 });
    }
    fixture::replace(&mut results, "probe.fast", &outcome);
    let line = data(&[results], "probe.fast");
    assert!(line.contains(",2.008") && line.contains(",7,measured,"), "{line}");
    assert!(line.contains("host clock; 5 samples of a slowed host left out"), "{line}");
}

#[test]
fn a_row_measured_with_other_parameters_says_so_and_has_no_ratio() {
    let mut results = results();
    assert!(row(&chapter(&[results.clone()]), "probe.fast").contains(">×"));
    for row in results.rows.iter_mut() {
        if row.spec.parameters.contains_key("size") {
            row.spec.parameters.insert("size".to_owned(), Parameter::Integer(1024));
        }
    }
    let chapter = chapter(&[results]);
    let row = row(&chapter, "probe.fast");
    assert!(row.contains("size 1024, in the text 8") && row.contains("measured with other parameters"), "{row}");
}

#[test]
fn the_ratio_is_measured_by_published() {
    let mut results = results();
    let samples = vec![28e-6; 12];
    fixture::replace(&mut results, "probe.fast", &fixture::measured(samples));
    let chapter = chapter(&[results]);
    // 14.0 µs are published.
    assert!(row(&chapter, "probe.fast").contains(">×2.00<"), "{}", row(&chapter, "probe.fast"));
}

#[test]
fn results_without_rows_still_show_every_figure_of_a_document_and_its_row() {
    let mut empty = fixture::run();
    empty.rows.clear();
    empty.runs[0].order.clear();
    let files = source_as(&project(DOCUMENT), &[empty]);
    for document in project(DOCUMENT).documents(&catalog()).unwrap().iter().filter(|one| one.source.is_some()) {
        let chapter = read(&files, &document.id);
        let (printed, others): (Vec<_>, Vec<_>) = document.tables.iter().partition(|table| table.has_published());
        for shown in printed.iter().flat_map(|table| &table.rows) {
            assert!(row(&chapter, &shown.id).contains(">not in this run</span>"), "{}", shown.id);
        }
        let sentence = "Left out, since no row of this table is in the run of Test device.";
        assert_eq!(chapter.matches(sentence).count(), others.len(), "{chapter}");
    }
    assert!(row(&read(&files, "probe"), "probe.fast").contains(">14.0 µs</span>"));
}

#[test]
fn the_console_shows_the_same_values_as_the_chapter() {
    let results = [fixture::run()];
    for document in documents() {
        let chapter = read(whole_source(), &document.id);
        for table in &document.tables {
            // Trials that agree are a mark on a page.
            let mut table = table.clone();
            table.rows.retain(|row| row.unit != Unit::Ratio);
            let console = comparison_table(&document, &table, &Machines::of(&results)).to_console();
            for entry in TableEntry::all(&table, &table.cases_in(&results)) {
                assert!(console.contains(&entry.row.label), "{}", entry.row.id);
            }
            let values = console.split_whitespace().filter(|word| word.parse::<f64>().is_ok_and(|n| n.fract() != 0.0));
            for value in values {
                assert!(chapter.contains(value), "{value} of\n{console}");
            }
        }
    }
}

#[test]
fn published_values_name_their_gpu_and_texts_without_figures_have_no_column() {
    let files = source_as(&project(DOCUMENT), &[results()]);
    let chapter = read(&files, "probe");
    assert!(chapter.contains("(GPU: Printed GPU)") && chapter.contains("class=\"published\""));
    let unnamed = DOCUMENT.replace("gpu: Printed GPU\n", "");
    assert!(read(&source_as(&project(&unnamed), &[results()]), "probe").contains("which names no GPU"));
    let start = DOCUMENT.find("  - id: c-printed").unwrap();
    let end = DOCUMENT.find("exercises:").unwrap();
    let silent = format!("{}{}", &DOCUMENT[..start], &DOCUMENT[end..])
        .replace(", published: {half: 14.0e-6, single: 2.10e-5}", "")
        .replace("        published: {half: 28.00e-6}\n", "")
        .replace(", published: {half: 0.5}", "");
    let chapter = read(&source_as(&project(&silent), &[results()]), "probe");
    assert!(chapter.contains("prints no figure") && !chapter.contains("class=\"published\""));
}

#[test]
fn a_case_for_each_value_of_a_parameter_comes_from_the_runs_in_numeric_order() {
    let mut other = results();
    let rows = other.rows.iter_mut().filter(|row| row.spec.parameters.get("size") == Some(&Parameter::Integer(64)));
    rows.for_each(|row| drop(row.spec.parameters.insert("size".to_owned(), Parameter::Integer(1000))));
    let chapter = chapter(&[results(), other]);
    let place = |size| chapter.find(&format!(">size {size}</th>")).unwrap_or(0);
    let places = [8, 64, 512, 1000].map(place);
    assert!(places.is_sorted() && places[0] > 0, "{places:?}");
    assert_eq!(chapter.matches("\">size ").count(), places.len());
    // What one of the runs has and the other has not is said to be missing, not left out.
    assert!(chapter.contains("not in this run"));
}

#[test]
fn a_value_of_one_sample_has_no_interval() {
    let mut results = results();
    let outcome = fixture::measured(vec![3e-6]);
    for row in results.rows.iter_mut().filter(|row| row.spec.id == "probe.fast") {
        row.series = vec![Series { run: fixture::RUN.to_owned(), outcome: outcome.clone() }];
    }
    assert!(data(std::slice::from_ref(&results), "probe.fast").contains(",1,measured; "));
    let chapter = chapter(&[results]);
    let row = row(&chapter, "probe.fast");
    assert!(row.contains(">3.000 µs<"), "{row}");
    assert!(!row.contains("class=\"interval\""), "{row}");
}
