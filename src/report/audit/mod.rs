//! `report audit`: where a program that uses CUDA waits, with its lines.

mod armed;
mod program;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};

use super::embedded::STYLE;
use super::output_file::{self, OutputFile};
use super::terminal;
use super::{End, UsageError, output, refuse_input};
use crate::clean::terminal_line;
use crate::error::{FileError, at};
use crate::files::{begins_with, is_kind, read_text};
use crate::present::PAGE_BEGIN;
use crate::present::units::{capitalized, counted};
use crate::timeline::{TRACE_BEGIN, to_trace};
use crate::yaml;
use syncscope_audit::{
    self as audit, AuditReport, Breach, Budget, IdleCause, JudgedCalls, MAX_AUDIT_BYTES, ProgramRecording, Step,
};

/// Find where a program that uses CUDA waits for its devices, with the line of its code
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "\
The program runs as usual. When it has ended, the audit is printed to standard error. Processes that it starts are followed. \
CUPTI is needed (pip: nvidia-cuda-cupti, or the CUDA toolkit), of the driver's version or older.

Iterations are found as work that repeats, unless --step or a budget names them. What comes before they are alike is start-up \
and is not counted.

Each process records up to 1 GiB in the folder for temporary files (TMPDIR); SYNCSCOPE_AUDIT_BYTES sets another limit, in bytes. \
Records beyond it are lost, and the audit says how many.

Exit codes: the program's, and its signal; 1 where it ended well and a budget or a baseline does not hold or could not be \
checked.

Armed, a program runs at full speed until `report audit now` records it for some seconds.

Examples:
  report audit -- python train.py
  report audit --html audit.html --json audit.json -- torchrun --nproc-per-node 2 train.py
  report audit --budget sync.yaml -- python train.py
  report audit --armed -- torchrun --nproc-per-node 2 train.py
  report audit now 4711 --for 5s
  report audit --from trace.json")]
pub(super) struct Arguments {
    /// The program and its arguments
    #[arg(last = true, required_unless_present = "from", conflicts_with = "from")]
    command: Vec<OsString>,
    /// Read instead of running a program: traces of PyTorch's profiler, one for each rank of a job; one that --trace wrote; the audit that --json wrote; or an export of nsys (feature nsys)
    #[arg(long, value_name = "FILE", num_args = 1..)]
    from: Vec<PathBuf>,
    /// Which calls have their stack looked up; else a sample, or all where a baseline or a budget names lines
    #[arg(long, value_name = "WHICH", conflicts_with = "from")]
    stacks: Option<Stacks>,
    /// Record only when `report audit now` asks for it
    #[arg(long, conflicts_with_all = ["from", "stacks", "Shown"])]
    armed: bool,
    #[command(flatten)]
    shown: Shown,
    #[command(subcommand)]
    now: Option<Recorded>,
}

#[derive(Subcommand)]
enum Recorded {
    Now(armed::Arguments),
}

/// What is said of a recording, and held against it.
#[derive(Args)]
struct Shown {
    /// What an iteration is: a range of NVTX (`*` stands for any letters), or the line (FILE:LINE) at which each begins; else the audit finds it
    #[arg(long, value_name = "RANGE|LINE", value_parser = step)]
    step: Option<Step>,
    /// Print all: each call that loses time, and where the time went
    #[arg(long)]
    all: bool,
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
}

#[derive(Clone, Copy, ValueEnum)]
enum Stacks {
    /// All
    All,
    /// Some: the longer a call, the more likely; this takes about 1 % of the time
    Sample,
    /// None
    None,
}

