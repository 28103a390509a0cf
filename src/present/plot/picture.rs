//! A panel: its size and its title.

use super::svg::{Paint, Pattern, Svg, finished};
use super::text::Weight;

pub(super) const WIDTH: i32 = 360;
/// The height of a line of text.
pub(super) const LINE: i32 = 18;
/// The left edge of the title, and the room that text keeps from the right edge.
pub(super) const MARGIN: i32 = 8;

/// A picture to be drawn.
pub(super) struct Picture<'a> {
    /// Unique in the page: the identifiers within the picture begin with it.
    pub(super) id: &'a str,
    pub(super) title: &'a str,
    pub(super) description: &'a str,
    pub(super) height: i32,
    /// What [`Paint::Pattern`] refers to.
    pub(super) patterns: &'a [Pattern],
}

impl Picture<'_> {
    /// Has `draw` draw below the title.
    pub(super) fn svg(&self, draw: impl FnOnce(&mut Svg<'_>)) -> String {
        // An identifier is of letters, digits and hyphens.
        let id: String = self.id.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let mut svg = Svg { body: String::new(), size: (WIDTH, self.height), id: &id, patterns: self.patterns };
        Weight::Bold.draw(&mut svg, &title_lines(self.title), (MARGIN, MARGIN - 2), Paint::Text);
        draw(&mut svg);
        finished((&id, self.patterns), (self.title, self.description), svg.size, &svg.body)
    }
}

/// The height of a title with the room below it.
pub(super) fn title_height(title: &str) -> i32 {
    height(&title_lines(title)) + 16
}

fn title_lines(title: &str) -> Vec<String> {
    Weight::Bold.lines(title, room(MARGIN))
}

/// The height of lines of text.
pub(super) fn height(lines: &[String]) -> i32 {
    LINE * lines.len() as i32
}

/// How much room a text has that begins at `left`.
pub(super) fn room(left: i32) -> i32 {
    WIDTH - left - MARGIN
}
