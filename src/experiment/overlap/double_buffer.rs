//! `overlap.double-buffer`: copies on one stream and kernels on another, two device buffers that alternate, events
//! between.
//!
//! Of `steps` iterations each but the last copies the next iteration's data and each but the first computes on its own,
//! so that there are `steps − 1` copies and as many kernels. There are two dependencies: a kernel waits for the copy of
//! its buffer, and a copy waits for the kernel that still reads the buffer that it overwrites (*write after read*). The
//! text behind this chapter has the first wait alone (*one way*). It is run as it is, and with kernels slowed by a spin,
//! and the wrong elements of all outputs are counted. Each iteration has a host buffer with data of its own (the text
//! copies from two, which alternate), so that an overwritten device buffer shows.
//!
//! Beside the measured total are Σ(copies) + Σ(kernels), each measured alone, and the larger of the two, which is the
//! time of a full overlap. *efficiency* is the share of the time that could be hidden and was: (sum − total) / (sum −
//! max).

use std::hint::black_box;
use std::rc::Rc;
use std::time::Duration;

use crate::device::{Device, Event, HostBuffer, HostKind, Stream};
use crate::error::DeviceError;
use crate::experiment::host_copy::fastest_memory;
use crate::experiment::{Bench, Formula, Pass, TraceRecorder};
use crate::results::Work;
use crate::tensor::Tensor;
use crate::units::Unit;

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
    /// One for each iteration, so that the data of each differ.
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

    /// Runs the loop to its end. The outputs of all iterations but the first: the kernel doubles.
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

    /// How many elements of the outputs are not twice their iteration's data.
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
        // The buffers alternate and all outputs are kept, as in the loop: nothing is fast because it is still in a cache.
        let outputs =
            (1..self.host.len()).map(|step| x[step % 2].multiply_scalar(2.0)).collect::<Result<Vec<_>, _>>()?;
        self.compute.device().synchronize()?;
        drop(black_box(outputs));
        Ok(())
    }
}

/// The loop with two buffers, and the one with one.
pub(super) fn record(recorder: &mut TraceRecorder, elements: usize, steps: usize) {
    let parameters = || [("elements", elements.into()), ("steps", steps.into())];
    recorder.record("overlap.double-buffer.total", parameters(), |device| {
        let pipeline = Pipeline::new(device, fastest_memory(device.properties().engine), elements, steps)?;
        Ok(Box::new(move || pipeline.run(Waits::BothWays, None).map(|outputs| drop(black_box(outputs)))))
    });
    recorder.record("overlap.single-buffer.total", parameters(), |device| single(device, elements, steps));
}

/// Each iteration: a copy from pageable memory, a kernel, a synchronize.
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
    let kind = fastest_memory(bench.engine());
    let timed = |waits| {
        move |pipeline: &Rc<Pipeline>| {
            let pipeline = Rc::clone(pipeline);
            Ok(move || pipeline.run(waits, None))
        }
    };
    let wrong = |waits, slowed| {
        move |pipeline: &Rc<Pipeline>| {
            let pipeline = Rc::clone(pipeline);
            Ok(move || Pipeline::wrong(&pipeline.run(waits, slowed)?))
        }
    };
    let bytes = (elements * size_of::<f32>()) as f64;
    let copies = || Work::to_device(bytes * (steps as f64 - 1.0), "width · elements · (steps − 1)", bytes);
    let alone = ["overlap.double-buffer.copies", "overlap.double-buffer.computes"];
    bench
        .group(
            "Double buffering",
            [("elements", elements.into()), ("steps", steps.into()), ("memory", kind.to_string().into())],
        )
        .setup(move |device| Pipeline::new(device, kind, elements, steps).map(Rc::new))
        .host_time("overlap.double-buffer.total", "Two buffers, two dependencies", timed(Waits::BothWays))
        .work(copies())
        .host_time("overlap.double-buffer.copies", "All copies alone", |pipeline| {
            let pipeline = Rc::clone(pipeline);
            Ok(move || pipeline.copies())
        })
        .work(copies())
        .host_time("overlap.double-buffer.computes", "All kernels alone", |pipeline| {
            let pipeline = Rc::clone(pipeline);
            Ok(move || pipeline.computes())
        })
        .work(Work::copy(2.0 * bytes * (steps as f64 - 1.0), "2 · width · elements · (steps − 1)", bytes))
        .derived(
            "overlap.double-buffer.sum",
            "Copies + kernels",
            Unit::Seconds,
            Formula::of("copies + computes", alone, |[copies, computes]| copies + computes),
        )
        .derived(
            "overlap.double-buffer.max",
            "The longer of copies and kernels",
            Unit::Seconds,
            Formula::of("max(copies, computes)", alone, |[copies, computes]| copies.max(computes)),
        )
        .derived(
            "overlap.double-buffer.efficiency",
            "Overlap efficiency",
            Unit::Ratio,
            Formula::of(
                "(sum − total) / (sum − max)",
                ["overlap.double-buffer.total", alone[0], alone[1]],
                |[total, copies, computes]| (copies + computes - total) / copies.min(computes),
            ),
        )
        .observed(
            "overlap.double-buffer.wrong",
            "Wrong elements, two dependencies",
            Unit::Number,
            wrong(Waits::BothWays, None),
        )
        .host_time("overlap.one-way.total", "Two buffers, one dependency", timed(Waits::OneWay))
        .work(copies())
        .observed(
            "overlap.one-way.overwritten",
            "Wrong elements, one dependency",
            Unit::Number,
            wrong(Waits::OneWay, None),
        )
        .observed(
            "overlap.one-way.overwritten-slowed",
            "Wrong elements, one dependency, slower kernels",
            Unit::Number,
            wrong(Waits::OneWay, Some(Duration::from_millis(2))),
        )
        .run();

    bench
        .group(
            "Double buffering",
            [("elements", elements.into()), ("steps", steps.into()), ("memory", HostKind::Pageable.to_string().into())],
        )
        .host_time("overlap.single-buffer.total", "One pageable buffer, synchronize each iteration", move |device| {
            single(device, elements, steps)
        })
        .work(copies())
        .run();
}
