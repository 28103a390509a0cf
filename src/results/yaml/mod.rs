//! Reading YAML that a person wrote: what is wrong comes with its place, and an unknown name with the nearest known one.
//!
//! The parser, `serde_saphyr`, knows the place of each value. It refuses what is too large or nested too deep, with what
//! aliases repeat, a key that stands twice, and what YAML has and these files have no use for: tags of one's own, merged
//! mappings, numbers without an end, a second document.

mod way;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Error as _};
use serde_json::Value;
use serde_path_to_error::{Deserializer, Path, Segment, Track};
use serde_saphyr::options::{MergeKeyPolicy, NonFiniteFloatPolicy};
use serde_saphyr::{Error, Options, with_deserializer_from_str_with_options};

pub use way::Way;

use crate::error::{FileError, at, in_plain_words};
use crate::files::read_text;
// As much as of a suite in a results file, so that what is read here can be read there.
use crate::nearest;

/// The most bytes of a suite, a document or a description of hardware.
const MAX_BYTES: usize = 1 << 20;

/// The most values of a text, and the most bytes of them, also where aliases repeat parts of it.
const MAX_VALUES: usize = 200_000;
const MAX_TEXT: usize = 4 << 20;

/// The deepest nesting of lists and maps.
const MAX_DEPTH: usize = 64;

fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_nodes: MAX_VALUES,
            max_total_scalar_bytes: MAX_TEXT,
            max_depth: MAX_DEPTH,
        },
        merge_keys: MergeKeyPolicy::Error,
        non_finite_float_policy: NonFiniteFloatPolicy::Reject,
        reject_unsupported_tags: true,
        strict_booleans: true,
        null_as_string: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        with_snippet: false,
    }
}

/// The text of a file.
///
/// # Errors
/// It cannot be read or is longer than what a person writes.
pub fn read(path: &std::path::Path) -> Result<String, FileError> {
    read_text(path, MAX_BYTES).map_err(at(path))
}

/// Reads a text; `origin` names it in errors.
///
/// # Errors
/// [`FileError::Invalid`] says where what is wrong.
pub fn parse<T: DeserializeOwned>(text: &str, origin: &str) -> Result<T, FileError> {
    let mut read = None;
    walk(text, origin, &mut |whole| erased_serde::deserialize(whole).map(|value| read = Some(value)))?;
    read.ok_or_else(|| FileError::whole(origin.to_owned(), "nothing was read of it".to_owned()))
}

