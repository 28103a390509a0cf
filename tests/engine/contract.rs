//! The contract of an engine where it is easily broken: other devices' objects, captures beside other calls, drops, failures
//! that spread, memory that is freed across streams. Each holds on every engine.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use libtest_mimic::Failed;
use syncscope::device::{Device, HostKind, Injected, MatmulPrecision, Stream};
use syncscope::error::DeviceError;
use syncscope::tensor::Tensor;

use crate::{Check, bare_launches, ensure};

pub(crate) const CHECKS: &[(&str, Check)] = &[
    ("objects_of_another_opened_device_are_refused", foreign_objects),
    ("every_operation_refuses_an_operand_of_another_stream", operands_of_another_stream),
    ("a_copy_of_nothing_is_refused_where_any_copy_is", copies_of_nothing),
    ("streams_end_while_tensors_live_that_they_used", streams_of_a_living_tensor),
    ("affine_is_rounded_once", fused),
    ("a_read_leaves_its_stream_complete", complete_after_reads),
    ("a_device_is_waited_for_while_a_stream_captures", device_wait_in_capture),
    ("a_bare_launch_loop_is_no_part_of_a_capture", bare_launches_in_capture),
    ("tensors_of_a_capturing_stream_are_dropped_on_another_thread", drops_beside_a_capture),
    ("other_threads_wait_and_drop_beside_captures", calls_beside_captures),
    ("a_host_buffer_is_dropped_while_its_copy_is_held", buffer_dropped_while_held),
    ("an_error_leaves_a_function_whose_stream_is_held", early_return),
    ("another_device_is_opened_used_and_dropped_beside_a_held_stream", second_device),
    ("a_recording_begins_and_is_given_up_beside_a_held_stream", recording_while_held),
    ("a_free_that_waits_for_a_held_stream_keeps_no_other_back", frees_of_their_own_streams),
    ("only_the_home_stream_reuses_what_it_freed_at_once", home_reuses),
    ("a_matmul_of_the_same_operands_on_two_streams_is_not_ordered", plans_of_two_streams),
    ("drops_beside_a_thread_that_is_stuck_in_a_full_queue_return", drops_beside_a_full_queue),
    ("a_trim_leaves_live_tensors_as_they_are", trim),
    ("threads_share_one_stream", shared_stream),
    ("a_large_read_is_whole_beside_writes_of_another_thread", read_beside_writes),
    ("threads_share_one_stream_and_its_graphs", shared_graph),
    ("a_gate_holds_where_the_driver_has_no_wait_for_it", polling_gate),
];

fn is_foreign<T>(outcome: Result<T, DeviceError>) -> bool {
    matches!(outcome, Err(DeviceError::ForeignObject { .. }))
}

/// Its elements may not be there yet: nothing is ordered between streams.
fn operands_of_another_stream(device: &Device) -> Result<(), Failed> {
    let (stream, other, gate) = (device.stream()?, device.stream()?, device.gate()?);
    let x = stream.ones::<f32>([4, 4])?;
    stream.synchronize()?;
    other.wait_gate(&gate)?;
    let (y, rows) = (other.full::<f32>([4, 4], 2.0)?, other.zeros::<i64>([4])?);
    let (nothing, none) = (stream.empty::<f32>([0, 4])?, other.empty::<f32>([0, 4])?);
    let outcomes = [
        ("matmul", x.matmul(&y).map(drop)),
        ("matmul_in", x.matmul_in(&y, MatmulPrecision::Full).map(drop)),
        ("matmul of nothing", nothing.matmul(&y).map(drop)),
        ("add", x.add(&y).map(drop)),
        ("subtract", x.subtract(&y).map(drop)),
        ("multiply", x.multiply(&y).map(drop)),
        ("gather", x.gather(&rows).map(drop)),
        ("stack", Tensor::stack(&[x.clone(), x.clone(), y.clone()]).map(drop)),
        ("assign", x.assign(&y)),
        ("assign of nothing", nothing.assign(&none)),
    ];
    for (operation, outcome) in outcomes {
        let refused = matches!(&outcome, Err(DeviceError::InvalidArgument { reason, .. })
            if reason.contains("`.on(&stream)`"));
        ensure(refused, || format!("{operation}: {outcome:?}"))?;
    }
    // As the error says.
    let event = device.event()?;
    other.record(&event)?;
    stream.wait(&event)?;
    let sum = x.add(&y.on(&stream)?)?.sum()?;
    gate.open();
    ensure(sum.item()? == 48.0, || "the operand was not waited for".to_owned())
}

