//! `report run`: runs a suite and writes its results file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use syncscope::device::Device;
use syncscope::experiment::{Selection, Watcher};
use syncscope::run::{Attendance, Environment, Run};

use crate::progress::Bar;
use crate::{End, UsageError, device, interrupt, suite};

/// Run a suite and write its results file
#[derive(Args)]
#[command(after_help = "Examples:
  report run --suite full --device cuda:0 --out results.json
  report run --only overlap.transfer --skip overlap.transfer.pin
  report run --resume results.json")]
pub(crate) struct Arguments {
    #[command(flatten)]
    what: What,
    /// The results file to write; where a run is resumed, its own file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Go on with the interrupted run of this results file, on the same device
    #[arg(long, value_name = "RESULTS.json", conflicts_with_all = ["suite", "device", "only", "skip"])]
    resume: Option<PathBuf>,
}

/// What to run, and where.
#[derive(Args)]
pub(crate) struct What {
    /// A suite's file, or the name of one that the program carries: quick, full
    #[arg(long, value_name = "SUITE", default_value = "quick")]
    suite: String,
    /// The device, instead of the suite's: cuda:0, cpu:0, or auto
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// Measure only these rows: an identifier or its beginning (overlap.transfer); may be given again. A row that is
    /// computed from others needs them, too
    #[arg(long, value_name = "ROWS")]
    only: Vec<String>,
    /// Leave these rows out; may be given again
    #[arg(long, value_name = "ROWS")]
    skip: Vec<String>,
}

pub(crate) fn execute(arguments: Arguments) -> anyhow::Result<End> {
    let (run, out) = match arguments.resume {
        Some(file) => {
            let out = arguments.out.unwrap_or_else(|| file.clone());
            (resume(&file, &out)?, out)
        }
        None => {
            let out = arguments.out.unwrap_or_else(|| PathBuf::from("target/report/results.json"));
            (measure(&arguments.what, &out)?, out)
        }
    };
    println!("results: {}", out.display());
    Ok(end_of(&run, &out))
}

/// Runs what is asked for and writes the results file.
pub(crate) fn measure(what: &What, out: &Path) -> anyhow::Result<Run> {
    let suite = suite::load(&what.suite)?;
    let selection = Selection { only: what.only.clone(), skip: what.skip.clone() };
    if let Some(name) = selection.unknown() {
        return Err(UsageError(format!("no row begins with `{name}`; see `report experiments`")).into());
    }
    let device = device::open(what.device.as_deref(), Some(&suite))?;
    let environment = Environment::now(&device, command_line());
    attended(out, |attendance| syncscope::run::run(&suite, &selection, &device, environment, attendance))
}

/// Goes on with an interrupted run and writes the results file.
fn resume(file: &Path, out: &Path) -> anyhow::Result<Run> {
    let run = Run::read(file)?;
    if !run.partial {
        return Err(UsageError(format!("{}: the run is complete", file.display())).into());
    }
    let (was, device) = (&run.environment, Device::open(&run.environment.device.name)?);
    let is = Environment::now(&device, Vec::new());
    let differs = [
        ("device", was.device != is.device),
        ("host", was.host != is.host),
        ("program", (&was.program.version, &was.program.commit) != (&is.program.version, &is.program.commit)),
        ("build", was.program.profile != is.program.profile),
    ];
    let differs: Vec<&str> = differs.into_iter().filter(|(_, differs)| *differs).map(|(what, _)| what).collect();
    if !differs.is_empty() {
        let (file, differs) = (file.display(), differs.join(" and "));
        return Err(UsageError(format!("{file}: another {differs} than here: half a run on each is none")).into());
    }
    attended(out, |attendance| syncscope::run::resume(run, &device, attendance))
}

/// Runs with progress shown and Ctrl-C heard, and writes the results file.
pub(crate) fn attended(out: &Path, run: impl FnOnce(&Attendance<'_>) -> Run) -> anyhow::Result<Run> {
    Run::check_writable(out)?;
    let interrupt = interrupt::flag()?;
    let bar = Arc::new(Bar::new());
    let watcher: Arc<dyn Watcher> = Arc::clone(&bar) as Arc<dyn Watcher>;
    let begins = |place, of, name: &str| bar.experiment(place, of, name);
    let run = run(&Attendance { begins: &begins, watcher, interrupt });
    bar.finish();
    // Not the user's mistake any more: the place was good when the run began.
    run.write(out).map_err(|error| anyhow::anyhow!("{error}"))?;
    Ok(run)
}

/// The command as the user gave it, the program by its own name.
pub(crate) fn command_line() -> Vec<String> {
    std::iter::once("report".to_owned()).chain(std::env::args().skip(1)).collect()
}

/// How a run ended; an interrupted one with the command that goes on from it.
pub(crate) fn end_of(run: &Run, file: &Path) -> End {
    if run.partial {
        eprintln!("interrupted; to go on: report run --resume {}", file.display());
        return End::Interrupted;
    }
    if run.has_failures() { End::Failed } else { End::Well }
}