/// Reads a text by `take`, whatever it makes of it.
fn walk(
    text: &str,
    origin: &str,
    take: &mut dyn FnMut(&mut dyn erased_serde::Deserializer<'_>) -> Result<(), erased_serde::Error>,
) -> Result<(), FileError> {
    let mut track = Track::new();
    let read = with_deserializer_from_str_with_options(text, options(), |whole| {
        let whole = Deserializer::new(whole, &mut track);
        take(&mut <dyn erased_serde::Deserializer<'_>>::erase(whole)).map_err(Error::custom)
    });
    read.map_err(|error| {
        // An error of the parser's own loses its place where `take` hands it on.
        let mut plain = Track::new();
        let parsed = with_deserializer_from_str_with_options(text, options(), |whole| {
            Value::deserialize(Deserializer::new(whole, &mut plain))
        });
        match parsed {
            Err(error) => invalid(&error, &plain.path(), text, origin),
            Ok(_) => invalid(&error, &track.path(), text, origin),
        }
    })
}

/// Reads a text as a results file is read, where it could stand as JSON: a number is one there, too.
///
/// # Errors
/// As [`parse`].
pub fn parse_as_json<T: DeserializeOwned>(text: &str, origin: &str) -> Result<T, FileError> {
    of_json(&parse(text, origin)?).map_err(|fault| fault.error(text, origin))
}

/// Reads what stands as JSON.
///
/// # Errors
/// What is wrong, and the way to it.
pub fn of_json<T: DeserializeOwned>(whole: &Value) -> Result<T, Fault> {
    serde_path_to_error::deserialize(whole).map_err(|error| refused(&error, Way::default()))
}

/// Reads a text in which nothing is left blank, but for the values below a key that `may_be_blank`.
///
/// # Errors
/// As [`parse`].
pub fn parse_filled<T: DeserializeOwned>(text: &str, origin: &str, may_be_blank: Option<&str>) -> Result<T, FileError> {
    let read = parse(text, origin)?;
    let is_blank = |value: &Value| value.is_null() || value.as_str().is_some_and(|text| text.trim().is_empty());
    let is_wanted = |way: &Way, value: &Value| is_blank(value) && !may_be_blank.is_some_and(|key| way.leads_by(key));
    match Way::default().first(&parse(text, origin)?, &is_wanted) {
        Some(way) => Err(Fault::at(way, BLANK).error(text, origin)),
        None => Ok(read),
    }
}

/// What is wrong where nothing stands.
const BLANK: &str = "nothing stands here: say what is meant, or leave the key out";

/// The parser's error with its place; the way leads to the value that is meant.
fn invalid(error: &Error, path: &Path, text: &str, origin: &str) -> FileError {
    let rendered = error.render();
    // A parser within the parser puts its own place behind its words.
    let said = rendered.split(" at line ").next().unwrap_or_default();
    let [value, meant] = ways(Way::default(), path, said);
    let own = || error.location().map(|place| (place.line() as usize, place.column() as usize));
    let place = match error {
        // The parser knows no more of what a reader of its values refuses than where the last one was taken.
        Error::Message { .. }
        | Error::SerdeInvalidType { .. }
        | Error::SerdeInvalidValue { .. }
        | Error::SerdeUnknownField { .. }
        | Error::SerdeUnknownVariant { .. } => meant.place(text).or_else(own),
        _ => own(),
    };
    let (line, column) = place.unwrap_or_default();
    let rest = text.lines().nth(line.saturating_sub(1)).unwrap_or_default().chars().skip(column.saturating_sub(1));
    let found: String = rest.take_while(|character| !",]}#".contains(*character)).collect();
    let message = value.before(&in_words(said, found.trim()));
    FileError::Invalid { origin: origin.to_owned(), line, column, message, hint: hint(said) }
}

/// What is wrong with a text, and where.
#[derive(Debug)]
pub struct Fault {
    /// The way to it.
    pub way: Way,
    /// What it is.
    pub message: String,
    /// What may have been meant, to be read behind the message.
    pub hint: String,
}

impl Fault {
    /// Without a hint.
    pub fn at(way: Way, message: impl Into<String>) -> Self {
        Self { way, message: message.into(), hint: String::new() }
    }

    /// It as an error of the text, which `origin` names.
    pub fn error(self, text: &str, origin: &str) -> FileError {
        let (line, column) = self.way.place(text).unwrap_or_default();
        FileError::Invalid { origin: origin.to_owned(), line, column, message: self.message, hint: self.hint }
    }
}

/// What is wrong with the value at `way` of a text, whose content refused to be read.
pub fn refused(error: &serde_path_to_error::Error<serde_json::Error>, way: Way) -> Fault {
    let said = error.inner().to_string();
    let [value, meant] = ways(way, error.path(), &said);
    Fault { way: meant, message: value.before(&in_plain_words(&said)), hint: hint(&said) }
}

/// The ways from a value to the one that an error is about, and to what is wrong there: an unknown key, or the value itself.
fn ways(from: Way, path: &Path, said: &str) -> [Way; 2] {
    let name = said.strip_prefix("unknown field `").and_then(|rest| rest.split('`').next());
    let mut steps: Vec<&Segment> = path.iter().filter(|segment| !matches!(segment, Segment::Unknown)).collect();
    // An unknown key is no part of the way to it.
    let is_key = |last: &mut &Segment| matches!(last, Segment::Map { key } if Some(key.as_str()) == name);
    steps.pop_if(is_key);
    let value = steps.iter().fold(from, |way, step| match step {
        Segment::Seq { index } => way.item(*index),
        Segment::Map { key } | Segment::Enum { variant: key } => way.key(key),
        Segment::Unknown => way,
    });
    let meant = name.map_or(value.clone(), |name| value.name(name));
    [value, meant]
}

/// The parser's words for what is wrong as those of this program.
fn in_words(said: &str, found: &str) -> String {
    const SAID: [(&str, &str); 10] = [
        ("expected sequence start", "expected a list"),
        ("expected mapping start", "expected a mapping"),
        ("expected string scalar", "expected a text"),
        ("multiple YAML documents", "a second YAML document begins: a file holds one"),
        ("non-finite float", "a number has an end, and this one has none"),
        ("unsupported tag", "a tag has no meaning here: write the value alone"),
        ("YAML merge keys", "`<<` has no meaning here: write the keys out, or take an alias for a whole value"),
        ("budget breached", "too large or nested too deep, with what aliases repeat"),
        ("recursion limit", "nested too deep"),
        ("recursive references", "an alias of what it stands in"),
    ];
    if let Some((_, words)) = SAID.iter().find(|(begin, _)| said.starts_with(begin)) {
        return (*words).to_owned();
    }
    if let Some(key) = said.strip_prefix("duplicate mapping key: ").and_then(|rest| rest.rsplit_once(", set ")) {
        return format!("the key `{}` stands twice in one mapping", key.0);
    }
    let kind = said.strip_prefix("invalid ").and_then(|rest| rest.split(" (").next());
    match kind.filter(|kind| !kind.contains([' ', ':'])) {
        Some(kind) => in_plain_words(&format!("found `{found}`, expected {kind}")),
        None => in_plain_words(said),
    }
}

/// What an unknown name may stand for: the nearest of those that are expected.
fn hint(said: &str) -> String {
    let parts = said.strip_prefix("unknown ").and_then(|rest| rest.split_once("`, expected "));
    let Some((unknown, expected)) = parts.and_then(|(kind, rest)| Some((kind.split_once('`')?.1, rest))) else {
        return String::new();
    };
    let expected = expected.strip_prefix("one of ").unwrap_or(expected);
    let known: Vec<&str> = expected.split([',', ' ']).map(|name| name.trim_matches('`')).collect();
    nearest(unknown, known.into_iter().filter(|name| !name.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a: &x\n  - {b: 1, c: [2, 3]}\nd:\n  - *x\n  - e: >\n      folded\n";

    #[test]
    fn an_error_in_a_list_says_which_entry_in_words() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        #[expect(dead_code, reason = "nothing of it is right")]
        struct Entry {
            title: String,
            #[serde(default)]
            read: Vec<u32>,
        }
        let said = |text: &str| parse::<Vec<Entry>>(text, "l.yaml").unwrap_err().to_string();
        let unknown = said("- {title: a}\n- {titel: b}\n");
        assert!(unknown.starts_with("l.yaml:2:4: entry 2: unknown field `titel`"), "{unknown}");
        let within = said("- title: a\n  read: [1, x]\n");
        assert!(within.contains(": entry 1, read[1]: "), "{within}");
    }

    #[test]
    fn an_error_names_no_type_of_the_program() {
        let said = |text: &str| parse::<std::collections::BTreeMap<String, std::num::NonZeroUsize>>(text, "a.yaml");
        let said = |text: &str| said(text).unwrap_err().to_string();
        assert!(said("a: many").ends_with("expected a whole number that is not negative"), "{}", said("a: many"));
        assert!(said("[]").ends_with("expected a mapping"), "{}", said("[]"));
        let yes = parse::<Vec<bool>>("[yes]", "a.yaml").unwrap_err().to_string();
        assert!(yes.ends_with("found `yes`, expected true or false"), "{yes}");
    }

    #[test]
    fn a_number_is_one_in_a_results_file_too() {
        let said = |text: &str| parse_as_json::<std::collections::BTreeMap<String, f64>>(text, "a.yaml");
        assert_eq!(said("a: 3").unwrap()["a"], 3.0);
        for number in ["\"3\"", "1_000", "007", ".inf", "-.INF", ".nan", "!foo 3", "yes", "[3]"] {
            let refused = said(&format!("b: 1\na: {number}")).unwrap_err().to_string();
            assert!(refused.starts_with("a.yaml:2:"), "{number}: {refused}");
        }
    }

    #[test]
    fn aliases_of_aliases_deep_nesting_and_many_values_are_refused_with_their_place() {
        let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..9 {
            let all = vec![format!("*a{}", level - 1); 10].join(", ");
            laughs.push_str(&format!("a{level}: &a{level} [{all}]\n"));
        }
        let deep = "[".repeat(100_000);
        let block: String = (0..2_000).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
        let many = "- 1\n".repeat(MAX_VALUES + 1);
        let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(200_000), vec!["*a"; 20_000].join(", "));
        for (text, says) in [
            (laughs.as_str(), "too large"),
            (&deep, "nested too deep"),
            (&block, "nested too deep"),
            (&many, "too large"),
            (&long, "too large"),
            ("a: &a [*a]", "an alias of what it stands in"),
        ] {
            let said = parse::<Value>(text, "a.yaml").unwrap_err().to_string();
            assert!(said.contains(says) && !said.starts_with("a.yaml:0"), "{said}");
        }
    }

    #[test]
    fn what_these_files_have_no_use_for_is_refused_where_it_stands() {
        for (text, line, says) in [
            ("a: 1\nb: 2\na: 3", 3, "the key `a` stands twice"),
            ("a:\n  b: [{c: 1, d: [{c: 1}],\n c: 2}]", 3, "the key `c` stands twice"),
            ("a:\n- !unit 5", 2, "a tag has no meaning"),
            ("a: 1\n---\na: 2", 3, "a second YAML document"),
            ("a: [1,\n -.INF]", 2, "a number has an end"),
            ("a: &x {b: 1}\nc: {<<: *x}", 2, "`<<` has no meaning"),
            ("\n? [a]\n: 1", 2, "expected a text"),
        ] {
            let said = parse::<Value>(text, "a.yaml").unwrap_err().to_string();
            assert!(said.contains(says) && said.starts_with(&format!("a.yaml:{line}:")), "{text}: {said}");
        }
        assert!(parse::<Value>("--- # one\na: &x [1, 2]\nb: *x\nc: {d: *x, '': {a: 1}, '<<': 1}\n", "a.yaml").is_ok());
    }

    #[test]
    fn a_mark_of_the_encoding_changes_nothing() {
        let marked = format!("\u{feff}{TEXT}");
        let [plain, other] = [TEXT, &marked].map(|text| parse::<serde_json::Value>(text, "t.yaml").unwrap());
        assert_eq!(plain, other);
        assert_eq!(Way::default().key("a").place(&marked), Way::default().key("a").place(TEXT));
    }

    #[test]
    fn what_is_left_blank_is_refused_where_it_stands_unless_it_may_be() {
        let read = |text: &str| parse_filled::<Value>(text, "a.yaml", Some("free")).map_err(|error| error.to_string());
        assert!(read("a: b\nfree: {c: ~, d: ''}").is_ok());
        for (text, place) in
            [("a: b\nc: ''", "2:4"), ("a: [b,\n  '  ']", "2:3"), ("a:\n  b: ~", "2:6"), ("a:\nb: c", "1:2")]
        {
            let message = read(text).unwrap_err();
            assert!(message.starts_with(&format!("a.yaml:{place}: nothing stands here")), "{text:?}: {message}");
        }
    }
}
