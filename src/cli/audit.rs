//! `report audit`: where a program that uses CUDA waits, with its lines.

use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use anyhow::Context;
use clap::{Args, ValueEnum};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use super::output_file::OutputFile;
use super::terminal::{self, TerminalColour};
use super::{End, UsageError, output, refuse_input};
use crate::audit::{self, AuditReport, Breach, Budget, JudgedCalls, LIBRARY, ProgramRecording};
use crate::clean::terminal_line;
use crate::files::{Scratch, begins_with};
use crate::present::PAGE_BEGIN;
use crate::timeline::{TRACE_BEGIN, Timeline, to_trace};

/// Find where a program that uses CUDA waits for its devices, with the line of its code
#[derive(Args)]
#[command(after_help = "\
The program runs as it would without: its input, output, signals and exit code are its own, and what the audit says goes to
standard error when it has ended. Processes that it starts are followed. CUPTI has to be there (pip: nvidia-cuda-cupti, or the
CUDA toolkit), of the driver's version or older.

Exit codes: those of the program; 1 where it ended well and a budget or a baseline does not hold.

Examples:
  report audit -- python train.py
  report audit --html audit.html --json audit.json -- torchrun --nproc-per-node 2 train.py
  report audit --budget sync.yaml -- python train.py
  report audit --from trace.json")]
pub(super) struct Arguments {
    /// The program and its arguments
    #[arg(last = true, required_unless_present = "from", conflicts_with = "from")]
    command: Vec<OsString>,
    /// Read a trace of PyTorch's profiler, or one that --trace wrote, instead of running a program
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Of which calls the stack is taken
    #[arg(long, value_name = "WHICH", default_value = "sample", conflicts_with = "from")]
    stacks: Stacks,
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
            json: claim(&arguments.json, &|path| audit::read_kept(path).is_ok())?,
            html: claim(&arguments.html, &begins_with(PAGE_BEGIN))?,
            trace: claim(&arguments.trace, &begins_with(TRACE_BEGIN))?,
            junit: claim(&arguments.junit, &begins_with(audit::JUNIT_BEGIN))?,
            sarif: claim(&arguments.sarif, &audit::is_sarif)?,
        })
    }
}

/// How many places are printed.
const PRINTED: usize = 20;

pub(super) fn execute(arguments: &Arguments) -> anyhow::Result<End> {
    let budget = arguments.budget.as_deref().map(Budget::read).transpose()?;
    let baseline = arguments.baseline.as_deref().map(audit::read_kept).transpose()?;
    let files = Files::claim(arguments)?;
    let (recording, of, status) = match &arguments.from {
        Some(file) => (audit::read_trace(file)?, file.display().to_string(), None),
        None => {
            let words: Vec<_> = arguments.command.iter().map(|word| word.to_string_lossy()).collect();
            let (recording, status) = run(arguments)?;
            (recording, words.join(" "), Some(status))
        }
    };
    let (report, judged) = AuditReport::of(&recording, &of);
    let mut breaches = Vec::new();
    let mut unheld = Vec::new();
    if let Some(budget) = &budget {
        (breaches, unheld) = audit::over(budget, &recording, &judged, &report);
    }
    if let Some(baseline) = &baseline {
        breaches.extend(audit::beyond(baseline, &report));
    }
    if report.processes.is_empty() && (budget.is_some() || baseline.is_some()) {
        unheld = vec!["no process used CUDA, so nothing was held to the budget or the baseline".to_owned()];
    }
    tell(&report, arguments.from.is_some());
    write(&files, &recording, &report, &judged, &breaches)?;
    for Breach { place, why } in &breaches {
        alert!("error: {} ({}): {why}", place.name(), place.call);
    }
    unheld.iter().for_each(|text| alert!("error: {text}"));
    // Their locks: the program's end is this one's.
    drop(files);
    let held = if breaches.is_empty() && unheld.is_empty() { End::Well } else { End::Failed };
    Ok(match status {
        Some(status) if !status.success() => leave(status),
        _ => held,
    })
}

