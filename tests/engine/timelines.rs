//! What a timeline promises on every engine: work belongs to its call, lies between the call and the barrier that
//! waited for it, and is as long as it was.

use std::fmt::Write;
use std::time::Duration;

use libtest_mimic::Failed;
use syncscope::device::{Device, HostKind};
use syncscope::error::DeviceError;
use syncscope::tensor::Tensor;
use syncscope::timeline::{Kind, Span, SyncKind, Timeline};

use crate::{Check, bare_launches, ensure};

pub(crate) const CHECKS: &[(&str, Check)] = &[
    ("recorded_work_lies_between_its_call_and_its_barrier", |d| between(d, Device::record)),
    ("work_timed_by_events_lies_between_its_call_and_its_barrier", |d| between(d, Device::record_by_events)),
    ("recorded_kernels_of_one_stream_follow_each_other", follow),
    ("recorded_copies_have_their_size_and_their_call", copies),
    ("a_product_is_recorded_as_its_call_names_it", product),
    ("a_read_of_pending_work_is_an_implicit_barrier_with_its_place", read),
    ("recordings_follow_each_other_and_do_not_mix", again),
    ("a_span_is_as_long_as_events_around_its_work_say", lengths),
    ("a_recording_holds_the_work_of_its_own_device_with_its_calls", own_work),
    ("every_kernel_of_a_recording_has_its_call", every_kernel_has_its_call),
    ("a_failure_within_a_recording_is_told", failure_within_a_recording),
    ("a_matmul_waits_for_its_device_at_most_the_first_time", search),
];

/// How far the clocks of the host and of a device may lie apart.
const APART_NS: u64 = 20_000;

type Record = fn(&Device, Region) -> Result<((), Timeline), syncscope::error::DeviceError>;
type Region = Box<dyn FnOnce() -> Result<(), syncscope::error::DeviceError>>;

fn find<'a>(timeline: &'a Timeline, name: &str, kind: Kind) -> Result<&'a Span, Failed> {
    let found = timeline.spans.iter().find(|span| span.name == name && span.kind == kind);
    found.ok_or_else(|| format!("no {kind:?} `{name}` in {timeline:#?}").into())
}

/// Two clocks are compared: a thread that is interrupted between their readings puts them further apart, in one recording and
/// not in ten.
fn between(device: &Device, record: Record) -> Result<(), Failed> {
    let mut outcome = between_once(device, record);
    for _ in 0..9 {
        if outcome.is_ok() {
            break;
        }
        outcome = between_once(device, record);
    }
    outcome
}

fn between_once(device: &Device, record: Record) -> Result<(), Failed> {
    const SPIN: Duration = Duration::from_millis(4);
    let stream = device.stream()?;
    stream.spin(SPIN)?;
    stream.synchronize()?;
    let own = stream.clone();
    let region: Region = Box::new(move || {
        own.spin(SPIN)?;
        own.synchronize()
    });
    let ((), timeline) = record(device, region)?;
    println!("{}: {}", device.name(), timeline.source);
    let (call, spin) = (find(&timeline, "spin", Kind::Enqueue)?, find(&timeline, "spin", Kind::Kernel)?);
    let barrier = find(&timeline, "Stream::synchronize", Kind::Synchronize)?;
    ensure(call.correlation.is_some() && call.correlation == spin.correlation, || format!("{timeline:#?}"))?;
    ensure(spin.stream == Some(stream.number()), || format!("{spin:?}"))?;
    ensure(call.start_ns <= spin.start_ns + APART_NS, || format!("{spin:?} began before {call:?}"))?;
    ensure(spin.end_ns <= barrier.end_ns + APART_NS, || format!("{spin:?} ended after {barrier:?}"))?;
    ensure(spin.duration_ns() + APART_NS >= SPIN.as_nanos() as u64, || format!("{spin:?} is too short"))
}

