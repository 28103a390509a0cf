//! What was pending on the streams of a GPU at a moment, for an allocation that waits until memory is freed.

use std::sync::Arc;

use crate::device::cuda::driver::Event;
use crate::device::cuda::gpu::Gpu;
use crate::device::cuda::stream::guard::StreamInner;

/// So many guards that have ended later, all that was pending is past, marked or not: a queue holds a thousand entries.
const QUEUE: u64 = 4096;

/// The streams that may not be past it yet.
pub(crate) struct Pending(Vec<Line>);

struct Line {
    stream: Arc<StreamInner>,
    /// How many guards had ended.
    left: u64,
    /// Behind what is pending, once no other thread was enqueueing.
    mark: Option<Event>,
}

impl Pending {
    /// What is pending on `streams` now.
    pub(crate) fn new(streams: impl Iterator<Item = Arc<StreamInner>>) -> Self {
        let line = |stream: Arc<StreamInner>| Line { left: stream.left(), mark: None, stream };
        Self(streams.map(line).collect())
    }

    /// Whether all is over. A stream that is found idle hands on what it kept; behind what is pending on another comes a mark, as
    /// its user may enqueue more all the time. The caller has the guard of `own`.
    pub(crate) fn is_past(&mut self, gpu: &Gpu, own: &StreamInner) -> bool {
        let is_own = |stream: &Arc<StreamInner>| std::ptr::eq(&raw const **stream, own);
        // Until it is dropped no gate begins to hold: no question waits for long.
        let making = gpu.may_make();
        self.0.retain(|Line { stream, .. }| match making.is_some() || is_own(stream) {
            true => !stream.is_past(),
            false => !stream.is_over_for_others(),
        });
        drop(making);
        self.0.retain_mut(|Line { stream, left, mark }| {
            *mark = mark.take().or_else(|| stream.marked(is_own(stream)));
            let is_reached = mark.as_ref().is_some_and(|mark| mark.is_complete() != Ok(false));
            !is_reached && stream.left() - *left < QUEUE
        });
        self.0.is_empty() && gpu.context.is_idle_at_hand()
    }
}