fn copies_of_nothing(device: &Device) -> Result<(), Failed> {
    let other = Device::open(device.name())?;
    let stream = device.stream()?;
    let nothing = stream.empty::<f32>([0])?;
    let mut theirs = other.host_buffer::<f32>(HostKind::Pageable, 0)?;
    let foreign = [is_foreign(nothing.copy_from(&theirs)), is_foreign(nothing.copy_to(&mut theirs))];
    ensure(foreign == [true; 2], || format!("{foreign:?}"))?;
    let mut own = device.host_buffer::<f32>(HostKind::Pageable, 0)?;
    let (refused, _) = stream.capture(|| Ok([nothing.copy_from(&own), nothing.copy_to(&mut own)]))?;
    let captured = refused.iter().all(|outcome| matches!(outcome, Err(DeviceError::Capturing { .. })));
    ensure(captured, || format!("{refused:?}"))?;
    nothing.copy_to(&mut own)?;
    ensure(own.read()?.is_empty(), || "an empty buffer holds values".to_owned())
}

/// More than are made with a gate: behind one, the streams that are over are used again.
fn streams_of_a_living_tensor(device: &Device) -> Result<(), Failed> {
    const STREAMS: usize = 60;
    let (home, held, gate) = (device.stream()?, device.stream()?, device.gate()?);
    let x = home.ones::<f32>([64])?;
    home.synchronize()?;
    let used: Vec<_> = (0..STREAMS).map(|_| device.stream()).collect::<Result<_, _>>()?;
    for stream in &used {
        ensure(x.on(stream)?.sum()?.item()? == 64.0, || "a sum is wrong".to_owned())?;
    }
    drop(used);
    device.synchronize()?;
    held.wait_gate(&gate)?;
    let again: Vec<_> = (0..STREAMS).map(|_| device.stream()).collect::<Result<_, _>>()?;
    ensure(again.len() == STREAMS && x.get([63])?.item()? == 1.0, || "a tensor lost its values".to_owned())
}

/// The other device is the same hardware: two openings of one name are two devices.
fn foreign_objects(device: &Device) -> Result<(), Failed> {
    let other = Device::open(device.name())?;
    let (stream, theirs) = (device.stream()?, other.stream()?);
    let (event, gate) = (other.timing_event()?, other.gate()?);
    theirs.record(&event)?;
    let x = stream.ones::<f32>([4])?;
    let mut buffer = other.host_buffer::<f32>(HostKind::Pageable, 4)?;
    let own = device.timing_event()?;
    stream.record(&own)?;
    device.synchronize()?;
    other.synchronize()?;
    let refused = [
        is_foreign(stream.record(&event)),
        is_foreign(stream.wait(&event)),
        is_foreign(stream.wait(&other.event()?)),
        is_foreign(stream.wait_gate(&gate)),
        is_foreign(own.elapsed_since(&event)),
        is_foreign(x.copy_from(&buffer)),
        is_foreign(x.copy_to(&mut buffer)),
        is_foreign(x.add(&theirs.ones::<f32>([4])?)),
    ];
    ensure(refused.iter().all(|refused| *refused), || format!("{refused:?}"))
}

fn fused(device: &Device) -> Result<(), Failed> {
    // 1 + 2⁻¹² squared is 1 + 2⁻¹¹ + 2⁻²⁴, whose last bit a rounded product loses.
    let x = 1.0 + f32::EPSILON * 2048.0;
    let value = device.stream()?.full::<f32>([1], f64::from(x))?.affine(x, -1.0)?.item()?;
    let exact = x.mul_add(x, -1.0);
    ensure(value == exact && exact != x * x - 1.0, || format!("{value:e} in place of {exact:e}"))
}

/// The driver says for some microseconds more that the copy is pending.
fn complete_after_reads(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    let x = stream.ones::<f32>([64])?;
    let mut pending = [0; 4];
    for _ in 0..500 {
        let sum = x.sum()?;
        let mut ask = |read: usize| stream.is_complete().map(|is_complete| pending[read] += usize::from(!is_complete));
        sum.item()?;
        ask(0)?;
        x.any()?;
        ask(1)?;
        x.nonzero()?;
        ask(2)?;
        x.to_vec()?;
        ask(3)?;
    }
    ensure(pending == [0; 4], || format!("after item, any, nonzero and to_vec {pending:?} of 500 were pending"))
}

