//! One block of a cell: pieces of HTML and the plain text beside them.
//!
//! A cell shows one block of each MIME type, so several values go on one page. Colours follow the colour of the text, so
//! that a page is legible on a light and on a dark background.

use std::fmt::Display;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::error::PlotError;
use crate::present::{Table, escape};

const STYLE: &str = include_str!("cell.css");

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
        self.html.push_str(&table.to_html());
        self.text.push_str(&table.to_console());
        self
    }

    /// With the picture that `draw` draws with an identifier; `description` is its text.
    pub(super) fn picture(mut self, description: &str, draw: impl FnOnce(&str) -> Result<String, PlotError>) -> Self {
        // Cells cannot count pictures together, so the identifiers come from what a picture shows.
        let mut hasher = DefaultHasher::new();
        (description, self.html.len()).hash(&mut hasher);
        match draw(&format!("p{:016x}", hasher.finish())) {
            Ok(svg) => {
                let svg: Vec<&str> = svg.lines().filter(|line| !line.trim().is_empty()).collect();
                let before = self.html.strip_suffix("</div>\n").filter(|html| html.ends_with("</svg>\n"));
                // Pictures that follow each other stand side by side.
                self.html = before.map_or_else(|| format!("{}<div class=\"plots\">\n", self.html), str::to_owned);
                self.html.push_str(&format!("{}\n</div>\n", svg.join("\n")));
                self.text.push_str(&format!("{description}\n"));
                self
            }
            Err(error) => self.note(error),
        }
    }

    /// The page as a fragment of HTML without empty lines.
    pub fn to_html(&self) -> String {
        format!("<div class=\"syncscope-cell\">\n<style>\n{STYLE}</style>\n{}</div>", self.html)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Samples;

    fn samples(name: &str) -> Samples {
        Samples::new(name, (0..40).map(|i| 1e-6 * f64::from(20 + i * 7 % 40)).collect()).unwrap()
    }

    #[test]
    fn pictures_have_identifiers_of_their_own_and_stand_side_by_side() {
        let html = Page::new().show(&samples("a")).show(&samples("b")).to_html();
        let mut ids: Vec<&str> = html.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert!(count >= 4 && ids.len() == count, "{ids:?}");
    }

    #[test]
    fn a_page_has_no_empty_line_and_what_comes_from_outside_is_text() {
        let page = Page::new().note("<script>\n</script>").verbatim("a\n\nb").show(&samples("<img src=x>"));
        let (html, text) = (page.to_html(), page.to_text());
        assert!(html.lines().all(|line| !line.trim().is_empty()), "{html}");
        assert!(!html.contains("<script") && !html.contains("<img"), "{html}");
        assert!(text.contains("<img src=x>") && text.contains("a\n\nb"), "{text}");
    }

    #[test]
    fn equal_pages_are_equal_bytes() {
        assert_eq!(Page::new().show(&samples("a")).to_html(), Page::new().show(&samples("a")).to_html());
    }
}
