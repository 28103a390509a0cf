//! `report render`: makes the book from results files, without a device.

use std::path::PathBuf;

use clap::Args;
use syncscope::run::Run;

use crate::End;
use crate::book::{self, Place};

/// Render the book from results files; needs no device
#[derive(Args)]
#[command(after_help = "Examples:
  report render target/report/results.json --out site-of-my-gpu
  report render book/results/nvidia-h200.json --course my-course")]
pub(crate) struct Arguments {
    /// Results files: one column each
    #[arg(required = true, value_name = "RESULTS.json")]
    results: Vec<PathBuf>,
    #[command(flatten)]
    place: Place,
}

pub(crate) fn execute(arguments: Arguments) -> anyhow::Result<End> {
    let course = arguments.place.course()?;
    let runs = arguments.results.iter().map(|path| Run::read(path)).collect::<Result<Vec<_>, _>>()?;
    book::render(&runs, &course, &arguments.place.out)?;
    Ok(End::Well)
}
