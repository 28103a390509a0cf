//! What the device did, from CUPTI's activity records.
//!
//! # Method
//! Records of kernels, copies, fills and synchronizations are enabled for the length of a recording. Each call of the library pushes its
//! correlation as an *external* one on its thread's stack; CUPTI relates it to the driver's calls within, and those to
//! the work and the waits. CUPTI's clock is read beside the host's at the begin and at the end, the closest of several pairs of
//! readings each time, and its times are put on the host's clock along the line through both.
//!
//! Before that a kernel is launched that does nothing: CUPTI takes some milliseconds to prepare with the first one after its records are
//! enabled, and they are not the recorded program's.
//!
//! # Limits
//! What is kept of records has a bound (see [`kept`](crate::device::kept)). Beside it there are buffers of at most 64 MiB,
//! and what CUPTI keeps of its own. What is more is counted as dropped. Records are read as their buffers come back, so that
//! those of calls that enqueue nothing, of which a polling loop makes millions, take no memory.
//!
//! The calls of other libraries are seen by callbacks ([`calls`]).
//!
//! The records of the driver's and the run-time library's calls must be on for the relation, which makes calls dearer
//! by some microseconds. CUPTI stays attached to the process after the first recording: do not take timings after one
//! that are to be compared with timings before it. A profiler that is attached already keeps CUPTI for itself; one that comes
//! after the first recording does not get the callbacks any more.
//!
//! CUPTI 13.0 is not quite safe where records are switched on or off while other threads are in calls of the driver: the library's
//! own streams wait meanwhile, but other libraries do not know of it. Of 160 processes in which one thread recorded again and
//! again beside five that worked, and nothing waited, one ended by a segmentation fault.

mod buffers;
mod calls;
mod records;
mod waits;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, Once};
use std::time::{Duration, Instant};

use cudarc::cupti::sys::{self, CUpti_ActivityKind, CUptiResult};

use buffers::{Collecting, DrainedRecords};
use calls::{Seen, Watching};
use records::{OWN, Ran};

use crate::device::cuda::driver::libraries::Library;
use crate::device::cuda::driver::{Argument, Stream, exit};
use crate::device::cuda::gpu::Gpu;
use crate::device::cuda::kernels::Kernel;
use crate::device::kept::ChunkedVec;
use crate::device::lock;
use crate::device::tracer::{ActivitySource, CallInfo, DeviceWork, Kind, Stall, Traced, TracedCall, Tracer};
use crate::error::DeviceError;

const KINDS: [CUpti_ActivityKind; 7] = [
    CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
    CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_DRIVER,
    CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_RUNTIME,
    CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
    CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_MEMCPY,
    CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_MEMSET,
    CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
];

/// `CUPTI_ACTIVITY_FLAG_FLUSH_FORCED`: also buffers that are not full.
const FORCED: u32 = 1;

/// How many pairs of clock readings are taken.
const READINGS: usize = 16;

/// A recording by CUPTI.
pub(crate) struct Cupti {
    /// Until the recording ends: a call that is still open then keeps the rest.
    collecting: Mutex<Option<Collecting>>,
    /// `None` where another tool has the callbacks.
    watching: Option<Watching>,
    tracer: Arc<Tracer>,
    gpu: Arc<Gpu>,
    begin: RecordReader,
}

static RECORDED: Once = Once::new();

/// CUPTI's clock, in nanoseconds, and the host's at one instant.
#[derive(Clone, Copy)]
struct RecordReader {
    cupti: u64,
    host: Instant,
}

impl Cupti {
    /// Begins to record, with what to call the source of times; or says why CUPTI cannot.
    pub(crate) fn begin(gpu: &Arc<Gpu>, tracer: &Arc<Tracer>) -> Result<(Self, String), String> {
        Library::Cupti.load().map_err(|error| error.to_string())?;
        let (_inside, mut context, mut version) = (exit::enter(), 0, 0);
        // Safety: the context is retained, and both calls write one number.
        check("cuptiGetContextId", unsafe { sys::cuptiGetContextId(gpu.context.raw(), &mut context) })?;
        // Safety: as above.
        check("cuptiGetVersion", unsafe { sys::cuptiGetVersion(&mut version) })?;
        let mut label = format!("activity records of CUPTI, interface version {version}");
        let collecting = Mutex::new(Some(Collecting::begin(context)?));
        let watching = gpu.pause_all(None, || {
            for kind in KINDS {
                // Safety: takes a number; what was enabled before a failure is disabled again.
                check("cuptiActivityEnable", unsafe { sys::cuptiActivityEnable(kind) }).inspect_err(|_| disable())?;
            }
            Ok::<_, String>(Watching::begin(tracer))
        })?;
        let watching = watching.map_err(|why| label += &format!("; no calls of other libraries: {why}"));
        calls::enter_own();
        // Where this fails, the recording begins with what CUPTI prepares.
        let _ = launch_nothing(gpu);
        calls::leave_own();
        let (watching, tracer, gpu) = (watching.ok(), tracer.clone(), gpu.clone());
        let begin = RecordReader::take().inspect_err(|_| stop(&gpu, watching.as_ref()))?;
        Ok((Self { collecting, watching, tracer, gpu, begin }, label))
    }

