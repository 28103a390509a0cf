//! The ways in which a host thread can wait for work, each measured by itself.
//!
//! # Method
//! The last action of the work writes the time of the device's own clock. The waiting thread reads the host's clock when its
//! wait has returned. When all is over, the two clocks are compared (`clock`), and the end of the work is told
//! on the host's clock. The difference is the latency of the wait, for every way to wait alike. No other thread looks on. The
//! processor time is that of the waiting thread alone, by the clock that the system keeps for it.
//!
//! # Limits
//! The comparison leaves a bound, which stands beside each latency: what is not larger than it means nothing, and a latency may
//! come out below 0 by as much. What the device does after its last action belongs to the latency. Work that is over before
//! the wait begins has no latency but that of the call.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::clock::{ByHost, seconds};
use super::{Result, Rig, WaitMode, rig};
use syncscope::affinity;
use syncscope::device::Device;
use syncscope::error::DeviceError;

/// After how long a thread gives up that asks again and again.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// How long a waiting thread is given to begin its wait.
const ENTRY: Duration = Duration::from_micros(200);

/// How a host thread waits for the end of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// In the driver, in this way.
    Driver(WaitMode),
    /// It asks whether the stream is idle, again and again.
    Query,
    /// It reads a word of host memory, which the work writes, again and again.
    Flag,
    /// In the driver, for another stream that waits for the word.
    WaitValue,
    /// By a condition variable, which a function behind the work notifies.
    HostFunction,
}

impl Manner {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Driver(WaitMode::Spin),
        Self::Driver(WaitMode::Yield),
        Self::Driver(WaitMode::Block),
        Self::Query,
        Self::Flag,
        Self::WaitValue,
        Self::HostFunction,
    ];

    /// Its name, as a parameter of a row.
    pub fn name(self) -> &'static str {
        match self {
            Self::Driver(mode) => mode.name(),
            Self::Query => "query",
            Self::Flag => "flag",
            Self::WaitValue => "wait-value",
            Self::HostFunction => "host-function",
        }
    }

    /// How threads have to wait in the driver for it.
    fn mode(self) -> WaitMode {
        if let Self::Driver(mode) = self { mode } else { WaitMode::Spin }
    }
}

/// Work whose end is marked and timed, and the ways to wait for it. One piece of work is under way at a time.
pub(crate) trait Waiting: Send + Sync {
    /// Makes ready for work whose end is not marked yet. Nothing is pending.
    fn prepare(&self) -> Result<()>;

    /// Enqueues work that takes this long and then marks its end, and what else it takes to wait in this way.
    fn begin(&self, manner: Manner, length: Duration) -> Result<()>;

    /// Waits until the work is over.
    ///
    /// # Errors
    /// [`NotApplicable`](DeviceError::NotApplicable) where there is no such way.
    fn wait(&self, manner: Manner) -> Result<()>;

    /// Launches a small kernel on a stream of its own, as a neighbour does.
    fn launch_beside(&self) -> Result<()>;

    /// Waits until all of it is over.
    fn settle(&self) -> Result<()>;

    /// When the work ended, which is over.
    fn ended(&self) -> Result<ByHost>;
}

/// Asks until the answer is yes; whether it was before `until`.
pub(crate) fn poll(until: Instant, mut ask: impl FnMut() -> Result<bool>) -> Result<bool> {
    // The time is asked for rarely: it takes as long as what is polled.
    const OFTEN: usize = 64;
    loop {
        for _ in 0..OFTEN {
            if ask()? {
                return Ok(true);
            }
            std::hint::spin_loop();
        }
        if Instant::now() > until {
            return Ok(false);
        }
    }
}

/// What came of a wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waited {
    /// Seconds from the end of the work, or from the beginning of the wait where that is later, to the waiting thread's next
    /// instruction.
    pub latency: f64,
    /// By how many seconds that may be off, in either direction.
    pub within: f64,
    /// Which share of the wait the waiting thread computed.
    pub computed: f64,
}

/// The ways to wait of a device, to be measured.
pub struct Waits {
    waiting: Box<dyn Waiting>,
    // Ended after the ways, which use its streams.
    rig: Box<dyn Rig>,
}

impl Waits {
    /// Those of a device.
    pub fn new(device: &Device) -> Result<Self> {
        let rig = rig(device)?;
        Ok(Self { waiting: rig.waiting()?, rig })
    }

    /// Waits once, behind work of this length.
    pub fn wait(&self, manner: Manner, length: Duration) -> Result<Waited> {
        self.enter(manner)?;
        let waiting = &*self.waiting;
        waiting.prepare()?;
        let outcome = waiting.begin(manner, length).and_then(|()| timed(|| waiting.wait(manner)));
        waiting.settle()?;
        let ((called, returned, computed), ended) = (outcome?, waiting.ended()?);
        Ok(Waited {
            latency: seconds(ended.at.max(called), returned),
            within: ended.within.as_secs_f64(),
            computed: computed / seconds(called, returned).max(f64::MIN_POSITIVE),
        })
    }

