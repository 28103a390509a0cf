//! A matrix of yes and no: what each row did in the state of each column.
//!
//! A cell is a square and a figure: a full square where every trial said yes, an empty one where none did, a half one where they
//! differ. Where measurements of several kinds share a cell, and these differ though the trials of each agree, two corners of the
//! square are full. Where columns are too narrow for all figures, those of none and of all are left out: the square says as much. The
//! label of a row stands above its cells, so that a long name has room on a phone. The heads of the columns are repeated, so that
//! a screen of a phone shows them wherever it is.

use super::svg::{Paint, Place, Side, Svg, picture};
use super::text::{LINE, WIDTH, Weight, height, room, title_height};

/// A panel of yes and no.
///
/// ```
/// use syncscope_present::{MatrixCell, MatrixPlot, MatrixRow};
///
/// let row = |label: &str, blocked| MatrixRow {
///     label: label.to_owned(),
///     cells: vec![MatrixCell::Trials(blocked, 20)],
///     beside: vec![],
///     below: vec![],
/// };
/// let plot = MatrixPlot {
///     title: "Which calls block".to_owned(),
///     machine: "this machine".to_owned(),
///     legend: ["blocked", "differs", "returned"].map(str::to_owned),
///     columns: vec!["own stream".to_owned()],
///     rows: vec![row("item", 20), row("add", 0)],
/// };
/// assert!(plot.to_svg("calls").starts_with("<svg"));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct MatrixPlot {
    /// What is drawn.
    pub title: String,
    /// The machine it was measured on; for the description, not drawn.
    pub machine: String,
    /// What a full, a half and an empty square mean.
    pub legend: [String; 3],
    /// The heads of the columns: of the cells, then of the texts beside them.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<MatrixRow>,
}

/// A row of cells.
#[derive(Clone, Debug, PartialEq)]
pub struct MatrixRow {
    /// Its label.
    pub label: String,
    /// Its cells, from the left.
    pub cells: Vec<MatrixCell>,
    /// Texts to the right of the cells: times.
    pub beside: Vec<String>,
    /// Texts in a line below the cells: further times, each with its name.
    pub below: Vec<String>,
}

/// What the trials of a cell said.
#[derive(Clone, Debug, PartialEq)]
pub enum MatrixCell {
    /// So many said yes, of so many.
    Trials(usize, usize),
    /// The same of measurements that each agree with themselves and differ from each other.
    Mixed(usize, usize),
    /// There are none, for this reason, in a word.
    Missing(&'static str),
}

const LEFT: i32 = 8;
/// The width of a text beside the cells.
const BESIDE: i32 = 52;
const SQUARE: i32 = 10;
/// From one row to the next: a label, a line of cells, and room.
const ROW: i32 = 2 * LINE + 6;
/// The room above the heads of the columns.
const HEADS_GAP: i32 = 5;
/// How many rows stand below the heads of the columns before these are repeated.
const ROWS_BELOW_HEADS: usize = 10;
/// What a square with two full corners means.
const MIXED: &str = "mixed";

impl MatrixCell {
    /// As a cell of the picture: the share. None and all are said of none and of all alone.
    fn text(&self) -> String {
        let (Self::Trials(yes, all) | Self::Mixed(yes, all)) = self else { return "–".to_owned() };
        match 100.0 * *yes as f64 / *all as f64 {
            share if *yes > 0 && share < 0.5 => "< 1 %".to_owned(),
            share if yes < all && share >= 99.5 => "> 99 %".to_owned(),
            share => format!("{share:.0} %"),
        }
    }

    /// Where it stands in the legend.
    fn place(&self) -> Option<usize> {
        match self {
            Self::Trials(0, _) => Some(2),
            Self::Trials(yes, all) => Some(usize::from(yes < all)),
            Self::Mixed(..) => Some(3),
            Self::Missing(_) => None,
        }
    }
}

impl MatrixRow {
    fn label_lines(&self) -> Vec<String> {
        Weight::Bold.lines(&self.label, room(LEFT))
    }

    /// What stands below the cells, in as many lines as it takes.
    fn below_lines(&self) -> Vec<String> {
        Weight::Regular.lines(&self.below.join(" · "), room(LEFT))
    }

    /// The height with all lines of the label and of what stands below the cells.
    fn height(&self) -> i32 {
        self.cells_end() + height(&self.below_lines())
    }

