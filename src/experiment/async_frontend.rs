//! `async-frontend`: how far the host runs ahead of the device, and what makes it wait.
//!
//! - *host*, *dispatch*, *complete*: the same steps (draw a matrix, multiply it by itself) by a host array library, by
//!   a device up to the moment when the host is free, and by a device up to the end.
//! - *graph*: a small computation whose value is known, printed; two chains of products that need nothing of each
//!   other, on one stream and on two, for products that leave a part of the device free and for products that fill it.
//! - *barriers*: how long calls that need a value hold the host, behind the steps and with nothing pending.
//! - *throughput*: a training-like loop that reads its loss every `k` steps.
//! - *model*: the host needs t1 to enqueue an operation, the device t2 to run it, and a result takes t3 back to the
//!   host. Enqueued one after the other and read once, `n` of them should take t1 + n·t2 + t3; read each time,
//!   n·(t1 + t2 + t3). The three times are measured by themselves, then the totals beside what they predict. The model
//!   holds while t1 is below t2; else the host is the limit.

use std::hint::black_box;
use std::num::NonZeroUsize;

use ndarray::Array2;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

use super::bench::{Bench, Formula, integer, null_device, parameters, print_to, step, text};
use super::{Derivation, Experiment, Parameters, RowPlan, Section, count};
use crate::device::Stream;
use crate::error::DeviceError;
use crate::measure::{Case, host_time};
use crate::tensor::Tensor;
use crate::units::Unit;

/// How far the host runs ahead of the device, and what makes it wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "report", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct AsyncFrontend {
    /// Steps of the timed loop.
    pub iters: NonZeroUsize,
    /// Rows and columns of its matrices.
    pub size: NonZeroUsize,
    /// Products in each of two independent chains.
    pub chain: NonZeroUsize,
    /// Rows and columns of the chains' products where each leaves a part of the device free.
    pub small_branch: NonZeroUsize,
    /// Rows and columns of the chains' products where each fills the device.
    pub large_branch: NonZeroUsize,
    /// Steps of the training-like loop.
    pub steps: NonZeroUsize,
    /// After how many steps it reads its loss; the number of steps itself is always measured too.
    pub every: Vec<NonZeroUsize>,
    /// Rows and columns of the training-like model.
    pub model: NonZeroUsize,
    /// For how many operations the cost model is compared with measured totals.
    pub operations: Vec<NonZeroUsize>,
}

impl Default for AsyncFrontend {
    fn default() -> Self {
        Self {
            iters: count(10),
            size: count(1000),
            chain: count(20),
            small_branch: count(256),
            large_branch: count(4096),
            steps: count(200),
            every: vec![count(1), count(10), count(100)],
            model: count(512),
            operations: [1, 2, 5, 10, 20, 50, 100].map(count).to_vec(),
        }
    }
}

impl AsyncFrontend {
    pub(super) fn default_for(engine: &str) -> Self {
        match engine {
            "cpu" => Self {
                size: count(200),
                chain: count(5),
                small_branch: count(64),
                large_branch: count(256),
                steps: count(100),
                model: count(64),
                operations: [1, 2, 5, 10, 20].map(count).to_vec(),
                ..Self::default()
            },
            _ => Self::default(),
        }
    }
}

