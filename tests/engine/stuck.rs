//! A thread that waits behind a gate keeps no other from what does not wait: else the thread that is to open the gate could
//! never do so.
//!
//! On an engine whose queues are never full the threads here go through. A call that waits for the gate after all fails its
//! test once nothing could have taken so long; the gate is then opened.

use std::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use libtest_mimic::Failed;
use syncscope::device::{Device, Gate, HostKind, Stream};
use syncscope::error::DeviceError;

use crate::contract::host_kind;
use crate::{Check, bare_launches, ensure};

pub(crate) const CHECKS: &[(&str, Check)] = &[
    ("a_copy_from_a_buffer_is_enqueued_while_a_thread_waits_for_one_into_it", copy_beside_a_read),
    ("a_copy_from_a_buffer_is_enqueued_beside_one_that_waits_for_room", copy_beside_a_stuck_copy),
    ("calls_on_a_held_stream_go_on_beside_a_copy_of_pageable_memory", calls_beside_a_pageable_copy),
    ("a_copy_of_pageable_memory_ends_beside_a_busy_thread_on_its_stream", pageable_copy_on_a_busy_stream),
    ("drops_beside_a_first_product_return", drops_beside_a_first_product),
    ("a_forgotten_slice_leaves_its_buffer_to_others", forgotten_slices),
    ("questions_are_answered_while_a_thread_waits_for_room", questions),
    ("an_event_is_asked_and_waited_for_while_a_thread_waits_to_record_it", event_beside_its_record),
    ("an_allocation_returns_beside_a_held_stream_with_a_full_queue", allocation_beside_a_full_queue),
    ("whatever_waits_for_room_in_a_queue_keeps_nothing_else_waiting", any_call_that_waits_for_room),
    ("reads_of_a_held_stream_leave_room_to_those_of_others", reads_of_a_held_stream),
    ("uploads_behind_a_gate_return_and_carry_their_values", uploads_behind_a_gate),
    ("objects_made_behind_a_gate_are_made_or_refused", objects_behind_a_gate),
    ("streams_and_captures_behind_a_gate_are_made_or_refused", streams_behind_a_gate),
    ("two_threads_have_streams_wait_for_one_gate_beside_a_wait_for_the_device", one_gate_of_two_threads),
    ("gates_and_captures_begin_beside_waits_for_the_whole_device", gates_beside_waits),
];

/// Longer than any call takes that waits for nothing.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// More than fit into a stream's queue.
const MANY: usize = 3000;

/// What `call` returns while `gate` is closed.
#[track_caller]
pub(crate) fn returns<R: Send>(gate: &Gate, call: impl FnOnce() -> R + Send) -> Result<R, Failed> {
    let place = Location::caller();
    thread::scope(|scope| {
        let (done, returned) = mpsc::channel();
        scope.spawn(move || done.send(call()));
        returned.recv_timeout(LONG).map_err(|_| {
            gate.open();
            Failed::from(format!("the call at {place} waited for the gate"))
        })
    })
}

/// Runs `meanwhile` once a thread that makes `count` calls is stuck in one of them, or through; then opens the gate.
fn beside_a_stuck_thread<R>(
    gate: &Gate,
    count: usize,
    call: impl Fn() -> Result<(), DeviceError> + Sync,
    meanwhile: impl FnOnce() -> Result<R, Failed>,
) -> Result<R, Failed> {
    let made = AtomicUsize::new(0);
    thread::scope(|scope| {
        let calls = scope.spawn(|| {
            (0..count).try_for_each(|_| {
                call()?;
                made.fetch_add(1, Ordering::Relaxed);
                Ok::<_, DeviceError>(())
            })
        });
        let mut seen = usize::MAX;
        while made.load(Ordering::Relaxed) != seen && seen != count && !calls.is_finished() {
            seen = made.load(Ordering::Relaxed);
            thread::sleep(Duration::from_millis(50));
        }
        let outcome = meanwhile();
        gate.open();
        calls.join().map_err(|_| Failed::from("the thread that makes calls panicked"))??;
        outcome
    })
}

