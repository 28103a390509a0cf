//! The place of a step: what it must follow on the host, what its stream waits for, and which gates are opened before.

use std::collections::BTreeSet;

use crate::oracle::state::{Oracle, Planned, Touch};
use crate::program::{Action, Id, Step, THREADS};

impl Oracle {
    pub(super) fn enqueue(
        &mut self,
        thread: usize,
        stream: usize,
        reads: &[usize],
        writes: &[usize],
        uses: &[Id],
        action: Action,
    ) -> Id {
        self.place(Planned { thread, stream: Some(stream), reads, writes, uses, blocks: false, action })
    }

    pub(super) fn block(
        &mut self,
        thread: usize,
        stream: usize,
        reads: &[usize],
        writes: &[usize],
        uses: &[Id],
        action: Action,
    ) -> Id {
        self.place(Planned { thread, stream: Some(stream), reads, writes, uses, blocks: true, action })
    }

    /// A step on a stream behind all earlier ones, and some more.
    pub(super) fn enqueue_after(&mut self, thread: usize, stream: usize, after: Vec<Id>, action: Action) -> Id {
        let earlier = self.streams[stream].steps.clone();
        let id = self.enqueue(thread, stream, &[], &[], &[], action);
        self.program.steps[id].after.extend(after.into_iter().chain(earlier));
        id
    }

    /// A step on no stream.
    pub(super) fn call(&mut self, thread: usize, uses: &[Id], action: Action) -> Id {
        self.place(Planned { thread, stream: None, reads: &[], writes: &[], uses, blocks: false, action })
    }

    /// A call that may wait for all of its device: no stream is held while it runs, of neither device, since two openings of
    /// one GPU are waited for together.
    pub(super) fn device_wide(&mut self, thread: usize, action: Action) -> Id {
        self.open_all(thread);
        let id = self.call(thread, &[], action);
        self.alone(id);
        id
    }

    /// As [`device_wide`](Self::device_wide), on a stream, by calls that may keep others out: those before the opening of a gate, too.
    pub(super) fn device_wide_on(
        &mut self,
        thread: usize,
        stream: usize,
        reads: &[usize],
        writes: &[usize],
        uses: &[Id],
        action: Action,
    ) -> Id {
        self.open_all(thread);
        let id = self.block(thread, stream, reads, writes, uses, action);
        self.program.steps[id].after.extend(&self.opens);
        self.alone(id);
        id
    }

    /// One at a time, and not beside a capture.
    fn alone(&mut self, id: Id) {
        let captures = self.streams.iter().filter_map(|stream| stream.exclusive);
        self.program.steps[id].after.extend(captures.chain(self.device_wide.last().copied()));
        self.device_wide.push(id);
    }

    pub(super) fn drop_handle(&mut self, of: Id, thread: usize) -> Id {
        let mut uses = self.users[of].clone();
        uses.push(of);
        self.call(thread, &uses, Action::Drop { of })
    }

    fn open_all(&mut self, thread: usize) {
        let held: BTreeSet<Id> = self.gates.iter().copied().collect();
        self.open(&held, thread);
    }

    /// Opens those of some gates that are closed, by another thread than the one that is about to block.
    pub(super) fn open(&mut self, gates: &BTreeSet<Id>, thread: usize) {
        for &gate in gates {
            if self.gates.contains(&gate) {
                self.gates.retain(|closed| *closed != gate);
                let opener = (thread + 1 + gate % (THREADS - 1)) % THREADS;
                let id = self.call(opener, &[gate], Action::Open { gate });
                self.opens.push(id);
            }
        }
    }

    pub(super) fn place(&mut self, planned: Planned<'_>) -> Id {
        let Planned { thread, stream, reads, writes, uses, blocks, action } = planned;
        let (mut after, mut waits) = (uses.to_vec(), Vec::new());
        if let Some(stream) = stream {
            let read = reads.iter().filter_map(|&memory| self.memories[memory].written);
            let written = writes.iter().flat_map(|&memory| {
                let memory = &self.memories[memory];
                memory.written.into_iter().chain(memory.read.iter().copied())
            });
            let mut brought = BTreeSet::new();
            for touch in read.chain(written) {
                after.push(touch.step);
                if touch.stream != stream {
                    waits.push(touch.step);
                    brought.extend(&self.held_behind[touch.step]);
                }
            }
            after.push(self.streams[stream].id);
            after.extend(self.streams[stream].exclusive);
            let held = &brought | &self.streams[stream].held;
            if blocks {
                self.open(&held, thread);
            }
            if !brought.is_empty() {
                // An earlier step that comes late would wait for a gate that it does not know of.
                after.extend(&self.streams[stream].steps);
            }
            self.streams[stream].held = held;
        }
        let id = self.program.steps.len();
        waits.sort_unstable();
        waits.dedup();
        waits.iter().for_each(|&step| self.program.steps[step].records = true);
        after.sort_unstable();
        after.dedup();
        uses.iter().for_each(|&used| self.users[used].push(id));
        let stream_id = stream.map(|stream| self.streams[stream].id);
        if let (Some(stream), Some(stream_id)) = (stream, stream_id) {
            self.users[stream_id].push(id);
            self.streams[stream].steps.push(id);
            let touch = Touch { step: id, stream };
            for &memory in reads {
                self.memories[memory].read.push(touch);
            }
            for &memory in writes {
                self.memories[memory].written = Some(touch);
                self.memories[memory].read.clear();
            }
        }
        self.held_behind.push(stream.map_or_else(BTreeSet::new, |stream| self.streams[stream].held.clone()));
        self.users.push(Vec::new());
        self.program.steps.push(Step { thread, after, waits, stream: stream_id, records: false, action });
        id
    }
}
