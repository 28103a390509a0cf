//! Random programs of several threads against a sequential oracle, with exact results.
//!
//! A program mixes operations, reads, streams, events, gates, graphs, host buffers, drops and functions that are left early, on
//! two devices (see [`oracle`]). Its failure shrinks to a short program; a hang is a failure that names the steps it is in.
//!
//! | variable | what it sets |
//! |---|---|
//! | `SYNCSCOPE_STRESS_SECONDS` | how long new programs are begun on a device; 3 s unless it is set |
//! | `SYNCSCOPE_STRESS_SEED` | the first seed, to repeat a failure; 1 unless it is set |
//! | `SYNCSCOPE_STRESS_MARKS` | set: an event is recorded behind every step, so that the report of a hang says how far each stream is |
//!
//! On a GPU, set `CUDA_DEVICE_MAX_CONNECTIONS=32`, too: a program has up to 20 streams, and with fewer queues than that a gate
//! that holds one stream may hold another.
//!
//! The report of a hang shows the program, where every thread is, and what the driver says of every stream and event.

mod held;
mod oracle;
mod program;
mod run;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use proptest::collection::vec;
use proptest::prelude::any;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use syncscope::device::{DType, Device, Float};
use syncscope::error::DeviceError;

/// The error is for a reader.
pub(crate) type Outcome<T> = Result<T, String>;

/// Draws of a program.
const DRAWS: std::ops::Range<usize> = 1..120;

/// A program hangs in which no step ends for so long; no step takes more than milliseconds. While a failure shrinks, less
/// must do.
const PATIENCE: Duration = Duration::from_secs(30);
const PATIENCE_OF_SHRINKING: Duration = Duration::from_secs(3);

/// How long a failure may shrink, in milliseconds.
const SHRINKING: u32 = 120_000;

/// A program that failed is run so often while it shrinks, as threads do not meet in the same way each time.
const TRIES: usize = 4;

#[test]
fn random_programs_give_on_the_cpu_engine_what_a_sequential_oracle_gives() {
    stress(&[open("cpu:0"), open("cpu:1")]);
}

#[test]
fn random_programs_give_on_cuda_what_a_sequential_oracle_gives() {
    if let Some(missing) = Device::cuda_unavailable() {
        return println!("skipped: {missing}");
    }
    // Of one GPU, two openings are two devices.
    let two = Device::list().iter().any(|listing| listing.name == "cuda:1");
    stress(&[open("cuda:0"), open(if two { "cuda:1" } else { "cuda:0" })]);
}

fn open(name: &str) -> Device {
    Device::open(name).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn from_environment(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(value) => value.parse().unwrap_or_else(|_| panic!("{name} is `{value}`, and no whole number")),
        Err(_) => default,
    }
}

fn stress(devices: &[Device; 2]) {
    let names = format!("{} and {}", devices[0].name(), devices[1].name());
    devices.iter().for_each(|device| warm_up(device).unwrap_or_else(|error| panic!("{names}: {error}")));
    let time = Duration::from_secs(from_environment("SYNCSCOPE_STRESS_SECONDS", 3));
    let first = from_environment("SYNCSCOPE_STRESS_SEED", 1);
    let (start, mut seed, mut steps) = (Instant::now(), first, BTreeMap::<String, usize>::new());
    while seed == first || start.elapsed() < time {
        if let Err(report) = one_seed(devices, seed, &mut steps) {
            panic!("{names}, seed {seed} (repeat it with SYNCSCOPE_STRESS_SEED={seed}): {report}");
        }
        seed += 1;
    }
    let total: usize = steps.values().sum();
    println!(
        "{names}: seeds {first} to {}, {total} steps in {:.1} s: {steps:?}",
        seed - 1,
        start.elapsed().as_secs_f64()
    );
}

/// Runs the program of a seed; shrinks it if it fails.
fn one_seed(devices: &[Device; 2], seed: u64, steps: &mut BTreeMap<String, usize>) -> Outcome<()> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config {
        cases: 1,
        max_shrink_time: SHRINKING,
        max_shrink_iters: u32::MAX,
        failure_persistence: None,
        ..Config::default()
    };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let draws = vec(any::<oracle::Draw>(), DRAWS);
    let (failed, hung, counted) = (Cell::new(false), Cell::new(false), std::cell::RefCell::new(steps));
    let outcome = runner.run(&draws, |draws| {
        let program = oracle::program(&draws);
        if !failed.get() {
            program.steps.iter().for_each(|step| *counted.borrow_mut().entry(step.action.name()).or_default() += 1);
        }
        // What a hang has left behind on a GPU disturbs every further program.
        if hung.get() && devices[0].properties().engine != "cpu" {
            return Ok(());
        }
        for _ in 0..if failed.get() { TRIES } else { 1 } {
            let patience = if failed.get() { PATIENCE_OF_SHRINKING } else { PATIENCE };
            if let Err(reason) = run::run(&program, devices, patience) {
                if !failed.replace(true) {
                    println!("seed {seed} fails and shrinks: {reason}\n{program:?}");
                }
                hung.set(hung.get() || reason.starts_with(run::HANGS));
                return Err(TestCaseError::fail(reason));
            }
        }
        Ok(())
    });
    outcome.map_err(|error| match error {
        TestError::Fail(reason, draws) => format!("{reason}\n{:?}", oracle::program(&draws)),
        TestError::Abort(reason) => reason.to_string(),
    })
}

/// The first multiplication of a shape and the first use of a kernel may wait for the whole device; so they come before any
/// stream is held.
fn warm_up(device: &Device) -> Result<(), DeviceError> {
    fn of_type<T: Float>(device: &Device) -> Result<(), DeviceError> {
        let stream = device.stream()?;
        for [m, k, n] in oracle::PRODUCTS {
            stream.ones::<T>([m, k])?.matmul(&stream.ones::<T>([k, n])?)?;
        }
        stream.synchronize()
    }
    for dtype in oracle::REAL {
        match dtype {
            DType::F16 => of_type::<half::f16>(device)?,
            DType::BF16 => of_type::<half::bf16>(device)?,
            _ => of_type::<f32>(device)?,
        }
    }
    let stream = device.stream()?;
    let x = stream.normal::<f32>([64])?.gt(0.0)?;
    x.any()?;
    x.nonzero()?;
    stream.ones::<f32>([64])?.reshape([32, 2])?.index_select(&[1])?.sum()?;
    stream.spin(Duration::ZERO)?;
    stream.synchronize()
}
