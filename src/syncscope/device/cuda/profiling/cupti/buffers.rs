//! The buffers into which CUPTI writes activity records: what its callbacks need, and nothing else.
//!
//! CUPTI's two buffer callbacks take no pointer of the user's, so that what they share must be the process's: the one
//! collection below. It is there while one recording is in progress, and whoever holds it is the only one. Two copies of
//! this library in one process have one each; the callbacks that were registered last are those that are called.

use std::alloc::{Layout, alloc, dealloc};
use std::collections::{HashMap, HashSet};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use cudarc::cupti::sys::{self, CUptiResult};
use cudarc::driver::sys::CUcontext;

use super::records::{Ran, Record};
use crate::device::kept::{ByteBudget, CALL_NAME_BYTES, ChunkedVec, INDEX_BYTES, Name, SPAN_BYTES, text_bytes};
use crate::device::lock;
use crate::device::tracer::{DeviceWork, Stall};

/// What is collected; `None` while nobody records.
static COLLECTED: Mutex<Option<(u32, DrainedRecords)>> = Mutex::new(None);

/// How many buffers CUPTI has.
static OUT: AtomicUsize = AtomicUsize::new(0);

const BUFFER_BYTES: usize = 4 << 20;
const MAX_BUFFERS: usize = 16;
/// CUPTI's `ACTIVITY_RECORD_ALIGNMENT`.
const ALIGNMENT: usize = 8;

/// What matters of the records so far.
#[derive(Default)]
pub(super) struct DrainedRecords {
    /// From CUPTI's correlation to the library's.
    pub(super) external: HashMap<u32, u64>,
    /// Work of the context, also of other opened devices of its GPU.
    pub(super) ran: ChunkedVec<Ran>,
    /// Waits of the host: correlation, begin, end.
    pub(super) blocked: Vec<(u32, u64, u64)>,
    pub(super) dropped: u64,
    /// Names that work shares.
    names: HashSet<Arc<str>>,
    room: ByteBudget,
    /// Whether there is no work of other devices left to make room.
    full: bool,
}

/// What a wait takes: itself, in a list that may be half empty, as a stall, and its span.
const BLOCKED_BYTES: usize = 2 * (size_of::<(u32, u64, u64)>() + size_of::<Stall>()) + SPAN_BYTES + 2 * CALL_NAME_BYTES;

impl DrainedRecords {
    fn take(&mut self, record: Record, context: u32) {
        let kept = match record {
            Record::External { own, correlation } => {
                let kept = self.has_room(INDEX_BYTES);
                kept.then(|| self.external.insert(correlation, own));
                kept
            }
            Record::Ran(ran) if ran.context == context => {
                let kept = self.has_room(bytes_of(&ran));
                if kept {
                    let name = self.shared(ran.name);
                    self.ran.push(Ran { name, ..ran });
                }
                kept
            }
            Record::Ran(_) => true,
            Record::Blocked { correlation, start, end } => {
                let kept = self.has_room(BLOCKED_BYTES);
                kept.then(|| self.blocked.push((correlation, start, end)));
                kept
            }
        };
        self.dropped += u64::from(!kept);
    }

    /// Takes `bytes`. Work of other opened devices gives its room up first, without being counted.
    fn has_room(&mut self, bytes: usize) -> bool {
        if self.room.take(bytes) {
            return true;
        }
        if self.full {
            return false;
        }
        let (external, room, before) = (&self.external, &mut self.room, self.ran.len());
        let strange = self.ran.iter().filter(|ran| !external.contains_key(&ran.correlation));
        room.give_back(strange.map(bytes_of).sum());
        self.ran.retain(|ran| external.contains_key(&ran.correlation));
        // To look through all of it again and again for a few would take longer than what is recorded.
        self.full = before - self.ran.len() < before / 4 + 1;
        self.room.take(bytes)
    }

