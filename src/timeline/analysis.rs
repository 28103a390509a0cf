//! Shares of time, and the work that is pending at a synchronization point.
//!
//! Shares are of the timeline's whole length, from the start of the recording to the end of its last span. Where spans
//! overlap, time counts once: the device is busy while at least one kernel or copy runs on it.

use super::span::{Span, Timeline};
use crate::device::kind::{Kind, SyncKind};

impl Timeline {
    /// The end of the last span, or of the region where that is later, in nanoseconds.
    pub fn end_ns(&self) -> u64 {
        self.spans.iter().map(|span| span.end_ns).max().unwrap_or(0).max(self.region_ns)
    }

    /// The share of the time in which the device computed or copied; 0 for a timeline of no length.
    pub fn device_busy_share(&self) -> f64 {
        self.share(self.covered(|span| span.kind.is_busy()))
    }

    /// The share of the time that the host threads were blocked at synchronization points: the mean over the threads.
    pub fn host_stalled_share(&self) -> f64 {
        let hosts: Vec<usize> = (0..self.tracks.len()).filter(|&track| self.tracks[track].is_host()).collect();
        let stalled = |track| self.covered(|span| span.track == track && span.kind == Kind::Synchronize);
        let total: f64 = hosts.iter().map(|&track| self.share(stalled(track))).sum();
        if hosts.is_empty() { 0.0 } else { total / hosts.len() as f64 }
    }

    /// How many kernels, copies and waits that the synchronization point `point` waits for were not complete when it began.
    ///
    /// This is the work of earlier calls, on its stream; for an event, of the calls up to the one that recorded the event;
    /// for a device, on every stream. It began before the synchronization point ended.
    pub(super) fn pending(&self, point: &Span) -> usize {
        let stream = match (point.stream, point.awaits) {
            (Some(stream), _) => Some(stream),
            (None, Some(event)) => self.call(event).and_then(|call| call.stream),
            (None, None) => None,
        };
        // An event recorded before the recording began.
        let old = point.sync != Some(SyncKind::Device) && stream.is_none();
        let awaited = |span: &&Span| {
            let order = match (span.correlation, point.awaits, point.correlation) {
                (None, ..) => span.start_ns <= point.start_ns,
                (Some(_), ..) if old => false,
                (Some(own), Some(event), _) => own <= event,
                (Some(own), None, Some(call)) => own < call,
                (Some(_), None, None) => span.start_ns <= point.start_ns,
            };
            let place = stream.is_none() || span.stream.is_none() || span.stream == stream;
            let during = span.end_ns > point.start_ns && span.start_ns <= point.end_ns;
            span.kind.is_on_device() && during && order && place
        };
        self.spans.iter().filter(awaited).count()
    }

    /// The call with a correlation.
    fn call(&self, correlation: u64) -> Option<&Span> {
        self.spans.iter().find(|span| !span.kind.is_on_device() && span.correlation == Some(correlation))
    }

    /// The length of the time that the chosen spans cover, in nanoseconds.
    fn covered(&self, chosen: impl Fn(&Span) -> bool) -> u64 {
        let spans = self.spans.iter().filter(|span| chosen(span) && span.end_ns > span.start_ns);
        let mut stretches: Vec<(u64, u64)> = spans.map(|span| (span.start_ns, span.end_ns)).collect();
        stretches.sort_unstable();
        let (mut covered, mut until) = (0, 0);
        for (start, end) in stretches {
            covered += end.saturating_sub(start.max(until));
            until = until.max(end);
        }
        covered
    }

    fn share(&self, ns: u64) -> f64 {
        let whole = self.end_ns();
        if whole == 0 { 0.0 } else { ns as f64 / whole as f64 }
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
    fn a_stream_synchronization_has_pending_what_was_called_before_it_on_its_stream_and_is_not_complete() {
        let point = span(Synchronize, 0, (10, 30), 5);
        let timeline = timeline(vec![
            span(Kernel, 0, (0, 8), 1),
            span(Kernel, 0, (8, 20), 2),
            span(Kernel, 0, (20, 30), 3),
            span(Kernel, 1, (8, 90), 4),
            span(Kernel, 0, (31, 40), 6),
            point.clone(),
        ]);
        assert_eq!(timeline.pending(&point), 2);
        let device = Span { stream: None, sync: Some(SyncKind::Device), ..point };
        assert_eq!(timeline.pending(&device), 3);
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
        assert_eq!(timeline.pending(&event), 1);
        let unknown = Span { awaits: None, ..event };
        assert_eq!(timeline.pending(&unknown), 0);
    }
}
