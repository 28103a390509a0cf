//! A panel: its size and its title.

use plotters::coord::Shift;
use plotters::prelude::*;

use super::svg::{Paint, Pattern, Svg, finished};
use super::text::Weight;
use crate::PlotError;

pub(super) const WIDTH: u32 = 360;
/// The height of a line of text.
pub(super) const LINE: u32 = 18;
/// The left edge of the title, and the room that text keeps from the right edge.
pub(super) const MARGIN: i32 = 8;

pub(super) type Area<'a> = DrawingArea<Svg<'a>, Shift>;
pub(super) type DrawResult = Result<(), Box<dyn std::error::Error>>;

/// A picture to be drawn.
pub(super) struct Picture<'a> {
    /// Unique in the page: the identifiers within the picture begin with it.
    pub(crate) id: &'a str,
    pub(super) title: &'a str,
    pub(super) description: &'a str,
    pub(super) height: u32,
    /// What [`Paint::Pattern`] refers to.
    pub(super) patterns: &'a [Pattern],
}

impl Picture<'_> {
    /// Has `draw` draw below the title.
    pub(super) fn svg(&self, draw: impl FnOnce(&Area<'_>) -> DrawResult) -> Result<String, PlotError> {
        // An identifier is of letters, digits and hyphens.
        let id: String = self.id.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let (mut body, size) = (String::new(), (WIDTH, self.height));
        {
            let svg = Svg { body: &mut body, size, id: &id, patterns: self.patterns };
            let root = svg.into_drawing_area();
            let drawn = self.draw_title(&root).and_then(|()| draw(&root));
            drawn.map_err(|error| PlotError { message: error.to_string() })?;
        }
        Ok(finished((&id, self.patterns), (self.title, self.description), size, &body))
    }

    fn draw_title(&self, root: &Area<'_>) -> DrawResult {
        Weight::Bold.draw(root, title_lines(self.title), (MARGIN, MARGIN - 2), Paint::Text)
    }
}

/// The height of a title with the room below it.
pub(super) fn title_height(title: &str) -> u32 {
    LINE * title_lines(title).len() as u32 + 16
}

fn title_lines(title: &str) -> Vec<String> {
    Weight::Bold.lines(title, room(MARGIN))
}

/// How much room a text has that begins at `left`.
pub(super) fn room(left: i32) -> i32 {
    WIDTH as i32 - left - MARGIN
}
