//! `report bench`: runs one experiment and prints its summary.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::{Map, Value, json};

use super::course::{self, CourseArgument};
use super::interrupt::{AskedBy, Interrupt};
use super::output_file::OutputFile;
use super::processes::{command_line, say_failures};
use super::progress::RunBar;
use super::run::count;
use super::{AppContext, End, UsageError, compare, device, job};
use crate::experiment::counts::Count;
use crate::experiment::{Experiment, Kernel, Registry, RegistryEntry, RunObserver, has_scenarios};
use crate::files::begins_with;
use crate::measure::Protocol;
use crate::results::{Outcome, Plan, Recorded, Results, Selection};
use crate::runner::{Session, Suite, empty_results};
use crate::timeline::{TRACE_BEGIN, to_trace};
use crate::yaml::{self, Fault, Way};
use syncscope::device::FloatType;

/// Run one experiment and print its summary
#[derive(Args)]
#[command(after_help = "\
Examples:
  report bench sync-points --device cuda:0 --dtype fp16 --iters 50
  report bench sync-points --against old/report")]
pub(super) struct Arguments {
    /// The experiment: see `report experiments`; or a kernel's source in CUDA C++, `saxpy.cu`, whose comment `// syncscope:` holds
    /// what a suite would state of it
    experiment: String,
    /// The device: cuda:0, cpu:0; else the best there is
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// The element type: fp16, bf16 or fp32
    #[arg(long, value_parser = element_type())]
    dtype: Option<FloatType>,
    /// Iterations of each timed loop: 20 is quick, 100 thorough
    #[arg(long, value_parser = iterations, allow_negative_numbers = true)]
    iters: Option<Count>,
    /// Samples of each row
    #[arg(long, default_value = "15", value_parser = count::<NonZeroUsize>, allow_negative_numbers = true)]
    samples: NonZeroUsize,
    /// Seconds that each row has: the sampling of a group ends when the time of all its rows is over
    #[arg(long, value_name = "SECONDS", default_value = "2", allow_negative_numbers = true)]
    time_limit: f64,
    /// Record the experiment's scenarios after its rows, and write them as a Chrome trace
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Another build of this program: both measure the experiment in alternating runs, until each row is decided or five
    /// minutes are over
    #[arg(long, value_name = "REPORT", conflicts_with = "trace")]
    against: Option<PathBuf>,
    #[command(flatten)]
    course: CourseArgument,
}

/// How the comment in a kernel's source begins that says how to launch it; lines of comments behind it go on with it.
const HEADER: &str = "syncscope:";

/// As many iterations as a suite may ask for.
fn iterations(text: &str) -> Result<Count, String> {
    count::<NonZeroUsize>(text).and_then(Count::try_from)
}

/// Takes the names of the element types; of another name clap says which are there.
fn element_type() -> impl TypedValueParser<Value = FloatType> {
    PossibleValuesParser::new(FloatType::ALL.map(FloatType::name)).try_map(|name| name.parse::<FloatType>())
}

pub(super) fn execute(arguments: &Arguments, context: &AppContext) -> anyhow::Result<End> {
    let (name, stated) = match Path::new(&arguments.experiment) {
        file if file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("cu")) => {
            (Kernel::NAME, of_source(file)?)
        }
        file if file.is_file() && context.registry.get(&arguments.experiment).is_none() => {
            let message =
                format!("{}: a kernel is given as its source in CUDA C++, a file that ends in `.cu`", file.display());
            return Err(UsageError(message).into());
        }
        _ => (arguments.experiment.as_str(), Map::new()),
    };
    let entry = context.registry.get(name).ok_or_else(|| UsageError(context.registry.unknown(name)))?;
    let protocol = Protocol::samples(arguments.samples.get()).with_warmup(1).with_time_limit(arguments.time_limit);
    protocol.validate().map_err(|error| UsageError(error.to_string()))?;
    let book = arguments.course.project(context)?;
    course::check(&book, context)?;
    let source = json!({
        "title": entry.summary,
        "sampling": protocol,
        "experiments": [{ (name): chosen(entry, arguments, stated)? }],
    });
    if let Some(program) = &arguments.against {
        return compare::against(program, &source, arguments.device.as_ref());
    }
    let device = device::open(arguments.device.as_deref())?;
    let suite = Suite::of_results(&source, name, &context.registry)?;
    let trace = OutputFile::asked(arguments.trace.as_ref(), begins_with(TRACE_BEGIN))?;
    let mut experiments = suite.experiments_on(device.properties().engine).iter();
    if trace.is_some() && !experiments.any(|experiment| has_scenarios(experiment.as_ref(), &device)) {
        return Err(UsageError(format!("{name} has no scenarios to record")).into());
    }

    // Nothing is kept of one experiment: where a sample goes on, the program ends.
    let interrupt = Interrupt::listen(AskedBy::User, || true)?;
    let bar = Arc::new(RunBar::new(None));
    let environment = device::environment(&device, command_line());
    let results = empty_results(source, Selection::default(), Plan::default(), environment.clone());
    let session = Session {
        suite: &suite,
        // Only what the suite names is measured.
        registry: &Registry::new(),
        device: &device,
        observer: Arc::clone(&bar) as Arc<dyn RunObserver>,
        interrupt: Arc::clone(&interrupt.flag),
        has_timelines: trace.is_some(),
    };
    let mut results = session.next(results, environment);
    bar.finish();
    interrupt.ended();
    let is_interrupted = interrupt.flag.load(Ordering::Relaxed);
    if device.is_lost() && !is_interrupted {
        // No other process goes on with the rows that are left.
        results.end_open_run("not reached: the device was lost before");
    }
    job::print_values(&results);
    job::print_takeaways(&results, &book, context, usize::MAX)?;
    say_failures(&results);

    if let Some(file) = trace.filter(|_| !is_interrupted) {
        file.write(trace_of(&results).as_bytes())?;
    }
    Ok(match (is_interrupted, results.has_failures()) {
        (true, _) => End::Interrupted,
        (_, true) => End::Failed,
        _ => match unmeasured(&results) {
            Some(why) => {
                alert!("error: {name}: nothing was measured: {why}");
                End::Failed
            }
            None => End::Well,
        },
    })
}

