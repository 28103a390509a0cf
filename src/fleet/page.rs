//! The fleet as one page that stands alone: no script, nothing from elsewhere.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::strip::{histogram, strip};
use super::table::{ClaimRow, Different, Fleet, FleetRow};
use crate::measure::{FEWEST, FLEET_LEVEL, Outliers};
use crate::present::{escape, page_head};
use crate::units::counted;

const STYLE: &str = include_str!("page.css");

/// The most strips and the most lines of a list: what differs most stands first.
const STRIPS: usize = 8;
const LINES: usize = 60;
/// The most models that are shown: those of the most machines.
const MODELS: usize = 12;
/// The most columns of the map of claims: of more machines, the models are its columns.
const COLUMNS: usize = 40;
/// The most bytes of the page, and of its parts but the large strips, which take what the others leave. Of each part the first
/// have a place, whatever machines, models and rows there are, and what has none is counted.
const BYTES: usize = 495_000;
const LIST_BYTES: usize = 25_000;
const HISTOGRAM_BYTES: usize = 85_000;
const TABLE_BYTES: usize = 60_000;
const CLAIM_BYTES: usize = 40_000;

/// Puts the first of `parts` into the page, as many as take at most `bytes`; how many have no place.
fn put(out: &mut String, parts: impl Iterator<Item = String>, bytes: usize) -> usize {
    let (end, mut left_out) = (out.len() + bytes, 0);
    for part in parts {
        if left_out > 0 || out.len() + part.len() > end {
            left_out += 1;
        } else {
            out.push_str(&part);
        }
    }
    left_out
}

/// What stands below a part of which some had no place.
fn said(left_out: usize, noun: &str) -> String {
    match left_out {
        0 => String::new(),
        _ => format!("<p>And {} more, for which this page has no place.</p>\n", counted(left_out, noun)),
    }
}

/// The models with the most machines, in the order of their names, each with its machines; and how many others there are.
fn shown(fleet: &Fleet) -> (Vec<(&str, Vec<usize>)>, usize) {
    let mut models: Vec<(&str, Vec<usize>)> = fleet.models().into_iter().collect();
    models.sort_by_key(|(_, machines)| std::cmp::Reverse(machines.len()));
    let left_out = models.len().saturating_sub(MODELS);
    models.truncate(MODELS);
    models.sort_by_key(|(name, _)| *name);
    (models, left_out)
}

/// A row of a model, judged.
struct Strip<'a> {
    row: usize,
    model: &'a str,
    outliers: Outliers,
    have: Vec<usize>,
}

/// The page.
pub fn page(fleet: &Fleet) -> String {
    let mut out = page_head("Machines", STYLE, "") + "<body>\n<main>\n<h1>Machines</h1>\n";
    let different = fleet.different();
    let strips: Vec<Strip<'_>> = fleet
        .models()
        .iter()
        .flat_map(|(model, machines)| {
            let judged = move |(row, own)| {
                let (outliers, have) = fleet.outliers_of(own, machines)?;
                Some(Strip { row, model, outliers, have })
            };
            fleet.rows.iter().enumerate().filter_map(judged).collect::<Vec<_>>()
        })
        .collect();
    rule(fleet, &strips, &mut out);
    list(fleet, &different, &mut out);
    let mut below = String::new();
    by_model(fleet, &mut below);
    claims(fleet, &mut below);
    below.push_str("</main>\n</body>\n</html>\n");
    pictures(fleet, strips, BYTES.saturating_sub(out.len() + below.len()), &mut out);
    out + &below
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
    let mut rows: BTreeMap<&str, Vec<&Different>> = BTreeMap::new();
    let mut order: Vec<&str> = Vec::new();
    for own in different {
        if !rows.contains_key(own.machine.as_str()) {
            order.push(&own.machine);
        }
        rows.entry(&own.machine).or_default().push(own);
    }
    let _ = writeln!(out, "<p>{} of {} machines.</p>\n<ul class=\"different\">", order.len(), fleet.members.len());
    let line = |machine: &&str| {
        let own = &rows[machine];
        let words = own.iter().take(3).map(|different| {
            let word = if different.is_slower { "slower" } else { "faster" };
            format!("<b class=\"{word}\">{:+.1} %</b> {}", (different.ratio - 1.0) * 100.0, escape(&different.row))
        });
        let more = if own.len() > 3 { format!(" and {} more rows", own.len() - 3) } else { String::new() };
        format!("<li><b>{}</b>: {}{more}</li>\n", escape(machine), words.collect::<Vec<_>>().join(", "))
    };
    let left_out = put(out, order.iter().take(LINES).map(line), LIST_BYTES);
    out.push_str("</ul>\n");
    out.push_str(&said(order.len().saturating_sub(LINES) + left_out, "machine"));
}

