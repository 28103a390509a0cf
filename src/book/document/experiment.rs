//! The chapter of an experiment that no document describes, and the tables of the rows that its document does not name:
//! made of what the rows of the results say of themselves.
//!
//! Each heading of the rows is a table. Its rows stand once for every set of those parameters whose values differ among
//! them; rows of one heading that differ in other parameters make tables of their own. A table is drawn as lines where a
//! number has three values or more, and as bars where its rows have one unit.

use std::collections::{HashMap, HashSet};

use sha2::{Digest, Sha256};

use super::{Document, DocumentFigure, DocumentRow, DocumentTable, Lines, Panel, PanelSeries, TableCase};
use crate::in_order::{each_once, grouped};
use crate::present::{Spacing, escape};
use crate::results::{
    Expression, MetricSpec, Parameter, Parameters, Provenance, Results, begins, in_words, stated_kernel,
};
use crate::units::capitalized;

/// How many lines and how many bars a plot has room for.
const LINES: usize = 4;
const BARS: usize = 16;
/// The most rows of a table.
const ROWS: usize = 256;
/// The most letters of a name that is made of a title: of two, files are named.
const MAX_LETTERS: usize = 80;

impl Document {
    /// The document with tables and plots of what no document of a book shows of its experiment: rows and recorded
    /// timelines.
    pub fn with_tables(&self, results: &[Results], documents: &[Self]) -> Self {
        self.clone().completed(&self.id, results, documents)
    }

    /// What is to be said of an experiment that has no document.
    pub fn of_experiment(name: &str, order: u32, results: &[Results]) -> Self {
        let ran = results.iter().flat_map(|results| &results.runs).flat_map(|run| &run.order);
        let summary =
            ran.filter(|ran| ran.name == name && !ran.summary.is_empty()).map(|ran| ran.summary.as_str()).next();
        let document = Self {
            id: anchor(name),
            order,
            title: capitalized(&name.replace('-', " ")),
            // The results' own words, which may be anybody's: the documents' are Markdown.
            question: summary.map(|summary| format!("{}.", escape(summary))).unwrap_or_default(),
            ..Self::default()
        };
        document.completed(name, results, &[])
    }

    fn completed(mut self, experiment: &str, results: &[Results], documents: &[Self]) -> Self {
        let shown: HashSet<String> = documents.iter().chain([&self]).flat_map(Self::shown).map(str::to_owned).collect();
        let mut known = HashSet::new();
        let specs = || results.iter().flat_map(|results| results.rows.of_experiment(experiment)).map(|row| &row.spec);
        // What the same code twice comes to is said once, of all experiments, on the page of the method.
        let twice: HashSet<&str> = specs().filter(|spec| spec.is_same_code()).map(|spec| spec.group.as_str()).collect();
        let others = specs().filter(|spec| !shown.contains(&spec.id) && !twice.contains(spec.group.as_str()));
        let rows: Vec<&MetricSpec> = others.filter(|spec| known.insert((&spec.id, &spec.parameters))).collect();
        let timelines = self.timelines(experiment, results);
        let headings = grouped(rows.iter().map(|spec| (spec.group.as_str(), *spec)));
        let mut taken: Vec<String> = Vec::new();
        let mut rows_of: HashMap<&str, Vec<&MetricSpec>> = HashMap::new();
        rows.iter().for_each(|spec| rows_of.entry(&spec.id).or_default().push(spec));
        let amounts: HashSet<String> = rows.iter().flat_map(|spec| amounts(spec)).collect();
        for (heading, rows) in headings {
            let name = untaken(&anchor(heading), &taken);
            let tables = tables(heading, &name, &rows, &rows_of, &amounts);
            let drawn = tables.iter().filter(|table| has_amounts(table, results));
            let panels: Vec<Panel> = drawn.flat_map(panels).collect();
            let (id, title) = (format!("{name}-plot"), heading.to_owned());
            taken.push(name);
            self.figures.push(DocumentFigure { id, title, caption: String::new(), panels });
            self.tables.extend(tables);
        }
        if rows.iter().any(|spec| stated_kernel(spec).is_some()) {
            let (id, title) = ("roofline".to_owned(), "The roofline".to_owned());
            let panels = vec![Panel { roofline: true, ..Panel::default() }];
            let caption = "Each mark is a rate by the operations for each byte, below what the memory and the arithmetic \
                           of this device were measured to give: the bytes and operations of a kernel are those that \
                           its author states, and its roof is that of fp32.";
            self.figures.push(DocumentFigure { id, title, caption: caption.to_owned(), panels });
        }
        self.figures.extend(timelines);
        self.figures.retain(|figure| !figure.panels.is_empty());
        self
    }

