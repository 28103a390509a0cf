//! Other programs' traces: those of PyTorch's profiler and of others like it, and syncscope's own, all in Chrome's trace format.
//! What the profilers' events say is read by `kineto`, and exports of Nsight Systems by `nsys`.
//!
//! # Limits
//! A trace may be anybody's: it is read up to [`MAX_BYTES`], and numbers that no clock has are passed over. A trace has no stacks
//! unless the profiler was asked for them (`with_stack=True`), and these tell functions, no lines. It does not name the memory of
//! a call, but that of its copy.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader, Read};
use std::ops::RangeInclusive;
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use super::chrome::{Category, Trace};
use super::lanes::THREAD;
use super::ranks;
use super::recording::{Process, ProgramRecording, RecordedWork};
use super::report::AuditReport;
use super::{kineto, own};
use crate::device::kind::{Kind, SyncKind};
use crate::timeline::Span;
use crate::units::counted;
use syncscope_present::FileError;

/// The most bytes of a trace, which is not held in memory; and of an export of Nsight Systems, which is.
const MAX_BYTES: u64 = 1 << 36;
const MAX_EXPORT: u64 = 1 << 30;
/// The most processes, streams, devices and open Python functions of a trace: none has so many, each process is a part of the
/// report, and the others are looked at for each call.
const MAX_PROCESSES: usize = 4096;
const MAX_STREAMS: usize = 4096;
const MAX_DEVICES: usize = 64;
pub(super) const MAX_DEEP: usize = 256;
/// What a file of SQLite begins with, and what gzip packed.
const SQLITE: &[u8] = b"SQLite format 3\0";
const PACKED: [u8; 2] = [0x1f, 0x8b];
/// The number of work of which it is not known when it was enqueued: behind all calls, so that none is said to wait for it.
pub(super) const UNKNOWN: u64 = u64::MAX;

/// For how long a program may do nothing, in nanoseconds: a day.
const QUIET: i64 = 86_400_000_000_000;

/// The times that a recording may have, by when what it holds began: what lies farther from most of it has a time of no clock.
pub(super) fn plausible(mut starts: Vec<i64>) -> RangeInclusive<i64> {
    starts.sort_unstable();
    let groups = starts.chunk_by(|one, next| next.saturating_sub(*one) <= QUIET);
    match groups.max_by_key(|group| group.len()) {
        Some([first, .., last]) | Some([first @ last]) => *first..=last.saturating_add(QUIET),
        _ => 0..=0,
    }
}

/// What is said of what has no such time.
pub(super) fn far(count: usize, noun: &str) -> Option<String> {
    (count > 0)
        .then(|| format!("left out, since more than a day lies between them and the others: {}", counted(count, noun)))
}

/// Reads traces, which may be packed; several are of the processes of one job, each with a clock of its own.
///
/// # Errors
/// A file cannot be read, is no trace, or holds a recording that another one holds, too.
pub fn read(paths: &[impl AsRef<Path>]) -> Result<ProgramRecording, FileError> {
    let mut all = Vec::new();
    for path in paths {
        let path = path.as_ref();
        let file = File::open(path).map_err(|cause| FileError::Io { path: path.to_owned(), cause })?;
        all.push(of_reader(BufReader::with_capacity(1 << 20, file), &path.display().to_string())?);
    }
    refuse_twice(&all, paths)?;
    let mut job = match &mut *all {
        [(alone, _)] => std::mem::take(alone),
        _ => joined(all, paths),
    };
    ranks::align(&mut job);
    Ok(job)
}

/// Refuses a recording that two files hold, whatever their names and however they are packed: it is no other rank's.
fn refuse_twice(all: &[(ProgramRecording, Option<u32>)], paths: &[impl AsRef<Path>]) -> Result<(), FileError> {
    let mut known = HashMap::new();
    for (place, (recording, rank)) in all.iter().enumerate() {
        for process in &recording.processes {
            // No two processes have one number and did all at the same nanoseconds.
            let mut times = DefaultHasher::new();
            process.calls.iter().for_each(|call| (call.enter, call.exit).hash(&mut times));
            process.work.iter().for_each(|work| (work.start, work.end).hash(&mut times));
            let key = (*rank, process.number, process.calls.len(), process.work.len(), times.finish());
            let first = *known.entry(key).or_insert(place);
            if first != place && process.wall_ns() > 0 {
                let [path, first] = [place, first].map(|place| paths[place].as_ref().display().to_string());
                return Err(FileError::whole(path, format!("it holds a recording that {first} holds, too")));
            }
        }
    }
    Ok(())
}

