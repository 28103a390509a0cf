//! The nearest of the values that an argument takes, where clap finds none like the given one: it has another measure, by
//! which two letters that changed places are far apart.

use clap::error::{ContextKind, ContextValue, Error};

use crate::clean::terminal_line;
use crate::results::nearest_name;

/// The error with the nearest value.
pub(super) fn with_nearest(mut error: Error) -> Error {
    let near = match (error.get(ContextKind::InvalidValue), error.get(ContextKind::ValidValue)) {
        (Some(ContextValue::String(given)), Some(ContextValue::Strings(known))) => {
            nearest_name(given, known.iter().map(String::as_str)).map(str::to_owned)
        }
        _ => None,
    };
    if let Some(near) = near.filter(|_| error.get(ContextKind::SuggestedValue).is_none()) {
        error.insert(ContextKind::SuggestedValue, ContextValue::String(near));
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

    #[test]
    fn an_argument_with_a_line_break_begins_no_line_of_the_refusal() {
        for arguments in [&["bench", "a", "b\nerror: c"][..], &["run", "--runs", "1\nerror: c"], &["a\nerror: c"]] {
            let all = ["report"].iter().chain(arguments);
            let error = in_lines(App::new().command().try_get_matches_from(all).unwrap_err()).to_string();
            assert!(error.contains("␊error: c") && !error.contains("\nerror: c"), "{error}");
        }
    }

    #[test]
    fn a_value_with_two_letters_exchanged_has_a_nearest_one_and_an_unlike_one_has_none() {
        let said = |flag: &str, value: &str| {
            let error = App::new().command().try_get_matches_from(["report", "bench", "overlap", flag, value]);
            with_nearest(error.unwrap_err()).to_string()
        };
        for (flag, value, near) in
            [("--export", "cvs", "csv"), ("--dtype", "pf16", "fp16"), ("--color", "nevre", "never")]
        {
            let said = said(flag, value);
            assert!(said.contains(&format!("a similar value exists: '{near}'")), "{said}");
        }
        for flag in ["--export", "--dtype"] {
            assert!(!said(flag, "spreadsheet").contains("similar"), "{}", said(flag, "spreadsheet"));
        }
    }
}
