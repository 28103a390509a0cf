//! The trace of PyTorch's profiler (Kineto).
//!
//! # Method
//! A call and a Python function are events of their process and thread; a piece of work is one of its device and stream, and
//! names its call by a number. In a trace that was put together of several processes, work is that of the only process with a
//! call of its number. Where several have one, nothing tells whose it is: it is left out, and counted.
//!
//! Source: the names and arguments of Kineto's `output_json.cpp`.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::chrome::{Event, Loose};
use super::class::Class;
use super::foreign::{MAX_DEEP, UNKNOWN};
use super::recording::{Frame, Process, Range, RecordedCall, RecordedWork, WorkKind};

fn is_call(event: &Event<'_>) -> bool {
    matches!(&*event.cat, "cuda_runtime" | "cuda_driver")
}

fn is_work(event: &Event<'_>) -> bool {
    matches!(&*event.cat, "kernel" | "gpu_memcpy" | "gpu_memset")
}

/// Whether a complete event of a trace is one that is looked at here.
pub(super) fn is_used(event: &Event<'_>) -> bool {
    is_call(event) || is_work(event) || matches!(&*event.cat, "user_annotation" | "python_function")
}

/// The processes of a trace, and how many pieces of work there are of which it is not known whose they are.
pub(crate) fn read<'a>(events: &[&Event<'a>], first: f64) -> (Vec<Process>, u64) {
    if events.is_empty() {
        return (Vec::new(), 0);
    }
    let mut numbers: HashMap<&Loose<'_>, usize> = HashMap::new();
    let mut all: Vec<ForeignEvents<'a>> = Vec::new();
    // Of each number the only process with such a call, if there is only one.
    let mut callers: HashMap<u64, Option<usize>> = HashMap::new();
    for event in events.iter().filter(|event| is_call(event)) {
        let process = *numbers.entry(&event.pid).or_insert_with(|| {
            all.push(ForeignEvents::of(event, first));
            all.len() - 1
        });
        if let Some(correlation) = event.args.correlation.number() {
            let caller = callers.entry(correlation).or_insert(Some(process));
            *caller = caller.filter(|known| *known == process);
        }
    }
    if all.is_empty() {
        all.push(ForeignEvents::of(events[0], first));
    }
    let (is_alone, mut homeless) = (all.len() == 1, 0);
    let mut python: BTreeMap<usize, Vec<&Event<'a>>> = BTreeMap::new();
    for event in events {
        let is_work = is_work(event);
        let home = match () {
            () if is_alone => Some(0),
            () if is_work => event.args.correlation.number().and_then(|own| *callers.get(&own)?),
            () => numbers.get(&event.pid).copied(),
        };
        let Some(process) = home else {
            homeless += u64::from(is_work);
            continue;
        };
        match &*event.cat {
            _ if is_work => all[process].work(event),
            _ if is_call(event) => all[process].call(event),
            "user_annotation" => all[process].range(event),
            "python_function" => python.entry(process).or_default().push(event),
            _ => {}
        }
    }
    for (process, python) in python {
        all[process].stacks(&python);
    }
    let settled = all.into_iter().map(|mut events| {
        events.process.settle();
        events.process
    });
    (settled.collect(), homeless)
}

struct ForeignEvents<'a> {
    first: f64,
    threads: HashMap<(Loose<'a>, Loose<'a>), u32>,
    /// Numbers of threads that are given.
    taken: HashSet<u32>,
    process: Process,
}

impl<'a> ForeignEvents<'a> {
    /// Those of the process of an event.
    fn of(event: &Event<'_>, first: f64) -> Self {
        let number = event.pid.small().unwrap_or(0);
        let process = Process { number, complete: true, ..Process::default() };
        Self { first, threads: HashMap::new(), taken: HashSet::new(), process }
    }

    fn range(&mut self, event: &Event<'_>) {
        let (start, end) = event.times(self.first);
        self.process.ranges.push(Range { name: event.name.clone().into_owned(), start, end });
    }

    fn thread(&mut self, event: &Event<'a>) -> u32 {
        // Its own number, unless a thread of another process has it; no system has as many as these.
        let other = u32::MAX - 1 - self.threads.len() as u32;
        let own = event.tid.small();
        *self.threads.entry(event.track()).or_insert_with(|| own.filter(|own| self.taken.insert(*own)).unwrap_or(other))
    }

    fn work(&mut self, event: &Event<'_>) {
        let (start, end) = event.times(self.first);
        let kind = match &*event.cat {
            "gpu_memset" => WorkKind::Fill,
            "gpu_memcpy" => WorkKind::of_copy(&event.name),
            _ => WorkKind::Kernel,
        };
        self.process.work.push(RecordedWork {
            name: event.name.clone().into_owned(),
            kind,
            start,
            end,
            correlation: event.args.correlation.number().unwrap_or(UNKNOWN),
            context: event.args.context.small().unwrap_or(0),
            stream: event.args.stream.small().unwrap_or(0),
            device: event.args.device.small().unwrap_or(0),
            bytes: event.args.bytes.number().unwrap_or(0),
        });
    }

    fn call(&mut self, event: &Event<'a>) {
        let (enter, exit) = event.times(self.first);
        let thread = self.thread(event);
        self.process.calls.push(RecordedCall {
            name: event.name.clone().into_owned(),
            class: Class::of(&event.name),
            enter,
            exit,
            correlation: event.args.correlation.number().unwrap_or(0),
            thread,
            context: event.args.context.small(),
            stream: event.args.stream.small(),
            bytes: event.args.bytes.number().unwrap_or(0),
            ..RecordedCall::default()
        });
    }

    /// Gives each call the stack of the Python functions that it lies in.
    fn stacks(&mut self, python: &[&Event<'a>]) {
        let mut kept: HashMap<Vec<u32>, u32> = HashMap::new();
        let mut functions: HashMap<u32, Vec<(u64, u64, u32)>> = HashMap::new();
        let mut known: HashMap<String, u32> = HashMap::new();
        for event in python {
            let Some(frame) = frame(&event.name) else { continue };
            let (start, end) = event.times(self.first);
            let thread = self.thread(event);
            let frames = &mut self.process.frames;
            let number = *known.entry(event.name.clone().into_owned()).or_insert_with(|| {
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
                if stack.len() == MAX_DEEP {
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
