//! Shares of time, and the work that is pending at a synchronization point.
//!
//! Shares are of the timeline's whole length, from the start of the recording to the end of its last span. Where spans
//! overlap, time counts once: the device is busy while at least one kernel or copy runs on it.

use std::collections::{BTreeMap, HashMap};

use super::span::{Span, Timeline, Track};
use crate::device::kind::{Kind, SyncKind};

impl Timeline {
    /// The end of the last span, or of the region where that is later, in nanoseconds.
    pub fn end_ns(&self) -> u64 {
        self.spans.iter().map(|span| span.end_ns).max().unwrap_or(0).max(self.region_ns)
    }

    /// The share of the time in which the device computed or copied; 0 for a timeline of no length.
    pub fn device_busy_share(&self) -> f64 {
        self.share(covered(self.spans.iter().filter(|span| span.kind.is_busy())))
    }

    /// The share of the time that the host threads were blocked at synchronization points: the mean over the threads.
    pub fn host_stalled_share(&self) -> f64 {
        let hosts = self.tracks.iter().filter(|track| track.is_host()).count();
        let mut stalls: BTreeMap<usize, Vec<&Span>> = BTreeMap::new();
        for span in self.spans.iter().filter(|span| span.kind == Kind::Synchronize) {
            if self.tracks.get(span.track).is_some_and(Track::is_host) {
                stalls.entry(span.track).or_default().push(span);
            }
        }
        let total = stalls.into_values().map(|stalls| covered(stalls.into_iter())).sum();
        if hosts == 0 { 0.0 } else { self.share(total) / hosts as f64 }
    }

    fn share(&self, ns: u64) -> f64 {
        let whole = self.end_ns();
        if whole == 0 { 0.0 } else { ns as f64 / whole as f64 }
    }
}

/// The length of the time that spans cover, in nanoseconds.
fn covered<'a>(spans: impl Iterator<Item = &'a Span>) -> u64 {
    let spans = spans.filter(|span| span.end_ns > span.start_ns);
    let mut stretches: Vec<(u64, u64)> = spans.map(|span| (span.start_ns, span.end_ns)).collect();
    stretches.sort_unstable();
    let (mut covered, mut until) = (0, 0);
    for (start, end) in stretches {
        covered += end.saturating_sub(start.max(until));
        until = until.max(end);
    }
    covered
}

/// The work of a timeline by its ends, for questions of many synchronization points: each looks at what could be pending at it, and
/// not at all that there was.
pub(super) struct Work<'a> {
    /// Each with the earliest start of those from here on.
    by_end: Vec<(&'a Span, u64)>,
    /// The stream of each call.
    calls: HashMap<u64, Option<u32>>,
}

impl<'a> Work<'a> {
    pub(super) fn of(timeline: &'a Timeline) -> Self {
        let (work, other): (Vec<&Span>, Vec<&Span>) = timeline.spans.iter().partition(|span| span.kind.is_on_device());
        let mut by_end: Vec<(&Span, u64)> = work.into_iter().map(|span| (span, span.start_ns)).collect();
        by_end.sort_by_key(|(span, _)| span.end_ns);
        let mut earliest = u64::MAX;
        for (_, start) in by_end.iter_mut().rev() {
            earliest = earliest.min(*start);
            *start = earliest;
        }
        let mut calls = HashMap::new();
        for call in other {
            if let Some(correlation) = call.correlation {
                calls.entry(correlation).or_insert(call.stream);
            }
        }
        Self { by_end, calls }
    }

    /// How many kernels, copies and waits that the synchronization point `point` waits for were not complete when it began.
    ///
    /// This is the work of earlier calls, on its stream; for an event, of the calls up to the one that recorded the event;
    /// for a device, on every stream. It began before the synchronization point ended.
    pub(super) fn pending(&self, point: &Span) -> usize {
        let stream = match (point.stream, point.awaits) {
            (Some(stream), _) => Some(stream),
            (None, Some(event)) => self.calls.get(&event).copied().flatten(),
            (None, None) => None,
        };
        // An event recorded before the recording began.
        let old = point.sync != Some(SyncKind::Device) && stream.is_none() && point.awaits.is_none();
        let awaited = |span: &&Span| {
            let order = match (span.correlation, point.awaits, point.correlation) {
                (None, ..) => span.start_ns <= point.start_ns,
                (Some(_), ..) if old => false,
                (Some(own), Some(event), _) => own <= event,
                (Some(own), None, Some(call)) => own < call,
                (Some(_), None, None) => span.start_ns <= point.start_ns,
            };
            let place = stream.is_none() || span.stream.is_none() || span.stream == stream;
            span.start_ns <= point.end_ns && order && place
        };
        let first = self.by_end.partition_point(|(span, _)| span.end_ns <= point.start_ns);
        let during = self.by_end[first..].iter().take_while(|(_, earliest)| *earliest <= point.end_ns);
        during.map(|(span, _)| *span).filter(awaited).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::by_hand::{span, timeline};
    use Kind::{Copy, Enqueue, Kernel, Synchronize, Wait};

    #[test]
    fn time_in_which_two_streams_are_busy_counts_once() {
        let timeline = timeline(vec![
            span(Kernel, 0, (0, 40), 1),
            span(Copy, 1, (20, 60), 2),
            span(Wait, 1, (60, 80), 3),
            span(Kernel, 0, (90, 100), 4),
        ]);
        assert!((timeline.device_busy_share() - 0.7).abs() < 1e-12);
    }

    #[test]
    fn the_host_is_stalled_at_its_synchronization_points() {
        let timeline = timeline(vec![span(Enqueue, 0, (0, 10), 1), span(Synchronize, 0, (50, 100), 2)]);
        assert!((timeline.host_stalled_share() - 0.5).abs() < 1e-12);
    }

    #[test]
    fn an_empty_timeline_has_no_shares() {
        let timeline = timeline(Vec::new());
        assert_eq!([timeline.device_busy_share(), timeline.host_stalled_share()], [0.0; 2]);
    }

    #[test]
    fn what_a_stream_synchronization_waits_for_is_its_earlier_unfinished_work() {
        let point = span(Synchronize, 0, (10, 30), 5);
        let timeline = timeline(vec![
            span(Kernel, 0, (0, 8), 1),
            span(Kernel, 0, (8, 20), 2),
            span(Kernel, 0, (20, 30), 3),
            span(Kernel, 1, (8, 90), 4),
            span(Kernel, 0, (31, 40), 6),
            point.clone(),
        ]);
        assert_eq!(Work::of(&timeline).pending(&point), 2);
        let device = Span { stream: None, sync: Some(SyncKind::Device), ..point };
        assert_eq!(Work::of(&timeline).pending(&device), 3);
    }

    #[test]
    fn an_event_synchronization_has_pending_what_was_called_before_its_recording() {
        let point = span(Synchronize, 0, (10, 30), 5);
        let event = Span { stream: None, sync: Some(SyncKind::Event), awaits: Some(3), ..point };
        let timeline = timeline(vec![
            span(Kernel, 0, (0, 20), 1),
            span(Enqueue, 0, (2, 3), 3),
            span(Kernel, 0, (20, 40), 4),
            span(Kernel, 1, (0, 20), 2),
            event.clone(),
        ]);
        assert_eq!(Work::of(&timeline).pending(&event), 1);
        let unknown = Span { awaits: None, ..event };
        assert_eq!(Work::of(&timeline).pending(&unknown), 0);
    }
}
