//! The events of a profiler's trace as processes: PyTorch's (Kineto, on CUDA and on ROCm), and others that name calls and the
//! numbers by which work belongs to them.
//!
//! Kineto names a function of Python by its first line, and one that was open as recording began by the line at which it was: no
//! wait has a line. It names the stream and the event that a synchronization waits for in events of their own (`cuda_sync`).

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::chrome::{Category, Event, Trace};
use super::class::Class;
use super::foreign::{MAX_DEEP, UNKNOWN};
use super::homes::Homes;
use super::places::NOTHING;
use super::recording::{Frame, Process, ProgramRecording, Range, RecordedCall, RecordedWork, WorkKind};
use crate::units::{Unit, counted};

/// How far apart functions begin that were open as recording began, and how soon the first of a thread.
const AT_ONCE: u64 = 5_000;
const AT_BEGIN: u64 = 1_000_000;
/// By how much a function may seem to end before a call in it: writers round begins and lengths apart, to a microsecond at most.
const ROUNDED: u64 = 1_000;
/// How soon a recording ends after the profiler has waited for the device, in nanoseconds: up to 3 ms on an H200.
const CLOSING: u64 = 50_000_000;

/// Adds the processes of a trace to a recording, with what is to be said of them.
pub(super) fn add(trace: Trace, recording: &mut ProgramRecording) {
    let Trace { events, processes, tracks, .. } = trace;
    let first = events.iter().map(|event| event.start).min().unwrap_or(0);
    let process_of = |event: &Event| tracks[event.track as usize].0;
    let homes = Homes::of(&events, &process_of);
    let number = |process: u32| processes[process as usize].parse().unwrap_or(0);
    let mut all: Vec<ForeignEvents> =
        homes.callers.iter().map(|process| ForeignEvents::new(number(*process), first)).collect();
    if all.is_empty() {
        all.extend(events.first().map(|event| ForeignEvents::new(number(process_of(event)), first)));
    }
    let mut homeless = 0_u64;
    for event in events {
        if event.category == Category::Window {
            all.iter_mut().for_each(|events| events.take(event.clone(), &tracks));
            continue;
        }
        let home = homes.home(&event, process_of(&event));
        let Some(events) = home.and_then(|home| all.get_mut(home)) else {
            homeless += u64::from(event.is_work());
            continue;
        };
        events.take(event, &tracks);
    }
    let (mut count, mut time, mut doubtful, mut shared) = (0_u64, 0, 0_u64, 0);
    for events in all {
        let (process, of_profiler, is_doubtful) = events.finish();
        count += of_profiler.len() as u64;
        time += of_profiler.iter().sum::<u64>();
        doubtful += u64::from(is_doubtful);
        // It is in the order of the numbers.
        let of_calls = process.work.chunk_by(|one, next| one.correlation == next.correlation);
        shared += of_calls.map(|of| of.iter().filter(|work| work.device != of[0].device).count()).sum::<usize>();
        recording.processes.push(process);
    }
    let of_several = format!(
        "events of work whose calls several of its processes may have made: {homeless}. They are left out; read the trace of each \
         process by itself"
    );
    let of_one_number = format!(
        "calls whose number is that of work on several devices: {shared}. Traces of several processes with one number were put \
         together, and cannot be told apart"
    );
    let missing = (homeless > 0).then_some(of_several).into_iter().chain((shared > 0).then_some(of_one_number));
    recording.missing.extend(missing);
    let (of_profiler, time) = (counted(count, "synchronization"), Unit::Seconds.format(time as f64 * 1e-9, 3));
    let left_out = format!("left out as the profiler's own: {of_profiler}, {time} in all");
    let of = if doubtful == 1 { String::new() } else { format!(" of each of {doubtful} processes") };
    let last = format!("the last wait{of} may be the profiler's own, which nothing in the trace tells");
    recording.warnings.extend((count > 0).then_some(left_out).into_iter().chain((doubtful > 0).then_some(last)));
}

/// What is open at a time, the innermost last, and until when.
type Open<'a> = Vec<(u64, &'a Around)>;

