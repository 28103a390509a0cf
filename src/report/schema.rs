//! `report schema`: prints the JSON Schema of a course's files, of results files, what other programs measured, audits or budgets.

use clap::{Args, ValueEnum};

use super::{AppContext, End, output};
use crate::book::BookProject;
use crate::book::document::{Document, Hardware, Texts};
use crate::results::{Results, System};
use crate::runner::Suite;
use syncscope_audit::{AuditReport, Budget};

/// Print the JSON Schema of a course's files, of results files, what other programs measured, audits or budgets
#[derive(Args)]
#[command(after_help = "Example:\n  report schema suite > suite.schema.json")]
pub(super) struct Arguments {
    /// Of what
    of: Kind,
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum Kind {
    /// Suites (YAML)
    Suite,
    /// Documents (YAML)
    Document,
    /// The lessons of a course (lessons.yaml)
    Lessons,
    /// The texts that documents mirror (texts.yaml)
    Texts,
    /// Peak rates of hardware (hardware.yaml)
    Hardware,
    /// Results files (JSON)
    Results,
    /// What another program measured (JSON)
    System,
    /// Audits (JSON)
    Audit,
    /// Budgets of audits (YAML)
    Budget,
}

impl Kind {
    /// Those of which a course has files.
    pub(super) const OF_A_COURSE: [Self; 5] = [Self::Suite, Self::Document, Self::Lessons, Self::Texts, Self::Hardware];

    pub(super) fn schema(self, context: &AppContext) -> schemars::Schema {
        match self {
            Kind::Suite => Suite::schema(&context.registry),
            Kind::Document => schemars::schema_for!(Document),
            Kind::Lessons => BookProject::lessons_schema(),
            Kind::Texts => schemars::schema_for!(Texts),
            Kind::Hardware => schemars::schema_for!(Hardware),
            Kind::Results => schemars::schema_for!(Results),
            Kind::System => schemars::schema_for!(System),
            Kind::Audit => schemars::schema_for!(AuditReport),
            Kind::Budget => schemars::schema_for!(Budget),
        }
    }
}

pub(super) fn execute(arguments: &Arguments, context: &AppContext) -> anyhow::Result<End> {
    output::print_json(&arguments.of.schema(context))?;
    Ok(End::Well)
}
