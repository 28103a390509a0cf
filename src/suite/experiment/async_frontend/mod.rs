//! `async-frontend`: how far the host runs ahead of the device, and what makes it wait.
//!
//! - *host*, *dispatch*, *complete*: the same loop (a random matrix, multiplied by itself) by a host array library, by a
//!   device until dispatch returns, and by a device until completion.
//! - *graph*: a small computation with a known value, and its printing; two independent chains of matmuls on one stream
//!   and on two, for matmuls that leave a part of the device free and for matmuls that fill it.
//! - *calls that wait*: for how long calls that need a value block the host, behind the loop and with nothing pending.
//! - *throughput*: a training-like loop that reads its loss every `k` iterations.
//! - *model*: the host takes t1 to launch an operation, the device t2 to run it, and the device-to-host latency of a
//!   result is t3. `n` operations that are launched one after the other and read once should take t1 + n·t2 + t3; read
//!   each time, n·(t1 + t2 + t3). The three times are measured by themselves, then the totals beside what they predict.
//!   The model holds while t1 is less than t2; else the host is the limit.

mod model;

use std::fs::File;

use ndarray::Array2;
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand_distr::{Distribution, StandardNormal};

use crate::experiment::prelude::*;
use crate::measure::held;

parameters! {
    /// How far the host runs ahead of the device, and what makes it wait.
    pub struct AsyncFrontend {
        /// Iterations of the timed loop.
        iters: Count = count(10),
        /// Rows and columns of its matrices.
        size: Count = count(1000),
        /// Matmuls in each of two independent chains.
        chain: Count = count(20),
        /// Rows and columns of the chains' matrices where each matmul leaves a part of the device free.
        small_branch: Count = count(256),
        /// Rows and columns of the chains' matrices where each matmul fills the device.
        large_branch: Count = count(4096),
        /// Iterations of the training-like loop.
        steps: Count = count(200),
        /// After how many iterations it reads its loss; the number of iterations itself is always measured too.
        every: Vec<Count> = vec![count(1), count(10), count(100)],
        /// Rows and columns of the training-like model.
        model: Count = count(512),
        /// For how many operations the cost model is compared with measured totals.
        operations: Vec<Count> = [1, 2, 5, 10, 20, 50, 100].map(count).to_vec(),
    }
}

impl Experiment for AsyncFrontend {
    const NAME: &'static str = "async-frontend";
    const SUMMARY: &'static str = "How far the host runs ahead of the device, and what makes it wait";
    const ITERATIONS: Option<&'static str> = Some("iters");

    fn for_cpu() -> Self {
        Self {
            size: count(200),
            chain: count(5),
            small_branch: count(64),
            large_branch: count(256),
            steps: count(100),
            model: count(64),
            operations: [1, 2, 5, 10, 20].map(count).to_vec(),
            ..Self::default()
        }
    }

    fn groups(&self, _engine: &str) -> Vec<Group> {
        let mut groups = Vec::from(self.loops());
        groups.extend(graph_value());
        groups.extend([
            self.branches(),
            self.synchronization_points(),
            self.throughput(),
            model::run(self.size.get(), &self.operations),
            self.same(),
        ]);
        groups
    }
}

/// A stream, and where prints go.
fn with_null_device(device: &Device) -> Result<(Stream, RefCell<File>)> {
    Ok((device.stream()?, RefCell::new(null_device()?)))
}

/// Launches `iters` iterations of the loop; the last one's result.
fn iterate(stream: &Stream, n: usize, iters: usize) -> Result<Tensor<f32>> {
    (1..iters).try_for_each(|_| random_matmul(stream, n).map(|b| drop(black_box(b))))?;
    random_matmul(stream, n)
}

