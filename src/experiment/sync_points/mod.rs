//! `sync-points`: what explicit and implicit synchronization costs, for a product that is large and one that is small.
//!
//! Method, where it is not plain from the rows:
//! - *async* and *forced* are the time of a loop of `iters` products by two events on the stream, divided by `iters`;
//!   the forced loop synchronizes the device after each. One loop is one sample; the two alternate.
//! - *pending* rows enqueue a product and then time the read alone by the host's clock; *ready* rows synchronize
//!   between the two.
//! - Printing writes to the null device: formatting and a system call, but no terminal.
//! - In the *multi-stream* rows the other stream is kept busy by a kernel that spins for a known time.
//!
//! What it does not cover: the cost of a framework's own dispatch, which a program in another language adds.

mod reads;

use std::hint::black_box;
use std::num::NonZeroUsize;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::bench::{Bench, Formula, integer, parameters, text};
use super::{Derivation, Experiment, Lookup, Parameter, Parameters, RowPlan, Section, Stage, count};
use crate::device::{Device, Float, FloatType, Stream, with_float};
use crate::error::DeviceError;
use crate::measure::{Case, host_time};
use crate::tensor::Tensor;
use crate::units::Unit;

/// Products with and without a synchronize each, and reads of a result that is pending or ready.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "report", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct SyncPoints {
    /// The element types; the rows that the document shows for one type are measured for the first.
    pub dtypes: Vec<FloatType>,
    /// Products in a loop: one sample is one loop.
    pub iters: NonZeroUsize,
    /// Rows and columns of the large product.
    pub big: NonZeroUsize,
    /// Rows and columns of the small product.
    pub small: NonZeroUsize,
    /// Steps of the training-like loop.
    pub steps: NonZeroUsize,
    /// Samples of the inference-like loop.
    pub samples: NonZeroUsize,
}

impl Default for SyncPoints {
    fn default() -> Self {
        Self {
            dtypes: FloatType::ALL.to_vec(),
            iters: count(50),
            big: count(8192),
            small: count(512),
            steps: count(50),
            samples: count(64),
        }
    }
}

impl SyncPoints {
    /// The document's parameters; smaller ones on the CPU, where its large product would take minutes.
    pub(super) fn default_for(engine: &str) -> Self {
        match engine {
            "cpu" => Self { iters: count(5), big: count(768), small: count(96), steps: count(10), ..Self::default() },
            _ => Self::default(),
        }
    }
}

const PLAN: &[RowPlan] = &[
    RowPlan::device_time("sync-points.big.async", "Async (no synchronize each)").per_turn(),
    RowPlan::device_time("sync-points.big.forced", "Forced synchronize each").per_turn(),
    RowPlan::device_time("sync-points.big.delta", "Delta").per_turn(),
    RowPlan::device_time("sync-points.small.async", "Async (no synchronize each)").per_turn(),
    RowPlan::device_time("sync-points.small.forced", "Forced synchronize each").per_turn(),
    RowPlan::device_time("sync-points.small.delta", "Delta").per_turn(),
    RowPlan::host_time("sync-points.item.pending", "Scalar read, product pending"),
    RowPlan::host_time("sync-points.print.pending", "Print of one element, product pending"),
    RowPlan::host_time("sync-points.item.ready", "Scalar read, nothing pending"),
    RowPlan::observed("sync-points.item.value", "The value that was read", Unit::Number),
    RowPlan::host_time("sync-points.other.copy.pending", "Copy to host, product pending"),
    RowPlan::host_time("sync-points.other.copy.ready", "Copy to host, nothing pending"),
    RowPlan::host_time("sync-points.other.array.pending", "Host array, product pending"),
    RowPlan::host_time("sync-points.other.array.ready", "Host array, nothing pending"),
    RowPlan::host_time("sync-points.other.any.pending", "any(x > 0) in an if, product pending"),
    RowPlan::host_time("sync-points.other.any.ready", "any(x > 0) in an if, nothing pending"),
    RowPlan::host_time("sync-points.other.index.pending", "Rows by host-side indices, product pending"),
    RowPlan::host_time("sync-points.other.index.ready", "Rows by host-side indices, nothing pending"),
    RowPlan::host_time("sync-points.training-loop.each-step", "Scalar read each step"),
    RowPlan::host_time("sync-points.training-loop.accumulated", "Kept on the device, one read"),
    RowPlan::host_time("sync-points.training-loop.each-step.extrapolated", "Scalar read each step, 1000 steps"),
    RowPlan::host_time("sync-points.training-loop.accumulated.extrapolated", "One read, 1000 steps"),
    RowPlan::host_time("sync-points.inference.single", "One sample at a time, a copy back each"),
    RowPlan::host_time("sync-points.inference.batch", "One batch, one copy back"),
    RowPlan::host_time("sync-points.timing.wall", "Host clock without a synchronize (wrong)"),
    RowPlan::device_time("sync-points.timing.events", "Device events (right)"),
    RowPlan::host_time("sync-points.timing.complete", "Host clock with a synchronize"),
    RowPlan::host_time("sync-points.multi-stream.one-stream", "Two products on one stream"),
    RowPlan::host_time("sync-points.multi-stream.two-streams", "Two products on two streams"),
    RowPlan::host_time("sync-points.multi-stream.stream-synchronize", "Stream synchronize, other stream busy"),
    RowPlan::host_time("sync-points.multi-stream.device-synchronize", "Device synchronize, other stream busy"),
    RowPlan::observed(
        "sync-points.multi-stream.other-still-pending",
        "Share of rounds with the other stream still busy after a stream synchronize",
        Unit::Ratio,
    ),
];

