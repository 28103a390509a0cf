//! What the harness of tests is told, and so every target of `cargo test --all-targets -- …` and of a runner of tests.
//!
//! What chooses functions does so here, too. What says how tests are run and shown means nothing where each function is
//! called once. Source: `--help` of a program of tests of Rust 1.95; cargo-nextest asks by `--list --format terse`, once more
//! with `--ignored`, and then by `--exact NAME`.

use clap::Args;

/// What the harness of tests knows.
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
    #[arg(long, hide = true)]
    include_ignored: bool,
    #[arg(long, hide = true)]
    exclude_should_panic: bool,
    #[arg(long, hide = true)]
    force_run_in_process: bool,
    #[arg(long, hide = true)]
    fail_fast: bool,
    #[arg(long, hide = true)]
    test: bool,
    #[arg(long, hide = true, alias = "nocapture")]
    no_capture: bool,
    #[arg(long, hide = true)]
    show_output: bool,
    #[arg(long, hide = true, value_name = "N")]
    test_threads: Option<String>,
    #[arg(long, hide = true, value_name = "FILE")]
    logfile: Option<String>,
    #[arg(long, hide = true, value_name = "FORMAT")]
    format: Option<String>,
    #[arg(short = 'q', hide = true)]
    terse: bool,
    #[arg(short = 'Z', hide = true, value_name = "WHAT")]
    unstable: Vec<String>,
    #[arg(long, hide = true)]
    report_time: bool,
    #[arg(long, hide = true)]
    ensure_time: bool,
    #[arg(long, hide = true)]
    shuffle: bool,
    #[arg(long, hide = true, value_name = "SEED")]
    shuffle_seed: Option<String>,
}
