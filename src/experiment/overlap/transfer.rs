//! `overlap.transfer`: copies between a host buffer and the device, by the kind of the host's memory.
//!
//! *free* is the host's time until the call returns, *done* until the copy is over. A *blocking* copy is a copy with a
//! stream synchronize behind it, so that its two times are the same but for noise. *rate* is the bytes over *done*.

use std::cell::RefCell;
use std::hint::black_box;
use std::rc::Rc;

use crate::device::{Device, HostBuffer, HostKind, Stream};
use crate::error::DeviceError;
use crate::experiment::bench::{Bench, Formula, integer, parameters, text};
use crate::experiment::{Derivation, RowPlan};
use crate::measure::Case;
use crate::tensor::Tensor;
use crate::units::Unit;

pub(super) const PLAN: &[RowPlan] = &[
    RowPlan::host_time("overlap.transfer.h2d.free", "To the device, until the host is free"),
    RowPlan::host_time("overlap.transfer.h2d.done", "To the device, until it is done"),
    RowPlan::observed("overlap.transfer.h2d.rate", "To the device, rate", Unit::BytesPerSecond),
    RowPlan::host_time("overlap.transfer.d2h.free", "To the host, until the host is free"),
    RowPlan::host_time("overlap.transfer.d2h.done", "To the host, until it is done"),
    RowPlan::observed("overlap.transfer.d2h.rate", "To the host, rate", Unit::BytesPerSecond),
    RowPlan::host_time("overlap.transfer.d2h.new-array", "To a new host array"),
    RowPlan::host_time("overlap.transfer.pageable", "Allocating a zeroed pageable buffer"),
    RowPlan::host_time("overlap.transfer.pin", "Allocating a zeroed pinned buffer"),
    RowPlan::host_time("overlap.transfer.host-read", "The host reads the buffer"),
];

const KINDS: [HostKind; 3] = [HostKind::Pageable, HostKind::Pinned, HostKind::WriteCombined];

/// A buffer, a tensor of its size, and the stream that copies between them.
struct Link {
    stream: Stream,
    tensor: Tensor<f32>,
    buffer: RefCell<HostBuffer<f32>>,
}

impl Link {
    fn new(device: &Device, kind: HostKind, elements: usize) -> Result<Rc<Self>, DeviceError> {
        let stream = device.stream()?;
        let mut buffer = device.host_buffer::<f32>(kind, elements)?;
        // Formatted once, so that the memory is there.
        buffer.write()?.fill(1.0);
        Ok(Rc::new(Self { tensor: stream.zeros([elements])?, stream, buffer: RefCell::new(buffer) }))
    }

    fn to_device(&self) -> Result<(), DeviceError> {
        self.tensor.copy_from(&self.buffer.borrow())
    }

    fn to_host(&self) -> Result<(), DeviceError> {
        self.tensor.copy_to(&mut self.buffer.borrow_mut())
    }
}

pub(super) fn run(bench: &mut Bench, elements: usize) {
    let bytes = ("bytes", integer(elements * size_of::<f32>()));
    for kind in KINDS {
        let memory = || ("memory", text(&kind.to_string()));
        for mode in ["non-blocking", "blocking"] {
            copies(
                bench,
                kind,
                mode == "blocking",
                elements,
                &parameters([memory(), ("mode", text(mode)), bytes.clone()]),
            );
        }
        let id = "overlap.transfer.host-read";
        bench.group(&[id], &parameters([memory(), bytes.clone()]), |device| {
            let link = Link::new(device, kind, elements)?;
            Ok(vec![Case::host_timed(id, move || {
                // Bits, so that the loop is as fast as the memory.
                let bits = |all: u32, x: &f32| all ^ x.to_bits();
                Ok(black_box(link.buffer.borrow().read()?.iter().fold(0, bits)))
            })])
        });
    }
    let id = "overlap.transfer.d2h.new-array";
    bench.group(&[id], &parameters([bytes.clone()]), |device| {
        let x = device.stream()?.zeros::<f32>([elements])?;
        Ok(vec![Case::host_timed(id, move || x.to_vec())])
    });
    for (id, kind) in [("overlap.transfer.pageable", HostKind::Pageable), ("overlap.transfer.pin", HostKind::Pinned)] {
        bench.group(&[id], &parameters([bytes.clone()]), |device| {
            // Once here, so that an engine without such memory says so.
            device.host_buffer::<f32>(kind, 1)?;
            let device = device.clone();
            Ok(vec![Case::host_timed(id, move || device.host_buffer::<f32>(kind, elements))])
        });
    }
}

/// Both directions, until the host is free and until the copy is done.
fn copies(
    bench: &mut Bench,
    kind: HostKind,
    blocking: bool,
    elements: usize,
    parameters: &crate::experiment::Parameters,
) {
    type Copy = fn(&Link) -> Result<(), DeviceError>;
    let directions: [([&'static str; 3], Copy); 2] = [
        (["overlap.transfer.h2d.free", "overlap.transfer.h2d.done", "overlap.transfer.h2d.rate"], Link::to_device),
        (["overlap.transfer.d2h.free", "overlap.transfer.d2h.done", "overlap.transfer.d2h.rate"], Link::to_host),
    ];
    let bytes = (elements * size_of::<f32>()) as f64;
    for ([free, done, rate], copy) in directions {
        bench.group(&[free, done], parameters, |device| {
            let link = Link::new(device, kind, elements)?;
            let case = |id, wait: bool| {
                let link = Rc::clone(&link);
                Case::host_timed(id, move || {
                    copy(&link)?;
                    if wait { link.stream.synchronize() } else { Ok(()) }
                })
            };
            Ok(vec![case(free, blocking), case(done, true)])
        });
        let (derivation, operands) = (Derivation::Computation, &[(done, parameters)]);
        bench.derive(
            rate,
            parameters,
            Formula { derivation, text: "bytes / done", operands, compute: &|t| bytes / t[0] },
        );
    }
}
