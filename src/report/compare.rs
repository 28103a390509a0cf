//! `report compare`: says row by row whether the second file is slower, faster or the same.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::Value;

use super::by_turns::{Measured, Side, TIME, measure};
use super::output::Form;
use super::processes::own_program;
use super::run::duration;
use super::terminal;
use super::{AppContext, End, UsageError, output, recorded};
use crate::book::{Wording, agreement, compared, over_the_file, tally, undecided};
use crate::files::Scratch;
use crate::present::in_markdown;
use crate::results::{Agreement, Compared, Mismatch, Results, Shift, Tolerance, compare, mismatches, remarks};

/// Compare two results files row by row: slower, faster, same or uncertain. Or measure two builds until their rows are decided
#[derive(Args)]
#[command(after_help = "\
A row is slower, faster or the same only where the whole interval of B / A says so; else it is uncertain. Counts, \
quotients and differences are different or the same, never slower. Every system that both files have (such as PyTorch) is \
compared with itself.

Of hundreds of rows, some differ by chance. So only changes are named that exceed what shuffled runs of both files show: where \
nothing changed, at most 5% of comparisons name any. A drift from one file to the other counts as a change. Three runs in each \
file can show that a row is the same, and never a change; take five. An uncertain row says how many runs a verdict takes.

Last, each system has a line on how well the two files agree: a factor common to all its rows, if there is one, and how many \
of the 95% intervals do not meet.

With --measure, A and B are measured now, in alternating runs. Each is another build of this program, or a suite that this one \
measures, by its name, its file, or a results file. A build measures the suite of the other side, or quick. A row is tested \
after 7, 10, 14, 20, … pairs of runs, and measured until it is decided. At most 5% of comparisons of equal programs name any \
change, whenever they stop.

Exit codes: 0, 1 where a row is what --fail-on names or a run failed, 2 where the files cannot be read or compared.

Examples:
  report compare before.json after.json --fail-on slower
  report compare h100.json h200.json --allow-mismatch --threshold 10% --format markdown
  report compare driver-580.json driver-590.json --allow-mismatch --fail-on different
  report compare --measure old/report new/report --for 10m --threshold 2% --fail-on slower
  report compare --measure old/report suite.yaml")]
