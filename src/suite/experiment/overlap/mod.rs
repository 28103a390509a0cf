//! `overlap`: what runs beside the host, which calls wait for the device, what transfers cost, and how far copies and
//! kernels overlap.
//!
//! - *execution*: three large random tensors by a host library, and on the device until dispatch returns and until
//!   completion.
//! - *finish*: a hundred additions, until dispatch returns and until completion.
//! - *nonzero*: a call whose result's shape depends on the values, behind twenty kernels and with nothing pending.
//! - *implicit* (with `host_buffers`), *transfer*, *double-buffer*, *buffers*, *sweep*: a file each.
//! - *scenarios*: what is recorded as timelines.

mod buffers;
mod double_buffer;
mod host_buffers;
mod implicit;
mod pipeline;
mod scenarios;
mod sweep;
mod transfer;

use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand_distr::{Distribution, StandardNormal};

use crate::experiment::prelude::*;

parameters! {
    /// Which calls wait for the device, what transfers cost, and how far they overlap with work.
    pub struct Overlap {
        /// Elements of each of the three random tensors.
        draws: Size = count(50_000_000),
        /// Elements of every other tensor and transfer (fp32).
        elements: Size = count(10_000_000),
        /// Additions in a row.
        adds: Count = count(100),
        /// Kernels before the search for elements that are not zero.
        scales: Count = count(20),
        /// Iterations of the double-buffered loop.
        steps: Count = count(10),
        /// Bytes of the host buffers whose copies are made behind a closed gate.
        host_buffers: Vec<Size> = [40, 1 << 16, 1 << 20, 40_000_000].map(count).to_vec(),
        /// Bytes of the host buffers whose copies are timed, beside those of `elements`.
        transfers: Vec<Size> = [1 << 12, 1 << 16, 1 << 20, 10_000_000].map(count).to_vec(),
        /// Elements of the buffers of the sweep.
        sweep: Size = count(2_500_000),
        /// How many times as long as its copy a kernel of the sweep lasts.
        kernel_ratios: Vec<Factor> = [0.1, 0.3, 1.0, 3.0, 10.0].map(Bounded).to_vec(),
        /// After how long a call behind a closed gate counts as one that blocks: well above what the calls cost by themselves.
        patience: Seconds = Seconds::milliseconds(20),
    }
}

impl Experiment for Overlap {
    const NAME: &'static str = "overlap";
    const SUMMARY: &'static str =
        "Which calls wait for the device, what transfers cost, and how far they overlap with kernels";
    const ITERATIONS: Option<&'static str> = Some("steps");

    fn for_cpu() -> Self {
        Self {
            draws: count(200_000),
            elements: count(100_000),
            host_buffers: [40, 1 << 16, 1 << 20].map(count).to_vec(),
            transfers: [1 << 12, 1 << 16].map(count).to_vec(),
            sweep: count(100_000),
            ..Self::default()
        }
    }

    fn groups(&self, engine: &str) -> Vec<Group> {
        let bytes = |sizes: &[Size]| sizes.iter().map(|size| size.get()).collect::<Vec<usize>>();
        let (elements, steps, sweep) = (self.elements.get(), self.steps.get(), self.sweep.get());
        let mut groups = Vec::from(self.execution());
        groups.push(self.finish());
        groups.extend(implicit::run(self.patience.duration(), &bytes(&self.host_buffers)));
        groups.push(self.nonzero());
        groups.extend(transfer::run(elements, &bytes(&self.transfers)));
        groups.extend([double_buffer::run(engine, elements, steps), buffers::run(elements, steps)]);
        groups.extend(self.kernel_ratios.iter().map(|ratio| sweep::run(engine, sweep, steps, ratio.0)));
        groups.extend([sweep::pageable(sweep, steps), self.same()]);
        groups
    }

    fn record(&self, recorder: &mut TraceRecorder) {
        scenarios::record(self, recorder);
    }
}

/// The bytes of a tensor of this many elements of fp32.
fn fp32_bytes(elements: usize) -> f64 {
    (elements * size_of::<f32>()) as f64
}

