//! Recording: from a region to its timeline.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::thread::ThreadId;
use std::time::Instant;

use super::span::{Span, Timeline, Track};
use super::standing::standing;
use crate::device::Device;
use crate::device::code::LAUNCH;
use crate::device::kept::SPAN_BYTES;
use crate::device::kind::{Kind, SyncKind};
use crate::device::recording::{Log, Recording};
use crate::device::tracer::{CallInfo, DeviceWork, TracedCall, unnamed};
use crate::error::DeviceError;
use crate::measure::optimised;

/// Recording what is done on a device.
impl Device {
    /// Runs `region` and records what the host called and what the device did.
    ///
    /// The recording ends once the device has done what `region` enqueued: leave no closed gate behind. All streams of
    /// this device are recorded, whichever thread uses them. On CUDA the calls of other libraries in this process are too, with
    /// the names that the driver has for them: candle's, `cudarc`'s, those of cuBLAS. This takes the feature `cupti`, and no other
    /// profiler in the process, and no closed gate when the recording begins; [`Timeline::source`] says what was there. The line of
    /// such a call is that of the program, where it was built with line tables (`debug = "line-tables-only"`).
    ///
    /// ```
    /// use syncscope::prelude::*;
    ///
    /// let device = Device::open("cpu:0")?;
    /// let stream = device.stream()?;
    /// let (sum, timeline) = device.record(|| stream.ones::<f32>([64])?.sum()?.item())?;
    /// assert_eq!(sum, 64.0);
    /// assert!(timeline.spans.iter().any(|span| span.name == "item"));
    /// # Ok::<(), DeviceError>(())
    /// ```
    ///
    /// # Errors
    /// [`DeviceError::AlreadyRecording`] within or beside another recording of the device; the region's error; a
    /// failure of the work.
    pub fn record<R, E: From<DeviceError>>(&self, region: impl FnOnce() -> Result<R, E>) -> Result<(R, Timeline), E> {
        let open = self.begin_recording()?;
        let result = region()?;
        Ok((result, open.end()?))
    }

    /// Begins to record what has no closure, such as several cells of a notebook. Without [`end`](OpenRecording::end) it is
    /// forgotten.
    ///
    /// # Errors
    /// [`DeviceError::AlreadyRecording`] within or beside another recording of the device.
    pub fn begin_recording(&self) -> Result<OpenRecording, DeviceError> {
        optimised::say_if_not();
        Ok(OpenRecording { recording: Recording::begin(self.engine())?, device: self.name().to_owned() })
    }

    /// As [`record`](Self::record), with the device's times taken from events around each call, as where the engine
    /// offers nothing better: for a comparison of the two.
    ///
    /// # Errors
    /// As `record`.
    pub fn record_by_events<R, E: From<DeviceError>>(
        &self,
        region: impl FnOnce() -> Result<R, E>,
    ) -> Result<(R, Timeline), E> {
        let recording = Recording::with_source(self.engine(), Some("asked for"))?;
        let result = region()?;
        Ok((result, Timeline::of(self.name(), recording.finish()?)))
    }

    /// Runs `work`, the host's own, and names it in a recording that is in progress. Calls of the library within it
    /// are part of it.
    #[track_caller]
    pub fn host_work<R>(&self, name: &'static str, work: impl FnOnce() -> R) -> R {
        let site = Some(std::panic::Location::caller());
        let _call = self.engine().tracer().call(CallInfo::new(name, Kind::HostWork), site);
        work()
    }
}

/// A recording that has begun.
#[must_use = "what is dropped is forgotten"]
pub struct OpenRecording {
    recording: Recording,
    device: String,
}

impl OpenRecording {
    /// Waits for the device's work, and says what was done.
    ///
    /// # Errors
    /// A failure of the work.
    pub fn end(self) -> Result<Timeline, DeviceError> {
        Ok(Timeline::of(&self.device, self.recording.finish()?))
    }
}

