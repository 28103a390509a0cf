//! `report history`: each row of a store over time, by machine, and when it changed its level.

use std::path::PathBuf;

use clap::Args;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use serde_json::json;

use super::compare::threshold;
use super::output::Form;
use super::output_file::OutputFile;
use super::terminal;
use super::{End, output, recorded};
use crate::files::begins_with;
use crate::present::PAGE_BEGIN;
use syncscope_fleet::history::{History, page};

/// Follow each row of a store over time: when did it change its level, and by how much?
#[derive(Args)]
#[command(after_help = "\
DIR is a store, as `report collect` makes it. Each file gives one value of each row. At most 1 % of the rows that do not \
change raise an alarm within a year of daily runs, or 5 % where each day depends on the one before. A name on another machine, \
device or engine begins a new series.

Exit codes: 0, 1 where a change of what --fail-on names is new, 2 where the store cannot be read. A change is new where the \
file with which it was found is of --since or later.

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
    /// The smallest change of interest: 5% or 0.05; a smaller one is shown, but is never slower or faster
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = threshold)]
    threshold: f64,
    /// Changes that were found from this day on (UTC) are new: 2026-11-01; else those of the last seven days
    #[arg(long, value_name = "DAY", value_parser = day)]
    since: Option<Date>,
    /// Write a page
    #[arg(long, value_name = "FILE.html")]
    page: Option<PathBuf>,
    #[command(flatten)]
    form: Form,
}

/// The changes that `--fail-on` names.
const FAILING: [&str; 4] = ["slower", "faster", "different", "nothing"];

/// How many days a change is new.
const NEW_DAYS: i64 = 7;

fn day(text: &str) -> Result<Date, String> {
    Date::strptime("%Y-%m-%d", text).map_err(|_| "expected a day such as 2026-11-01".to_owned())
}

pub(super) fn execute(arguments: &Arguments) -> anyhow::Result<End> {
    let today = || Timestamp::now().to_zoned(TimeZone::UTC).date();
    let since = arguments.since.unwrap_or_else(|| today().saturating_sub(NEW_DAYS.days()));
    let own_page = OutputFile::asked(arguments.page.as_ref(), begins_with(PAGE_BEGIN))?;
    let mut history = History::default();
    let index = recorded::of_store(&arguments.store, |listed, results| history.add(listed, results))?;
    history.finish(arguments.threshold);
    if let Some(file) = own_page {
        file.write(page(&history, arguments.threshold)?.as_bytes())?;
    }
    let (files, rows) = (index.files.len(), history.machines.iter().map(|machine| machine.tracks.len()).sum::<usize>());
    let (mut changes, mut lines) = (Vec::new(), Vec::new());
    for (machine, track, change) in history.changes() {
        let is_meant = arguments.fail_on.iter().any(|what| what == change.shift.name());
        let fails = is_meant && change.is_new(machine, track, since);
        let (name, row, when) = (&machine.name, &track.title, change.when(machine, track));
        let also = match change.facts.as_slice() {
            [] => String::new(),
            facts => format!("; also changed: {}", facts.join("; ")),
        };
        lines.push((format!("{name} {row} {} since {when}{also}", change.text(track.unit)), fails));
        let mut change = serde_json::to_value(change)?;
        let beside = [("machine", json!(name)), ("row", json!(row)), ("when", json!(when)), ("fails", json!(fails))];
        beside.into_iter().for_each(|(key, value)| change[key] = value);
        changes.push(change);
    }
    let failing = lines.iter().filter(|(_, fails)| *fails).count();
    let facts = json!({ "files": files, "rows": rows, "changes": changes, "refused": index.refused });
    arguments.form.print("history", &facts, || {
        recorded::say_left_out(&index);
        for (line, fails) in &lines {
            output::message(line, Some(if *fails { terminal::BAD } else { terminal::TITLE }));
        }
        let changes = lines.len();
        say!("{files} files, {rows} rows over time: {changes} changes of level, {failing} of them new and to fail");
    })?;
    Ok(if failing == 0 { End::Well } else { End::Failed })
}
