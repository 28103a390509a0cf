//! What is ordered, what blocks and what does not. Orders are forced with gates, never with sleeps.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use libtest_mimic::Failed;
use syncscope::device::{Device, HostKind};
use syncscope::error::DeviceError;
use syncscope::tensor::Tensor;

use crate::{Check, ensure};

pub(crate) const CHECKS: &[(&str, Check)] = &[
    ("enqueueing_returns_while_the_stream_is_held", enqueueing_returns),
    ("a_read_blocks_until_the_gate_opens", |d| blocks(d, |x| x.item().map(|v| v == 2.0))),
    ("printing_blocks_until_the_gate_opens", |d| blocks(d, |x| Ok(x.to_string() == "2.0"))),
    ("any_blocks_until_the_gate_opens", |d| blocks(d, |x| x.any())),
    ("nonzero_blocks_until_the_gate_opens", |d| blocks(d, |x| Ok(x.reshape([1])?.nonzero()?.to_vec()? == [0]))),
    ("a_stream_synchronize_waits_for_its_stream", |d| blocks(d, |x| x.stream().synchronize().map(|()| true))),
    ("a_device_synchronize_waits_for_every_stream", |d| {
        blocks(d, |x| x.stream().device().synchronize().map(|()| true))
    }),
    ("a_stream_synchronize_leaves_other_streams_pending", scope_of_a_stream),
    ("an_event_orders_two_streams", an_event_orders),
    ("a_wait_keeps_the_mark_it_was_enqueued_with", a_wait_keeps_its_mark),
    ("an_event_time_holds_the_spin_between", event_time),
    ("an_event_never_reached_has_no_time", no_time),
    ("nothing_comes_between_the_parts_of_a_stack", parts_of_a_stack),
    ("a_dropped_gate_is_open", dropped_gate),
    ("dropping_a_stream_does_not_drop_its_work", dropped_stream),
    ("memory_outlives_its_use_on_another_stream", memory_outlives),
    ("host_buffers_carry_values_both_ways", host_buffers),
    ("reading_a_host_buffer_waits_for_the_copy_into_it", buffer_read_waits),
    ("pinned_memory_is_refused_where_it_has_no_meaning", pinned),
    ("two_devices_do_not_mix", foreign),
];

type Scalar = syncscope::tensor::Tensor<f32>;

fn enqueueing_returns(device: &Device) -> Result<(), Failed> {
    let (stream, gate) = (device.stream()?, device.gate()?);
    let warm = stream.ones::<f32>([8, 8])?;
    warm.matmul(&warm)?.sum()?.item()?;
    stream.wait_gate(&gate)?;
    let x = stream.ones::<f32>([8, 8])?;
    let sum = x.matmul(&x)?.add_scalar(1.0)?.sum()?;
    ensure(!stream.is_complete()?, || "work went past a closed gate".to_owned())?;
    gate.open();
    let sum = sum.item()?;
    ensure(sum == 64.0 * 9.0, || format!("the sum is {sum}"))
}

/// `read` is called on a held stream in a thread of its own: it must not come back before the gate opens. The reader
/// says that it is about to read; that it then stays away for a while shows that it blocks, and a reader that does
/// not block is caught unless the machine stops it for just that while.
fn blocks(device: &Device, read: fn(&Scalar) -> Result<bool, syncscope::error::DeviceError>) -> Result<(), Failed> {
    let (stream, gate) = (device.stream()?, device.gate()?);
    ensure(read(&stream.full::<f32>([], 2.0)?)?, || "the read is wrong with nothing pending".to_owned())?;
    stream.wait_gate(&gate)?;
    let x = stream.full::<f32>([], 2.0)?;
    let (about, began) = mpsc::channel();
    let (done, returned) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        let _ = about.send(());
        let _ = done.send(read(&x));
    });
    began.recv()?;
    let early = returned.recv_timeout(Duration::from_millis(50)).is_ok();
    gate.open();
    ensure(!early, || "the call came back while its stream was held".to_owned())?;
    let value = returned.recv()??;
    reader.join().map_err(|_| "the reader panicked")?;
    ensure(value, || "the value is wrong".to_owned())
}