/// Why no row has a measured value, if none has.
fn unmeasured(results: &Results) -> Option<String> {
    let mut outcomes = results.rows.iter().flat_map(|row| &row.series).map(|series| &series.outcome).peekable();
    let why = match outcomes.peek() {
        Some(Outcome::NotApplicable { reason } | Outcome::Skipped { reason }) => reason.clone(),
        _ => format!("it has no rows on {}", results.environment().device.name),
    };
    (!outcomes.any(|outcome| matches!(outcome, Outcome::Measured { .. }))).then_some(why)
}

/// The parameters that the command line names.
fn chosen(
    entry: &RegistryEntry,
    arguments: &Arguments,
    stated: Map<String, Value>,
) -> Result<Map<String, Value>, UsageError> {
    let dtype = arguments.dtype.map(|dtype| (entry.element_types, json!([dtype]), "element type to choose"));
    let iters = arguments.iters.map(|iters| (entry.iterations, json!(iters), "loop whose iterations could be chosen"));
    let chosen = |(parameter, value, what): (Option<&str>, _, _)| match parameter {
        Some(parameter) => Ok((parameter.to_owned(), value)),
        None => Err(UsageError(format!("{} has no {what}", entry.name))),
    };
    stated.into_iter().map(Ok).chain(dtype.into_iter().chain(iters).map(chosen)).collect()
}

/// What the comment in a kernel's source states of it, and the source itself.
fn of_source(file: &Path) -> anyhow::Result<Map<String, Value>> {
    let origin = file.display().to_string();
    // To read another could wait for who writes it.
    if file.exists() && !file.is_file() {
        return Err(UsageError(format!("{origin}: it is no file")).into());
    }
    let text = yaml::read(file)?;
    let text = text.trim_start_matches('\u{feff}');
    // Each line stays where it is, so that an error has its place.
    let (mut header, mut is_begun) = (Vec::new(), false);
    for line in text.lines() {
        let comment = line.trim_start().strip_prefix("//");
        let begins = comment.and_then(|comment| comment.trim_start().strip_prefix(HEADER));
        let stated = begins.or(comment.filter(|_| is_begun));
        is_begun = stated.is_some();
        header.push(stated.map_or_else(String::new, |stated| " ".repeat(line.len() - stated.len()) + stated));
    }
    let Some(begin) = header.iter().position(|line| !line.trim().is_empty()) else {
        let example = "// syncscope: { kernel: saxpy, grid: 4, block: 256, arguments: [{ tensor: 1024 }] }";
        return Err(UsageError(format!("{origin}: no comment says how to launch it, such as `{example}`")).into());
    };
    let read = |lines: &[String]| yaml::parse_filled::<Map<String, Value>>(&lines.join("\n"), &origin, None);
    let mut stated = read(&header).map_err(|error| {
        // It ran into other comments where it is whole before the first of them.
        let other =
            header.iter().skip(begin + 1).position(|line| is_other_comment(line)).map(|place| begin + 1 + place);
        match other.is_some_and(|end| read(&header[..end]).is_ok()) {
            true => {
                UsageError(format!("{error}; an empty line ends what states the launch: put one before other comments"))
                    .into()
            }
            false => anyhow::Error::from(error),
        }
    })?;
    if stated.contains_key("source") {
        let why = "`source` has no place in a kernel's own file: the source is that file";
        return Err(Fault::at(Way::default().name("source"), why).error(&header.join("\n"), &origin).into());
    }
    stated.insert("source".to_owned(), json!({ "file": origin, "text": text }));
    Ok(stated)
}

/// Whether a line is prose or code: a word begins it that is no key.
fn is_other_comment(line: &str) -> bool {
    let line = line.trim_start();
    let behind = line.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
    line.starts_with(char::is_alphabetic) && !behind.starts_with(':')
}

/// The trace of the scenarios that were recorded.
fn trace_of(results: &Results) -> String {
    let mut timelines = Vec::new();
    for scenario in &results.timelines {
        match &scenario.recorded {
            Recorded::Timeline(timeline) => {
                note!("{}: {}", scenario.name, timeline.source);
                timelines.push((scenario.name.as_str(), timeline));
            }
            Recorded::Failed(reason) => alert!("{} was not recorded: {reason}", scenario.name),
        }
    }
    to_trace(&timelines)
}
