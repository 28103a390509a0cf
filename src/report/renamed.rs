//! What older programs called by another name: an error says what it is called now.

use clap::error::{ContextKind, ContextValue, Error};

/// A subcommand, flag or value of an older program, and what stands in its place.
const RENAMED: [(ContextKind, &str, &str); 4] = [
    (ContextKind::InvalidSubcommand, "peers", "attach"),
    (ContextKind::InvalidSubcommand, "verify", "reproduce"),
    (ContextKind::InvalidArg, "--across", "--allow-mismatch"),
    (ContextKind::InvalidValue, "peer", "system"),
];

/// That what the error is about is called otherwise now; `None` where it never was anything.
pub(super) fn explain(error: &Error) -> Option<String> {
    let given = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        _ => "",
    };
    // A value that was renamed for one argument may be any word for another.
    let fits = |kind, new: &str| match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(values)) if kind == ContextKind::InvalidValue => values.iter().any(|v| v == new),
        _ => kind != ContextKind::InvalidValue,
    };
    if given(ContextKind::InvalidValue) == "json" && given(ContextKind::InvalidArg).starts_with("--format") {
        return Some("`--format json` is called `--json` now".to_owned());
    }
    let (_, old, new) = RENAMED.iter().find(|(kind, old, new)| given(*kind) == *old && fits(*kind, new))?;
    Some(format!("`{old}` is called `{new}` now"))
}

#[cfg(test)]
mod tests {
    use super::super::{App, renamed};
    use super::RENAMED;

    #[test]
    fn every_name_that_stands_in_place_of_an_older_one_is_there() {
        let command = App::new().command();
        let arguments = |command: &clap::Command| {
            let flags = command.get_arguments().filter_map(|a| a.get_long()).map(|long| format!("--{long}"));
            let values = command.get_arguments().flat_map(clap::Arg::get_possible_values);
            flags.chain(values.map(|value| value.get_name().to_owned())).collect::<Vec<_>>()
        };
        for (_, old, new) in RENAMED {
            let named = command.get_subcommands().map(|s| s.get_name().to_owned());
            let all: Vec<String> = named.chain(command.get_subcommands().flat_map(arguments)).collect();
            assert!(all.iter().any(|name| name == new) && !all.iter().any(|name| name == old), "{old} {new}");
        }
    }

    #[test]
    fn an_old_name_says_the_new_one_only_where_it_had_that_meaning() {
        let explained = |arguments: &[&str]| {
            let command = App::new().command();
            let error = command.try_get_matches_from(arguments).unwrap_err();
            renamed::explain(&error)
        };
        let is = |text: &str| Some(text.to_owned());
        assert_eq!(explained(&["report", "peers", "p.json"]), is("`peers` is called `attach` now"));
        assert_eq!(explained(&["report", "verify", "r.json"]), is("`verify` is called `reproduce` now"));
        assert_eq!(
            explained(&["report", "compare", "a", "b", "--across"]),
            is("`--across` is called `--allow-mismatch` now")
        );
        assert_eq!(explained(&["report", "schema", "peer"]), is("`peer` is called `system` now"));
        assert_eq!(explained(&["report", "compare", "a", "b", "--format", "peer"]), None);
        assert_eq!(explained(&["report", "frobnicate"]), None);
        let formats = explained(&["report", "compare", "a", "b", "--format", "json"]);
        assert_eq!(formats, is("`--format json` is called `--json` now"));
        assert_eq!(explained(&["report", "schema", "json"]), None);
    }
}
