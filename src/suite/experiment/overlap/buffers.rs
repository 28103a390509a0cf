//! `overlap.buffers`: what pinned memory brings to a loop of copies and kernels, and what a second buffer brings.
//!
//! The same loop with kernels as they are, for both kinds of host memory and with one and with two device buffers: one
//! buffer is a copy, a kernel and a synchronize in each iteration; two buffers have a stream for copies and one for kernels,
//! with both dependencies. All four are one group.

use super::fp32_bytes;
use super::pipeline::{Dependencies, Pipeline, Single};
use crate::experiment::prelude::*;

pub(super) fn run(elements: usize, steps: usize) -> Group {
    const ID: &str = "overlap.buffers.total";
    const LABEL: &str = "Loop of copies and kernels, by memory and number of buffers";
    let bytes = fp32_bytes(elements);
    let copies = || Work::to_device(bytes * (steps as f64 - 1.0), "width · elements · (steps − 1)", bytes);
    let mut group = Group::of("Double buffering", [("elements", elements.into()), ("steps", steps.into())]);
    for kind in [HostKind::Pageable, HostKind::Pinned] {
        let memory = || ("memory", kind.to_string().into());
        group = group
            .with_parameters([memory(), ("buffers", 1_usize.into())])
            .host_time(ID, LABEL, move |device| {
                let single = Single::new(device, kind, elements, steps)?;
                Ok(move || single.run(None))
            })
            .work(copies())
            .with_parameters([memory(), ("buffers", 2_usize.into())])
            .host_time(ID, LABEL, move |device| {
                let pipeline = Pipeline::new(device, kind, elements, steps)?;
                Ok(move || pipeline.run(Dependencies::BothWays, None).map(|outputs| drop(black_box(outputs))))
            })
            .work(copies());
    }
    group.build()
}
