//! Other programs' traces: the trace of PyTorch's profiler (Kineto) and syncscope's own, both in Chrome's trace format.
//! Exports of Nsight Systems are told apart here, and read by `nsys`.
//!
//! Source: *Trace Event Format*, the document of the Chromium project; the names and arguments of Kineto's
//! `output_json.cpp`.
//!
//! # Limits
//! A trace may be anybody's: it is read up to [`MOST_BYTES`] and [`MOST_EVENTS`], and numbers that no clock has are passed over.
//! Times of a day's clock in microseconds are rounded to 0.25 µs by the format's numbers. A trace has no stacks unless the
//! profiler was asked for them (`with_stack=True`). It does not name the memory of a call, but that of its copy.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use serde::Deserialize;

use super::class::Class;
use super::lanes::THREAD;
use super::own;
use super::recording::{Frame, Process, ProgramRecording, Range, RecordedCall, RecordedWork, WorkKind};
use super::report::AuditReport;
use crate::device::kind::{Kind, SyncKind};
use crate::error::FileError;
use crate::files::{read_packed, text_of};
use crate::timeline::Span;

const MOST_BYTES: usize = 1 << 30;
pub(super) const MOST_EVENTS: usize = 20_000_000;
/// The most streams, devices and open Python functions of a trace: none has so many, and each is looked at for each call.
const MOST_STREAMS: usize = 4096;
const MOST_DEVICES: usize = 64;
pub(super) const MOST_DEEP: usize = 256;
/// What each SQLite file begins with.
const SQLITE: &[u8] = b"SQLite format 3\0";
/// The longest time that an event may have, in microseconds: a year. And the farthest from zero.
const YEAR: f64 = 3.2e13;
const FARTHEST: f64 = 4e15;
/// The number of work of which it is not known when it was enqueued: behind all calls, so that none is said to wait for it.
const UNKNOWN: u64 = u64::MAX;

#[derive(Deserialize)]
struct Trace {
    #[serde(rename = "traceEvents")]
    events: Vec<Event>,
    #[serde(rename = "otherData")]
    other: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Event {
    #[serde(default)]
    ph: String,
    #[serde(default)]
    cat: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    pid: serde_json::Value,
    #[serde(default)]
    tid: serde_json::Value,
    ts: Option<f64>,
    dur: Option<f64>,
    #[serde(default)]
    args: serde_json::Map<String, serde_json::Value>,
}

impl Event {
    fn number(&self, names: &[&str]) -> Option<u64> {
        names.iter().find_map(|name| self.args.get(*name)?.as_u64())
    }

    /// The process and the thread.
    fn track(&self) -> String {
        format!("{} {}", self.pid, self.tid)
    }

    fn text(&self, name: &str) -> &str {
        self.args.get(name).and_then(|value| value.as_str()).unwrap_or_default()
    }

