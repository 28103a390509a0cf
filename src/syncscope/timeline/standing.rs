//! Calls that enqueue, and in which the host stood all the same until the device had done something.
//!
//! - A copy from memory that the driver stages: the host stands in the call while the copy runs. It did where the call
//!   lasted for at least half of its own copy; one that put the bytes aside returned before. It waited from the start of the
//!   call where earlier work of its stream was not over, else from the start of the copy.
//! - A launch into a full queue: the host stands in the call until there is room. It did where as much work of its stream
//!   was not over as the queue holds.
//!
//! Calls that wait by what they are (synchronizations, reads) are synchronization points as a whole, and waits within a
//! call that the source of times reports are known from there.

use std::collections::HashMap;
use std::time::Instant;

use crate::device::kind::Kind;
use crate::device::recording::Log;
use crate::device::tracer::{DeviceWork, Stall, TracedCall};

/// The stretches in which the host stood in a call that enqueues.
pub(super) fn standing(log: &Log) -> Vec<Stall> {
    let calls: HashMap<u64, &TracedCall> = log.calls.iter().map(|call| (call.correlation, call)).collect();
    let mut streams: HashMap<u32, HashMap<u64, Instant>> = HashMap::new();
    let mut copies: HashMap<u64, &DeviceWork> = HashMap::new();
    for work in log.work.iter() {
        let Some((correlation, call)) = work.correlation.and_then(|own| Some((own, *calls.get(&own)?))) else {
            continue;
        };
        if let Some(stream) = work.stream.or(call.note.stream) {
            // The work of one call, as of a graph's launch, takes one place.
            let end = streams.entry(stream).or_default().entry(correlation).or_insert(work.end);
            *end = work.end.max(*end);
        }
        if work.kind == Kind::Copy {
            copies.insert(correlation, work);
        }
    }
    let streams: HashMap<u32, Stream> = streams.into_iter().map(|(number, work)| (number, Stream::of(work))).collect();
    let enqueues = log.calls.iter().filter(|call| call.note.kind == Kind::Enqueue);
    enqueues
        .filter_map(|call| {
            let pending =
                call.note.stream.and_then(|stream| streams.get(&stream)).map_or(0, |stream| stream.pending(call));
            let full = log.launch_queue.is_some_and(|room| pending >= room);
            if full {
                return Some(Stall { correlation: call.correlation, start: call.start, end: call.end });
            }
            let copy = copies.get(&call.correlation).filter(|_| call.note.may_wait)?;
            let (start, end) = (copy.start.max(call.start), copy.end.min(call.end));
            let stood = end.checked_duration_since(start)?;
            let most = stood * 2 >= copy.end.saturating_duration_since(copy.start) && !stood.is_zero();
            let start = if pending > 0 { call.start } else { start };
            most.then_some(Stall { correlation: call.correlation, start, end })
        })
        .collect()
}

/// The work of a stream: the calls that enqueued it and when it ended, each in its order.
struct Stream {
    enqueued: Vec<u64>,
    ended: Vec<Instant>,
}

impl Stream {
    fn of(work: HashMap<u64, Instant>) -> Self {
        let (mut enqueued, mut ended): (Vec<u64>, Vec<Instant>) = work.into_iter().unzip();
        enqueued.sort_unstable();
        ended.sort_unstable();
        Self { enqueued, ended }
    }

