//! `self-audit.stopwatch`: one kernel of known length (a spin) under eight stopwatches. What each shows less the length is
//! its bias.
//!
//! - *host*, *host-wait*: the host's clock around the launch, without and with a synchronize of the device.
//! - *events*: events around it on its stream, all enqueued while a gate and a short kernel are pending.
//! - *events-idle*: the same on an idle stream, whose first event is reached before the kernel is launched.
//! - *events-wrong-stream*: events on another stream, which nothing orders behind the kernel.
//! - *span*: the kernel's span in a recording. It is measured after all other rows, so that it is not sampled in turn with
//!   them.
//! - *loop*: the host's clock around a loop and one synchronize, divided by its iterations; *loop-flushed*: a loop in which
//!   each kernel comes after a write to more memory than the L2 cache holds, timed by events around each kernel alone.
//!
//! A loop has 100 iterations, or as many as take [`LOOP`] seconds.

use crate::experiment::prelude::*;
use crate::measure::{DeviceClock, held};

/// How long a loop may take.
const LOOP: f64 = 0.02;

/// The work that is pending before the kernel that events time.
const PENDING: Duration = Duration::from_micros(20);

/// Elements (fp32) of the tensor that is written to flush the cache: 256 MiB.
const FLUSHED: usize = 1 << 26;

/// What the cases of a length share.
type Streams = (Stream, Stream);

/// The stopwatches of a kernel of this length, and its span in a recording.
pub(super) fn run(seconds: f64) -> [Group; 2] {
    let spin = Duration::from_secs_f64(seconds);
    let iterations = ((LOOP / seconds.max(1e-9)).round() as usize).clamp(2, 100);
    let stopwatches = group(seconds)
        .host_time_of("self-audit.stopwatch.host", "Host clock, no wait", move |(stream, _)| stream.spin(spin))
        .host_time_of("self-audit.stopwatch.host-wait", "Host clock with a device synchronize", move |(stream, _)| {
            stream.spin(spin).and_then(|()| stream.device().synchronize())
        })
        .time_by(
            Clock::DeviceEvents,
            "self-audit.stopwatch.events",
            "Events behind pending work",
            move |(stream, _)| {
                let (stream, pair) = (stream.clone(), pair(stream.device())?);
                Ok(move || behind_pending_work(&stream, &pair, spin))
            },
        )
        .device_time("self-audit.stopwatch.events-idle", "Events on an idle stream", move |(stream, _)| {
            let own = stream.clone();
            Ok((stream.clone(), move || own.spin(spin)))
        })
        .time_by(
            Clock::DeviceEvents,
            "self-audit.stopwatch.events-wrong-stream",
            "Events on another stream",
            move |(stream, other)| {
                let (stream, mut clock) = (stream.clone(), DeviceClock::new(other)?);
                Ok(move || clock.time(|| stream.spin(spin)).map(|((), seconds)| seconds))
            },
        )
        .host_time_of("self-audit.stopwatch.loop", "Loop divided by its iterations", move |(stream, _)| {
            (0..iterations).try_for_each(|_| stream.spin(spin))?;
            stream.device().synchronize()
        })
        .per(iterations)
        .time_by(
            Clock::DeviceEvents,
            "self-audit.stopwatch.loop-flushed",
            "Loop with the L2 cache flushed, events around each kernel",
            move |(stream, _)| flushed(stream, spin, iterations),
        )
        .per(iterations)
        .build();
    let recorded = group(seconds)
        .measured_in(Part::Recorded)
        .value_of("self-audit.stopwatch.span", "Span of a recording", Unit::Seconds, move |(stream, _)| {
            span(stream, spin)
        })
        .build();
    [stopwatches, recorded]
}

fn group(seconds: f64) -> GroupBuilder<Streams> {
    Group::of("Stopwatches", [("spin_seconds", seconds.into())])
        .setup(|device| Ok((device.stream()?, device.stream()?)))
}

fn pair(device: &Device) -> Result<[Event; 2]> {
    Ok([device.timing_event()?, device.timing_event()?])
}

/// The seconds between two events around a spin, where neither the events nor the spin wait for the host.
fn behind_pending_work(stream: &Stream, [start, end]: &[Event; 2], spin: Duration) -> Result<f64> {
    held(&[stream], |_| {
        stream.spin(PENDING)?;
        stream.record(start)?;
        stream.spin(spin)?;
        stream.record(end)
    })?;
    end.synchronize()?;
    Ok(end.elapsed_since(start)?.as_secs_f64())
}

/// The seconds of all kernels of a loop, each by events of its own, with the cache flushed before each.
fn flushed(stream: &Stream, spin: Duration, iterations: usize) -> Result<impl FnMut() -> Result<f64> + use<>> {
    let device = stream.device();
    if device.properties().engine == "cpu" {
        let (what, reason) = ("flushing the device's cache", "the workers share the host's caches");
        return Err(DeviceError::not_applicable(what, device.name(), reason));
    }
    let (stream, buffer) = (stream.clone(), stream.zeros::<f32>([FLUSHED])?);
    let pairs = (0..iterations).map(|_| pair(device)).collect::<Result<Vec<_>, _>>()?;
    Ok(move || {
        for [start, end] in &pairs {
            buffer.affine_in_place(1.0, 1.0)?;
            stream.record(start)?;
            stream.spin(spin)?;
            stream.record(end)?;
        }
        stream.synchronize()?;
        pairs.iter().try_fold(0.0, |sum, [start, end]| Ok(sum + end.elapsed_since(start)?.as_secs_f64()))
    })
}

/// The length of the kernel's span in a recording.
fn span(stream: &Stream, spin: Duration) -> Result<f64> {
    let device = stream.device();
    let ((), timeline) = device.record(|| stream.spin(spin))?;
    let kernel = timeline.spans.iter().find(|span| span.kind == crate::timeline::Kind::Kernel);
    let none = || DeviceError::call_failed(device.name(), "record", "the recording holds no kernel");
    kernel.map(|span| span.duration_ns() as f64 * 1e-9).ok_or_else(none)
}
