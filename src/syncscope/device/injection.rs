//! Failures on request, for tests of what a failure does: an allocation that is refused, a launch or a copy that fails,
//! a device that is lost.
//!
//! The engines ask at the lowest place that can fail for real, so that everything above is tested as it stands. While
//! nothing is requested, that is one relaxed load.

use crate::device::lock;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a test asks to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Injected {
    /// Device memory is refused, as if there were no room.
    Allocation,
    /// Pinned memory for a host buffer is refused, as if there were no room.
    Pinning,
    /// A kernel launch fails; nothing is enqueued.
    Launch,
    /// A copy between host and device fails; nothing is enqueued.
    Copy,
    /// The device is lost, as after an access outside of its memory: every later call fails with the first cause.
    DeviceLoss,
    /// The driver has no wait of a stream for a word of memory, from now on: gates hold by a kernel.
    StreamWait,
}

/// The requested failures of one opened device.
#[derive(Debug, Default)]
pub(crate) struct Injection {
    armed: AtomicBool,
    requested: Mutex<Vec<(Injected, u64)>>,
}

impl Injection {
    /// Has the `nth` call of this kind from now on fail; 1 is the next.
    pub(crate) fn request(&self, what: Injected, nth: u64) {
        lock(&self.requested).push((what, nth.max(1)));
        self.armed.store(true, Ordering::Release);
    }

    /// Counts a call of this kind; whether it is to fail.
    #[inline]
    pub(crate) fn strikes(&self, what: Injected) -> bool {
        self.armed.load(Ordering::Relaxed) && self.count(what)
    }

    /// Whether failures of this kind were requested; they are not counted.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "the CPU engine has no driver"))]
    pub(crate) fn is_set(&self, what: Injected) -> bool {
        self.armed.load(Ordering::Relaxed) && lock(&self.requested).iter().any(|(kind, _)| *kind == what)
    }

    #[cold]
    fn count(&self, what: Injected) -> bool {
        let mut requested = lock(&self.requested);
        let mut strikes = false;
        requested.retain_mut(|(kind, left)| {
            if *kind == what {
                *left -= 1;
                strikes |= *left == 0;
            }
            *left > 0
        });
        self.armed.store(!requested.is_empty(), Ordering::Release);
        strikes
    }
}

/// The reason that an injected failure gives.
pub(crate) const REASON: &str = "a failure that a test asked for";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nth_call_of_a_kind_fails_once() {
        let injection = Injection::default();
        assert!(!injection.strikes(Injected::Launch));
        injection.request(Injected::Launch, 2);
        injection.request(Injected::Copy, 1);
        let launches = [(); 4].map(|()| injection.strikes(Injected::Launch));
        assert_eq!(launches, [false, true, false, false]);
        assert_eq!([injection.strikes(Injected::Copy), injection.strikes(Injected::Copy)], [true, false]);
    }
}
