//! `report run`: runs a suite and writes its results file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;

use super::course::Course;
use super::interrupt::Interrupt;
use super::keep::{self, Keeper};
use super::progress::Bar;
use super::{Carried, End, UsageError, device, program, recorded};
use crate::book::{BookProject, Warning};
use crate::device::Device;
use crate::experiment::RunObserver;
use crate::measure::Progress;
use crate::results::{Environment, Parameters, Results, Row, Selection};
use crate::runner::{self, Suite};

/// Run a suite and write its results file
#[derive(Args)]
#[command(after_help = "Examples:
  report run --suite full --device cuda:0 --out results.json
  report run --only overlap.transfer --skip overlap.transfer.pin
  report run --resume results.json")]
pub(super) struct Arguments {
    #[command(flatten)]
    what: What,
    #[command(flatten)]
    course: Course,
    /// The results file to write; where a run is resumed, its own file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Go on with the interrupted run of this results file, on the same device
    #[arg(long, value_name = "RESULTS.json", conflicts_with_all = ["suite", "device", "only", "skip", "folder"])]
    resume: Option<PathBuf>,
}

/// What to run, and where.
#[derive(Args)]
pub(super) struct What {
    /// A suite's name: quick, full, or one of the course; or a suite's file
    #[arg(long, value_name = "SUITE", default_value = "quick")]
    suite: PathBuf,
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

pub(super) fn execute(arguments: Arguments, carried: &Carried) -> anyhow::Result<End> {
    let attended = match arguments.resume {
        Some(file) => {
            let out = arguments.out.unwrap_or_else(|| keep::out_of(&file));
            resume(&file, &out, carried)?
        }
        None => {
            let out = arguments.out.unwrap_or_else(|| PathBuf::from("target/report/results.json"));
            let book = arguments.course.project(carried)?;
            measure(&arguments.what, &arguments.course, &book, &out, carried)?
        }
    };
    say!("results: {}", attended.file.display());
    Ok(attended.end())
}

/// Runs what is asked for and writes the results file.
pub(super) fn measure(
    what: &What,
    course: &Course,
    book: &BookProject,
    out: &Path,
    carried: &Carried,
) -> anyhow::Result<Attended> {
    let suite = course.suite(&what.suite, book, carried)?;
    let selection = Selection { only: what.only.clone(), skip: what.skip.clone() };
    if let Some(refusal) = carried.registry.refuse(&selection) {
        return Err(UsageError(format!("{refusal}; see `{} experiments`", program())).into());
    }
    let device = device::open(what.device.as_deref(), Some(&suite))?;
    let environment = Environment::now(&device, command_line());
    attended(out, None, |observer, interrupt| {
        runner::run(&suite, &carried.registry, &selection, &device, environment, observer, interrupt)
    })
}

/// Goes on with an interrupted run and writes the results file.
fn resume(file: &Path, out: &Path, carried: &Carried) -> anyhow::Result<Attended> {
    let results = recorded::read(file, carried)?;
    if !results.is_partial() {
        return Err(UsageError(format!("{}: the run is complete", file.display())).into());
    }
    let suite = Suite::of_results(&results.suite, &file.display().to_string(), &carried.registry)?;
    let (was, device) = (results.environment(), Device::open(&results.environment().device.name)?);
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
    attended(out, Some(file), |observer, interrupt| {
        runner::resume(results, &suite, &carried.registry, &device, observer, interrupt)
    })
}

/// What a run left, and where it is: the file that was asked for, if that could be written.
pub(super) struct Attended {
    pub(super) results: Results,
    pub(super) file: PathBuf,
    is_elsewhere: bool,
}

/// Runs with progress shown, Ctrl-C heard and each experiment kept, and writes the results file.
pub(super) fn attended(
    out: &Path,
    resumed: Option<&Path>,
    run: impl FnOnce(&Arc<dyn RunObserver>, &Arc<AtomicBool>) -> Results,
) -> anyhow::Result<Attended> {
    let keeper = Arc::new(Keeper::begin(out, resumed)?);
    let rescuer = Arc::clone(&keeper);
    let interrupt = Interrupt::listen(move || rescuer.rescue())?;
    let watch = Arc::new(Watch { bar: Bar::new(), keeper: Arc::clone(&keeper) });
    let observer: Arc<dyn RunObserver> = Arc::clone(&watch) as Arc<dyn RunObserver>;
    let results = run(&observer, &interrupt.flag);
    watch.bar.finish();
    let file = keeper.finish(&results)?;
    interrupt.ended();
    let shared = |warning: &&Warning| matches!(warning, Warning::Shared { .. } | Warning::SharedUnseen { .. });
    for warning in Warning::of(&results).iter().filter(shared) {
        note!("{warning}");
    }
    Ok(Attended { is_elsewhere: file != out, results, file })
}

/// Shows what a run does and keeps what it leaves.
struct Watch {
    bar: Bar,
    keeper: Arc<Keeper>,
}

impl RunObserver for Watch {
    fn experiment(&self, place: usize, of: usize, name: &str) {
        self.bar.experiment(place, of, name);
    }

    fn group(&self, rows: &[&str], parameters: &Parameters) {
        self.bar.group(rows, parameters);
    }

    fn progress(&self, progress: Progress) {
        self.bar.progress(progress);
    }

    fn measured(&self, rows: &[Row]) {
        self.keeper.measured(rows);
    }

    fn keep(&self, results: &Results) {
        self.keeper.keep(results);
    }
}

/// The command as the user gave it, the program by its own name.
pub(super) fn command_line() -> Vec<String> {
    let arguments = std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    std::iter::once(program()).chain(arguments).collect()
}

impl Attended {
    /// How the run ended; an interrupted one with the command that goes on from it.
    pub(super) fn end(&self) -> End {
        if self.results.is_partial() {
            note!("interrupted; to go on: {} run --resume {}", program(), self.file.display());
            return End::Interrupted;
        }
        if self.results.has_failures() || self.is_elsewhere { End::Failed } else { End::Well }
    }
}
