//! `sync-points.idle`: the share of the time in which the device runs no kernel, in a loop of small matmuls without and with a
//! synchronize in each iteration.
//!
//! The kernels' spans come from a recording, and the time is that from the start of the first kernel to the end of the
//! last. Calls take longer while the device is recorded, so it idles more than without a recording.

use super::{dtype, iterate, operands};
use crate::experiment::prelude::*;

pub(super) fn run<T: Float>(n: usize, iters: usize) -> Group {
    let share = move |synchronize: bool| {
        move |(stream, x, w): &(Stream, Tensor<T>, Tensor<T>)| {
            let recorded = stream.device().record(|| iterate(x, w, iters, synchronize));
            recorded.map(|((), timeline)| idle_share(&timeline))
        }
    };
    Group::of("Idle device", [dtype::<T>(), ("size", n.into()), ("iters", iters.into())])
        .setup(move |device| operands::<T>(device, n))
        .measured_in(Part::Recorded)
        .value_of("sync-points.idle.each", "Idle share, synchronize each iteration", Unit::Ratio, share(true))
        .value_of("sync-points.idle.none", "Idle share, no synchronize in the loop", Unit::Ratio, share(false))
        .build()
}

/// The share of the time between the first kernel's start and the last one's end in which no kernel ran.
fn idle_share(timeline: &Timeline) -> f64 {
    let mut kernels: Vec<(u64, u64)> = timeline
        .spans
        .iter()
        .filter(|span| span.kind == Kind::Kernel)
        .map(|span| (span.start_ns, span.end_ns))
        .collect();
    kernels.sort_unstable();
    let Some(&(first, mut until)) = kernels.first() else { return 1.0 };
    let mut idle = 0;
    for (start, end) in kernels {
        idle += start.saturating_sub(until);
        until = until.max(end);
    }
    if until > first { idle as f64 / (until - first) as f64 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::by_hand::{span, timeline};

    #[test]
    fn the_device_idles_between_kernels_and_not_before_the_first_or_after_the_last() {
        let line = timeline(vec![
            span(Kind::Enqueue, 0, (0, 10), 1),
            span(Kind::Kernel, 0, (10, 40), 1),
            span(Kind::Kernel, 1, (20, 50), 2),
            span(Kind::Copy, 0, (50, 60), 3),
            span(Kind::Kernel, 0, (80, 110), 4),
            span(Kind::Synchronize, 0, (40, 200), 5),
        ]);
        assert!((idle_share(&line) - 0.3).abs() < 1e-12, "{}", idle_share(&line));
        assert!((idle_share(&timeline(Vec::new())) - 1.0).abs() < 1e-12);
    }
}