pub(super) struct Arguments {
    /// The results file to compare with; with --measure, a program or a suite
    #[arg(value_name = "A.json")]
    a: PathBuf,
    /// The results file that is compared; with --measure, a program or a suite
    #[arg(value_name = "B.json")]
    b: PathBuf,
    /// Measure both in alternating runs, until each row is decided or the time is over
    #[arg(long)]
    measure: bool,
    /// Begin no pair of runs that would end after this time: 60s, 10m; else 5m
    #[arg(long = "for", value_name = "TIME", value_parser = duration, requires = "measure")]
    time: Option<Duration>,
    /// The smallest change of interest: 5% or 0.05
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = threshold)]
    threshold: f64,
    /// The level of the interval of each B / A; three runs in each file reach 90%
    #[arg(long, value_name = "SHARE", default_value = "95%", value_parser = level)]
    level: f64,
    /// How the comparison is printed
    #[arg(long, value_name = "FORMAT", default_value = "text", conflicts_with = "json")]
    format: Format,
    #[command(flatten)]
    form: Form,
    /// Compare although the device model, driver, engine or suite differ
    #[arg(long)]
    allow_mismatch: bool,
    /// Exit with 1 where a row is one of these; may be given again
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    fail_on: Vec<FailOn>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub(super) enum Format {
    /// Aligned columns, for a terminal
    Text,
    /// Tables, for a pull request
    Markdown,
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum FailOn {
    /// A time that grew or a rate that fell
    Slower,
    /// A time that fell or a rate that grew
    Faster,
    /// A count, a quotient or a difference that changed
    Different,
    /// The samples do not decide
    Uncertain,
    /// A row or a system that A measured and B did not
    Missing,
}

impl FailOn {
    pub(super) fn holds(self, compared: &Compared) -> bool {
        match self {
            FailOn::Slower => compared.count(Shift::Slower) > 0,
            FailOn::Faster => compared.count(Shift::Faster) > 0,
            FailOn::Different => compared.count(Shift::Different) > 0,
            FailOn::Uncertain => compared.count(Shift::Uncertain) > 0,
            FailOn::Missing => compared.missing().next().is_some() || !compared.systems_of_a.is_empty(),
        }
    }
}

pub(super) fn execute(arguments: &Arguments, context: &AppContext) -> anyhow::Result<End> {
    let tolerance = Tolerance { threshold: arguments.threshold, level: arguments.level, ..Tolerance::default() };
    let allow = arguments.allow_mismatch;
    let measured = if arguments.measure {
        let scratch = Scratch::new().context("a folder for the runs")?;
        let sides = Side::both([&arguments.a, &arguments.b], &scratch, context)?;
        measure(&sides, &scratch, tolerance, arguments.time.unwrap_or(TIME), |a, b| refuse_other(a, b, allow))?
    } else {
        let (a, b) = (recorded::sound(&arguments.a)?, recorded::sound(&arguments.b)?);
        refuse_other(&a, &b, allow)?;
        Measured { compared: compare(&a, &b, tolerance), first: [a, b], end: End::Well }
    };
    let Measured { compared, first: [a, b], end } = measured;
    let differs: Vec<Mismatch> = mismatches(&a, &b).into_iter().chain(remarks(&a, &b)).collect();
    let facts = Facts { differs: &differs, compared: &compared, agreement: compared.agreement() };
    arguments
        .form
        .print("compare", &facts, || say(&compared, &differs, tolerance, arguments.format, Wording::Compare))?;
    let fails = arguments.fail_on.iter().any(|what| what.holds(&compared));
    Ok(if fails && matches!(end, End::Well) { End::Failed } else { end })
}

/// Measures a suite by another build and by this program, by turns.
pub(super) fn against(program: &Path, suite: &Value, device: Option<&String>) -> anyhow::Result<End> {
    let scratch = Scratch::new().context("a folder for the runs")?;
    let sides = Side::of_suite([program.to_owned(), own_program()?], suite, device, &scratch)?;
    let tolerance = Tolerance::default();
    let Measured { compared, first: [a, b], end } =
        measure(&sides, &scratch, tolerance, TIME, |a, b| refuse_other(a, b, false))?;
    say(&compared, &remarks(&a, &b), tolerance, Format::Text, Wording::Compare);
    Ok(end)
}

/// Refuses what measured different things, unless that is allowed.
fn refuse_other(a: &Results, b: &Results, allow: bool) -> anyhow::Result<()> {
    let mismatches = mismatches(a, b);
    if mismatches.is_empty() || allow {
        return Ok(());
    }
    let lines: String = mismatches.iter().map(|mismatch| format!("\n{mismatch}")).collect();
    let message = format!("these runs measured different things (--allow-mismatch compares them nevertheless):{lines}");
    Err(UsageError(message).into())
}

/// Says what came of a comparison, and before it what differs about the runs.
pub(super) fn say(result: &Compared, differs: &[Mismatch], tolerance: Tolerance, format: Format, wording: Wording) {
    for mismatch in differs {
        match format {
            Format::Markdown => say!("- {}", in_markdown(&mismatch.to_string())),
            Format::Text => say!("{mismatch}"),
        }
    }
    if !differs.is_empty() {
        say!();
    }
    for table in compared(result, wording) {
        match format {
            Format::Markdown => output::whole(&format!("{}\n", table.to_markdown())),
            Format::Text => output::out(&format!("{}\n", table.to_console()), Some(terminal::TITLE)),
        }
    }
    let [a, b] = wording.names();
    for (systems, file) in [(&result.systems_of_a, a), (&result.systems_of_b, b)] {
        systems.iter().for_each(|system| say!("{system} is in {file} alone, and not compared"));
    }
    for found in result.agreement() {
        agreement(&found, wording).iter().for_each(|line| say!("{line}"));
    }
    let (threshold, level) = (tolerance.threshold * 100.0, tolerance.level * 100.0);
    say!("{} (a change of {threshold} % matters; intervals of {level} %)", tally(result));
    undecided(result).iter().for_each(|line| say!("{line}"));
    say!("{}", over_the_file(result));
}

/// The comparison for a program.
#[derive(Serialize)]
struct Facts<'a> {
    /// What differs between the two runs.
    differs: &'a [Mismatch],
    #[serde(flatten)]
    compared: &'a Compared,
    /// How well each system agrees with itself.
    agreement: Vec<Agreement>,
}

pub(super) fn threshold(text: &str) -> Result<f64, String> {
    let value = share(text)?;
    if (0.0..1.0).contains(&value) { Ok(value) } else { Err("expected 0% or more and less than 100%".to_owned()) }
}

fn level(text: &str) -> Result<f64, String> {
    let value = share(text)?;
    // The tails of so few runs are known no further.
    if (0.5..=0.999).contains(&value) { Ok(value) } else { Err("expected 50% to 99.9%".to_owned()) }
}

/// A share: `5%` or `0.05`.
fn share(text: &str) -> Result<f64, String> {
    let (number, factor) = match text.trim().strip_suffix('%') {
        Some(number) => (number.trim(), 100.0),
        None => (text.trim(), 1.0),
    };
    number.parse::<f64>().map(|value| value / factor).map_err(|_| "expected a share such as 5% or 0.05".to_owned())
}
