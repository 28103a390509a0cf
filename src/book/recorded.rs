//! Recorded timelines in a chapter: the picture, who knew when the device worked, and the trace to download.

use std::path::PathBuf;

use crate::document::{Document, Panel};
use crate::error::BookError;
use crate::experiment::{Recorded, RecordedTimeline};
use crate::present::{TimelinePlot, escape};
use crate::run::Run;
use crate::units::Unit;

/// The panel as HTML without empty lines. What was not recorded says so. `number` is the run's, from 1.
pub(super) fn panel(
    drawn: &Panel,
    scene: &str,
    (run, number, machine): (&Run, usize, &str),
    id: String,
) -> Result<String, BookError> {
    let title = drawn.title.as_deref().unwrap_or(scene);
    let missing = |why: &str| format!("<p class=\"missing\">{}: {}</p>\n", escape(title), escape(why));
    let Some(found) = run.timeline(scene) else { return Ok(missing("not recorded in this run")) };
    let timeline = match &found.recorded {
        Recorded::Timeline(timeline) => timeline,
        Recorded::Failed(reason) => return Ok(missing(&format!("not recorded: {reason}"))),
    };
    let parameters: Vec<String> = found.parameters.iter().map(|(name, value)| format!("{name} {value}")).collect();
    let plot = TimelinePlot { title: title.to_owned(), machine: machine.to_owned(), timeline };
    let svg = plot.to_svg(&id).map_err(|source| BookError::Plot { id, source })?;
    let (parameters, source) = (escape(&parameters.join(", ")), escape(&timeline.source));
    let dropped = match timeline.dropped {
        0 => String::new(),
        count => format!(" {count} records were lost."),
    };
    let cost = match cost(found) {
        text if text.is_empty() => text,
        text => format!(" {}", escape(&text)),
    };
    Ok(format!(
        "<div class=\"timeline\">\n{svg}\n<p class=\"source\">With {parameters}. Device times: {source}.{dropped}{cost} \
         <a href=\"{}\" download>Trace for Perfetto</a></p>\n</div>\n",
        place(scene, number)
    ))
}

/// What recording costs, in a sentence; nothing where it was not timed.
fn cost(scene: &RecordedTimeline) -> String {
    let median = |seconds: &[f64]| {
        let mut sorted = seconds.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).map(|value| Unit::Seconds.format(*value, 3))
    };
    match (median(&scene.unrecorded_s), median(&scene.recorded_s)) {
        (Some(off), Some(on)) => format!("The pass took {off} without and {on} with a recording."),
        _ => String::new(),
    }
}

/// The traces that a document's chapter offers, of the runs that it shows: path within the book's `src`, and content.
pub(super) fn traces(document: &Document, runs: &[Run]) -> Vec<(PathBuf, Vec<u8>)> {
    let panels = document.figures.iter().flat_map(|figure| &figure.panels);
    let scenes: Vec<&String> = panels.filter_map(|panel| panel.timeline.as_ref()).collect();
    let mut files = Vec::new();
    for (number, run) in (1..).zip(runs) {
        for scene in &scenes {
            if let Some(Recorded::Timeline(timeline)) = run.timeline(scene).map(|found| &found.recorded) {
                files.push((PathBuf::from(place(scene, number)), timeline.to_trace().into_bytes()));
            }
        }
    }
    files
}

/// Where the trace of a scene lies, beside the chapters.
fn place(scene: &str, number: usize) -> String {
    let name: String =
        scene.chars().map(|c| if c.is_ascii_alphanumeric() || "-.".contains(c) { c } else { '-' }).collect();
    format!("traces/{name}-{number}.trace.json")
}