fn scope_of_a_stream(device: &Device) -> Result<(), Failed> {
    let (held, free, gate) = (device.stream()?, device.stream()?, device.gate()?);
    held.wait_gate(&gate)?;
    held.ones::<f32>([4])?;
    let x = free.ones::<f32>([4])?.sum()?;
    free.synchronize()?;
    let pending = !held.is_complete()?;
    let value = x.item()?;
    gate.open();
    ensure(pending, || "the held stream was complete".to_owned())?;
    ensure(value == 4.0, || format!("the free stream computed {value}"))?;
    held.synchronize()?;
    ensure(held.is_complete()?, || "not complete after a synchronize".to_owned())
}

fn an_event_orders(device: &Device) -> Result<(), Failed> {
    let (producer, consumer, gate) = (device.stream()?, device.stream()?, device.gate()?);
    let shared = producer.zeros::<f32>([1000])?;
    producer.synchronize()?;
    producer.wait_gate(&gate)?;
    shared.assign(&producer.full::<f32>([1000], 7.0)?)?;
    let event = device.event()?;
    producer.record(&event)?;
    consumer.wait(&event)?;
    let sum = shared.on(&consumer)?.sum()?;
    ensure(!event.is_complete()? && !consumer.is_complete()?, || "the order was not kept".to_owned())?;
    gate.open();
    let sum = sum.item()?;
    ensure(sum == 7000.0, || format!("the consumer saw a sum of {sum}"))
}

fn a_wait_keeps_its_mark(device: &Device) -> Result<(), Failed> {
    let (first, second, gate) = (device.stream()?, device.stream()?, device.gate()?);
    let event = device.event()?;
    first.record(&event)?;
    second.wait(&event)?;
    first.wait_gate(&gate)?;
    first.record(&event)?;
    second.synchronize()?;
    let held = !event.is_complete()?;
    gate.open();
    event.synchronize()?;
    ensure(held, || "the second recording went past the gate".to_owned())
}

fn event_time(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    let (start, end) = (device.timing_event()?, device.timing_event()?);
    stream.spin(Duration::from_micros(10))?;
    stream.record(&start)?;
    stream.spin(Duration::from_millis(5))?;
    stream.record(&end)?;
    end.synchronize()?;
    let time = end.elapsed_since(&start)?;
    ensure(time >= Duration::from_micros(4_900), || format!("a spin of 5 ms took {time:?}"))
}

fn no_time(device: &Device) -> Result<(), Failed> {
    let (stream, gate) = (device.stream()?, device.gate()?);
    let (start, end, plain) = (device.timing_event()?, device.timing_event()?, device.event()?);
    ensure(end.elapsed_since(&start).is_err(), || "a time between events never recorded".to_owned())?;
    stream.record(&start)?;
    stream.record(&plain)?;
    stream.wait_gate(&gate)?;
    stream.record(&end)?;
    let pending = end.elapsed_since(&start).is_err();
    gate.open();
    stream.synchronize()?;
    ensure(pending, || "a time up to an event that is pending".to_owned())?;
    ensure(end.elapsed_since(&start).is_ok(), || "no time between reached events".to_owned())?;
    ensure(plain.elapsed_since(&start).is_err(), || "a time of an event without timing".to_owned())
}

/// Of one tensor, which another thread changes as a whole.
fn parts_of_a_stack(device: &Device) -> Result<(), Failed> {
    const STACKS: usize = 3000;
    let stream = device.stream()?;
    let (x, over) = (stream.zeros::<f32>([1])?, AtomicBool::new(false));
    thread::scope(|scope| {
        let changes = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                x.affine_in_place(1.0, 1.0)?;
                thread::yield_now();
            }
            Ok::<_, DeviceError>(())
        });
        let stacked = (0..STACKS).try_for_each(|_| {
            let values = Tensor::stack(&[x.clone(), x.clone(), x.clone()])?.to_vec()?;
            ensure(values.iter().all(|value| *value == values[0]), || format!("{values:?}"))
        });
        over.store(true, Ordering::Relaxed);
        changes.join().map_err(|_| "the changing thread panicked")??;
        stacked
    })
}

fn dropped_gate(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    let gate = device.gate()?;
    let copy = gate.clone();
    stream.wait_gate(&gate)?;
    drop(gate);
    ensure(!stream.is_complete()?, || "a clone was still there, yet the gate opened".to_owned())?;
    drop(copy);
    stream.synchronize()?;
    Ok(())
}

