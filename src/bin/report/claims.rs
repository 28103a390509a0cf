//! `report claims`: judges the documents' claims by a results file.

use std::path::PathBuf;

use clap::Args;
use syncscope::document::Document;
use syncscope::present::claims_text;
use syncscope::run::Run;

use crate::End;

/// Judge the documents' claims by a results file; needs no device
#[derive(Args)]
#[command(after_help = "Example:\n  report claims target/report/results.json")]
pub(crate) struct Arguments {
    /// The results file
    #[arg(value_name = "RESULTS.json")]
    results: PathBuf,
}

pub(crate) fn execute(arguments: Arguments) -> anyhow::Result<End> {
    let run = Run::read(&arguments.results)?;
    let device = &run.environment.device;
    println!("{} ({}), {}\n", device.name, device.model, run.environment.started);
    print!("{}", claims_text(&Document::embedded()?, &run));
    Ok(End::Well)
}
