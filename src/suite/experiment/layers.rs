//! `layers`: where the time of a launch goes.
//!
//! The host's time of one launch into a queue with room, through each layer: the driver's own call (*driver*), and above it the
//! safe interface of the crate `cudarc` (*wrapper*); the driver's extended call (*extended*), and above it this library
//! (*library*: the same empty kernel; *operation*: an addition to one element in place, which PyTorch has, too), and a graph of
//! one such operation (*graph*). The rows *above* are differences, round by round, to the call of the driver that the layer
//! makes itself, with the same attribute: permission to start while the kernel before ends.
//!
//! - *graph.launch* by the number of operations in the graph, of single launches with nothing pending: a constant and a cost
//!   of each node, through the smallest and the largest number; *graph.update* and *graph.set-parameters*: what an executable graph of one kernel takes to be changed;
//! - *programmatic*: a chain of kernels until it is over, per kernel, each of which may start while the one before it ends, or
//!   not: launched by the same call, whose one attribute says it. A kernel takes several times as long as a launch (parameter
//!   `kernel_seconds`), and half of it needs nothing of the one before it;
//! - *priority*: a launch on a stream of the lowest or of the highest priority until it is over, while a kernel of many short
//!   blocks has the device. The call is the same, and so is all of the streams but their priority.
//!
//! The thread waits by spinning.

use crate::calls::catalogue::Call;
use crate::calls::{CallUnderTest, layers};
use crate::device::Graph;
use crate::experiment::prelude::*;

/// How many calls of some microseconds a sample is the mean of, where each is timed by itself, with nothing pending.
const SINGLE: usize = 16;

parameters! {
    /// Where the time of a launch goes.
    pub struct Layers {
        /// How many launches are timed together: fewer than a queue takes.
        launches: Count = count(256),
        /// The numbers of operations in a graph. The line goes through the smallest and the largest.
        nodes: Vec<Count> = [1, 10, 100, 1000].map(count).to_vec(),
        /// How long a kernel of a chain takes: several times as long as a launch.
        kernel: Seconds = Seconds::of(2e-5),
    }
}

impl Experiment for Layers {
    const NAME: &'static str = "layers";
    const SUMMARY: &'static str = "Where the time of a launch goes: the driver, the layers above it, and graphs";

    fn groups(&self, _engine: &str) -> Vec<Group> {
        vec![self.launch(), self.graphs(), updates(), self.programmatic(), priorities(), self.same()]
    }
}

/// The time of a call of the driver, which is made once before.
fn timed(device: &Device, call: &Call) -> Result<impl FnMut() -> Result<f64> + use<>> {
    let mut call: CallUnderTest = CallUnderTest::new(device, call)?;
    call.time(None, None)?;
    Ok(move || call.time(None, None))
}

/// An operation on one element, captured so many times.
fn captured(device: &Device, operations: usize) -> Result<Graph> {
    let stream = device.stream()?;
    let x = stream.zeros::<f32>([1])?;
    let graph = stream.capture(|| (0..operations).try_for_each(|_| x.affine_in_place(1.0, 1.0)))?.1;
    graph.launch()?;
    stream.synchronize().map(|()| graph)
}

impl Layers {
    /// One launch through each layer: one group.
    fn launch(&self) -> Group {
        let launches = self.launches.get();
        let through = move |call: Call| {
            move |device: &Device| {
                let mut time = timed(device, &call)?;
                Ok(move || time().map(|seconds| seconds / launches as f64))
            }
        };
        let group = Group::of("One launch through each layer", [("launches", launches.into())])
            .time_by(Clock::Host, "layers.driver", "The driver's own call", through(layers::driver(launches)))
            .time_by(Clock::Host, "layers.wrapper", "A safe wrapper of it", through(layers::wrapper(launches)))
            .time_by(Clock::Host, "layers.extended", "The driver's extended call", through(layers::extended(launches)))
            .host_time("layers.library", "This library, the same kernel", move |device| {
                let stream = device.stream()?;
                Ok(move || (0..launches).try_for_each(|_| stream.spin(Duration::ZERO)))
            })
            .per(launches)
            .work(Work::launches(1.0, "1"))
            .host_time("layers.operation", "An operation on one element", move |device| {
                let x = device.stream()?.zeros::<f32>([1])?;
                Ok(move || (0..launches).try_for_each(|_| x.affine_in_place(1.0, 1.0)))
            })
            .per(launches)
            .work(Work::launches(1.0, "1"))
            .host_time("layers.graph", "A graph of one operation", move |device| {
                let graph = captured(device, 1)?;
                Ok(move || (0..launches).try_for_each(|_| graph.launch()))
            })
            .per(launches);
        let differences = [
            ("layers.wrapper.above", "The wrapper, above the driver", ["layers.wrapper", "layers.driver"]),
            ("layers.library.above", "This library, above the extended call", ["layers.library", "layers.extended"]),
            (
                "layers.operation.above",
                "An operation, above the extended call",
                ["layers.operation", "layers.extended"],
            ),
            ("layers.graph.saved", "What a graph of one operation saves", ["layers.operation", "layers.graph"]),
        ];
        let declared = |group: GroupBuilder<_>, (id, label, of)| group.difference(id, label, of);
        differences.into_iter().fold(group, declared).build()
    }

