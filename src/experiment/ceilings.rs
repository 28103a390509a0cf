//! `ceilings`: peak rates measured, to compare other rows with. It runs with every suite, after the other experiments,
//! since large matmuls warm the device.
//!
//! - *copy*: bytes read and written by a copy from one tensor to another, by the engine's own copy and by a kernel that
//!   reads one and writes the other. A small tensor may fit into a cache, here and in the rows that are compared with it:
//!   there is a row for each size.
//! - *matmul*: floating-point operations of a square matmul, `2 · size³`, for each element type.
//! - *h2d*, *d2h*: bytes from pinned memory to the device and back, over PCIe (or NVLink); on the CPU engine, which has
//!   neither, from and to pageable memory.
//!
//! The least host time of a launch is a row of the self-audit, `self-audit.enqueue.raw`. Which rows are compared with
//! which peak is in [`share_of_peak`](crate::results::share_of_peak).
//!
//! What it does not cover: that something else could be faster. A peak here is measured, not a vendor's peak rate.

use std::hint::black_box;
use std::num::NonZeroUsize;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bench::matmul_flops;
use super::counts;
use super::host_copy::{HostCopy, fastest_memory};
use super::{Bench, Experiment, Formula, count};
use crate::device::{Float, FloatType, with_float};
use crate::error::DeviceError;
use crate::results::Work;
use crate::units::Unit;

/// Peak rates measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Ceilings {
    /// Bytes of the tensors that are copied on the device (fp32).
    #[serde(deserialize_with = "counts::trillions")]
    pub copies: Vec<NonZeroUsize>,
    /// The element types of the matmuls.
    pub dtypes: Vec<FloatType>,
    /// Rows and columns of the matrices.
    #[serde(deserialize_with = "counts::millions")]
    pub sizes: Vec<NonZeroUsize>,
    /// Bytes of the host buffers that are copied over PCIe (or NVLink) (fp32).
    #[serde(deserialize_with = "counts::trillions")]
    pub link: Vec<NonZeroUsize>,
    /// Iterations of each loop: one sample is one loop, divided by this.
    #[serde(deserialize_with = "counts::million")]
    pub iterations: NonZeroUsize,
}

/// On a GPU, the sizes of the documents' tensors and larger ones.
impl Default for Ceilings {
    fn default() -> Self {
        Self {
            copies: [40_000_000, 200_000_000, 1 << 30].map(count).to_vec(),
            dtypes: FloatType::ALL.to_vec(),
            sizes: [4096, 8192].map(count).to_vec(),
            link: [40_000_000, 1 << 28].map(count).to_vec(),
            iterations: count(5),
        }
    }
}

impl Experiment for Ceilings {
    const NAME: &'static str = "ceilings";
    const SUMMARY: &'static str = "Peak rates measured: copies, matmuls, transfers over PCIe (or NVLink)";

    fn default_for(engine: &str) -> Self {
        match engine {
            "cpu" => Self {
                copies: [400_000, 2_000_000].map(count).to_vec(),
                sizes: [384, 768].map(count).to_vec(),
                link: [400_000, 2_000_000].map(count).to_vec(),
                iterations: count(2),
                ..Self::default()
            },
            _ => Self::default(),
        }
    }

    fn iterations(&mut self) -> Option<&mut NonZeroUsize> {
        Some(&mut self.iterations)
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
                with_float!(dtype, T => self.matmul::<T>(bench, size));
            }
        }
        for bytes in self.link.iter().map(|bytes| bytes.get()) {
            self.transfer(bench, bytes, TO_DEVICE);
            self.transfer(bench, bytes, TO_HOST);
        }
    }
}

