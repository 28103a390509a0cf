//! The SVG of every plot: the backend through which plotters draws.
//!
//! plotters knows colours alone. Here a colour is the number of a [`Paint`], and what is written is the paint's class. The
//! picture's style sheet gives each class a variable of the page, with a colour for a picture that stands alone, so that a
//! plot follows the theme of its page. All text is written by [`escape`].

use std::convert::Infallible;
use std::fmt::{Display, Write as _};

use plotters::style::text_anchor::{HPos, VPos};
use plotters::style::{Color, FontStyle};
use plotters_backend::{BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind};

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

    /// The paint that [`to_backend_color`](Color::to_backend_color) made this colour of.
    fn of(color: BackendColor) -> Self {
        match color.rgb {
            (0, ..) => Self::Text,
            (1, ..) => Self::Muted,
            (2, ..) => Self::Grid,
            (3, ..) => Self::Whisker,
            (4, number, _) => Self::Series(number),
            (5, number, _) => Self::Dashed(number),
            (6, number, _) => Self::Dotted(number),
            (_, number, _) => Self::Pattern(number),
        }
    }

    pub(super) fn class(self) -> &'static str {
        let place = match self {
            Self::Text => 0,
            Self::Muted => 1,
            Self::Grid => 2,
            Self::Whisker => 3,
            Self::Pattern(_) => 4,
            Self::Series(number) | Self::Dashed(number) | Self::Dotted(number) => {
                5 + usize::from(number % Self::SERIES)
            }
        };
        CLASSES[place].0
    }

    /// The lengths of dashes and gaps; none where a line is solid.
    fn dashes(self) -> Option<&'static str> {
        match self {
            Self::Dashed(number) => {
                const DASHES: [&str; Paint::SERIES as usize] =
                    ["5 4", "11 4", "8 3 2 3", "11 3 2 3 2 3", "3 3", "14 3 6 3", "2 5"];
                Some(DASHES[usize::from(number % Self::SERIES)])
            }
            Self::Dotted(_) => Some("2 3"),
            _ => None,
        }
    }
}

impl Color for Paint {
    fn to_backend_color(&self) -> BackendColor {
        let (kind, number) = match *self {
            Self::Text => (0, 0),
            Self::Muted => (1, 0),
            Self::Grid => (2, 0),
            Self::Whisker => (3, 0),
            Self::Series(number) => (4, number),
            Self::Dashed(number) => (5, number),
            Self::Dotted(number) => (6, number),
            Self::Pattern(number) => (7, number),
        };
        BackendColor { alpha: 1.0, rgb: (kind, number, 0) }
    }
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

/// A picture that is being drawn.
pub(super) struct Svg<'a> {
    /// What has been drawn.
    pub(super) body: &'a mut String,
    pub(super) size: (u32, u32),
    /// What the identifiers within the picture begin with.
    pub(crate) id: &'a str,
    pub(super) patterns: &'a [Pattern],
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

/// A page with the style sheet of its pictures once, that of the first one, which holds for the whole page; and without what
/// they need outside of a page.
pub fn styled_once(page: &str) -> String {
    let (page, style) = (page.replace(NAMESPACE, ""), style());
    match page.split_once(&style) {
        Some((before, after)) => format!("{before}{style}{}", after.replace(&style, "")),
        None => page,
    }
}

/// The whole picture around what has been drawn. It has no empty line, so that it can stand in Markdown.
pub(super) fn finished(
    (id, patterns): (&str, &[Pattern]),
    (title, description): (&str, &str),
    (width, height): (u32, u32),
    body: &str,
) -> String {
    let (title, description) = (escape(title), escape(description));
    let style = style();
    let definitions: String = patterns.iter().map(|pattern| pattern.definition(id)).collect();
    format!(
        "<svg class=\"plot\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-labelledby=\"{id}-title {id}-desc\"{NAMESPACE}>\n\
         <title id=\"{id}-title\">{title}</title>\n<desc id=\"{id}-desc\">{description}</desc>\n\
         {style}<defs>{definitions}</defs>\n{body}</svg>\n"
    )
}

type DrawResult = Result<(), DrawingErrorKind<Infallible>>;

impl Svg<'_> {
    fn filled(&self, color: BackendColor) -> String {
        match Paint::of(color) {
            Paint::Pattern(place) => {
                let name = self.patterns.get(usize::from(place)).map_or("", |pattern| pattern.name);
                format!("fill=\"url(#{}-{name})\"", self.id)
            }
            paint => format!("class=\"{}\" fill=\"currentColor\"", paint.class()),
        }
    }

    /// Of a shape with an outline.
    fn outlined(&self, color: BackendColor, width: u32) -> String {
        format!("stroke=\"currentColor\" {}", self.line(color, width))
    }

