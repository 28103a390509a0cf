//! Plots as SVG that can stand within a page: bars with whiskers, lines over a parameter, histograms and
//! timelines.
//!
//! A panel is drawn as wide as a phone, and a page sets as many beside each other as it has room for: text keeps its
//! size, where a wide picture would shrink it. Colours are variables of the page's style sheet with a fallback, so
//! that a plot follows the page's theme. Colour never stands alone: hatching, marks and dashes say the same.
//!
//! plotters draws and knows no variables: it is given one made-up colour for each role, and the roles are put in their
//! place in its output. Coordinates are whole pixels, which is exact enough for a plot and a millimetre off for nobody.

mod axis;
mod bars;
mod histogram;
mod lane;
mod lines;
mod timeline;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

pub use bars::{Bar, BarGroup, BarPlot};
pub use histogram::Histogram;
pub use lines::{Line, LinePlot, Point, Spacing};
pub use timeline::TimelinePlot;

use super::escape::escape;
use crate::clean::is_unseen;
use crate::error::PlotError;
use crate::units::significant;

const WIDTH: u32 = 360;
/// The height of a line of text.
const LINE: u32 = 18;
/// plotters divides a font's size by 1.24 when it writes SVG.
const FONT: f64 = 13.0 * 1.24;
/// How many characters of a title fit beside each other.
const TITLE_CHARACTERS: usize = 44;

const TEXT: RGBColor = RGBColor(1, 1, 1);
const MUTED: RGBColor = RGBColor(2, 2, 2);
const GRID: RGBColor = RGBColor(3, 3, 3);
const WHISKER: RGBColor = RGBColor(4, 4, 4);

/// The page's variables for what is drawn, each with what stands in for it.
const FIRST_PLACE: &str = "var(--plot-first, #2a6fb0)";
const SECOND_PLACE: &str = "var(--plot-second, #b5541c)";
const THIRD_PLACE: &str = "var(--plot-third, #2f7d43)";
const FOURTH_PLACE: &str = "var(--plot-fourth, #7a3d94)";

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

/// A made-up colour and what takes its place: the inside of a quoted attribute, and further attributes behind it.
struct Place {
    colour: RGBColor,
    value: String,
    attributes: &'static str,
}

impl Place {
    fn new(colour: RGBColor, value: &str) -> Self {
        Self { colour, value: value.to_owned(), attributes: "" }
    }
}

/// A picture to be drawn and finished.
struct Picture<'a> {
    /// Unique in the page: the identifiers within the picture begin with it.
    id: &'a str,
    title: &'a str,
    description: &'a str,
    height: u32,
    /// Definitions that the drawing refers to.
    definitions: &'a str,
    /// What takes the place of the drawing's own colours.
    places: &'a [Place],
}

impl Picture<'_> {
    /// Has `draw` draw, below the title, and puts the description and the page's colours into it.
    fn svg(&self, draw: impl FnOnce(&Area<'_>) -> Drawn) -> Result<String, PlotError> {
        let mut svg = String::new();
        {
            let root = SVGBackend::with_string(&mut svg, (WIDTH, self.height)).into_drawing_area();
            self.draw_title(&root)
                .and_then(|()| draw(&root))
                .and_then(|()| Ok(root.present()?))
                .map_err(|error| PlotError { message: error.to_string() })?;
        }
        Ok(self.finish(&svg))
    }

    fn draw_title(&self, root: &Area<'_>) -> Drawn {
        for (line, number) in wrapped(self.title).into_iter().zip(0_u32..) {
            root.draw(&Text::new(line, (8, 8 + (LINE * number) as i32), bold()))?;
        }
        Ok(())
    }

    fn finish(&self, svg: &str) -> String {
        let Self { height, definitions, .. } = self;
        let (id, title, description) = (identifier(self.id), escape(self.title), escape(self.description));
        let head = format!(
            "<svg class=\"plot\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
             aria-labelledby=\"{id}-title {id}-desc\" xmlns=\"http://www.w3.org/2000/svg\">\n\
             <title id=\"{id}-title\">{title}</title>\n<desc id=\"{id}-desc\">{description}</desc>\n{definitions}"
        );
        let body = svg.split_once('\n').map_or("", |(_, body)| body);
        let body: String = body.chars().filter(|c| *c == '\n' || !is_unseen(*c)).collect();
        // A brace can come only from a label, and two of them would be a directive of mdBook.
        let mut body = body.replace('{', "&#123;").replace('}', "&#125;");
        let common = [
            Place::new(TEXT, "var(--plot-text, #1a1a1a)"),
            Place::new(MUTED, "var(--plot-muted, #5f5f5f)"),
            Place::new(GRID, "var(--plot-grid, #dddddd)"),
            Place::new(WHISKER, "var(--plot-whisker, #000000)"),
        ];
        for Place { colour: RGBColor(r, g, b), value, attributes } in common.iter().chain(self.places) {
            body = body.replace(&format!("\"#{r:02X}{g:02X}{b:02X}\""), &format!("\"{value}\"{attributes}"));
        }
        head + &body
    }
}

/// The height of a title with the room below it.
fn title_height(title: &str) -> u32 {
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

fn font(colour: RGBColor) -> TextStyle<'static> {
    ("sans-serif", FONT).into_font().color(&colour)
}

fn bold() -> TextStyle<'static> {
    ("sans-serif", FONT).into_font().style(FontStyle::Bold).color(&TEXT)
}

/// A style whose text ends, or begins, or is centred at a point, at half its height.
fn beside(style: TextStyle<'static>, side: HPos) -> TextStyle<'static> {
    style.pos(Pos::new(side, VPos::Center))
}

/// A tick's number: as short as it is exact.
fn significant_short(value: f64) -> String {
    let text = significant(value, 3);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A tick's number with its unit's symbol; a unit without one, and 0, stand alone.
fn tick_text(value: f64, symbol: &str) -> String {
    let number = significant_short(value);
    if symbol.is_empty() || value == 0.0 { number } else { format!("{number} {symbol}") }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `id` with all but letters, digits and hyphens replaced.
fn identifier(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}