impl Overlap {
    fn execution(&self) -> [Group; 2] {
        let elements = self.draws.get();
        let normal = move |stream: &Stream| -> Result<[Tensor<f32>; 3]> {
            Ok([stream.normal([elements])?, stream.normal([elements])?, stream.normal([elements])?])
        };
        let bytes = fp32_bytes(elements);
        let device = Group::of("Execution", [("elements", elements.into())])
            .setup(|device| device.stream())
            .host_time_of("overlap.execution.dispatch", "Three random tensors on the device, dispatch", move |stream| {
                normal(stream)
            })
            .work(Work::launches(3.0, "3"))
            .host_time_of(
                "overlap.execution.complete",
                "Three random tensors on the device, completion",
                move |stream| {
                    let tensors = normal(stream)?;
                    stream.device().synchronize().map(|()| tensors)
                },
            )
            .work(Work::copy(3.0 * bytes, "3 · width · elements", bytes))
            .build();
        let host = Group::of("Execution", [("elements", elements.into())])
            .without_warmup()
            .with_parameters([("library", "rand_distr, fp32, 1 thread".into())])
            .host_time("overlap.execution.host", "Three random tensors by a host library", move |_| {
                room_for::<f32>(elements.saturating_mul(3))?;
                let mut random = Xoshiro256PlusPlus::seed_from_u64(0);
                Ok(move || {
                    let mut normal =
                        || -> Vec<f32> { (0..elements).map(|_| StandardNormal.sample(&mut random)).collect() };
                    Ok([normal(), normal(), normal()])
                })
            })
            .with_parameters([("library", "PyTorch, fp32".into())])
            .foreign_time(
                "overlap.execution.host",
                "Three random tensors by a host library",
                "it is PyTorch's own library of the host",
            )
            .build();
        [device, host]
    }

    fn finish(&self) -> Group {
        let (elements, adds) = (self.elements.get(), self.adds.get());
        let launch = move |stream: &Stream| {
            let x = stream.normal::<f32>([elements])?;
            (0..adds).try_for_each(|_| x.add_scalar(1.0).map(|y| drop(black_box(y))))
        };
        let (bytes, count) = (fp32_bytes(elements), adds as f64);
        Group::of("Dispatch and completion", [("elements", elements.into()), ("adds", adds.into())])
            .setup(|device| device.stream())
            .host_time_of("overlap.finish.host-free", "Additions, dispatch", move |stream| launch(stream))
            .work(Work::launches(1.0 + count, "1 + adds"))
            .host_time_of("overlap.finish.complete", "Additions, completion", move |stream| {
                launch(stream)?;
                stream.device().synchronize()
            })
            .work(Work::copy(bytes + 2.0 * bytes * count, "width · elements + 2 · width · elements · adds", bytes))
            .build()
    }

    /// The copy of a host buffer to the device, twice.
    fn same(&self) -> Group {
        let elements = self.elements.get();
        let bytes = elements * size_of::<f32>();
        Group::of("The same code twice", [("bytes", bytes.into())])
            .setup(move |device| HostCopy::new(device, HostKind::Pageable, elements))
            .twice(["overlap.same.a", "overlap.same.b", "overlap.same.ratio"], move |buffers| {
                buffers.to_device()?;
                buffers.stream.synchronize()
            })
    }

    fn nonzero(&self) -> Group {
        let (elements, scales) = (self.elements.get(), self.scales.get());
        let scaled = move |x: &Tensor<f32>| (0..scales).try_fold(x.clone(), |z, _| z.multiply_scalar(1.000_001));
        let (bytes, count) = (fp32_bytes(elements), scales as f64);
        // A tensor of values is read, and one of indices of 8 bytes is written.
        let search = bytes + 8.0 * elements as f64;
        Group::of("nonzero", [("elements", elements.into()), ("scales", scales.into())])
            .setup(move |device| device.stream()?.normal::<f32>([elements]))
            .host_time_of("overlap.nonzero.enqueue", "Scaling, dispatch", move |x| scaled(x))
            .work(Work::launches(count, "scales"))
            .stopwatch_of("overlap.nonzero.stall", "nonzero, scaling pending", move |x, watch| {
                let z = scaled(x)?;
                watch.time(|| z.nonzero()).map(drop)
            })
            .host_time_of("overlap.nonzero.whole", "Scaling and nonzero", move |x| scaled(x)?.nonzero())
            .work(Work::copy(
                2.0 * bytes * count + search,
                "2 · width · elements · scales + (width + 8) · elements",
                bytes,
            ))
            .stopwatch_of("overlap.nonzero.alone", "nonzero, nothing pending", move |x, watch| {
                let z = scaled(x)?;
                x.stream().synchronize()?;
                watch.time(|| z.nonzero()).map(drop)
            })
            .work(Work::copy(search, "(width + 8) · elements", bytes))
            .build()
    }
}
