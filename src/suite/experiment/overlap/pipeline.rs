//! Loops of copies and kernels: with two device buffers on two streams, and with one buffer and a synchronize in each
//! iteration. Both have `steps − 1` copies and as many kernels.

use crate::device::HostBuffer;
use crate::experiment::prelude::*;
use crate::measure::DeviceClock;

/// Which waits there are between the two streams.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Dependencies {
    /// A kernel for its copy, and a copy for the kernel whose buffer it overwrites.
    BothWays,
    /// A kernel for all copies enqueued before it.
    OneWay,
}

/// One for each iteration, so that the data of each differ, and none is copied from the host's cache because it was copied before.
fn host_buffers(device: &Device, kind: HostKind, elements: usize, steps: usize) -> Result<Vec<HostBuffer<f32>>> {
    let buffer = |step: usize| {
        let mut buffer = device.host_buffer::<f32>(kind, elements)?;
        buffer.write()?.fill(step as f32);
        Ok(buffer)
    };
    (0..steps).map(buffer).collect()
}

/// The streams, buffers and events of the loop.
pub(super) struct Pipeline {
    transfer: Stream,
    compute: Stream,
    host: Vec<HostBuffer<f32>>,
    device: [Tensor<f32>; 2],
    copied: [Event; 2],
    computed: [Event; 2],
}

impl Pipeline {
    pub(super) fn new(device: &Device, kind: HostKind, elements: usize, steps: usize) -> Result<Self> {
        let (transfer, compute) = (device.stream()?, device.stream()?);
        let pair = || Ok::<_, DeviceError>([device.event()?, device.event()?]);
        Ok(Self {
            host: host_buffers(device, kind, elements, steps)?,
            device: [transfer.zeros([elements])?, transfer.zeros([elements])?],
            transfer,
            compute,
            copied: pair()?,
            computed: pair()?,
        })
    }

    /// Runs the loop to its end. The outputs of all iterations but the first: the kernel doubles. With `slowed`, a spin of
    /// that length goes before each.
    pub(super) fn run(&self, waits: Dependencies, slowed: Option<Duration>) -> Result<Vec<Tensor<f32>>> {
        let mut outputs = Vec::with_capacity(self.host.len());
        for step in 0..self.host.len() {
            let (own, next) = (step % 2, (step + 1) % 2);
            if step > 0 {
                if waits == Dependencies::BothWays {
                    self.compute.wait(&self.copied[own])?;
                }
                if let Some(duration) = slowed {
                    self.compute.spin(duration)?;
                }
                outputs.push(self.device[own].on(&self.compute)?.multiply_scalar(2.0)?);
                self.compute.record(&self.computed[own])?;
            }
            if let Some(data) = self.host.get(step + 1) {
                if waits == Dependencies::BothWays && step > 1 {
                    self.transfer.wait(&self.computed[next])?;
                }
                self.device[next].copy_from(data)?;
                self.transfer.record(&self.copied[next])?;
                if waits == Dependencies::OneWay {
                    self.compute.wait(&self.copied[next])?;
                }
            }
        }
        self.transfer.device().synchronize()?;
        Ok(outputs)
    }

    /// The device that it runs on.
    pub(super) fn device(&self) -> &Device {
        self.transfer.device()
    }

    /// How many elements of the outputs are not twice their iteration's data.
    pub(super) fn wrong(outputs: &[Tensor<f32>]) -> Result<f64> {
        (1..).zip(outputs).try_fold(0.0, |wrong, (step, output)| {
            Ok(wrong + output.add_scalar(-2.0 * step as f32)?.nonzero()?.len() as f64)
        })
    }

    /// All copies of the loop, and nothing beside them.
    pub(super) fn copies(&self) -> Result<()> {
        self.host.iter().skip(1).try_for_each(|data| self.device[0].copy_from(data))?;
        self.transfer.device().synchronize()
    }

    /// All kernels of the loop, slowed as there, and nothing beside them.
    pub(super) fn computes(&self, slowed: Option<Duration>) -> Result<()> {
        let x = [self.device[0].on(&self.compute)?, self.device[1].on(&self.compute)?];
        // The buffers alternate and all outputs are kept, as in the loop: nothing is fast because it is still in a cache.
        let kernel = |step: usize| {
            slowed.map_or(Ok(()), |duration| self.compute.spin(duration))?;
            x[step % 2].multiply_scalar(2.0)
        };
        let outputs = (1..self.host.len()).map(kernel).collect::<Result<Vec<_>, _>>()?;
        self.compute.device().synchronize()?;
        drop(black_box(outputs));
        Ok(())
    }
}

/// One device buffer: each iteration is a copy, a kernel and a synchronize.
pub(super) struct Single {
    stream: Stream,
    host: Vec<HostBuffer<f32>>,
    x: Tensor<f32>,
}

impl Single {
    pub(super) fn new(device: &Device, kind: HostKind, elements: usize, steps: usize) -> Result<Self> {
        let stream = device.stream()?;
        Ok(Self { x: stream.zeros([elements])?, stream, host: host_buffers(device, kind, elements, steps)? })
    }

    /// Runs the loop to its end; with `slowed`, a spin of that length goes before each kernel.
    pub(super) fn run(&self, slowed: Option<Duration>) -> Result<()> {
        self.host.iter().skip(1).try_for_each(|data| {
            self.x.copy_from(data)?;
            slowed.map_or(Ok(()), |duration| self.stream.spin(duration))?;
            black_box(self.x.multiply_scalar(2.0)?);
            self.stream.device().synchronize()
        })
    }

    /// The seconds of one copy and of one kernel, by events on the device: of several of each the shortest.
    pub(super) fn times(&self) -> Result<[f64; 2]> {
        const TRIALS: usize = 25;
        let mut clock = DeviceClock::new(&self.stream)?;
        let mut shortest = |work: &dyn Fn() -> Result<()>| {
            let mut times = (0..TRIALS).map(|_| clock.time(work).map(|((), seconds)| seconds));
            times.try_fold(f64::INFINITY, |least, time| Ok(least.min(time?)))
        };
        let copy = shortest(&|| self.x.copy_from(&self.host[0]))?;
        let kernel = shortest(&|| self.x.multiply_scalar(2.0).map(|y| drop(black_box(y))))?;
        Ok([copy, kernel])
    }
}
