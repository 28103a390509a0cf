//! The page on the machines and the method: where each run was made, how it sampled, what it did not measure.

use minijinja::{Value, context};

use super::data;
use super::in_order::{each_once, grouped};
use super::source::Book;
use super::tables::{Lacks, absence, lacking_of, row_cell, versions};
use super::warning::Warning;
use crate::error::BookError;
use crate::measure::{Estimate, Protocol};
use crate::present::{Cell, Column, Missing, Role, Table, TableGroup, TableRow};
use crate::results::{
    Catalog, Comparisons, ExperimentRun, HalfWidths, Limit, MetricSpec, MissingReason, Results, Run, SameCode,
    TelemetrySample, throttle_reasons,
};
use crate::units::{Scale, Unit};

/// The page as Markdown: of each machine ten facts and the warnings. `catalog` says in which unit a row was declared.
pub(super) fn render(book: &Book<'_>, catalog: &Catalog) -> Result<String, BookError> {
    let machines = (1..).zip(book.machines.named()).map(|(number, (results, machine))| {
        let warnings = Warning::of(results).into_iter().chain(Warning::of_units(results, catalog));
        let diagnoses: usize = results.systems().iter().map(|system| results.diagnoses_of(system).len()).sum();
        let facts = facts(results).into_iter().map(|(name, value)| context! { name, value });
        context! {
            machine,
            facts => facts.collect::<Vec<Value>>(),
            warnings => warnings.map(|warning| warning.to_string()).collect::<Vec<_>>(),
            diagnoses,
            data => place(number),
        }
    });
    let context = context! {
        same_code => same_code(SameCode::of(book.results)),
        widths => widths(book.results),
        machines => machines.collect::<Vec<Value>>(),
    };
    book.templates.render("machine.md.j2", context)
}

/// Where the rest of what is known about a machine lies, beside the pages. `number` is that of its file, from 1.
pub(super) fn place(number: usize) -> String {
    format!("data/machine-{number}.csv")
}

/// What the page does not show of a machine: a line for each cell of each table.
pub(super) fn data(results: &Results) -> Result<Vec<u8>, BookError> {
    let run = results.run();
    let others = results.systems().into_iter().filter(|other| *other != run.system);
    let others = others.flat_map(|other| system(results, other));
    let tables =
        [Some(environment(run)), Some(sampling(results)), telemetry(run), algorithms(run)].into_iter().flatten();
    let found = [diagnoses(results), lacking(results), absences(results), twice(results), work(results)];
    let tables = tables.chain(others).chain(found.into_iter().flatten());
    data::csv(["table", "group", "row", "column", "value"], tables.flat_map(records).collect())
}

fn records(table: Table) -> Vec<[String; 5]> {
    let heading = |place: usize| table.columns.get(place + 1).map(|column| column.heading.clone()).unwrap_or_default();
    let text = |cell: Cell| match cell {
        Cell::Text(text) => text,
        Cell::Missing(missing) => missing.state,
        Cell::Value(value) => {
            let formatted = value.formatted();
            [vec![formatted.main.clone()], formatted.details()].concat().join("; ")
        }
        Cell::Nothing => String::new(),
    };
    let mut records = Vec::new();
    for group in table.groups {
        let label = group.label.unwrap_or_default();
        for row in group.rows {
            let cells = row.cells.into_iter().enumerate();
            let title = &table.title;
            records
                .extend(cells.map(|(place, cell)| {
                    [title.clone(), label.clone(), row.label.clone(), heading(place), text(cell)]
                }));
        }
    }
    records
}

