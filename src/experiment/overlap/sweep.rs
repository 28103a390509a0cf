//! `overlap.sweep`: how far copies and kernels overlap, by how long a kernel lasts beside its copy.
//!
//! A spin before each kernel makes copy and kernel `kernel_ratio` times as long as the copy; both are timed by events
//! before the group is sampled. Where the kernel alone is longer than that, it stays as it is: *computes* over *copies*
//! is the ratio that was reached. Beside the loop with two buffers and both dependencies stand its copies alone, its
//! kernels alone, their sum (no overlap), the longer of both (full overlap), and the loop with one buffer. Host memory is pinned where the engine has it.

use std::hint::black_box;
use std::rc::Rc;
use std::time::Duration;

use super::fp32_bytes;
use super::pipeline::{Pipeline, Single, Waits};
use crate::experiment::host_copy::fastest_memory;
use crate::experiment::{Bench, Formula};
use crate::results::Work;
use crate::units::Unit;

const ALONE: [&str; 2] = ["overlap.sweep.copies", "overlap.sweep.computes"];

pub(super) fn run(bench: &mut Bench, elements: usize, steps: usize, ratio: f64) {
    let kind = fastest_memory(bench.engine());
    let bytes = fp32_bytes(elements);
    let copies = || Work::to_device(bytes * (steps as f64 - 1.0), "width · elements · (steps − 1)", bytes);
    bench
        .group(
            "Double buffering, kernels of several lengths",
            [("elements", elements.into()), ("steps", steps.into()), ("kernel_ratio", ratio.into())],
        )
        .setup(move |device| {
            let (pipeline, single) =
                (Pipeline::new(device, kind, elements, steps)?, Single::new(device, kind, elements, steps)?);
            let [copy, kernel] = single.times()?;
            let spin = ratio * copy - kernel;
            let slowed = (spin > 0.0).then(|| Duration::from_secs_f64(spin));
            Ok((Rc::new(pipeline), Rc::new(single), slowed))
        })
        .host_time("overlap.sweep.total", "Two buffers", |(pipeline, _, slowed)| {
            let (pipeline, slowed) = (Rc::clone(pipeline), *slowed);
            Ok(move || pipeline.run(Waits::BothWays, slowed).map(|outputs| drop(black_box(outputs))))
        })
        .work(copies())
        .host_time("overlap.sweep.copies", "Copies alone", |(pipeline, ..)| {
            let pipeline = Rc::clone(pipeline);
            Ok(move || pipeline.copies())
        })
        .work(copies())
        .host_time("overlap.sweep.computes", "Kernels alone", |(pipeline, _, slowed)| {
            let (pipeline, slowed) = (Rc::clone(pipeline), *slowed);
            Ok(move || pipeline.computes(slowed))
        })
        .host_time("overlap.sweep.serial", "One buffer", |(_, single, slowed)| {
            let (single, slowed) = (Rc::clone(single), *slowed);
            Ok(move || single.run(slowed))
        })
        .work(copies())
        .derived(
            "overlap.sweep.sum",
            "No overlap: copies + kernels",
            Unit::Seconds,
            Formula::of("copies + computes", ALONE, |[copies, computes]| copies + computes),
        )
        .derived(
            "overlap.sweep.max",
            "Full overlap: the longer of copies and kernels",
            Unit::Seconds,
            Formula::of("max(copies, computes)", ALONE, |[copies, computes]| copies.max(computes)),
        )
        .run();
}
