//! `synchronize`: what a synchronization is for, what each kind waits for, and what it costs in a loop.
//!
//! - *timing*: one iteration timed by the host's clock without and with a synchronize, and by device events.
//! - *streams*: one stream writes a tensor that another copies. A spinning kernel delays the write, so that a copy that
//!   nothing orders behind it reads the old values. Stale elements are counted; a race that was not seen is not reported.
//!   All three orderings end with a synchronize of the device, which orders the host and no stream.
//! - *scope*: what a wait for an event, for a stream and for the device waits for.
//! - *clock*: the host time of one small launch and a spin of known length behind it, without and with a synchronize of the
//!   device. What the time does not change by, it does not show.
//! - *loop*: a loop with a synchronize in each iteration; one without, until dispatch returns; one without, until
//!   completion. The second is what a host clock shows of a loop without a synchronize, and is not the time of the work.

mod scope;

use crate::experiment::prelude::*;

parameters! {
    /// What each kind of synchronization waits for, and what it costs in a loop.
    pub struct Synchronize {
        /// Rows and columns of the matrices.
        size: Count = count(1024),
        /// Iterations of the loop.
        iters: Count = count(1000),
        /// Elements of the tensor that two streams share.
        elements: Size = count(1 << 20),
        /// For how long a kernel delays the stream that writes it.
        busy: Seconds = Seconds::milliseconds(2),
        /// The lengths of the spin that the clocks are to show, in seconds; 0 is none.
        spins: Vec<Length> = [0.0, 0.005].map(Bounded).to_vec(),
        /// After how long a call behind a closed gate counts as one that blocks: well above what the calls cost by themselves.
        patience: Seconds = Seconds::milliseconds(20),
    }
}

impl Experiment for Synchronize {
    const NAME: &'static str = "synchronize";
    const SUMMARY: &'static str = "What each kind of synchronization waits for, and what it costs in a loop";
    const ITERATIONS: Option<&'static str> = Some("iters");

    fn for_cpu() -> Self {
        Self { size: count(128), iters: count(50), elements: count(1 << 16), ..Self::default() }
    }

    fn groups(&self, _engine: &str) -> Vec<Group> {
        let [gated, timed] = scope::run(self.patience.duration());
        vec![self.timing(), self.streams(), gated, timed, self.clocks(), self.loops(), self.same()]
    }
}

impl Synchronize {
    fn timing(&self) -> Group {
        let n = self.size.get();
        let matmul = || Work::matmul(matmul_flops(n), "2 · size³");
        Group::of("Timing", [("size", n.into())])
            .setup(|device| device.stream())
            .host_time_of("synchronize.timing.without", "Host clock without a synchronize", move |stream| {
                random_matmul(stream, n)
            })
            .work(Work::launches(2.0, "2"))
            .host_time_of("synchronize.timing.with", "Host clock with a synchronize", move |stream| {
                let y = random_matmul(stream, n)?;
                stream.device().synchronize().map(|()| y)
            })
            .work(matmul())
            .device_time("synchronize.timing.events", "Device events", move |stream| {
                let own = stream.clone();
                Ok((stream.clone(), move || random_matmul(&own, n)))
            })
            .work(matmul())
            .build()
    }

    fn streams(&self) -> Group {
        let (elements, busy) = (self.elements.get(), self.busy.duration());
        let parameters = [("elements", elements.into()), ("busy_seconds", f64::from(self.busy).into())];
        let mut group = Group::of("Two streams and one tensor", parameters);
        for (order, [stale, time], name) in [
            (Order::Nothing, ["synchronize.streams.none.stale", "synchronize.streams.none.time"], "no ordering"),
            (Order::Event, ["synchronize.streams.event.stale", "synchronize.streams.event.time"], "event wait"),
            (
                Order::Device,
                ["synchronize.streams.device.stale", "synchronize.streams.device.time"],
                "device synchronize",
            ),
        ] {
            group = group
                .observed(stale, &format!("Stale elements, {name}"), Unit::Number, move |device| {
                    let handover = Handover::new(device, elements)?;
                    Ok(move || handover.run(order, busy).and_then(|()| handover.stale()))
                })
                .host_time(time, &format!("Time, {name}"), move |device| {
                    let handover = Handover::new(device, elements)?;
                    Ok(move || handover.run(order, busy))
                });
        }
        group.build()
    }

    fn clocks(&self) -> Group {
        let mut group = Group::of("Clocks", []).setup(|device| device.stream()?.zeros::<f32>([1024]));
        for Bounded(spin) in self.spins.iter().copied() {
            let length = Duration::from_secs_f64(spin);
            // Without a spin the kernel is there all the same: the launches do not differ.
            let launch = move |x: &Tensor<f32>| x.affine_in_place(1.0, 1.0).and_then(|()| x.stream().spin(length));
            group = group
                .with_parameters([("spin_seconds", spin.into())])
                .host_time_of("synchronize.clock.without", "A launch and a spin, without a synchronize", launch)
                .work(Work::launches(2.0, "2"))
                .host_time_of("synchronize.clock.with", "A launch and a spin, with a device synchronize", move |x| {
                    launch(x).and_then(|()| x.stream().device().synchronize())
                });
        }
        group.build()
    }

    /// One matmul and a synchronize, twice.
    fn same(&self) -> Group {
        let n = self.size.get();
        Group::of("The same code twice", [("size", n.into())])
            .setup(|device| device.stream())
            .twice(["synchronize.same.a", "synchronize.same.b", "synchronize.same.ratio"], move |stream| {
                random_matmul(stream, n).and_then(|y| stream.device().synchronize().map(|()| y))
            })
    }

    fn loops(&self) -> Group {
        let (n, iters) = (self.size.get(), self.iters.get());
        let iterate = move |device: &Device, each: bool, end: bool| {
            let stream = device.stream()?;
            Ok(move || {
                for _ in 0..iters {
                    black_box(random_matmul(&stream, n)?);
                    if each {
                        stream.device().synchronize()?;
                    }
                }
                if end { stream.device().synchronize() } else { Ok(()) }
            })
        };
        let matmuls = || Work::matmul(matmul_flops(n) * iters as f64, "2 · size³ · iters");
        Group::of("Loop", [("size", n.into()), ("iters", iters.into())])
            .host_time("synchronize.loop.each", "Synchronize each iteration", move |device| {
                iterate(device, true, false)
            })
            .work(matmuls())
            .host_time("synchronize.loop.enqueue", "No synchronize, dispatch", move |device| {
                iterate(device, false, false)
            })
            .work(Work::launches(2.0 * iters as f64, "2 · iters"))
            .host_time("synchronize.loop.complete", "One synchronize at the end, completion", move |device| {
                iterate(device, false, true)
            })
            .work(matmuls())
            .build()
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
    fn new(device: &Device, elements: usize) -> Result<Self> {
        let (writer, reader) = (device.stream()?, device.stream()?);
        let shared = writer.zeros::<f32>([elements])?;
        let (read, copy) = (shared.on(&reader)?, reader.zeros::<f32>([elements])?);
        Ok(Self { writer, shared, read, copy, written: device.event()? })
    }

    /// Makes the shared elements 0, then has one stream write 1 after a while and the other copy them.
    fn run(&self, order: Order, busy: Duration) -> Result<()> {
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
    fn stale(&self) -> Result<f64> {
        Ok(self.copy.add_scalar(-1.0)?.nonzero()?.len() as f64)
    }
}
