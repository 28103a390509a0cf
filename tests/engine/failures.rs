//! Wrong arguments are errors at once; failed work is an error of the next call on its stream, and hangs nobody.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use libtest_mimic::Failed;
use syncscope::device::{Device, HostKind, Injected, Stream};
use syncscope::error::DeviceError;
use syncscope::tensor::Tensor;

use crate::contract::host_kind;
use crate::{Check, ensure};

pub(crate) const CHECKS: &[(&str, Check)] = &[
    ("shapes_that_do_not_fit_are_refused", shapes),
    ("a_row_number_that_the_host_knows_is_checked_at_once", known_rows),
    ("a_failure_on_the_device_reaches_the_next_call_and_stays", device_failure),
    ("a_failed_stream_holds_up_no_other", other_streams_go_on),
    ("the_failure_of_a_dropped_stream_is_told_beside_a_thread_that_makes_streams", dropped_beside_new_ones),
    ("a_failed_copy_is_an_error_of_reading_its_buffer", failed_copy),
    ("a_failed_copy_stays_an_error_until_another_fills_the_buffer", failed_copy_stays),
    ("a_sound_copy_over_a_failed_one_that_is_over_is_read", sound_over_failed),
    ("a_copy_pending_on_a_lost_device_keeps_the_memory_of_its_buffer", pending_on_a_lost_device),
    ("a_stream_that_has_failed_gives_memory_and_refuses_work", on_a_failed_stream),
    ("a_read_that_fails_halfway_writes_into_nothing_of_others", half_a_read),
    ("a_failed_launch_is_no_operation_of_a_graph", failed_launch_in_a_graph),
    ("a_device_that_is_lost_in_a_capture_gives_no_graph", lost_in_a_capture),
    ("a_failed_launch_has_enqueued_nothing_and_new_work_succeeds", failed_launch),
    ("a_copy_that_fails_at_its_call_gives_no_data_and_new_work_succeeds", copy_fails_at_its_call),
    ("a_capture_with_a_failed_launch_is_given_up", failed_launch_in_capture),
    ("a_lost_device_names_the_first_cause_and_drops_end", lost_device),
    ("a_shape_whose_size_wraps_around_is_refused", wrapping_shape),
    ("a_device_that_is_not_there_is_named_with_those_that_are", missing_device),
];

fn shapes(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    let (a, b) = (stream.ones::<f32>([2, 3])?, stream.ones::<f32>([2, 3])?);
    let refused = [
        a.matmul(&b).is_err(),
        a.add(&stream.ones::<f32>([3, 2])?).is_err(),
        a.get([2, 0]).is_err(),
        a.reshape([7]).is_err(),
        a.item().is_err(),
        Tensor::<f32>::stack(&[]).is_err(),
        stream.tensor(&[1.0f32], [2]).is_err(),
        a.assign(&a).is_err(),
    ];
    ensure(refused.iter().all(|r| *r), || format!("{refused:?}"))?;
    a.sum()?.item()?;
    Ok(())
}

fn known_rows(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    let refused = stream.ones::<f32>([3, 2])?.index_select(&[0, 3]);
    ensure(matches!(refused, Err(DeviceError::InvalidArgument { .. })), || format!("{refused:?}"))?;
    stream.synchronize()?;
    Ok(())
}

fn fail(stream: &syncscope::device::Stream) -> Result<DeviceError, Failed> {
    let rows = stream.tensor(&[0i64, 99], [2])?;
    stream.ones::<f32>([3, 2])?.gather(&rows)?;
    stream.synchronize().err().ok_or_else(|| "a row number outside of the tensor was taken".into())
}

fn device_failure(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    let error = fail(&stream)?;
    let text = error.to_string();
    ensure(text.contains("gather") && text.contains("99"), || text.clone())?;
    for again in [stream.spin(std::time::Duration::ZERO), stream.is_complete().map(drop), stream.synchronize()] {
        ensure(again == Err(error.clone()), || format!("{again:?} instead of {error}"))?;
    }
    let event = device.event()?;
    let _ = stream.record(&event);
    event.synchronize()?;
    Ok(())
}