impl Timeline {
    pub(crate) fn of(device: &str, log: Log) -> Self {
        // First, with the memory that the spans then take.
        let stood = standing(&log);
        let since = |instant: Instant| {
            u64::try_from(instant.saturating_duration_since(log.origin).as_nanos()).unwrap_or(u64::MAX)
        };
        let calls: HashMap<u64, &TracedCall> = log.calls.iter().map(|call| (call.correlation, call)).collect();
        let call_of = |work: &DeviceWork| work.correlation.and_then(|correlation| calls.get(&correlation).copied());
        let stream_of = |work: &DeviceWork| work.stream.or_else(|| call_of(work)?.note.stream);
        let tracks = Tracks::of(&log, |work| call_of(work).map(|_| stream_of(work)));
        // The stall within a synchronization point is that synchronization point, and one in a call in which the host stood
        // anyway is a part of that.
        let known: HashSet<u64> = stood.iter().map(|stall| stall.correlation).collect();
        let reported = || log.stalls.iter().filter(|stall| !known.contains(&stall.correlation));
        let within = || {
            let of_calls = reported().chain(&stood).filter_map(|stall| Some((stall, *calls.get(&stall.correlation)?)));
            of_calls.filter(|(_, call)| call.note.barrier.is_none())
        };
        let mut spans: Vec<Span> = Vec::with_capacity(log.calls.len() + within().count() + log.work.len());
        let library = library(file!(), &std::env::current_dir().unwrap_or_default());
        let of_call = |call: &TracedCall| Span {
            track: tracks.of_thread(call),
            name: call.note.name.to_owned(),
            start_ns: since(call.start),
            end_ns: since(call.end),
            kind: call.note.kind,
            stream: call.note.stream,
            bytes: call.note.bytes,
            correlation: Some(call.correlation),
            sync: call.note.barrier,
            awaits: call.note.awaits,
            site: call
                .site
                .map(|site| format!("{}:{}", site.file(), site.line()))
                .or_else(|| own_line(&call.stack.as_deref()?.to_string(), &library)),
            detail: None,
        };
        spans.extend(log.calls.iter().map(of_call));
        spans.extend(within().map(|(stall, call)| Span {
            start_ns: since(stall.start),
            end_ns: since(stall.end),
            kind: Kind::Synchronize,
            bytes: None,
            sync: Some(SyncKind::Implicit),
            // What the call itself enqueued before is waited for, too.
            awaits: Some(call.correlation),
            ..of_call(call)
        }));
        // Work of no call of this recording is none of it.
        for (work, call) in log.work.iter().filter_map(|work| Some((work, call_of(work)?))) {
            let kind = work.kind;
            let named =
                kind == Kind::Kernel && call.note.enqueues.is_some() && call.note.name != LAUNCH && !call.note.others;
            let name = if named { call.note.name } else { &*work.name };
            let stream = stream_of(work);
            spans.push(Span {
                track: tracks.of_stream(stream),
                detail: (*work.name != *name).then(|| work.name.to_string()),
                name: name.to_owned(),
                start_ns: since(work.start),
                end_ns: since(work.end),
                kind,
                stream,
                bytes: work.bytes.or(call.note.bytes).filter(|_| kind == Kind::Copy || work.bytes.is_some()),
                correlation: work.correlation,
                sync: None,
                awaits: None,
                site: None,
            });
        }
        // In place: a stable sort takes half as much memory again. A call comes before what is within it.
        spans.sort_unstable_by_key(|span| {
            let within = (span.correlation, span.kind == Kind::Synchronize, Reverse(span.end_ns));
            (span.start_ns, span.track, within)
        });
        let region_ns = since(log.end);
        let tracks = tracks.names;
        Self { device: device.to_owned(), source: log.source, tracks, spans, dropped: log.dropped, region_ns }
    }
}

/// The folder of this library as a stack names it, which is written as seen from the current folder.
fn library(source: &str, current: &Path) -> String {
    let folder = source.strip_suffix("timeline/record.rs").filter(|folder| !folder.is_empty()).unwrap_or(source);
    let below = Path::new(folder).strip_prefix(current).ok().filter(|below| below.is_relative()).and_then(Path::to_str);
    below.map_or_else(|| folder.to_owned(), |below| format!("./{below}/"))
}