fn device_wait_in_capture(device: &Device) -> Result<(), Failed> {
    let (stream, other) = (device.stream()?, device.stream()?);
    let x = stream.ones::<f32>([64])?;
    let sum = other.ones::<f32>([64])?.sum()?;
    let (_, graph) = stream.capture(|| {
        x.affine_in_place(2.0, 0.0)?;
        device.synchronize()?;
        x.affine_in_place(2.0, 0.0)
    })?;
    ensure(other.is_complete()? && sum.item()? == 64.0, || "the other stream was not waited for".to_owned())?;
    ensure(x.get([0])?.item()? == 1.0, || "captured work ran".to_owned())?;
    graph.launch()?;
    ensure(x.get([63])?.item()? == 4.0, || "the capture was broken".to_owned())
}

fn bare_launches_in_capture(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    let live = stream.ones::<f32>([2048])?;
    let mut looped = None;
    let (_, graph) = stream.capture(|| {
        looped = Some(bare_launches(&stream, 3));
        Ok(())
    })?;
    let refused = matches!(
        looped,
        Some(Err(DeviceError::Capturing { call: "raw_launch_loop" } | DeviceError::NotApplicable { .. }))
    );
    ensure(refused, || format!("{looped:?}"))?;
    // What the loop would have used is free now, and soon this tensor's.
    let reused: Vec<_> = (0..4).map(|_| stream.ones::<f32>([2048])).collect::<Result<_, _>>()?;
    graph.launch()?;
    let whole = reused.iter().chain([&live]).map(|x| x.sum()?.item()).collect::<Result<Vec<_>, _>>()?;
    ensure(whole.iter().all(|sum| *sum == 2048.0), || format!("the graph wrote to live tensors: {whole:?}"))
}

/// Work on `guest` while it captures, and tensors that it used dropped by another thread meanwhile.
fn drops_beside_a_capture(device: &Device) -> Result<(), Failed> {
    let (home, guest) = (device.stream()?, device.stream()?);
    let y = guest.zeros::<f32>([256])?;
    for _ in 0..20 {
        let used: Vec<_> = (0..16).map(|_| home.ones::<f32>([256])).collect::<Result<_, _>>()?;
        home.synchronize()?;
        let guests: Vec<_> = used.iter().map(|x| x.on(&guest)).collect::<Result<_, _>>()?;
        guests.iter().try_for_each(|x| x.affine_in_place(1.0, 1.0))?;
        guest.synchronize()?;
        let graph = std::thread::scope(|scope| {
            let dropper = scope.spawn(move || drop((used, guests)));
            let captured = guest.capture(|| (0..50).try_for_each(|_| y.affine_in_place(1.0, 1.0)));
            dropper.join().map_err(|_| Failed::from("the dropping thread panicked"))?;
            Ok::<_, Failed>(captured?.1)
        })?;
        y.affine_in_place(0.0, 0.0)?;
        graph.launch()?;
        let value = y.get([255])?.item()?;
        ensure(graph.len() == 50 && value == 50.0, || format!("{graph:?} computed {value}"))?;
    }
    Ok(())
}

fn calls_beside_captures(device: &Device) -> Result<(), Failed> {
    let (captured, beside) = (device.stream()?, device.stream()?);
    let x = captured.zeros::<f32>([128])?;
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let beside = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let y = beside.ones::<f32>([128])?;
                // Refused while the stream captures, and else carried out; never half of either.
                match x.on(&captured)?.sum().and_then(|sum| sum.item()) {
                    Ok(_) | Err(DeviceError::Capturing { .. }) => {}
                    Err(other) => return Err(other),
                }
                device.synchronize()?;
                drop(y);
            }
            Ok(())
        });
        let work = || (0..8).try_for_each(|_| x.affine_in_place(1.0, 1.0));
        let outcome = (0..40).try_for_each(|_| captured.capture(work)?.1.launch());
        over.store(true, Ordering::Relaxed);
        beside.join().map_err(|_| Failed::from("the thread beside panicked"))??;
        Ok::<_, Failed>(outcome?)
    })?;
    let value = x.get([0])?.item()?;
    ensure(value == 320.0, || format!("{value} in place of 320"))
}