/// Whoever makes a stream ends those that are over, and takes what they have to say.
fn dropped_beside_new_ones(device: &Device) -> Result<(), Failed> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) && device.stream().is_ok() {
                thread::yield_now();
            }
        });
        let told = (0..500).try_for_each(|round| {
            let stream = device.stream()?;
            let rows = stream.tensor(&[99_i64], [1])?;
            stream.ones::<f32>([4, 4])?.gather(&rows)?;
            drop((stream, rows));
            ensure(device.synchronize().is_err(), || format!("failure {round} was not told"))
        });
        is_over.store(true, Ordering::Relaxed);
        told
    })
}

fn other_streams_go_on(device: &Device) -> Result<(), Failed> {
    let (broken, sound) = (device.stream()?, device.stream()?);
    fail(&broken)?;
    let event = device.event()?;
    let _ = broken.record(&event);
    sound.wait(&event)?;
    let sum = sound.ones::<f32>([5])?.sum()?.item()?;
    ensure(sum == 5.0, || format!("the other stream computed {sum}"))
}

fn failed_copy(device: &Device) -> Result<(), Failed> {
    let (stream, gate) = (device.stream()?, device.gate()?);
    let kind = if device.properties().engine == "cpu" { HostKind::Pageable } else { HostKind::Pinned };
    let mut buffer = device.host_buffer::<f32>(kind, 4)?;
    let rows = stream.tensor(&[0i64, 99], [2])?;
    let x = stream.ones::<f32>([3, 2])?;
    x.gather(&rows.reshape([2])?)?;
    stream.synchronize().err().ok_or("a row number outside of the tensor was taken")?;
    // The same with the failure still to come when the copy is enqueued.
    let held = device.stream()?;
    let (x, rows) = (held.ones::<f32>([3, 2])?, held.tensor(&[0i64, 99], [2])?);
    held.wait_gate(&gate)?;
    x.gather(&rows)?.copy_to(&mut buffer)?;
    gate.open();
    let read = buffer.read().map(|values| values.to_vec());
    ensure(read.is_err(), || format!("a failed copy was read as {read:?}"))
}

fn wrapping_shape(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    let pair = stream.ones::<f32>([2])?;
    ensure(pair.reshape([(1 << 63) + 1, 2]).is_err(), || "a shape of 2⁶⁴ + 2 elements passed for 2".to_owned())?;
    let none = stream.empty::<f32>([0])?;
    ensure(none.reshape([1 << 32, 1 << 32]).is_err(), || "a shape of 2⁶⁴ elements passed for none".to_owned())?;
    let tall = stream.empty::<f32>([1 << 40, 0])?;
    ensure(tall.to_string() == "[]", || tall.to_string())?;
    let buffer = |len| device.host_buffer::<f32>(HostKind::Pageable, len).map(drop);
    let (wraps, all) = (buffer(usize::MAX / 2), buffer(usize::MAX / 4));
    ensure(matches!(wraps, Err(DeviceError::InvalidArgument { .. })), || format!("a buffer of 2⁶⁵ bytes: {wraps:?}"))?;
    ensure(matches!(all, Err(DeviceError::OutOfMemory { .. })), || format!("a buffer of 2⁶⁴ bytes: {all:?}"))
}

fn missing_device(device: &Device) -> Result<(), Failed> {
    for name in ["cuda:77", "cpu:77", "tpu:0", "cpu", "cpu:x", ""] {
        let error = Device::open(name).err().ok_or_else(|| format!("`{name}` was opened"))?.to_string();
        ensure(error.contains(&format!("`{name}`")) && error.contains("cpu:0"), || error.clone())?;
    }
    let listed = Device::list().iter().any(|d| d.name == device.name());
    ensure(listed, || format!("{} is not listed", device.name()))
}

/// A failure on `stream`, to come once `gate` opens.
pub(crate) fn fail_behind(stream: &Stream, gate: &syncscope::device::Gate) -> Result<Tensor<f32>, Failed> {
    let (x, rows) = (stream.ones::<f32>([3, 2])?, stream.tensor(&[0i64, 99], [2])?);
    stream.wait_gate(gate)?;
    Ok(x.gather(&rows)?)
}

