//! A table in a cell of a notebook: that of a page, with a style on each element.
//!
//! A notebook that is not trusted drops style sheets and keeps the styles of elements. Text takes the colour of the notebook,
//! on a light and on a dark background, and a notebook's own style aligns all cells to the right.

use crate::Table;

/// What elements begin with, and their styles. No text of a cell holds such a beginning: its signs are escaped.
const STYLES: [(&str, &str); 7] = [
    ("<caption", "text-align:left;font-weight:bold;white-space:nowrap"),
    ("<th scope=\"col\"", "text-align:left;vertical-align:bottom;font-weight:bold"),
    ("<th scope=\"rowgroup\"", "text-align:left;vertical-align:bottom;font-weight:bold"),
    ("<th scope=\"row\"", "text-align:left;vertical-align:top;font-weight:normal"),
    ("<td", "text-align:left;vertical-align:top"),
    ("<span class=\"spoken\"", "display:none"),
    ("<span class=\"unit\"", "display:none"),
];
/// The classes of what stands in lines of its own.
const SMALL: [&str; 6] = ["device", "reason", "interval", "samples", "share", "note"];

/// The table as HTML without empty lines.
pub(super) fn html(table: &Table) -> String {
    let styled = |html: String, begin: &str, style: &str| html.replace(begin, &format!("{begin} style=\"{style}\""));
    let html = STYLES.iter().fold(table.to_html(), |html, (begin, style)| styled(html, begin, style));
    let small = SMALL.map(|class| format!("<span class=\"{class}\""));
    small.iter().fold(html, |html, begin| styled(html, begin, "display:block;font-size:0.85em;opacity:0.85"))
}
