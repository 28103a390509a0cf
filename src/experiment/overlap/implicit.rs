//! `overlap.implicit`: which calls wait for the work before them. For every read and transfer of the library, and for
//! calls that only enqueue:
//!
//! - *blocks*: the share of rounds in which the call came back only after a gate before it was opened
//!   ([`blocks`]): 1 is a call that waits, 0 one that does not;
//! - *stall*: how long the call holds the host behind a kernel of known length.

use std::cell::RefCell;
use std::hint::black_box;
use std::rc::Rc;
use std::time::Duration;

use crate::device::{Device, HostBuffer, HostKind, Stream};
use crate::error::DeviceError;
use crate::experiment::bench::{Bench, integer, null_device, parameters, print_to};
use crate::experiment::{Parameter, Parameters, RowPlan};
use crate::measure::{Case, blocks, host_time};
use crate::tensor::Tensor;
use crate::units::Unit;

/// How long the stream is busy before a call whose stall is measured.
const BUSY: Duration = Duration::from_millis(2);

/// Elements of the tensor that is read, and of the smaller host buffers: 256 KiB, which a driver may copy aside at once.
const ELEMENTS: usize = 1 << 16;

macro_rules! calls {
    ($($name:literal: $what:literal, $kind:expr, $call:expr;)+) => {
        pub(super) const PLAN: &[RowPlan] = &[$(
            RowPlan::observed(
                concat!("overlap.implicit.", $name, ".blocks"), concat!($what, ": share that waited"), Unit::Ratio,
            ),
            RowPlan::host_time(concat!("overlap.implicit.", $name, ".stall"), concat!($what, ": stall")),
        )+];

        const CALLS: &[Call] = &[$(Call {
            blocks: concat!("overlap.implicit.", $name, ".blocks"),
            stall: concat!("overlap.implicit.", $name, ".stall"),
            buffer: $kind,
            call: $call,
        }),+];
    };
}

/// A call, the rows that it leaves, and the host buffer that it needs.
struct Call {
    blocks: &'static str,
    stall: &'static str,
    buffer: Option<HostKind>,
    call: fn(&Fixture) -> Result<(), DeviceError>,
}

calls! {
    "view": "Index one element, unread", None, |f| f.x.get([7]).map(discard);
    "item": "Read one element", None, |f| f.x.get([7])?.item().map(discard);
    "copy": "Copy to the host", None, |f| f.x.to_vec().map(discard);
    "array": "Host array", None, |f| f.x.to_array().map(discard);
    "print": "Print one element", None, |f| print_to(&mut null_device()?, &f.x.get([7])?);
    "any": "Branch on any(x)", None, |f| f.x.any().map(discard);
    "nonzero": "nonzero(x)", None, |f| f.x.nonzero().map(discard);
    "rows-from-host": "Rows by host-side indices", None, |f| f.x.index_select(&[2, 0, 1]).map(discard);
    "rows-on-device": "Rows by device-side indices", None, |f| f.x.gather(&f.rows).map(discard);
    "sum": "Sum, left on the device", None, |f| f.x.sum().map(discard);
    "upload": "Tensor of host values", None, |f| f.x.stream().tensor(&[1.0f32; 16], [16]).map(discard);
    "from-pageable": "Copy from pageable memory", Some(HostKind::Pageable), Fixture::copy_from;
    "from-pinned": "Copy from pinned memory", Some(HostKind::Pinned), Fixture::copy_from;
    "to-pageable": "Copy into pageable memory", Some(HostKind::Pageable), Fixture::copy_to;
    "to-pinned": "Copy into pinned memory", Some(HostKind::Pinned), Fixture::copy_to;
}

fn discard<T>(value: T) {
    drop(black_box(value));
}

/// What the calls are made on.
struct Fixture {
    stream: Stream,
    x: Tensor<f32>,
    rows: Tensor<i64>,
    buffer: Option<RefCell<HostBuffer<f32>>>,
}

impl Fixture {
    fn new(device: &Device, buffer: Option<HostKind>, elements: usize) -> Result<Self, DeviceError> {
        let stream = device.stream()?;
        let buffer = buffer.map(|kind| device.host_buffer(kind, elements)).transpose()?.map(RefCell::new);
        Ok(Self { x: stream.normal([elements])?, rows: stream.tensor(&[2, 0, 1], [3])?, stream, buffer })
    }

    fn copy_from(&self) -> Result<(), DeviceError> {
        self.buffer.as_ref().map_or(Ok(()), |buffer| self.x.copy_from(&buffer.borrow()))
    }

    fn copy_to(&self) -> Result<(), DeviceError> {
        self.buffer.as_ref().map_or(Ok(()), |buffer| self.x.copy_to(&mut buffer.borrow_mut()))
    }
}

/// A group a call: one that has no meaning on an engine takes no other with it. Copies of host buffers are called with a
/// small and with a large buffer, since a driver may treat the two differently.
pub(super) fn run(bench: &mut Bench, patience: Duration, large: usize) {
    let busy = ("busy_seconds", Parameter::Float(BUSY.as_secs_f64()));
    for call in CALLS {
        let sizes: &[usize] = if call.buffer.is_some() { &[ELEMENTS, large] } else { &[ELEMENTS] };
        for &elements in sizes {
            let bytes = ("bytes", integer(elements * size_of::<f32>()));
            call.run(bench, patience, elements, &parameters([busy.clone(), bytes]));
        }
    }
}

impl Call {
    fn run(&'static self, bench: &mut Bench, patience: Duration, elements: usize, parameters: &Parameters) {
        let Call { blocks: waits, stall, buffer, call } = self;
        bench.group(&[waits, stall], parameters, |device| {
            let fixture = Rc::new(Fixture::new(device, *buffer, elements)?);
            // Whatever code the call loads is loaded before a gate closes.
            call(&fixture)?;
            let held = Rc::clone(&fixture);
            Ok(vec![
                Case::new(*waits, move || Ok(f64::from(blocks(&held.stream, patience, || call(&held))?))),
                Case::new(*stall, move || {
                    fixture.stream.spin(BUSY)?;
                    Ok(host_time(|| call(&fixture))?.1)
                }),
            ])
        });
    }
}
