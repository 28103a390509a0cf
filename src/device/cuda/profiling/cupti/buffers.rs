//! The buffers into which CUPTI writes activity records: what its callbacks need, and nothing else.
//!
//! CUPTI's two buffer callbacks take no pointer of the user's, so that what they share must be the process's: the one
//! collection below. It is there while one recording is in progress, and whoever holds it is the only one. Two copies of
//! this library in one process have one each; the callbacks that were registered last are those that are called.

use std::alloc::{Layout, alloc, dealloc};
use std::collections::HashMap;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cudarc::cupti::sys::{self, CUptiResult};
use cudarc::driver::sys::CUcontext;

use super::records::{Ran, Record};
use crate::device::tracer::CAPACITY;

/// What is collected; `None` while nobody records.
static COLLECTED: Mutex<Option<(u32, DrainedRecords)>> = Mutex::new(None);

/// How many buffers CUPTI has.
static OUT: AtomicUsize = AtomicUsize::new(0);

const BUFFER_BYTES: usize = 4 << 20;
const MOST_BUFFERS: usize = 16;
/// CUPTI's `ACTIVITY_RECORD_ALIGNMENT`.
const ALIGNMENT: usize = 8;

/// What matters of the records so far.
#[derive(Default)]
pub(super) struct DrainedRecords {
    /// From CUPTI's correlation to the library's.
    pub(super) external: HashMap<u32, u64>,
    /// Work of the context, also of other opened devices of its GPU.
    pub(super) ran: Vec<Ran>,
    /// Waits of the host: correlation, begin, end.
    pub(super) blocked: Vec<(u32, u64, u64)>,
    pub(super) dropped: u64,
}

impl DrainedRecords {
    fn take(&mut self, record: Record, context: u32) {
        match record {
            Record::External { own, correlation } if self.external.len() < 4 * CAPACITY => {
                self.external.insert(correlation, own);
            }
            Record::Ran(ran) if ran.context == context => {
                if self.ran.len() == 2 * CAPACITY {
                    // Only that of other opened devices is given up without being counted.
                    let external = &self.external;
                    self.ran.retain(|ran| external.contains_key(&ran.correlation));
                    self.dropped += self.ran.len().saturating_sub(CAPACITY) as u64;
                    self.ran.truncate(CAPACITY);
                }
                self.ran.push(ran);
            }
            Record::Blocked { correlation, start, end } if self.blocked.len() < CAPACITY => {
                self.blocked.push((correlation, start, end));
            }
            Record::Ran(_) => {}
            Record::External { .. } | Record::Blocked { .. } => self.dropped += 1,
        }
    }
}

fn layout() -> Layout {
    // Both are powers of two and small.
    Layout::from_size_align(BUFFER_BYTES, ALIGNMENT).unwrap_or(Layout::new::<u64>())
}

/// The right to have CUPTI's records: one in a process at a time.
pub(super) struct Collecting(());

impl Collecting {
    /// Takes the right, for records of a context, and registers the callbacks.
    pub(super) fn begin(context: u32) -> Result<Self, String> {
        let collecting = {
            let mut collected = lock();
            if collected.is_some() {
                return Err("another recording in this process has CUPTI".to_owned());
            }
            *collected = Some((context, DrainedRecords::default()));
            Self(())
        };
        // Not under the lock, which the callbacks take.
        // Safety: the library is there; both callbacks live as long as the process.
        let status = unsafe { sys::cuptiActivityRegisterCallbacks(Some(request), Some(complete)) };
        if status != CUptiResult::CUPTI_SUCCESS {
            return Err(format!("cuptiActivityRegisterCallbacks: {status:?}"));
        }
        Ok(collecting)
    }

    /// What was collected. From now on records are thrown away, until another recording begins.
    pub(super) fn end(&self) -> DrainedRecords {
        lock().as_mut().map(|(_, collected)| std::mem::take(collected)).unwrap_or_default()
    }
}

impl Drop for Collecting {
    fn drop(&mut self) {
        *lock() = None;
    }
}

/// CUPTI asks for a buffer.
unsafe extern "C" fn request(buffer: *mut *mut u8, size: *mut usize, most_records: *mut usize) {
    let room = OUT.fetch_update(Ordering::AcqRel, Ordering::Acquire, |out| (out < MOST_BUFFERS).then_some(out + 1));
    // Safety: CUPTI hands out three places to write to; the layout is not of size 0. A null buffer is allowed: CUPTI
    // then drops records and counts them.
    unsafe {
        let start = if room.is_ok() { alloc(layout()) } else { ptr::null_mut() };
        if room.is_ok() && start.is_null() {
            OUT.fetch_sub(1, Ordering::AcqRel);
        }
        *buffer = start;
        *size = if start.is_null() { 0 } else { BUFFER_BYTES };
        *most_records = 0;
    }
}

/// CUPTI gives a buffer back, with records in its first `valid` bytes.
unsafe extern "C" fn complete(_: CUcontext, _: u32, buffer: *mut u8, _: usize, valid: usize) {
    if buffer.is_null() {
        return;
    }
    if let Some((context, collected)) = lock().as_mut() {
        let mut record = ptr::null_mut();
        // Safety: the buffer holds that many bytes of records; `record` is null or the one before.
        while unsafe { sys::cuptiActivityGetNextRecord(buffer, valid, &mut record) } == CUptiResult::CUPTI_SUCCESS {
            // Safety: a valid record until the buffer is freed.
            if let Some(read) = unsafe { Record::read(record) } {
                collected.take(read, *context);
            }
        }
    }
    // Safety: from `request`, with this layout; CUPTI gave it back.
    unsafe { dealloc(buffer, layout()) };
    OUT.fetch_sub(1, Ordering::AcqRel);
}

fn lock() -> MutexGuard<'static, Option<(u32, DrainedRecords)>> {
    COLLECTED.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::tracer::Kind;

    fn ran(context: u32, correlation: u32) -> Record {
        let (name, kind, bytes) = (String::new(), Kind::Kernel, None);
        Record::Ran(Ran { name, kind, bytes, start: 0, end: 1, context, stream: 0, correlation })
    }

    #[test]
    fn work_of_other_contexts_is_not_kept_and_what_is_too_much_is_counted() {
        let mut collected = DrainedRecords::default();
        collected.take(ran(2, 1), 1);
        assert!(collected.ran.is_empty());
        for correlation in 0..2 * CAPACITY as u32 + 1 {
            collected.take(Record::External { own: 1, correlation }, 1);
            collected.take(ran(1, correlation), 1);
        }
        assert_eq!((collected.ran.len(), collected.dropped), (CAPACITY + 1, CAPACITY as u64));
        // Without a call of the recording it is of another device.
        collected.external.clear();
        for correlation in 0..CAPACITY as u32 {
            collected.take(ran(1, correlation), 1);
        }
        assert_eq!((collected.ran.len(), collected.dropped), (1, CAPACITY as u64));
    }
}
