//! `report render`: makes the book from results files, without a device.

use std::path::PathBuf;

use clap::Args;
use syncscope::run::Run;

use crate::{End, book};

/// Render the book from results files; needs no device
#[derive(Args)]
#[command(after_help = "Example:\n  report render target/report/results.json --out site-of-my-gpu")]
pub(crate) struct Arguments {
    /// Results files: one column each
    #[arg(required = true, value_name = "RESULTS.json")]
    results: Vec<PathBuf>,
    /// The folder for the book's source and the site
    #[arg(long, value_name = "DIR", default_value = "target/report")]
    out: PathBuf,
}

pub(crate) fn execute(arguments: Arguments) -> anyhow::Result<End> {
    let runs = arguments.results.iter().map(|path| Run::read(path)).collect::<Result<Vec<_>, _>>()?;
    book::render(&runs, &arguments.out)?;
    Ok(End::Well)
}
