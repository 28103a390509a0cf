//! What the oracle knows: which tensors, streams and graphs there are, what the memories hold, and who touched them.

use std::collections::BTreeSet;

use syncscope::device::DType;

use crate::oracle::numbers::fits;
use crate::program::{Action, Id, Part, Program};

/// A tensor, as a part of a memory.
#[derive(Clone)]
pub(super) struct Tensor {
    pub(super) id: Id,
    pub(super) dtype: DType,
    pub(super) memory: usize,
    pub(super) offset: usize,
    pub(super) len: usize,
}

/// What lies in a memory, of the device or the host, and who touched it.
pub(super) struct Memory {
    pub(super) device: usize,
    pub(super) values: Vec<i64>,
    pub(super) written: Option<Touch>,
    pub(super) read: Vec<Touch>,
}

/// A step and the number of its stream.
#[derive(Clone, Copy)]
pub(super) struct Touch {
    pub(super) step: Id,
    pub(super) stream: usize,
}

pub(super) struct Stream {
    pub(super) id: Id,
    pub(super) device: usize,
    /// The gates that it may wait for. An open one stays: threads may come to its opening late.
    pub(super) held: BTreeSet<Id>,
    pub(super) steps: Vec<Id>,
    /// What all later steps follow: a capture has the stream for itself.
    pub(super) exclusive: Option<Id>,
    pub(super) dropped: bool,
    /// Whether another library uses it, too.
    pub(super) shared: bool,
}

pub(super) struct Graph {
    pub(super) id: Id,
    pub(super) stream: usize,
    /// With the tensors that they name.
    pub(super) parts: Vec<(Part, Tensor, Tensor)>,
}

pub(super) struct Buffer {
    pub(super) id: Id,
    pub(super) device: usize,
    pub(super) memory: usize,
    /// Whether a copy may wait for its stream.
    pub(super) pageable: bool,
    /// What its last operation was: they follow each other.
    pub(super) last: Id,
    /// The gates that pending copies wait for.
    pub(super) held: BTreeSet<Id>,
}

#[derive(Default)]
pub(super) struct Oracle {
    pub(super) program: Program,
    pub(super) streams: Vec<Stream>,
    pub(super) tensors: Vec<Tensor>,
    pub(super) memories: Vec<Memory>,
    pub(super) graphs: Vec<Graph>,
    pub(super) buffers: Vec<Buffer>,
    /// Closed gates.
    pub(super) gates: Vec<Id>,
    /// Steps that open one.
    pub(super) opens: Vec<Id>,
    /// By step: the gates that its stream may wait for behind it, and who used what it made.
    pub(super) held_behind: Vec<BTreeSet<Id>>,
    pub(super) users: Vec<Vec<Id>>,
    /// Steps that may wait for all of a device, or of both where they are one GPU: no stream may be held before them.
    pub(super) device_wide: Vec<Id>,
}

/// A step before it has a place.
pub(super) struct Planned<'a> {
    pub(super) thread: usize,
    pub(super) stream: Option<usize>,
    pub(super) reads: &'a [usize],
    pub(super) writes: &'a [usize],
    /// What was made by other steps and is used.
    pub(super) uses: &'a [Id],
    /// Whether the call may wait for its stream.
    pub(super) blocks: bool,
    pub(super) action: Action,
}

impl Oracle {
    pub(super) fn choose_stream(&self, number: usize) -> Option<usize> {
        let live: Vec<usize> = (0..self.streams.len()).filter(|&s| !self.streams[s].dropped).collect();
        live.get(number % live.len().max(1)).copied()
    }

    pub(super) fn choose_shared(&self, number: usize) -> Option<usize> {
        let shared = |&s: &usize| self.streams[s].shared && !self.streams[s].dropped;
        let live: Vec<usize> = (0..self.streams.len()).filter(shared).collect();
        live.get(number % live.len().max(1)).copied()
    }

    pub(super) fn choose(&self, device: usize, number: usize, fits: impl Fn(&Tensor) -> bool) -> Option<Tensor> {
        let on_device = |x: &&Tensor| self.memories[x.memory].device == device && x.len > 0;
        let fitting: Vec<&Tensor> = self.tensors.iter().filter(on_device).filter(|x| fits(x)).collect();
        // The youngest first, so that what fails is near.
        fitting.iter().rev().nth(number % fitting.len().max(1)).map(|x| (*x).clone())
    }

    pub(super) fn choose_buffer(&self, device: usize, number: usize) -> Option<usize> {
        let on_device: Vec<usize> = (0..self.buffers.len()).filter(|&b| self.buffers[b].device == device).collect();
        on_device.get(number % on_device.len().max(1)).copied()
    }

    pub(super) fn values(&self, x: &Tensor) -> Vec<i64> {
        self.memories[x.memory].values[x.offset..x.offset + x.len].to_vec()
    }

    pub(super) fn new_memory(&mut self, device: usize, values: Vec<i64>) -> usize {
        self.memories.push(Memory { device, values, written: None, read: Vec::new() });
        self.memories.len() - 1
    }

    pub(super) fn add_tensor(&mut self, id: Id, dtype: DType, memory: usize) {
        let len = self.memories[memory].values.len();
        self.tensors.push(Tensor { id, dtype, memory, offset: 0, len });
    }

    /// Changes the elements of a tensor, if its type holds them.
    pub(super) fn write(&mut self, x: &Tensor, values: Vec<i64>) -> Option<()> {
        fits(x.dtype, &values).then_some(())?;
        self.memories[x.memory].values[x.offset..x.offset + x.len].copy_from_slice(&values);
        Some(())
    }
}
