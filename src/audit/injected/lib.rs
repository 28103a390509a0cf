//! The library that `report audit` has the CUDA driver load into a program, by `CUDA_INJECTION64_PATH`.
//!
//! It subscribes to CUPTI's callbacks for the driver's calls in which a host can wait, has the device's activity recorded,
//! and writes both, with the place in the program, to a file of the process (`format`). Beside that it takes samples of the
//! threads that make these calls (`samples`), and watches launches for short times (`launches`). It does so from the start of
//! the program to its end, or when it is asked (`armed`). The analysis is done by whoever reads the file: here nothing is judged.
//!
//! # Rules
//! * The program runs on as it would have: nothing is printed, no signal is taken, and what fails here is noted in the file.
//! * Nothing is held across a call of the driver: between enter and exit there are 8 bytes that CUPTI keeps.
//! * No thread of the program waits for the interpreter's lock without an end: `python` says how a stack is taken all the same.
//!   For a sample it waits not at all.
//! * One thread is the library's own, the `watcher`, and in an armed process another, the `clerk`. They take no signals, and what
//!   the watcher opens is in a table of descriptors of its own.
//! * No dependencies: `build.rs` compiles these files with `rustc` alone.
//!
//! # Limits
//! A profiler that begins later takes the activity records over. A process that was forked from one that uses CUDA is not
//! recorded; it cannot use CUDA either.

#![allow(unsafe_code)]
// As a test it has no user beside itself.
#![cfg_attr(test, allow(unreachable_pub))]

mod armed;
mod asks;
mod breaker;
mod calls;
mod clerk;
mod cupti;
mod feeders;
mod file;
#[allow(dead_code, reason = "the analysis reads by it, too")]
mod format;
mod launches;
mod library;
mod operators;
mod pending;
mod python;
mod samples;
mod sampling;
mod stacks;
mod system;
mod threads;
mod unwind;
mod watcher;

use std::env;
use std::ffi::{CStr, c_int, c_void};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use file::Fields;
use format::{NONE, header, note, tag};
use sampling::Sampling;

/// The folder for the record files.
const FOLDER: &str = "SYNCSCOPE_AUDIT_FOLDER";
/// Which stacks are taken: `all`, `sample`, `none`.
const STACKS: &str = "SYNCSCOPE_AUDIT_STACKS";
/// The rank of a process in its job: of torchrun, Open MPI, MPICH and Slurm.
const RANKS: [&str; 4] = ["RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"];
/// How long a call waits for its stack, in milliseconds.
const PATIENCE: &str = "SYNCSCOPE_AUDIT_PATIENCE";
/// The most bytes of a record file.
const MOST: &str = "SYNCSCOPE_AUDIT_BYTES";

/// Set to `none`, the device's activity is not recorded: for measuring what that costs.
const ACTIVITY: &str = "SYNCSCOPE_AUDIT_ACTIVITY";

static RECORDING: AtomicBool = AtomicBool::new(false);
static WHICH: AtomicU8 = AtomicU8::new(0);
static COUNT: AtomicU64 = AtomicU64::new(0);
/// When the last call of a recording could be made that ends before the process does.
static END: AtomicU64 = AtomicU64::new(0);
static OWN: AtomicU64 = AtomicU64::new(0);
static SAMPLING: Sampling = Sampling::new();
/// Which functions have their names in the file, a bit each.
static NAMED: [AtomicU64; 16] = [const { AtomicU64::new(0) }; 16];

thread_local!(static WITHIN: std::cell::Cell<bool> = const { std::cell::Cell::new(false) });

/// Whether this process is recorded. A child of a fork is not, even where nothing was told of the fork.
fn is_recording() -> bool {
    RECORDING.load(Ordering::Acquire) && file::process() == std::process::id()
}

/// Whether this thread is at work for this library. What that leads to, such as a collection of garbage, may call the driver.
fn is_within() -> bool {
    WITHIN.try_with(std::cell::Cell::get).unwrap_or(true)
}

/// Does something for this library.
fn within(then: impl FnOnce()) {
    let _ = WITHIN.try_with(|within| within.set(true));
    then();
    let _ = WITHIN.try_with(|within| within.set(false));
}

/// What the driver calls when it is initialised. It is never refused: the program would not run.
#[unsafe(no_mangle)]
pub extern "C" fn InitializeInjection() -> c_int {
    static BEGUN: AtomicBool = AtomicBool::new(false);
    if !BEGUN.swap(true, Ordering::AcqRel)
        && let Ok(folder) = env::var(FOLDER)
    {
        begin(&folder);
    }
    1
}

