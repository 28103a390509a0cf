//! One block of a cell: pieces of HTML and the plain text beside them.
//!
//! A cell shows one block of each MIME type, so several values go on one page. A page shows the same in a notebook that is
//! not trusted, which drops scripts, style sheets and SVG: a plot is an image in the page's own bytes, on a white ground,
//! and each element of a table has its style.

use std::fmt::Display;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use super::table;
use crate::error::PlotError;
use crate::present::{Table, escape};

/// What can stand on a page.
pub trait Show {
    /// The page with it.
    fn on(&self, page: Page) -> Page;
}

/// What a cell shows: tables, plots and sentences, one below the other.
///
/// ```
/// use syncscope::measure::Samples;
/// use syncscope::notebook::Page;
///
/// let reads = Samples::new("read", vec![6.3e-6, 6.4e-6, 6.2e-6])?;
/// Page::new().note("Three reads are few.").show(&reads).evcxr_display();
/// # Ok::<(), syncscope::error::MeasureError>(())
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

    pub(super) fn table(mut self, table: &Table) -> Self {
        self.html.push_str(&table::html(table));
        self.text.push_str(&table.to_console());
        self
    }

    /// With the picture that `draw` draws with an identifier; `description` is its text.
    pub(super) fn picture(mut self, description: &str, draw: impl FnOnce(&str) -> Result<String, PlotError>) -> Self {
        // Within an image, no identifier meets another picture's.
        match draw("plot") {
            Ok(svg) => {
                let (width, svg) = alone(&svg);
                self.html.push_str(&format!(
                    "<img width=\"{width}\" alt=\"{}\" src=\"data:image/svg+xml;base64,{}\">\n",
                    escape(description),
                    BASE64_STANDARD.encode(svg)
                ));
                self.text.push_str(&format!("{description}\n"));
                self
            }
            Err(error) => self.note(error),
        }
    }

    /// The page as a fragment of HTML without empty lines.
    pub fn to_html(&self) -> String {
        format!("<div class=\"syncscope-cell\">\n{}</div>", self.html)
    }

    /// The page as plain text.
    pub fn to_text(&self) -> String {
        self.text.trim_end().to_owned()
    }

    /// Shows the page in the cell.
    pub fn evcxr_display(&self) {
        evcxr_runtime::mime_type("text/html").text(self.to_html());
        evcxr_runtime::mime_type("text/plain").text(self.to_text());
    }
}

/// A picture of its own: with its size and a ground. Its width comes first.
fn alone(svg: &str) -> (String, String) {
    let size = svg.split_once("viewBox=\"0 0 ").and_then(|(_, rest)| rest.split_once('"'));
    let (width, height) = size.and_then(|(size, _)| size.split_once(' ')).unwrap_or(("600", "300"));
    let ground = format!("<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n");
    let (root, rest) = svg.split_once('\n').unwrap_or((svg, ""));
    let root = root.replacen("<svg ", &format!("<svg width=\"{width}\" height=\"{height}\" "), 1);
    (width.to_owned(), format!("{root}\n{ground}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Samples;

    fn samples(name: &str) -> Samples {
        Samples::new(name, (0..40).map(|i| 1e-6 * f64::from(20 + i * 7 % 40)).collect()).unwrap()
    }

    #[test]
    fn a_plot_is_an_image_and_nothing_needs_a_style_sheet_or_a_script() {
        let html = Page::new().show(&samples("a")).show(&samples("b")).to_html();
        assert!(["<svg", "<style", "<script", "class=\"spoken"].iter().all(|lost| !html.contains(lost)), "{html}");
        let images: Vec<&str> = html.split("<img ").skip(1).collect();
        assert_eq!(images.len(), 2);
        for image in images {
            assert!(image.contains("alt=\"Histogram of 40 samples"), "{image}");
            let (_, data) = image.split_once("src=\"data:image/svg+xml;base64,").unwrap();
            let svg = String::from_utf8(BASE64_STANDARD.decode(data.split_once('"').unwrap().0).unwrap()).unwrap();
            assert!(svg.starts_with("<svg width=\"") && svg.contains("fill=\"#ffffff\"/>"), "{svg}");
        }
        assert!(html.contains("<td style=\"text-align:left"), "{html}");
    }

    #[test]
    fn a_page_has_no_empty_line_and_what_comes_from_outside_is_text() {
        let page = Page::new().note("<script>\n</script>").verbatim("a\n\nb").show(&samples("<img src=x>"));
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
