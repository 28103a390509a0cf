//! Several runs and several systems in one file, and several files in one book.

use std::slice::from_ref;

use syncscope_results::{Outcome, Run, Series};

use super::*;

const SECOND: &str = "syncscope-2";
const PYTORCH: &str = "PyTorch-1";

/// The probe's results with a run more, whose samples are those of the first times `factor`.
fn with_run(mut results: Results, id: &str, system: &str, factor: f64) -> Results {
    let run = Run { id: id.to_owned(), system: system.to_owned(), ..results.run().clone() };
    results.runs.push(run);
    results.runs.last_mut().unwrap().environment.program.name = system.to_owned();
    for row in results.rows.iter_mut() {
        let mut outcome = row.series[0].outcome.clone();
        outcome.values_mut().into_iter().for_each(|sample| *sample *= factor);
        row.series.push(Series { run: id.to_owned(), outcome });
    }
    // As it is read from a file.
    Results::parse(&serde_json::to_string(&results).unwrap(), Path::new("r.json")).unwrap()
}

fn chapter(results: &[Results]) -> String {
    let files = source_as(&probe::project(probe::DOCUMENT), results);
    read(&files, "probe")
}

/// The lines of the chapter's data with this identifier.
fn data(results: &[Results], id: &str) -> Vec<String> {
    let files = source_as(&probe::project(probe::DOCUMENT), results);
    let all = page(&files, "book/src/data/probe.rows-1.csv");
    all.lines().filter(|line| line.starts_with(&format!("{id},"))).map(str::to_owned).collect()
}

/// The table rows of the chapter with this identifier.
fn rows<'a>(chapter: &'a str, id: &str) -> Vec<&'a str> {
    chapter.lines().filter(|line| line.starts_with(&format!("<tr data-id=\"{id}\">"))).collect()
}

#[test]
fn two_runs_of_a_system_stand_in_one_value_whose_interval_is_between_them() {
    let one = probe::results();
    let two = with_run(one.clone(), SECOND, "syncscope", 3.0);
    let counted =
        |results: &Results, words: &str| data(from_ref(results), "probe.fast").iter().all(|line| line.contains(words));
    assert!(counted(&one, ",12,measured"), "{:#?}", data(from_ref(&one), "probe.fast"));
    assert!(counted(&two, ",24,\"measured; "), "{:#?}", data(from_ref(&two), "probe.fast"));
    // One run in two is three times as long: the interval of the expected median holds both.
    let spec = &one.rows[0].spec;
    let estimate = |results: &Results| results.lookup().estimate(&spec.id, &spec.parameters).unwrap();
    let (first, both) = (estimate(&one), estimate(&two));
    assert!(both.low <= first.high && both.high >= 2.9 * first.low, "{first:?} {both:?}");
    assert!(!data(from_ref(&two), "probe.fast").iter().any(|line| line.contains(",2,,")), "runs have a spread");
    let after = chapter(from_ref(&two));
    assert!(after.contains("probe-drawn-bars-1.csv") && !after.contains("probe-drawn-bars-2.csv"), "it is one machine");
}

#[test]
fn a_row_of_which_one_run_has_no_samples_is_that_of_the_other_and_says_so() {
    let mut two = with_run(probe::results(), SECOND, "syncscope", 1.0);
    for row in two.rows.iter_mut() {
        row.series[0].outcome = Outcome::Skipped { reason: "the first run left it out".to_owned() };
    }
    assert!(data(from_ref(&two), "probe.fast").iter().all(|line| line.contains(",12,measured,1,")));
    let text = chapter(&[two]);
    assert!(rows(&text, "probe.fast").iter().all(|row| row.contains("1 of 2 runs")), "{text}");
}

#[test]
fn a_run_that_lacks_a_row_is_named_with_the_row_and_the_reason() {
    let mut three = fixture::with_pytorch(fixture::three_runs(probe::results()));
    for row in three.rows.iter_mut().filter(|row| row.spec.id == "probe.slow") {
        for series in row.series.iter_mut().filter(|series| ["syncscope-2", "PyTorch-3"].contains(&series.run.as_str()))
        {
            series.outcome = Outcome::Failed { reason: "planted".to_owned() };
        }
    }
    let files = source_as(&probe::project(probe::DOCUMENT), from_ref(&three));
    let (chapter, machine) = (read(&files, "probe"), page(&files, "book/src/data/machine-1.csv"));
    for run in ["syncscope-2", "PyTorch-3"] {
        let of = |column: &str| machine.lines().find(|line| line.contains(&format!(",{run},{column},"))).unwrap();
        assert!(
            of("rows").contains("probe.slow (dtype fp16, size 8)") && !of("rows").contains("probe.fast"),
            "{machine}"
        );
        assert!(of("state").contains("failed") && of("reason").contains("planted"), "{machine}");
    }
    for row in rows(&chapter, "probe.slow") {
        assert!(
            row.contains("2 of 3 runs") && row.contains("1 of 3 pairs of runs") | row.contains("one run of each"),
            "{row}"
        );
    }
}

