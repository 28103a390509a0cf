//! The page on the machines and the method: where each run was made, how it sampled, what it did not measure.

use minijinja::{Value, context};

use super::tables::{Lacks, lacking_of, machine_labels, versions};
use super::templates::{Templates, safe_html};
use super::warning::Warning;
use crate::error::BookError;
use crate::measure::Protocol;
use crate::present::{Cell, Column, Group, Missing, Role, Table, TableRow};
use crate::results::{Diagnosed, MissingReason, Results, Run};
use crate::units::{Scale, Unit};

/// The page as Markdown.
pub(super) fn render(templates: &Templates<'_>, results: &[Results]) -> Result<String, BookError> {
    let machines = results.iter().zip(machine_labels(results)).map(|(results, machine)| {
        let has = |name: &str| results.run().order.iter().any(|experiment| experiment.name == name);
        let others = results.runs.iter().filter(|run| run.system != results.run().system);
        context! {
            machine,
            suite => results.title(),
            warnings => Warning::of(results).iter().map(ToString::to_string).collect::<Vec<_>>(),
            environment => safe_html(environment(results.run()).to_html()),
            sampling => safe_html(sampling(results).to_html()),
            telemetry => telemetry(results.run()).map(|table| safe_html(table.to_html())),
            audited => has("self-audit"),
            ceilings => has("ceilings"),
            systems => others.map(|run| safe_html(system(results, run).to_html())).collect::<Vec<_>>(),
            diagnoses => diagnoses(results).map(|table| safe_html(table.to_html())),
            lacking => lacking(results).map(|table| safe_html(table.to_html())),
            absences => absences(results).map(|table| safe_html(table.to_html())),
            work => work(results).map(|table| safe_html(table.to_html())),
        }
    });
    templates.render("machine.md.j2", context! { machines => machines.collect::<Vec<Value>>() })
}

fn environment(run: &Run) -> Table {
    let (environment, text) = (&run.environment, |text: &str| Cell::Text(text.to_owned()));
    let (host, device, program) = (&environment.host, &environment.device, &environment.program);
    let unknown = || Cell::Missing(Missing { state: "not known".to_owned(), reason: None });
    let known = |value: Option<String>| value.map_or_else(unknown, Cell::Text);
    let bytes = |bytes: Option<u64>| known(bytes.map(|bytes| Unit::Bytes.format(bytes as f64, 4)));
    let dirty = match program.dirty {
        Some(true) => ", with uncommitted changes",
        Some(false) | None => "",
    };
    let build = program.profile.as_ref().map(|profile| format!(", {profile} build")).unwrap_or_default();
    let mut facts = vec![
        ("device".to_owned(), text(&device.model)),
        ("opened as".to_owned(), text(&device.name)),
        ("engine".to_owned(), text(&device.engine)),
        ("device memory".to_owned(), bytes(device.memory_bytes)),
        ("a blocked host thread".to_owned(), known(device.wait_policy.clone())),
    ];
    facts.extend(run.environment.facts().map(|(name, value)| (name.clone(), text(value))));
    facts.extend([
        ("host processor".to_owned(), text(&host.cpu)),
        ("logical processors".to_owned(), known(host.logical_cpus.map(|cpus| cpus.to_string()))),
        ("host memory".to_owned(), bytes(host.memory_bytes)),
        ("system".to_owned(), known(host.system.clone())),
        ("run began".to_owned(), text(&run.started)),
        ("program".to_owned(), Cell::Text(format!("{}{build}", versions(program)))),
        ("commit".to_owned(), known(program.commit.as_ref().map(|commit| format!("{commit}{dirty}")))),
        ("command".to_owned(), Cell::Text(program.command.join(" "))),
    ]);
    Table::facts("Environment", ["fact", "value"], facts)
}

/// The suite's sampling; as it stands in the file where it is none.
fn sampling(results: &Results) -> Table {
    let stated = results.suite.get("sampling").cloned().unwrap_or_default();
    let Ok(plan) = serde_json::from_value::<Protocol>(stated.clone()) else {
        let facts = [("sampling".to_owned(), Cell::Text(stated.to_string()))];
        return Table::facts("Sampling", ["rule", "value"], facts);
    };
    let rule = |stated: Option<String>| stated.map_or(Cell::Nothing, Cell::Text);
    let error = plan.relative_error.map(|error| format!("± {}", Scale::PERCENT.significant(error, 2)));
    let facts = [
        ("warm-up rounds".to_owned(), Cell::Text(plan.warmup.to_string())),
        ("stop after samples".to_owned(), rule(plan.samples.map(|samples| samples.to_string()))),
        ("stop at a relative error of".to_owned(), rule(error)),
        ("stop after".to_owned(), rule(plan.time_limit.map(|limit| Unit::Seconds.format(limit, 3)))),
        ("seed of the order".to_owned(), Cell::Text(plan.seed.to_string())),
    ];
    Table::facts("Sampling", ["rule", "value"], facts)
}

