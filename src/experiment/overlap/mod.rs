//! `overlap`: what runs beside the host, which calls wait for the device, what transfers cost, and how far copies and
//! kernels overlap.
//!
//! - *execution*: three large draws by a host library, and on the device until the host is free and until it is done.
//! - *finish*: a hundred additions: when the host is free, when the device is.
//! - *nonzero*: a call whose result's shape depends on the values, behind twenty kernels and with nothing pending.
//! - *implicit*, *transfer*, *double-buffer*: a file each.
//! - *scenes*: what is recorded as timelines.

mod double_buffer;
mod implicit;
mod scenes;
mod transfer;

use std::hint::black_box;
use std::num::NonZeroUsize;

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

use super::bench::{Bench, integer, parameters, text};
use super::{Experiment, RowPlan, Section, Stage, count};
use crate::device::Stream;
use crate::error::DeviceError;
use crate::measure::{Case, host_time};
use crate::tensor::Tensor;
use crate::units::Seconds;

/// Which calls wait for the device, what transfers cost, and how far they overlap with work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "report", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Overlap {
    /// Elements of each of the three draws.
    pub draws: NonZeroUsize,
    /// Elements of every other tensor and transfer (fp32).
    pub elements: NonZeroUsize,
    /// Additions whose end is waited for.
    pub adds: NonZeroUsize,
    /// Kernels before the search for elements that are not zero.
    pub scales: NonZeroUsize,
    /// Steps of the double-buffered loop.
    pub steps: NonZeroUsize,
    /// How long a call behind a closed gate may stay away before it counts as one that waits: well above what the calls
    /// cost by themselves.
    pub patience: Seconds,
}

impl Default for Overlap {
    fn default() -> Self {
        Self {
            draws: count(50_000_000),
            elements: count(10_000_000),
            adds: count(100),
            scales: count(20),
            steps: count(10),
            patience: Seconds::milliseconds(20),
        }
    }
}

impl Overlap {
    pub(super) fn default_for(engine: &str) -> Self {
        match engine {
            "cpu" => Self { draws: count(200_000), elements: count(100_000), ..Self::default() },
            _ => Self::default(),
        }
    }
}

const PLAN: &[RowPlan] = &[
    RowPlan::host_time("overlap.execution.host", "Three draws by a host library"),
    RowPlan::host_time("overlap.execution.dispatch", "Three draws on the device, until the host is free"),
    RowPlan::host_time("overlap.execution.complete", "Three draws on the device, until they are done"),
    RowPlan::host_time("overlap.finish.host-free", "Additions, until the host is free"),
    RowPlan::host_time("overlap.finish.complete", "Additions, until they are done"),
    RowPlan::host_time("overlap.nonzero.enqueue", "Scaling, enqueued"),
    RowPlan::host_time("overlap.nonzero.stall", "nonzero, scaling pending"),
    RowPlan::host_time("overlap.nonzero.whole", "Scaling and nonzero"),
    RowPlan::host_time("overlap.nonzero.alone", "nonzero, nothing pending"),
];

const SECTIONS: &[Section] = &[
    Section { title: "Execution", rows: &["overlap.execution"] },
    Section { title: "When who finishes", rows: &["overlap.finish"] },
    Section { title: "Implicit synchronization", rows: &["overlap.implicit"] },
    Section { title: "nonzero", rows: &["overlap.nonzero"] },
    Section { title: "Transfers", rows: &["overlap.transfer"] },
    Section { title: "Double buffering", rows: &["overlap.double-buffer", "overlap.single-buffer", "overlap.one-way"] },
];

impl Experiment for Overlap {
    fn rows(&self) -> Vec<RowPlan> {
        [PLAN, implicit::PLAN, transfer::PLAN, double_buffer::PLAN].concat()
    }

