//! `report collect`: checks results files of many machines and days, and puts them into one store.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::output::Form;
use super::output_file::OutputFile;
use super::{End, argument, recorded};
use crate::error::FileError;
use crate::files::{Lock, begins_with};
use crate::store::{self, Collected, Index, Listed, Medians, collect};
use syncscope_fleet::{MissingTask, SCRIPT, missing};

/// How long another process may take to collect into the same store.
const WAIT: Duration = Duration::from_secs(600);

/// The list of the files, in a store.
const INDEX: &str = "index.csv";

/// Check results files of many machines and days, and merge them into a store of files
#[derive(Args)]
#[command(after_help = "\
A store is a folder with one folder a machine: MACHINE/TIME-COMMIT-SAMPLES.json. Two stores merge by copying, or by this \
command. It refuses a file that is not whole, has a run that did not end, has altered samples, contradicts itself, or \
measured another suite than the rest, and names it with the reason; the others are taken, also where a budget left fewer \
runs than were planned. index.csv lists the files, says which runs are missing, and is written anew each time.

Of a folder that `report fleet` filled, the tasks that left no results are listed with the reason.

Without sources it checks the store and writes what is asked for.

Exit codes: 0, 1 where a file was refused or a task left no results, 2 where a source or the store cannot be read or written
and nothing was added.

Examples:
  report collect job-4711/ job-4712/ --into results
  report collect --into results --csv medians.csv")]
pub(super) struct Arguments {
    /// Results files, or folders with such files in them
    #[arg(value_name = "DIR")]
    sources: Vec<PathBuf>,
    /// The store
    #[arg(long, value_name = "DIR", default_value = "results")]
    into: PathBuf,
    /// Write the medians of all rows of the store, with intervals
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    #[command(flatten)]
    form: Form,
}

/// What became of the sources, and what the store holds then.
#[derive(Serialize)]
struct Report<'a> {
    store: &'a Path,
    #[serde(flatten)]
    collected: &'a Collected,
    /// The tasks of jobs that left no results.
    missing: Vec<MissingTask>,
    /// The files that lack planned runs.
    in_part: Vec<&'a Listed>,
    files: usize,
    machines: usize,
    written: Vec<PathBuf>,
}

impl Report<'_> {
    fn say(&self) {
        let Collected { added, duplicates, refused, .. } = self.collected;
        for duplicate in duplicates {
            say!("duplicate: {}: the same samples as {}", duplicate.file.display(), duplicate.of.display());
        }
        for refused in refused {
            say!("refused: {}: {}", refused.file.display(), refused.reason);
        }
        for job in self.missing.chunk_by(|one, other| one.folder == other.folder) {
            job.iter().for_each(|missing| say!("missing: {missing}"));
            if let Some(folder) = job.first().map(|missing| &missing.folder).filter(|own| own.join(SCRIPT).is_file()) {
                let tasks: Vec<String> = job.iter().map(|missing| missing.task.to_string()).collect();
                let (folder, tasks) = (argument(folder), tasks.join(","));
                say!("to submit them again, when none of them runs: cd {folder} && sbatch --array={tasks} {SCRIPT}");
            }
        }
        say!("{} added, {} duplicates, {} refused", added.len(), duplicates.len(), refused.len());
        for listed in &self.in_part {
            say!("in part: {}: {}", self.store.join(&listed.file).display(), listed.missing.join("; "));
        }
        say!("{}: {} files of {} machines", self.store.display(), self.files, self.machines);
        self.written.iter().for_each(|file| say!("written: {}", file.display()));
    }
}

pub(super) fn execute(arguments: &Arguments) -> anyhow::Result<End> {
    let store = &arguments.into;
    let csv = OutputFile::asked(arguments.csv.as_ref(), begins_with("machine,model,"))?;
    let _held = held(store)?;
    // Of another kind it is refused now.
    let list = OutputFile::claim(&store.join(INDEX), begins_with("file,machine,"))?;
    let mut collected = collect(&arguments.sources, store, &recorded::sound)?;
    let mut left = Vec::new();
    for folder in arguments.sources.iter().filter(|source| source.is_dir()) {
        left.extend(missing(folder)?);
    }
    let mut medians = csv.map(|file| (Medians::default(), file));
    let index = Index::of(store, &recorded::sound, |listed, results| match &mut medians {
        Some((medians, _)) => medians.put(listed, results).map_err(anyhow::Error::from),
        None => Ok(()),
    })?;
    collected.refused.extend(index.refused.iter().cloned());
    collected.duplicates.extend(index.duplicates.iter().cloned());
    let mut written: Vec<PathBuf> = Vec::new();
    if let Some((medians, file)) = medians {
        file.write(&medians.finish()?)?;
        written.extend(arguments.csv.clone());
    }
    // An empty store is no reason to make a folder.
    if !index.files.is_empty() {
        list.write(&index.to_csv()?)?;
        written.push(store.join(INDEX));
    }
    let mut machines: Vec<&str> = index.files.iter().map(|file| file.machine.as_str()).collect();
    machines.dedup();
    let (files, machines) = (index.files.len(), machines.len());
    let is_whole = collected.refused.is_empty() && left.is_empty();
    let in_part = index.files.iter().filter(|listed| !listed.missing.is_empty()).collect();
    let report = Report { store, collected: &collected, missing: left, in_part, files, machines, written };
    arguments.form.print("collect", &report, || report.say())?;
    Ok(if is_whole { End::Well } else { End::Failed })
}

/// Holds a store until all is put into it and listed: of two that collect at once, the second sees what the first has put there.
fn held(store: &Path) -> Result<Lock, FileError> {
    if let Some(held) = store::held(store, Duration::ZERO)? {
        return Ok(held);
    }
    note!("another report collects into {}; this one goes on when it has ended", store.display());
    store::held(store, WAIT)?.ok_or_else(|| FileError::Io {
        path: store.to_owned(),
        cause: io::Error::new(io::ErrorKind::ResourceBusy, "another report still collects into it"),
    })
}