const PLAN: &[RowPlan] = &[
    RowPlan::host_time("async-frontend.host", "Steps by a host array library"),
    RowPlan::host_time("async-frontend.dispatch", "Steps on the device, until the host is free"),
    RowPlan::host_time("async-frontend.complete", "Steps on the device, until they are done"),
    RowPlan::observed("async-frontend.graph.value", "An element of x · y + 2", Unit::Number),
    RowPlan::host_time("async-frontend.graph.print", "Printing x · y + 2"),
    RowPlan::host_time("async-frontend.graph.one-stream", "Two chains on one stream"),
    RowPlan::host_time("async-frontend.graph.two-streams", "Two chains on two streams"),
    RowPlan::host_time("async-frontend.barriers.print.pending", "Print, steps pending"),
    RowPlan::host_time("async-frontend.barriers.print.ready", "Print, nothing pending"),
    RowPlan::host_time("async-frontend.barriers.item.pending", "Scalar read, steps pending"),
    RowPlan::host_time("async-frontend.barriers.item.ready", "Scalar read, nothing pending"),
    RowPlan::host_time("async-frontend.barriers.copy.pending", "Copy to host, steps pending"),
    RowPlan::host_time("async-frontend.barriers.copy.ready", "Copy to host, nothing pending"),
    RowPlan::host_time("async-frontend.barriers.branch.pending", "Branch on a value, steps pending"),
    RowPlan::host_time("async-frontend.barriers.branch.ready", "Branch on a value, nothing pending"),
    RowPlan::host_time("async-frontend.throughput", "A step of a loop that reads its loss every k steps").per_turn(),
    RowPlan::host_time("async-frontend.model.t1", "t1: the host enqueues an operation").per_turn(),
    RowPlan::device_time("async-frontend.model.t2", "t2: the device runs it").per_turn(),
    RowPlan::host_time("async-frontend.model.t3", "t3: a result comes to the host"),
    RowPlan::host_time("async-frontend.model.queued", "n operations enqueued, one read: measured"),
    RowPlan::host_time("async-frontend.model.queued.predicted", "t1 + n·t2 + t3"),
    RowPlan::host_time("async-frontend.model.serial", "n operations, a read after each: measured"),
    RowPlan::host_time("async-frontend.model.serial.predicted", "n·(t1 + t2 + t3)"),
];

const SECTIONS: &[Section] = &[
    Section {
        title: "Host and device",
        rows: &["async-frontend.host", "async-frontend.dispatch", "async-frontend.complete"],
    },
    Section { title: "Dependency graph", rows: &["async-frontend.graph"] },
    Section { title: "Barriers", rows: &["async-frontend.barriers"] },
    Section { title: "Throughput", rows: &["async-frontend.throughput"] },
    Section { title: "Cost model", rows: &["async-frontend.model"] },
];

impl Experiment for AsyncFrontend {
    fn rows(&self) -> Vec<RowPlan> {
        PLAN.to_vec()
    }

    fn sections(&self) -> &'static [Section] {
        SECTIONS
    }

    fn turns(&mut self) -> &mut NonZeroUsize {
        &mut self.iters
    }

    fn run(&self, bench: &mut Bench) {
        self.host(bench);
        self.device(bench);
        graph_value(bench);
        self.branches(bench);
        self.barriers(bench);
        self.throughput(bench);
        self.model(bench);
    }
}

/// Enqueues `iters` steps; the last one's result.
fn steps(stream: &Stream, n: usize, iters: usize) -> Result<Tensor<f32>, DeviceError> {
    (1..iters).try_for_each(|_| step(stream, n).map(|b| drop(black_box(b))))?;
    step(stream, n)
}

impl AsyncFrontend {
    fn host(&self, bench: &mut Bench) {
        let (iters, n) = (self.iters.get(), self.size.get());
        // The library is a parameter: a host time without its name says nothing.
        let library = ("library", text("ndarray with matrixmultiply, fp64, 1 thread; rand_distr"));
        let parameters = parameters([("iters", integer(iters)), ("size", integer(n)), library]);
        let id = "async-frontend.host";
        bench.group(&[id], &parameters, |_| {
            let mut random = StdRng::seed_from_u64(0);
            Ok(vec![Case::host_timed(id, move || {
                for _ in 0..iters {
                    let a: Array2<f64> = Array2::from_shape_simple_fn((n, n), || StandardNormal.sample(&mut random));
                    black_box(a.dot(&a));
                }
                Ok(())
            })])
        });
    }

    fn device(&self, bench: &mut Bench) {
        let (iters, n) = (self.iters.get(), self.size.get());
        let [dispatch, complete] = ["async-frontend.dispatch", "async-frontend.complete"];
        bench.group(&[dispatch, complete], &self.loop_parameters(), |device| {
            let stream = device.stream()?;
            let (first, second) = (stream.clone(), stream);
            Ok(vec![
                Case::host_timed(dispatch, move || steps(&first, n, iters)),
                Case::host_timed(complete, move || {
                    steps(&second, n, iters)?;
                    second.device().synchronize()
                }),
            ])
        });
    }

    fn loop_parameters(&self) -> Parameters {
        parameters([("iters", integer(self.iters.get())), ("size", integer(self.size.get()))])
    }