    /// The host's time of one of so many launches by a thread, while another thread waits in this way for work of this
    /// length; for none, while the work runs and nobody waits.
    pub fn neighbour(&self, manner: Option<Manner>, length: Duration, launches: usize) -> Result<f64> {
        // Where nobody waits, nothing has to stand behind the work.
        let stands = manner.unwrap_or(Manner::Flag);
        self.enter(stands)?;
        let waiting = &*self.waiting;
        waiting.prepare()?;
        let (begins, begun) = mpsc::channel::<()>();
        let (launching, launched_all) = mpsc::channel::<()>();
        let (waited, launched) = thread::scope(|scope| {
            let waiter = move || {
                let outcome = waiting.begin(stands, length);
                drop(begins);
                // A thread that ends meanwhile would be what no way of waiting has beside it.
                let sleep = || {
                    _ = launched_all.recv();
                    Ok(())
                };
                outcome.and_then(|()| manner.map_or_else(sleep, |manner| waiting.wait(manner)))
            };
            let waiter = match affinity::beside(scope, waiter) {
                Ok(waiter) => waiter,
                Err(error) => return (Err(error), Ok(0.0)),
            };
            _ = begun.recv();
            let entered = Instant::now() + ENTRY;
            while Instant::now() < entered {
                std::hint::spin_loop();
            }
            let start = Instant::now();
            let launched = (0..launches).try_for_each(|_| waiting.launch_beside());
            let seconds = start.elapsed().as_secs_f64();
            drop(launching);
            (waiter.join().unwrap_or(Ok(())), launched.map(|()| seconds / launches.max(1) as f64))
        });
        let settled = waiting.settle();
        waited?;
        settled?;
        launched
    }

    /// Has threads wait in the driver as the manner needs it.
    fn enter(&self, manner: Manner) -> Result<()> {
        match self.rig.wait_by(manner.mode()) {
            // Where nobody can choose, the ways that need no choice are there all the same.
            Err(DeviceError::NotApplicable { .. }) if !matches!(manner, Manner::Driver(_)) => Ok(()),
            outcome => outcome,
        }
    }
}

/// When a wait began and returned, and the seconds of processor time that this thread had between.
fn timed(wait: impl FnOnce() -> Result<()>) -> Result<(Instant, Instant, f64)> {
    // What it takes to ask for the processor time is part of it once.
    let asking = processor_time();
    let before = processor_time();
    let called = Instant::now();
    let outcome = wait();
    let returned = Instant::now();
    let computed = (processor_time() - before) - (before - asking);
    outcome.map(|()| (called, returned, computed))
}

/// Seconds for which this thread has computed.
fn processor_time() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits() -> Waits {
        Waits::new(&Device::open("cpu:0").unwrap()).unwrap()
    }

    #[test]
    fn a_wait_returns_when_the_work_is_over_whatever_its_length() {
        let waits = waits();
        for manner in [Manner::Query, Manner::Flag, Manner::HostFunction] {
            for length in [0, 1, 3] {
                let waited = waits.wait(manner, Duration::from_millis(length)).unwrap();
                // The engine's clock is the host's: no thread goes on before the end.
                assert!(waited.latency >= 0.0 && waited.within == 0.0, "{manner:?}: {waited:?}");
                assert!(waited.computed.is_finite(), "{manner:?}: {waited:?}");
            }
        }
    }

    #[test]
    fn a_thread_that_sleeps_computes_less_than_one_that_asks_again_and_again() {
        let waits = waits();
        let computed = |manner| {
            let tried = (0..5).map(|_| waits.wait(manner, Duration::from_millis(50)).unwrap().computed);
            tried.fold(f64::INFINITY, f64::min)
        };
        let (sleeps, asks) = (computed(Manner::HostFunction), computed(Manner::Flag));
        assert!(sleeps < asks, "{sleeps} {asks}");
    }

    #[test]
    fn a_way_that_the_engine_lacks_says_why_and_leaves_the_others() {
        let waits = waits();
        for manner in Manner::ALL.into_iter().filter(|own| matches!(own, Manner::Driver(_) | Manner::WaitValue)) {
            let refused = waits.wait(manner, Duration::ZERO);
            assert!(matches!(refused, Err(DeviceError::NotApplicable { .. })), "{manner:?}: {refused:?}");
        }
        assert!(waits.neighbour(None, Duration::from_millis(1), 8).unwrap() > 0.0);
        assert!(waits.neighbour(Some(Manner::HostFunction), Duration::from_millis(1), 8).unwrap() > 0.0);
    }
}