pub(crate) fn is_gather<T: std::fmt::Debug>(what: &str, outcome: Result<T, DeviceError>) -> Result<(), Failed> {
    let right = matches!(&outcome, Err(DeviceError::WorkFailed { operation, .. }) if operation == "gather");
    ensure(right, || format!("{what}: {outcome:?}"))
}

fn failed_copy_stays(device: &Device) -> Result<(), Failed> {
    let (stream, sound, gate) = (device.stream()?, device.stream()?, device.gate()?);
    let kind = if device.properties().engine == "cpu" { HostKind::Pageable } else { HostKind::Pinned };
    let mut buffer = device.host_buffer::<f32>(kind, 4)?;
    fail_behind(&stream, &gate)?.copy_to(&mut buffer)?;
    gate.open();
    is_gather("the first read", buffer.read().map(|values| values.to_vec()))?;
    is_gather("the second read", buffer.read().map(|values| values.to_vec()))?;
    is_gather("a write", buffer.write().map(|values| values.to_vec()))?;
    let target = sound.zeros::<f32>([4])?;
    is_gather("a copy from it", target.copy_from(&buffer))?;
    sound.full::<f32>([4], 2.0)?.copy_to(&mut buffer)?;
    ensure(*buffer.read()? == [2.0; 4], || "a copy that succeeded is not read".to_owned())
}

/// Nobody reads in between.
fn sound_over_failed(device: &Device) -> Result<(), Failed> {
    let (stream, sound, gate) = (device.stream()?, device.stream()?, device.gate()?);
    let mut buffer = device.host_buffer::<f32>(host_kind(device), 4)?;
    fail_behind(&stream, &gate)?.copy_to(&mut buffer)?;
    gate.open();
    is_gather("the stream", stream.synchronize())?;
    sound.full::<f32>([4], 2.0)?.copy_to(&mut buffer)?;
    ensure(*buffer.read()? == [2.0; 4], || "the sound copy is not read".to_owned())
}

/// The memory belongs to the GPU, which another opening of it has, too.
fn pending_on_a_lost_device(device: &Device) -> Result<(), Failed> {
    const LEN: usize = 777;
    let lost = Device::open(device.name())?;
    let (stream, gate) = (lost.stream()?, lost.gate()?);
    let x = stream.ones::<f32>([LEN])?;
    let mut buffer = lost.host_buffer::<f32>(host_kind(device), LEN)?;
    stream.wait_gate(&gate)?;
    x.copy_to(&mut buffer)?;
    device_is_lost(&lost, &x)?;
    ensure(buffer.read().is_err(), || "a buffer of a lost device was read".to_owned())?;
    drop(buffer);
    let other = device.host_buffer::<f32>(host_kind(device), LEN)?;
    gate.open();
    // With no gate closed, that waits for every opening of the GPU.
    device.synchronize()?;
    ensure(other.read()?.iter().all(|value| *value == 0.0), || "another buffer has the memory".to_owned())
}

fn device_is_lost(device: &Device, x: &Tensor<f32>) -> Result<(), Failed> {
    device.inject(Injected::DeviceLoss, 1);
    is_injected("the call that loses the device", x.affine_in_place(1.0, 1.0))
}

fn on_a_failed_stream(device: &Device) -> Result<(), Failed> {
    let (stream, other, gate) = (device.stream()?, device.stream()?, device.gate()?);
    let (start, end, never) = (device.timing_event()?, device.timing_event()?, device.event()?);
    let failed = fail_behind(&stream, &gate)?;
    stream.record(&start)?;
    gate.open();
    is_gather("the stream", stream.synchronize())?;
    is_gather("an event that was never recorded", stream.wait(&never))?;
    is_gather("an operation", failed.add_scalar(1.0).map(drop))?;
    // New memory, and such as the stream has freed.
    drop((stream.empty::<f32>([4321])?, stream.empty::<f32>([4321])?));
    other.record(&end)?;
    other.synchronize()?;
    is_gather("the time since an event that failed", end.elapsed_since(&start).map(drop))?;
    drop((failed, stream));
    device.synchronize().or_else(|failure| is_gather::<()>("the device", Err(failure)))
}