/// What NVTX calls at its first use, by `NVTX_INJECTION64_PATH`.
///
/// # Safety
/// `table` is NVTX's function that hands out its tables.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeInjectionNvtx2(table: *mut c_void) -> c_int {
    // Safety: the caller's promise.
    unsafe { cupti::take_ranges(table) }
}

fn begin(folder: &str) {
    if let Some(patience) = env::var(PATIENCE).ok().and_then(|patience| patience.parse().ok()) {
        asks::be_patient(patience);
    }
    file::claim(std::process::id());
    // It is the main thread that most programs call CUDA from first.
    python::begin();
    // Safety: both handlers live as long as the process.
    unsafe {
        system::pthread_atfork(None, None, Some(forked));
        system::atexit(ended);
    }
    let stacks = env::var(STACKS).unwrap_or_default();
    if armed::begin(folder) || (record(Path::new(folder), &stacks) && stacks != "none") {
        watcher::start();
    }
}

/// Begins to record into a folder; whether it does.
fn record(folder: &Path, stacks: &str) -> bool {
    let loaded = cupti::load();
    let start = loaded.as_ref().map_or(0, |cupti| cupti.now());
    let most = env::var(MOST).ok().and_then(|most| most.parse().ok()).unwrap_or(1 << 30);
    if !file::open(folder, std::os::unix::process::parent_id(), start, most) {
        return false;
    }
    // It holds what it names.
    stacks::forget();
    operators::forget();
    cupti::forget_names();
    NAMED.iter().for_each(|named| named.store(0, Ordering::Relaxed));
    let say = |code: u32, text: &str| Fields::new().u32(code).write(tag::NOTE, text.as_bytes());
    let command = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    say(note::COMMAND, &String::from_utf8_lossy(&command).replace('\0', " "));
    if let Some(rank) = RANKS.iter().find_map(|name| env::var(name).ok()) {
        say(note::RANK, &rank);
    }
    let cupti = match loaded {
        Ok(cupti) => cupti,
        Err(reason) => {
            say(note::NO_CUPTI, &reason);
            return false;
        }
    };
    let which = match stacks {
        "none" => 0,
        "all" => 2,
        _ => 1,
    };
    WHICH.store(which, Ordering::Relaxed);
    [&COUNT, &OWN].iter().for_each(|sum| sum.store(0, Ordering::Relaxed));
    RECORDING.store(true, Ordering::Release);
    let with_activity = env::var(ACTIVITY).as_deref() != Ok("none");
    if let Err((reason, status)) = cupti.begin(called, calls::watched(), with_activity) {
        RECORDING.store(false, Ordering::Release);
        match status {
            cupti::NOT_IN_USE => finish(cupti, cupti.now()),
            _ if cupti::TAKEN.contains(&status) => say(note::TAKEN, &reason),
            _ => say(note::REFUSED, &reason),
        }
        return false;
    }
    true
}

/// Writes what is left of a recording that went on up to then.
fn finish(cupti: &cupti::Cupti, end: u64) {
    launches::close(end);
    let numbers = [
        (header::DROPPED, cupti.dropped()),
        (header::CALLS, COUNT.load(Ordering::Relaxed)),
        (header::OWN, OWN.load(Ordering::Relaxed)),
        (header::MISSED, python::missed()),
        (header::END, end),
    ];
    numbers.iter().for_each(|(place, number)| file::set(*place, *number));
    file::end();
}

/// Has no call recorded any more. Whether there is a recording.
fn silence() -> bool {
    let Some(cupti) = cupti::get() else { return false };
    END.store(cupti.now(), Ordering::Release);
    cupti.silence(calls::watched());
    true
}

/// Ends a recording that is [silent](silence) before the process ends: the program runs on as if there had been none. Whether
/// there was one.
fn stop() -> bool {
    let Some(cupti) = cupti::get() else { return false };
    cupti.end();
    finish(cupti, END.load(Ordering::Acquire));
    RECORDING.store(false, Ordering::Release);
    cupti.leave();
    true
}

/// In a child of a fork: the file is the parent's.
extern "C" fn forked() {
    RECORDING.store(false, Ordering::Release);
    file::forget();
}