/// The ten facts to know a machine and its runs by.
fn facts(results: &Results) -> [(&'static str, String); 10] {
    let (environment, unknown) = (results.environment(), || "not known".to_owned());
    let (host, device) = (&environment.host, &environment.device);
    let bytes = |bytes: Option<u64>| bytes.map_or_else(unknown, |bytes| Unit::Bytes.format(bytes as f64, 4));
    let run = |system| results.runs_of(system).next();
    let programs = results.systems().into_iter().filter_map(run).map(|run| versions(&run.environment.program));
    let made = |system| format!("{}, {system}", of_planned(results.runs_of(system).count(), results));
    let runs = results.systems().into_iter().map(made);
    [
        ("device", device.model.clone()),
        ("device memory", bytes(device.memory_bytes)),
        ("driver", device.fact("driver").map_or_else(unknown, str::to_owned)),
        ("a blocked host thread", device.wait_policy.clone().unwrap_or_else(unknown)),
        ("host processor", host.cpu.clone()),
        ("logical processors", host.logical_cpus.map_or_else(unknown, |cpus| cpus.to_string())),
        ("system", host.system.clone().unwrap_or_else(unknown)),
        ("programs", programs.collect::<Vec<_>>().join("; ")),
        ("runs", runs.collect::<Vec<_>>().join("; ")),
        ("runs began", results.run().started.clone()),
    ]
}

/// What the same code twice came to, of each system and experiment.
fn twice(results: &Results) -> Option<Table> {
    let of_system = |system| {
        let lookup = results.lookup_of(system);
        let ratios = lookup.metrics().filter(|(spec, _)| spec.is_same_code());
        let row = |(spec, metric): (&MetricSpec, _)| {
            TableRow::new(spec.title(), vec![Cell::Text(system.to_owned()), row_cell(metric)])
        };
        ratios.map(row).collect::<Vec<TableRow>>()
    };
    let rows = results.systems().into_iter().flat_map(of_system).collect();
    table("The same code twice", "ratio", &["system", "value"], rows)
}

/// How wide the published intervals of measured times are, by the length of the time.
fn widths(results: &[Results]) -> Vec<Value> {
    const LENGTHS: [(&str, f64, f64); 3] =
        [("below 20 µs", 0.0, 20e-6), ("20 µs to 1 ms", 20e-6, 1e-3), ("1 ms and more", 1e-3, f64::INFINITY)];
    let mut found: Vec<Estimate> = Vec::new();
    for results in results {
        for system in results.systems() {
            let lookup = results.lookup_of(system);
            let times =
                lookup.metrics().filter_map(|(_, metric)| metric.ok()).filter(|metric| metric.clock().is_some());
            let published = times.filter_map(|metric| {
                let estimate = metric.estimate().ok().filter(|estimate| estimate.runs > 1)?;
                metric.interval(&estimate).is_ok().then_some(estimate)
            });
            found.extend(published);
        }
    }
    let percent = |share: f64| Scale::PERCENT.significant(share, 2);
    let of_length = |(length, from, to): &(&str, f64, f64)| {
        let those = found.iter().filter(|estimate| (*from..*to).contains(&estimate.median));
        let HalfWidths { rows, middle, nine_in_ten, .. } = HalfWidths::of(those)?;
        Some(context! { length => *length, rows, middle => percent(middle), nine_in_ten => percent(nine_in_ten) })
    };
    LENGTHS.iter().filter_map(of_length).collect()
}

/// How often the method found a difference between the same code and itself, where that was tried.
fn same_code(SameCode { between_runs, within_runs }: SameCode) -> Option<Value> {
    let counted = |own: Comparisons| context! { made => own.made, missed => own.missed, most => own.most_by_chance() };
    (within_runs.made > 0).then(|| context! { between => counted(between_runs), within => counted(within_runs) })
}

fn environment(run: &Run) -> Table {
    let (environment, text) = (&run.environment, |text: &str| Cell::Text(text.to_owned()));
    let (host, device, program) = (&environment.host, &environment.device, &environment.program);
    let unknown = || Cell::Missing(Missing::new("not known", None));
    let known = |value: Option<String>| value.map_or_else(unknown, Cell::Text);
    let bytes = |bytes: Option<u64>| known(bytes.map(|bytes| Unit::Bytes.format(bytes as f64, 4)));
    let dirty = if program.dirty == Some(true) { ", with uncommitted changes" } else { "" };
    let build = program.profile.as_ref().map(|profile| format!(", {profile} build")).unwrap_or_default();
    let of_device = [
        ("device".to_owned(), text(&device.model)),
        ("opened as".to_owned(), text(&device.name)),
        ("engine".to_owned(), text(&device.engine)),
        ("device memory".to_owned(), bytes(device.memory_bytes)),
        ("a blocked host thread".to_owned(), known(device.wait_policy.clone())),
    ];
    let facts = run.environment.facts().map(|(name, value)| (name.clone(), text(value)));
    let of_host = [
        ("host processor".to_owned(), text(&host.cpu)),
        ("logical processors".to_owned(), known(host.logical_cpus.map(|cpus| cpus.to_string()))),
        ("host memory".to_owned(), bytes(host.memory_bytes)),
        ("system".to_owned(), known(host.system.clone())),
        ("run began".to_owned(), text(&run.started)),
        ("program".to_owned(), Cell::Text(format!("{}{build}", versions(program)))),
        ("commit".to_owned(), known(program.commit.as_ref().map(|commit| format!("{commit}{dirty}")))),
        ("command".to_owned(), Cell::Text(program.command.join(" "))),
    ];
    Table::facts("Environment", ["fact", "value"], of_device.into_iter().chain(facts).chain(of_host))
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
    let made = results.runs_of(&results.run().system).count();
    let short = plan.short_passes.map(|short| format!("; {short} of rows with rounds of less than 10 ms"));
    let passes = plan.passes.to_string() + &short.unwrap_or_default();
    let facts = [
        ("runs".to_owned(), Cell::Text(of_planned(made, results))),
        ("warm-up rounds".to_owned(), Cell::Text(plan.warmup.to_string())),
        ("stop after samples".to_owned(), rule(plan.samples.map(|samples| samples.to_string()))),
        ("stop at a relative error of".to_owned(), rule(error)),
        ("stop after, for each row".to_owned(), rule(plan.time_limit.map(|limit| Unit::Seconds.format(limit, 3)))),
        ("fewest samples".to_owned(), rule(plan.fewest.map(|fewest| fewest.to_string()))),
        ("passes that share them".to_owned(), Cell::Text(passes)),
        ("seed of the order".to_owned(), Cell::Text(plan.seed.to_string())),
    ];
    Table::facts("Sampling", ["rule", "value"], facts)
}

/// What the device's sensors said around each experiment, where it has any: the least and the most.
fn telemetry(run: &Run) -> Option<Table> {
    let by_experiment = run.telemetry_by_experiment();
    let row = |ran: &ExperimentRun| {
        let samples = by_experiment.get(ran.name.as_str())?;
        let began = samples.iter().find_map(|sample| sample.at);
        let held = throttle_reasons(samples.iter().copied()).join(", ");
        // One figure where the least and the most are equal.
        let of = |unit: &str, value: fn(&TelemetrySample) -> Option<f64>| {
            let values = || samples.iter().filter_map(|sample| value(sample));
            let Some((least, most)) = values().reduce(f64::min).zip(values().reduce(f64::max)) else {
                return Cell::Nothing;
            };
            let (least, most) = (format!("{least:.0}"), format!("{most:.0}"));
            Cell::Text(if least == most { format!("{most} {unit}") } else { format!("{least}–{most} {unit}") })
        };
        let cells = vec![
            began.map_or(Cell::Nothing, |at| Cell::Text(Unit::Seconds.format(at, 3))),
            of("MHz", |sample| sample.sensors.sm_clock_mhz.map(f64::from)),
            of("MHz", |sample| sample.sensors.memory_clock_mhz.map(f64::from)),
            of("°C", |sample| sample.sensors.temperature_c.map(f64::from)),
            of("W", |sample| sample.sensors.power_w),
            of("MHz", |sample| sample.host_mhz),
            if held.is_empty() { Cell::Nothing } else { Cell::Text(held) },
        ];
        Some(TableRow::new(&ran.name, cells))
    };
    let headings =
        ["from", "clock of the GPU", "clock of its memory", "temperature", "power", "host clock", "held back by"];
    table("Telemetry", "experiment", &headings, run.order.iter().filter_map(row).collect())
}

/// The algorithm that a library computed each matmul by, where one chose.
fn algorithms(run: &Run) -> Option<Table> {
    let row = |(shape, algorithm): &(String, String)| TableRow::new(shape, vec![Cell::Text(algorithm.clone())]);
    table("Algorithms of matmuls", "type and shape", &["algorithm"], run.algorithms.iter().map(row).collect())
}

/// The least work that lies in each row, where that is known, and what limits it.
fn work(results: &Results) -> Option<Table> {
    let lookup = results.lookup();
    let works = each_once(lookup.specs().filter_map(|spec| {
        let work = spec.work.as_ref()?;
        Some((&spec.id, &work.formula, work.limit))
    }));
    let row = |(id, formula, limit): (&String, &String, Limit)| {
        let limit = format!("{} by {}", limit.counts(), limit.name());
        TableRow::new(id, vec![Cell::Text(formula.clone()), Cell::Text(limit)]).of(id)
    };
    let rows = works.into_iter().map(row).collect();
    table("The least work of each row", "row", &["work of a sample", "unit and peak rate"], rows)
}

/// So many runs of those that were to be made.
fn of_planned(made: usize, results: &Results) -> String {
    format!("{made} of {}", made.max(results.plan.runs as usize))
}

/// Another system that measured the same work on the machine: a table, or one for each of the states that its runs found.
fn system(results: &Results, system: &str) -> Vec<Table> {
    let rows = results.lookup_of(system).specs().count();
    let state = |run: &&Run| {
        let environment = &run.environment;
        let named = [("program", versions(&environment.program)), ("device", environment.device.model.clone())];
        let named = named.map(|(name, value)| (name.to_owned(), value));
        let facts = environment.facts().map(|(name, value)| (name.clone(), value.clone()));
        let host = ("host processor".to_owned(), environment.host.cpu.clone());
        named.into_iter().chain(facts).chain([host]).collect::<Vec<_>>()
    };
    let runs: Vec<&Run> = results.runs_of(system).collect();
    let table = |runs: &[&Run]| {
        let began: Vec<&str> = runs.iter().map(|run| run.started.as_str()).collect();
        let made = of_planned(runs.len(), results);
        let facts =
            [("runs".to_owned(), Cell::Text(made)), ("began".to_owned(), Cell::Text(began.join(", ")))].into_iter();
        let facts = facts.chain(runs.iter().take(1).flat_map(state).map(|(name, value)| (name, Cell::Text(value))));
        let facts = facts.chain([("rows".to_owned(), Cell::Text(rows.to_string()))]);
        Table::facts(&format!("{system} on the same machine"), ["fact", "value"], facts)
    };
    runs.chunk_by(|one, other| state(one) == state(other)).map(table).collect()
}

/// The diagnoses of the samples of each row of each system: what each kind may come from stands over its rows.
fn diagnoses(results: &Results) -> Option<Table> {
    let of_system = |system| results.diagnoses_of(system).into_iter().map(move |found| (system, found));
    let rows = results.systems().into_iter().flat_map(of_system).map(|(system, (spec, diagnosis))| {
        let cells = vec![Cell::Text(system.to_owned()), Cell::Text(diagnosis.finding())];
        (Some(format!("{}: {}", diagnosis.name(), diagnosis.remedy())), TableRow::new(spec.title(), cells))
    });
    let groups = grouped(rows).into_iter().map(|(label, rows)| TableGroup { label, rows }).collect();
    let columns = [Column::new(Role::Label, "row"), Column::new(Role::Fact, "system"), Column::new(Role::Fact, "what")];
    filled(Table { title: "Diagnostics".to_owned(), columns: columns.into(), groups })
}

/// The runs that lack rows which other runs of their system measured.
fn lacking(results: &Results) -> Option<Table> {
    let row =
        |lacks: Lacks| TableRow::new(lacks.run, [vec![Cell::Text(lacks.rows)], absence_cells(&lacks.reason)].concat());
    let rows = lacking_of(results).into_iter().map(row).collect();
    table("Rows that a run lacks", "run", &["rows", "state", "reason"], rows)
}

/// What was not measured, and why: rows that share state and reason stand together.
fn absences(results: &Results) -> Option<Table> {
    let lookup = results.lookup();
    let absent = lookup.specs().filter_map(|spec| {
        let absence = absence(results, |lookup| lookup.of(spec).map(drop)).filter(|absence| !absence.is_by_choice())?;
        // Of what has no meaning, the parameters do not matter.
        let is_meaningless = matches!(absence, MissingReason::NotApplicable(_));
        Some((absence, if is_meaningless { spec.id.clone() } else { spec.title() }))
    });
    let row = |(absence, titles): (MissingReason, Vec<String>)| {
        TableRow::new(each_once(titles).join(", "), absence_cells(&absence))
    };
    let rows = grouped(absent).into_iter().map(row).collect();
    table("Not measured", "rows", &["state", "reason"], rows)
}

fn absence_cells(absence: &MissingReason) -> Vec<Cell> {
    let reason = absence.reason().map_or(Cell::Nothing, |reason| Cell::Text(reason.to_owned()));
    vec![Cell::Text(absence.state().to_owned()), reason]
}

fn table(title: &str, label: &str, headings: &[&str], rows: Vec<TableRow>) -> Option<Table> {
    let facts = headings.iter().map(|heading| Column::new(Role::Fact, *heading));
    let columns = std::iter::once(Column::new(Role::Label, label)).chain(facts).collect();
    filled(Table::new(title, columns, rows))
}

/// The table, unless it has no rows.
fn filled(table: Table) -> Option<Table> {
    table.groups.iter().any(|group| !group.rows.is_empty()).then_some(table)
}

#[cfg(test)]
mod tests {
    use super::super::source::nothing;
    use super::*;
    use syncscope::device::Telemetry;

    #[test]
    fn the_page_shows_the_algorithm_of_each_matmul_and_the_clock_of_the_host() {
        let mut run = nothing().runs.remove(0);
        assert!(algorithms(&run).is_none() && telemetry(&run).is_none());
        run.algorithms = vec![("fp16, 8 × 8 by 8 × 8".to_owned(), "algorithm 66, tile 20".to_owned())];
        let sample = |host_mhz| TelemetrySample {
            at: None,
            experiment: "a".to_owned(),
            sensors: Telemetry::default(),
            host_mhz,
        };
        run.telemetry = vec![sample(Some(2000.0)), sample(None), sample(Some(3100.0))];
        let (name, summary) = ("a".to_owned(), String::new());
        run.order = vec![ExperimentRun { name, summary, duration: 1.0, code: None, failure: None }];
        let shown =
            [algorithms(&run), telemetry(&run)].map(|table| table.map(|table| table.to_html()).unwrap_or_default());
        assert!(shown[0].contains("8 × 8 by 8 × 8") && shown[0].contains("algorithm 66"), "{}", shown[0]);
        assert!(shown[1].contains("2000–3100 MHz"), "{}", shown[1]);
    }
}
