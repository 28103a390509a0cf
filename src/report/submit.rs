//! `report submit`: a results file that can be handed on, without what says whose it is.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use serde_json::Value;

use super::facts::{Facts, Form};
use super::output_file::OutputFile;
use super::{Carried, End, UsageError, argument, output, program, recorded, refuse_input};
use crate::book::kept_results;
use crate::present::{Cell, Column, Role, Table, TableGroup, TableRow};
use crate::results::{Place, Results, Vocabulary};
use crate::yaml;
use syncscope::device::{Device, Properties};

/// Make a results file that can be handed on: checked, and without what says whose it is
#[derive(Args)]
#[command(after_help = "\
What stays is listed, not what goes: of all texts those words stay that this program says itself, small numbers, dates, \
digests of code, and names of processors and GPUs. Names of hosts and users, paths, serial numbers, the values of variables \
and all other words go, wherever they stand. All samples stay. What stays and what goes is shown first; of the rows, whose words \
are the program's own, a few, and all of them with --json.

Without --out it is shown and nothing is written.

Exit codes: 0, 2 where the file cannot be handed on: it did not end or contradicts itself, or nobody said yes.

Example:
  report submit results.json --out submitted.json")]
pub(super) struct Arguments {
    /// The results file
    #[arg(value_name = "RESULTS.json")]
    results: PathBuf,
    /// Write the file that can be handed on
    #[arg(long, value_name = "FILE.json")]
    out: Option<PathBuf>,
    /// Write it without asking
    #[arg(long, requires = "out")]
    yes: bool,
    #[command(flatten)]
    form: Form,
}

/// What is in the file, and what is taken out.
#[derive(Serialize)]
struct Report {
    rows: usize,
    runs: usize,
    places: Vec<Place>,
}

impl Facts for Report {
    const COMMAND: &'static str = "submit";

    fn say(&self) {
        let row = |place: &Place| {
            let gone = place.taken_out.iter().map(|(text, now)| match now.is_empty() {
                true => format!("{text} (all of it)"),
                false => format!("{text} → {now}"),
            });
            let cells = [staying(place), gone.collect::<Vec<_>>().join("; ")].map(Cell::Text).into();
            TableRow { id: None, label: place.place.clone(), cells }
        };
        // What loses something is to be seen first.
        let (changed, same): (Vec<&Place>, Vec<&Place>) =
            self.places.iter().partition(|place| !place.taken_out.is_empty());
        let group = |label: &str, places: Vec<&Place>| TableGroup {
            label: Some(label.to_owned()),
            rows: places.into_iter().map(row).collect(),
        };
        let groups = [group("Something is taken out", changed), group("All of it stays", same)];
        let columns = [
            Column::new(Role::Label, "place"),
            Column::new(Role::Fact, "stays"),
            Column::new(Role::Fact, "is taken out"),
        ];
        let table = Table {
            title: "What is handed on".to_owned(),
            columns: columns.into(),
            groups: groups.into_iter().filter(|group| !group.rows.is_empty()).collect(),
        };
        show!("{}", table.to_console());
        say!("All samples of {} rows and {} runs stay as they are.", self.rows, self.runs);
    }
}

/// The texts that stay: all of them, but for the rows, whose names are the program's own.
fn staying(place: &Place) -> String {
    const MOST: usize = 3;
    let is_of_rows = ["rows", "timelines"].iter().any(|part| place.place.starts_with(part));
    let shown = if is_of_rows { MOST } else { place.stays.len() };
    let more = place.stays.len().saturating_sub(shown);
    let mut said: Vec<String> = place.stays.iter().take(shown).cloned().collect();
    said.extend((more > 0).then(|| format!("{more} more, which --json shows")));
    said.join("; ")
}

pub(super) fn execute(arguments: &Arguments, carried: &Carried) -> anyhow::Result<End> {
    let path = &arguments.results;
    let out = arguments.out.as_ref().map(|out| refuse_input(out, [path]).map(|()| out)).transpose()?;
    let file = OutputFile::asked(out, |there| Results::read(there).is_ok())?;
    let results = recorded::sound(path, carried)?;
    if results.is_partial() {
        let (file, program) = (argument(path), program());
        let message = format!("{}: it did not end; to go on: {program} run --resume {file}", path.display());
        return Err(UsageError(message).into());
    }
    let (handed_on, places) = results.anonymous(&vocabulary(carried)?)?;
    let handed_on = checked(path, &results, &handed_on)?;
    arguments.form.print(&Report { rows: handed_on.rows.len(), runs: handed_on.runs.len(), places })?;
    let Some((out, file)) = out.zip(file) else { return Ok(End::Well) };
    if !arguments.yes && !is_agreed(out)? {
        alert!("nothing is written");
        return Ok(End::Refused);
    }
    file.write(handed_on.to_json(out)?.as_bytes())?;
    note!("written: {}", out.display());
    Ok(End::Well)
}

/// Reads what is handed on as a reader of its file does, and compares it with what it was made of.
fn checked(path: &Path, results: &Results, handed_on: &Results) -> anyhow::Result<Results> {
    let read = Results::parse(&handed_on.to_json(path)?, path)?;
    let is_same = read.samples_digest() == results.samples_digest() && read.rows.len() == results.rows.len();
    anyhow::ensure!(is_same, "{}: its samples would not stay as they are", path.display());
    recorded::contradiction(path, &read).map_or(Ok(read), |error| Err(error.into()))
}

/// Asks whether the file is to be written, where somebody is there to answer.
fn is_agreed(out: &Path) -> anyhow::Result<bool> {
    if !io::stdin().is_terminal() {
        let message = "nobody is there to be asked; `--yes` writes the file".to_owned();
        return Err(UsageError(message).into());
    }
    output::ask(&format!("Write {}? [y/N] ", out.display()));
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}

/// What this program says itself: its rows, experiments and suites, its commands, and the results that come with it.
fn vocabulary(carried: &Carried) -> anyhow::Result<Vocabulary> {
    let mut vocabulary = Vocabulary::new();
    vocabulary.learn(&recorded::catalog_of(&carried.book, &[], carried).specs())?;
    for entry in carried.registry.entries() {
        vocabulary.learn(&[entry.name, entry.summary])?;
    }
    for name in carried.book.suites() {
        vocabulary.learn(&[name])?;
        if let Some((origin, text)) = carried.book.suite(name) {
            vocabulary.learn(&yaml::parse::<Value>(text, &origin)?)?;
        }
    }
    vocabulary.learn(kept_results()?)?;
    let engine = Device::open("cpu:0")?;
    let Properties { name, model, engine, wait_policy, facts, .. } = engine.properties();
    vocabulary.learn(&[name.as_str(), model, engine, wait_policy])?;
    vocabulary.learn(facts)?;
    learn_command(&mut vocabulary, &carried.command)?;
    Ok(vocabulary)
}

/// The names of a command and its flags, and the values that these may have, with those of the commands under it.
fn learn_command(vocabulary: &mut Vocabulary, command: &clap::Command) -> serde_json::Result<()> {
    vocabulary.learn(&[command.get_name()])?;
    for argument in command.get_arguments() {
        let flag = argument.get_long().map(|name| format!("--{name}"));
        let values = argument.get_possible_values().into_iter().map(|value| value.get_name().to_owned());
        vocabulary.learn(&flag.into_iter().chain(values).collect::<Vec<_>>())?;
    }
    command.get_subcommands().try_for_each(|command| learn_command(vocabulary, command))
}
