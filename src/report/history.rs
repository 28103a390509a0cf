//! `report history`: each row of a store over time, by machine, and when it changed its level.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::compare::threshold;
use super::facts::{Facts, Form};
use super::output_file::OutputFile;
use super::terminal::TerminalColour;
use super::{End, output, recorded};
use crate::error::FileError;
use crate::files::begins_with;
use crate::present::PAGE_BEGIN;
use crate::results::Shift;
use crate::store::{Index, Refused};
use syncscope_fleet::history::{History, JUNIT_BEGIN, MachineHistory, RowHistory, SeriesChange, junit, page};

/// Follow each row of a store over time: when did it change its level, and by how much?
#[derive(Args)]
#[command(after_help = "\
DIR is a store, as `report collect` makes it. A file is one value of each of its rows. Of a row that does not change, at \
most one in a hundred raises an alarm within a year of daily runs.

Exit codes: 0, 1 where a change of what --fail-on names is new, 2 where the store cannot be read. A change is new where \
it was found with the last file of its machine, or with one of --since or later.

Examples:
  report history results --fail-on slower --junit history.xml
  report history results --since 2026-11-01 --page history.html")]
pub(super) struct Arguments {
    /// The store
    #[arg(value_name = "DIR", default_value = "results")]
    store: PathBuf,
    /// Exit with 1 where a new change is one of these; may be given again
    #[arg(long, value_name = "WHAT", value_delimiter = ',', default_value = "slower")]
    fail_on: Vec<FailOn>,
    /// A change that is of interest: 5% or 0.05; a smaller one is shown and never slower or faster
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = threshold)]
    threshold: f64,
    /// Changes that were found from this day on are new: 2026-11-01
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Write a page
    #[arg(long, value_name = "FILE.html")]
    page: Option<PathBuf>,
    /// Write the rows as tests (JUnit's XML); those with a new change of what --fail-on names fail
    #[arg(long, value_name = "FILE.xml")]
    junit: Option<PathBuf>,
    #[command(flatten)]
    form: Form,
}

/// Which new changes fail.
#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum FailOn {
    /// A time that grew or a rate that fell
    Slower,
    /// A time that fell or a rate that grew
    Faster,
    /// Another value of a kind that is neither fast nor slow
    Different,
    /// No change fails
    Nothing,
}

impl FailOn {
    fn is(self, shift: Shift) -> bool {
        matches!(
            (self, shift),
            (FailOn::Slower, Shift::Slower) | (FailOn::Faster, Shift::Faster) | (FailOn::Different, Shift::Different)
        )
    }
}

/// What there is over time.
#[derive(Serialize)]
struct Report<'a> {
    files: usize,
    rows: usize,
    changes: Vec<Line<'a>>,
    refused: &'a [Refused],
}

#[derive(Serialize)]
struct Line<'a> {
    machine: &'a str,
    row: &'a str,
    #[serde(flatten)]
    change: &'a SeriesChange,
    /// When, with the earliest and the latest day.
    when: String,
    /// Whether it is new and one that --fail-on names.
    fails: bool,
    #[serde(skip)]
    text: String,
}

impl Facts for Report<'_> {
    const COMMAND: &'static str = "history";

    fn say(&self) {
        for refused in self.refused {
            say!("left out: {}: {}", refused.file.display(), refused.reason);
        }
        for line in &self.changes {
            let also = match line.change.facts.as_slice() {
                [] => String::new(),
                facts => format!("; also changed: {}", facts.join("; ")),
            };
            let text = format!("{} {} {} since {}{also}", line.machine, line.row, line.text, line.when);
            output::message(&text, Some(if line.fails { TerminalColour::Bad } else { TerminalColour::Title }));
        }
        let failing = self.changes.iter().filter(|line| line.fails).count();
        let changes = self.changes.len();
        say!(
            "{} files, {} rows over time: {changes} changes of level, {failing} of them new and to fail",
            self.files,
            self.rows
        );
    }
}

pub(super) fn execute(arguments: &Arguments) -> anyhow::Result<End> {
    let own_page = OutputFile::asked(arguments.page.as_ref(), begins_with(PAGE_BEGIN))?;
    let own_junit = OutputFile::asked(arguments.junit.as_ref(), begins_with(JUNIT_BEGIN))?;
    let mut history = History::default();
    let index = Index::of(&arguments.store, &recorded::sound, |listed, results| {
        history.add(listed, results);
        Ok::<_, FileError>(())
    })?;
    recorded::some_in(&arguments.store, &index)?;
    history.finish(arguments.threshold);
    let is_meant = |change: &SeriesChange| arguments.fail_on.iter().any(|what| what.is(change.shift));
    let failed: Vec<(&MachineHistory, &RowHistory, &SeriesChange)> =
        history.found_since(arguments.since.as_deref()).filter(|(.., change)| is_meant(change)).collect();
    if let Some(file) = own_page {
        file.write(page(&history, arguments.threshold).as_bytes())?;
    }
    if let Some(file) = own_junit {
        file.write(junit(&history, &failed).as_bytes())?;
    }
    let fails = |change: &SeriesChange| failed.iter().any(|(.., other)| std::ptr::eq(*other, change));
    let changes = history.changes().map(|(machine, track, change)| Line {
        machine: &machine.name,
        row: &track.title,
        when: change.when(machine, track),
        text: change.text(track.unit),
        change,
        fails: fails(change),
    });
    let rows = history.machines.iter().map(|machine| machine.tracks.len()).sum();
    let report = Report { files: index.files.len(), rows, changes: changes.collect(), refused: &index.refused };
    arguments.form.print(&report)?;
    Ok(if failed.is_empty() { End::Well } else { End::Failed })
}
