//! The ranks of a job: which one the others wait for in collectives, and at which of its lines it was late.
//!
//! # Method
//! The collectives in which all ranks give and take (all-reduce, all-gather, reduce-scatter) are the same on each rank, in the same
//! order. One ends on all ranks at once, by which they are found in recordings that did not begin at once: those are the same
//! whose ends on two ranks differ by as much each time. By the median of the differences the clocks of the ranks are put
//! together, and those are the same whose ends then lie together. A collective's kernel runs on each rank from when that rank
//! arrived. Up to when the last one did, it waits: that time is no work, and the device is idle in it for the rank that was last.
//!
//! What a late rank costs is how long the devices of the others stood idle for that: where work of other streams goes on while
//! a collective waits, nothing is lost. A rank is called late where the others lose at least [`LEAST`] of their time by it, and
//! where it costs most in nine of ten parts of the steady state, each as long as the others. Of two equal ranks, chance does
//! that in one of fifty runs; of more, less often.
//!
//! # Limits
//! Where ranks have collectives in groups that differ, and ends that match nowhere, it is said that they could not be matched.
//! A host that waits for no device does not wait for another rank's either. Then its device may regain, where it is idle without
//! another rank, what it lost to it: that much is no cost.

use std::collections::HashSet;
use std::sync::Arc;

use super::class::Activity;
use super::idle::{self, IdleCause, IdlePlace};
use super::recording::{Process, ProgramRecording, RecordedWork, WorkKind};
use super::report::{JudgedCalls, ProcessReport, is_by_iteration};
use crate::units::counted;

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
/// The least share of what each of the others loses that a line explains which is named.
const EXPLAINS: f64 = 0.1;

/// The ranks of a job, and what they did together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Job {
    /// Places in [`ProgramRecording::processes`].
    ranks: Vec<usize>,
    collectives: Vec<Collective>,
}

/// A collective of all ranks.
#[derive(Clone, Debug)]
struct Collective {
    /// The rank that arrived last, as a place in [`ProgramRecording::processes`].
    last: usize,
    /// When it did, by its own clock.
    at: u64,
    /// What waited for it.
    waited: Vec<Waited>,
}

/// The part of a collective on a rank that waited for another.
#[derive(Clone, Copy, Debug)]
struct Waited {
    process: usize,
    /// Its place in [`Process::work`].
    work: usize,
    ns: u64,
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
    /// How long the devices of the others were idle for it, in nanoseconds: as much as its line in the report's `idle` says.
    pub others_idle_ns: u64,
    /// The line at which its device was idle for longer than those of the others.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub place: String,
    /// Why; none where its device works for longer, or where `more_ns` is 0: no line explains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<IdleCause>,
    /// How much longer in each of its iterations than in the mean of the others: idle at that line, or at work.
    pub more_ns: u64,
}

/// The name of a process among those of its job.
pub(crate) fn name(rank: Option<u32>, number: u32) -> String {
    rank.map_or_else(|| format!("process {number}"), |rank| format!("rank {rank}"))
}

fn is_collective(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.contains("nccl")
        && ["allreduce", "allgather", "reducescatter"].iter().any(|kind| name.replace('_', "").contains(kind))
}

/// The collectives of a rank that were recorded, in the order of their ends.
struct Recorded<'a> {
    process: usize,
    name: String,
    works: Vec<(usize, &'a RecordedWork)>,
}