    /// How far below its top the line of the cells ends.
    fn cells_end(&self) -> i32 {
        ROW + LINE * (self.label_lines().len().max(1) as i32 - 1)
    }
}

impl MatrixPlot {
    /// The plot as SVG. `id` must be unique in the page: the identifiers within the picture begin with it.
    pub fn to_svg(&self, id: &str) -> String {
        let heads = self.heads_height() * self.rows.len().div_ceil(ROWS_BELOW_HEADS).max(1) as i32;
        let height = self.top() + heads + self.rows.iter().map(MatrixRow::height).sum::<i32>() + 8;
        picture(id, &[], (&self.title, &self.description()), height, |svg| self.draw(svg))
    }

    /// What the picture shows, in words.
    pub fn description(&self) -> String {
        let cell = |(head, cell): (&String, &MatrixCell)| match (cell, cell.place()) {
            (MatrixCell::Missing(state), _) => format!("{head} {state}"),
            (_, Some(place)) => {
                let meaning = self.legend.get(place).map_or(MIXED, String::as_str);
                format!("{head} {meaning} ({})", cell.text())
            }
            _ => head.clone(),
        };
        let row = |row: &MatrixRow| {
            let cells = self.columns.iter().zip(&row.cells).map(cell);
            let beside = self.columns.iter().skip(row.cells.len()).zip(&row.beside);
            let texts = beside.map(|(head, text)| format!("{head} {text}"));
            format!("{}: {}", row.label, cells.chain(texts).chain(row.below.clone()).collect::<Vec<_>>().join(", "))
        };
        let rows: Vec<String> = self.rows.iter().map(row).collect();
        format!("Matrix, measured on {}. {}.", self.machine, rows.join("; "))
    }

    /// Below the title and the legend.
    fn top(&self) -> i32 {
        title_height(&self.title) + LINE + 6
    }

    /// The lines that the heads take: where one is wider than its column, they stand on two by turns.
    fn head_lines(&self) -> i32 {
        let ends = (1..self.columns.len()).map(|place| self.column(place));
        let fits =
            |(place, (head, end)): (usize, (&String, i32))| self.column(place) + Weight::Regular.width(head) + 4 <= end;
        if self.columns.iter().zip(ends.chain([WIDTH + 4])).enumerate().all(fits) { 1 } else { 2 }
    }

    /// The height of the heads of the columns.
    fn heads_height(&self) -> i32 {
        HEADS_GAP + LINE * self.head_lines()
    }

    fn draw_heads(&self, svg: &mut Svg<'_>, top: i32) {
        for (place, head) in self.columns.iter().enumerate() {
            let (left, line) = (self.column(place), place as i32 % self.head_lines());
            // The last ones end at the edge where they are too wide: the one before stands on another line.
            let left = left.min(WIDTH - Weight::Regular.width(head)).max(0);
            let middle = top + HEADS_GAP + LINE * line + LINE / 2;
            svg.text(head, (left, middle), Weight::Regular, Paint::Muted, Side::Left);
        }
    }

    /// Whether the figure of each cell ends before the next square.
    fn has_room_for_figures(&self) -> bool {
        self.column(1) - self.column(0) >= SQUARE + 4 + Weight::Regular.width("100 %") + 4
    }

    fn cells(&self) -> usize {
        self.rows.iter().map(|row| row.cells.len()).max().unwrap_or(0)
    }

    /// The left end of a column.
    fn column(&self, place: usize) -> i32 {
        let (cells, all) = (self.cells() as i32, self.columns.len() as i32);
        let room = WIDTH - 2 * LEFT - BESIDE * (all - cells);
        let place = place as i32;
        LEFT + room * place.min(cells) / cells.max(1) + BESIDE * (place - cells).max(0)
    }

