//! The ranks of a job: which one the others wait for in collectives, and at which of its lines it was late.
//!
//! # Method
//! The collectives in which all ranks give and take (all-reduce, all-gather, reduce-scatter) are the same on each rank, in the same
//! order. One ends on all ranks at once, by which they are found in recordings that did not begin at once: those are the same
//! whose ends on two ranks differ by as much each time. By the median of the differences the clocks of the ranks are put
//! together, and those are the same whose ends then lie together. A collective's kernel runs on each rank from when that rank
//! arrived. Up to when the last one did, it waits: that time is no work, and the device is idle in it for the rank that was last.
//!
//! A rank is called late where the others lose at least [`LEAST`] of their time by it, and where it costs most in nine of
//! ten parts of the steady state, each as long as the others. Of two equal ranks, chance does that in one of fifty runs; of
//! more, less often.
//!
//! # Limits
//! Where ranks have collectives in groups that differ, and ends that match nowhere, nothing is said.

use std::sync::Arc;

use super::idle::{IdleCause, IdlePlace};
use super::recording::{Process, ProgramRecording, RecordedWork, WorkKind};
use super::report::ProcessReport;

/// How many collectives earlier or later than that of another rank a recording may begin, and of how many it is tried.
const SHIFTS: usize = 4_000;
const TRIED: usize = 200;
/// By how much ends may differ, and by how much a rank has to be later than another to have been waited for.
const SLACK: u64 = 20_000;
/// By how much ends differ that are taken to differ by as much.
const ALIKE: i64 = 4_000;
/// How many collectives there are at least.
const FEWEST: usize = 20;
/// The parts of the steady state, and in how many of them a late rank costs most.
const PARTS: usize = 10;
const MOST: usize = 9;
/// The least share of the time of the others that a late rank costs.
const LEAST: f64 = 0.01;

/// A collective of all ranks.
#[derive(Clone, Debug)]
pub(crate) struct Collective {
    /// The rank that arrived last, as a place in [`ProgramRecording::processes`].
    last: usize,
    /// When it did, by its own clock.
    at: u64,
    /// How long the others waited for it, together.
    waited: u64,
}

/// The rank that the others wait for.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LateRank {
    /// Its name: `rank 1`, or `process 4711` where ranks are not known.
    pub rank: String,
    /// How many collectives there were in its steady state, and at how many of them it was last by more than 20 µs.
    pub collectives: u64,
    /// As above.
    pub last: u64,
    /// How long all others waited for it, in nanoseconds.
    pub others_waited_ns: u64,
    /// The line at which its device was idle for longer than those of the others.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub place: String,
    /// Why; none where its device works for longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<IdleCause>,
    /// How much longer in each iteration than in the mean of the others: idle at that line, or at work.
    pub more_ns: u64,
}

/// The name of a process among those of its job.
pub(crate) fn name(process: &Process) -> String {
    process.rank.map_or_else(|| format!("process {}", process.number), |rank| format!("rank {rank}"))
}

fn is_collective(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.contains("nccl")
        && ["allreduce", "allgather", "reducescatter"].iter().any(|kind| name.replace('_', "").contains(kind))
}

/// The collectives of a rank that were recorded, in the order of their ends.
struct Recorded<'a> {
    process: usize,
    works: Vec<(usize, &'a RecordedWork)>,
}

impl<'a> Recorded<'a> {
    fn of(process: usize, work: &'a [RecordedWork]) -> Option<Self> {
        let is_one = |(_, work): &(usize, &RecordedWork)| work.kind == WorkKind::Kernel && is_collective(&work.name);
        let mut works: Vec<(usize, &RecordedWork)> = work.iter().enumerate().filter(is_one).collect();
        works.sort_by_key(|(_, work)| work.end);
        (works.len() >= FEWEST).then_some(Self { process, works })
    }

    /// Between which times they ended.
    fn span(&self) -> (i64, i64) {
        let end = |of: Option<&(usize, &RecordedWork)>| of.map_or(0, |(_, work)| work.end as i64);
        (end(self.works.first()), end(self.works.last()))
    }

    /// That of a name which ended at a time.
    fn ended_at(&self, at: i64, name: &str) -> Option<(usize, &'a RecordedWork)> {
        let apart = |work: &RecordedWork| (work.end as i64 - at).unsigned_abs();
        let place = self.works.partition_point(|(_, work)| (work.end as i64) < at);
        let near = self.works.get(place.saturating_sub(1)..self.works.len().min(place + 1))?;
        let nearest = near.iter().min_by_key(|(_, work)| apart(work))?;
        (apart(nearest.1) <= SLACK && *nearest.1.name == *name).then_some(*nearest)
    }

