//! `implementation`: what a call of PyTorch does inside, as PyTorch's profiler records it.
//!
//! The rows are declared here, so that there is one catalogue of rows, and have a meaning in PyTorch alone, but for the order
//! in which kernels of one stream start: that is of the driver, and is recorded here, too.
//!
//! How long a synchronize waits for pending work is timed by the host's clock and not recorded: a profiler makes the host so
//! slow that the device has finished before the host asks.

use crate::experiment::prelude::*;

parameters! {
    /// What a call of PyTorch does inside.
    pub struct Implementation {
        /// How many kernels are launched to see in which order they start.
        kernels: Count = count(50),
    }
}

/// Why a row has no meaning here.
const PYTORCH: &str = "it is about the calls inside PyTorch, which its profiler records";

impl Experiment for Implementation {
    const NAME: &'static str = "implementation";
    const SUMMARY: &'static str = "What a call of PyTorch does inside";

    fn groups(&self, _engine: &str) -> Vec<Group> {
        let heading = "Calls recorded inside PyTorch";
        let mut calls = Group::of(heading, []);
        for (id, label) in [
            ("implementation.device-synchronize.stream-call", "The device synchronize calls the stream synchronize"),
            ("implementation.numpy.returns", "numpy() of a GPU tensor returns an array"),
            ("implementation.nonzero.count-read", "nonzero copies a count to the host and waits for it"),
            ("implementation.pin-memory.pinned-allocation", "pin_memory allocates pinned memory of CUDA"),
            ("implementation.copy.other-stream", "A non-blocking copy runs on another stream than the current one"),
        ] {
            calls = calls.foreign(id, label, Unit::Ratio, PYTORCH);
        }
        for mode in ["blocking", "non-blocking"] {
            calls = calls.with_parameters([("mode", mode.into())]);
            for (id, label) in [
                ("implementation.copy.asynchronous-call", "The copy calls the asynchronous copy"),
                ("implementation.copy.waits-inside", "A stream synchronize follows inside the copy"),
            ] {
                calls = calls.foreign(id, label, Unit::Ratio, PYTORCH);
            }
        }

        let mut waits = Group::of("Waits for a device in PyTorch", []);
        for device in ["same", "other"] {
            waits = waits.with_parameters([("device", device.into())]).foreign_time(
                "implementation.idle-device.waiting",
                "Wait for pending work in synchronize, a loop",
                "it is about PyTorch's own call",
            );
        }

        let kernels = self.kernels.get();
        let order = Group::of(heading, [])
            .measured_in(Part::Recorded)
            .setup(Device::stream)
            .value_of(
                "implementation.order.starts-in-order",
                "Kernels of one stream start in the order of submission",
                Unit::Ratio,
                move |stream| record(stream, kernels).map(|timeline| f64::from(starts_in_order(&timeline))),
            )
            .build();
        vec![calls.build(), waits.build(), order]
    }
}

/// Short kernels of different kinds on one stream.
fn record(stream: &Stream, kernels: usize) -> Result<Timeline> {
    let x = stream.ones::<f32>([1024])?;
    let launch = || {
        (0..kernels).try_for_each(|place| match place % 3 {
            0 => x.sum().map(drop),
            1 => x.add_scalar(1.0).map(drop),
            _ => x.affine_in_place(1.0, 0.0),
        })
    };
    stream.device().record(launch).map(|((), timeline)| timeline)
}

/// Whether kernels start in the order of the calls that launched them; of none, not.
fn starts_in_order(timeline: &Timeline) -> bool {
    let mut kernels: Vec<(u64, u64)> = timeline
        .spans
        .iter()
        .filter(|span| span.kind == Kind::Kernel)
        .filter_map(|span| Some((span.correlation?, span.start_ns)))
        .collect();
    kernels.sort_unstable();
    !kernels.is_empty() && kernels.is_sorted_by_key(|(_, start)| *start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::by_hand::{span, timeline};

    #[test]
    fn kernels_start_in_order_where_each_starts_after_the_one_before() {
        let one = |first, second| timeline(vec![span(Kind::Kernel, 0, first, 1), span(Kind::Kernel, 0, second, 2)]);
        assert!(starts_in_order(&one((0, 4), (4, 6))));
        assert!(!starts_in_order(&one((5, 6), (0, 4))));
        assert!(!starts_in_order(&timeline(Vec::new())));
    }
}