    /// The recorded timelines of an experiment that no figure draws, each with the label of the row that it is of.
    fn timelines(&self, experiment: &str, results: &[Results]) -> Option<DocumentFigure> {
        let mut known: HashSet<&str> = self.panels().filter_map(|panel| panel.timeline.as_deref()).collect();
        let mut panels = Vec::new();
        for (results, recorded) in results.iter().flat_map(|one| one.timelines.iter().map(move |own| (one, own))) {
            let name = recorded.name.as_str();
            if begins(name, experiment) && known.insert(name) {
                let row = results.rows.of(name).next();
                let title = row.map(|row| row.spec.label.clone());
                let timeline = Some(name.to_owned());
                panels.push(Panel { title, timeline, ..Panel::default() });
            }
        }
        let (id, title) = ("recorded-timelines".to_owned(), "Recorded timelines".to_owned());
        (!panels.is_empty()).then(|| DocumentFigure { id, title, caption: String::new(), panels })
    }
}

/// The tables of the rows of a heading, which is called `name` in links: one for those that are told apart by the same cases,
/// in as many parts as their rows take. `rows_of` has the rows of each identifier, under any heading; of the `amounts`, see
/// [`amounts`].
fn tables(
    heading: &str,
    name: &str,
    rows: &[&MetricSpec],
    rows_of: &HashMap<&str, Vec<&MetricSpec>>,
    amounts: &HashSet<String>,
) -> Vec<DocumentTable> {
    let mut seen = HashSet::new();
    let new = rows.iter().filter(|spec| seen.insert(&spec.id));
    let of_cases = grouped(new.map(|spec| {
        let (label, id, unit) = (spec.label.clone(), spec.id.clone(), spec.unit);
        (selects(&rows_of[spec.id.as_str()], amounts), DocumentRow { label, id, unit, ..DocumentRow::default() })
    }));
    let parts = of_cases.iter().flat_map(|(selects, rows)| rows.chunks(ROWS).map(move |rows| (selects, rows)));
    let table = |(place, (selects, rows)): (usize, (&Vec<Parameters>, &[DocumentRow]))| {
        let case = |select: &Parameters| TableCase { label: in_words(select), select: select.clone() };
        // The parameters that tell its rows apart.
        let names = selects.first().map(|select| select.keys().map(String::as_str).collect::<Vec<_>>().join(", "));
        let title = names.map_or_else(|| heading.to_owned(), |names| format!("{heading} ({names})"));
        let (id, cases) = (format!("{name}-{place}"), selects.iter().map(case).collect());
        DocumentTable { id, title, cases, rows: rows.to_vec(), ..DocumentTable::default() }
    };
    (1..).zip(parts).map(table).collect()
}

/// The parameters that a row's formula computes with, such as the bytes of a launch: whoever stated them computed them of what is
/// varied.
fn amounts(spec: &MetricSpec) -> Vec<String> {
    let Provenance::Derived { formula, .. } = &spec.provenance else { return Vec::new() };
    let formula = Expression::formula(formula);
    let names = formula.iter().flat_map(Expression::names);
    names.filter(|name| spec.parameters.contains_key(*name)).map(str::to_owned).collect()
}

/// The sets of values of the parameters that differ among the rows, each a case; none where none does. A number that follows
/// from another one, such as the iterations from the size, tells no cases apart. Of two that follow from each other, an amount does.
fn selects(rows: &[&MetricSpec], amounts: &HashSet<String>) -> Vec<Parameters> {
    let mut values = grouped(each_once(rows.iter().flat_map(|row| &row.parameters)));
    values.retain(|(_, values)| values.len() > 1);
    values.sort_by_key(|(_, values)| values.len());
    let cases = |names: &[&String]| -> Vec<Parameters> {
        let select = |row: &&MetricSpec| -> Parameters {
            let own = row.parameters.iter().filter(|(name, _)| names.contains(name));
            own.map(|(name, value)| (name.clone(), value.clone())).collect()
        };
        each_once(rows.iter().map(select).filter(|select| !select.is_empty()))
    };
    let mut names: Vec<&String> = values.iter().map(|(name, _)| *name).collect();
    let is_number = |values: &[&Parameter]| values.iter().all(|value| value.number().is_some());
    for (name, few) in values.iter().filter(|(_, few)| is_number(few)) {
        let others: Vec<&String> = names.iter().copied().filter(|other| other != name).collect();
        let decides = |(other, more): &(&String, Vec<&Parameter>)| {
            let as_many = more.len() == few.len() && amounts.contains(*name) && !amounts.contains(*other);
            (more.len() > few.len() || as_many) && is_number(more)
        };
        if values.iter().any(decides) && cases(&others).len() == cases(&names).len() {
            names = others;
        }
    }
    cases(&names)
}

/// Whether a run measured anything of a table that is more than yes or no, which no plot shows better than the table.
fn has_amounts(table: &DocumentTable, results: &[Results]) -> bool {
    let rows = results.iter().flat_map(|results| table.rows.iter().flat_map(|row| results.rows.of(&row.id)));
    let mut values = rows.flat_map(|row| &row.series).filter_map(|series| series.outcome.values());
    values.any(|values| values.iter().any(|value| *value != 0.0 && *value != 1.0))
}

