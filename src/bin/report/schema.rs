//! `report schema`: prints the JSON Schema of suites, of results files or of what other programs measured.

use clap::{Args, ValueEnum};
use syncscope::run::{Peer, Run, Suite};

use crate::End;

/// Print the JSON Schema of suites, of results files or of what other programs measured
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
    /// What another program measured (JSON)
    Peer,
}

pub(crate) fn execute(arguments: Arguments) -> anyhow::Result<End> {
    let schema = match arguments.of {
        Kind::Suite => schemars::schema_for!(Suite),
        Kind::Results => schemars::schema_for!(Run),
        Kind::Peer => schemars::schema_for!(Peer),
    };
    println!("{}", serde_json::to_string_pretty(&schema)?);
    Ok(End::Well)
}
