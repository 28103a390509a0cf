//! `launch-path`: what it takes to hand a device many small pieces of work, by the way in which they are handed over.
//!
//! The same work, additions to one small tensor in place, `n` times:
//!
//! - *one-by-one*: each launched and waited for;
//! - *batched*: all launched, and one wait;
//! - *graph*: captured once, launched as one, and one wait. Capturing and making the graph ready is timed by itself.
//!
//! *host-free* is the time until the host is free, *complete* until the device is done.

use std::num::NonZeroUsize;

use serde::{Deserialize, Serialize};

use super::bench::{Bench, Formula, integer, parameters};
use super::{Derivation, Experiment, RowPlan, Section, count};
use crate::measure::Case;
use crate::units::Unit;

/// The same work launched one by one, batched and as a graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "report", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct LaunchPath {
    /// How many operations there are: the rows are left for each.
    pub operations: Vec<NonZeroUsize>,
    /// Elements of the tensor.
    pub elements: NonZeroUsize,
    /// How often a sample does it all: one sample is one loop, divided by this.
    pub turns: NonZeroUsize,
}

impl Default for LaunchPath {
    fn default() -> Self {
        Self { operations: [1, 10, 100, 1000].map(count).to_vec(), elements: count(1024), turns: count(3) }
    }
}

impl LaunchPath {
    pub(super) fn default_for(_engine: &str) -> Self {
        Self::default()
    }
}

const ONE_BY_ONE: &str = "launch-path.one-by-one.complete";
const BATCHED: [&str; 2] = ["launch-path.batched.host-free", "launch-path.batched.complete"];
const GRAPH: [&str; 2] = ["launch-path.graph.host-free", "launch-path.graph.complete"];
const CAPTURE: &str = "launch-path.graph.capture";
const GAIN: &str = "launch-path.graph.gain";

const PLAN: &[RowPlan] = &[
    RowPlan::host_time(ONE_BY_ONE, "One by one, each waited for").per_turn(),
    RowPlan::host_time(BATCHED[0], "Batched, until the host is free"),
    RowPlan::host_time(BATCHED[1], "Batched, until the device is done").per_turn(),
    RowPlan::host_time(GRAPH[0], "As a graph, until the host is free"),
    RowPlan::host_time(GRAPH[1], "As a graph, until the device is done").per_turn(),
    RowPlan::host_time(CAPTURE, "Capturing the graph and making it ready"),
    RowPlan::observed(GAIN, "Batched / as a graph, until the device is done", Unit::Ratio),
];

const SECTIONS: &[Section] = &[
    Section { title: "One by one", rows: &["launch-path.one-by-one"] },
    Section { title: "Batched", rows: &["launch-path.batched"] },
    Section { title: "As a graph", rows: &["launch-path.graph"] },
];

impl Experiment for LaunchPath {
    fn rows(&self) -> Vec<RowPlan> {
        PLAN.to_vec()
    }

    fn sections(&self) -> &'static [Section] {
        SECTIONS
    }

    fn turns(&mut self) -> &mut NonZeroUsize {
        &mut self.turns
    }

    fn run(&self, bench: &mut Bench) {
        for operations in &self.operations {
            self.paths(bench, operations.get());
        }
    }
}

impl LaunchPath {
    fn paths(&self, bench: &mut Bench, operations: usize) {
        let (elements, turns) = (self.elements.get(), self.turns.get());
        let parameters = parameters([("operations", integer(operations)), ("elements", integer(elements))]);
        let ids = [ONE_BY_ONE, BATCHED[0], BATCHED[1], GRAPH[0], GRAPH[1], CAPTURE];
        bench.group(&ids, &parameters, |device| {
            let stream = device.stream()?;
            let x = stream.zeros::<f32>([elements])?;
            let launch = move || x.affine_in_place(1.0, 1.0);
            let all = {
                let launch = launch.clone();
                move || (0..operations).try_for_each(|_| launch())
            };
            let (_, graph) = stream.capture(&all)?;
            let (wait, one, two, three) = (device.clone(), device.clone(), device.clone(), device.clone());
            let (batched, captured, graph_free) = (all.clone(), all.clone(), graph.clone());
            Ok(vec![
                Case::host_timed(ONE_BY_ONE, move || {
                    (0..turns * operations).try_for_each(|_| launch().and_then(|()| one.synchronize()))
                })
                .per(turns),
                Case::host_timed(BATCHED[0], all),
                Case::host_timed(BATCHED[1], move || {
                    (0..turns).try_for_each(|_| batched().and_then(|()| two.synchronize()))
                })
                .per(turns),
                Case::host_timed(GRAPH[0], move || graph_free.launch()),
                Case::host_timed(GRAPH[1], move || {
                    (0..turns).try_for_each(|_| graph.launch().and_then(|()| three.synchronize()))
                })
                .per(turns),
                Case::host_timed(CAPTURE, move || {
                    let graph = stream.capture(&captured)?.1;
                    wait.synchronize().map(|()| graph)
                }),
            ])
        });
        let (derivation, batched, graph) =
            (Derivation::Computation, (BATCHED[1], &parameters), (GRAPH[1], &parameters));
        let (text, operands, compute) = ("batched / graph", &[batched, graph], &|x: &[f64]| x[0] / x[1]);
        bench.derive(GAIN, &parameters, Formula { derivation, text, operands, compute });
    }
}
