//! Timelines made by hand, and waits that are sure to be ones, for tests.

use super::span::{Span, Timeline, Track};
use crate::affinity;
use crate::device::Stream;
use crate::device::kind::{Kind, SyncKind};
use crate::error::DeviceError;

/// A span of `kind` on stream or host from `start` to `end`.
pub fn span(kind: Kind, stream: u32, (start_ns, end_ns): (u64, u64), correlation: u64) -> Span {
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
pub fn timeline(spans: Vec<Span>) -> Timeline {
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

/// Runs `region` while the stream is held, until a synchronization point has begun.
///
/// # Errors
/// That of the region.
pub fn held<R>(stream: &Stream, region: impl FnOnce() -> Result<R, DeviceError>) -> Result<R, DeviceError> {
    let device = stream.device();
    let gate = device.gate()?;
    stream.wait_gate(&gate)?;
    std::thread::scope(|scope| {
        let opens = || {
            while !device.engine().tracer().has_begun_a_barrier() {
                std::thread::yield_now();
            }
            gate.open();
        };
        affinity::beside(scope, opens)?;
        region()
    })
}
