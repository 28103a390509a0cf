//! The nearest of the names and values that there are, where the command line has one that is none of them. The measure is
//! that of all other names: by clap's own, two letters that changed places are far apart, and of several names the one that
//! is least like stands first.

use std::ffi::OsString;

use clap::Command;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

use crate::clean::terminal_line;
use crate::results::nearest_name;

/// The error with the name or value that is nearest to a wrong one, of those that `command` has where the `arguments` lead to.
pub(super) fn with_nearest(mut error: Error, command: &Command, arguments: impl Iterator<Item = OsString>) -> Error {
    let place = arguments.fold(command, |place, argument| place.find_subcommand(argument).unwrap_or(place));
    let (given, known, suggested): (_, Vec<String>, _) = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let shown = place.get_subcommands().filter(|command| !command.is_hide_set());
            let known = shown.map(|command| command.get_name().to_owned()).collect();
            (ContextKind::InvalidSubcommand, known, ContextKind::SuggestedSubcommand)
        }
        ErrorKind::UnknownArgument => {
            let shown = place.get_arguments().filter(|argument| !argument.is_hide_set());
            let known = shown.filter_map(|argument| argument.get_long().map(str::to_owned)).collect();
            (ContextKind::InvalidArg, known, ContextKind::SuggestedArg)
        }
        ErrorKind::InvalidValue => match error.get(ContextKind::ValidValue) {
            Some(ContextValue::Strings(known)) => {
                (ContextKind::InvalidValue, known.clone(), ContextKind::SuggestedValue)
            }
            _ => return error,
        },
        _ => return error,
    };
    // The dashes before a flag are no part of its name.
    let dashes = if error.kind() == ErrorKind::UnknownArgument { "--" } else { "" };
    let near = match error.get(given) {
        Some(ContextValue::String(given)) => {
            given.strip_prefix(dashes).and_then(|given| nearest_name(given, known.iter().map(String::as_str)))
        }
        _ => None,
    };
    if let Some(near) = near {
        error.insert(suggested, ContextValue::String(format!("{dashes}{near}")));
    }
    error
}

/// The error with its arguments as lines: a pattern of the shell makes arguments of the names of files.
pub(super) fn in_lines(mut error: Error) -> Error {
    let given: Vec<(ContextKind, String)> = error
        .context()
        .filter_map(|(kind, value)| match value {
            ContextValue::String(text) => Some((kind, terminal_line(text).into_owned())),
            _ => None,
        })
        .collect();
    for (kind, text) in given {
        error.insert(kind, ContextValue::String(text));
    }
    error
}

#[cfg(test)]
mod tests {
    use super::super::App;
    use super::*;

    /// The values of all flags of the command and of those below it: clap shows the value, and a parser's own words follow.
    fn with_values(command: &Command, path: &[String]) -> Vec<Vec<String>> {
        let flags = command.get_arguments().filter(|argument| argument.get_action().takes_values());
        let own = flags.filter_map(clap::Arg::get_long).map(|flag| {
            let end = [format!("--{flag}"), "1\nerror: c".to_owned()];
            path.iter().cloned().chain(end).collect()
        });
        let below = command.get_subcommands().flat_map(|command| {
            let path: Vec<String> = path.iter().cloned().chain([command.get_name().to_owned()]).collect();
            with_values(command, &path)
        });
        own.chain(below).collect()
    }

    #[test]
    fn an_argument_with_a_line_break_begins_no_line_of_the_refusal() {
        let command = App::new().command();
        let all = with_values(&command, &["report".to_owned()]);
        let names = [&["report", "bench", "a", "b\nerror: c"][..], &["report", "a\nerror: c"]];
        let names = names.map(|arguments| arguments.iter().map(|&argument| argument.to_owned()).collect());
        let refused: Vec<String> = names
            .into_iter()
            .chain(all)
            .filter_map(|arguments: Vec<String>| command.clone().try_get_matches_from(arguments).err())
            .map(|error| in_lines(error).to_string())
            .collect();
        assert!(refused.iter().any(|error| error.contains("--runs")), "{refused:?}");
        for error in refused {
            assert!(!error.contains("\nerror: c"), "{error}");
        }
    }

    #[test]
    fn each_wrong_name_on_the_command_line_has_the_nearest_one_alone_and_an_unlike_one_has_none() {
        let command = App::new().command();
        let said = |line: &str| {
            let arguments = || ["report"].into_iter().chain(line.split(' ')).map(OsString::from);
            let error = command.clone().try_get_matches_from(arguments()).unwrap_err();
            with_nearest(error, &command, arguments()).to_string()
        };
        for (line, near) in [
            ("rnu", "run"),
            ("mna", "man"),
            ("lba", "lab"),
            ("chekc", "check"),
            ("devces", "devices"),
            ("kernel isntall", "install"),
            ("lab rlease", "release"),
            ("run --otu x", "--out"),
            ("--sutie full", "--suite"),
            ("check --currnet", "--current"),
            ("bench overlap --export cvs", "csv"),
            ("bench overlap --dtype f16", "fp16"),
            ("bench overlap --color nevre", "never"),
        ] {
            let said = said(line);
            let tip = said.split("exists: ").nth(1).and_then(|rest| rest.lines().next());
            assert_eq!(tip, Some(&*format!("'{near}'")), "{said}");
        }
        for line in ["frobnicate", "run --frobnicate", "bench overlap --export spreadsheet", "schema yaml"] {
            assert!(!said(line).contains("similar"), "{}", said(line));
        }
    }
}