extern "C" fn ended() {
    // What the watcher ends is ended before.
    watcher::end();
    if let Some(cupti) = cupti::get().filter(|_| is_recording()) {
        operators::look_up(operators::LAST);
        cupti.last();
        finish(cupti, cupti.now());
    }
}

/// At the enter and at the exit of each watched call.
unsafe extern "C" fn called(_: *mut c_void, _: u32, function: u32, call: *const cupti::Call) {
    let Some(cupti) = cupti::get().filter(|_| !call.is_null()) else { return };
    // Safety: CUPTI's own structure, for the length of the callback.
    let call = unsafe { &*call };
    cupti.inside(function, call, || {
        if RECORDING.load(Ordering::Acquire) && !call.kept.is_null() && !is_within() {
            recorded(cupti, function, call);
        }
    });
}

fn recorded(cupti: &cupti::Cupti, function: u32, call: &cupti::Call) {
    let now = cupti.now();
    feeders::calls(now, python::own_state());
    if call.site == 0 {
        // Safety: CUPTI keeps 8 bytes for each call.
        unsafe { *call.kept = now };
        if calls::arguments(function).ends_streams {
            cupti.streams_end();
        }
        return;
    }
    // Safety: as above.
    let enter = unsafe { std::mem::take(&mut *call.kept) };
    if enter == 0 {
        return;
    }
    within(|| match launches::has(function) {
        true => launches::left(cupti, call, enter, now),
        false => left(cupti, function, call, enter, now),
    });
    if launches::has(function) {
        return;
    }
    COUNT.fetch_add(1, Ordering::Relaxed);
    OWN.fetch_add(cupti.now().saturating_sub(now), Ordering::Relaxed);
}

/// At the exit of a watched call.
fn left(cupti: &cupti::Cupti, function: u32, call: &cupti::Call, enter: u64, exit: u64) {
    let arguments = calls::arguments(function);
    // Safety: the arguments of this function.
    let given = unsafe { arguments.read(call.arguments) };
    let stream = given.stream.map_or(NONE, |stream| cupti.stream(call.context, stream, arguments.of_thread));
    named(function, call);
    let none = Looked { stack: NONE, native: 0, until: exit };
    let Looked { stack, native, until } = if arguments.records { none } else { look(cupti, enter, exit) };
    let fields = Fields::new().u64(enter).u64(exit).u32(call.correlation).u32(system::thread()).u32(function);
    let fields = fields.u32(stream).u32(call.context_number).u32(stack).u64(given.bytes).u64(given.event).u32(native);
    fields.u64(until).write(tag::CALL, &[]);
    launches::left_call(until);
}

/// Writes the function's name the first time.
fn named(function: u32, call: &cupti::Call) {
    let Some(word) = NAMED.get(function as usize / 64) else { return };
    let bit = 1 << (function % 64);
    if word.load(Ordering::Relaxed) & bit == 0
        && word.fetch_or(bit, Ordering::Relaxed) & bit == 0
        && !call.function.is_null()
    {
        // Safety: a terminated text, for the length of the callback.
        let name = unsafe { CStr::from_ptr(call.function) };
        Fields::new().u32(function).write(tag::FUNCTION, name.to_bytes());
    }
}

/// Where the program is, if this call's place is taken, its native stack, and how long it took to look.
struct Looked {
    stack: u32,
    native: u32,
    until: u64,
}

fn look(cupti: &cupti::Cupti, enter: u64, exit: u64) -> Looked {
    let which = WHICH.load(Ordering::Relaxed);
    if which == 0 || (which == 1 && !SAMPLING.falls_in(exit.saturating_sub(enter))) {
        return Looked { stack: NONE, native: 0, until: exit };
    }
    let (stack, native) = (taken(), operators::here());
    let until = cupti.now();
    if which == 1 {
        SAMPLING.taken(exit, until);
    }
    Looked { stack, native, until }
}

fn taken() -> u32 {
    match python::stack() {
        python::Taken::Stack(stack) => stack,
        python::Taken::NoPython => stacks::native(),
        python::Taken::Missed => NONE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_structure_of_a_callback_has_the_places_of_the_headers() {
        use std::mem::offset_of;
        let places = [
            offset_of!(cupti::Call, function),
            offset_of!(cupti::Call, context),
            offset_of!(cupti::Call, context_number),
            offset_of!(cupti::Call, kept),
            offset_of!(cupti::Call, correlation),
        ];
        assert_eq!(places, [8, 40, 48, 56, 64]);
    }
}
