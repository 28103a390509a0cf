//! What an audit says, as it is kept (`--json`): its schema is that of `report schema audit`.

use std::path::Path;

use super::class::{Activity, Class};
use super::evidence::{CallJudgement, judge};
use super::idle::{self, IdleCause, IdlePlace};
use super::iterations::{self, SteadyState};
use super::lanes;
use super::places::{self, WaitPlace, is_zero};
use super::ranks::{self, LateRank};
use super::recording::{Process, ProgramRecording};
use super::replay;
use super::shares::{self, ShareSegment};
use super::steps::Step;
use crate::timeline::Timeline;
use crate::units::counted;

/// The version of this format.
pub(crate) const FORMAT: u32 = 1;
/// How many spans the time around the longest wait has at most.
const SPANS: usize = 400;
/// How many times as long as those of another the iterations of a process take at most that are like them.
const ALIKE: f64 = 1.1;

/// Where a program waited for its devices. Times are nanoseconds.
///
/// ```
/// # {
/// use syncscope_audit::AuditReport;
///
/// let text = r#"{"format": 1, "source": "a test", "command": "train", "places": [], "processes": [], "warnings": []}"#;
/// let report = AuditReport::parse(text, "audit.json")?;
/// assert!(report.to_html("").contains("No use of CUDA was recorded"));
/// # }
/// # Ok::<(), syncscope_present::FileError>(())
/// ```
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuditReport {
    /// The version of this format.
    pub format: u32,
    /// Where the times come from, and what that source cannot tell.
    pub source: String,
    /// The command, or the file that was read.
    pub command: String,
    /// The lines at which devices were idle in the steady state, or in the whole where there is none; the longest first.
    #[serde(default)]
    pub idle: Vec<IdlePlace>,
    /// The rank that the others of the job wait for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<LateRank>,
    /// The places in the program that lose time, the most in the steady state first.
    pub places: Vec<WaitPlace>,
    /// Each process that used CUDA.
    pub processes: Vec<ProcessReport>,
    /// What is missing or doubtful.
    pub warnings: Vec<String>,
    /// An iteration of the steady state, of median length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<Timeline>,
    /// The time around the longest wait of all; none where nothing waited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_wait: Option<Timeline>,
}

/// What one process did.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProcessReport {
    /// Its number.
    pub process: u32,
    /// Its parent's number.
    pub parent: u32,
    /// Its number among the processes of a job, where several files were read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// Its command line.
    pub command: String,
    /// How long the part was that the shares are of: the steady state, or the whole where there is none.
    pub wall_ns: u64,
    /// How long it was recorded.
    #[serde(default)]
    pub recorded_ns: u64,
    /// Its iterations, where it has such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady: Option<SteadyReport>,
    /// Whether it ended by itself, so that all records are there.
    pub complete: bool,
    /// How many calls were watched.
    pub calls: u64,
    /// What the thread did that spent most time in calls; the times add up to `wall_ns`.
    pub host: Vec<HostShare>,
    /// What each device did for this process.
    pub devices: Vec<DeviceReport>,
    /// What the audit itself cost, where the source measures it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overhead: Option<OverheadReport>,
}

/// The steady state of a process: iterations that are alike.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SteadyReport {
    /// What the iterations were known by.
    pub by: String,
    /// How many there are in it.
    pub iterations: u64,
    /// How long the start-up before it took.
    pub start_up_ns: u64,
}

/// A part of a host's time.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostShare {
    /// What it did.
    pub doing: Activity,
    /// How long.
    pub ns: u64,
}

/// What a device did; `kernels_ns`, `copies_ns` and `idle` add up to the process's `wall_ns`.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeviceReport {
    /// Its number.
    pub device: u32,
    /// At least one kernel ran.
    pub kernels_ns: u64,
    /// No kernel ran, and at least one copy or fill did.
    pub copies_ns: u64,
    /// It had nothing to do, by what the host did meanwhile.
    pub idle: Vec<HostShare>,
}

/// What the audit itself cost a process, measured in that process.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OverheadReport {
    /// How many calls the injected library was called for.
    pub calls: u64,
    /// How long it took in them: reading the clock, taking stacks, writing. CUPTI's own cost comes on top.
    pub own_ns: u64,
    /// Its share of the wall time.
    pub share: f64,
    /// How many stacks could not be taken in time; the calls have no place.
    pub missed_stacks: u64,
    /// How long it took to begin in the middle of the program, whose calls may have waited for that.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub begin_ns: u64,
}

/// A call with its judgement, for those who look at each.
#[derive(Clone, Debug)]
pub struct JudgedCalls {
    pub(crate) judgements: Vec<CallJudgement>,
    /// When each device was idle.
    pub(crate) gaps: Vec<Vec<(u64, u64)>>,
    pub(crate) steady: Option<SteadyState>,
}

