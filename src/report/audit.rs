//! `report audit`: where a program that uses CUDA waits, with its lines.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::embedded::STYLE;
use super::output_file::{self, OutputFile};
use super::terminal::{self, TerminalColour};
use super::{End, UsageError, audit_file, audited, output, refuse_input};
use crate::clean::terminal_line;
use crate::files::begins_with;
use crate::present::PAGE_BEGIN;
use crate::timeline::{TRACE_BEGIN, Timeline, to_trace};
use syncscope_audit::{self as audit, AuditReport, Breach, Budget, JudgedCalls, ProgramRecording, Verdict};

/// Find where a program that uses CUDA waits for its devices, with the line of its code
#[derive(Args)]
#[command(after_help = "\
The program runs as it would without: its input, output, signals and end are its own, and what the audit says goes to \
standard error when it has ended. Processes that it starts are followed. CUPTI has to be there (pip: nvidia-cuda-cupti, or the \
CUDA toolkit), of the driver's version or older.

A step of a budget is a range of NVTX, or begins at a line. Name a line that itself makes one call of CUDA in each iteration, \
such as one that reads a result, and not the line that calls the whole iteration: its iterations cannot be told apart.

Each process records up to 1 GiB in the folder for temporary files (TMPDIR); SYNCSCOPE_AUDIT_BYTES sets another limit, in bytes. \
Records beyond it are lost, and the audit says how many.

Exit codes: the program's, and its signal; 1 where it ended well and a budget or a baseline does not hold, or where that is not \
known: waits may be missing, no step was found, or no use of CUDA was recorded.

Examples:
  report audit -- python train.py
  report audit --html audit.html --json audit.json -- torchrun --nproc-per-node 2 train.py
  report audit --budget sync.yaml -- python train.py
  report audit --from trace.json")]
pub(super) struct Arguments {
    /// The program and its arguments
    #[arg(last = true, required_unless_present = "from", conflicts_with = "from")]
    command: Vec<OsString>,
    /// Read instead of running a program: a trace of PyTorch's profiler, one that --trace wrote, the audit that --json wrote, or an export of nsys (feature nsys)
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Of which calls the stack is taken; else of a sample, and of all where a baseline or a budget needs the places of all
    #[arg(long, value_name = "WHICH", conflicts_with = "from")]
    stacks: Option<Stacks>,
    /// Fail where the program waits more than this file (YAML) allows
    #[arg(long, value_name = "FILE")]
    budget: Option<PathBuf>,
    /// Fail where a place waits that this audit (JSON) does not have
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Also write the audit as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Also write a page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Also write a trace for <https://ui.perfetto.dev>
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Also write what the budget says as JUnit's XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Also write what is over the budget as SARIF
    #[arg(long, value_name = "FILE")]
    sarif: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Stacks {
    /// Of each call
    All,
    /// Of some: the longer a call, the more likely its stack, and stacks take about 1 % of the time
    Sample,
    /// Of none
    None,
}

impl Stacks {
    fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Sample => "sample",
            Self::None => "none",
        }
    }
}

/// The files that are asked for, each claimed before the program runs: what cannot be written is known then.
struct Files {
    json: Option<OutputFile>,
    html: Option<OutputFile>,
    trace: Option<OutputFile>,
    junit: Option<OutputFile>,
    sarif: Option<OutputFile>,
}

impl Files {
    fn claim(arguments: &Arguments) -> anyhow::Result<Self> {
        let read = [&arguments.from, &arguments.budget, &arguments.baseline];
        // Each in place of one of its kind alone.
        let claim = |path: &Option<PathBuf>, is_own: &dyn Fn(&Path) -> bool| -> anyhow::Result<Option<_>> {
            path.iter().try_for_each(|path| refuse_input(path, read.into_iter().flatten()))?;
            Ok(OutputFile::asked(path.as_ref(), is_own)?)
        };
        Ok(Self {
            json: claim(&arguments.json, &|path| audit_file::audit(path).is_ok())?,
            html: claim(&arguments.html, &begins_with(PAGE_BEGIN))?,
            trace: claim(&arguments.trace, &begins_with(TRACE_BEGIN))?,
            junit: claim(&arguments.junit, &begins_with(audit::JUNIT_BEGIN))?,
            sarif: claim(&arguments.sarif, &audit_file::is_own_sarif)?,
        })
    }
}

/// How many places and how many processes are printed.
const PRINTED: usize = 20;

pub(super) fn execute(arguments: &Arguments) -> anyhow::Result<End> {
    let budget = arguments.budget.as_deref().map(audit_file::budget).transpose()?;
    let baseline = arguments.baseline.as_deref().map(audit_file::audit).transpose()?;
    let stacks = stacks(arguments, budget.as_ref())?;
    let files = Files::claim(arguments)?;
    if let Some(kept) = kept(arguments)? {
        return again(&kept, &files);
    }
    let (recording, of, status) = match &arguments.from {
        Some(file) => (audit_file::trace(file)?, file.display().to_string(), None),
        None => {
            let words: Vec<_> = arguments.command.iter().map(|word| word.to_string_lossy()).collect();
            let (recording, status) = audited::run(&arguments.command, stacks.name())?;
            (recording, words.join(" "), Some(status))
        }
    };
    let (report, judged) = AuditReport::of(&recording, &of);
    let verdict = audit::verdict((budget.as_ref(), baseline.as_ref()), &recording, &judged, &report);
    tell(&report, arguments.from.is_some());
    write(&files, &recording, &report, &judged, &verdict)?;
    for Breach { place, why } in &verdict.breaches {
        alert!("error: {} ({}): {why}", place.name(), place.call);
    }
    if !verdict.held_to.is_empty() {
        verdict.unheld_words().for_each(|words| alert!("error: {words}"));
    }
    // Their locks: the program's end is this one's.
    drop(files);
    let held = if verdict.is_held() { End::Well } else { End::Failed };
    Ok(match status {
        Some(status) if !status.success() => audited::leave(status),
        _ => held,
    })
}

