//! `ceilings`: the most that the device was seen to do, for other rows to be held against. Run with every suite, after
//! its experiments, since large products warm the device.
//!
//! - *copy*: bytes read and written by a copy from one tensor to another, by the engine's own copy and by a kernel that
//!   reads one and writes the other. A small tensor may lie in a cache, here and in what is held against it: there is a
//!   row for each size.
//! - *matmul*: floating-point operations of a square product, `2 · size³`, for each element type.
//! - *h2d*, *d2h*: bytes over the link from pinned memory and into it; on the CPU engine, which has none, from and into
//!   pageable memory.
//!
//! The least that a launch costs the host is a row of the self-audit: `self-audit.enqueue.raw`. Which rows are held
//! against which ceiling is in [`share_of_ceiling`](super::share_of_ceiling).
//!
//! What it does not cover: that something else could not be faster. A ceiling here is measured, not a maker's peak rate.

use std::cell::RefCell;
use std::hint::black_box;
use std::num::NonZeroUsize;

use serde::{Deserialize, Serialize};

use super::bench::{Bench, Formula, integer, parameters, text};
use super::{Derivation, Experiment, Parameters, RowPlan, Section, count};
use crate::device::{Device, Float, FloatType, HostKind, with_float};
use crate::error::DeviceError;
use crate::measure::Case;
use crate::units::Unit;

/// The most that the device was seen to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "report", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Ceilings {
    /// Bytes of the tensors that are copied on the device (fp32).
    pub copies: Vec<NonZeroUsize>,
    /// The element types of the products.
    pub dtypes: Vec<FloatType>,
    /// Rows and columns of the products.
    pub sizes: Vec<NonZeroUsize>,
    /// Bytes of the host buffers that are copied over the link (fp32).
    pub link: Vec<NonZeroUsize>,
    /// Turns of each loop: one sample is one loop, divided by this.
    pub turns: NonZeroUsize,
}

/// On a GPU, the sizes of the documents' tensors and greater ones.
impl Default for Ceilings {
    fn default() -> Self {
        Self {
            copies: [40_000_000, 200_000_000, 1 << 30].map(count).to_vec(),
            dtypes: FloatType::ALL.to_vec(),
            sizes: [4096, 8192].map(count).to_vec(),
            link: [40_000_000, 1 << 28].map(count).to_vec(),
            turns: count(5),
        }
    }
}

impl Ceilings {
    pub(super) fn default_for(engine: &str) -> Self {
        match engine {
            "cpu" => Self {
                copies: [400_000, 2_000_000].map(count).to_vec(),
                sizes: [384, 768].map(count).to_vec(),
                link: [400_000, 2_000_000].map(count).to_vec(),
                turns: count(2),
                ..Self::default()
            },
            _ => Self::default(),
        }
    }
}

pub(super) const COPY: [&str; 2] = ["ceilings.copy.time", "ceilings.copy.rate"];
pub(super) const MATMUL: [&str; 2] = ["ceilings.matmul.time", "ceilings.matmul.rate"];
pub(super) const TO_DEVICE: [&str; 2] = ["ceilings.h2d.time", "ceilings.h2d.rate"];
pub(super) const TO_HOST: [&str; 2] = ["ceilings.d2h.time", "ceilings.d2h.rate"];

const PLAN: &[RowPlan] = &[
    RowPlan::device_time(COPY[0], "Copy on the device").per_turn(),
    RowPlan::observed(COPY[1], "Copy on the device, read and written", Unit::BytesPerSecond),
    RowPlan::device_time(MATMUL[0], "Product").per_turn(),
    RowPlan::observed(MATMUL[1], "Product, rate", Unit::FlopsPerSecond),
    RowPlan::device_time(TO_DEVICE[0], "Copy to the device").per_turn(),
    RowPlan::observed(TO_DEVICE[1], "Copy to the device, rate", Unit::BytesPerSecond),
    RowPlan::device_time(TO_HOST[0], "Copy to the host").per_turn(),
    RowPlan::observed(TO_HOST[1], "Copy to the host, rate", Unit::BytesPerSecond),
];

const SECTIONS: &[Section] = &[
    Section { title: "Copies on the device", rows: &["ceilings.copy"] },
    Section { title: "Products", rows: &["ceilings.matmul"] },
    Section { title: "The link", rows: &["ceilings.h2d", "ceilings.d2h"] },
];

impl Experiment for Ceilings {
    fn rows(&self) -> Vec<RowPlan> {
        PLAN.to_vec()
    }

