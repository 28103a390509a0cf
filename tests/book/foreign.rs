//! Results of experiments that this program has never heard of: they render whole.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use syncscope_book::summary;
use syncscope_present::units::Unit;
use syncscope_results::{Outcome, Row};

use super::*;

/// The rows that stand on the page of the method alone.
pub(super) const SAME_CODE: &str = "The same code twice";

/// What every experiment of the results is called: no experiment has such a name.
fn renamed_to(experiment: &str) -> String {
    format!("foreign-{experiment}")
}

/// The results file of all experiments with each of them renamed, as a person would do it by hand.
fn renamed() -> Results {
    let mut text = serde_json::to_string(&fixture::run()).unwrap();
    for entry in Registry::builtin().ready() {
        text = text.replace(&format!("\"{}", entry.name), &format!("\"{}", renamed_to(entry.name)));
    }
    let results = Results::parse(&text, Path::new("renamed.json")).unwrap();
    let known = catalog();
    assert!(results.rows.iter().all(|row| known.get(&row.spec.id).is_none()), "an experiment is known");
    results
}

fn book() -> &'static Files {
    static FILES: LazyLock<Files> = LazyLock::new(|| source(&renamed()));
    &FILES
}

fn rows_of<'a>(results: &'a Results, experiment: &str) -> Vec<&'a Row> {
    let rows: Vec<_> = results.rows.iter().filter(|row| row.spec.experiment() == renamed_to(experiment)).collect();
    assert!(!rows.is_empty(), "{experiment}");
    rows
}

/// What a value of a unit ends with, at any prefix.
fn ends(unit: &str) -> &'static [&'static str] {
    match unit {
        "seconds" => &[" s<", " ms<", " µs<", " ns<"],
        "bytes" => &[" B<", " kB<", " MB<", " GB<"],
        "bytes-per-second" => &["B/s<"],
        "flops-per-second" => &["FLOP/s<"],
        _ => &["<"],
    }
}

#[test]
fn unknown_experiments_show_each_row_with_label_and_unit() {
    let results = renamed();
    for entry in Registry::builtin().ready() {
        let name = renamed_to(entry.name);
        let chapter = read(book(), &name);
        let headings: HashSet<&str> = chapter.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        let mut lines: HashMap<&str, Vec<&str>> = HashMap::new();
        for line in chapter.lines() {
            let id = line.split_once("<tr data-id=\"").and_then(|(_, rest)| rest.split_once('"'));
            lines.entry(id.map_or("", |(id, _)| id)).or_default().push(line);
        }
        for row in rows_of(&results, entry.name).into_iter().filter(|row| row.spec.group != SAME_CODE) {
            let (spec, label) = (&row.spec, format!("<th scope=\"row\">{}</th>", row.spec.label));
            let is_heading = |line: &&str| line.starts_with(spec.group.as_str());
            assert!(headings.iter().any(is_heading), "{} has no heading", spec.title());
            let unit = serde_json::to_value(spec.unit).unwrap();
            let in_unit = |line: &str| ends(unit.as_str().unwrap()).iter().any(|end| line.contains(end));
            let mut own = lines.get(spec.id.as_str()).into_iter().flatten();
            assert!(own.any(|line| line.contains(&label) && in_unit(line)), "{} is not shown", spec.title());
        }
        assert!(!chapter.contains("not in this run"), "{name}");
        assert!(read(book(), "SUMMARY").contains(&format!("({name}.md)")));
        assert!(
            page(book(), "book/src/data/machine-1.csv").contains(&format!("\nTelemetry,,{name},")),
            "its telemetry"
        );
    }
}

#[test]
fn an_unknown_experiment_has_plots_whose_data_hold_every_row() {
    for entry in Registry::builtin().ready() {
        let name = renamed_to(entry.name);
        let chapter = read(book(), &name);
        assert!(chapter.contains("<svg class=\"plot\""), "{name}");
        let offered = chapter.split("href=\"data/").skip(1).filter_map(|rest| rest.split('"').next());
        let data: Vec<&str> = offered.map(|file| page(book(), &format!("book/src/data/{file}"))).collect();
        assert!(!data.is_empty(), "{name}");
        for text in data {
            let mut rows = csv::Reader::from_reader(text.as_bytes());
            // With a reason where there is no interval.
            let is_measured = |state: &str| state == "measured" || state.starts_with("measured; no interval: ");
            let holds = |row: csv::StringRecord| row[0].starts_with(&name) && is_measured(&row[9]);
            assert!(rows.records().all(|row| holds(row.unwrap())), "{text}");
        }
    }
}

/// Headings that differ in nothing that a link can hold.
#[test]
fn plots_of_headings_that_are_alike_in_a_link_have_data_of_their_own() {
    let mut results = renamed();
    results.rows.retain(|row| row.spec.experiment() == renamed_to("synchronize"));
    let mut headings: Vec<String> = Vec::new();
    for row in results.rows.iter_mut() {
        let heading = row.spec.group.clone();
        let place = headings.iter().position(|known| *known == heading).unwrap_or(headings.len());
        if place == headings.len() {
            headings.push(heading);
        }
        row.spec.group = ["Синхронизация", "等待", "A b", "A-b", "a B"]
            .get(place)
            .map_or(heading_of(place), |name| (*name).to_owned());
    }
    assert!(headings.len() >= 5, "{headings:?}");
    let files = source(&results);
    let page = read(&files, &renamed_to("synchronize"));
    let plots: Vec<&str> = page.split("data/").skip(1).filter_map(|rest| rest.split(".csv").next()).collect();
    let different: std::collections::BTreeSet<&str> = plots.iter().copied().collect();
    assert!(plots.len() >= 4 && different.len() == plots.len(), "{plots:?}");
    for plot in plots {
        let data = &files[Path::new(&format!("book/src/data/{plot}.csv"))];
        assert!(data.iter().filter(|byte| **byte == b'\n').count() > 1, "{plot} has no row");
    }
}

