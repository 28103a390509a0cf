//! Recorded timelines in a chapter: the picture, who knew when the device worked, and the trace to download.

use super::document::Panel;
use crate::measure::median;
use crate::present::{TimelinePlot, escape};
use crate::results::{Recorded, RecordedTimeline, Results, in_words};
use crate::timeline::Timeline;
use crate::units::Unit;

/// The panel as HTML without empty lines. What was not recorded says so. `number` is the run's, from 1.
pub(super) fn panel(
    drawn: &Panel,
    scenario: &str,
    (results, number, machine): (&Results, usize, &str),
    id: &str,
) -> String {
    let title = drawn.title.as_deref().unwrap_or(scenario);
    let missing = |why: &str| format!("<p class=\"missing\">{}: {}</p>\n", escape(title), escape(why));
    let Some(found) = results.timeline(scenario) else { return missing("not recorded in this run") };
    let timeline = match &found.recorded {
        Recorded::Timeline(timeline) => timeline,
        Recorded::Failed(reason) => return missing(&format!("not recorded: {reason}")),
    };
    let plot = plot(drawn, scenario, machine, timeline);
    let spans = plot.spans(id).map(|spans| format!(" data-spans=\"{}\"", escape(&spans))).unwrap_or_default();
    let svg = plot.to_svg(id);
    let source = escape(&timeline.source);
    let with = match escape(&in_words(&found.parameters)) {
        words if words.is_empty() => String::new(),
        words => format!("With {words}. "),
    };
    let dropped = match timeline.dropped {
        0 => String::new(),
        count => format!(" {count} records were lost."),
    };
    let cost = match cost(found) {
        text if text.is_empty() => text,
        text => format!(" {}", escape(&text)),
    };
    let [trace, data] = places(scenario, number);
    format!(
        "<div class=\"timeline\"{spans}>\n{svg}\n<p class=\"source\">{with}Device times: {source}.{dropped}{cost} \
         <a href=\"{trace}\" download>Trace for Perfetto</a>, <a href=\"{data}\" download>data (CSV)</a></p>\n</div>\n",
    )
}

/// The picture alone, where the scenario was recorded.
pub(super) fn picture(drawn: &Panel, scenario: &str, (results, machine): (&Results, &str), id: &str) -> Option<String> {
    let Some(Recorded::Timeline(timeline)) = results.timeline(scenario).map(|found| &found.recorded) else {
        return None;
    };
    Some(plot(drawn, scenario, machine, timeline).to_svg(id))
}

fn plot<'a>(drawn: &Panel, scenario: &str, machine: &str, timeline: &'a Timeline) -> TimelinePlot<'a> {
    let title = drawn.title.as_deref().unwrap_or(scenario).to_owned();
    timeline.plot(title, machine.to_owned())
}

/// What recording costs, in a sentence; nothing where it was not timed.
fn cost(scenario: &RecordedTimeline) -> String {
    if scenario.untraced_s.is_empty() || scenario.traced_s.is_empty() {
        return String::new();
    }
    let [off, on] =
        [&scenario.untraced_s, &scenario.traced_s].map(|passes| Unit::Seconds.format(median(passes.clone()), 3));
    format!("The pass took {off} untraced and {on} traced.")
}

/// Where the trace and the data of a scenario lie, beside the chapters.
pub(crate) fn places(scenario: &str, number: usize) -> [String; 2] {
    let name: String =
        scenario.chars().map(|c| if c.is_ascii_alphanumeric() || "-.".contains(c) { c } else { '-' }).collect();
    [format!("traces/{name}-{number}.trace.json"), format!("data/{name}-{number}.csv")]
}
