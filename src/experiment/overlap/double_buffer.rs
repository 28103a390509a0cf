//! `overlap.double-buffer`: copies on one stream and kernels on another, two device buffers in turn, events between.
//!
//! Of `steps` steps each but the last copies the next step's data and each but the first computes on its own, so that
//! there are `steps − 1` copies and as many kernels. A kernel waits for the copy of its buffer. A copy must wait, too:
//! for the kernel that still reads the buffer that it overwrites (*write after read*). The text behind this chapter has
//! the first wait alone (*one way*); it is run as it stands, and with kernels slowed by a spin, and the elements of
//! every step's output that are wrong are counted. Each step has a host buffer of its own with data of its own (the text
//! copies from two, in turn), so that an overwritten device buffer shows.
//!
//! Beside the measured total stand Σ(copies) + Σ(kernels), each measured alone, and the larger of the two, which a full
//! overlap would take. *efficiency* is the share of what could be hidden that was: (sum − total) / (sum − max).

use std::hint::black_box;
use std::rc::Rc;
use std::time::Duration;

use crate::device::{Device, Event, HostBuffer, HostKind, Stream};
use crate::error::DeviceError;
use crate::experiment::bench::{Bench, Formula, integer, parameters, text};
use crate::experiment::scene::Pass;
use crate::experiment::{Derivation, RowPlan, Stage};
use crate::measure::Case;
use crate::tensor::Tensor;
use crate::units::Unit;

const TOTAL: &str = "overlap.double-buffer.total";
const COPIES: &str = "overlap.double-buffer.copies";
const COMPUTES: &str = "overlap.double-buffer.computes";
const SUM: &str = "overlap.double-buffer.sum";
const MAX: &str = "overlap.double-buffer.max";
const EFFICIENCY: &str = "overlap.double-buffer.efficiency";
const WRONG: &str = "overlap.double-buffer.wrong";
const SINGLE: &str = "overlap.single-buffer.total";
const ONE_WAY: &str = "overlap.one-way.total";
const OVERWRITTEN: &str = "overlap.one-way.overwritten";
const SLOWED: &str = "overlap.one-way.overwritten-slowed";

pub(super) const PLAN: &[RowPlan] = &[
    RowPlan::host_time(TOTAL, "Double-buffered, waits both ways"),
    RowPlan::host_time(COPIES, "Its copies alone"),
    RowPlan::host_time(COMPUTES, "Its kernels alone"),
    RowPlan::host_time(SUM, "Copies + kernels"),
    RowPlan::host_time(MAX, "The larger of the two"),
    RowPlan::observed(EFFICIENCY, "Share of what could be hidden", Unit::Ratio),
    RowPlan::observed(WRONG, "Wrong elements, waits both ways", Unit::Number),
    RowPlan::host_time(SINGLE, "One pageable buffer, a synchronize each step"),
    RowPlan::host_time(ONE_WAY, "Double-buffered, waits one way"),
    RowPlan::observed(OVERWRITTEN, "Wrong elements, waits one way", Unit::Number),
    RowPlan::observed(SLOWED, "Wrong elements, waits one way, slower kernels", Unit::Number),
];

/// Which waits there are between the two streams.
#[derive(Clone, Copy, PartialEq)]
enum Waits {
    /// A kernel for its copy, and a copy for the kernel whose buffer it overwrites.
    BothWays,
    /// A kernel for all copies enqueued before it.
    OneWay,
}

/// The streams, buffers and events of the loop.
struct Pipeline {
    transfer: Stream,
    compute: Stream,
    /// One a step, so that each step's data differ.
    host: Vec<HostBuffer<f32>>,
    device: [Tensor<f32>; 2],
    copied: [Event; 2],
    computed: [Event; 2],
}

impl Pipeline {
    fn new(device: &Device, kind: HostKind, elements: usize, steps: usize) -> Result<Self, DeviceError> {
        let (transfer, compute) = (device.stream()?, device.stream()?);
        let buffer = |step: usize| {
            let mut buffer = device.host_buffer::<f32>(kind, elements)?;
            buffer.write()?.fill(step as f32);
            Ok(buffer)
        };
        let pair = || Ok::<_, DeviceError>([device.event()?, device.event()?]);
        Ok(Self {
            host: (0..steps).map(buffer).collect::<Result<_, DeviceError>>()?,
            device: [transfer.zeros([elements])?, transfer.zeros([elements])?],
            transfer,
            compute,
            copied: pair()?,
            computed: pair()?,
        })
    }

    /// Runs the loop to its end. The outputs of all steps but the first: the kernel doubles.
    fn run(&self, waits: Waits, slowed: Option<Duration>) -> Result<Vec<Tensor<f32>>, DeviceError> {
        let mut outputs = Vec::with_capacity(self.host.len());
        for step in 0..self.host.len() {
            let (own, next) = (step % 2, (step + 1) % 2);
            if step > 0 {
                if waits == Waits::BothWays {
                    self.compute.wait(&self.copied[own])?;
                }
                if let Some(duration) = slowed {
                    self.compute.spin(duration)?;
                }
                outputs.push(self.device[own].on(&self.compute)?.multiply_scalar(2.0)?);
                self.compute.record(&self.computed[own])?;
            }
            if let Some(data) = self.host.get(step + 1) {
                if waits == Waits::BothWays && step > 1 {
                    self.transfer.wait(&self.computed[next])?;
                }
                self.device[next].copy_from(data)?;
                self.transfer.record(&self.copied[next])?;
                if waits == Waits::OneWay {
                    self.compute.wait(&self.copied[next])?;
                }
            }
        }
        self.transfer.device().synchronize()?;
        Ok(outputs)
    }

