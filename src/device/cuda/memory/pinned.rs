//! Small pinned memory that outlives the objects that use it: flags, fault words, staging slots.
//!
//! Work that is still enqueued may read or write such memory after its stream or gate has been dropped, and freeing
//! pinned memory can wait for the device. So nothing is given back before the device closes: pieces are recycled.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::atomic::{Ordering, fence};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cudarc::driver::sys::{self, CU_MEMHOSTALLOC_DEVICEMAP, CU_MEMHOSTALLOC_PORTABLE, CUdeviceptr, CUresult, CUstream};

use crate::device::cuda::driver::handles::EventHandle;
use crate::device::cuda::driver::primary::Primary;
use crate::device::cuda::memory::staging::{PIECE_BYTES, StagingBuffer};
use crate::device::engine::Result;
use crate::error::DeviceError;

/// The size of a staging slot, and the largest transfer that goes through one.
pub(crate) const SLOT_BYTES: usize = 64 << 10;

/// What a slot shows until its value has arrived: bytes that no truth or count has, and few numbers.
const NOTHING: u64 = 0xA5A5_A5A5_A5A5_A5A5;

/// How long the host looks for a value before it has the driver wait.
const LOOK: Duration = Duration::from_micros(50);

/// The size of a cell: a cache line, so that the host's polling of one disturbs no other.
const CELL_BYTES: usize = 64;

const CELLS_A_CHUNK: usize = 1024;
const SLOTS_A_CHUNK: usize = 16;

/// 64 bytes of host memory that the device sees too; zero when first handed out.
#[derive(Clone, Copy)]
pub(crate) struct Cell {
    host: NonNull<u8>,
    device: CUdeviceptr,
}

// Safety: the memory lives until the device closes; access is by volatile or atomic operations of its owners.
unsafe impl Send for Cell {}
// Safety: as above.
unsafe impl Sync for Cell {}

impl Cell {
    pub(crate) fn host<T>(self) -> NonNull<T> {
        self.host.cast()
    }

    pub(crate) fn device(self) -> CUdeviceptr {
        self.device
    }
}

/// What a cell is used for, once and for all: a gate's word must never be set back, as clearing fault words would.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Gate,
    Fault,
}

/// A staging slot: pinned memory and the event of its last use.
pub(crate) struct Slot {
    memory: NonNull<u8>,
    device: CUdeviceptr,
    last_use: EventHandle,
    in_use: bool,
}

// Safety: the memory lives until the device closes and has one owner at a time.
unsafe impl Send for Slot {}
// Safety: a shared slot gives out its addresses alone.
unsafe impl Sync for Slot {}

impl Slot {
    /// The start of its [`SLOT_BYTES`] bytes.
    pub(crate) fn memory(&self) -> NonNull<u8> {
        self.memory
    }

    /// The same, as the device sees it.
    pub(crate) fn device(&self) -> CUdeviceptr {
        self.device
    }

    /// Prepares the slot for one value of the device: see [`has_arrived`](Self::has_arrived).
    pub(crate) fn expect(&self) {
        // Safety: the slot is the caller's, larger than 8 bytes and aligned; nothing writes it yet.
        unsafe { self.memory.cast::<u64>().write_volatile(NOTHING) };
    }

    /// Whether a value of 1, 2, 4 or 8 bytes, which the device writes in one, is there: then nothing before it on its
    /// stream is pending. One that looks like nothing is never seen to arrive, and neither is one that takes long: then a
    /// wait by the driver tells when it is there, a microsecond or two later.
    pub(crate) fn has_arrived(&self, bytes: usize) -> bool {
        let shown = || {
            // Safety: as above; the device writes values of these sizes whole.
            unsafe {
                match bytes {
                    1 => self.memory.read_volatile().into(),
                    2 => self.memory.cast::<u16>().read_volatile().into(),
                    4 => self.memory.cast::<u32>().read_volatile().into(),
                    _ => self.memory.cast::<u64>().read_volatile(),
                }
            }
        };
        let nothing = NOTHING & (u64::MAX >> (64 - 8 * bytes.clamp(1, 8)));
        let begin = Instant::now();
        while shown() == nothing {
            if begin.elapsed() > LOOK {
                return false;
            }
            std::hint::spin_loop();
        }
        fence(Ordering::Acquire);
        true
    }