    fn sections(&self) -> &'static [Section] {
        SECTIONS
    }

    fn turns(&mut self) -> &mut NonZeroUsize {
        &mut self.turns
    }

    fn element_types(&mut self) -> Option<&mut Vec<FloatType>> {
        Some(&mut self.dtypes)
    }

    fn run(&self, bench: &mut Bench) {
        for bytes in self.copies.iter().map(|bytes| bytes.get()) {
            for by in ["copy", "kernel"] {
                self.copy(bench, bytes, by);
            }
        }
        for &dtype in &self.dtypes {
            for size in self.sizes.iter().map(|size| size.get()) {
                with_float!(dtype, T => self.product::<T>(bench, size));
            }
        }
        for bytes in self.link.iter().map(|bytes| bytes.get()) {
            self.link(bench, bytes);
        }
    }
}

impl Ceilings {
    fn copy(&self, bench: &mut Bench, bytes: usize, by: &str) {
        let (elements, turns) = (elements(bytes), self.turns.get());
        let parameters = parameters([("bytes", integer(elements * 4)), ("by", text(by)), ("turns", integer(turns))]);
        bench.group(&COPY[..1], &parameters, |device| {
            let stream = device.stream()?;
            let (x, y) = (stream.ones::<f32>([elements])?, stream.zeros::<f32>([elements])?);
            let kernel = by == "kernel";
            let copy = move || if kernel { x.affine(1.0, 1.0).map(drop) } else { y.assign(&x) };
            Ok(vec![Case::device_timed(COPY[0], &stream, move || (0..turns).try_for_each(|_| copy()))?.per(turns)])
        });
        rate(bench, COPY, &parameters, "2 · bytes / time", 2.0 * (elements * 4) as f64);
    }

    fn product<T: Float>(&self, bench: &mut Bench, size: usize) {
        let turns = self.turns.get();
        let dtype = ("dtype", text(T::DTYPE.name()));
        let parameters = parameters([dtype, ("size", integer(size)), ("turns", integer(turns))]);
        bench.group(&MATMUL[..1], &parameters, |device| {
            let stream = device.stream()?;
            let (x, w) = (stream.normal::<T>([size, size])?, stream.normal::<T>([size, size])?);
            let products = move || (0..turns).try_for_each(|_| x.matmul(&w).map(|y| drop(black_box(y))));
            Ok(vec![Case::device_timed(MATMUL[0], &stream, products)?.per(turns)])
        });
        rate(bench, MATMUL, &parameters, "2 · size³ / time", 2.0 * (size as f64).powi(3));
    }

    fn link(&self, bench: &mut Bench, bytes: usize) {
        let (elements, turns) = (elements(bytes), self.turns.get());
        let kind = kind_for(bench.device());
        let memory = ("memory", text(&kind.to_string()));
        let parameters = parameters([("bytes", integer(elements * 4)), memory, ("turns", integer(turns))]);
        for (ids, to_device) in [(TO_DEVICE, true), (TO_HOST, false)] {
            bench.group(&ids[..1], &parameters, |device| {
                let stream = device.stream()?;
                let x = stream.zeros::<f32>([elements])?;
                let mut buffer = device.host_buffer::<f32>(kind, elements)?;
                // Formatted once, so that the memory is there.
                buffer.write()?.fill(1.0);
                let buffer = RefCell::new(buffer);
                let copy = move || -> Result<(), DeviceError> {
                    if to_device { x.copy_from(&buffer.borrow()) } else { x.copy_to(&mut buffer.borrow_mut()) }
                };
                Ok(vec![Case::device_timed(ids[0], &stream, move || (0..turns).try_for_each(|_| copy()))?.per(turns)])
            });
            rate(bench, ids, &parameters, "bytes / time", (elements * 4) as f64);
        }
    }
}

/// Leaves what a time comes to as a rate.
fn rate(bench: &mut Bench, [time, rate]: [&'static str; 2], parameters: &Parameters, text: &str, amount: f64) {
    let (derivation, operands) = (Derivation::Computation, &[(time, parameters)]);
    bench.derive(rate, parameters, Formula { derivation, text, operands, compute: &|t| amount / t[0] });
}

/// How many elements of fp32 take this many bytes; at least one.
fn elements(bytes: usize) -> usize {
    (bytes / size_of::<f32>()).max(1)
}

/// The memory that a link is fastest with.
fn kind_for(device: &Device) -> HostKind {
    if device.properties().engine == "cpu" { HostKind::Pageable } else { HostKind::Pinned }
}
