//! `launch-path`: what it takes to hand a device many small kernels, by the way in which they are launched.
//!
//! The same work, additions to one small tensor in place, `n` times:
//!
//! - *one-by-one*: each launched and waited for;
//! - *batched*: all launched, and one wait;
//! - *graph*: captured once, launched as one, and one wait. Capturing and instantiating is timed by itself.
//!
//! The launch queue (`queue`) limits how far the host runs ahead.
//!
//! *host-free* is the time until the last call has returned, *complete* until the device is done.

mod queue;

use crate::device::Graph;
use crate::experiment::prelude::*;

parameters! {
    /// The same work launched one by one, batched and as a graph.
    pub struct LaunchPath {
        /// How many operations there are: the rows are produced for each.
        operations: Vec<Count> = [1, 10, 100, 1000].map(count).to_vec(),
        /// Elements of the tensor.
        elements: Size = count(1024),
        /// Iterations of each loop: one sample is one loop, divided by this.
        iterations: Count = count(3),
        /// After how long a launch that has not returned counts as one that blocks.
        patience: Seconds = Seconds::milliseconds(20),
    }
}

impl Experiment for LaunchPath {
    const NAME: &'static str = "launch-path";
    const SUMMARY: &'static str = "What launching the same work one by one, batched and as a graph costs";
    const ITERATIONS: Option<&'static str> = Some("iterations");

    fn groups(&self, _engine: &str) -> Vec<Group> {
        let (elements, iterations) = (self.elements.get(), self.iterations.get());
        let counts: Vec<usize> = self.operations.iter().map(|operations| operations.get()).collect();
        let all = counts.clone();
        let mut group = Group::of("Launch path", [("elements", elements.into())])
            .setup(move |device| all.iter().map(|count| Batch::new(device, elements, *count)).collect());
        for (place, operations) in counts.into_iter().enumerate() {
            group = group.with_parameters([("operations", operations.into())]);
            group = rows(group, place, operations, iterations);
        }
        // A batch and a synchronize.
        const OPERATIONS: usize = 100;
        let same = Group::of("The same code twice", [("operations", OPERATIONS.into()), ("elements", elements.into())])
            .setup(move |device| device.stream()?.zeros::<f32>([elements]))
            .twice(["launch-path.same.a", "launch-path.same.b", "launch-path.same.ratio"], move |x| {
                launch_all(x, OPERATIONS)?;
                x.stream().device().synchronize()
            });
        vec![group.build(), queue::run(elements, self.patience.duration()), same]
    }
}

/// The same work in all three ways.
struct Batch {
    stream: Stream,
    x: Tensor<f32>,
    operations: usize,
    graph: Graph,
}

impl Batch {
    fn new(device: &Device, elements: usize, operations: usize) -> Result<Self> {
        let stream = device.stream()?;
        let x = stream.zeros::<f32>([elements])?;
        let graph = stream.capture(|| launch_all(&x, operations))?.1;
        Ok(Self { stream, x, operations, graph })
    }

    fn launch_all(&self) -> Result<()> {
        launch_all(&self.x, self.operations)
    }

    fn synchronize(&self) -> Result<()> {
        self.stream.device().synchronize()
    }
}

fn launch_all(x: &Tensor<f32>, operations: usize) -> Result<()> {
    (0..operations).try_for_each(|_| x.affine_in_place(1.0, 1.0))
}

/// The rows of one number of operations, whose batch is the one at `place`.
fn rows(
    group: GroupBuilder<Vec<Batch>>,
    place: usize,
    operations: usize,
    iterations: usize,
) -> GroupBuilder<Vec<Batch>> {
    /// A call on the batch at `place`.
    fn at<R>(place: usize, call: impl Fn(&Batch) -> Result<R>) -> impl Fn(&Vec<Batch>) -> Result<R> {
        move |batches| call(&batches[place])
    }
    let one_by_one = move |batch: &Batch| {
        (0..iterations * operations)
            .try_for_each(|_| batch.x.affine_in_place(1.0, 1.0).and_then(|()| batch.synchronize()))
    };
    let batched =
        move |batch: &Batch| (0..iterations).try_for_each(|_| batch.launch_all().and_then(|()| batch.synchronize()));
    let graph =
        move |batch: &Batch| (0..iterations).try_for_each(|_| batch.graph.launch().and_then(|()| batch.synchronize()));
    let capture = |batch: &Batch| {
        let graph = batch.stream.capture(|| batch.launch_all())?.1;
        batch.synchronize().map(|()| graph)
    };
    group
        .host_time_of("launch-path.one-by-one.complete", "One by one, each waited for", at(place, one_by_one))
        .per(iterations)
        .host_time_of("launch-path.batched.host-free", "Batched, dispatch", at(place, Batch::launch_all))
        .host_time_of("launch-path.batched.complete", "Batched, completion", at(place, batched))
        .per(iterations)
        .host_time_of("launch-path.graph.host-free", "As a graph, dispatch", at(place, |batch| batch.graph.launch()))
        .host_time_of("launch-path.graph.complete", "As a graph, completion", at(place, graph))
        .per(iterations)
        .host_time_of("launch-path.graph.capture", "Capturing and instantiating the graph", at(place, capture))
        .derived(
            "launch-path.graph.gain",
            "Batched / as a graph, completion",
            Unit::Ratio,
            Formula::of(
                "batched / graph",
                [("batched", "launch-path.batched.complete"), ("graph", "launch-path.graph.complete")],
            ),
        )
}