/// What encloses calls.
#[derive(Clone)]
enum Around {
    /// A function of Python, as a place in [`Process::frames`].
    Function(u32),
    /// An operator, or what Python calls that is no Python.
    Operator(Arc<str>),
}

#[derive(Default)]
struct ForeignEvents {
    first: i64,
    threads: HashMap<u32, u32>,
    /// Numbers of threads that are given.
    taken: HashSet<u32>,
    process: Process,
    /// What calls wait for, by their numbers.
    awaited: HashMap<u64, Event>,
    /// By thread: from, to, and by which name.
    functions: BTreeMap<u32, Vec<(u64, u64, Arc<str>)>>,
    around: HashMap<u32, Vec<(u64, u64, Around)>>,
    /// When recordings ended, where that is said.
    windows: Vec<u64>,
    /// When the program began something other than a call.
    begun: Vec<u64>,
}

impl ForeignEvents {
    fn new(number: u32, first: i64) -> Self {
        Self { first, process: Process { number, complete: true, ..Process::default() }, ..Self::default() }
    }

    fn take(&mut self, event: Event, tracks: &[(u32, String)]) {
        let (start, end) = ((event.start - self.first) as u64, (event.end - self.first) as u64);
        match event.category {
            Category::Call => {
                let thread = self.thread(event.track, tracks);
                self.call(event, (start, end), thread);
            }
            Category::Kernel | Category::Copy | Category::Fill | Category::Unnamed => {
                self.work(event, (start, end), tracks);
            }
            Category::Awaited => _ = event.correlation.map(|number| self.awaited.insert(number, event)),
            Category::Range => {
                self.begun.push(start);
                self.process.ranges.push(Range { name: event.name, start, end });
            }
            Category::Function => {
                let thread = self.thread(event.track, tracks);
                self.functions.entry(thread).or_default().push((start, end, event.name));
            }
            Category::Operator => {
                self.begun.push(start);
                let thread = self.thread(event.track, tracks);
                self.around.entry(thread).or_default().push((start, end, Around::Operator(event.name)));
            }
            Category::Window => self.windows.push(end),
            Category::Own(_) => {}
        }
    }

    fn thread(&mut self, track: u32, tracks: &[(u32, String)]) -> u32 {
        // Its own number, unless a thread of another process has it; no system has as many as these.
        let other = u32::MAX - 1 - self.threads.len() as u32;
        let own = tracks[track as usize].1.parse().ok();
        *self.threads.entry(track).or_insert_with(|| own.filter(|own| self.taken.insert(*own)).unwrap_or(other))
    }

    fn work(&mut self, event: Event, (start, end): (u64, u64), tracks: &[(u32, String)]) {
        let is_named = |begin: &str| event.category == Category::Unnamed && event.name.starts_with(begin);
        let kind = match event.category {
            Category::Fill => WorkKind::Fill,
            Category::Copy => WorkKind::of_copy(&event.name),
            _ if is_named("Memcpy") => WorkKind::of_copy(&event.name),
            _ if is_named("Memset") => WorkKind::Fill,
            _ => WorkKind::Kernel,
        };
        let (process, track) = &tracks[event.track as usize];
        let shown_under = if event.category == Category::Unnamed { *process } else { 0 };
        self.process.work.push(RecordedWork {
            name: event.name,
            kind,
            start,
            end,
            correlation: event.correlation.unwrap_or(UNKNOWN),
            context: event.context.unwrap_or(0),
            // A track of a device is a stream.
            stream: event.stream.or_else(|| track.parse().ok()).unwrap_or(0),
            device: event.device.unwrap_or(shown_under),
            bytes: event.bytes,
            ..RecordedWork::default()
        });
    }

    fn call(&mut self, event: Event, (enter, exit): (u64, u64), thread: u32) {
        self.process.calls.push(RecordedCall {
            class: Class::of(&event.name),
            name: event.name,
            enter,
            exit,
            correlation: event.correlation.unwrap_or(0),
            thread,
            context: event.context,
            stream: event.stream,
            bytes: event.bytes,
            ..RecordedCall::default()
        });
    }

