//! Programs by chance, whose times follow from what they wait for: as a recording, and as the trace of a profiler.

use serde_json::{Value, json};

use super::super::super::class::Class;
use super::super::super::recording::{
    HostMemoryKind, Process, RecordedCall, RecordedDirection, RecordedWork, WorkKind,
};

/// Microseconds, as nanoseconds.
const US: u64 = 1_000;
/// What a call costs that waits for nothing, how soon one returns after what it waited for, and how soon work begins.
const COST: u64 = 3 * US;
const RETURN: u64 = 9 * US;
const BEGIN: u64 = 6 * US;

/// Numbers by chance (SplitMix64; Steele, Lea, Flood, 2014).
pub(super) struct Chance(pub(super) u64);

impl Chance {
    pub(super) fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % most
    }
}

/// What a call may have waited for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Awaited {
    /// Nothing.
    Nothing,
    /// What ends then.
    Until(u64),
    /// A stream that the trace does not name, of those whose work ends then.
    Stream(Vec<u64>),
    /// An event that the trace does not name, behind any work of those that end then.
    Event(Vec<u64>),
    /// Nothing that it asks for: it takes a time that no trace explains.
    NothingAskedFor,
}

/// A call of a program.
#[derive(Clone, Debug)]
pub(super) struct Called {
    pub(super) name: &'static str,
    pub(super) enter: u64,
    pub(super) exit: u64,
    pub(super) correlation: u64,
    pub(super) thread: u32,
    pub(super) awaited: Awaited,
    /// The stream that it names to the driver, and the number of the record of the event.
    stream: Option<u32>,
    record: Option<u64>,
}

/// A program that ran.
#[derive(Default)]
pub(super) struct Program {
    pub(super) calls: Vec<Called>,
    work: Vec<RecordedWork>,
    names_awaited: bool,
    at: u64,
    /// Of each stream, the ends of its work so far.
    streams: Vec<Vec<u64>>,
}

const STREAMS: [u32; 3] = [7, 13, 20];

impl Program {
    /// One of so many streams and steps. Whether its trace names what synchronizations wait for.
    pub(super) fn new(chance: &mut Chance, names_awaited: bool) -> Self {
        let streams = 1 + chance.below(3) as usize;
        let mut program =
            Self { names_awaited, streams: vec![Vec::new(); streams], at: chance.below(1_000_000), ..Self::default() };
        for _ in 0..5 + chance.below(35) {
            program.step(chance);
        }
        program
    }

    fn step(&mut self, chance: &mut Chance) {
        let stream = chance.below(self.streams.len() as u64) as usize;
        match chance.below(9) {
            0..=2 => self.launch(stream, (20 + chance.below(480)) * US),
            3 => self.at += (10 + chance.below(600)) * US,
            4 => {
                let end = self.end(stream);
                self.synchronize("cudaStreamSynchronize", stream, end, None, chance);
            }
            5 => {
                let (record, end) = (self.next(), self.end(stream));
                self.call("cudaEventRecord", US, Awaited::Nothing, Some(stream), Some(record));
                if chance.below(2) == 0 {
                    self.launch(stream, (20 + chance.below(200)) * US);
                }
                self.synchronize("cudaEventSynchronize", stream, end, Some(record), chance);
            }
            6 => {
                let all = self.streams.iter().filter_map(|ends| ends.last().copied()).max().unwrap_or(0);
                self.clear(all);
                let until = if all > self.at { Awaited::Until(all) } else { Awaited::Nothing };
                let took = self.took(all);
                self.call("cudaDeviceSynchronize", took, until, None, None);
            }
            7 => self.read(stream, 4 << chance.below(20)),
            _ => self.call("cudaMalloc", (40 + chance.below(60)) * US, Awaited::NothingAskedFor, None, None),
        }
        self.at += (1 + chance.below(20)) * US;
    }

    /// Whether work ended shortly before a call returned: its stream may have waited for that by an event.
    pub(super) fn may_explain(&self, called: &Called) -> bool {
        self.work.iter().any(|work| work.end <= called.exit + 5 * US && called.exit <= work.end + 50 * US)
    }

    fn next(&self) -> u64 {
        self.calls.len() as u64 + 1
    }

    fn end(&self, stream: usize) -> u64 {
        self.streams[stream].last().copied().unwrap_or(0)
    }

    /// What ends soon is let end, so that it is clear whether it was waited for.
    fn clear(&mut self, end: u64) {
        if end > self.at && end < self.at + 20 * US {
            self.at = end + US;
        }
    }

    fn took(&self, end: u64) -> u64 {
        if end > self.at { end - self.at + RETURN } else { COST }
    }

    fn call(&mut self, name: &'static str, took: u64, awaited: Awaited, stream: Option<usize>, record: Option<u64>) {
        let (enter, correlation) = (self.at, self.next());
        self.at += took;
        let (exit, stream) = (self.at, stream.map(|stream| STREAMS[stream]));
        self.calls.push(Called { name, enter, exit, correlation, thread: 1, awaited, stream, record });
    }

    fn work(&mut self, kind: WorkKind, stream: usize, length: u64, bytes: u64) -> (u64, u64) {
        let start = self.end(stream).max(self.at + BEGIN);
        let (end, correlation) = (start + length, self.next());
        self.streams[stream].push(end);
        let name = kind.words().into();
        let stream = STREAMS[stream];
        self.work.push(RecordedWork {
            name,
            kind,
            start,
            end,
            correlation,
            context: 1,
            stream,
            bytes,
            ..RecordedWork::default()
        });
        (start, end)
    }

    fn launch(&mut self, stream: usize, length: u64) {
        self.work(WorkKind::Kernel, stream, length, 0);
        self.call("cudaLaunchKernel", 5 * US, Awaited::Nothing, Some(stream), None);
    }

