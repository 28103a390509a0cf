//! Chrome's trace format, of which an audit uses the events of calls, of work, of what encloses calls, and of waits.
//!
//! A trace may be anybody's and of any length: of its text one event is held at a time, and of an event what is used.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::sync::Arc;

use serde::Deserialize;

use super::class::Class;
use super::foreign::{far, plausible};
use super::pieces::{Loose, Piece, Pieces, mended};
use crate::device::kind::Kind;
use crate::units::counted;

/// A trace has fewer events that are used.
const MAX_EVENTS: usize = 50_000_000;
/// The most bytes of an event, and of what a trace says of itself.
const MAX_EVENT: usize = 1 << 20;
const MAX_OTHER: usize = 1 << 24;
/// The longest time that an event may have, in nanoseconds: a year.
const YEAR: i64 = 32_000_000_000_000_000;

/// The category of the time of a recording.
const WINDOW: &str = "trace";

/// What an event tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Category {
    /// A call of the driver or of a library above it.
    Call,
    /// A kernel, of a trace of this library, too.
    Kernel,
    Copy,
    Fill,
    /// What a synchronization waits for.
    Awaited,
    /// A range that the program names.
    Range,
    /// A function of Python.
    Function,
    /// An operator of a library.
    Operator,
    /// The time of a recording.
    Window,
    /// It has no category of any profiler that is known here.
    Unnamed,
    /// Of a trace of this library.
    Own(Kind),
}

impl Category {
    /// By its name in traces: PyTorch up to version 1.11 wrote other ones.
    fn of(name: &str) -> Option<Self> {
        const OWN: [Kind; 4] = [Kind::Enqueue, Kind::Synchronize, Kind::HostWork, Kind::Copy];
        Some(match &*name.to_ascii_lowercase() {
            "cuda_runtime" | "cuda_driver" | "hip_runtime" | "hip_driver" | "runtime" | "driver" => Self::Call,
            "kernel" => Self::Kernel,
            "gpu_memcpy" | "memcpy" => Self::Copy,
            "gpu_memset" | "memset" => Self::Fill,
            "cuda_sync" => Self::Awaited,
            "user_annotation" => Self::Range,
            "python_function" | "python" => Self::Function,
            "cpu_op" | "operator" => Self::Operator,
            WINDOW => Self::Window,
            // The same range as the device saw it; the profiler's own work; arrows.
            "gpu_user_annotation" | "overhead" | "ac2g" | "fwdbwd" => return None,
            own => OWN.into_iter().find(|kind| kind.name() == own).map_or(Self::Unnamed, Self::Own),
        })
    }
}

/// An event that took time.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) category: Category,
    pub(super) name: Arc<str>,
    /// Where its track stands among those of the trace.
    pub(super) track: u32,
    /// Nanoseconds.
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) correlation: Option<u64>,
    pub(super) bytes: u64,
    pub(super) context: Option<u32>,
    pub(super) stream: Option<u32>,
    pub(super) device: Option<u32>,
    pub(super) more: Option<Box<Told>>,
}

/// What few events tell.
#[derive(Clone, Debug, Default)]
pub(super) struct Told {
    /// The stream that a synchronization waits for.
    pub(super) awaited_stream: Option<u32>,
    /// The number of the call that recorded the event which it waits for.
    pub(super) recorded_by: Option<u64>,
    /// Of a trace of this library.
    pub(super) awaits: Option<u64>,
    pub(super) site: String,
    pub(super) sync: String,
}

/// A trace, as far as it is used.
#[derive(Debug, Default)]
pub(super) struct Trace {
    pub(super) events: Vec<Event>,
    /// Names of processes, and of tracks: the process of each, and its own.
    pub(super) processes: Vec<String>,
    pub(super) tracks: Vec<(u32, String)>,
    /// How the tracks are called that have a name.
    pub(super) named: HashMap<u32, String>,
    /// What a trace of this library says of itself.
    pub(super) other: Option<serde_json::Value>,
    /// Its number among the processes of a job.
    pub(super) rank: Option<u32>,
    /// What of it could not be read, so that waits may be missing; and what was read all the same.
    pub(super) missing: Vec<String>,
    pub(super) warnings: Vec<String>,
}

impl Trace {
    /// Reads a trace.
    ///
    /// # Errors
    /// It is none, or has more events than any.
    pub(super) fn read(from: impl Read) -> Result<Self, String> {
        let (mut pieces, mut reader) = (Pieces::new(from), TraceReader::default());
        // A mark of the order of bytes, as some editors put it.
        if pieces.next() == Some(0xef) {
            (0..3).for_each(|_| pieces.skip());
        }
        let is_whole = match pieces.next() {
            // The format's other form is the list of events alone. Writers that are killed leave it open.
            Some(b'[') => reader.events(&mut pieces)?,
            Some(b'{') => {
                pieces.skip();
                let (is_whole, has_events) = reader.members(&mut pieces)?;
                if !has_events {
                    return Err("missing field `traceEvents`".to_owned());
                }
                is_whole
            }
            _ => return Err("neither an object nor a list".to_owned()),
        };
        if is_whole && pieces.next().is_some() {
            reader.trace.missing.push("more stands behind its end, and is not read".to_owned());
        }
        Ok(reader.finish(is_whole, pieces.stopped))
    }
}

