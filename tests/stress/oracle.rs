//! From random numbers to a valid program with its results: the sequential oracle.
//!
//! Every draw of numbers becomes a step, or nothing where there is nothing to do it with or a value would leave the integers
//! that its type holds exactly. So any list of draws is a program, and a shorter list a shorter one: failures shrink.
//!
//! **Gates.** The oracle knows which closed gates each stream waits for, directly or through events. Before a step that
//! blocks, another step opens them: it comes earlier in the sequence, but nothing makes the blocking step wait for it, so
//! that calls do block. A step that waits for an event behind a gate follows all steps of its stream that come before the
//! gate's opening, so that none of these can wait for it.

use std::collections::{BTreeMap, BTreeSet};

use syncscope::device::DType;

use crate::program::{Action, DEVICES, Id, Kind, Part, Program, Step, THREADS, Values};

/// A kind of step, a thread and three numbers to choose by.
pub(crate) type Draw = (u8, u8, u16, u16, u16);

/// Elements of tensors: below and above a warp, a tile, and what an upload takes without waiting.
const LENGTHS: [usize; 8] = [1, 5, 64, 64, 1000, 1000, 4096, 40_000];

/// Streams of a device at the start, and the most closed gates.
const STREAMS: usize = 2;
const GATES: usize = 3;

/// Bytes that an upload takes without waiting.
const SMALL_UPLOAD: usize = 64 << 10;

/// What a device is asked to do beforehand: the first multiplication of a shape may wait for the whole device.
pub(crate) const PRODUCTS: [[usize; 3]; 4] = [[1, 5, 1], [8, 8, 8], [10, 100, 10], [64, 64, 64]];
pub(crate) const REAL: [DType; 3] = [DType::F16, DType::BF16, DType::F32];

/// Kinds of steps by their weights.
const KINDS: [(u8, Draft); 33] = [
    (2, Draft::NewStream),
    (6, Draft::Full),
    (8, Draft::Upload),
    (6, Draft::Affine),
    (8, Draft::AffineInPlace),
    (8, Draft::Elementwise),
    (5, Draft::Matmul),
    (3, Draft::Greater),
    (4, Draft::Sum),
    (4, Draft::Gather),
    (2, Draft::Stack),
    (5, Draft::Assign),
    (3, Draft::View),
    (2, Draft::Share),
    (4, Draft::Spin),
    (9, Draft::Drop),
    (7, Draft::Read),
    (3, Draft::Item),
    (2, Draft::Any),
    (3, Draft::Nonzero),
    (2, Draft::NewBuffer),
    (4, Draft::CopyTo),
    (4, Draft::CopyFrom),
    (3, Draft::ReadBuffer),
    (3, Draft::WriteBuffer),
    (2, Draft::Synchronize),
    (1, Draft::SynchronizeDevice),
    (2, Draft::SynchronizeEvent),
    (5, Draft::Hold),
    (4, Draft::Capture),
    (6, Draft::Launch),
    (1, Draft::FailedStream),
    (2, Draft::Leave),
];

/// A step to be.
#[derive(Clone, Copy)]
enum Draft {
    NewStream,
    Full,
    Upload,
    Affine,
    AffineInPlace,
    Elementwise,
    Matmul,
    Greater,
    Sum,
    Gather,
    Stack,
    Assign,
    View,
    Share,
    Spin,
    Drop,
    Read,
    Item,
    Any,
    Nonzero,
    NewBuffer,
    CopyTo,
    CopyFrom,
    ReadBuffer,
    WriteBuffer,
    Synchronize,
    SynchronizeDevice,
    SynchronizeEvent,
    Hold,
    Capture,
    Launch,
    FailedStream,
    Leave,
}

/// The program of some draws.
pub(crate) fn program(draws: &[Draw]) -> Program {
    let mut oracle = Oracle::default();
    for device in 0..DEVICES {
        (0..STREAMS).for_each(|_| oracle.new_stream(device, 0));
    }
    for &draw in draws {
        // What cannot be done is left out.
        let _ = oracle.add(draw);
    }
    // The results of some programs are looked at in the end; others end with work pending and streams held.
    if draws.len() % 2 == 0 {
        for tensor in oracle.tensors.clone() {
            let _ = oracle.read(&tensor, tensor.id % THREADS);
        }
    }
    oracle.program
}