    /// The name, as other work has it, if there is room to remember it.
    fn shared(&mut self, name: Name) -> Name {
        let Name::Told(name) = name else { return name };
        if let Some(known) = self.names.get(&name) {
            return Name::Told(known.clone());
        }
        if self.room.take(INDEX_BYTES + text_bytes(name.len())) {
            self.names.insert(name.clone());
        }
        Name::Told(name)
    }
}

/// What work takes: as it is told and sorted, what becomes of it, and its name, once alone and once in its span.
fn bytes_of(ran: &Ran) -> usize {
    2 * size_of::<Ran>() + DeviceWork::BYTES + 2 * text_bytes(ran.name.len())
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
            let mut collected = lock(&COLLECTED);
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

    /// The library's call that a call of the driver is, by CUPTI's correlation.
    pub(super) fn relate(correlation: u32, own: u64) {
        if let Some((context, collected)) = lock(&COLLECTED).as_mut() {
            collected.take(Record::External { own, correlation }, *context);
        }
    }

    /// What was collected. From now on records are thrown away, until another recording begins.
    pub(super) fn end(self) -> DrainedRecords {
        lock(&COLLECTED).as_mut().map(|(_, collected)| std::mem::take(collected)).unwrap_or_default()
    }
}

impl Drop for Collecting {
    fn drop(&mut self) {
        *lock(&COLLECTED) = None;
    }
}

/// CUPTI asks for a buffer.
unsafe extern "C" fn request(buffer: *mut *mut u8, size: *mut usize, most_records: *mut usize) {
    let room = OUT.fetch_update(Ordering::AcqRel, Ordering::Acquire, |out| (out < MAX_BUFFERS).then_some(out + 1));
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
    if let Some((context, collected)) = lock(&COLLECTED).as_mut() {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::tracer::Kind;

    fn ran(context: u32, correlation: u32) -> Record {
        let (name, kind, bytes) = (Name::Told("a_kernel".into()), Kind::Kernel, None);
        Record::Ran(Ran { name, kind, bytes, start: 0, end: 1, pageable: false, context, stream: 0, correlation })
    }

    #[test]
    fn work_of_other_contexts_is_not_kept_and_names_are_kept_once() {
        let mut collected = DrainedRecords::default();
        collected.take(ran(2, 1), 1);
        assert_eq!((collected.ran.len(), collected.dropped), (0, 0));
        collected.take(ran(1, 1), 1);
        collected.take(ran(1, 2), 1);
        let names: Vec<_> = collected.ran.iter().map(|ran| ran.name.as_ptr()).collect();
        assert_eq!((names[0], collected.names.len()), (names[1], 1));
    }

    #[test]
    fn what_finds_no_room_is_counted_and_work_of_other_devices_gives_its_room_up() {
        const MANY: u32 = 1_000_000;
        let mut collected = DrainedRecords::default();
        for correlation in 0..MANY {
            collected.take(Record::External { own: 1, correlation }, 1);
            collected.take(ran(1, correlation), 1);
        }
        let all = (collected.external.len() + collected.ran.len()) as u64 + collected.dropped;
        assert_eq!(all, 2 * u64::from(MANY));
        assert!(collected.ran.len() > 100_000 && collected.dropped > 0);
        // Without a call of the recording it is of another device.
        let mut collected = DrainedRecords::default();
        for correlation in 0..MANY {
            collected.take(ran(1, correlation), 1);
        }
        assert_eq!(collected.dropped, 0);
        collected.take(Record::External { own: 1, correlation: MANY }, 1);
        collected.take(ran(1, MANY), 1);
        assert_eq!((collected.external.len(), collected.dropped), (1, 0));
    }

    #[test]
    fn a_wait_that_finds_no_room_is_counted() {
        let mut collected = DrainedRecords::default();
        let waits = 2_000_000;
        (0..waits).for_each(|correlation| collected.take(Record::Blocked { correlation, start: 0, end: 1 }, 1));
        assert_eq!(collected.blocked.len() as u64 + collected.dropped, u64::from(waits));
        assert!(collected.dropped > 0);
    }
}