impl<'a> Recorded<'a> {
    fn of((place, process): (usize, &'a Process)) -> Self {
        let is_one = |(_, work): &(usize, &RecordedWork)| work.kind == WorkKind::Kernel && is_collective(&work.name);
        let mut works: Vec<(usize, &RecordedWork)> = process.work.iter().enumerate().filter(is_one).collect();
        works.sort_by_key(|(_, work)| work.end);
        Self { process: place, name: name(process.rank, process.number), works }
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

/// The processes that look like ranks of a job: those with collectives, and those of several that have a number as a rank.
fn look_like_ranks(processes: &[Process]) -> Vec<Recorded<'_>> {
    let using = || processes.iter().enumerate().filter(|(_, process)| !process.work.is_empty());
    let numbers: HashSet<u32> = using().filter_map(|(_, process)| process.rank).collect();
    let is_numbered = |rank: &Recorded<'_>| numbers.len() > 1 && processes[rank.process].rank.is_some();
    using().map(Recorded::of).filter(|rank| !rank.works.is_empty() || is_numbered(rank)).collect()
}

/// Finds the collectives, and takes the time in which they wait out of their ranks' work. Where there look to be ranks whose
/// collectives match nowhere, it is said why.
pub(crate) fn align(recording: &mut ProgramRecording) {
    let all = look_like_ranks(&recording.processes);
    let (ranks, mut few): (Vec<_>, Vec<_>) = all.into_iter().partition(|rank| rank.works.len() >= FEWEST);
    // What a rank starts has its number, too.
    few.retain(|own| ranks.iter().all(|rank| rank.name != own.name));
    if ranks.len() + few.len() < 2 {
        return;
    }
    let too_few = few.first().map(|own| match own.works.len() {
        0 => format!("{} has none of them", own.name),
        count => format!("{} has {count} of them, fewer than {FEWEST}", own.name),
    });
    let job = if ranks.len() < 2 { Ok(Job::default()) } else { matched(&ranks) };
    let (job, reason) = match job {
        Ok(job) => (job, too_few),
        Err(reason) => (Job::default(), Some(reason)),
    };
    if let Some(reason) = reason {
        let not = if job.ranks.is_empty() { "not" } else { "not all" };
        recording.warnings.push(format!(
            "the processes look like ranks of a job, but their collectives of NCCL (all-reduce, all-gather, reduce-scatter) \
             could {not} be matched: {reason}"
        ));
    }
    let names: Vec<Arc<str>> = recording.processes.iter().map(|own| name(own.rank, own.number).into()).collect();
    for Collective { last, waited, .. } in &job.collectives {
        for Waited { process, work, ns } in waited {
            let work = &mut recording.processes[*process].work[*work];
            work.awaited = Some((work.start, Arc::clone(&names[*last])));
            work.start = work.start.saturating_add(*ns).min(work.end);
        }
    }
    recording.job = job;
}

/// The collectives of at least two ranks, or why they are not found.
fn matched(ranks: &[Recorded<'_>]) -> Result<Job, String> {
    let (first, others) = ranks.split_first().ok_or("there are none")?;
    let mut later = vec![0];
    for other in others {
        let unlike =
            || format!("those of {} have other names than those of {}, or another order", other.name, first.name);
        later.push(first.later(other).ok_or_else(unlike)?);
    }
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
    if found.len() < FEWEST || found.len() * 10 < common.len() * 9 {
        let of = counted(common.len() as u64, "collective");
        return Err(format!("of {of} at the same time, {} end together by any clock", found.len()));
    }
    let mut collectives = Vec::new();
    for same in &found {
        let arrived = same.iter().zip(&later).map(|((_, work), later)| work.start as i64 - later);
        let arrived: Vec<i64> = arrived.collect();
        let Some((last, at)) = arrived.iter().copied().enumerate().max_by_key(|(rank, at)| (*at, *rank)) else {
            continue;
        };
        let waited = ranks.iter().zip(&arrived).zip(same).map(|((rank, own), (work, _))| Waited {
            process: rank.process,
            work: *work,
            ns: (at - own) as u64,
        });
        let waited = waited.filter(|waited| waited.ns > SLACK).collect();
        collectives.push(Collective { last: ranks[last].process, at: same[last].1.start, waited });
    }
    Ok(Job { ranks: ranks.iter().map(|rank| rank.process).collect(), collectives })
}

/// How long devices were idle for a rank.
fn idle_for(rank: &str, places: &[IdlePlace]) -> u64 {
    let of_rank = places.iter().filter(|place| place.cause == IdleCause::Rank && place.place == rank);
    of_rank.map(|place| place.idle_ns).sum()
}

/// How much of that cannot be regained.
fn lost_by(rank: &str, report: &ProcessReport, places: &[IdlePlace]) -> u64 {
    let own = idle_for(rank, places);
    let waited: u64 = report.host.iter().filter(|share| share.doing == Activity::Waiting).map(|share| share.ns).sum();
    let elsewhere = places.iter().map(|place| place.idle_ns).sum::<u64>() - own;
    if waited < own { own.saturating_sub(elsewhere) } else { own }
}

/// The rank that the others wait for, if there is one. The windows are those that the reports are of.
pub(crate) fn late(
    recording: &ProgramRecording,
    windows: &[(u64, u64)],
    judged: &[JudgedCalls],
    reports: &[ProcessReport],
    idle: &[Vec<IdlePlace>],
) -> Option<LateRank> {
    let Job { ranks, collectives } = &recording.job;
    let is_within = |of: &&Collective| windows.get(of.last).is_some_and(|(from, to)| (*from..*to).contains(&of.at));
    let all: Vec<&Collective> = collectives.iter().filter(is_within).collect();
    if all.len() < FEWEST {
        return None;
    }
    let idle_in = |waited: &Waited| {
        let work = &recording.processes[waited.process].work[waited.work];
        let gaps = reports[waited.process].devices.iter().zip(&judged[waited.process].gaps);
        let (_, gaps) = gaps.into_iter().find(|(device, _)| device.device == work.device)?;
        let (from, to) = gaps[gaps.binary_search_by_key(&work.start, |(_, to)| *to).ok()?];
        Some(idle::for_another(work, (from, to))?.1)
    };
    let most = |part: &[&Collective]| {
        let mut costs = vec![0_u64; recording.processes.len()];
        part.iter().for_each(|of| costs[of.last] += of.waited.iter().filter_map(idle_in).sum::<u64>());
        costs.into_iter().zip(0..).max().filter(|(cost, _)| *cost > 0).map(|(_, rank)| rank)
    };
    let late = most(&all)?;
    let own_name = name(reports[late].rank, reports[late].process);
    let parts = all.chunks(all.len().div_ceil(PARTS));
    let count = parts.len();
    let worst = parts.filter(|part| most(part) == Some(late)).count();
    let others_idle_ns = idle.iter().map(|places| idle_for(&own_name, places)).sum();
    let by_iteration = is_by_iteration(reports);
    let is_told = |rank: usize| !reports[rank].devices.is_empty() && (!by_iteration || reports[rank].steady.is_some());
    let others = || ranks.iter().copied().filter(|rank| *rank != late && is_told(*rank));
    let time: u64 = others().map(|rank| reports[rank].wall_ns * reports[rank].devices.len() as u64).sum();
    let lost: u64 = others().map(|rank| lost_by(&own_name, &reports[rank], &idle[rank])).sum();
    let lost = lost as f64 / time.max(1) as f64;
    if worst * PARTS < count * MOST || lost < LEAST {
        return None;
    }
    let iterations = reports[late].steady.as_ref().map_or(1, |steady| steady.iterations).max(1);
    let iteration = reports[late].wall_ns as f64 / iterations as f64;
    // Of the time that an iteration of the late rank takes: others may have been found to have longer ones.
    let each = |rank: usize, ns: u64| ns as f64 / reports[rank].wall_ns.max(1) as f64 * iteration;
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
    let explains = |(more, _): &(f64, Option<&IdlePlace>)| is_told(late) && *more >= EXPLAINS * lost * iteration;
    let most = more.max_by(|(one, _), (other, _)| one.total_cmp(other)).filter(explains);
    let (more, place) = most.unwrap_or_default();
    Some(LateRank {
        rank: own_name,
        collectives: all.len() as u64,
        last: all.iter().filter(|of| of.last == late && !of.waited.is_empty()).count() as u64,
        others_idle_ns,
        place: place.map(|place| place.place.clone()).unwrap_or_default(),
        cause: place.map(|place| place.cause),
        more_ns: more.round() as u64,
    })
}

#[cfg(test)]
mod tests;
