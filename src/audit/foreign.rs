//! Other programs' traces: the trace of PyTorch's profiler and syncscope's own, both in Chrome's trace format. What the
//! profiler's events say is read by `kineto`, and exports of Nsight Systems by `nsys`.
//!
//! # Limits
//! A trace may be anybody's: it is read up to [`MAX_BYTES`], and numbers that no clock has are passed over. Times of a day's
//! clock in microseconds are rounded to 0.25 µs by the format's numbers. A trace has no stacks unless the profiler was asked for
//! them (`with_stack=True`). It does not name the memory of a call, but that of its copy.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::chrome::{Event, KINDS, NAME_OF_THREAD, Trace};
use super::lanes::THREAD;
use super::recording::{Process, ProgramRecording, RecordedWork};
use super::report::AuditReport;
use super::{kineto, own};
use crate::device::kind::SyncKind;
use crate::timeline::Span;
use syncscope_present::FileError;

/// The most bytes of a trace.
pub const MAX_BYTES: usize = 1 << 30;
/// The most processes, streams, devices and open Python functions of a trace: none has so many, each process is a part of the
/// report, and the others are looked at for each call.
const MAX_PROCESSES: usize = 4096;
const MAX_STREAMS: usize = 4096;
const MAX_DEVICES: usize = 64;
pub(super) const MAX_DEEP: usize = 256;
/// What each SQLite file begins with.
const SQLITE: &[u8] = b"SQLite format 3\0";
/// The number of work of which it is not known when it was enqueued: behind all calls, so that none is said to wait for it.
pub(super) const UNKNOWN: u64 = u64::MAX;

/// Reads what a file of this name holds.
///
/// # Errors
/// It is no trace.
pub fn of_bytes(bytes: Vec<u8>, origin: &str) -> Result<ProgramRecording, FileError> {
    if origin.ends_with(".nsys-rep") || origin.ends_with(".qdrep") {
        return Err(FileError::whole(
            origin,
            "a report of nsys is read as `nsys export --type sqlite` writes it (feature `nsys`)",
        ));
    }
    if bytes.starts_with(SQLITE) {
        return of_export(&bytes, origin);
    }
    let text = String::from_utf8(bytes).map_err(|_| FileError::whole(origin, "stream did not contain valid UTF-8"))?;
    parse(&text, origin)
}

#[cfg(not(feature = "nsys"))]
fn of_export(_: &[u8], origin: &str) -> Result<ProgramRecording, FileError> {
    Err(FileError::whole(
        origin,
        "exports of nsys are not read by this build: build it with `--features nsys`, or take a trace of PyTorch's profiler \
         (export_chrome_trace), or one that an audit wrote (`audit --trace`)",
    ))
}

#[cfg(feature = "nsys")]
fn of_export(bytes: &[u8], origin: &str) -> Result<ProgramRecording, FileError> {
    within(super::nsys::recording(bytes).map_err(|message| FileError::whole(origin, message))?, origin)
}

impl AuditReport {
    /// The audit of a trace of PyTorch's profiler or of this library, or of an export of Nsight Systems (feature `nsys`), from
    /// what the file holds. `origin` names the file in messages.
    ///
    /// # Errors
    /// It is no such file, lacks what the audit needs, or holds more than any has; the message says where.
    pub fn of_trace(trace: impl AsRef<[u8]>, origin: &str) -> Result<Self, FileError> {
        Ok(Self::of(&of_bytes(trace.as_ref().to_vec(), origin)?, origin).0)
    }
}

fn parse(text: &str, origin: &str) -> Result<ProgramRecording, FileError> {
    let trace = Trace::parse(text).map_err(|error| FileError::json(origin, "Chrome trace", &error))?;
    within(recording(trace), origin)
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

fn recording(trace: Trace<'_>) -> ProgramRecording {
    let (events, untimed): (Vec<&Event<'_>>, Vec<&Event<'_>>) =
        trace.events.iter().filter(|event| event.ph == "X").partition(|event| event.is_timed());
    let first = events.iter().filter_map(|event| event.ts).fold(f64::INFINITY, f64::min);
    let other = trace.other();
    let own = other.as_ref().and_then(|other| other.get("timelines"));
    let (source, (processes, homeless)) = match own {
        Some(timelines) => ("a trace of syncscope", (own_processes(&trace.events, &events, first, timelines), 0)),
        None => (
            "a trace of PyTorch's profiler. Which stream an event was recorded on is not in it, nor are calls that the \
             profiler leaves out",
            kineto::read(&events, first),
        ),
    };
    let mut missing = Vec::new();
    if !untimed.is_empty() {
        missing.push(format!("{} of its events have no time that can be read, and are left out", untimed.len()));
    }
    missing.extend(processes.iter().find_map(Process::without_work).map(str::to_owned));
    let works = processes.iter().flat_map(|process| &process.work);
    let unknown = works.filter(|work| work.correlation == UNKNOWN).count();
    if unknown > 0 {
        missing.push(format!("events of work that do not name their call: {unknown}. No wait for them is found"));
    }
    if homeless > 0 {
        missing.push(format!(
            "events of work whose calls several of its processes may have made: {homeless}. They are left out; read the trace of \
             each process by itself"
        ));
    }
    let mut recording =
        ProgramRecording { source: source.to_owned(), processes, missing, ..ProgramRecording::default() };
    recording.say_what_lacks("trace", "with_stack=True");
    recording
}

/// The processes of a trace of this library: each timeline has two of the format, its host and its device.
fn own_processes(all: &[Event<'_>], events: &[&Event<'_>], first: f64, timelines: &serde_json::Value) -> Vec<Process> {
    const SYNCS: [SyncKind; 4] = [SyncKind::Stream, SyncKind::Event, SyncKind::Device, SyncKind::Implicit];
    let named = all.iter().filter(|event| event.ph == "M" && event.name == NAME_OF_THREAD);
    let numbered =
        named.filter_map(|event| Some((event.track(), event.args.name.text().rsplit_once(THREAD)?.1.parse().ok()?)));
    let mut threads: HashMap<_, usize> = numbered.collect();
    let mut all: BTreeMap<u64, Vec<Span>> = BTreeMap::new();
    for event in events {
        let Some(kind) = KINDS.into_iter().find(|kind| kind.name() == event.cat) else { continue };
        let next = threads.len();
        let track = *threads.entry(event.track()).or_insert(next);
        let (start_ns, end_ns) = event.times(first);
        let (site, sync) = (event.args.site.text(), event.args.sync.text());
        all.entry(event.pid.number().unwrap_or(0).div_ceil(2)).or_default().push(Span {
            track,
            name: event.name.clone().into_owned(),
            start_ns,
            end_ns,
            kind,
            stream: event.args.stream.small(),
            bytes: event.args.bytes.number(),
            correlation: event.args.correlation.number(),
            sync: SYNCS.into_iter().find(|own| own.to_string() == sync),
            awaits: event.args.awaits.number(),
            site: Some(site.into_owned()).filter(|site| !site.is_empty()),
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
