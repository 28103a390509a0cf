//! Steps that take more than a line: they make, copy, capture, launch and drop.

use std::collections::BTreeSet;

use syncscope::device::DType;

use crate::oracle::PRODUCTS;
use crate::oracle::numbers::{fits, is_real, small};
use crate::oracle::state::{Graph, Oracle, Planned, Stream, Tensor};
use crate::program::{Action, Id, Part, Values};

/// Bytes that an upload takes without waiting.
const SMALL_UPLOAD: usize = 64 << 10;

impl Oracle {
    /// A step that makes a tensor.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn make(
        &mut self,
        thread: usize,
        stream: usize,
        reads: &[usize],
        uses: &[Id],
        action: Action,
        dtype: DType,
        values: Vec<i64>,
    ) -> Option<()> {
        fits(dtype, &values).then_some(())?;
        let memory = self.new_memory(self.streams[stream].device, values);
        let id = self.enqueue(thread, stream, reads, &[memory], uses, action);
        self.add_tensor(id, dtype, memory);
        Some(())
    }

    pub(super) fn upload(&mut self, thread: usize, stream: usize, dtype: DType, values: Vec<i64>) {
        let action = Action::Upload { dtype, values: Values(values.clone()) };
        self.upload_by(thread, stream, dtype, values, action);
    }

    pub(super) fn upload_by(&mut self, thread: usize, stream: usize, dtype: DType, values: Vec<i64>, action: Action) {
        let blocks = values.len() * dtype.size() > SMALL_UPLOAD;
        let memory = self.new_memory(self.streams[stream].device, values);
        let writes = &[memory];
        let id = self.place(Planned { thread, stream: Some(stream), reads: &[], writes, uses: &[], blocks, action });
        self.add_tensor(id, dtype, memory);
    }

    pub(super) fn matmul(&mut self, thread: usize, stream: usize, second: usize, third: usize) -> Option<()> {
        let device = self.streams[stream].device;
        let of = |x: &Tensor, [m, k, _]: [usize; 3]| x.len == m * k;
        // Aligned, as those that the device was asked for beforehand.
        let is_factor = |x: &Tensor| is_real(x.dtype) && x.offset == 0 && PRODUCTS.iter().any(|sizes| of(x, *sizes));
        let x = self.choose(device, second, is_factor)?;
        let [m, k, n] = PRODUCTS.into_iter().find(|sizes| of(&x, *sizes))?;
        let y = self.choose(device, third, |y| y.dtype == x.dtype && y.len == k * n && y.offset == 0)?;
        let (a, b) = (self.values(&x), self.values(&y));
        let element = |i: usize| {
            (0..k).map({
                let (a, b) = (&a, &b);
                move |l| a[i / n * k + l] * b[l * n + i % n]
            })
        };
        let exact = (0..m * n).all(|i| element(i).map(i64::abs).sum::<i64>() < 1 << 22);
        exact.then_some(())?;
        let values = (0..m * n).map(|i| element(i).sum()).collect();
        let action = Action::Matmul { x: x.id, y: y.id, sizes: [m, k, n] };
        self.make(thread, stream, &[x.memory, y.memory], &[x.id, y.id], action, x.dtype, values)
    }

    pub(super) fn read(&mut self, x: &Tensor, thread: usize) -> Option<()> {
        let device = self.memories[x.memory].device;
        let stream = (0..self.streams.len()).find(|&s| self.streams[s].device == device && !self.streams[s].dropped)?;
        self.read_on(x, thread, stream);
        Some(())
    }

    pub(super) fn read_on(&mut self, x: &Tensor, thread: usize, stream: usize) {
        let action = Action::Read { x: x.id, expected: Values(self.values(x)) };
        self.block(thread, stream, &[x.memory], &[], &[x.id], action);
    }

    pub(super) fn new_stream(&mut self, device: usize, thread: usize) {
        let id = self.call(thread, &[], Action::NewStream { device });
        self.add_stream(id, device, false);
    }

    pub(super) fn add_stream(&mut self, id: Id, device: usize, shared: bool) {
        let (held, steps) = (BTreeSet::new(), Vec::new());
        self.streams.push(Stream { id, device, held, steps, exclusive: None, dropped: false, shared });
    }

    /// Another stream in the place of one.
    pub(super) fn replace(&mut self, stream: usize, thread: usize) {
        self.drop_handle(self.streams[stream].id, thread);
        self.streams[stream].dropped = true;
    }

    pub(super) fn drop_something(&mut self, thread: usize, second: usize, third: usize) -> Option<()> {
        match second % 8 {
            0 if !self.gates.is_empty() => {
                let gate = self.gates.remove(third % self.gates.len());
                let id = self.drop_handle(gate, thread);
                self.opens.push(id);
            }
            1 if !self.graphs.is_empty() => {
                let graph = self.graphs.remove(third % self.graphs.len());
                self.drop_handle(graph.id, thread);
            }
            2 if !self.buffers.is_empty() => {
                let buffer = self.buffers.remove(third % self.buffers.len());
                let after = self.users[buffer.id].clone();
                // Pinned memory may be given back at once, which waits for the device.
                let id = self.device_wide(thread, Action::Drop { of: buffer.id });
                self.program.steps[id].after.extend(after.into_iter().chain([buffer.id]));
            }
            _ => {
                (!self.tensors.is_empty()).then_some(())?;
                let tensor = self.tensors.remove(third % self.tensors.len());
                self.drop_handle(tensor.id, thread);
            }
        }
        Some(())
    }

    /// A copy between a tensor and a host buffer. Pageable memory may have the call wait for the stream.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn copy(
        &mut self,
        thread: usize,
        stream: usize,
        buffer: usize,
        reads: &[usize],
        writes: &[usize],
        x: Id,
        action: Action,
    ) {
        let uses = &[self.buffers[buffer].id, self.buffers[buffer].last, x];
        let blocks = self.buffers[buffer].pageable;
        let id = self.place(Planned { thread, stream: Some(stream), reads, writes, uses, blocks, action });
        let held = self.held_behind[id].clone();
        self.buffers[buffer].held.extend(held);
        self.buffers[buffer].last = id;
    }

    /// A copy from a buffer into a tensor.
    pub(super) fn copy_from(
        &mut self,
        thread: usize,
        stream: usize,
        buffer: usize,
        third: usize,
        together: bool,
    ) -> Option<()> {
        let (device, memory) = (self.streams[stream].device, self.buffers[buffer].memory);
        let len = self.memories[memory].values.len();
        let x = self.choose(device, third, |x| x.dtype == DType::F32 && x.len == len)?;
        let values = self.memories[memory].values.clone();
        self.write(&x, values.clone())?;
        let (of, x_id) = (self.buffers[buffer].id, x.id);
        let action = if together {
            // The other thread waits for pending copies into the buffer.
            let held = self.buffers[buffer].held.clone();
            self.open(&held, thread);
            Action::Together { buffer: of, x: x_id, expected: Values(values) }
        } else {
            Action::CopyFrom { buffer: of, x: x_id }
        };
        self.copy(thread, stream, buffer, &[memory], &[x.memory], x_id, action);
        Some(())
    }

    /// As a drop of a tensor or a graph, which leaves what is theirs behind.
    pub(super) fn forget_something(&mut self, thread: usize, second: usize, third: usize) -> Option<()> {
        let of = if second.is_multiple_of(3) && !self.graphs.is_empty() {
            self.graphs.remove(third % self.graphs.len()).id
        } else {
            (!self.tensors.is_empty()).then_some(())?;
            self.tensors.remove(third % self.tensors.len()).id
        };
        let mut uses = self.users[of].clone();
        uses.push(of);
        self.call(thread, &uses, Action::Forget { of });
        Some(())
    }

    /// The event of an earlier step of a stream that is no capture.
    pub(super) fn event_of(&mut self, stream: usize, second: usize) -> Option<Id> {
        let steps = &self.streams[stream].steps;
        let of = *steps.get(second % steps.len().max(1))?;
        let recorded = self.program.steps[of].stream == Some(self.streams[stream].id)
            && !matches!(self.program.steps[of].action, Action::Capture { .. });
        recorded.then_some(())?;
        self.program.steps[of].records = true;
        Some(of)
    }

    /// The host looks into a buffer: it waits for pending copies.
    pub(super) fn use_buffer(&mut self, thread: usize, buffer: usize, action: Action) -> Id {
        let held = self.buffers[buffer].held.clone();
        self.open(&held, thread);
        let uses = [self.buffers[buffer].id, self.buffers[buffer].last];
        let id = self.call(thread, &uses, action);
        self.buffers[buffer].last = id;
        id
    }

    /// One gate for several streams of its device.
    pub(super) fn hold_by(&mut self, thread: usize, stream: usize, second: usize) -> Option<()> {
        let device = self.streams[stream].device;
        let of_device = |gate: &&Id| {
            let held = self.program.steps[**gate].stream;
            self.streams.iter().any(|other| Some(other.id) == held && other.device == device)
        };
        let gates: Vec<Id> = self.gates.iter().filter(of_device).copied().collect();
        let gate = *gates.get(second % gates.len().max(1))?;
        let after = self.device_wide.iter().copied().chain([gate]).collect();
        let id = self.enqueue_after(thread, stream, after, Action::HoldBy { gate });
        self.users[gate].push(id);
        self.streams[stream].held.insert(gate);
        self.held_behind[id].insert(gate);
        Some(())
    }

    pub(super) fn capture(&mut self, thread: usize, stream: usize, second: usize, third: usize) -> Option<()> {
        let device = self.streams[stream].device;
        let mut parts = Vec::new();
        for i in 0..1 + second % 4 {
            let x = self.choose(device, second / 4 + i, |x| is_real(x.dtype))?;
            let source =
                self.choose(device, third + i, |y| y.dtype == x.dtype && y.len == x.len && y.memory != x.memory);
            let (scale, shift) = (small(third / 4 + i), small(third / 32 + i));
            parts.push(match source {
                Some(y) if i % 2 == 1 => (Part::Through { target: x.id, source: y.id, scale, shift }, x, y),
                _ => (Part::InPlace { x: x.id, scale, shift }, x.clone(), x),
            });
        }
        let uses: Vec<Id> = parts.iter().flat_map(|(_, x, y)| [x.id, y.id]).collect();
        let action = Action::Capture { parts: parts.iter().map(|(part, ..)| part.clone()).collect() };
        // The stream is this thread's alone meanwhile.
        let id = self.enqueue_after(thread, stream, uses.clone(), action);
        uses.into_iter().for_each(|used| self.users[used].push(id));
        self.streams[stream].exclusive = Some(id);
        self.graphs.push(Graph { id, stream, parts });
        Some(())
    }

    pub(super) fn launch(&mut self, thread: usize, second: usize) -> Option<()> {
        let graph = self.graphs.get(second % self.graphs.len().max(1))?;
        let (id, stream, parts) = (graph.id, graph.stream, graph.parts.clone());
        let before: Vec<Vec<i64>> = parts.iter().map(|(_, x, _)| self.memories[x.memory].values.clone()).collect();
        for (part, x, y) in &parts {
            let (Part::InPlace { scale, shift, .. } | Part::Through { scale, shift, .. }) = part;
            let values = self.values(y).iter().map(|x| x * scale + shift).collect();
            if self.write(x, values).is_none() {
                // As if nothing had happened.
                parts.iter().zip(before).rev().for_each(|((_, x, _), old)| self.memories[x.memory].values = old);
                return None;
            }
        }
        let reads: Vec<usize> = parts.iter().map(|(_, _, y)| y.memory).collect();
        let writes: Vec<usize> = parts.iter().map(|(_, x, _)| x.memory).collect();
        self.enqueue(thread, stream, &reads, &writes, &[id], Action::Launch { graph: id });
        Some(())
    }
}
