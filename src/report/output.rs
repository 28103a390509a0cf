//! What the program says: on standard output ([`say!`], [`show!`]); on standard error its progress ([`note!`]), which
//! `--quiet` leaves out, and what is missing or wrong ([`alert!`]).
//!
//! All of it passes [`clean::terminal`]: what a file holds must not act on the terminal. A message may hold a reason, a name
//! or a path of anybody: what follows a line break in it stands further in, so that none begins a line of its own. What the
//! program lays out itself, such as a table, goes by [`show!`]. A reader that has gone away, as `head` does, ends nothing: what
//! was to be done is done, without a word. Output that cannot be written for another reason, such as a full disk, makes the
//! program fail at its end. Where a file that the user names is standard output itself, the file has it alone, and what would
//! be said there goes to standard error.
//!
//! With `--json`, what was found is written as it is, with the version of the schema and the command before it ([`Form`]). A
//! version goes up where a name goes or changes its meaning, not where one comes.

use std::fmt::Write as _;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use clap::Args;
use clap::builder::styling::Style;
use serde::Serialize;

use super::terminal;
use crate::clean;
use crate::files::is_same;

/// A message on standard output.
macro_rules! say {
    () => { $crate::output::out("\n", None) };
    ($($text:tt)+) => { $crate::output::message(&format!($($text)+), None) };
}

/// Text on standard output that is laid out.
macro_rules! show {
    ($($text:tt)+) => { $crate::output::out(&format!($($text)+), None) };
}

/// A message on standard error about the progress.
macro_rules! note {
    ($($text:tt)+) => {
        if !$crate::terminal::is_quiet() {
            alert!($($text)+)
        }
    };
}

/// A message on standard error that has to be seen.
macro_rules! alert {
    ($($text:tt)+) => { $crate::output::error(&$crate::output::set_in(&format!($($text)+))) };
}

/// Why standard output could not be written, the first time that it could not.
static FAILED: Mutex<Option<io::Error>> = Mutex::new(None);

/// Whether standard output is a file's that the user named.
static IS_A_FILES: AtomicBool = AtomicBool::new(false);

/// Leaves standard output to the file at `path`, where that is it.
pub(super) fn give_way(path: &Path) {
    if is_same(path, Path::new("/dev/stdout")) {
        IS_A_FILES.store(true, Ordering::Relaxed);
    }
}

/// Text on standard output that is laid out, its first line painted.
pub(super) fn out(text: &str, paint: Option<Style>) {
    write(terminal::formed(&clean::terminal(text), paint, &io::stdout()));
}

/// A message on standard output, whose first line is painted.
pub(super) fn message(text: &str, paint: Option<Style>) {
    out(&set_in(text), paint);
}

/// A message as lines: those behind the first stand further in. Of one that is too long, the middle is left out.
pub(super) fn set_in(text: &str) -> String {
    const MOST: usize = 4_000;
    clean::shortened(text.trim_end(), MOST).replace('\n', "\n  ") + "\n"
}

/// A text for a program or a file, on standard output: its lines stay as they are.
pub(super) fn whole(text: &str) {
    write(clean::terminal(text).as_bytes());
}

fn write(text: impl AsRef<[u8]>) {
    if IS_A_FILES.load(Ordering::Relaxed) {
        // Nobody is left to tell.
        return drop(io::stderr().lock().write_all(text.as_ref()));
    }
    let mut stdout = io::stdout().lock();
    if let Err(error) = stdout.write_all(text.as_ref()).and_then(|()| stdout.flush()) {
        failed(error);
    }
}

/// Text on standard error that is laid out.
pub(super) fn error(text: &str) {
    let text = clean::terminal(text);
    let paint = text.starts_with("error:").then_some(terminal::BAD);
    // Nobody is left to tell.
    let _ = io::stderr().lock().write_all(terminal::formed(&text, paint, &io::stderr()).as_bytes());
}

/// Notes that standard output could not be written.
pub(super) fn failed(error: io::Error) {
    if error.kind() != ErrorKind::BrokenPipe {
        FAILED.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

/// Why standard output could not be written, where it could not.
pub(super) fn failure() -> Option<io::Error> {
    FAILED.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// The version of what `--json` prints.
const SCHEMA_VERSION: u32 = 1;

/// How facts are printed.
#[derive(Args)]
pub(super) struct Form {
    /// Print JSON, for a program; `schema_version` says what its names mean
    #[arg(long, help_heading = "Output")]
    pub(super) json: bool,
}

impl Form {
    /// Prints the facts that a command found, or has them said in words.
    pub(super) fn print(
        &self,
        command: &'static str,
        facts: &impl Serialize,
        say: impl FnOnce(),
    ) -> anyhow::Result<()> {
        if self.json {
            // Facts are an object with a name or more, before which these two stand.
            let begin = format!("{{\n  \"schema_version\": {SCHEMA_VERSION},\n  \"command\": \"{command}\",");
            whole(&json(facts)?.replacen('{', &begin, 1));
        } else {
            say();
        }
        Ok(())
    }
}

/// A value as JSON on standard output.
///
/// # Errors
/// As [`json`].
pub(super) fn print_json(value: &impl Serialize) -> serde_json::Result<()> {
    whole(&json(value)?);
    Ok(())
}

/// A value as lines of JSON, with an escape in place of each character that a terminal would act on.
///
/// # Errors
/// The value is none that JSON has.
pub(super) fn json(value: &impl Serialize) -> serde_json::Result<String> {
    let text = serde_json::to_string_pretty(value)?;
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match clean::is_unseen(character) && character != '\n' {
            // Writing to a string cannot fail.
            true => drop(write!(safe, "\\u{:04x}", u32::from(character))),
            false => safe.push(character),
        }
    }
    safe.push('\n');
    Ok(safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_break_in_a_message_begins_no_line_of_its_own() {
        assert_eq!(set_in("a.json: no\nerror: yes\n"), "a.json: no\n  error: yes\n");
        assert_eq!(set_in("one line"), "one line\n");
    }

    #[test]
    fn a_message_of_any_length_is_told_by_its_begin_and_its_end() {
        let told = set_in(&format!("a.yaml:1:1: the tag `{}` has no meaning here", "é".repeat(1_000_000)));
        assert!(told.starts_with("a.yaml:1:1: the tag `é") && told.ends_with("é` has no meaning here\n"), "{told}");
        assert!(told.chars().count() < 4_100);
    }

    #[test]
    fn json_keeps_its_content_and_holds_nothing_that_a_terminal_acts_on() {
        let content = "a\u{9b}31m\u{202e}\u{1b}\n";
        let text = json(&content).unwrap();
        assert!(!text.trim_end().contains(clean::is_unseen), "{text}");
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), content);
    }
}
