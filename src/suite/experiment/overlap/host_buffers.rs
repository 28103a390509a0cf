//! `overlap.implicit.from-…`, `to-…`: which copies between a host buffer and the device wait, by kind of memory and size.
//!
//! A *blocking* copy is the copy and a stream synchronize behind it; a *non-blocking* one is the copy alone, which a driver
//! may make the host wait for all the same: it may copy a small pageable buffer aside at once and wait for a large one.

use super::implicit::{Asked, BUSY, Ids};
use crate::experiment::prelude::*;

/// A copy: its rows, the kind of memory, and what copies.
struct Copying {
    label: &'static str,
    ids: Ids,
    kind: HostKind,
    copy: fn(&HostCopy) -> Result<()>,
}

const FROM: [Copying; 2] = [
    Copying {
        label: "Copy from pageable memory",
        ids: ["overlap.implicit.from-pageable.blocks", "overlap.implicit.from-pageable.stall"],
        kind: HostKind::Pageable,
        copy: HostCopy::to_device,
    },
    Copying {
        label: "Copy from pinned memory",
        ids: ["overlap.implicit.from-pinned.blocks", "overlap.implicit.from-pinned.stall"],
        kind: HostKind::Pinned,
        copy: HostCopy::to_device,
    },
];

const TO: [Copying; 2] = [
    Copying {
        label: "Copy to pageable memory",
        ids: ["overlap.implicit.to-pageable.blocks", "overlap.implicit.to-pageable.stall"],
        kind: HostKind::Pageable,
        copy: HostCopy::to_host,
    },
    Copying {
        label: "Copy to pinned memory",
        ids: ["overlap.implicit.to-pinned.blocks", "overlap.implicit.to-pinned.stall"],
        kind: HostKind::Pinned,
        copy: HostCopy::to_host,
    },
];

/// All copies of all sizes are one group.
pub(super) fn run(asked: Asked, sizes: &[usize]) -> Group {
    let mut group = asked.group([("busy_seconds", BUSY.as_secs_f64().into())]);
    for elements in sizes.iter().map(|bytes| (bytes / size_of::<f32>()).max(1)) {
        let bytes = || ("bytes", (elements * size_of::<f32>()).into());
        for mode in ["blocking", "non-blocking"] {
            group = group.with_parameters([bytes(), ("mode", mode.into())]);
            for copying in &FROM {
                group = row(group, asked, copying, elements, mode == "blocking");
            }
        }
        group = group.with_parameters([bytes()]);
        for copying in &TO {
            group = row(group, asked, copying, elements, false);
        }
    }
    group.build()
}

fn row(
    group: GroupBuilder<Device>,
    asked: Asked,
    &Copying { label, ids, kind, copy }: &Copying,
    elements: usize,
    waits: bool,
) -> GroupBuilder<Device> {
    asked.row(group, label, ids, move |device| {
        let buffers: Rc<HostCopy> = HostCopy::new(device, kind, elements)?;
        let stream = buffers.stream.clone();
        Ok((stream, move || {
            copy(&buffers)?;
            if waits { buffers.stream.synchronize() } else { Ok(()) }
        }))
    })
}
