//! `report attach`: shows what another program measured of the same work, and puts it beside a run.

use std::fs;
use std::path::PathBuf;

use clap::Args;

use super::{AppContext, End, UsageError, recorded};
use crate::book::system_table;
use crate::error::{FileError, at};
use crate::files::Target;
use crate::results::System;

/// Show what another program measured of the same work, or put it beside a run; needs no device
#[derive(Args)]
#[command(after_help = "\
The file is one such as book/peers/pytorch.py writes. Beside a run it gets a column in the tables of the book; it is \
refused where it was measured on another machine than the run.

Exit codes: 0, 2 where a file cannot be read or the system is of another machine.

Examples:
  report plan --suite full > plan.json
  python3 book/peers/pytorch.py --plan plan.json --out pytorch.json
  report attach pytorch.json --into results.json
  report render results.json")]
pub(super) struct Arguments {
    /// What the other program measured
    #[arg(value_name = "SYSTEM.json")]
    system: PathBuf,
    /// The results file to put it in; an earlier one of the same program gives way
    #[arg(long, value_name = "RESULTS.json")]
    into: Option<PathBuf>,
}

pub(super) fn execute(arguments: &Arguments, context: &AppContext) -> anyhow::Result<End> {
    let Some(path) = &arguments.into else {
        let catalog = recorded::catalog(&[], context);
        let results = System::read(&arguments.system, &catalog)?.into_results(&catalog);
        show!("{}\n", system_table(&results, &results.run().system).to_console());
        return Ok(End::Well);
    };
    if !fs::metadata(path).map_err(at(path))?.is_file() {
        return Err(UsageError(format!("{}: it is read and replaced, and is no plain file", path.display())).into());
    }
    // From the reading to the writing: of two at once, the second adds to what the first has written.
    let target = Target::claim_to_add(path).map_err(at(path))?;
    let mut results = recorded::sound(path)?;
    let system = System::read(&arguments.system, &recorded::catalog(std::slice::from_ref(&results), context))?;
    let (name, rows) = (system.name.clone(), system.rows.len());
    if let Err(mismatches) = results.attach(system) {
        let lines: String = mismatches.iter().map(|mismatch| format!("\n{mismatch}")).collect();
        let (system, results) = (arguments.system.display(), path.display());
        return Err(UsageError(format!("{system} was measured on another machine than {results}:{lines}")).into());
    }
    target.write(&results.to_content(path)?).map_err(FileError::unwritten(path))?;
    say!("{name}: {rows} rows put into {}", path.display());
    Ok(End::Well)
}