/// Runs `meanwhile` while another thread sees to it that `stream` always has work.
pub(crate) fn beside_a_busy_stream<R>(
    stream: &Stream,
    meanwhile: impl FnOnce() -> Result<R, Failed>,
) -> Result<R, Failed> {
    let (over, begun) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let works = scope.spawn(|| {
            let events = (0..16).map(|_| stream.device().event()).collect::<Result<Vec<_>, _>>()?;
            for (event, oldest) in events.iter().cycle().zip(events.iter().cycle().skip(1)) {
                stream.spin(Duration::from_millis(2))?;
                stream.record(event)?;
                begun.store(true, Ordering::Relaxed);
                oldest.synchronize()?;
                if over.load(Ordering::Relaxed) {
                    break;
                }
            }
            Ok::<_, DeviceError>(())
        });
        while !begun.load(Ordering::Relaxed) && !works.is_finished() {
            thread::yield_now();
        }
        let outcome = meanwhile();
        over.store(true, Ordering::Relaxed);
        works.join().map_err(|_| Failed::from("the thread that keeps the stream busy panicked"))??;
        outcome
    })
}

fn copy_beside_a_read(device: &Device) -> Result<(), Failed> {
    let (stream, other, gate) = (device.stream()?, device.stream()?, device.gate()?);
    let mut buffer = device.host_buffer::<f32>(host_kind(device), 8)?;
    let (x, y) = (stream.full::<f32>([8], 3.0)?, other.zeros::<f32>([8])?);
    device.synchronize()?;
    stream.wait_gate(&gate)?;
    x.copy_to(&mut buffer)?;
    thread::scope(|scope| {
        let (about, began) = mpsc::channel();
        let buffer = &buffer;
        let reader = scope.spawn(move || {
            let _ = about.send(());
            buffer.read().map(|values| values.to_vec())
        });
        began.recv()?;
        // As long as it takes to stand in the wait. One that stands there later makes the test easier.
        thread::sleep(Duration::from_millis(50));
        let copied = returns(&gate, || y.copy_from(buffer));
        gate.open();
        let read = reader.join().map_err(|_| "the reader panicked")??;
        copied??;
        ensure(read == [3.0; 8], || format!("{read:?}"))
    })
}

fn copy_beside_a_stuck_copy(device: &Device) -> Result<(), Failed> {
    let (stream, other, gate) = (device.stream()?, device.stream()?, device.gate()?);
    let mut buffer = device.host_buffer::<f32>(host_kind(device), 16)?;
    buffer.write()?.fill(5.0);
    let (x, y) = (stream.zeros::<f32>([16])?, other.zeros::<f32>([16])?);
    device.synchronize()?;
    stream.wait_gate(&gate)?;
    let read = beside_a_stuck_thread(
        &gate,
        MANY,
        || x.copy_from(&buffer),
        || returns(&gate, || y.copy_from(&buffer).and_then(|()| y.to_vec())),
    )??;
    ensure(read == [5.0; 16] && x.to_vec()? == [5.0; 16], || format!("{read:?}"))?;
    buffer.write()?.fill(6.0);
    Ok(())
}