pub(crate) fn host_kind(device: &Device) -> HostKind {
    if device.properties().engine == "cpu" { HostKind::Pageable } else { HostKind::Pinned }
}

fn buffer_dropped_while_held(device: &Device) -> Result<(), Failed> {
    let (stream, gate) = (device.stream()?, device.gate()?);
    let x = stream.zeros::<f32>([1 << 14])?;
    let mut source = device.host_buffer::<f32>(host_kind(device), 1 << 14)?;
    let mut target = device.host_buffer::<f32>(host_kind(device), 1 << 14)?;
    source.write()?.fill(7.0);
    stream.wait_gate(&gate)?;
    x.copy_from(&source)?;
    x.copy_to(&mut target)?;
    drop((source, target));
    // The memory is in use: none of it is another buffer's.
    let other = device.host_buffer::<f32>(HostKind::Pageable, 1 << 14)?;
    ensure(other.read()?.iter().all(|x| *x == 0.0), || "a new buffer is not zero".to_owned())?;
    gate.open();
    let sum = x.sum()?.item()?;
    ensure(sum == 7.0 * (1 << 14) as f32, || format!("the copy lost its source: {sum}"))
}

/// The gate is declared first, so that it is dropped last: everything else is dropped while the stream is held.
fn early_return(device: &Device) -> Result<(), Failed> {
    fn leave(device: &Device) -> Result<(), DeviceError> {
        let gate = device.gate()?;
        let (stream, other) = (device.stream()?, device.stream()?);
        let mut buffer = device.host_buffer::<f32>(host_kind(device), 64)?;
        let x = stream.ones::<f32>([64])?;
        let event = device.event()?;
        stream.wait_gate(&gate)?;
        x.affine_in_place(2.0, 0.0)?;
        x.copy_to(&mut buffer)?;
        stream.record(&event)?;
        other.wait(&event)?;
        x.on(&other)?.affine_in_place(2.0, 0.0)?;
        let (_, graph) = other.capture(|| x.on(&other)?.affine_in_place(1.0, 1.0))?;
        graph.launch()?;
        Err(DeviceError::EventNotReady { reason: "scripted" })
    }
    ensure(leave(device).is_err(), || "the error was lost".to_owned())?;
    Ok(device.synchronize()?)
}

fn second_device(device: &Device) -> Result<(), Failed> {
    let (stream, gate) = (device.stream()?, device.gate()?);
    stream.wait_gate(&gate)?;
    let x = stream.ones::<f32>([8])?;
    {
        let second = Device::open(device.name())?;
        let theirs = second.stream()?;
        let sum = theirs.full::<f32>([1000], 2.0)?.sum()?.item()?;
        ensure(sum == 2000.0, || format!("the second device computed {sum}"))?;
        second.synchronize()?;
        second.trim()?;
    }
    ensure(!stream.is_complete()?, || "the gate was passed".to_owned())?;
    gate.open();
    ensure(x.sum()?.item()? == 8.0, || "the held work is wrong".to_owned())
}

fn recording_while_held(device: &Device) -> Result<(), Failed> {
    let (stream, gate) = (device.stream()?, device.gate()?);
    let x = stream.ones::<f32>([8])?;
    stream.wait_gate(&gate)?;
    let given_up = device.record::<(), DeviceError>(|| {
        x.affine_in_place(1.0, 1.0)?;
        Err(DeviceError::EventNotReady { reason: "scripted" })
    });
    ensure(given_up.is_err() && !stream.is_complete()?, || "the gate was passed".to_owned())?;
    let (_, timeline) = device.record(|| {
        x.affine_in_place(1.0, 1.0)?;
        gate.open();
        Ok::<_, DeviceError>(())
    })?;
    let calls = timeline.spans.iter().filter(|span| span.name == "affine" && !span.kind.is_on_device());
    ensure(calls.count() == 1, || format!("{timeline:#?}"))
}

