//! `report bench`: runs one experiment and prints its summary.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use syncscope::device::{Device, FloatType};
use syncscope::experiment::{Entry, Recorded, Selection, Watcher, scenes};
use syncscope::measure::{Protocol, Sampler};
use syncscope::present::summary;
use syncscope::run::run_one;
use syncscope::timeline::to_trace;

use crate::progress::Bar;
use crate::{End, UsageError, device, interrupt};

/// Run one experiment and print its summary
#[derive(Args)]
#[command(after_help = "Example:\n  report bench sync-points --device cuda:0 --dtype fp16 --iters 50")]
pub(crate) struct Arguments {
    /// The experiment: see `report experiments`
    experiment: String,
    /// The device: cuda:0, cpu:0; else the best there is
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// The element type: fp16, bf16 or fp32
    #[arg(long)]
    dtype: Option<FloatType>,
    /// Turns of each timed loop: 20 is quick, 100 thorough
    #[arg(long)]
    iters: Option<NonZeroUsize>,
    /// Samples of each row
    #[arg(long, default_value = "15")]
    samples: NonZeroUsize,
    /// Seconds after which the sampling of a group of rows ends
    #[arg(long, value_name = "SECONDS", default_value = "10")]
    time_limit: f64,
    /// Record the experiment's scenes after its rows, and write them as a Chrome trace
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

pub(crate) fn execute(arguments: Arguments) -> anyhow::Result<End> {
    let unknown = || {
        let known = Entry::NAMES.join(", ");
        UsageError(format!("there is no experiment `{}`; there are: {known}", arguments.experiment))
    };
    if !Entry::NAMES.contains(&arguments.experiment.as_str()) {
        return Err(unknown().into());
    }
    let sampling = Protocol::samples(arguments.samples.get()).with_warmup(1).with_time_limit(arguments.time_limit);
    sampling.validate().map_err(|error| UsageError(error.to_string()))?;
    let device = device::open(arguments.device.as_deref(), None)?;
    let entry = Entry::default_for(&arguments.experiment, device.properties().engine).ok_or_else(unknown)?;
    let entry = entry.with(arguments.dtype, arguments.iters).map_err(UsageError)?;
    let bar = Arc::new(Bar::new());
    let watcher: Arc<dyn Watcher> = Arc::clone(&bar) as Arc<dyn Watcher>;
    let interrupt = interrupt::flag()?;
    let sampler = Sampler::new(sampling).interrupted_by(Arc::clone(&interrupt));
    bar.experiment(0, 1, entry.name());
    let run = run_one(&entry, &Selection::default(), None, &device, sampler, &watcher);
    bar.finish();
    print!("{}", summary(&entry, &run.rows));
    if let Some(failure) = &run.failure {
        eprintln!("{} failed: {failure}", run.name);
    }
    let stopped = interrupt.load(std::sync::atomic::Ordering::Relaxed);
    if let Some(path) = arguments.trace.as_deref().filter(|_| !stopped) {
        trace(&entry, &device, path)?;
    }
    Ok(match (interrupt.load(std::sync::atomic::Ordering::Relaxed), run.has_failures()) {
        (true, _) => End::Interrupted,
        (_, true) => End::Failed,
        _ => End::Well,
    })
}

/// Records the experiment's scenes and writes those that could be.
fn trace(entry: &Entry, device: &Device, path: &Path) -> anyhow::Result<()> {
    let scenes = scenes(entry.experiment(), &Selection::default(), device);
    if scenes.is_empty() {
        return Err(UsageError(format!("{} has no scenes to record", entry.name())).into());
    }
    let mut timelines = Vec::new();
    for scene in &scenes {
        match &scene.recorded {
            Recorded::Timeline(timeline) => {
                println!("{}: {}", scene.name, timeline.source);
                timelines.push((scene.name.as_str(), timeline));
            }
            Recorded::Failed(reason) => eprintln!("{} was not recorded: {reason}", scene.name),
        }
    }
    std::fs::write(path, to_trace(&timelines)).with_context(|| path.display().to_string())
}