/// A tensor, as a part of a memory.
#[derive(Clone)]
struct Tensor {
    id: Id,
    dtype: DType,
    memory: usize,
    offset: usize,
    len: usize,
}

/// What lies in a memory, of the device or the host, and who touched it.
struct Memory {
    device: usize,
    values: Vec<i64>,
    written: Option<Touch>,
    read: Vec<Touch>,
}

/// A step and the number of its stream.
#[derive(Clone, Copy)]
struct Touch {
    step: Id,
    stream: usize,
}

struct Stream {
    id: Id,
    device: usize,
    /// The gates that it may wait for. An open one stays: threads may come to its opening late.
    held: BTreeSet<Id>,
    steps: Vec<Id>,
    /// What all later steps follow: a capture has the stream for itself.
    exclusive: Option<Id>,
    dropped: bool,
}

struct Graph {
    id: Id,
    stream: usize,
    /// With the tensors that they name.
    parts: Vec<(Part, Tensor, Tensor)>,
}

struct Buffer {
    id: Id,
    device: usize,
    memory: usize,
    /// What its last operation was: they follow each other.
    last: Id,
    /// The gates that pending copies wait for.
    held: BTreeSet<Id>,
}

#[derive(Default)]
struct Oracle {
    program: Program,
    streams: Vec<Stream>,
    tensors: Vec<Tensor>,
    memories: Vec<Memory>,
    graphs: Vec<Graph>,
    buffers: Vec<Buffer>,
    /// Closed gates, with their devices; and the others, with the steps that open them.
    gates: Vec<(Id, usize)>,
    opened: BTreeMap<Id, Id>,
    /// By step: the gates that its stream may wait for behind it, and who used what it made.
    held_behind: Vec<BTreeSet<Id>>,
    users: Vec<Vec<Id>>,
    /// By device: steps that may wait for all of it, which no stream may be held before.
    device_wide: [Vec<Id>; DEVICES],
}

/// A step before it has a place.
struct Planned<'a> {
    thread: usize,
    stream: Option<usize>,
    reads: &'a [usize],
    writes: &'a [usize],
    /// What was made by other steps and is used.
    uses: &'a [Id],
    /// Whether the call may wait for its stream.
    blocks: bool,
    action: Action,
}

