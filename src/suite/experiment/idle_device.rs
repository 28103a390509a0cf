//! `idle-device`: whether synchronizing a busy device in each iteration costs more than synchronizing an idle one.
//!
//! An iteration fills a small matrix with random values and multiplies it by itself on one device. It then synchronizes
//! either a second, idle device (*other*) or the device that works (*same*). The loop ends with a synchronize of the
//! device that works. The text behind this chapter reads the difference as the time spent waiting: the cost of the call
//! itself is in both loops.
//!
//! With one device of an engine the same pair of loops runs with an idle *stream* of that device. It has rows of its own,
//! since synchronizing a stream and synchronizing a device are different calls.

use std::hint::black_box;
use std::num::NonZeroUsize;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bench::random_matmul;
use super::counts;
use super::{Bench, Experiment, count};
use crate::device::{Device, Stream};
use crate::error::DeviceError;
use crate::results::{Parameter, Work};

/// A loop of small matmuls that synchronizes an idle or the busy device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct IdleDevice {
    /// The device that works and the one that idles; left out, the run's device and the next one of its engine.
    pub devices: Option<[String; 2]>,
    /// Iterations of the loop.
    #[serde(deserialize_with = "counts::million")]
    pub iters: NonZeroUsize,
    /// Rows and columns of the matrices.
    #[serde(deserialize_with = "counts::million")]
    pub size: NonZeroUsize,
}

impl Default for IdleDevice {
    fn default() -> Self {
        Self { devices: None, iters: count(1000), size: count(100) }
    }
}

impl Experiment for IdleDevice {
    const NAME: &'static str = "idle-device";
    const SUMMARY: &'static str =
        "Whether synchronizing a busy device in each iteration costs more than synchronizing an idle one";

    fn default_for(engine: &str) -> Self {
        match engine {
            "cpu" => Self { iters: count(100), ..Self::default() },
            _ => Self::default(),
        }
    }

    fn iterations(&mut self) -> Option<&mut NonZeroUsize> {
        Some(&mut self.iters)
    }

    fn run(&self, bench: &mut Bench) {
        self.devices(bench);
        self.streams(bench);
        self.same(bench);
    }
}

impl IdleDevice {
    fn devices(&self, bench: &mut Bench) {
        let idle = bench.device().and_then(|device| self.idle(device));
        bench
            .group("Two devices", self.parameters())
            .skipped(idle.is_none().then(|| "this engine has only one device here".to_owned()))
            .setup(move |device| {
                let busy = match &self.devices {
                    Some([busy, _]) => Device::open(busy)?,
                    None => device.clone(),
                };
                Ok((busy.stream()?, Device::open(&idle.unwrap_or_default())?))
            })
            .host_time("idle-device.other", "Synchronize the idle device each iteration", |(stream, idle)| {
                let idle = idle.clone();
                Ok(iterate(stream, self.size, self.iters, move || idle.synchronize()))
            })
            .work(self.launches())
            .host_time("idle-device.same", "Synchronize the busy device each iteration", |(stream, _)| {
                let busy = stream.device().clone();
                Ok(iterate(stream, self.size, self.iters, move || busy.synchronize()))
            })
            .work(self.launches())
            .difference("idle-device.delta", "Busy − idle device", ["idle-device.same", "idle-device.other"])
            .run();
    }

    /// The loop that synchronizes the busy stream, twice.
    fn same(&self, bench: &mut Bench) {
        bench
            .group("The same code twice", self.parameters())
            .setup(|device| device.stream())
            .twice(["idle-device.same.a", "idle-device.same.b", "idle-device.same.ratio"], |stream| {
                let busy = stream.clone();
                Ok(iterate(stream, self.size, self.iters, move || busy.synchronize()))
            })
            .run();
    }

    fn streams(&self, bench: &mut Bench) {
        bench
            .group("Two streams of one device", self.parameters())
            .setup(|device| Ok((device.stream()?, device.stream()?)))
            .host_time("idle-device.stream.other", "Synchronize the idle stream each iteration", |(stream, idle)| {
                let idle = idle.clone();
                Ok(iterate(stream, self.size, self.iters, move || idle.synchronize()))
            })
            .work(self.launches())
            .host_time("idle-device.stream.same", "Synchronize the busy stream each iteration", |(stream, _)| {
                let busy = stream.clone();
                Ok(iterate(stream, self.size, self.iters, move || busy.synchronize()))
            })
            .work(self.launches())
            .difference(
                "idle-device.stream.delta",
                "Busy − idle stream",
                ["idle-device.stream.same", "idle-device.stream.other"],
            )
            .run();
    }

    fn parameters(&self) -> [(&'static str, Parameter); 2] {
        [("size", self.size.get().into()), ("iters", self.iters.get().into())]
    }

    fn launches(&self) -> Work {
        Work::launches(2.0 * self.iters.get() as f64, "2 · iters")
    }

    /// The name of the device that idles; `None` where there is no second one.
    fn idle(&self, device: &Device) -> Option<String> {
        if let Some([_, idle]) = &self.devices {
            return Some(idle.clone());
        }
        let engine = device.properties().engine;
        let mut names = Device::list().into_iter().map(|listed| listed.name);
        names.find(|name| name != device.name() && name.split(':').next() == Some(engine))
    }
}

/// The loop: a random matrix of this size, multiplied by itself, and a wait, so many times. It ends when the device that works
/// is done.
pub(super) fn iterate<W>(
    stream: &Stream,
    size: NonZeroUsize,
    iters: NonZeroUsize,
    wait: W,
) -> impl FnMut() -> Result<(), DeviceError> + use<W>
where
    W: Fn() -> Result<(), DeviceError>,
{
    let (iters, n, stream) = (iters.get(), size.get(), stream.clone());
    move || {
        for _ in 0..iters {
            black_box(random_matmul(&stream, n)?);
            wait()?;
        }
        stream.device().synchronize()
    }
}