/// The device's sensors in the order of time, where it has any.
fn telemetry(run: &Run) -> Option<Table> {
    let cell = |value: Option<String>| value.map_or(Cell::Nothing, Cell::Text);
    let row = |sample: &crate::results::TelemetrySample| {
        let sensors = &sample.sensors;
        TableRow {
            id: None,
            label: sample.experiment.clone(),
            cells: vec![
                cell(sample.at.map(|at| Unit::Seconds.format(at, 3))),
                cell(sensors.sm_clock_mhz.map(|mhz| format!("{mhz} MHz"))),
                cell(sensors.memory_clock_mhz.map(|mhz| format!("{mhz} MHz"))),
                cell(sensors.temperature_c.map(|degrees| format!("{degrees} °C"))),
                cell(sensors.power_w.map(|watts| format!("{watts:.0} W"))),
                cell((!sensors.throttle_reasons.is_empty()).then(|| sensors.throttle_reasons.join(", "))),
            ],
        }
    };
    let headings = ["at", "processor clock", "memory clock", "temperature", "power", "held back by"];
    table("Telemetry", "before and after", &headings, run.telemetry.iter().map(row).collect())
}

/// The least work that lies in each row, where that is known, and what limits it.
fn work(results: &Results) -> Option<Table> {
    let mut rows: Vec<TableRow> = Vec::new();
    for spec in results.lookup().specs() {
        let Some(work) = &spec.work else { continue };
        let limit = format!("{} by {}", work.limit.counts(), work.limit.name());
        let row = TableRow {
            id: Some(spec.id.clone()),
            label: spec.id.clone(),
            cells: vec![Cell::Text(work.formula.clone()), Cell::Text(limit)],
        };
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    table("The least work of each row", "row", &["work of a sample", "unit and peak rate"], rows)
}

/// Another system that measured the same work on the machine.
fn system(results: &Results, run: &Run) -> Table {
    let text = |text: &str| Cell::Text(text.to_owned());
    let rows = results.lookup_of(&run.system).specs().count();
    let (device, program) = (&run.environment.device, &run.environment.program);
    let mut facts = vec![
        ("began".to_owned(), text(&run.started)),
        ("program".to_owned(), Cell::Text(versions(program))),
        ("device".to_owned(), text(&device.model)),
    ];
    facts.extend(run.environment.facts().map(|(name, value)| (name.clone(), text(value))));
    facts.extend([
        ("host processor".to_owned(), text(&run.environment.host.cpu)),
        ("rows".to_owned(), Cell::Text(rows.to_string())),
    ]);
    Table::facts(&format!("{} on the same machine", run.system), ["fact", "value"], facts)
}

/// The diagnoses of the samples of each row of each system: cause and remedy.
fn diagnoses(results: &Results) -> Option<Table> {
    let of_system = |system: &'_ str| {
        let text = |text: &str| Cell::Text(text.to_owned());
        let row = |(spec, diagnosis): Diagnosed<'_>| TableRow {
            id: None,
            label: spec.title(),
            cells: vec![text(system), text(diagnosis.name()), Cell::Text(diagnosis.to_string())],
        };
        results.diagnoses_of(system).into_iter().map(row).collect::<Vec<TableRow>>()
    };
    let rows = results.systems().into_iter().flat_map(of_system).collect();
    table("Diagnostics", "row", &["system", "what", "cause and remedy"], rows)
}

/// The runs that lack rows which other runs of their system measured.
fn lacking(results: &Results) -> Option<Table> {
    let row = |lacks: Lacks| TableRow {
        id: None,
        label: lacks.run,
        cells: [vec![Cell::Text(lacks.rows)], absence_cells(&lacks.reason)].concat(),
    };
    let rows = lacking_of(results).into_iter().map(row).collect();
    table("Rows that a run lacks", "run", &["rows", "state", "reason"], rows)
}

/// What was not measured, and why: rows that share state and reason stand together.
fn absences(results: &Results) -> Option<Table> {
    let lookup = results.lookup();
    let mut reasons: Vec<(MissingReason, Vec<String>)> = Vec::new();
    for (spec, metric) in lookup.metrics() {
        let Some(absence) = metric.err() else { continue };
        // Of what has no meaning, the parameters do not matter.
        let is_meaningless = matches!(absence, MissingReason::NotApplicable(_));
        let title = if is_meaningless { spec.id.clone() } else { spec.title() };
        match reasons.iter_mut().find(|(known, _)| *known == absence) {
            Some((_, titles)) if titles.contains(&title) => {}
            Some((_, titles)) => titles.push(title),
            None => reasons.push((absence, vec![title])),
        }
    }
    let row = |(absence, titles): (MissingReason, Vec<String>)| {
        let cells = absence_cells(&absence);
        TableRow { id: None, label: titles.join(", "), cells }
    };
    table("Not measured", "rows", &["state", "reason"], reasons.into_iter().map(row).collect())
}

fn absence_cells(absence: &MissingReason) -> Vec<Cell> {
    let reason = absence.reason().map_or(Cell::Nothing, |reason| Cell::Text(reason.to_owned()));
    vec![Cell::Text(absence.state().to_owned()), reason]
}

fn table(title: &str, label: &str, headings: &[&str], rows: Vec<TableRow>) -> Option<Table> {
    let facts = headings.iter().map(|heading| Column::new(Role::Fact, *heading));
    let columns = std::iter::once(Column::new(Role::Label, label)).chain(facts).collect();
    filled(Table { title: title.to_owned(), columns, groups: vec![Group { label: None, rows }] })
}

/// The table, unless it has no rows.
fn filled(table: Table) -> Option<Table> {
    table.groups.iter().any(|group| !group.rows.is_empty()).then_some(table)
}
