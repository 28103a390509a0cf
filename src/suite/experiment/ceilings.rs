//! `ceilings`: peak rates measured, to compare other rows with. It runs with every suite, after the other experiments,
//! since large matmuls warm the device.
//!
//! It searches over ways and sizes. Rows of one kind are one group:
//!
//! - *copy*: bytes read and written by a copy from one tensor to another, by the engine's own copy and by a kernel that
//!   reads one and writes the other. A small tensor may fit into a cache, here and in the rows that are compared with it.
//! - *matmul*: floating-point operations of a square matmul, `2 · size³`, for each element type.
//! - *h2d*, *d2h*: bytes from pinned memory to the device and back, over PCIe (or NVLink); on the CPU engine, which has
//!   neither, from and to pageable memory.
//!
//! A loop over something small has more iterations than one over something large, so that the host's launches do not limit
//! it. The least host time of a launch is a row of the self-audit, `self-audit.enqueue.raw`. A peak is the best rate of the
//! whole run, by whichever row: see [`share_of_peak`](crate::results::share_of_peak).
//!
//! What it does not cover: that something else could be faster. A peak here is measured, not a vendor's peak rate.

use crate::experiment::prelude::*;

parameters! {
    /// Peak rates measured.
    pub struct Ceilings {
        /// Bytes of the tensors that are copied on the device (fp32).
        copies: Vec<Size> = [4_000_000, 10_000_000, 40_000_000, 200_000_000, 1 << 30].map(count).to_vec(),
        /// The element types of the matmuls.
        dtypes: Vec<FloatType> = FloatType::ALL.to_vec(),
        /// Rows and columns of the matrices.
        sizes: Vec<Count> = [512, 1024, 2048, 4096, 8192].map(count).to_vec(),
        /// Bytes of the host buffers that are copied over PCIe (or NVLink) (fp32).
        link: Vec<Size> = [1 << 20, 10_000_000, 40_000_000, 1 << 28].map(count).to_vec(),
        /// Iterations of the loop over the largest: one sample is one loop, divided by its iterations.
        iterations: Count = count(5),
    }
}

impl Experiment for Ceilings {
    const NAME: &'static str = "ceilings";
    const SUMMARY: &'static str = "Peak rates measured: copies, matmuls, transfers over PCIe (or NVLink)";
    const ITERATIONS: Option<&'static str> = Some("iterations");
    const ELEMENT_TYPES: Option<&'static str> = Some("dtypes");

    fn for_cpu() -> Self {
        Self {
            copies: [400_000, 2_000_000].map(count).to_vec(),
            sizes: [128, 512].map(count).to_vec(),
            link: [400_000, 2_000_000].map(count).to_vec(),
            iterations: count(2),
            ..Self::default()
        }
    }

    fn groups(&self, engine: &str) -> Vec<Group> {
        vec![self.copies(), self.matmuls(), self.transfers(engine), self.same()]
    }
}

impl Ceilings {
    /// The iterations of a loop over something that is `size` of what is `largest`.
    fn iterations_for(&self, size: f64, largest: f64) -> usize {
        const MAX: usize = 100;
        let least = self.iterations.get();
        ((least as f64 * largest / size) as usize).clamp(least, MAX.max(least))
    }

    fn copies(&self) -> Group {
        let sizes: Vec<usize> = self.copies.iter().map(|bytes| elements(bytes.get())).collect();
        let largest = sizes.iter().copied().max().unwrap_or(1);
        let mut group = Group::of("Copies on the device", []);
        for elements in sizes {
            let iterations = self.iterations_for(elements as f64, largest as f64);
            let bytes = elements * size_of::<f32>();
            let amount = 2.0 * bytes as f64;
            for by in ["copy", "kernel"] {
                group = group
                    .with_parameters([("bytes", bytes.into()), ("by", by.into()), ("iterations", iterations.into())])
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
                        "2 · bytes / time",
                    )
                    .work(Work::copy(amount, "2 · bytes", bytes as f64).as_peak());
            }
        }
        group.build()
    }

    fn matmuls(&self) -> Group {
        let largest = self.sizes.iter().map(|size| matmul_flops(size.get())).fold(1.0, f64::max);
        let mut group = Group::of("Matmuls", []);
        for &dtype in &self.dtypes {
            for size in self.sizes.iter().map(|size| size.get()) {
                let iterations = self.iterations_for(matmul_flops(size), largest);
                group = group.with_parameters([
                    ("dtype", dtype.name().into()),
                    ("size", size.into()),
                    ("iterations", iterations.into()),
                ]);
                group = with_float!(dtype, T => matmul::<T>(group, size, iterations));
            }
        }
        group.build()
    }

    fn transfers(&self, engine: &str) -> Group {
        let kind = fastest_memory(engine);
        let sizes: Vec<usize> = self.link.iter().map(|bytes| elements(bytes.get())).collect();
        let largest = sizes.iter().copied().max().unwrap_or(1);
        let mut group = Group::of("Transfers", [("memory", kind.to_string().into())]);
        for elements in sizes {
            let iterations = self.iterations_for(elements as f64, largest as f64);
            let bytes = elements * size_of::<f32>();
            let amount = bytes as f64;
            group = group.with_parameters([("bytes", bytes.into()), ("iterations", iterations.into())]);
            for (words, [time, rate], (copy, work)) in [
                ("Host to device", ["ceilings.h2d.time", "ceilings.h2d.rate"], TO_DEVICE),
                ("Device to host", ["ceilings.d2h.time", "ceilings.d2h.rate"], TO_HOST),
            ] {
                group = group
                    .device_time(time, words, move |device| {
                        let buffers = HostCopy::new(device, kind, elements)?;
                        Ok((buffers.stream.clone(), move || (0..iterations).try_for_each(|_| copy(&buffers))))
                    })
                    .per(iterations)
                    .derived(rate, &format!("{words}, rate"), Unit::BytesPerSecond, "bytes / time")
                    .work(work(amount, "bytes", amount).as_peak());
            }
        }
        group.build()
    }

    /// A loop of copies by a kernel and a synchronize, twice.
    fn same(&self) -> Group {
        let (iterations, elements) =
            (self.iterations.get(), self.copies.first().map_or(1, |bytes| elements(bytes.get())));
        let bytes = elements * size_of::<f32>();
        Group::of("The same code twice", [("bytes", bytes.into()), ("iterations", iterations.into())])
            .setup(move |device| device.stream()?.ones::<f32>([elements]))
            .twice(["ceilings.same.a", "ceilings.same.b", "ceilings.same.ratio"], move |x| {
                (0..iterations).try_for_each(|_| x.affine(1.0, 1.0).map(drop))?;
                x.stream().device().synchronize()
            })
    }
}

/// A loop of square matmuls and its rate.
fn matmul<T: Float>(group: GroupBuilder<Device>, size: usize, iterations: usize) -> GroupBuilder<Device> {
    let amount = matmul_flops(size);
    group
        .device_time("ceilings.matmul.time", "Matmul", move |device| {
            let stream = device.stream()?;
            let (x, w) = (stream.normal::<T>([size, size])?, stream.normal::<T>([size, size])?);
            Ok((stream, move || (0..iterations).try_for_each(|_| x.matmul(&w).map(|y| drop(black_box(y))))))
        })
        .per(iterations)
        .derived("ceilings.matmul.rate", "Matmul, rate", Unit::FlopsPerSecond, "2 · size³ / time")
        .work(Work::matmul(amount, "2 · size³").as_peak())
}

/// How many elements of fp32 take this many bytes; at least one.
fn elements(bytes: usize) -> usize {
    (bytes / size_of::<f32>()).max(1)
}
