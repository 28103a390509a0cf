//! An audit as one HTML page in the style of the book: no script, nothing loaded from elsewhere.

use super::lanes;
use super::places::Place;
use super::recording::Recording;
use super::report::{AuditReport, Judged, ProcessReport};
use super::tables;
use crate::present::{TimelinePlot, escape};

const STYLE: &str = include_str!("../../report-templates/syncscope.css");
/// What mdBook gives the book's pages.
const GROUND: &str = "\
:root{--fg:#1a1a1a;--bg:#fff;--links:#0b4f8a;--table-border-color:#c8c8c8}\
body{color:var(--fg);background:var(--bg);font:16px/1.5 system-ui,sans-serif;margin:0 auto;max-width:70em;padding:1em}\
a{color:var(--links)}.muted{color:var(--muted-fg)}svg{max-width:min(100%,38em);height:auto}\
.content main table.results th[scope=row]{overflow-wrap:anywhere;min-width:12em}\
@media (prefers-color-scheme:dark){:root{--fg:#d6d8e2;--bg:#161923;--links:#6fb3e0;--table-border-color:#3a4050;\
--published-fg:#f0b98a;--published-bg:#2e2621;--measured-fg:#9ccbf5;--measured-bg:#1b2a3a;--muted-fg:#a3a8b4;\
--held-bg:#161923;--plot-text:#d6d8e2;--plot-muted:#a3a8b4;--plot-grid:#3a4050;--plot-first:#5b9bd8;--plot-second:#e58a4e;\
--plot-third:#7cc48d;--plot-fourth:#c79adf;--plot-fifth:#f28ab8;--plot-sixth:#d6c05c;--plot-seventh:#5fd0d4;--plot-ground:#161923;--plot-whisker:#fff}}";
/// How many places are explained one by one, and how many spans a picture has.
const EXPLAINED: usize = 20;
const SPANS: usize = 400;

/// The page.
pub(crate) fn html(report: &AuditReport, recording: &Recording, judged: &[Judged]) -> String {
    let mut body = format!(
        "<h1>Where the host waits</h1>\n<p>{}</p>\n<p class=\"muted\">From {}.</p>\n",
        escape(&report.command),
        escape(&report.source)
    );
    for warning in &report.warnings {
        body.push_str(&format!("<p><strong>{}</strong></p>\n", escape(warning)));
    }
    body.push_str(&format!("<p>{}</p>\n", escape(&tables::summary(report))));
    body.push_str(&tables::places(report, usize::MAX).to_html());
    if let Some(picture) = longest(recording, judged) {
        body.push_str(&format!("<h2>The longest wait</h2>\n{picture}\n"));
    }
    body.push_str("<h2>Place by place</h2>\n");
    report.places.iter().take(EXPLAINED).for_each(|place| body.push_str(&explained(place)));
    body.push_str("<h2>Where the time went</h2>\n");
    for process in &report.processes {
        body.push_str(&tables::time_of(process).to_html());
        body.push_str(&overhead(process));
    }
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Where the host waits</title>\n\
         <style>{GROUND}\n{STYLE}</style>\n</head>\n<body class=\"content\">\n<main>\n{body}</main>\n</body>\n</html>\n"
    )
}

fn explained(place: &Place) -> String {
    let mut out = format!("<h3>{}</h3>\n<p>{}", escape(place.name()), escape(&place.call));
    if !place.waited_for.is_empty() {
        out.push_str(&format!("; the longest waited for {}", escape(&place.waited_for)));
    }
    out.push_str(&format!(
        ".</p>\n<p>{} (chapter <em>{}</em>).</p>\n",
        escape(&tables::sentence(&place.advice)),
        escape(&place.chapter)
    ));
    if !place.stack.is_empty() {
        let frames = place.stack.iter().map(|frame| {
            let line = format!(
                "<li>{} <span class=\"muted\">{}</span></li>\n",
                escape(&frame.place()),
                escape(&frame.function)
            );
            if frame.is_users() {
                line.replacen("<li>", "<li><strong>", 1).replacen(" <span", "</strong> <span", 1)
            } else {
                line
            }
        });
        out.push_str(&format!("<ol>\n{}</ol>\n", frames.collect::<String>()));
    }
    out
}

fn overhead(process: &ProcessReport) -> String {
    tables::overhead(process).map(|text| format!("<p class=\"muted\">{}</p>\n", escape(&text))).unwrap_or_default()
}

/// The time around the longest wait of all.
fn longest(recording: &Recording, judged: &[Judged]) -> Option<String> {
    let all = recording.processes.iter().zip(judged).flat_map(|(process, judged)| {
        process
            .calls
            .iter()
            .zip(&judged.judgements)
            .map(move |(call, judgement)| (judgement.wait, call, process, judged))
    });
    let (wait, call, process, judged) = all.filter(|(wait, ..)| *wait > 0).max_by_key(|(wait, ..)| *wait)?;
    let from = call.enter.saturating_sub(wait / 2).max(process.start);
    let to = call.exit.saturating_add(wait / 2).min(process.end);
    let mut timeline = lanes::timeline(process, &judged.judgements, (from, to));
    timeline.spans.truncate(SPANS);
    let title = "The time around the longest wait".to_owned();
    TimelinePlot { title, machine: process.command.clone(), timeline: &timeline }.to_svg("longest-wait").ok()
}
