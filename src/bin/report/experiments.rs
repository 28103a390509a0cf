//! `report experiments`: lists the experiments and their rows.

use clap::Args;
use syncscope::experiment::Entry;

use crate::End;

/// List the experiments and the rows that each leaves
#[derive(Args)]
#[command(after_help = "Example:\n  report experiments")]
pub(crate) struct Arguments {}

pub(crate) fn execute(_: Arguments) -> anyhow::Result<End> {
    for entry in Entry::all("cuda") {
        println!("{}: {}", entry.name(), entry.summary());
        for row in entry.experiment().rows() {
            println!("  {:<52} {}", row.id, row.what);
        }
    }
    Ok(End::Well)
}
