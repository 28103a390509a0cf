//! What plots draw with, and the backend through which plotters writes it as SVG.
//!
//! plotters knows colours alone. Here a colour is the number of a [`Paint`], and what is written is the paint's class. The
//! picture's style sheet gives each class a variable of the page, with a colour for a picture that stands alone, so that a
//! plot follows the theme of its page. All text is written by [`escape`].

use std::convert::Infallible;
use std::fmt::{Display, Write as _};

use plotters::coord::Shift;
use plotters::element::{Drawable, PointCollection};
use plotters::prelude::{Circle, DrawingArea, IntoDrawingArea, IntoFont, PathElement, Polygon, Rectangle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontStyle};
use plotters_backend::{BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind};

use super::text::{MARGIN, WIDTH, Weight, title_lines};
use crate::escape::escape;

/// The classes, and the colours of a picture that stands alone. The page's variable has the name of the class.
const CLASSES: [(&str, &str); 12] = [
    ("plot-text", "#1a1a1a"),
    ("plot-muted", "#5f5f5f"),
    ("plot-grid", "#dddddd"),
    ("plot-whisker", "#000000"),
    ("plot-ground", "#ffffff"),
    ("plot-first", "#2a6fb0"),
    ("plot-second", "#b5541c"),
    ("plot-third", "#2f7d43"),
    ("plot-fourth", "#7a3d94"),
    ("plot-fifth", "#b8267a"),
    ("plot-sixth", "#7d6900"),
    ("plot-seventh", "#00767a"),
];

/// Those of a picture that may lie on a light or on a dark ground, where they are others: each is seen on both.
const ON_ANY_GROUND: [(&str, &str); 6] = [
    ("plot-text", "#767676"),
    ("plot-muted", "#808080"),
    ("plot-grid", "#80808066"),
    ("plot-whisker", "#767676"),
    ("plot-ground", "#00000000"),
    ("plot-fourth", "#9356ad"),
];
/// Areas are pale there, so that what lies on them is seen as well.
const PALE: &str = ".plot rect[fill=\"currentColor\"]{fill-opacity:0.45;stroke:currentColor}";

/// What is drawn with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paint {
    Text,
    Muted,
    Grid,
    Whisker,
    /// The colour of a series, from 0; they repeat after [`Paint::SERIES`].
    Series(u8),
    /// The colour of a series, dashed; the dashes of each series differ.
    Dashed(u8),
    /// The colour of a series, dotted.
    Dotted(u8),
    /// The pattern at this place among those of the picture.
    Pattern(u8),
}

impl Paint {
    /// How many series have a colour of their own.
    pub(super) const SERIES: u8 = 7;

    /// The place of its class; of its dashes and of its pattern the place from 1 on, where it has some.
    fn places(self) -> (u8, u8, u8) {
        let series = |number| 5 + number % Self::SERIES;
        match self {
            Self::Text => (0, 0, 0),
            Self::Muted => (1, 0, 0),
            Self::Grid => (2, 0, 0),
            Self::Whisker => (3, 0, 0),
            Self::Pattern(place) => (4, 0, 1 + place),
            Self::Series(number) => (series(number), 0, 0),
            Self::Dashed(number) => (series(number), 1 + number % Self::SERIES, 0),
            Self::Dotted(number) => (series(number), 1 + Self::SERIES, 0),
        }
    }

    pub(super) fn class(self) -> &'static str {
        class_of(self.to_backend_color())
    }
}

/// The lengths of dashes and gaps: those of each series, and those of a dotted line.
const DASHES: [&str; 8] = ["5 4", "11 4", "8 3 2 3", "11 3 2 3 2 3", "3 3", "14 3 6 3", "2 5", "2 3"];

impl Color for Paint {
    fn to_backend_color(&self) -> BackendColor {
        BackendColor { alpha: 1.0, rgb: self.places() }
    }
}

fn class_of(color: BackendColor) -> &'static str {
    CLASSES[usize::from(color.rgb.0)].0
}

/// Marks on the page's ground that fill a shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pattern {
    /// Its name, of letters and hyphens.
    pub(crate) name: &'static str,
    /// The series that it stands for.
    pub(super) paint: Paint,
    /// A path within a square of 6 by 6.
    pub(crate) path: &'static str,
    /// The width of the path's line.
    pub(super) width: u32,
    /// By how many degrees it is turned.
    pub(super) angle: u32,
}

impl Pattern {
    fn definition(&self, id: &str) -> String {
        let Self { name, paint, path, width, angle } = self;
        format!(
            "<pattern id=\"{id}-{name}\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" \
             patternTransform=\"rotate({angle})\"><rect width=\"6\" height=\"6\" class=\"plot-ground\" fill=\"currentColor\"/>\
             <path d=\"{path}\" class=\"{}\" stroke=\"currentColor\" stroke-width=\"{width}\"/></pattern>",
            paint.class()
        )
    }
}

/// A place in a picture, in pixels from its upper left corner.
pub(super) type Place = (i32, i32);

/// Which part of a text stands at its place.
pub(super) use plotters::style::text_anchor::HPos as Side;

