//! Timelines: what the host and the device did, and when, on one clock.
//!
//! [`Device::record`](crate::device::Device::record) records a region. Each call of the library that enqueued work or
//! blocked is a [`Span`] on the track of its host thread, from its start to its return. Each kernel and each copy is a
//! span on the track of its stream. A correlation ties a call to its work. Times are nanoseconds since the start of the
//! recording.
//!
//! | file | holds |
//! |---|---|
//! | `span` | spans, tracks and the timeline |
//! | `analysis`, `critical` | shares of time and pending work; the critical path |
//! | `record`, `standing` | from a region to its timeline; calls that enqueue and in which the host stood all the same |
//! | `audit` | the synchronization points of a region, and `assert_no_sync!` |
//! | `trace` | the Chrome trace, which Perfetto reads |
//!
//! # What it does not cover
//! * Tracing adds overhead: a lock and two clock readings for each call, and the cost of the source of device times. So
//!   no published time comes from a recorded region.
//! * A call may block inside, as the search for a matmul plan does, a copy from pageable memory, or a launch into a full
//!   queue. Where the source of times reports it (CUPTI), or where it follows from the times of the call and of the work, it
//!   is an implicit synchronization point within the call; elsewhere the call is a long enqueue.
//! * [`Timeline::source`] says what the source of device times misses.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod analysis;
mod audit;
#[cfg(any(test, feature = "testing"))]
pub mod by_hand;
mod critical;
#[cfg(feature = "plots")]
mod plot;
mod record;
mod span;
mod standing;
mod trace;

pub use crate::device::kind::{Kind, SyncKind};
pub use audit::{Audit, SyncPoint};
pub use critical::{CriticalPath, Segment};
pub use record::OpenRecording;
pub use span::{Span, Timeline, Track};
pub use trace::{TRACE_BEGIN, to_trace};
