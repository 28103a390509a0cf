//! A process as a [`Timeline`], for the trace and for the picture of a page.

use std::collections::{BTreeSet, HashMap};

use super::class::Class;
use super::evidence::{CallJudgement, Cause};
use super::places;
use super::recording::{Frame, Process, WorkKind};
use crate::timeline::{Kind, Span, SyncKind, Timeline, Track};

/// The timeline of what lies in a time, from, to.
pub(crate) fn timeline(process: &Process, judgements: &[CallJudgement], (from, to): (u64, u64)) -> Timeline {
    let calls: Vec<_> =
        process.calls.iter().zip(judgements).filter(|(call, _)| call.exit > from && call.enter < to).collect();
    let work: Vec<_> = process.work.iter().filter(|work| work.end > from && work.start < to).collect();
    let threads: BTreeSet<u32> = calls.iter().map(|(call, _)| call.thread).collect();
    let streams: BTreeSet<u32> = work.iter().map(|work| work.stream).collect();
    let tracks = threads.iter().map(|thread| Track::Host(format!("thread {thread}")));
    let tracks: Vec<Track> = tracks.chain(streams.iter().map(|stream| Track::Stream(*stream))).collect();
    let lanes: HashMap<(bool, u32), usize> = threads
        .iter()
        .map(|thread| (true, *thread))
        .chain(streams.iter().map(|stream| (false, *stream)))
        .zip(0..)
        .collect();
    let mut spans: Vec<Span> = Vec::new();
    let clip = |at: u64| at.clamp(from, to) - from;
    for (call, judgement) in calls {
        let waits = judgement.cause == Cause::Wait;
        let stack = process.stack(call);
        spans.push(Span {
            track: lanes.get(&(true, call.thread)).copied().unwrap_or(0),
            name: call.name.clone(),
            start_ns: clip(call.enter),
            end_ns: clip(call.exit),
            kind: if waits { Kind::Synchronize } else { Kind::Enqueue },
            stream: call.stream,
            bytes: Some(call.bytes).filter(|bytes| *bytes > 0),
            correlation: Some(call.correlation),
            sync: waits.then_some(sync(call.class)),
            awaits: None,
            site: places::frame(&stack).map(Frame::place),
            detail: None,
        });
    }
    for work in work {
        spans.push(Span {
            track: lanes.get(&(false, work.stream)).copied().unwrap_or(0),
            name: work.name.clone(),
            start_ns: clip(work.start),
            end_ns: clip(work.end),
            kind: if matches!(work.kind, WorkKind::Copy { .. }) { Kind::Copy } else { Kind::Kernel },
            stream: Some(work.stream),
            bytes: Some(work.bytes).filter(|bytes| *bytes > 0),
            correlation: Some(work.correlation),
            sync: None,
            awaits: None,
            site: None,
            detail: None,
        });
    }
    spans.sort_by_key(|span| (span.start_ns, span.track));
    let device = format!("process {}", process.number);
    Timeline { device, source: "audit".to_owned(), tracks, spans, dropped: process.lost, region_ns: to - from }
}

fn sync(class: Class) -> SyncKind {
    match class {
        Class::Stream => SyncKind::Stream,
        Class::Event => SyncKind::Event,
        Class::Context => SyncKind::Device,
        _ => SyncKind::Implicit,
    }
}