impl Oracle {
    fn add(&mut self, (kind, thread, a, b, c): Draw) -> Option<()> {
        let thread = usize::from(thread) % THREADS;
        let (first, second, third) = (usize::from(a), usize::from(b), usize::from(c));
        let stream = self.choose_stream(first)?;
        let device = self.streams[stream].device;
        match draft(kind) {
            Draft::NewStream => {
                let old = self.streams[stream].id;
                self.new_stream(device, thread);
                self.drop_handle(old, thread);
                self.streams[stream].dropped = true;
            }
            Draft::Full => {
                let (dtype, len) = (dtype(second), length(third));
                let value = if dtype == DType::U8 { 3 } else { small(second / 8) };
                self.make(thread, stream, &[], &[], Action::Full { dtype, len, value }, dtype, vec![value; len])?;
            }
            Draft::Upload => {
                let (dtype, len) = (dtype(second), length(third));
                let values = numbers(second + 31 * third, len, dtype);
                self.upload(thread, stream, dtype, values);
            }
            Draft::Affine => {
                let x = self.choose(device, second, |x| is_real(x.dtype))?;
                let (scale, shift) = (small(third), small(third / 8));
                let values = self.values(&x).iter().map(|x| x * scale + shift).collect();
                self.make(thread, stream, &[x.memory], &[x.id], Action::Affine { x: x.id, scale, shift }, x.dtype, values)?;
            }
            Draft::AffineInPlace => {
                let x = self.choose(device, second, |x| is_real(x.dtype))?;
                let (scale, shift) = (small(third), small(third / 8));
                let values = self.values(&x).iter().map(|x| x * scale + shift).collect();
                self.write(&x, values)?;
                let action = Action::AffineInPlace { x: x.id, scale, shift };
                self.enqueue(thread, stream, &[], &[x.memory], &[x.id], action);
            }
            Draft::Elementwise => {
                let x = self.choose(device, second, |x| is_real(x.dtype))?;
                let y = self.choose(device, third, |y| y.dtype == x.dtype && y.len == x.len)?;
                let kind = [Kind::Add, Kind::Subtract, Kind::Multiply][(second / 16) % 3];
                let pairs = self.values(&x).into_iter().zip(self.values(&y));
                let values = pairs.map(|(x, y)| match kind {
                    Kind::Add => x + y,
                    Kind::Subtract => x - y,
                    Kind::Multiply => x * y,
                });
                let (values, action) = (values.collect(), Action::Elementwise { kind, x: x.id, y: y.id });
                self.make(thread, stream, &[x.memory, y.memory], &[x.id, y.id], action, x.dtype, values)?;
            }
            Draft::Matmul => self.matmul(thread, stream, second, third)?,
            Draft::Greater => {
                let x = self.choose(device, second, |x| is_real(x.dtype))?;
                let threshold = small(third);
                let values = self.values(&x).iter().map(|&x| i64::from(x > threshold)).collect();
                self.make(thread, stream, &[x.memory], &[x.id], Action::Greater { x: x.id, threshold }, DType::U8, values)?;
            }
            Draft::Sum => {
                let x = self.choose(device, second, |x| is_real(x.dtype))?;
                let values = self.values(&x);
                // Every order of summation stays within the exact integers.
                (values.iter().map(|x| x.abs()).sum::<i64>() < 1 << 24).then_some(())?;
                let sum = vec![values.iter().sum()];
                self.make(thread, stream, &[x.memory], &[x.id], Action::Sum { x: x.id }, DType::F32, sum)?;
            }
            Draft::Gather => {
                let x = self.choose(device, second, |x| is_real(x.dtype) && x.len % 5 == 0)?;
                let width = [1, 5, if x.len % 40 == 0 { 40 } else { 5 }][third % 3];
                let height = x.len / width;
                let rows: Vec<usize> = (0..1 + third % 7).map(|i| (third + i * 13) % height).collect();
                let from = self.values(&x);
                let values = rows.iter().flat_map(|row| from[row * width..(row + 1) * width].to_vec()).collect();
                let action = Action::Gather { x: x.id, width, rows, by_host: third % 2 == 0 };
                self.make(thread, stream, &[x.memory], &[x.id], action, x.dtype, values)?;
            }
            Draft::Stack => {
                let x = self.choose(device, second, |x| is_real(x.dtype))?;
                let y = self.choose(device, third, |y| y.dtype == x.dtype && y.len == x.len)?;
                let values = [self.values(&x), self.values(&y)].concat();
                let action = Action::Stack { x: x.id, y: y.id };
                self.make(thread, stream, &[x.memory, y.memory], &[x.id, y.id], action, x.dtype, values)?;
            }
            Draft::Assign => {
                let target = self.choose(device, second, |_| true)?;
                let fits = |y: &Tensor| y.dtype == target.dtype && y.len == target.len && y.memory != target.memory;
                let source = self.choose(device, third, fits)?;
                let values = self.values(&source);
                self.write(&target, values)?;
                let action = Action::Assign { target: target.id, source: source.id };
                self.enqueue(thread, stream, &[source.memory], &[target.memory], &[target.id, source.id], action);
            }
            Draft::View => {
                let x = self.choose(device, second, |x| x.len % 5 == 0)?;
                let (width, row) = (x.len / 5, third % 5);
                let action = Action::View { x: x.id, width, row };
                let id = self.call(thread, &[x.id], action);
                self.tensors.push(Tensor { id, offset: x.offset + row * width, len: width, ..x });
            }
            Draft::Share => {
                let x = self.choose(device, second, |_| true)?;
                let id = self.call(thread, &[x.id], Action::Share { x: x.id });
                self.tensors.push(Tensor { id, ..x });
            }
            Draft::Spin => {
                self.enqueue(thread, stream, &[], &[], &[], Action::Spin { microseconds: (second % 200) as u64 });
            }
            Draft::Drop => self.drop_something(thread, second, third)?,
            Draft::Read => {
                let x = self.choose(device, second, |_| true)?;
                self.read_on(&x, thread, stream);
            }
            Draft::Item => {
                let x = self.choose(device, second, |_| true)?;
                let at = third % x.len;
                let action = Action::Item { x: x.id, at, expected: self.values(&x)[at] };
                self.block(thread, stream, &[x.memory], &[], &[x.id], action);
            }
            Draft::Any => {
                let x = self.choose(device, second, |_| true)?;
                let action = Action::Any { x: x.id, expected: self.values(&x).iter().any(|&x| x != 0) };
                self.block(thread, stream, &[x.memory], &[], &[x.id], action);
            }
            Draft::Nonzero => {
                let x = self.choose(device, second, |_| true)?;
                let found = (0..).zip(self.values(&x)).filter(|(_, x)| *x != 0).map(|(i, _)| i).collect::<Vec<i64>>();
                let action = Action::Nonzero { x: x.id, expected: Values(found.clone()) };
                let memory = self.new_memory(device, found);
                let id = self.block(thread, stream, &[x.memory], &[memory], &[x.id], action);
                self.add_tensor(id, DType::I64, memory);
            }
            Draft::NewBuffer => {
                let len = length(third);
                let id = self.device_wide(thread, device, Action::NewBuffer { device, len });
                let memory = self.new_memory(device, vec![0; len]);
                self.buffers.push(Buffer { id, device, memory, last: id, held: BTreeSet::new() });
            }
            Draft::CopyTo => {
                let buffer = self.choose_buffer(device, second)?;
                let (len, memory) = (self.memories[self.buffers[buffer].memory].values.len(), self.buffers[buffer].memory);
                let x = self.choose(device, third, |x| x.dtype == DType::F32 && x.len == len)?;
                self.memories[memory].values = self.values(&x);
                let action = Action::CopyTo { buffer: self.buffers[buffer].id, x: x.id };
                self.copy(thread, stream, buffer, &[x.memory], &[memory], x.id, action);
            }
            Draft::CopyFrom => {
                let buffer = self.choose_buffer(device, second)?;
                let (len, memory) = (self.memories[self.buffers[buffer].memory].values.len(), self.buffers[buffer].memory);
                let x = self.choose(device, third, |x| x.dtype == DType::F32 && x.len == len)?;
                let values = self.memories[memory].values.clone();
                self.write(&x, values)?;
                let action = Action::CopyFrom { buffer: self.buffers[buffer].id, x: x.id };
                self.copy(thread, stream, buffer, &[memory], &[x.memory], x.id, action);
            }
            Draft::ReadBuffer => {
                let buffer = self.choose_buffer(device, second)?;
                let expected = Values(self.memories[self.buffers[buffer].memory].values.clone());
                let action = Action::ReadBuffer { buffer: self.buffers[buffer].id, expected };
                self.use_buffer(thread, buffer, action);
            }
            Draft::WriteBuffer => {
                let buffer = self.choose_buffer(device, second)?;
                let memory = self.buffers[buffer].memory;
                let values = numbers(third, self.memories[memory].values.len(), DType::F32);
                self.memories[memory].values = values.clone();
                let action = Action::WriteBuffer { buffer: self.buffers[buffer].id, values: Values(values) };
                let step = self.use_buffer(thread, buffer, action);
                // The host waits for all copies before it writes.
                let memory = &mut self.memories[memory];
                (memory.written, memory.read) = (None, Vec::new());
                self.buffers[buffer].last = step;
            }
            Draft::Synchronize => {
                self.block(thread, stream, &[], &[], &[], Action::Synchronize);
            }
            Draft::SynchronizeDevice => {
                let id = self.device_wide(thread, device, Action::SynchronizeDevice { device });
                self.streams.iter_mut().filter(|s| s.device == device).for_each(|s| s.steps.push(id));
            }
            Draft::SynchronizeEvent => {
                let steps = &self.streams[stream].steps;
                let of = *steps.get(second % steps.len().max(1))?;
                let recorded = self.program.steps[of].stream == Some(self.streams[stream].id)
                    && !matches!(self.program.steps[of].action, Action::Capture { .. });
                recorded.then_some(())?;
                self.program.steps[of].records = true;
                let held = self.held_behind[of].clone();
                self.open(&held, thread);
                let step = self.call(thread, &[of], Action::SynchronizeEvent { of });
                self.streams[stream].steps.push(step);
            }
            Draft::Hold => {
                (self.gates.len() < GATES).then_some(())?;
                let after = self.device_wide[device].clone();
                let id = self.enqueue_after(thread, stream, after, Action::Hold);
                self.gates.push((id, device));
                self.streams[stream].held.insert(id);
                self.held_behind[id].insert(id);
            }
            Draft::Capture => self.capture(thread, stream, second, third)?,
            Draft::Launch => self.launch(thread, second)?,
            Draft::FailedStream => {
                self.device_wide(thread, device, Action::FailedStream { device });
            }
            Draft::Leave => {
                self.device_wide(thread, device, Action::Leave { device, how: second % 4 });
            }
        }
        Some(())
    }