    /// Keeps the slot from being handed out until the work enqueued on `stream` so far is over.
    pub(crate) fn hold(&mut self, primary: &Primary, stream: CUstream) -> Result<()> {
        self.in_use = true;
        // Safety: both handles are live.
        primary.check("cuEventRecord", unsafe { sys::cuEventRecord(self.last_use.raw(), stream) })
    }

    fn is_free(&self) -> bool {
        // Safety: the event is live.
        !self.in_use || unsafe { sys::cuEventQuery(self.last_use.raw()) } == CUresult::CUDA_SUCCESS
    }
}

/// The pinned pieces of one opened device.
pub(crate) struct Pinned(Mutex<Pieces>);

#[derive(Default)]
struct Pieces {
    chunks: Vec<NonNull<c_void>>,
    /// Never handed out yet.
    cells: Vec<Cell>,
    gates: Vec<Cell>,
    faults: Vec<Cell>,
    slots: VecDeque<Slot>,
    staging_buffers: Vec<StagingBuffer>,
}

// Safety: the chunks are reached through the lock alone, and freed once.
unsafe impl Send for Pieces {}

impl Pinned {
    /// Allocates the first pieces now: pinning later may wait for the device.
    pub(crate) fn new(primary: &Primary) -> Result<Self> {
        let pinned = Self(Mutex::default());
        {
            let mut pieces = pinned.lock();
            pieces.add_cells(primary)?;
            pieces.add_slots(primary)?;
            pieces.add_staging_buffer(primary)?;
        }
        Ok(pinned)
    }

    /// A cell, with the content that its last owner left.
    pub(crate) fn take_cell(&self, primary: &Primary, purpose: Purpose) -> Result<Cell> {
        let mut pieces = self.lock();
        loop {
            if let Some(cell) = pieces.used(purpose).pop().or_else(|| pieces.cells.pop()) {
                return Ok(cell);
            }
            pieces.add_cells(primary)?;
        }
    }

    /// Gives a cell back to its purpose. Nothing enqueued may write it any more; a stream may still read a gate's.
    pub(crate) fn return_cell(&self, cell: Cell, purpose: Purpose) {
        self.lock().used(purpose).push(cell);
    }

    /// A slot that nothing enqueued uses. Never waits for the device: where all are in use there will be more.
    pub(crate) fn take_slot(&self, primary: &Primary) -> Result<Slot> {
        let mut pieces = self.lock();
        loop {
            for _ in 0..pieces.slots.len() {
                match pieces.slots.pop_front() {
                    Some(mut slot) if slot.is_free() => {
                        slot.in_use = false;
                        return Ok(slot);
                    }
                    Some(slot) => pieces.slots.push_back(slot),
                    None => break,
                }
            }
            pieces.add_slots(primary)?;
        }
    }

    /// Gives a slot back; one that was held is handed out again when its work is over.
    ///
    /// A slot that was not held is the first to be handed out: the next scalar read finds it in the cache.
    pub(crate) fn return_slot(&self, slot: Slot) {
        let mut pieces = self.lock();
        if slot.in_use { pieces.slots.push_back(slot) } else { pieces.slots.push_front(slot) }
    }

    /// A buffer that nobody uses.
    pub(crate) fn take_staging_buffer(&self, primary: &Primary) -> Result<StagingBuffer> {
        let mut pieces = self.lock();
        loop {
            if let Some(buffer) = pieces.staging_buffers.pop() {
                return Ok(buffer);
            }
            pieces.add_staging_buffer(primary)?;
        }
    }

    /// Gives a buffer back that no copy fills any more.
    pub(crate) fn return_staging_buffer(&self, buffer: StagingBuffer) {
        self.lock().staging_buffers.push(buffer);
    }

