//! A process as a [`Timeline`], for the trace and for the picture of a page.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use super::class::Class;
use super::evidence::{CallJudgement, Cause};
use super::places;
use super::recording::{Frame, Process, ProgramRecording, Range, RecordedWork, WorkKind};
use super::report::JudgedCalls;
use crate::timeline::{Kind, Span, SyncKind, Timeline, Track};

/// The most lanes of ranges: what finds no room within one of them is put into the last.
const MAX_LANES: usize = 16;
/// How the track of a thread is named, before its number.
pub(crate) const THREAD: &str = "thread ";

/// The timeline of each process, with its name.
pub fn timelines(recording: &ProgramRecording, judged: &[JudgedCalls]) -> Vec<(String, Timeline)> {
    let all = recording.processes.iter().zip(judged);
    let one = |(process, judged): (&Process, &JudgedCalls)| {
        let whole = (process.start, process.end);
        (format!("process {}", process.number), timeline(process, &judged.judgements, whole))
    };
    all.map(one).collect()
}

/// When work began, also where it waited for another rank first.
fn begun(work: &RecordedWork) -> u64 {
    work.awaited.as_ref().map_or(work.start, |(since, _)| *since)
}

/// The timeline of what lies in a time, from, to.
pub(crate) fn timeline(process: &Process, judgements: &[CallJudgement], (from, to): (u64, u64)) -> Timeline {
    let calls: Vec<_> =
        process.calls.iter().zip(judgements).filter(|(call, _)| call.exit > from && call.enter < to).collect();
    let work: Vec<_> = process.work.iter().filter(|work| work.end > from && work.start < to).collect();
    let threads: BTreeSet<u32> = calls.iter().map(|(call, _)| call.thread).collect();
    let streams: BTreeSet<u32> = work.iter().map(|work| work.stream).collect();
    let ranges = nested(process.ranges.iter().filter(|range| range.end > from && range.start < to).collect());
    let named = |number: usize| if number == 0 { "ranges".to_owned() } else { format!("ranges {}", number + 1) };
    let tracks = (0..ranges.len()).map(|number| Track::Host(named(number)));
    let tracks = tracks.chain(threads.iter().map(|thread| Track::Host(format!("{THREAD}{thread}"))));
    let tracks: Vec<Track> = tracks.chain(streams.iter().map(|stream| Track::Stream(*stream))).collect();
    let numbers = threads.iter().map(|thread| (true, *thread)).chain(streams.iter().map(|stream| (false, *stream)));
    let lanes: HashMap<(bool, u32), usize> = numbers.zip(ranges.len()..).collect();
    let clip = |at: u64| at.clamp(from, to) - from;
    let span = |track: usize, name: &str, (start, end): (u64, u64), kind: Kind| Span {
        track,
        name: name.to_owned(),
        start_ns: clip(start),
        end_ns: clip(end),
        kind,
        stream: None,
        bytes: None,
        correlation: None,
        sync: None,
        awaits: None,
        site: None,
        detail: None,
    };
    let lane = |is_host: bool, number: u32| lanes.get(&(is_host, number)).copied().unwrap_or(0);
    let some = |bytes: u64| Some(bytes).filter(|bytes| *bytes > 0);
    let mut spans: Vec<Span> = Vec::new();
    for (track, lane) in ranges.iter().enumerate() {
        spans.extend(lane.iter().map(|range| span(track, &range.name, (range.start, range.end), Kind::HostWork)));
    }
    // Which call each event stands for.
    let mut events: HashMap<u64, u64> = HashMap::new();
    for (call, judgement) in calls {
        if call.class == Class::Record {
            events.insert(call.event, call.correlation);
        }
        let waits = judgement.cause == Cause::Wait;
        let name: Cow<'_, str> = match call.class {
            Class::Profiler => format!("{} of the profiler", call.name).into(),
            _ => (&*call.name).into(),
        };
        let kind = if waits { Kind::Synchronize } else { Kind::Enqueue };
        spans.push(Span {
            stream: call.stream,
            bytes: some(call.bytes),
            correlation: Some(call.correlation),
            sync: waits.then_some(sync(call.class)),
            awaits: events.get(&call.event).copied().filter(|_| call.class == Class::Event && call.event != 0),
            site: places::frame(&process.stack(call)).map(Frame::place),
            ..span(lane(true, call.thread), &name, (call.enter, call.exit), kind)
        });
    }
    for work in work {
        let kind = if matches!(work.kind, WorkKind::Copy { .. }) { Kind::Copy } else { Kind::Kernel };
        spans.push(Span {
            stream: Some(work.stream),
            bytes: some(work.bytes),
            correlation: Some(work.correlation),
            ..span(lane(false, work.stream), &work.name, (begun(work), work.end), kind)
        });
    }
    spans.sort_by_key(|span| (span.start_ns, span.track));
    let device = format!("process {}", process.number);
    Timeline { device, source: "audit".to_owned(), tracks, spans, dropped: process.lost, region_ns: to - from }
}

/// The ranges in lanes: those of one lane lie within each other or beside, as a trace shows them. Those of several threads
/// overlap.
fn nested(mut ranges: Vec<&Range>) -> Vec<Vec<&Range>> {
    ranges.sort_by_key(|range| (range.start, Reverse(range.end)));
    // The ranges of each lane, and the ends of those that are open.
    let mut lanes: Vec<(Vec<&Range>, Vec<u64>)> = Vec::new();
    for range in ranges {
        let has_room = |(_, open): &mut (Vec<&Range>, Vec<u64>)| {
            // Each ends before the one that it lies in.
            while open.pop_if(|end| *end <= range.start).is_some() {}
            open.last().is_none_or(|end| range.end <= *end)
        };
        let place = lanes.iter_mut().position(has_room).unwrap_or_else(|| {
            if lanes.len() < MAX_LANES {
                lanes.push((Vec::new(), Vec::new()));
            }
            lanes.len() - 1
        });
        let (lane, open) = &mut lanes[place];
        lane.push(range);
        open.push(range.end);
    }
    lanes.into_iter().map(|(lane, _)| lane).collect()
}

fn sync(class: Class) -> SyncKind {
    match class {
        Class::Stream => SyncKind::Stream,
        Class::Event => SyncKind::Event,
        Class::Context => SyncKind::Device,
        _ => SyncKind::Implicit,
    }
}
