//! `report schema`: prints the JSON Schema of suites, documents, results files, what other programs measured, audits or budgets.

use clap::{Args, ValueEnum};

use super::{Carried, End, output};
use crate::audit::{AuditReport, Budget};
use crate::book::document::Document;
use crate::results::{Results, System};
use crate::runner::Suite;

/// Print the JSON Schema of suites, documents, results files, what other programs measured, audits or budgets
#[derive(Args)]
#[command(after_help = "Example:\n  report schema suite > suite.schema.json")]
pub(super) struct Arguments {
    /// Of what
    of: Kind,
}

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    /// Suites (YAML)
    Suite,
    /// Documents (YAML)
    Document,
    /// Results files (JSON)
    Results,
    /// What another program measured (JSON)
    System,
    /// Audits (JSON)
    Audit,
    /// Budgets of audits (YAML)
    Budget,
}

pub(super) fn execute(arguments: &Arguments, carried: &Carried) -> anyhow::Result<End> {
    let schema = match arguments.of {
        Kind::Suite => Suite::schema(&carried.registry),
        Kind::Document => Document::schema(),
        Kind::Results => schemars::schema_for!(Results),
        Kind::System => schemars::schema_for!(System),
        Kind::Audit => schemars::schema_for!(AuditReport),
        Kind::Budget => schemars::schema_for!(Budget),
    };
    output::print_json(&schema)?;
    Ok(End::Well)
}
