//! `report reproduce`: runs the suite of a results file again, here, and says what agrees and what differs.
//!
//! On another machine it runs as well: whoever asks whether published numbers hold here wants them measured. What
//! differs about the machine is said before the run and stands above the tables.

use std::path::PathBuf;

use clap::Args;

use super::compare::Judging;
use super::keep::Keeper;
use super::processes::{self, Multicast, RunOptions};
use super::{AppContext, End, UsageError, recorded, refuse_input};
use crate::book::Wording;
use crate::results::{Plan, Results, SYNCSCOPE, mismatches, remarks};
use crate::runner::{Suite, empty_results};

/// Run the suite of a results file again on this machine, and say what agrees and what differs
#[derive(Args)]
#[command(after_help = "\
Runs on another machine or driver too, and says first what differs.

Exit codes: 0 where nothing differs, 1 where a row differs, with the error held over all rows, or failed, 2 where nothing could be run, 130 interrupted.

Example:
  report reproduce book/results/one-gpu.json.gz --out target/report/reproduced.json")]
pub(super) struct Arguments {
    /// The results file whose numbers are to be reproduced
    #[arg(value_name = "RESULTS.json")]
    results: PathBuf,
    /// The device, instead of the one of that name that was recorded: cuda:0, cpu:0
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// The results file to write
    #[arg(long, value_name = "FILE", default_value = "target/report/reproduced.json")]
    out: PathBuf,
    #[command(flatten)]
    judging: Judging,
}

pub(super) fn execute(arguments: &Arguments, context: &AppContext) -> anyhow::Result<End> {
    let published = recorded::sound(&arguments.results)?;
    let suite = runnable(&published, arguments, context)?;
    let device = arguments.device.as_deref().unwrap_or(&published.environment().device.name);
    let environment = processes::describe(device, Multicast::Off)?;
    let mut here = published.clone();
    here.runs[0].environment = environment.clone();
    for mismatch in mismatches(&published, &here).iter().chain(&remarks(&published, &here)) {
        note!("{mismatch}");
    }
    let runs = published.runs_of(SYNCSCOPE).count().try_into().unwrap_or(u32::MAX).max(suite.runs.get());
    let plan = Plan { runs, with: Vec::new() };
    let results = empty_results(suite.source, published.selection.clone(), plan, environment);
    let attended = processes::measure(results, &Keeper::begin(&arguments.out)?, &RunOptions::default(), context)?;
    let compared = arguments.judging.compare(&published, &attended.results, Wording::Reproduce)?;
    note!("results: {}", attended.file.display());
    let differs = compared.pairs.iter().any(|pair| pair.survives);
    Ok(match attended.end() {
        End::Well if differs => End::Failed,
        end => end,
    })
}

/// The suite of a results file; refuses one that cannot be run here, and to write over the file.
fn runnable(published: &Results, arguments: &Arguments, context: &AppContext) -> anyhow::Result<Suite> {
    let file = arguments.results.display();
    let suite = Suite::of_results(&published.suite, &file.to_string(), &context.registry)?;
    if let Some(refusal) = context.registry.refuse(&published.selection) {
        return Err(UsageError(format!("{file}: of the rows that it chose: {refusal}")).into());
    }
    refuse_input(&arguments.out, [&arguments.results])?;
    Ok(suite)
}
