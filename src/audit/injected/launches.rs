//! Launches, which are watched in windows only: they are too many to be watched always. A program with Python has none: samples
//! say where it launches.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::cupti::{Call, Cupti};
use crate::file::Fields;
use crate::format::{NONE, tag};
use crate::sampling::SHARE;
use crate::{python, stacks, system, watcher};

/// cuLaunchKernel, cuLaunchCooperativeKernel, cuGraphLaunch, cuLaunchKernelEx; each second one is of the thread's own stream.
const LAUNCHES: [u32; 8] = [307, 442, 477, 478, 514, 515, 652, 653];
/// When the first window opens, how long one is, and after which time the next one opens.
const FIRST: Duration = Duration::from_millis(300);
const LENGTH: Duration = Duration::from_millis(50);
const PERIOD: Duration = Duration::from_secs(1);
/// A launch that comes so long after the call before has its place taken, in nanoseconds.
const GAP: u64 = 200_000;

/// When the window that is open was opened, by CUPTI's clock; 0 where none is.
static OPENED: AtomicU64 = AtomicU64::new(0);

thread_local!(static LAST: Cell<u64> = const { Cell::new(0) });

/// Whether a function is a launch.
pub(crate) fn has(function: u32) -> bool {
    LAUNCHES.contains(&function)
}

/// This thread has left a call: when it left the one before.
pub(crate) fn left_call(now: u64) -> u64 {
    // A thread at its very end has no variables any more.
    LAST.try_with(|last| last.replace(now)).unwrap_or(now)
}

/// At the exit of a launch. One that was entered or is left outside of the window is not written.
pub(crate) fn left(cupti: &Cupti, call: &Call, enter: u64, exit: u64) {
    let opened = OPENED.load(Ordering::Acquire);
    let last = left_call(exit).max(opened);
    if opened == 0 || enter < opened {
        return;
    }
    let stack = if enter.saturating_sub(last) >= GAP { native(cupti, exit) } else { NONE };
    let fields = Fields::new().u64(enter).u64(exit).u32(call.correlation).u32(system::thread()).u32(stack).u32(0);
    fields.write(tag::LAUNCH, &[]);
}

/// Where a program without Python launches: with Python, the samples say it. This takes one part of the time in [`SHARE`].
fn native(cupti: &Cupti, now: u64) -> u32 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let next = NEXT.load(Ordering::Relaxed);
    let is_due = next <= now && NEXT.compare_exchange(next, u64::MAX, Ordering::Relaxed, Ordering::Relaxed).is_ok();
    if !is_due {
        return NONE;
    }
    let stack = if python::running().is_some() { NONE } else { stacks::native() };
    let end = cupti.now();
    NEXT.store(end + SHARE * end.saturating_sub(now), Ordering::Relaxed);
    stack
}

/// When windows open and close.
#[derive(Clone, Copy)]
pub(crate) struct Windows {
    next: Instant,
    is_open: bool,
}

impl Windows {
    pub(crate) fn new() -> Self {
        Self { next: Instant::now() + FIRST, is_open: false }
    }

    /// When there is something to do next.
    pub(crate) fn next(&self) -> Instant {
        self.next
    }

    /// Opens or closes a window if it is time.
    pub(crate) fn turn(&mut self) {
        let now = Instant::now();
        if now < self.next {
            return;
        }
        if !self.is_open && python::running().is_some() {
            self.next = now + PERIOD;
            return;
        }
        self.is_open = !self.is_open;
        watcher::with_cupti(|cupti| {
            if !self.is_open {
                close(cupti.now());
            }
            LAUNCHES.iter().for_each(|function| cupti.call_back(self.is_open, *function));
            if self.is_open {
                OPENED.store(cupti.now(), Ordering::Release);
            }
        });
        self.next = now + if self.is_open { LENGTH } else { PERIOD - LENGTH };
    }
}

/// Writes the window that is open, if there is one. The callbacks stay as they are.
pub(crate) fn close(to: u64) {
    let from = OPENED.swap(0, Ordering::AcqRel);
    if from != 0 {
        Fields::new().u64(from).u64(to).write(tag::WINDOW, &[]);
    }
}