    /// How much of the work of earlier calls was not over when `call` began: a stream's work ends in its order.
    fn pending(&self, call: &TracedCall) -> usize {
        let before = self.enqueued.partition_point(|correlation| *correlation < call.correlation);
        before.saturating_sub(self.ended.partition_point(|end| *end <= call.start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::kept::Name;
    use crate::device::tracer::CallInfo;
    use crate::timeline::Timeline;

    /// A recording of calls on stream 0 and of work, each with its correlation and its times in microseconds.
    fn log(calls: &[(CallInfo, u64, [u64; 2])], work: &[(Kind, u64, [u64; 2])], launch_queue: Option<usize>) -> Log {
        let origin = Instant::now();
        let at = |us: u64| origin + std::time::Duration::from_micros(us);
        let calls = calls.iter().map(|(note, correlation, [start, end])| TracedCall {
            note: CallInfo { stream: Some(0), ..*note },
            site: None,
            stack: None,
            thread: std::thread::current().id(),
            correlation: *correlation,
            start: at(*start),
            end: at(*end),
        });
        let work = work.iter().map(|(kind, correlation, [start, end])| DeviceWork {
            name: Name::Own("work"),
            kind: *kind,
            stream: Some(0),
            correlation: Some(*correlation),
            bytes: None,
            start: at(*start),
            end: at(*end),
        });
        Log {
            calls: calls.collect(),
            work: work.collect(),
            stalls: Vec::new(),
            threads: HashMap::new(),
            dropped: 0,
            launch_queue,
            source: String::new(),
            origin,
            end: at(1000),
        }
    }

    fn copy_from(may_wait: bool) -> CallInfo {
        CallInfo { may_wait, ..CallInfo::enqueue("copy_from", Some(Kind::Copy)) }
    }

    /// The stalls of a log, by call, in microseconds since its begin.
    fn found(log: &Log) -> Vec<(u64, u128, u128)> {
        let us = |at: Instant| at.duration_since(log.origin).as_micros();
        standing(log).iter().map(|stall| (stall.correlation, us(stall.start), us(stall.end))).collect()
    }

    #[test]
    fn the_host_waits_in_a_copy_that_it_stands_in_for_most_of_its_time() {
        // As a copy of 40 MB from pageable memory was recorded on an H200: nearly all of the time of the host.
        let calls = [(copy_from(true), 1, [20, 980])];
        let blocking = log(&calls, &[(Kind::Copy, 1, [40, 985])], None);
        assert_eq!(found(&blocking), [(1, 40, 980)]);
        let timeline = Timeline::of("cuda:0", blocking);
        assert!((timeline.host_stalled_share() - 0.94).abs() < 1e-9, "{}", timeline.host_stalled_share());
        let audit = timeline.audit();
        assert_eq!((audit.sync_points[0].name.as_str(), audit.sync_points[0].pending), ("copy_from", 1));
    }

    #[test]
    fn a_copy_behind_pending_work_is_waited_for_from_the_start_of_the_call() {
        let calls = [(CallInfo::enqueue("spin", Some(Kind::Kernel)), 1, [0, 5]), (copy_from(true), 2, [10, 900])];
        let work = [(Kind::Kernel, 1, [5, 500]), (Kind::Copy, 2, [500, 905])];
        assert_eq!(found(&log(&calls, &work, None)), [(2, 10, 900)]);
    }

    #[test]
    fn no_wait_is_seen_in_a_copy_that_returns_early_or_is_of_pinned_memory() {
        let early = log(&[(copy_from(true), 1, [20, 60])], &[(Kind::Copy, 1, [50, 300])], None);
        assert_eq!(found(&early), []);
        // A copy of a few bytes may be over before the call returns, and nobody waited for it.
        let small = log(&[(copy_from(false), 1, [20, 30])], &[(Kind::Copy, 1, [24, 26])], None);
        assert_eq!(found(&small), []);
    }

    #[test]
    fn a_launch_waits_where_the_queue_is_full_and_a_graph_takes_one_place_in_it() {
        let launch = CallInfo::enqueue("affine", Some(Kind::Kernel));
        let calls = [(launch, 1, [0, 5]), (launch, 2, [5, 10]), (launch, 3, [10, 400]), (launch, 4, [600, 605])];
        let work = [
            (Kind::Kernel, 1, [5, 200]),
            (Kind::Kernel, 1, [200, 390]),
            (Kind::Kernel, 2, [390, 500]),
            (Kind::Kernel, 3, [500, 560]),
            (Kind::Kernel, 4, [606, 700]),
        ];
        assert_eq!(found(&log(&calls, &work, Some(2))), [(3, 10, 400)]);
        assert_eq!(found(&log(&calls, &work, Some(3))), []);
        assert_eq!(found(&log(&calls, &work, None)), []);
    }
}
