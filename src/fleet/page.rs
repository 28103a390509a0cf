//! The fleet as one page that stands alone: no script, nothing from elsewhere.

use std::fmt::Write as _;

use super::strip::strip;
use super::table::{Different, Fleet};
use crate::measure::{FEWEST, FLEET_LEVEL, Outliers};
use crate::present::{escape, page_head};
use crate::units::counted;

const STYLE: &str = include_str!("page.css");

/// The most strips, machines, models and rows that are shown: what differs most, and the models of the most machines. What
/// is left out is counted.
const STRIPS: usize = 8;
const MACHINES: usize = 60;
const MODELS: usize = 12;
const ROWS: usize = 400;

/// What stands below a part of which some are left out.
fn left_out(all: usize, most: usize, noun: &str) -> String {
    match all.saturating_sub(most) {
        0 => String::new(),
        more => format!("<p>And {} more, for which this page has no place.</p>\n", counted(more, noun)),
    }
}

/// A row of a model, judged.
struct Strip<'a> {
    row: usize,
    model: &'a str,
    outliers: Outliers,
    have: Vec<usize>,
}

/// The page. `different` are the fleet's machines that differ.
pub fn page(fleet: &Fleet, different: &[Different]) -> String {
    let mut out = page_head("Machines", STYLE, "") + "<body>\n<main>\n<h1>Machines</h1>\n";
    let models = fleet.models();
    let strips = models.iter().flat_map(|(model, machines)| {
        let judged = move |(row, own)| {
            let (outliers, have) = fleet.outliers_of(own, machines)?;
            Some(Strip { row, model, outliers, have })
        };
        fleet.rows.iter().enumerate().filter_map(judged)
    });
    let strips: Vec<Strip<'_>> = strips.collect();
    rule(fleet, &strips, &mut out);
    list(fleet, different, &mut out);
    pictures(fleet, strips, &mut out);
    by_model(fleet, models.into_iter().collect(), &mut out);
    out + "</main>\n</body>\n</html>\n"
}

fn rule(fleet: &Fleet, strips: &[Strip<'_>], out: &mut String) {
    let (tests, counts) = (fleet.tests(), [(fleet.members.len(), "machine"), (fleet.models().len(), "model")]);
    let [machines, models] = counts.map(|(count, noun)| counted(count, noun));
    let _ = writeln!(
        out,
        "<p>{machines} of {models}, each by its newest file; {}.</p>\n<p>A machine differs where the \
         generalized ESD procedure (Rosner 1983) takes its value out of those of its model, on a logarithmic scale. Each of the \
         {tests} tests has the level {} % / {tests}: of machines that are alike, at most one fleet in twenty has a false alarm, \
         over all machines and rows. Models of fewer than {FEWEST} machines are not judged.</p>",
        counted(fleet.rows.len(), "row"),
        FLEET_LEVEL * 100.0
    );
    let mut smallest: Vec<f64> = strips.iter().map(|strip| strip.outliers.smallest).collect();
    smallest.sort_by(f64::total_cmp);
    if let [least, .., most] = smallest.as_slice() {
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        let _ = writeln!(
            out,
            "<p>The smallest shift that is found in four of five cases: {} in the middle of the rows ({} … {}).</p>",
            percent(smallest[smallest.len() / 2]),
            percent(*least),
            percent(*most)
        );
    }
}

fn list(fleet: &Fleet, different: &[Different], out: &mut String) {
    out.push_str("<h2>Machines that differ</h2>\n");
    if different.is_empty() {
        out.push_str("<p>None.</p>\n");
        return;
    }
    let mut machines: Vec<(&str, Vec<&Different>)> = Vec::new();
    for own in different {
        match machines.iter_mut().find(|(machine, _)| *machine == own.machine) {
            Some((_, rows)) => rows.push(own),
            None => machines.push((&own.machine, vec![own])),
        }
    }
    let _ = writeln!(out, "<p>{} of {} machines.</p>\n<ul class=\"different\">", machines.len(), fleet.members.len());
    for (machine, rows) in machines.iter().take(MACHINES) {
        let words = rows
            .iter()
            .take(3)
            .map(|own| format!("<b class=\"{}\">{:+.1} %</b> {}", own.word(), own.percent(), escape(&own.row)));
        let more = if rows.len() > 3 { format!(" and {} more rows", rows.len() - 3) } else { String::new() };
        let words = words.collect::<Vec<_>>().join(", ");
        let _ = writeln!(out, "<li><b>{}</b>: {words}{more}</li>", escape(machine));
    }
    let _ = write!(out, "</ul>\n{}", left_out(machines.len(), MACHINES, "machine"));
}

/// The strips of the rows in which a machine differs most.
fn pictures(fleet: &Fleet, mut strips: Vec<Strip<'_>>, out: &mut String) {
    let far = |strip: &Strip<'_>| strip.outliers.found.iter().map(|found| found.ratio.ln().abs()).fold(0.0, f64::max);
    strips.sort_by(|a, b| far(b).total_cmp(&far(a)));
    if strips.is_empty() {
        return;
    }
    out.push_str(
        "<h2>Rows, machine by machine</h2>\n<p>A mark a machine, in the order of their names, by the mean of its model; a line is \
         the 95 % interval of its value. Circles are machines that differ.</p>\n",
    );
    for Strip { row, model, outliers, have } in strips.iter().take(STRIPS) {
        let row = &fleet.rows[*row];
        let (label, title, model) = (escape(&row.label), escape(&row.title), escape(model));
        let (centre, spread) = (row.unit.format(outliers.centre, 3), outliers.spread * 100.0);
        let picture = strip(row, outliers, have, |place| fleet.members[place].name.clone());
        let _ = writeln!(
            out,
            "<figure><figcaption><b>{label}</b> {title}<br>{model}: {centre}, the machines scatter by {spread:.2} %</figcaption>\n{picture}</figure>"
        );
    }
}

/// A table of the models with the most machines, in the order of their names.
fn by_model(fleet: &Fleet, mut models: Vec<(&str, Vec<usize>)>, out: &mut String) {
    out.push_str(
        "<h2>Rows by model</h2>\n<p>The median over the machines of a model, and from which to which machine.</p>\n",
    );
    out.push_str(&left_out(models.len(), MODELS, "model"));
    models.sort_by_key(|(_, machines)| std::cmp::Reverse(machines.len()));
    models.truncate(MODELS);
    models.sort_by_key(|(name, _)| *name);
    out.push_str("<div class=\"scroll\"><table><thead><tr><th scope=\"col\">row</th>");
    for (model, machines) in &models {
        let _ = write!(out, "<th scope=\"col\">{} ({})</th>", escape(model), machines.len());
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in fleet.rows.iter().take(ROWS) {
        let _ = write!(out, "<tr><th scope=\"row\">{}</th>", escape(&row.title));
        let format = |value: f64| row.unit.format(value, 3);
        for (_, machines) in &models {
            let own = machines.iter().filter_map(|place| row.values[*place].as_ref());
            let mut values: Vec<f64> = own.map(|own| own.median).collect();
            values.sort_by(f64::total_cmp);
            let cell = match values.as_slice() {
                [] => "—".to_owned(),
                [only] => format(*only),
                [least, .., most] => {
                    let middle = values[values.len() / 2];
                    format!("{} <small>{} … {}</small>", format(middle), format(*least), format(*most))
                }
            };
            let _ = write!(out, "<td>{cell}</td>");
        }
        out.push_str("</tr>\n");
    }
    let _ = write!(out, "</tbody></table></div>\n{}", left_out(fleet.rows.len(), ROWS, "row"));
}
