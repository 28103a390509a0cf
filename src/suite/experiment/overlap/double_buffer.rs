//! `overlap.double-buffer`: copies on one stream and kernels on another, two device buffers that alternate, events
//! between.
//!
//! Of `steps` iterations each but the last copies the next iteration's data and each but the first computes on its own,
//! so that there are `steps − 1` copies and as many kernels. There are two dependencies: a kernel waits for the copy of
//! its buffer, and a copy waits for the kernel that still reads the buffer that it overwrites (*write after read*). The
//! text behind this chapter has the first wait alone (*one way*). It is run as it is, and with kernels slowed by a spin,
//! and the wrong elements of all outputs are counted. Each iteration has a host buffer with data of its own (the text
//! copies from two, which alternate), so that an overwritten device buffer shows.
//!
//! Beside the measured total are Σ(copies) + Σ(kernels), each measured alone, and the larger of the two, which is the
//! time of a full overlap. *efficiency* is the share of the time that could be hidden and was: (sum − total) / (sum −
//! max).

use super::pipeline::{Dependencies, Pipeline, Single};
use crate::experiment::prelude::*;

/// The loop with two buffers, and the one with one.
pub(super) fn record(recorder: &mut TraceRecorder, elements: usize, steps: usize) {
    let parameters = || [("elements", elements.into()), ("steps", steps.into())];
    recorder.record("overlap.double-buffer.total", parameters(), |device| {
        let pipeline = Pipeline::new(device, fastest_memory(device.properties().engine), elements, steps)?;
        Ok(Box::new(move || pipeline.run(Dependencies::BothWays, None).map(|outputs| drop(black_box(outputs)))))
    });
    recorder.record("overlap.single-buffer.total", parameters(), |device| {
        let single = Single::new(device, HostKind::Pageable, elements, steps)?;
        Ok(Box::new(move || single.run(None)))
    });
}

pub(super) fn run(engine: &str, elements: usize, steps: usize) -> Group {
    let kind = fastest_memory(engine);
    let timed = |waits| move |pipeline: &Pipeline| pipeline.run(waits, None);
    let wrong = |waits, slowed| move |pipeline: &Pipeline| Pipeline::wrong(&pipeline.run(waits, slowed)?);
    let bytes = (elements * size_of::<f32>()) as f64;
    let copies = || Work::to_device(bytes * (steps as f64 - 1.0), "width · elements · (steps − 1)", bytes);
    Group::of(
        "Double buffering",
        [("elements", elements.into()), ("steps", steps.into()), ("memory", kind.to_string().into())],
    )
    .setup(move |device| Pipeline::new(device, kind, elements, steps))
    .host_time_of("overlap.double-buffer.total", "Two buffers, two dependencies", timed(Dependencies::BothWays))
    .work(copies())
    .host_time_of("overlap.double-buffer.copies", "All copies alone", move |pipeline| pipeline.copies())
    .work(copies())
    .host_time_of("overlap.double-buffer.computes", "All kernels alone", move |pipeline| pipeline.computes(None))
    .work(Work::copy(2.0 * bytes * (steps as f64 - 1.0), "2 · width · elements · (steps − 1)", bytes))
    .derived("overlap.double-buffer.sum", "Copies + kernels", Unit::Seconds, "copies + computes")
    .derived("overlap.double-buffer.max", "The longer of copies and kernels", Unit::Seconds, "max(copies, computes)")
    .derived("overlap.double-buffer.efficiency", "Overlap efficiency", Unit::Ratio, "(sum − total) / (sum − max)")
    .value_of(
        "overlap.double-buffer.wrong",
        "Wrong elements, two dependencies",
        Unit::Number,
        wrong(Dependencies::BothWays, None),
    )
    .host_time_of("overlap.one-way.total", "Two buffers, one dependency", timed(Dependencies::OneWay))
    .work(copies())
    .value_of(
        "overlap.one-way.overwritten",
        "Wrong elements, one dependency",
        Unit::Number,
        wrong(Dependencies::OneWay, None),
    )
    .value_of(
        "overlap.one-way.overwritten-slowed",
        "Wrong elements, one dependency, slower kernels",
        Unit::Number,
        wrong(Dependencies::OneWay, Some(Duration::from_millis(2))),
    )
    // The loop that the text compares with: sampled in turn with the others.
    .with_parameters([("memory", HostKind::Pageable.to_string().into())])
    .host_time("overlap.single-buffer.total", "One pageable buffer, synchronize each iteration", move |pipeline| {
        let single = Single::new(pipeline.device(), HostKind::Pageable, elements, steps)?;
        Ok(move || single.run(None))
    })
    .work(copies())
    .build()
}