    /// The process; how long each synchronization of the profiler took in it; and whether its last may be one.
    fn finish(mut self) -> (Process, Vec<u64>, bool) {
        self.apply_awaited();
        self.find_functions();
        self.enclose();
        let is_doubtful = self.last_of_profiler();
        let is_own = |call: &&RecordedCall| call.class == Class::Profiler;
        self.process.settle();
        let of_profiler = self.process.calls.iter().filter(is_own).map(|call| call.exit - call.enter).collect();
        (self.process, of_profiler, is_doubtful)
    }

    /// Tells each synchronization which stream or event it waits for.
    fn apply_awaited(&mut self) {
        let is_there = |stream: &u32| *stream < u32::MAX;
        for call in self.process.calls.iter_mut().filter(|call| call.class.is_explicit()) {
            let Some(event) = self.awaited.get(&call.correlation) else { continue };
            let told = event.more.as_deref().cloned().unwrap_or_default();
            call.context = call.context.or(event.context);
            call.recorded_by = told.recorded_by.filter(|_| call.class == Class::Event);
            call.stream = event.stream.filter(is_there).or(told.awaited_stream.filter(is_there)).or(call.stream);
        }
    }

    /// The functions of Python as what encloses calls. Of one that was open as recording began the line is none of its own.
    fn find_functions(&mut self) {
        let mut known: HashMap<(Arc<str>, bool), Option<Around>> = HashMap::new();
        let begin = self.functions.values().flatten().map(|(start, ..)| *start).min().unwrap_or(0);
        let mut begun: HashMap<u32, u64> = HashMap::new();
        for call in &self.process.calls {
            begun.entry(call.thread).and_modify(|first| *first = call.enter.min(*first)).or_insert(call.enter);
        }
        for (thread, mut functions) in std::mem::take(&mut self.functions) {
            functions.sort_by_key(|(start, end, _)| (*start, Reverse(*end)));
            let around = self.around.entry(thread).or_default();
            let operator = around.iter().map(|(start, ..)| *start).min();
            let other = operator.into_iter().chain(begun.get(&thread).copied()).min().unwrap_or(u64::MAX);
            let mut last = Some((begin.saturating_add(AT_BEGIN - AT_ONCE), u64::MAX));
            for (start, end, name) in functions {
                let is_next = |(from, to): &(u64, u64)| start <= from + AT_ONCE && end <= *to && start <= other;
                last = last.filter(is_next).map(|_| (start, end));
                let is_open = last.is_some();
                let frames = &mut self.process.frames;
                let made = known.entry((name, is_open)).or_insert_with_key(|(name, _)| {
                    let Some(frame) = frame(name) else { return built_in(name).map(Around::Operator) };
                    frames.push(if is_open { Frame { line: 0, ..frame } } else { frame });
                    Some(Around::Function(frames.len() as u32 - 1))
                });
                if matches!(made, Some(Around::Function(_))) {
                    self.begun.push(start);
                }
                around.extend(made.clone().map(|made| (start, end, made)));
            }
        }
    }