    // What there is to choose from.

    fn choose_stream(&self, number: usize) -> Option<usize> {
        let live: Vec<usize> = (0..self.streams.len()).filter(|&s| !self.streams[s].dropped).collect();
        live.get(number % live.len().max(1)).copied()
    }

    fn choose(&self, device: usize, number: usize, fits: impl Fn(&Tensor) -> bool) -> Option<Tensor> {
        let on_device = |x: &&Tensor| self.memories[x.memory].device == device && x.len > 0;
        let fitting: Vec<&Tensor> = self.tensors.iter().filter(on_device).filter(|x| fits(x)).collect();
        // The youngest first, so that what fails is near.
        fitting.iter().rev().nth(number % fitting.len().max(1)).map(|x| (*x).clone())
    }

    fn choose_buffer(&self, device: usize, number: usize) -> Option<usize> {
        let on_device: Vec<usize> = (0..self.buffers.len()).filter(|&b| self.buffers[b].device == device).collect();
        on_device.get(number % on_device.len().max(1)).copied()
    }

    fn values(&self, x: &Tensor) -> Vec<i64> {
        self.memories[x.memory].values[x.offset..x.offset + x.len].to_vec()
    }

    fn new_memory(&mut self, device: usize, values: Vec<i64>) -> usize {
        self.memories.push(Memory { device, values, written: None, read: Vec::new() });
        self.memories.len() - 1
    }

