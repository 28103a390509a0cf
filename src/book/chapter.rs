//! A document's chapter: its question and what the runs answer, what ran, its plots and tables, its claims, exercises.

use std::collections::BTreeMap;

use minijinja::{Value, context};

use super::claims::{self, Judged};
use super::document::{Document, DocumentFigure, DocumentTable, Language, TableEntry};
use super::in_order::{each_once, grouped, listed};
use super::source::Book;
use super::tables::{
    LeftOut, Machines, absence, columns_left_out, comparison_table, counts_table, drawn, left_out_of, matrix_system,
    nothing_of, on_page, sampled, shown_rows,
};
use super::templates::{anchor, safe_html};
use super::warning::Warning;
use super::{data, render_text};
use crate::error::BookError;
use crate::present::{Table, TableGroup};
use crate::results::{Parameter, Results};
use crate::units::counted;

/// The chapter as Markdown, by the machines that it shows; `judged` are its claims, judged by their runs.
pub(super) fn render(
    book: &Book<'_>,
    (document, judged): &Judged<'_>,
    machines: &Machines<'_>,
) -> Result<String, BookError> {
    let listing = |name: &String| -> Result<Value, BookError> {
        let text = book.project.text(&format!("src/{name}"))?.trim_end();
        let (language, fence) = Language::of(name).map_or(("", ""), |language| (language.name, language.fence));
        Ok(context! { language, fence => safe_html(fence), text => safe_html(text) })
    };
    let section = |table: &DocumentTable| {
        let in_turn = machines.named().filter_map(|(results, machine)| sampled(table, results, machine));
        let compared = comparison_table(document, table, machines);
        let nothing = nothing_of(table, machines);
        let is_shown = nothing.is_none() && !compared.groups.is_empty();
        let left_out = || LeftOut::sentence(&left_out_of(table, machines), &listed(&machines.labels));
        context! {
            anchor => anchor(&table.id),
            id => safe_html(table.id.as_str()),
            title => table.title.as_str(),
            caption => safe_html(table.caption.trim()),
            has_published => table.has_published(),
            table => is_shown.then(|| safe_html(on_page(compared).to_html())),
            counts => counts_table(table, machines).map(|counts| safe_html(counts.to_html())),
            left_out => nothing.or_else(left_out),
            parameters => parameters(table, machines).into_iter().map(foot).collect::<Vec<Value>>(),
            notes => columns_left_out(table, machines).into_iter().chain(in_turn).collect::<Vec<String>>(),
        }
    };
    let (main, more) = document.divided_figures();
    let (opening, others): (Vec<&DocumentTable>, Vec<_>) = document.tables.iter().partition(|table| table.opens);
    let opening: Vec<(&DocumentTable, Table)> =
        opening.into_iter().map(|table| (table, comparison_table(document, table, machines))).collect();
    // Tables of the text with the same columns are one, case by case, as the text prints them.
    let have_the_same_columns = |(_, one): &(_, Table), (_, other): &(_, Table)| one.columns == other.columns;
    let of_the_text = |tables: &[(&DocumentTable, Table)]| {
        let parts = tables.iter().map(|(table, _)| section(table)).collect::<Vec<Value>>();
        let first = tables.first().map(|(table, _)| *table);
        let prints_figures = tables.iter().any(|(table, _)| table.has_published());
        let of_several = if prints_figures { "The text's own table" } else { "The text's examples, measured" };
        let title = first.filter(|_| tables.len() == 1).map_or(of_several, |table| table.title.as_str());
        let table = by_cases(tables.iter().map(|(_, table)| table.clone()).collect(), title);
        // What holds for several of them is said once.
        let feet = each_once(tables.iter().flat_map(|(table, _)| parameters(table, machines)));
        context! {
            anchor => first.map(|table| anchor(&table.id)),
            title,
            table => (!table.groups.is_empty()).then(|| safe_html(on_page(table).to_html())),
            parts,
            parameters => feet.into_iter().map(foot).collect::<Vec<Value>>(),
        }
    };
    let mut figures: Vec<Value> = Vec::new();
    let mut drawn: Vec<&str> = Vec::new();
    for figure in main.iter().chain(&more) {
        // A table is folded under the first figure that draws it.
        let new = |table: &&DocumentTable| {
            figure.panels.iter().any(|panel| panel.draws(table)) && !drawn.contains(&table.id.as_str())
        };
        let tables: Vec<&DocumentTable> = others.iter().copied().filter(new).collect();
        drawn.extend(tables.iter().map(|table| table.id.as_str()));
        let tables = tables.into_iter().map(&section).collect::<Vec<Value>>();
        figures.push(context! { tables, ..figure_context(document, figure, machines) });
    }
    let others = others.into_iter().filter(|table| !drawn.contains(&table.id.as_str()));
    let context = context! {
        title => document.title.as_str(),
        source => document.cited(),
        gpu => document.gpu.as_deref(),
        has_published => document.tables.iter().any(DocumentTable::has_published),
        question => safe_html(document.question.trim()),
        answers => render_text::answers(document, machines, judged),
        advice => render_text::advice(document, machines),
        method => safe_html(document.method.trim()),
        listings => document.listings.iter().map(listing).collect::<Result<Vec<Value>, _>>()?,
        opening => opening.chunk_by(have_the_same_columns).map(of_the_text).collect::<Vec<Value>>(),
        sections => others.map(&section).collect::<Vec<Value>>(),
        more_figures => figures.split_off(main.len()),
        figures,
        lesson => render_text::lesson(document, machines, &book.titles),
        absences => absences(document, machines),
        runs => shown(document, machines),
        claims => claims::of(document, machines, judged),
        exercises => render_text::exercises(document, machines),
    };
    book.templates.render("chapter.md.j2", context)
}

