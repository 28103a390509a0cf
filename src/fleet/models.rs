//! Models beside each other: ratios of every pair, which the page's script looks up.

use serde::Serialize;

use super::page::{put, said};
use super::table::{Fleet, FleetRow};
use crate::measure::Ratio;
use crate::present::escape;

/// The level of the intervals of ratios.
const LEVEL: f64 = 0.95;
/// The most models that are shown: those of the most machines.
const MOST: usize = 12;
/// The most bytes of the table that compares two, and of what its script reads: the ratios of all pairs.
const LINE_BYTES: usize = 40_000;
const PAIR_BYTES: usize = 90_000;
/// What a ratio with its interval takes there.
const RATIO_BYTES: usize = 24;

/// What the script reads.
#[derive(Serialize)]
struct Data {
    /// For each pair `a < b` of models, in order, and each row: b by a with its interval.
    pairs: Vec<Vec<Option<[f64; 3]>>>,
}

/// The models with the most machines, in the order of their names, each with its machines; and how many others there are.
pub(super) fn shown(fleet: &Fleet) -> (Vec<(&str, Vec<usize>)>, usize) {
    let mut models: Vec<(&str, Vec<usize>)> = fleet.models().into_iter().collect();
    models.sort_by_key(|(_, machines)| std::cmp::Reverse(machines.len()));
    let left_out = models.len().saturating_sub(MOST);
    models.truncate(MOST);
    models.sort_by_key(|(name, _)| *name);
    (models, left_out)
}

/// The part of the page in which a reader chooses two models; nothing where there is one model.
pub(super) fn section(fleet: &Fleet) -> String {
    let (models, left_out) = shown(fleet);
    if models.len() < 2 {
        return String::new();
    }
    let pairs = models.len() * (models.len() - 1) / 2;
    let rows = &fleet.rows[..fleet.rows.len().min(PAIR_BYTES / (pairs * RATIO_BYTES))];
    let of = |(a, b): (usize, usize)| rows.iter().map(|row| ratio(row, &models[a].1, &models[b].1)).collect();
    let pairs: Vec<Vec<Option<[f64; 3]>>> =
        (0..models.len()).flat_map(|a| (a + 1..models.len()).map(move |b| (a, b))).map(of).collect();
    let options = |chosen: usize| -> String {
        let option = |(place, (name, machines)): (usize, &(&str, Vec<usize>))| {
            let selected = if place == chosen { " selected" } else { "" };
            format!("<option value=\"{place}\"{selected}>{} ({})</option>", escape(name), machines.len())
        };
        models.iter().enumerate().map(option).collect()
    };
    let line = |(row, ratio): (&FleetRow, &Option<[f64; 3]>)| {
        let words = ratio.map_or_else(
            || "<td>—</td><td></td>".to_owned(),
            |[value, low, high]| format!("<td>{value:.3}</td><td>{low:.3} … {high:.3}</td>"),
        );
        format!("<tr><th scope=\"row\">{}</th>{words}</tr>\n", escape(&row.title))
    };
    let mut lines = String::new();
    let without_line = put(&mut lines, rows.iter().zip(&pairs[0]).map(line), LINE_BYTES);
    let more = said(left_out, "model") + &said(fleet.rows.len() - rows.len() + without_line, "row");
    // The text of JSON ends at the first tag.
    let data = serde_json::to_string(&Data { pairs }).unwrap_or_default().replace('<', "\\u003c");
    format!(
        "<h2 id=\"models\">Two models side by side</h2>\n<p>The second model's values by the first's, with 95 % intervals between \
         the machines of each (between the runs, where a model has one machine). A ratio of a time below 1 means that the \
         second is faster; of a rate, above 1.</p>\n\
         <p class=\"choice\"><label>First <select id=\"first\">{}</select></label> <label>Second <select id=\"second\">{}</select></label></p>\n\
         <div class=\"scroll\"><table id=\"pairs\"><thead><tr><th scope=\"col\">row</th><th scope=\"col\">second / first</th>\
         <th scope=\"col\">95 % interval</th></tr></thead>\n<tbody>\n{lines}</tbody></table></div>\n{more}\
         <script type=\"application/json\" id=\"data\">{data}</script>\n",
        options(0),
        options(1),
    )
}

/// The second model's row by the first's, to four digits.
fn ratio(row: &FleetRow, a: &[usize], b: &[usize]) -> Option<[f64; 3]> {
    let ratio = Ratio::of_runs(&values(row, b), &values(row, a), LEVEL)?;
    let numbers = [ratio.value, ratio.low, ratio.high];
    numbers.iter().all(|number| number.is_finite()).then(|| numbers.map(|number| (number * 1e4).round() / 1e4))
}

/// The medians of the machines, or of the runs of the only one.
fn values(row: &FleetRow, machines: &[usize]) -> Vec<f64> {
    let own: Vec<_> = machines.iter().filter_map(|place| row.values[*place].as_ref()).collect();
    match own.as_slice() {
        [only] => only.runs.clone(),
        own => own.iter().map(|newest| newest.median).collect(),
    }
}
