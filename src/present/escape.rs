//! The one escape for text that goes into Markdown, HTML or SVG.
//!
//! Every ASCII punctuation character becomes a numeric entity. No Markdown construct, HTML tag or `{{#include}}` of
//! mdBook can begin without one, and every reader of the output turns the entity back into its character. White space
//! is collapsed, because an indent is a code block in Markdown and an empty line ends a block of HTML; control
//! characters and overrides of the direction of text are dropped.

use std::fmt::Write as _;

use crate::clean::is_unseen;

/// `text` as it must stand in Markdown, HTML or SVG to be read as itself.
///
/// ```
/// assert_eq!(syncscope_present::escape("a<b"), "a&#60;b");
/// ```
pub fn escape(text: &str) -> String {
    in_one_line(text, |escaped, character| {
        if character.is_ascii_punctuation() {
            // Writing to a string cannot fail.
            let _ = write!(escaped, "&#{};", u32::from(character));
        } else {
            escaped.push(character);
        }
    })
}

/// `text` in one line without what is not seen, each character written by `put`.
pub(crate) fn in_one_line(text: &str, put: impl Fn(&mut String, char)) -> String {
    let mut line = String::with_capacity(text.len());
    for (index, word) in text.split_whitespace().enumerate() {
        if index > 0 {
            line.push(' ');
        }
        word.chars().filter(|c| !is_unseen(*c)).for_each(|character| put(&mut line, character));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_punctuation_survives_and_no_block_can_begin() {
        let escaped = escape("<script>*_[x](y)#|`\n\n    {{#include a}}\u{7}\u{FFFE}\u{1FFFF}");
        assert!(!escaped.contains(['<', '>', '*', '_', '[', '(', '|', '`', '{', '\n', '\u{7}']));
        assert!(!escaped.contains(['\u{FFFE}', '\u{1FFFF}']));
        assert!(!escaped.contains("  "));
    }

    #[test]
    fn letters_digits_and_signs_outside_ascii_are_kept() {
        assert_eq!(escape("14 µs −3 …"), "14 µs −3 …");
    }
}
