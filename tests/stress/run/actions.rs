//! What a step does to its stream, and what it makes.

use std::time::Duration;

use syncscope::device::{Device, Graph, HostKind, Stream};
use syncscope::error::DeviceError;
use syncscope::tensor::Tensor;

use crate::Outcome;
use crate::held::{Held, compare, integers, of_any, of_real, of_two};
use crate::program::{Action, Id, Kind, Part};
use crate::run::apart::{fill, inject, record};
use crate::run::behind::{large, outlive, spread};
use crate::run::leave::{failed_stream, leave};
use crate::run::{Object, World, lock, shared, text};

impl World {
    /// An action on a stream.
    pub(super) fn on_stream(&self, action: &Action, stream: &Stream) -> Outcome<Option<Object>> {
        let tensor = |id: Id| self.tensor(id)?.on(stream).map_err(text);
        let made = match action {
            Action::Full { dtype, len, value } => Held::full(stream, *dtype, *len, *value).map_err(text)?,
            Action::Upload { dtype, values } => Held::upload(stream, *dtype, &values.0).map_err(text)?,
            Action::Affine { x, scale, shift } => {
                let x = tensor(*x)?;
                of_real!(&x, x => x.affine(*scale as f32, *shift as f32).map_err(text)?)
            }
            Action::Elementwise { kind, x, y } => {
                let (x, y) = (tensor(*x)?, tensor(*y)?);
                of_two!(&x, &y, x, y => match kind {
                    Kind::Add => x.add(y),
                    Kind::Subtract => x.subtract(y),
                    Kind::Multiply => x.multiply(y),
                }.map_err(text)?)
            }
            Action::Matmul { x, y, sizes: [m, k, n] } => {
                let (x, y) = (tensor(*x)?, tensor(*y)?);
                of_two!(&x, &y, x, y => matmul(x, y, [*m, *k, *n]).map_err(text)?)
            }
            Action::Greater { x, threshold } => {
                let x = tensor(*x)?;
                Held::U8(
                    match &x {
                        Held::F16(x) => x.gt(*threshold as f32),
                        Held::BF16(x) => x.gt(*threshold as f32),
                        Held::F32(x) => x.gt(*threshold as f32),
                        Held::I64(_) | Held::U8(_) => return Err("a real type is needed".to_owned()),
                    }
                    .map_err(text)?,
                )
            }
            Action::Sum { x } => {
                let x = tensor(*x)?;
                let sum = match &x {
                    Held::F16(x) => x.sum(),
                    Held::BF16(x) => x.sum(),
                    Held::F32(x) => x.sum(),
                    Held::I64(_) | Held::U8(_) => return Err("a real type is needed".to_owned()),
                };
                Held::F32(sum.and_then(|sum| sum.reshape([1])).map_err(text)?)
            }
            Action::Gather { x, width, rows, by_host } => {
                let x = tensor(*x)?;
                let device_rows: Vec<i64> = rows.iter().map(|&row| row as i64).collect();
                of_real!(&x, x => {
                    let matrix = x.reshape([x.len() / width, *width]).map_err(text)?;
                    let taken = if *by_host {
                        matrix.index_select(rows)
                    } else {
                        stream.tensor(&device_rows, [rows.len()]).and_then(|rows| matrix.gather(&rows))
                    };
                    taken.and_then(|taken| taken.reshape([rows.len() * width])).map_err(text)?
                })
            }
            Action::Stack { x, y } => {
                let (x, y) = (tensor(*x)?, tensor(*y)?);
                of_two!(&x, &y, x, y => {
                    let both = Tensor::stack(&[x.clone(), y.clone()]);
                    both.and_then(|both| both.reshape([2 * x.len()])).map_err(text)?
                })
            }
            Action::Nonzero { x, expected } => {
                let x = tensor(*x)?;
                let found = of_any!(&x, x => x.nonzero().map_err(text)?);
                if found.len() != expected.0.len() {
                    return Err(format!("{} positions instead of {}", found.len(), expected.0.len()));
                }
                Held::I64(found)
            }
            Action::TheirUpload { values } => shared::upload(stream, &values.0)?,
            Action::TheirCopy { x, scale, shift } => {
                let Held::F32(x) = tensor(*x)? else { return Err("theirs are of fp32".to_owned()) };
                shared::copied(stream, x.affine(*scale as f32, *shift as f32).map_err(text)?)?
            }
            Action::Hold => {
                let gate = stream.device().gate().map_err(text)?;
                stream.wait_gate(&gate).map_err(text)?;
                return Ok(Some(Object::Gate(gate)));
            }
            Action::Capture { parts } => return self.capture(parts, stream).map(|graph| Some(Object::Graph(graph))),
            _ => return self.without_result(action, stream).map(|()| None),
        };
        Ok(Some(Object::Tensor(made)))
    }