fn dropped_stream(device: &Device) -> Result<(), Failed> {
    let (stream, gate, event) = (device.stream()?, device.gate()?, device.event()?);
    stream.wait_gate(&gate)?;
    stream.record(&event)?;
    drop(stream);
    let pending = !event.is_complete()?;
    gate.open();
    event.synchronize()?;
    ensure(pending, || "the event was reached before the gate opened".to_owned())
}

/// The tensor's last handle goes while another stream has yet to read it; new tensors then want its memory.
fn memory_outlives(device: &Device) -> Result<(), Failed> {
    let (home, other, gate) = (device.stream()?, device.stream()?, device.gate()?);
    let x = home.full::<f32>([1 << 20], 3.0)?;
    home.synchronize()?;
    other.wait_gate(&gate)?;
    let sum = x.on(&other)?.sum()?;
    drop(x);
    for _ in 0..8 {
        home.full::<f32>([1 << 20], 5.0)?;
    }
    home.synchronize()?;
    gate.open();
    let sum = sum.item()?;
    ensure(sum == 3.0 * (1 << 20) as f32, || format!("the reader saw reused memory: {sum}"))
}

fn host_buffers(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    let kinds: &[HostKind] = match device.properties().engine {
        "cpu" => &[HostKind::Pageable],
        _ => &[HostKind::Pageable, HostKind::Pinned, HostKind::WriteCombined],
    };
    for &kind in kinds {
        let mut buffer = device.host_buffer::<f32>(kind, 100_000)?;
        ensure(buffer.read()?.iter().all(|x| *x == 0.0), || format!("{kind} memory is not zeroed"))?;
        buffer.write()?.iter_mut().zip(0..).for_each(|(x, i)| *x = i as f32);
        let x = stream.empty::<f32>([100_000])?;
        x.copy_from(&buffer)?;
        buffer.write()?.fill(-1.0);
        x.add_scalar(1.0)?.copy_to(&mut buffer)?;
        let good = buffer.read()?.iter().zip(1..).all(|(x, i)| *x == i as f32);
        ensure(good, || format!("{kind} memory lost values"))?;
        let wrong = x.copy_to(&mut device.host_buffer::<f32>(kind, 7)?);
        ensure(wrong.is_err(), || "a buffer of another size was taken".to_owned())?;
    }
    Ok(())
}

fn buffer_read_waits(device: &Device) -> Result<(), Failed> {
    // Pageable memory on CUDA: the copy call itself blocks, so that no gate may stand before it.
    let kind = if device.properties().engine == "cpu" { HostKind::Pageable } else { HostKind::Pinned };
    let (stream, gate) = (device.stream()?, device.gate()?);
    let mut buffer = device.host_buffer::<f32>(kind, 16)?;
    stream.wait_gate(&gate)?;
    stream.full::<f32>([16], 4.0)?.copy_to(&mut buffer)?;
    let (done, returned) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        let _ = done.send(buffer.read().map(|values| values.to_vec()));
    });
    let early = returned.recv_timeout(Duration::from_millis(50)).is_ok();
    gate.open();
    let values = returned.recv()??;
    reader.join().map_err(|_| "the reader panicked")?;
    ensure(!early, || "the read came back before the copy".to_owned())?;
    ensure(values == [4.0; 16], || format!("{values:?}"))
}

fn pinned(device: &Device) -> Result<(), Failed> {
    let result = device.host_buffer::<f32>(HostKind::Pinned, 4);
    match device.properties().engine {
        "cpu" => {
            let message = result.err().map(|e| e.to_string()).unwrap_or_default();
            ensure(message.contains("has no meaning on cpu:0"), || format!("`{message}`"))
        }
        _ => ensure(result.is_ok(), || "pinned memory was refused".to_owned()),
    }
}

fn foreign(device: &Device) -> Result<(), Failed> {
    let other = Device::open("cpu:1")?.stream()?;
    let x = device.stream()?.ones::<f32>([2])?;
    ensure(x.on(&other).is_err(), || "a tensor moved to a stream of another device".to_owned())?;
    ensure(x.add(&other.ones::<f32>([2])?).is_err(), || "tensors of two devices were added".to_owned())
}