/// Of which calls stacks are taken: of all where a budget or the baseline asks for the place of each.
fn stacks(arguments: &Arguments, budget: Option<&Budget>) -> Result<Stacks, UsageError> {
    let of_baseline = arguments.baseline.as_ref().map(|_| "--baseline");
    let asked = of_baseline.or_else(|| budget?.asks_for_stacks());
    match (arguments.stacks, asked) {
        (Some(Stacks::All), _) | (None, Some(_)) => Ok(Stacks::All),
        (Some(fewer), Some(what)) => Err(UsageError(format!(
            "`--stacks {}` leaves calls without a place, by which `{what}` knows them; say `--stacks all`, or leave it out",
            fewer.name()
        ))),
        (stated, None) => Ok(stated.unwrap_or(Stacks::Sample)),
    }
}

/// The audit that `--from` names, where it names one and not a trace.
fn kept(arguments: &Arguments) -> anyhow::Result<Option<AuditReport>> {
    let is_audit = |path: &&PathBuf| path.is_file() && audit_file::text(path).is_ok_and(|text| audit::is_audit(&text));
    let Some(path) = arguments.from.as_ref().filter(is_audit) else { return Ok(None) };
    let Arguments { budget, baseline, trace, junit, sarif, .. } = arguments;
    if [budget, baseline, trace, junit, sarif].into_iter().any(Option::is_some) {
        let message = "an audit that was kept can be printed, and written by `--json` and `--html`: it has no single calls. For \
                       the rest, audit the program again, or read the trace that `--trace` wrote";
        return Err(UsageError(format!("{}: {message}", path.display())).into());
    }
    Ok(Some(audit_file::audit(path)?))
}

/// Says once more what an audit found.
fn again(report: &AuditReport, files: &Files) -> anyhow::Result<End> {
    tell(report, true);
    if let Some(file) = &files.json {
        file.write(output::json(report)?.as_bytes())?;
    }
    if let Some(file) = &files.html {
        file.write(report.to_html(STYLE).as_bytes())?;
    }
    Ok(End::Well)
}

/// Says what was found: on standard output where that is this program's own, else on standard error.
fn tell(report: &AuditReport, to_output: bool) {
    let mut text = String::new();
    let mut add = |more: &str| text.push_str(more);
    // A name in a trace may be anybody's: it ends no line.
    let line = |text: &str| terminal_line(text).into_owned() + "\n";
    if !report.places.is_empty() {
        add(&audit::places_table(report, PRINTED).to_console());
        let rest = report.places.len().saturating_sub(PRINTED);
        if rest > 0 {
            add(&format!("and {rest} more places (--json has all)\n"));
        }
        add("\n");
        let mut told: Vec<&str> = Vec::new();
        for place in report.places.iter().take(PRINTED) {
            if !told.contains(&place.advice.as_str()) {
                told.push(&place.advice);
                let reason = audit::sentence(place.reason.words());
                add(&line(&format!("{reason} ({}): {}. Chapter: {}.", place.call, place.advice, place.chapter)));
            }
        }
        add("\n");
    }
    let mut recorded = report.processes.iter().filter(|process| process.wall_ns > 0);
    for process in recorded.by_ref().take(PRINTED) {
        add(&format!("{}\n", audit::time_of(process).to_console()));
        if let Some(overhead) = audit::overhead(process) {
            add(&line(&overhead));
        }
    }
    let rest = recorded.count();
    if rest > 0 {
        add(&format!("and {rest} more processes (--json has all)\n"));
    }
    add(&line(&audit::summary(report)));
    match to_output {
        true => show!("{text}"),
        false if terminal::is_quiet() => {}
        false => output::error(&text),
    }
    for warning in &report.warnings {
        match to_output {
            true => output::message(warning, Some(TerminalColour::Warning)),
            false => alert!("warning: {warning}"),
        }
    }
}

fn write(
    files: &Files,
    recording: &ProgramRecording,
    report: &AuditReport,
    judged: &[JudgedCalls],
    verdict: &Verdict,
) -> anyhow::Result<()> {
    let keep = |file: &Option<OutputFile>, text: &dyn Fn() -> anyhow::Result<String>| match file {
        Some(file) => Ok(file.write(text()?.as_bytes())?),
        None => Ok(()),
    };
    let trace = || {
        let timelines = audit::timelines(recording, judged);
        let named: Vec<(&str, &Timeline)> =
            timelines.iter().map(|(name, timeline)| (name.as_str(), timeline)).collect();
        Ok(to_trace(&named))
    };
    output_file::each([
        keep(&files.json, &|| Ok(output::json(report)?)),
        keep(&files.html, &|| Ok(report.to_html(STYLE))),
        keep(&files.junit, &|| Ok(audit::junit(report, verdict))),
        keep(&files.sarif, &|| Ok(output::json(&audit::sarif(verdict))?)),
        keep(&files.trace, &trace),
    ])
}