fn follow(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    let x = stream.ones::<f32>([1 << 16])?;
    x.add_scalar(1.0)?.to_vec()?;
    let (_, timeline) = device.record(|| (0..20).try_for_each(|_| x.affine_in_place(1.0, 1.0)))?;
    let kernels: Vec<&Span> = timeline.spans.iter().filter(|span| span.kind == Kind::Kernel).collect();
    ensure(kernels.len() == 20, || format!("{} kernels", kernels.len()))?;
    ensure(kernels.windows(2).all(|pair| pair[0].end_ns <= pair[1].start_ns), || format!("{kernels:#?}"))?;
    let ordered = kernels.windows(2).all(|pair| pair[0].correlation < pair[1].correlation);
    ensure(ordered && timeline.dropped == 0, || format!("{kernels:#?}"))
}

fn copies(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    let kind = if device.properties().engine == "cpu" { HostKind::Pageable } else { HostKind::Pinned };
    let mut buffer = device.host_buffer::<f32>(kind, 1 << 16)?;
    let x = stream.zeros::<f32>([1 << 16])?;
    stream.synchronize()?;
    let (_, timeline) = device.record(|| {
        x.copy_from(&buffer)?;
        x.copy_to(&mut buffer)?;
        buffer.read().map(drop)
    })?;
    for (call, copy) in [("copy_from", "upload"), ("copy_to", "download")] {
        // Events stand around the call, and take its name.
        let copy = if timeline.source.starts_with("events") { call } else { copy };
        let (call, copy) = (find(&timeline, call, Kind::Enqueue)?, find(&timeline, copy, Kind::Copy)?);
        ensure(call.correlation == copy.correlation, || format!("{call:?} {copy:?}"))?;
        ensure(copy.bytes == Some(4 << 16), || format!("{copy:?}"))?;
    }
    find(&timeline, "HostBuffer::read", Kind::Synchronize).map(drop)
}

fn product(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    let x = stream.ones::<f32>([64, 64])?;
    x.matmul(&x)?.to_vec()?;
    let (_, timeline) = device.record(|| x.matmul(&x))?;
    let (call, kernel) = (find(&timeline, "matmul", Kind::Enqueue)?, find(&timeline, "matmul", Kind::Kernel)?);
    ensure(call.correlation == kernel.correlation, || format!("{timeline:#?}"))
}

/// As in the tests of order: that the gate opens a while after the read has begun is forced unless the machine stops
/// this thread for just that while.
fn read(device: &Device) -> Result<(), Failed> {
    let (stream, gate) = (device.stream()?, device.gate()?);
    let x = stream.ones::<f32>([])?;
    x.add_scalar(1.0)?.item()?;
    let (line, audit) = std::thread::scope(|scope| {
        device.audit(|| {
            stream.wait_gate(&gate)?;
            let y = x.add_scalar(1.0)?;
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(100));
                gate.open();
            });
            y.item().map(|_| line!())
        })
    })?;
    let stalls: Vec<_> = audit.stalls(&[]).collect();
    let place = format!("{}:{line}", file!());
    let right = matches!(stalls.as_slice(), [stall] if stall.name == "item" && stall.kind == SyncKind::Implicit
        && stall.site.as_deref() == Some(&place) && stall.pending > 0);
    ensure(right, || format!("{audit}"))
}

fn again(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    for count in 1..4 {
        let (_, timeline) = device.record(|| {
            ensure_nested_fails(device);
            (0..count).try_for_each(|_| stream.ones::<f32>([4]).map(drop))
        })?;
        let of = |kind| timeline.spans.iter().filter(|span| span.kind == kind).count();
        ensure((of(Kind::Enqueue), of(Kind::Kernel)) == (count, count), || format!("{timeline:#?}"))?;
    }
    Ok(())
}

fn ensure_nested_fails(device: &Device) {
    assert!(device.record(|| Ok::<_, syncscope::error::DeviceError>(())).is_err(), "a recording within a recording");
}

