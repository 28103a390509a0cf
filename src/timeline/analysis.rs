//! What follows from a timeline: shares, latencies, depth, overlap.
//!
//! Shares are of the timeline's whole length, from the begin of the recording to the end of its last span. Where spans
//! overlap, time is counted once: the device is busy while at least one kernel or copy runs on it.

use std::collections::BTreeMap;

use super::{BarrierKind, Kind, Span, Timeline};

/// How long a call's work took to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Latency {
    /// The operation.
    pub name: String,
    /// The call's correlation.
    pub correlation: u64,
    /// From the begin of the call to the begin of its first kernel or copy, in nanoseconds. Behind other work, it
    /// holds the wait for that.
    pub ns: u64,
}

/// How many enqueued calls had work that was not done, from an instant on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Depth {
    /// The instant, in nanoseconds.
    pub at_ns: u64,
    /// How many.
    pub calls: usize,
}

impl Timeline {
    /// The end of the last span, or of the region where that is later, in nanoseconds.
    pub fn end_ns(&self) -> u64 {
        self.spans.iter().map(|span| span.end_ns).max().unwrap_or(0).max(self.region_ns)
    }

    /// For how long at least one kernel or copy ran, in nanoseconds.
    pub fn device_busy_ns(&self) -> u64 {
        length(&self.cover(|span| span.kind.is_busy()))
    }

    /// The share of the time in which the device computed or copied; 0 for a timeline of no length.
    pub fn device_busy_share(&self) -> f64 {
        self.share(self.device_busy_ns())
    }

    /// The share of the time in which the device did neither; 0 for a timeline of no length.
    pub fn device_idle_share(&self) -> f64 {
        self.share(self.end_ns() - self.device_busy_ns().min(self.end_ns()))
    }

    /// The share of the time that the host's threads spent in barriers: the mean over the threads that called.
    pub fn host_stalled_share(&self) -> f64 {
        let hosts: Vec<usize> = (0..self.tracks.len()).filter(|&track| self.tracks[track].is_host()).collect();
        let stalled = |track| length(&self.cover(|span| span.track == track && span.kind == Kind::Synchronize));
        let total: f64 = hosts.iter().map(|&track| self.share(stalled(track))).sum();
        if hosts.is_empty() { 0.0 } else { total / hosts.len() as f64 }
    }

    /// The launch latency of every call whose work is in the timeline, in the order of the calls.
    pub fn launch_latencies(&self) -> Vec<Latency> {
        let mut first: BTreeMap<u64, u64> = BTreeMap::new();
        for span in self.spans.iter().filter(|span| span.kind.is_busy()) {
            if let Some(correlation) = span.correlation {
                let start = first.entry(correlation).or_insert(span.start_ns);
                *start = (*start).min(span.start_ns);
            }
        }
        let calls = self.spans.iter().filter(|span| span.kind == Kind::Enqueue);
        let latency = |call: &Span| {
            let correlation = call.correlation?;
            let start = first.get(&correlation)?;
            Some(Latency { name: call.name.clone(), correlation, ns: start.saturating_sub(call.start_ns) })
        };
        calls.filter_map(latency).collect()
    }

    /// How many enqueued calls had work that was not done: a step at each begin of such a call and at each end of a
    /// call's last work.
    pub fn queue_depth(&self) -> Vec<Depth> {
        let mut last: BTreeMap<u64, u64> = BTreeMap::new();
        for span in self.spans.iter().filter(|span| span.kind.is_on_device()) {
            if let Some(correlation) = span.correlation {
                let end = last.entry(correlation).or_default();
                *end = (*end).max(span.end_ns);
            }
        }
        let mut steps: BTreeMap<u64, i64> = BTreeMap::new();
        for call in self.spans.iter().filter(|span| span.kind == Kind::Enqueue) {
            if let Some(end) = call.correlation.and_then(|correlation| last.get(&correlation)) {
                *steps.entry(call.start_ns).or_default() += 1;
                *steps.entry((*end).max(call.start_ns)).or_default() -= 1;
            }
        }
        let mut depth = 0_i64;
        let step = |(at_ns, change)| {
            depth += change;
            Depth { at_ns, calls: usize::try_from(depth).unwrap_or(0) }
        };
        steps.into_iter().map(step).collect()
    }

