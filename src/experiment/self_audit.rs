//! `self-audit`: what the instruments resolve and cost, and what the library adds to a bare launch. Run with every
//! suite, so that a reader can tell a measurement from the noise of what took it.
//!
//! - `timer`: steps of the host's clock, and what one reading of it costs.
//! - `event`: what recording an event costs the host; the device time between two events with nothing in between,
//!   which is the least that two events can show.
//! - `empty-loop`: the host time of a turn of a loop that does nothing, as the loops here are written.
//! - `enqueue`: the host time of one elementwise operation on a small tensor, enqueued in a loop and not waited for,
//!   in place and with a new tensor, beside the engine's own lowest-level launch of a like kernel. On CUDA that is a
//!   plain `cuLaunchKernel`; the library's launch may be cheaper, where kernels can start while the one before ends.

use std::hint::black_box;
use std::num::NonZeroUsize;

use serde::{Deserialize, Serialize};

use super::bench::{Bench, Formula, integer, parameters};
use super::{Derivation, Experiment, RowPlan, Section, count};
use crate::error::DeviceError;
use crate::measure::{Case, DeviceClock, timer_cost, timer_resolution};
use crate::units::Unit;

/// Resolution and cost of the instruments, and of the library.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "report", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct SelfAudit {
    /// Calls in a loop: one sample is one loop, divided by this.
    pub calls: NonZeroUsize,
}

impl Default for SelfAudit {
    fn default() -> Self {
        Self { calls: count(500) }
    }
}

impl SelfAudit {
    pub(super) fn default_for(_engine: &str) -> Self {
        Self::default()
    }
}

const PLAN: &[RowPlan] = &[
    RowPlan::host_time("self-audit.timer.resolution", "Smallest step of the host's clock"),
    RowPlan::host_time("self-audit.timer.cost", "One reading of the host's clock"),
    RowPlan::host_time("self-audit.empty-loop", "One turn of an empty loop").per_turn(),
    RowPlan::host_time("self-audit.event.cost", "Recording an event").per_turn(),
    RowPlan::host_time("self-audit.event.timing-cost", "Recording an event with timing").per_turn(),
    RowPlan::device_time("self-audit.event.gap", "Two events with nothing in between"),
    RowPlan::host_time("self-audit.synchronize.device", "Device synchronize, nothing pending").per_turn(),
    RowPlan::host_time("self-audit.synchronize.stream", "Stream synchronize, nothing pending").per_turn(),
    RowPlan::host_time("self-audit.enqueue.in-place", "Enqueue by the library, in place").per_turn(),
    RowPlan::host_time("self-audit.enqueue.allocating", "Enqueue by the library, with a new tensor").per_turn(),
    RowPlan::host_time("self-audit.enqueue.raw", "Bare launch by the engine's lowest call").per_turn(),
    RowPlan::observed("self-audit.enqueue.ratio", "Library in place / bare launch", Unit::Ratio),
];

const SECTIONS: &[Section] = &[
    Section {
        title: "Instruments",
        rows: &["self-audit.timer", "self-audit.empty-loop", "self-audit.event", "self-audit.synchronize"],
    },
    Section { title: "Enqueueing", rows: &["self-audit.enqueue"] },
];

impl Experiment for SelfAudit {
    fn rows(&self) -> Vec<RowPlan> {
        PLAN.to_vec()
    }

    fn sections(&self) -> &'static [Section] {
        SECTIONS
    }

    fn turns(&mut self) -> &mut NonZeroUsize {
        &mut self.calls
    }

    fn run(&self, bench: &mut Bench) {
        let calls = self.calls.get();
        let parameters = parameters([("calls", integer(calls))]);
        let [resolution, cost, empty] =
            ["self-audit.timer.resolution", "self-audit.timer.cost", "self-audit.empty-loop"];
        bench.group(&[resolution, cost, empty], &parameters, |_| {
            let least = |values: Vec<f64>| values.into_iter().fold(f64::INFINITY, f64::min);
            Ok(vec![
                Case::new(resolution, move || Ok(least(timer_resolution(100)))),
                Case::new(cost, move || Ok(least(timer_cost(1)))),
                Case::host_timed(empty, move || {
                    (0..calls).for_each(|call| _ = black_box(call));
                    Ok(())
                })
                .per(calls),
            ])
        });
        self.events(bench, &parameters);
        self.enqueueing(bench, &parameters);
    }
}

impl SelfAudit {
    fn events(&self, bench: &mut Bench, parameters: &super::Parameters) {
        let calls = self.calls.get();
        let [plain, timing, gap] = ["self-audit.event.cost", "self-audit.event.timing-cost", "self-audit.event.gap"];
        let [device_id, stream_id] = ["self-audit.synchronize.device", "self-audit.synchronize.stream"];
        bench.group(&[plain, timing, gap, device_id, stream_id], parameters, |device| {
            let stream = device.stream()?;
            let record = |id, event: crate::device::Event| {
                let stream = stream.clone();
                Case::host_timed(id, move || (0..calls).try_for_each(|_| stream.record(&event))).per(calls)
            };
            let (device, idle, mut clock) = (device.clone(), stream.clone(), DeviceClock::new(&stream)?);
            Ok(vec![
                record(plain, device.event()?),
                record(timing, device.timing_event()?),
                Case::new(gap, move || Ok(clock.time(|| Ok(()))?.1)),
                Case::host_timed(device_id, move || (0..calls).try_for_each(|_| device.synchronize())).per(calls),
                Case::host_timed(stream_id, move || (0..calls).try_for_each(|_| idle.synchronize())).per(calls),
            ])
        });
    }

    fn enqueueing(&self, bench: &mut Bench, parameters: &super::Parameters) {
        let calls = self.calls.get();
        let [in_place, allocating] = ["self-audit.enqueue.in-place", "self-audit.enqueue.allocating"];
        let [raw, ratio] = ["self-audit.enqueue.raw", "self-audit.enqueue.ratio"];
        // Asked once: whether the engine has a bare launch at all decides which rows there are.
        let stream = bench.device().stream();
        let bare = stream.and_then(|stream| bench.device().raw_launch_loop(&stream, 1));
        let ids: &[&'static str] = match &bare {
            Err(DeviceError::NotApplicable { reason, .. }) => {
                bench.not_applicable(&[raw, ratio], parameters, reason);
                &[in_place, allocating]
            }
            _ => &[in_place, allocating, raw],
        };
        bench.group(ids, parameters, |device| {
            let stream = device.stream()?;
            let x = stream.zeros::<f32>([1024])?;
            let (y, device) = (x.clone(), device.clone());
            let mut cases = vec![
                Case::host_timed(in_place, move || (0..calls).try_for_each(|_| x.affine_in_place(1.0, 1.0))).per(calls),
                Case::host_timed(allocating, move || (0..calls).try_for_each(|_| y.affine(1.0, 1.0).map(drop)))
                    .per(calls),
            ];
            if ids.contains(&raw) {
                cases.push(Case::new(raw, move || {
                    Ok(device.raw_launch_loop(&stream, calls)?.as_secs_f64() / calls as f64)
                }));
            }
            Ok(cases)
        });
        if ids.contains(&raw) {
            let (derivation, operands) = (Derivation::Computation, &[(in_place, parameters), (raw, parameters)]);
            let text = "in-place / raw";
            bench.derive(ratio, parameters, Formula { derivation, text, operands, compute: &|x| x[0] / x[1] });
        }
    }
}
