//! The size of a panel and of its title; how much room a text takes, and texts that fit into the room that there is.
//!
//! Who looks at the picture chooses the font, so that its widths are not known. They are taken from DejaVu Sans, which is among the
//! widest that a system shows for `sans-serif`.

use unicode_width::UnicodeWidthChar;

use super::svg::{Paint, Place, Side, Svg};

/// The size of the letters in pixels.
const SIZE: f64 = 13.0;

/// How a text is set.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Weight {
    Regular,
    Bold,
}

impl Weight {
    /// How wide a text is at most, in pixels.
    pub(super) fn width(self, text: &str) -> i32 {
        text.chars().map(|letter| self.advance(letter)).sum::<f64>().ceil() as i32
    }

    fn advance(self, letter: char) -> f64 {
        let bold = if self == Self::Bold { 1.12 } else { 1.0 };
        advance(letter) * SIZE * bold
    }

    /// The text in lines of at most `room` pixels, broken between words, or within a word that has no line of its own.
    pub(super) fn lines(self, text: &str, room: i32) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for word in text.split_whitespace() {
            if let Some(line) = lines.last_mut() {
                let longer = format!("{line} {word}");
                if self.width(&longer) <= room {
                    *line = longer;
                    continue;
                }
            }
            let mut part = String::new();
            for letter in word.chars() {
                if !part.is_empty() && self.width(&part) + self.width(letter.encode_utf8(&mut [0; 4])) > room {
                    lines.push(std::mem::take(&mut part));
                }
                part.push(letter);
            }
            lines.push(part);
        }
        lines
    }

    /// The text, or as much of it as `room` pixels hold with an ellipsis. The picture's description has the whole.
    pub(super) fn shortened(self, text: &str, room: i32) -> String {
        let room = f64::from(room);
        let (mut width, mut kept) = (0.0, 0);
        for (place, letter) in text.char_indices() {
            if width + self.advance('…') <= room {
                kept = place;
            }
            width += self.advance(letter);
            if width > room {
                return format!("{}…", text[..kept].trim_end());
            }
        }
        text.to_owned()
    }

    /// Draws a text around a column, or beside it where the edge of the panel is nearer than half of the text.
    pub(super) fn draw_around(self, svg: &mut Svg<'_>, text: &str, (column, row): Place, paint: Paint) {
        let half = self.width(text) / 2;
        svg.text(text, (column.min(WIDTH - half).max(half), row), self, paint, Side::Center);
    }

    /// Draws lines below each other, from `top` down.
    pub(super) fn draw(self, svg: &mut Svg<'_>, lines: &[String], (left, top): Place, paint: Paint) {
        for (line, number) in lines.iter().zip(0..) {
            svg.text(line, (left, top + LINE * number + LINE / 2), self, paint, Side::Left);
        }
    }
}

/// The width of a letter as a share of the size.
fn advance(letter: char) -> f64 {
    match letter {
        _ if letter.width() == Some(0) => 0.0,
        _ if letter.width() == Some(2) => 1.0,
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | ' ' | 'I' | '/' | '-' => 0.36,
        'f' | 'r' | 't' | '(' | ')' | '[' | ']' | '!' => 0.42,
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '…' | '—' => 1.0,
        'A'..='Z' | '×' | '+' | '=' | '<' | '>' | '≤' | '≥' | '~' | '−' | '→' => 0.84,
        _ => 0.64,
    }
}

pub(super) const WIDTH: i32 = 360;
/// The height of a line of text.
pub(super) const LINE: i32 = 18;
/// The left edge of the title, and the room that text keeps from the right edge.
pub(super) const MARGIN: i32 = 8;

/// The height of a title with the room below it.
pub(super) fn title_height(title: &str) -> i32 {
    height(&title_lines(title)) + 16
}

pub(super) fn title_lines(title: &str) -> Vec<String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_and_hold_every_word() {
        let text = "a rather long label of a row that a foreign experiment has given to what it measured";
        for room in [100, 298, 4000] {
            let lines = Weight::Regular.lines(text, room);
            assert!(lines.iter().all(|line| Weight::Regular.width(line) <= room), "{lines:?} in {room}");
            assert_eq!(lines.join(" "), text);
        }
    }

    #[test]
    fn a_word_that_has_no_room_is_broken() {
        let word = "cudaStreamSynchronizeAndThenSome".repeat(3);
        let lines = Weight::Bold.lines(&word, 120);
        assert!(lines.len() > 2 && lines.iter().all(|line| Weight::Bold.width(line) <= 120), "{lines:?}");
        assert_eq!(lines.concat(), word);
    }

    #[test]
    fn a_shortened_text_says_that_it_is() {
        assert_eq!(Weight::Regular.shortened("short", 200), "short");
        let text = Weight::Regular.shortened("not measured: the device was lost in the second process", 120);
        assert!(text.ends_with('…') && Weight::Regular.width(&text) <= 120, "{text}");
        assert_eq!(Weight::Regular.shortened("no room at all", 0), "…");
    }
}