#[test]
fn the_diagnostics_name_the_system_of_each_row() {
    let mut both = with_run(probe::results(), PYTORCH, "PyTorch", 1.0);
    let two_levels = (0..40).map(|round| if round % 2 == 0 { 1e-3 } else { 2e-3 } + 1e-7 * f64::from(round)).collect();
    let slow = both.rows.iter_mut().find(|row| row.spec.id == "probe.slow").unwrap();
    slow.series.iter_mut().find(|series| series.run == PYTORCH).unwrap().outcome = fixture::measured(two_levels);
    let files = source_as(&probe::project(probe::DOCUMENT), &[both]);
    let machine = page(&files, "book/src/data/machine-1.csv");
    let row = machine.lines().find(|line| line.contains("probe.slow") && line.contains("two levels"));
    assert!(row.is_some_and(|row| row.ends_with(",system,PyTorch")), "{machine}");
}

#[test]
fn another_system_has_columns_of_its_own_and_does_not_change_the_first() {
    let alone = probe::results();
    let both = with_run(alone.clone(), PYTORCH, "PyTorch", 2.0);
    assert_eq!(both.systems(), ["syncscope", "PyTorch"]);
    let (before, after) = (chapter(&[alone]), chapter(from_ref(&both)));
    assert!(!before.contains("PyTorch here") && after.contains("PyTorch here"), "{after}");
    let head = |name: &str| after.find(&format!(">{name}")).unwrap_or_else(|| panic!("{name} is not in {after}"));
    let heads = ["published", "PyTorch here", "syncscope here", "PyTorch here / published", "syncscope / PyTorch"];
    assert!(heads.map(head).is_sorted(), "{after}");
    for (one, other) in rows(&before, "probe.fast").into_iter().zip(rows(&after, "probe.fast")) {
        let measured =
            |row: &str| row[row.find("class=\"measured\"").unwrap()..].split("</td>").next().unwrap().to_owned();
        assert_eq!(measured(one), measured(other));
        assert!(other.contains("one run of each has no interval"), "{other}");
    }
    let files = source_as(&probe::project(probe::DOCUMENT), &[both]);
    assert!(page(&files, "book/src/data/machine-1.csv").contains("PyTorch on the same machine"));
}

#[test]
fn runs_of_two_systems_do_not_mix() {
    let three = with_run(with_run(probe::results(), SECOND, "syncscope", 1.0), PYTORCH, "PyTorch", 2.0);
    let lines = data(&[three], "probe.fast");
    let of = |system: &str, counts: &str| {
        let own: Vec<_> = lines.iter().filter(|line| line.contains(&format!(",{system},"))).collect();
        assert!(!own.is_empty() && own.iter().all(|line| line.contains(counts)), "{own:#?}");
    };
    of("syncscope", ",24,measured");
    of("PyTorch", ",12,measured");
}

#[test]
fn two_files_of_one_model_stand_side_by_side_and_are_told_apart() {
    let files = [probe::results(), probe::results()];
    let text = chapter(&files);
    for label in ["Test device, test:0", "Test device, test:0 (2)"] {
        assert!(text.contains(&format!("{label}</span>")), "{label}");
    }
    assert!(text.contains("Measured on Test device, test:0 (2) with size 8."), "{text}");
    for number in [1, 2] {
        assert!(text.contains(&format!("href=\"data/probe-drawn-bars-{number}.csv\"")), "{number}");
    }
}

#[test]
fn the_first_page_shows_the_file_that_measured_most() {
    let whole = fixture::run();
    let mut part = whole.clone();
    part.runs[0].environment.device.model = "Another device".to_owned();
    part.rows.truncate(5);
    let files = source_as(&carried_book(), &[part, whole]);
    let first = read(&files, "README");
    assert!(first.contains("on Test device<") && first.contains("The chapters also show Another device"), "{first}");
    assert!(!first.contains("was not measured"));
}

