//! `report verify`: runs the suite of a results file again, here, and says what agrees and what differs.
//!
//! On another machine it runs as well: whoever asks whether published numbers hold here wants them measured. What
//! differs about the machine is said before the run and stands above the tables.

use std::path::PathBuf;

use clap::Args;
use syncscope::device::Device;
use syncscope::present::Wording;
use syncscope::run::{Environment, Run, mismatches, remarks};

use crate::compare::Judging;
use crate::run::{attended, command_line, end_of};
use crate::{End, UsageError};

/// Run the suite of a results file again on this machine, and say what agrees and what differs
#[derive(Args)]
#[command(after_help = "\
Runs on another machine or driver too, and says first what differs.

Exit codes: 0 where nothing differs, 1 where a row differs or failed, 2 where nothing could be run, 130 interrupted.

Example:
  report verify book/results/h200.json --out target/report/verify.json")]
pub(crate) struct Arguments {
    /// The results file whose numbers are to be verified
    #[arg(value_name = "RESULTS.json")]
    results: PathBuf,
    /// The device, instead of the one of that name that was recorded: cuda:0, cpu:0
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// The results file to write
    #[arg(long, value_name = "FILE", default_value = "target/report/verify.json")]
    out: PathBuf,
    #[command(flatten)]
    judging: Judging,
}

pub(crate) fn execute(arguments: Arguments) -> anyhow::Result<End> {
    let recorded = Run::read(&arguments.results)?;
    runnable(&recorded, &arguments)?;
    let device = Device::open(arguments.device.as_deref().unwrap_or(&recorded.environment.device.name))?;
    let environment = Environment::now(&device, command_line());
    let here = Run { environment: environment.clone(), ..recorded.clone() };
    for mismatch in mismatches(&recorded, &here).iter().chain(&remarks(&recorded, &here)) {
        eprintln!("{mismatch}");
    }
    let (suite, selection) = (&recorded.suite, &recorded.selection);
    let run =
        attended(&arguments.out, |attendance| syncscope::run::run(suite, selection, &device, environment, attendance))?;
    let compared = arguments.judging.compare(&recorded, &run, Wording::Verify)?;
    eprintln!("results: {}", arguments.out.display());
    let differs = compared.pairs.iter().any(|pair| pair.verdict.is_change());
    Ok(match end_of(&run, &arguments.out) {
        End::Well if differs => End::Failed,
        end => end,
    })
}

/// Refuses a record whose suite cannot be run, and to write over it.
fn runnable(recorded: &Run, arguments: &Arguments) -> Result<(), UsageError> {
    let file = arguments.results.display();
    if let Err(error) = recorded.suite.sampling.validate() {
        return Err(UsageError(format!("{file}: {error}")));
    }
    if let Some(name) = recorded.selection.unknown() {
        return Err(UsageError(format!("{file}: it chose rows `{name}`, which this program does not have")));
    }
    let same = |out: PathBuf| arguments.results.canonicalize().is_ok_and(|results| results == out);
    if arguments.out.canonicalize().is_ok_and(same) {
        return Err(UsageError(format!("{file}: the new results would overwrite it; give another --out")));
    }
    Ok(())
}
