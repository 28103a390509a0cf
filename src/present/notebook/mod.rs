//! One block of a cell: pieces of HTML and the plain text beside them.
//!
//! A cell shows one block of each MIME type, so several values go on one page. A page shows the same in a notebook that is
//! not trusted, which drops scripts, style sheets and SVG: a plot is an image in the page's own bytes, which is seen on a
//! light and on a dark ground, and each element of a table has its style.

mod table;

use std::fmt::Display;

use crate::plot::on_any_ground;
use crate::units::Unit;
use crate::{
    BarPlot, Cell, Column, Estimate, Histogram, LinePlot, Missing, Precision, Role, Table, TableRow, TimelinePlot,
    Value, escape,
};

/// What can stand on a page.
pub trait Show {
    /// The page with it.
    fn on(&self, page: Page) -> Page;
}

/// What a cell shows: tables, plots and sentences, one below the other.
///
/// ```
/// use syncscope_present::{Line, LinePlot, Page};
///
/// let line = Line::predicted("a model", 0, &[(1.0, 1e-6), (2.0, 2e-6)]);
/// let page = Page::new().note("A model.").show(&LinePlot::of_times("A model", "size", vec![line]));
/// assert!(page.to_html().contains("<img "));
/// page.evcxr_display();
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    html: String,
    text: String,
}

impl Page {
    /// An empty page.
    pub fn new() -> Self {
        Self::default()
    }

    /// With a sentence.
    #[must_use]
    pub fn note(mut self, sentence: impl Display) -> Self {
        let sentence = sentence.to_string();
        self.html.push_str(&format!("<p>{}</p>\n", escape(&sentence)));
        self.text.push_str(&format!("{sentence}\n"));
        self
    }

    /// With text whose lines and spaces stay as they are.
    #[must_use]
    pub fn verbatim(mut self, text: impl Display) -> Self {
        let text = text.to_string();
        self.html.push_str(&format!("<pre>{}</pre>\n", escape(&text).replace('\n', "&#10;")));
        self.text.push_str(&format!("{text}\n"));
        self
    }

    /// With `shown` as it shows itself at the end of a cell.
    #[must_use]
    pub fn show(self, shown: &impl Show) -> Self {
        shown.on(self)
    }

    /// With a picture; `description` is its text.
    fn picture(mut self, description: &str, svg: &str) -> Self {
        let (width, svg) = alone(svg);
        let (alt, address) = (escape(description), address(&svg));
        self.html.push_str(&format!("<img width=\"{width}\" alt=\"{alt}\" src=\"{address}\">\n"));
        self.text.push_str(&format!("{description}\n"));
        self
    }

    /// The page as a fragment of HTML without empty lines.
    pub fn to_html(&self) -> String {
        format!("<div class=\"syncscope-cell\">\n{}</div>", self.html)
    }

    /// The page as plain text.
    pub fn to_text(&self) -> String {
        self.text.trim_end().to_owned()
    }

    /// Shows the page in the cell: evcxr takes what stands between its marks on the standard output for content.
    pub fn evcxr_display(&self) {
        for (mime, content) in [("text/html", self.to_html()), ("text/plain", self.to_text())] {
            println!("EVCXR_BEGIN_CONTENT {mime}\n{content}\nEVCXR_END_CONTENT");
        }
    }
}

/// Has a type that is [`Show`]n show itself at the end of a cell. The method belongs to the type: a trait in scope would
/// keep evcxr from showing a number whose type is not known.
#[macro_export]
macro_rules! displayed {
    ($($type:ty),+ $(,)?) => {$(
        impl $type {
            /// Shows it in a cell of a notebook.
            pub fn evcxr_display(&self) {
                $crate::Page::new().show(self).evcxr_display();
            }
        }
    )+};
}

