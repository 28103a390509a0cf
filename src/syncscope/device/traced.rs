//! What a tracer sees: calls, work, stalls, and who tells of work.

use std::any::Any;
use std::backtrace::Backtrace;
use std::panic::Location;
use std::sync::Arc;
use std::thread::ThreadId;
use std::time::Instant;

use super::kept::{CALL_NAME_BYTES, ChunkedVec, INDEX_BYTES, Name, SPAN_BYTES, text_bytes};
use super::kind::{Kind, SyncKind};
use crate::error::DeviceError;

/// The digits of a place's line, and the colon.
const LINE_BYTES: usize = 11;

/// A place in the source that calls the library.
pub(crate) type Site = Option<&'static Location<'static>>;

/// What is known of a call when it begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallInfo {
    pub(crate) name: &'static str,
    /// Enqueue, synchronize, or the host's own work.
    pub(crate) kind: Kind,
    /// What a call that synchronizes waits for.
    pub(crate) barrier: Option<SyncKind>,
    pub(crate) stream: Option<u32>,
    pub(crate) bytes: Option<u64>,
    /// The work that it enqueues.
    pub(crate) enqueues: Option<Kind>,
    /// The correlation of the call whose work a wait for an event waits for.
    pub(crate) awaits: Option<u64>,
    /// Whether the host may stand in it while its own copy runs, or, where it enqueues nothing, for any work.
    pub(crate) may_wait: bool,
    /// Whether another library called the driver.
    pub(crate) others: bool,
}

impl CallInfo {
    pub(crate) fn new(name: &'static str, kind: Kind) -> Self {
        Self {
            name,
            kind,
            barrier: None,
            stream: None,
            bytes: None,
            enqueues: None,
            awaits: None,
            may_wait: false,
            others: false,
        }
    }

    pub(crate) fn enqueue(name: &'static str, work: Option<Kind>) -> Self {
        Self { enqueues: work, ..Self::new(name, Kind::Enqueue) }
    }

    pub(crate) fn barrier(name: &'static str, barrier: SyncKind) -> Self {
        Self { barrier: Some(barrier), ..Self::new(name, Kind::Synchronize) }
    }

    /// Of a copy of so many bytes between host and device, for which the host may wait.
    pub(crate) fn copy(name: &'static str, waits: bool, bytes: usize) -> Self {
        let barrier = waits.then_some(SyncKind::Implicit);
        let kind = if waits { Kind::Synchronize } else { Kind::Enqueue };
        Self { barrier, enqueues: Some(Kind::Copy), bytes: Some(bytes as u64), ..Self::new(name, kind) }
    }

    /// What the call takes of its room: itself, its span, and that of a stall within it.
    pub(super) fn bytes_kept(&self, site: Site) -> usize {
        let texts = text_bytes(self.name.len()) + site.map_or(0, |site| text_bytes(site.file().len() + LINE_BYTES));
        let stall = if self.kind == Kind::Enqueue { size_of::<Stall>() + SPAN_BYTES + texts } else { 0 };
        size_of::<TracedCall>() + INDEX_BYTES + SPAN_BYTES + texts + stall
    }
}

/// A call that enqueued or blocked: of the library, or of another one.
#[derive(Clone, Debug)]
pub(crate) struct TracedCall {
    pub(crate) note: CallInfo,
    pub(crate) site: Site,
    /// Where another library's call was made.
    pub(crate) stack: Option<Arc<Backtrace>>,
    pub(crate) thread: ThreadId,
    pub(crate) correlation: u64,
    pub(crate) start: Instant,
    pub(crate) end: Instant,
}

/// What a device did.
#[derive(Clone, Debug)]
pub(crate) struct DeviceWork {
    pub(crate) name: Name,
    pub(crate) kind: Kind,
    /// `None` where it is known by its correlation alone.
    pub(crate) stream: Option<u32>,
    pub(crate) correlation: Option<u64>,
    pub(crate) bytes: Option<u64>,
    pub(crate) start: Instant,
    pub(crate) end: Instant,
}

impl DeviceWork {
    /// What work takes of its room: itself and its span, with the name of the call.
    pub(crate) const BYTES: usize = size_of::<Self>() + SPAN_BYTES + CALL_NAME_BYTES;
}

/// A stretch within a call in which the host waited for the device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stall {
    /// The call's.
    pub(crate) correlation: u64,
    pub(crate) start: Instant,
    pub(crate) end: Instant,
}

/// What a tracer saw.
#[derive(Debug, Default)]
pub(crate) struct Traced {
    pub(crate) work: ChunkedVec<DeviceWork>,
    pub(crate) stalls: Vec<Stall>,
    pub(crate) dropped: u64,
    /// Why the first call whose work could not be recorded has none.
    pub(crate) failure: Option<DeviceError>,
}

/// Who records what a device did, beside the engine.
pub(crate) trait ActivitySource: Send + Sync + Any {
    /// Work enqueued from now on by this thread is of the call `correlation`.
    fn enter(&self, correlation: u64);

    /// The call is over.
    fn leave(&self);

    /// Ends the records, and says of `calls` what it alone knows: on which stream another library's was. The device is idle.
    fn finish(&self, calls: &mut ChunkedVec<TracedCall>) -> Traced;

    /// Ends the records, which are of no use. Work may be pending, and nothing may wait for it.
    fn abandon(&self);
}

/// Who reports when work ran.
pub(crate) enum TraceSource {
    /// The engine, to the tracer.
    Engine(String),
    /// A recorder, at the end.
    #[cfg_attr(not(feature = "cupti"), allow(dead_code, reason = "no other engine has one"))]
    Recorder(Arc<dyn ActivitySource>, String),
    /// Nobody, for this reason: events are put around each call.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "the CPU engine reports"))]
    Events(String),
}
