//! Host memory, and copies between it and the device, for the experiments that measure them.

use std::cell::RefCell;
use std::rc::Rc;

use super::Result;
use crate::device::{Device, HostBuffer, HostKind, Stream};
use crate::error::DeviceError;
use crate::results::Work;
use crate::tensor::Tensor;

/// A host buffer, a tensor of its size, and the stream that copies between them.
pub(super) struct HostCopy {
    pub(super) stream: Stream,
    tensor: Tensor<f32>,
    pub(super) buffer: RefCell<HostBuffer<f32>>,
}

impl HostCopy {
    pub(super) fn new(device: &Device, kind: HostKind, elements: usize) -> Result<Rc<Self>> {
        let stream = device.stream()?;
        let mut buffer = device.host_buffer::<f32>(kind, elements)?;
        // Written once, so that the memory is there.
        buffer.write()?.fill(1.0);
        Ok(Rc::new(Self { tensor: stream.zeros([elements])?, stream, buffer: RefCell::new(buffer) }))
    }

    pub(super) fn to_device(&self) -> Result<()> {
        self.tensor.copy_from(&self.buffer.borrow())
    }

    pub(super) fn to_host(&self) -> Result<()> {
        self.tensor.copy_to(&mut self.buffer.borrow_mut())
    }
}

/// A direction of copies: what copies, and its work by the bytes.
pub(super) type Direction = (fn(&HostCopy) -> Result<()>, fn(f64, &str, f64) -> Work);

pub(super) const TO_DEVICE: Direction = (HostCopy::to_device, Work::to_device);
pub(super) const TO_HOST: Direction = (HostCopy::to_host, Work::to_host);

/// Finds out whether the host has room for so many elements. A vector that finds none ends the program, and with it the run.
pub(super) fn room_for<T>(elements: usize) -> Result<()> {
    let requested = elements.saturating_mul(size_of::<T>());
    let no_room = |_| DeviceError::OutOfMemory { device: "the host".to_owned(), requested, free: None };
    Vec::<T>::new().try_reserve_exact(elements).map_err(no_room)
}

/// The kind of host memory that transfers are fastest with. The CPU engine has no pinned memory, and its copies from
/// pageable memory do not block.
pub(super) fn fastest_memory(engine: &str) -> HostKind {
    if engine == "cpu" { HostKind::Pageable } else { HostKind::Pinned }
}
