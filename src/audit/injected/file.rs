//! The record file: a part of it is mapped at a time, so that what was written outlasts a crash, a kill and an `exec`.
//!
//! It is open only while a part is mapped. A program may close all descriptors that it has, and open a file of its own by the
//! same number, which must not be taken for this one; and it may count them.

use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::format::{HEADER, MAGIC, VERSION, header};
use crate::system;

/// The bytes that are mapped at a time.
const PART: usize = 1 << 20;
/// The longest text that is written.
pub(crate) const TEXT: usize = 1024;

static WRITER: Mutex<Option<Writer>> = Mutex::new(None);
/// The process that files are of, beside the lock: in a child of a fork another thread may hold that for ever.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// The one file of this process.
pub(crate) struct Writer {
    path: PathBuf,
    header: *mut u8,
    part: *mut u8,
    /// Where the part begins in the file.
    begin: usize,
    /// Where the next record begins in the file.
    at: usize,
    /// The most bytes of the file.
    most: usize,
    full: bool,
}

// Safety: the mappings are of the process and are used under the lock alone.
unsafe impl Send for Writer {}

/// Makes the file and has all records go there.
pub(crate) fn open(folder: &Path, parent: u32, start: u64, most: usize) -> bool {
    let process = process();
    let path = folder.join(format!("{process}-{start:x}.audit"));
    let Some(header) = map(&path, true, 0, HEADER) else { return false };
    let Some(part) = map(&path, false, HEADER, PART) else { return false };
    let mut writer = Writer { path, header, part, begin: HEADER, at: HEADER, most, full: false };
    for (place, number) in [(header::VERSION, VERSION), (header::PROCESS, process), (header::PARENT, parent)] {
        writer.put(place, &number.to_le_bytes());
    }
    writer.put(header::START, &start.to_le_bytes());
    // Last: a file without it is none.
    writer.put(0, &MAGIC);
    *lock() = Some(writer);
    true
}

/// All files are of this process.
pub(crate) fn claim(process: u32) {
    PROCESS.store(process, Ordering::Relaxed);
}

/// Maps `length` bytes of a file.
fn map(path: &Path, is_new: bool, offset: usize, length: usize) -> Option<*mut u8> {
    let file = OpenOptions::new().read(true).write(true).create_new(is_new).open(path).ok()?;
    system::map(file.as_raw_fd(), offset, length)
}

/// The process that files are of. One that was cloned without the C library's knowledge has it mapped as well.
pub(crate) fn process() -> u32 {
    PROCESS.load(Ordering::Relaxed)
}

/// Gives up the file: it is another process's.
pub(crate) fn forget() {
    if let Ok(mut writer) = WRITER.try_lock() {
        std::mem::forget(writer.take());
    }
}

/// Writes a record.
pub(crate) fn write(tag: u16, fields: &[u8], text: &[u8]) {
    if let Some(writer) = lock().as_mut() {
        writer.record(tag, fields, &text[..text.len().min(TEXT)]);
    }
}

/// Sets a number of the header.
pub(crate) fn set(place: usize, number: u64) {
    if let Some(writer) = lock().as_mut() {
        writer.put(place, &number.to_le_bytes());
    }
}

/// Says that the process, or the time that was asked for, ended as it should.
pub(crate) fn end() {
    if let Some(writer) = lock().as_mut() {
        writer.put(header::ENDED, &1_u32.to_le_bytes());
    }
}

/// Writes no more to the file: another may be opened.
pub(crate) fn close() {
    if let Some(writer) = lock().take() {
        // Safety: both are mapped so, and nothing points into them: the writer is gone.
        unsafe {
            system::unmap(writer.part, PART);
            system::unmap(writer.header, HEADER);
        }
    }
}

fn lock() -> MutexGuard<'static, Option<Writer>> {
    WRITER.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Writer {
    fn put(&mut self, place: usize, bytes: &[u8]) {
        // Safety: all places of the header lie within its page.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.header.add(place), bytes.len()) };
    }

    fn number(&self, place: usize) -> &AtomicU64 {
        // Safety: a multiple of 8 within the page, which is mapped as long as the writer is there.
        unsafe { AtomicU64::from_ptr(self.header.add(place).cast()) }
    }

    fn record(&mut self, tag: u16, fields: &[u8], text: &[u8]) {
        let length = fields.len() + text.len();
        let whole = (8 + length).next_multiple_of(8);
        self.full |= self.at + whole > self.most;
        let begin = self.at;
        let mut head = [0; 8];
        head[..2].copy_from_slice(&tag.to_le_bytes());
        head[4..].copy_from_slice(&(length as u32).to_le_bytes());
        let padding = [0; 8];
        for bytes in [&head[..], fields, text, &padding[..whole - 8 - length]] {
            if self.full || !self.copy(bytes) {
                self.full = true;
                self.at = begin;
                self.number(header::LOST).fetch_add(1, Ordering::Relaxed);
                return;
            }
        }
        self.number(header::WHOLE).store((self.at - HEADER) as u64, Ordering::Release);
    }

    fn copy(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            if self.at - self.begin == PART {
                let next = self.begin + PART;
                let Some(part) = map(&self.path, false, next, PART) else { return false };
                // Safety: it is the part before, and nothing points into it.
                unsafe { system::unmap(self.part, PART) };
                (self.part, self.begin) = (part, next);
            }
            let within = self.at - self.begin;
            let (now, rest) = bytes.split_at(bytes.len().min(PART - within));
            // Safety: the part is mapped, and there is room for so many bytes.
            unsafe { std::ptr::copy_nonoverlapping(now.as_ptr(), self.part.add(within), now.len()) };
            self.at += now.len();
            bytes = rest;
        }
        true
    }
}

/// The fields of a record, one after the other.
pub(crate) struct Fields {
    bytes: [u8; 80],
    length: usize,
}

impl Fields {
    pub(crate) fn new() -> Self {
        Self { bytes: [0; 80], length: 0 }
    }

    pub(crate) fn u64(self, number: u64) -> Self {
        self.add(&number.to_le_bytes())
    }

    pub(crate) fn u32(self, number: u32) -> Self {
        self.add(&number.to_le_bytes())
    }

    pub(crate) fn u8s(self, numbers: [u8; 4]) -> Self {
        self.add(&numbers)
    }

    pub(crate) fn write(&self, tag: u16, text: &[u8]) {
        write(tag, &self.bytes[..self.length], text);
    }

    fn add(mut self, bytes: &[u8]) -> Self {
        self.bytes[self.length..self.length + bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
        self
    }
}
