//! `idle-device`: whether synchronizing a busy device in each iteration costs more than synchronizing an idle one.
//!
//! An iteration fills a small matrix with random values and multiplies it by itself on one device. It then synchronizes
//! either a second, idle device (*other*) or the device that works (*same*). The loop ends with a synchronize of the
//! device that works. The text behind this chapter reads the difference as the time spent waiting: the cost of the call
//! itself is in both loops.
//!
//! With one device of an engine the same pair of loops runs with an idle *stream* of that device. It has rows of its own,
//! since synchronizing a stream and synchronizing a device are different calls.

use crate::experiment::prelude::*;

parameters! {
    /// A loop of small matmuls that synchronizes an idle or the busy device.
    pub struct IdleDevice {
        /// The device that works and the one that idles; left out, the run's device and the next one of its engine.
        devices: Option<[String; 2]> = None,
        /// Iterations of the loop.
        iters: Count = count(1000),
        /// Rows and columns of the matrices.
        size: Count = count(100),
    }
}

impl Experiment for IdleDevice {
    const NAME: &'static str = "idle-device";
    const SUMMARY: &'static str =
        "Whether synchronizing a busy device in each iteration costs more than synchronizing an idle one";
    const ITERATIONS: Option<&'static str> = Some("iters");

    fn for_cpu() -> Self {
        Self { iters: count(100), ..Self::default() }
    }

    fn groups(&self, engine: &str) -> Vec<Group> {
        vec![self.devices(engine), self.streams(), self.same()]
    }
}

impl IdleDevice {
    fn devices(&self, engine: &str) -> Group {
        let is_alone = self.devices.is_none() && of_engine(engine).count() < 2;
        let devices = self.devices.clone();
        let group = Group::of("Two devices", self.parameters())
            .skipped(is_alone.then(|| "this engine has only one device here".to_owned()))
            .setup(move |device| match &devices {
                Some([busy, idle]) => Ok((Device::open(busy)?.stream()?, Device::open(idle)?)),
                None => {
                    let idle = of_engine(device.properties().engine).find(|name| name != device.name());
                    Ok((device.stream()?, Device::open(&idle.unwrap_or_default())?))
                }
            });
        let ids = ["idle-device.other", "idle-device.same", "idle-device.delta"];
        let waits: [Wait<Device>; 2] = [|_, idle| idle.synchronize(), |stream, _| stream.device().synchronize()];
        loops(group, ids, "device", [self.size, self.iters], waits)
    }

    /// The loop that synchronizes the busy stream, twice.
    fn same(&self) -> Group {
        let (size, iters) = (self.size, self.iters);
        Group::of("The same code twice", self.parameters())
            .setup(|device| device.stream())
            .twice(["idle-device.same.a", "idle-device.same.b", "idle-device.same.ratio"], move |stream| {
                iterate(stream, size, iters, || stream.synchronize())
            })
    }

    fn streams(&self) -> Group {
        let group = Group::of("Two streams of one device", self.parameters())
            .setup(|device| Ok((device.stream()?, device.stream()?)));
        let ids = ["idle-device.stream.other", "idle-device.stream.same", "idle-device.stream.delta"];
        let waits: [Wait<Stream>; 2] = [|_, idle| idle.synchronize(), |stream, _| stream.synchronize()];
        loops(group, ids, "stream", [self.size, self.iters], waits)
    }

    fn parameters(&self) -> [(&'static str, Parameter); 2] {
        [("size", self.size.get().into()), ("iters", self.iters.get().into())]
    }
}

/// A wait in a loop on a stream, beside which there is something idle.
pub(super) type Wait<W> = fn(&Stream, &W) -> Result<()>;

/// The loop that waits for what is idle, the one that waits for what is busy, and their difference.
pub(super) fn loops<W: 'static>(
    group: GroupBuilder<(Stream, W)>,
    [other, same, delta]: [RowId; 3],
    what: &str,
    [size, iters]: [Count; 2],
    [for_idle, for_busy]: [Wait<W>; 2],
) -> Group {
    let launches = || Work::launches(2.0 * iters.get() as f64, "2 · iters");
    let label = |state: &str| format!("Synchronize the {state} {what} each iteration");
    group
        .host_time_of(other, &label("idle"), move |(stream, idle)| {
            iterate(stream, size, iters, || for_idle(stream, idle))
        })
        .work(launches())
        .host_time_of(same, &label("busy"), move |(stream, idle)| {
            iterate(stream, size, iters, || for_busy(stream, idle))
        })
        .work(launches())
        .difference(delta, &format!("Busy − idle {what}"), [same, other])
        .build()
}

/// The names of the devices of an engine.
pub(super) fn of_engine(engine: &str) -> impl Iterator<Item = String> {
    let names = Device::list().into_iter().map(|listed| listed.name);
    names.filter(move |name| name.split(':').next() == Some(engine))
}

/// The loop: a random matrix of this size, multiplied by itself, and a wait, so many times. It ends when the device that works
/// is done.
fn iterate(stream: &Stream, size: Count, iters: Count, wait: impl Fn() -> Result<()>) -> Result<()> {
    for _ in 0..iters.get() {
        black_box(random_matmul(stream, size.get())?);
        wait()?;
    }
    stream.device().synchronize()
}
