//! The values of a JSON text that is read piece by piece, so that a text of any length takes the memory of its longest piece.
//!
//! What can be read is read: a piece that no reader of JSON takes is mended where it is known what was meant, and a text that is
//! cut off has the pieces before its end.

use std::io::{ErrorKind, Read};
use std::iter::Peekable;
use std::str::CharIndices;

use serde::Deserialize;
use serde_json::value::RawValue;

/// The farthest time from zero, in nanoseconds, that a clock has.
const FARTHEST: i64 = 4_000_000_000_000_000_000;
/// How much is read at once.
const CHUNK: usize = 1 << 18;

/// A text that is being read.
pub(super) struct Pieces<R> {
    from: R,
    buffer: Vec<u8>,
    at: usize,
    /// Why it was not read to its end, where it was not.
    pub(super) stopped: Option<String>,
}

/// What stands at a place of a text.
pub(super) enum Piece<'a> {
    /// A whole value.
    Value(&'a [u8]),
    /// A value with more bytes than were asked for, which has been passed over.
    TooLong,
    /// A value of which a text has lost its end, passed over up to what looks like another value.
    Broken,
    /// The text ends within it, or before it.
    End,
}

impl<R: Read> Pieces<R> {
    pub(super) fn new(from: R) -> Self {
        Self { from, buffer: Vec::new(), at: 0, stopped: None }
    }

    /// Reads more; false where there is no more.
    fn fill(&mut self) -> bool {
        self.buffer.drain(..std::mem::take(&mut self.at));
        let before = self.buffer.len();
        self.buffer.resize(before + CHUNK, 0);
        let read = loop {
            match self.from.read(&mut self.buffer[before..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.stopped = Some(error.to_string());
                    break 0;
                }
                Ok(read) => break read,
            }
        };
        self.buffer.truncate(before + read);
        read > 0
    }

    /// The next byte that is no white space and no comma. It stays to be read.
    pub(super) fn next(&mut self) -> Option<u8> {
        loop {
            match self.buffer.get(self.at).copied() {
                Some(byte) if byte.is_ascii_whitespace() || byte == b',' => self.at += 1,
                Some(byte) => return Some(byte),
                None if !self.fill() => return None,
                None => {}
            }
        }
    }

    /// Passes over a byte that was seen.
    pub(super) fn skip(&mut self) {
        self.at += 1;
    }

    /// The value that begins here, of so many bytes at most.
    pub(super) fn value(&mut self, most: usize) -> Piece<'_> {
        let (mut length, mut depth, mut is_long) = (0, 0_u32, false);
        let (mut in_text, mut is_escaped, mut is_behind_line, mut last) = (false, false, false, 0);
        let mut suspect = None;
        loop {
            let Some(byte) = self.buffer.get(self.at + length) else {
                if self.fill() {
                    continue;
                }
                // A number may be the last of all.
                match depth == 0 && !in_text && length > 0 {
                    true => break,
                    false => return Piece::End,
                }
            };
            let byte = *byte;
            // A text that goes on with a key of its object, or with its end, on another line has lost its own end.
            if in_text && is_behind_line && !byte.is_ascii_whitespace() {
                (in_text, is_behind_line) = (!matches!(byte, b'"' | b'}' | b']' | b','), false);
            }
            // A text that seems to end by a brace, with a letter behind its end, is one that begins: that of the first key.
            if let Some(brace) = suspect.take().filter(|_| byte.is_ascii_alphabetic()) {
                self.at += brace;
                return Piece::Broken;
            }
            let before = std::mem::replace(&mut last, byte);
            length += 1;
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' if in_text => is_escaped = true,
                b'"' if in_text => {
                    in_text = false;
                    // Of a value that is too long, what was passed over is gone.
                    suspect = length.checked_sub(2).filter(|_| before == b'{');
                    if depth == 0 {
                        break;
                    }
                }
                b'\n' if in_text => is_behind_line = true,
                _ if in_text => {}
                b'"' => in_text = true,
                b'{' | b'[' => depth += 1,
                b'}' | b']' if depth > 1 => depth -= 1,
                b'}' | b']' if depth == 1 => break,
                b'}' | b']' | b',' | b':' if depth == 0 => {
                    length -= 1;
                    break;
                }
                _ => {}
            }
            if length > most {
                is_long = true;
                self.at += std::mem::take(&mut length);
            }
        }
        // A byte that begins no value is passed over, so that reading ends.
        let begin = self.at;
        self.at += if length == 0 && !is_long { 1 } else { length };
        if is_long { Piece::TooLong } else { Piece::Value(&self.buffer[begin..begin + length]) }
    }
}

