//! Where the time went, of the host and of each device: shares that add up to the wall time to the nanosecond.
//!
//! What a host does is told of the thread that spent most time in calls. What a device did is the union over its streams: work that
//! overlaps counts once, and copies are not idle time. Its idle time is told by what that thread did meanwhile.

use std::collections::{BTreeMap, HashMap};

use super::class::{Activity, Class};
use super::evidence::CallJudgement;
use super::recording::{Process, WorkKind};
use super::report::{DeviceReport, HostShare};

/// A part of the time: what was done, from, to.
pub(crate) type ShareSegment = (Activity, u64, u64);

/// The thread that spent most time in calls. Another may make more: PyTorch's backward pass looks up kernels on its own.
pub(crate) fn main_thread(process: &Process) -> Option<u32> {
    // The time, and up to when: that of a call within another counts once.
    let mut times: HashMap<u32, (u64, u64)> = HashMap::new();
    for call in &process.calls {
        let (time, last) = times.entry(call.thread).or_default();
        *time = time.saturating_add(call.exit.saturating_sub(call.enter.max(*last)));
        *last = call.exit.max(*last);
    }
    times.into_iter().max_by_key(|(thread, (time, _))| (*time, std::cmp::Reverse(*thread))).map(|(thread, _)| thread)
}

/// What a thread did, without gaps, from the start of the process to its end.
pub(crate) fn host(process: &Process, judgements: &[CallJudgement], thread: Option<u32>) -> Vec<ShareSegment> {
    let mut told = ThreadSegments { segments: Vec::new(), at: process.start, open: Vec::new() };
    for (call, judgement) in process.calls.iter().zip(judgements) {
        // Records of events cost what the program's own code costs; they are not watched for themselves.
        if Some(call.thread) == thread && call.class != Class::Record {
            told.until(call.enter);
            told.open.push((call.exit, judgement.parts(call)));
        }
    }
    told.until(process.end);
    told.segments
}

/// What a thread did up to a time.
struct ThreadSegments {
    segments: Vec<ShareSegment>,
    at: u64,
    /// The calls that have not ended, the innermost last: when they do, and what of them is not told yet.
    open: Vec<(u64, [(Activity, u64); 4])>,
}

impl ThreadSegments {
    fn until(&mut self, to: u64) {
        while let Some((exit, mut parts)) = self.open.pop() {
            let end = exit.min(to);
            for (doing, left) in &mut parts {
                let part = (*left).min(end.saturating_sub(self.at));
                *left -= part;
                self.add(*doing, self.at + part);
            }
            if exit > to {
                self.open.push((exit, parts));
                break;
            }
        }
        self.add(Activity::Own, to);
    }

    fn add(&mut self, doing: Activity, to: u64) {
        if to > self.at {
            self.segments.push((doing, self.at, to));
            self.at = to;
        }
    }
}

/// How long each took.
pub(crate) fn sums(segments: impl IntoIterator<Item = ShareSegment>) -> Vec<HostShare> {
    let mut sums = BTreeMap::new();
    segments.into_iter().for_each(|(doing, from, to)| *sums.entry(doing).or_default() += to - from);
    sums.into_iter().map(|(doing, ns)| HostShare { doing, ns }).collect()
}

/// What each device did, in the order of their numbers, and when it was idle.
pub(crate) fn devices(process: &Process, host: &[ShareSegment]) -> Vec<(DeviceReport, Vec<(u64, u64)>)> {
    let mut devices: BTreeMap<u32, [Vec<(u64, u64)>; 2]> = BTreeMap::new();
    for work in &process.work {
        let [kernels, all] = devices.entry(work.device).or_default();
        all.push((work.start, work.end));
        if work.kind == WorkKind::Kernel {
            kernels.push((work.start, work.end));
        }
    }
    let device = |(device, [kernels, all]): (u32, [Vec<(u64, u64)>; 2])| {
        let (kernels_ns, busy) = (length(&union(kernels)), union(all));
        let gaps = gaps(&busy, process.start, process.end);
        let (first, last) = busy.first().zip(busy.last()).map_or((0, 0), |(first, last)| (first.0, last.1));
        let idle = within(&gaps, host).into_iter().map(|(doing, from, to)| {
            // At both ends the device had no work yet, or no more.
            (if to <= first || from >= last { Activity::Outside } else { doing }, from, to)
        });
        let idle = sums(idle);
        (DeviceReport { device, kernels_ns, copies_ns: length(&busy) - kernels_ns, idle }, gaps)
    };
    devices.into_iter().map(device).collect()
}

fn union(mut spans: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    spans.sort_unstable();
    let mut out: Vec<(u64, u64)> = Vec::new();
    for (start, end) in spans {
        match out.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => out.push((start, end)),
        }
    }
    out
}

fn length(spans: &[(u64, u64)]) -> u64 {
    spans.iter().map(|(start, end)| end - start).sum()
}

/// What lies between spans, from `start` to `end`.
fn gaps(spans: &[(u64, u64)], start: u64, end: u64) -> Vec<(u64, u64)> {
    let starts = std::iter::once(start).chain(spans.iter().map(|(_, end)| *end));
    let ends = spans.iter().map(|(start, _)| *start).chain(std::iter::once(end));
    starts.zip(ends).filter(|(from, to)| to > from).collect()
}

