//! What a program did, from whichever source: the driver's calls and the device's work on one clock.

use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use super::class::Class;
use super::format::{OTHER_THREAD, is_tool};
use super::nesting;
use super::ranks::Job;
use super::report::OverheadReport;

/// The processes of a program.
#[derive(Clone, Debug, Default)]
pub struct ProgramRecording {
    /// Where it comes from, and what that source cannot tell.
    pub(crate) source: String,
    pub(crate) processes: Vec<Process>,
    /// Those that are ranks of a job, and what they did together.
    pub(crate) job: Job,
    /// Why waits may be missing, in words: a budget or a baseline holds for none of it.
    pub(crate) missing: Vec<String>,
    /// What else is to be known, in words.
    pub(crate) warnings: Vec<String>,
}

impl ProgramRecording {
    /// Whether a process of this number left records.
    pub fn holds(&self, process: u32) -> bool {
        self.processes.iter().any(|own| own.number == process)
    }

    /// Says that the file of another program has no calls, or none with a stack, which `asked` would have recorded.
    pub(super) fn say_what_lacks(&mut self, what: &str, asked: &str) {
        if self.processes.iter().all(|process| process.calls.is_empty()) {
            let has_work = self.processes.iter().any(|process| !process.work.is_empty());
            let but = if has_work { "has work of a device and" } else { "has" };
            self.missing.push(format!("the {what} {but} no calls of CUDA or HIP, so no wait can be found"));
        } else if self.processes.iter().all(|process| process.stacks.is_empty()) {
            let message = format!("the {what} has no stacks: record it with `{asked}`, or audit the command itself");
            self.warnings.push(message);
        }
    }
}

/// A process. Times are nanoseconds of one clock.
#[derive(Clone, Debug, Default)]
pub(crate) struct Process {
    pub(crate) number: u32,
    pub(crate) parent: u32,
    /// Its number among the processes of a job, where it is known.
    pub(crate) rank: Option<u32>,
    pub(crate) command: String,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Whether all records were handed over.
    pub(crate) complete: bool,
    pub(crate) calls: Vec<RecordedCall>,
    pub(crate) work: Vec<RecordedWork>,
    pub(crate) ranges: Vec<Range>,
    /// What threads did at some times, in the order of these.
    pub(crate) samples: Vec<Sample>,
    /// Some of the launches: those of a part of the time.
    pub(crate) launches: Vec<RecordedLaunch>,
    /// What the first touch of a page takes, in nanoseconds; 0 where it was not measured.
    pub(crate) page_ns: f64,
    pub(crate) frames: Vec<Frame>,
    /// Stacks as places in `frames`, the innermost first.
    pub(crate) stacks: Vec<Vec<u32>>,
    pub(crate) overhead: Option<OverheadReport>,
    /// Records that found no room, or that CUPTI dropped.
    pub(crate) lost: u64,
}

/// A call of the driver or of a library above it.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordedCall {
    pub(crate) name: Arc<str>,
    pub(crate) class: Class,
    pub(crate) enter: u64,
    pub(crate) exit: u64,
    /// Until when the audit then held the thread up, to look where it was; not after `exit` where it did not.
    pub(crate) held: u64,
    /// Work with a smaller one was enqueued before.
    pub(crate) correlation: u64,
    pub(crate) thread: u32,
    pub(crate) context: Option<u32>,
    /// Its number within the context.
    pub(crate) stream: Option<u32>,
    pub(crate) stack: Option<u32>,
    pub(crate) bytes: u64,
    /// The event that it records or waits for; 0 where it is not known.
    pub(crate) event: u64,
    /// The number of the call that recorded the event which it waits for, where the source tells that.
    pub(crate) recorded_by: Option<u64>,
    /// The innermost operator of a library that made it.
    pub(crate) operator: Option<Arc<str>>,
}