/// Memory of two streams is freed while a third stream that used other memory is held: it comes back all the same.
fn frees_of_their_own_streams(device: &Device) -> Result<(), Failed> {
    let (home, guest, held, gate) = (device.stream()?, device.stream()?, device.stream()?, device.gate()?);
    let small = home.ones::<f32>([1024])?;
    home.synchronize()?;
    held.wait_gate(&gate)?;
    let late = small.on(&held)?.sum()?;
    drop(small);
    // A third of the device's memory, or 64 MiB where nobody knows how much there is, far more often than it fits.
    let len = device.properties().memory_bytes.map_or(1 << 24, |bytes| bytes as usize / 3 / 4);
    for _ in 0..6 {
        let large = home.empty::<f32>([len])?;
        let event = device.event()?;
        home.record(&event)?;
        guest.wait(&event)?;
        large.get([0])?.reshape([1])?.on(&guest)?.affine_in_place(0.0, 1.0)?;
        drop(large);
        guest.synchronize()?;
    }
    ensure(!held.is_complete()?, || "the gate was passed".to_owned())?;
    gate.open();
    ensure(late.item()? == 1024.0, || "the held stream read memory that was reused".to_owned())
}

fn home_reuses(device: &Device) -> Result<(), Failed> {
    let (home, guest, gate) = (device.stream()?, device.stream()?, device.gate()?);
    let x = home.full::<f32>([4096], 3.0)?;
    home.synchronize()?;
    guest.wait_gate(&gate)?;
    let read = x.on(&guest)?.sum()?;
    drop(x);
    // Were the guest's memory reused now, the guest would read these.
    for _ in 0..8 {
        home.full::<f32>([4096], 5.0)?;
        guest.full::<f32>([4096], 6.0)?;
    }
    home.synchronize()?;
    gate.open();
    let sum = read.item()?;
    ensure(sum == 3.0 * 4096.0, || format!("the guest read {sum}"))
}

/// Enqueued often enough on each stream to be launched by whatever an engine makes of a matmul that repeats.
fn plans_of_two_streams(device: &Device) -> Result<(), Failed> {
    let (one, other, gate) = (device.stream()?, device.stream()?, device.gate()?);
    let x = one.ones::<f32>([32, 32])?;
    one.synchronize()?;
    let product = |stream: &Stream| x.on(stream)?.matmul(&x.on(stream)?);
    for _ in 0..4 {
        product(&one)?;
        product(&other)?;
    }
    device.synchronize()?;
    one.wait_gate(&gate)?;
    let held = (0..3).map(|_| product(&one)).collect::<Result<Vec<_>, _>>()?;
    let sum = product(&other)?.get([31, 31])?.item()?;
    ensure(!one.is_complete()? && sum == 32.0, || format!("the other stream computed {sum}"))?;
    gate.open();
    held.iter().try_for_each(|y| {
        let value = y.get([0, 0])?.item()?;
        ensure(value == 32.0, || format!("the held stream computed {value}"))
    })
}

/// A queue has room for some thousand launches: a thread that launches more behind a gate is stuck. What other threads drop
/// meanwhile is dropped all the same, and the gate can be opened.
fn drops_beside_a_full_queue(device: &Device) -> Result<(), Failed> {
    let (stream, home, gate) = (device.stream()?, device.stream()?, device.gate()?);
    let x = stream.zeros::<f32>([16])?;
    let used: Vec<_> = (0..32).map(|_| home.ones::<f32>([512])).collect::<Result<_, _>>()?;
    home.synchronize()?;
    used.iter().try_for_each(|tensor| tensor.on(&stream)?.affine_in_place(1.0, 1.0))?;
    let own: Vec<_> = (0..32).map(|_| stream.ones::<f32>([512])).collect::<Result<_, _>>()?;
    let (_, graph) = stream.capture(|| own[0].affine_in_place(1.0, 1.0))?;
    stream.wait_gate(&gate)?;
    let launched = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let launcher = scope.spawn(|| {
            (0..3000).try_for_each(|_| {
                x.affine_in_place(1.0, 1.0)?;
                launched.fetch_add(1, Ordering::Relaxed);
                Ok::<_, DeviceError>(())
            })
        });
        // Until the launcher is stuck, or through.
        let mut seen = usize::MAX;
        while launched.load(Ordering::Relaxed) != seen && seen != 3000 {
            seen = launched.load(Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(20));
        }
        drop((used, own, graph));
        gate.open();
        launcher.join().map_err(|_| Failed::from("the launching thread panicked"))??;
        Ok::<_, Failed>(())
    })?;
    let value = x.get([0])?.item()?;
    ensure(value == 3000.0, || format!("{value} in place of 3000"))
}

