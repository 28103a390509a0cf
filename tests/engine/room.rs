//! Allocations that find no room: they wait for what is about to be free, and are then refused, with everything as it was.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::Duration;

use libtest_mimic::Failed;
use syncscope::device::{Device, Injected};
use syncscope::error::DeviceError;

use crate::stuck::{LONG, beside_a_busy_stream, returns};
use crate::{Check, ensure};

pub(crate) const CHECKS: &[(&str, Check)] = &[
    ("a_refused_allocation_leaves_everything_as_it_was", refused_allocation),
    ("an_allocation_waits_for_pending_frees_before_it_is_refused", allocation_waits),
    ("an_allocation_finds_what_another_stream_freed", freed_elsewhere),
    ("an_allocation_finds_what_a_busy_stream_freed", freed_by_a_busy_stream),
    ("an_allocation_that_finds_no_room_behind_a_gate_is_refused", no_room_behind_a_gate),
    ("an_allocation_that_finds_no_room_beside_a_busy_stream_is_refused", no_room_beside_a_busy_stream),
    ("allocations_that_find_no_room_at_once_do_not_wait_for_each_other", no_room_at_once),
    ("a_tensor_too_large_for_any_memory_is_refused", too_large),
];

fn refused_allocation(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    let x = stream.ones::<f32>([1000])?;
    for nth in 1..4 {
        device.inject(Injected::Allocation, nth);
        let outcomes: Vec<_> = (0..4).map(|_| x.add_scalar(1.0).map(|y| y.get([0])?.item())).collect();
        for (place, outcome) in (1..).zip(outcomes) {
            let right = match outcome {
                Err(DeviceError::OutOfMemory { .. }) => place == nth,
                Ok(value) => place != nth && value? == 2.0,
                Err(_) => false,
            };
            ensure(right, || format!("allocation {place} where {nth} is to fail"))?;
        }
    }
    ensure(x.sum()?.item()? == 1000.0, || "a tensor changed".to_owned())
}

/// The elements of nearly half of what there is, where the engine knows. A little less, for what other tests hold meanwhile.
fn nearly_half(device: &Device) -> usize {
    device.properties().memory_bytes.map_or(1 << 20, |bytes| bytes as usize / 20 * 9 / 4)
}

/// More than fits is asked for again and again, while what was freed is still in use by a stream that will come past it: the third
/// time and later ones wait.
fn allocation_waits(device: &Device) -> Result<(), Failed> {
    let len = nearly_half(device);
    let (home, guest) = (device.stream()?, device.stream()?);
    let one = guest.ones::<f32>([1])?;
    for _ in 0..4 {
        let large = home.empty::<f32>([len])?;
        let event = device.event()?;
        home.record(&event)?;
        guest.wait(&event)?;
        guest.spin(std::time::Duration::from_millis(50))?;
        large.get([0])?.reshape([1])?.on(&guest)?.assign(&one)?;
    }
    Ok(device.synchronize()?)
}

/// Of a stream that lives, and of one that is gone. It takes the device a while to free so much.
fn freed_elsewhere(device: &Device) -> Result<(), Failed> {
    let (home, other, len) = (device.stream()?, device.stream()?, nearly_half(device));
    drop([home.empty::<f32>([len])?, home.empty::<f32>([len])?]);
    drop(other.empty::<f32>([len])?);
    drop((home.empty::<f32>([len])?, home.empty::<f32>([len])?, home));
    drop(other.empty::<f32>([len])?);
    Ok(())
}

/// Another thread goes on enqueueing on the stream whose memory it is.
fn freed_by_a_busy_stream(device: &Device) -> Result<(), Failed> {
    let (busy, stream, len) = (device.stream()?, device.stream()?, nearly_half(device));
    let (event, over) = (device.event()?, AtomicBool::new(false));
    thread::scope(|scope| {
        let records = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                busy.record(&event)?;
            }
            Ok::<_, DeviceError>(())
        });
        let found = (0..2).try_for_each(|_| {
            drop([busy.empty::<f32>([len])?, busy.empty::<f32>([len])?]);
            stream.empty::<f32>([len]).map(drop)
        });
        over.store(true, Ordering::Relaxed);
        records.join().map_err(|_| "the recording thread panicked")??;
        Ok(found?)
    })
}

/// Also where a driver that gives memory back to the system waits for all streams.
fn no_room_behind_a_gate(device: &Device) -> Result<(), Failed> {
    let (held, stream, gate) = (device.stream()?, device.stream()?, device.gate()?);
    held.wait_gate(&gate)?;
    let told = returns(&gate, || stream.empty::<f32>([1 << 45]).map(drop))?;
    ensure(matches!(told, Err(DeviceError::OutOfMemory { .. })), || format!("{told:?}"))
}

/// The stream of another thread is never idle.
fn no_room_beside_a_busy_stream(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    let (done, told) = mpsc::channel();
    let told = beside_a_busy_stream(&device.stream()?, || {
        // Not scoped: one that hangs cannot be ended.
        thread::spawn(move || done.send(stream.empty::<f32>([1 << 45]).map(drop)));
        Ok(told.recv_timeout(LONG).map_err(|_| "it waits for a stream that is never idle")?)
    })?;
    ensure(matches!(told, Err(DeviceError::OutOfMemory { .. })), || format!("{told:?}"))
}

/// Each has the guard of its stream while it looks whether the streams of the others are over.
fn no_room_at_once(device: &Device) -> Result<(), Failed> {
    const THREADS: usize = 2;
    const TIMES: usize = 200;
    // What other tests freed is not waited for here.
    device.trim()?;
    device.synchronize()?;
    let (start, (done, ended)) = (Arc::new(Barrier::new(THREADS)), mpsc::channel());
    for _ in 0..THREADS {
        let (stream, start, done) = (device.stream()?, start.clone(), done.clone());
        // Not scoped: those that hang cannot be ended.
        thread::spawn(move || {
            let refused = |_| matches!(stream.empty::<f32>([1 << 45]), Err(DeviceError::OutOfMemory { .. }));
            start.wait();
            let _ = done.send((0..TIMES).all(refused));
        });
    }
    for _ in 0..THREADS {
        let refused = ended.recv_timeout(Duration::from_secs(60)).map_err(|_| "they wait for each other")?;
        ensure(refused, || "128 TiB were allocated".to_owned())?;
    }
    Ok(())
}

fn too_large(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    let error = stream.empty::<f32>([usize::MAX / 4, 9]).err().ok_or("a shape that overflows was taken")?;
    ensure(matches!(error, DeviceError::InvalidArgument { .. }), || error.to_string())?;
    let error = stream.empty::<f32>([1 << 45]).err().ok_or("128 TiB were allocated")?;
    ensure(matches!(error, DeviceError::OutOfMemory { .. }), || error.to_string())?;
    stream.ones::<f32>([4])?.sum()?.item()?;
    Ok(())
}