impl AsyncFrontend {
    /// The loop on the device, and by a host array library.
    fn loops(&self) -> [Group; 2] {
        let (iters, n) = (self.iters.get(), self.size.get());
        let device = Group::of("Host and device", self.loop_parameters())
            .setup(|device| device.stream())
            .host_time_of("async-frontend.dispatch", "Loop on the device, dispatch", move |stream| {
                iterate(stream, n, iters)
            })
            .work(Work::launches(2.0 * iters as f64, "2 · iters"))
            .host_time_of("async-frontend.complete", "Loop on the device, completion", move |stream| {
                iterate(stream, n, iters)?;
                stream.device().synchronize()
            })
            .work(Work::matmul(matmul_flops(n) * iters as f64, "2 · size³ · iters"))
            .build();
        let host = Group::of("Host and device", self.loop_parameters())
            .without_warmup()
            // The library is a parameter: a host time without its name says nothing.
            .with_parameters([("library", "ndarray with matrixmultiply, fp64, 1 thread; rand_distr".into())])
            .host_time("async-frontend.host", "Loop by a host array library", move |_| {
                // The matrix and the result.
                room_for::<f64>(n.saturating_mul(n).saturating_mul(2))?;
                let mut random = Xoshiro256PlusPlus::seed_from_u64(0);
                Ok(move || {
                    for _ in 0..iters {
                        let a: Array2<f64> =
                            Array2::from_shape_simple_fn((n, n), || StandardNormal.sample(&mut random));
                        black_box(a.dot(&a));
                    }
                    Ok(())
                })
            })
            .with_parameters([("library", "NumPy, fp64".into())])
            .foreign_time(
                "async-frontend.host",
                "Loop by a host array library",
                "NumPy is measured beside PyTorch's own loop",
            )
            .build();
        [device, host]
    }

