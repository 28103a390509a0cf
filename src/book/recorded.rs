//! Recorded timelines in a chapter: the picture, who knew when the device worked, and the trace to download.

use crate::document::Panel;
use crate::error::BookError;
use crate::experiment::{Recorded, RecordedTimeline, in_words};
use crate::measure::median;
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
    let svg = picture(drawn, scene, (run, machine), id)?.unwrap_or_default();
    let (parameters, source) = (escape(&in_words(&found.parameters)), escape(&timeline.source));
    let dropped = match timeline.dropped {
        0 => String::new(),
        count => format!(" {count} records were lost."),
    };
    let cost = match cost(found) {
        text if text.is_empty() => text,
        text => format!(" {}", escape(&text)),
    };
    let [trace, data] = places(scene, number);
    Ok(format!(
        "<div class=\"timeline\">\n{svg}\n<p class=\"source\">With {parameters}. Device times: {source}.{dropped}{cost} \
         <a href=\"{trace}\" download>Trace for Perfetto</a>, <a href=\"{data}\" download>data (CSV)</a></p>\n</div>\n",
    ))
}

/// The picture alone, where the scene was recorded.
pub(super) fn picture(
    drawn: &Panel,
    scene: &str,
    (run, machine): (&Run, &str),
    id: String,
) -> Result<Option<String>, BookError> {
    let Some(Recorded::Timeline(timeline)) = run.timeline(scene).map(|found| &found.recorded) else { return Ok(None) };
    let title = drawn.title.as_deref().unwrap_or(scene).to_owned();
    let plot = TimelinePlot { title, machine: machine.to_owned(), timeline };
    plot.to_svg(&id).map(Some).map_err(|source| BookError::Plot { id, source })
}

/// What recording costs, in a sentence; nothing where it was not timed.
fn cost(scene: &RecordedTimeline) -> String {
    if scene.unrecorded_s.is_empty() || scene.recorded_s.is_empty() {
        return String::new();
    }
    let [off, on] =
        [&scene.unrecorded_s, &scene.recorded_s].map(|passes| Unit::Seconds.format(median(passes.clone()), 3));
    format!("The pass took {off} without and {on} with a recording.")
}

/// Where the trace and the data of a scene lie, beside the chapters.
pub(super) fn places(scene: &str, number: usize) -> [String; 2] {
    let name: String =
        scene.chars().map(|c| if c.is_ascii_alphanumeric() || "-.".contains(c) { c } else { '-' }).collect();
    [format!("traces/{name}-{number}.trace.json"), format!("data/{name}-{number}.csv")]
}
