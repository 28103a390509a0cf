//! How the program speaks to whoever reads it: in colour or not, how wide, and whether of its progress.
//!
//! A standard output that is no terminal gets neither colour nor line breaks, unless `--color` or the variable `COLUMNS`
//! asks for them. `NO_COLOR` (<https://no-color.org>) is honoured.

use std::borrow::Cow;
use std::env;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::sync::OnceLock;

use clap::builder::styling::{AnsiColor, Style};
use clap::{Args, ColorChoice};
use rustix::termios::tcgetwinsize;
use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm};

/// What every command takes.
#[derive(Args)]
pub(super) struct OutputOptions {
    /// Show no progress, only errors and what is missing
    #[arg(long, global = true, help_heading = "Output")]
    pub(super) quiet: bool,
    /// When to colour: auto is on a terminal, unless NO_COLOR is set
    #[arg(long, global = true, value_name = "WHEN", default_value_t = ColorChoice::Auto, help_heading = "Output")]
    pub(super) color: ColorChoice,
}

/// How a title is painted.
pub(super) const TITLE: Style = Style::new().bold();
/// What is wrong, or worse.
pub(super) const BAD: Style = AnsiColor::Red.on_default().bold();
/// What is to be known.
pub(super) const WARNING: Style = AnsiColor::Yellow.on_default().bold();

static MANNER: OnceLock<(bool, ColorChoice)> = OnceLock::new();

impl OutputOptions {
    /// From now on the program speaks so.
    pub(super) fn take(&self) {
        // Nothing was said before, or the command line was not understood and nothing follows.
        let _ = MANNER.set((self.quiet, self.color));
    }

    /// The arguments by which another process of this program speaks so, too.
    pub(super) fn handed_on() -> Vec<String> {
        let (quiet, color) = manner();
        let color = ["--color".to_owned(), color.to_string()];
        color.into_iter().chain(quiet.then(|| "--quiet".to_owned())).collect()
    }
}

fn manner() -> (bool, ColorChoice) {
    MANNER.get().copied().unwrap_or_else(|| (false, named(env::args_os())))
}

/// Which colours a command line asks for that has not been understood, or not yet.
pub(super) fn named(arguments: impl Iterator<Item = OsString>) -> ColorChoice {
    let arguments: Vec<String> = arguments.filter_map(|argument| argument.into_string().ok()).collect();
    let behind = |(place, argument): (usize, &String)| match argument.strip_prefix("--color") {
        Some("") => arguments.get(place + 1).cloned(),
        Some(rest) => rest.strip_prefix('=').map(str::to_owned),
        None => None,
    };
    let choice = arguments.iter().enumerate().filter_map(behind).next_back();
    choice.and_then(|choice| choice.parse().ok()).unwrap_or_default()
}

/// Whether the progress is not to be told.
pub(super) fn is_quiet() -> bool {
    manner().0
}

fn is_coloured(to: &impl IsTerminal) -> bool {
    match manner().1 {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => {
            let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
            to.is_terminal() && !is_set("NO_COLOR") && env::var_os("TERM").is_none_or(|term| term != "dumb")
        }
    }
}

/// How many columns a line has; `None` where there is no end to it.
fn width(to: impl AsFd) -> Option<usize> {
    const NARROWEST: usize = 20;
    let stated = env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let seen = || tcgetwinsize(to).ok().map(|size| usize::from(size.ws_col));
    stated.or_else(seen).filter(|columns| *columns >= NARROWEST)
}

/// A text, which a terminal does not act on, in the form for where it goes: folded, and its first line painted.
pub(super) fn formed(text: &str, paint: Option<Style>, to: &(impl AsFd + IsTerminal)) -> String {
    let text = width(to).map_or(Cow::Borrowed(text), |width| Cow::Owned(fold(text, width)));
    let Some(style) = paint.filter(|_| is_coloured(to)) else { return text.into_owned() };
    let (first, rest) = text.split_at(text.find('\n').unwrap_or(text.len()));
    format!("{style}{first}{style:#}{rest}")
}

/// Breaks lines that are too long at blanks; what is broken off stands two columns further in than its line. A word that
/// is too long stays whole: a path is to be copied.
fn fold(text: &str, width: usize) -> String {
    let folded = text.split_inclusive('\n').map(|line| {
        let inset = line.len() - line.trim_start_matches(' ').len() + 2;
        let inset = " ".repeat(inset.min(width / 2));
        let options = Options::new(width).subsequent_indent(&inset).break_words(false);
        let options = options.word_separator(WordSeparator::AsciiSpace).word_splitter(WordSplitter::NoHyphenation);
        textwrap::fill(line, options.wrap_algorithm(WrapAlgorithm::FirstFit))
    });
    folded.collect()
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr;

    use super::*;

    #[test]
    fn a_long_line_is_broken_at_blanks_and_stands_further_in() {
        assert_eq!(fold("  one two three\nshort\n", 9), "  one two\n    three\nshort\n");
        assert_eq!(fold("a /very/long/path/of/a/file b\n", 10), "a\n  /very/long/path/of/a/file\n  b\n");
        let table = "what      measured\nasync      1.50 µs (n = 9)\n";
        assert_eq!(fold(table, 40), table);
        assert!(fold(table, 20).lines().all(|line| line.width() <= 20), "{}", fold(table, 20));
    }

    #[test]
    fn nothing_is_lost_where_a_text_is_folded() {
        let text = "  器 one  two\tthree 器器器器 four-five-six-seven eight \n\n   x\n";
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        for width in 4..40 {
            assert_eq!(words(&fold(text, width)), words(text), "{width}");
        }
    }

    #[test]
    fn the_colours_that_are_asked_for_are_known_before_the_command_line_is() {
        let named = |arguments: &[&str]| named(arguments.iter().map(OsString::from));
        assert_eq!(named(&["report", "--color", "always", "x"]), ColorChoice::Always);
        assert_eq!(named(&["report", "--color=never"]), ColorChoice::Never);
        assert_eq!(named(&["report", "--colour", "always"]), ColorChoice::Auto);
    }
}
