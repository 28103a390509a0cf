//! `idle-device`: whether waiting for a busy device each step costs more than waiting for one that has nothing to do.
//!
//! A step draws a small matrix and multiplies it by itself on one device, then synchronizes either a second, idle
//! device (*other*) or the device that works (*same*). The loop ends with a synchronize of the device that works. The
//! text behind this chapter reads the difference as the time spent waiting: the call itself costs in both loops.
//!
//! With one device of an engine the same pair is run against an idle *stream* of that device; it stands in rows of its
//! own, since a stream synchronize and a device synchronize are different calls.

use std::hint::black_box;
use std::num::NonZeroUsize;

use serde::{Deserialize, Serialize};

use super::bench::{Bench, integer, parameters, step};
use super::{Experiment, RowPlan, Section, count};
use crate::device::{Device, Stream};
use crate::error::DeviceError;
use crate::measure::Case;

/// A loop of small products that waits for an idle or for the busy device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "report", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct IdleDevice {
    /// The device that works and the one that idles; left out, the run's device and the next one of its engine.
    pub devices: Option<[String; 2]>,
    /// Steps of the loop.
    pub iters: NonZeroUsize,
    /// Rows and columns of the product.
    pub size: NonZeroUsize,
}

impl Default for IdleDevice {
    fn default() -> Self {
        Self { devices: None, iters: count(1000), size: count(100) }
    }
}

impl IdleDevice {
    pub(super) fn default_for(engine: &str) -> Self {
        match engine {
            "cpu" => Self { iters: count(100), ..Self::default() },
            _ => Self::default(),
        }
    }
}

const PLAN: &[RowPlan] = &[
    RowPlan::host_time("idle-device.other", "Loop, synchronizing an idle device each step"),
    RowPlan::host_time("idle-device.same", "Loop, synchronizing the busy device each step"),
    RowPlan::host_time("idle-device.delta", "Difference"),
    RowPlan::host_time("idle-device.stream.other", "Loop, synchronizing an idle stream each step"),
    RowPlan::host_time("idle-device.stream.same", "Loop, synchronizing the busy stream each step"),
    RowPlan::host_time("idle-device.stream.delta", "Difference"),
];

const SECTIONS: &[Section] = &[
    Section { title: "Two devices", rows: &["idle-device.other", "idle-device.same", "idle-device.delta"] },
    Section { title: "Two streams of one device", rows: &["idle-device.stream"] },
];

impl Experiment for IdleDevice {
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
        let parameters = parameters([("size", integer(self.size.get())), ("iters", integer(self.iters.get()))]);
        let [other, same, delta] = ["idle-device.other", "idle-device.same", "idle-device.delta"];
        match self.pair(bench.device()) {
            Ok(Some((busy, idle))) => {
                bench.group(&[other, same], &parameters, |_| {
                    let stream = busy.stream()?;
                    let (waited, worked) = (idle.clone(), busy.clone());
                    Ok(vec![
                        self.looped(other, &stream, move || waited.synchronize()),
                        self.looped(same, &stream, move || worked.synchronize()),
                    ])
                });
                bench.difference(delta, &parameters, [same, other]);
            }
            Ok(None) => bench.skipped(&[other, same, delta], &parameters, "there is one device of this engine"),
            Err(error) => bench.failed(&[other, same, delta], &parameters, &error.to_string()),
        }

        let [other, same, delta] = ["idle-device.stream.other", "idle-device.stream.same", "idle-device.stream.delta"];
        bench.group(&[other, same], &parameters, |device| {
            let (stream, idle) = (device.stream()?, device.stream()?);
            let busy = stream.clone();
            Ok(vec![
                self.looped(other, &stream, move || idle.synchronize()),
                self.looped(same, &stream, move || busy.synchronize()),
            ])
        });
        bench.difference(delta, &parameters, [same, other]);
    }
}

impl IdleDevice {
    /// The device that works and the one that idles; `None` where there is no second one.
    fn pair(&self, device: &Device) -> Result<Option<(Device, Device)>, DeviceError> {
        if let Some([busy, idle]) = &self.devices {
            return Ok(Some((Device::open(busy)?, Device::open(idle)?)));
        }
        let engine = device.properties().engine;
        let next = Device::list()
            .into_iter()
            .find(|listed| listed.name != device.name() && listed.name.split(':').next() == Some(engine));
        next.map(|listed| Ok((device.clone(), Device::open(&listed.name)?))).transpose()
    }

    fn looped(
        &self,
        id: &'static str,
        stream: &Stream,
        wait: impl Fn() -> Result<(), DeviceError> + 'static,
    ) -> Case<'static> {
        let (iters, n, stream) = (self.iters.get(), self.size.get(), stream.clone());
        Case::host_timed(id, move || {
            for _ in 0..iters {
                black_box(step(&stream, n)?);
                wait()?;
            }
            stream.device().synchronize()
        })
    }
}
