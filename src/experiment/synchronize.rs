//! `synchronize`: what a synchronize is for, what each kind waits for, and what it costs in a loop.
//!
//! - *timing*: one step timed by the host's clock without and with a synchronize, and by device events.
//! - *streams*: one stream writes a tensor that another copies. The writer is held up by a kernel that spins, so that a
//!   copy that nothing orders behind it reads what was there before. Stale elements are counted; a race that was not
//!   seen is not reported. The final synchronize, which all three orderings have, orders the host and no stream.
//! - *scope*: two streams are kept busy for known times, with an event part of the way; how long the wait for the event,
//!   for its stream and for the device holds the host says what each of them waited for.
//! - *loop*: the steps with a synchronize each; without, until the host is free; without, until the device is done. The
//!   second is what a loop without a synchronize shows to a host clock, and is no time of the work.

use std::hint::black_box;
use std::num::NonZeroUsize;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::bench::{Bench, integer, parameters, step};
use super::{Experiment, Parameter, RowPlan, Section, count};
use crate::device::{Device, Event, Stream};
use crate::error::DeviceError;
use crate::measure::{Case, host_time};
use crate::tensor::Tensor;
use crate::units::{Seconds, Unit};

/// What each kind of synchronize waits for, and what it costs in a loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "report", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Synchronize {
    /// Rows and columns of the product.
    pub size: NonZeroUsize,
    /// Steps of the loop.
    pub iters: NonZeroUsize,
    /// Elements of the tensor that two streams share.
    pub elements: NonZeroUsize,
    /// How long the stream that writes it is held up.
    pub busy: Seconds,
}

impl Default for Synchronize {
    fn default() -> Self {
        Self { size: count(1024), iters: count(1000), elements: count(1 << 20), busy: Seconds::milliseconds(2) }
    }
}

impl Synchronize {
    pub(super) fn default_for(engine: &str) -> Self {
        match engine {
            "cpu" => Self { size: count(128), iters: count(50), elements: count(1 << 16), ..Self::default() },
            _ => Self::default(),
        }
    }
}

const PLAN: &[RowPlan] = &[
    RowPlan::host_time("synchronize.timing.without", "Host clock without a synchronize"),
    RowPlan::host_time("synchronize.timing.with", "Host clock with a synchronize"),
    RowPlan::device_time("synchronize.timing.events", "Device events"),
    RowPlan::observed("synchronize.streams.none.stale", "Stale elements, no ordering", Unit::Number),
    RowPlan::host_time("synchronize.streams.none.time", "Time, no ordering"),
    RowPlan::observed("synchronize.streams.event.stale", "Stale elements, ordered by an event", Unit::Number),
    RowPlan::host_time("synchronize.streams.event.time", "Time, ordered by an event"),
    RowPlan::observed("synchronize.streams.device.stale", "Stale elements, device synchronize between", Unit::Number),
    RowPlan::host_time("synchronize.streams.device.time", "Time, device synchronize between"),
    RowPlan::host_time("synchronize.scope.event", "Event synchronize"),
    RowPlan::host_time("synchronize.scope.stream", "Stream synchronize"),
    RowPlan::host_time("synchronize.scope.device", "Device synchronize"),
    RowPlan::host_time("synchronize.loop.each", "Loop, a synchronize each step"),
    RowPlan::host_time("synchronize.loop.enqueue", "Loop without, until the host is free"),
    RowPlan::host_time("synchronize.loop.complete", "Loop without, until the device is done"),
];

const SECTIONS: &[Section] = &[
    Section { title: "Timing", rows: &["synchronize.timing"] },
    Section { title: "Two streams and one tensor", rows: &["synchronize.streams"] },
    Section { title: "What a synchronize waits for", rows: &["synchronize.scope"] },
    Section { title: "Loop", rows: &["synchronize.loop"] },
];

impl Experiment for Synchronize {
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
        self.timing(bench);
        self.streams(bench);
        scope(bench);
        self.steps(bench);
    }
}

impl Synchronize {
    fn timing(&self, bench: &mut Bench) {
        let ids = ["synchronize.timing.without", "synchronize.timing.with", "synchronize.timing.events"];
        let n = self.size.get();
        bench.group(&ids, &parameters([("size", integer(n))]), |device| {
            let stream = device.stream()?;
            let (first, second, third) = (stream.clone(), stream.clone(), stream.clone());
            Ok(vec![
                Case::host_timed(ids[0], move || step(&first, n)),
                Case::host_timed(ids[1], move || {
                    let y = step(&second, n)?;
                    second.device().synchronize().map(|()| y)
                }),
                Case::device_timed(ids[2], &stream, move || step(&third, n))?,
            ])
        });
    }

