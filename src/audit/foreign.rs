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
use super::recording::{
    Frame, HostMemoryKind, Process, ProgramRecording, Range, RecordedCall, RecordedDirection, RecordedWork, WorkKind,
};
use crate::error::FileError;
use crate::files::read_text;

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
             `report audit --trace` wrote",
        ));
    }
    let text = read_text(path, MOST_BYTES).map_err(|source| FileError::Io { path: path.to_owned(), source })?;
    let trace: Trace =
        serde_json::from_str(&text).map_err(|error| FileError::json(origin.clone(), "Chrome trace", &error))?;
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
    let is_own = trace.other.as_ref().is_some_and(|other| other.get("timelines").is_some());
    let is_time = |event: &&Event| {
        let in_range = |time: f64| time.abs() < FARTHEST;
        event.ph == "X" && event.ts.is_some_and(in_range) && event.dur.is_none_or(|time| time < YEAR)
    };
    let events: Vec<&Event> = trace.events.iter().filter(is_time).collect();
    let first = events.iter().filter_map(|event| event.ts).fold(f64::INFINITY, f64::min);
    let mut processes: BTreeMap<u64, (ForeignEvents, Vec<&Event>)> = BTreeMap::new();
    for event in events {
        // Each timeline of a trace of this program has two processes of the format: its host and its device.
        let process = if is_own { event.pid.as_u64().unwrap_or(0).div_ceil(2) } else { 0 };
        let (reading, python) = processes.entry(process).or_insert_with(|| (ForeignEvents::new(first), Vec::new()));
        match event.cat.as_str() {
            "kernel" | "gpu_memcpy" | "gpu_memset" | "copy" => reading.work(event),
            "cuda_runtime" | "cuda_driver" => reading.call(event),
            "enqueue" | "synchronize" if is_own => reading.own_call(event),
            "user_annotation" => {
                let (start, end) = reading.span(event);
                reading.process.ranges.push(Range { name: event.name.clone(), start, end });
            }
            "python_function" => python.push(event),
            _ => {}
        }
    }
    let settled = processes.into_iter().map(|(number, (mut reading, python))| {
        reading.stacks(&python);
        reading.process.number = number as u32;
        reading.process.settle();
        reading.process
    });
    let processes: Vec<Process> = settled.collect();
    let (has_calls, has_stacks) = (
        processes.iter().any(|process| !process.calls.is_empty()),
        processes.iter().any(|process| !process.stacks.is_empty()),
    );
    let mut warnings = Vec::new();
    match (has_calls, has_stacks) {
        (false, _) => warnings.push("the trace has no calls of CUDA, so no wait can be found".to_owned()),
        (true, false) => {
            warnings.push(
                "the trace has no stacks: record it with `with_stack=True`, or audit the command itself".to_owned(),
            );
        }
        (true, true) => {}
    }
    let source = match is_own {
        true => "a trace of syncscope",
        false => {
            "a trace of PyTorch's profiler. Which stream an event was recorded on is not in it, nor are calls that the profiler \
             leaves out"
        }
    };
    ProgramRecording { source: source.to_owned(), processes, warnings }
}

struct ForeignEvents {
    first: f64,
    threads: HashMap<String, u32>,
    process: Process,
}

impl ForeignEvents {
    fn new(first: f64) -> Self {
        Self { first, threads: HashMap::new(), process: Process { complete: true, ..Process::default() } }
    }

    fn span(&self, event: &Event) -> (u64, u64) {
        let start = ((event.ts.unwrap_or(self.first) - self.first) * 1e3).round().max(0.0) as u64;
        (start, start + (event.dur.unwrap_or(0.0).max(0.0) * 1e3).round() as u64)
    }

    fn thread(&mut self, event: &Event) -> u32 {
        let next = self.threads.len() as u32 + 1;
        *self.threads.entry(format!("{} {}", event.pid, event.tid)).or_insert(next)
    }

    fn work(&mut self, event: &Event) {
        let (start, end) = self.span(event);
        let kind = match event.cat.as_str() {
            "gpu_memset" => WorkKind::Fill,
            "gpu_memcpy" | "copy" => copy(&event.name),
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
        self.push(event, Class::of(&event.name));
    }

    /// A call of this library: what it waits for is told.
    fn own_call(&mut self, event: &Event) {
        let class = match event.text("sync") {
            // A trace of an audit has the driver's calls, whose names say it.
            _ if event.name.starts_with("cu") => Class::of(&event.name),
            "stream" => Class::Stream,
            "" => Class::Other,
            _ => Class::Context,
        };
        self.push(event, class);
        if let Some((file, line)) = event.text("site").rsplit_once(':')
            && let (Ok(line), Some(call)) = (line.parse(), self.process.calls.last_mut())
        {
            let frame = self.process.frames.len() as u32;
            self.process.frames.push(Frame { file: file.to_owned(), line, ..Frame::default() });
            call.stack = Some(self.process.stacks.len() as u32);
            self.process.stacks.push(vec![frame]);
        }
    }

    fn push(&mut self, event: &Event, class: Class) {
        let (enter, exit) = self.span(event);
        let thread = self.thread(event);
        self.process.calls.push(RecordedCall {
            name: event.name.clone(),
            class,
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
            let (start, end) = self.span(event);
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

/// `Memcpy DtoH (Device -> Pageable)` of Kineto; `upload` and `download` of this library; what an audit writes.
fn copy(name: &str) -> WorkKind {
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    let host = match () {
        () if has(&["Pageable", "pageable"]) => HostMemoryKind::Pageable,
        () if has(&["Pinned", "page-locked"]) => HostMemoryKind::Pinned,
        () => HostMemoryKind::Unknown,
    };
    let direction = match () {
        () if has(&["HtoD", "upload", "to the device"]) => RecordedDirection::ToDevice,
        () if has(&["DtoH", "download", "to the host"]) => RecordedDirection::ToHost,
        () => RecordedDirection::Other,
    };
    WorkKind::Copy { direction, host }
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
