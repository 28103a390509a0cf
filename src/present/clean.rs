//! What is foreign, made harmless for the place that it goes to.
//!
//! A results file, a suite or a document may come from anybody, and so may each name, title and reason in it. A terminal
//! acts on control characters, a page on directional overrides, a spreadsheet on cells that begin a formula. Every text
//! passes one of these functions on its way out: [`terminal`] for a terminal, [`terminal_line`] for a line of it, [`line()`] for a
//! title or a name, [`cell`] for a CSV file; what goes into Markdown, HTML or SVG is escaped by `present::escape`, which drops the same characters.

use std::borrow::Cow;

/// Whether a character changes how others are shown, or has a meaning and no look: control characters, those that override the
/// direction of text, and those that Unicode calls default ignorable or annotations, by which two names that look the same
/// differ, and which hold words that nobody sees (tags). So are those that are no characters, which XML forbids.
pub fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}')
        || matches!(c, '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}')
        || matches!(c, '\u{2060}'..='\u{206F}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}')
        || matches!(c, '\u{FFF0}'..='\u{FFFB}' | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}')
        || matches!(c, '\u{FDD0}'..='\u{FDEF}')
        || u32::from(c) & 0xFFFE == 0xFFFE
}

/// Text of one line: without what is not seen.
pub fn line(text: &str) -> Cow<'_, str> {
    with_signs(text, is_unseen, |_| None)
}

/// Text for a terminal, lines and tabs as they are. What a terminal would act on is shown by a sign in its place.
pub fn terminal(text: &str) -> Cow<'_, str> {
    with_signs(text, |c| is_unseen(c) && c != '\n' && c != '\t', sign)
}

/// Text for one line of a terminal, in which a foreign line break begins no line of its own.
pub fn terminal_line(text: &str) -> Cow<'_, str> {
    with_signs(text, is_unseen, sign)
}

/// A text with a sign, or with nothing, in the place of some characters.
fn with_signs(text: &str, acts: fn(char) -> bool, sign: fn(char) -> Option<char>) -> Cow<'_, str> {
    match text.contains(acts) {
        true => Cow::Owned(text.chars().filter_map(|c| if acts(c) { sign(c) } else { Some(c) }).collect()),
        false => Cow::Borrowed(text),
    }
}

/// A text of bounded length: of one that is too long the middle is left out.
pub fn shortened(text: &str, most: usize) -> Cow<'_, str> {
    let mut places = text.char_indices().map(|(place, _)| place);
    match (places.nth(most / 2), places.nth_back(most / 2)) {
        (Some(begin), Some(end)) => Cow::Owned(format!("{} … {}", &text[..begin], &text[end..])),
        _ => Cow::Borrowed(text),
    }
}

/// ␛ for an escape; � where there is no sign.
fn sign(c: char) -> Option<char> {
    match u32::from(c) {
        code @ 0..=0x1F => char::from_u32(0x2400 + code),
        0x7F => Some('\u{2421}'),
        _ => Some('\u{FFFD}'),
    }
}

/// A cell of a CSV file that a spreadsheet takes for text. Numbers stay as they are.
pub fn cell(text: &str) -> Cow<'_, str> {
    let text = line(text);
    let begins_a_formula = text.trim_start().starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠']);
    if begins_a_formula && text.parse::<f64>().is_err() { Cow::Owned(format!("'{text}")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_sent_nothing_that_it_acts_on() {
        let text = terminal("a\u{1b}[2Jb\rc\u{7}\u{9b}31m\u{202e}d\u{7f}\te\n");
        assert_eq!(text, "a␛[2Jb␍c␇�31m�d␡\te\n");
    }

    #[test]
    fn a_foreign_line_break_begins_no_line_of_a_terminal() {
        assert_eq!(terminal_line("H200\nerror: \r\tno\u{2028}"), "H200␊error: ␍␉no�");
    }

    #[test]
    fn a_line_holds_no_control_and_no_override() {
        assert_eq!(line("H200\u{202e}\u{1b}\n 00\u{2066}"), "H200 00");
    }

    #[test]
    fn a_line_holds_nothing_that_has_a_meaning_and_no_look() {
        let unseen = [
            "\u{AD}",
            "\u{200B}",
            "\u{200D}",
            "\u{2060}",
            "\u{FE0F}",
            "\u{FFF9}",
            "\u{FFFB}",
            "\u{E0041}",
            "\u{E01EF}",
        ];
        for text in unseen {
            assert_eq!(line(&format!("H{text}200")), "H200");
            assert_eq!(terminal_line(text), "\u{FFFD}", "{text:?}");
        }
        assert_eq!(line("Gerät 模型 µs ✓"), "Gerät 模型 µs ✓");
    }

    #[test]
    fn a_cell_begins_no_formula_and_numbers_stay() {
        for (text, is) in [
            ("=1+1", "'=1+1"),
            ("+cmd", "'+cmd"),
            ("-2+3", "'-2+3"),
            ("@SUM(A1)", "'@SUM(A1)"),
            (" =1", "' =1"),
            ("\t=1", "'=1"),
            ("-1.5e-3", "-1.5e-3"),
            ("−1", "−1"),
            ("a=1", "a=1"),
        ] {
            assert_eq!(cell(text), is);
        }
    }
}