/// The recordings of several files, each with its rank where it says one, as those of one job.
fn joined(all: Vec<(ProgramRecording, Option<u32>)>, paths: &[impl AsRef<Path>]) -> ProgramRecording {
    let mut stated = HashSet::new();
    let is_ranked = all.iter().all(|(_, rank)| rank.is_some_and(|rank| stated.insert(rank)));
    let mut job = ProgramRecording::default();
    for (place, ((recording, rank), path)) in all.into_iter().zip(paths).enumerate() {
        let ProgramRecording { source, mut processes, missing, warnings, .. } = recording;
        let rank = rank.filter(|_| is_ranked).unwrap_or(place as u32);
        processes.iter_mut().for_each(|process| process.rank = Some(rank));
        job.source = source;
        job.processes.extend(processes);
        let of_file = |text: String| format!("{}: {text}", path.as_ref().display());
        job.missing.extend(missing.into_iter().map(of_file));
        job.warnings.extend(warnings.into_iter().map(of_file));
    }
    job.processes.sort_by_key(|process| process.rank);
    job
}

impl AuditReport {
    /// The audit of a trace of PyTorch's profiler or of this library, or of an export of Nsight Systems (feature `nsys`), from
    /// what the file holds. `origin` names the file in messages.
    ///
    /// # Errors
    /// It is no such file, lacks what the audit needs, or holds more than any has; the message says where.
    pub fn of_trace(trace: impl AsRef<[u8]>, origin: &str) -> Result<Self, FileError> {
        Ok(Self::of(&of_reader(trace.as_ref(), origin)?.0, origin, None).0)
    }
}

