//! The critical path: the chain of spans of which each could begin only after the one before it had ended.
//!
//! # Method
//! The walk goes backwards from the span that ends last, in each step to the predecessor that ended last: the one that was
//! waited for. (A walk back along the last-arriving edges: Barford and Crovella, *Critical Path Analysis of TCP
//! Transactions*, 2001; for GPUs, Holistic Trace Analysis.) Predecessors are
//!
//! * of work: the work before it on its stream, and the call that enqueued it; of a stream's wait, also the last work to
//!   end on another stream, and where the device tells of no such wait, so of the first work behind it;
//! * of a synchronization point: the last of the work that it waited for, if that ended within it; otherwise, as of any
//!   call,
//! * of a call: the call before it on its thread.
//!
//! A call that is still running when its work begins is on the path only up to that moment. The time between two segments
//! is on the path, too: the program's own time on the host, or the latency from a call to its device.
//!
//! # Limits
//! The walk does not see threads that wait for each other through
//! other means. Where two predecessors end at the same time, the choice between them is arbitrary, and so is the path,
//! though not its length.

use std::collections::{HashMap, HashSet};

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
    ///
    /// ```
    /// use syncscope::prelude::*;
    ///
    /// let stream = Device::open("cpu:0")?.stream()?;
    /// let (_, timeline) = stream.device().record(|| stream.ones::<f32>([64])?.sum()?.item())?;
    /// assert!(!timeline.critical_path().segments.is_empty());
    /// # Ok::<(), syncscope::error::DeviceError>(())
    /// ```
    pub fn critical_path(&self) -> CriticalPath {
        let Some(last) = (0..self.spans.len()).max_by_key(|&at| self.spans[at].end_ns) else {
            return CriticalPath::default();
        };
        let ends = Ends::of(&self.spans);
        let (mut segments, mut at, mut until) = (Vec::new(), last, self.spans[last].end_ns);
        // Each step goes to a span that began earlier, or from a synchronization point to work within it; the bound is a safeguard.
        for _ in 0..=2 * self.spans.len() {
            let span = &self.spans[at];
            let before = ends.predecessor(at, until);
            let released = before.map_or(span.start_ns, |before| self.spans[before].end_ns.min(until));
            let start_ns = match span.kind {
                Kind::Synchronize | Kind::Wait => span.start_ns.max(released),
                _ => span.start_ns,
            };
            // A span of a foreign file may end before it starts; time on the path runs one way all the same.
            let start_ns = start_ns.min(until);
            segments.push(Segment { span: at, start_ns, end_ns: until });
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
}

/// Spans by their ends, so that the last of them before an instant is found by bisection.
struct Ends<'a> {
    spans: &'a [Span],
    /// All spans of each track.
    tracks: HashMap<usize, Vec<usize>>,
    /// The work of all streams, and for each the place of the last one before it that is of another track.
    work: Vec<usize>,
    elsewhere: Vec<Option<usize>>,
    /// The work of each stream.
    streams: HashMap<Option<u32>, Vec<usize>>,
    /// The first call of each correlation.
    calls: HashMap<u64, usize>,
    /// The calls whose work its stream held back until an event, without a span for that.
    held: HashSet<u64>,
}

/// What a stream's wait for an event is called, by this library and by the driver.
const WAITS: [&str; 2] = ["wait", "cuStreamWaitEvent"];

impl<'a> Ends<'a> {
    fn of(spans: &'a [Span]) -> Self {
        let mut by_end: Vec<usize> = (0..spans.len()).collect();
        by_end.sort_by_key(|&at| (spans[at].end_ns, spans[at].start_ns));
        let mut ends = Self {
            spans,
            tracks: HashMap::new(),
            work: Vec::new(),
            elsewhere: Vec::new(),
            streams: HashMap::new(),
            calls: HashMap::new(),
            held: held(spans),
        };
        for at in by_end {
            let span = &spans[at];
            ends.tracks.entry(span.track).or_default().push(at);
            if span.kind.is_busy() {
                let before = ends.work.len().checked_sub(1);
                let other = before.filter(|&place| spans[ends.work[place]].track != span.track);
                let other = other.or_else(|| ends.elsewhere[before?]);
                ends.elsewhere.push(other);
                ends.work.push(at);
                ends.streams.entry(span.stream).or_default().push(at);
            }
        }
        for (at, span) in spans.iter().enumerate().filter(|(_, span)| !span.kind.is_on_device()) {
            if let Some(correlation) = span.correlation {
                ends.calls.entry(correlation).or_insert(at);
            }
        }
        ends
    }

    /// How many of `ends` ended by `before`.
    fn count(&self, ends: &[usize], before: u64) -> usize {
        ends.partition_point(|&at| self.spans[at].end_ns <= before)
    }

