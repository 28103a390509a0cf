//! `report schema`: prints the JSON Schema of suites or of results files.

use clap::{Args, ValueEnum};
use syncscope::run::{Run, Suite};

use crate::End;

/// Print the JSON Schema of suites or of results files, for an editor to complete them
#[derive(Args)]
#[command(after_help = "Example:\n  report schema suite > suite.schema.json")]
pub(crate) struct Arguments {
    /// Of what
    of: Kind,
}

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    /// Suites (YAML)
    Suite,
    /// Results files (JSON)
    Results,
}

pub(crate) fn execute(arguments: Arguments) -> anyhow::Result<End> {
    let schema = match arguments.of {
        Kind::Suite => schemars::schema_for!(Suite),
        Kind::Results => schemars::schema_for!(Run),
    };
    println!("{}", serde_json::to_string_pretty(&schema)?);
    Ok(End::Well)
}