    fn small(&self, name: &str) -> Option<u32> {
        self.number(&[name]).and_then(|number| u32::try_from(number).ok())
    }
}

/// Reads a trace.
///
/// # Errors
/// It cannot be read, is too long, or is no such trace.
pub(crate) fn read(path: &Path) -> Result<ProgramRecording, FileError> {
    let origin = path.display().to_string();
    let io = |source| FileError::Io { path: path.to_owned(), source };
    if path.extension().is_some_and(|ending| ending == "nsys-rep" || ending == "qdrep") {
        return Err(FileError::whole(
            origin,
            "a report of nsys is read as `nsys export --type sqlite` writes it (feature `nsys`)",
        ));
    }
    // The profiler packs a trace whose name ends so.
    let bytes = read_packed(path, MOST_BYTES).map_err(io)?;
    if bytes.starts_with(SQLITE) {
        return of_export(&bytes, &origin);
    }
    parse(&text_of(bytes).map_err(io)?, &origin)
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
    /// The audit of a trace of PyTorch's profiler or of this library, from its JSON. `origin` names the file in messages.
    ///
    /// # Errors
    /// The text is no such trace, or holds more than any has; the message says where.
    pub fn of_trace(text: &str, origin: &str) -> Result<Self, FileError> {
        Ok(Self::of(&parse(text, origin)?, origin).0)
    }

    /// The audit of an export of Nsight Systems, from what the file holds. `origin` names the file in messages.
    ///
    /// # Errors
    /// It is no such export, lacks what the audit needs, or holds more than any has; the message says which.
    #[cfg(feature = "nsys")]
    pub fn of_nsys(export: &[u8], origin: &str) -> Result<Self, FileError> {
        Ok(Self::of(&of_export(export, origin)?, origin).0)
    }
}

fn parse(text: &str, origin: &str) -> Result<ProgramRecording, FileError> {
    // The format's other form is the list of events alone.
    let trace = match text.trim_start().starts_with('[') {
        true => serde_json::from_str(text).map(|events| Trace { events, other: None }),
        false => serde_json::from_str(text),
    };
    let trace = trace.map_err(|error| FileError::json(origin, "Chrome trace", &error))?;
    if trace.events.len() > MOST_EVENTS {
        return Err(FileError::whole(origin, format!("it has more than {MOST_EVENTS} events, the most that are read")));
    }
    within(recording(trace), origin)
}

/// A recording that has no more streams and devices than any.
fn within(recording: ProgramRecording, origin: &str) -> Result<ProgramRecording, FileError> {
    let count = |of: fn(&RecordedWork) -> (u32, u32)| {
        let all = recording.processes.iter().flat_map(|process| &process.work);
        all.map(of).collect::<HashSet<(u32, u32)>>().len()
    };
    if count(|work| (work.context, work.stream)) > MOST_STREAMS || count(|work| (work.device, 0)) > MOST_DEVICES {
        let message =
            format!("it has more than {MOST_STREAMS} streams or {MOST_DEVICES} devices, the most that are read");
        return Err(FileError::whole(origin, message));
    }
    Ok(recording)
}

fn recording(trace: Trace) -> ProgramRecording {
    let is_timed = |event: &&Event| {
        let in_range = |time: f64| time.abs() < FARTHEST;
        event.ts.is_some_and(in_range) && event.dur.is_none_or(|time| time < YEAR)
    };
    let (events, untimed): (Vec<&Event>, Vec<&Event>) =
        trace.events.iter().filter(|event| event.ph == "X").partition(is_timed);
    let first = events.iter().filter_map(|event| event.ts).fold(f64::INFINITY, f64::min);
    let own = trace.other.as_ref().and_then(|other| other.get("timelines"));
    let (source, processes) = match own {
        Some(timelines) => ("a trace of syncscope", own_processes(&trace.events, &events, first, timelines)),
        None => (
            "a trace of PyTorch's profiler. Which stream an event was recorded on is not in it, nor are calls that the \
             profiler leaves out",
            (!events.is_empty()).then(|| kineto(&events, first)).into_iter().collect(),
        ),
    };
    let (has_calls, has_stacks) = (
        processes.iter().any(|process| !process.calls.is_empty()),
        processes.iter().any(|process| !process.stacks.is_empty()),
    );
    let (mut missing, mut warnings) = (Vec::new(), Vec::new());
    if !untimed.is_empty() {
        missing.push(format!("{} of its events have no time that can be read, and are left out", untimed.len()));
    }
    missing.extend(processes.iter().find_map(Process::without_work).map(str::to_owned));
    let works = processes.iter().flat_map(|process| &process.work);
    let unknown = works.filter(|work| work.correlation == UNKNOWN).count();
    if unknown > 0 {
        missing.push(format!("events of work that do not name their call: {unknown}. No wait for them is found"));
    }
    match (has_calls, has_stacks) {
        (false, _) if events.is_empty() => missing.push("the trace has no events with a time".to_owned()),
        (false, _) => missing.push("the trace has no calls of CUDA, so no wait can be found".to_owned()),
        (true, false) => {
            warnings.push(
                "the trace has no stacks: record it with `with_stack=True`, or audit the command itself".to_owned(),
            );
        }
        (true, true) => {}
    }
    ProgramRecording { source: source.to_owned(), processes, missing, warnings }
}

/// When an event began and ended, since the first of the trace.
fn times(event: &Event, first: f64) -> (u64, u64) {
    let start = ((event.ts.unwrap_or(first) - first) * 1e3).round().max(0.0) as u64;
    (start, start + (event.dur.unwrap_or(0.0).max(0.0) * 1e3).round() as u64)
}

/// The processes of a trace of this library: each timeline has two of the format, its host and its device.
fn own_processes(all: &[Event], events: &[&Event], first: f64, timelines: &serde_json::Value) -> Vec<Process> {
    const KINDS: [Kind; 5] = [Kind::Enqueue, Kind::Synchronize, Kind::HostWork, Kind::Kernel, Kind::Copy];
    const SYNCS: [SyncKind; 4] = [SyncKind::Stream, SyncKind::Event, SyncKind::Device, SyncKind::Implicit];
    let named = all.iter().filter(|event| event.ph == "M" && event.name == "thread_name");
    let numbered =
        named.filter_map(|event| Some((event.track(), event.text("name").rsplit_once(THREAD)?.1.parse().ok()?)));
    let mut threads: HashMap<String, usize> = numbered.collect();
    let mut all: BTreeMap<u64, Vec<Span>> = BTreeMap::new();
    for event in events {
        let Some(kind) = KINDS.into_iter().find(|kind| kind.name() == event.cat) else { continue };
        let next = threads.len();
        let track = *threads.entry(event.track()).or_insert(next);
        let (start_ns, end_ns) = times(event, first);
        let site = Some(event.text("site")).filter(|site| !site.is_empty()).map(str::to_owned);
        all.entry(event.pid.as_u64().unwrap_or(0).div_ceil(2)).or_default().push(Span {
            track,
            name: event.name.clone(),
            start_ns,
            end_ns,
            kind,
            stream: event.small("stream"),
            bytes: event.number(&["bytes"]),
            correlation: event.number(&["correlation"]),
            sync: SYNCS.into_iter().find(|sync| sync.to_string() == event.text("sync")),
            awaits: event.number(&["awaits"]),
            site,
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

/// The process of a trace of PyTorch's profiler.
fn kineto(events: &[&Event], first: f64) -> Process {
    let process = Process { complete: true, ..Process::default() };
    let mut reading = ForeignEvents { first, threads: HashMap::new(), taken: HashSet::new(), process };
    let mut python = Vec::new();
    for event in events {
        match event.cat.as_str() {
            "kernel" | "gpu_memcpy" | "gpu_memset" => reading.work(event),
            "cuda_runtime" | "cuda_driver" => reading.call(event),
            "user_annotation" => {
                let (start, end) = times(event, first);
                reading.process.ranges.push(Range { name: event.name.clone(), start, end });
            }
            "python_function" => python.push(*event),
            _ => {}
        }
    }
    reading.stacks(&python);
    reading.process.settle();
    reading.process
}

struct ForeignEvents {
    first: f64,
    threads: HashMap<String, u32>,
    /// Numbers of threads that are given.
    taken: HashSet<u32>,
    process: Process,
}

impl ForeignEvents {
    fn thread(&mut self, event: &Event) -> u32 {
        // Its own number, unless a thread of another process has it; no system has as many as these.
        let other = u32::MAX - 1 - self.threads.len() as u32;
        let own = event.tid.as_u64().and_then(|number| u32::try_from(number).ok());
        *self.threads.entry(event.track()).or_insert_with(|| own.filter(|own| self.taken.insert(*own)).unwrap_or(other))
    }

    fn work(&mut self, event: &Event) {
        let (start, end) = times(event, self.first);
        let kind = match event.cat.as_str() {
            "gpu_memset" => WorkKind::Fill,
            "gpu_memcpy" => WorkKind::of_copy(&event.name),
            _ => WorkKind::Kernel,
        };
        self.process.work.push(RecordedWork {
            name: event.name.clone(),
            kind,
            start,
            end,
            correlation: event.number(&["correlation"]).unwrap_or(UNKNOWN),
            context: event.small("context").unwrap_or(0),
            stream: event.small("stream").unwrap_or(0),
            device: event.small("device").unwrap_or(0),
            bytes: event.number(&["bytes"]).unwrap_or(0),
        });
    }

    fn call(&mut self, event: &Event) {
        let (enter, exit) = times(event, self.first);
        let thread = self.thread(event);
        self.process.calls.push(RecordedCall {
            name: event.name.clone(),
            class: Class::of(&event.name),
            enter,
            exit,
            correlation: event.number(&["correlation"]).unwrap_or(0),
            thread,
            context: event.small("context"),
            stream: event.small("stream"),
            stack: None,
            bytes: event.number(&["bytes"]).unwrap_or(0),
            event: 0,
        });
    }

    /// Gives each call the stack of the Python functions that it lies in.
    fn stacks(&mut self, python: &[&Event]) {
        let mut kept: HashMap<Vec<u32>, u32> = HashMap::new();
        let mut functions: HashMap<u32, Vec<(u64, u64, u32)>> = HashMap::new();
        let mut known: HashMap<String, u32> = HashMap::new();
        for event in python {
            let Some(frame) = frame(&event.name) else { continue };
            let (start, end) = times(event, self.first);
            let thread = self.thread(event);
            let frames = &mut self.process.frames;
            let number = *known.entry(event.name.clone()).or_insert_with(|| {
                frames.push(frame);
                frames.len() as u32 - 1
            });
            functions.entry(thread).or_default().push((start, end, number));
        }
        functions
            .values_mut()
            .for_each(|functions| functions.sort_by_key(|(start, end, _)| (*start, std::cmp::Reverse(*end))));
        let mut order: Vec<usize> = (0..self.process.calls.len()).collect();
        order.sort_by_key(|place| self.process.calls[*place].enter);
        let mut open: HashMap<u32, (usize, Vec<(u64, u32)>)> = HashMap::new();
        for place in order {
            let call = &mut self.process.calls[place];
            let Some(functions) = functions.get(&call.thread) else { continue };
            let (next, stack) = open.entry(call.thread).or_default();
            while let Some((_, end, frame)) = functions.get(*next).filter(|(start, ..)| *start <= call.enter) {
                stack.retain(|(end, _)| *end >= functions[*next].0);
                if stack.len() == MOST_DEEP {
                    stack.remove(0);
                }
                stack.push((*end, *frame));
                *next += 1;
            }
            stack.retain(|(end, _)| *end >= call.exit);
            if !stack.is_empty() {
                let frames: Vec<u32> = stack.iter().rev().map(|(_, frame)| *frame).collect();
                let stacks = &mut self.process.stacks;
                call.stack = Some(*kept.entry(frames).or_insert_with_key(|frames| {
                    stacks.push(frames.clone());
                    stacks.len() as u32 - 1
                }));
            }
        }
    }
}

/// `train.py(31): step` of Kineto.
fn frame(name: &str) -> Option<Frame> {
    let (place, function) = name.split_once("): ")?;
    let (file, line) = place.rsplit_once('(')?;
    Some(Frame { file: file.to_owned(), line: line.parse().ok()?, function: function.to_owned(), offset: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_of_kineto_is_taken_apart() {
        let found = frame("/home/a (b)/train.py(31): step").unwrap();
        assert_eq!((found.place().as_str(), found.function.as_str()), ("/home/a (b)/train.py:31", "step"));
        assert_eq!(frame("<built-in method item>"), None);
    }
}
