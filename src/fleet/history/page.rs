//! The history as one page that stands alone: no script, nothing from elsewhere.

use minijinja::{Value, context};

use super::picture::{changes_of_facts, panel};
use super::series::{History, MachineHistory, RowHistory, SeriesChange};
use crate::error::FileError;
use crate::present::page_head;
use crate::template;

/// The page. Its Content-Security-Policy lets it load nothing.
///
/// # Errors
/// Its template does not fit.
pub fn page(history: &History, threshold: f64) -> Result<String, FileError> {
    let context = context! {
        head => page_head("History", include_str!("page.css"), ""),
        files => history.machines.iter().map(|machine| machine.entries.len()).sum::<usize>(),
        changes => history.changes().count(),
        percent => (threshold * 100.0).to_string(),
        machines => history.machines.iter().map(of_machine).collect::<Value>(),
    };
    template::page(include_str!("page.html.j2"), context)
}

fn of_machine(machine: &MachineHistory) -> Value {
    let facts = changes_of_facts(machine).into_iter().map(|place| {
        let [before, after] = [place - 1, place].map(|place| &machine.entries[place]);
        (after.day().to_string(), after.differs(before).join("; "))
    });
    let (with, without): (Vec<&RowHistory>, Vec<&RowHistory>) =
        machine.tracks.iter().partition(|track| !track.changes.is_empty());
    let last = |track: &RowHistory| track.values.last().map(|value| track.unit.format(value.median, 3));
    let unchanged = without.into_iter().map(|track| (&track.title, last(track).unwrap_or_default()));
    context! {
        name => machine.name.as_str(),
        model => machine.model.as_str(),
        files => machine.entries.len(),
        facts => facts.collect::<Value>(),
        changed => with.into_iter().map(|track| of_track(machine, track)).collect::<Value>(),
        unchanged => unchanged.collect::<Value>(),
    }
}

fn of_track(machine: &MachineHistory, track: &RowHistory) -> Value {
    let change = |change: &SeriesChange| {
        context! {
            kind => change.shift.name(),
            text => change.text(track.unit),
            when => change.when(machine, track),
            found => machine.entries[track.values[change.point.found].entry].day().to_string(),
            facts => change.facts.join("; "),
        }
    };
    context! {
        title => track.title.as_str(),
        label => track.label.as_str(),
        panel => panel(machine, track),
        changes => track.changes.iter().map(change).collect::<Value>(),
    }
}
