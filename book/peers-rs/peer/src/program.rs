//! The program around a system: its arguments, its end, and how it says what is not here.

use std::io::Read;
use std::process::{ExitCode, exit};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{env, io, panic, thread};

use signal_hook::consts::{SIGINT, SIGTERM};
use syncscope::device::Device;
use syncscope::error::{CaseError, panic_message};
use syncscope_results::PeerPlan;

use crate::System;
use crate::arguments::{Arguments, USAGE};
use crate::run::{Ended, Run};

/// How the program ends: the plan is wrong, or nothing can be measured here; the run ended early; it was interrupted.
const REFUSED: u8 = 2;
const ENDED_EARLY: u8 = 1;
const INTERRUPTED: u8 = 130;

/// Measures the rows of a plan in a system.
pub fn main<S: System>() -> ExitCode {
    let Some(arguments) = Arguments::of(env::args_os().skip(1)) else {
        eprintln!("Measures the rows of a plan in {}.\nusage: {USAGE}", S::NAME);
        return ExitCode::from(REFUSED);
    };
    // A crate may panic where a library is missing: that is said below, or in its row, in one line.
    panic::set_hook(Box::new(|_| {}));
    let measured = panic::catch_unwind(|| measure::<S>(&arguments));
    match measured.unwrap_or_else(|panic| Err(panic_message(&*panic).into())) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{}: {}", S::NAME, one_line(&error.to_string()));
            ExitCode::from(REFUSED)
        }
    }
}

fn measure<S: System>(arguments: &Arguments) -> Result<ExitCode, CaseError> {
    if arguments.attended {
        end_with_input();
    }
    let plan = PeerPlan::read(&arguments.plan)?;
    let device = Device::open(&plan.device)?;
    let system = S::open(&device)?;
    let interrupt = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&interrupt))?;
    }
    let ended = Run::new(&plan, &device, system, Arc::clone(&interrupt), &arguments.out).measure()?;
    if ended == Ended::DeviceLost {
        eprintln!("{}: the run ended early, since CUDA cannot be used any more", S::NAME);
        return Ok(ExitCode::from(ENDED_EARLY));
    }
    Ok(if interrupt.load(Ordering::Relaxed) { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

/// Ends the process, whatever it is at, when standard input ends: nobody is left who would take the answer.
fn end_with_input() {
    thread::spawn(|| {
        // What cannot be read has ended, too.
        _ = io::stdin().read_to_end(&mut Vec::new());
        exit(INTERRUPTED.into());
    });
}

/// A text in one line that is never empty.
pub(crate) fn one_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    line.unwrap_or("an error without a message").to_owned()
}
