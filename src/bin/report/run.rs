//! `report run`: runs a suite and writes its results file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use syncscope::experiment::Watcher;
use syncscope::run::{Environment, Run};

use crate::progress::Bar;
use crate::{End, device, interrupt, suite};

/// Run a suite and write its results file
#[derive(Args)]
#[command(after_help = "Example:\n  report run --suite full --device cuda:0 --out results.json")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) what: What,
    /// The results file to write
    #[arg(long, value_name = "FILE", default_value = "target/report/results.json")]
    out: PathBuf,
}

/// What to run, and where.
#[derive(Args)]
pub(crate) struct What {
    /// A suite's file, or the name of one that the program carries: quick, full
    #[arg(long, value_name = "SUITE", default_value = "quick")]
    suite: String,
    /// The device, instead of the suite's: cuda:0, cpu:0, or auto
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
}

pub(crate) fn execute(arguments: Arguments) -> anyhow::Result<End> {
    let run = measure(&arguments.what, &arguments.out)?;
    println!("results: {}", arguments.out.display());
    Ok(end_of(&run))
}

/// Runs what is asked for and writes the results file.
pub(crate) fn measure(what: &What, out: &Path) -> anyhow::Result<Run> {
    let suite = suite::load(&what.suite)?;
    let device = device::open(what.device.as_deref(), Some(&suite))?;
    let environment = Environment::now(&device, command_line());
    let interrupt = interrupt::flag()?;
    let bar = Arc::new(Bar::new());
    let watcher: Arc<dyn Watcher> = Arc::clone(&bar) as Arc<dyn Watcher>;
    let run = syncscope::run::run(&suite, &device, environment, &interrupt, &watcher, |place, of, name| {
        bar.experiment(place, of, name);
    });
    bar.finish();
    run.write(out)?;
    Ok(run)
}

/// The command as the user gave it, the program by its own name.
fn command_line() -> Vec<String> {
    std::iter::once("report".to_owned()).chain(std::env::args().skip(1)).collect()
}

/// How a run ended.
pub(crate) fn end_of(run: &Run) -> End {
    match run {
        run if run.partial => End::Interrupted,
        run if run.has_failures() => End::Failed,
        _ => End::Well,
    }
}
