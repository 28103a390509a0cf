//! Reading the record files of the injected library. They may be anybody's, and of a process that died while it wrote.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use super::class::Class;
use super::format::{self, HEADER, MAGIC, NONE, VERSION, doing, header, note, tag};
use super::names::readable;
use super::ranks;
use super::recording::{
    Doing, Frame, HostMemoryKind, Process, ProgramRecording, Range, RecordedCall, RecordedDirection, RecordedLaunch,
    RecordedWork, Sample, WorkKind,
};
use super::report::OverheadReport;
use super::stacks;
use crate::units::counted;
use syncscope_present::FileError;

/// The most bytes that are read of a file.
const MAX_BYTES: u64 = 4 << 30;

/// Said of a native program, whose lines another build of this program knows.
const WITHOUT_SYMBOLS: &str = "functions of native code have no lines, because this program was built without symbols: build it \
                               with `cargo build --release --bin report --features symbols`";

/// The recording whose files are in a folder.
///
/// # Errors
/// A file cannot be read.
pub fn read(folder: &Path) -> Result<ProgramRecording, FileError> {
    let io = |path: &Path, cause| FileError::Io { path: path.to_owned(), cause };
    let entries = folder.read_dir().map_err(|error| io(folder, error))?;
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "audit"));
    paths.sort();
    let mut recording = ProgramRecording {
        source: "callbacks and activity records of CUPTI. Launches and queries are not watched: a launch that stood in a full \
                 queue counts as the program's own time"
            .to_owned(),
        ..ProgramRecording::default()
    };
    for path in paths {
        let mut bytes = Vec::new();
        let file = File::open(&path).map_err(|error| io(&path, error))?;
        file.take(MAX_BYTES).read_to_end(&mut bytes).map_err(|error| io(&path, error))?;
        let (process, missing) = match parse(&bytes) {
            Ok(parsed) => parsed,
            // The process ended, or the folder was full, before there was a header. Others have records all the same.
            Err(message) => {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                recording.missing.push(format!("nothing was recorded of a process ({name}): {message}"));
                continue;
            }
        };
        #[cfg(feature = "symbols")]
        let process = super::symbols::resolve(process);
        let of_process = |reason: String| format!("process {}: {reason}", process.number);
        recording.missing.extend(missing.into_iter().map(of_process));
        recording.processes.push(process);
    }
    recording.processes.sort_by_key(|process| (process.start, process.number));
    ranks::align(&mut recording);
    if !cfg!(feature = "symbols")
        && recording.processes.iter().flat_map(|process| &process.frames).any(Frame::may_have_a_line)
    {
        recording.warnings.push(WITHOUT_SYMBOLS.to_owned());
    }
    Ok(recording)
}

/// The fields of a record, one after the other; those that are not there are 0.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let Some((bytes, rest)) = self.0.split_first_chunk() else {
            self.0 = &[];
            return [0; N];
        };
        self.0 = rest;
        *bytes
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(self.0).into_owned()
    }
}

fn some(number: u32) -> Option<u32> {
    (number != NONE).then_some(number)
}

/// Names of work and of functions are known at the end only: records of several threads stand in any order.
#[derive(Default)]
struct RecordReader {
    process: Process,
    functions: HashMap<u32, Arc<str>>,
    names: HashMap<u32, Arc<str>>,
    of_calls: Vec<u32>,
    of_work: Vec<u32>,
    open: HashMap<u32, (Arc<str>, u64)>,
    /// Native stacks, the operators by their addresses, and the native stack of each call.
    natives: HashMap<u32, Vec<u64>>,
    operators: HashMap<u64, Arc<str>>,
    of_natives: Vec<u32>,
    /// Why waits of the process may be missing.
    missing: Vec<String>,
}