/// The copy may wait in its call; what others enqueue on the stream, or ask of it, does not wait with it.
fn calls_beside_a_pageable_copy(device: &Device) -> Result<(), Failed> {
    const LARGE: usize = 1 << 20;
    for (copy, len) in [("copy_to", 64), ("copy_to", LARGE), ("copy_from", 64), ("copy_from", LARGE), ("tensor", LARGE)]
    {
        let (stream, gate, event) = (device.stream()?, device.gate()?, device.event()?);
        let mut buffer = device.host_buffer::<f32>(HostKind::Pageable, len)?;
        buffer.write()?.fill(3.0);
        let (values, x, y) = (vec![3.0; len], stream.full::<f32>([len], 3.0)?, stream.zeros::<f32>([16])?);
        drop((stream.empty::<i64>([5])?, stream.empty::<f32>([len])?));
        device.synchronize()?;
        stream.wait_gate(&gate)?;
        let copied = thread::scope(|scope| {
            let (about, began) = mpsc::channel();
            let (stream, x, values, target) = (&stream, &x, &values, &mut buffer);
            let copying = scope.spawn(move || {
                let _ = about.send(());
                match copy {
                    "copy_to" => x.copy_to(target).map(|()| x.clone()),
                    "copy_from" => x.copy_from(target).map(|()| x.clone()),
                    _ => stream.tensor(values, [len]),
                }
            });
            began.recv()?;
            // As long as it takes to stand in the call. One that stands there later makes the test easier.
            thread::sleep(Duration::from_millis(50));
            let enqueued = returns(&gate, || {
                let uploaded = stream.tensor(&[1i64, 2, 3, 4, 5], [5])?;
                y.affine_in_place(1.0, 1.0)?;
                stream.record(&event)?;
                stream.is_complete()?;
                Ok::<_, DeviceError>(uploaded)
            });
            gate.open();
            let copied = copying.join().map_err(|_| "the copying thread panicked")??;
            let enqueued = enqueued.map_err(|failed| format!("beside `{copy}`: {:?}", failed.message()))?;
            let read = (enqueued?.to_vec()?, y.to_vec()?);
            ensure(read == (vec![1, 2, 3, 4, 5], vec![1.0; 16]), || format!("beside `{copy}`: {read:?}"))?;
            Ok::<_, Failed>(copied)
        })?;
        let arrived = copied.to_vec()? == values && *buffer.read()? == values;
        ensure(arrived, || format!("`{copy}` of {len} elements lost values"))?;
    }
    Ok(())
}

/// A gate holds a stream that has nothing to do with the copy.
fn pageable_copy_on_a_busy_stream(device: &Device) -> Result<(), Failed> {
    const LEN: usize = 1 << 20;
    let (stream, held, gate) = (device.stream()?, device.stream()?, device.gate()?);
    let mut buffer = device.host_buffer::<f32>(HostKind::Pageable, LEN)?;
    let (values, x) = (vec![3.0f32; LEN], stream.full::<f32>([LEN], 3.0)?);
    device.synchronize()?;
    held.wait_gate(&gate)?;
    let copied = beside_a_busy_stream(&stream, || {
        returns(&gate, || x.copy_to(&mut buffer))??;
        returns(&gate, || x.copy_from(&buffer))??;
        Ok(returns(&gate, || stream.tensor(&values, [LEN]))??)
    })?;
    gate.open();
    let arrived = copied.to_vec()? == values && x.to_vec()? == values && *buffer.read()? == values;
    ensure(arrived, || "values were lost".to_owned())
}

/// A first product may wait for a gate: what it loads and makes can wait for the whole device. Pending uploads have the pinned
/// memory that there is, so that it could want more.
fn drops_beside_a_first_product(device: &Device) -> Result<(), Failed> {
    let (stream, held, busy) = (device.stream()?, device.stream()?, device.stream()?);
    let (a, b) = (stream.ones::<f32>([129, 131])?, stream.ones::<f32>([131, 133])?);
    let (kept, values) = (busy.ones::<f32>([3])?, vec![1.0f32; 16 << 10]);
    device.synchronize()?;
    let (gate, others) = (device.gate()?, (0..100).map(|_| device.gate()).collect::<Result<Vec<_>, _>>()?);
    busy.spin(Duration::from_secs(1))?;
    let pending = (0..16).map(|_| busy.tensor(&values, [16 << 10])).collect::<Result<Vec<_>, _>>()?;
    held.wait_gate(&gate)?;
    let is_over = AtomicBool::new(false);
    let product = || {
        let outcome = a.matmul(&b).map(drop);
        is_over.store(true, Ordering::Relaxed);
        outcome
    };
    beside_a_stuck_thread(&gate, 1, product, || {
        returns(&gate, || drop(kept))?;
        // One after the other, wherever the search is.
        others.into_iter().take_while(|_| !is_over.load(Ordering::Relaxed)).try_for_each(|other| {
            thread::sleep(Duration::from_millis(10));
            returns(&gate, || drop(other))
        })
    })?;
    drop(pending);
    let value = a.matmul(&b)?.get([128, 132])?.item()?;
    ensure(value == 131.0, || format!("{value}"))
}

