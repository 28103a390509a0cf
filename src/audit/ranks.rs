//! The ranks of a job: which one the others wait for in collectives, and at which of its lines it was late.
//!
//! # Method
//! The collectives in which all ranks give and take (all-reduce, all-gather, reduce-scatter) are the same on each rank, in the same
//! order. One ends on all ranks at once, by which they are found in recordings that did not begin at once: those are the same
//! whose ends on two ranks differ by as much each time. With that much between the clocks, those are the same of which each ends
//! nearest to the other. By the median of the differences around it, the clocks are put together for each collective, since clocks
//! drift and are set anew. A collective's kernel runs on each rank from when that rank arrived. Up to when the last one did, it
//! waits: that time is no work, and the device is idle in it for the rank that was last.
//!
//! What a late rank costs is how long the devices of the others stood idle for that: where work of other streams goes on while
//! a collective waits, nothing is lost. A rank is called late where the others lose at least [`LEAST`] of their time by it,
//! where it costs most in nine of ten parts of the steady state, each as long as the others (of two equal ranks, chance does
//! that in one of fifty runs; of more, less often), and where one of its lines, or the work of its device, is most of what takes
//! longer than on the others.
//!
//! # Limits
//! A processor of a virtual machine can be slow for seconds, and all lines of the rank on it take longer then. So a rank that is late
//! by many lines is not called late; the devices' idle time is told to be for it all the same.
//! Where ranks have collectives in groups that differ, and ends that match nowhere, it is said that they could not be matched.
//! A host that waits for no device does not wait for another rank's either. Then its device may regain, where it is idle without
//! another rank, what it lost to it: that much is no cost.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use super::class::Activity;
use super::idle::{self, IdleCause, IdlePlace};
use super::recording::{Process, ProgramRecording, RecordedWork, WorkKind};
use super::report::{JudgedCalls, ProcessReport, is_by_iteration};
use crate::units::counted;

/// How many collectives earlier or later than that of another rank a recording may begin, and of how many it is tried.
const SHIFTS: usize = 4_000;
const TRIED: usize = 200;
/// By how much a rank has to be later than another to have been waited for.
const SLACK: u64 = 20_000;
/// By how much ends may differ: clocks drift, and are set anew.
const APART: u64 = 100_000;
/// By how much ends differ that are taken to differ by as much, and which share of all does so at least.
const ALIKE: u64 = 4_000;
const SURE: f64 = 0.2;
/// Of how many collectives before and behind one the ends tell together how much later a clock is.
const AROUND: usize = 8;
/// How many collectives there are at least.
const FEWEST: usize = 20;
/// The parts of the steady state, and in how many of them a late rank costs most.
const PARTS: usize = 10;
const MOST: usize = 9;
/// The least share of the time of the others that a late rank costs.
const LEAST: f64 = 0.02;
/// The least share of all that takes longer on the late rank which is of one line, or of its device's work.
const EXPLAINS: f64 = 0.6;

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
    /// When each of the job's ranks arrived, by its own clock.
    arrived: Vec<u64>,
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
    /// Why; none where its device works for longer.
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

    /// That which ended nearest to a time.
    fn nearest(&self, at: i64) -> Option<(usize, &'a RecordedWork)> {
        let place = self.works.partition_point(|(_, work)| (work.end as i64) < at);
        let near = self.works.get(place.saturating_sub(1)..self.works.len().min(place + 1))?;
        near.iter().min_by_key(|(_, work)| (work.end as i64).abs_diff(at)).copied()
    }

    /// Of each collective the same one of another rank: that which ended nearest to it, and it nearest to that, by clocks of
    /// which the other is later by so much at first.
    fn same(&self, other: &Self, later: i64) -> Vec<Option<(usize, &'a RecordedWork)>> {
        let mut last = VecDeque::from([later]);
        let same = |(_, own): &(usize, &RecordedWork)| {
            let later = median(last.iter().copied().collect());
            let (place, there) = other.nearest(own.end as i64 + later)?;
            let (_, back) = self.nearest(there.end as i64 - later)?;
            let apart = there.end as i64 - own.end as i64;
            if !std::ptr::eq(back, *own) || own.name != there.name || apart.abs_diff(later) > APART {
                return None;
            }
            last.push_back(apart);
            last.drain(..last.len().saturating_sub(AROUND));
            Some((place, there))
        };
        self.works.iter().map(same).collect()
    }

    /// How much later the clock of another rank is: as far as the ends of the same collectives lie apart. One may have begun to
    /// record some collectives before the other, and as many have to be left out there. Where several numbers of them fit as well,
    /// recordings of as many are taken to have begun together, and else the clocks to differ least.
    ///
    /// # Errors
    /// The names differ, or no difference is that of many ends.
    fn later(&self, other: &Self) -> Result<i64, String> {
        let fit = |shift: isize| {
            let skipped = |of: isize| of.max(0) as usize;
            let pairs = self.works.iter().skip(skipped(-shift)).zip(other.works.iter().skip(skipped(shift)));
            let apart = |((_, own), (_, other)): (&(usize, &RecordedWork), &(usize, &RecordedWork))| {
                (own.name == other.name).then_some(other.end as i64 - own.end as i64)
            };
            let pairs: Vec<Option<i64>> = pairs.take(TRIED).map(apart).collect();
            // Those that follow each other lie apart by as much: clocks drift slowly, and a record that is missing moves all behind it.
            let is_alike = |pair: &&[Option<i64>]| pair[0].zip(pair[1]).is_some_and(|(a, b)| a.abs_diff(b) <= ALIKE);
            let share = pairs.windows(2).filter(is_alike).count() as f64 / pairs.len() as f64;
            let mut all: Vec<i64> = pairs.into_iter().flatten().collect();
            all.sort_unstable();
            let near = |from: usize| all[from..].partition_point(|later| later.abs_diff(all[from]) <= APART);
            let (count, from) = (0..all.len()).map(|from| (near(from), from)).max()?;
            (all.len() >= FEWEST).then(|| (share, all[from + count / 2], shift))
        };
        let (own, others) = (self.works.len(), other.works.len());
        let furthest = SHIFTS.min(own.max(others)) as isize;
        let fits: Vec<(f64, i64, isize)> = (-furthest..=furthest).filter_map(fit).collect();
        if fits.is_empty() {
            return Err(format!(
                "those of {} have other names than those of {}, or another order",
                other.name, self.name
            ));
        }
        let best = fits.iter().map(|(share, ..)| *share).fold(0.0, f64::max);
        let as_good = fits.iter().filter(|(share, ..)| *share >= (0.9 * best).max(SURE));
        let nearest = as_good.min_by_key(|(_, later, shift)| (*shift != 0 || own != others, later.abs()));
        let apart = || format!("those of {} and of {} end together by no clock", self.name, other.name);
        nearest.map(|(_, later, _)| *later).ok_or_else(apart)
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
        later.push(first.later(other)?);
    }
    let by_first = || ranks.iter().zip(&later).map(|(rank, later)| (rank.span(), later));
    let begun = by_first().map(|((first, _), later)| first - later).max().unwrap_or(0) - APART as i64;
    let ended = by_first().map(|((_, last), later)| last - later).min().unwrap_or(0) + APART as i64;
    let is_common = |own: &RecordedWork| (begun..=ended).contains(&(own.end as i64));
    let same: Vec<Vec<_>> = others.iter().zip(&later[1..]).map(|(other, later)| first.same(other, *later)).collect();
    // Of each, the same of all ranks.
    let found = first.works.iter().enumerate().filter(|(_, (_, own))| is_common(own)).filter_map(|(number, own)| {
        std::iter::once(Some(*own)).chain(same.iter().map(|same| same[number])).collect::<Option<Vec<_>>>()
    });
    let found: Vec<Vec<(usize, &RecordedWork)>> = found.collect();
    let common = first.works.iter().filter(|(_, own)| is_common(own)).count();
    if found.len() < FEWEST || found.len() * 10 < common * 9 {
        let of = counted(common as u64, "collective");
        return Err(format!("of {of} at the same time, {} end together by any clock", found.len()));
    }
    let mut collectives = Vec::new();
    for (number, same) in found.iter().enumerate() {
        let around = &found[number.saturating_sub(AROUND)..found.len().min(number + AROUND + 1)];
        let arrived = same.iter().enumerate().map(|(rank, (_, work))| {
            let apart = around.iter().map(|same| same[rank].1.end as i64 - same[0].1.end as i64);
            work.start as i64 - median(apart.collect())
        });
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
        let arrived = same.iter().map(|(_, work)| work.start).collect();
        collectives.push(Collective { last: ranks[last].process, arrived, waited });
    }
    Ok(Job { ranks: ranks.iter().map(|rank| rank.process).collect(), collectives })
}