/// The strips of the rows in which a machine differs most, and small histograms of all, in at most so many bytes.
fn pictures(fleet: &Fleet, mut strips: Vec<Strip<'_>>, bytes: usize, out: &mut String) {
    let far = |strip: &Strip<'_>| strip.outliers.found.iter().map(|found| found.ratio.ln().abs()).fold(0.0, f64::max);
    strips.sort_by(|a, b| far(b).total_cmp(&far(a)));
    if strips.is_empty() {
        return;
    }
    out.push_str(
        "<h2>Rows, machine by machine</h2>\n<p>A mark a machine, in the order of their names, by the mean of its model; a line is \
         the 95 % interval of its value. Circles are machines that differ.</p>\n",
    );
    let large = |Strip { row, model, outliers, have }: &Strip<'_>| {
        let row = &fleet.rows[*row];
        let (label, title, model) = (escape(&row.label), escape(&row.title), escape(model));
        let (centre, spread) = (row.unit.format(outliers.centre, 3), outliers.spread * 100.0);
        let picture = strip(row, outliers, have, |place| fleet.members[place].name.clone());
        format!(
            "<figure><figcaption><b>{label}</b> {title}<br>{model}: {centre}, the machines scatter by {spread:.2} %</figcaption>\n{picture}</figure>\n"
        )
    };
    let small = histograms(fleet, &strips);
    put(out, strips.iter().take(STRIPS).map(large), bytes.saturating_sub(small.len()));
    out.push_str(&small);
}

fn histograms(fleet: &Fleet, strips: &[Strip<'_>]) -> String {
    let mut out =
        "<details><summary>The rows as histograms over the machines</summary>\n<div class=\"small\">\n".to_owned();
    let several = fleet.models().len() > 1;
    let small = |Strip { row, model, outliers, have }: &Strip<'_>| {
        let row = &fleet.rows[*row];
        let values: Vec<f64> =
            have.iter().filter_map(|place| row.values[*place].as_ref()).map(|own| own.median).collect();
        let of = if several { format!(" {}", escape(model)) } else { String::new() };
        format!(
            "<figure><figcaption>{}{of} ± {:.1} %</figcaption>{}</figure>\n",
            escape(&row.title),
            outliers.spread * 100.0,
            histogram(&values)
        )
    };
    let left_out = put(&mut out, strips.iter().map(small), HISTOGRAM_BYTES);
    out + &format!("</div>{}</details>\n", said(left_out, "row"))
}

fn by_model(fleet: &Fleet, out: &mut String) {
    let (models, left_out) = shown(fleet);
    out.push_str(
        "<h2>Rows by model</h2>\n<p>The median over the machines of a model, and from which to which machine.</p>\n",
    );
    out.push_str(&said(left_out, "model"));
    out.push_str("<div class=\"scroll\"><table><thead><tr><th scope=\"col\">row</th>");
    for (model, machines) in &models {
        let _ = write!(out, "<th scope=\"col\">{} ({})</th>", escape(model), machines.len());
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    let line = |row: &FleetRow| {
        let mut out = format!("<tr><th scope=\"row\">{}</th>", escape(&row.title));
        for (_, machines) in &models {
            let mut values: Vec<f64> =
                machines.iter().filter_map(|place| row.values[*place].as_ref()).map(|own| own.median).collect();
            values.sort_by(f64::total_cmp);
            match values.as_slice() {
                [] => out.push_str("<td>—</td>"),
                [only] => {
                    let _ = write!(out, "<td>{}</td>", row.unit.format(*only, 3));
                }
                [least, .., most] => {
                    let [middle, least, most] =
                        [values[values.len() / 2], *least, *most].map(|value| row.unit.format(value, 3));
                    let _ = write!(out, "<td>{middle} <small>{least} … {most}</small></td>");
                }
            }
        }
        out + "</tr>\n"
    };
    let left_out = put(out, fleet.rows.iter().map(line), TABLE_BYTES);
    let _ = write!(out, "</tbody></table></div>\n{}", said(left_out, "row"));
}

/// Claims by machines; where those are many, by models, with how many machines came out like that.
fn claims(fleet: &Fleet, out: &mut String) {
    if fleet.claims.is_empty() {
        return;
    }
    let columns: Vec<(&str, Vec<usize>)> = match fleet.members.len() {
        0..=COLUMNS => fleet.members.iter().enumerate().map(|(place, own)| (own.name.as_str(), vec![place])).collect(),
        _ => shown(fleet).0,
    };
    out.push_str(
        "<h2>Claims</h2>\n<div class=\"scroll\"><table class=\"claims\"><thead><tr><th scope=\"col\">claim</th>",
    );
    for (name, machines) in &columns {
        let count = if machines.len() > 1 { format!(" ({})", machines.len()) } else { String::new() };
        let _ = write!(out, "<th scope=\"col\">{}{count}</th>", escape(name));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    let line = |claim: &ClaimRow| {
        let mut out = format!("<tr><th scope=\"row\" title=\"{}\">{}</th>", escape(&claim.text), escape(&claim.id));
        for (_, machines) in &columns {
            let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
            for verdict in machines.iter().filter_map(|place| claim.verdicts[*place].as_deref()) {
                *counts.entry(verdict).or_default() += 1;
            }
            let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
            counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
            let words = counts.iter().map(|(verdict, count)| match machines.len() {
                1 => escape(verdict),
                _ => format!("{} {count}", escape(verdict)),
            });
            let _ = write!(out, "<td>{}</td>", words.collect::<Vec<_>>().join("<br>"));
        }
        out + "</tr>\n"
    };
    let left_out = put(out, fleet.claims.iter().map(line), CLAIM_BYTES);
    let _ = write!(out, "</tbody></table></div>\n{}", said(left_out, "claim"));
}
