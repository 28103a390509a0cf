//! `report claims`: judges the documents' claims by a results file.

use std::path::PathBuf;

use clap::Args;

use super::course::Course;
use super::{Carried, End, recorded};
use crate::book::claims_text;

/// Judge the documents' claims by a results file; needs no device
#[derive(Args)]
#[command(after_help = "Example:\n  report claims target/report/results.json")]
pub(super) struct Arguments {
    /// The results file
    #[arg(value_name = "RESULTS.json")]
    results: PathBuf,
    #[command(flatten)]
    course: Course,
}

pub(super) fn execute(arguments: &Arguments, carried: &Carried) -> anyhow::Result<End> {
    let book = arguments.course.project(carried)?;
    let results = recorded::read(&arguments.results, carried)?;
    let documents = book.documents(&recorded::catalog(std::slice::from_ref(&results), carried))?;
    let device = &results.environment().device;
    say!("{} ({}), {}\n", device.name, device.model, results.run().started);
    show!("{}", claims_text(&documents, &results));
    Ok(End::Well)
}
