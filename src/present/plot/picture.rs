//! A panel: its size, its title, and how text stands in it.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::svg::{Paint, Pattern, Svg, finished};
use crate::error::PlotError;

pub(super) const WIDTH: u32 = 360;
/// The height of a line of text.
pub(super) const LINE: u32 = 18;
/// For plotters a font is that much larger than in SVG.
const FONT: f64 = 13.0 * 1.24;
/// How many characters of a title fit beside each other.
const TITLE_CHARACTERS: usize = 44;

pub(super) type Area<'a> = DrawingArea<Svg<'a>, Shift>;
pub(super) type Drawn = Result<(), Box<dyn std::error::Error>>;

/// A picture to be drawn.
pub(super) struct Picture<'a> {
    /// Unique in the page: the identifiers within the picture begin with it.
    pub(super) id: &'a str,
    pub(super) title: &'a str,
    pub(super) description: &'a str,
    pub(super) height: u32,
    /// What [`Paint::Pattern`] refers to.
    pub(super) patterns: &'a [Pattern],
}

impl Picture<'_> {
    /// Has `draw` draw below the title.
    pub(super) fn svg(&self, draw: impl FnOnce(&Area<'_>) -> Drawn) -> Result<String, PlotError> {
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

    fn draw_title(&self, root: &Area<'_>) -> Drawn {
        for (line, number) in wrapped(self.title).into_iter().zip(0_u32..) {
            root.draw(&Text::new(line, (8, 8 + (LINE * number) as i32), bold()))?;
        }
        Ok(())
    }
}

/// The height of a title with the room below it.
pub(super) fn title_height(title: &str) -> u32 {
    LINE * wrapped(title).len() as u32 + 16
}

/// The title in lines that fit.
fn wrapped(title: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in title.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= TITLE_CHARACTERS => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

pub(super) fn font(paint: Paint) -> TextStyle<'static> {
    ("sans-serif", FONT).into_font().color(&paint)
}

pub(super) fn bold() -> TextStyle<'static> {
    ("sans-serif", FONT).into_font().style(FontStyle::Bold).color(&Paint::Text)
}

/// A style whose text ends, or begins, or is centred at a point, at half its height.
pub(super) fn beside(style: TextStyle<'static>, side: HPos) -> TextStyle<'static> {
    style.pos(Pos::new(side, VPos::Center))
}