    /// Of a line, which the style sheet strokes.
    fn line(&self, color: BackendColor, width: u32) -> String {
        let paint = Paint::of(color);
        let width = if width == 1 { String::new() } else { format!(" stroke-width=\"{width}\"") };
        let dashes = paint.dashes().map(|dashes| format!(" stroke-dasharray=\"{dashes}\"")).unwrap_or_default();
        format!("class=\"{}\"{width}{dashes}", paint.class())
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

impl DrawingBackend for Svg<'_> {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        self.size
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
        let paint = self.line(style.color(), style.stroke_width());
        let ((x1, y1), (x2, y2)) = (from, to);
        self.shape(format_args!("line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\""), &paint)
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
        let paint = self.outlined(style.color(), style.stroke_width());
        self.shape(shape, &paint)
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(&mut self, path: I, style: &S) -> DrawResult {
        let paint = self.line(style.color(), style.stroke_width());
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
        let paint = if fill { self.filled(style.color()) } else { self.outlined(style.color(), style.stroke_width()) };
        let (x, y) = centre;
        self.shape(format_args!("circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\""), &paint)
    }

    fn draw_text<S: BackendTextStyle>(&mut self, text: &str, style: &S, (x, y): BackendCoord) -> DrawResult {
        let anchor = match style.anchor().h_pos {
            HPos::Left => "",
            HPos::Right => " text-anchor=\"end\"",
            HPos::Center => " text-anchor=\"middle\"",
        };
        // From the place to the line that the letters stand on, at the drawing's size of 13.
        let y = match style.anchor().v_pos {
            VPos::Top => y + 10,
            VPos::Center => y + 4,
            VPos::Bottom => y - 4,
        };
        let weight = if matches!(style.style(), FontStyle::Bold) { " font-weight=\"bold\"" } else { "" };
        let (class, text) = (Paint::of(style.color()).class(), escape(text));
        if text.is_empty() {
            return Ok(());
        }
        let _ = writeln!(self.body, "<text x=\"{x}\" y=\"{y}\"{anchor}{weight} class=\"{class}\">{text}</text>");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paint_survives_its_way_through_a_colour() {
        for paint in [
            Paint::Text,
            Paint::Muted,
            Paint::Grid,
            Paint::Whisker,
            Paint::Series(3),
            Paint::Dashed(7),
            Paint::Dotted(1),
            Paint::Pattern(2),
        ] {
            assert_eq!(Paint::of(paint.to_backend_color()), paint);
        }
    }

    #[test]
    fn a_page_has_the_style_sheet_of_its_pictures_once() {
        let picture = |id| finished((id, &[]), ("T", "D"), (1, 1), "");
        let page = styled_once(&format!("a\n{}b\n{}c\n{}", picture("x"), picture("y"), picture("z")));
        assert_eq!((page.matches("<style>").count(), page.matches("<svg").count()), (1, 3), "{page}");
        assert!(!page.contains("\n\n") && page.find("<style>") < page.find("id=\"y-title"), "{page}");
        assert_eq!(styled_once("no picture"), "no picture");
    }

    #[test]
    fn every_class_has_a_variable_of_the_page_and_a_colour_of_its_own() {
        let page = include_str!("../../../report-templates/syncscope.css");
        let picture = finished(("p", &[]), ("T", "D"), (1, 1), "");
        for (class, alone) in CLASSES {
            assert!(page.contains(&format!("--{class}:")), "{class}");
            assert!(picture.contains(&format!(".{class}{{color:var(--{class},{alone})}}")), "{picture}");
        }
    }

    #[test]
    fn lines_of_one_paint_are_one_element_and_an_outline_of_the_shape_s_own_paint_is_none() {
        use plotters::prelude::*;

        let mut body = String::new();
        let svg = Svg { body: &mut body, size: (9, 9), id: "p", patterns: &[] };
        let area = svg.into_drawing_area();
        for (y, paint) in [(1, Paint::Whisker), (2, Paint::Whisker), (3, Paint::Muted)] {
            area.draw(&PathElement::new(vec![(1, y), (5, y)], paint)).unwrap();
        }
        area.draw(&PathElement::new(vec![(1, 4), (5, 4), (5, 6), (1, 4)], Paint::Muted)).unwrap();
        for paint in [Paint::Series(0), Paint::Series(1)] {
            area.draw(&Rectangle::new([(1, 1), (4, 4)], Paint::Series(0).filled())).unwrap();
            area.draw(&Rectangle::new([(1, 1), (4, 4)], paint)).unwrap();
        }
        drop(area);
        let lines: Vec<&str> = body.lines().filter(|line| line.starts_with("<path")).collect();
        let whiskers = r#"<path d="M1,1 5,1M1,2 5,2" class="plot-whisker"/>"#;
        assert_eq!(lines, [whiskers, r#"<path d="M1,3 5,3M1,4 5,4 5,6z" class="plot-muted"/>"#]);
        assert_eq!(body.matches("<rect").count(), 3, "{body}");
    }

    #[test]
    fn a_text_is_text_whatever_it_holds() {
        use plotters::prelude::*;

        let mut body = String::new();
        let svg = Svg { body: &mut body, size: (9, 9), id: "p", patterns: &[] };
        let style = ("sans-serif", 13).into_font().color(&Paint::Text);
        svg.into_drawing_area().draw(&Text::new("<script>{{#include x}}", (1, 1), style)).unwrap();
        assert!(body.contains("<text") && !body.contains("<script") && !body.contains('{'), "{body}");
    }
}
