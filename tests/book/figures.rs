//! Plots, timelines and their data.

use syncscope::book::line_plot;
use syncscope::present::Point;
use syncscope::results::{Recorded, RecordedTimeline};

use super::probe::{DOCUMENT, project, results};
use super::*;

#[test]
fn lines_hold_every_point_and_name_the_extremes() {
    let results = fixture::run();
    let documents = documents();
    let panels = documents.iter().flat_map(|document| {
        let panels = document.figures.iter().flat_map(|figure| &figure.panels);
        panels.filter_map(move |panel| Some((document.table(&panel.table)?, panel, panel.lines.as_ref()?)))
    });
    let mut drawn = 0;
    for (table, panel, lines) in panels {
        let plot = line_plot(table, panel, lines, "M", &results);
        for (line, series) in plot.lines.iter().zip(&lines.series) {
            let fits = |row: &&syncscope::results::Row| {
                let parameters = &row.spec.parameters;
                row.spec.id == series.id
                    && parameters.contains_key(&lines.x)
                    && series.select.iter().all(|(name, value)| parameters.get(name) == Some(value))
            };
            let mut places: Vec<String> =
                results.rows.iter().filter(fits).map(|row| row.spec.parameters[&lines.x].to_string()).collect();
            places.sort_unstable();
            places.dedup();
            assert!(places.len() > 1 && line.points.len() == places.len(), "{}", series.id);
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
    assert!(drawn > 0, "no document draws lines");
}

#[test]
fn a_line_of_which_nothing_was_measured_says_so() {
    let mut results = results();
    results.rows.retain(|row| row.spec.id != "probe.gain");
    let chapter = read(&source_as(&project(DOCUMENT), &[results]), "probe");
    assert!(chapter.contains("again: not in this run"), "{chapter}");
}

#[test]
fn bars_take_their_unit_from_the_rows() {
    let start = DOCUMENT.find("    cases:").unwrap();
    let end = DOCUMENT.find("    rows:").unwrap();
    let document = format!("{}{}", &DOCUMENT[..start], &DOCUMENT[end..])
        .replace("{id: probe.fast, published: {half: 14.0e-6, single: 2.10e-5}}", "{id: probe.count}")
        .replace("        published: {half: 28.00e-6}\n", "")
        .replace("        relative: {to: probe.fast, published: {half: 0.5}}\n", "")
        .replace("bars: [probe.slow]", "bars: [probe.count]")
        .replace("published.pairs.half.fast", "fast.fp16.size_8");
    let mut results = results();
    fixture::replace(&mut results, "probe.count", &fixture::measured(vec![42.0; 12]));
    let chapter = read(&source_as(&project(&document), &[results]), "probe");
    let described = chapter.split("<desc ").nth(1).unwrap().split("</desc>").next().unwrap();
    assert!(described.ends_with(" Calls 42."), "{described}");
}

#[test]
fn a_recorded_scenario_is_drawn_with_its_trace_and_data() {
    let mut results = results();
    results.timelines = vec![fixture::recorded("probe.slow")];
    let text = serde_json::to_string(&results).unwrap();
    assert!(Results::parse(&text, Path::new("r.json")).unwrap() == results);
    let files = rendered_as(&project(DOCUMENT), std::slice::from_ref(&results));
    let chapter = page(&files, "site/probe.html");
    for part in ["Timeline of", "fill (enqueue)", "took 1.00 ms untraced and 2.00 ms traced", "made up"] {
        assert!(chapter.contains(part), "{part} is missing");
    }
    let trace = "traces/probe.slow-1.trace.json";
    assert!(chapter.contains(&format!("href=\"{trace}\"")));
    assert_eq!(files[&Path::new("site").join(trace)], fixture::timeline().to_trace().into_bytes());
    let data = page(&files, "site/data/probe.slow-1.csv");
    let spans: Vec<&str> = data.lines().skip(1).collect();
    assert_eq!(
        spans,
        [
            "\"host, main\",fill,enqueue,1000,4000",
            "\"host, main\",Stream::synchronize,synchronize,5000,92000",
            "stream 1,fill,kernel,6000,90000"
        ]
    );
}

#[test]
fn a_scenario_that_was_not_recorded_says_why() {
    let mut results = results();
    let chapter = |results: &Results| read(&source_as(&project(DOCUMENT), std::slice::from_ref(results)), "probe");
    assert!(chapter(&results).contains("not recorded in this run"));
    let recorded = Recorded::Failed("the reason".to_owned());
    results.timelines = vec![RecordedTimeline { recorded, ..fixture::recorded("probe.slow") }];
    assert!(chapter(&results).contains("not recorded: the reason"));
}

#[test]
fn every_chapter_has_a_plot_and_every_plot_its_data() {
    let mut results = fixture::run();
    for scenario in
        documents().iter().flat_map(|d| &d.figures).flat_map(|f| &f.panels).filter_map(|p| p.timeline.as_ref())
    {
        results.timelines.push(fixture::recorded(scenario));
    }
    let files = source(&results);
    for document in documents() {
        let chapter = read(&files, &document.id);
        assert!(chapter.contains("<svg class=\"plot\""), "{} has no plot", document.id);
        assert!(!chapter.contains("not recorded"), "{}", document.id);
        for figure in document.figures.iter().filter(|figure| figure.panels.iter().any(|p| p.timeline.is_none())) {
            let place = format!("data/{}-{}-1.csv", document.id, figure.id);
            assert!(chapter.contains(&format!("href=\"{place}\"")), "{place}");
            let text = page(&files, &format!("book/src/{place}"));
            let drawn = figure.panels.iter().flat_map(|panel| {
                let lines = panel.lines.iter().flat_map(|lines| &lines.series).map(|series| &series.id);
                let matrices = panel.matrix.iter();
                let cells = matrices
                    .flat_map(|matrix| std::iter::once(&matrix.id).chain(matrix.beside.iter().map(|time| &time.id)));
                panel.bars.iter().chain(lines).chain(cells)
            });
            for id in drawn {
                assert!(text.lines().any(|line| line.starts_with(&format!("{id},"))), "{id} is not in {place}");
            }
        }
    }
}

#[test]
fn the_data_of_a_plot_are_the_values_of_the_run_in_base_units() {
    let mut results = results();
    let samples: Vec<f64> = (0..12).map(|round| 1e-3 + 1e-6 * f64::from(round)).collect();
    fixture::replace(&mut results, "probe.slow", &fixture::measured(samples.clone()));
    let files = source_as(&project(DOCUMENT), &[results]);
    let text = page(&files, "book/src/data/probe-drawn-bars-1.csv");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("row,what,parameters,unit,value,low,high,n,state"));
    let line = lines.next().unwrap();
    let numbers: Vec<&str> = line.rsplit(',').take(6).collect();
    let [state, n, high, low, value, unit] = numbers[..] else { panic!("{line}") };
    assert!(line.starts_with("probe.slow,Slow call,\"dtype fp16, size 8\","), "{line}");
    assert_eq!((state, n, unit), ("measured", "12", "s"));
    // The ranks of a 95 % interval of a median of twelve samples are the third and the tenth.
    let expected = [(samples[5] + samples[6]) / 2.0, samples[2], samples[9]];
    for (shown, expected) in [value, low, high].into_iter().zip(expected) {
        assert!((shown.parse::<f64>().unwrap() - expected).abs() < 1e-12, "{line}");
    }
}
