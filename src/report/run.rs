//! `report run`: runs a suite and writes its results file.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use clap::Args;

use super::course::CourseArgument;
use super::keep::{self, Keeper};
use super::peer::OtherSystem;
use super::planned::check_size;
use super::processes::{self, FinishedRuns};
use super::{AppContext, End, UsageError, argument, invocation};
use crate::book::{BookProject, ENOUGH, smallest};
use crate::results::statistics::least_chance;
use crate::results::{Environment, MetricSpec, Plan, Results, Selection, Tolerance};
use crate::runner::{ENGINES, Suite, empty_results, planned};
use crate::units::counted;

/// Run a suite and write its results file
#[derive(Args)]
#[command(after_help = "Examples:
  report run --suite full --device cuda:0 --out results.json
  report run --only overlap.transfer --skip overlap.transfer.pin
  report run --suite full --runs 5 --with pytorch --budget 540s
  report run --suite reference --only crate-calls --with cudarc --with candle --with burn
  report run --resume results.json")]
pub(super) struct Arguments {
    #[command(flatten)]
    what: MeasureArgs,
    #[command(flatten)]
    course: CourseArgument,
    /// The results file to write; where a run is resumed, its own file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Go on with this results file, whose runs were interrupted or are not all there, on the same device
    #[arg(long, value_name = "RESULTS.json", conflicts_with_all = ["suite", "device", "only", "skip", "runs", "with", "machine", "folder"])]
    resume: Option<PathBuf>,
}

/// Which rows of which suite are measured, on which device, and how often.
#[derive(Args)]
pub(super) struct Choice {
    /// A suite's name: quick, full, or one of the course; or a suite's file
    #[arg(long, value_name = "SUITE", default_value = "quick")]
    pub(super) suite: PathBuf,
    /// The device, instead of the suite's: cuda:0, cpu:0, or auto
    #[arg(long, value_name = "NAME")]
    pub(super) device: Option<String>,
    /// Measure only these rows: an identifier or its beginning (overlap.transfer); may be given again. What a
    /// row is computed from is measured, too
    #[arg(long, value_name = "ROWS")]
    pub(super) only: Vec<String>,
    /// Leave these rows out; may be given again
    #[arg(long, value_name = "ROWS")]
    pub(super) skip: Vec<String>,
    /// How often the suite runs, each time in a new process; else as often as the suite says
    #[arg(long, value_name = "N", value_parser = count::<NonZeroU32>, allow_negative_numbers = true)]
    pub(super) runs: Option<NonZeroU32>,
}

impl Choice {
    /// The rows that are asked for. A name that stands for none, of the suite or of any experiment, is refused.
    pub(super) fn selection(&self, suite: &Suite, carried: &AppContext) -> Result<Selection, UsageError> {
        let selection = Selection { only: self.only.clone(), skip: self.skip.clone() };
        if selection.is_all() {
            return Ok(selection);
        }
        let own: Vec<_> = ENGINES.iter().flat_map(|engine| planned(suite, &carried.registry, engine)).collect();
        match carried.registry.refuse(&selection, own.clone()) {
            Some(refusal) => Err(UsageError(format!("{refusal}; see `{} experiments`", invocation()))),
            None => Ok(selection.with_operands(carried.registry.catalog("cuda").with(own).specs())),
        }
    }

    /// Refuses a selection that leaves no row of the suite on any of the engines.
    pub(super) fn check_rows(
        &self,
        suite: &Suite,
        selection: &Selection,
        engines: &[&str],
        carried: &AppContext,
    ) -> Result<(), UsageError> {
        if engines.iter().any(|engine| !selected(suite, selection, engine, carried).is_empty()) {
            return Ok(());
        }
        let (name, program) = (argument(&self.suite), invocation());
        let message = format!(
            "the suite {name} measures none of the rows that are asked for, so nothing is measured and no file is touched; \
             `{program} plan --suite {name}` lists its rows"
        );
        Err(UsageError(message))
    }
}

/// The rows of a suite that are asked for, on an engine.
fn selected(suite: &Suite, selection: &Selection, engine: &str, carried: &AppContext) -> Vec<MetricSpec> {
    planned(suite, &carried.registry, engine).into_iter().filter(|spec| selection.holds(&spec.id)).collect()
}

/// What to run, and with what.
#[derive(Args)]
pub(super) struct MeasureArgs {
    #[command(flatten)]
    choice: Choice,
    /// Measure another system as well, in runs that alternate with those of this one; may be given again. The Rust
    /// systems need a program next to this one or on PATH: `cargo install --path book/peers-rs/candle` installs candle's
    #[arg(long, value_name = "SYSTEM")]
    with: Vec<OtherSystem>,
    /// A name for this machine, kept in the results file, such as node7-gpu3
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
    #[command(flatten)]
    limits: Limits,
}

/// What holds for a run however it begins.
#[derive(Args)]
pub(super) struct Limits {
    /// Begin no process that would end after this time: 540s, 9m
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(super) budget: Option<Duration>,
    /// The Python that has PyTorch
    #[arg(long, value_name = "PATH", default_value = "python3")]
    pub(super) python: PathBuf,
    /// Let NCCL, PyTorch and NVSHMEM use NVLink multicast, which can disturb a shared host; else it is turned off
    #[arg(long)]
    pub(super) allow_multicast: bool,
}

/// A count of what is made once at least.
pub(super) fn count<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| "expected a whole number of 1 or more that a machine can count".to_owned())
}

/// A time as `540s`, `9m` or `1h`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "expected a time such as 540s or 9m".to_owned();
    let time: jiff::SignedDuration = text.parse().map_err(|_| wrong())?;
    time.try_into().map_err(|_| wrong())
}