/// A picture that is being drawn: the forms that plots are made of.
pub(super) struct Svg<'a>(DrawingArea<Backend<'a>, Shift>);

/// Where plotters' forms become elements of SVG.
pub(super) struct Backend<'a> {
    /// What has been drawn.
    body: &'a mut String,
    size: Place,
    /// What the identifiers within the picture begin with.
    id: &'a str,
    patterns: &'a [Pattern],
}

/// What texts and lines are painted with: there are thousands, so that each does not say it.
const PAINTED: &str =
    ".plot{font:13px sans-serif;fill:none}.plot text{fill:currentColor}.plot path,.plot line{stroke:currentColor}";

/// What a picture needs that stands in a file of its own, and none within a page.
const NAMESPACE: &str = " xmlns=\"http://www.w3.org/2000/svg\"";

/// The style sheet of a picture.
fn style() -> String {
    let classes = CLASSES.map(|(class, alone)| format!(".{class}{{color:var(--{class},{alone})}}")).concat();
    format!("<style>{classes}{PAINTED}</style>\n")
}

/// A picture in colours that are seen on a light and on a dark ground, for a place whose ground is not known.
pub(crate) fn on_any_ground(picture: &str) -> String {
    let own = |(class, _)| ON_ANY_GROUND.into_iter().find(|(own, _)| *own == class);
    let color = |light| own(light).unwrap_or(light);
    let classes = CLASSES.map(color).map(|(class, color)| format!(".{class}{{color:{color}}}")).concat();
    picture.replace(&style(), &format!("<style>{classes}{PAINTED}{PALE}</style>\n"))
}

/// A page with the style sheet of its pictures once, that of the first one, which holds for the whole page; and without what
/// they need outside of a page.
pub fn styled_once(page: &str) -> String {
    let (page, style) = (page.replace(NAMESPACE, ""), style());
    match page.split_once(&style) {
        Some((before, after)) => format!("{before}{style}{}", after.replace(&style, "")),
        None => page,
    }
}

/// A picture, of which `draw` draws what stands below the title. `id` must be unique in the page: the identifiers within the
/// picture begin with it. It has no empty line, so that it can stand in Markdown.
pub(super) fn picture(
    id: &str,
    patterns: &[Pattern],
    (title, description): (&str, &str),
    height: i32,
    draw: impl FnOnce(&mut Svg<'_>),
) -> String {
    // An identifier is of letters, digits and hyphens.
    let id: String = id.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let (mut body, size) = (String::new(), (WIDTH, height));
    let mut svg = Svg(Backend { body: &mut body, size, id: &id, patterns }.into_drawing_area());
    Weight::Bold.draw(&mut svg, &title_lines(title), (MARGIN, MARGIN - 2), Paint::Text);
    draw(&mut svg);
    drop(svg);
    let (title, description, style) = (escape(title), escape(description), style());
    let definitions: String = patterns.iter().map(|pattern| pattern.definition(&id)).collect();
    format!(
        "<svg class=\"plot\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-labelledby=\"{id}-title {id}-desc\"{NAMESPACE}>\n\
         <title id=\"{id}-title\">{title}</title>\n<desc id=\"{id}-desc\">{description}</desc>\n\
         {style}<defs>{definitions}</defs>\n{body}</svg>\n"
    )
}

type DrawResult = Result<(), DrawingErrorKind<Infallible>>;

impl<'a> Svg<'a> {
    /// Draws one of plotters' forms.
    fn draw<'b, E>(&self, form: &'b E)
    where
        &'b E: PointCollection<'b, Place>,
        E: Drawable<Backend<'a>>,
    {
        let drawn = self.0.draw(form);
        // The backend writes into a string, which cannot fail.
        debug_assert!(drawn.is_ok(), "{drawn:?}");
    }

    /// Lines from place to place.
    pub(super) fn path(&self, path: &[Place], paint: Paint, width: u32) {
        self.draw(&PathElement::new(path, paint.stroke_width(width)));
    }

    /// A filled rectangle.
    pub(super) fn fill(&self, corners: [Place; 2], paint: Paint) {
        self.draw(&Rectangle::new(corners, paint.filled()));
    }

    /// A filled rectangle with an outline.
    pub(super) fn bar(&self, corners: [Place; 2], ground: Paint, outline: Paint) {
        self.fill(corners, ground);
        self.draw(&Rectangle::new(corners, outline));
    }

    pub(super) fn polygon(&self, corners: &[Place], paint: Paint) {
        self.draw(&Polygon::new(corners, paint));
    }

    /// A disc, or the circle around it.
    pub(super) fn circle(&self, centre: Place, radius: i32, paint: Paint, is_hollow: bool) {
        let style = if is_hollow { paint.stroke_width(2) } else { paint.filled() };
        self.draw(&Circle::new(centre, radius, style));
    }

    /// A text in one line, of which `place` is at half the height.
    pub(super) fn text(&self, text: &str, place: Place, weight: Weight, paint: Paint, side: Side) {
        let weight = if weight == Weight::Bold { FontStyle::Bold } else { FontStyle::Normal };
        let font = ("sans-serif", 13).into_font().style(weight).color(&paint);
        self.draw(&Text::new(text, place, font.pos(Pos::new(side, VPos::Center))));
    }
}

