//! `--json`: what a command prints, for a program.
//!
//! A command that prints facts puts them into a value. The value is said in words, or written as it is, with the version of
//! the schema and the command before it. A version goes up where a name goes or changes its meaning, not where one comes.

use clap::Args;
use serde::Serialize;

use super::output;

/// The version of what `--json` prints.
const SCHEMA_VERSION: u32 = 1;

/// Facts that a command prints.
pub(super) trait Facts: Serialize {
    /// The command, in what it prints.
    const COMMAND: &'static str;

    /// Says them in words.
    fn say(&self);
}

/// How facts are printed.
#[derive(Args)]
pub(super) struct Form {
    /// Print JSON, for a program; `schema_version` says what its names mean
    #[arg(long, help_heading = "Output")]
    pub(super) json: bool,
}

#[derive(Serialize)]
struct Document<'a, F> {
    schema_version: u32,
    command: &'static str,
    #[serde(flatten)]
    facts: &'a F,
}

impl Form {
    /// Prints facts.
    pub(super) fn print<F: Facts>(&self, facts: &F) -> anyhow::Result<()> {
        if self.json {
            return print_json(F::COMMAND, facts);
        }
        facts.say();
        Ok(())
    }
}

/// Prints what a command found, with the version of the schema.
pub(super) fn print_json<T: Serialize>(command: &'static str, facts: &T) -> anyhow::Result<()> {
    output::print_json(&Document { schema_version: SCHEMA_VERSION, command, facts })?;
    Ok(())
}
