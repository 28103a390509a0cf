//! `sync-points`: what explicit and implicit synchronization costs, for a large and a small matmul.
//!
//! Method, where it is not plain from the rows:
//! - *async* and *forced* are the time of a loop of `iters` matmuls by two events on the stream, divided by `iters`; the
//!   forced loop synchronizes the device in each iteration. One loop is one sample; the two alternate.
//! - *pending* rows launch a matmul and then time the read alone by the host's clock; *ready* rows synchronize between
//!   the two.
//! - Printing writes to the null device: formatting and a system call, but no terminal.
//! - *gap*, *linear*, *idle*: a file each.
//! - In the *multi-stream* rows a kernel that spins for a known time keeps the other stream busy.
//!
//! What it does not cover: the cost of a framework's own dispatch, which a program in another language adds.

mod gap;
mod idle;
mod linear;
mod reads;
mod streams;

use crate::experiment::prelude::*;

parameters! {
    /// Matmuls with and without a synchronize in each iteration, and reads of a result that is pending or ready.
    pub struct SyncPoints {
        /// The element types; the rows that the document shows for one type are measured for the first.
        dtypes: Vec<FloatType> = FloatType::ALL.to_vec(),
        /// Iterations of a loop of small matmuls: one sample is one loop.
        iters: Count = count(50),
        /// Iterations of a loop of large matmuls, where that are fewer.
        big_iters: Count = count(10),
        /// Rows and columns of the large matrices.
        big: Count = count(8192),
        /// Rows and columns of the small matrices.
        small: Count = count(512),
        /// Iterations of the training-like loop.
        steps: Count = count(50),
        /// Inputs of the inference-like loop.
        samples: Count = count(64),
        /// Iterations of the loops that show whether the cost adds up, each a row of its own.
        loops: Vec<Count> = [10, 100, 1000].map(count).to_vec(),
        /// The lengths of the kernels between which a synchronize leaves a gap, in seconds.
        kernels: Vec<Length> = [5e-6, 1e-4, 1e-3, 2e-2].map(Bounded).to_vec(),
        /// The lengths of the kernels after which a scalar is read, in seconds.
        after: Vec<Length> = [5e-6, 2e-2].map(Bounded).to_vec(),
    }
}

impl Experiment for SyncPoints {
    const NAME: &'static str = "sync-points";
    const SUMMARY: &'static str = "What explicit and implicit synchronization costs, for large and small matmuls";
    const ITERATIONS: Option<&'static str> = Some("iters");
    const ELEMENT_TYPES: Option<&'static str> = Some("dtypes");

    /// The document's parameters; smaller ones on the CPU, where its large matmul would take minutes.
    fn for_cpu() -> Self {
        Self {
            iters: count(5),
            big: count(768),
            small: count(96),
            steps: count(10),
            loops: [5, 20, 50].map(count).to_vec(),
            kernels: [5e-6, 1e-4, 1e-3].map(Bounded).to_vec(),
            after: [5e-6, 5e-3].map(Bounded).to_vec(),
            ..Self::default()
        }
    }

    fn groups(&self, _engine: &str) -> Vec<Group> {
        let (big, small) = (self.big.get(), self.small.get());
        let mut groups = vec![
            self.loops("Large matmul", BIG, big, self.iters.min(self.big_iters).get()),
            self.loops("Small matmul", SMALL, small, self.iters.get()),
            self.scalar_reads(),
        ];
        let Some(&first) = self.dtypes.first() else { return groups };
        let sizes = [("big", big), ("small", small)];
        with_float!(first, T => {
            groups.push(self.other_reads::<T>());
            groups.extend(sizes.map(|(model, size)| self.training_loop::<T>(model, size)));
            groups.extend([self.inference::<T>(), self.timing::<T>()]);
            groups.extend(sizes.map(|(model, size)| streams::two_matmuls::<T>(model, size)));
            groups.extend([
                streams::scope::<T>(small),
                linear::run::<T>(small, &self.loops),
                idle::run::<T>(small, self.iters.get()),
                self.same::<T>(),
            ]);
        });
        groups.extend([gap::run(&self.kernels), reads::after(&self.after)]);
        groups
    }

