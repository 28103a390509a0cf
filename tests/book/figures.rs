//! Plots, timelines and their data.

use syncscope::experiment::{Entry, Recorded, RecordedTimeline, Selection, scenes};
use syncscope::present::{Point, line_plot};

use super::*;

#[test]
fn lines_hold_every_point_and_name_the_extremes() {
    let run = fixture::run();
    let documents = documents();
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
    let files = rendered(run);
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
    let files = rendered(run);
    let chapter = page(&files, "site/overlap.html");
    for part in ["Timeline of", "fill (enqueue)", "took 1.00", "not recorded in this run", "the reason"] {
        assert!(chapter.contains(part), "{part} is missing");
    }
    let trace = "traces/overlap.finish.complete-1.trace.json";
    assert!(chapter.contains(&format!("href=\"{trace}\"")));
    assert_eq!(files[&Path::new("site").join(trace)], timeline.to_trace().into_bytes());
    let data = page(&files, "site/data/overlap.finish.complete-1.csv");
    assert_eq!(data.lines().count(), timeline.spans.len() + 1, "{data}");
}

/// Every scene that a document draws is one that an experiment plays.
#[test]
fn every_scene_of_the_documents_is_played() {
    let device = syncscope::device::Device::open("cpu:0").unwrap();
    let documents = documents();
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

#[test]
fn every_chapter_has_a_plot_and_every_plot_its_data() {
    let files = fixture_book();
    for document in documents() {
        let chapter = page(files, &format!("site/{}.html", document.id));
        assert!(chapter.contains("<svg class=\"plot\""), "{} has no plot", document.id);
        for figure in document.figures.iter().filter(|figure| figure.panels.iter().any(|p| p.timeline.is_none())) {
            let place = format!("data/{}-{}-1.csv", document.id, figure.id);
            assert!(chapter.contains(&format!("href=\"{place}\"")), "{place}");
            let text = std::str::from_utf8(&files[&Path::new("site").join(&place)]).unwrap();
            let drawn = figure.panels.iter().flat_map(|panel| {
                panel.bars.iter().chain(panel.lines.iter().flat_map(|lines| &lines.series).map(|series| &series.id))
            });
            for id in drawn {
                assert!(text.lines().any(|line| line.starts_with(&format!("{id},"))), "{id} is not in {place}");
            }
        }
    }
}

#[test]
fn the_data_of_a_plot_are_the_values_of_the_run_in_base_units() {
    let run = fixture::run();
    let text = page(fixture_book(), "site/data/sync-points-async-against-forced-1.csv");
    let row = run.rows().find(|row| row.id == "sync-points.big.async").unwrap();
    let estimate = row.metric().unwrap().estimate().unwrap();
    let line = text.lines().find(|line| line.starts_with("sync-points.big.async,")).unwrap();
    let values = format!(",s,{},{},{},{},measured", estimate.median, estimate.low, estimate.high, estimate.n);
    assert!(line.ends_with(&values), "{line} does not end with {values}");
}