fn trim(device: &Device) -> Result<(), Failed> {
    let (stream, gate) = (device.stream()?, device.gate()?);
    let x = stream.full::<f32>([1 << 16], 2.0)?;
    drop(stream.zeros::<f32>([1 << 20])?);
    drop(device.host_buffer::<f32>(host_kind(device), 1 << 16)?);
    device.trim()?;
    stream.wait_gate(&gate)?;
    let sum = x.sum()?;
    drop(stream.zeros::<f32>([1 << 16])?);
    device.trim()?;
    gate.open();
    ensure(sum.item()? == 2.0 * (1 << 16) as f32, || "a trim took memory that is in use".to_owned())?;
    device.trim()?;
    let again = stream.tensor(&[1.5_f32], [1])?.item()?;
    ensure(again == 1.5, || format!("{again} after a trim"))
}

/// Each write is one call, so that a read finds all elements alike.
fn read_beside_writes(device: &Device) -> Result<(), Failed> {
    const READS: usize = 10;
    for len in [1 << 19, 1 << 22] {
        let stream = device.stream()?;
        let (x, ones, twos) = (stream.ones::<f32>([len])?, stream.ones::<f32>([len])?, stream.full::<f32>([len], 2.0)?);
        let (over, written) = (AtomicBool::new(false), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            let writes = scope.spawn(|| {
                for values in [&ones, &twos].into_iter().cycle().take_while(|_| !over.load(Ordering::Relaxed)) {
                    x.assign(values)?;
                    written.fetch_add(1, Ordering::Relaxed);
                    // So that a read meets one of them, and not a queue full.
                    stream.synchronize()?;
                }
                Ok::<_, DeviceError>(())
            });
            let read = (0..READS).try_for_each(|_| {
                let before = written.load(Ordering::Relaxed);
                while written.load(Ordering::Relaxed) == before && !writes.is_finished() {
                    std::thread::yield_now();
                }
                let values = x.to_vec()?;
                let other = values.iter().position(|value| *value != values[0]);
                ensure(other.is_none(), || format!("of {len} elements {other:?} is another than the first"))
            });
            over.store(true, Ordering::Relaxed);
            writes.join().map_err(|_| Failed::from("the writing thread panicked"))??;
            read
        })?;
    }
    Ok(())
}

fn shared_stream(device: &Device) -> Result<(), Failed> {
    const THREADS: u8 = 4;
    let stream = device.stream()?;
    let add = |thread: u8| -> Result<f32, DeviceError> {
        let x = stream.full::<f32>([512], f64::from(thread))?;
        for round in 0..50 {
            x.affine_in_place(1.0, 1.0)?;
            let copy = stream.tensor(&[f32::from(thread)], [1])?;
            if round % 10 == 0 {
                copy.item()?;
                stream.zeros::<f32>([512])?.to_vec()?;
            }
        }
        x.get([511])?.item()
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|thread| (thread, scope.spawn(move || add(thread)))).collect();
        threads.into_iter().try_for_each(|(thread, joined)| {
            let value = joined.join().map_err(|_| "a thread panicked")??;
            ensure(value == f32::from(thread) + 50.0, || format!("thread {thread} got {value}"))
        })
    })
}

fn shared_graph(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    let x = stream.zeros::<f32>([64])?;
    let (_, graph) = stream.capture(|| (0..5).try_for_each(|_| x.affine_in_place(1.0, 1.0)))?;
    let launches = |_: usize| -> Result<(), DeviceError> { (0..20).try_for_each(|_| graph.launch()) };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|thread| scope.spawn(move || launches(thread))).collect();
        threads.into_iter().try_for_each(|joined| Ok::<_, Failed>(joined.join().map_err(|_| "a thread panicked")??))
    })?;
    let value = x.get([0])?.item()?;
    ensure(value == 300.0, || format!("{value} in place of 300"))
}

fn polling_gate(device: &Device) -> Result<(), Failed> {
    device.inject(Injected::StreamWait, 1);
    let (stream, gate): (Stream, _) = (device.stream()?, device.gate()?);
    let x = stream.ones::<f32>([16])?;
    stream.wait_gate(&gate)?;
    x.affine_in_place(2.0, 0.0)?;
    // As long as a kernel that did not wait would take to be seen.
    std::thread::sleep(Duration::from_millis(20));
    ensure(!stream.is_complete()?, || "the gate did not hold".to_owned())?;
    gate.open();
    ensure(x.sum()?.item()? == 32.0, || "the work behind the gate is wrong".to_owned())
}
