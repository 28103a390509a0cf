//! `report next-run`: what `report run` starts for each run. Not for users: no help lists it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::{io, thread};

use anyhow::Context;
use clap::Args;
use signal_hook::low_level::exit;

use super::interrupt::{AskedBy, Interrupt, THREAD};
use super::processes::command_line;
use super::progress::RunBar;
use super::run::same_place;
use super::sent::Sender;
use super::{AppContext, End, device, output};
use crate::experiment::RunObserver;
use crate::results::Results;
use crate::runner::{Session, Suite};
use syncscope::device::Device;

/// Measure the next run of a checkpoint, or say where it would be measured
#[derive(Args)]
#[command(hide = true)]
pub(super) struct Arguments {
    /// The checkpoint
    #[arg(value_name = "RESULTS.json", required_unless_present = "device")]
    file: Option<PathBuf>,
    /// Print what a run on this device is made with and under, and measure nothing
    #[arg(long, value_name = "NAME", conflicts_with = "file")]
    device: Option<String>,
}

pub(super) fn execute(arguments: &Arguments, carried: &AppContext) -> anyhow::Result<End> {
    if let Some(name) = &arguments.device {
        let device = device::open(Some(name))?;
        output::print_json(&crate::device::environment(&device, Vec::new()))?;
        return Ok(End::Well);
    }
    let Some(file) = &arguments.file else { return Ok(End::Refused) };
    let results = Results::read(file)?;
    let suite = Suite::of_results(&results.suite, &file.display().to_string(), &carried.registry)?;
    let device = Device::open(&results.environment().device.name)?;
    let mut environment = crate::device::environment(&device, command_line());
    environment.program.command = results.environment().program.command.clone();
    if let Some(machine) = results.environment().host.machine() {
        environment.host.name_machine(machine);
    }
    same_place(file, results.environment(), &environment)?;
    let sender = Arc::new(Sender::new()?);
    let rescuer = Arc::clone(&sender);
    let interrupt = Interrupt::listen(AskedBy::Parent, move || rescuer.rescue())?;
    end_with_parent()?;
    let bar = Arc::new(RunBar::new(Some(Arc::clone(&sender))));
    let observer = Arc::clone(&bar) as Arc<dyn RunObserver>;
    let session = Session {
        suite: &suite,
        registry: &carried.registry,
        device: &device,
        observer,
        interrupt: Arc::clone(&interrupt.flag),
        has_timelines: true,
    };
    let results = session.next(results, environment);
    bar.finish();
    sender.whole(&results)?;
    interrupt.ended();
    Ok(if interrupt.flag.load(Ordering::Relaxed) { End::Interrupted } else { End::Well })
}

/// Ends this process when the one that started it is gone, however early: its end is that of standard input. What was sent
/// until then is kept, and nobody is left to send the rest to.
fn end_with_parent() -> anyhow::Result<()> {
    let wait = || {
        // Nothing comes through it, and what cannot be read has ended, too.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        exit(End::Interrupted as i32);
    };
    thread::Builder::new().spawn(wait).context(THREAD)?;
    Ok(())
}
