//! Whose failure it is: of the stream, of the events behind it and of the device; and that of streams that nobody can ask any more.

use std::sync::{Barrier, mpsc};
use std::thread;
use std::time::Duration;

use libtest_mimic::Failed;
use syncscope::device::{Device, Gate};
use syncscope::error::DeviceError;

use crate::failures::{fail_behind, is_gather};
use crate::{Check, ensure};

pub(crate) const CHECKS: &[(&str, Check)] = &[
    ("a_failure_is_told_by_its_stream_its_events_and_the_device_alone", failure_is_its_own),
    ("a_failure_is_not_told_by_an_event_before_it", failure_stays_behind),
    ("a_wait_for_an_event_tells_the_failure_of_the_recording_that_it_met", recorded_anew),
    ("a_failure_of_a_dropped_stream_is_told_by_the_device_once", failure_of_a_dropped_stream),
    ("a_failure_of_a_dropped_stream_is_told_once_while_its_tensors_live", failure_beside_living_tensors),
    ("a_failure_of_a_dropped_stream_is_told_before_that_of_a_living_one", beside_a_living_one),
    ("failures_of_several_dropped_streams_are_told_with_their_number", several_dropped),
    ("a_failure_of_a_dropped_stream_is_told_to_one_thread", told_to_one_thread),
];

fn failure_is_its_own(device: &Device) -> Result<(), Failed> {
    let (stream, second, gate) = (device.stream()?, device.stream()?, device.gate()?);
    let (first_event, second_event) = (device.event()?, device.event()?);
    fail_behind(&stream, &gate)?;
    stream.record(&first_event)?;
    second.wait(&first_event)?;
    let x = second.ones::<f32>([4])?;
    second.record(&second_event)?;
    gate.open();
    ensure(x.sum()?.item()? == 4.0, || "a stream that waited computed something else".to_owned())?;
    second_event.synchronize()?;
    second.synchronize()?;
    is_gather("its event", first_event.synchronize())?;
    is_gather("the state of its event", first_event.is_complete())?;
    is_gather("the stream", stream.synchronize())?;
    is_gather("the device", device.synchronize())
}

fn failure_stays_behind(device: &Device) -> Result<(), Failed> {
    let (stream, second, gate) = (device.stream()?, device.stream()?, device.gate()?);
    let (rows, x) = (stream.tensor(&[0i64, 1], [2])?, stream.ones::<f32>([3, 2])?);
    x.gather(&rows)?;
    let event = device.event()?;
    stream.record(&event)?;
    second.wait(&event)?;
    fail_behind(&stream, &gate)?;
    gate.open();
    is_gather("the stream itself", stream.synchronize())?;
    event.synchronize()?;
    let sum = second.ones::<f32>([5])?.sum()?.item()?;
    ensure(sum == 5.0, || format!("the other stream computed {sum}"))
}

fn failure_of_a_dropped_stream(device: &Device) -> Result<(), Failed> {
    let gate = device.gate()?;
    let stream = device.stream()?;
    drop(fail_behind(&stream, &gate)?);
    drop(stream);
    gate.open();
    is_gather("the device", device.synchronize())?;
    device.synchronize()?;
    // The same where the work is over before anybody asks.
    let stream = device.stream()?;
    let (x, rows) = (stream.ones::<f32>([3, 2])?, stream.tensor(&[0i64, 99], [2])?);
    let (event, own) = (device.event()?, device.stream()?);
    x.gather(&rows)?;
    own.record(&event)?;
    event.synchronize()?;
    drop((x, rows, stream));
    is_gather("the device, later", device.synchronize())?;
    device.synchronize()?;
    // The same where nothing is left of the stream: it is over, and another one is made.
    let (gate, stream, event) = (device.gate()?, device.stream()?, device.event()?);
    let failed = fail_behind(&stream, &gate)?;
    stream.record(&event)?;
    gate.open();
    is_gather("the event", event.synchronize())?;
    drop((failed, stream));
    let _sweeps = device.stream()?;
    is_gather("the device, in the end", device.synchronize())?;
    Ok(device.synchronize()?)
}