    fn branches(&self, bench: &mut Bench) {
        let [one, two] = ["async-frontend.graph.one-stream", "async-frontend.graph.two-streams"];
        let chain = self.chain.get();
        for (branch, n) in [("small", self.small_branch.get()), ("large", self.large_branch.get())] {
            let parameters = parameters([("branch", text(branch)), ("size", integer(n)), ("chain", integer(chain))]);
            bench.group(&[one, two], &parameters, |device| {
                let (first, second) = (device.stream()?, device.stream()?);
                // Scaled, so that a long chain stays within the range of the type.
                let weight = |stream: &Stream| stream.normal::<f32>([n, n])?.multiply_scalar(1.0 / (n as f32).sqrt());
                let (w, v) = (weight(&first)?, weight(&second)?);
                let same = v.on(&first)?;
                // The first product of a shape waits for the whole device: not behind the gate that only this thread opens.
                drop(black_box(w.matmul(&w)?));
                device.synchronize()?;
                let both = |id, a: Tensor<f32>, b: Tensor<f32>| {
                    Case::new(id, move || {
                        // Held while the host enqueues: what is timed is the device, not how fast it is fed.
                        let gate = a.stream().device().gate()?;
                        a.stream().wait_gate(&gate)?;
                        b.stream().wait_gate(&gate)?;
                        let (mut x, mut y) = (a.clone(), b.clone());
                        for _ in 0..chain {
                            (x, y) = (x.matmul(&a)?, y.matmul(&b)?);
                        }
                        Ok(host_time(|| {
                            gate.open();
                            a.stream().device().synchronize()
                        })?
                        .1)
                    })
                };
                Ok(vec![both(one, w.clone(), same), both(two, w, v)])
            });
        }
    }

