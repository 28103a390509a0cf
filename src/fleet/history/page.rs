//! The history as one page that stands alone: no script, nothing from elsewhere.

use std::fmt::Write as _;

use super::picture::{changes_of_facts, panel};
use super::series::{History, MachineHistory, RowHistory};
use crate::present::{escape, page_head};

const STYLE: &str = include_str!("page.css");

/// The page. Its Content-Security-Policy lets it load nothing.
pub fn page(history: &History, threshold: f64) -> String {
    let mut out = page_head("History", STYLE, "") + "<body>\n<main>\n<h1>History</h1>\n";
    let files: usize = history.machines.iter().map(|machine| machine.entries.len()).sum();
    let changes = history.changes().count();
    let _ = writeln!(
        out,
        "<p>{files} files of {} machines; {changes} changes of level. A point is what one file measured: the expected median \
         of a run, with its 95 % interval where there are few enough files. A thick line is a level, a coloured band the 95 % \
         interval of when it changed. A dotted line with a number is a change of driver, library, system or program.</p>",
        history.machines.len()
    );
    let percent = threshold * 100.0;
    let _ = writeln!(
        out,
        "<p>Method: the nonparametric change-point model of Hawkins and Deng (2010), by ranks. Of a row that does not change, \
         at most one in a hundred raises an alarm within a year of daily runs; so of 300 rows about three do. A change is \
         called slower or faster where the whole interval of the ratio is beyond {percent} %.</p>"
    );
    for machine in &history.machines {
        of_machine(machine, &mut out);
    }
    out + "</main>\n</body>\n</html>\n"
}

fn of_machine(machine: &MachineHistory, out: &mut String) {
    let _ = writeln!(
        out,
        "<h2>{}</h2>\n<p>{}, {} files</p>",
        escape(&machine.name),
        escape(&machine.model),
        machine.entries.len()
    );
    let changed = changes_of_facts(machine);
    if !changed.is_empty() {
        out.push_str("<ol class=\"facts\">\n");
        for place in changed {
            let [before, after] = [place - 1, place].map(|place| &machine.entries[place]);
            let _ = writeln!(out, "<li>{}: {}</li>", escape(after.day()), escape(&after.differs(before).join("; ")));
        }
        out.push_str("</ol>\n");
    }
    let (with, without): (Vec<&RowHistory>, Vec<&RowHistory>) =
        machine.tracks.iter().partition(|track| !track.changes.is_empty());
    if with.is_empty() {
        out.push_str("<p>No row changed its level.</p>\n");
    } else {
        out.push_str("<h3>Rows that changed</h3>\n<div class=\"panels\">\n");
        with.iter().for_each(|track| of_track(machine, track, out));
        out.push_str("</div>\n");
    }
    if !without.is_empty() {
        let _ = writeln!(out, "<details><summary>{} rows without a change</summary>\n<ul>", without.len());
        for track in without {
            let last = track.values.last().map(|value| track.unit.format(value.median, 3)).unwrap_or_default();
            let _ = writeln!(out, "<li>{} <b>{last}</b></li>", escape(&track.title));
        }
        out.push_str("</ul></details>\n");
    }
}

fn of_track(machine: &MachineHistory, track: &RowHistory, out: &mut String) {
    let (title, label) = (escape(&track.title), escape(&track.label));
    let _ =
        writeln!(out, "<figure>\n<figcaption><b>{label}</b><br>{title}</figcaption>\n{}<ul>", panel(machine, track));
    for change in &track.changes {
        let (text, when) = (escape(&change.text(track.unit)), escape(&change.when(machine, track)));
        let found = escape(machine.entries[track.values[change.point.found].entry].day());
        let also = match change.facts.as_slice() {
            [] => "nothing else that is known changed there".to_owned(),
            facts => format!("also changed: {}", escape(&facts.join("; "))),
        };
        let _ = writeln!(
            out,
            "<li><b class=\"{}\">{text}</b> since {when}, found {found}; {also}</li>",
            change.shift.name()
        );
    }
    out.push_str("</ul>\n</figure>\n");
}
