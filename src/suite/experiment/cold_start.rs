//! `cold-start`: what a process pays once, before its first work on a device is done.
//!
//! Each round starts a process of its own, which makes its first steps on the device and says what each took
//! ([`process`](crate::calls::process)). All rows of a round are of one process.
//!
//! - The steps: the driver is loaded and initialized (*driver*), the context made (*context*), a kernel compiled or read from
//!   the folder of compiled kernels (*code*), its module loaded (*module*), the kernel found (*function*), launched and waited
//!   for twice (*launch*, *launch-again*); then by this library the device opened (*open*), a megabyte allocated and filled
//!   (*memory*), two matrices multiplied with the search for a plan (*product*), work captured, instantiated and launched
//!   (*graph*), a megabyte page-locked (*pinned*) and copied (*copy*).
//! - *total* is from the first step to the last in the process's own clock, *sum* that of the steps, *rest* what lies between
//!   them; *process* is from the start of the process to its end, as the one sees it that started it.
//!
//! The parameter `loading` says whether the driver loads kernels with their module (`eager`) or at their first launch
//! (`lazy`, its own choice since CUDA 12.2), by the environment variable `CUDA_MODULE_LOADING`. The parameter `cache` says
//! whether the compiled kernels were on disk (`kept`), or the folder for them was empty (`empty`).
//!
//! The same code twice is the device opened once more by the process that measures.
//!
//! Files that the system has read before are in its memory, and the process that starts the others holds the device
//! meanwhile: a machine that has just been started, and a device that nobody uses, take longer.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::Instant;

use crate::affinity;
use crate::calls::process::FirstSteps;
use crate::experiment::prelude::*;
use crate::files::Scratch;

parameters! {
    /// What a process pays once.
    pub struct ColdStart {
        /// How many processes are started in each case.
        processes: Count = count(2),
        /// After how long a process that has not ended is ended.
        patience: Seconds = Seconds::of(60.0),
    }
}

/// The steps with their rows, and the whole of them.
const STEPS: [(&str, &str, &str); 16] = [
    ("driver", "cold-start.driver", "Load and initialize the driver"),
    ("context", "cold-start.context", "Make the context"),
    ("code", "cold-start.code", "Compile a kernel, or read it from disk"),
    ("module", "cold-start.module", "Load its module"),
    ("function", "cold-start.function", "Find the kernel"),
    ("launch", "cold-start.launch", "First launch, waited for"),
    ("launch-again", "cold-start.launch-again", "Second launch, waited for"),
    ("open", "cold-start.open", "Open the device in this library"),
    ("memory", "cold-start.memory", "First megabyte of the device"),
    ("product", "cold-start.product", "First matmul, with its plan search"),
    ("graph", "cold-start.graph", "First graph"),
    ("pinned", "cold-start.pinned", "First pinned megabyte"),
    ("copy", "cold-start.copy", "First copy of it"),
    ("total", "cold-start.total", "All steps, from the first to the last"),
    ("sum", "cold-start.sum", "Sum of the steps"),
    ("process", "cold-start.process", "The process, from its start to its end"),
];

/// How kernels are loaded, and whether compiled ones are on disk.
const CASES: [(&str, &str); 4] = [("lazy", "kept"), ("eager", "kept"), ("lazy", EMPTY), ("eager", EMPTY)];
const EMPTY: &str = "empty";

impl Experiment for ColdStart {
    const NAME: &'static str = "cold-start";
    const SUMMARY: &'static str = "What a process pays once, before its first work on a device is done";

    fn groups(&self, _engine: &str) -> Vec<Group> {
        CASES.into_iter().map(|case| self.case(case)).chain([same()]).collect()
    }
}

/// The device opened once more by the process that measures, twice.
fn same() -> Group {
    Group::of("The same code twice", []).twice(
        ["cold-start.same.a", "cold-start.same.b", "cold-start.same.ratio"],
        |device| {
            let name = device.name().to_owned();
            Ok(move || Device::open(&name))
        },
    )
}

