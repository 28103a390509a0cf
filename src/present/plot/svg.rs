//! The SVG of every plot.
//!
//! What is written of a [`Paint`] is its class. The picture's style sheet gives each class a variable of the page, with a colour for
//! a picture that stands alone, so that a plot follows the theme of its page. All text is written by [`escape`].

use std::fmt::{Display, Write as _};

use super::text::Weight;
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
#[derive(Clone, Copy)]
pub(super) enum Side {
    Left,
    Middle,
    Right,
}

/// A picture that is being drawn.
pub(super) struct Svg<'a> {
    /// What has been drawn.
    pub(super) body: String,
    /// Nothing is drawn beyond its width and height.
    pub(super) size: Place,
    /// What the identifiers within the picture begin with.
    pub(super) id: &'a str,
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
    (width, height): Place,
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

impl Svg<'_> {
    /// Lines from place to place.
    pub(super) fn path(&mut self, path: &[Place], paint: Paint, width: u32) {
        let is_closed = path.len() > 2 && path.first() == path.last();
        let open = &path[..path.len() - usize::from(is_closed)];
        let line = format!("M{}{}", self.points(open), if is_closed { "z" } else { "" });
        // Three lines are a whisker, and a plot has hundreds: what follows a line of the same paint stands in its element.
        let end = format!("\" {}/>\n", stroked(paint, width));
        let last = self.body.lines().next_back().unwrap_or_default();
        let begin = if last.starts_with("<path ") && self.body.ends_with(&end) {
            self.body.truncate(self.body.len() - end.len());
            ""
        } else {
            "<path d=\""
        };
        self.body.extend([begin, &line, &end]);
    }

    /// A straight line in an element of its own.
    pub(super) fn line(&mut self, (x1, y1): Place, (x2, y2): Place, paint: Paint) {
        let line = format!("line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"");
        self.shape(line, &stroked(paint, 1));
    }

    /// A filled rectangle.
    pub(super) fn fill(&mut self, corners: [Place; 2], paint: Paint) {
        let (shape, filled) = (self.rectangle(corners), self.filled(paint));
        self.shape(shape, &filled);
    }

    /// A filled rectangle with an outline, which would not be seen around its own paint.
    pub(super) fn bar(&mut self, corners: [Place; 2], ground: Paint, outline: Paint) {
        self.fill(corners, ground);
        if self.filled(ground) != self.filled(outline) {
            let shape = self.rectangle(corners);
            self.shape(shape, &format!("stroke=\"currentColor\" {}", stroked(outline, 1)));
        }
    }

    pub(super) fn polygon(&mut self, corners: &[Place], paint: Paint) {
        let (points, filled) = (self.points(corners), self.filled(paint));
        self.shape(format_args!("polygon points=\"{points}\""), &filled);
    }

    /// A disc, or the circle around it.
    pub(super) fn circle(&mut self, centre: Place, radius: i32, paint: Paint, is_hollow: bool) {
        let paint = match is_hollow {
            true => format!("stroke=\"currentColor\" {}", stroked(paint, 2)),
            false => self.filled(paint),
        };
        let (x, y) = self.inside(centre);
        self.shape(format_args!("circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\""), &paint);
    }

    /// A text in one line, of which `place` is at half the height.
    pub(super) fn text(&mut self, text: &str, place: Place, weight: Weight, paint: Paint, side: Side) {
        // From half the height to the line that the letters stand on, at their size of 13.
        const DOWN: i32 = 4;
        let anchor = match side {
            Side::Left => "",
            Side::Middle => " text-anchor=\"middle\"",
            Side::Right => " text-anchor=\"end\"",
        };
        let weight = if weight == Weight::Bold { " font-weight=\"bold\"" } else { "" };
        let ((x, y), text, class) = (self.inside(place), escape(text), paint.class());
        if !text.is_empty() {
            let y = y + DOWN;
            // Writing to a string cannot fail.
            let _ = writeln!(self.body, "<text x=\"{x}\" y=\"{y}\"{anchor}{weight} class=\"{class}\">{text}</text>");
        }
    }

    fn shape(&mut self, shape: impl Display, paint: &str) {
        let _ = writeln!(self.body, "<{shape} {paint}/>");
    }

    fn rectangle(&self, corners: [Place; 2]) -> String {
        let [(x, y), (right, bottom)] = corners.map(|corner| self.inside(corner));
        let (x, right, y, bottom) = (x.min(right), x.max(right), y.min(bottom), y.max(bottom));
        format!("rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\"", right - x, bottom - y)
    }

    fn filled(&self, paint: Paint) -> String {
        match paint {
            Paint::Pattern(place) => {
                let name = self.patterns.get(usize::from(place)).map_or("", |pattern| pattern.name);
                format!("fill=\"url(#{}-{name})\"", self.id)
            }
            paint => format!("class=\"{}\" fill=\"currentColor\"", paint.class()),
        }
    }

    fn points(&self, path: &[Place]) -> String {
        let points = path.iter().map(|place| self.inside(*place)).map(|(x, y)| format!("{x},{y}"));
        points.collect::<Vec<String>>().join(" ")
    }

    fn inside(&self, (x, y): Place) -> Place {
        (x.clamp(0, self.size.0), y.clamp(0, self.size.1))
    }
}