/// A value as JSON: as writers meant it that put paths into texts as they are, halves of letters, and numbers that JSON does not
/// have, in whose place stands `null`.
pub(super) fn mended(value: &[u8]) -> String {
    let text = String::from_utf8_lossy(value);
    let mut out = String::with_capacity(text.len());
    let (mut rest, mut in_text) = (text.char_indices().peekable(), false);
    while let Some((at, letter)) = rest.next() {
        match letter {
            '"' => {
                in_text = !in_text;
                out.push('"');
            }
            '\\' if in_text => escape(&text, &mut rest, &mut out),
            control if in_text && control.is_control() => out.push(' '),
            '-' if !in_text && text[at + 1..].starts_with(|next: char| next.is_ascii_alphabetic()) => {}
            // Behind a digit it is an exponent.
            word if !in_text
                && word.is_ascii_alphabetic()
                && !out.ends_with(|before: char| before.is_ascii_digit()) =>
            {
                while rest.next_if(|(_, letter)| letter.is_ascii_alphabetic()).is_some() {}
                let end = rest.peek().map_or(text.len(), |(end, _)| *end);
                let word = &text[at..end];
                out.push_str(if matches!(word, "true" | "false") { word } else { "null" });
            }
            other => out.push(other),
        }
    }
    out
}

/// What stands behind a backslash, with it.
fn escape(text: &str, rest: &mut Peekable<CharIndices<'_>>, out: &mut String) {
    let unit = |at: usize| u16::from_str_radix(text.get(at..at + 4)?, 16).ok();
    match rest.peek().copied() {
        Some((_, '"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't')) => {
            out.push('\\');
            out.extend(rest.next().map(|(_, letter)| letter));
        }
        Some((at, 'u')) if unit(at + 1).is_some() => {
            let (first, second) = (unit(at + 1), text[at + 5..].strip_prefix("\\u").and_then(|_| unit(at + 7)));
            let is_half = first.is_some_and(|unit| (0xd800..0xe000).contains(&unit));
            let units: Vec<u16> = first.into_iter().chain(second.filter(|_| is_half)).collect();
            let whole = char::decode_utf16(units.iter().copied()).next().and_then(Result::ok);
            let used = if units.len() == 2 && whole.is_some() { 11 } else { 5 };
            match whole {
                Some(_) => out.extend(["\\", &text[at..at + used]]),
                None => out.push(char::REPLACEMENT_CHARACTER),
            }
            (0..used).for_each(|_| _ = rest.next());
        }
        _ => out.push_str("\\\\"),
    }
}

/// A value as it stands in the text, which is used if it is a number or a text.
#[derive(Clone, Copy, Default)]
pub(super) struct Loose<'a>(pub(super) &'a str);

impl<'de: 'a, 'a> Deserialize<'de> for Loose<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(deserializer).map(|value| Self(value.get()))
    }
}