    /// An action on a stream that makes nothing.
    fn without_result(&self, action: &Action, stream: &Stream) -> Outcome<()> {
        let tensor = |id: Id| self.tensor(id)?.on(stream).map_err(text);
        match action {
            Action::AffineInPlace { x, scale, shift } => {
                let x = tensor(*x)?;
                of_real!(&x, x => {
                    x.affine_in_place(*scale as f32, *shift as f32).map_err(text)?;
                    x.clone()
                });
                Ok(())
            }
            Action::Assign { target, source } => match (tensor(*target)?, tensor(*source)?) {
                (Held::F16(x), Held::F16(y)) => x.assign(&y),
                (Held::BF16(x), Held::BF16(y)) => x.assign(&y),
                (Held::F32(x), Held::F32(y)) => x.assign(&y),
                (Held::I64(x), Held::I64(y)) => x.assign(&y),
                (Held::U8(x), Held::U8(y)) => x.assign(&y),
                _ => return Err("two types were assigned".to_owned()),
            }
            .map_err(text),
            Action::Spin { microseconds } => stream.spin(Duration::from_micros(*microseconds)).map_err(text),
            Action::TheirRead { x, expected } => {
                let Held::F32(x) = tensor(*x)? else { return Err("theirs are of fp32".to_owned()) };
                compare(&shared::read(stream, x.affine(1.0, 0.0).map_err(text)?)?, &expected.0)
            }
            Action::Read { x, expected } => compare(&tensor(*x)?.read()?, &expected.0),
            Action::Item { x, at, expected } => {
                let x = tensor(*x)?;
                let value = of_any!(&x, x => integers(&[x.get([*at]).and_then(|x| x.item()).map_err(text)?]));
                compare(&value, &[*expected])
            }
            Action::Any { x, expected } => {
                let x = tensor(*x)?;
                let any = of_any!(&x, x => x.any().map_err(text)?);
                if any == *expected { Ok(()) } else { Err(format!("any is {any}")) }
            }
            Action::CopyTo { buffer, x } => {
                let Held::F32(x) = tensor(*x)? else { return Err("buffers are of fp32".to_owned()) };
                self.with_buffer(*buffer, |buffer| x.copy_to(buffer).map_err(text))
            }
            Action::CopyFrom { buffer, x } => {
                let Held::F32(x) = tensor(*x)? else { return Err("buffers are of fp32".to_owned()) };
                self.with_buffer(*buffer, |buffer| x.copy_from(buffer).map_err(text))
            }
            Action::Together { buffer, x, expected } => {
                let Held::F32(x) = tensor(*x)? else { return Err("buffers are of fp32".to_owned()) };
                self.with_buffer(*buffer, |buffer| {
                    let buffer = &*buffer;
                    std::thread::scope(|scope| {
                        let reads = scope.spawn(|| compare(&integers(&buffer.read().map_err(text)?), &expected.0));
                        let copied = x.copy_from(buffer).map_err(text);
                        copied.and(reads.join().map_err(|_| "a panic of who reads".to_owned())?)
                    })
                })
            }
            Action::Synchronize => stream.synchronize().map_err(text),
            Action::Query { of } => {
                stream.is_complete().map_err(text)?;
                let event = of.and_then(|of| self.events[of].get());
                // An event is not recorded again: once complete, it stays so.
                match event {
                    Some(event) if event.is_complete().map_err(text)? && !event.is_complete().map_err(text)? => {
                        Err("an event that was complete is not".to_owned())
                    }
                    _ => Ok(()),
                }
            }
            Action::HoldBy { gate } => stream.wait_gate(&self.gate(*gate)?).map_err(text),
            Action::Launch { graph } => self.graph(*graph)?.launch().map_err(text),
            other => Err(format!("{other:?} needs no stream")),
        }
    }