fn forgotten_slices(device: &Device) -> Result<(), Failed> {
    let (stream, gate) = (device.stream()?, device.gate()?);
    let mut buffer = device.host_buffer::<f32>(host_kind(device), 8)?;
    let x = stream.ones::<f32>([8])?;
    let read = returns(&gate, || {
        let mut slice = buffer.write()?;
        slice[3] = 4.0;
        std::mem::forget(slice);
        std::mem::forget(buffer.read()?);
        x.copy_from(&buffer)?;
        let copied = x.to_vec()?;
        x.add_scalar(1.0)?.copy_to(&mut buffer)?;
        let back = buffer.read()?.to_vec();
        buffer.write()?.fill(9.0);
        Ok::<_, DeviceError>((copied, back))
    })??;
    let (mut copied, mut back) = ([0.0; 8], [1.0; 8]);
    (copied[3], back[3]) = (4.0, 5.0);
    ensure(read == (copied.to_vec(), back.to_vec()), || format!("{read:?}"))
}

fn questions(device: &Device) -> Result<(), Failed> {
    let (stream, other, gate) = (device.stream()?, device.stream()?, device.gate()?);
    let (start, end) = (device.timing_event()?, device.timing_event()?);
    let x = stream.zeros::<f32>([16])?;
    stream.record(&start)?;
    stream.record(&end)?;
    device.synchronize()?;
    stream.wait_gate(&gate)?;
    let launch = || x.affine_in_place(1.0, 1.0);
    let answers = beside_a_stuck_thread(&gate, MANY, launch, || {
        returns(&gate, || {
            let answers = (stream.is_complete()?, start.is_complete()?);
            other.wait(&end)?;
            end.elapsed_since(&start)?;
            Ok::<_, DeviceError>((answers, other.ones::<f32>([9])?.sum()?.item()?))
        })
    })??;
    ensure(answers == ((false, true), 9.0), || format!("{answers:?}"))?;
    stream.synchronize()?;
    ensure(stream.is_complete()?, || "a stream is not complete after a wait for it".to_owned())
}

fn event_beside_its_record(device: &Device) -> Result<(), Failed> {
    let (stream, other, gate) = (device.stream()?, device.stream()?, device.gate()?);
    let (event, start) = (device.timing_event()?, device.timing_event()?);
    other.record(&start)?;
    other.record(&event)?;
    device.synchronize()?;
    stream.wait_gate(&gate)?;
    let third = device.stream()?;
    let record = || stream.record(&event);
    let complete = beside_a_stuck_thread(&gate, MANY, record, || {
        returns(&gate, || {
            let complete = event.is_complete()?;
            let _ = event.elapsed_since(&start);
            third.wait(&event)?;
            Ok::<_, DeviceError>(complete)
        })
    })??;
    ensure(!complete, || "an event was complete whose record is held".to_owned())?;
    event.synchronize()?;
    Ok(device.synchronize()?)
}

/// Filled up to each of the last entries: what is put behind the launches finds room or waits for none.
fn allocation_beside_a_full_queue(device: &Device) -> Result<(), Failed> {
    const DEPTH: usize = 1024;
    for free in 0..6 {
        let (stream, other, gate) = (device.stream()?, device.stream()?, device.gate()?);
        let (guest, x) = (other.ones::<f32>([512])?, stream.zeros::<f32>([16])?);
        device.synchronize()?;
        stream.wait_gate(&gate)?;
        guest.on(&stream)?.affine_in_place(1.0, 1.0)?;
        // Beside the gate and that launch.
        let count = DEPTH - 2 - free;
        beside_a_stuck_thread(
            &gate,
            count,
            || x.affine_in_place(1.0, 1.0),
            || {
                drop(guest);
                returns(&gate, || {
                    let sum = other.ones::<f32>([12_345])?.sum()?.item()?;
                    device.trim()?;
                    ensure(sum == 12_345.0, || format!("{sum}"))
                        .map_err(|_| DeviceError::EventNotReady { reason: "sum" })
                })?
                .map_err(Failed::from)
            },
        )?;
        let value = x.get([0])?.item()?;
        ensure(value == count as f32, || format!("{value} in place of {count}"))?;
    }
    Ok(())
}

