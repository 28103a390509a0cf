//! From random numbers to a valid program with its results: the sequential oracle.
//!
//! Every draw of numbers becomes a step, or nothing where there is nothing to do it with or a value would leave the integers
//! that its type holds exactly. So any list of draws is a program, and a shorter list a shorter one: failures shrink.
//!
//! **Gates.** The oracle knows which closed gates each stream waits for, directly or through events. Before a step that
//! blocks, another step opens them: it comes earlier in the sequence, but nothing makes the blocking step wait for it, so
//! that calls do block. A step that waits for an event behind a gate follows all earlier steps of its stream. So a stream waits
//! for no gate before the step that brings it, whichever threads are late, and what a step's event is behind is known.

mod draft;
mod numbers;
mod place;
mod state;
mod steps;

use std::collections::BTreeSet;

use syncscope::device::DType;

use crate::program::{Action, DEVICES, How, Kind, Program, THREADS, Values};
use draft::Draft;
use numbers::{LARGE, dtype, is_real, length, numbers, small};
use state::{Buffer, Oracle, Tensor};

/// A kind of step, a thread and three numbers to choose by.
pub(crate) type Draw = (u8, u8, u16, u16, u16);

/// Streams of a device at the start, and the most closed gates.
const STREAMS: usize = 2;
const GATES: usize = 3;

/// What a device is asked to do beforehand: the first multiplication of a shape may wait for the whole device.
pub(crate) const PRODUCTS: [[usize; 3]; 4] = [[1, 5, 1], [8, 8, 8], [10, 100, 10], [64, 64, 64]];
pub(crate) const REAL: [DType; 3] = [DType::F16, DType::BF16, DType::F32];

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
    if draws.len().is_multiple_of(2) {
        for tensor in oracle.tensors.clone() {
            let _ = oracle.read(&tensor, tensor.id % THREADS);
        }
    }
    oracle.program
}

