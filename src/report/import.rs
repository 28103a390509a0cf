//! `report import`: makes a results file of what nvbench or criterion measured.

use std::path::PathBuf;

use clap::Args;

use super::output_file::OutputFile;
use super::{End, argument, invocation};
use crate::files::is_kind;
use crate::results::{NEWEST_BASELINE, Results};
use crate::units::counted;

/// Make a results file of what nvbench or criterion measured, to compare it; needs no device
#[derive(Args)]
#[command(after_help = "\
Each of nvbench's files (--jsonbin, which keeps the samples, or --json) is of one process, and so is each baseline of \
criterion: a run. `compare` needs several runs of each side.

Exit codes: 0, 2 where a file cannot be read or was measured on another device than those before it.

Examples:
  report import before-1.json before-2.json before-3.json before-4.json --out before.json
  report import target/criterion --baseline main-1 --baseline main-2 --out main.json
  report compare before.json after.json")]
pub(super) struct Arguments {
    /// nvbench's files, or criterion's folder (target/criterion)
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// A baseline of criterion's folder (cargo bench -- --save-baseline NAME); may be given again
    #[arg(long, value_name = "NAME", default_value = NEWEST_BASELINE)]
    baseline: Vec<String>,
    /// The results file to write
    #[arg(long, value_name = "RESULTS.json")]
    out: PathBuf,
}

pub(super) fn execute(arguments: &Arguments) -> anyhow::Result<End> {
    let results = Results::import(&arguments.paths, &arguments.baseline)?;
    let file = OutputFile::claim(&arguments.out, |there| is_kind(Results::read(there)))?;
    file.write(&results.to_content(&arguments.out)?)?;
    let (system, file) = (&results.run().system, arguments.out.display());
    let (runs, rows) = (counted(results.runs.len(), "run"), counted(results.rows.len(), "row"));
    say!(
        "{system}: {runs} of {rows} are in {file}; `{} compare {} OTHER.json` compares it",
        invocation(),
        argument(&arguments.out)
    );
    Ok(End::Well)
}
