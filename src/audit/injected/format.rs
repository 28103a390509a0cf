//! The record file of one process: what the injected library writes and the analysis reads.
//!
//! A header of one page, then records: `u16` tag, `u16` zero, `u32` length of what follows, and the fields, all little-endian
//! and in the order that this file names. A record begins at a multiple of 8. The header says how many bytes of records are
//! whole: a process that dies leaves a file that can be read up to there.

/// What every record file begins with.
pub(crate) const MAGIC: [u8; 8] = *b"SYNCAUDT";
/// The version of this format.
pub(crate) const VERSION: u32 = 1;
/// The bytes of the header.
pub(crate) const HEADER: usize = 4096;

/// Places of the header's numbers, in bytes.
pub(crate) mod header {
    /// `u32`: the format's version.
    pub(crate) const VERSION: usize = 8;
    /// `u32`: the process.
    pub(crate) const PROCESS: usize = 12;
    /// `u32`: its parent.
    pub(crate) const PARENT: usize = 16;
    /// `u32`: 1 where the process ended by `exit`, and all records were handed over.
    pub(crate) const ENDED: usize = 20;
    /// `u64`: how many bytes of records are whole.
    pub(crate) const WHOLE: usize = 24;
    /// `u64`: how many records found no room.
    pub(crate) const LOST: usize = 32;
    /// `u64`: when recording began, in nanoseconds of CUPTI's clock.
    pub(crate) const START: usize = 40;
    /// `u64`: when it ended; 0 where it did not.
    pub(crate) const END: usize = 48;
    /// `u64`: how many calls were watched.
    pub(crate) const CALLS: usize = 56;
    /// `u64`: how long the library itself took in them, in nanoseconds.
    pub(crate) const OWN: usize = 64;
    /// `u64`: how many stacks could not be taken in time.
    pub(crate) const MISSED: usize = 72;
    /// `u64`: how many activity records CUPTI dropped.
    pub(crate) const DROPPED: usize = 80;
    /// `u64`: how long the first touch of a page of memory takes here, in picoseconds; 0 where it was not measured.
    pub(crate) const FAULT: usize = 88;
    /// `u64`: how long it took to begin, in nanoseconds, where that was in the middle of the program; else 0.
    pub(crate) const BEGIN: usize = 96;
}

/// The kinds of records.
pub(crate) mod tag {
    /// A watched call: `u64` enter, `u64` exit, `u32` correlation, `u32` thread, `u32` function, `u32` stream, `u32` context,
    /// `u32` stack, `u64` bytes, `u64` event, `u32` native stack (0 for none), `u64` until when the thread was held up to look where
    /// it was (that of exit where it was not).
    pub(crate) const CALL: u16 = 1;
    /// The name of a function: `u32` function, text.
    pub(crate) const FUNCTION: u16 = 2;
    /// A frame of a stack: `u32` frame, `u32` line, `u64` offset in the module, file, a zero byte, function.
    pub(crate) const FRAME: u16 = 3;
    /// A stack: `u32` stack, then a `u32` for each frame, the innermost first.
    pub(crate) const STACK: u16 = 4;
    /// The name of a kernel: `u32` name, text.
    pub(crate) const NAME: u16 = 5;
    /// Work of the device: `u64` start, `u64` end, `u32` correlation, `u32` stream, `u32` context, `u32` device, `u32` name,
    /// `u8` kind, `u8` direction, `u8` source, `u8` destination, `u64` bytes.
    pub(crate) const WORK: u16 = 6;
    /// A marker of NVTX: `u64` time, `u32` marker, `u32` flags, text.
    pub(crate) const MARKER: u16 = 7;
    /// What is to be said of the process: `u32` code, text.
    pub(crate) const NOTE: u16 = 8;
    /// What a thread was doing at one moment: `u64` asked (before the interpreter's lock was asked for), `u64` had (when the
    /// stack was read; equal to `asked` where there is none), `u32` thread, `u32` stack, `u32` holder (the thread that held
    /// the interpreter's lock meanwhile), `u32` stack of the holder, `u8` what it was [`doing`](super::doing), `u8` 0, 0, 0,
    /// `u32` 0, and sums: `u64` nanoseconds that it ran, `u64` nanoseconds that it could have run and had no processor, `u64`
    /// page faults, `u64` nanoseconds that the nearest control group with a quota was throttled since the recording began,
    /// `u64` nanoseconds that the thread spent in the kernel. All but the fourth are since the thread began, and the last one
    /// is as coarse as the system counts it (10 ms, mostly).
    ///
    /// Where Python's main thread ran, it read the stacks itself, at the first place where it could: behind the instruction
    /// at which it was when it was asked, such as a call of a function in C. `had` may then be long after `asked`.
    pub(crate) const SAMPLE: u16 = 9;
    /// A launch within a window: `u64` enter, `u64` exit, `u32` correlation, `u32` thread, `u32` stack, `u32` 0.
    pub(crate) const LAUNCH: u16 = 10;
    /// A time in which launches were watched: `u64` from, `u64` to. A launch that lies in it in part has no record.
    pub(crate) const WINDOW: u16 = 11;
    /// A native stack: `u32` native stack, then a `u64` for each address, the innermost first.
    pub(crate) const NATIVE: u16 = 12;
    /// The operator of PyTorch that an address lies in: `u64` address, text. Written some time after the stack.
    pub(crate) const OPERATOR: u16 = 13;
}

