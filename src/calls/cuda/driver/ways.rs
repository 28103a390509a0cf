//! Transfers between the memory of the host and that of the device, or between two devices, in each way that the driver has.

use std::cell::RefCell;
use std::ffi::{CStr, c_void};
use std::hint::black_box;
use std::slice;
use std::sync::Arc;

use cudarc::driver::sys::{
    self, CUdevice_attribute, CUdeviceptr, CUfunction, CUmemLocation, CUmemLocationType, CUmodule, CUstream,
};

use super::contexts::PeerDevice;
use super::memory::here;
use super::owned::{Block, Owned};
use super::{Calls, function, launch, module};
use crate::catalogue::Memory;
use crate::ways::{Heading, MovedBy, Transfers, no_room};
use crate::{Result, StreamRole};
use syncscope::device::raw::{self, Context};

/// The kernel that copies: it takes both addresses and the number of bytes.
const KERNEL: &CStr = c"transfer";

/// The threads of its blocks, and how many blocks there are for each multiprocessor: a quarter of what it holds, so that two
/// kernels run beside each other. It is more than enough for PCIe, where less than a hundred kilobytes are under way.
const THREADS: u32 = 256;
const BLOCKS: u32 = 2;

/// A block of each side for each direction: the first ones are of what goes away, the second ones of what comes back.
struct Moves {
    calls: Arc<Calls>,
    way: MovedBy,
    bytes: usize,
    // Access of each device to the other one ends before the memory does.
    peer: Option<(Arc<Context>, RefCell<[PeerDevice; 2]>)>,
    /// Of the host, or of the other device.
    there: [Block; 2],
    here: [Block; 2],
    kernel: Option<Kernel>,
}

/// A loaded kernel.
struct Kernel {
    function: CUfunction,
    blocks: u32,
    #[allow(dead_code, reason = "kept for its function")]
    module: Owned<CUmodule>,
}

impl Calls {
    /// The transfers of a way.
    pub(in crate::cuda) fn transfers(self: &Arc<Self>, way: MovedBy, bytes: usize) -> Result<Box<dyn Transfers>> {
        self.bind()?;
        let memory = match way {
            MovedBy::Pageable => Memory::Pageable,
            MovedBy::Pinned | MovedBy::ZeroCopy => Memory::Pinned,
            MovedBy::Registered => Memory::Registered,
            MovedBy::Managed | MovedBy::Prefetched => self.movable()?,
            MovedBy::Peer { .. } => Memory::Device,
        };
        let peer = if let MovedBy::Peer { access } = way { Some(self.peer(access)?) } else { None };
        // Managed memory may be on the device, too.
        let blocks = if memory == Memory::Managed { 4 } else { 2 };
        self.room(&self.context, blocks, bytes)?;
        let there = peer.as_ref().map_or(&self.context, |(other, _)| other);
        if peer.is_some() {
            self.room(there, 2, bytes)?;
        }
        let there = [Block::new(there, memory, bytes)?, Block::new(there, memory, bytes)?];
        let here = [Memory::Device; 2].map(|memory| Block::new(&self.context, memory, bytes));
        let [first, second] = here;
        let kernel = match way {
            MovedBy::Managed | MovedBy::ZeroCopy => Some(self.kernel(&raw::image(&self.context, "transfer.cu")?)?),
            _ => None,
        };
        let calls = Arc::clone(self);
        Ok(Box::new(Moves { calls, way, bytes, peer, there, here: [first?, second?], kernel }))
    }