fn parse(bytes: &[u8]) -> Result<(Process, Vec<String>), String> {
    let Some((head, records)) = bytes.split_at_checked(HEADER).filter(|(head, _)| head[..8] == MAGIC) else {
        return Err("this is no record of an audit".to_owned());
    };
    let at = |place: usize| Fields(&head[place..]);
    let version = at(header::VERSION).u32();
    if version != VERSION {
        return Err(format!("the record has version {version}; this program reads {VERSION}"));
    }
    let mut reading = RecordReader::default();
    let process = &mut reading.process;
    (process.number, process.parent) = (at(header::PROCESS).u32(), at(header::PARENT).u32());
    (process.start, process.end) = (at(header::START).u64(), at(header::END).u64());
    process.complete = at(header::ENDED).u32() == 1;
    process.lost = at(header::LOST).u64().saturating_add(at(header::DROPPED).u64());
    process.page_ns = at(header::FAULT).u64() as f64 / 1e3;
    process.overhead = Some(OverheadReport {
        calls: at(header::CALLS).u64(),
        own_ns: at(header::OWN).u64(),
        missed_stacks: at(header::MISSED).u64(),
        begin_ns: at(header::BEGIN).u64(),
        ..OverheadReport::default()
    });
    let whole = usize::try_from(at(header::WHOLE).u64()).unwrap_or(usize::MAX);
    let mut rest = &records[..whole.min(records.len())];
    let mut is_cut = whole > records.len();
    while let Some((first, more)) = rest.split_first_chunk::<8>() {
        let [low, high, _, _, a, b, c, d] = *first;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        let Some(fields) = more.get(..length) else {
            is_cut = true;
            break;
        };
        reading.take(u16::from_le_bytes([low, high]), Fields(fields));
        rest = more.get(length.next_multiple_of(8)..).unwrap_or_default();
    }
    if is_cut {
        let most = MAX_BYTES >> 30;
        reading.missing.push(format!(
            "its record is not whole, or is longer than {most} GiB, the most that is read: waits may be missing"
        ));
    }
    Ok(reading.finish())
}

impl RecordReader {
    fn take(&mut self, kind: u16, mut fields: Fields<'_>) {
        match kind {
            tag::CALL => self.call(&mut fields),
            tag::WORK => self.work(&mut fields),
            tag::FUNCTION => _ = self.functions.insert(fields.u32(), fields.text().into()),
            tag::NAME => _ = self.names.insert(fields.u32(), readable(&fields.text()).into()),
            tag::FRAME => self.frame(&mut fields),
            tag::STACK => {
                let (number, count) = (fields.u32() as usize, fields.0.len() / 4);
                let frames = std::iter::repeat_with(|| fields.u32()).take(count).collect();
                put(&mut self.process.stacks, number, frames);
            }
            tag::MARKER => self.marker(&mut fields),
            tag::SAMPLE => self.sample(&mut fields),
            tag::LAUNCH => self.launch(&mut fields),
            tag::NATIVE => {
                let (number, count) = (fields.u32(), fields.0.len() / 8);
                self.natives.insert(number, std::iter::repeat_with(|| fields.u64()).take(count).collect());
            }
            tag::OPERATOR => _ = self.operators.insert(fields.u64(), fields.text().into()),
            tag::NOTE => self.note(&mut fields),
            // What a later version writes.
            _ => {}
        }
    }

    fn call(&mut self, fields: &mut Fields<'_>) {
        let (enter, exit) = (fields.u64(), fields.u64());
        let (correlation, thread) = (u64::from(fields.u32()), fields.u32());
        self.of_calls.push(fields.u32());
        let (stream, context, stack) = (some(fields.u32()), Some(fields.u32()), some(fields.u32()));
        let (bytes, event) = (fields.u64(), fields.u64());
        self.of_natives.push(fields.u32());
        let held = fields.u64();
        let times = RecordedCall { enter, exit, held, bytes, event, ..RecordedCall::default() };
        self.process.calls.push(RecordedCall { correlation, thread, context, stream, stack, ..times });
    }

    fn work(&mut self, fields: &mut Fields<'_>) {
        let (start, end, correlation) = (fields.u64(), fields.u64(), u64::from(fields.u32()));
        let (stream, context, device) = (fields.u32(), fields.u32(), fields.u32());
        self.of_work.push(fields.u32());
        let [kind, direction, source, destination] = fields.take();
        let kind = match kind {
            format::work::COPY => copy(direction, source, destination),
            format::work::FILL => WorkKind::Fill,
            _ => WorkKind::Kernel,
        };
        let bytes = fields.u64();
        let name = Arc::default();
        let of = RecordedWork { name, kind, context, stream, device, ..RecordedWork::default() };
        let work = RecordedWork { start, end, correlation, bytes, ..of };
        self.process.work.push(work);
    }