impl Ceilings {
    fn copy(&self, bench: &mut Bench, bytes: usize, by: &'static str) {
        let (elements, iterations) = (elements(bytes), self.iterations.get());
        let bytes = elements * size_of::<f32>();
        let amount = 2.0 * bytes as f64;
        bench
            .group(
                "Copies on the device",
                [("bytes", bytes.into()), ("by", by.into()), ("iterations", iterations.into())],
            )
            .device_time("ceilings.copy.time", "Copy on the device", move |device| {
                let stream = device.stream()?;
                let (x, y) = (stream.ones::<f32>([elements])?, stream.zeros::<f32>([elements])?);
                let kernel = by == "kernel";
                let copy = move || if kernel { x.affine(1.0, 1.0).map(drop) } else { y.assign(&x) };
                Ok((stream, move || (0..iterations).try_for_each(|_| copy())))
            })
            .per(iterations)
            .derived(
                "ceilings.copy.rate",
                "Copy on the device, read and written",
                Unit::BytesPerSecond,
                Formula::of("2 · bytes / time", ["ceilings.copy.time"], move |[time]| amount / time),
            )
            .work(Work::copy(amount, "2 · bytes", bytes as f64).as_peak())
            .run();
    }

    fn matmul<T: Float>(&self, bench: &mut Bench, size: usize) {
        let (iterations, amount) = (self.iterations.get(), matmul_flops(size));
        bench
            .group(
                "Matmuls",
                [("dtype", T::DTYPE.name().into()), ("size", size.into()), ("iterations", iterations.into())],
            )
            .device_time("ceilings.matmul.time", "Matmul", move |device| {
                let stream = device.stream()?;
                let (x, w) = (stream.normal::<T>([size, size])?, stream.normal::<T>([size, size])?);
                Ok((stream, move || (0..iterations).try_for_each(|_| x.matmul(&w).map(|y| drop(black_box(y))))))
            })
            .per(iterations)
            .derived(
                "ceilings.matmul.rate",
                "Matmul, rate",
                Unit::FlopsPerSecond,
                Formula::of("2 · size³ / time", ["ceilings.matmul.time"], move |[time]| amount / time),
            )
            .work(Work::matmul(amount, "2 · size³").as_peak())
            .run();
    }

    fn transfer(&self, bench: &mut Bench, bytes: usize, direction: Direction) {
        let (elements, iterations) = (elements(bytes), self.iterations.get());
        let kind = fastest_memory(bench.engine());
        let bytes = elements * size_of::<f32>();
        let amount = bytes as f64;
        let Direction { time: [time, time_label], rate: [rate, rate_label], copy, work } = direction;
        bench
            .group(
                "Transfers",
                [("bytes", bytes.into()), ("memory", kind.to_string().into()), ("iterations", iterations.into())],
            )
            .device_time(time, time_label, move |device| {
                let buffers = HostCopy::new(device, kind, elements)?;
                Ok((buffers.stream.clone(), move || (0..iterations).try_for_each(|_| copy(&buffers))))
            })
            .per(iterations)
            .derived(
                rate,
                rate_label,
                Unit::BytesPerSecond,
                Formula::of("bytes / time", [time], move |[time]| amount / time),
            )
            .work(work(amount, "bytes", amount).as_peak())
            .run();
    }
}

/// A direction of transfers: its rows, what copies, and its work.
struct Direction {
    time: [&'static str; 2],
    rate: [&'static str; 2],
    copy: fn(&HostCopy) -> Result<(), DeviceError>,
    work: fn(f64, &str, f64) -> Work,
}

const TO_DEVICE: Direction = Direction {
    time: ["ceilings.h2d.time", "Host to device"],
    rate: ["ceilings.h2d.rate", "Host to device, rate"],
    copy: HostCopy::to_device,
    work: Work::to_device,
};

const TO_HOST: Direction = Direction {
    time: ["ceilings.d2h.time", "Device to host"],
    rate: ["ceilings.d2h.rate", "Device to host, rate"],
    copy: HostCopy::to_host,
    work: Work::to_host,
};

/// How many elements of fp32 take this many bytes; at least one.
fn elements(bytes: usize) -> usize {
    (bytes / size_of::<f32>()).max(1)
}