fn median(mut values: Vec<i64>) -> i64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
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
    let by_iteration = is_by_iteration(reports);
    let is_told = |rank: usize| !reports[rank].devices.is_empty() && (!by_iteration || reports[rank].steady.is_some());
    // In the steady states of all: one may begin later than another.
    let is_within = |of: &&Collective| {
        let mut told = ranks.iter().zip(&of.arrived).filter(|(rank, _)| is_told(**rank));
        told.all(|(rank, at)| windows.get(*rank).is_some_and(|(from, to)| (*from..*to).contains(at)))
    };
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
    let others = || ranks.iter().copied().filter(|rank| *rank != late && is_told(*rank));
    let time: u64 = others().map(|rank| reports[rank].wall_ns * reports[rank].devices.len() as u64).sum();
    let lost: u64 = others().map(|rank| lost_by(&own_name, &reports[rank], &idle[rank])).sum();
    let lost = lost as f64 / time.max(1) as f64;
    if worst * PARTS < count * MOST || lost < LEAST || !is_told(late) {
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
    let own = idle[late].iter().filter(|place| place.cause != IdleCause::Rank);
    let more = own.map(|place| (idle_at(late, place) - mean(&|rank| idle_at(rank, place)), Some(place)));
    let busy =
        |rank: usize| each(rank, reports[rank].devices.iter().map(|device| device.kernels_ns + device.copies_ns).sum());
    let more: Vec<(f64, Option<&IdlePlace>)> = more.chain([(busy(late) - mean(&busy), None)]).collect();
    let all_more: f64 = more.iter().map(|(more, _)| more.max(0.0)).sum();
    let (more, place) = more.into_iter().max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    let is_known =
        |place: &IdlePlace| place.cause != IdleCause::Unknown || recording.processes[late].samples.is_empty();
    if more <= 0.0 || more < EXPLAINS * all_more || !place.is_none_or(is_known) {
        return None;
    }
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