const SECTIONS: &[Section] = &[
    Section { title: "Big product", rows: &["sync-points.big"] },
    Section { title: "Small product", rows: &["sync-points.small"] },
    Section {
        title: "Implicit synchronization (the stall, with work pending)",
        rows: &["sync-points.item.pending", "sync-points.print.pending", "sync-points.item.value"],
    },
    Section { title: "Scalar read after a synchronize (nothing pending)", rows: &["sync-points.item.ready"] },
    Section { title: "Other implicit synchronization", rows: &["sync-points.other"] },
    Section { title: "Training-like loop", rows: &["sync-points.training-loop"] },
    Section { title: "Inference-like loop", rows: &["sync-points.inference"] },
    Section { title: "Timing", rows: &["sync-points.timing"] },
    Section { title: "Several streams", rows: &["sync-points.multi-stream"] },
];

impl Experiment for SyncPoints {
    fn rows(&self) -> Vec<RowPlan> {
        PLAN.to_vec()
    }

    fn sections(&self) -> &'static [Section] {
        SECTIONS
    }

    fn turns(&mut self) -> &mut NonZeroUsize {
        &mut self.iters
    }

    fn element_types(&mut self) -> Option<&mut Vec<FloatType>> {
        Some(&mut self.dtypes)
    }

    fn run(&self, bench: &mut Bench) {
        let (big, small) = (self.big.get(), self.small.get());
        for &dtype in &self.dtypes {
            with_float!(dtype, T => {
                self.loops::<T>(bench, ["big.async", "big.forced", "big.delta"].map(row), big);
                self.loops::<T>(bench, ["small.async", "small.forced", "small.delta"].map(row), small);
                self.scalar_reads::<T>(bench);
            });
        }
        let Some(&first) = self.dtypes.first() else { return };
        with_float!(first, T => {
            self.other_reads::<T>(bench);
            for (model, size) in [("big", big), ("small", small)] {
                self.training_loop::<T>(bench, model, size);
            }
            self.inference::<T>(bench);
            self.timing::<T>(bench);
            for (model, size) in [("big", big), ("small", small)] {
                two_products::<T>(bench, model, size);
            }
            scope::<T>(bench, small);
        });
    }

    /// A few turns of the large product, alone and with a synchronize each.
    fn play(&self, stage: &mut Stage) {
        const TURNS: usize = 10;
        let (Some(&first), n) = (self.dtypes.first(), self.big.get()) else { return };
        with_float!(first, T => {
            let parameters = parameters([dtype::<T>(), size(n), ("iters", integer(TURNS))]);
            for (name, forced) in [("sync-points.big.async", false), ("sync-points.big.forced", true)] {
                stage.play(name, &parameters, |device| {
                    let (stream, x, w) = operands::<T>(device, n)?;
                    Ok(Box::new(move || {
                        for _ in 0..TURNS {
                            black_box(x.matmul(&w)?);
                            if forced {
                                stream.device().synchronize()?;
                            }
                        }
                        if forced { Ok(()) } else { stream.device().synchronize() }
                    }))
                });
            }
        });
    }

    fn takeaways(&self, lookup: &Lookup<'_>) -> Vec<String> {
        self.dtypes.iter().flat_map(|dtype| takeaways(lookup, *dtype)).collect()
    }
}

