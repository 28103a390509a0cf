//! `overlap.implicit`: which calls wait for the work before them. For every read and transfer of the library, and for
//! calls that only launch work:
//!
//! - *blocks*: in which share of the trials the call returned only after a gate before it was opened ([`blocks`]): 1 is a
//!   call that waits, 0 one that does not;
//! - *stall*: for how long the call blocks the host behind a kernel of known length.

use std::cell::RefCell;
use std::hint::black_box;
use std::rc::Rc;
use std::time::Duration;

use crate::device::{Device, HostBuffer, HostKind, Stream};
use crate::error::DeviceError;
use crate::experiment::Bench;
use crate::experiment::bench::{null_device, print_to};
use crate::measure::{Stopwatch, blocks};
use crate::tensor::Tensor;
use crate::units::Unit;

/// For how long the stream is busy before a call whose stall is measured.
const BUSY: Duration = Duration::from_millis(2);

/// Elements of the tensor that is read, and of the smaller host buffers: 256 KiB, which a driver may copy aside at once.
const ELEMENTS: usize = 1 << 16;

/// A call: its two rows, the host buffer that it needs, and what it does.
struct Call {
    blocks: [&'static str; 2],
    stall: [&'static str; 2],
    buffer: Option<HostKind>,
    call: fn(&Fixture) -> Result<(), DeviceError>,
}

impl Call {
    const fn new(
        blocks: [&'static str; 2],
        stall: [&'static str; 2],
        call: fn(&Fixture) -> Result<(), DeviceError>,
    ) -> Self {
        Self { blocks, stall, buffer: None, call }
    }

    const fn with(self, kind: HostKind) -> Self {
        Self { buffer: Some(kind), ..self }
    }
}

const CALLS: &[Call] = &[
    Call::new(
        ["overlap.implicit.view.blocks", "Index one element, unread: blocked"],
        ["overlap.implicit.view.stall", "Index one element, unread: stall"],
        |f| f.x.get([7]).map(discard),
    ),
    Call::new(
        ["overlap.implicit.item.blocks", "Read one element: blocked"],
        ["overlap.implicit.item.stall", "Read one element: stall"],
        |f| f.x.get([7])?.item().map(discard),
    ),
    Call::new(
        ["overlap.implicit.copy.blocks", "Copy to the host: blocked"],
        ["overlap.implicit.copy.stall", "Copy to the host: stall"],
        |f| f.x.to_vec().map(discard),
    ),
    Call::new(
        ["overlap.implicit.array.blocks", "Host array: blocked"],
        ["overlap.implicit.array.stall", "Host array: stall"],
        |f| f.x.to_array().map(discard),
    ),
    Call::new(
        ["overlap.implicit.print.blocks", "Print one element: blocked"],
        ["overlap.implicit.print.stall", "Print one element: stall"],
        |f| print_to(&mut null_device()?, &f.x.get([7])?),
    ),
    Call::new(
        ["overlap.implicit.any.blocks", "Branch on any(x): blocked"],
        ["overlap.implicit.any.stall", "Branch on any(x): stall"],
        |f| f.x.any().map(discard),
    ),
    Call::new(
        ["overlap.implicit.nonzero.blocks", "nonzero(x): blocked"],
        ["overlap.implicit.nonzero.stall", "nonzero(x): stall"],
        |f| f.x.nonzero().map(discard),
    ),
    Call::new(
        ["overlap.implicit.rows-from-host.blocks", "Rows by host indices: blocked"],
        ["overlap.implicit.rows-from-host.stall", "Rows by host indices: stall"],
        |f| f.x.index_select(&[2, 0, 1]).map(discard),
    ),
    Call::new(
        ["overlap.implicit.rows-on-device.blocks", "Rows by device indices: blocked"],
        ["overlap.implicit.rows-on-device.stall", "Rows by device indices: stall"],
        |f| f.x.gather(&f.rows).map(discard),
    ),
    Call::new(
        ["overlap.implicit.sum.blocks", "Sum, left on the device: blocked"],
        ["overlap.implicit.sum.stall", "Sum, left on the device: stall"],
        |f| f.x.sum().map(discard),
    ),
    Call::new(
        ["overlap.implicit.upload.blocks", "Tensor of host values: blocked"],
        ["overlap.implicit.upload.stall", "Tensor of host values: stall"],
        |f| f.x.stream().tensor(&[1.0f32; 16], [16]).map(discard),
    ),
    Call::new(
        ["overlap.implicit.from-pageable.blocks", "Copy from pageable memory: blocked"],
        ["overlap.implicit.from-pageable.stall", "Copy from pageable memory: stall"],
        Fixture::copy_from,
    )
    .with(HostKind::Pageable),
    Call::new(
        ["overlap.implicit.from-pinned.blocks", "Copy from pinned memory: blocked"],
        ["overlap.implicit.from-pinned.stall", "Copy from pinned memory: stall"],
        Fixture::copy_from,
    )
    .with(HostKind::Pinned),
    Call::new(
        ["overlap.implicit.to-pageable.blocks", "Copy to pageable memory: blocked"],
        ["overlap.implicit.to-pageable.stall", "Copy to pageable memory: stall"],
        Fixture::copy_to,
    )
    .with(HostKind::Pageable),
    Call::new(
        ["overlap.implicit.to-pinned.blocks", "Copy to pinned memory: blocked"],
        ["overlap.implicit.to-pinned.stall", "Copy to pinned memory: stall"],
        Fixture::copy_to,
    )
    .with(HostKind::Pinned),
];

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

/// Each call is a group: one that has no meaning on an engine takes no other with it. Copies of host buffers are made
/// with a small and with a large buffer, since a driver may treat the two differently.
pub(super) fn run(bench: &mut Bench, patience: Duration, large: usize) {
    for call in CALLS {
        call.run(bench, patience, ELEMENTS);
        if call.buffer.is_some() && large != ELEMENTS {
            call.run(bench, patience, large);
        }
    }
}

impl Call {
    fn run(&self, bench: &mut Bench, patience: Duration, elements: usize) {
        let Call { blocks: [waits, waits_label], stall: [stall, stall_label], buffer, call } = *self;
        let bytes = elements * size_of::<f32>();
        bench
            .group("Implicit synchronization", [("busy_seconds", BUSY.as_secs_f64().into()), ("bytes", bytes.into())])
            .setup(move |device| {
                let fixture = Rc::new(Fixture::new(device, buffer, elements)?);
                // Whatever code the call loads is loaded before a gate closes.
                call(&fixture)?;
                Ok(fixture)
            })
            .observed(waits, waits_label, Unit::Ratio, move |fixture| {
                let fixture = Rc::clone(fixture);
                Ok(move || Ok(f64::from(blocks(&fixture.stream, patience, || call(&fixture))?)))
            })
            .host_time_within(stall, stall_label, move |fixture| {
                let fixture = Rc::clone(fixture);
                Ok(move |watch: &mut Stopwatch| {
                    fixture.stream.spin(BUSY)?;
                    watch.time(|| call(&fixture))
                })
            })
            .run();
    }
}