    /// Graphs of several sizes: one group.
    fn graphs(&self) -> Group {
        let mut group = Group::of("Launch of a graph by its size", []);
        for nodes in self.nodes.iter().map(|nodes| nodes.get()) {
            let launches = move |device: &Device| {
                let graph = captured(device, nodes)?;
                Ok(move |watch: &mut Stopwatch| {
                    (0..SINGLE)
                        .try_for_each(|_| watch.time(|| graph.launch()).and_then(|()| graph.stream().synchronize()))
                })
            };
            group = group
                .with_parameters([("nodes", nodes.into())])
                .host_time_within("layers.graph.launch", "Launch a graph", launches)
                .per(SINGLE);
        }
        group = group.with_parameters([]);
        if let (Some(first), Some(last)) = (self.nodes.iter().min(), self.nodes.iter().max())
            && first < last
        {
            let (few, many) = (first.get(), last.get());
            let nodes = many - few;
            let line = |text: String| {
                let id = "layers.graph.launch";
                let of = |nodes: usize| Parameters::from([("nodes".to_owned(), nodes.into())]);
                let formula = Formula::of(text, [("small", id), ("large", id)]);
                formula.from_row("small", &of(few)).from_row("large", &of(many))
            };
            group = group
                .derived(
                    "layers.graph.node",
                    "Each further node",
                    Unit::Seconds,
                    line(format!("(large − small) / {nodes}")),
                )
                .derived(
                    "layers.graph.constant",
                    "A graph without nodes, by the line",
                    Unit::Seconds,
                    line(format!("small − {few} · (large − small) / {nodes}")),
                );
        }
        group.build()
    }

    /// Chains with and without programmatic launches: one group.
    fn programmatic(&self) -> Group {
        let (launches, length) = (self.launches.get(), self.kernel.duration());
        let chain = move |programmatic: bool| {
            move |device: &Device| {
                let mut time = timed(device, &layers::chain(launches, length, programmatic))?;
                Ok(move || time().map(|seconds| seconds / launches as f64))
            }
        };
        Group::of(
            "Programmatic launches",
            [("launches", launches.into()), ("kernel_seconds", length.as_secs_f64().into())],
        )
        .time_by(Clock::Host, "layers.programmatic.off", "A kernel of a chain, each after the other", chain(false))
        .time_by(Clock::Host, "layers.programmatic.on", "A kernel of a chain, programmatic", chain(true))
        .difference(
            "layers.programmatic.saved",
            "What a programmatic launch saves",
            ["layers.programmatic.off", "layers.programmatic.on"],
        )
        .build()
    }

    /// An operation on one element, twice.
    fn same(&self) -> Group {
        let launches = self.launches.get();
        Group::of("The same code twice", [("launches", launches.into())])
            .setup(|device| device.stream()?.zeros::<f32>([1]))
            .twice(["layers.same.a", "layers.same.b", "layers.same.ratio"], move |x| {
                (0..launches).try_for_each(|_| x.affine_in_place(1.0, 1.0))
            })
    }
}

/// What it takes to change an executable graph of one kernel: one group.
fn updates() -> Group {
    let change = |call: Call| {
        move |device: &Device| {
            let mut time = timed(device, &call)?;
            Ok(move || (0..SINGLE).try_fold(0.0, |sum, _| time().map(|seconds| sum + seconds)))
        }
    };
    Group::of("Changing a graph", [])
        .time_by(Clock::Host, "layers.graph.update", "Update a graph of one kernel", change(layers::graph_update()))
        .per(SINGLE)
        .time_by(
            Clock::Host,
            "layers.graph.set-parameters",
            "Set the arguments of its kernel",
            change(layers::graph_parameters()),
        )
        .per(SINGLE)
        .build()
}

/// A launch behind that of a kernel that has the device: one group.
fn priorities() -> Group {
    let launch = |highest: bool| move |device: &Device| timed(device, &layers::priority(highest));
    Group::of("Priority of a stream", [])
        .time_by(Clock::Host, "layers.priority.lowest", "Launch both and wait, lowest priority", launch(false))
        .time_by(Clock::Host, "layers.priority.highest", "Launch both and wait, highest priority", launch(true))
        .build()
}
