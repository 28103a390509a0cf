//! What the device did, from CUPTI's activity records.
//!
//! # Method
//! Records of kernels, copies, fills and synchronizations are enabled for the length of a recording. Each call of the library pushes its
//! correlation as an *external* one on its thread's stack; CUPTI relates it to the driver's calls within, and those to
//! the work and the waits. CUPTI's clock is read beside the host's at the begin and at the end, the closest of several pairs of
//! readings each time, and its times are put on the host's clock along the line through both.
//!
//! # Limits
//! The records of the driver's and the run-time library's calls must be on for the relation, which makes calls dearer
//! by some microseconds. CUPTI stays attached to the process after the first recording: do not take timings after one
//! that are to be compared with timings before it. A profiler that is attached already keeps CUPTI for itself.
//!
//! Records are read by the fields that CUPTI 12 and 13 have at the same offsets: later structures only append.

use std::collections::HashMap;
use std::ffi::{CStr, c_char};
use std::time::{Duration, Instant};

use cudarc::cupti::sys::{
    self, CUpti_Activity, CUpti_ActivityExternalCorrelation, CUpti_ActivityKernel9, CUpti_ActivityKind,
    CUpti_ActivityMemcpy5, CUpti_ActivityMemset4, CUpti_ActivitySynchronization, CUpti_ActivitySynchronizationType,
    CUpti_ExternalCorrelationKind, CUptiResult,
};

use crate::device::cuda::driver::libraries::Library;
use crate::device::cuda::driver::primary::Primary;
use crate::device::cuda::profiling::activity::Buffers;
use crate::device::tracer::{Activity, ActivitySource, Stall, Traced, Work};

const KINDS: [CUpti_ActivityKind; 7] = [
    CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
    CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_DRIVER,
    CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_RUNTIME,
    CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
    CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_MEMCPY,
    CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_MEMSET,
    CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
];

const OWN: CUpti_ExternalCorrelationKind = CUpti_ExternalCorrelationKind::CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;

/// `CUPTI_ACTIVITY_FLAG_FLUSH_FORCED`: also buffers that are not full.
const FORCED: u32 = 1;

/// The synchronizations that hold the host; the others make a stream wait.
const BLOCKING: [CUpti_ActivitySynchronizationType; 3] = [
    CUpti_ActivitySynchronizationType::CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE,
    CUpti_ActivitySynchronizationType::CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE,
    CUpti_ActivitySynchronizationType::CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE,
];

/// How many pairs of clock readings are taken.
const READINGS: usize = 16;

/// A recording by CUPTI.
pub(crate) struct Cupti {
    buffers: Buffers,
    /// CUPTI's number of the context: other devices of the process have other ones.
    context: u32,
    begin: Reading,
}

/// CUPTI's clock, in nanoseconds, and the host's at one instant.
#[derive(Clone, Copy)]
struct Reading {
    cupti: u64,
    host: Instant,
}

impl Cupti {
    /// Begins to record, with what to call the source of times; or says why CUPTI cannot.
    pub(crate) fn begin(primary: &Primary) -> Result<(Self, String), String> {
        Library::Cupti.load().map_err(|error| error.to_string())?;
        let buffers = Buffers::take()?;
        let (mut context, mut version) = (0, 0);
        // Safety: the context is retained, and both calls write one number.
        check("cuptiGetContextId", unsafe { sys::cuptiGetContextId(primary.raw(), &mut context) })?;
        // Safety: as above.
        check("cuptiGetVersion", unsafe { sys::cuptiGetVersion(&mut version) })?;
        let cupti = Self { buffers, context, begin: Reading::take()? };
        for kind in KINDS {
            // Safety: takes a number; what was enabled before a failure is disabled again.
            check("cuptiActivityEnable", unsafe { sys::cuptiActivityEnable(kind) }).inspect_err(|_| disable())?;
        }
        Ok((cupti, format!("activity records of CUPTI, interface version {version}")))
    }