    fn add_tensor(&mut self, id: Id, dtype: DType, memory: usize) {
        let len = self.memories[memory].values.len();
        self.tensors.push(Tensor { id, dtype, memory, offset: 0, len });
    }

    /// Changes the elements of a tensor, if its type holds them.
    fn write(&mut self, x: &Tensor, values: Vec<i64>) -> Option<()> {
        fits(x.dtype, &values).then_some(())?;
        self.memories[x.memory].values[x.offset..x.offset + x.len].copy_from_slice(&values);
        Some(())
    }

    // Steps of several kinds.

    /// A step that makes a tensor.
    #[allow(clippy::too_many_arguments)]
    fn make(
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

    fn upload(&mut self, thread: usize, stream: usize, dtype: DType, values: Vec<i64>) {
        let blocks = values.len() * dtype.size() > SMALL_UPLOAD;
        let memory = self.new_memory(self.streams[stream].device, values.clone());
        let action = Action::Upload { dtype, values: Values(values) };
        let writes = &[memory];
        let id = self.place(Planned { thread, stream: Some(stream), reads: &[], writes, uses: &[], blocks, action });
        self.add_tensor(id, dtype, memory);
    }

    fn matmul(&mut self, thread: usize, stream: usize, second: usize, third: usize) -> Option<()> {
        let device = self.streams[stream].device;
        let of = |x: &Tensor, [m, k, _]: [usize; 3]| x.len == m * k;
        // Aligned, as those that the device was asked for beforehand.
        let is_factor = |x: &Tensor| is_real(x.dtype) && x.offset == 0 && PRODUCTS.iter().any(|sizes| of(x, *sizes));
        let x = self.choose(device, second, is_factor)?;
        let [m, k, n] = PRODUCTS.into_iter().find(|sizes| of(&x, *sizes))?;
        let y = self.choose(device, third, |y| y.dtype == x.dtype && y.len == k * n && y.offset == 0)?;
        let (a, b) = (self.values(&x), self.values(&y));
        let element = |i: usize| (0..k).map({
            let (a, b) = (&a, &b);
            move |l| a[i / n * k + l] * b[l * n + i % n]
        });
        let exact = (0..m * n).all(|i| element(i).map(i64::abs).sum::<i64>() < 1 << 22);
        exact.then_some(())?;
        let values = (0..m * n).map(|i| element(i).sum()).collect();
        let action = Action::Matmul { x: x.id, y: y.id, sizes: [m, k, n] };
        self.make(thread, stream, &[x.memory, y.memory], &[x.id, y.id], action, x.dtype, values)
    }

    fn read(&mut self, x: &Tensor, thread: usize) -> Option<()> {
        let device = self.memories[x.memory].device;
        let stream = (0..self.streams.len()).find(|&s| self.streams[s].device == device && !self.streams[s].dropped)?;
        self.read_on(x, thread, stream);
        Some(())
    }

    fn read_on(&mut self, x: &Tensor, thread: usize, stream: usize) {
        let action = Action::Read { x: x.id, expected: Values(self.values(x)) };
        self.block(thread, stream, &[x.memory], &[], &[x.id], action);
    }

    fn new_stream(&mut self, device: usize, thread: usize) {
        let id = self.call(thread, &[], Action::NewStream { device });
        let (held, steps) = (BTreeSet::new(), Vec::new());
        self.streams.push(Stream { id, device, held, steps, exclusive: None, dropped: false });
    }

    fn drop_something(&mut self, thread: usize, second: usize, third: usize) -> Option<()> {
        match second % 8 {
            0 if !self.gates.is_empty() => {
                let (gate, _) = self.gates[third % self.gates.len()];
                self.opens(gate);
                self.drop_handle(gate, thread);
            }
            1 if !self.graphs.is_empty() => {
                let graph = self.graphs.remove(third % self.graphs.len());
                self.drop_handle(graph.id, thread);
            }
            2 if !self.buffers.is_empty() => {
                let buffer = self.buffers.remove(third % self.buffers.len());
                let after = self.users[buffer.id].clone();
                // Pinned memory may be given back at once, which waits for the device.
                let id = self.device_wide(thread, buffer.device, Action::Drop { of: buffer.id });
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
    fn copy(
        &mut self,
        thread: usize,
        stream: usize,
        buffer: usize,
        reads: &[usize],
        writes: &[usize],
        x: Id,
        action: Action,
    ) {
        let uses = [self.buffers[buffer].id, self.buffers[buffer].last, x];
        let id = self.enqueue(thread, stream, reads, writes, &uses, action);
        let held = self.held_behind[id].clone();
        self.buffers[buffer].held.extend(held);
        self.buffers[buffer].last = id;
    }

    /// The host looks into a buffer: it waits for pending copies.
    fn use_buffer(&mut self, thread: usize, buffer: usize, action: Action) -> Id {
        let held = self.buffers[buffer].held.clone();
        self.open(&held, thread);
        let uses = [self.buffers[buffer].id, self.buffers[buffer].last];
        let id = self.call(thread, &uses, action);
        self.buffers[buffer].last = id;
        id
    }

    fn capture(&mut self, thread: usize, stream: usize, second: usize, third: usize) -> Option<()> {
        let device = self.streams[stream].device;
        let mut parts = Vec::new();
        for i in 0..1 + second % 4 {
            let x = self.choose(device, second / 4 + i, |x| is_real(x.dtype))?;
            let source = self.choose(device, third + i, |y| {
                y.dtype == x.dtype && y.len == x.len && y.memory != x.memory
            });
            let (scale, shift) = (small(third / 4 + i), small(third / 32 + i));
            parts.push(match source {
                Some(y) if i % 2 == 1 => {
                    (Part::Through { target: x.id, source: y.id, scale, shift }, x, y)
                }
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

    fn launch(&mut self, thread: usize, second: usize) -> Option<()> {
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

    // The places of steps.

    fn enqueue(
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

    fn block(
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
    fn enqueue_after(&mut self, thread: usize, stream: usize, after: Vec<Id>, action: Action) -> Id {
        let earlier = self.streams[stream].steps.clone();
        let id = self.enqueue(thread, stream, &[], &[], &[], action);
        self.program.steps[id].after.extend(after.into_iter().chain(earlier));
        id
    }

    /// A step on no stream.
    fn call(&mut self, thread: usize, uses: &[Id], action: Action) -> Id {
        self.place(Planned { thread, stream: None, reads: &[], writes: &[], uses, blocks: false, action })
    }

    /// A call that may wait for all of its device: no stream is held while it runs.
    fn device_wide(&mut self, thread: usize, device: usize, action: Action) -> Id {
        let held: BTreeSet<Id> = self.gates.iter().filter(|(_, on)| *on == device).map(|(gate, _)| *gate).collect();
        self.open(&held, thread);
        let id = self.call(thread, &[], action);
        // One at a time, and not beside a capture.
        let captures = self.streams.iter().filter(|stream| stream.device == device).filter_map(|stream| stream.exclusive);
        self.program.steps[id].after.extend(captures.chain(self.device_wide[device].last().copied()));
        self.device_wide[device].push(id);
        id
    }

    fn drop_handle(&mut self, of: Id, thread: usize) {
        let mut uses = self.users[of].clone();
        uses.push(of);
        self.call(thread, &uses, Action::Drop { of });
    }

    /// Opens those of some gates that are closed, by another thread than the one that is about to block.
    fn open(&mut self, gates: &BTreeSet<Id>, thread: usize) {
        for &gate in gates {
            if self.gates.iter().any(|(closed, _)| *closed == gate) {
                self.opens(gate);
                self.call((thread + 1 + gate % (THREADS - 1)) % THREADS, &[gate], Action::Open { gate });
            }
        }
    }

    /// The next step opens the gate.
    fn opens(&mut self, gate: Id) {
        self.gates.retain(|(closed, _)| *closed != gate);
        self.opened.insert(gate, self.program.steps.len());
    }

    fn place(&mut self, planned: Planned<'_>) -> Id {
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
            for gate in brought {
                // What comes before the step that opens the gate is not to wait for it.
                let opened = self.opened.get(&gate).copied().unwrap_or(Id::MAX);
                after.extend(self.streams[stream].steps.iter().filter(|&&step| step < opened));
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

fn draft(kind: u8) -> Draft {
    let total: u32 = KINDS.iter().map(|(weight, _)| u32::from(*weight)).sum();
    let mut left = u32::from(kind) * total / 256;
    for (weight, draft) in KINDS {
        match left.checked_sub(weight.into()) {
            Some(rest) => left = rest,
            None => return draft,
        }
    }
    Draft::Full
}

fn is_real(dtype: DType) -> bool {
    REAL.contains(&dtype)
}

fn dtype(number: usize) -> DType {
    [DType::F32, DType::F32, DType::F16, DType::BF16, DType::U8, DType::I64][number % 6]
}

fn length(number: usize) -> usize {
    LENGTHS[number % LENGTHS.len()]
}

/// -2 to 3.
fn small(number: usize) -> i64 {
    (number % 6) as i64 - 2
}

/// Numbers of a type, many of them 0.
fn numbers(seed: usize, len: usize, dtype: DType) -> Vec<i64> {
    let number = |i: usize| {
        let word = (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(seed.wrapping_mul(0xD134_2543_DE82_EF95));
        let word = (word ^ (word >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 40;
        if word % 3 == 0 { 0 } else { (word / 3 % 7) as i64 - if dtype == DType::U8 { 0 } else { 3 } }
    };
    (0..len).map(number).collect()
}

/// Whether a type holds all the integers exactly.
fn fits(dtype: DType, values: &[i64]) -> bool {
    let most = match dtype {
        DType::F16 => 1 << 11,
        DType::BF16 => 1 << 8,
        DType::F32 => 1 << 22,
        DType::I64 => i64::MAX,
        DType::U8 => 255,
    };
    values.iter().all(|x| x.abs() <= most && (dtype != DType::U8 || *x >= 0))
}
