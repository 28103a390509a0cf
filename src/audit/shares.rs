//! Where the time went, of the host and of each device: shares that add up to the wall time to the nanosecond.
//!
//! What a host does is told of the thread that spent most time in calls. What a device did is the union over its streams: work that
//! overlaps counts once, and copies are not idle time. Its idle time is told by what that thread did meanwhile.

use std::collections::{BTreeMap, HashMap};

use super::class::{Activity, Class};
use super::evidence::CallJudgement;
use super::recording::{Process, WorkKind};
use super::report::{DeviceReport, HostShare};

/// A part of the time of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShareSegment {
    pub(crate) doing: Activity,
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// The call in which it was, as a place in [`Process::calls`].
    pub(crate) call: Option<usize>,
}

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

/// What a thread did, without gaps, in a part of the time, from, to.
pub(crate) fn host(
    process: &Process,
    judgements: &[CallJudgement],
    thread: Option<u32>,
    (from, to): (u64, u64),
) -> Vec<ShareSegment> {
    let mut told = ThreadSegments { segments: Vec::new(), at: process.start, open: Vec::new() };
    for (place, (call, judgement)) in process.calls.iter().zip(judgements).enumerate() {
        // Records of events cost what the program's own code costs; they are not watched for themselves.
        if Some(call.thread) == thread && call.class != Class::Record {
            told.until(call.enter);
            told.open.push((call.exit, place, judgement.parts(call)));
        }
    }
    told.until(process.end);
    let clipped =
        told.segments.into_iter().map(|own| ShareSegment { from: own.from.max(from), to: own.to.min(to), ..own });
    clipped.filter(|own| own.to > own.from).collect()
}

/// A call that has not ended: when it does, its place, and what of it is not told yet.
type OpenCall = (u64, usize, [(Activity, u64); 4]);

/// What a thread did up to a time.
struct ThreadSegments {
    segments: Vec<ShareSegment>,
    at: u64,
    /// The innermost last.
    open: Vec<OpenCall>,
}

impl ThreadSegments {
    fn until(&mut self, to: u64) {
        while let Some((exit, place, mut parts)) = self.open.pop() {
            let end = exit.min(to);
            for (doing, left) in &mut parts {
                let part = (*left).min(end.saturating_sub(self.at));
                *left -= part;
                self.add(*doing, self.at + part, Some(place));
            }
            if exit > to {
                self.open.push((exit, place, parts));
                break;
            }
        }
        self.add(Activity::Own, to, None);
    }

    fn add(&mut self, doing: Activity, to: u64, call: Option<usize>) {
        if to > self.at {
            self.segments.push(ShareSegment { doing, from: self.at, to, call });
            self.at = to;
        }
    }
}

/// How long each took.
pub(crate) fn sums(segments: impl IntoIterator<Item = ShareSegment>) -> Vec<HostShare> {
    let mut sums = BTreeMap::new();
    segments.into_iter().for_each(|own| *sums.entry(own.doing).or_default() += own.to - own.from);
    sums.into_iter().map(|(doing, ns)| HostShare { doing, ns }).collect()
}

/// What each device did in a part of the time, in the order of their numbers, and when it was idle.
pub(crate) fn devices(
    process: &Process,
    host: &[ShareSegment],
    (from, to): (u64, u64),
) -> Vec<(DeviceReport, Vec<(u64, u64)>)> {
    let mut devices: BTreeMap<u32, [Vec<(u64, u64)>; 2]> = BTreeMap::new();
    for work in &process.work {
        let [kernels, all] = devices.entry(work.device).or_default();
        all.push((work.start, work.end));
        if work.kind == WorkKind::Kernel {
            kernels.push((work.start, work.end));
        }
    }
    let clipped = |spans: Vec<(u64, u64)>| {
        let spans = spans.into_iter().map(|(start, end)| (start.max(from), end.min(to)));
        spans.filter(|(start, end)| end > start).collect::<Vec<_>>()
    };
    let device = |(device, [kernels, all]): (u32, [Vec<(u64, u64)>; 2])| {
        let (kernels_ns, busy) = (length(&clipped(union(kernels))), union(all));
        let (first, last) = busy.first().zip(busy.last()).map_or((0, 0), |(first, last)| (first.0, last.1));
        let busy = clipped(busy);
        let gaps = gaps(&busy, from, to);
        let idle = within(&gaps, host).into_iter().map(|own| {
            // At both ends the device had no work yet, or no more.
            let is_outside = own.to <= first || own.from >= last;
            ShareSegment { doing: if is_outside { Activity::Outside } else { own.doing }, ..own }
        });
        let idle = sums(idle);
        (DeviceReport { device, kernels_ns, copies_ns: length(&busy) - kernels_ns, idle }, gaps)
    };
    devices.into_iter().map(device).collect()
}

pub(crate) fn union(mut spans: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
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

pub(crate) fn length(spans: &[(u64, u64)]) -> u64 {
    spans.iter().map(|(start, end)| end - start).sum()
}

/// What lies between spans, from `start` to `end`.
pub(crate) fn gaps(spans: &[(u64, u64)], start: u64, end: u64) -> Vec<(u64, u64)> {
    let starts = std::iter::once(start).chain(spans.iter().map(|(_, end)| *end));
    let ends = spans.iter().map(|(start, _)| *start).chain(std::iter::once(end));
    starts.zip(ends).filter(|(from, to)| to > from).collect()
}

/// The parts of the segments that lie in the gaps; both are in order, and the segments have no holes.
pub(crate) fn within(gaps: &[(u64, u64)], segments: &[ShareSegment]) -> Vec<ShareSegment> {
    let (mut out, mut place) = (Vec::new(), 0);
    for &(from, to) in gaps.iter().filter(|(from, to)| to > from) {
        while segments.get(place).is_some_and(|own| own.to <= from) {
            place += 1;
        }
        let meet = segments[place.min(segments.len())..].iter().take_while(|own| own.from < to);
        out.extend(meet.map(|own| ShareSegment { from: from.max(own.from), to: to.min(own.to), ..*own }));
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
                    ..RecordedWork::default()
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
                let window = (process.start, process.end);
                let host = host(&process, &judgements, thread, window);
                let ends = host.iter().map(|own| own.to);
                prop_assert!(host.iter().skip(1).zip(ends).all(|(own, end)| own.from == end), "{host:?}");
                prop_assert_eq!(sums(host.clone()).iter().map(|share| share.ns).sum::<u64>(), process.wall_ns());
                for (device, _) in devices(&process, &host, window) {
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
        let segment = |(doing, from, to)| ShareSegment { doing, from, to, call: None };
        let segments = [(Activity::Own, 0, 5), (Activity::Waiting, 5, 35), (Activity::Own, 35, 60)].map(segment);
        let told: Vec<_> = within(&gaps, &segments).into_iter().map(|own| (own.doing, own.from, own.to)).collect();
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
