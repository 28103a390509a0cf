//! `report history`: each row of a store over time, by machine, and when it changed its level.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use serde_json::json;

use super::compare::threshold;
use super::output::Form;
use super::output_file::OutputFile;
use super::terminal::TerminalColour;
use super::{End, output, recorded};
use crate::files::begins_with;
use crate::present::PAGE_BEGIN;
use crate::units::Unit;
use syncscope_fleet::history::{History, SeriesChange, page};

/// Follow each row of a store over time: when did it change its level, and by how much?
#[derive(Args)]
#[command(after_help = "\
DIR is a store, as `report collect` makes it. A file is one value of each of its rows. Of a row that does not change, at \
most one in a hundred raises an alarm within a year of daily runs.

Exit codes: 0, 1 where a change of what --fail-on names is new, 2 where the store cannot be read. A change is new where \
it was found with the last file of its machine, or with one of --since or later.

Examples:
  report history results --fail-on slower
  report history results --since 2026-11-01 --page history.html")]
pub(super) struct Arguments {
    /// The store
    #[arg(value_name = "DIR", default_value = "results")]
    store: PathBuf,
    /// Exit with 1 where a new change is one of these; may be given again
    #[arg(long, value_name = "WHAT", value_delimiter = ',', default_value = "slower", value_parser = FAILING)]
    fail_on: Vec<String>,
    /// A change that is of interest: 5% or 0.05; a smaller one is shown and never slower or faster
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = threshold)]
    threshold: f64,
    /// Changes that were found from this day on are new: 2026-11-01
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Write a page
    #[arg(long, value_name = "FILE.html")]
    page: Option<PathBuf>,
    #[command(flatten)]
    form: Form,
}

/// The changes that `--fail-on` names.
const FAILING: [&str; 4] = ["slower", "faster", "different", "nothing"];

pub(super) fn execute(arguments: &Arguments) -> anyhow::Result<End> {
    let own_page = OutputFile::asked(arguments.page.as_ref(), begins_with(PAGE_BEGIN))?;
    let mut history = History::default();
    let index = recorded::of_store(&arguments.store, |listed, results| history.add(listed, results))?;
    history.finish(arguments.threshold);
    if let Some(file) = own_page {
        file.write(page(&history, arguments.threshold)?.as_bytes())?;
    }
    let is_meant = |change: &SeriesChange| arguments.fail_on.iter().any(|what| what == change.shift.name());
    let failing: Vec<*const SeriesChange> = history
        .found_since(arguments.since.as_deref())
        .filter(|(.., change)| is_meant(change))
        .map(|(.., change)| std::ptr::from_ref(change))
        .collect();
    let (files, rows) = (index.files.len(), history.machines.iter().map(|machine| machine.tracks.len()).sum::<usize>());
    let mut changes = Vec::new();
    for (machine, track, change) in history.changes() {
        let (when, fails) = (change.when(machine, track), failing.contains(&std::ptr::from_ref(change)));
        changes.push(Listed { machine: &machine.name, row: &track.title, unit: track.unit, change, when, fails });
    }
    let facts = json!({ "files": files, "rows": rows, "changes": changes, "refused": index.refused });
    arguments.form.print("history", &facts, || {
        recorded::say_left_out(&index);
        for change in &changes {
            let colour = if change.fails { TerminalColour::Bad } else { TerminalColour::Title };
            output::message(&change.line(), Some(colour));
        }
        let (changes, failing) = (changes.len(), failing.len());
        say!("{files} files, {rows} rows over time: {changes} changes of level, {failing} of them new and to fail");
    })?;
    Ok(if failing.is_empty() { End::Well } else { End::Failed })
}

/// A change of a row, for a program.
#[derive(Serialize)]
struct Listed<'a> {
    machine: &'a str,
    row: &'a str,
    #[serde(flatten)]
    change: &'a SeriesChange,
    /// When, with the earliest and the latest day.
    when: String,
    /// Whether it is new and one that --fail-on names.
    fails: bool,
    #[serde(skip)]
    unit: Unit,
}

impl Listed<'_> {
    /// It in words.
    fn line(&self) -> String {
        let Self { machine, row, change, when, unit, .. } = self;
        let also = match change.facts.as_slice() {
            [] => String::new(),
            facts => format!("; also changed: {}", facts.join("; ")),
        };
        format!("{machine} {row} {} since {when}{also}", change.text(*unit))
    }
}
