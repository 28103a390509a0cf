//! The program by the name that it was started by: `report`, `syncscope`, or that of a crate with experiments of its own.
//!
//! Help is written with the name `report`, so that it can be read in the sources, and shown with the program's name.

use std::borrow::Cow;
use std::path::Path;

use clap::Command;
use clap::builder::{Resettable, StyledStr};

use super::argument;

/// The program's name.
pub(super) fn program() -> String {
    let path = std::env::args_os().next();
    let name = path.as_deref().and_then(|path| Path::new(path).file_stem()).map(|name| name.to_string_lossy());
    name.map_or_else(|| "report".to_owned(), Cow::into_owned)
}

/// The program as it was started, as a word of a shell: what is to be typed next begins with it.
pub(super) fn invocation() -> String {
    std::env::args_os().next().map_or_else(program, |path| argument(Path::new(&path)))
}

/// The command and all below it with the name `program` wherever their help names the program.
pub(super) fn in_all(command: Command, program: &str) -> Command {
    let named = |text: Option<&StyledStr>| -> Resettable<StyledStr> {
        text.map(|text| StyledStr::from(in_help(&text.to_string(), program))).into()
    };
    let (about, long_about) = (named(command.get_about()), named(command.get_long_about()));
    let (after, long_after) = (named(command.get_after_help()), named(command.get_after_long_help()));
    let command = command.about(about).long_about(long_about).after_help(after).after_long_help(long_after);
    let command = command.mut_args(|argument| {
        let (help, long) = (named(argument.get_help()), named(argument.get_long_help()));
        argument.help(help).long_help(long)
    });
    command.mut_subcommands(|command| in_all(command, program))
}

/// A text with the name `program` in the places where help names the program: at the beginning of a line of an example, and
/// in a command within a sentence.
fn in_help(text: &str, program: &str) -> String {
    ["\n  ", "`"]
        .iter()
        .fold(text.to_owned(), |text, before| text.replace(&format!("{before}report "), &format!("{before}{program} ")))
}