    /// For how long a copy and a kernel ran at once, in nanoseconds.
    pub fn copy_overlap_ns(&self) -> u64 {
        let (copies, kernels) =
            (self.cover(|span| span.kind == Kind::Copy), self.cover(|span| span.kind == Kind::Kernel));
        let mut both = 0;
        let (mut copy, mut kernel) = (copies.iter().peekable(), kernels.iter().peekable());
        while let (Some(&&(a, b)), Some(&&(c, d))) = (copy.peek(), kernel.peek()) {
            both += b.min(d).saturating_sub(a.max(c));
            if b < d {
                copy.next()
            } else {
                kernel.next()
            };
        }
        both
    }

    /// How much of the work that `barrier` waits for was not done when it began.
    ///
    /// That is work of calls before it, on its stream; for an event, of calls up to the event's recording; for the
    /// device, on every stream; and it began before the barrier was over. Work from before the recording counts once
    /// it runs.
    pub fn pending(&self, barrier: &Span) -> usize {
        let stream = match (barrier.stream, barrier.awaits) {
            (Some(stream), _) => Some(stream),
            (None, Some(event)) => self.call(event).and_then(|call| call.stream),
            (None, None) => None,
        };
        // An event recorded before the recording began.
        let old = barrier.barrier != Some(BarrierKind::Device) && stream.is_none();
        let awaited = |span: &&Span| {
            let order = match (span.correlation, barrier.awaits, barrier.correlation) {
                (None, ..) => span.start_ns <= barrier.start_ns,
                (Some(_), ..) if old => false,
                (Some(own), Some(event), _) => own <= event,
                (Some(own), None, Some(call)) => own < call,
                (Some(_), None, None) => span.start_ns <= barrier.start_ns,
            };
            let place = stream.is_none() || span.stream.is_none() || span.stream == stream;
            let during = span.end_ns > barrier.start_ns && span.start_ns <= barrier.end_ns;
            span.kind.is_on_device() && during && order && place
        };
        self.spans.iter().filter(awaited).count()
    }

    /// The call with a correlation.
    fn call(&self, correlation: u64) -> Option<&Span> {
        self.spans.iter().find(|span| !span.kind.is_on_device() && span.correlation == Some(correlation))
    }

    /// The time that the chosen spans cover, as stretches that do not touch.
    fn cover(&self, chosen: impl Fn(&Span) -> bool) -> Vec<(u64, u64)> {
        let spans = self.spans.iter().filter(|span| chosen(span) && span.end_ns > span.start_ns);
        let mut stretches: Vec<(u64, u64)> = spans.map(|span| (span.start_ns, span.end_ns)).collect();
        stretches.sort_unstable();
        let mut cover: Vec<(u64, u64)> = Vec::new();
        for (start, end) in stretches {
            match cover.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => cover.push((start, end)),
            }
        }
        cover
    }

    fn share(&self, ns: u64) -> f64 {
        let whole = self.end_ns();
        if whole == 0 { 0.0 } else { ns as f64 / whole as f64 }
    }
}

fn length(cover: &[(u64, u64)]) -> u64 {
    cover.iter().map(|(start, end)| end - start).sum()
}

#[cfg(test)]
mod tests {
    use super::super::by_hand::{span, timeline};
    use super::*;
    use Kind::{Copy, Enqueue, Kernel, Synchronize, Wait};

    #[test]
    fn time_in_which_two_streams_are_busy_is_busy_once() {
        let timeline = timeline(vec![
            span(Kernel, 0, (0, 40), 1),
            span(Copy, 1, (20, 60), 2),
            span(Wait, 1, (60, 80), 3),
            span(Kernel, 0, (90, 100), 4),
        ]);
        assert_eq!(timeline.device_busy_ns(), 70);
        assert!((timeline.device_busy_share() - 0.7).abs() < 1e-12);
        assert!((timeline.device_idle_share() - 0.3).abs() < 1e-12);
        assert_eq!(timeline.copy_overlap_ns(), 20);
    }