/// What a thread did at a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample {
    /// When it was looked at; samples of one time are of several threads.
    pub(crate) asked: u64,
    /// When its stack was read.
    pub(crate) had: u64,
    pub(crate) thread: u32,
    pub(crate) stack: Option<u32>,
    pub(crate) doing: Doing,
    /// The stack of the thread that held the interpreter's lock meanwhile.
    pub(crate) holder: Option<u32>,
    /// Up to now: how long it was on a processor, and of that how long in the kernel; how long it could have been on one and was
    /// not; how long its group was not let on any; and how many pages it touched first.
    pub(crate) ran: u64,
    pub(crate) system: u64,
    pub(crate) delayed: u64,
    pub(crate) throttled: u64,
    pub(crate) faults: u64,
}

/// What the system says that a thread does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Doing {
    #[default]
    Unknown,
    Running,
    Sleeping,
    InputOutput,
    Locked,
    InterpreterLocked,
    OtherCall,
}

/// A launch.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RecordedLaunch {
    pub(crate) enter: u64,
    pub(crate) correlation: u64,
    pub(crate) thread: u32,
    pub(crate) stack: Option<u32>,
}

/// Work of the device.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordedWork {
    pub(crate) name: Arc<str>,
    pub(crate) kind: WorkKind,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) correlation: u64,
    pub(crate) context: u32,
    pub(crate) stream: u32,
    pub(crate) device: u32,
    pub(crate) bytes: u64,
    /// From when on it waited for the rank of this name, which `start` is behind.
    pub(crate) awaited: Option<(u64, Arc<str>)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum WorkKind {
    #[default]
    Kernel,
    Fill,
    Copy {
        direction: RecordedDirection,
        host: HostMemoryKind,
    },
}

