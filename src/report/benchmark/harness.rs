//! What the harness of tests is told, and so every target of `cargo test --all-targets -- …` and of a runner of tests.
//!
//! What chooses functions does so here, too. What says how tests are run and shown means nothing where each function is
//! called once. Source: `--help` of a program of tests of Rust 1.95; cargo-nextest asks by `--list --format terse`, once more
//! with `--ignored`, and then by `--exact NAME`.

use clap::{Arg, ArgAction, Args, Command};

/// What the harness of tests knows that chooses functions.
#[derive(Args)]
pub(super) struct HarnessOptions {
    /// Only functions of exactly these names
    #[arg(long, hide = true)]
    pub(super) exact: bool,
    /// No functions whose name holds this
    #[arg(long, hide = true, value_name = "WORD")]
    pub(super) skip: Vec<String>,
    /// Only functions that are not called otherwise: there are none
    #[arg(long, hide = true)]
    pub(super) ignored: bool,
}

/// The rest: flags, and those with a value.
const FLAGS: [&str; 11] = [
    "include-ignored",
    "exclude-should-panic",
    "force-run-in-process",
    "fail-fast",
    "test",
    "no-capture",
    "nocapture",
    "show-output",
    "report-time",
    "ensure-time",
    "shuffle",
];
const VALUES: [&str; 4] = ["test-threads", "logfile", "format", "shuffle-seed"];

/// The command with what means nothing to it.
pub(super) fn with_the_rest(command: Command) -> Command {
    let flags = FLAGS.map(|name| Arg::new(name).long(name).action(ArgAction::SetTrue));
    let values = VALUES.map(|name| Arg::new(name).long(name));
    let letters = [Arg::new("q").short('q').action(ArgAction::SetTrue), Arg::new("Z").short('Z')];
    command.args(flags.into_iter().chain(values).chain(letters).map(|argument| argument.hide(true)))
}