/// The line of a stack that is the program's own: the first that lies in no package, no toolchain and not in `library`.
fn own_line(stack: &str, library: &str) -> Option<String> {
    let brought = ["/registry/src/", "/git/checkouts/", "/rustc/", "/rustlib/src/", library];
    let own = |line: &&str| !brought.iter().any(|folder| line.contains(folder));
    let place = stack.lines().filter_map(|line| line.trim_start().strip_prefix("at ")).find(own)?;
    // Without the column.
    let place = place.rsplit_once(':').map_or(place, |(line, _)| line);
    Some(place.strip_prefix("./").unwrap_or(place).to_owned())
}

// What the tracer counts for a span is enough.
const _: () = assert!(size_of::<Span>() <= SPAN_BYTES);

/// Host threads in the order in which they first called, then streams by number.
struct Tracks {
    names: Vec<Track>,
    threads: HashMap<ThreadId, usize>,
    streams: HashMap<Option<u32>, usize>,
}

impl Tracks {
    fn of(log: &Log, stream_of: impl Fn(&DeviceWork) -> Option<Option<u32>>) -> Self {
        let mut first: HashMap<ThreadId, Instant> = HashMap::new();
        for call in log.calls.iter() {
            first.entry(call.thread).and_modify(|start| *start = call.start.min(*start)).or_insert(call.start);
        }
        let mut ordered: Vec<(Instant, ThreadId)> = first.into_iter().map(|(thread, start)| (start, thread)).collect();
        ordered.sort_unstable_by_key(|(start, _)| *start);
        let (mut names, mut by_name) = (Vec::new(), HashMap::new());
        // Threads of one name share a track.
        let threads = ordered.into_iter().map(|(_, thread)| {
            let name = log.threads.get(&thread).cloned().unwrap_or_else(|| unnamed(thread));
            let place = *by_name.entry(name.clone()).or_insert_with(|| {
                names.push(Track::Host(name));
                names.len() - 1
            });
            (thread, place)
        });
        let threads = threads.collect();
        let used: HashSet<Option<u32>> = log.work.iter().filter_map(stream_of).collect();
        let mut used: Vec<Option<u32>> = used.into_iter().collect();
        used.sort_unstable_by_key(|stream| stream.map_or(u64::MAX, u64::from));
        let streams = used.iter().enumerate().map(|(place, stream)| (*stream, names.len() + place)).collect();
        names.extend(used.into_iter().map(|stream| stream.map_or(Track::OtherStreams, Track::Stream)));
        Self { names, threads, streams }
    }

    fn of_thread(&self, call: &TracedCall) -> usize {
        self.threads.get(&call.thread).copied().unwrap_or_default()
    }

