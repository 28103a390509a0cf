//! `report render`: makes the book from results files, without a device.

use std::path::PathBuf;

use clap::Args;

use super::course::{self, Place};
use super::{Carried, End, recorded};

/// Render the book from results files; needs no device
#[derive(Args)]
#[command(after_help = "Examples:
  report render target/report/results.json --out site-of-my-gpu
  report render book/results/nvidia-h200.json --course my-course")]
pub(super) struct Arguments {
    /// Results files: one column each
    #[arg(required = true, value_name = "RESULTS.json")]
    results: Vec<PathBuf>,
    #[command(flatten)]
    place: Place,
}

pub(super) fn execute(arguments: &Arguments, carried: &Carried) -> anyhow::Result<End> {
    let book = arguments.place.course.project(carried)?;
    course::check_place(&book, &arguments.place.out)?;
    let all = arguments.results.iter().map(|path| recorded::read(path, carried)).collect::<Result<Vec<_>, _>>()?;
    course::render(&all, &book, &arguments.place.out, carried)?;
    Ok(End::Well)
}
