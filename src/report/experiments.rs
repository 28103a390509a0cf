//! `report experiments`: lists the experiments and their rows.

use clap::Args;
use serde::Serialize;
use serde_json::json;

use super::output::Form;
use super::terminal::TerminalColour;
use super::{AppContext, End, output};
use crate::experiment::RegistryEntry;
use crate::measure::Clock;
use crate::results::{MetricSpec, Provenance};

/// List the experiments and the rows that each produces
#[derive(Args)]
#[command(after_help = "\
Rows stand under their headings: identifier, unit, how it is taken, label.

Example:
  report experiments")]
pub(super) struct Arguments {
    #[command(flatten)]
    form: Form,
}

/// An experiment with the rows that it has on a GPU.
#[derive(Serialize)]
struct Listed {
    name: &'static str,
    summary: &'static str,
    rows: Vec<MetricSpec>,
}

pub(super) fn execute(arguments: &Arguments, context: &AppContext) -> anyhow::Result<End> {
    let listed = |entry: &RegistryEntry| {
        let rows = entry.default_for("cuda").plan("cuda");
        Listed { name: entry.name, summary: entry.summary, rows }
    };
    let experiments: Vec<Listed> = context.registry.entries().iter().map(listed).collect();
    arguments.form.print("experiments", &json!({ "experiments": experiments }), || experiments.iter().for_each(say))?;
    Ok(End::Well)
}

fn say(Listed { name, summary, rows }: &Listed) {
    output::message(&format!("{name}: {summary}"), Some(TerminalColour::Title));
    let width = rows.iter().map(|spec| spec.id.len()).max().unwrap_or(0);
    for (heading, rows) in by_heading(rows) {
        say!("  {heading}");
        for spec in rows {
            say!("    {:width$}  {:<6}  {:<13}  {}", spec.id, spec.unit.base(), taken_by(spec), spec.label);
        }
    }
}

/// The rows under each heading, in their order; of those that differ in parameters alone the first.
fn by_heading(planned: &[MetricSpec]) -> Vec<(&str, Vec<&MetricSpec>)> {
    let mut headings: Vec<(&str, Vec<&MetricSpec>)> = Vec::new();
    for spec in planned {
        let place = headings.iter().position(|(heading, _)| *heading == spec.group).unwrap_or_else(|| {
            headings.push((&spec.group, Vec::new()));
            headings.len() - 1
        });
        let rows = &mut headings[place].1;
        if !rows.iter().any(|row| row.id == spec.id) {
            rows.push(spec);
        }
    }
    headings
}

/// What takes the samples, in a word or two.
fn taken_by(spec: &MetricSpec) -> &'static str {
    match spec.provenance {
        Provenance::Measured { clock: Clock::Host, .. } => "host clock",
        Provenance::Measured { clock: Clock::DeviceEvents, .. } => "device events",
        Provenance::Measured { clock: Clock::Observed, .. } => "observed",
        Provenance::Derived { .. } => "derived",
    }
}
