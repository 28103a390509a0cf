//! The ways of bytes of the CPU engine: copies between a host buffer and its memory.

use std::cell::RefCell;
use std::sync::Arc;

use super::ways::{Heading, MovedBy, Transfers};
use crate::device::engine::{DeviceMemory, HostKind, Region, Result};
use crate::device::{DType, Device, HostBuffer, Stream};

/// A block of each side for each direction, each direction with a stream of its own.
pub(super) struct OwnTransfers {
    streams: [Stream; 2],
    buffers: [RefCell<HostBuffer<u8>>; 2],
    memory: [Arc<dyn DeviceMemory>; 2],
    bytes: usize,
}

impl OwnTransfers {
    /// The engine says why it has no other memory than pageable: its devices are the host.
    pub(super) fn new(device: &Device, way: MovedBy, bytes: usize) -> Result<Self> {
        let kind = if way == MovedBy::Pageable { HostKind::Pageable } else { HostKind::Pinned };
        let buffer = || device.host_buffer::<u8>(kind, bytes).map(RefCell::new);
        let streams = [device.stream()?, device.stream()?];
        let memory = [streams[0].allocate(DType::U8, bytes)?, streams[1].allocate(DType::U8, bytes)?];
        Ok(Self { buffers: [buffer()?, buffer()?], streams, memory, bytes })
    }

    fn region(&self, place: usize) -> Region<'_> {
        Region { memory: &self.memory[place], offset: 0, len: self.bytes }
    }
}

impl Transfers for OwnTransfers {
    fn prepare(&self) -> Result<()> {
        Ok(())
    }

    fn transfer(&self, heading: Heading) -> Result<()> {
        if heading != Heading::Back {
            self.buffers[0].borrow().enqueue_upload(&self.streams[0], self.region(0), None)?;
        }
        if heading != Heading::Away {
            self.buffers[1].borrow_mut().enqueue_download(&self.streams[1], self.region(1), None)?;
        }
        self.streams.iter().try_for_each(Stream::synchronize)
    }
}
