//! What was given up while work of a stream may still use it: pinned memory, and memory of other streams.
//!
//! To give something up is a push on a list. Marks are put behind it by the next call on the stream that wants something
//! back, never by the drop itself: a call of the driver can block while a gate holds the stream and its queue is full. Each
//! stream has a list of its own, so that what waits for one stream keeps nothing back that waits for another.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;

use crate::device::cuda::driver::{Allocation, Event};
use crate::device::cuda::memory::pinned::Slot;
use crate::device::cuda::stream::guard::StreamInner;

/// A mark is an entry of the queue, too: so many slots share one.
const SLOTS_A_MARK: usize = 8;

/// What is kept until a stream has come past it; dropping it hands it on.
pub(crate) enum Kept {
    /// A pinned slot that a copy or a kernel uses.
    Slot { _slot: Slot },
    /// Memory of another stream.
    Memory { _memory: Arc<LimboState> },
    /// Memory of another library, whose own drop calls the driver.
    Other { _owner: Box<dyn Any + Send + Sync> },
}

/// What holds memory.
pub(crate) enum Content {
    /// This library's.
    Own(Allocation),
    /// Another's, which its drop frees in the order of its stream.
    Other(Box<dyn Any + Send + Sync>),
}

impl Content {
    /// Gives it back, in the order of its home.
    pub(crate) fn free(self, home: &StreamInner) {
        match self {
            Self::Own(allocation) => home.free(allocation),
            Self::Other(owner) => home.keep(Kept::Other { _owner: owner }),
        }
    }
}

/// Memory that other streams than its home used: it goes home when the last of them is past it.
pub(crate) struct LimboState {
    content: Option<Content>,
    home: Arc<StreamInner>,
}

impl LimboState {
    pub(crate) fn new(content: Content, home: Arc<StreamInner>) -> Self {
        Self { content: Some(content), home }
    }
}

impl Drop for LimboState {
    /// Its home follows in its own order, so that the home's work needs no mark.
    fn drop(&mut self) {
        if let Some(content) = self.content.take() {
            content.free(&self.home);
        }
    }
}

/// The list of one stream.
#[derive(Default)]
pub(crate) struct Limbo {
    unmarked: Vec<Kept>,
    marked: VecDeque<(Event, Vec<Kept>)>,
}

impl Limbo {
    pub(crate) fn keep(&mut self, kept: Kept) {
        self.unmarked.push(kept);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.unmarked.is_empty() && self.marked.is_empty()
    }

    /// Takes what has no mark yet.
    pub(crate) fn unmarked(&mut self) -> Vec<Kept> {
        std::mem::take(&mut self.unmarked)
    }

    /// As [`unmarked`](Self::unmarked), where a mark is due: at once for what may be large.
    pub(crate) fn due(&mut self) -> Vec<Kept> {
        let large = self.unmarked.iter().any(|kept| !matches!(kept, Kept::Slot { .. }));
        if large || self.unmarked.len() >= SLOTS_A_MARK { self.unmarked() } else { Vec::new() }
    }

    /// Adds what a mark was put behind; marks come in the order of the stream.
    pub(crate) fn marked(&mut self, event: Event, kept: Vec<Kept>) {
        self.marked.push_back((event, kept));
    }

    /// Takes back what could not be marked.
    pub(crate) fn still_unmarked(&mut self, kept: Vec<Kept>) {
        self.unmarked.extend(kept);
    }

    /// What the stream is past, to be dropped without a lock. Only the first mark that is not reached is asked in vain.
    pub(crate) fn reached(&mut self) -> Vec<Kept> {
        let mut reached = Vec::new();
        while let Some((event, _)) = self.marked.front()
            && event.is_complete() == Ok(true)
            && let Some((_, kept)) = self.marked.pop_front()
        {
            reached.extend(kept);
        }
        reached
    }

    /// Everything: the stream is over.
    pub(crate) fn all(&mut self) -> Vec<Kept> {
        let marked = std::mem::take(&mut self.marked).into_iter().flat_map(|(_, kept)| kept);
        marked.chain(std::mem::take(&mut self.unmarked)).collect()
    }
}