    /// The last of the track of the span at `at` that ended by its start.
    fn on_track(&self, at: usize) -> Option<usize> {
        let span = &self.spans[at];
        let ends = self.tracks.get(&span.track)?;
        let before = &ends[..self.count(ends, span.start_ns)];
        // A span without a length ends by its own start.
        before.iter().rev().copied().find(|&other| other != at)
    }

    /// The last work of another track that ended by `before`.
    fn elsewhere(&self, track: usize, before: u64) -> Option<usize> {
        let last = self.count(&self.work, before).checked_sub(1)?;
        let is_own = self.spans[self.work[last]].track == track;
        if is_own { self.elsewhere[last].map(|place| self.work[place]) } else { Some(self.work[last]) }
    }

    /// The last work, of `stream` where one is named, that ended by `before`.
    fn work(&self, stream: Option<u32>, before: u64) -> Option<usize> {
        let ends = if stream.is_none() { &self.work } else { self.streams.get(&stream)? };
        Some(ends[self.count(ends, before).checked_sub(1)?])
    }

    /// The predecessor of the span at `at` that ended last, of those that had begun before `until`.
    fn predecessor(&self, at: usize, until: u64) -> Option<usize> {
        let span = &self.spans[at];
        let within = |other: &usize| self.spans[*other].end_ns > span.start_ns;
        let enqueued = || self.later(self.on_track(at), self.caller(span), span);
        match span.kind {
            Kind::Kernel | Kind::Copy if span.correlation.is_some_and(|own| self.held.contains(&own)) => {
                let elsewhere = self.elsewhere(span.track, span.start_ns);
                let end = |other: &usize| self.spans[*other].end_ns.min(span.start_ns);
                elsewhere.into_iter().chain(enqueued()).max_by_key(end)
            }
            Kind::Kernel | Kind::Copy => enqueued(),
            Kind::Wait => self.elsewhere(span.track, span.end_ns).filter(within).or_else(enqueued),
            Kind::Synchronize => {
                self.work(span.stream, until.min(span.end_ns)).filter(within).or_else(|| self.on_track(at))
            }
            Kind::Enqueue | Kind::HostWork => self.on_track(at),
        }
    }

    /// The call that enqueued `span`, if it began before it.
    fn caller(&self, span: &Span) -> Option<usize> {
        let call = *self.calls.get(&span.correlation?)?;
        (self.spans[call].start_ns < span.start_ns).then_some(call)
    }

    /// The one that let `span` begin: the call, unless the work before ended after the call had begun.
    fn later(&self, work: Option<usize>, call: Option<usize>, span: &Span) -> Option<usize> {
        let (Some(before), Some(by)) = (work, call) else { return work.or(call) };
        let enqueued = self.spans[by].end_ns.min(span.start_ns);
        Some(if self.spans[before].end_ns >= enqueued { before } else { by })
    }
}

/// The calls whose work is the first of its stream behind a wait for an event, of which the device has no span.
fn held(spans: &[Span]) -> HashSet<u64> {
    let works = spans.iter().filter(|span| span.kind.is_on_device()).filter_map(|span| span.correlation);
    let works: HashSet<u64> = works.collect();
    let mut calls: Vec<&Span> = spans.iter().filter(|span| span.kind == Kind::Enqueue).collect();
    calls.sort_by_key(|call| (call.start_ns, call.correlation));
    let (mut waiting, mut held) = (HashSet::new(), HashSet::new());
    for call in calls {
        match call.correlation.filter(|own| works.contains(own)) {
            Some(own) if waiting.remove(&call.stream) => _ = held.insert(own),
            None if WAITS.contains(&&*call.name) => _ = waiting.insert(call.stream),
            _ => {}
        }
    }
    held
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
    fn work_behind_a_wait_without_a_span_leads_to_the_stream_that_it_waited_for() {
        let wait = |stream, at, number| Span { name: "wait".to_owned(), ..span(Enqueue, stream, at, number) };
        let copies = [span(Enqueue, 0, (0, 2), 1), span(Copy, 0, (2, 60), 1), span(Enqueue, 0, (2, 4), 2)];
        let kernels = [span(Enqueue, 1, (6, 8), 4), span(Kernel, 1, (61, 70), 4)];
        let more = [wait(1, (4, 6), 3), span(Copy, 0, (60, 120), 2), wait(1, (8, 9), 5), span(Enqueue, 1, (9, 10), 6)];
        let last = span(Kernel, 1, (121, 130), 6);
        let timeline = timeline([&copies[..], &kernels, &more, &[last]].concat());
        assert_eq!(names(&timeline), [(Enqueue, 2), (Copy, 58), (Copy, 60), (Kernel, 9)]);
    }

    #[test]
    fn an_empty_timeline_has_an_empty_path() {
        assert_eq!(timeline(Vec::new()).critical_path(), CriticalPath::default());
    }
}