/// What a thread of a sample was doing.
pub(crate) mod doing {
    /// Not known.
    pub(crate) const UNKNOWN: u8 = 0;
    /// It ran, or could have run.
    pub(crate) const RUNNING: u8 = 1;
    /// It slept for a time that it had asked for.
    pub(crate) const SLEEPING: u8 = 2;
    /// It waited for input or output.
    pub(crate) const INPUT_OUTPUT: u8 = 3;
    /// It waited for a lock, or for another thread by one.
    pub(crate) const LOCK: u8 = 4;
    /// It waited for the interpreter's lock.
    pub(crate) const INTERPRETER: u8 = 5;
    /// It waited in another call of the system.
    pub(crate) const SYSTEM: u8 = 6;
}

/// Kinds of work.
pub(crate) mod work {
    /// A kernel.
    pub(crate) const KERNEL: u8 = 1;
    /// A copy.
    pub(crate) const COPY: u8 = 2;
    /// Memory set to a value.
    pub(crate) const FILL: u8 = 3;
}

/// Codes of notes.
pub(crate) mod note {
    /// The command line.
    pub(crate) const COMMAND: u32 = 1;
    /// CUPTI could not be loaded.
    pub(crate) const NO_CUPTI: u32 = 2;
    /// Another program, such as a profiler, has CUPTI.
    pub(crate) const TAKEN: u32 = 3;
    /// CUPTI refused something else.
    pub(crate) const REFUSED: u32 = 4;
    /// Its rank in its job, as whoever started it says.
    pub(crate) const RANK: u32 = 5;
}

/// What the files end in by which a process says that it is armed, and is asked to record. They are named after the process.
pub(crate) const ARMED: &str = "armed";
/// As above.
pub(crate) const ASK: &str = "ask";
/// What a process says of the recording to a folder, whose name stands before it.
pub(crate) const BEGUN: &str = "begun";
/// As above.
pub(crate) const ENDED: &str = "ended";

/// No stream, no stack.
pub(crate) const NONE: u32 = u32::MAX;

/// The file of the frame behind which those of the main thread stand: the thread of the call has none of its own.
pub(crate) const OTHER_THREAD: &str = "<another thread>";

/// Whether a module, by its path, is the driver's, the run-time library's or a tool's: no program's place lies in it.
pub(crate) fn is_tool(module: &[u8]) -> bool {
    const NAMES: &str = "libcuda.so libcudart libcudadebugger libcupti libnvidia- libnvToolsExt libnvtx libToolsInjection \
                         libsyncscope_audit";
    let name = module.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    NAMES.split(' ').any(|tool| name.starts_with(tool.as_bytes()))
}
