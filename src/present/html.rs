//! A table as HTML.
//!
//! Every cell has the class of its column's role, so that a style sheet distinguishes published from measured values. The
//! table is in a wrapper that scrolls sideways and that the keyboard can reach. No line is empty: an empty line would end
//! a block of HTML in Markdown.

use super::escape::escape;
use super::table::{Cell, Column, Table, TableGroup, TableRow};
use super::value::Value;

impl Table {
    /// The table as a fragment of HTML without empty lines, so that it can stand in Markdown.
    pub fn to_html(&self) -> String {
        let title = escape(&self.title);
        let mut out = format!("<div class=\"results-scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{title}\">\n");
        out.push_str(&format!("<table class=\"results\">\n<caption>{title}</caption>\n<thead><tr>\n"));
        out.extend(self.columns.iter().enumerate().map(|(place, column)| heading(column, &units(self, place))));
        out.push_str("</tr></thead>\n");
        out.extend(self.groups.iter().map(|group| rows(group, &self.columns)));
        out + "</table>\n</div>\n"
    }
}

fn heading(column: &Column, units: &[&str]) -> String {
    let detail = column.detail.as_ref().map(|detail| format!(" <span class=\"device\">{}</span>", escape(detail)));
    let detail = detail.unwrap_or_default();
    let units = units.iter().map(|unit| escape(unit)).collect::<Vec<_>>().join(", ");
    let units = if units.is_empty() { units } else { format!(" <span class=\"unit\">in {units}</span>") };
    let text = match column.heading.as_str() {
        "" => "<span class=\"spoken\">row</span>".to_owned(),
        heading => escape(heading),
    };
    format!("<th scope=\"col\" class=\"{}\">{text}{units}{detail}</th>\n", column.role.name())
}

/// The units in which the values of a column are written, each once.
fn units(table: &Table, column: usize) -> Vec<&'static str> {
    let mut units = Vec::new();
    for row in table.groups.iter().flat_map(|group| &group.rows) {
        let Some(Cell::Value(value)) = column.checked_sub(1).and_then(|place| row.cells.get(place)) else { continue };
        if !value.symbol().is_empty() && !units.contains(&value.symbol()) {
            units.push(value.symbol());
        }
    }
    units
}

fn rows(group: &TableGroup, columns: &[Column]) -> String {
    let mut out = "<tbody>\n".to_owned();
    if let Some(label) = &group.label {
        let (label, all) = (escape(label), columns.len());
        out.push_str(&format!("<tr class=\"group\"><th scope=\"rowgroup\" colspan=\"{all}\">{label}</th></tr>\n"));
    }
    out.extend(group.rows.iter().map(|entry| row(entry, columns)));
    out + "</tbody>\n"
}

fn row(row: &TableRow, columns: &[Column]) -> String {
    let id = row.id.as_ref().map(|id| format!(" data-id=\"{}\"", escape(id))).unwrap_or_default();
    let cells = row.cells.iter().zip(columns.iter().skip(1)).map(|(entry, column)| cell(entry, column.role.name()));
    format!("<tr{id}><th scope=\"row\">{}</th>{}</tr>\n", escape(&row.label), cells.collect::<String>())
}

fn cell(cell: &Cell, role: &str) -> String {
    match cell {
        Cell::Text(text) => format!("<td class=\"{role}\">{}</td>", escape(text)),
        Cell::Nothing => format!("<td class=\"{role} nothing\">—</td>"),
        Cell::Missing(missing) => {
            let reason = missing.reason.as_ref().map(|reason| span("reason", reason)).unwrap_or_default();
            format!("<td class=\"{role} missing\">{}{reason}</td>", span("state", &missing.state))
        }
        Cell::Value(value) => value_cell(value, role),
    }
}

fn value_cell(value: &Value, role: &str) -> String {
    let formatted = value.formatted();
    let class = if value.is_indistinguishable_from_zero() { "value zero" } else { "value" };
    let mut out = span(class, &formatted.main);
    if let Some(interval) = &formatted.interval {
        let spoken = "<span class=\"spoken\">95 % interval: </span>";
        out.push_str(&format!("<span class=\"interval\">{spoken}{}</span> ", escape(interval)));
    }
    let parts = [("samples", &formatted.samples), ("share", &formatted.share)];
    let parts = parts.into_iter().filter_map(|(class, text)| Some((class, text.as_ref()?)));
    let notes = formatted.notes.iter().map(|note| ("note", note));
    out.extend(parts.chain(notes).map(|(class, text)| span(class, text)));
    format!("<td class=\"{role}\"{}>{out}</td>", hint(value))
}

/// The tooltip of the cell: what its value is of. How many samples that are stands in the cell.
fn hint(value: &Value) -> String {
    let Some(samples) = value.samples else { return String::new() };
    let median = if value.difference { "median difference" } else { "median" };
    let hint = match (samples.trials, samples.runs) {
        (true, 0 | 1) => "share of the trials of one run".to_owned(),
        (true, _) => "share of the trials of all runs".to_owned(),
        (false, 0 | 1) => format!("{median} of one run"),
        (false, _) => format!("mean of the runs' {median}s"),
    };
    let source = value.source.as_ref().map(|source| format!(", {source}")).unwrap_or_default();
    format!(" title=\"{}\"", escape(&format!("{hint}{source}")))
}

fn span(class: &str, text: &str) -> String {
    format!("<span class=\"{class}\">{}</span> ", escape(text))
}

/// How each such page begins, and no page of another program: by it a page is known that may be replaced.
pub const PAGE_BEGIN: &str = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
     <meta name=\"generator\" content=\"syncscope\">\n";

/// The page up to its body. Its Content-Security-Policy lets it load nothing; `scripts` is what that says of scripts.
pub fn page_head(title: &str, style: &str, scripts: &str) -> String {
    format!(
        "{PAGE_BEGIN}<meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'{scripts}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <style>\n{style}</style>\n</head>\n"
    )
}