fn half_a_read(device: &Device) -> Result<(), Failed> {
    const LEN: usize = 1 << 19;
    let (stream, gate) = (device.stream()?, device.gate()?);
    let x = stream.ones::<f32>([LEN])?;
    x.to_vec()?;
    for nth in 1..5 {
        stream.spin(std::time::Duration::from_millis(100))?;
        device.inject(Injected::Copy, nth);
        // An engine that reads in one piece has one copy.
        if let Err(error) = x.to_vec() {
            is_injected::<()>("the read", Err(error))?;
        }
        device.trim()?;
        let fresh = device.host_buffer::<f32>(crate::contract::host_kind(device), LEN)?;
        stream.synchronize()?;
        let written = fresh.read()?.iter().filter(|value| **value != 0.0).count();
        ensure(written == 0, || format!("{written} elements of a new buffer were written"))?;
        // What is left of the injection is used up.
        while x.get([0])?.item().is_err() {}
    }
    drop(gate);
    ensure(x.to_vec()?.iter().all(|value| *value == 1.0), || "a read lost values".to_owned())
}

fn failed_launch_in_a_graph(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    let x = stream.ones::<f32>([4])?;
    device.inject(Injected::Launch, 2);
    let (_, graph) = stream.capture(|| {
        (0..3).for_each(|_| drop(x.affine_in_place(1.0, 1.0)));
        Ok(())
    })?;
    graph.launch()?;
    let (len, value) = (graph.len(), x.get([0])?.item()?);
    ensure((len, value) == (2, 3.0), || format!("a graph of {len} operations came to {value}"))
}

/// Of a device of its own: it is of no use afterwards.
fn lost_in_a_capture(device: &Device) -> Result<(), Failed> {
    let device = Device::open(device.name())?;
    let stream = device.stream()?;
    let x = stream.ones::<f32>([4])?;
    let captured = stream.capture(|| {
        x.affine_in_place(1.0, 1.0)?;
        device.inject(Injected::DeviceLoss, 1);
        drop(x.affine_in_place(1.0, 1.0));
        Ok(())
    });
    is_injected("the capture", captured.map(drop))
}

fn is_injected<T: std::fmt::Debug>(what: &str, outcome: Result<T, DeviceError>) -> Result<(), Failed> {
    let right = matches!(&outcome, Err(DeviceError::CallFailed { reason, .. }) if reason.contains("a test asked for"));
    ensure(right, || format!("{what}: {outcome:?}"))
}

fn failed_launch(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    let x = stream.zeros::<f32>([256])?;
    let a = stream.ones::<f32>([8, 8])?;
    a.matmul(&a)?;
    for nth in 1..6 {
        device.inject(Injected::Launch, nth);
        let failed = (1..6).filter(|_| x.affine_in_place(1.0, 1.0).is_err()).count();
        ensure(failed == 1, || format!("{failed} of 5 launches failed"))?;
    }
    let value = x.get([0])?.item()?;
    ensure(value == 20.0, || format!("{value} in place of 20"))?;
    device.inject(Injected::Launch, 1);
    is_injected("a matmul", a.matmul(&a).map(drop))?;
    device.inject(Injected::Launch, 1);
    is_injected("a sum", x.sum().map(drop))?;
    device.inject(Injected::Launch, 1);
    is_injected("a search", x.nonzero().map(drop))?;
    let found = x.nonzero()?.len();
    ensure(found == 256 && a.matmul(&a)?.get([7, 7])?.item()? == 8.0, || format!("{found} non-zeros"))
}