    /// A few iterations of the large matmul, without and with a synchronize in each.
    fn record(&self, recorder: &mut TraceRecorder) {
        const ITERATIONS: usize = 10;
        let (Some(&first), n) = (self.dtypes.first(), self.big.get()) else { return };
        with_float!(first, T => {
            for (name, forced) in [("sync-points.big.async", false), ("sync-points.big.forced", true)] {
                recorder.record(name, [dtype::<T>(), ("size", n.into()), ("iters", ITERATIONS.into())], |device| {
                    let (stream, x, w) = operands::<T>(device, n)?;
                    Ok(Box::new(move || {
                        iterate(&x, &w, ITERATIONS, forced)?;
                        if forced { Ok(()) } else { stream.device().synchronize() }
                    }))
                });
            }
        });
    }
}

/// The rows of a loop without and with a synchronize in each iteration, and their difference.
type Loops = [&'static str; 3];

const BIG: Loops = ["sync-points.big.async", "sync-points.big.forced", "sync-points.big.delta"];
const SMALL: Loops = ["sync-points.small.async", "sync-points.small.forced", "sync-points.small.delta"];

fn dtype<T: Float>() -> (&'static str, Parameter) {
    ("dtype", T::DTYPE.name().into())
}

/// The work of one matmul.
fn matmul(n: usize) -> Work {
    Work::matmul(matmul_flops(n), "2 · size³")
}

/// Two square operands and their stream.
fn operands<T: Float>(device: &Device, size: usize) -> Result<(Stream, Tensor<T>, Tensor<T>)> {
    let stream = device.stream()?;
    let (x, w) = (stream.normal([size, size])?, stream.normal([size, size])?);
    Ok((stream, x, w))
}

/// A loop of matmuls, with a synchronize in each iteration or with none.
fn iterate<T: Float>(x: &Tensor<T>, w: &Tensor<T>, iters: usize, synchronize: bool) -> Result<()> {
    let device = x.stream().device();
    for _ in 0..iters {
        black_box(x.matmul(w)?);
        if synchronize {
            device.synchronize()?;
        }
    }
    Ok(())
}

/// The loops of one size and one type.
fn loops<T: Float>(group: GroupBuilder<Device>, rows: Loops, n: usize, iters: usize) -> GroupBuilder<Device> {
    let [without, each, delta] = rows;
    let looped = move |synchronize: bool| {
        move |device: &Device| {
            let (stream, x, w) = operands::<T>(device, n)?;
            Ok((stream, move || iterate(&x, &w, iters, synchronize)))
        }
    };
    group
        .device_time(without, "No synchronize in the loop", looped(false))
        .per(iters)
        .work(matmul(n))
        .device_time(each, "Synchronize each iteration", looped(true))
        .per(iters)
        .work(matmul(n))
        .difference(delta, "Cost of a synchronize", [each, without])
}

impl SyncPoints {
    /// The loops of one size and all types: one group.
    fn loops(&self, heading: &str, rows: Loops, n: usize, iters: usize) -> Group {
        let mut group = Group::of(heading, [("size", n.into()), ("iters", iters.into())]);
        for &dtype in &self.dtypes {
            group = group.with_parameters([("dtype", dtype.name().into())]);
            group = with_float!(dtype, T => loops::<T>(group, rows, n, iters));
        }
        group.build()
    }

    /// The loop of small matmuls with a synchronize in each iteration, twice.
    fn same<T: Float>(&self) -> Group {
        let (n, iters) = (self.small.get(), self.iters.get());
        Group::of("The same code twice", [dtype::<T>(), ("size", n.into()), ("iters", iters.into())])
            .setup(move |device| operands::<T>(device, n))
            .twice(["sync-points.same.a", "sync-points.same.b", "sync-points.same.ratio"], move |(_, x, w)| {
                iterate(x, w, iters, true)
            })
    }

    fn training_loop<T: Float>(&self, model: &'static str, n: usize) -> Group {
        let steps = self.steps.get();
        let extrapolated = |text: &str| Formula::from(text).is(Derivation::Extrapolation);
        let matmuls = || Work::matmul(matmul_flops(n) * steps as f64, "2 · size³ · steps");
        Group::of(
            "Training-like loop",
            [dtype::<T>(), ("model", model.into()), ("size", n.into()), ("steps", steps.into())],
        )
        .setup(move |device| operands::<T>(device, n))
        .host_time_of("sync-points.training-loop.each-step", "Loss read each iteration", move |(_, x, w)| {
            let loss = || x.matmul(w)?.mean()?.item();
            (0..steps).try_for_each(|_| loss().map(|loss| _ = black_box(loss)))
        })
        .work(matmuls())
        .host_time_of("sync-points.training-loop.accumulated", "Loss kept on the device, one read", move |(_, x, w)| {
            let losses = (0..steps).map(|_| x.matmul(w)?.mean()).collect::<Result<Vec<_>, _>>()?;
            Tensor::stack(&losses)?.mean()?.item()
        })
        .work(matmuls())
        .derived(
            "sync-points.training-loop.each-step.extrapolated",
            "Loss read each iteration, 1000 iterations",
            Unit::Seconds,
            extrapolated("each-step × 1000 / steps"),
        )
        .derived(
            "sync-points.training-loop.accumulated.extrapolated",
            "Loss kept on the device, 1000 iterations",
            Unit::Seconds,
            extrapolated("accumulated × 1000 / steps"),
        )
        .build()
    }

    fn inference<T: Float>(&self) -> Group {
        let (samples, width) = (self.samples.get(), self.small.get());
        let flops = 2.0 * (width as f64).powi(2) * samples as f64;
        let matmuls = || Work::matmul(flops, "2 · size² · samples");
        Group::of("Inference-like loop", [dtype::<T>(), ("size", width.into()), ("samples", samples.into())])
            .setup(move |device| {
                let stream = device.stream()?;
                let w = stream.normal::<T>([width, width])?;
                let input = |_| stream.normal([width])?.to_vec();
                // One by one, and as one batch.
                room_for::<T>(samples.saturating_mul(width).saturating_mul(2))?;
                let inputs = (0..samples).map(input).collect::<Result<Vec<Vec<T>>>>()?;
                Ok((stream, w, inputs))
            })
            .host_time_of(
                "sync-points.inference.single",
                "One input at a time, a copy back each",
                move |(stream, w, inputs)| {
                    let one = |input: &Vec<T>| stream.tensor(input, [1, width])?.matmul(w)?.to_vec();
                    inputs.iter().map(one).collect::<Result<Vec<_>, _>>()
                },
            )
            .work(matmuls())
            .host_time_of("sync-points.inference.batch", "One batch, one copy back", move |(stream, w, inputs)| {
                let all: Vec<T> = inputs.iter().flatten().copied().collect();
                stream.tensor(&all, [samples, width])?.matmul(w)?.to_vec()
            })
            .work(matmuls())
            .build()
    }

    fn timing<T: Float>(&self) -> Group {
        let n = self.big.get();
        Group::of("Timing", [dtype::<T>(), ("size", n.into())])
            .setup(move |device| operands::<T>(device, n))
            .host_time_of("sync-points.timing.wall", "Host clock without a synchronize", move |(_, x, w)| x.matmul(w))
            .work(Work::launches(1.0, "1"))
            .device_time("sync-points.timing.events", "Device events", |(stream, x, w)| {
                let (x, w) = (x.clone(), w.clone());
                Ok((stream.clone(), move || x.matmul(&w)))
            })
            .work(matmul(n))
            .host_time_of("sync-points.timing.complete", "Host clock with a synchronize", move |(stream, x, w)| {
                let y = x.matmul(w)?;
                stream.device().synchronize().map(|()| y)
            })
            .work(matmul(n))
            .build()
    }
}