/// The planned identifier that ends in `name`.
fn row(name: &'static str) -> &'static str {
    let matches = |plan: &&RowPlan| plan.id.strip_prefix("sync-points.") == Some(name);
    PLAN.iter().find(matches).map_or(name, |plan| plan.id)
}

fn dtype<T: Float>() -> (&'static str, Parameter) {
    ("dtype", text(T::DTYPE.name()))
}

fn size(size: usize) -> (&'static str, Parameter) {
    ("size", integer(size))
}

fn model(name: &str) -> (&'static str, Parameter) {
    ("model", text(name))
}

/// Two square operands and their stream.
fn operands<T: Float>(device: &Device, size: usize) -> Result<(Stream, Tensor<T>, Tensor<T>), DeviceError> {
    let stream = device.stream()?;
    let (x, w) = (stream.normal([size, size])?, stream.normal([size, size])?);
    Ok((stream, x, w))
}

impl SyncPoints {
    fn loops<T: Float>(&self, bench: &mut Bench, [asynchronous, forced, delta]: [&'static str; 3], n: usize) {
        let iters = self.iters.get();
        let parameters = parameters([dtype::<T>(), size(n), ("iters", integer(iters))]);
        bench.group(&[asynchronous, forced], &parameters, |device| {
            let (stream, x, w) = operands::<T>(device, n)?;
            let looped = |name, synchronize: bool| {
                let (x, w, device) = (x.clone(), w.clone(), device.clone());
                Case::device_timed(name, &stream, move || {
                    for _ in 0..iters {
                        black_box(x.matmul(&w)?);
                        if synchronize {
                            device.synchronize()?;
                        }
                    }
                    Ok(())
                })
                .map(|case| case.per(iters))
            };
            Ok(vec![looped(asynchronous, false)?, looped(forced, true)?])
        });
        bench.difference(delta, &parameters, [forced, asynchronous]);
    }

    fn training_loop<T: Float>(&self, bench: &mut Bench, name: &str, n: usize) {
        let steps = self.steps.get();
        let [each, accumulated] = ["training-loop.each-step", "training-loop.accumulated"].map(row);
        let parameters = parameters([dtype::<T>(), model(name), size(n), ("steps", integer(steps))]);
        bench.group(&[each, accumulated], &parameters, |device| {
            let (_, x, w) = operands::<T>(device, n)?;
            let loss = move || x.matmul(&w)?.mean();
            let kept = loss.clone();
            Ok(vec![
                Case::host_timed(each, move || {
                    (0..steps).try_for_each(|_| loss()?.item().map(|loss| _ = black_box(loss)))
                }),
                Case::host_timed(accumulated, move || {
                    let losses = (0..steps).map(|_| kept()).collect::<Result<Vec<_>, _>>()?;
                    Tensor::stack(&losses)?.mean()?.item()
                }),
            ])
        });
        let factor = 1000.0 / steps as f64;
        let extrapolated = ["training-loop.each-step.extrapolated", "training-loop.accumulated.extrapolated"].map(row);
        for (id, of) in extrapolated.into_iter().zip([each, accumulated]) {
            let text = format!("{steps} steps × {factor}");
            let (derivation, operands) = (Derivation::Extrapolation, &[(of, &parameters)]);
            bench.derive(id, &parameters, Formula { derivation, text: &text, operands, compute: &|x| x[0] * factor });
        }
    }

    fn inference<T: Float>(&self, bench: &mut Bench) {
        let (samples, width) = (self.samples.get(), self.small.get());
        let [single, batch] = ["inference.single", "inference.batch"].map(row);
        let parameters = parameters([dtype::<T>(), size(width), ("samples", integer(samples))]);
        bench.group(&[single, batch], &parameters, |device| {
            let stream = device.stream()?;
            let w = stream.normal::<T>([width, width])?;
            let inputs: Vec<Vec<T>> =
                (0..samples).map(|_| stream.normal([width])?.to_vec()).collect::<Result<_, DeviceError>>()?;
            let (s1, w1, inputs1) = (stream.clone(), w.clone(), inputs.clone());
            Ok(vec![
                Case::host_timed(single, move || {
                    let one = |input: &Vec<T>| s1.tensor(input, [1, width])?.matmul(&w1)?.to_vec();
                    inputs1.iter().map(one).collect::<Result<Vec<_>, _>>()
                }),
                Case::host_timed(batch, move || {
                    let all: Vec<T> = inputs.iter().flatten().copied().collect();
                    stream.tensor(&all, [samples, width])?.matmul(&w)?.to_vec()
                }),
            ])
        });
    }

    fn timing<T: Float>(&self, bench: &mut Bench) {
        let [wall, events, complete] = ["timing.wall", "timing.events", "timing.complete"].map(row);
        let n = self.big.get();
        bench.group(&[wall, events, complete], &parameters([dtype::<T>(), size(n)]), |device| {
            let (stream, x, w) = operands::<T>(device, n)?;
            let product = move || x.matmul(&w);
            let (first, second, device) = (product.clone(), product.clone(), device.clone());
            Ok(vec![
                Case::host_timed(wall, first),
                Case::device_timed(events, &stream, second)?,
                Case::host_timed(complete, move || {
                    let y = product()?;
                    device.synchronize().map(|()| y)
                }),
            ])
        });
    }
}

fn two_products<T: Float>(bench: &mut Bench, name: &str, n: usize) {
    let [one, two] = ["multi-stream.one-stream", "multi-stream.two-streams"].map(row);
    bench.group(&[one, two], &parameters([dtype::<T>(), model(name), size(n)]), |device| {
        let (_, x, w) = operands::<T>(device, n)?;
        let (_, v, u) = operands::<T>(device, n)?;
        let (same_v, same_u) = (v.on(x.stream())?, u.on(x.stream())?);
        let both = |id, x: &Tensor<T>, w: &Tensor<T>, v: Tensor<T>, u: Tensor<T>| {
            let (x, w, device) = (x.clone(), w.clone(), device.clone());
            Case::host_timed(id, move || {
                let products = (x.matmul(&w)?, v.matmul(&u)?);
                device.synchronize().map(|()| products)
            })
        };
        // What other streams will read must have been written.
        device.synchronize()?;
        Ok(vec![both(one, &x, &w, same_v, same_u), both(two, &x, &w, v, u)])
    });
}

/// How long the other stream is kept busy: well above what a small product and a synchronize take.
const BUSY: Duration = Duration::from_millis(5);

fn scope<T: Float>(bench: &mut Bench, n: usize) {
    let ids =
        ["multi-stream.stream-synchronize", "multi-stream.device-synchronize", "multi-stream.other-still-pending"];
    let ids = ids.map(row);
    let busy = ("busy_seconds", Parameter::Float(BUSY.as_secs_f64()));
    bench.group(&ids, &parameters([dtype::<T>(), size(n), busy]), |device| {
        let (stream, x, w) = operands::<T>(device, n)?;
        let (other, device) = (device.stream()?, device.clone());
        let begin = {
            let other = other.clone();
            move || {
                other.spin(BUSY)?;
                x.matmul(&w)
            }
        };
        let (first, second) = (begin.clone(), begin.clone());
        let (own, last) = (stream.clone(), stream);
        Ok(vec![
            Case::new(ids[0], move || {
                let _product = first()?;
                Ok(host_time(|| own.synchronize())?.1)
            }),
            Case::new(ids[1], move || {
                let _product = second()?;
                Ok(host_time(|| device.synchronize())?.1)
            }),
            Case::new(ids[2], move || {
                let _product = begin()?;
                last.synchronize()?;
                Ok(if other.is_complete()? { 0.0 } else { 1.0 })
            }),
        ])
    });
}

fn takeaways(lookup: &Lookup<'_>, dtype: FloatType) -> Vec<String> {
    let select: Parameters = parameters([("dtype", text(dtype.name()))]);
    let estimate = |name: &str| lookup.estimate(&format!("sync-points.{name}"), &select).ok();
    let mut sentences = Vec::new();
    for kernel in ["small", "big"] {
        let row = |part: &str| estimate(&format!("{kernel}.{part}"));
        if let (Some(delta), Some(base)) = (row("delta"), row("async")) {
            let delta_text = Unit::Seconds.format(delta.median, 3);
            sentences.push(if delta.excludes_zero() {
                let share = 100.0 * delta.median / base.median;
                format!("{dtype}: a synchronize after each {kernel} product changes its time by {delta_text} ({share:+.1} %).", dtype = dtype.name())
            } else {
                let interval = delta.format_interval(Unit::Seconds);
                format!("{dtype}: what a synchronize adds to a {kernel} product is not distinguishable from 0 ({interval}).", dtype = dtype.name())
            });
        }
    }
    if let (Some(pending), Some(ready)) = (estimate("item.pending"), estimate("item.ready")) {
        let [pending_text, ready_text] = [pending.median, ready.median].map(|t| Unit::Seconds.format(t, 3));
        sentences.push(format!(
            "{}: a scalar read holds the host for {pending_text} behind a pending product and for {ready_text} with nothing pending.",
            dtype.name()
        ));
    }
    sentences
}
