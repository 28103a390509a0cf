//! Loops that must not grow: what a call made for itself is given back, also where it failed, and where nobody waits for the device.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use libtest_mimic::Failed;
use syncscope::device::{Device, HostKind, Injected};
use syncscope::error::DeviceError;

use crate::{Check, ensure};

pub(crate) const CHECKS: &[(&str, Check)] = &[
    ("large_reads_beside_a_busy_thread_leave_no_streams", reads_beside_a_busy_thread),
    ("large_reads_by_two_threads_leave_no_streams", reads_by_two_threads),
    ("searches_of_plans_leave_no_streams", searches),
    ("large_reads_that_fail_leave_no_pinned_memory", failing_reads),
    ("pinned_memory_that_is_kept_makes_room", pinned_memory_makes_room),
];

/// How often something is done that must leave nothing.
const TIMES: usize = 40;

/// How many streams may be there for what was done last.
const FEW: usize = 4;

/// The elements of a tensor that is read piece by piece.
const LARGE: usize = 3 << 20;

/// Fails where there are more streams now than a few beside those of `before`.
fn has_few_streams(device: &Device, before: usize) -> Result<(), Failed> {
    let now = device.footprint().streams;
    ensure(now <= before + FEW, || format!("{now} streams, and {before} before"))
}

fn reads_beside_a_busy_thread(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    let (x, y) = (stream.ones::<f32>([LARGE])?, stream.ones::<f32>([10])?);
    x.to_vec()?;
    let (before, is_over) = (device.footprint().streams, AtomicBool::new(false));
    let read = thread::scope(|scope| {
        // It waits now and then: a queue may have no end.
        let (y, is_over) = (&y, &is_over);
        let busy = move || y.affine_in_place(1.0, 0.0).and_then(|()| y.get([0])?.item());
        scope.spawn(move || while !is_over.load(Ordering::Relaxed) && busy().is_ok() {});
        let read = (0..TIMES).try_for_each(|_| x.to_vec().map(drop));
        let read = read.map_err(Failed::from).and_then(|()| has_few_streams(device, before));
        is_over.store(true, Ordering::Relaxed);
        read
    });
    device.synchronize()?;
    read
}

fn reads_by_two_threads(device: &Device) -> Result<(), Failed> {
    let x = device.stream()?.ones::<f32>([LARGE])?;
    let before = device.footprint().streams;
    thread::scope(|scope| {
        let read = || (0..TIMES).try_for_each(|_| x.to_vec().map(drop));
        let other = scope.spawn(read);
        read().and(other.join().unwrap_or(Ok(())))
    })?;
    has_few_streams(device, before)
}

/// Each product is the first of its shape. Its value is waited for, and the device is not.
fn searches(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    let a = stream.ones::<f32>([16, 16])?;
    let before = device.footprint().streams;
    for columns in 1..=TIMES {
        a.matmul(&stream.ones::<f32>([16, columns])?)?.get([0, 0])?.item()?;
    }
    has_few_streams(device, before)
}

/// Each on a stream of its own, which fails while the read waits for it.
fn failing_reads(device: &Device) -> Result<(), Failed> {
    let read = || -> Result<(), Failed> {
        let stream = device.stream()?;
        let (x, table) = (stream.ones::<f32>([1 << 18])?, stream.ones::<f32>([4, 4])?);
        let rows = stream.tensor(&[99_i64], [1])?;
        stream.spin(Duration::from_millis(2))?;
        table.gather(&rows)?;
        ensure(x.to_vec().is_err(), || "a stream that failed was read".to_owned())
    };
    (0..FEW).try_for_each(|_| read())?;
    let before = device.footprint().pinned_bytes;
    (0..TIMES).try_for_each(|_| read())?;
    let now = device.footprint().pinned_bytes;
    let _ = device.synchronize();
    ensure(now <= before + (16 << 20), || format!("{now} bytes of pinned memory, and {before} before"))
}

fn pinned_memory_makes_room(device: &Device) -> Result<(), Failed> {
    if device.properties().engine == "cpu" {
        let refused = device.host_buffer::<u8>(HostKind::Pinned, 1).map(drop);
        return ensure(matches!(refused, Err(DeviceError::NotApplicable { .. })), || format!("{refused:?}"));
    }
    let before = device.footprint().pinned_bytes;
    drop(device.host_buffer::<u8>(HostKind::Pinned, 5 << 20)?);
    let kept = device.footprint().pinned_bytes;
    ensure(kept >= before + (5 << 20), || format!("{kept} bytes are kept, and {before} were before"))?;
    device.inject(Injected::Pinning, 1);
    let buffer = device.host_buffer::<u8>(HostKind::Pinned, 3 << 20)?;
    let now = device.footprint().pinned_bytes;
    ensure(now + (5 << 20) <= kept, || format!("{now} bytes are kept, and {kept} were before"))?;
    drop(buffer);
    Ok(())
}