    /// What was collected; the records are another recording's from here on.
    fn collected(&self) -> DrainedRecords {
        lock(&self.collecting).take().map(Collecting::end).unwrap_or_default()
    }

    /// From what was recorded to work and stalls, of this recording's calls alone.
    fn traced(
        &self,
        end: RecordReader,
        DrainedRecords { external, ran, blocked, dropped, .. }: DrainedRecords,
        calls: &mut ChunkedVec<TracedCall>,
    ) -> Traced {
        let mut ran = ran.into_vec();
        ran.retain(|ran| external.contains_key(&ran.correlation));
        in_turn(&mut ran);
        let at = |cupti| self.begin.host_time(end, cupti);
        let stalls = blocked.into_iter().filter_map(|(correlation, start, end)| {
            let correlation = external.get(&correlation).copied()?;
            Some(Stall { correlation, start: at(start), end: at(end) })
        });
        let stalls: Vec<Stall> = stalls.collect();
        let seen = self.watching.as_ref().map(Watching::seen).unwrap_or_default();
        complete(calls, &seen, &ran, &stalls, &external, || self.tracer.next_stream());
        let work = ran.into_iter().map(|ran| DeviceWork {
            correlation: external.get(&ran.correlation).copied(),
            name: ran.name,
            kind: ran.kind,
            stream: None,
            bytes: ran.bytes,
            start: at(ran.start),
            end: at(ran.end),
        });
        Traced { work: work.collect(), stalls, dropped, failure: None }
    }
}

/// The most bytes that the driver copies aside from pageable memory, and does not wait (*API synchronization behavior* of its
/// manual).
const ASIDE_BYTES: u64 = 64 << 10;

/// Says of other libraries' calls on which stream they were and whether they may have waited for their copies; those that only
/// can wait, and did not, go.
fn complete(
    calls: &mut ChunkedVec<TracedCall>,
    seen: &Seen,
    ran: &[Ran],
    stalls: &[Stall],
    external: &HashMap<u32, u64>,
    next_stream: impl Fn() -> u32,
) {
    if !calls.iter().any(|call| call.note.others) {
        return;
    }
    // The work of a graph may be on streams of the driver's own.
    let known = calls.iter().filter(|call| !call.note.name.contains("raph"));
    let known: HashMap<u64, u32> = known.filter_map(|call| Some((call.correlation, call.note.stream?))).collect();
    let mut numbers: HashMap<u32, u32> = HashMap::new();
    for ran in ran {
        if let Some(number) = external.get(&ran.correlation).and_then(|own| known.get(own)) {
            numbers.entry(ran.stream).or_insert(*number);
        }
    }
    let mut number_of = |stream| *numbers.entry(stream).or_insert_with(&next_stream);
    let work: HashMap<u64, &Ran> = ran.iter().filter_map(|ran| Some((*external.get(&ran.correlation)?, ran))).collect();
    for call in calls.iter_mut().filter(|call| call.note.others) {
        let work = work.get(&call.correlation);
        let stream = work.map(|work| work.stream).or_else(|| seen.streams.get(&call.correlation).copied());
        call.note.stream = stream.map(&mut number_of);
        if call.note.enqueues == Some(Kind::Copy) && call.note.barrier.is_none() {
            let aside = |work: &Ran| *work.name == *"upload" && work.bytes <= Some(ASIDE_BYTES);
            let returns = |work: &&Ran| call.note.name.contains("Async") && (!work.pageable || aside(work));
            call.note.may_wait = !work.is_some_and(returns);
        }
    }
    let stood: HashSet<u64> = stalls.iter().map(|stall| stall.correlation).collect();
    let may_only_wait = |note: &CallInfo| note.others && note.may_wait && note.enqueues.is_none();
    calls.retain(|call| !may_only_wait(&call.note) || stood.contains(&call.correlation));
}