impl Oracle {
    fn add(&mut self, (kind, thread, a, b, c): Draw) -> Option<()> {
        let thread = usize::from(thread) % THREADS;
        let (first, second, third) = (usize::from(a), usize::from(b), usize::from(c));
        let stream = self.choose_stream(first)?;
        let device = self.streams[stream].device;
        match draft::draft(kind) {
            Draft::NewStream => {
                self.new_stream(device, thread);
                self.replace(stream, thread);
            }
            Draft::SharedStream => {
                let how = [How::Wrapped, How::Raw, How::Lent][second % 3];
                let id = self.device_wide(thread, Action::SharedStream { device, how });
                // To make a stream or an event may keep other calls out: those before the opening of a gate, too.
                self.program.steps[id].after.extend(&self.opens);
                self.add_stream(id, device, true);
                self.replace(stream, thread);
            }
            Draft::TheirUpload => {
                let (stream, len) = (self.choose_shared(first)?, length(third));
                let values = numbers(second + 31 * third, len, DType::F32);
                let action = Action::TheirUpload { values: Values(values.clone()) };
                self.upload_by(thread, stream, DType::F32, values, action);
            }
            Draft::TheirCopy => {
                let stream = self.choose_shared(first)?;
                let x = self.choose(self.streams[stream].device, second, |x| x.dtype == DType::F32)?;
                let (scale, shift) = (small(third), small(third / 8));
                let values: Vec<i64> = self.values(&x).iter().map(|x| x * scale + shift).collect();
                numbers::fits(x.dtype, &values).then_some(())?;
                let memory = self.new_memory(self.streams[stream].device, values);
                let action = Action::TheirCopy { x: x.id, scale, shift };
                let id = self.device_wide_on(thread, stream, &[x.memory], &[memory], &[x.id], action);
                self.add_tensor(id, DType::F32, memory);
            }
            Draft::TheirRead => {
                let stream = self.choose_shared(first)?;
                let x = self.choose(self.streams[stream].device, second, |x| x.dtype == DType::F32)?;
                let action = Action::TheirRead { x: x.id, expected: Values(self.values(&x)) };
                self.device_wide_on(thread, stream, &[x.memory], &[], &[x.id], action);
            }
            Draft::Full => {
                let (dtype, len) = (dtype(second), length(third));
                let value = if dtype == DType::U8 { 3 } else { small(second / 8) };
                self.make(thread, stream, &[], &[], Action::Full { dtype, len, value }, dtype, vec![value; len])?;
            }
            Draft::Upload | Draft::LargeUpload => {
                let large = matches!(draft::draft(kind), Draft::LargeUpload);
                let (dtype, len) = (dtype(second), if large { LARGE } else { length(third) });
                let values = numbers(second + 31 * third, len, dtype);
                self.upload(thread, stream, dtype, values);
            }
            Draft::Affine => {
                let x = self.choose(device, second, |x| is_real(x.dtype))?;
                let (scale, shift) = (small(third), small(third / 8));
                let values = self.values(&x).iter().map(|x| x * scale + shift).collect();
                self.make(
                    thread,
                    stream,
                    &[x.memory],
                    &[x.id],
                    Action::Affine { x: x.id, scale, shift },
                    x.dtype,
                    values,
                )?;
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
                self.make(
                    thread,
                    stream,
                    &[x.memory],
                    &[x.id],
                    Action::Greater { x: x.id, threshold },
                    DType::U8,
                    values,
                )?;
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
                // As long as a tensor that it can be copied with.
                let x = self.choose(device, second, |x| x.dtype == DType::F32);
                let len = x.map_or(length(third), |x| x.len);
                let pageable = third % 3 == 0;
                let id = self.device_wide(thread, Action::NewBuffer { device, len, pageable });
                // To page-lock memory may keep other calls out: those before the opening of a gate, too.
                self.program.steps[id].after.extend(&self.opens);
                let memory = self.new_memory(device, vec![0; len]);
                self.buffers.push(Buffer { id, device, memory, pageable, last: id, held: BTreeSet::new() });
            }
            Draft::CopyTo => {
                let buffer = self.choose_buffer(device, second)?;
                let (len, memory) =
                    (self.memories[self.buffers[buffer].memory].values.len(), self.buffers[buffer].memory);
                let x = self.choose(device, third, |x| x.dtype == DType::F32 && x.len == len)?;
                self.memories[memory].values = self.values(&x);
                let action = Action::CopyTo { buffer: self.buffers[buffer].id, x: x.id };
                self.copy(thread, stream, buffer, &[x.memory], &[memory], x.id, action);
            }
            Draft::CopyFrom | Draft::Together => {
                let together = matches!(draft::draft(kind), Draft::Together);
                let buffer = self.choose_buffer(device, second)?;
                self.copy_from(thread, stream, buffer, third, together)?;
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
                let id = self.device_wide(thread, Action::SynchronizeDevice { device });
                self.streams.iter_mut().filter(|s| s.device == device).for_each(|s| s.steps.push(id));
            }
            Draft::SynchronizeEvent => {
                let of = self.event_of(stream, second)?;
                let held = self.held_behind[of].clone();
                self.open(&held, thread);
                let step = self.call(thread, &[of], Action::SynchronizeEvent { of });
                self.streams[stream].steps.push(step);
            }
            Draft::Hold => {
                (self.gates.len() < GATES).then_some(())?;
                let after = self.device_wide.clone();
                let id = self.enqueue_after(thread, stream, after, Action::Hold);
                self.gates.push(id);
                self.streams[stream].held.insert(id);
                self.held_behind[id].insert(id);
            }
            Draft::HoldBy => self.hold_by(thread, stream, second)?,
            Draft::Capture => self.capture(thread, stream, second, third)?,
            Draft::Launch => self.launch(thread, second)?,
            Draft::FailedStream => {
                self.device_wide(thread, Action::FailedStream { device });
            }
            Draft::Leave => {
                let id = self.device_wide(thread, Action::Leave { device, how: second % 4 });
                // It may page-lock buffers: as above.
                self.program.steps[id].after.extend(&self.opens);
            }
            Draft::Query => {
                let of = self.event_of(stream, second);
                let id = self.enqueue(thread, stream, &[], &[], &[], Action::Query { of });
                self.program.steps[id].after.extend(of);
            }
            Draft::Trim => {
                self.call(thread, &[], Action::Trim { device });
            }
            Draft::Record => {
                let id = self.device_wide(thread, Action::Record { device, launches: 1 + second % 30 });
                // Of a stream that another library makes: as above.
                self.program.steps[id].after.extend(&self.opens);
            }
            Draft::Inject => {
                let nth = 1 + (third % 9) as u64;
                let id = self.device_wide(thread, Action::Inject { device, what: second, nth });
                // It has a buffer of its own: as above.
                self.program.steps[id].after.extend(&self.opens);
            }
            Draft::Fill => {
                self.device_wide(thread, Action::Fill { device });
            }
            Draft::Large => {
                self.device_wide(thread, Action::Large { device, how: second % 8 });
            }
            Draft::Spread => {
                self.device_wide(thread, Action::Spread { device, streams: 2 + second % 5 });
            }
            Draft::Outlive => {
                self.device_wide(thread, Action::Outlive { device, how: second % 4 });
            }
            Draft::Forget => self.forget_something(thread, second, third)?,
        }
        Some(())
    }
}