    fn draw(&self, svg: &mut Svg<'_>) {
        let mut left = LEFT;
        let middle = title_height(&self.title) + LINE / 2;
        let mixed = MatrixCell::Mixed(1, 2);
        let is_mixed = self.rows.iter().flat_map(|row| &row.cells).any(|cell| cell.place() == mixed.place());
        let cells = [(1, 1), (1, 2), (0, 1)].map(|(yes, all)| MatrixCell::Trials(yes, all));
        let legend = self.legend.iter().map(String::as_str).zip(cells);
        for (meaning, cell) in legend.chain(is_mixed.then_some((MIXED, mixed))) {
            draw_square(svg, &cell, (left, middle));
            left += SQUARE + 5;
            svg.text(meaning, (left, middle), Weight::Regular, Paint::Muted, Side::Left);
            left += Weight::Regular.width(meaning) + 14;
        }
        let mut top = self.top();
        for (number, row) in self.rows.iter().enumerate() {
            if number % ROWS_BELOW_HEADS == 0 {
                self.draw_heads(svg, top);
                top += self.heads_height();
            }
            svg.path(&[(LEFT, top), (WIDTH - LEFT, top)], Paint::Grid, 1);
            Weight::Bold.draw(svg, &row.label_lines(), (LEFT, top + 4), Paint::Text);
            let middle = top + row.cells_end() - ROW + 4 + LINE * 3 / 2;
            // The squares first: what follows a line of its own paint takes little room in the picture.
            for (place, cell) in row.cells.iter().enumerate() {
                draw_square(svg, cell, (self.column(place), middle));
            }
            for (place, cell) in row.cells.iter().enumerate() {
                if !self.has_room_for_figures() && matches!(cell.place(), Some(0 | 2)) {
                    continue;
                }
                let paint = if cell.place().is_some() { Paint::Text } else { Paint::Muted };
                let at = (self.column(place) + SQUARE + 4, middle);
                svg.text(&cell.text(), at, Weight::Regular, paint, Side::Left);
            }
            for (place, text) in (row.cells.len()..).zip(&row.beside) {
                svg.text(text, (self.column(place), middle), Weight::Regular, Paint::Text, Side::Left);
            }
            Weight::Regular.draw(svg, &row.below_lines(), (LEFT, top + row.cells_end() - 2), Paint::Muted);
            top += row.height();
        }
    }
}

/// The square of a cell, whose left edge and middle are given; none where nothing was measured.
fn draw_square(svg: &mut Svg<'_>, cell: &MatrixCell, (left, middle): Place) {
    let Some(place) = cell.place() else { return };
    let (top, right, bottom) = (middle - SQUARE / 2, left + SQUARE, middle + SQUARE / 2);
    let paint = [Paint::Series(1), Paint::Series(3), Paint::Series(2), Paint::Series(0)][place];
    match place {
        0 => svg.fill([(left, top), (right, bottom)], paint),
        3 => {
            let centre = (left + SQUARE / 2, middle);
            svg.fill([(left, top), centre], paint);
            svg.fill([centre, (right, bottom)], paint);
        }
        1 => svg.polygon(&[(left, top), (left, bottom), (right, bottom)], paint),
        _ => {}
    }
    if place > 0 {
        svg.path(&[(left, top), (right, top), (right, bottom), (left, bottom), (left, top)], paint, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(cells: Vec<MatrixCell>) -> MatrixPlot {
        MatrixPlot {
            title: "Calls".to_owned(),
            machine: "M".to_owned(),
            legend: ["waits", "differs", "comes back"].map(str::to_owned),
            columns: ["same", "other", "ready"].map(str::to_owned).to_vec(),
            rows: vec![MatrixRow {
                label: "call<>".to_owned(),
                cells,
                beside: vec!["1.2 µs".to_owned()],
                below: Vec::new(),
            }],
        }
    }

    #[test]
    fn a_cell_is_told_by_its_shape_and_its_figure_and_in_words() {
        let waits = plot(vec![MatrixCell::Trials(3, 3), MatrixCell::Trials(0, 3)]);
        let differs = plot(vec![MatrixCell::Trials(1, 3), MatrixCell::Missing("not applicable")]);
        assert_eq!(
            waits.description(),
            "Matrix, measured on M. call<>: same waits (100 %), other comes back (0 %), ready 1.2 µs."
        );
        assert_eq!(
            differs.description(),
            "Matrix, measured on M. call<>: same differs (33 %), other not applicable, ready 1.2 µs."
        );
        let (waits, differs) = (waits.to_svg("a"), differs.to_svg("a"));
        // One in the legend, one in the row.
        assert_eq!([waits.matches("<polygon").count(), differs.matches("<polygon").count()], [1, 2]);
        assert!(!waits.contains("call<>") && waits.contains(">100 &#37;<") && differs.contains(">–<"), "{waits}");
    }

    #[test]
    fn kinds_that_differ_have_a_square_and_a_word_of_their_own() {
        let (alike, mixed) = (plot(vec![MatrixCell::Trials(1, 2)]), plot(vec![MatrixCell::Mixed(1, 2)]));
        assert!(mixed.description().contains("same mixed (50 %)"), "{}", mixed.description());
        let (alike, mixed) = (alike.to_svg("a"), mixed.to_svg("a"));
        assert!(mixed.contains(">mixed<") && !alike.contains(">mixed<"), "{mixed}");
        assert!(mixed.matches("<rect").count() > alike.matches("<rect").count());
    }

    #[test]
    fn times_below_the_cells_have_a_line_of_their_own_and_are_said() {
        let mut plot = plot(vec![MatrixCell::Trials(3, 3)]);
        let without = plot.rows[0].height();
        plot.rows[0].below = ["yielding 1.0 ms", "blocking 1.1 ms"].map(str::to_owned).to_vec();
        assert_eq!(plot.rows[0].height(), without + LINE);
        assert!(plot.description().ends_with("1.2 µs, yielding 1.0 ms, blocking 1.1 ms."), "{}", plot.description());
        let svg = plot.to_svg("a");
        assert!(svg.contains(">yielding 1&#46;0 ms · blocking 1&#46;1 ms<"), "{svg}");
    }

    #[test]
    fn a_share_is_never_rounded_to_none_or_all() {
        let text = |yes, all| MatrixCell::Trials(yes, all).text();
        assert_eq!([text(0, 900), text(1, 900), text(899, 900), text(900, 900)], ["0 %", "< 1 %", "> 99 %", "100 %"]);
        assert_eq!([text(45, 90), text(270, 900), text(3, 3)], ["50 %", "30 %", "100 %"]);
    }

    #[test]
    fn heads_that_are_wider_than_their_columns_stand_on_two_lines() {
        let mut plot = plot(vec![MatrixCell::Trials(3, 3); 2]);
        assert_eq!(plot.head_lines(), 1);
        plot.columns[0] = "a head that is wider than the column that it has".to_owned();
        assert_eq!(plot.head_lines(), 2);
    }

    #[test]
    fn the_last_head_is_whole_and_in_the_picture() {
        let mut plot = plot(vec![MatrixCell::Trials(3, 3); 5]);
        plot.columns = ["waits", "other", "warns", "missed", "false alarm"].map(str::to_owned).to_vec();
        let svg = plot.to_svg("a");
        let head = svg.lines().find(|line| line.contains(">false alarm<")).unwrap_or_else(|| panic!("{svg}"));
        let left: i32 = head.split("x=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
        assert!(left + Weight::Regular.width("false alarm") <= WIDTH, "{head}");
        assert_eq!(plot.head_lines(), 2);
    }

    #[test]
    fn the_heads_are_repeated_above_every_tenth_row() {
        let heads = |rows: usize| {
            let mut plot = plot(vec![MatrixCell::Trials(3, 3)]);
            plot.rows = vec![plot.rows[0].clone(); rows];
            plot.to_svg("a").matches(">ready<").count()
        };
        assert_eq!([1, 10, 11, 21].map(heads), [1, 1, 2, 3]);
    }

    #[test]
    fn a_figure_of_none_or_all_is_left_out_where_it_would_reach_the_next_square() {
        let mut plot = plot(vec![MatrixCell::Trials(3, 3); 2]);
        assert!(plot.has_room_for_figures() && plot.to_svg("a").contains(">100 &#37;<"));
        plot.columns.splice(2..2, ["c", "d", "e", "f"].map(str::to_owned));
        plot.rows[0].cells = vec![MatrixCell::Trials(3, 3); 5];
        plot.rows[0].cells.push(MatrixCell::Trials(1, 2));
        plot.columns.push("behind".to_owned());
        plot.rows[0].beside.push("1.0 ms".to_owned());
        let svg = plot.to_svg("a");
        assert!(!plot.has_room_for_figures() && !svg.contains(">100 &#37;<") && svg.contains(">50 &#37;<"), "{svg}");
        assert!(plot.description().contains("same waits (100 %)"));
    }

    #[test]
    fn columns_stay_in_the_picture_and_apart() {
        let plot = plot(vec![MatrixCell::Trials(3, 3); 2]);
        let places: Vec<i32> = (0..3).map(|place| plot.column(place)).collect();
        assert!(places.is_sorted() && places[2] + BESIDE <= WIDTH, "{places:?}");
    }
}
