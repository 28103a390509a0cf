//! An audit as one HTML page in the style of the book: no script, nothing loaded from elsewhere.

use super::places::WaitPlace;
use super::report::{AuditReport, ProcessReport};
use super::tables;
use crate::present::{escape, page_head};
use crate::units::capitalized;

/// What mdBook gives the book's pages, behind their style.
const GROUND: &str = include_str!("page.css");
/// How many warnings and how many places are listed, how many places are explained one by one, how many frames of a stack are
/// shown, and how many processes.
const WARNINGS: usize = 100;
const LISTED: usize = 200;
const EXPLAINED: usize = 20;
const FRAMES: usize = 12;
const PROCESSES: usize = 16;

/// What the columns of the table mean.
const COLUMNS: &str = "Total, median and longest are times lost, not the lengths of the calls. “Device idle after” is how long \
                       a device then had nothing to do: a wait costs most where it is long.";

/// What is shown of an audit, as HTML without empty lines: what stands first, then headings, and what stands below them.
type PageParts = (String, Vec<(&'static str, String)>);

impl AuditReport {
    /// The report as a page of HTML, in the `style` of the book's pages.
    pub fn to_html(&self, style: &str) -> String {
        let named = |chapter: &str| format!("<em>{}</em>", escape(chapter));
        let (first, others) = parts(self, "longest-wait", &named);
        let others: String = others.iter().map(|(heading, below)| format!("<h2>{heading}</h2>\n{below}")).collect();
        let title = "Where the host waits";
        let head = page_head(title, &format!("{style}\n{GROUND}"), "");
        format!("{head}<body class=\"content\">\n<main>\n<h1>{title}</h1>\n{first}{others}</main>\n</body>\n</html>\n")
    }

    /// The same as the Markdown of a chapter, below its title. `id` is that of the picture; `chapter` makes of a chapter's
    /// identifier what names it.
    pub fn to_chapter(&self, id: &str, chapter: &dyn Fn(&str) -> String) -> String {
        let (first, others) = parts(self, id, chapter);
        let others = others.iter().map(|(heading, below)| format!("## {heading}\n\n{below}\n"));
        format!("{first}\n{}", others.collect::<String>())
    }
}

fn parts(report: &AuditReport, id: &str, chapter: &dyn Fn(&str) -> String) -> PageParts {
    let mut first =
        format!("<p>{}</p>\n<p class=\"muted\">From {}.</p>\n", escape(&report.command), escape(&report.source));
    for warning in report.warnings.iter().take(WARNINGS) {
        first.push_str(&format!("<p><strong>{}</strong></p>\n", escape(warning)));
    }
    first.push_str(&rest(report.warnings.len(), WARNINGS, "warnings"));
    let sentences =
        [tables::headline(report), tables::late(report), tables::iterations(report), tables::start_up(report)];
    for sentence in sentences.into_iter().flatten() {
        first.push_str(&format!("<p>{}</p>\n", escape(&sentence)));
    }
    if !report.idle.is_empty() {
        first.push_str(&tables::idle(report, LISTED).to_html());
        first.push_str(&rest(report.idle.len(), LISTED, "lines"));
    }
    let mut others = Vec::new();
    if let Some(timeline) = &report.iteration {
        let plot = timeline.plot("One iteration".to_owned(), timeline.device.clone());
        others.push(("One iteration", plot.to_svg(id) + "\n"));
    }
    let mut waits = format!("<p>{}</p>\n", escape(&tables::summary(report)));
    waits.push_str(&tables::places(report, LISTED).to_html());
    waits.push_str(&rest(report.places.len(), LISTED, "places"));
    if !report.places.is_empty() {
        waits.push_str(&format!("<p class=\"muted\">{COLUMNS}</p>\n"));
    }
    others.push(("Calls that lose time", waits));
    if let Some(timeline) = &report.longest_wait {
        let plot = timeline.plot("The time around the longest wait".to_owned(), timeline.device.clone());
        others.push(("The longest wait", plot.to_svg(id) + "\n"));
    }
    let explained: String = report.places.iter().take(EXPLAINED).map(|place| explained(place, chapter)).collect();
    others.push(("Place by place", explained));
    let processes = report.processes.iter().filter(|process| process.wall_ns > 0).take(PROCESSES);
    let times: String = processes.map(|process| tables::time_of(process).to_html() + &overhead(process)).collect();
    others.push(("Where the time went", times + &rest(report.processes.len(), PROCESSES, "processes")));
    (first, others)
}

fn rest(count: usize, shown: usize, what: &str) -> String {
    match count.saturating_sub(shown) {
        0 => String::new(),
        more => format!("<p class=\"muted\">And {more} more {what}, which the JSON file has.</p>\n"),
    }
}

fn explained(place: &WaitPlace, chapter: &dyn Fn(&str) -> String) -> String {
    let mut out = format!("<h3>{}</h3>\n<p>{}", escape(place.name()), escape(&tables::lost_at(place)));
    if !place.waited_for.is_empty() {
        out.push_str(&format!("; the longest waited for {}", escape(&place.waited_for)));
    }
    if !place.range.is_empty() {
        out.push_str(&format!("; the longest was in the range <em>{}</em>", escape(&place.range)));
    }
    if let Some(thread) = place.thread {
        out.push_str(&format!("; thread {thread}"));
    }
    let advice = escape(&capitalized(&place.advice));
    out.push_str(&format!(".</p>\n<p>{advice} (chapter {}).</p>\n", chapter(&place.chapter)));
    if !place.stack.is_empty() {
        let frames = place.stack.iter().take(FRAMES).map(|frame| {
            let (at, function) = (escape(&frame.place()), escape(&frame.function));
            let at = if frame.place() == place.place { format!("<strong>{at}</strong>") } else { at };
            format!("<li>{at} <span class=\"muted\">{function}</span></li>\n")
        });
        out.push_str(&format!("<ol>\n{}</ol>\n", frames.collect::<String>()));
    }
    out
}

fn overhead(process: &ProcessReport) -> String {
    tables::overhead(process).map(|text| format!("<p class=\"muted\">{}</p>\n", escape(&text))).unwrap_or_default()
}