    fn of_stream(&self, stream: Option<u32>) -> usize {
        self.streams.get(&stream).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::kept::{ChunkedVec, Name};
    use crate::device::tracer::Stall;

    fn device() -> Device {
        Device::open("cpu:0").unwrap()
    }

    #[test]
    fn a_call_and_its_work_share_a_correlation_and_the_work_begins_later() {
        let device = device();
        let stream = device.stream().unwrap();
        let (line, timeline) = device
            .record(|| {
                let line = line!() + 1;
                let x = stream.ones::<f32>([16])?;
                x.add_scalar(1.0)?.sum()?.item().map(|sum| assert_eq!(sum, 32.0))?;
                Ok::<_, DeviceError>(line)
            })
            .unwrap();
        let named = |name: &str, kind| timeline.spans.iter().find(|s| s.name == name && s.kind == kind).unwrap();
        for name in ["fill", "affine", "sum"] {
            let (call, work) = (named(name, Kind::Enqueue), named(name, Kind::Kernel));
            assert_eq!(call.correlation, work.correlation);
            assert!(call.start_ns <= work.start_ns && work.start_ns <= work.end_ns);
            assert_eq!(call.stream, Some(stream.number()));
        }
        let site = named("fill", Kind::Enqueue).site.clone().unwrap();
        assert_eq!(site, format!("{}:{line}", file!()));
        let read = named("item", Kind::Synchronize);
        assert_eq!(read.sync, Some(SyncKind::Implicit));
        assert_eq!(read.site, Some(format!("{}:{}", file!(), line + 1)));
        assert!(named("sum", Kind::Kernel).end_ns <= read.end_ns);
        assert_eq!(timeline.dropped, 0);
    }

    #[test]
    fn an_implicit_synchronization_has_name_and_place_of_its_operation() {
        let device = device();
        let stream = device.stream().unwrap();
        let x = stream.ones::<f32>([16]).unwrap();
        let (_, timeline) = device.record(|| x.nonzero()).unwrap();
        let line = line!() - 1;
        let points: Vec<_> = timeline.spans.iter().filter(|s| s.kind == Kind::Synchronize).collect();
        assert_eq!(points.len(), 1);
        assert_eq!((points[0].name.as_str(), points[0].sync), ("nonzero", Some(SyncKind::Implicit)));
        assert_eq!(points[0].site, Some(format!("{}:{line}", file!())));
    }

    #[test]
    fn a_recording_within_a_recording_is_an_error_and_the_outer_one_goes_on() {
        let device = device();
        let stream = device.stream().unwrap();
        let (_, timeline) = device
            .record(|| {
                let inner = device.record(|| Ok::<_, DeviceError>(()));
                assert_eq!(inner.unwrap_err(), DeviceError::AlreadyRecording { device: "cpu:0".to_owned() });
                stream.ones::<f32>([4])
            })
            .unwrap();
        assert_eq!(timeline.spans.iter().filter(|s| s.name == "fill").count(), 2);
    }

    #[test]
    fn a_region_that_fails_or_panics_ends_its_recording() {
        let device = device();
        let failed = device.record(|| Err::<(), _>(DeviceError::EventNotReady { reason: "scripted" }));
        assert!(failed.is_err());
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            device.record::<(), DeviceError>(|| panic!("scripted"))
        }));
        assert!(panicked.is_err());
        assert!(device.record(|| Ok::<_, DeviceError>(())).unwrap().1.spans.is_empty());
    }

    #[test]
    fn devices_are_recorded_apart() {
        let (one, other) = (device(), device());
        let stream = other.stream().unwrap();
        let (_, timeline) = one.record(|| stream.ones::<f32>([4])).unwrap();
        assert!(timeline.spans.is_empty());
    }

    #[test]
    fn work_that_was_pending_when_the_recording_began_is_in_it_from_its_begin() {
        let device = device();
        let (stream, gate) = (device.stream().unwrap(), device.gate().unwrap());
        stream.wait_gate(&gate).unwrap();
        let (_, timeline) = device
            .record(|| {
                gate.open();
                stream.synchronize()
            })
            .unwrap();
        let wait = timeline.spans.iter().find(|s| s.kind == Kind::Wait);
        assert!(wait.is_none_or(|wait| wait.correlation.is_none()));
    }

    #[test]
    fn a_stream_held_by_a_gate_shows_a_wait_and_its_kernel_after_it() {
        let device = device();
        let (stream, gate) = (device.stream().unwrap(), device.gate().unwrap());
        let (_, timeline) = device
            .record(|| {
                stream.wait_gate(&gate)?;
                let x = stream.ones::<f32>([4])?;
                gate.open();
                Ok::<_, DeviceError>(x)
            })
            .unwrap();
        let of = |kind| timeline.spans.iter().find(|s| s.kind == kind).unwrap();
        assert!(of(Kind::Wait).end_ns <= of(Kind::Kernel).start_ns);
    }

    #[test]
    fn host_work_is_named_and_each_thread_has_a_track() {
        let device = device();
        let stream = device.stream().unwrap();
        let (_, timeline) = device
            .record(|| {
                device.host_work("prepare", || ());
                std::thread::scope(|scope| {
                    std::thread::Builder::new()
                        .name("second".to_owned())
                        .spawn_scoped(scope, || stream.ones::<f32>([4]).map(drop))
                        .unwrap()
                        .join()
                        .unwrap()
                })
            })
            .unwrap();
        assert!(timeline.spans.iter().any(|s| s.kind == Kind::HostWork && s.name == "prepare"));
        assert!(timeline.tracks.contains(&Track::Host("second".to_owned())));
    }

    #[test]
    fn copies_of_host_buffers_carry_their_size() {
        let device = device();
        let stream = device.stream().unwrap();
        let mut buffer = device.host_buffer::<f32>(crate::device::HostKind::Pageable, 8).unwrap();
        let (_, timeline) = device
            .record(|| {
                let x = stream.zeros::<f32>([8])?;
                x.copy_to(&mut buffer)?;
                buffer.read().map(drop)
            })
            .unwrap();
        let copy = timeline.spans.iter().find(|s| s.kind == Kind::Copy).unwrap();
        assert_eq!(copy.bytes, Some(32));
        let read = timeline.spans.iter().find(|s| s.name == "HostBuffer::read").unwrap();
        assert_eq!((read.kind, read.awaits), (Kind::Synchronize, copy.correlation));
    }

    #[test]
    fn a_stall_within_an_enqueue_is_an_implicit_synchronization() {
        let origin = Instant::now();
        let at = |us| origin + std::time::Duration::from_micros(us);
        let call = |note, correlation, (start, end)| TracedCall {
            note: CallInfo { stream: Some(0), ..note },
            site: None,
            stack: None,
            thread: std::thread::current().id(),
            correlation,
            start: at(start),
            end: at(end),
        };
        let work = |start, end| DeviceWork {
            name: Name::Own("gemm"),
            kind: Kind::Kernel,
            stream: Some(0),
            correlation: Some(1),
            bytes: None,
            start: at(start),
            end: at(end),
        };
        let stall = |correlation, start, end| Stall { correlation, start: at(start), end: at(end) };
        let log = Log {
            calls: ChunkedVec::from_iter([
                call(CallInfo::enqueue("matmul", Some(Kind::Kernel)), 1, (0, 50)),
                call(CallInfo::barrier("Stream::synchronize", SyncKind::Stream), 2, (50, 90)),
            ]),
            // The trial of a plan, and the matmul.
            work: ChunkedVec::from_iter([work(10, 30), work(45, 80)]),
            stalls: vec![stall(1, 12, 32), stall(2, 51, 89), stall(9, 0, 1)],
            threads: HashMap::new(),
            dropped: 0,
            launch_queue: None,
            source: String::new(),
            origin,
            end: at(90),
        };
        let audit = Timeline::of("cuda:0", log).audit();
        let points: Vec<_> =
            audit.sync_points.iter().map(|b| (b.name.as_str(), b.kind, b.blocked_ns, b.pending)).collect();
        let search = ("matmul", SyncKind::Implicit, 20_000, 1);
        assert_eq!(points, [search, ("Stream::synchronize", SyncKind::Stream, 40_000, 1)]);
    }

    #[test]
    fn the_line_of_a_stack_is_the_first_of_the_program_itself() {
        let stack = "   0: syncscope::device::cuda::called\n             at ./src/syncscope/device/cuda/calls.rs:40:9\n   \
             1: cuMemcpyDtoHAsync_v2\n   2: binding::memcpy_dtoh_async\n             \
             at /home/a/.cargo/registry/src/index-1/binding-0.1.0/src/lib.rs:7:5\n   3: decode::token\n             \
             at ./src/main.rs:57:18\n   4: core::ops::function::FnOnce::call_once\n             \
             at /rustc/5980761/library/core/src/ops/function.rs:250:5\n   5: decode::main\n             at ./src/main.rs:80:5\n";
        // As cargo names it where it is a package of the same workspace, of another one below the current folder, and elsewhere.
        for source in ["src/syncscope/timeline/record.rs", "/w/src/syncscope/timeline/record.rs"] {
            let library = library(source, Path::new("/w"));
            assert_eq!(own_line(stack, &library).as_deref(), Some("src/main.rs:57"), "{library}");
        }
        assert_eq!(library("/elsewhere/timeline/record.rs", Path::new("/w")), "/elsewhere/");
        assert_eq!(own_line("   0: decode::token\n   1: main\n", "/elsewhere/"), None, "built without lines");
    }

    #[test]
    fn events_around_calls_give_times_where_nothing_else_does() {
        let device = device();
        let stream = device.stream().unwrap();
        let (_, timeline) = device.record_by_events(|| stream.ones::<f32>([4])).unwrap();
        let by_events: Vec<_> = timeline.spans.iter().filter(|s| s.kind == Kind::Kernel).collect();
        assert!(!by_events.is_empty() && timeline.source.starts_with("events around each call"));
        assert!(by_events.iter().all(|s| s.correlation.is_some() && s.start_ns <= s.end_ns));
    }
}