    /// From what was recorded to work and stalls.
    fn traced(&self, end: Reading, dropped: u64) -> Traced {
        let (mut external, mut raw, mut blocked) = (HashMap::new(), Vec::new(), Vec::new());
        self.buffers.records(|record| {
            // Safety: the record is valid during this call, and its first field is its kind.
            match unsafe { Record::read(record) } {
                Some(Record::External { own, correlation }) => drop(external.insert(correlation, own)),
                Some(Record::Ran(ran)) if ran.context == self.context => raw.push(ran),
                Some(Record::Blocked { correlation, start, end }) => blocked.push((correlation, start, end)),
                _ => {}
            }
        });
        in_turn(&mut raw);
        let at = |cupti| self.begin.host_time(end, cupti);
        let work = raw.into_iter().map(|ran| Work {
            correlation: external.get(&ran.correlation).copied(),
            name: ran.name,
            doing: ran.doing,
            stream: None,
            bytes: ran.bytes,
            start: at(ran.start),
            end: at(ran.end),
        });
        let stalls = blocked.into_iter().filter_map(|(correlation, start, end)| {
            let correlation = external.get(&correlation).copied()?;
            Some(Stall { correlation, start: at(start), end: at(end) })
        });
        Traced { work: work.collect(), stalls: stalls.collect(), dropped }
    }
}

impl ActivitySource for Cupti {
    fn enter(&self, correlation: u64) {
        // Safety: takes a number. A failure leaves work without its call, which is shown.
        unsafe { sys::cuptiActivityPushExternalCorrelationId(OWN, correlation) };
    }

    fn leave(&self) {
        let mut last = 0;
        // Safety: writes one number.
        unsafe { sys::cuptiActivityPopExternalCorrelationId(OWN, &mut last) };
    }

    fn finish(&self) -> Traced {
        let mut dropped = 0;
        // Safety: gives all buffers back through the callback, which lives as long as the process; then writes one
        // number.
        unsafe {
            sys::cuptiActivityFlushAll(FORCED);
            sys::cuptiActivityGetNumDroppedRecords(std::ptr::null_mut(), 0, &mut dropped);
        }
        disable();
        let end = Reading::take().unwrap_or(self.begin);
        self.traced(end, dropped as u64)
    }
}

fn disable() {
    for kind in KINDS {
        // Safety: takes a number; one that is not enabled is left as it is.
        unsafe { sys::cuptiActivityDisable(kind) };
    }
}

impl Reading {
    /// The pair of readings that lie closest.
    fn take() -> Result<Self, String> {
        let mut best: Option<(Duration, Self)> = None;
        for _ in 0..READINGS {
            let mut cupti = 0;
            let before = Instant::now();
            // Safety: writes one number.
            check("cuptiGetTimestamp", unsafe { sys::cuptiGetTimestamp(&mut cupti) })?;
            let width = before.elapsed();
            if best.is_none_or(|(narrowest, _)| width < narrowest) {
                best = Some((width, Self { cupti, host: before + width / 2 }));
            }
        }
        best.map(|(_, reading)| reading).ok_or_else(|| "no clock reading was taken".to_owned())
    }

    /// CUPTI's time `cupti` on the host's clock, along the line from here to `end`.
    fn host_time(self, end: Self, cupti: u64) -> Instant {
        let passed = (end.cupti.saturating_sub(self.cupti)) as f64;
        let rate = end.host.saturating_duration_since(self.host).as_nanos() as f64 / passed;
        // Clocks that differ by more than this did not run on between the readings: a suspended machine, or no end.
        let rate = if (rate - 1.0).abs() < 1e-3 { rate } else { 1.0 };
        let distance = |from: u64, to: u64| Duration::from_nanos(((to - from) as f64 * rate).round() as u64);
        match cupti.checked_sub(self.cupti) {
            Some(_) => self.host + distance(self.cupti, cupti),
            None => self.host.checked_sub(distance(cupti, self.cupti)).unwrap_or(self.host),
        }
    }
}