impl ActivitySource for Cupti {
    fn enter(&self, correlation: u64) {
        // Safety: takes a number. A failure leaves work without its call, which is shown.
        unsafe { sys::cuptiActivityPushExternalCorrelationId(OWN, correlation) };
        calls::enter_own();
    }

    fn leave(&self) {
        calls::leave_own();
        let mut last = 0;
        // Safety: writes one number.
        unsafe { sys::cuptiActivityPopExternalCorrelationId(OWN, &mut last) };
    }

    fn finish(&self, calls: &mut ChunkedVec<TracedCall>) -> Traced {
        let mut dropped = 0;
        {
            // A gate of another opening of the GPU may hold work of its own: the records of what is over come without force,
            // and stay enabled.
            let (making, _inside) = (self.gpu.may_make(), exit::enter());
            // Safety: gives buffers back through the callback, which lives as long as the process; then writes one number.
            unsafe {
                sys::cuptiActivityFlushAll(if making.is_some() { FORCED } else { 0 });
                sys::cuptiActivityGetNumDroppedRecords(std::ptr::null_mut(), 0, &mut dropped);
            }
            if making.is_some() {
                stop(&self.gpu, self.watching.as_ref());
            }
        }
        let end = RecordReader::take().unwrap_or(self.begin);
        let mut collected = self.collected();
        collected.dropped += dropped as u64;
        self.traced(end, collected, calls)
    }

    /// To disable records can wait for the whole GPU: while a gate holds it they stay enabled, and are thrown away.
    fn abandon(&self) {
        drop(self.collected());
        if let Some(_making) = self.gpu.may_make() {
            let _inside = exit::enter();
            stop(&self.gpu, self.watching.as_ref());
        }
    }
}

/// No more is recorded. To disable records can wait for the whole GPU.
fn stop(gpu: &Gpu, watching: Option<&Watching>) {
    gpu.pause_all(None, || {
        disable();
        watching.inspect(|watching| watching.stop());
    });
    // By now CUPTI has made what it takes away at the process's end.
    RECORDED.call_once(exit::come_first);
}

fn launch_nothing(gpu: &Gpu) -> Result<(), DeviceError> {
    gpu.context.bind()?;
    let (function, nanoseconds) = (gpu.kernels.function(Kernel::SPIN)?, 0_u64);
    Stream::new(&gpu.context)?.launch_bare(function, 1, &mut [Argument::of(&nanoseconds)])
}

fn disable() {
    for kind in KINDS {
        // Safety: takes a number; one that is not enabled is left as it is.
        unsafe { sys::cuptiActivityDisable(kind) };
    }
}

impl RecordReader {
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

fn check(call: &str, status: CUptiResult) -> Result<(), String> {
    if status == CUptiResult::CUPTI_SUCCESS { Ok(()) } else { Err(format!("{call}: {status:?}")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::kept::Name;
    use crate::device::tracer::Kind;

    #[test]
    fn times_lie_on_the_line_through_both_readings() {
        let host = Instant::now();
        let begin = RecordReader { cupti: 1_000_000, host };
        let end = RecordReader { cupti: 2_000_000, host: host + Duration::from_nanos(1_000_200) };
        let after = |cupti| begin.host_time(end, cupti).duration_since(host).as_nanos();
        assert_eq!([after(1_000_000), after(1_500_000), after(2_000_000)], [0, 500_100, 1_000_200]);
        assert!(begin.host_time(end, 999_000) <= host);
    }

    #[test]
    fn readings_without_a_distance_give_the_host_clock_its_own_rate() {
        let begin = RecordReader { cupti: 10, host: Instant::now() };
        assert_eq!(begin.host_time(begin, 510).duration_since(begin.host).as_nanos(), 500);
    }

    #[test]
    fn a_kernel_that_was_started_early_begins_when_the_one_before_it_ends() {
        let ran = |stream, start, end| Ran {
            name: Name::Own(""),
            kind: Kind::Kernel,
            bytes: None,
            start,
            end,
            pageable: false,
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
    fn a_machine_without_cupti_says_so() {
        if let Err(error) = Library::Cupti.load() {
            assert!(error.to_string().contains("libcupti.so"), "{error}");
        }
    }
}