fn copy_fails_at_its_call(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    let x = stream.full::<f32>([64], 3.0)?;
    let large = stream.full::<f32>([1 << 20], 3.0)?;
    let mut buffer = device.host_buffer::<f32>(HostKind::Pageable, 64)?;
    type Call<'a> = (&'a str, Box<dyn FnMut() -> Result<(), DeviceError> + 'a>);
    let calls: [Call<'_>; 6] = [
        ("item", Box::new(|| x.get([0])?.item().map(drop))),
        ("to_vec", Box::new(|| x.to_vec().map(drop))),
        ("a large to_vec", Box::new(|| large.to_vec().map(drop))),
        ("tensor", Box::new(|| stream.tensor(&[1.0_f32; 9], [9]).map(drop))),
        ("copy_from", Box::new(|| x.copy_from(&device.host_buffer::<f32>(HostKind::Pageable, 64)?))),
        ("copy_to", Box::new(|| x.copy_to(&mut buffer))),
    ];
    for (name, mut call) in calls {
        device.inject(Injected::Copy, 1);
        is_injected(name, call())?;
        ensure(x.to_vec()? == [3.0; 64], || format!("after {name} the tensor holds other values"))?;
        call().map_err(|error| format!("{name}, again: {error}"))?;
        x.affine_in_place(0.0, 3.0)?;
    }
    ensure(large.to_vec()?.iter().all(|value| *value == 3.0), || "a large read lost values".to_owned())
}

fn failed_launch_in_capture(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    let x = stream.ones::<f32>([32])?;
    device.inject(Injected::Launch, 3);
    let captured = stream.capture(|| (0..5).try_for_each(|_| x.affine_in_place(1.0, 1.0)));
    is_injected("the capture", captured.map(drop))?;
    let (_, graph) = stream.capture(|| (0..5).try_for_each(|_| x.affine_in_place(1.0, 1.0)))?;
    graph.launch()?;
    ensure(x.get([31])?.item()? == 6.0, || "the stream does not go on as before".to_owned())
}

/// Of a device of its own: it is of no use afterwards.
fn lost_device(device: &Device) -> Result<(), Failed> {
    let device = Device::open(device.name())?;
    let (stream, other, gate, event) = (device.stream()?, device.stream()?, device.gate()?, device.timing_event()?);
    let (x, never) = (stream.ones::<f32>([32])?, device.event()?);
    // What is kept for the next is there.
    drop((stream.empty::<f32>([77])?, device.host_buffer::<f32>(host_kind(&device), 77)?));
    let y = x.on(&other)?;
    let mut buffer = device.host_buffer::<f32>(HostKind::Pageable, 32)?;
    let (_, graph) = stream.capture(|| x.affine_in_place(1.0, 1.0))?;
    stream.record(&event)?;
    stream.wait_gate(&gate)?;
    x.affine_in_place(1.0, 1.0)?;
    device.inject(Injected::DeviceLoss, 1);
    let cause = x.affine_in_place(1.0, 1.0);
    is_injected("the first call", cause.clone())?;
    let later = [
        ("an operation", x.affine_in_place(1.0, 1.0)),
        ("an operation elsewhere", y.affine_in_place(1.0, 1.0)),
        ("a read", x.to_vec().map(drop)),
        ("a copy", x.copy_to(&mut buffer)),
        ("an event", stream.record(&event)),
        ("a wait for an event", event.synchronize()),
        ("a graph", graph.launch()),
        ("a new stream", device.stream().map(drop)),
        ("a new event", device.event().map(drop)),
        ("a new gate", device.gate().map(drop)),
        ("a new host buffer", device.host_buffer::<f32>(host_kind(&device), 77).map(drop)),
        ("memory", stream.empty::<f32>([77]).map(drop)),
        ("no memory", stream.empty::<f32>([0]).map(drop)),
        ("a time", event.elapsed_since(&never).map(drop)),
        ("a trim", device.trim()),
        ("a question", other.is_complete().map(drop)),
        ("a wait for the stream", stream.synchronize()),
        ("a wait for the device", device.synchronize()),
    ];
    for (call, outcome) in later {
        ensure(outcome == cause, || format!("{call}: {outcome:?} in place of {cause:?}"))?;
    }
    // While the stream is held, in an order that has the gate go last.
    drop((buffer, graph, x, y, event, stream, other, device));
    drop(gate);
    Ok(())
}
