//! `self-audit`: the resolution and overhead of the clocks, and what the library adds to a bare launch. It runs with
//! every suite, so that a reader can tell a measurement from the overhead of measuring it.
//!
//! - `timer`: steps of the host's clock, and the cost of one reading.
//! - `event`: the host time of recording an event; the device time between two events with nothing in between, which is
//!   the least that two events can show.
//! - `empty-loop`: the host time of one iteration of a loop that does nothing, written as the loops here are.
//! - `enqueue`: the host time of launching one elementwise operation on a small tensor, in a loop that does not wait, in
//!   place and with a new tensor, beside the engine's own lowest-level launch of a similar kernel. On CUDA that is a plain
//!   `cuLaunchKernel`; the library's launch may be cheaper, where kernels can start before the previous one ends.
//! - `stopwatch`: what each way to time one kernel makes of a kernel of known length.
//! - `kernel`: what ways to time a kernel on the device make of kernels of the kinds that users bring.

mod kernel;
mod stopwatch;

use crate::device::raw;
use crate::experiment::prelude::*;
use crate::measure::{DeviceClock, timer_cost, timer_resolution};

use kernel::SizedKernel;

parameters! {
    /// Resolution and overhead of the clocks, and of the library.
    pub struct SelfAudit {
        /// Calls in a loop: one sample is one loop, divided by this.
        calls: Count = count(500),
        /// The lengths of the kernel that all stopwatches time, in seconds.
        spins: Vec<Length> = [2e-6, 5e-6, 2e-5, 2e-4, 2e-3, 2e-2].map(Bounded).to_vec(),
        /// The kernels that the stopwatches of a device time.
        kernels: Vec<SizedKernel> = SizedKernel::all().collect(),
    }
}

impl Experiment for SelfAudit {
    const NAME: &'static str = "self-audit";
    const SUMMARY: &'static str = "Resolution and overhead of the clocks, and what the library adds to a bare launch";
    const ITERATIONS: Option<&'static str> = Some("calls");

    /// On the CPU engine without the longest spin, which would take most of a short run, and with one kernel, which it cannot run
    /// either.
    fn for_cpu() -> Self {
        Self {
            spins: [2e-6, 5e-6, 2e-5, 2e-4, 2e-3].map(Bounded).to_vec(),
            kernels: SizedKernel::all().take(1).collect(),
            ..Self::default()
        }
    }

    fn groups(&self, _engine: &str) -> Vec<Group> {
        let calls = self.calls.get();
        let mut groups = vec![instruments(calls), launches(calls)];
        groups.extend(self.spins.iter().flat_map(|spin| stopwatch::run(spin.0)));
        groups.extend(kernel::run(&self.kernels));
        let same = Group::of("The same code twice", [("calls", calls.into())])
            .setup(|device| device.stream()?.zeros::<f32>([1024]))
            .twice(["self-audit.same.a", "self-audit.same.b", "self-audit.same.ratio"], move |x| {
                (0..calls).try_for_each(|_| x.affine_in_place(1.0, 1.0))
            });
        groups.push(same);
        groups
    }
}

fn instruments(calls: usize) -> Group {
    let least = |values: Vec<f64>| values.into_iter().fold(f64::INFINITY, f64::min);
    let record = move |stream: &Stream, event: Event| {
        let stream = stream.clone();
        move || (0..calls).try_for_each(|_| stream.record(&event))
    };
    Group::of("Instruments", [("calls", calls.into())])
        .setup(|device| Ok((device.clone(), device.stream()?)))
        .seconds_of(Clock::Host, "self-audit.timer.resolution", "Smallest step of the host's clock", move |_| {
            Ok(least(timer_resolution(100)))
        })
        .floor_of(Clock::Host)
        .seconds_of(Clock::Host, "self-audit.timer.cost", "One reading of the host's clock", move |_| {
            Ok(least(timer_cost(1)))
        })
        .floor_of(Clock::Host)
        .host_time_of("self-audit.empty-loop", "One iteration of an empty loop", move |_| {
            (0..calls).for_each(|call| _ = black_box(call));
            Ok(())
        })
        .per(calls)
        .host_time("self-audit.event.cost", "Recording an event", move |(device, stream)| {
            Ok(record(stream, device.event()?))
        })
        .per(calls)
        .host_time("self-audit.event.timing-cost", "Recording an event with timing", move |(device, stream)| {
            Ok(record(stream, device.timing_event()?))
        })
        .per(calls)
        .time_by(Clock::DeviceEvents, "self-audit.event.gap", "Two events with nothing in between", |(_, stream)| {
            let mut clock = DeviceClock::new(stream)?;
            Ok(move || clock.time(|| Ok(())).map(|((), seconds)| seconds))
        })
        .floor_of(Clock::DeviceEvents)
        .host_time_of("self-audit.synchronize.device", "Device synchronize, nothing pending", move |(device, _)| {
            (0..calls).try_for_each(|_| device.synchronize())
        })
        .per(calls)
        .host_time_of("self-audit.synchronize.stream", "Stream synchronize, nothing pending", move |(_, stream)| {
            (0..calls).try_for_each(|_| stream.synchronize())
        })
        .per(calls)
        .build()
}

fn launches(calls: usize) -> Group {
    Group::of("Launch overhead", [("calls", calls.into())])
        .setup(|device| {
            let stream = device.stream()?;
            let x = stream.zeros::<f32>([1024])?;
            Ok((stream, x))
        })
        .host_time_of("self-audit.enqueue.in-place", "Launch by the library, in place", move |(_, x)| {
            (0..calls).try_for_each(|_| x.affine_in_place(1.0, 1.0))
        })
        .per(calls)
        .host_time_of("self-audit.enqueue.allocating", "Launch by the library, new tensor", move |(_, x)| {
            (0..calls).try_for_each(|_| x.affine(1.0, 1.0).map(drop))
        })
        .per(calls)
        .time_by(Clock::Host, "self-audit.enqueue.raw", "Bare launch by the engine's lowest call", move |shared| {
            let (stream, _) = shared.clone();
            // Asked once, so that an engine without such a call says so before the rows are sampled.
            raw::launch_loop(&stream, 1)?;
            Ok(move || Ok::<_, DeviceError>(raw::launch_loop(&stream, calls)?.as_secs_f64()))
        })
        .per(calls)
        .work(Work::launches(1.0, "1").as_peak())
        .derived("self-audit.enqueue.ratio", "Library in place / bare launch", Unit::Ratio, "in-place / raw")
        .build()
}
