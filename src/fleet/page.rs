//! The fleet as one page that stands alone: no script, nothing from elsewhere.

use minijinja::{Value, context};

use super::strip::strip;
use super::table::{Different, Fleet, FleetRow};
use super::template;
use crate::error::FileError;
use crate::measure::{FEWEST, FLEET_LEVEL, Outliers};
use crate::present::page_head;
use crate::results::grouped;

/// The most strips, machines, models and rows that are shown: what differs most, and the models of the most machines. What
/// is left out is counted.
const STRIPS: usize = 8;
const MACHINES: usize = 60;
const MODELS: usize = 12;
const ROWS: usize = 400;

/// A row of a model, judged.
struct Strip<'a> {
    row: &'a FleetRow,
    model: &'a str,
    outliers: Outliers,
    have: Vec<usize>,
}

/// The page. `different` are the fleet's machines that differ.
///
/// # Errors
/// Its template does not fit.
pub fn page(fleet: &Fleet, different: &[Different]) -> Result<String, FileError> {
    let models = fleet.models();
    let strips = models.iter().flat_map(|(model, machines)| {
        let tail = fleet.tail_of(machines);
        let judged = move |row| {
            let (outliers, have) = fleet.outliers_of(row, machines, tail)?;
            Some(Strip { row, model, outliers, have })
        };
        fleet.rows.iter().filter_map(judged)
    });
    let mut strips: Vec<Strip<'_>> = strips.collect();
    let smallest = sorted(strips.iter().map(|strip| strip.outliers.smallest));
    // Those of the rows in which a machine differs most.
    let far = |strip: &Strip<'_>| strip.outliers.found.iter().map(|found| found.ratio.ln().abs()).fold(0.0, f64::max);
    strips.sort_by(|a, b| far(b).total_cmp(&far(a)));
    let mut columns: Vec<(&str, Vec<usize>)> = models.into_iter().collect();
    let models = columns.len();
    columns.sort_by_key(|(_, machines)| std::cmp::Reverse(machines.len()));
    columns.truncate(MODELS);
    columns.sort_by_key(|(name, _)| *name);
    let cells = |row: &FleetRow| columns.iter().map(|(_, machines)| cell(row, machines)).collect::<Vec<String>>();
    let table = fleet.rows.iter().take(ROWS).map(|row| (row.title.as_str(), cells(row)));
    let context = context! {
        head => page_head("Machines", include_str!("page.css"), ""),
        machines => fleet.members.len(),
        rows => fleet.rows.len(),
        tests => fleet.tests(),
        level => (FLEET_LEVEL * 100.0).to_string(),
        fewest => FEWEST,
        smallest => ends(&smallest).into_iter().flatten().map(|share| format!("{:.1} %", share * 100.0)).collect::<Value>(),
        different => by_machine(different),
        strips => strips.iter().take(STRIPS).map(|strip| figure(fleet, strip)).collect::<Value>(),
        models,
        columns => columns.iter().map(|(model, machines)| (*model, machines.len())).collect::<Value>(),
        table => table.collect::<Value>(),
        most => context! { machines => MACHINES, models => MODELS, rows => ROWS },
    };
    template::page(include_str!("page.html.j2"), context)
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The least, the middle and the most of several values in their order.
fn ends(sorted: &[f64]) -> Option<[f64; 3]> {
    if let [least, .., most] = sorted { Some([*least, sorted[sorted.len() / 2], *most]) } else { None }
}

/// The machines that differ, each with its rows.
fn by_machine(different: &[Different]) -> Vec<(String, Vec<Value>)> {
    grouped(different.iter().map(|own| {
        let percent = format!("{:+.1}", own.percent());
        (own.machine.clone(), context! { title => own.row.as_str(), word => own.word(), percent })
    }))
}

fn figure(fleet: &Fleet, Strip { row, model, outliers, have }: &Strip<'_>) -> Value {
    context! {
        label => row.label.as_str(),
        title => row.title.as_str(),
        model => *model,
        centre => row.unit.format(outliers.centre, 3),
        spread => format!("{:.2}", outliers.spread * 100.0),
        picture => strip(row, outliers, have, |place| fleet.members[place].name.clone()),
    }
}

/// What the machines of a model come to in a row.
fn cell(row: &FleetRow, machines: &[usize]) -> String {
    let values = sorted(machines.iter().filter_map(|place| Some(row.values[*place].as_ref()?.median)));
    match (values.as_slice(), ends(&values)) {
        (_, Some(ends)) => {
            let [least, middle, most] = ends.map(|value| row.unit.format(value, 3));
            format!("{middle} <small>{least} … {most}</small>")
        }
        ([only], _) => row.unit.format(*only, 3),
        _ => "—".to_owned(),
    }
}
