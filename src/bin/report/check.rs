//! `report check`: validates a suite without running it.

use clap::Args;

use crate::{End, suite};

/// Validate a suite; runs nothing
#[derive(Args)]
#[command(after_help = "Example:\n  report check book/suites/quick.yaml")]
pub(crate) struct Arguments {
    /// A suite's file, or the name of one that the program carries
    suite: String,
}

pub(crate) fn execute(arguments: Arguments) -> anyhow::Result<End> {
    let suite = suite::load(&arguments.suite)?;
    let names = |engine| suite.experiments_on(engine).iter().map(|entry| entry.name()).collect::<Vec<_>>().join(", ");
    println!("{}: good. On a GPU: {}. On the CPU engine: {}.", arguments.suite, names("cuda"), names("cpu"));
    Ok(End::Well)
}