    fn streams(&self, bench: &mut Bench) {
        let (elements, busy) = (self.elements.get(), self.busy.duration());
        let seconds = ("busy_seconds", Parameter::Float(self.busy.into()));
        let parameters = parameters([("elements", integer(elements)), seconds]);
        let orders = [
            (["synchronize.streams.none.stale", "synchronize.streams.none.time"], Order::Nothing),
            (["synchronize.streams.event.stale", "synchronize.streams.event.time"], Order::Event),
            (["synchronize.streams.device.stale", "synchronize.streams.device.time"], Order::Device),
        ];
        let ids: Vec<_> = orders.iter().flat_map(|(ids, _)| *ids).collect();
        bench.group(&ids, &parameters, |device| {
            let mut cases = Vec::new();
            for ([stale, time], order) in orders {
                let (counted, timed) = (Handover::new(device, elements)?, Handover::new(device, elements)?);
                cases.push(Case::new(stale, move || {
                    counted.run(order, busy)?;
                    counted.stale()
                }));
                cases.push(Case::host_timed(time, move || timed.run(order, busy)));
            }
            Ok(cases)
        });
    }

    fn steps(&self, bench: &mut Bench) {
        let ids = ["synchronize.loop.each", "synchronize.loop.enqueue", "synchronize.loop.complete"];
        let (n, iters) = (self.size.get(), self.iters.get());
        bench.group(&ids, &parameters([("size", integer(n)), ("iters", integer(iters))]), |device| {
            let looped = |id, each: bool, end: bool| {
                let stream = device.stream()?;
                Ok(Case::host_timed(id, move || {
                    for _ in 0..iters {
                        black_box(step(&stream, n)?);
                        if each {
                            stream.device().synchronize()?;
                        }
                    }
                    if end { stream.device().synchronize() } else { Ok(()) }
                }))
            };
            Ok(vec![looped(ids[0], true, false)?, looped(ids[1], false, false)?, looped(ids[2], false, true)?])
        });
    }
}

/// What orders the stream that reads behind the stream that writes.
#[derive(Clone, Copy)]
enum Order {
    Nothing,
    Event,
    Device,
}

/// A tensor that one stream writes and another copies.
struct Handover {
    writer: Stream,
    shared: Tensor<f32>,
    read: Tensor<f32>,
    copy: Tensor<f32>,
    written: Event,
}

impl Handover {
    fn new(device: &Device, elements: usize) -> Result<Self, DeviceError> {
        let (writer, reader) = (device.stream()?, device.stream()?);
        let shared = writer.zeros::<f32>([elements])?;
        let (read, copy) = (shared.on(&reader)?, reader.zeros::<f32>([elements])?);
        Ok(Self { writer, shared, read, copy, written: device.event()? })
    }

    /// Makes the shared elements 0, then has one stream write 1 after a while and the other copy them.
    fn run(&self, order: Order, busy: Duration) -> Result<(), DeviceError> {
        self.shared.affine_in_place(0.0, 0.0)?;
        self.writer.synchronize()?;
        self.writer.spin(busy)?;
        self.shared.affine_in_place(0.0, 1.0)?;
        match order {
            Order::Nothing => {}
            Order::Event => {
                self.writer.record(&self.written)?;
                self.copy.stream().wait(&self.written)?;
            }
            Order::Device => self.writer.device().synchronize()?,
        }
        self.copy.assign(&self.read)?;
        self.writer.device().synchronize()
    }

    /// How many elements of the copy are not what was written.
    fn stale(&self) -> Result<f64, DeviceError> {
        Ok(self.copy.add_scalar(-1.0)?.nonzero()?.len() as f64)
    }
}

/// Two streams: `a` busy for 2 ms, an event, busy for 2 ms more; `b` busy for 8 ms.
fn scope(bench: &mut Bench) {
    const EVENT: Duration = Duration::from_millis(2);
    const REST: Duration = Duration::from_millis(2);
    const OTHER: Duration = Duration::from_millis(8);
    let ids = ["synchronize.scope.event", "synchronize.scope.stream", "synchronize.scope.device"];
    let seconds = |duration: Duration| Parameter::Float(duration.as_secs_f64());
    let parameters = parameters([
        ("event_seconds", seconds(EVENT)),
        ("stream_seconds", seconds(EVENT + REST)),
        ("device_seconds", seconds(OTHER)),
    ]);
    bench.group(&ids, &parameters, |device| {
        let (a, b, event) = (device.stream()?, device.stream()?, device.event()?);
        let begin = {
            let (a, b, event) = (a.clone(), b.clone(), event.clone());
            move || {
                a.spin(EVENT)?;
                a.record(&event)?;
                a.spin(REST)?;
                b.spin(OTHER)
            }
        };
        let (first, second, device) = (begin.clone(), begin.clone(), device.clone());
        Ok(vec![
            Case::new(ids[0], move || {
                first()?;
                Ok(host_time(|| event.synchronize())?.1)
            }),
            Case::new(ids[1], move || {
                second()?;
                Ok(host_time(|| a.synchronize())?.1)
            }),
            Case::new(ids[2], move || {
                begin()?;
                Ok(host_time(|| device.synchronize())?.1)
            }),
        ])
    });
}