/// What a stream can be told last, when its queue is full or nearly so.
const LAST: [&str; 5] = ["launch", "pageable copy", "large upload", "second gate", "bare launches"];

fn any_call_that_waits_for_room(device: &Device) -> Result<(), Failed> {
    const DEPTH: usize = 1024;
    const LEN: usize = 100_000;
    // An engine whose queue is its lowest level has no bare launches.
    let has_bare = bare_launches(&device.stream()?, 1).is_ok();
    let lasts = LAST.into_iter().filter(|last| has_bare || *last != "bare launches");
    for (last, free) in lasts.flat_map(|last| [0, 1, 2].map(|free| (last, free))) {
        let (stream, other, third) = (device.stream()?, device.stream()?, device.stream()?);
        let (gate, second) = (device.gate()?, device.gate()?);
        let (guest, x, y) = (other.ones::<f32>([512])?, stream.zeros::<f32>([16])?, third.zeros::<f32>([16])?);
        let (values, target, event) = (vec![1.0f32; LEN], stream.empty::<f32>([LEN])?, device.event()?);
        let buffer = device.host_buffer::<f32>(HostKind::Pageable, LEN)?;
        drop(stream.empty::<f32>([LEN])?);
        if has_bare {
            bare_launches(&stream, 1)?;
        }
        device.synchronize()?;
        stream.wait_gate(&gate)?;
        guest.on(&stream)?.affine_in_place(1.0, 1.0)?;
        // Beside the gate, that launch and the last call.
        let (count, made) = (DEPTH - 3 - free, AtomicUsize::new(0));
        let call = || match last {
            "bare launches" => bare_launches(&stream, DEPTH - 3 - free).map(drop),
            _ if made.fetch_add(1, Ordering::Relaxed) < count => x.affine_in_place(1.0, 1.0),
            "pageable copy" => target.copy_from(&buffer),
            "large upload" => stream.tensor(&values, [LEN]).map(drop),
            "second gate" => stream.wait_gate(&second),
            _ => (0..MANY).try_for_each(|_| x.affine_in_place(1.0, 1.0)),
        };
        let calls = if last == "bare launches" { 1 } else { count + 1 };
        let told = beside_a_stuck_thread(&gate, calls, call, || {
            drop(guest);
            let told = returns(&gate, || {
                stream.is_complete()?;
                device.trim()?;
                y.affine_in_place(1.0, 1.0)?;
                third.record(&event)?;
                Ok::<_, DeviceError>((other.ones::<f32>([12_345])?.sum()?.item()?, y.to_vec()?))
            })
            .map_err(|failed| format!("behind `{last}`: {:?}", failed.message()));
            second.open();
            Ok(told??)
        })?;
        ensure(told == (12_345.0, vec![1.0; 16]), || format!("behind `{last}`: {told:?}"))?;
        device.synchronize()?;
    }
    Ok(())
}