    fn loop_parameters(&self) -> [(&'static str, Parameter); 2] {
        [("iters", self.iters.get().into()), ("size", self.size.get().into())]
    }

    fn branches(&self) -> Group {
        let chain = self.chain.get();
        let branches = [("small", self.small_branch.get()), ("large", self.large_branch.get())];
        let mut group = Group::of("Dependency graph", [("chain", chain.into())])
            .setup(move |device| Ok([weights(device, branches[0].1)?, weights(device, branches[1].1)?]));
        for (place, (branch, n)) in branches.into_iter().enumerate() {
            let matmuls = || Work::matmul(2.0 * matmul_flops(n) * chain as f64, "4 · size³ · chain");
            group = group
                .with_parameters([("branch", branch.into()), ("size", n.into())])
                .host_time_within("async-frontend.graph.one-stream", "Two chains on one stream", move |weights| {
                    let (w, v) = &weights[place];
                    Ok(chains(w.clone(), v.on(w.stream())?, chain))
                })
                .work(matmuls())
                .host_time_within("async-frontend.graph.two-streams", "Two chains on two streams", move |weights| {
                    let (w, v) = &weights[place];
                    Ok(chains(w.clone(), v.clone(), chain))
                })
                .work(matmuls());
        }
        group.build()
    }

    fn synchronization_points(&self) -> Group {
        let (iters, n) = (self.iters.get(), self.size.get());
        type Read = fn(&Tensor<f32>, &mut File) -> Result<()>;
        let [print, item, copy, branch]: [Read; 4] = [
            |y, null| print_to(null, &y.get([0, 0])?),
            |y, _| y.get([0, 0])?.item().map(|value| _ = black_box(value)),
            |y, _| y.to_vec().map(|values| drop(black_box(values))),
            |y, _| {
                if y.gt(0.0)?.any()? {
                    black_box(());
                }
                Ok(())
            },
        ];
        let behind = move |read: Read, ready: bool| {
            move |(stream, null): &(Stream, RefCell<File>), watch: &mut Stopwatch| {
                let y = iterate(stream, n, iters)?;
                if ready {
                    stream.synchronize()?;
                }
                let null = &mut *null.borrow_mut();
                watch.time(|| read(&y, null))
            }
        };
        let (pending, ready) = (move |read| behind(read, false), move |read| behind(read, true));
        Group::of("Synchronization points", self.loop_parameters())
            .setup(with_null_device)
            .stopwatch_of("async-frontend.barriers.print.pending", "Print an element, work pending", pending(print))
            .stopwatch_of("async-frontend.barriers.print.ready", "Print an element, nothing pending", ready(print))
            .stopwatch_of("async-frontend.barriers.item.pending", "Read a scalar, work pending", pending(item))
            .stopwatch_of("async-frontend.barriers.item.ready", "Read a scalar, nothing pending", ready(item))
            .stopwatch_of("async-frontend.barriers.copy.pending", "Copy to the host, work pending", pending(copy))
            .stopwatch_of("async-frontend.barriers.copy.ready", "Copy to the host, nothing pending", ready(copy))
            .stopwatch_of("async-frontend.barriers.branch.pending", "Branch on a value, work pending", pending(branch))
            .stopwatch_of("async-frontend.barriers.branch.ready", "Branch on a value, nothing pending", ready(branch))
            .build()
    }

    /// One group, so that loops that read more and less often can be compared.
    fn throughput(&self) -> Group {
        let (steps, n) = (self.steps.get(), self.model.get());
        let every = self.every.iter().map(|every| every.get()).filter(|every| *every < steps).chain([steps]);
        let mut group = Group::of("Throughput", [("steps", steps.into()), ("size", n.into())])
            .setup(move |device| operands(device, n));
        for every in every {
            group = group
                .with_parameters([("every", every.into())])
                .host_time_of("async-frontend.throughput", "One iteration, loss read every k", move |(x, w)| {
                    let mut losses = Vec::with_capacity(every);
                    for step in 1..=steps {
                        losses.push(x.matmul(w)?.mean()?);
                        if losses.len() == every || step == steps {
                            // A single loss is read as it is: a stack of one would add to the cost of the read.
                            black_box(match losses.as_slice() {
                                [loss] => loss.item()?,
                                losses => Tensor::stack(losses)?.mean()?.item()?,
                            });
                            losses.clear();
                        }
                    }
                    Ok(())
                })
                .per(steps)
                .work(Work::matmul(matmul_flops(n), "2 · size³"));
        }
        group.build()
    }

    /// The loop on the device until completion, twice.
    fn same(&self) -> Group {
        let (iters, n) = (self.iters.get(), self.size.get());
        Group::of("The same code twice", self.loop_parameters()).setup(|device| device.stream()).twice(
            ["async-frontend.same.a", "async-frontend.same.b", "async-frontend.same.ratio"],
            move |stream| {
                iterate(stream, n, iters)?;
                stream.device().synchronize()
            },
        )
    }
}

/// Two random square matrices on a stream of their own.
fn operands(device: &Device, n: usize) -> Result<(Tensor<f32>, Tensor<f32>)> {
    let stream = device.stream()?;
    Ok((stream.normal([n, n])?, stream.normal([n, n])?))
}

/// The weights of two chains, each on a stream of its own.
fn weights(device: &Device, n: usize) -> Result<(Tensor<f32>, Tensor<f32>)> {
    let (first, second) = (device.stream()?, device.stream()?);
    // Scaled, so that a long chain stays within the range of the type.
    let weight = |stream: &Stream| stream.normal::<f32>([n, n])?.multiply_scalar(1.0 / (n as f32).sqrt());
    let (w, v) = (weight(&first)?, weight(&second)?);
    // The first matmul of a shape waits for the whole device: not behind the gate that only this thread opens.
    drop(black_box(w.matmul(&w)?));
    device.synchronize()?;
    Ok((w, v))
}

/// Two chains of matmuls, each on the stream of its weight.
fn chains(a: Tensor<f32>, b: Tensor<f32>, chain: usize) -> impl FnMut(&mut Stopwatch) -> Result<()> {
    move |watch| {
        // Held while the host launches: what is timed is the device, not how fast it is fed.
        held(&[a.stream(), b.stream()], |hold| {
            let (mut x, mut y) = (a.clone(), b.clone());
            for _ in 0..chain {
                (x, y) = (x.matmul(&a)?, y.matmul(&b)?);
            }
            watch.time(|| {
                hold.open();
                a.stream().device().synchronize()
            })
        })
    }
}

/// `x · y + 2` of ones, whose elements are 3, and its printing.
fn graph_value() -> [Group; 2] {
    let mut group = Group::of("Dependency graph", []).setup(|device| device.stream());
    for element in [0_usize, 1] {
        group = group.with_parameters([("element", element.into())]).value_of(
            "async-frontend.graph.value",
            "One element of x · y + 2",
            Unit::Number,
            move |stream| Ok(f64::from(graph(stream)?.get([0, element])?.item()?)),
        );
    }
    let print = Group::of("Dependency graph", [])
        .setup(with_null_device)
        .stopwatch_of("async-frontend.graph.print", "Print x · y + 2", |(stream, null), watch| {
            let z = graph(stream)?;
            let null = &mut *null.borrow_mut();
            watch.time(|| print_to(null, &z))
        })
        .build();
    [group.build(), print]
}

fn graph(stream: &Stream) -> Result<Tensor<f32>> {
    let (x, y) = (stream.ones::<f32>([1, 2])?, stream.ones::<f32>([1, 2])?);
    x.multiply(&y)?.add_scalar(2.0)
}