/// The plot of a table: of the rows that share the first one's unit, in as many panels as they take.
fn panels(table: &DocumentTable) -> Vec<Panel> {
    let Some(unit) = table.rows.first().map(|row| row.unit) else { return Vec::new() };
    let drawn: Vec<&DocumentRow> = table.rows.iter().filter(|row| row.unit == unit).collect();
    let panel = |bars, lines| {
        let (id, title) = (table.id.clone(), Some(table.title.clone()));
        Panel { table: id, title, bars, lines, ..Panel::default() }
    };
    match parameter(table) {
        Some(x) => {
            let (series, scale) = (series(table, &drawn, x), Spacing::Log);
            let lines = |series: &[PanelSeries]| Lines {
                x: x.to_owned(),
                scale,
                values: scale,
                series: series.to_vec(),
                ..Lines::default()
            };
            series.chunks(LINES).map(|series| panel(Vec::new(), Some(lines(series)))).collect()
        }
        None => {
            let bars: Vec<String> = drawn.iter().map(|row| row.id.clone()).collect();
            let most = (BARS / table.cases.len().max(1)).max(1);
            bars.chunks(most).map(|bars| panel(bars.to_vec(), None)).collect()
        }
    }
}

/// The parameter that has the most values, where they are numbers and three or more.
fn parameter(table: &DocumentTable) -> Option<&String> {
    let count = |name: &&String| {
        let values = table.cases.iter().filter_map(|case| case.select.get(*name));
        let mut numbers: Vec<f64> = values.filter_map(Parameter::number).collect();
        numbers.sort_by(f64::total_cmp);
        numbers.dedup();
        numbers.len()
    };
    table.cases.first()?.select.keys().max_by_key(count).filter(|name| count(name) > 2)
}

/// A line for each row and each set of the other parameters.
fn series(table: &DocumentTable, drawn: &[&DocumentRow], x: &str) -> Vec<PanelSeries> {
    let others = each_once(table.cases.iter().map(|case| {
        let mut other = case.select.clone();
        other.remove(x);
        other
    }));
    let line = |row: &&DocumentRow, select: &Parameters| {
        let words = in_words(select);
        let label = if words.is_empty() { row.label.clone() } else { format!("{}, {words}", row.label) };
        let (id, select) = (row.id.clone(), select.clone());
        PanelSeries { id, label: Some(label), select, predicts: None, bound: false }
    };
    drawn.iter().flat_map(|row| others.iter().map(move |other| line(row, other))).collect()
}

/// A name that no heading before has: headings may differ in nothing that a name can hold.
fn untaken(name: &str, taken: &[String]) -> String {
    let name = if name.is_empty() { "rows" } else { name };
    let is_free = |name: &String| !taken.contains(name);
    let numbered = (2..).map(|number| format!("{name}-part-{number}"));
    std::iter::once(name.to_owned()).chain(numbered).find(is_free).unwrap_or_default()
}

/// A title as a name. Of a long one it has the beginning, and a digest that no other has.
fn anchor(title: &str) -> String {
    let letters = title.to_lowercase();
    let words = letters.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let name = words.collect::<Vec<_>>().join("-");
    if name.len() <= MAX_LETTERS {
        return name;
    }
    let digest = Sha256::digest(title);
    let digest: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{digest}", &name[..MAX_LETTERS])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_bytes_of_a_launch_make_no_line_of_each_size() {
        let spec = |id: &str, provenance: serde_json::Value, elements: u64| -> MetricSpec {
            let parameters = json!({ "bytes": 12 * elements, "elements": elements, "operations": 2 * elements });
            let group = "Kernels";
            serde_json::from_value(json!({
                "id": id, "label": id, "group": group, "unit": "seconds", "parameters": parameters, "provenance": provenance,
            }))
            .unwrap()
        };
        let derived = |formula: &str| json!({ "derived": { "derivation": "computation", "formula": formula } });
        let sizes = [1 << 10, 1 << 15, 1 << 20];
        let timed: Vec<MetricSpec> =
            sizes.iter().map(|n| spec("k.time", json!({ "measured": { "clock": "host" } }), *n)).collect();
        let rates = ["bytes / time", "operations / time"].map(|formula| spec("k.rate", derived(formula), 1));
        let stated: HashSet<String> = rates.iter().flat_map(amounts).collect();
        assert_eq!(stated, HashSet::from(["bytes".to_owned(), "operations".to_owned()]));
        let rows: Vec<&MetricSpec> = timed.iter().collect();
        let names: Vec<Vec<String>> =
            selects(&rows, &stated).iter().map(|select| select.keys().cloned().collect()).collect();
        assert_eq!(names, vec![vec!["elements".to_owned()]; 3]);
    }
}
