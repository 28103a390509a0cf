//! `report fleet`: the same suite on many GPUs or nodes, by the scheduler that a site has. It writes what the scheduler
//! reads, and nothing of its own stays behind: results are files in a folder.

mod kubernetes;
mod script;
mod slurm;

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, ValueEnum};

use self::script::on_one_line;
use super::processes::Multicast;
use super::run::Choice;
use super::{AppContext, End, UsageError, program};
use crate::runner::{ENGINES, Suite};
use syncscope::device::Device;
use syncscope_fleet::MAX_TASKS;

/// Measure a suite on many GPUs or nodes, by Slurm or Kubernetes
#[derive(Args)]
#[command(after_help = "\
The suite is a name or a file; with --kubernetes, a file of the image by its whole path. With --slurm, a script is written to \
DIR/fleet.sh and submitted as a job array by `sbatch`; what follows `--` is handed to it. \
With --kubernetes, an indexed Job is printed for `kubectl apply`. Each task is called after its node and GPU (--machine) and \
leaves one results file, whole or absent. A task that is killed or requeued goes on with what it kept, where it comes to the \
same machine. The scheduler chooses the places, so two tasks can come to one GPU after each other; `report collect DIR` then \
counts one machine. It also lists the tasks that left nothing, with the reason.

Exit codes: 0, 1 where there is no sbatch or it refuses, 2 where something is wrong with what was given.

Examples:
  report fleet --slurm --suite full --out job --tasks 500 -- --partition gpu --time 30 --cpus-per-task 8
  report fleet --slurm --dry-run --out job --per node --tasks 4
  report fleet --kubernetes --image registry.example/report:1 --out-volume results --tasks 16
  report collect job --into results")]
pub(super) struct Arguments {
    /// Write and submit a Slurm job array
    #[arg(long, required_unless_present = "kubernetes", conflicts_with = "kubernetes", requires = "out")]
    slurm: bool,
    /// Print an indexed Job of Kubernetes
    #[arg(long, requires = "image", requires = "out_volume", conflicts_with_all = ["out", "dry_run", "options", "report"])]
    kubernetes: bool,
    #[command(flatten)]
    choice: Choice,
    /// How many tasks there are
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_TASKS)))]
    tasks: u32,
    /// What each task has for itself
    #[arg(long, value_name = "WHAT", default_value = "gpu")]
    per: Per,
    /// What stands before the names of the machines, where two clusters have nodes of one name
    #[arg(long, value_name = "NAME", value_parser = plain)]
    prefix: Option<String>,
    /// Let NCCL, PyTorch and NVSHMEM use NVLink multicast, as of `report run`
    #[arg(long)]
    allow_multicast: bool,
    /// The folder for the results, which all nodes see
    #[arg(long, value_name = "DIR", help_heading = "Slurm")]
    out: Option<PathBuf>,
    /// Print the script, and submit nothing
    #[arg(long, help_heading = "Slurm")]
    dry_run: bool,
    /// The program on the nodes; else this one
    #[arg(long, value_name = "PATH", help_heading = "Slurm")]
    report: Option<PathBuf>,
    /// Options of sbatch: partition, account, time, processors
    #[arg(last = true, value_name = "SBATCH OPTIONS", help_heading = "Slurm")]
    options: Vec<String>,
    #[command(flatten)]
    cluster: kubernetes::Cluster,
}

/// What a task has for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Per {
    /// One GPU
    Gpu,
    /// A whole node
    Node,
}

pub(super) fn execute(arguments: &Arguments, context: &AppContext) -> anyhow::Result<End> {
    if arguments.kubernetes { kubernetes::execute(arguments, context) } else { slurm::execute(arguments, context) }
}

impl Arguments {
    /// The arguments of a run that begins, with the suite as a task finds it.
    fn begin(&self, suite: &str) -> Result<Vec<String>, UsageError> {
        let mut begin = vec!["--suite".to_owned(), suite.to_owned()];
        let Choice { device, only, skip, runs, .. } = &self.choice;
        let runs = runs.map(|runs| runs.to_string());
        let device = device.iter().map(|value| ("--device", value));
        let runs = runs.iter().map(|value| ("--runs", value));
        let only = only.iter().map(|value| ("--only", value));
        let skip = skip.iter().map(|value| ("--skip", value));
        for (flag, value) in device.chain(runs).chain(only).chain(skip) {
            // With `=`, a value is no flag, whatever it begins with.
            begin.push(format!("{flag}={}", on_one_line(flag, value)?));
        }
        Ok(begin)
    }

    /// The arguments of a run however it begins.
    fn always(&self) -> Vec<String> {
        if self.allow_multicast { vec!["--allow-multicast".to_owned()] } else { Vec::new() }
    }

    fn multicast(&self) -> Multicast {
        if self.allow_multicast { Multicast::Allowed } else { Multicast::Off }
    }

    /// The beginning of the machines' names.
    fn prefix(&self) -> String {
        self.prefix.as_ref().map_or_else(String::new, |prefix| format!("{prefix}-"))
    }

    /// The suite as it was named.
    fn suite(&self) -> Result<&str, UsageError> {
        on_one_line("the suite's name", text("the suite's name", &self.choice.suite)?)
    }

    /// The suite as any folder finds it: a name, or the whole path of a file.
    fn suite_anywhere(&self, context: &AppContext) -> anyhow::Result<String> {
        let name = self.suite()?;
        if context.book.suite(name).is_some() {
            return Ok(name.to_owned());
        }
        whole_path("the suite's path", Path::new(name))
    }

    /// Refuses what no node could measure, so that it is found out once and before it is submitted. Whether a task needs a
    /// GPU. A suite that only the nodes can read is none here.
    fn check(&self, suite: Option<&Suite>, context: &AppContext) -> anyhow::Result<bool> {
        let selection = self.choice.selection(context)?;
        let named = self.choice.device.as_deref();
        if let Some(refusal) = named.and_then(Suite::refuse_device) {
            return Err(UsageError(refusal).into());
        }
        // The CPU engine is the same on every machine.
        if let Some(name) = named.filter(|name| name.starts_with("cpu:")) {
            Device::open(name)?;
        }
        let device = named.or(suite.map(|suite| suite.device.as_str())).unwrap_or("auto");
        if let Some(suite) = suite {
            let is_meant = |engine: &&str| device == "auto" || device.starts_with(engine);
            let engines: Vec<&str> = ENGINES.into_iter().filter(is_meant).collect();
            self.choice.check_rows(suite, &selection, &engines, context)?;
        }
        Ok(!device.starts_with("cpu:"))
    }
}

/// A path from the root, as text on one line.
fn whole_path(what: &str, path: &Path) -> anyhow::Result<String> {
    let whole = std::path::absolute(path).with_context(|| path.display().to_string())?;
    Ok(on_one_line(what, text(what, &whole)?)?.to_owned())
}

fn text<'a>(what: &str, path: &'a Path) -> Result<&'a str, UsageError> {
    path.to_str().ok_or_else(|| UsageError(format!("{what} is no text: {}", path.display())))
}

/// A part of a machine's name: it becomes a part of file names.
fn plain(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return Ok(text.to_owned());
    }
    Err("a name has letters, digits, dots, hyphens and underscores only".to_owned())
}

/// How the results are looked at when the tasks have ended.
fn next(folder: &str) -> String {
    format!("when it has ended: {} collect {folder}", program())
}
