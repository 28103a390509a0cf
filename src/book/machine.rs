//! The page on the machines and the method: where each run was made, how it sampled, what it did not measure.

use minijinja::{Value, context};

use super::templates::{Templates, safe_html};
use super::warning::Warning;
use crate::error::BookError;
use crate::experiment::{MissingReason, WORK, titled};
use crate::present::{Cell, Column, Group, Missing, Role, Row, Table, machine_labels};
use crate::run::{Peer, Run};
use crate::units::Unit;

/// The page as Markdown.
pub(super) fn render(templates: &Templates<'_>, runs: &[Run]) -> Result<String, BookError> {
    let machines = runs.iter().zip(machine_labels(runs)).map(|(run, machine)| {
        let has = |name: &str| run.experiments.iter().any(|experiment| experiment.name == name);
        context! {
            machine,
            suite => run.suite.title.as_str(),
            warnings => Warning::of(run).iter().map(ToString::to_string).collect::<Vec<_>>(),
            environment => safe_html(environment(run).to_html()),
            sampling => safe_html(sampling(run).to_html()),
            sensors => sensors(run).map(|table| safe_html(table.to_html())),
            audited => has("self-audit"),
            ceilings => has("ceilings"),
            peers => run.peers.iter().map(|peer| safe_html(beside(peer).to_html())).collect::<Vec<_>>(),
            diagnoses => diagnoses(run).map(|table| safe_html(table.to_html())),
            absences => absences(run).map(|table| safe_html(table.to_html())),
        }
    });
    let context = context! {
        machines => machines.collect::<Vec<Value>>(),
        work => safe_html(work().to_html()),
    };
    templates.render("machine.md.j2", context)
}

fn environment(run: &Run) -> Table {
    let (environment, text) = (&run.environment, |text: &str| Cell::Text(text.to_owned()));
    let (host, device, program) = (&environment.host, &environment.device, &environment.program);
    let bytes = |bytes: u64| Cell::Text(Unit::Bytes.format(bytes as f64, 4));
    let unknown = || Missing { state: "not known".to_owned(), reason: None };
    let dirty = match program.dirty {
        Some(true) => ", with uncommitted changes",
        Some(false) | None => "",
    };
    let mut facts = vec![
        ("device".to_owned(), text(&device.model)),
        ("opened as".to_owned(), text(&device.name)),
        ("engine".to_owned(), text(&device.engine)),
        ("device memory".to_owned(), device.memory_bytes.map_or(Cell::Missing(unknown()), bytes)),
        ("a blocked host thread".to_owned(), text(&device.wait_policy)),
    ];
    facts.extend(device.facts.iter().map(|(name, value)| (name.clone(), text(value))));
    facts.extend([
        ("host processor".to_owned(), text(&host.cpu)),
        ("logical processors".to_owned(), Cell::Text(host.logical_cpus.to_string())),
        ("host memory".to_owned(), bytes(host.memory_bytes)),
        ("system".to_owned(), text(&host.system)),
        ("run began".to_owned(), text(&environment.started)),
        ("program".to_owned(), Cell::Text(format!("syncscope {}, {} build", program.version, program.profile))),
        (
            "commit".to_owned(),
            program.commit.as_ref().map_or(Cell::Missing(unknown()), |commit| Cell::Text(format!("{commit}{dirty}"))),
        ),
        ("command".to_owned(), Cell::Text(program.command.join(" "))),
    ]);
    Table::facts("Where the run was made", ["fact", "value"], facts)
}

fn sampling(run: &Run) -> Table {
    let plan = &run.suite.sampling;
    let rule = |stated: Option<String>| stated.map_or(Cell::Nothing, Cell::Text);
    let error = plan.relative_error.map(|error| format!("± {} %", crate::units::significant(error * 100.0, 2)));
    let facts = [
        ("warm-up rounds".to_owned(), Cell::Text(plan.warmup.to_string())),
        ("stop after samples".to_owned(), rule(plan.samples.map(|samples| samples.to_string()))),
        ("stop at a relative error of".to_owned(), rule(error)),
        ("stop after".to_owned(), rule(plan.time_limit.map(|limit| Unit::Seconds.format(limit, 3)))),
        ("seed of the order".to_owned(), Cell::Text(plan.seed.to_string())),
    ];
    Table::facts("How it sampled", ["rule", "value"], facts)
}