/// How a line is written, which the style sheet strokes.
fn stroked(paint: Paint, width: u32) -> String {
    let width = if width == 1 { String::new() } else { format!(" stroke-width=\"{width}\"") };
    let dashes = paint.dashes().map(|dashes| format!(" stroke-dasharray=\"{dashes}\"")).unwrap_or_default();
    format!("class=\"{}\"{width}{dashes}", paint.class())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn svg() -> Svg<'static> {
        Svg { body: String::new(), size: (9, 9), id: "p", patterns: &[] }
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
        let place = concat!(env!("CARGO_MANIFEST_DIR"), "/../../report-templates/syncscope.css");
        let page = std::fs::read_to_string(place).unwrap();
        let picture = finished(("p", &[]), ("T", "D"), (1, 1), "");
        for (class, alone) in CLASSES {
            assert!(page.contains(&format!("--{class}:")), "{class}");
            assert!(picture.contains(&format!(".{class}{{color:var(--{class},{alone})}}")), "{picture}");
        }
    }

    #[test]
    fn lines_of_one_paint_are_one_element_and_an_unseen_outline_is_none() {
        let mut svg = svg();
        for (y, paint) in [(1, Paint::Whisker), (2, Paint::Whisker), (3, Paint::Muted)] {
            svg.path(&[(1, y), (5, y)], paint, 1);
        }
        svg.path(&[(1, 4), (5, 4), (5, 6), (1, 4)], Paint::Muted, 1);
        for outline in [Paint::Series(0), Paint::Series(1)] {
            svg.bar([(1, 1), (4, 4)], Paint::Series(0), outline);
        }
        let lines: Vec<&str> = svg.body.lines().filter(|line| line.starts_with("<path")).collect();
        let whiskers = r#"<path d="M1,1 5,1M1,2 5,2" class="plot-whisker"/>"#;
        assert_eq!(lines, [whiskers, r#"<path d="M1,3 5,3M1,4 5,4 5,6z" class="plot-muted"/>"#]);
        assert_eq!(svg.body.matches("<rect").count(), 3, "{}", svg.body);
    }

    #[test]
    fn a_text_is_text_whatever_it_holds_and_stays_in_the_picture() {
        let mut svg = svg();
        svg.text("<script>{{#include x}}", (99, 1), Weight::Regular, Paint::Text, Side::Left);
        assert!(svg.body.starts_with("<text x=\"9\" y=\"5\""), "{}", svg.body);
        assert!(!svg.body.contains("<script") && !svg.body.contains('{'), "{}", svg.body);
    }
}