    /// Managed memory, where host and device may touch it at the same time and the driver can be asked to move it.
    fn movable(&self) -> Result<Memory> {
        self.require("cuMemPrefetchAsync_v2")?;
        let (mut concurrent, which) = (0, CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
        // Safety: writes one integer.
        let status = unsafe { sys::cuDeviceGetAttribute(&mut concurrent, which, self.context.device()) };
        self.check("cuDeviceGetAttribute", status)?;
        match concurrent {
            0 => Err(self.missing("managed memory that moves", "host and device cannot share managed memory here")),
            _ => Ok(Memory::Managed),
        }
    }

    /// The other device, and access of each to the memory of the other, which is off.
    fn peer(&self, access: bool) -> Result<(Arc<Context>, RefCell<[PeerDevice; 2]>)> {
        let other = self.other()?;
        let peers = [PeerDevice::new(&self.context, &other), PeerDevice::new(&other, &self.context)];
        if access {
            peers.iter().try_for_each(|peer| peer.is_possible(self))?;
        }
        Ok((other, RefCell::new(peers)))
    }

    /// Fails where so many blocks would take more than half of what a device has left.
    pub(super) fn room(&self, context: &Arc<Context>, blocks: usize, bytes: usize) -> Result<()> {
        let (mut free, mut total) = (0, 0);
        context.bind()?;
        // Safety: writes two sizes; the context is current.
        context.check("cuMemGetInfo", unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) })?;
        self.bind()?;
        if bytes.saturating_mul(blocks) > free / 2 { Err(no_room("the device", bytes)) } else { Ok(()) }
    }

    fn kernel(&self, image: &[u8]) -> Result<Kernel> {
        let module = module(&self.context, image)?;
        let function = function(&self.context, module.get()?, KERNEL)?;
        Ok(Kernel { function, blocks: BLOCKS * self.context.multiprocessors()?, module })
    }
}

impl Transfers for Moves {
    fn prepare(&self) -> Result<()> {
        self.access(true)?;
        if matches!(self.way, MovedBy::Managed | MovedBy::Prefetched) {
            self.prefetch(0, HOST, StreamRole::Given)?;
            self.prefetch(1, here(&self.calls), StreamRole::Given)?;
            self.calls.synchronize(StreamRole::Given)?;
        }
        Ok(())
    }

    fn transfer(&self, heading: Heading) -> Result<()> {
        if heading != Heading::Back {
            self.away()?;
        }
        if heading != Heading::Away {
            self.back()?;
        }
        if heading != Heading::Back {
            self.calls.synchronize(StreamRole::Given)?;
        }
        if heading != Heading::Away {
            self.calls.synchronize(self.line_back())?;
        }
        Ok(())
    }

    fn settle(&self) -> Result<()> {
        self.access(false)
    }
}

impl Moves {
    /// Changes the access of the two devices to each other, where the way has it. This device is current afterwards.
    fn access(&self, on: bool) -> Result<()> {
        let changed = match (self.way, &self.peer) {
            (MovedBy::Peer { access: true }, Some((_, peers))) => {
                peers.borrow_mut().iter_mut().try_for_each(|peer| peer.set(on))
            }
            _ => Ok(()),
        };
        self.calls.bind()?;
        changed
    }

    /// The stream of the second transfer: between two devices, that of the device whose memory it reads.
    fn line_back(&self) -> StreamRole {
        if self.peer.is_some() { StreamRole::Device } else { StreamRole::NonBlocking }
    }

    /// Enqueues the first transfer.
    fn away(&self) -> Result<()> {
        let (c, stream) = (&self.calls, self.stream(StreamRole::Given)?);
        let (from, to) = (&self.there[0], &self.here[0]);
        match (self.way, &self.peer) {
            (MovedBy::Pageable | MovedBy::Pinned | MovedBy::Registered, _) => {
                // Safety: both blocks hold as many bytes, and are kept until the copy is over.
                let status = unsafe { sys::cuMemcpyHtoDAsync_v2(to.address()?, from.start()?, self.bytes, stream) };
                c.check("cuMemcpyHtoDAsync", status)
            }
            (MovedBy::Prefetched, _) => self.prefetch(0, here(c), StreamRole::Given),
            (MovedBy::Peer { .. }, Some((other, _))) => {
                let (source, target) = (self.here[0].address()?, self.there[0].address()?);
                // Safety: as above, each in its context.
                let status =
                    unsafe { sys::cuMemcpyPeerAsync(target, other.raw(), source, c.context.raw(), self.bytes, stream) };
                c.check("cuMemcpyPeerAsync", status)
            }
            (MovedBy::Managed | MovedBy::ZeroCopy | MovedBy::Peer { .. }, _) => {
                self.launch(from.on_device()?, to.address()?, stream)
            }
        }
    }

