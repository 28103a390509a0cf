//! What a long recording keeps, and what it costs in memory. Alone in its process, whose memory is looked at.
//!
//! A test that needs a device or a measure of memory that this machine lacks is reported as ignored, and the reason is
//! printed.

use std::fs;

use libtest_mimic::{Arguments, Failed, Trial};
use syncscope::prelude::*;
use syncscope::timeline::Kind;

const LAUNCHES: usize = 100_000;
const MOST_BYTES: usize = 200_000_000;

fn main() {
    let mut arguments = Arguments::from_args();
    // One after the other: each looks at the memory of the process.
    arguments.test_threads = Some(1);
    let no_gpu = Device::cuda_unavailable().map(|error| error.to_string());
    let no_memory = memory("VmHWM:").is_none().then(|| "this system tells nothing of a process's memory".to_owned());
    let mut trials = Vec::new();
    for (device, missing) in [("cpu:0", None), ("cuda:0", no_gpu)] {
        let mut trial = |name: &str, check: fn(&Device) -> Result<(), Failed>, missing: Option<&String>| {
            if let Some(reason) = missing {
                eprintln!("{name} on {device} is ignored: {reason}");
            }
            let test = Trial::test(name, move || check(&Device::open(device)?)).with_kind(device);
            trials.push(test.with_ignored_flag(missing.is_some()));
        };
        trial("a_recording_of_100_000_launches_loses_none", loses_none, missing.as_ref());
        trial("a_recording_of_100_000_launches_stays_small", stays_small, missing.as_ref().or(no_memory.as_ref()));
    }
    libtest_mimic::run(&arguments, trials).exit();
}

/// A line of `/proc/self/status`, in bytes; `None` where there is no such file.
fn memory(line: &str) -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let value = status.lines().find_map(|l| l.strip_prefix(line))?;
    value.split_whitespace().next()?.parse::<usize>().ok().map(|kilobytes| kilobytes * 1024)
}

/// Records that many launches on a device that has been recorded once before.
fn recorded(device: &Device) -> Result<(Timeline, usize), Failed> {
    let stream = device.stream()?;
    let x = stream.ones::<f32>([16])?;
    device.record(|| x.affine_in_place(1.0, 1.0))?;
    // The peak begins anew, where the system allows it.
    let _ = fs::write("/proc/self/clear_refs", "5");
    let before = memory("VmRSS:").unwrap_or_default();
    let (_, timeline) = device.record(|| (0..LAUNCHES).try_for_each(|_| x.affine_in_place(1.0, 1.0)))?;
    Ok((timeline, before))
}

fn loses_none(device: &Device) -> Result<(), Failed> {
    let (timeline, _) = recorded(device)?;
    let of = |kind| timeline.spans.iter().filter(|span| span.kind == kind).count();
    let found = (of(Kind::Enqueue), of(Kind::Kernel), timeline.dropped);
    if found == (LAUNCHES, LAUNCHES, 0) { Ok(()) } else { Err(format!("launches, kernels, lost: {found:?}").into()) }
}

fn stays_small(device: &Device) -> Result<(), Failed> {
    let (_timeline, before) = recorded(device)?;
    let grown = memory("VmHWM:").unwrap_or(usize::MAX).saturating_sub(before);
    println!("{}: {} MB more at the peak", device.name(), grown / 1_000_000);
    if grown < MOST_BYTES { Ok(()) } else { Err(format!("{grown} bytes more at the peak").into()) }
}
