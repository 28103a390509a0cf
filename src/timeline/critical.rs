//! The critical path: the chain of spans of which each could begin only after the one before it had ended.
//!
//! # Method
//! The walk goes backwards from the span that ends last, in each step to the predecessor that ended last: the one that was
//! waited for. (A walk back along the last-arriving edges: Barford and Crovella, *Critical Path Analysis of TCP
//! Transactions*, 2001; for GPUs, Holistic Trace Analysis.) Predecessors are
//!
//! * of work: the work before it on its stream, and the call that enqueued it; of a stream's wait, also the last work to
//!   end on another stream;
//! * of a synchronization point: the last of the work that it waited for, if that ended within it; otherwise, as of any
//!   call,
//! * of a call: the call before it on its thread.
//!
//! A call that is still running when its work begins is on the path only up to that moment. The time between two segments
//! is on the path, too: the program's own time on the host, or the latency from a call to its device.
//!
//! # Limits
//! The cost grows with the square of the number of spans. The walk does not see threads that wait for each other through
//! other means. Where two predecessors end at the same time, the choice between them is arbitrary, and so is the path,
//! though not its length.

use super::span::{Span, Timeline};
use crate::device::kind::Kind;

/// A stretch of the critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Segment {
    /// The place of its span in [`Timeline::spans`].
    pub span: usize,
    /// When the path enters the span, in nanoseconds.
    pub start_ns: u64,
    /// When it leaves it.
    pub end_ns: u64,
}

/// The chain of spans that decided when the region was over, first to last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CriticalPath {
    /// Its stretches, by time; they do not overlap.
    pub segments: Vec<Segment>,
    /// The part in the host's calls and own work, without synchronization points, in nanoseconds.
    pub host_ns: u64,
    /// The part in synchronization points, after the work that they waited for was complete.
    pub sync_ns: u64,
    /// The part in kernels and copies.
    pub device_ns: u64,
    /// The part between them: in the program, and on the way to the device.
    pub between_ns: u64,
}

impl Timeline {
    /// The critical path of the timeline.
    pub fn critical_path(&self) -> CriticalPath {
        let Some(last) = (0..self.spans.len()).max_by_key(|&at| self.spans[at].end_ns) else {
            return CriticalPath::default();
        };
        let (mut segments, mut at, mut until) = (Vec::new(), last, self.spans[last].end_ns);
        // Each step goes to a span that began earlier, or from a synchronization point to work within it; the bound is a safeguard.
        for _ in 0..=2 * self.spans.len() {
            let span = &self.spans[at];
            let before = self.predecessor(at, until);
            let released = before.map_or(span.start_ns, |before| self.spans[before].end_ns.min(until));
            let start_ns = match span.kind {
                Kind::Synchronize | Kind::Wait => span.start_ns.max(released),
                _ => span.start_ns,
            };
            segments.push(Segment { span: at, start_ns: start_ns.min(until), end_ns: until });
            let Some(before) = before else { break };
            (at, until) = (before, self.spans[before].end_ns.min(start_ns));
        }
        segments.reverse();
        self.summed(segments)
    }

    fn summed(&self, segments: Vec<Segment>) -> CriticalPath {
        let mut path = CriticalPath::default();
        for segment in &segments {
            let length = segment.end_ns - segment.start_ns;
            match self.spans[segment.span].kind {
                Kind::Enqueue | Kind::HostWork => path.host_ns += length,
                Kind::Synchronize => path.sync_ns += length,
                Kind::Kernel | Kind::Copy => path.device_ns += length,
                Kind::Wait => path.between_ns += length,
            }
        }
        path.between_ns += segments.windows(2).map(|pair| pair[1].start_ns.saturating_sub(pair[0].end_ns)).sum::<u64>();
        CriticalPath { segments, ..path }
    }