/// A span and the time between events around its work are one stretch of the device's time, told by two sources.
///
/// # The bound
/// Between the events lie the work and the ways from an event to work and back, some microseconds each. On an idle stream
/// the rest of the launch's call lies there, too, as the stream reaches the first event at once: under a recorder, whose first
/// launch makes its buffers, that can be more than the work. So other work keeps the stream busy until all is enqueued. A
/// try in which it did not, by the timeline's own times, is not judged; and a machine that stops a worker between an event
/// and its work spoils one. What `spin` was asked for is a third source, which tells who is wrong.
fn lengths(device: &Device) -> Result<(), Failed> {
    const COVER: Duration = Duration::from_millis(20);
    const SPIN: Duration = Duration::from_millis(5);
    const TRIES: usize = 12;
    let stream = device.stream()?;
    let (begin, end) = (device.timing_event()?, device.timing_event()?);
    let mut tries = String::new();
    for _ in 0..TRIES {
        let (_, timeline) = device.record(|| {
            stream.spin(COVER)?;
            stream.record(&begin)?;
            stream.spin(SPIN)?;
            stream.record(&end)
        })?;
        let of = |kind| timeline.spans.iter().filter(move |span| span.kind == kind);
        let kernels: Vec<&Span> = of(Kind::Kernel).collect();
        let [cover, work] = kernels[..] else { return Err(format!("{timeline:#?}").into()) };
        let enqueued = of(Kind::Enqueue).map(|call| call.end_ns).max().unwrap_or(u64::MAX);
        let longest = of(Kind::Enqueue).map(Span::duration_ns).max().unwrap_or_default();
        let (span, events) = (work.duration_ns(), end.elapsed_since(&begin)?.as_nanos() as u64);
        let judged = enqueued < cover.end_ns;
        let _ = write!(
            tries,
            "\n{} ns by the span, {events} ns between the events, {} ns asked for; {} ns from the end of the work before to \
             its start; all was enqueued {} ns before that end, and the longest call took {longest} ns{}",
            span,
            SPIN.as_nanos(),
            work.start_ns as i128 - cover.end_ns as i128,
            cover.end_ns as i128 - enqueued as i128,
            if judged { "" } else { ": too late, not judged" },
        );
        if judged && span.abs_diff(events) * 20 < events {
            println!("{}, {}:{tries}", device.name(), timeline.source);
            return Ok(());
        }
    }
    Err(format!("{}: no try within 5 %:{tries}", device.name()).into())
}

/// The first product of a shape loads its kernels, for which a GPU may be waited for. Later there is nothing to wait for.
fn search(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    let x = stream.ones::<f32>([48, 80])?;
    let y = stream.ones::<f32>([80, 112])?;
    stream.synchronize()?;
    let (_, first) = device.audit(|| x.matmul(&y))?;
    let mut points = first.sync_points.iter();
    let within = points.all(|point| point.name == "matmul" && point.kind == SyncKind::Implicit);
    ensure(within, || format!("the first product: {first}"))?;
    for _ in 0..3 {
        let (_, later) = device.audit(|| x.matmul(&y))?;
        ensure(later.sync_points.is_empty(), || format!("a later product: {later}"))?;
    }
    Ok(())
}