fn reads_of_a_held_stream(device: &Device) -> Result<(), Failed> {
    for (threads, len) in [(8, 1 << 18), (300, 1)] {
        let (held, free, gate) = (device.stream()?, device.stream()?, device.gate()?);
        let (x, y) = (held.full::<f32>([len], 2.0)?, free.full::<f32>([len], 3.0)?);
        device.synchronize()?;
        held.wait_gate(&gate)?;
        thread::scope(|scope| {
            let reads: Vec<_> = (0..threads).map(|_| scope.spawn(|| x.to_vec())).collect();
            // As long as it takes to stand in the waits. One that stands there later makes the test easier.
            thread::sleep(Duration::from_millis(100));
            let read = returns(&gate, || y.to_vec());
            gate.open();
            let held: Vec<_> = reads.into_iter().map(|read| read.join().map_err(|_| "a reader panicked")).collect();
            ensure(read?? == vec![3.0; len], || "a read of a free stream lost values".to_owned())?;
            for read in held {
                ensure(read?? == vec![2.0; len], || "a read of a held stream lost values".to_owned())?;
            }
            Ok::<_, Failed>(())
        })?;
    }
    Ok(())
}

fn uploads_behind_a_gate(device: &Device) -> Result<(), Failed> {
    for (count, len) in [(600_usize, 4_usize), (40, 16 << 10)] {
        let (stream, gate) = (device.stream()?, device.gate()?);
        // Their memory is there: only the uploads are behind the gate.
        let warm: Vec<_> = (0..count).map(|_| stream.empty::<f32>([len])).collect::<Result<_, _>>()?;
        drop(warm);
        stream.synchronize()?;
        stream.wait_gate(&gate)?;
        let upload = |i: usize| stream.tensor(&vec![i as f32; len], [len]);
        let made = returns(&gate, || (0..count).map(upload).collect::<Result<Vec<_>, _>>())??;
        ensure(!stream.is_complete()?, || "the gate was passed".to_owned())?;
        gate.open();
        for (i, x) in made.iter().enumerate() {
            let values = x.to_vec()?;
            ensure(values == vec![i as f32; len], || format!("upload {i} of {count} holds {:?}…", values.first()))?;
        }
    }
    Ok(())
}

fn objects_behind_a_gate(device: &Device) -> Result<(), Failed> {
    let (stream, gate) = (device.stream()?, device.gate()?);
    stream.wait_gate(&gate)?;
    let told = returns(&gate, || {
        let gates: Result<Vec<_>, _> = (0..2000).map(|_| device.gate()).collect();
        let events: Result<Vec<_>, _> = (0..2000).map(|_| device.event()).collect();
        let timed: Result<Vec<_>, _> = (0..2000).map(|_| device.timing_event()).collect();
        [gates.err(), events.err(), timed.err()]
    })?;
    ensure(told.iter().flatten().all(is_used_up), || format!("{told:?}"))?;
    gate.open();
    stream.synchronize()?;
    // With no gate closed there are more.
    let more: Vec<_> = (0..1000).flat_map(|_| [device.event(), device.timing_event()]).collect::<Result<_, _>>()?;
    ensure(more.len() == 2000, || "an event is missing".to_owned())
}

/// Whether what was made before the gate was closed is in use.
fn is_used_up(error: &DeviceError) -> bool {
    error.to_string().contains("before a gate was closed")
}

/// To make or to end a stream, or to capture, which takes one, waits for no gate; where all are in use it is refused, and a
/// stream that was refused a capture works on.
fn streams_behind_a_gate(device: &Device) -> Result<(), Failed> {
    let (stream, held) = (device.stream()?, device.stream()?);
    let (x, gate) = (stream.zeros::<f32>([16])?, device.gate()?);
    device.synchronize()?;
    held.wait_gate(&gate)?;
    let capture = || stream.capture(|| x.affine_in_place(1.0, 1.0)).map(|((), graph)| graph);
    // Each takes a stream for a while, which the next has again, and room for its graph, which it keeps.
    let graphs = returns(&gate, || (0..100).map(|_| capture()).collect::<Vec<_>>())?;
    ensure(graphs.iter().filter_map(|made| made.as_ref().err()).all(is_used_up), || format!("{graphs:?}"))?;
    let graphs: Vec<_> = graphs.into_iter().flatten().collect();
    ensure(graphs.len() >= 32, || format!("{} graphs", graphs.len()))?;
    let made = returns(&gate, || (0..100).map(|_| device.stream()).collect::<Vec<_>>())?;
    let refused = made.iter().any(Result::is_err);
    ensure(made.iter().filter_map(|made| made.as_ref().err()).all(is_used_up), || format!("{made:?}"))?;
    let told = returns(&gate, capture)?.err();
    ensure((told.is_some() || !refused) && told.iter().all(is_used_up), || format!("{told:?}"))?;
    graphs.iter().try_for_each(|graph| graph.launch())?;
    // What is not used any more is there for others.
    returns(&gate, || drop(made))?;
    let again = returns(&gate, || device.stream())??;
    let y = again.full::<f32>([16], 2.0)?;
    let values = returns(&gate, || Ok::<_, DeviceError>((x.to_vec()?, y.to_vec()?)))??;
    ensure(values == (vec![graphs.len() as f32; 16], vec![2.0; 16]), || format!("{values:?}"))?;
    ensure(!held.is_complete()?, || "the gate was passed".to_owned())
}