/// The device's sensors around each experiment, where it has any.
fn sensors(run: &Run) -> Option<Table> {
    let mut rows = Vec::new();
    for experiment in &run.experiments {
        for (when, telemetry) in [("before", &experiment.before), ("after", &experiment.after)] {
            let Some(telemetry) = telemetry else { continue };
            let cell = |value: Option<String>| value.map_or(Cell::Nothing, Cell::Text);
            rows.push(Row {
                id: None,
                label: format!("{when} {}", experiment.name),
                cells: vec![
                    cell(telemetry.sm_clock_mhz.map(|mhz| format!("{mhz} MHz"))),
                    cell(telemetry.memory_clock_mhz.map(|mhz| format!("{mhz} MHz"))),
                    cell(telemetry.temperature_c.map(|degrees| format!("{degrees} °C"))),
                    cell(telemetry.power_w.map(|watts| format!("{watts:.0} W"))),
                    cell((!telemetry.throttle_reasons.is_empty()).then(|| telemetry.throttle_reasons.join(", "))),
                ],
            });
        }
    }
    let headings = ["processor clock", "memory clock", "temperature", "power", "held back by"];
    table("What the device's sensors said", "when", &headings, rows)
}

/// The work of the rows by their parameters, and what limits it.
fn work() -> Table {
    let rows = WORK.iter().map(|work| {
        let limit = format!("{} by {}", work.ceiling.counts(), work.ceiling.name());
        Row { id: None, label: work.rows.join(", "), cells: vec![Cell::Text(work.formula()), Cell::Text(limit)] }
    });
    let columns = vec![
        Column::new(Role::Label, "rows"),
        Column::new(Role::Fact, "work"),
        Column::new(Role::Fact, "unit and ceiling"),
    ];
    let groups = vec![Group { label: None, rows: rows.collect() }];
    Table { title: "The work of a row by its parameters".to_owned(), columns, groups }
}

/// Another program that measured the same work on the machine.
fn beside(peer: &Peer) -> Table {
    let text = |text: &str| Cell::Text(text.to_owned());
    let optional = |value: &Option<String>| value.as_deref().map_or(Cell::Nothing, text);
    let mut facts = vec![("began".to_owned(), text(&peer.started)), ("device".to_owned(), text(&peer.machine.model))];
    facts.extend(peer.versions.iter().map(|(name, version)| (name.clone(), text(version))));
    facts.extend([
        ("fingerprint".to_owned(), optional(&peer.machine.fingerprint)),
        ("driver".to_owned(), optional(&peer.machine.driver)),
        ("host processor".to_owned(), optional(&peer.machine.cpu)),
        ("rows".to_owned(), Cell::Text(peer.rows.len().to_string())),
    ]);
    Table::facts(&format!("What {} measured beside it", peer.name), ["fact", "value"], facts)
}

/// What is odd about the samples of each row: cause and remedy.
fn diagnoses(run: &Run) -> Option<Table> {
    let rows = run.diagnoses().into_iter().map(|(id, parameters, diagnosis)| Row {
        id: None,
        label: titled(&id, &parameters),
        cells: vec![Cell::Text(diagnosis.name().to_owned()), Cell::Text(diagnosis.to_string())],
    });
    table("What is odd about the samples", "row", &["what", "cause and remedy"], rows.collect())
}

/// What was not measured, and why.
fn absences(run: &Run) -> Option<Table> {
    let rows = run.experiments.iter().flat_map(|experiment| {
        experiment.rows.iter().filter_map(|row| {
            let absence = row.metric().err()?;
            Some(Row { id: None, label: titled(&row.id, &row.parameters), cells: absence_cells(&absence) })
        })
    });
    table("What was not measured", "row", &["state", "reason"], rows.collect())
}

fn absence_cells(absence: &MissingReason) -> Vec<Cell> {
    let reason = absence.reason().map_or(Cell::Nothing, |reason| Cell::Text(reason.to_owned()));
    vec![Cell::Text(absence.state().to_owned()), reason]
}

fn table(title: &str, label: &str, headings: &[&str], rows: Vec<Row>) -> Option<Table> {
    let facts = headings.iter().map(|heading| Column::new(Role::Fact, *heading));
    let columns = std::iter::once(Column::new(Role::Label, label)).chain(facts).collect();
    filled(Table { title: title.to_owned(), columns, groups: vec![Group { label: None, rows }] })
}

/// The table, unless it has no rows.
fn filled(table: Table) -> Option<Table> {
    table.groups.iter().any(|group| !group.rows.is_empty()).then_some(table)
}