displayed!(Estimate, Table, BarPlot, LinePlot, Histogram, TimelinePlot<'_>);

impl Show for Estimate {
    fn on(&self, page: Page) -> Page {
        page.show(&table_of("Estimate", "median", vec![estimated("samples", self, Unit::Seconds, false)]))
    }
}

impl Show for Table {
    fn on(&self, mut page: Page) -> Page {
        page.html.push_str(&table::html(self));
        page.text.push_str(&self.to_console());
        page
    }
}

macro_rules! picture {
    ($($type:ty),+) => {$(
        impl Show for $type {
            fn on(&self, page: Page) -> Page {
                // Within an image, no identifier meets another picture's.
                page.picture(&self.description(), &self.to_svg("plot"))
            }
        }
    )+};
}

picture!(BarPlot, LinePlot, Histogram, TimelinePlot<'_>);

/// A table of rows with one value each.
pub fn table_of(title: &str, heading: &str, rows: Vec<TableRow>) -> Table {
    let columns = vec![Column::new(Role::Label, "case"), Column::new(Role::Measured, heading)];
    Table::new(title, columns, rows)
}

/// A row with an estimate, which may be that of a difference.
pub fn estimated(label: &str, estimate: &Estimate, unit: Unit, difference: bool) -> TableRow {
    let value = Value { difference, ..Value::estimated(estimate, unit, Precision::Interval) };
    let cell = match difference && !estimate.is_interval() {
        true => {
            let reason = format!("n = {} is too few for an interval", estimate.n);
            Cell::Missing(Missing::new("not distinguishable from 0", Some(&reason)))
        }
        false => Cell::Value(Box::new(value)),
    };
    TableRow::new(label, vec![cell])
}

/// SVG as the address of an image: what an address or an attribute would act on is escaped (RFC 3986, 2.1).
fn address(svg: &str) -> String {
    let sign = |byte: u8| match byte {
        b'%' | b'#' | b'"' | b'<' | b'>' | b'&' | b'\'' | 0..=b' ' | 0x7F.. => format!("%{byte:02X}"),
        _ => char::from(byte).to_string(),
    };
    format!("data:image/svg+xml,{}", svg.bytes().map(sign).collect::<String>())
}

/// A picture of its own, with its size. Its width comes first.
fn alone(svg: &str) -> (String, String) {
    let size = svg.split_once("viewBox=\"0 0 ").and_then(|(_, rest)| rest.split_once('"'));
    let (width, height) = size.and_then(|(size, _)| size.split_once(' ')).unwrap_or(("600", "300"));
    let sized = svg.replacen("<svg ", &format!("<svg width=\"{width}\" height=\"{height}\" "), 1);
    (width.to_owned(), on_any_ground(&sized))
}

#[cfg(test)]
mod tests {
    use super::*;
    fn samples(name: &str) -> Histogram {
        let estimate = Estimate {
            median: 40e-6,
            low: 35e-6,
            high: 44e-6,
            lower_quartile: 30e-6,
            upper_quartile: 50e-6,
            n: 40,
            runs: 1,
            spread: None,
            coverage: 0.95,
        };
        let samples = (0..40).map(|i| 1e-6 * f64::from(20 + i * 7 % 40)).collect();
        Histogram { title: name.to_owned(), unit: Unit::Seconds, samples, estimate }
    }

    #[test]
    fn a_plot_is_an_image_and_nothing_needs_a_style_sheet_or_a_script() {
        let html = Page::new().show(&samples("a")).show(&samples("b")).to_html();
        assert!(["<svg", "<style", "<script", "class=\"spoken"].iter().all(|lost| !html.contains(lost)), "{html}");
        let images: Vec<&str> = html.split("<img ").skip(1).collect();
        assert_eq!(images.len(), 2);
        for image in images {
            assert!(image.contains("alt=\"Histogram of 40 samples"), "{image}");
            let (_, data) = image.split_once("src=\"data:image/svg+xml,").unwrap();
            let svg = data.split_once('"').unwrap().0;
            assert!(svg.starts_with("%3Csvg%20width=%22") && !svg.contains("var("), "{svg}");
        }
        let html = Page::new()
            .show(&table_of("t", "median", vec![estimated("a", &samples("a").estimate, Unit::Seconds, false)]))
            .to_html();
        assert!(html.contains("<td style=\"text-align:left"), "{html}");
    }

    #[test]
    fn a_page_has_no_empty_line_and_what_comes_from_outside_is_text() {
        let page = Page::new().note("<script>\n</script>").verbatim("a\n\nb");
        let page = page.show(&table_of(
            "t",
            "median",
            vec![estimated("<img src=x>", &samples("a").estimate, Unit::Seconds, false)],
        ));
        let (html, text) = (page.to_html(), page.to_text());
        assert!(html.lines().all(|line| !line.trim().is_empty()), "{html}");
        assert!(!html.contains("<script") && !html.contains("<img src=x"), "{html}");
        assert!(text.contains("<img src=x>") && text.contains("a\n\nb"), "{text}");
    }

    #[test]
    fn equal_pages_are_equal_bytes() {
        assert_eq!(Page::new().show(&samples("a")).to_html(), Page::new().show(&samples("a")).to_html());
    }
}