fn figure_context(document: &Document, figure: &DocumentFigure, machines: &Machines<'_>) -> Value {
    let mut shown = Vec::new();
    for (number, (results, machine)) in (1..).zip(machines.named()) {
        let (mut panels, mut left_out, mut unmeasured) = (Vec::new(), Vec::new(), Vec::new());
        for (place, panel) in (1..).zip(&figure.panels) {
            let id = format!("{}-{}-{place}-{number}", document.id, figure.id);
            let picture = |picture: String| safe_html(picture);
            if let Some(timeline) = data::timeline_panel(panel, (results, number, machine), &id) {
                panels.push(picture(timeline));
                continue;
            }
            let drawn = drawn(document.table(&panel.table), panel, machine, results, &id);
            panels.extend(drawn.pictures.into_iter().map(picture));
            left_out.extend(drawn.left_out);
            unmeasured.extend(drawn.unmeasured);
        }
        let data = data::has_rows(figure).then(|| safe_html(data::place(document, figure, number)));
        let unmeasured = unmeasured.join(", ");
        let unmeasured = (!unmeasured.is_empty())
            .then(|| format!("Left out, since nothing of it was measured on {machine}: {unmeasured}."));
        let left_out: Vec<String> = LeftOut::sentence(&left_out, machine).into_iter().chain(unmeasured).collect();
        // Which calls wait is up to the driver, so that a matrix names it.
        let has_matrix = figure.panels.iter().any(|panel| panel.matrix.is_some());
        let driver = results.environment().device.fact("driver").filter(|_| has_matrix);
        shown.push((panels.is_empty(), context! { machine, driver, panels, data, left_out => left_out.join(" ") }));
    }
    // The first is open.
    shown.sort_by_key(|(is_empty, _)| *is_empty);
    let shown: Vec<Value> = shown.into_iter().map(|(_, entry)| entry).collect();
    context! {
        anchor => anchor(&figure.id),
        title => figure.title.as_str(),
        caption => safe_html(figure.caption.trim()),
        machines => shown,
    }
}

/// Tables of the same columns as one: of each case in turn, what every table has of it under the table's title.
fn by_cases(tables: Vec<Table>, title: &str) -> Table {
    let is_one = tables.len() == 1;
    let columns = tables.first().map(|table| table.columns.clone()).unwrap_or_default();
    let groups = tables.into_iter().flat_map(|Table { title, groups, .. }| {
        groups.into_iter().map(move |TableGroup { label, rows }| {
            let named = label.as_ref().map_or_else(|| title.clone(), |case| format!("{case}: {title}"));
            let named = if is_one { label.clone() } else { Some(named) };
            (label, TableGroup { label: named, rows })
        })
    });
    let groups = grouped(groups).into_iter().flat_map(|(_, groups)| groups).collect();
    Table { title: title.to_owned(), columns, groups }
}

