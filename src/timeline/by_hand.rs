//! Timelines made by hand, for tests.

use super::span::{Span, Timeline, Track};
use crate::device::kind::{Kind, SyncKind};

/// A span of `kind` on stream or host from `start` to `end`.
pub(crate) fn span(kind: Kind, stream: u32, (start_ns, end_ns): (u64, u64), correlation: u64) -> Span {
    Span {
        track: if kind.is_on_device() { 1 + stream as usize } else { 0 },
        name: kind.name().to_owned(),
        start_ns,
        end_ns,
        kind,
        stream: Some(stream),
        bytes: None,
        correlation: Some(correlation),
        sync: (kind == Kind::Synchronize).then_some(SyncKind::Stream),
        awaits: None,
        site: None,
        detail: None,
    }
}

/// A timeline of one host thread and two streams.
pub(crate) fn timeline(spans: Vec<Span>) -> Timeline {
    let mut spans = spans;
    spans.sort_by_key(|span| (span.start_ns, span.track));
    Timeline {
        device: "cpu:0".to_owned(),
        source: "by hand".to_owned(),
        tracks: vec![Track::Host("main".to_owned()), Track::Stream(0), Track::Stream(1)],
        spans,
        dropped: 0,
        region_ns: 0,
    }
}