    fn sections(&self) -> &'static [Section] {
        SECTIONS
    }

    fn turns(&mut self) -> &mut NonZeroUsize {
        &mut self.steps
    }

    fn run(&self, bench: &mut Bench) {
        self.execution(bench);
        self.finish(bench);
        implicit::run(bench, self.patience.duration(), self.elements.get());
        self.nonzero(bench);
        transfer::run(bench, self.elements.get());
        double_buffer::run(bench, self.elements.get(), self.steps.get());
    }

    fn play(&self, stage: &mut Stage) {
        scenes::play(self, stage);
    }
}

impl Overlap {
    fn execution(&self, bench: &mut Bench) {
        let elements = self.draws.get();
        let id = "overlap.execution.host";
        let library = ("library", text("rand_distr, fp32, 1 thread"));
        bench.group(&[id], &parameters([("elements", integer(elements)), library]), |_| {
            let mut random = StdRng::seed_from_u64(0);
            Ok(vec![Case::host_timed(id, move || {
                let mut draw = || -> Vec<f32> { (0..elements).map(|_| StandardNormal.sample(&mut random)).collect() };
                Ok([draw(), draw(), draw()])
            })])
        });
        let [dispatch, complete] = ["overlap.execution.dispatch", "overlap.execution.complete"];
        bench.group(&[dispatch, complete], &parameters([("elements", integer(elements))]), |device| {
            let stream = device.stream()?;
            let draws = move || -> Result<[Tensor<f32>; 3], DeviceError> {
                Ok([stream.normal([elements])?, stream.normal([elements])?, stream.normal([elements])?])
            };
            let (first, device) = (draws.clone(), device.clone());
            Ok(vec![
                Case::host_timed(dispatch, first),
                Case::host_timed(complete, move || {
                    let drawn = draws()?;
                    device.synchronize().map(|()| drawn)
                }),
            ])
        });
    }

    fn finish(&self, bench: &mut Bench) {
        let (elements, adds) = (self.elements.get(), self.adds.get());
        let [free, complete] = ["overlap.finish.host-free", "overlap.finish.complete"];
        let parameters = parameters([("elements", integer(elements)), ("adds", integer(adds))]);
        bench.group(&[free, complete], &parameters, |device| {
            let stream = device.stream()?;
            let enqueue = move || {
                let x = stream.normal::<f32>([elements])?;
                (0..adds).try_for_each(|_| x.add_scalar(1.0).map(|y| drop(black_box(y))))
            };
            let (first, device) = (enqueue.clone(), device.clone());
            Ok(vec![
                Case::host_timed(free, first),
                Case::host_timed(complete, move || {
                    enqueue()?;
                    device.synchronize()
                }),
            ])
        });
    }

    fn nonzero(&self, bench: &mut Bench) {
        let ids =
            ["overlap.nonzero.enqueue", "overlap.nonzero.stall", "overlap.nonzero.whole", "overlap.nonzero.alone"];
        let (elements, scales) = (self.elements.get(), self.scales.get());
        let parameters = parameters([("elements", integer(elements)), ("scales", integer(scales))]);
        bench.group(&ids, &parameters, |device| {
            let stream = device.stream()?;
            let x = stream.normal::<f32>([elements])?;
            let scaled = move || (0..scales).try_fold(x.clone(), |z, _| z.multiply_scalar(1.000_001));
            let (first, second, third) = (scaled.clone(), scaled.clone(), scaled.clone());
            Ok(vec![
                Case::host_timed(ids[0], first),
                Case::new(ids[1], move || {
                    let z = second()?;
                    Ok(host_time(|| z.nonzero())?.1)
                }),
                Case::host_timed(ids[2], move || third()?.nonzero()),
                Case::new(ids[3], move || {
                    let z = settled(&stream, &scaled)?;
                    Ok(host_time(|| z.nonzero())?.1)
                }),
            ])
        });
    }
}

/// What `make` enqueues, after it is done.
fn settled<R>(stream: &Stream, make: &dyn Fn() -> Result<R, DeviceError>) -> Result<R, DeviceError> {
    let made = make()?;
    stream.synchronize().map(|()| made)
}