impl Loose<'_> {
    /// A number, which some writers put into a text.
    pub(super) fn number<T: std::str::FromStr>(self) -> Option<T> {
        self.0.trim_matches('"').parse().ok()
    }

    pub(super) fn text(self) -> String {
        serde_json::from_str(self.0).unwrap_or_default()
    }

    /// Microseconds as nanoseconds: by their digits, since a number of the format has room for a quarter of a microsecond of
    /// a day's clock alone.
    pub(super) fn nanoseconds(self) -> Option<i64> {
        let text = self.0.trim_matches('"');
        let digits = |text: &str| text.bytes().all(|digit| digit.is_ascii_digit());
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let time = match digits(whole) && digits(part) && !whole.is_empty() && whole.len() < 17 {
            true => {
                let part: i64 = format!("{part:0<4.4}").parse().ok()?;
                whole.parse::<i64>().ok()?.checked_mul(1_000)?.checked_add((part + 5) / 10)?
            }
            false => {
                let time = text.parse::<f64>().ok().filter(|time| time.abs() * 1e3 < FARTHEST as f64)?;
                (time * 1e3).round() as i64
            }
        };
        (time.abs() < FARTHEST).then_some(time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that gives one byte at a time.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let Some((first, rest)) = self.0.split_first() else { return Ok(0) };
            (into[0], self.0) = (*first, rest);
            Ok(1)
        }
    }

    fn values(text: &[u8]) -> Vec<String> {
        let mut pieces = Pieces::new(Slow(text));
        let mut found = Vec::new();
        while pieces.next().is_some() {
            found.push(match pieces.value(20) {
                Piece::Value(value) => String::from_utf8_lossy(value).into_owned(),
                Piece::TooLong => "long".to_owned(),
                Piece::Broken => "broken".to_owned(),
                Piece::End => break,
            });
        }
        found
    }

    #[test]
    fn values_are_told_apart_whatever_their_texts_hold() {
        let text = br#"{"a": "}]\"{"} , [1, {"b": 2}] 7 ,"x""#;
        assert_eq!(values(text), [r#"{"a": "}]\"{"}"#, r#"[1, {"b": 2}]"#, "7 ", r#""x""#]);
        assert_eq!(values(br#"{"a": "more than twenty"} 1"#), ["long", "1"]);
        assert_eq!(values(br#""nineteen letters...{" 1"#), ["long", "1"]);
        assert_eq!(values(br#"{"a": 1} {"b": "#), [r#"{"a": 1}"#]);
        assert_eq!(values(b"{\"a\": \"no end\n}{}"), ["{\"a\": \"no end\n}", "{}"]);
        assert_eq!(values(b"{\"a\": \"two\nlines\"}{}"), ["{\"a\": \"two\nlines\"}", "{}"]);
        assert_eq!(values(b"{\"a\": \"x\" y\"}, {\"b\": 1}, 7"), ["broken", "{\"b\": 1}", "7"]);
    }

    #[test]
    fn what_is_meant_is_made_of_what_is_no_json_and_json_stays() {
        for (written, meant) in [
            (&br#"{"a": "torch\cuda\__init__.py"}"#[..], r#"{"a": "torch\\cuda\\__init__.py"}"#),
            (b"{\"a\": \"x\xff\"}", "{\"a\": \"x\u{fffd}\"}"),
            (
                br#"["\ud800", "\ud83d\ude00", "\udc00\u0041"]"#,
                "[\"\u{fffd}\", \"\\ud83d\\ude00\", \"\u{fffd}\\u0041\"]",
            ),
            (br#"{"a": -Infinity, "b": NaN, "c": "NaN"}"#, r#"{"a": null, "b": null, "c": "NaN"}"#),
            (br#"[inf, -nan, true, null, -1e5, false]"#, r#"[null, null, true, null, -1e5, false]"#),
            (b"[\"a\tb\", \"\\uzz\"]", r#"["a b", "\\uzz"]"#),
            (br#"{"a": "\"\\\n\u00e9", "b": [1e5, true]}"#, r#"{"a": "\"\\\n\u00e9", "b": [1e5, true]}"#),
        ] {
            assert_eq!(mended(written), meant);
            assert!(serde_json::from_str::<serde_json::Value>(meant).is_ok(), "{meant}");
        }
    }
}