/// Threads work on another opened device of the same hardware and on this one while recordings begin and end.
fn own_work(device: &Device) -> Result<(), Failed> {
    use std::sync::atomic::{AtomicBool, Ordering};
    let other = Device::open(device.name())?;
    let (stream, theirs, beside) = (device.stream()?, other.stream()?, device.stream()?);
    let (x, y, z) = (stream.ones::<f32>([64])?, theirs.ones::<f32>([64])?, beside.ones::<f32>([64])?);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for tensor in [&y, &z] {
            let over = &over;
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) && tensor.affine_in_place(1.0, 1.0).is_ok() {
                    // A few at a time: the queue is not to grow.
                    let _ = tensor.stream().synchronize();
                }
            });
        }
        let outcome = (0..5).try_for_each(|_| {
            let (_, timeline) = device.record(|| (0..20).try_for_each(|_| x.affine_in_place(1.0, 1.0)))?;
            let own = |span: &&Span| span.stream == Some(stream.number());
            let of_kind = |kind| timeline.spans.iter().filter(move |span| span.kind == kind);
            let calls: Vec<_> = of_kind(Kind::Enqueue).collect();
            // Another opening of the GPU is as another library: the driver's names say so.
            let others = |span: &&Span| {
                calls.iter().any(|call| call.correlation == span.correlation && call.name.starts_with("cuLaunch"))
            };
            let kernels: Vec<_> = of_kind(Kind::Kernel).filter(|kernel| !others(kernel)).collect();
            let known = [stream.number(), beside.number()];
            let strange = kernels.iter().find(|k| !k.stream.is_some_and(|number| known.contains(&number)));
            ensure(strange.is_none(), || format!("{strange:?} is of no stream of this device"))?;
            let called = |kernel: &&&Span| calls.iter().any(|call| call.correlation == kernel.correlation);
            let uncalled = kernels.iter().find(|kernel| !called(kernel));
            ensure(uncalled.is_none(), || format!("{uncalled:?} has no call"))?;
            let (ran, called) =
                (kernels.iter().copied().filter(own).count(), calls.iter().copied().filter(own).count());
            ensure((ran, called) == (20, 20), || format!("{ran} kernels and {called} calls of 20"))
        });
        over.store(true, Ordering::Relaxed);
        outcome
    })
}

/// By a call of the region, by the recording, or by the next wait: its stream is gone then. The stream may have failed before the
/// event is recorded that ends the call.
fn failure_within_a_recording(device: &Device) -> Result<(), Failed> {
    (0..200).try_for_each(|round| {
        let outcome = device.record_by_events(|| -> Result<bool, DeviceError> {
            let stream = device.stream()?;
            let (x, rows) = (stream.ones::<f32>([4, 4])?, stream.tensor(&[99_i64], [1])?);
            stream.synchronize()?;
            Ok(x.gather(&rows).is_err())
        });
        let is_told = outcome.map_or(true, |(is_told, _)| is_told);
        ensure(device.synchronize().is_err() || is_told, || format!("failure {round} was told to nobody"))
    })
}

/// A bare loop and a graph are calls, too: their kernels belong to them.
fn every_kernel_has_its_call(device: &Device) -> Result<(), Failed> {
    let stream = device.stream()?;
    let x = stream.ones::<f32>([64, 64])?;
    let rows = stream.tensor(&[0i64, 3], [2])?;
    let mut buffer = device.host_buffer::<f32>(HostKind::Pageable, 4096)?;
    let (_, graph) = stream.capture(|| x.affine_in_place(1.0, 0.0))?;
    x.matmul(&x)?;
    stream.synchronize()?;
    let (_, timeline) = device.record(|| {
        x.matmul(&x)?.add(&x)?.sum()?.item()?;
        x.gt(0.5)?.any()?;
        x.nonzero()?.to_vec()?;
        x.gather(&rows)?;
        Tensor::stack(&[x.clone(), x.clone()])?;
        x.copy_to(&mut buffer)?;
        stream.normal::<f32>([9])?;
        stream.spin(Duration::from_micros(1))?;
        graph.launch()?;
        match bare_launches(&stream, 3) {
            Ok(_) | Err(syncscope::error::DeviceError::NotApplicable { .. }) => Ok(()),
            Err(other) => Err(other),
        }
    })?;
    let calls: Vec<_> = timeline.spans.iter().filter(|s| !s.kind.is_on_device()).map(|s| s.correlation).collect();
    let on_device: Vec<_> = timeline.spans.iter().filter(|s| s.kind.is_on_device()).collect();
    let uncalled = on_device.iter().find(|span| !calls.contains(&span.correlation));
    ensure(on_device.len() >= 10 && uncalled.is_none(), || format!("{} spans, {uncalled:?}", on_device.len()))
}