#[test]
fn one_run_moved_away_makes_the_same_code_differ_once_more() {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("book/results/one-gpu.json.gz");
    let mut results = Results::read(&path).unwrap();
    results.rows.retain(|row| row.spec.label == "The same code twice, ratio");
    let counted = |results: &Results| syncscope_results::SameCode::of(std::slice::from_ref(results)).within_runs;
    // Of fewer than six samples no interval of a median holds it in 95 % of cases.
    let has_interval = |outcome: &Outcome| outcome.values().is_some_and(|values| values.len() >= 6);
    let made = |row: &syncscope_results::Row| row.series.iter().filter(|own| has_interval(&own.outcome)).count();
    let rows: usize = results.rows.iter().map(made).sum();
    let mut series = results.rows.iter_mut().flat_map(|row| &mut row.series);
    let Some(Outcome::Derived { samples }) = series.next().map(|own| &mut own.outcome) else { panic!("no such row") };
    samples.iter_mut().zip([0.98, 1.02].into_iter().cycle()).for_each(|(sample, ratio)| *sample = ratio);
    let around = counted(&results);
    let Outcome::Derived { samples } = &mut results.rows[0].series[0].outcome else { panic!("no such row") };
    samples.iter_mut().for_each(|sample| *sample += 0.5);
    let beside = counted(&results);
    assert_eq!((around.made, beside.made, beside.missed), (rows, rows, around.missed + 1));
    let page = read(&source_as(&carried_book(), from_ref(&results)), "machine");
    let said = format!("Within a single run, {} of {rows} do not", beside.missed);
    assert!(page.contains(&said), "{page}");
}

/// What one file may owe to chance, all of them do not.
#[test]
fn comparisons_of_the_same_code_are_counted_once_over_all_files_of_the_book() {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("book/results/one-gpu.json.gz");
    let mut results = Results::read(&path).unwrap();
    results.rows.retain(|row| row.spec.label == "The same code twice, ratio");
    let own = syncscope_results::SameCode::of(std::slice::from_ref(&results)).within_runs;
    let said = |factor: usize| format!("Within a single run, {} of {} do not", factor * own.missed, factor * own.made);
    let page = |files: &[Results]| read(&source_as(&carried_book(), files), "machine");
    let alone = page(from_ref(&results));
    assert!(alone.contains(&said(1)), "{alone}");
    let both = page(&[results.clone(), results]);
    assert!(both.contains(&said(2)) && !both.contains(&said(1)), "{both}");
}

#[test]
fn the_method_page_says_how_wide_the_intervals_are_by_the_length_of_the_time() {
    let mut results = probe::results();
    for (id, scale) in [("probe.fast", 5e-6), ("probe.slow", 5e-3)] {
        let samples = (0..40).map(|round| scale * (1.0 + 1e-5 * f64::from(round * 7 % 40))).collect();
        fixture::replace(&mut results, id, &fixture::measured(samples));
    }
    let project = probe::project(probe::DOCUMENT);
    let page = read(&source_as(&project, &[fixture::three_runs(results.clone())]), "machine");
    // Runs of 0.99, 1 and 1.01: a standard deviation of 1 %, and t of two degrees of freedom is 4.303.
    for length in ["below 20 µs", "1 ms and more"] {
        assert!(page.contains(&format!("| {length} | 6 | ± 2.5 % | ± 2.5 % |")), "{page}");
    }
    assert!(!page.contains("| 20 µs to 1 ms |"), "{page}");
    let one = read(&source_as(&project, &[results]), "machine");
    assert!(!one.contains("Half width in the middle"), "one run has no such interval");
}

#[test]
fn the_book_of_several_files_has_the_title_that_most_of_them_have() {
    let titled = |title: &str| {
        let mut results = probe::results();
        results.suite["title"] = title.into();
        results
    };
    let title = |titles: &[&str]| {
        let all: Vec<Results> = titles.iter().map(|title| titled(title)).collect();
        let first = read(&source_as(&carried_book(), &all), "README");
        first.lines().next().unwrap().to_owned()
    };
    assert_eq!(title(&["Calls", "Course", "Course"]), "# Course");
    assert_eq!(title(&["Calls", "Course"]), "# Calls");
}
