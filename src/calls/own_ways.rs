//! The ways of bytes of the CPU engine: copies between a host buffer and its memory.

use std::cell::RefCell;

use super::ways::{Heading, MovedBy, Transfers};
use crate::Result;
use syncscope::device::{Device, HostBuffer, HostKind, Stream};
use syncscope::tensor::Tensor;

/// A block of each side for each direction, each direction with a stream of its own.
pub(super) struct OwnTransfers {
    streams: [Stream; 2],
    buffers: [RefCell<HostBuffer<u8>>; 2],
    tensors: [Tensor<u8>; 2],
}

impl OwnTransfers {
    /// The engine says why it has no other memory than pageable: its devices are the host.
    pub(super) fn new(device: &Device, way: MovedBy, bytes: usize) -> Result<Self> {
        let kind = if way == MovedBy::Pageable { HostKind::Pageable } else { HostKind::Pinned };
        let buffer = || device.host_buffer::<u8>(kind, bytes).map(RefCell::new);
        let streams = [device.stream()?, device.stream()?];
        let tensors = [streams[0].empty([bytes])?, streams[1].empty([bytes])?];
        Ok(Self { buffers: [buffer()?, buffer()?], streams, tensors })
    }
}

impl Transfers for OwnTransfers {
    fn prepare(&self) -> Result<()> {
        Ok(())
    }

    fn transfer(&self, heading: Heading) -> Result<()> {
        if heading != Heading::Back {
            self.tensors[0].copy_from(&self.buffers[0].borrow())?;
        }
        if heading != Heading::Away {
            self.tensors[1].copy_to(&mut self.buffers[1].borrow_mut())?;
        }
        self.streams.iter().try_for_each(Stream::synchronize)
    }
}
