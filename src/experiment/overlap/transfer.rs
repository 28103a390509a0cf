//! `overlap.transfer`: copies between a host buffer and the device, by the kind of the host's memory.
//!
//! *free* is the host time until the call returns, *done* the time until the copy is complete. A *blocking* copy is a
//! copy with a stream synchronize behind it, so that its two times are the same but for noise. *rate* is the bytes over
//! *done*.

use std::hint::black_box;
use std::rc::Rc;

use crate::device::HostKind;
use crate::error::DeviceError;
use crate::experiment::host_copy::HostCopy;
use crate::experiment::{Bench, Formula};
use crate::results::Work;
use crate::units::Unit;

const KINDS: [HostKind; 3] = [HostKind::Pageable, HostKind::Pinned, HostKind::WriteCombined];

/// A direction of copies: its rows, what copies, and its work.
struct Direction {
    free: [&'static str; 2],
    done: [&'static str; 2],
    rate: [&'static str; 2],
    copy: fn(&HostCopy) -> Result<(), DeviceError>,
    work: fn(f64, &str, f64) -> Work,
}

const DIRECTIONS: [Direction; 2] = [
    Direction {
        free: ["overlap.transfer.h2d.free", "Host to device, dispatch"],
        done: ["overlap.transfer.h2d.done", "Host to device, completion"],
        rate: ["overlap.transfer.h2d.rate", "Host to device, rate"],
        copy: HostCopy::to_device,
        work: Work::to_device,
    },
    Direction {
        free: ["overlap.transfer.d2h.free", "Device to host, dispatch"],
        done: ["overlap.transfer.d2h.done", "Device to host, completion"],
        rate: ["overlap.transfer.d2h.rate", "Device to host, rate"],
        copy: HostCopy::to_host,
        work: Work::to_host,
    },
];

pub(super) fn run(bench: &mut Bench, elements: usize) {
    for kind in KINDS {
        for mode in ["non-blocking", "blocking"] {
            for direction in &DIRECTIONS {
                copies(bench, direction, kind, mode, elements);
            }
        }
        host_read(bench, kind, elements);
    }
    buffers(bench, elements);
}

/// One direction, until the call returns and until the copy is complete.
fn copies(bench: &mut Bench, direction: &Direction, kind: HostKind, mode: &'static str, elements: usize) {
    let Direction { free: [free, free_label], done: [done, done_label], rate: [rate, rate_label], copy, work } =
        *direction;
    let bytes = elements * size_of::<f32>();
    let amount = bytes as f64;
    let case = move |wait: bool| {
        move |buffers: &Rc<HostCopy>| {
            let buffers = Rc::clone(buffers);
            Ok(move || {
                copy(&buffers)?;
                if wait { buffers.stream.synchronize() } else { Ok(()) }
            })
        }
    };
    bench
        .group("Transfers", [("memory", kind.to_string().into()), ("mode", mode.into()), ("bytes", bytes.into())])
        .setup(move |device| HostCopy::new(device, kind, elements))
        .host_time(free, free_label, case(mode == "blocking"))
        .host_time(done, done_label, case(true))
        .work(work(amount, "bytes", amount))
        .derived(
            rate,
            rate_label,
            Unit::BytesPerSecond,
            Formula::of("bytes / done", [done], move |[time]| amount / time),
        )
        .work(work(amount, "bytes", amount))
        .run();
}

fn host_read(bench: &mut Bench, kind: HostKind, elements: usize) {
    let bytes = elements * size_of::<f32>();
    bench
        .group("Transfers", [("memory", kind.to_string().into()), ("bytes", bytes.into())])
        .host_time("overlap.transfer.host-read", "Host reads the buffer", move |device| {
            let buffers = HostCopy::new(device, kind, elements)?;
            Ok(move || {
                // Bits, so that the loop is as fast as the memory.
                let bits = |all: u32, x: &f32| all ^ x.to_bits();
                Ok(black_box(buffers.buffer.borrow().read()?.iter().fold(0, bits)))
            })
        })
        .run();
}

/// What a host buffer costs: each row is a group of its own.
fn buffers(bench: &mut Bench, elements: usize) {
    let bytes = elements * size_of::<f32>();
    bench
        .group("Transfers", [("bytes", bytes.into())])
        .host_time("overlap.transfer.d2h.new-array", "Device to a new host array", move |device| {
            let x = device.stream()?.zeros::<f32>([elements])?;
            Ok(move || x.to_vec())
        })
        .work(Work::to_host(bytes as f64, "bytes", bytes as f64))
        .run();
    for (id, label, kind) in [
        ("overlap.transfer.pageable", "Allocate a zeroed pageable buffer", HostKind::Pageable),
        ("overlap.transfer.pin", "Allocate a zeroed pinned buffer", HostKind::Pinned),
    ] {
        bench
            .group("Transfers", [("bytes", bytes.into())])
            .host_time(id, label, move |device| {
                // Once here, so that an engine without such memory says so.
                device.host_buffer::<f32>(kind, 1)?;
                let device = device.clone();
                Ok(move || device.host_buffer::<f32>(kind, elements))
            })
            .run();
    }
}