/// What matters of a record.
enum Record {
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

struct Ran {
    name: String,
    doing: Activity,
    bytes: Option<u64>,
    start: u64,
    end: u64,
    context: u32,
    stream: u32,
    correlation: u32,
}

/// Lets the work of each stream begin when the work before it is over: a kernel that is started early (programmatic
/// stream serialization) only waits until then.
fn in_turn(ran: &mut [Ran]) {
    ran.sort_by_key(|ran| (ran.stream, ran.end));
    let mut before = None;
    for ran in ran {
        if let Some((stream, end)) = before
            && stream == ran.stream
        {
            ran.start = ran.start.max(end).min(ran.end);
        }
        before = Some((ran.stream, ran.end));
    }
}

/// Reads one field, wherever it lies, without a reference to the rest.
macro_rules! field {
    ($record:expr, $field:ident) => {
        (&raw const (*$record).$field).read_unaligned()
    };
}

/// The record of work, by the fields that all kinds of work have under the same names.
macro_rules! ran {
    ($record:expr, $name:expr, $doing:expr, $bytes:expr) => {
        Record::Ran(Ran {
            name: $name,
            doing: $doing,
            bytes: $bytes,
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
    unsafe fn read(record: *const CUpti_Activity) -> Option<Self> {
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
                    Some(ran!(record, name(field!(record, name)), Activity::Kernel, None))
                }
                COPY => {
                    let record = record.cast::<CUpti_ActivityMemcpy5>();
                    Some(ran!(
                        record,
                        direction(field!(record, copyKind)).to_owned(),
                        Activity::Copy,
                        Some(field!(record, bytes))
                    ))
                }
                FILL => {
                    let record = record.cast::<CUpti_ActivityMemset4>();
                    Some(ran!(record, "memset".to_owned(), Activity::Kernel, Some(field!(record, bytes))))
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
unsafe fn name(text: *const c_char) -> String {
    if text.is_null() {
        return "kernel".to_owned();
    }
    // Safety: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// `CUpti_ActivityMemcpyKind` in the words of the CPU engine.
fn direction(kind: u8) -> &'static str {
    match kind {
        1 => "upload",
        2 => "download",
        _ => "copy",
    }
}

fn check(call: &str, status: CUptiResult) -> Result<(), String> {
    if status == CUptiResult::CUPTI_SUCCESS { Ok(()) } else { Err(format!("{call}: {status:?}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_lie_on_the_line_through_both_readings() {
        let host = Instant::now();
        let begin = Reading { cupti: 1_000_000, host };
        let end = Reading { cupti: 2_000_000, host: host + Duration::from_nanos(1_000_200) };
        let after = |cupti| begin.host_time(end, cupti).duration_since(host).as_nanos();
        assert_eq!([after(1_000_000), after(1_500_000), after(2_000_000)], [0, 500_100, 1_000_200]);
        assert!(begin.host_time(end, 999_000) <= host);
    }

    #[test]
    fn readings_without_a_distance_give_the_host_clock_its_own_rate() {
        let begin = Reading { cupti: 10, host: Instant::now() };
        assert_eq!(begin.host_time(begin, 510).duration_since(begin.host).as_nanos(), 500);
    }

    #[test]
    fn a_kernel_that_was_started_early_begins_when_the_one_before_it_ends() {
        let ran = |stream, start, end| Ran {
            name: String::new(),
            doing: Activity::Kernel,
            bytes: None,
            start,
            end,
            context: 0,
            stream,
            correlation: 0,
        };
        let mut all = vec![ran(2, 90, 120), ran(1, 10, 100), ran(1, 98, 150), ran(1, 160, 170)];
        in_turn(&mut all);
        let times: Vec<_> = all.iter().map(|ran| (ran.stream, ran.start, ran.end)).collect();
        assert_eq!(times, [(1, 10, 100), (1, 100, 150), (1, 160, 170), (2, 90, 120)]);
    }

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
        assert_eq!((ran.name.as_str(), ran.start, ran.end, ran.context, ran.correlation), ("affine_fp32", 5, 9, 3, 77));
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

    #[test]
    fn a_machine_without_cupti_says_so() {
        if let Err(error) = Library::Cupti.load() {
            assert!(error.to_string().contains("libcupti.so"), "{error}");
        }
    }
}
