//! A table in a cell of a notebook.
//!
//! A notebook that is not trusted drops style sheets and keeps the styles of elements, so each element has its own. Text
//! takes the colour of the notebook, on a light and on a dark background.

use crate::{Cell, Column, Table, Value, escape};

/// A notebook's own style aligns all cells to the right.
const CELL: &str = "text-align:left;vertical-align:top";
const HEADING: &str = "text-align:left;vertical-align:bottom;font-weight:bold";
const LABEL: &str = "text-align:left;vertical-align:top;font-weight:normal";
const CAPTION: &str = "text-align:left;font-weight:bold;white-space:nowrap";
const SMALL: &str = "display:block;font-size:0.85em;opacity:0.85";

/// The table as HTML without empty lines.
pub(super) fn html(table: &Table) -> String {
    let title = escape(&table.title);
    // In the book, a wide table scrolls.
    let mut out = format!("<div class=\"results-scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{title}\">\n");
    out.push_str(&format!("<table>\n<caption style=\"{CAPTION}\">{title}</caption>\n<thead><tr>"));
    for column in &table.columns {
        out.push_str(&format!("<th scope=\"col\" style=\"{HEADING}\">{}</th>", heading(column)));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for group in &table.groups {
        if let Some(label) = &group.label {
            let columns = table.columns.len();
            out.push_str(&format!("<tr><th colspan=\"{columns}\" style=\"{HEADING}\">{}</th></tr>\n", escape(label)));
        }
        for row in &group.rows {
            out.push_str(&format!("<tr><th scope=\"row\" style=\"{LABEL}\">{}</th>", escape(&row.label)));
            row.cells.iter().for_each(|shown| out.push_str(&format!("<td style=\"{CELL}\">{}</td>", cell(shown))));
            out.push_str("</tr>\n");
        }
    }
    out.push_str("</tbody>\n</table>\n</div>\n");
    out
}

fn heading(column: &Column) -> String {
    let detail = column.detail.as_deref().map(small).unwrap_or_default();
    format!("{}{detail}", escape(&column.heading))
}

fn cell(cell: &Cell) -> String {
    match cell {
        Cell::Text(text) => escape(text),
        Cell::Nothing => "—".to_owned(),
        Cell::Missing(missing) => {
            format!("{}{}", escape(&missing.state), missing.reason.as_deref().map(small).unwrap_or_default())
        }
        Cell::Value(value) => measured(value),
    }
}

fn measured(value: &Value) -> String {
    let written = value.formatted();
    let details = [written.interval, written.samples, written.spread, written.share].into_iter().flatten();
    let details: String = details.chain(written.notes).map(|text| small(&text)).collect();
    format!("{}{details}", escape(&written.main))
}

fn small(text: &str) -> String {
    format!("<span style=\"{SMALL}\">{}</span>", escape(text))
}