fn heading_of(place: usize) -> String {
    format!("Heading {place}")
}

#[test]
fn a_recorded_timeline_of_an_unknown_experiment_is_drawn_with_its_trace_and_data() {
    let mut results = renamed();
    let spec = rows_of(&results, "overlap")[0].spec.clone();
    results.timelines = vec![fixture::recorded(&spec.id)];
    let files = source(&results);
    let chapter = read(&files, spec.experiment());
    let (_, drawn) = chapter.split_once("\n## Recorded timelines").unwrap();
    assert!(drawn.contains(&spec.label) && drawn.contains("<p class=\"source\">Device times: made up."), "{drawn}");
    for file in [format!("traces/{}-1.trace.json", spec.id), format!("data/{}-1.csv", spec.id)] {
        assert!(drawn.contains(&format!("href=\"{file}\"")), "{file}");
        assert!(!page(&files, &format!("book/src/{file}")).is_empty(), "{file}");
    }
}

#[test]
fn a_row_that_the_document_of_its_experiment_does_not_name_stands_in_its_chapter() {
    let mut results = fixture::run();
    let known = "idle-device.delta";
    let row = results.rows.iter_mut().find(|row| row.spec.id == known).unwrap();
    let unknown = format!("{known}.of-another-program");
    (row.spec.id, row.spec.group, row.spec.label) = (unknown.clone(), "Added".to_owned(), "Added by hand".to_owned());
    let chapter = read(&source(&results), "idle-device");
    let (_, added) = chapter.split_once("\n## Added").unwrap();
    assert!(added.contains("<svg class=\"plot\""), "{added}");
    let mut rows = added.lines().filter(|line| line.starts_with(&format!("<tr data-id=\"{unknown}\">")));
    assert!(rows.any(|line| line.contains("Added by hand")), "{added}");
    assert!(!chapter.contains("Recorded timelines") && !read(whole_source(), "idle-device").contains("## Added"));
}

#[test]
fn the_console_s_summary_of_an_unknown_experiment_holds_every_row() {
    let results = renamed();
    for entry in Registry::builtin().ready() {
        let text = summary(&results, &renamed_to(entry.name));
        assert!(text.starts_with(&format!("{}: {}\n", renamed_to(entry.name), entry.summary)), "{text}");
        let rows = rows_of(&results, entry.name);
        for part in rows.iter().flat_map(|row| [&row.spec.label, &row.spec.group]) {
            assert!(text.contains(part.as_str()), "{part}");
        }
        assert_eq!(text.matches("n = ").count(), rows.len(), "{text}");
    }
}

#[test]
fn a_row_of_an_unknown_experiment_says_why_it_has_no_value() {
    let mut results = renamed();
    let spec = rows_of(&results, "launch-path")[0].spec.clone();
    fixture::replace(&mut results, &spec.id, &Outcome::Failed { reason: "an illegal address was met".to_owned() });
    let files = source(&results);
    assert!(read(&files, spec.experiment()).contains("failed: an illegal address was met"));
    assert!(summary(&results, spec.experiment()).contains("failed: an illegal address was met"));
}

/// A row that the program knows, too, is what the file says of it.
#[test]
fn known_rows_take_label_and_unit_of_the_file_and_compare_in_one_unit_alone() {
    let mut results = probe::results();
    for row in results.rows.iter_mut().filter(|row| row.spec.id == "probe.fast") {
        row.spec.unit = Unit::Bytes;
        row.spec.label = "Renamed call".to_owned();
    }
    let files = source_as(&probe::project(probe::DOCUMENT), &[results]);
    let chapter = read(&files, "probe");
    for says in ["Renamed call", "is in bytes in the results", "the units differ"] {
        assert!(chapter.contains(says), "{says}: {chapter}");
    }
    let own = read(&source_as(&probe::project(probe::DOCUMENT), &[probe::results()]), "probe");
    assert!(own.contains("Fast call") && !own.contains("the units differ"));
    assert!(read(&files, "machine").contains("in another unit than it was declared with"));
}

#[test]
fn a_book_of_more_unknown_experiments_than_it_has_pages_for_is_refused() {
    let made = |count: usize| {
        let mut results = renamed();
        let row = results.rows[0].clone();
        let of = |place| {
            let mut row = row.clone();
            row.spec.id = format!("foreign-{place}.row");
            row
        };
        results.rows = (0..count).map(of).collect::<Vec<Row>>().into();
        results.timelines.clear();
        Source::of(&[results], &carried_book(), &catalog())
    };
    assert!(made(3).is_ok());
    let error = made(201).err().unwrap().to_string();
    assert!(
        error.contains("201 experiments that no document describes") && error.contains("200 are the most"),
        "{error}"
    );
}