    fn barriers(&self, bench: &mut Bench) {
        type Read = fn(&Tensor<f32>, &mut std::fs::File) -> Result<(), DeviceError>;
        let reads: [([&'static str; 2], Read); 4] = [
            (["async-frontend.barriers.print.pending", "async-frontend.barriers.print.ready"], |y, null| {
                print_to(null, &y.get([0, 0])?)
            }),
            (["async-frontend.barriers.item.pending", "async-frontend.barriers.item.ready"], |y, _| {
                y.get([0, 0])?.item().map(|value| _ = black_box(value))
            }),
            (["async-frontend.barriers.copy.pending", "async-frontend.barriers.copy.ready"], |y, _| {
                y.to_vec().map(|values| drop(black_box(values)))
            }),
            (["async-frontend.barriers.branch.pending", "async-frontend.barriers.branch.ready"], |y, _| {
                if y.gt(0.0)?.any()? {
                    black_box(());
                }
                Ok(())
            }),
        ];
        let ids: Vec<_> = reads.iter().flat_map(|(ids, _)| *ids).collect();
        let (iters, n) = (self.iters.get(), self.size.get());
        bench.group(&ids, &self.loop_parameters(), |device| {
            let stream = device.stream()?;
            let mut cases = Vec::new();
            for ([pending, ready], read) in reads {
                for (id, settle) in [(pending, false), (ready, true)] {
                    let (stream, mut null) = (stream.clone(), null_device()?);
                    cases.push(Case::new(id, move || {
                        let y = steps(&stream, n, iters)?;
                        if settle {
                            stream.synchronize()?;
                        }
                        Ok(host_time(|| read(&y, &mut null))?.1)
                    }));
                }
            }
            Ok(cases)
        });
    }

    /// One group a `k`, so that a loop that reads seldom is not sampled as seldom as the slowest.
    fn throughput(&self, bench: &mut Bench) {
        let (steps, n, id) = (self.steps.get(), self.model.get(), "async-frontend.throughput");
        let every = self.every.iter().map(|every| every.get()).filter(|every| *every < steps).chain([steps]);
        for every in every {
            let parameters = parameters([("every", integer(every)), ("steps", integer(steps)), ("size", integer(n))]);
            bench.group(&[id], &parameters, |device| {
                let stream = device.stream()?;
                let (x, w) = (stream.normal::<f32>([n, n])?, stream.normal::<f32>([n, n])?);
                let case = Case::host_timed(id, move || {
                    let mut losses = Vec::with_capacity(every);
                    for step in 1..=steps {
                        losses.push(x.matmul(&w)?.mean()?);
                        if losses.len() == every || step == steps {
                            // A single loss is read as it is: a stack of one would add to the price of looking.
                            black_box(match losses.as_slice() {
                                [loss] => loss.item()?,
                                losses => Tensor::stack(losses)?.mean()?.item()?,
                            });
                            losses.clear();
                        }
                    }
                    Ok(())
                });
                Ok(vec![case.per(steps)])
            });
        }
    }

    fn model(&self, bench: &mut Bench) {
        const LOOP: usize = 100;
        let n = self.size.get();
        let base = parameters([("size", integer(n))]);
        let [t1, t2, t3] = ["async-frontend.model.t1", "async-frontend.model.t2", "async-frontend.model.t3"];
        let operands = move |stream: &Stream| -> Result<_, DeviceError> {
            Ok((stream.normal::<f32>([n, n])?, stream.normal::<f32>([n, n])?))
        };
        bench.group(&[t1, t2, t3], &base, |device| {
            let stream = device.stream()?;
            let (x, w) = operands(&stream)?;
            let product = move || x.matmul(&w);
            let (enqueue, run) = (product.clone(), product.clone());
            let many = |product: &dyn Fn() -> Result<Tensor<f32>, DeviceError>| -> Result<(), DeviceError> {
                (0..LOOP).try_for_each(|_| product().map(|y| drop(black_box(y))))
            };
            Ok(vec![
                Case::host_timed(t1, move || many(&enqueue)).per(LOOP),
                Case::device_timed(t2, &stream, move || many(&run))?.per(LOOP),
                Case::new(t3, move || {
                    let y = product()?;
                    y.stream().synchronize()?;
                    Ok(host_time(|| y.get([0, 0])?.item())?.1)
                }),
            ])
        });
        let [queued, serial] = ["async-frontend.model.queued", "async-frontend.model.serial"];
        let predicted = ["async-frontend.model.queued.predicted", "async-frontend.model.serial.predicted"];
        for operations in self.operations.iter().map(|operations| operations.get()) {
            let parameters = parameters([("size", integer(n)), ("operations", integer(operations))]);
            bench.group(&[queued, serial], &parameters, |device| {
                let (x, w) = operands(&device.stream()?)?;
                let product = move || x.matmul(&w);
                let each = product.clone();
                Ok(vec![
                    Case::host_timed(queued, move || {
                        (1..operations).try_for_each(|_| product().map(|y| drop(black_box(y))))?;
                        product()?.get([0, 0])?.item()
                    }),
                    Case::host_timed(serial, move || {
                        (0..operations).try_for_each(|_| each()?.get([0, 0])?.item().map(|value| _ = black_box(value)))
                    }),
                ])
            });
            let operands: &[(&'static str, &Parameters)] = &[(t1, &base), (t2, &base), (t3, &base)];
            let (derivation, n) = (Derivation::Computation, operations as f64);
            let text = "t1 + n·t2 + t3";
            let formula = Formula { derivation, text, operands, compute: &|t| t[0] + n * t[1] + t[2] };
            bench.derive(predicted[0], &parameters, formula);
            let text = "n·(t1 + t2 + t3)";
            let formula = Formula { derivation, text, operands, compute: &|t| n * (t[0] + t[1] + t[2]) };
            bench.derive(predicted[1], &parameters, formula);
        }
    }
}

/// `x · y + 2` of ones, whose elements are 3, and its printing.
fn graph_value(bench: &mut Bench) {
    let (value, print) = ("async-frontend.graph.value", "async-frontend.graph.print");
    for element in [0, 1] {
        bench.group(&[value], &parameters([("element", integer(element))]), |device| {
            let stream = device.stream()?;
            Ok(vec![Case::new(value, move || Ok(f64::from(graph(&stream)?.get([0, element])?.item()?)))])
        });
    }
    bench.group(&[print], &Parameters::new(), |device| {
        let (stream, mut null) = (device.stream()?, null_device()?);
        Ok(vec![Case::new(print, move || {
            let z = graph(&stream)?;
            Ok(host_time(|| print_to(&mut null, &z))?.1)
        })])
    });
}

fn graph(stream: &Stream) -> Result<Tensor<f32>, DeviceError> {
    let (x, y) = (stream.ones::<f32>([1, 2])?, stream.ones::<f32>([1, 2])?);
    x.multiply(&y)?.add_scalar(2.0)
}
