//! Activity records, by the fields that matter.
//!
//! Records are read by the fields that CUPTI 12 and 13 have at the same offsets: later structures only append.

use std::ffi::{CStr, c_char};

use cudarc::cupti::sys::{
    CUpti_Activity, CUpti_ActivityExternalCorrelation, CUpti_ActivityKernel9, CUpti_ActivityKind,
    CUpti_ActivityMemcpy5, CUpti_ActivityMemoryKind, CUpti_ActivityMemset4, CUpti_ActivitySynchronization,
    CUpti_ActivitySynchronizationType, CUpti_ExternalCorrelationKind,
};

use crate::device::kept::Name;
use crate::device::tracer::Kind;

/// The kind of external correlation that this library pushes.
pub(super) const OWN: CUpti_ExternalCorrelationKind =
    CUpti_ExternalCorrelationKind::CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;

/// The kind of memory of a copy that is the host's, and pageable.
const PAGEABLE: u8 = CUpti_ActivityMemoryKind::CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE as u8;

/// The synchronizations that hold the host; the others make a stream wait.
const BLOCKING: [CUpti_ActivitySynchronizationType; 3] = [
    CUpti_ActivitySynchronizationType::CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE,
    CUpti_ActivitySynchronizationType::CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE,
    CUpti_ActivitySynchronizationType::CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE,
];

/// What matters of a record.
pub(super) enum Record {
    External {
        own: u64,
        correlation: u32,
    },
    Ran(Ran),
    /// The host waited in a driver's call.
    Blocked {
        correlation: u32,
        start: u64,
        end: u64,
    },
}

pub(super) struct Ran {
    pub(crate) name: Name,
    pub(crate) kind: Kind,
    pub(crate) bytes: Option<u64>,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Whether a copy's memory on the host is pageable.
    pub(super) pageable: bool,
    pub(super) context: u32,
    pub(super) stream: u32,
    pub(super) correlation: u32,
}

/// Reads one field, wherever it lies, without a reference to the rest.
macro_rules! field {
    ($record:expr, $field:ident) => {
        (&raw const (*$record).$field).read_unaligned()
    };
}

/// The record of work, by the fields that all kinds of work have under the same names.
macro_rules! ran {
    ($record:expr, $name:expr, $kind:expr, $bytes:expr) => {
        ran!($record, $name, $kind, $bytes, false)
    };
    ($record:expr, $name:expr, $kind:expr, $bytes:expr, $pageable:expr) => {
        Record::Ran(Ran {
            name: $name,
            kind: $kind,
            bytes: $bytes,
            pageable: $pageable,
            start: field!($record, start),
            end: field!($record, end),
            context: field!($record, contextId),
            stream: field!($record, streamId),
            correlation: field!($record, correlationId),
        })
    };
}

impl Record {
    /// # Safety
    /// `record` is a valid activity record.
    pub(super) unsafe fn read(record: *const CUpti_Activity) -> Option<Self> {
        const EXTERNAL: u32 = CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION as u32;
        const KERNEL: u32 = CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL as u32;
        const COPY: u32 = CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_MEMCPY as u32;
        const FILL: u32 = CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_MEMSET as u32;
        const SYNCHRONIZATION: u32 = CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_SYNCHRONIZATION as u32;
        // As a number: a newer CUPTI may have kinds that these bindings do not know.
        // Safety: every record begins with its kind; the kind says which structure it begins with, and CUPTI 12 and 13
        // have the fields that are read at the same offsets.
        unsafe {
            match record.cast::<u32>().read_unaligned() {
                EXTERNAL => {
                    let record = record.cast::<CUpti_ActivityExternalCorrelation>();
                    // Of one driver call all external kinds are told; only this library's is asked for.
                    let kind = (&raw const (*record).externalKind).cast::<u32>().read_unaligned();
                    (kind == OWN as u32).then(|| Self::External {
                        own: field!(record, externalId),
                        correlation: field!(record, correlationId),
                    })
                }
                KERNEL => {
                    let record = record.cast::<CUpti_ActivityKernel9>();
                    let name = name(field!(record, name));
                    // What a gate holds a stream with where the driver has no wait for it.
                    let kind = if *name == *"hold" { Kind::Wait } else { Kind::Kernel };
                    Some(ran!(record, name, kind, None))
                }
                COPY => {
                    let record = record.cast::<CUpti_ActivityMemcpy5>();
                    let (name, bytes) = (direction(field!(record, copyKind)), field!(record, bytes));
                    let pageable = [field!(record, srcKind), field!(record, dstKind)].contains(&PAGEABLE);
                    Some(ran!(record, Name::Own(name), Kind::Copy, Some(bytes), pageable))
                }
                FILL => {
                    let record = record.cast::<CUpti_ActivityMemset4>();
                    Some(ran!(record, Name::Own("memset"), Kind::Kernel, Some(field!(record, bytes))))
                }
                SYNCHRONIZATION => {
                    let record = record.cast::<CUpti_ActivitySynchronization>();
                    let kind = (&raw const (*record).type_).cast::<u32>().read_unaligned();
                    BLOCKING.iter().any(|&known| known as u32 == kind).then(|| Self::Blocked {
                        correlation: field!(record, correlationId),
                        start: field!(record, start),
                        end: field!(record, end),
                    })
                }
                _ => None,
            }
        }
    }
}

/// # Safety
/// `text` is null or a terminated text.
unsafe fn name(text: *const c_char) -> Name {
    if text.is_null() {
        return Name::Own("kernel");
    }
    // Safety: the caller's promise.
    Name::Told(unsafe { CStr::from_ptr(text) }.to_string_lossy().into())
}

/// `CUpti_ActivityMemcpyKind` in the words of the CPU engine.
fn direction(kind: u8) -> &'static str {
    match kind {
        1 => "upload",
        2 => "download",
        _ => "copy",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_by_their_fields_and_an_unknown_kind_is_passed_over() {
        // Safety: all fields are numbers and pointers, for which zeros are valid.
        let mut kernel: CUpti_ActivityKernel9 = unsafe { std::mem::zeroed() };
        kernel.kind = CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
        (kernel.start, kernel.end, kernel.contextId, kernel.correlationId) = (5, 9, 3, 77);
        kernel.name = c"affine_fp32".as_ptr();
        // Safety: a whole record.
        let read = unsafe { Record::read((&raw const kernel).cast()) };
        let Some(Record::Ran(ran)) = read else { panic!("no kernel was read") };
        assert_eq!((&*ran.name, ran.start, ran.end, ran.context, ran.correlation), ("affine_fp32", 5, 9, 3, 77));
        // Safety: as above.
        let mut wait: CUpti_ActivitySynchronization = unsafe { std::mem::zeroed() };
        wait.kind = CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
        (wait.start, wait.end, wait.correlationId) = (5, 9, 78);
        wait.type_ = BLOCKING[1];
        // Safety: a whole record.
        let read = unsafe { Record::read((&raw const wait).cast()) };
        assert!(matches!(read, Some(Record::Blocked { correlation: 78, start: 5, end: 9 })));
        wait.type_ = CUpti_ActivitySynchronizationType::CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT;
        // Safety: a whole record.
        assert!(unsafe { Record::read((&raw const wait).cast()) }.is_none(), "a stream waits, not the host");
        let unknown = [9_999_u64; 4];
        // Safety: only the kind is read of it.
        assert!(unsafe { Record::read((&raw const unknown).cast()) }.is_none());
    }
}