    /// How many elements of the outputs are not twice their step's data.
    fn wrong(outputs: &[Tensor<f32>]) -> Result<f64, DeviceError> {
        (1..).zip(outputs).try_fold(0.0, |wrong, (step, output)| {
            Ok(wrong + output.add_scalar(-2.0 * step as f32)?.nonzero()?.len() as f64)
        })
    }

    fn copies(&self) -> Result<(), DeviceError> {
        self.host.iter().skip(1).try_for_each(|data| self.device[0].copy_from(data))?;
        self.transfer.device().synchronize()
    }

    fn computes(&self) -> Result<(), DeviceError> {
        let x = [self.device[0].on(&self.compute)?, self.device[1].on(&self.compute)?];
        // Both buffers in turn and all outputs kept, as in the loop: nothing is fast because it is still in a cache.
        let outputs =
            (1..self.host.len()).map(|step| x[step % 2].multiply_scalar(2.0)).collect::<Result<Vec<_>, _>>()?;
        self.compute.device().synchronize()?;
        drop(black_box(outputs));
        Ok(())
    }
}

/// Where there is no pinned memory, a copy from pageable memory does not block either.
fn kind_for(device: &Device) -> HostKind {
    if device.properties().engine == "cpu" { HostKind::Pageable } else { HostKind::Pinned }
}

/// The loop with two buffers, and the one with one.
pub(super) fn play(stage: &mut Stage, elements: usize, steps: usize) {
    let parameters = parameters([("elements", integer(elements)), ("steps", integer(steps))]);
    stage.play(TOTAL, &parameters, |device| {
        let pipeline = Pipeline::new(device, kind_for(device), elements, steps)?;
        Ok(Box::new(move || pipeline.run(Waits::BothWays, None).map(|outputs| drop(black_box(outputs)))))
    });
    stage.play(SINGLE, &parameters, |device| single(device, elements, steps));
}

/// Each step: a copy from pageable memory, a kernel, a synchronize.
fn single(device: &Device, elements: usize, steps: usize) -> Result<Pass, DeviceError> {
    let stream = device.stream()?;
    let mut data = device.host_buffer::<f32>(HostKind::Pageable, elements)?;
    data.write()?.fill(1.0);
    let x = stream.zeros::<f32>([elements])?;
    Ok(Box::new(move || {
        // As many copies and kernels as the double-buffered loop has.
        (1..steps).try_for_each(|_| {
            x.copy_from(&data)?;
            black_box(x.multiply_scalar(2.0)?);
            stream.device().synchronize()
        })
    }))
}

pub(super) fn run(bench: &mut Bench, elements: usize, steps: usize) {
    let kind = kind_for(bench.device());
    let with = |kind: HostKind| {
        parameters([("elements", integer(elements)), ("steps", integer(steps)), ("memory", text(&kind.to_string()))])
    };
    let parameters = with(kind);
    bench.group(&[TOTAL, COPIES, COMPUTES, WRONG, ONE_WAY, OVERWRITTEN, SLOWED], &parameters, |device| {
        let pipeline = Rc::new(Pipeline::new(device, kind, elements, steps)?);
        let shared = || Rc::clone(&pipeline);
        let timed = |id, waits| {
            let pipeline = shared();
            Case::host_timed(id, move || pipeline.run(waits, None))
        };
        let counted = |id, waits, slowed| {
            let pipeline = shared();
            Case::new(id, move || Pipeline::wrong(&pipeline.run(waits, slowed)?))
        };
        let (copying, computing) = (shared(), shared());
        Ok(vec![
            timed(TOTAL, Waits::BothWays),
            Case::host_timed(COPIES, move || copying.copies()),
            Case::host_timed(COMPUTES, move || computing.computes()),
            counted(WRONG, Waits::BothWays, None),
            timed(ONE_WAY, Waits::OneWay),
            counted(OVERWRITTEN, Waits::OneWay, None),
            counted(SLOWED, Waits::OneWay, Some(Duration::from_millis(2))),
        ])
    });
    let derivation = Derivation::Computation;
    let operands: &[_] = &[(TOTAL, &parameters), (COPIES, &parameters), (COMPUTES, &parameters)];
    let text = "copies + computes";
    bench.derive(SUM, &parameters, Formula { derivation, text, operands, compute: &|t| t[1] + t[2] });
    let text = "max(copies, computes)";
    bench.derive(MAX, &parameters, Formula { derivation, text, operands, compute: &|t| t[1].max(t[2]) });
    let text = "(sum − total) / (sum − max)";
    let hidden = |t: &[f64]| (t[1] + t[2] - t[0]) / t[1].min(t[2]);
    bench.derive(EFFICIENCY, &parameters, Formula { derivation, text, operands, compute: &hidden });

    bench.group(&[SINGLE], &with(HostKind::Pageable), |device| {
        Ok(vec![Case::host_timed(SINGLE, single(device, elements, steps)?)])
    });
}