    /// The predecessor of the span at `at` that ended last, of those that had begun before `until`.
    fn predecessor(&self, at: usize, until: u64) -> Option<usize> {
        let span = &self.spans[at];
        let latest = |chosen: &dyn Fn(&Span) -> bool, before: u64| {
            let others = (0..self.spans.len()).filter(|&other| other != at);
            let others = others.filter(|&other| self.spans[other].end_ns <= before && chosen(&self.spans[other]));
            others.max_by_key(|&other| (self.spans[other].end_ns, self.spans[other].start_ns))
        };
        let on_track = |other: &Span| other.track == span.track;
        let on_device = |other: &Span| other.kind.is_busy();
        match span.kind {
            Kind::Kernel | Kind::Copy => self.later(latest(&on_track, span.start_ns), self.caller(span), span),
            Kind::Wait => {
                let elsewhere = latest(&|other| on_device(other) && other.track != span.track, span.end_ns);
                let elsewhere = elsewhere.filter(|&other| self.spans[other].end_ns > span.start_ns);
                elsewhere.or_else(|| self.later(latest(&on_track, span.start_ns), self.caller(span), span))
            }
            Kind::Synchronize => {
                let awaited = |other: &Span| {
                    let place = span.stream.is_none() || other.stream == span.stream;
                    on_device(other) && place && other.end_ns > span.start_ns
                };
                latest(&awaited, until.min(span.end_ns)).or_else(|| latest(&on_track, span.start_ns))
            }
            Kind::Enqueue | Kind::HostWork => latest(&on_track, span.start_ns),
        }
    }

    /// The call that enqueued `span`, if it began before it.
    fn caller(&self, span: &Span) -> Option<usize> {
        let correlation = span.correlation?;
        let calls = |other: &Span| !other.kind.is_on_device() && other.correlation == Some(correlation);
        self.spans.iter().position(calls).filter(|&call| self.spans[call].start_ns < span.start_ns)
    }

    /// The one that let `span` begin: the call, unless the work before ended after the call had begun.
    fn later(&self, work: Option<usize>, call: Option<usize>, span: &Span) -> Option<usize> {
        let (Some(before), Some(by)) = (work, call) else { return work.or(call) };
        let enqueued = self.spans[by].end_ns.min(span.start_ns);
        Some(if self.spans[before].end_ns >= enqueued { before } else { by })
    }
}

#[cfg(test)]
mod tests {
    use super::super::by_hand::{span, timeline};
    use super::*;
    use Kind::{Copy, Enqueue, Kernel, Synchronize, Wait};

    fn names(timeline: &Timeline) -> Vec<(Kind, u64)> {
        let path = timeline.critical_path();
        path.segments.iter().map(|s| (timeline.spans[s.span].kind, s.end_ns - s.start_ns)).collect()
    }

    #[test]
    fn of_a_full_queue_the_path_is_the_first_call_and_the_kernels() {
        let timeline = timeline(vec![
            span(Enqueue, 0, (0, 4), 1),
            span(Enqueue, 0, (4, 8), 2),
            span(Kernel, 0, (6, 50), 1),
            span(Kernel, 0, (50, 90), 2),
            span(Synchronize, 0, (8, 95), 3),
        ]);
        assert_eq!(names(&timeline), [(Enqueue, 4), (Kernel, 44), (Kernel, 40), (Synchronize, 5)]);
        let path = timeline.critical_path();
        assert_eq!((path.host_ns, path.device_ns, path.sync_ns, path.between_ns), (4, 84, 5, 2));
    }

    #[test]
    fn of_an_empty_queue_the_path_is_the_calls_and_the_last_kernel() {
        let timeline = timeline(vec![
            span(Enqueue, 0, (0, 10), 1),
            span(Kernel, 0, (6, 9), 1),
            span(Enqueue, 0, (10, 20), 2),
            span(Kernel, 0, (18, 30), 2),
        ]);
        assert_eq!(names(&timeline), [(Enqueue, 10), (Enqueue, 8), (Kernel, 12)]);
    }

    #[test]
    fn a_wait_leads_to_the_stream_that_it_waited_for() {
        let timeline = timeline(vec![
            span(Enqueue, 0, (0, 2), 1),
            span(Copy, 0, (2, 60), 1),
            span(Enqueue, 1, (2, 4), 2),
            span(Wait, 1, (4, 60), 2),
            span(Enqueue, 1, (4, 6), 3),
            span(Kernel, 1, (61, 80), 3),
        ]);
        assert_eq!(names(&timeline), [(Enqueue, 2), (Copy, 58), (Wait, 0), (Kernel, 19)]);
    }

    #[test]
    fn an_empty_timeline_has_an_empty_path() {
        assert_eq!(timeline(Vec::new()).critical_path(), CriticalPath::default());
    }
}