    fn capture(&self, parts: &[Part], stream: &Stream) -> Outcome<Graph> {
        let (_, graph) = stream
            .capture(|| {
                for part in parts {
                    let outcome = match part {
                        Part::InPlace { x, scale, shift } => self.tensor(*x).and_then(|x| {
                            let x = x.on(stream).map_err(text)?;
                            of_real!(&x, x => {
                                x.affine_in_place(*scale as f32, *shift as f32).map_err(text)?;
                                x.clone()
                            });
                            Ok(())
                        }),
                        Part::Through { target, source, scale, shift } => self.tensor(*target).and_then(|target| {
                            let (x, y) = (target.on(stream).map_err(text)?, self.tensor(*source)?);
                            let y = y.on(stream).map_err(text)?;
                            of_two!(&x, &y, x, y => {
                                let between = y.affine(*scale as f32, *shift as f32).map_err(text)?;
                                x.assign(&between).map_err(text)?;
                                x.clone()
                            });
                            Ok(())
                        }),
                    };
                    outcome.map_err(|reason| DeviceError::InvalidArgument { operation: "capture", reason })?;
                }
                Ok(())
            })
            .map_err(text)?;
        Ok(graph)
    }

    /// An action on no stream.
    pub(super) fn on_none(&self, action: &Action) -> Outcome<Option<Object>> {
        Ok(Some(match action {
            Action::NewStream { device } => Object::Stream(self.devices[*device].stream().map_err(text)?),
            Action::SharedStream { device, how } => {
                let (stream, raw) = shared::stream(&self.devices[*device], *how)?;
                lock(&self.raw).extend(raw);
                Object::Stream(stream)
            }
            Action::View { x, width, row } => Object::Tensor(self.tensor(*x)?.row(*width, *row).map_err(text)?),
            Action::Share { x } => Object::Tensor(self.tensor(*x)?),
            Action::NewBuffer { device, len, pageable } => {
                let device = &self.devices[*device];
                let kind = if *pageable { HostKind::Pageable } else { kind(device) };
                Object::Buffer(device.host_buffer(kind, *len).map_err(text)?)
            }
            Action::Forget { of } => {
                self.forget(*of);
                return Ok(None);
            }
            Action::Drop { of } => {
                lock(&self.gates).retain(|(gate, _)| gate != of);
                self.take(*of);
                return Ok(None);
            }
            other => return self.without_object(other).map(|()| None),
        }))
    }

    fn without_object(&self, action: &Action) -> Outcome<()> {
        match action {
            Action::ReadBuffer { buffer, expected } => {
                self.with_buffer(*buffer, |buffer| compare(&integers(&buffer.read().map_err(text)?), &expected.0))
            }
            Action::WriteBuffer { buffer, values } => self.with_buffer(*buffer, |buffer| {
                let mut content = buffer.write().map_err(text)?;
                content.iter_mut().zip(&values.0).for_each(|(x, value)| *x = *value as f32);
                Ok(())
            }),
            Action::SynchronizeDevice { device } => self.devices[*device].synchronize().map_err(text),
            Action::SynchronizeEvent { of } => {
                let event = self.events[*of].get().ok_or_else(|| format!("step {of} recorded no event"))?;
                event.synchronize().map_err(text)?;
                match event.is_complete().map_err(text)? {
                    true => Ok(()),
                    false => Err("an event is not complete that was waited for".to_owned()),
                }
            }
            Action::Open { gate } => {
                self.gate(*gate)?.open();
                Ok(())
            }
            Action::FailedStream { device } => failed_stream(&self.devices[*device]),
            Action::Leave { device, how } => leave(&self.devices[*device], *how),
            Action::Trim { device } => self.devices[*device].trim().map_err(text),
            Action::Record { device, launches } => record(&self.devices[*device], *launches),
            Action::Inject { device, what, nth } => inject(&self.devices[*device], *what, *nth),
            Action::Fill { device } => fill(&self.devices[*device]),
            Action::Large { device, how } => large(&self.devices[*device], *how),
            Action::Spread { device, streams } => spread(&self.devices[*device], *streams),
            Action::Outlive { device, how } => outlive(&self.devices[*device], *how),
            other => Err(format!("{other:?} needs a stream")),
        }
    }
}

fn matmul<T: syncscope::device::Float>(
    x: &Tensor<T>,
    y: &Tensor<T>,
    [m, k, n]: [usize; 3],
) -> Result<Tensor<T>, DeviceError> {
    x.reshape([m, k])?.matmul(&y.reshape([k, n])?)?.reshape([m * n])
}

/// The memory that a device copies from and to without a wait.
pub(super) fn kind(device: &Device) -> HostKind {
    if device.properties().engine == "cpu" { HostKind::Pageable } else { HostKind::Pinned }
}