    /// Gives each call the stack of the functions that it lies in, and the innermost operator. The synchronizations that the
    /// profiler makes for itself are calls of its own from now on.
    fn enclose(&mut self) {
        let mut kept: HashMap<Vec<u32>, u32> = HashMap::new();
        let mut around = std::mem::take(&mut self.around);
        around.values_mut().for_each(|around| around.sort_by_key(|(start, end, _)| (*start, Reverse(*end))));
        let mut order: Vec<usize> = (0..self.process.calls.len()).collect();
        order.sort_by_key(|place| self.process.calls[*place].enter);
        let mut open: HashMap<u32, (usize, Open<'_>)> = HashMap::new();
        for place in order {
            let call = &mut self.process.calls[place];
            let Some(around) = around.get(&call.thread) else { continue };
            let (next, stack) = open.entry(call.thread).or_default();
            while let Some((start, end, one)) = around.get(*next).filter(|(start, ..)| *start <= call.enter) {
                stack.retain(|(end, _)| end >= start);
                if stack.len() == MAX_DEEP {
                    stack.remove(0);
                }
                stack.push((*end, one));
                *next += 1;
            }
            stack.retain(|(end, _)| end + ROUNDED >= call.exit);
            let innermost = || stack.iter().rev().map(|(_, around)| *around);
            let function = |around: &Around| if let Around::Function(frame) = around { Some(*frame) } else { None };
            let operator =
                |around: &Around| if let Around::Operator(name) = around { Some(name.clone()) } else { None };
            let functions: Vec<u32> = innermost().filter_map(function).collect();
            call.operator = innermost().find_map(operator);
            let frames = functions.iter().map(|frame| &self.process.frames[*frame as usize]);
            let mut foreign = frames.take_while(|frame| !frame.is_users());
            if call.class.is_explicit() && foreign.any(Frame::is_of_a_profiler) {
                call.class = Class::Profiler;
            }
            if !functions.is_empty() {
                let stacks = &mut self.process.stacks;
                call.stack = Some(*kept.entry(functions).or_insert_with_key(|functions| {
                    stacks.push(functions.clone());
                    stacks.len() as u32 - 1
                }));
            }
        }
    }

    /// Before it ends a recording, the profiler waits for the device: where no stack tells, it is the last thing before an end
    /// that the trace states. Where the trace states none, it cannot be told from a wait of the program. Whether that is so.
    fn last_of_profiler(&mut self) -> bool {
        let calls = &mut self.process.calls;
        let all = std::mem::take(&mut self.windows);
        let is_stated = !all.is_empty();
        for window in all.into_iter().chain((!is_stated).then_some(u64::MAX)) {
            let before = calls.iter().filter(|call| call.exit <= window);
            let last = before.max_by_key(|call| (call.exit, Reverse(call.enter)));
            let last =
                last.filter(|call| matches!(call.class, Class::Context | Class::Profiler) && call.stack.is_none());
            let Some((enter, exit, thread)) = last.map(|call| (call.enter, call.exit, call.thread)) else { continue };
            if self.begun.iter().any(|begun| (enter + 1..window).contains(begun)) {
                continue;
            }
            if !is_stated {
                return exit - enter > NOTHING;
            }
            if window - exit <= CLOSING {
                // With the calls that it is made of.
                let within = |call: &&mut RecordedCall| call.thread == thread && (enter..exit).contains(&call.enter);
                let parts = calls.iter_mut().filter(within).filter(|call| call.class.is_explicit());
                parts.for_each(|call| call.class = Class::Profiler);
            }
        }
        false
    }
}

/// `train.py(31): step` of Kineto.
fn frame(name: &str) -> Option<Frame> {
    let (place, function) = name.split_once("): ")?;
    let (file, line) = place.rsplit_once('(')?;
    let (file, function) = (file.to_owned(), function.to_owned());
    Some(Frame { file, line: line.parse().ok()?, function, offset: None, is_function: true })
}

/// `<built-in method item of Tensor object at 0x7f0a>` of Kineto: `Tensor.item`.
fn built_in(name: &str) -> Option<Arc<str>> {
    let inner = name.strip_prefix("<built-in ")?.trim_end_matches('>');
    let inner = inner.strip_prefix("method ").or_else(|| inner.strip_prefix("function ")).unwrap_or(inner);
    match inner.split_once(" of ").map(|(method, object)| (method, object.split(' ').next().unwrap_or_default())) {
        Some((method, "" | "type" | "module" | "PyCapsule")) => Some(method.into()),
        Some((method, object)) => Some(format!("{object}.{method}").into()),
        None => Some(inner.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_python_calls_that_is_no_python_is_named_without_its_address() {
        for (written, name) in [
            ("<built-in method item of Tensor object at 0x7f0a>", Some("Tensor.item")),
            ("<built-in method zeros of type object at 0x7f0a>", Some("zeros")),
            ("<built-in function len>", Some("len")),
            ("nn.Module: Linear_0", None),
        ] {
            assert_eq!(built_in(written).as_deref(), name);
        }
    }
}