    /// Enqueues the second transfer; where a thread of the host moves memory by touching it, does so.
    fn back(&self) -> Result<()> {
        let (c, stream) = (&self.calls, self.stream(self.line_back())?);
        let (from, to) = (&self.here[1], &self.there[1]);
        match (self.way, &self.peer) {
            (MovedBy::Pageable | MovedBy::Pinned | MovedBy::Registered, _) => {
                // Safety: both blocks hold as many bytes, and are kept until the copy is over.
                let status = unsafe { sys::cuMemcpyDtoHAsync_v2(to.start()?, from.address()?, self.bytes, stream) };
                c.check("cuMemcpyDtoHAsync", status)
            }
            (MovedBy::Managed, _) => {
                // Safety: managed memory of that size, written when it was made, which no work uses now.
                let content = unsafe { slice::from_raw_parts(to.start()?.cast::<u8>(), self.bytes) };
                // A read of each page moves it; more would time the host's reading.
                black_box(content.iter().step_by(HOST_PAGE).fold(0, |all, byte| all ^ byte));
                Ok(())
            }
            (MovedBy::Prefetched, _) => self.prefetch(1, HOST, StreamRole::NonBlocking),
            (MovedBy::Peer { .. }, Some((other, _))) => {
                let (source, target) = (self.there[1].address()?, self.here[1].address()?);
                other.bind()?;
                // Safety: as above, each in its context. The stream is of the other device, which is current.
                let status =
                    unsafe { sys::cuMemcpyPeerAsync(target, c.context.raw(), source, other.raw(), self.bytes, stream) };
                c.bind()?;
                c.check("cuMemcpyPeerAsync", status)
            }
            (MovedBy::ZeroCopy | MovedBy::Peer { .. }, _) => self.launch(from.address()?, to.on_device()?, stream),
        }
    }

    fn stream(&self, line: StreamRole) -> Result<CUstream> {
        self.calls.stream(line).map(|(_, stream)| stream)
    }

    /// Asks the driver to move a block of managed memory.
    fn prefetch(&self, place: usize, to: CUmemLocation, line: StreamRole) -> Result<()> {
        let (address, stream) = (self.there[place].address()?, self.stream(line)?);
        // Safety: managed memory of that size.
        let status = unsafe { sys::cuMemPrefetchAsync_v2(address, self.bytes, to, 0, stream) };
        self.calls.check("cuMemPrefetchAsync", status)
    }

    /// Has the kernel copy.
    fn launch(&self, mut from: CUdeviceptr, mut to: CUdeviceptr, stream: CUstream) -> Result<()> {
        let Some(kernel) = &self.kernel else {
            return Err(self.calls.missing("the kernel that copies", "it was not loaded"));
        };
        let mut bytes = self.bytes as u64;
        let needed = u32::try_from(bytes.div_ceil(16).div_ceil(u64::from(THREADS))).unwrap_or(u32::MAX);
        let mut arguments =
            [(&raw mut from).cast::<c_void>(), (&raw mut to).cast::<c_void>(), (&raw mut bytes).cast::<c_void>()];
        let blocks = needed.clamp(1, kernel.blocks);
        // Safety: the kernel takes these three words; both blocks hold as many bytes, can be reached by the device, and are kept
        // until it is over.
        let status = unsafe { launch(kernel.function, [blocks, THREADS], stream, &mut arguments) };
        self.calls.check("cuLaunchKernel", status)
    }
}

impl Drop for Moves {
    /// Nothing may use the blocks when they are freed. A drop cannot return an error.
    fn drop(&mut self) {
        for line in [StreamRole::Given, self.line_back()] {
            let _ = self.calls.synchronize(line);
        }
    }
}

/// The least size of a page of the host.
const HOST_PAGE: usize = 4096;

/// The memory of the host, as a place of managed memory.
const HOST: CUmemLocation = CUmemLocation { type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST, id: 0 };
