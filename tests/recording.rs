//! What a long recording keeps, and what it costs in memory. Alone in its process, whose memory is looked at: as its allocator
//! counts it, and as the system does.
//!
//! A test that needs a device or a measure of memory that this machine lacks is reported as ignored, and the reason is
//! printed.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use libtest_mimic::{Arguments, Failed, Trial};
use syncscope::device::Event;
use syncscope::prelude::*;
use syncscope::timeline::Kind;

const LAUNCHES: usize = 100_000;

/// The bound that the tracer states.
const MAX_BYTES: usize = 192 << 20;

/// What the system may see beside it: pages that are not full, and what a driver and its recorder keep of their own.
const MORE_BYTES: usize = 96 << 20;

/// More calls than there is room for.
const TOO_MANY: usize = 320_000;

#[global_allocator]
static COUNTED: Counted = Counted { live: AtomicUsize::new(0), peak: AtomicUsize::new(0) };

/// The system's allocator, which counts what is allocated, and the most since the peak was set.
struct Counted {
    live: AtomicUsize,
    peak: AtomicUsize,
}

impl Counted {
    fn add(&self, bytes: usize) {
        let live = self.live.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.peak.fetch_max(live, Ordering::Relaxed);
    }
}

// Safety: each call is the system's own, with the same arguments.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.add(layout.size());
        // Safety: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        self.live.fetch_sub(layout.size(), Ordering::Relaxed);
        // Safety: the caller's promise.
        unsafe { System.dealloc(start, layout) }
    }
}

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
        trial("too_many_launches_stay_within_the_bound", too_many_launches, missing.as_ref());
        trial("too_many_launches_between_events_stay_within_the_bound", too_many_by_events, missing.as_ref());
        trial("a_loop_of_waits_and_questions_stays_within_the_bound", too_many_waits, missing.as_ref());
        trial("calls_of_many_threads_with_long_names_stay_within_the_bound", too_many_threads, missing.as_ref());
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
    if grown < MAX_BYTES + MORE_BYTES { Ok(()) } else { Err(format!("{grown} bytes more at the peak").into()) }
}

/// Records a region that makes `calls` calls, which are more than are kept, and looks at the memory.
fn bounded(device: &Device, calls: usize, record: impl FnOnce() -> Result<Timeline, Failed>) -> Result<(), Failed> {
    let _ = fs::write("/proc/self/clear_refs", "5");
    let (resident, live) = (memory("VmRSS:").unwrap_or_default(), COUNTED.live.load(Ordering::SeqCst));
    COUNTED.peak.store(live, Ordering::SeqCst);
    let timeline = record()?;
    let allocated = COUNTED.peak.load(Ordering::SeqCst) - live;
    let grown = memory("VmHWM:").unwrap_or_default().saturating_sub(resident);
    let of = |on_device| timeline.spans.iter().filter(|span| span.kind.is_on_device() == on_device).count();
    let (kept, work) = (of(false), of(true));
    let told = format!(
        "{}, {}: {kept} of {calls} calls and {work} pieces of work are kept, {} are counted as dropped; {} MB more are \
         allocated at the peak, and {} MB more resident",
        device.name(),
        timeline.source,
        timeline.dropped,
        allocated / 1_000_000,
        grown / 1_000_000,
    );
    println!("{told}");
    let stray = timeline.spans.iter().any(|span| span.kind.is_on_device() && span.stream.is_none());
    let counted = kept < calls && kept as u64 + timeline.dropped >= calls as u64;
    let small = allocated < MAX_BYTES && grown < MAX_BYTES + MORE_BYTES;
    if counted && small && !stray { Ok(()) } else { Err(told.into()) }
}

fn launches(stream: &Stream) -> Result<(), DeviceError> {
    let x = stream.ones::<f32>([1])?;
    for launch in 0..TOO_MANY {
        x.affine_in_place(1.0, 0.0)?;
        if launch % 500 == 0 {
            stream.synchronize()?;
        }
    }
    Ok(())
}

fn too_many_launches(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    bounded(device, TOO_MANY, || Ok(device.record(|| launches(&stream))?.1))
}

fn too_many_by_events(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    bounded(device, TOO_MANY, || Ok(device.record_by_events(|| launches(&stream))?.1))
}

fn too_many_waits(device: &Device) -> Result<(), Failed> {
    let (stream, event) = (device.stream()?, device.event()?);
    stream.record(&event)?;
    let region = || {
        (0..2 * TOO_MANY).try_for_each(|_| {
            stream.is_complete()?;
            event.is_complete()?;
            Event::synchronize(&event)
        })
    };
    bounded(device, 2 * TOO_MANY, || Ok(device.record(region)?.1))
}

/// One after the other: the process has few at a time.
fn too_many_threads(device: &Device) -> Result<(), Failed> {
    const THREADS: usize = 12_000;
    let stream = device.stream()?;
    let long = "a".repeat(3000);
    let one = |number: usize| {
        thread::scope(|scope| {
            let call = || stream.synchronize();
            let named = thread::Builder::new().name(format!("{number} {long}")).spawn_scoped(scope, call);
            named.map_err(|error| error.to_string())?.join().map_err(|_| "a panic")?.map_err(Failed::from)
        })
    };
    let mut outcome = Ok(());
    bounded(device, THREADS, || {
        let (_, timeline) = device.record(|| {
            outcome = (0..THREADS).try_for_each(one);
            Ok::<_, DeviceError>(())
        })?;
        outcome.map(|()| timeline)
    })
}