fn failure_beside_living_tensors(device: &Device) -> Result<(), Failed> {
    // A tensor of another stream that the failed one used, and one of its own that another stream has.
    let (stream, other, gate) = (device.stream()?, device.stream()?, device.gate()?);
    let (guest, own) = (other.ones::<f32>([3, 2])?, stream.ones::<f32>([3, 2])?);
    let elsewhere = own.on(&other)?;
    let rows = stream.tensor(&[0i64, 99], [2])?;
    device.synchronize()?;
    stream.wait_gate(&gate)?;
    guest.on(&stream)?.gather(&rows)?;
    drop((rows, own, stream));
    gate.open();
    is_gather("the device", device.synchronize())?;
    device.synchronize()?;
    ensure(guest.sum()?.item()? + elsewhere.sum()?.item()? == 12.0, || "a tensor lost its values".to_owned())?;
    drop((guest, elsewhere));
    Ok(device.synchronize()?)
}

/// It is recorded anew while a thread waits for it. A thread that comes late meets the later recording, and shows nothing: that
/// one is held, too, until the thread has had its time.
fn recorded_anew(device: &Device) -> Result<(), Failed> {
    let (stream, later, event) = (device.stream()?, device.stream()?, device.event()?);
    let (first, second) = (device.gate()?, device.gate()?);
    fail_behind(&stream, &first)?;
    stream.record(&event)?;
    thread::scope(|scope| {
        let ((about, began), (done, returned)) = (mpsc::channel(), mpsc::channel());
        let waited = &event;
        scope.spawn(move || {
            let _ = about.send(());
            let _ = done.send(waited.synchronize());
        });
        began.recv()?;
        // As long as it takes to stand in the wait.
        thread::sleep(Duration::from_millis(50));
        let told = later.wait_gate(&second).and_then(|()| later.record(&event));
        first.open();
        let met = returned.recv_timeout(Duration::from_secs(1));
        second.open();
        told?;
        met.map_or(Ok(()), |told| is_gather("the wait", told))
    })
}

/// A stream that fails with this row number once `gate` opens, and is dropped.
fn fail_and_drop(device: &Device, gate: &Gate, row: i64) -> Result<(), Failed> {
    let stream = device.stream()?;
    let (x, rows) = (stream.ones::<f32>([3, 2])?, stream.tensor(&[row], [1])?);
    stream.wait_gate(gate)?;
    x.gather(&rows)?;
    Ok(())
}

fn beside_a_living_one(device: &Device) -> Result<(), Failed> {
    let (living, gate) = (device.stream()?, device.gate()?);
    fail_behind(&living, &gate)?;
    fail_and_drop(device, &gate, 55)?;
    gate.open();
    for row in [" 55 is out", " 99 is out", " 99 is out"] {
        let told = device.synchronize().err().map(|error| error.to_string()).unwrap_or_default();
        ensure(told.contains(row), || format!("{told:?} in place of {row}"))?;
    }
    is_gather("the living stream", living.synchronize())
}

fn several_dropped(device: &Device) -> Result<(), Failed> {
    let gate = device.gate()?;
    (55..58).try_for_each(|row| fail_and_drop(device, &gate, row))?;
    gate.open();
    let told = device.synchronize().err().map(|error| error.to_string()).unwrap_or_default();
    ensure(told.contains("2 other streams"), || told.clone())?;
    Ok(device.synchronize()?)
}

fn told_to_one_thread(device: &Device) -> Result<(), Failed> {
    for _ in 0..20 {
        let (gate, start) = (device.gate()?, Barrier::new(3));
        fail_and_drop(device, &gate, 55)?;
        let told = thread::scope(|scope| {
            let threads = [(), ()].map(|()| {
                scope.spawn(|| {
                    start.wait();
                    device.synchronize()
                })
            });
            start.wait();
            // As long as it takes to stand in the waits. One that stands there later makes the test easier.
            thread::sleep(Duration::from_millis(20));
            gate.open();
            threads.map(|thread| thread.join().unwrap_or(Err(DeviceError::EventNotReady { reason: "a panic" })))
        });
        let failures: Vec<_> = told.iter().filter_map(|told| told.as_ref().err()).collect();
        ensure(failures.len() == 1, || format!("{told:?}"))?;
    }
    Ok(())
}