    /// How much later the clock of another rank is: as far as the ends of the same collectives lie apart. One may have begun to
    /// record some collectives before the other, and as many have to be left out there. Where several numbers of them fit as well,
    /// recordings of as many are taken to have begun together, and else the clocks to differ least.
    fn later(&self, other: &Self) -> Option<i64> {
        let fit = |shift: isize| {
            let skipped = |of: isize| of.max(0) as usize;
            let pairs = self.works.iter().skip(skipped(-shift)).zip(other.works.iter().skip(skipped(shift)));
            let apart = |((_, own), (_, other)): (&(usize, &RecordedWork), &(usize, &RecordedWork))| {
                (own.name == other.name).then_some(other.end as i64 - own.end as i64)
            };
            let pairs: Vec<Option<i64>> = pairs.take(TRIED).map(apart).collect();
            let mut all: Vec<i64> = pairs.iter().copied().flatten().collect();
            all.sort_unstable();
            // Where a recording holds one of the two alone, those behind it lie apart by as much as others do.
            let alike = |from: usize| all[from..].partition_point(|later| later - all[from] <= ALIKE);
            let (count, from) = (0..all.len()).map(|from| (alike(from), from)).max()?;
            (all.len() >= FEWEST).then(|| (count as f64 / pairs.len() as f64, all[from + count / 2], shift))
        };
        let (own, others) = (self.works.len(), other.works.len());
        let furthest = SHIFTS.min(own.max(others)) as isize;
        let fits: Vec<(f64, i64, isize)> = (-furthest..=furthest).filter_map(fit).collect();
        let best = fits.iter().map(|(share, ..)| *share).fold(0.0, f64::max);
        let as_good = fits.iter().filter(|(share, ..)| *share >= 0.9 * best);
        as_good.min_by_key(|(_, later, shift)| (*shift != 0 || own != others, later.abs())).map(|(_, later, _)| *later)
    }
}

/// Finds the collectives, and takes the time in which they wait out of their ranks' work.
pub(crate) fn align(recording: &mut ProgramRecording) {
    let all = recording.processes.iter().enumerate();
    let ranks: Vec<Recorded<'_>> = all.filter_map(|(place, process)| Recorded::of(place, &process.work)).collect();
    let [first, others @ ..] = &ranks[..] else { return };
    let later = std::iter::once(Some(0)).chain(others.iter().map(|other| first.later(other)));
    let Some(later) = later.collect::<Option<Vec<i64>>>() else { return };
    let by_first = || ranks.iter().zip(&later).map(|(rank, later)| (rank.span(), later));
    let begun = by_first().map(|((first, _), later)| first - later).max().unwrap_or(0) - SLACK as i64;
    let ended = by_first().map(|((_, last), later)| last - later).min().unwrap_or(0) + SLACK as i64;
    let common: Vec<&RecordedWork> =
        first.works.iter().map(|(_, work)| *work).filter(|work| (begun..=ended).contains(&(work.end as i64))).collect();
    // Of each, the same of all ranks.
    let same = |own: &&RecordedWork| -> Option<Vec<(usize, &RecordedWork)>> {
        ranks.iter().zip(&later).map(|(rank, later)| rank.ended_at(own.end as i64 + later, &own.name)).collect()
    };
    let found: Vec<Vec<(usize, &RecordedWork)>> = common.iter().filter_map(same).collect();
    if others.is_empty() || found.len() < FEWEST || found.len() * 10 < common.len() * 9 {
        return;
    }
    let names: Vec<Arc<str>> = recording.processes.iter().map(|process| name(process).into()).collect();
    let mut collectives = Vec::new();
    let mut waits: Vec<(usize, usize, u64, usize)> = Vec::new();
    for same in &found {
        let arrived = same.iter().zip(&later).map(|((_, work), later)| work.start as i64 - later);
        let arrived: Vec<i64> = arrived.collect();
        let Some((last, at)) = arrived.iter().copied().enumerate().max_by_key(|(rank, at)| (*at, *rank)) else {
            continue;
        };
        let mut waited = 0;
        for ((rank, own), (place, _)) in ranks.iter().zip(&arrived).zip(same) {
            let late = (at - own) as u64;
            if late > SLACK {
                waited += late;
                waits.push((rank.process, *place, late, ranks[last].process));
            }
        }
        collectives.push(Collective { last: ranks[last].process, at: same[last].1.start, waited });
    }
    for (process, place, late, last) in waits {
        let work = &mut recording.processes[process].work[place];
        work.awaited = Some((work.start, Arc::clone(&names[last])));
        work.start = work.start.saturating_add(late).min(work.end);
    }
    recording.collectives = collectives;
}

