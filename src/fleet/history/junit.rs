//! The history as JUnit's XML, which CI systems show: a suite a machine, a test a row, a failure a change.

use std::fmt::Write as _;

use super::series::{History, MachineHistory, RowHistory, SeriesChange};
use crate::present::escape;

/// How each such file begins, and none of another program.
pub const JUNIT_BEGIN: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"history\"";

/// The tests; those of the changes `failed` fail.
pub fn junit(history: &History, failed: &[(&MachineHistory, &RowHistory, &SeriesChange)]) -> String {
    let mut out = JUNIT_BEGIN.to_owned();
    let tests: usize = history.machines.iter().map(|machine| machine.tracks.len()).sum();
    // Writing to a string cannot fail.
    let _ = writeln!(out, " tests=\"{tests}\" failures=\"{}\">", failures(failed, None));
    for machine in &history.machines {
        let (name, tests, failures) = (escape(&machine.name), machine.tracks.len(), failures(failed, Some(machine)));
        let _ = writeln!(out, "<testsuite name=\"{name}\" tests=\"{tests}\" failures=\"{failures}\">");
        for track in &machine.tracks {
            let _ = write!(out, "<testcase classname=\"{name}\" name=\"{}\"", escape(&track.title));
            let own: Vec<String> = failed
                .iter()
                .filter(|(other, of, _)| std::ptr::eq(*other, machine) && std::ptr::eq(*of, track))
                .map(|(_, _, change)| failure(machine, track, change))
                .collect();
            match own.as_slice() {
                [] => out.push_str("/>\n"),
                own => {
                    let _ = writeln!(out, ">\n{}\n</testcase>", own.join("\n"));
                }
            }
        }
        out.push_str("</testsuite>\n");
    }
    out + "</testsuites>\n"
}

/// How many tests fail: a row with two changes is one.
fn failures(failed: &[(&MachineHistory, &RowHistory, &SeriesChange)], of: Option<&MachineHistory>) -> usize {
    let own = failed.iter().filter(|(machine, ..)| of.is_none_or(|of| std::ptr::eq(of, *machine)));
    let mut tracks: Vec<*const RowHistory> = own.map(|(_, track, _)| std::ptr::from_ref(*track)).collect();
    tracks.sort_unstable();
    tracks.dedup();
    tracks.len()
}

fn failure(machine: &MachineHistory, track: &RowHistory, change: &SeriesChange) -> String {
    let (text, when) = (change.text(track.unit), change.when(machine, track));
    let also = if change.facts.is_empty() { "nothing else that is known".to_owned() } else { change.facts.join("; ") };
    let (message, kind) = (escape(&format!("{text} since {when}")), change.shift.name());
    format!("<failure type=\"{kind}\" message=\"{message}\">{}</failure>", escape(&format!("also changed: {also}")))
}
