//! `report bench`: runs one experiment and prints its summary.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::{Map, Value, json};

use super::course::{self, CourseArgument};
use super::interrupt::{AskedBy, Interrupt};
use super::output_file::OutputFile;
use super::processes::{command_line, say_failures};
use super::progress::RunBar;
use super::run::count;
use super::{AppContext, End, UsageError, device, job};
use crate::experiment::counts::Count;
use crate::experiment::{AnyExperiment, Bench, RegistryEntry, RunObserver, has_scenarios, record_scenarios};
use crate::files::begins_with;
use crate::measure::{Protocol, Sampler};
use crate::results::{Plan, Recorded, Selection};
use crate::runner::{empty_results, run_one};
use crate::timeline::{TRACE_BEGIN, to_trace};
use syncscope::device::{Device, FloatType};

/// Run one experiment and print its summary
#[derive(Args)]
#[command(after_help = "Example:\n  report bench sync-points --device cuda:0 --dtype fp16 --iters 50")]
pub(super) struct Arguments {
    /// The experiment: see `report experiments`
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
    #[command(flatten)]
    course: CourseArgument,
}

/// As many iterations as a suite may ask for.
fn iterations(text: &str) -> Result<Count, String> {
    count::<NonZeroUsize>(text).and_then(Count::try_from)
}

/// Takes the names of the element types; of another name clap says which are there.
fn element_type() -> impl TypedValueParser<Value = FloatType> {
    PossibleValuesParser::new(FloatType::ALL.map(FloatType::name)).try_map(|name| name.parse::<FloatType>())
}

pub(super) fn execute(arguments: &Arguments, context: &AppContext) -> anyhow::Result<End> {
    let name = arguments.experiment.as_str();
    let entry = context.registry.get(name).ok_or_else(|| UsageError(context.registry.unknown(name)))?;
    let protocol = Protocol::samples(arguments.samples.get()).with_warmup(1).with_time_limit(arguments.time_limit);
    protocol.validate().map_err(|error| UsageError(error.to_string()))?;
    let book = arguments.course.project(context)?;
    course::check(&book, context)?;
    let device = device::open(arguments.device.as_deref())?;
    let engine = device.properties().engine;
    let experiment = entry.suited(engine, &chosen(entry, arguments)?)?;
    let trace = OutputFile::asked(arguments.trace.as_ref(), begins_with(TRACE_BEGIN))?;
    if trace.is_some() && !has_scenarios(experiment.as_ref(), &device) {
        return Err(UsageError(format!("{name} has no scenarios to record")).into());
    }

    // Nothing is kept of one experiment: where a sample goes on, the program ends.
    let interrupt = Interrupt::listen(AskedBy::User, || true)?;
    let interrupted = || interrupt.flag.load(Ordering::Relaxed);
    let bar = Arc::new(RunBar::new(None));
    let observer: Arc<dyn RunObserver> = Arc::clone(&bar) as Arc<dyn RunObserver>;
    let sampler = Sampler::new(protocol.clone()).interrupted_by(Arc::clone(&interrupt.flag));
    let suite = json!({ "title": entry.summary, "sampling": protocol, "experiments": [{ (name): {} }] });
    let mut results = empty_results(
        suite,
        Selection::default(),
        Plan::default(),
        crate::device::environment(&device, command_line()),
    );
    let run = results.run().id.clone();
    observer.experiment(0, 1, name);
    let bench = Bench::new(&device, sampler, Arc::clone(&observer), &run, Instant::now());
    let (left, rows) = run_one(experiment.as_ref(), bench, engine, protocol.seed);
    bar.finish();
    interrupt.ended();
    results.runs[0].order.push(left);
    results.rows = rows.into();
    job::print_summary(&results, &book, context)?;
    say_failures(&results);

    if let Some(file) = trace.filter(|_| !interrupted()) {
        file.write(record(experiment.as_ref(), &device, &run).as_bytes())?;
    }
    Ok(match (interrupted(), results.has_failures()) {
        (true, _) => End::Interrupted,
        (_, true) => End::Failed,
        _ => End::Well,
    })
}

/// The parameters that the command line names.
fn chosen(entry: &RegistryEntry, arguments: &Arguments) -> Result<Map<String, Value>, UsageError> {
    let dtype = arguments.dtype.map(|dtype| (entry.element_types, json!([dtype]), "element type to choose"));
    let iters = arguments.iters.map(|iters| (entry.iterations, json!(iters), "loop whose iterations could be chosen"));
    let chosen = |(parameter, value, what): (Option<&str>, _, _)| match parameter {
        Some(parameter) => Ok((parameter.to_owned(), value)),
        None => Err(UsageError(format!("{} has no {what}", entry.name))),
    };
    dtype.into_iter().chain(iters).map(chosen).collect()
}

/// Records the experiment's scenarios; the trace of those that could be.
fn record(experiment: &dyn AnyExperiment, device: &Device, run: &str) -> String {
    let scenarios = record_scenarios(experiment, &Selection::default(), device, run);
    let mut timelines = Vec::new();
    for scenario in &scenarios {
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