/// The recording of a trace, and its rank where it says one.
fn of_reader(from: impl BufRead, origin: &str) -> Result<(ProgramRecording, Option<u32>), FileError> {
    if origin.ends_with(".nsys-rep") || origin.ends_with(".qdrep") {
        let reason = "a report of nsys is read as `nsys export --type sqlite` writes it (feature `nsys`)";
        return Err(FileError::whole(origin, reason));
    }
    let mut from: Box<dyn BufRead + '_> = Box::new(from);
    let failed = |error: std::io::Error| FileError::whole(origin, error.to_string());
    if from.fill_buf().map_err(failed)?.starts_with(&PACKED) {
        from = Box::new(BufReader::new(MultiGzDecoder::new(from)));
    }
    if from.fill_buf().map_err(failed)?.starts_with(SQLITE) {
        let mut bytes = Vec::new();
        from.take(MAX_EXPORT + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > MAX_EXPORT {
            return Err(FileError::whole(origin, "longer than 1024 MB, the most that is read of an export"));
        }
        return Ok((of_export(&bytes, origin)?, None));
    }
    let trace = Trace::read(from.take(MAX_BYTES));
    let trace = trace.map_err(|message| FileError::whole(origin, format!("no Chrome trace: {message}")))?;
    let rank = trace.rank;
    Ok((within(recording(trace), origin)?, rank))
}

#[cfg(not(feature = "nsys"))]
fn of_export(_: &[u8], origin: &str) -> Result<ProgramRecording, FileError> {
    let reason = "exports of nsys are not read by this build: build it with `--features nsys`, or take a trace of PyTorch's \
                  profiler (export_chrome_trace), or one that an audit wrote (`audit --trace`)";
    Err(FileError::whole(origin, reason))
}

#[cfg(feature = "nsys")]
fn of_export(bytes: &[u8], origin: &str) -> Result<ProgramRecording, FileError> {
    within(super::nsys::recording(bytes).map_err(|message| FileError::whole(origin, message))?, origin)
}

/// A recording that has no more processes, streams and devices than any.
fn within(recording: ProgramRecording, origin: &str) -> Result<ProgramRecording, FileError> {
    let count = |of: fn(&RecordedWork) -> (u32, u32)| {
        let all = recording.processes.iter().flat_map(|process| &process.work);
        all.map(of).collect::<HashSet<(u32, u32)>>().len()
    };
    let counts = [
        (recording.processes.len(), MAX_PROCESSES, "processes"),
        (count(|work| (work.context, work.stream)), MAX_STREAMS, "streams"),
        (count(|work| (work.device, 0)), MAX_DEVICES, "devices"),
    ];
    match counts.into_iter().find(|(count, most, _)| count > most) {
        Some((_, most, what)) => {
            Err(FileError::whole(origin, format!("it has more than {most} {what}, the most that are read")))
        }
        None => Ok(recording),
    }
}

fn recording(mut trace: Trace) -> ProgramRecording {
    let mut recording = ProgramRecording {
        missing: std::mem::take(&mut trace.missing),
        warnings: std::mem::take(&mut trace.warnings),
        ..ProgramRecording::default()
    };
    let own = trace.other.as_ref().and_then(|other| other.get("timelines"));
    if let Some(timelines) = own {
        "a trace of syncscope".clone_into(&mut recording.source);
        recording.processes = own_processes(&trace, timelines);
    } else {
        let is_hip = trace.events.iter().any(|event| event.category == Category::Call && event.name.starts_with("hip"));
        let has_awaited = trace.events.iter().any(|event| event.category == Category::Awaited);
        let system = if is_hip { " of ROCm, which does not tell pageable from page-locked memory" } else { "" };
        let lacking = if has_awaited { "" } else { "which stream or event a call waits for, and " };
        recording.source = format!("a profiler's trace{system}. It lacks {lacking}calls that the profiler leaves out");
        kineto::add(trace, &mut recording);
    }
    let without_work = recording.processes.iter().find_map(Process::without_work);
    recording.missing.extend(without_work.map(str::to_owned));
    let works = recording.processes.iter().flat_map(|process| &process.work);
    let unknown = works.filter(|work| work.correlation == UNKNOWN).count();
    let nameless = || format!("events of work that do not name their call: {unknown}. No wait for them is found");
    recording.missing.extend((unknown > 0).then(nameless));
    recording.say_what_lacks("trace", "with_stack=True");
    recording
}

/// The processes of a trace of this library: each timeline has two of the format, its host and its device.
fn own_processes(trace: &Trace, timelines: &serde_json::Value) -> Vec<Process> {
    const SYNCS: [SyncKind; 4] = [SyncKind::Stream, SyncKind::Event, SyncKind::Device, SyncKind::Implicit];
    let numbered =
        trace.named.iter().filter_map(|(track, name)| Some((*track, name.rsplit_once(THREAD)?.1.parse().ok()?)));
    let mut threads: HashMap<u32, usize> = numbered.collect();
    let first = trace.events.iter().map(|event| event.start).min().unwrap_or(0);
    let mut all: BTreeMap<u64, Vec<Span>> = BTreeMap::new();
    for event in &trace.events {
        let kind = match event.category {
            Category::Kernel => Kind::Kernel,
            Category::Own(kind) => kind,
            _ => continue,
        };
        let next = threads.len();
        let track = *threads.entry(event.track).or_insert(next);
        let told = event.more.as_deref().cloned().unwrap_or_default();
        let process: u64 = trace.processes[trace.tracks[event.track as usize].0 as usize].parse().unwrap_or(0);
        all.entry(process.div_ceil(2)).or_default().push(Span {
            track,
            name: event.name.to_string(),
            start_ns: (event.start - first) as u64,
            end_ns: (event.end - first) as u64,
            kind,
            stream: event.stream,
            bytes: Some(event.bytes).filter(|bytes| *bytes > 0),
            correlation: event.correlation,
            sync: SYNCS.into_iter().find(|own| own.to_string() == told.sync),
            awaits: told.awaits,
            site: Some(told.site).filter(|site| !site.is_empty()),
            detail: None,
        });
    }
    let settled = all.into_iter().map(|(number, spans)| {
        let timeline = usize::try_from(number.saturating_sub(1)).ok().and_then(|place| timelines.get(place));
        let device = timeline.and_then(|timeline| timeline.get("device")?.as_str()).unwrap_or_default();
        Process { number: number as u32, ..own::process(device, &spans) }
    });
    settled.collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