#[derive(Default)]
struct TraceReader {
    trace: Trace,
    /// The places of tracks, by their process and their own name.
    tracks: HashMap<String, u32>,
    names: HashSet<Arc<str>>,
    /// Of each track, the events that have begun and not ended; none for one that is not used.
    open: HashMap<u32, Vec<Option<Event>>>,
    untimed: u64,
    mended: u64,
    unread: u64,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Written<'a> {
    #[serde(borrow)]
    ph: Cow<'a, str>,
    #[serde(borrow)]
    cat: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    pid: Loose<'a>,
    tid: Loose<'a>,
    ts: Loose<'a>,
    dur: Loose<'a>,
    args: Loose<'a>,
}

/// The arguments that are used.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Arguments<'a> {
    #[serde(borrow, alias = "correlation_id", alias = "correlationId")]
    correlation: Loose<'a>,
    bytes: Loose<'a>,
    #[serde(alias = "context_id")]
    context: Loose<'a>,
    #[serde(alias = "stream_id")]
    stream: Loose<'a>,
    #[serde(alias = "device_id")]
    device: Loose<'a>,
    wait_on_stream: Loose<'a>,
    wait_on_cuda_event_record_corr_id: Loose<'a>,
    awaits: Loose<'a>,
    name: Loose<'a>,
    site: Loose<'a>,
    sync: Loose<'a>,
}

impl TraceReader {
    /// Reads the members of a trace. Whether there is an end, and a list of events.
    fn members<R: Read>(&mut self, pieces: &mut Pieces<R>) -> Result<(bool, bool), String> {
        let mut has_events = false;
        while pieces.next() == Some(b'"') {
            let Piece::Value(key) = pieces.value(MAX_EVENT) else { break };
            let key = String::from_utf8_lossy(key).trim_matches('"').to_owned();
            if pieces.next() == Some(b':') {
                pieces.skip();
            }
            if key == "traceEvents" && pieces.next() == Some(b'[') {
                has_events = true;
                if !self.events(pieces)? {
                    break;
                }
                continue;
            }
            let is_used = matches!(&*key, "otherData" | "distributedInfo");
            match pieces.value(if is_used { MAX_OTHER } else { 0 }) {
                Piece::Value(value) if is_used => {
                    let value: serde_json::Value = serde_json::from_str(&mended(value)).unwrap_or_default();
                    match &*key {
                        "otherData" => self.trace.other = Some(value),
                        _ => self.trace.rank = value["rank"].as_u64().and_then(|rank| u32::try_from(rank).ok()),
                    }
                }
                Piece::Value(_) | Piece::TooLong | Piece::Broken => {}
                Piece::End => break,
            }
        }
        let is_whole = pieces.next() == Some(b'}');
        pieces.skip();
        Ok((is_whole, has_events))
    }

    /// Reads a list of events. Whether it has an end.
    fn events<R: Read>(&mut self, pieces: &mut Pieces<R>) -> Result<bool, String> {
        pieces.skip();
        loop {
            match pieces.next() {
                Some(b']') => {
                    pieces.skip();
                    return Ok(true);
                }
                Some(_) => {}
                None => return Ok(false),
            }
            match pieces.value(MAX_EVENT) {
                Piece::Value(value) => self.event(value),
                Piece::TooLong | Piece::Broken => self.unread += 1,
                Piece::End => return Ok(false),
            }
            if self.trace.events.len() > MAX_EVENTS {
                return Err(format!("it has more than {MAX_EVENTS} events that are used, the most that are read"));
            }
        }
    }

    fn event(&mut self, value: &[u8]) {
        if let Ok(written) = serde_json::from_slice(value) {
            return self.take(written);
        }
        let text = mended(value);
        match serde_json::from_str(&text) {
            Ok(written) => {
                self.mended += 1;
                self.take(written);
            }
            Err(_) => self.unread += 1,
        }
    }