/// A place whose file is named without ways back: `a/../b.py:1` is `b.py:1`.
fn without_detours(place: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in place.split('/') {
        match parts.last() {
            Some(last) if part == ".." && !matches!(*last, "" | "..") && !last.contains(' ') => _ = parts.pop(),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

impl AuditReport {
    /// The same, with files named as they are from a folder.
    pub fn seen_from(&self, folder: &Path) -> Self {
        let mut seen = self.clone();
        let folder = format!("{}/", folder.display());
        let idle = seen.idle.iter_mut().flat_map(|own| [&mut own.place, &mut own.behind]);
        let waits = seen.places.iter_mut().map(|own| &mut own.place);
        let late = seen.late.iter_mut().map(|own| &mut own.place);
        idle.chain(waits).chain(late).for_each(|place| *place = without_detours(place).replace(&folder, ""));
        seen
    }

    /// The report of a recording, whose iterations are the steps that are stated, or else are looked for.
    pub fn of(recording: &ProgramRecording, command: &str, step: Option<&Step>) -> (Self, Vec<JudgedCalls>) {
        let mut judged = Vec::new();
        let mut processes = Vec::new();
        let mut idle = Vec::new();
        let mut windows = Vec::new();
        for process in &recording.processes {
            let judgements = judge(process);
            let steady = iterations::steady(process, &judgements, step);
            let window = steady.as_ref().map_or((process.start, process.end), |steady| steady.window);
            let host = shares::host(process, &judgements, shares::main_thread(process), window);
            let (devices, gaps): (Vec<DeviceReport>, Vec<_>) =
                shares::devices(process, &host, window).into_iter().unzip();
            let of_devices =
                devices.iter().zip(&gaps).map(|(device, gaps)| (device.device, inner(process, device.device, gaps)));
            let of_devices: Vec<_> = of_devices.collect();
            let iterations = steady.as_ref().map_or(0, SteadyState::iterations);
            let mut places = idle::of(process, &judgements, &of_devices, iterations);
            if let Some(steady) = &steady {
                replay::without(process, &judgements, steady, &mut places);
            }
            idle.push(places);
            windows.push(window);
            processes.push(process_report(process, (host, window), devices, steady.as_ref()));
            judged.push(JudgedCalls { judgements, gaps, steady });
        }
        let mut warnings = [recording.missing.clone(), recording.warnings.clone()].concat();
        let missed: u64 = processes.iter().filter_map(|process| Some(process.overhead.as_ref()?.missed_stacks)).sum();
        if missed > 0 {
            let calls = counted(missed, "call");
            warnings.push(format!("{calls} without a place: another thread held the interpreter's lock too long"));
        }
        let places = places::of(recording, &judged);
        let (source, command) = (recording.source.clone(), command.to_owned());
        let iteration = usual_iteration(recording, &judged);
        let longest_wait = longest_wait(recording, &judged).filter(|_| iteration.is_none());
        if is_by_iteration(&processes) {
            // What is idle in an iteration is not known of a process that has none.
            let others = processes.iter().zip(&mut idle).filter(|(process, _)| process.steady.is_none());
            let without = others.filter(|(_, places)| !places.is_empty()).map(|(_, places)| places.clear()).count();
            if without > 0 {
                let of = super::tables::of_processes(without);
                warnings.push(format!("{of} without iterations: no part in the idle time of an iteration"));
            }
        }
        let late = ranks::late(recording, &windows, &judged, &processes, &idle);
        if late.is_none() {
            // Of ranks that are late by turns, none is named.
            let of_ranks = idle.iter_mut().flatten().filter(|place| place.cause == IdleCause::Rank);
            of_ranks.for_each(|place| place.place.clear());
        }
        let idle = idle::merged(idle);
        (
            Self { format: FORMAT, source, command, idle, late, places, processes, warnings, iteration, longest_wait },
            judged,
        )
    }

    /// The processes with a steady state.
    pub(crate) fn steady(&self) -> impl Iterator<Item = (&ProcessReport, &SteadyReport)> {
        self.processes.iter().filter_map(|process| Some((process, process.steady.as_ref()?)))
    }

    /// Whether the iterations of all processes take as long, as those of the ranks of a job do: else an average of them is none of
    /// any.
    pub(crate) fn has_like_iterations(&self) -> bool {
        let each = |(process, steady): (&ProcessReport, &SteadyReport)| process.wall_ns / steady.iterations.max(1);
        let times = || self.steady().map(each);
        let (shortest, longest) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
        longest as f64 <= shortest as f64 * ALIKE
    }

    /// How many iterations all processes made in their steady states, over which an average is taken: those of each rank count.
    /// 0 where there are none, or where they are not alike.
    pub(crate) fn iterations(&self) -> u64 {
        let all = self.steady().fold(0, |sum: u64, (_, steady)| sum.saturating_add(steady.iterations));
        if self.has_like_iterations() { all } else { 0 }
    }

    /// The time of all processes together, from which shares are taken.
    pub(crate) fn wall_ns(&self) -> u64 {
        self.processes.iter().fold(0, |sum: u64, process| sum.saturating_add(process.wall_ns))
    }
}

/// Whether idle time is told of iterations: where a process with devices has some, the processes without have no part in it.
pub(crate) fn is_by_iteration(processes: &[ProcessReport]) -> bool {
    processes.iter().any(|process| process.steady.is_some() && !process.devices.is_empty())
}

/// The gaps of a device between its first work and its last.
fn inner(process: &Process, device: u32, gaps: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let own = || process.work.iter().filter(|work| work.device == device);
    let (first, last) = (own().map(|work| work.start).min(), own().map(|work| work.end).max());
    let (first, last) = (first.unwrap_or(u64::MAX), last.unwrap_or(0));
    gaps.iter().filter(|(from, to)| *from >= first && *to <= last).copied().collect()
}

/// An iteration of median length, of the process with most iterations.
fn usual_iteration(recording: &ProgramRecording, judged: &[JudgedCalls]) -> Option<Timeline> {
    let all = recording.processes.iter().zip(judged);
    let with_steady = all.filter_map(|(process, judged)| Some((process, judged, judged.steady.as_ref()?)));
    let (process, judged, steady) = with_steady.max_by_key(|(.., steady)| steady.iterations())?;
    let mut iterations: Vec<(u64, u64)> = steady.begins.windows(2).map(|pair| (pair[0], pair[1])).collect();
    iterations.sort_by_key(|(from, to)| to - from);
    let iteration = *iterations.get(iterations.len() / 2)?;
    let mut timeline = lanes::timeline(process, &judged.judgements, iteration);
    timeline.spans.truncate(SPANS);
    Some(timeline)
}

/// The time around the longest wait of all.
fn longest_wait(recording: &ProgramRecording, judged: &[JudgedCalls]) -> Option<Timeline> {
    let all = recording.processes.iter().zip(judged).flat_map(|(process, JudgedCalls { judgements, .. })| {
        let waits = process.calls.iter().zip(judgements);
        waits.map(move |(call, judgement)| (judgement.wait, call, process, judgements))
    });
    let (wait, call, process, judgements) = all.filter(|(wait, ..)| *wait > 0).max_by_key(|(wait, ..)| *wait)?;
    let from = call.enter.saturating_sub(wait / 2).max(process.start);
    let to = call.exit.saturating_add(wait / 2).min(process.end);
    let mut timeline = lanes::timeline(process, judgements, (from, to));
    timeline.spans.truncate(SPANS);
    Some(timeline)
}

fn process_report(
    process: &Process,
    (host, (from, to)): (Vec<ShareSegment>, (u64, u64)),
    devices: Vec<DeviceReport>,
    steady: Option<&SteadyState>,
) -> ProcessReport {
    let recorded_ns = process.wall_ns();
    let overhead = process.overhead.clone().filter(|overhead| overhead.calls > 0);
    let share = |overhead: &OverheadReport| overhead.own_ns as f64 / recorded_ns.max(1) as f64;
    let overhead = overhead.map(|overhead| OverheadReport { share: share(&overhead), ..overhead });
    ProcessReport {
        process: process.number,
        parent: process.parent,
        rank: process.rank,
        command: process.command.clone(),
        wall_ns: to.saturating_sub(from),
        recorded_ns,
        steady: steady.map(|steady| SteadyReport {
            by: steady.by.clone(),
            iterations: steady.iterations(),
            start_up_ns: from.saturating_sub(process.start),
        }),
        complete: process.complete,
        calls: process.calls.iter().filter(|call| call.class != Class::Record).count() as u64,
        host: shares::sums(host),
        devices,
        overhead,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_as_they_are_from_a_folder_and_without_ways_back() {
        let report = r#"{"format": 1, "source": "a test", "command": "train", "places": [], "processes": [], "warnings": [],
            "idle": [{"place": "/home/me/run/../train.py:3", "cause": "wait", "behind": "step, /home/me/a b/c.py, from line 31",
            "idle_ns": 1}]}"#;
        let report: AuditReport = serde_json::from_str(report).unwrap();
        let seen = report.seen_from(Path::new("/home/me"));
        assert_eq!((&*seen.idle[0].place, &*seen.idle[0].behind), ("train.py:3", "step, a b/c.py, from line 31"));
        for (place, named) in [
            ("../x.py:1", "../x.py:1"),
            ("a/b/../../x.py:1", "x.py:1"),
            ("f, a/../x.py", "f, a/../x.py"),
            ("/../x.py:1", "/../x.py:1"),
        ] {
            assert_eq!(without_detours(place), named);
        }
    }
}
