//! Other programs' traces: the trace of PyTorch's profiler (Kineto) and syncscope's own, both in Chrome's trace format.
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
use super::own;
use super::recording::{Frame, Process, ProgramRecording, Range, RecordedCall, RecordedWork, WorkKind};
use super::report::AuditReport;
use crate::device::kind::{Kind, SyncKind};
use crate::error::FileError;
use crate::files::read_text;
use crate::timeline::Span;

const MOST_BYTES: usize = 1 << 30;
const MOST_EVENTS: usize = 20_000_000;
/// The most streams, devices and open Python functions of a trace: none has so many, and each is looked at for each call.
const MOST_STREAMS: usize = 4096;
const MOST_DEVICES: usize = 64;
const MOST_DEEP: usize = 256;
/// The longest time that an event may have, in microseconds: a year. And the farthest from zero.
const YEAR: f64 = 3.2e13;
const FARTHEST: f64 = 4e15;

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
    let sqlite = std::fs::File::open(path).and_then(|mut file| {
        let mut first = [0; 15];
        std::io::Read::read_exact(&mut file, &mut first).map(|()| first == *b"SQLite format 3")
    });
    if sqlite.unwrap_or(false) || path.extension().is_some_and(|ending| ending == "nsys-rep") {
        return Err(FileError::whole(
            origin,
            "reports of nsys are not read; a trace of PyTorch's profiler (export_chrome_trace) is, and so is one that \
             an audit wrote (`audit --trace`)",
        ));
    }
    parse(&read_text(path, MOST_BYTES).map_err(|source| FileError::Io { path: path.to_owned(), source })?, &origin)
}

impl AuditReport {
    /// The audit of a trace of PyTorch's profiler or of this library, from its JSON. `origin` names the file in messages.
    ///
    /// # Errors
    /// The text is no such trace, or holds more than any has; the message says where.
    pub fn of_trace(text: &str, origin: &str) -> Result<Self, FileError> {
        Ok(Self::of(&parse(text, origin)?, origin).0)
    }
}

fn parse(text: &str, origin: &str) -> Result<ProgramRecording, FileError> {
    let trace: Trace = serde_json::from_str(text).map_err(|error| FileError::json(origin, "Chrome trace", &error))?;
    if trace.events.len() > MOST_EVENTS {
        return Err(FileError::whole(origin, format!("it has more than {MOST_EVENTS} events, the most that are read")));
    }
    let recording = recording(trace);
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
        Some(timelines) => ("a trace of syncscope", own_processes(&events, first, timelines)),
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
    let mut warnings = Vec::new();
    if !untimed.is_empty() {
        warnings.push(format!("{} of its events have no time that can be read, and are left out", untimed.len()));
    }
    match (has_calls, has_stacks) {
        (false, _) if events.is_empty() => warnings.push("the trace has no events with a time".to_owned()),
        (false, _) => warnings.push("the trace has no calls of CUDA, so no wait can be found".to_owned()),
        (true, false) => {
            warnings.push(
                "the trace has no stacks: record it with `with_stack=True`, or audit the command itself".to_owned(),
            );
        }
        (true, true) => {}
    }
    ProgramRecording { source: source.to_owned(), processes, warnings }
}

/// When an event began and ended, since the first of the trace.
fn times(event: &Event, first: f64) -> (u64, u64) {
    let start = ((event.ts.unwrap_or(first) - first) * 1e3).round().max(0.0) as u64;
    (start, start + (event.dur.unwrap_or(0.0).max(0.0) * 1e3).round() as u64)
}

/// The processes of a trace of this library: each timeline has two of the format, its host and its device.
fn own_processes(events: &[&Event], first: f64, timelines: &serde_json::Value) -> Vec<Process> {
    const KINDS: [Kind; 4] = [Kind::Enqueue, Kind::Synchronize, Kind::Kernel, Kind::Copy];
    const SYNCS: [SyncKind; 4] = [SyncKind::Stream, SyncKind::Event, SyncKind::Device, SyncKind::Implicit];
    let mut threads: HashMap<String, usize> = HashMap::new();
    let mut all: BTreeMap<u64, Vec<Span>> = BTreeMap::new();
    for event in events {
        let Some(kind) = KINDS.into_iter().find(|kind| kind.name() == event.cat) else { continue };
        let next = threads.len();
        let track = *threads.entry(format!("{} {}", event.pid, event.tid)).or_insert(next);
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
    let mut reading =
        ForeignEvents { first, threads: HashMap::new(), process: Process { complete: true, ..Process::default() } };
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
    process: Process,
}

impl ForeignEvents {
    fn thread(&mut self, event: &Event) -> u32 {
        let next = self.threads.len() as u32 + 1;
        *self.threads.entry(format!("{} {}", event.pid, event.tid)).or_insert(next)
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
            correlation: event.number(&["correlation", "External id"]).unwrap_or(0),
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