pub(super) fn execute(arguments: Arguments, carried: &AppContext) -> anyhow::Result<End> {
    let attended = match arguments.resume {
        Some(file) => resume(&file, arguments.out.as_deref(), &arguments.what.limits, carried)?,
        None => {
            let out = arguments.out.unwrap_or_else(|| PathBuf::from("target/report/results.json"));
            let book = arguments.course.project(carried)?;
            measure(&arguments.what, &arguments.course, &book, &out, carried)?
        }
    };
    say!("results: {}", attended.file.display());
    let (results, tolerance) = (&attended.results, Tolerance::default());
    let runs = results.runs_of(&results.run().system).count().max(ENOUGH);
    if let Some(found) = smallest(runs, results.smallest_change(runs, tolerance)) {
        note!("compared with another file: {found}");
    }
    Ok(attended.end())
}

/// Runs what is asked for and writes the results file.
pub(super) fn measure(
    what: &MeasureArgs,
    course: &CourseArgument,
    book: &BookProject,
    out: &Path,
    carried: &AppContext,
) -> anyhow::Result<FinishedRuns> {
    let choice = &what.choice;
    let suite = course.suite(&choice.suite, book, carried)?;
    let selection = choice.selection(&suite, carried)?;
    if let Some(twice) = (1..what.with.len()).find(|place| what.with[..*place].contains(&what.with[*place])) {
        return Err(UsageError(format!("--with: {} stands there twice", what.with[twice].name())).into());
    }
    let with = what.with.iter().map(|peer| peer.name().to_owned()).collect();
    if let Some(refusal) = choice.runs.and_then(Suite::refuse_runs) {
        return Err(UsageError(format!("--runs: {refusal}")).into());
    }
    let plan = Plan { runs: choice.runs.unwrap_or(suite.runs).get(), with };
    if least_chance([plan.runs as usize; 2]) > Tolerance::default().error {
        note!("a comparison of two files of {} names no change; `--runs {ENOUGH}` does", counted(plan.runs, "run"));
    }
    let device = choice.device.as_deref().unwrap_or(&suite.device);
    let mut environment = processes::describe(device, &what.limits)?;
    if let Some(machine) = &what.machine {
        environment.host.name_machine(machine);
    }
    let engine = &environment.device.engine;
    choice.check_rows(&suite, &selection, &[engine], carried)?;
    let runs = (plan.runs as usize).saturating_mul(1 + plan.with.len());
    check_size(&selected(&suite, &selection, engine, carried), &suite.sampling, runs)?;
    let results = empty_results(suite.source.clone(), selection, plan, environment);
    processes::measure(results, &mut Keeper::begin(out)?, &what.with, &what.limits, carried)
}

/// Goes on with what an interrupted run did not finish, and writes the results file; `named` is the one that the user names.
fn resume(file: &Path, named: Option<&Path>, limits: &Limits, carried: &AppContext) -> anyhow::Result<FinishedRuns> {
    let out = named.map_or_else(|| keep::out_of(file), Path::to_owned);
    // Of two processes that go on with one file, the second reads what the first has written.
    let mut keeper = Keeper::resume(file, &out)?;
    let results = Results::read(file)?;
    let is_checkpoint = out != file && keep::out_of(file) == out;
    if !results.is_partial() && !is_checkpoint {
        return Err(UsageError(format!("{}: the run is complete", file.display())).into());
    }
    if named.is_none() && out != file {
        check_other(&out, &results)?;
    }
    // Its process was killed before the results were in their place.
    if !results.is_partial() {
        return processes::finish(results, &mut keeper);
    }
    Suite::of_results(&results.suite, &file.display().to_string(), &carried.registry)?;
    let peers = OtherSystem::named(&results.plan.with)
        .map_err(|UsageError(why)| UsageError(format!("{}: {why}", file.display())))?;
    let was = results.environment();
    let mut is = processes::describe(&was.device.name, limits)?;
    // The user's name for the machine is the file's.
    if let Some(machine) = was.host.machine() {
        is.host.name_machine(machine);
    }
    same_place(file, was, &is)?;
    processes::measure(results, &mut keeper, &peers, limits, carried)
}

/// Refuses to replace a results file that the user did not name, where it holds another run or more of this one.
fn check_other(out: &Path, results: &Results) -> Result<(), UsageError> {
    let Ok(there) = Results::read(out) else { return Ok(()) };
    let (is, was) = (results.run(), there.run());
    let is_other = (&is.id, &is.started, &is.environment) != (&was.id, &was.started, &was.environment);
    let why = match there.is_partial() {
        _ if is_other => "it holds another run",
        false => "the run is complete there",
        true => return Ok(()),
    };
    Err(UsageError(format!("{}: {why}, so it is not replaced; name the results file by --out", out.display())))
}

/// Refuses to go on with what another machine, device or program began.
pub(super) fn same_place(file: &Path, was: &Environment, is: &Environment) -> Result<(), UsageError> {
    let differs = [
        ("device", was.device != is.device),
        ("host", was.host != is.host),
        ("program", (&was.program.version, &was.program.commit) != (&is.program.version, &is.program.commit)),
        ("build", was.program.profile != is.program.profile),
    ];
    let differs: Vec<&str> = differs.into_iter().filter(|(_, differs)| *differs).map(|(what, _)| what).collect();
    if differs.is_empty() {
        return Ok(());
    }
    let (file, differs) = (file.display(), differs.join(" and "));
    Err(UsageError(format!("{file}: another {differs} than here: half a run on each is none")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_has_a_unit() {
        assert_eq!(duration("540s"), Ok(Duration::from_secs(540)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        for wrong in ["", "5", "s", "-1s", "9x", "1e400h", "\u{e9}"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
