//! The buffers into which CUPTI writes activity records: what its callbacks need, and nothing else.
//!
//! CUPTI's two buffer callbacks take no pointer of the user's, so that what they share must be the process's: the one
//! list below. It is there while one recording is in progress, and whoever holds it is the only one. Two copies of
//! this library in one process have a list each; the callbacks that were registered last are those that are called.

use std::alloc::{Layout, alloc, dealloc};
use std::ptr::{self, NonNull};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cudarc::cupti::sys::{self, CUpti_Activity, CUptiResult};
use cudarc::driver::sys::CUcontext;

/// The buffers that CUPTI has filled; `None` while nobody records.
static FILLED: Mutex<Option<Vec<Buffer>>> = Mutex::new(None);

const BUFFER_BYTES: usize = 4 << 20;
/// CUPTI's `ACTIVITY_RECORD_ALIGNMENT`.
const ALIGNMENT: usize = 8;

/// A buffer with records in its first `valid` bytes.
struct Buffer {
    start: NonNull<u8>,
    valid: usize,
}

// Safety: memory that this value alone owns.
unsafe impl Send for Buffer {}

impl Drop for Buffer {
    fn drop(&mut self) {
        // Safety: from `request`, with this layout; CUPTI gave it back.
        unsafe { dealloc(self.start.as_ptr(), layout()) };
    }
}

fn layout() -> Layout {
    // Both are powers of two and small.
    Layout::from_size_align(BUFFER_BYTES, ALIGNMENT).unwrap_or(Layout::new::<u64>())
}

/// The right to have CUPTI's records: one in a process at a time.
pub(crate) struct Buffers(());

impl Buffers {
    /// Takes the right and registers the callbacks.
    pub(crate) fn take() -> Result<Self, String> {
        let buffers = {
            let mut filled = lock();
            if filled.is_some() {
                return Err("another recording in this process has CUPTI".to_owned());
            }
            *filled = Some(Vec::new());
            Self(())
        };
        // Not under the lock, which the callbacks take.
        // Safety: the library is there; both callbacks live as long as the process.
        let status = unsafe { sys::cuptiActivityRegisterCallbacks(Some(request), Some(complete)) };
        if status != CUptiResult::CUPTI_SUCCESS {
            return Err(format!("cuptiActivityRegisterCallbacks: {status:?}"));
        }
        Ok(buffers)
    }

    /// Has `each` see every record so far. A record is valid during the call alone.
    pub(crate) fn records(&self, mut each: impl FnMut(*const CUpti_Activity)) {
        let buffers = lock().as_mut().map(std::mem::take).unwrap_or_default();
        for buffer in &buffers {
            let mut record = ptr::null_mut();
            // Safety: the buffer holds that many bytes of records; `record` is null or the one before.
            while unsafe { sys::cuptiActivityGetNextRecord(buffer.start.as_ptr(), buffer.valid, &mut record) }
                == CUptiResult::CUPTI_SUCCESS
            {
                each(record);
            }
        }
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        *lock() = None;
    }
}

/// CUPTI asks for a buffer.
unsafe extern "C" fn request(buffer: *mut *mut u8, size: *mut usize, most_records: *mut usize) {
    // Safety: CUPTI hands out three places to write to; the layout is not of size 0. A null buffer is allowed: CUPTI
    // then drops records and counts them.
    unsafe {
        let start = alloc(layout());
        *buffer = start;
        *size = if start.is_null() { 0 } else { BUFFER_BYTES };
        *most_records = 0;
    }
}

/// CUPTI gives a buffer back.
unsafe extern "C" fn complete(_: CUcontext, _: u32, buffer: *mut u8, _: usize, valid: usize) {
    let Some(start) = NonNull::new(buffer) else { return };
    let buffer = Buffer { start, valid };
    if let Some(filled) = lock().as_mut() {
        filled.push(buffer);
    }
}

fn lock() -> MutexGuard<'static, Option<Vec<Buffer>>> {
    FILLED.lock().unwrap_or_else(PoisonError::into_inner)
}