impl Stacks {
    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

/// The files that are asked for, as JSON, a page and a trace, each claimed before the program runs: what cannot be written is
/// known then.
type Files = [Option<OutputFile>; 3];

fn claim(shown: &Shown, from: &[PathBuf]) -> anyhow::Result<Files> {
    let read: Vec<_> = from.iter().chain(&shown.budget).chain(&shown.baseline).collect();
    // Each in place of one of its kind alone.
    let claim = |path: &Option<PathBuf>, is_own: &dyn Fn(&Path) -> io::Result<bool>| -> anyhow::Result<Option<_>> {
        path.iter().try_for_each(|path| refuse_input(path, read.iter().copied()))?;
        Ok(OutputFile::asked(path.as_ref(), is_own)?)
    };
    let json = claim(&shown.json, &|path| is_kind(kept(path)))?;
    let html = claim(&shown.html, &begins_with(PAGE_BEGIN))?;
    Ok([json, html, claim(&shown.trace, &begins_with(TRACE_BEGIN))?])
}

/// How many lines are printed, of how many of them what can be done, and how many warnings; and of all, how many places and
/// processes.
const LINES: usize = 5;
const ADVISED: usize = 3;
const WARNED: usize = 4;
const PRINTED: usize = 20;

fn step(text: &str) -> Result<Step, String> {
    let is_line = text.rsplit_once(':').is_some_and(|(file, line)| !file.is_empty() && line.parse::<u32>().is_ok());
    match text.trim() {
        "" => Err("it names nothing".to_owned()),
        _ if is_line => Ok(Step::Line(text.to_owned())),
        _ => Ok(Step::Range(text.to_owned())),
    }
}

pub(super) fn execute(arguments: &Arguments) -> anyhow::Result<End> {
    if let Some(Recorded::Now(now)) = &arguments.now {
        return armed::now(now);
    }
    if arguments.armed {
        program::leave(program::run_armed(&arguments.command)?);
    }
    let asked = Asked::of(&arguments.shown, arguments.stacks, &arguments.from)?;
    if let Some(report) = kept_before(arguments)? {
        tell(&report, true, arguments.shown.all);
        write(&asked.files, &ProgramRecording::default(), &report, &[])?;
        return Ok(End::Well);
    }
    let (recording, of, status) = match &*arguments.from {
        [_, ..] => {
            let named: Vec<_> = arguments.from.iter().map(|file| file.display().to_string()).collect();
            (audit::read_traces(&arguments.from)?, named.join(", "), None)
        }
        [] => {
            let words: Vec<_> = arguments.command.iter().map(|word| word.to_string_lossy()).collect();
            let (recording, status) = program::run(&arguments.command, &asked.stacks.name())?;
            (recording, words.join(" "), Some(status))
        }
    };
    let end = asked.say(&recording, &of, !arguments.from.is_empty())?;
    Ok(match status {
        Some(status) if !status.success() => program::leave(status),
        _ => end,
    })
}

/// What is asked of a recording, each file claimed.
struct Asked<'a> {
    shown: &'a Shown,
    budget: Option<Budget>,
    baseline: Option<AuditReport>,
    stacks: Stacks,
    files: Files,
}

impl<'a> Asked<'a> {
    fn of(shown: &'a Shown, stated: Option<Stacks>, from: &[PathBuf]) -> anyhow::Result<Self> {
        let budget = shown.budget.as_deref().map(budget).transpose()?;
        let baseline = shown.baseline.as_deref().map(kept).transpose()?;
        let stacks = stacks(stated, shown, budget.as_ref())?;
        Ok(Self { shown, budget, baseline, stacks, files: claim(shown, from)? })
    }

    fn step(&self) -> Option<&Step> {
        self.shown.step.as_ref().or_else(|| self.budget.as_ref()?.step.as_ref())
    }

    /// Says what was found, writes it, and tells whether it is as it should be.
    fn say(self, recording: &ProgramRecording, of: &str, to_output: bool) -> anyhow::Result<End> {
        let (report, judged) = AuditReport::of(recording, of, self.step());
        let verdict = audit::verdict((self.budget.as_ref(), self.baseline.as_ref()), recording, &judged, &report);
        tell(&report, to_output, self.shown.all);
        write(&self.files, recording, &report, &judged)?;
        for Breach { place, why } in &verdict.breaches {
            alert!("error: {} ({}): {why}", place.name(), place.call);
        }
        if !verdict.held_to.is_empty() {
            verdict.unheld_words().for_each(|words| alert!("error: {words}"));
        }
        Ok(if verdict.is_held() { End::Well } else { End::Failed })
    }
}

/// Of which calls stacks are taken: of all where a budget or the baseline asks for the place of each.
fn stacks(stated: Option<Stacks>, shown: &Shown, budget: Option<&Budget>) -> Result<Stacks, UsageError> {
    let of_baseline = shown.baseline.as_ref().map(|_| "--baseline");
    let asked = of_baseline.or_else(|| budget?.asks_for_stacks());
    match (stated, asked) {
        (Some(Stacks::All), _) | (None, Some(_)) => Ok(Stacks::All),
        (Some(fewer), Some(what)) => Err(UsageError(format!(
            "`--stacks {}` leaves calls without a place, by which `{what}` knows them; say `--stacks all`, or leave it out",
            fewer.name()
        ))),
        (stated, None) => Ok(stated.unwrap_or(Stacks::Sample)),
    }
}

/// The audit that `--from` names, where it names one and not a trace.
fn kept_before(arguments: &Arguments) -> anyhow::Result<Option<AuditReport>> {
    let is_audit = |path: &PathBuf| path.is_file() && text(path).is_ok_and(|text| audit::is_audit(&text));
    let [path] = &*arguments.from else { return Ok(None) };
    if !is_audit(path) {
        return Ok(None);
    }
    let Shown { budget, baseline, trace, .. } = &arguments.shown;
    if [budget, baseline, trace].into_iter().any(Option::is_some) {
        let message = "an audit that was kept can be printed, and written by `--json` and `--html`: it has no single calls. For \
                       the rest, audit the program again, or read the trace that `--trace` wrote";
        return Err(UsageError(format!("{}: {message}", path.display())).into());
    }
    Ok(Some(kept(path)?))
}