    /// A synchronization with what ends at `end`; now and then the system keeps it longer beside work of another stream.
    fn synchronize(&mut self, name: &'static str, stream: usize, end: u64, record: Option<u64>, chance: &mut Chance) {
        self.clear(end);
        let pending = |ends: &Vec<u64>| ends.last().copied().filter(|last| *last > self.at);
        let others: Vec<u64> = self.streams.iter().filter_map(pending).collect();
        let enter = self.at;
        let is_late = end <= enter && chance.below(4) == 0 && others.iter().any(|other| *other > enter + 300 * US);
        let took = if is_late { 200 * US } else { self.took(end) };
        let awaited = match (self.names_awaited, record) {
            (true, _) if end > enter => Awaited::Until(end),
            (true, _) if is_late => Awaited::NothingAskedFor,
            (true, _) => Awaited::Nothing,
            (false, None) => Awaited::Stream(others),
            (false, Some(_)) => {
                Awaited::Event(self.streams.iter().flatten().copied().filter(|end| *end > enter).collect())
            }
        };
        self.call(name, took, awaited, Some(stream), record);
    }

    /// A copy into ordinary memory, which returns when it is done.
    fn read(&mut self, stream: usize, bytes: u64) {
        let pending = self.end(stream);
        self.clear(pending);
        let direction = RecordedDirection::ToHost;
        let kind = WorkKind::Copy { direction, host: HostMemoryKind::Pageable };
        let awaited = if pending > self.at { Awaited::Until(pending) } else { Awaited::Nothing };
        let (_, end) = self.work(kind, stream, 2 * US + bytes / 20, bytes);
        self.call("cudaMemcpyAsync", end - self.at + RETURN, awaited, Some(stream), None);
    }

    /// The calls and the work as CUPTI records them.
    pub(super) fn recorded(&self) -> Process {
        let call = |called: &Called| {
            let class = Class::of(called.name);
            let knows_stream = class.is_explicit() || class == Class::Record;
            RecordedCall {
                name: called.name.into(),
                class,
                enter: called.enter,
                exit: called.exit,
                correlation: called.correlation,
                thread: called.thread,
                context: (self.names_awaited && class.is_explicit()).then_some(1),
                stream: called.stream.filter(|_| self.names_awaited && knows_stream),
                event: called.record.filter(|_| self.names_awaited).map_or(0, |record| record + 1),
                ..RecordedCall::default()
            }
        };
        let calls = self.calls.iter().map(call).collect();
        let mut process = Process { calls, work: self.work.clone(), complete: true, ..Process::default() };
        process.settle();
        process
    }

    /// The same as the events of a trace of a process of this number on a device.
    pub(super) fn events(&self, process: u64, device: u64) -> Vec<Value> {
        let micros = |ns: u64| ns as f64 / 1e3;
        let mut events = Vec::new();
        for called in &self.calls {
            let Called { name, enter, exit, correlation, thread, .. } = called;
            let (ts, dur) = (micros(*enter), micros(exit - enter));
            events
                .push(json!({ "ph": "X", "cat": "cuda_runtime", "name": name, "pid": process, "tid": thread, "ts": ts,
                "dur": dur, "args": { "correlation": correlation } }));
            events.push(
                json!({ "ph": "X", "cat": "cpu_op", "name": format!("aten::{name}"), "pid": process, "tid": thread,
                "ts": ts, "dur": dur, "args": {} }),
            );
            let mut awaited = |what: &str, args: Value| {
                let mut all = json!({ "correlation": correlation, "device": device, "context": 1 });
                all.as_object_mut()
                    .into_iter()
                    .for_each(|all| all.extend(args.as_object().cloned().unwrap_or_default()));
                events.push(json!({ "ph": "X", "cat": "cuda_sync", "name": what, "pid": device, "tid": -1, "ts": ts,
                    "dur": dur, "args": all }));
            };
            match (self.names_awaited, *name, called.stream) {
                (true, "cudaStreamSynchronize", Some(stream)) => awaited("Stream Sync", json!({ "stream": stream })),
                (true, "cudaEventSynchronize", Some(stream)) => awaited(
                    "Event Sync",
                    json!({ "stream": -1, "wait_on_stream": stream, "wait_on_cuda_event_record_corr_id": called.record }),
                ),
                (true, "cudaDeviceSynchronize", _) => awaited("Context Sync", json!({ "stream": -1 })),
                _ => {}
            }
        }
        for work in &self.work {
            let (category, name) = match work.kind {
                WorkKind::Kernel => ("kernel", "k"),
                _ => ("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)"),
            };
            events.push(json!({ "ph": "X", "cat": category, "name": name, "pid": device, "tid": work.stream,
                "ts": micros(work.start), "dur": micros(work.end - work.start), "args": { "device": device, "context": 1,
                "stream": work.stream, "correlation": work.correlation, "bytes": work.bytes } }));
        }
        events
    }
}

/// Whether a call waited, by all that it may have waited for and when it returned; none where that leaves it open. The clocks of
/// host and device may differ by 5 µs, and a call returns within 20.
pub(super) fn waited(called: &Called) -> Option<bool> {
    let Called { enter, exit, .. } = *called;
    match &called.awaited {
        Awaited::Nothing | Awaited::NothingAskedFor => Some(false),
        Awaited::Until(_) => Some(true),
        // It took no longer than with nothing pending.
        _ if exit - enter <= COST => Some(false),
        Awaited::Stream(ends) | Awaited::Event(ends) => {
            let returns = |end: u64| end > enter && end <= exit + 5 * US && exit <= end + 20 * US;
            ends.iter().any(|end| returns(*end)).then_some(true)
        }
    }
}