/// Runs the command with the library in it, and reads what it left.
fn run(arguments: &Arguments) -> anyhow::Result<(ProgramRecording, ExitStatus)> {
    if LIBRARY.is_empty() {
        return Err(
            UsageError("programs are audited on Linux only; `--from FILE` reads a trace anywhere".to_owned()).into()
        );
    }
    if std::env::var_os("CUDA_INJECTION64_PATH").is_some() {
        let message = "CUDA_INJECTION64_PATH is set: another tool is put into the program; unset it";
        return Err(UsageError(message.to_owned()).into());
    }
    let folder = Scratch::new().context("cannot make a folder for the records")?;
    let library = folder.path().join("libsyncscope_audit.so");
    fs::write(&library, LIBRARY).context("cannot write the library that records")?;
    let (program, rest) = arguments.command.split_first().context("there is no command")?;
    let mut command = Command::new(program);
    command.args(rest).env("CUDA_INJECTION64_PATH", &library).env("SYNCSCOPE_AUDIT_FOLDER", folder.path());
    command.env("SYNCSCOPE_AUDIT_STACKS", arguments.stacks.name());
    // Ranges that the program names, for budgets; another tool may take them instead.
    if std::env::var_os("NVTX_INJECTION64_PATH").is_none() {
        command.env("NVTX_INJECTION64_PATH", &library);
    }
    let mut child = command.spawn().map_err(|error| {
        let name = program.to_string_lossy();
        let why = match error.kind() {
            ErrorKind::NotFound => "there is no such program".to_owned(),
            _ => error.to_string(),
        };
        UsageError(format!("cannot start `{name}`: {why}"))
    })?;
    // Signals are the program's from here on. Not before: it takes over which of them are ignored.
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGQUIT]).context("cannot listen for signals")?;
    let handle = signals.handle();
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let forward = std::thread::spawn(move || {
        for signal in signals.forever() {
            // The terminal sends Ctrl-C and Ctrl-\ to the program itself.
            let passed = match signal {
                SIGTERM => Some(Signal::TERM),
                SIGHUP => Some(Signal::HUP),
                _ => None,
            };
            if let (Some(pid), Some(signal)) = (pid, passed) {
                // It may have ended.
                let _ = kill_process(pid, signal);
            }
        }
    });
    let status = child.wait().context("cannot wait for the program")?;
    handle.close();
    // A thread that panicked has nothing more to pass on.
    let _ = forward.join();
    let recording = audit::read_records(folder.path())?;
    Ok((recording, status))
}

/// Ends as the program did: with its code, or by its signal as shells tell it.
fn leave(status: ExitStatus) -> ! {
    if let Some(signal) = status.signal() {
        alert!("the program was ended by signal {signal}");
    }
    std::process::exit(status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1))
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
    for process in &report.processes {
        add(&format!("{}\n", audit::time_of(process).to_console()));
        if let Some(overhead) = audit::overhead(process) {
            add(&line(&overhead));
        }
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
    breaches: &[Breach],
) -> anyhow::Result<()> {
    let keep = |file: &Option<OutputFile>, text: &dyn Fn() -> anyhow::Result<String>| match file {
        Some(file) => Ok(file.write(text()?.as_bytes())?),
        None => Ok(()),
    };
    keep(&files.json, &|| Ok(output::json(report)?))?;
    keep(&files.html, &|| Ok(report.to_html()))?;
    keep(&files.junit, &|| Ok(audit::junit(report, breaches)))?;
    keep(&files.sarif, &|| Ok(output::json(&audit::sarif(breaches))?))?;
    keep(&files.trace, &|| {
        let all = recording.processes.iter().zip(judged);
        let timelines: Vec<(String, Timeline)> = all
            .map(|(process, judged)| {
                let timeline = audit::timeline(process, &judged.judgements, (process.start, process.end));
                (format!("process {}", process.number), timeline)
            })
            .collect();
        let named: Vec<(&str, &Timeline)> =
            timelines.iter().map(|(name, timeline)| (name.as_str(), timeline)).collect();
        Ok(to_trace(&named))
    })
}
