//! `report experiments`: lists the experiments and their rows.

use clap::Args;
use serde_json::{Value, json};

use super::output::Form;
use super::terminal;
use super::{AppContext, End, output};
use crate::experiment::RegistryEntry;
use crate::results::{MetricSpec, Provenance, grouped};

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

pub(super) fn execute(arguments: &Arguments, context: &AppContext) -> anyhow::Result<End> {
    let planned = |entry| (entry, RegistryEntry::default_for(entry, "cuda").plan("cuda"));
    let all: Vec<Planned<'_>> = context.registry.entries().iter().map(planned).collect();
    let facts = |(entry, rows): &Planned<'_>| json!({ "name": entry.name, "summary": entry.summary, "rows": rows });
    let facts: Vec<Value> = all.iter().map(facts).collect();
    arguments.form.print("experiments", &json!({ "experiments": facts }), || all.iter().for_each(say))?;
    Ok(End::Well)
}

/// An experiment with the rows that it has on a GPU.
type Planned<'a> = (&'a RegistryEntry, Vec<MetricSpec>);

fn say((RegistryEntry { name, summary, .. }, rows): &Planned<'_>) {
    output::message(&format!("{name}: {summary}"), Some(terminal::TITLE));
    let width = rows.iter().map(|spec| spec.id.len()).max().unwrap_or(0);
    for (heading, rows) in grouped(rows.iter().map(|spec| (spec.group.as_str(), spec))) {
        say!("  {heading}");
        for (id, rows) in grouped(rows.into_iter().map(|spec| (spec.id.as_str(), spec))) {
            // Of those that differ in parameters alone the first.
            let spec = rows[0];
            say!("    {id:width$}  {:<6}  {:<13}  {}", spec.unit.base(), taken_by(spec), spec.label);
        }
    }
}

/// What takes the samples, in a word or two.
fn taken_by(spec: &MetricSpec) -> &'static str {
    match spec.provenance {
        Provenance::Measured { clock, .. } => clock.name(),
        Provenance::Derived { .. } => "derived",
    }
}
