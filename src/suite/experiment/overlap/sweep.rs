//! `overlap.sweep`: how far copies and kernels overlap, by how long a kernel lasts beside its copy.
//!
//! A spin before each kernel makes copy and kernel `kernel_ratio` times as long as the copy; both are timed by events
//! before the group is sampled. Where the kernel alone is longer than that, it stays as it is: *computes* over *copies*
//! is the ratio that was reached. Beside the loop with two buffers and both dependencies stand its copies alone, its
//! kernels alone, their sum (no overlap), the longer of both (full overlap), and the loop with one buffer. Host memory is
//! pinned where the engine has it.
//!
//! `overlap.pageable`: the loop with two buffers, its copies and its kernels from pageable memory, with kernels as long as
//! copies. There overlap could hide half of the time, so that the rows show whether it needs pinned memory.

use super::fp32_bytes;
use super::pipeline::{Dependencies, Pipeline, Single};
use crate::experiment::prelude::*;

/// The loops with two buffers and with one, and the spin before each kernel that makes it last `ratio` times as long as a
/// copy.
struct Loops {
    pipeline: Pipeline,
    single: Single,
    slowed: Option<Duration>,
}

impl Loops {
    fn new(device: &Device, kind: HostKind, elements: usize, steps: usize, ratio: f64) -> Result<Self> {
        let (pipeline, single) =
            (Pipeline::new(device, kind, elements, steps)?, Single::new(device, kind, elements, steps)?);
        let [copy, kernel] = single.times()?;
        let spin = ratio * copy - kernel;
        let slowed = (spin > 0.0).then(|| Duration::from_secs_f64(spin));
        Ok(Self { pipeline, single, slowed })
    }

    fn total(&self) -> Result<()> {
        self.pipeline.run(Dependencies::BothWays, self.slowed).map(|outputs| drop(black_box(outputs)))
    }
}

/// The work of all copies of a loop.
fn copied(elements: usize, steps: usize) -> Work {
    let bytes = fp32_bytes(elements);
    Work::to_device(bytes * (steps as f64 - 1.0), "width · elements · (steps − 1)", bytes)
}

pub(super) fn run(engine: &str, elements: usize, steps: usize, ratio: f64) -> Group {
    let kind = fastest_memory(engine);
    Group::of(
        "Double buffering, kernels of several lengths",
        [("elements", elements.into()), ("steps", steps.into()), ("kernel_ratio", ratio.into())],
    )
    .setup(move |device| Loops::new(device, kind, elements, steps, ratio))
    .host_time_of("overlap.sweep.total", "Two buffers", Loops::total)
    .work(copied(elements, steps))
    .host_time_of("overlap.sweep.copies", "Copies alone", |loops| loops.pipeline.copies())
    .work(copied(elements, steps))
    .host_time_of("overlap.sweep.computes", "Kernels alone", |loops| loops.pipeline.computes(loops.slowed))
    .host_time_of("overlap.sweep.serial", "One buffer", |loops| loops.single.run(loops.slowed))
    .work(copied(elements, steps))
    .derived("overlap.sweep.sum", "No overlap: copies + kernels", Unit::Seconds, "copies + computes")
    .derived(
        "overlap.sweep.max",
        "Full overlap: the longer of copies and kernels",
        Unit::Seconds,
        "max(copies, computes)",
    )
    .build()
}

/// Pageable memory, with kernels as long as copies.
pub(super) fn pageable(elements: usize, steps: usize) -> Group {
    const RATIO: f64 = 1.0;
    Group::of(
        "Double buffering from pageable memory",
        [("elements", elements.into()), ("steps", steps.into()), ("kernel_ratio", RATIO.into())],
    )
    .setup(move |device| Loops::new(device, HostKind::Pageable, elements, steps, RATIO))
    .host_time_of("overlap.pageable.total", "Two pageable buffers", Loops::total)
    .work(copied(elements, steps))
    .host_time_of("overlap.pageable.copies", "Pageable copies alone", |loops| loops.pipeline.copies())
    .work(copied(elements, steps))
    .host_time_of("overlap.pageable.computes", "Kernels of that length alone", |loops| {
        loops.pipeline.computes(loops.slowed)
    })
    .build()
}
