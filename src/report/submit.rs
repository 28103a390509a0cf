//! `report submit`: a results file that can be handed on, without what says whose it is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use serde_json::Value;

use super::output::Form;
use super::output_file::OutputFile;
use super::{End, UsageError, argument, invocation, recorded, refuse_input};
use crate::clean::terminal_line;
use crate::files::is_kind;
use crate::results::Results;

/// Make a results file that can be handed on: checked, and without what says whose it is
#[derive(Args)]
#[command(after_help = "\
What stays is listed field by field, and all else goes. These stay: the rows with their names, parameters and samples; the names of \
systems and experiments, times, and what sensors and libraries said; the suite without its title; processor, memory, \
operating system, GPU, driver and versions; the commit and digests of the code; of environment variables the names. The name of \
the machine, the command, values of variables, flags of the compiler, paths, places in a program and reasons of failures go. \
What stays and what goes is shown first; of the rows, whose words are the program's own, a few, and all of them with --json.

Without --out and --yes it is shown and nothing is written.

Exit codes: 0, 2 where the file cannot be handed on: it did not end or contradicts itself, or --yes is missing.

Example:
  report submit results.json --out submitted.json --yes")]
pub(super) struct Arguments {
    /// The results file
    #[arg(value_name = "RESULTS.json")]
    results: PathBuf,
    /// Write the file that can be handed on
    #[arg(long, value_name = "FILE.json")]
    out: Option<PathBuf>,
    /// Agree that what stays is handed on: without it nothing is written
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
    places: BTreeMap<String, Texts>,
}

impl Report {
    fn say(&self) {
        // What loses something is to be seen first.
        let (changed, same): (Vec<_>, Vec<_>) = self.places.iter().partition(|(_, texts)| !texts.taken_out.is_empty());
        for (place, texts) in changed.into_iter().chain(same) {
            let gone = texts.taken_out.iter().cloned().collect::<Vec<_>>().join("; ");
            let words = [("stays", staying(place, texts)), ("is taken out", gone)];
            let words = words
                .into_iter()
                .filter(|(_, own)| !own.is_empty())
                .map(|(what, own)| format!("\n{what}: {}", terminal_line(&own)));
            say!("{}{}", terminal_line(place), words.collect::<String>());
        }
        say!("All samples of {} rows and {} runs stay as they are.", self.rows, self.runs);
    }
}

/// What stays of the texts of one place of a file, each once, and what is taken out.
#[derive(Default, Serialize)]
struct Texts {
    stays: BTreeSet<String>,
    taken_out: BTreeSet<String>,
}

/// The texts of a file, place by place, such as `runs[].environment.host.cpu`; those that another has, too, stay.
fn texts(before: &Value, after: &Value) -> BTreeMap<String, Texts> {
    let [was, mut is] = [before, after].map(|value| {
        let mut found = BTreeMap::new();
        each_text("", value, &mut found);
        found
    });
    let texts = was.into_iter().map(|(place, was)| {
        let is = is.remove(&place).unwrap_or_default();
        let (stays, taken_out) = was.into_iter().partition(|text| is.contains(text));
        (place, Texts { stays, taken_out })
    });
    texts.collect()
}

fn each_text(place: &str, value: &Value, found: &mut BTreeMap<String, BTreeSet<String>>) {
    match value {
        Value::String(text) => drop(found.entry(place.to_owned()).or_default().insert(text.clone())),
        Value::Array(items) => items.iter().for_each(|item| each_text(&format!("{place}[]"), item, found)),
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            let dot = if place.is_empty() { "" } else { "." };
            each_text(&format!("{place}{dot}{key}"), value, found);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The texts that stay: all of them, but for the rows, whose names are the program's own.
fn staying(place: &str, texts: &Texts) -> String {
    const MAX: usize = 3;
    let is_of_rows = ["rows", "timelines"].iter().any(|part| place.starts_with(part));
    let shown = if is_of_rows { MAX } else { texts.stays.len() };
    let more = texts.stays.len().saturating_sub(shown);
    let mut said: Vec<String> = texts.stays.iter().take(shown).cloned().collect();
    said.extend((more > 0).then(|| format!("{more} more, which --json shows")));
    said.join("; ")
}

pub(super) fn execute(arguments: &Arguments) -> anyhow::Result<End> {
    let path = &arguments.results;
    let out = arguments.out.as_ref().map(|out| refuse_input(out, [path]).map(|()| out)).transpose()?;
    let file = OutputFile::asked(out, |there| is_kind(Results::read(there)))?;
    let results = recorded::sound(path)?;
    if results.is_partial() {
        let (file, program) = (argument(path), invocation());
        let message = format!("{}: it did not end; to go on: {program} run --resume {file}", path.display());
        return Err(UsageError(message).into());
    }
    let handed_on = checked(path, &results, &results.anonymous())?;
    let places = texts(&serde_json::to_value(&results)?, &serde_json::to_value(&handed_on)?);
    let report = Report { rows: handed_on.rows.len(), runs: handed_on.runs.len(), places };
    arguments.form.print("submit", &report, || report.say())?;
    let Some((out, file)) = out.zip(file) else { return Ok(End::Well) };
    if !arguments.yes {
        return Err(UsageError("nothing is written: with `--yes`, this file is".to_owned()).into());
    }
    file.write(&handed_on.to_content(out)?)?;
    note!("written: {}", out.display());
    Ok(End::Well)
}

/// Reads what is handed on as a reader of its file does, and compares it with what it was made of.
fn checked(path: &Path, results: &Results, handed_on: &Results) -> anyhow::Result<Results> {
    let read = Results::of_content(&handed_on.to_content(path)?, path)?;
    let is_same = read.samples_digest() == results.samples_digest() && read.rows.len() == results.rows.len();
    anyhow::ensure!(is_same, "{}: its samples would not stay as they are", path.display());
    recorded::contradiction(path, &read).map_or(Ok(read), |error| Err(error.into()))
}