    fn take(&mut self, written: Written<'_>) {
        let phase = match &*written.ph {
            // Only an event that took time has a length.
            phase if phase.len() != 1 && !written.dur.0.is_empty() => "X",
            phase => phase,
        };
        match phase {
            "X" => {
                let length = written.dur.nanoseconds().filter(|length| (0..YEAR).contains(length));
                let event = self.used(&written, length);
                self.trace.events.extend(event);
            }
            "B" => {
                let track = self.track(written.pid, written.tid);
                let event = self.used(&written, Some(0));
                self.open.entry(track).or_default().push(event);
            }
            "E" => {
                let track = self.track(written.pid, written.tid);
                let begun = self.open.get_mut(&track).and_then(Vec::pop).flatten();
                let ended = begun.zip(written.ts.nanoseconds()).filter(|(event, end)| *end >= event.start);
                self.trace.events.extend(ended.map(|(event, end)| Event { end, ..event }));
            }
            "M" if written.name == "thread_name" => {
                let track = self.track(written.pid, written.tid);
                let arguments: Arguments<'_> = serde_json::from_str(written.args.0).unwrap_or_default();
                self.trace.named.insert(track, arguments.name.text());
            }
            "i" | "I" if written.name == "Record Window End" => {
                let event = self.used(&Written { cat: WINDOW.into(), ..written }, Some(0));
                self.trace.events.extend(event);
            }
            _ => {}
        }
    }

    /// The event, where it is one that is used, of so many nanoseconds.
    fn used(&mut self, written: &Written<'_>, length: Option<i64>) -> Option<Event> {
        let category = match Category::of(&written.cat)? {
            // As versions up to 1.11 write their steps.
            Category::Operator if written.name.starts_with("ProfilerStep#") => Category::Range,
            category => category,
        };
        let Some((start, length)) = written.ts.nanoseconds().zip(length) else {
            self.untimed += u64::from(category != Category::Unnamed || Class::is_known(&written.name));
            return None;
        };
        let event = self.made(category, written, (start, start + length));
        match category {
            // Of what has no category, a name of CUDA's is a call, and what has the number of a call may be its work.
            Category::Unnamed if Class::is_known(&event.name) => Some(Event { category: Category::Call, ..event }),
            Category::Unnamed if event.correlation.is_none() => None,
            _ => Some(event),
        }
    }

    fn made(&mut self, category: Category, written: &Written<'_>, (start, end): (i64, i64)) -> Event {
        let has_arguments = !matches!(category, Category::Function | Category::Operator | Category::Range);
        let arguments: Arguments<'_> =
            if has_arguments { serde_json::from_str(written.args.0).unwrap_or_default() } else { Arguments::default() };
        let tells_more = matches!(category, Category::Awaited | Category::Own(_));
        let more = tells_more.then(|| Told {
            awaited_stream: arguments.wait_on_stream.number(),
            recorded_by: arguments.wait_on_cuda_event_record_corr_id.number(),
            awaits: arguments.awaits.number(),
            site: arguments.site.text(),
            sync: arguments.sync.text(),
        });
        let track = self.track(written.pid, written.tid);
        Event {
            category,
            name: self.name(&written.name),
            track,
            start,
            end,
            correlation: arguments.correlation.number(),
            bytes: arguments.bytes.number().unwrap_or(0),
            context: arguments.context.number(),
            stream: arguments.stream.number(),
            device: arguments.device.number(),
            more: more.map(Box::new),
        }
    }

    fn name(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.names.get(name) {
            return Arc::clone(known);
        }
        let new: Arc<str> = name.into();
        self.names.insert(Arc::clone(&new));
        new
    }

    /// The place of a track.
    fn track(&mut self, process: Loose<'_>, track: Loose<'_>) -> u32 {
        let Trace { processes, tracks, .. } = &mut self.trace;
        *self.tracks.entry(format!("{} {}", process.0, track.0)).or_insert_with(|| {
            let (process, track) = (process.0.trim_matches('"'), track.0.trim_matches('"'));
            let place = processes.iter().position(|known| known == process).unwrap_or_else(|| {
                processes.push(process.to_owned());
                processes.len() - 1
            });
            tracks.push((place as u32, track.to_owned()));
            tracks.len() as u32 - 1
        })
    }

    fn finish(mut self, is_whole: bool, stopped: Option<String>) -> Trace {
        let Self { untimed, unread, .. } = self;
        let open = self.open.values().flatten().flatten().count();
        let is_cut_off = !is_whole || stopped.is_some();
        let events = &mut self.trace.events;
        let (all, plausible) = (events.len(), plausible(events.iter().map(|event| event.start).collect()));
        events.retain(|event| plausible.contains(&event.start) && plausible.contains(&event.end));
        self.trace.missing.extend(far(all - events.len(), "event"));
        let why = stopped.map(|why| format!("it could not be read to its end ({why})"));
        let cut_off = why.unwrap_or_else(|| "it is cut off".to_owned());
        let said = [
            (untimed > 0, format!("{untimed} of its events have no time that can be read, and are left out")),
            (unread > 0, format!("{} could not be read, and are left out", counted(unread, "event"))),
            (open > 0, format!("{} began and did not end", counted(open, "event"))),
            (is_cut_off, format!("{cut_off}: what came later is missing")),
        ];
        self.trace.missing.extend(said.into_iter().filter_map(|(is_so, what)| is_so.then_some(what)));
        let mended = counted(self.mended, "event");
        let mended = format!("{mended} had letters or numbers that are no JSON, and were read without them");
        self.trace.warnings.extend((self.mended > 0).then_some(mended));
        self.trace
    }
}
