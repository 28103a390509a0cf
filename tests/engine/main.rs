//! What both engines promise, checked on every engine of this machine: operations against a float64 reference, order
//! between streams, synchronization, and what happens to failures.
//!
//! A test that needs a device which this machine lacks is reported as ignored, and the reason is printed.

mod contract;
mod endings;
mod failures;
mod graphs;
mod growth;
mod lending;
mod normals;
mod operations;
mod ordering;
mod own_kernels;
mod reference;
mod room;
mod spread;
mod stuck;
mod timelines;

use std::sync::{Mutex, PoisonError};

use libtest_mimic::{Arguments, Failed, Trial};
use syncscope::device::Device;
use syncscope::error::DeviceError;

/// A behaviour to check on a device.
type Check = fn(&Device) -> Result<(), Failed>;

/// Launches by the driver's own call; `NotApplicable` on an engine that has none.
#[cfg(feature = "cuda")]
pub(crate) use syncscope::device::raw::launch_loop as bare_launches;
#[cfg(not(feature = "cuda"))]
pub(crate) fn bare_launches(stream: &syncscope::device::Stream, _: usize) -> Result<std::time::Duration, DeviceError> {
    Err(DeviceError::not_applicable("a bare kernel launch", stream.device().name(), "this build has no CUDA engine"))
}

fn main() -> Result<(), DeviceError> {
    if endings::child()? {
        return Ok(());
    }
    let arguments = Arguments::from_args();
    let missing = Device::cuda_unavailable();
    if let Some(reason) = &missing {
        eprintln!("tests on cuda:0 are ignored: {reason}");
    }
    let families = [
        operations::CHECKS,
        normals::CHECKS,
        ordering::CHECKS,
        contract::CHECKS,
        failures::CHECKS,
        spread::CHECKS,
        room::CHECKS,
        timelines::CHECKS,
        graphs::CHECKS,
        stuck::CHECKS,
        growth::CHECKS,
        endings::CHECKS,
        own_kernels::CHECKS,
        lending::CHECKS,
    ];
    let checks: Vec<(&str, Check)> = families.into_iter().flatten().copied().collect();
    let mut trials = Vec::new();
    for (name, check) in checks {
        trials.push(trial("cpu:0", name, check));
        trials.push(trial("cuda:0", name, check).with_ignored_flag(missing.is_some()));
    }
    libtest_mimic::run(&arguments, trials).exit()
}

fn trial(device: &'static str, name: &str, check: Check) -> Trial {
    Trial::test(name, move || {
        let _turn = (device == "cuda:0").then(|| GPU.lock().unwrap_or_else(PoisonError::into_inner));
        check(&Device::open(device)?)
    })
    .with_kind(device)
}

/// Tests on one GPU take turns: a driver call of one (loading code, pinning memory) may wait for the whole device, and
/// with it for a stream that another holds with a gate.
static GPU: Mutex<()> = Mutex::new(());

/// Fails with `message` unless `condition` holds.
fn ensure(condition: bool, message: impl FnOnce() -> String) -> Result<(), Failed> {
    if condition { Ok(()) } else { Err(message().into()) }
}