/// The parts of the segments that lie in the gaps; both are in order, and the segments have no holes.
fn within(gaps: &[(u64, u64)], segments: &[ShareSegment]) -> Vec<ShareSegment> {
    let (mut out, mut place) = (Vec::new(), 0);
    for &(from, to) in gaps {
        while segments.get(place).is_some_and(|(_, _, end)| *end <= from) {
            place += 1;
        }
        let meet = segments[place.min(segments.len())..].iter().take_while(|(_, start, _)| *start < to);
        out.extend(meet.map(|(doing, start, end)| (*doing, from.max(*start), to.min(*end))));
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::evidence::judge;
    use super::super::recording::by_hand::call;
    use super::super::recording::{HostMemoryKind, RecordedCall, RecordedDirection, RecordedWork};
    use super::*;

    /// Calls and work of any times, which lie in each other, overlap, or begin at once.
    fn any_process() -> impl Strategy<Value = Process> {
        const NAMES: [&str; 8] = [
            "cuStreamSynchronize",
            "cudaDeviceSynchronize",
            "cuMemcpyDtoH_v2",
            "cudaMemcpyAsync",
            "cuMemFree_v2",
            "cudaLaunchKernel",
            "cuLibraryLoadData",
            "item",
        ];
        const KINDS: [WorkKind; 3] = [
            WorkKind::Kernel,
            WorkKind::Fill,
            WorkKind::Copy { direction: RecordedDirection::ToHost, host: HostMemoryKind::Pageable },
        ];
        let at = || (0..400_000_u64, 0..200_000_u64, 0..40_u64);
        let calls = prop::collection::vec((0..NAMES.len(), 0..3_u32, at()), 0..40);
        let calls = calls.prop_map(|calls| {
            let of = |(name, thread, (enter, length, number)): (usize, u32, (u64, u64, u64))| RecordedCall {
                thread,
                ..call(NAMES[name], (enter, enter + length), number)
            };
            calls.into_iter().map(of).collect::<Vec<_>>()
        });
        let work = prop::collection::vec((0..KINDS.len(), 0..3_u32, 0..2_u32, at()), 0..40);
        let work = work.prop_map(|work| {
            let of =
                |(kind, stream, device, (start, length, number)): (usize, u32, u32, (u64, u64, u64))| RecordedWork {
                    name: "w".into(),
                    kind: KINDS[kind],
                    start,
                    end: start + length,
                    correlation: number,
                    context: 1,
                    stream,
                    device,
                    bytes: 0,
                };
            work.into_iter().map(of).collect::<Vec<_>>()
        });
        (calls, work).prop_map(|(calls, work)| {
            let mut process = Process { calls, work, ..Process::default() };
            process.settle();
            process
        })
    }

    proptest! {
        #[test]
        fn shares_of_each_thread_and_device_add_up_to_the_wall_time(process in any_process()) {
            let judgements = judge(&process);
            for thread in [None, Some(0), Some(1), Some(2)] {
                let host = host(&process, &judgements, thread);
                let ends = host.iter().map(|(_, _, to)| *to);
                prop_assert!(host.iter().skip(1).zip(ends).all(|((_, from, _), end)| *from == end), "{host:?}");
                prop_assert_eq!(sums(host.clone()).iter().map(|share| share.ns).sum::<u64>(), process.wall_ns());
                for (device, _) in devices(&process, &host) {
                    let idle: u64 = device.idle.iter().map(|share| share.ns).sum();
                    prop_assert_eq!(device.kernels_ns + device.copies_ns + idle, process.wall_ns());
                }
            }
            for (call, judgement) in process.calls.iter().zip(&judgements) {
                let parts: u64 = judgement.parts(call).iter().map(|(_, time)| time).sum();
                prop_assert!(parts <= call.exit - call.enter);
            }
        }
    }

    #[test]
    fn the_host_is_the_thread_that_spent_most_time_in_calls_however_many_another_makes() {
        let call = |thread, enter, exit| RecordedCall { thread, ..call("cuCtxSynchronize", (enter, exit), enter) };
        let many = (0..50).map(|number| call(2, 10 * number, 10 * number + 1));
        let process = Process { calls: many.chain([call(1, 600, 700)]).collect(), ..Process::default() };
        assert_eq!(main_thread(&process), Some(1));
        assert_eq!(main_thread(&Process::default()), None);
    }

    #[test]
    fn gaps_and_spans_add_up_and_each_gap_is_told_by_the_segments_in_it() {
        let busy = union(vec![(10, 20), (15, 30), (40, 50)]);
        assert_eq!(busy, [(10, 30), (40, 50)]);
        let gaps = gaps(&busy, 0, 60);
        assert_eq!(gaps, [(0, 10), (30, 40), (50, 60)]);
        let segments = [(Activity::Own, 0, 5), (Activity::Waiting, 5, 35), (Activity::Own, 35, 60)];
        let told = within(&gaps, &segments);
        assert_eq!(
            told,
            [
                (Activity::Own, 0, 5),
                (Activity::Waiting, 5, 10),
                (Activity::Waiting, 30, 35),
                (Activity::Own, 35, 40),
                (Activity::Own, 50, 60)
            ]
        );
    }
}