impl Backend<'_> {
    fn filled(&self, color: BackendColor) -> String {
        match usize::from(color.rgb.2).checked_sub(1) {
            Some(place) => format!("fill=\"url(#{}-{})\"", self.id, self.patterns[place].name),
            None => format!("class=\"{}\" fill=\"currentColor\"", class_of(color)),
        }
    }

    /// Of a shape with an outline.
    fn outlined(style: &impl BackendStyle) -> String {
        format!("stroke=\"currentColor\" {}", Self::line(style))
    }

    /// Of a line, which the style sheet strokes.
    fn line(style: &impl BackendStyle) -> String {
        let (color, width) = (style.color(), style.stroke_width());
        let width = if width == 1 { String::new() } else { format!(" stroke-width=\"{width}\"") };
        let dashes = usize::from(color.rgb.1).checked_sub(1).map(|place| DASHES[place]);
        let dashes = dashes.map(|dashes| format!(" stroke-dasharray=\"{dashes}\"")).unwrap_or_default();
        format!("class=\"{}\"{width}{dashes}", class_of(color))
    }

    fn shape(&mut self, shape: impl Display, paint: &str) -> DrawResult {
        // Writing to a string cannot fail.
        let _ = writeln!(self.body, "<{shape} {paint}/>");
        Ok(())
    }
}

fn points(path: impl IntoIterator<Item = BackendCoord>) -> String {
    let points: Vec<String> = path.into_iter().map(|(x, y)| format!("{x},{y}")).collect();
    points.join(" ")
}

impl DrawingBackend for Backend<'_> {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        (self.size.0.cast_unsigned(), self.size.1.cast_unsigned())
    }

    fn ensure_prepared(&mut self) -> DrawResult {
        Ok(())
    }

    fn present(&mut self) -> DrawResult {
        Ok(())
    }

    fn draw_pixel(&mut self, (x, y): BackendCoord, color: BackendColor) -> DrawResult {
        let paint = self.filled(color);
        self.shape(format_args!("rect x=\"{x}\" y=\"{y}\" width=\"1\" height=\"1\""), &paint)
    }

    fn draw_line<S: BackendStyle>(&mut self, from: BackendCoord, to: BackendCoord, style: &S) -> DrawResult {
        let ((x1, y1), (x2, y2)) = (from, to);
        self.shape(format_args!("line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\""), &Self::line(style))
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
        fill: bool,
    ) -> DrawResult {
        let filled = self.filled(style.color());
        let ((x, y), (width, height)) = (from, (to.0 - from.0, to.1 - from.1));
        let shape = format!("rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"");
        if fill {
            return self.shape(shape, &filled);
        }
        // Around a shape of its own paint it would not be seen.
        if self.body.ends_with(&format!("<{shape} {filled}/>\n")) {
            return Ok(());
        }
        self.shape(shape, &Self::outlined(style))
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(&mut self, path: I, style: &S) -> DrawResult {
        let paint = Self::line(style);
        let mut path: Vec<BackendCoord> = path.into_iter().collect();
        let is_closed = path.len() > 2 && path.first() == path.last();
        path.truncate(path.len() - usize::from(is_closed));
        let line = format!("M{}{}", points(path), if is_closed { "z" } else { "" });
        // Three lines are a whisker, and a plot has hundreds: what follows a line of the same paint stands in its element.
        let end = format!("\" {paint}/>\n");
        let last = self.body.lines().next_back().unwrap_or_default();
        if last.starts_with("<path ") && self.body.ends_with(&end) {
            self.body.truncate(self.body.len() - end.len());
            self.body.push_str(&(line + &end));
            return Ok(());
        }
        self.shape(format_args!("path d=\"{line}\""), &paint)
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> DrawResult {
        let paint = self.filled(style.color());
        self.shape(format_args!("polygon points=\"{}\"", points(path)), &paint)
    }

    fn draw_circle<S: BackendStyle>(&mut self, centre: BackendCoord, radius: u32, style: &S, fill: bool) -> DrawResult {
        let paint = if fill { self.filled(style.color()) } else { Self::outlined(style) };
        let (x, y) = centre;
        self.shape(format_args!("circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\""), &paint)
    }

    fn draw_text<S: BackendTextStyle>(&mut self, text: &str, style: &S, (x, y): BackendCoord) -> DrawResult {
        let anchor = match style.anchor().h_pos {
            HPos::Left => "",
            HPos::Right => " text-anchor=\"end\"",
            HPos::Center => " text-anchor=\"middle\"",
        };
        // From half the height to the line that the letters stand on, at their size of 13.
        let y = y + 4;
        let weight = if matches!(style.style(), FontStyle::Bold) { " font-weight=\"bold\"" } else { "" };
        let (class, text) = (class_of(style.color()), escape(text));
        if text.is_empty() {
            return Ok(());
        }
        let _ = writeln!(self.body, "<text x=\"{x}\" y=\"{y}\"{anchor}{weight} class=\"{class}\">{text}</text>");
        Ok(())
    }
}

#[cfg(test)]
mod tests;