    #[test]
    fn copies_overlap_with_all_kernels_beside_them() {
        let timeline = timeline(vec![
            span(Kernel, 0, (0, 10), 1),
            span(Kernel, 0, (20, 30), 2),
            span(Copy, 1, (5, 25), 3),
            span(Copy, 1, (28, 50), 4),
        ]);
        assert_eq!(timeline.copy_overlap_ns(), 5 + 5 + 2);
    }

    #[test]
    fn the_host_is_stalled_in_its_barriers() {
        let timeline = timeline(vec![span(Enqueue, 0, (0, 10), 1), span(Synchronize, 0, (50, 100), 2)]);
        assert!((timeline.host_stalled_share() - 0.5).abs() < 1e-12);
    }

    #[test]
    fn an_empty_timeline_has_no_shares() {
        let timeline = timeline(Vec::new());
        let shares = [timeline.device_busy_share(), timeline.device_idle_share(), timeline.host_stalled_share()];
        assert_eq!(shares, [0.0; 3]);
        assert!(timeline.queue_depth().is_empty() && timeline.launch_latencies().is_empty());
    }

    #[test]
    fn a_latency_reaches_from_the_call_to_its_first_kernel() {
        let timeline = timeline(vec![
            span(Enqueue, 0, (10, 14), 1),
            span(Kernel, 0, (30, 40), 1),
            span(Kernel, 0, (22, 30), 1),
            span(Enqueue, 0, (15, 16), 2),
        ]);
        let latencies: Vec<_> = timeline.launch_latencies().iter().map(|l| (l.correlation, l.ns)).collect();
        assert_eq!(latencies, [(1, 12)]);
    }

    #[test]
    fn the_queue_deepens_with_each_call_and_empties_with_each_end() {
        let timeline = timeline(vec![
            span(Enqueue, 0, (0, 1), 1),
            span(Enqueue, 0, (2, 3), 2),
            span(Kernel, 0, (1, 5), 1),
            span(Kernel, 0, (5, 9), 2),
        ]);
        let depth: Vec<_> = timeline.queue_depth().iter().map(|d| (d.at_ns, d.calls)).collect();
        assert_eq!(depth, [(0, 1), (2, 2), (5, 1), (9, 0)]);
    }

    #[test]
    fn a_stream_barrier_has_pending_what_was_called_before_it_on_its_stream_and_is_not_done() {
        let barrier = span(Synchronize, 0, (10, 30), 5);
        let timeline = timeline(vec![
            span(Kernel, 0, (0, 8), 1),
            span(Kernel, 0, (8, 20), 2),
            span(Kernel, 0, (20, 30), 3),
            span(Kernel, 1, (8, 90), 4),
            span(Kernel, 0, (31, 40), 6),
            barrier.clone(),
        ]);
        assert_eq!(timeline.pending(&barrier), 2);
        let device = Span { stream: None, barrier: Some(BarrierKind::Device), ..barrier };
        assert_eq!(timeline.pending(&device), 3);
    }

    #[test]
    fn an_event_barrier_has_pending_what_was_called_before_its_recording() {
        let barrier = span(Synchronize, 0, (10, 30), 5);
        let event = Span { stream: None, barrier: Some(BarrierKind::Event), awaits: Some(3), ..barrier };
        let timeline = timeline(vec![
            span(Kernel, 0, (0, 20), 1),
            span(Enqueue, 0, (2, 3), 3),
            span(Kernel, 0, (20, 40), 4),
            span(Kernel, 1, (0, 20), 2),
            event.clone(),
        ]);
        assert_eq!(timeline.pending(&event), 1);
        let unknown = Span { awaits: None, ..event };
        assert_eq!(timeline.pending(&unknown), 0);
    }
}
