//! `overlap.transfer`: copies between a host buffer and the device, by the kind of the host's memory.
//!
//! *free* is the host time until the call returns, *done* the time until the copy is complete. A *blocking* copy is a
//! copy with a stream synchronize behind it, so that its two times are the same but for noise. *rate* is the bytes over
//! *done*.

use crate::experiment::prelude::*;

const KINDS: [HostKind; 3] = [HostKind::Pageable, HostKind::Pinned, HostKind::WriteCombined];

/// Each direction in words, with its rows.
const DIRECTIONS: [(&str, [&str; 3], Direction); 2] = [
    (
        "Host to device",
        ["overlap.transfer.h2d.free", "overlap.transfer.h2d.done", "overlap.transfer.h2d.rate"],
        TO_DEVICE,
    ),
    (
        "Device to host",
        ["overlap.transfer.d2h.free", "overlap.transfer.d2h.done", "overlap.transfer.d2h.rate"],
        TO_HOST,
    ),
];

/// What the copies of one kind of memory use; why there is none, where the engine has no such memory.
type Made = Result<Rc<HostCopy>>;

/// Copies of `elements` elements, and of as many as each of `sizes` (bytes) holds.
pub(super) fn run(elements: usize, sizes: &[usize]) -> Vec<Group> {
    let others = sizes.iter().map(|bytes| (bytes / size_of::<f32>()).max(1));
    // The first is what a table shows that does not tell sizes apart.
    let all = [elements].into_iter().chain(others.filter(|other| *other != elements));
    all.map(copies).chain([host_read(elements), buffers(elements)]).collect()
}

/// Both directions and both modes of each kind of memory, until the call returns and until the copy is complete: one group.
fn copies(elements: usize) -> Group {
    let bytes = elements * size_of::<f32>();
    let amount = bytes as f64;
    let case = |kind: usize, copy: fn(&HostCopy) -> Result<()>, wait: bool| {
        move |made: &[Made; KINDS.len()]| {
            let buffers = made[kind].clone()?;
            Ok(move || {
                copy(&buffers)?;
                if wait { buffers.stream.synchronize() } else { Ok(()) }
            })
        }
    };
    let mut group = Group::of("Transfers", [("bytes", bytes.into())])
        .setup(move |device| Ok(KINDS.map(|kind| HostCopy::new(device, kind, elements))));
    for (place, kind) in KINDS.into_iter().enumerate() {
        for mode in ["non-blocking", "blocking"] {
            group = group.with_parameters([("memory", kind.to_string().into()), ("mode", mode.into())]);
            for (words, [free, done, rate], (copy, work)) in DIRECTIONS {
                group = group
                    .host_time(free, &format!("{words}, dispatch"), case(place, copy, mode == "blocking"))
                    .host_time(done, &format!("{words}, completion"), case(place, copy, true))
                    .work(work(amount, "bytes", amount))
                    .derived(rate, &format!("{words}, rate"), Unit::BytesPerSecond, "bytes / done")
                    .work(work(amount, "bytes", amount));
            }
        }
    }
    group.build()
}

/// The host reads a buffer of each kind: one group.
fn host_read(elements: usize) -> Group {
    let bytes = elements * size_of::<f32>();
    let mut group = Group::of("Transfers", [("bytes", bytes.into())]);
    for kind in KINDS {
        group = group.with_parameters([("memory", kind.to_string().into())]).host_time(
            "overlap.transfer.host-read",
            "Host reads the buffer",
            move |device| {
                let buffers = HostCopy::new(device, kind, elements)?;
                Ok(move || {
                    // Bits, so that the loop is as fast as the memory.
                    let bits = |all: u32, x: &f32| all ^ x.to_bits();
                    Ok(black_box(buffers.buffer.borrow().read()?.iter().fold(0, bits)))
                })
            },
        );
    }
    group.build()
}

/// What a host buffer costs: one group.
fn buffers(elements: usize) -> Group {
    let bytes = elements * size_of::<f32>();
    let buffer = move |kind: HostKind| {
        move |device: &Device| {
            // Once here, so that an engine without such memory says so.
            device.host_buffer::<f32>(kind, 1)?;
            let device = device.clone();
            Ok(move || device.host_buffer::<f32>(kind, elements))
        }
    };
    Group::of("Transfers", [("bytes", bytes.into())])
        .host_time("overlap.transfer.d2h.new-array", "Device to a new host array", move |device| {
            let x = device.stream()?.zeros::<f32>([elements])?;
            Ok(move || x.to_vec())
        })
        .work(Work::to_host(bytes as f64, "bytes", bytes as f64))
        .host_time("overlap.transfer.pageable", "Allocate a zeroed pageable buffer", buffer(HostKind::Pageable))
        .host_time("overlap.transfer.pin", "Allocate a zeroed pinned buffer", buffer(HostKind::Pinned))
        .build()
}