/// The rank that the others wait for, if there is one. The windows are those that the reports are of.
pub(crate) fn late(
    recording: &ProgramRecording,
    windows: &[(u64, u64)],
    reports: &[ProcessReport],
    idle: &[Vec<IdlePlace>],
) -> Option<LateRank> {
    let is_within = |of: &&Collective| windows.get(of.last).is_some_and(|(from, to)| (*from..*to).contains(&of.at));
    let all: Vec<&Collective> = recording.collectives.iter().filter(is_within).collect();
    if all.len() < FEWEST {
        return None;
    }
    let costs = |part: &[&Collective]| {
        let mut costs = vec![0_u64; recording.processes.len()];
        part.iter().for_each(|of| costs[of.last] += of.waited);
        costs
    };
    let most = |part: &[&Collective]| {
        costs(part).into_iter().zip(0..).max().filter(|(cost, _)| *cost > 0).map(|(_, rank)| rank)
    };
    let late = most(&all)?;
    let parts = all.chunks(all.len().div_ceil(PARTS));
    let count = parts.len();
    let worst = parts.filter(|part| most(part) == Some(late)).count();
    let others_waited_ns = costs(&all)[late];
    let others = || (0..reports.len()).filter(|rank| *rank != late && !reports[*rank].devices.is_empty());
    let time: u64 = others().map(|rank| reports[rank].wall_ns).sum();
    if worst * PARTS < count * MOST || (others_waited_ns as f64) < LEAST * time as f64 {
        return None;
    }
    let each = |rank: usize, ns: u64| {
        ns as f64 / reports[rank].steady.as_ref().map_or(1, |steady| steady.iterations).max(1) as f64
    };
    let mean = |of: &dyn Fn(usize) -> f64| others().map(of).sum::<f64>() / others().count().max(1) as f64;
    let idle_at = |rank: usize, place: &IdlePlace| {
        let same = idle[rank].iter().filter(|own| (&own.place, own.cause) == (&place.place, place.cause));
        each(rank, same.map(|own| own.idle_ns).sum())
    };
    let more = idle[late].iter().filter(|place| place.cause != IdleCause::Rank).map(|place| {
        let more = idle_at(late, place) - mean(&|rank| idle_at(rank, place));
        (more, Some(place))
    });
    let busy =
        |rank: usize| each(rank, reports[rank].devices.iter().map(|device| device.kernels_ns + device.copies_ns).sum());
    let more = more.chain([(busy(late) - mean(&busy), None)]);
    let (more, place) = more.max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    Some(LateRank {
        rank: name(recording.processes.get(late)?),
        collectives: all.len() as u64,
        last: all.iter().filter(|of| of.last == late && of.waited > 0).count() as u64,
        others_waited_ns,
        place: place.map(|place| place.place.clone()).unwrap_or_default(),
        cause: place.map(|place| place.cause),
        more_ns: more.max(0.0).round() as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::super::recording::Sample;
    use super::super::recording::{Doing, Frame};
    use super::super::report::AuditReport;
    use super::*;

    const MS: u64 = 1_000_000;

    /// No two iterations take as long.
    fn chance(iteration: u64) -> u64 {
        (iteration.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) * 20
    }

    /// Ranks of 100 iterations of 10 ms: each computes for 5 ms, arrives at the collective after its own delay, and leaves it
    /// with the others. Each clock is later by as much as it is told.
    fn job(delay: impl Fn(u32, u64) -> u64, clocks: &[u64]) -> ProgramRecording {
        job_from(delay, clocks, |_| 0)
    }

    /// The same, recorded from its own iteration on of each rank.
    fn job_from(delay: impl Fn(u32, u64) -> u64, clocks: &[u64], begun: impl Fn(u32) -> u64) -> ProgramRecording {
        let mut recording = recorded(delay, clocks, begun);
        align(&mut recording);
        recording
    }

    fn recorded(delay: impl Fn(u32, u64) -> u64, clocks: &[u64], begun: impl Fn(u32) -> u64) -> ProgramRecording {
        let process = |(rank, clock): (u32, &u64)| {
            let mut work = Vec::new();
            let mut samples = Vec::new();
            let mut at = 0;
            for iteration in 0..100 {
                let own = delay(rank, iteration);
                let last = (0..clocks.len() as u32).map(|rank| delay(rank, iteration)).max().unwrap_or(0);
                let piece = |name: &str, from: u64, to: u64, number: u64| RecordedWork {
                    name: name.into(),
                    start: clock + from,
                    end: clock + to,
                    correlation: number,
                    ..RecordedWork::default()
                };
                work.push(piece("matmul", at, at + 5 * MS, 2 * iteration + 1));
                let end = at + 5 * MS + last + 100_000;
                work.push(piece("ncclDevKernel_AllReduce_Sum_f32", at + 5 * MS + own, end, 2 * iteration + 2));
                let sample = Sample {
                    asked: clock + at + 5 * MS + own / 2,
                    had: clock + at + 5 * MS + own / 2,
                    thread: rank,
                    stack: Some(0),
                    doing: Doing::Sleeping,
                    ..Sample::default()
                };
                samples.push(sample);
                at = end + 1_000;
                if iteration < begun(rank) {
                    work.clear();
                    samples.clear();
                }
            }
            let frames = vec![Frame { file: "train.py".to_owned(), line: 40, ..Frame::default() }];
            let stacks = vec![vec![0]];
            let mut process =
                Process { number: rank, rank: Some(rank), work, samples, frames, stacks, ..Process::default() };
            process.settle();
            process
        };
        let processes = (0..).zip(clocks).map(process).collect();
        ProgramRecording { processes, ..ProgramRecording::default() }
    }

    #[test]
    fn a_rank_that_sleeps_is_named_with_its_line_whatever_the_clocks_say() {
        let recording = job(|rank, _| if rank == 2 { 4 * MS } else { 200_000 }, &[0, 70 * MS, 3 * MS, 0]);
        let (report, _) = AuditReport::of(&recording, "job", None);
        let late = report.late.unwrap();
        assert_eq!((&*late.rank, &*late.place, late.cause), ("rank 2", "train.py:40", Some(IdleCause::Sleep)));
        assert!((3_700_000..3_900_000).contains(&late.more_ns), "{late:?}");
        let each = late.others_waited_ns / 3 / late.collectives;
        assert!((3_790_000..3_810_000).contains(&each), "{late:?}");
        // The others' devices wait for it, and are not busy meanwhile.
        let waits = report.idle.iter().find(|place| place.cause == IdleCause::Rank).unwrap();
        assert_eq!(waits.place, "rank 2");
    }

    #[test]
    fn a_rank_that_sleeps_is_named_also_in_recordings_that_begin_one_after_the_other() {
        let delay = |rank: u32, iteration: u64| if rank == 2 { 4 * MS + chance(iteration) } else { 200_000 };
        for clocks in [[0, 0, 0], [0, 700 * MS, 40 * MS]] {
            let recording = job_from(delay, &clocks, |rank| u64::from(rank) * 17);
            let late = AuditReport::of(&recording, "job", None).0.late.unwrap();
            assert_eq!((&*late.rank, &*late.place, late.cause), ("rank 2", "train.py:40", Some(IdleCause::Sleep)));
            let each = late.others_waited_ns / 2 / late.collectives;
            assert!((4_000_000..5_000_000).contains(&each), "{late:?}");
        }
    }

    #[test]
    fn a_rank_that_sleeps_is_named_also_where_records_of_some_collectives_are_missing() {
        let delay = |rank: u32, iteration: u64| if rank == 1 { 4 * MS + chance(iteration) } else { 200_000 };
        for missing in [&[(0, 13)][..], &[(1, 62)], &[(0, 29), (1, 51), (0, 80)]] {
            let mut recording = recorded(delay, &[0, 70 * MS], |_| 0);
            for (process, iteration) in missing {
                recording.processes[*process].work.retain(|work| work.correlation != 2 * iteration + 2);
            }
            align(&mut recording);
            let late = AuditReport::of(&recording, "job", None).0.late.unwrap();
            assert_eq!(
                (&*late.rank, &*late.place, recording.collectives.len()),
                ("rank 1", "train.py:40", 100 - missing.len())
            );
        }
    }

    #[test]
    fn of_ranks_that_are_late_in_turn_or_not_at_all_none_is_named() {
        // As if by chance: a hash of the iteration says which one is late.
        let chance = |iteration: u64| (iteration.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 62) as u32 % 2;
        let in_turn = job(|rank, iteration| if rank == chance(iteration) { 2 * MS } else { 100_000 }, &[0, 0]);
        assert!(AuditReport::of(&in_turn, "job", None).0.late.is_none());
        let equal = job(|rank, iteration| 100_000 + u64::from(rank == chance(iteration)) * 25_000, &[0, 0]);
        assert!(AuditReport::of(&equal, "job", None).0.late.is_none());
        let by_little = job(|rank, _| 100_000 + u64::from(rank) * 30_000, &[0, 0]);
        assert!(AuditReport::of(&by_little, "job", None).0.late.is_none(), "it costs less than a hundredth");
    }
}