    fn frame(&mut self, fields: &mut Fields<'_>) {
        let (number, line, offset) = (fields.u32() as usize, fields.u32(), fields.u64());
        let text = fields.text();
        let (file, function) = text.split_once('\0').unwrap_or((&text, ""));
        let offset = (line == 0 && file != format::OTHER_THREAD).then_some(offset);
        let (file, function) = (file.to_owned(), readable(function));
        let frame = Frame { file, line, function, offset, is_function: false };
        put(&mut self.process.frames, number, frame);
    }

    fn marker(&mut self, fields: &mut Fields<'_>) {
        const START: u32 = 2;
        const END: u32 = 4;
        let (time, number, flags) = (fields.u64(), fields.u32(), fields.u32());
        if flags & START != 0 {
            self.open.insert(number, (fields.text().into(), time));
        } else if flags & END != 0
            && let Some((name, start)) = self.open.remove(&number)
        {
            self.process.ranges.push(Range { name, start, end: time.max(start) });
        }
    }

    fn sample(&mut self, fields: &mut Fields<'_>) {
        let (asked, had, thread, stack) = (fields.u64(), fields.u64(), fields.u32(), some(fields.u32()));
        let (_, holder) = (fields.u32(), some(fields.u32()));
        let [doing, ..] = fields.take::<8>();
        let doing = match doing {
            doing::RUNNING => Doing::Running,
            doing::SLEEPING => Doing::Sleeping,
            doing::INPUT_OUTPUT => Doing::InputOutput,
            doing::LOCK => Doing::Locked,
            doing::INTERPRETER => Doing::InterpreterLocked,
            doing::SYSTEM => Doing::OtherCall,
            _ => Doing::Unknown,
        };
        let (ran, delayed, faults) = (fields.u64(), fields.u64(), fields.u64());
        let (throttled, system) = (fields.u64(), fields.u64());
        let times = Sample { ran, system, delayed, throttled, faults, ..Sample::default() };
        let sample = Sample { asked, had: had.max(asked), thread, stack, doing, holder, ..times };
        self.process.samples.push(sample);
    }

    fn launch(&mut self, fields: &mut Fields<'_>) {
        let (enter, _, correlation) = (fields.u64(), fields.u64(), u64::from(fields.u32()));
        let (thread, stack) = (fields.u32(), some(fields.u32()));
        self.process.launches.push(RecordedLaunch { enter, correlation, thread, stack });
    }

    fn note(&mut self, fields: &mut Fields<'_>) {
        let (code, text) = (fields.u32(), fields.text());
        match code {
            note::COMMAND => self.process.command = text.trim().to_owned(),
            note::RANK => self.process.rank = text.trim().parse().ok(),
            note::NO_CUPTI => self.missing.push(format!(
                "nothing was recorded, because CUPTI could not be used: {text}. Install `nvidia-cuda-cupti` (pip) or the CUDA \
                 toolkit of the driver's version, and add its folder to LD_LIBRARY_PATH"
            )),
            note::TAKEN => self.missing.push(format!(
                "nothing was recorded, because another profiler has CUPTI in this process ({text}): run the program without it"
            )),
            note::REFUSED => self.missing.push(format!("CUPTI refused to record: {text}")),
            _ => {}
        }
    }

    fn finish(mut self) -> (Process, Vec<String>) {
        let unknown = |number: &u32| format!("function {number}").into();
        for (call, function) in self.process.calls.iter_mut().zip(&self.of_calls) {
            call.name = self.functions.get(function).cloned().unwrap_or_else(|| unknown(function));
            call.class = Class::of(&call.name);
        }
        for (work, name) in self.process.work.iter_mut().zip(&self.of_work) {
            work.name = match work.kind {
                WorkKind::Kernel => self.names.get(name).cloned().unwrap_or_else(|| "a kernel".into()),
                kind => kind.words().into(),
            };
        }
        let innermost = |native: &u32| self.natives.get(native)?.iter().find_map(|at| self.operators.get(at).cloned());
        for (call, native) in self.process.calls.iter_mut().zip(&self.of_natives) {
            call.operator = innermost(native);
        }
        self.process.settle();
        stacks::complete(&mut self.process);
        let process = self.process;
        // Where nothing was recorded, that is said already.
        if !process.complete && self.missing.is_empty() {
            let how = "it was killed, crashed, became another program by `exec`, or ended by `os._exit`, as a forked worker \
                       of `multiprocessing` does: work of its last 0.1 s may be missing";
            self.missing.push(how.to_owned());
        }
        let lost = format!("{} lost: waits may be missing", counted(process.lost, "record"));
        self.missing.extend((process.lost > 0).then_some(lost));
        self.missing.extend(process.without_work().map(str::to_owned));
        (process, self.missing)
    }
}