/// Says what was found: on standard output where that is this program's own, else on standard error.
fn tell(report: &AuditReport, to_output: bool, all: bool) {
    // Whoever audits a program stands in its folder, mostly.
    let report = &std::env::current_dir().map_or_else(|_| report.clone(), |folder| report.seen_from(&folder));
    let mut text = in_short(report);
    if all {
        text.push_str(&in_full(report));
    }
    match to_output {
        true => show!("{text}"),
        false if terminal::is_quiet() => {}
        false => output::error(&text),
    }
    let shown = if all { report.warnings.len() } else { WARNED };
    let more = report.warnings.get(shown..).filter(|rest| !rest.is_empty());
    let more = more.map(|rest| format!("{} (--all has them)", counted(rest.len() as u64, "more warning")));
    for warning in report.warnings.iter().take(shown).chain(&more) {
        match to_output {
            true => output::message(warning, Some(terminal::WARNING)),
            false => alert!("warning: {warning}"),
        }
    }
}

/// A name in a trace may be anybody's: it ends no line.
fn line(text: &str) -> String {
    terminal_line(text).into_owned() + "\n"
}

/// Why the device was idle, and what can be done: at most 25 lines.
fn in_short(report: &AuditReport) -> String {
    let mut text = String::new();
    let about =
        [audit::headline(report), audit::late(report), audit::iterations_words(report), audit::start_up(report)];
    about.into_iter().flatten().for_each(|words| text.push_str(&line(&words)));
    if !report.idle.is_empty() {
        text.push_str(&format!("\n{}\n", audit::idle_table(report, LINES).to_console()));
        let mut told = Vec::new();
        for place in report.idle.iter().take(LINES).filter(|place| place.cause != IdleCause::Unknown) {
            if told.len() < ADVISED && !told.contains(&place.cause) {
                told.push(place.cause);
                text.push_str(&line(&audit::idle_advice(place)));
            }
        }
    }
    text.push_str(&line(&audit::summary(report)));
    let costs = report.processes.iter().filter_map(audit::overhead);
    costs.take(1).for_each(|words| text.push_str(&line(&words)));
    text
}

/// Each call that loses time, and where the time went.
fn in_full(report: &AuditReport) -> String {
    let mut text = String::from("\n");
    let mut add = |more: &str| text.push_str(more);
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
                let reason = capitalized(place.reason.words());
                add(&line(&format!("{reason} ({}): {}. Chapter: {}.", place.call, place.advice, place.chapter)));
            }
        }
        add("\n");
    }
    let mut recorded = report.processes.iter().filter(|process| process.wall_ns > 0);
    for process in recorded.by_ref().take(PRINTED) {
        add(&format!("{}\n", audit::time_of(process).to_console()));
    }
    let rest = recorded.count();
    if rest > 0 {
        add(&format!("and {rest} more processes (--json has all)\n"));
    }
    text
}

fn write(
    [as_json, as_page, as_trace]: &Files,
    recording: &ProgramRecording,
    report: &AuditReport,
    judged: &[JudgedCalls],
) -> anyhow::Result<()> {
    let keep = |file: &Option<OutputFile>, text: &dyn Fn() -> anyhow::Result<String>| match file {
        Some(file) => Ok(file.write(text()?.as_bytes())?),
        None => Ok(()),
    };
    let trace = || {
        let timelines = audit::timelines(recording, judged);
        let named: Vec<_> = timelines.iter().map(|(name, timeline)| (name.as_str(), timeline)).collect();
        Ok(to_trace(&named))
    };
    output_file::each([
        keep(as_json, &|| Ok(output::json(report)?)),
        keep(as_page, &|| Ok(report.to_html(STYLE))),
        keep(as_trace, &trace),
    ])
}

/// The text of a file that may hold an audit.
pub(super) fn text(path: &Path) -> Result<String, FileError> {
    read_text(path, MAX_AUDIT_BYTES).map_err(at(path))
}

/// An audit that `--json` kept.
pub(super) fn kept(path: &Path) -> Result<AuditReport, FileError> {
    AuditReport::parse(&text(path)?, &path.display().to_string())
}

/// A budget.
fn budget(path: &Path) -> Result<Budget, FileError> {
    let origin = path.display().to_string();
    let budget: Budget = yaml::parse_as_json(&yaml::read(path)?, &origin)?;
    budget.checked().map_err(|message| FileError::whole(origin, message))
}
