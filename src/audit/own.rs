//! This library's own recordings: of a region of a program, or as they were written as a trace.
//!
//! # Method
//! What a synchronization waits for is told by the recording: a stream, a device, or the call whose work an event or a
//! buffer stands for. One with a copy of its own is a copy that blocks. A call that enqueues is watched only where the
//! recording has a wait within it: else it is the program's own time, and a place that others can wait for.
//!
//! A trace that an audit wrote has the driver's calls instead, which are known by their names.
//!
//! # Limits
//! A call has the one place at which the program called this library. A copy that is made in pieces counts as one, from the
//! begin of the first to the end of the last. That a stream waits for an event or a gate is not told.

use std::collections::{HashMap, HashSet};

use super::class::Class;
use super::recording::{Frame, Process, Range, RecordedCall, RecordedWork, WorkKind};
use crate::device::kind::{Kind, SyncKind};
use crate::timeline::Span;

/// The process of a recording of a device, by its name: `cuda:0`. The track of a call is its thread.
pub(crate) fn process(device: &str, spans: &[Span]) -> Process {
    let device = device.rsplit_once(':').and_then(|(_, number)| number.parse().ok()).unwrap_or(0);
    let correlations = |of: fn(&&Span) -> bool| spans.iter().filter(of).filter_map(|span| span.correlation);
    let copied: HashSet<u64> = correlations(|span| span.kind == Kind::Copy).collect();
    let blocking: HashSet<u64> =
        correlations(|span| span.kind == Kind::Synchronize && !Class::is_known(&span.name)).collect();
    let mut process = Process { complete: true, ..Process::default() };
    let mut pieces: HashMap<u64, usize> = HashMap::new();
    let mut stacks: HashMap<&str, u32> = HashMap::new();
    for span in spans {
        match span.kind {
            Kind::Kernel | Kind::Copy => {
                let of = span.correlation.filter(|own| span.kind == Kind::Copy && blocking.contains(own));
                let whole = of.and_then(|own| pieces.get(&own)).and_then(|place| process.work.get_mut(*place));
                if let Some(whole) = whole {
                    whole.start = whole.start.min(span.start_ns);
                    whole.end = whole.end.max(span.end_ns);
                } else {
                    pieces.extend(of.map(|own| (own, process.work.len())));
                    process.work.push(work(span, device));
                }
            }
            Kind::Enqueue | Kind::Synchronize => {
                let stack = span.site.as_deref().and_then(|site| {
                    let frame = frame(site)?;
                    Some(*stacks.entry(site).or_insert_with(|| {
                        process.frames.push(frame);
                        process.stacks.push(vec![process.stacks.len() as u32]);
                        process.stacks.len() as u32 - 1
                    }))
                });
                let has_copy = span.correlation.is_some_and(|own| copied.contains(&own));
                process.calls.push(RecordedCall { stack, ..call(span, has_copy) });
            }
            Kind::HostWork => {
                process.ranges.push(Range { name: span.name.as_str().into(), start: span.start_ns, end: span.end_ns });
            }
            // A stream that waits is neither a call nor work.
            Kind::Wait => {}
        }
    }
    process.settle();
    process
}

/// The frame that a place names: `train.rs:40`, `main, train.py, from line 5`, `main (program)`, `program+0x11b0`.
fn frame(place: &str) -> Option<Frame> {
    let of_line = || {
        let (file, line) = place.rsplit_once(':')?;
        Some(Frame { file: file.to_owned(), line: line.parse().ok()?, ..Frame::default() })
    };
    let of_function = || {
        let (function, module) = place.strip_suffix(')')?.rsplit_once(" (")?;
        Some(Frame { file: module.to_owned(), function: function.to_owned(), ..Frame::default() })
    };
    let of_address = || {
        let (module, offset) = place.rsplit_once("+0x")?;
        let offset = u64::from_str_radix(offset, 16).ok();
        Some(Frame { file: module.to_owned(), offset: Some(offset?), ..Frame::default() })
    };
    of_line().or_else(of_function).or_else(of_address).or_else(|| Frame::of_function(place))
}

fn work(span: &Span, device: u32) -> RecordedWork {
    RecordedWork {
        name: span.name.as_str().into(),
        kind: if span.kind == Kind::Copy { WorkKind::of_copy(&span.name) } else { WorkKind::Kernel },
        start: span.start_ns,
        end: span.end_ns,
        correlation: span.correlation.unwrap_or(0),
        stream: span.stream.unwrap_or(0),
        device,
        bytes: span.bytes.unwrap_or(0),
        ..RecordedWork::default()
    }
}

fn call(span: &Span, has_copy: bool) -> RecordedCall {
    let own = span.correlation.unwrap_or(0);
    let is_known = Class::is_known(&span.name);
    // A wait within a call that enqueues: what the call itself enqueued before is waited for, too.
    let is_within = span.awaits.is_some() && span.awaits == span.correlation;
    let (class, event) = match (span.kind, span.sync, span.awaits) {
        _ if is_known => match Class::of(&span.name) {
            Class::Record => (Class::Record, own),
            class => (class, span.awaits.unwrap_or(0)),
        },
        (Kind::Enqueue, ..) => (Class::Record, own),
        (_, Some(SyncKind::Stream), _) => (Class::Stream, 0),
        (_, Some(SyncKind::Device), _) => (Class::Context, 0),
        (_, Some(SyncKind::Event), awaits) => (Class::Event, awaits.unwrap_or(0)),
        _ if has_copy => (Class::Copy { asynchronous: false }, 0),
        (_, _, Some(awaits)) if !is_within => (Class::Event, awaits),
        _ => (Class::Stream, 0),
    };
    RecordedCall {
        name: span.name.as_str().into(),
        class,
        enter: span.start_ns,
        exit: span.end_ns,
        correlation: own.saturating_add(u64::from(is_within)),
        thread: span.track as u32,
        stream: span.stream,
        // A piece of a copy has fewer than its call.
        bytes: span.bytes.filter(|_| is_known).unwrap_or(0),
        event,
        ..RecordedCall::default()
    }
}
