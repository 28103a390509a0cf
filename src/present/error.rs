//! Why a file cannot be used.

use std::path::PathBuf;

/// What can be wrong with a file that a person or another program wrote: a suite, a document, results.
///
/// ```
/// use syncscope_present::FileError;
///
/// // A message names the file, and the line and column where they are known.
/// let error = FileError::whole("suite.yaml", "it chooses nothing");
/// assert_eq!(error.to_string(), "suite.yaml: it chooses nothing");
/// ```
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read or written.
    #[error("{}: {cause}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// What was made cannot be put there, though the place could be claimed.
    #[error("{}: {cause}", path.display())]
    Unwritten {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// Something in it is wrong.
    #[error("{origin}{}: {message}{hint}", place(*line, *column))]
    Invalid {
        /// The file's name.
        origin: String,
        /// The line, from 1; 0 where the file as a whole is meant.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What was found and what was expected.
        message: String,
        /// What may have been meant, to be read behind the message; empty where nothing is known.
        hint: String,
    },
    /// It has a schema version that this program does not read.
    #[error(
        "{origin}: it has the schema version {found}, and this program reads {read}; use the syncscope that wrote it, or a newer one"
    )]
    Version {
        /// The file's name.
        origin: String,
        /// The file's version.
        found: u64,
        /// The version that is read.
        read: u32,
    },
}

impl FileError {
    /// What was made cannot be put at `path`.
    pub fn unwritten(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self {
        |cause| Self::Unwritten { path: path.to_owned(), cause }
    }

    /// Something is wrong with the file as a whole.
    pub fn whole(origin: impl Into<String>, message: impl Into<String>) -> Self {
        let (origin, message, hint) = (origin.into(), message.into(), String::new());
        Self::Invalid { origin, line: 0, column: 0, message, hint }
    }

    /// The file is not JSON of the right shape, or was cut short.
    #[cfg(feature = "serde")]
    pub fn json(origin: impl Into<String>, what: &str, error: &serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        let text = error.to_string();
        let message = text.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&text);
        let (message, hint) = (format!("not {what}: {}", in_plain_words(message)), String::new());
        // The parser counts what it has read of a line, and that of the next line may be nothing yet.
        Self::Invalid { origin: origin.into(), line, column: column.max(1), message, hint }
    }
}

/// A parser's message with words of a reader in the place of what it calls values and the types of this program.
pub fn in_plain_words(message: &str) -> String {
    const EXPECTED: &str = ", expected ";
    const TOO_LARGE: &str = "JSON number out of range";
    if let Some(way) = message.strip_suffix(TOO_LARGE) {
        return format!("{way}a number that is too large");
    }
    let Some((found, expected)) = message.split_once(EXPECTED) else { return message.to_owned() };
    let plain = match expected {
        "boolean" | "a boolean" => "true or false",
        "a string" => "a text",
        "a sequence" => "a list",
        "f32" | "f64" => "a number",
        "a nonzero u8" => "a whole number from 1 to 255",
        "a nonzero u32" => "a whole number from 1 to 4294967295",
        "a nonzero u64" | "a nonzero usize" => "a whole number above 0",
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" => "a whole number that is not negative",
        "i32" | "i64" => "a whole number",
        structure if structure == "a map" || structure.starts_with("struct ") => "a mapping",
        other => other,
    };
    let way = ["invalid type: ", "invalid value: "].iter().find_map(|kind| found.split_once(kind));
    let found = way.map_or_else(|| found.to_owned(), |(way, what)| format!("{way}found {}", found_in_words(what)));
    format!("{found}{EXPECTED}{plain}")
}

/// What a parser found, in words.
fn found_in_words(what: &str) -> String {
    /// The longest number that is written out.
    const MAX_DIGITS: usize = 20;
    match what {
        "unit value" | "null" => "nothing".to_owned(),
        "sequence" => "a list".to_owned(),
        "map" => "a mapping".to_owned(),
        _ => match what.split_once('`').and_then(|(kind, number)| Some((kind, number.strip_suffix('`')?))) {
            Some(("integer " | "floating point ", number)) => match number.parse::<f64>() {
                Ok(value) if number.len() > MAX_DIGITS => format!("the number {value:e}"),
                _ => format!("the number {number}"),
            },
            Some(("boolean ", value)) => format!("`{value}`"),
            _ => what.strip_prefix("string ").map_or_else(|| what.to_owned(), |text| format!("the text {text}")),
        },
    }
}

fn place(line: usize, column: usize) -> String {
    if line == 0 { String::new() } else { format!(":{line}:{column}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_parser_found_and_expected_is_said_in_words() {
        for (message, plain) in [
            ("a.b: invalid type: sequence, expected a string", "a.b: found a list, expected a text"),
            ("invalid type: unit value, expected a map", "found nothing, expected a mapping"),
            (
                "invalid type: string \"x\", expected u64",
                "found the text \"x\", expected a whole number that is not negative",
            ),
            (
                "invalid value: integer `70000`, expected u16",
                "found the number 70000, expected a whole number from 0 to 65535",
            ),
            ("a: JSON number out of range", "a: a number that is too large"),
            ("unknown field `x`, expected one of `a`, `b`", "unknown field `x`, expected one of `a`, `b`"),
        ] {
            assert_eq!(in_plain_words(message), plain);
        }
        let huge = format!("invalid type: floating point `1{}.0`, expected usize", "0".repeat(300));
        assert_eq!(in_plain_words(&huge), "found the number 1e300, expected a whole number that is not negative");
    }
}