impl WorkKind {
    /// A copy by its name: `Memcpy DtoH (Device -> Pageable)` of Kineto; `upload`, `download` and `copy_from` of this library;
    /// what an audit writes.
    pub(crate) fn of_copy(name: &str) -> Self {
        let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
        let host = match () {
            () if has(&["Pageable", "pageable"]) => HostMemoryKind::Pageable,
            () if has(&["Pinned", "page-locked"]) => HostMemoryKind::Pinned,
            () => HostMemoryKind::Unknown,
        };
        let direction = match () {
            () if has(&["HtoD", "H2D", "HostToDevice", "upload", "copy_from", "to the device"]) => {
                RecordedDirection::ToDevice
            }
            () if has(&["DtoH", "D2H", "DeviceToHost", "download", "copy_to", "to the host"]) => {
                RecordedDirection::ToHost
            }
            () => RecordedDirection::Other,
        };
        Self::Copy { direction, host }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordedDirection {
    ToDevice,
    ToHost,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostMemoryKind {
    Pageable,
    Pinned,
    Unknown,
}

/// A named range of NVTX, or an annotation.
#[derive(Clone, Debug)]
pub(crate) struct Range {
    pub(crate) name: Arc<str>,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// A frame of a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Frame {
    /// The source file; the module, for a frame of a native stack.
    pub file: String,
    /// The line, from 1; 0 where it is not known.
    pub line: u32,
    /// The function.
    pub function: String,
    /// Whether its source tells functions, and no lines: the line is the function's first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_function: bool,
    /// The offset in the module, for a frame of a native stack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
}

impl Frame {
    /// Whether it is of the user's own code: of no package, no interpreter, no library.
    ///
    /// PyTorch's profiler cuts the folders of packages off its paths, so that a package looks like a folder beside the program:
    /// there, what every such program has is known by name.
    pub(crate) fn is_users(&self) -> bool {
        // Rust's own library is under a commit's name, or where a toolchain has its source.
        let parts = "site-packages/ dist-packages/ /lib/python3. <frozen /rustc/ /rustlib/src/ /.cargo/";
        let beginnings = "torch/ torchvision/ triton/ numpy/ contextlib.py functools.py threading.py";
        // A frame of a native stack: of a library, or of an interpreter.
        let (folder, name) = self.file.rsplit_once('/').unwrap_or(("", &self.file));
        let is_module = name.ends_with(".so")
            || name.contains(".so.")
            || folder.ends_with("/bin") && name.starts_with("python") && self.line == 0;
        let is_foreign = is_module
            || self.file.contains(OTHER_THREAD)
            || parts.split(' ').any(|part| self.file.contains(part))
            || beginnings.split(' ').any(|beginning| self.file.starts_with(beginning));
        !self.file.is_empty() && !is_foreign
    }

    /// Whether it is PyTorch's profiler's own code.
    pub(crate) fn is_of_a_profiler(&self) -> bool {
        let is_in = |part: &str| self.file.starts_with(part) || self.file.contains(&format!("/{part}"));
        is_in("torch/profiler/") || is_in("torch/autograd/profiler.py")
    }

    /// Whether it stands for a place in a source text.
    pub(crate) fn has_source(&self) -> bool {
        self.line > 0 || self.is_function
    }

    /// Whether debugging information may have its line: it is of a native stack, and of no module of the system, of NVIDIA or of
    /// a tool.
    pub(crate) fn may_have_a_line(&self) -> bool {
        let of_system = ["/lib/", "/lib64/", "/usr/lib"];
        self.offset.is_some()
            && !of_system.iter().any(|part| self.file.starts_with(part))
            && !is_tool(self.file.as_bytes())
    }

    /// The frame of a place that is a function of a source text.
    pub(crate) fn of_function(place: &str) -> Option<Self> {
        let (function, rest) = place.split_once(", ")?;
        let (file, line) = match rest.rsplit_once(", from line ") {
            Some((file, line)) => (file, line.parse().ok()?),
            None => (rest, 0),
        };
        let (file, function) = (file.to_owned(), function.to_owned());
        Some(Self { file, line, function, is_function: true, offset: None })
    }

    /// `file:line`; `function, file, from line N` of a source that tells functions alone; of a native stack, the function and its
    /// module, or the place in the module.
    pub(crate) fn place(&self) -> String {
        let module = self.file.rsplit('/').next().unwrap_or_default();
        match (self.line, self.function.as_str()) {
            _ if self.file == OTHER_THREAD => "another thread, while the main thread was at".to_owned(),
            (0, function) if self.is_function => format!("{function}, {}", self.file),
            (line, function) if self.is_function => format!("{function}, {}, from line {line}", self.file),
            (0, "") => format!("{module}+{:#x}", self.offset.unwrap_or(0)),
            (0, function) => format!("{function} ({module})"),
            (line, _) => format!("{}:{line}", self.file),
        }
    }
}

impl Process {
    /// The frames of a call, the innermost first, without those of the driver, of its run-time library and of tools.
    pub(crate) fn stack(&self, call: &RecordedCall) -> Vec<&Frame> {
        self.frames_of(call.stack)
    }

    /// The frames of a stack, as those of a call.
    pub(crate) fn frames_of(&self, stack: Option<u32>) -> Vec<&Frame> {
        let stack = stack.and_then(|stack| self.stacks.get(stack as usize));
        let frames = stack.into_iter().flatten().filter_map(|frame| self.frames.get(*frame as usize));
        frames.filter(|frame| frame.has_source() || !is_tool(frame.file.as_bytes())).collect()
    }

    /// The innermost range at each of some times, which are in order. Where there is none, the time has none.
    pub(crate) fn innermost_ranges(&self, times: &[u64]) -> BTreeMap<u64, &Range> {
        let mut ranges: Vec<&Range> = self.ranges.iter().collect();
        ranges.sort_by_key(|range| range.start);
        // Those that have begun, the one that began last on top. One on top that has ended is over for all later times, too.
        let (mut begun, mut place) = (BinaryHeap::new(), 0);
        let mut innermost = BTreeMap::new();
        for &at in times {
            while let Some(range) = ranges.get(place).filter(|range| range.start <= at) {
                begun.push((range.start, place));
                place += 1;
            }
            while let Some((_, top)) = begun.peek() {
                if ranges[*top].end > at {
                    innermost.insert(at, ranges[*top]);
                    break;
                }
                begun.pop();
            }
        }
        innermost
    }

    /// Why no wait of the process can be shown: a call waits for nothing else than work.
    pub(crate) fn without_work(&self) -> Option<&'static str> {
        let can_wait = |call: &RecordedCall| {
            call.class.is_explicit() || matches!(call.class, Class::Copy { .. } | Class::Free | Class::Unlock)
        };
        let is_without = self.work.is_empty() && self.calls.iter().any(can_wait);
        is_without.then_some("no work of a device was recorded, so no wait can be shown")
    }

    pub(crate) fn wall_ns(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Widens the process to all that it did, and puts that in order.
    pub(crate) fn settle(&mut self) {
        self.calls.retain(|call| call.exit >= call.enter);
        self.work.retain(|work| work.end >= work.start);
        let starts = self.calls.iter().map(|call| call.enter).chain(self.work.iter().map(|work| work.start));
        let ends = self.calls.iter().map(|call| call.exit).chain(self.work.iter().map(|work| work.end));
        // A file may not say when recording began.
        self.start = starts.chain((self.start > 0).then_some(self.start)).min().unwrap_or(0);
        self.end = ends.max().unwrap_or(self.start).max(self.end);
        self.calls.sort_by_key(|call| (call.enter, std::cmp::Reverse(call.exit), call.correlation));
        self.calls = nesting::merged(std::mem::take(&mut self.calls));
        self.work.sort_by_key(|work| (work.correlation, work.start));
        self.samples.sort_by_key(|sample| sample.asked);
        self.launches.sort_by_key(|launch| launch.correlation);
    }
}

/// Calls for tests.
#[cfg(test)]
pub(super) mod by_hand {
    use super::{Class, RecordedCall};

    /// A call of a name on stream 1 of thread 1, from, to, with its number.
    pub(crate) fn call(name: &str, (enter, exit): (u64, u64), correlation: u64) -> RecordedCall {
        RecordedCall {
            name: name.into(),
            class: Class::of(name),
            enter,
            exit,
            correlation,
            thread: 1,
            context: Some(1),
            stream: Some(1),
            ..RecordedCall::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_users_folder_named_as_a_library_is_the_users() {
        let frame = |file: &str, line| Frame { file: file.to_owned(), line, ..Frame::default() };
        for (file, line, is_users) in [
            ("/root/.rustup/toolchains/stable/lib/rustlib/src/rust/library/core/src/ptr/mod.rs", 805, false),
            ("/home/a/rustlib.rs", 8, true),
            ("/home/a/my.software/train.py", 3, true),
            ("/home/a/bin/python-tools/train.py", 3, true),
            ("/home/a/bin/python_loop.py", 3, true),
            ("/home/a/lib/python3-tools/train.py", 3, true),
            ("./program", 0, true),
            ("/usr/lib/x86_64-linux-gnu/libc.so.6", 0, false),
            ("/home/a/libown.so", 0, false),
            ("/home/a/env/bin/python3.12", 0, false),
            ("/home/a/env/lib/python3.12/threading.py", 3, false),
            ("/home/a/env/lib/python3.12/site-packages/torch/_tensor.py", 3, false),
            ("", 0, false),
        ] {
            assert_eq!(frame(file, line).is_users(), is_users, "{file}");
        }
    }

    #[test]
    fn the_innermost_range_at_a_time_is_the_one_that_began_last_and_has_not_ended() {
        let range = |name: &str, start, end| Range { name: name.into(), start, end };
        let ranges = vec![range("step", 10, 20), range("epoch", 0, 100), range("copy", 12, 14), range("step", 20, 30)];
        let process = Process { ranges, ..Process::default() };
        let found = process.innermost_ranges(&[5, 13, 14, 14, 20, 50, 100]);
        let found: Vec<(u64, &str)> = found.iter().map(|(at, range)| (*at, &*range.name)).collect();
        assert_eq!(found, [(5, "epoch"), (13, "copy"), (14, "step"), (20, "step"), (50, "epoch")]);
    }
}