/// The first waits until the wait for the device is over, and so must the second: else that one waits for the gate.
fn one_gate_of_two_threads(device: &Device) -> Result<(), Failed> {
    let (busy, gate) = (device.stream()?, device.gate()?);
    let held = [device.stream()?, device.stream()?];
    device.synchronize()?;
    busy.spin(Duration::from_millis(300))?;
    thread::scope(|scope| {
        let waits = scope.spawn(|| device.synchronize());
        let told = returns(&gate, || {
            let tell = held.each_ref().map(|stream| {
                // As long as it takes to stand in the calls before. One that stands there later makes the test easier.
                thread::sleep(Duration::from_millis(50));
                scope.spawn(|| stream.wait_gate(&gate))
            });
            tell.map(|told| told.join().unwrap_or(Err(DeviceError::EventNotReady { reason: "a panic" })))
        });
        gate.open();
        waits.join().map_err(|_| "the waiting thread panicked")??;
        told?.into_iter().collect::<Result<(), _>>()?;
        Ok(device.synchronize()?)
    })
}

/// What waits for the whole device, and the gates and captures that begin meanwhile. The thread that opens the gates needs
/// the driver before it does: whoever waits in the driver for a gate, and keeps others out, keeps it closed for ever.
fn gates_beside_waits(device: &Device) -> Result<(), Failed> {
    const TIMES: usize = 300;
    let (held, captured) = (device.stream()?, device.stream()?);
    let (x, y) = (held.zeros::<f32>([16])?, captured.zeros::<f32>([16])?);
    held.wait_gate(&{
        // What is made with the first gate is there.
        let gate = device.gate()?;
        gate.open();
        gate
    })?;
    device.synchronize()?;
    let (gates, waits, captures): (Call<'_>, Call<'_>, Call<'_>) = (
        &|| {
            let gate = device.gate()?;
            held.wait_gate(&gate)?;
            x.affine_in_place(1.0, 1.0)?;
            gate.open();
            Ok(())
        },
        &|| {
            device.synchronize()?;
            device.trim()
        },
        // A gate that is closed for long lets only so many of them through.
        &|| match captured.capture(|| y.affine_in_place(1.0, 1.0)) {
            Err(error) if is_used_up(&error) => Ok(()),
            outcome => outcome.map(drop),
        },
    );
    let (done, ended) = mpsc::channel();
    thread::scope(|scope| {
        for call in [gates, waits, captures] {
            let done = done.clone();
            scope.spawn(move || done.send((0..TIMES).try_for_each(|_| call())));
        }
        for _ in 0..3 {
            // The threads of a hang cannot be ended, and hold what is borrowed.
            let Ok(outcome) = ended.recv_timeout(LONG) else {
                eprintln!("a gate, a capture and waits for {} wait for each other", device.name());
                std::process::abort();
            };
            outcome?;
        }
        Ok::<_, Failed>(())
    })?;
    let value = x.get([0])?.item()?;
    ensure(value == TIMES as f32, || format!("{value} in place of {TIMES}"))
}

type Call<'a> = &'a (dyn Fn() -> Result<(), DeviceError> + Sync);