/// Puts what has a number at its place; a number that no process reaches is passed over.
fn put<T: Default + Clone>(all: &mut Vec<T>, number: usize, value: T) {
    const MOST: usize = 1 << 17;
    if number < MOST {
        all.resize(all.len().max(number + 1), T::default());
        all[number] = value;
    }
}

/// A copy, by CUPTI's numbers for its direction and for the memory of both sides.
pub(super) fn copy(direction: u8, source: u8, destination: u8) -> WorkKind {
    let memory = |kind| match kind {
        1 => HostMemoryKind::Pageable,
        2 => HostMemoryKind::Pinned,
        _ => HostMemoryKind::Unknown,
    };
    let (direction, host) = match direction {
        1 | 3 => (RecordedDirection::ToDevice, memory(source)),
        2 | 4 => (RecordedDirection::ToHost, memory(destination)),
        _ => (RecordedDirection::Other, HostMemoryKind::Unknown),
    };
    WorkKind::Copy { direction, host }
}

impl WorkKind {
    /// A name for work that has none.
    pub(crate) fn words(self) -> String {
        let Self::Copy { direction, host } = self else { return "memset".to_owned() };
        let direction = match direction {
            RecordedDirection::ToDevice => "copy to the device",
            RecordedDirection::ToHost => "copy to the host",
            RecordedDirection::Other => "copy",
        };
        let memory = match host {
            HostMemoryKind::Pageable => " (pageable)",
            HostMemoryKind::Pinned => " (page-locked)",
            HostMemoryKind::Unknown => "",
        };
        format!("{direction}{memory}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a process that ended before there was a header, or had no room for one.
    #[test]
    fn a_file_without_a_header_is_left_out_and_said_to_be_missing() {
        let folder = tempfile::tempdir().unwrap();
        let mut whole = vec![0; HEADER];
        whole[..8].copy_from_slice(&MAGIC);
        (whole[header::VERSION], whole[header::ENDED]) = (1, 1);
        std::fs::write(folder.path().join("1-0.audit"), whole).unwrap();
        std::fs::write(folder.path().join("2-0.audit"), "").unwrap();
        let recording = read(folder.path()).unwrap();
        assert_eq!((recording.processes.len(), recording.missing.len()), (1, 1));
        assert!(recording.missing[0].contains("(2-0.audit)"), "{:?}", recording.missing);
    }

    #[test]
    fn what_is_cut_off_or_no_record_does_no_harm() {
        assert!(parse(b"nothing").is_err());
        let mut bytes = vec![0; HEADER + 64];
        bytes[..8].copy_from_slice(&MAGIC);
        assert!(parse(&bytes).unwrap_err().contains("version 0"));
        bytes[header::VERSION] = 1;
        bytes[header::WHOLE..header::WHOLE + 8].fill(0xff);
        bytes[HEADER] = 1;
        // A call whose fields are missing, and a record that is longer than the file.
        bytes[HEADER + 8] = 4;
        bytes[HEADER + 12..HEADER + 16].fill(0xff);
        let (process, missing) = parse(&bytes).unwrap();
        assert_eq!(process.calls.len(), 1);
        assert!(missing.iter().any(|reason| reason.contains("its record is not whole")), "{missing:?}");
        // What the file lacks of what its header says.
        bytes.truncate(HEADER);
        let (_, missing) = parse(&bytes).unwrap();
        assert!(missing.iter().any(|reason| reason.contains("its record is not whole")), "{missing:?}");
        bytes[header::WHOLE..header::WHOLE + 8].fill(0);
        let (_, missing) = parse(&bytes).unwrap();
        assert!(missing.iter().all(|reason| !reason.contains("its record is not whole")), "{missing:?}");
    }
}