impl ColdStart {
    /// The processes of a case.
    fn case(&self, (loading, cache): (&'static str, &'static str)) -> Group {
        let patience = self.patience.duration();
        let parameters = [("loading", loading.into()), ("cache", cache.into())];
        let mut group =
            Group::of("First steps of a process", parameters).trials(*self.processes).setup(move |device| {
                let start = starter(device, (loading, cache), patience)?;
                // A first process shows which steps there are, and leaves compiled kernels on disk.
                let first = Rc::new(start()?);
                // Where its folder is empty it is a process like any other: that of the first round.
                let unused = RefCell::new((cache == EMPTY).then(|| Rc::clone(&first)));
                let next = move || unused.take().map_or_else(|| start().map(Rc::new), Ok);
                Ok((first, EachRound::new(next)))
            });
        for (row, (step, id, label)) in STEPS.into_iter().enumerate() {
            let of_process = move |(first, processes): &(Rc<FirstSteps>, Rc<EachRound<Rc<FirstSteps>>>)| {
                let processes = Rc::clone(processes);
                seconds(first, step)?;
                Ok(move || processes.part(row, |steps| seconds(steps, step))?)
            };
            group = group.time_by(Clock::Host, id, label, of_process).elsewhere();
        }
        group.difference("cold-start.rest", "Between the steps", ["cold-start.total", "cold-start.sum"]).build()
    }
}

/// The program that measures, where it takes `first-steps`.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Has processes of `program` started for what a process does first: the command line is this library's own.
pub fn start_anew(program: PathBuf) {
    PROGRAM.get_or_init(|| program);
}

/// What a step of a process took.
fn seconds(steps: &FirstSteps, step: &str) -> Result<f64> {
    match (steps.seconds.get(step), steps.absent.get(step)) {
        (Some(seconds), _) => Ok(*seconds),
        (None, Some(reason)) => Err(DeviceError::not_applicable(step, "the host", reason.as_str())),
        (None, None) => Err(failed(format!("it says nothing of its step `{step}`"))),
    }
}

/// Starts processes of one case: what this returns gives the steps of a new one, and the whole of them.
fn starter(
    device: &Device,
    (loading, cache): (&'static str, &'static str),
    patience: Duration,
) -> Result<impl Fn() -> Result<FirstSteps> + use<>> {
    let Some(program) = PROGRAM.get() else {
        let reason = "the program that measures is not `report`, which starts itself anew for it";
        return Err(DeviceError::not_applicable("a process of its own", device.name(), reason));
    };
    let name = device.name().to_owned();
    Ok(move || {
        let mut command = Command::new(program);
        let loading = loading.to_uppercase();
        command.args(["first-steps", "--device", &name]).env("CUDA_MODULE_LOADING", loading);
        let empty = if cache == EMPTY {
            let folder = Scratch::new().map_err(|error| failed(error.to_string()))?;
            command.env("SYNCSCOPE_CACHE", folder.path());
            Some(folder)
        } else {
            None
        };
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let start = Instant::now();
        let mut child = affinity::elsewhere(|| command.spawn()).map_err(|error| failed(error.to_string()))?;
        // What it says fits into the pipe: it needs nobody who reads while it runs.
        let ended = loop {
            match child.try_wait() {
                Ok(Some(_)) => break true,
                Ok(None) if start.elapsed() > patience => break false,
                Ok(None) => thread::sleep(Duration::from_millis(1)),
                Err(error) => return Err(failed(error.to_string())),
            }
        };
        let process = start.elapsed().as_secs_f64();
        if !ended {
            // Where it cannot be ended, it is not waited for either.
            let _ = child.kill().and_then(|()| child.wait());
            return Err(failed(format!("it had not ended after {} s", patience.as_secs_f64())));
        }
        let output = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
        drop(empty);
        if !output.status.success() {
            return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
        }
        let mut steps: FirstSteps =
            serde_json::from_slice(&output.stdout).map_err(|error| failed(error.to_string()))?;
        let whole = [("total", steps.total), ("sum", steps.seconds.values().sum()), ("process", process)];
        steps.seconds.extend(whole.map(|(name, seconds)| (name.to_owned(), seconds)));
        Ok(steps)
    })
}

/// What went wrong with a process.
fn failed(reason: String) -> DeviceError {
    DeviceError::call_failed("the host", "first-steps", reason)
}