    /// Poisoned pieces are still whole: each operation moves one piece.
    fn lock(&self) -> MutexGuard<'_, Pieces> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    fn new(primary: &Primary, memory: NonNull<u8>, device: CUdeviceptr) -> Result<Self> {
        Ok(Self { memory, device, last_use: EventHandle::new(primary, false)?, in_use: false })
    }
}

impl Pieces {
    fn used(&mut self, purpose: Purpose) -> &mut Vec<Cell> {
        match purpose {
            Purpose::Gate => &mut self.gates,
            Purpose::Fault => &mut self.faults,
        }
    }

    /// New zeroed memory, as the host and as the device sees it.
    fn allocate(&mut self, primary: &Primary, bytes: usize) -> Result<(NonNull<c_void>, CUdeviceptr)> {
        let chunk = allocate_host(primary, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP)?;
        // Safety: the chunk is new and that long.
        unsafe { chunk.cast::<u8>().write_bytes(0, bytes) };
        self.chunks.push(chunk);
        let mut device = 0;
        // Safety: the chunk is mapped; writes one address.
        let status = unsafe { sys::cuMemHostGetDevicePointer_v2(&mut device, chunk.as_ptr(), 0) };
        primary.check("cuMemHostGetDevicePointer", status).map(|()| (chunk, device))
    }

    fn add_cells(&mut self, primary: &Primary) -> Result<()> {
        let (chunk, device) = self.allocate(primary, CELLS_A_CHUNK * CELL_BYTES)?;
        self.cells.extend((0..CELLS_A_CHUNK).rev().map(|i| Cell {
            // Safety: within the chunk.
            host: unsafe { chunk.cast::<u8>().add(i * CELL_BYTES) },
            device: device + (i * CELL_BYTES) as u64,
        }));
        Ok(())
    }

    fn add_staging_buffer(&mut self, primary: &Primary) -> Result<()> {
        let (chunk, _) = self.allocate(primary, 2 * PIECE_BYTES)?;
        self.staging_buffers.push(StagingBuffer::new(primary, chunk.cast())?);
        Ok(())
    }

    fn add_slots(&mut self, primary: &Primary) -> Result<()> {
        let (chunk, device) = self.allocate(primary, SLOTS_A_CHUNK * SLOT_BYTES)?;
        for i in 0..SLOTS_A_CHUNK {
            // Safety: within the chunk.
            let memory = unsafe { chunk.cast::<u8>().add(i * SLOT_BYTES) };
            self.slots.push_front(Slot::new(primary, memory, device + (i * SLOT_BYTES) as u64)?);
        }
        Ok(())
    }
}

impl Drop for Pieces {
    /// Runs when the device closes: nothing is enqueued any more.
    fn drop(&mut self) {
        for chunk in &self.chunks {
            // Safety: allocated by `allocate`, freed once.
            unsafe { free_host(*chunk) };
        }
    }
}

/// Pinned host memory with the given flags of `cuMemHostAlloc`.
pub(crate) fn allocate_host(primary: &Primary, bytes: usize, flags: u32) -> Result<NonNull<c_void>> {
    let mut memory = ptr::null_mut();
    // Safety: writes one address.
    primary.check("cuMemHostAlloc", unsafe { sys::cuMemHostAlloc(&mut memory, bytes, flags) })?;
    NonNull::new(memory).ok_or_else(|| DeviceError::CallFailed {
        device: primary.name().to_owned(),
        call: "cuMemHostAlloc",
        reason: format!("it gave no memory for {bytes} bytes"),
    })
}

/// Frees what [`allocate_host`] gave. May wait for the device.
///
/// # Safety
/// The memory came from `allocate_host`, is freed once, and nothing uses it any more.
pub(crate) unsafe fn free_host(memory: NonNull<c_void>) {
    // Safety: the caller's promise. A drop cannot return an error.
    unsafe { sys::cuMemFreeHost(memory.as_ptr()) };
}