/// The most values of a parameter that a foot lists: one of more values tells the rows apart.
const MAX_VALUES: usize = 2;

/// For each run, the parameters that its rows of a table were measured with and that do not tell the cases apart.
fn parameters<'m>(table: &DocumentTable, machines: &'m Machines<'_>) -> Vec<(&'m str, String)> {
    let cases = table.cases_in(machines.results);
    let of_machine = |(results, machine): (&Results, &'m str)| {
        let lookup = results.lookup();
        let others = TableEntry::all(table, &cases).flat_map(|entry| {
            let parameters = entry.measured(&lookup).map(|measured| measured.metric.spec.parameters.clone());
            let is_other = |(name, _): &(String, Parameter)| !entry.case.select.contains_key(name);
            let others = parameters.unwrap_or_default().into_iter().filter(is_other);
            others.map(|(name, value)| (name, value.to_string()))
        });
        let mut values = grouped(each_once(others));
        values.retain(|(_, values)| values.len() <= MAX_VALUES);
        values.sort();
        let values = values.iter().map(|(name, values)| format!("{name} {}", values.join(" and ")));
        let values = values.collect::<Vec<String>>().join(", ");
        (!values.is_empty()).then_some((machine, values))
    };
    machines.named().filter_map(of_machine).collect()
}

fn foot((machine, values): (&str, String)) -> Value {
    context! { machine, values }
}

/// Which runs the chapter shows, the command that made each, and what limits the times of its experiments.
fn shown(document: &Document, machines: &Machines<'_>) -> Vec<Value> {
    let experiments = document.experiments();
    let named = (1..).zip(machines.named()).map(|(number, (results, machine))| {
        let run = results.run();
        let about = Warning::of_experiments(results, &experiments);
        let warnings: Vec<String> = about.iter().map(Warning::to_string).collect();
        let command = run.environment.program.command.join(" ");
        let data = (!document.tables.is_empty()).then(|| safe_html(data::rows_place(document, number)));
        context! { machine, started => run.started.as_str(), command, warnings, data }
    });
    named.collect()
}

/// The rows that a run did not measure: state and reason, with all rows that share them.
fn absences(document: &Document, machines: &Machines<'_>) -> Vec<Value> {
    let tables: Vec<_> = document.tables.iter().map(|table| (table, table.cases_in(machines.results))).collect();
    let of_machine = |(results, machine): (&Results, &str)| {
        let mut lacks: Vec<(String, String)> = Vec::new();
        for (table, cases) in &tables {
            let lacking = |entry: TableEntry<'_>| {
                let absence = absence(results, |lookup| entry.measured(lookup).map(drop))?;
                Some(LeftOut::of(entry.row, entry.case, absence.to_string()))
            };
            let lacking = LeftOut::collapsed(TableEntry::all(table, cases).filter_map(lacking).collect(), cases.len());
            let listed = LeftOut::listed(&lacking).into_iter();
            lacks.extend(listed.map(|(reason, rows)| (reason.to_owned(), format!("{}: {rows}", table.title))));
        }
        // How many measurements of the matrices the run does not have, by the reason.
        let mut cells: BTreeMap<String, usize> = BTreeMap::new();
        for matrix in document.matrices() {
            let shown = shown_rows(matrix, &results.lookup_of(matrix_system(matrix, results)));
            let absences = shown.into_iter().filter_map(|(_, metric)| metric.err());
            absences.for_each(|absence| *cells.entry(absence.to_string()).or_default() += 1);
        }
        let cells = cells.into_iter();
        lacks.extend(cells.map(|(reason, cells)| (reason, format!("{} of the matrices", counted(cells, "cell")))));
        let reasons = grouped(lacks).into_iter().map(|(reason, rows)| context! { reason, rows => rows.join("; ") });
        let reasons = reasons.collect::<Vec<Value>>();
        context! { machine, reasons, runs => results.missing_runs().join("; ") }
    };
    machines.named().map(of_machine).collect()
}
