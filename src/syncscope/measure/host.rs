//! Where the host computes at full speed.
//!
//! # Method
//! The host does a fixed piece of work, about ten microseconds long, and takes its time. The shortest time so far is its best.
//! Where the least of three pieces in a row takes more than 1.3 times the best, the processor is slowed: another thread of the
//! same core computes, or in a virtual machine somebody else's, or its clock is held back.
//!
//! The work is instructions of which none waits for one before it, as many at once as a core takes. A thread beside it on the
//! same core takes its share of these at once, whatever it does. Work that waits for its own results, as chains of arithmetic
//! do, leaves room for another thread and hardly sees it. On two rented hosts each processor was in one of two states for
//! some tenths of a second, and short calls of a driver rose and fell with them. In the slower one these instructions, which
//! were measured on one of the two, took 1.5 to 2 times as long: `examples/host_states.rs` measures it.
//! The work needs no memory but a few bytes, nothing that a cache or a predictor would forget for it, and no system call: a call
//! behind it takes as long as one behind none.
//!
//! The work is done before each sample: a host that has waited has to wake and to raise its clock, and both would be in the
//! sample. It is done after each sample, too, and the sample is kept with how many times its best the work took: before or
//! after it, whichever is more. A thread that is kept on a processor leaves it where it is slowed, before a warm-up and
//! before a round: for one that is not slowed, the first that is found. Where all are slowed it goes to the fastest, and
//! does not search again for a quarter of a second. The first search tries all. On another processor the caches hold
//! nothing of the cases, so the round that follows is one of the warm-up. Such rounds are charged to an account, of half a
//! second and a tenth of the time since the first piece of work; with too little left the thread stays. What is sampled without
//! a warm-up and takes a millisecond or longer fills the caches itself: there the thread leaves before each call. No sample
//! decides any of this: only the work does.
//!
//! # What it does not cover
//! What slows all processors from the first search to the last piece, what slows one within a round, and caches, buses and the
//! memory that others use.

use std::fmt;
use std::hint::black_box;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::affinity;
use crate::device::lock;

/// From how many times its best on a piece of work shows a processor that is slowed. One that does the work of two threads
/// takes 1.5 to 2 times as long; one whose other cores begin to compute lowers its clock by less.
const SLOWED: f64 = 1.3;
/// The pieces of which the shortest counts: an interrupt lengthens one of them.
const PIECES: usize = 3;
/// The steps in a piece of work: fewer where the compiler does not make them fast.
const STEPS: u64 = if cfg!(debug_assertions) { 250 } else { 2_500 };
/// How long a search without success is the last one.
const REST: Duration = Duration::from_millis(250);
/// What the account holds from the beginning, in seconds, and what it gains in a second.
const AT_FIRST: f64 = 0.5;
const GAINED: f64 = 0.1;

/// The processors of the calling thread.
pub(super) trait Processors: fmt::Debug + Send + Sync {
    /// The one that it is kept on.
    fn kept_on(&self) -> Option<usize>;
    /// Those that it may be kept on, the likeliest first.
    fn choices(&self) -> Vec<usize>;
    fn stay_on(&self, cpu: usize);
    /// Does a piece of work, and says how many seconds it took.
    fn work(&self) -> f64;
}

/// Those of the machine.
#[derive(Debug)]
struct Machine;

impl Processors for Machine {
    fn kept_on(&self) -> Option<usize> {
        affinity::kept_on()
    }

    fn choices(&self) -> Vec<usize> {
        affinity::choices()
    }

    fn stay_on(&self, cpu: usize) {
        affinity::stay_on(cpu);
    }

    fn work(&self) -> f64 {
        piece()
    }
}

/// Watches the processors of the host through a run.
#[derive(Debug)]
pub struct HostSpeed {
    begun: Instant,
    processors: Box<dyn Processors>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The shortest time of a piece of work, in seconds.
    best: Option<f64>,
    /// Until when no processor is searched for.
    rests_until: Option<Instant>,
    /// What rounds took that followed a move, in seconds.
    charged: f64,
}

impl Default for HostSpeed {
    fn default() -> Self {
        Self::new()
    }
}

impl HostSpeed {
    /// A host that nothing is known of.
    pub fn new() -> Self {
        Self::on(Machine)
    }

    /// A host with these processors.
    pub(super) fn on(processors: impl Processors + 'static) -> Self {
        Self { begun: Instant::now(), processors: Box::new(processors), state: Mutex::default() }
    }

    /// Keeps the calling thread busy for a piece of work, and says how many times its best that took: the least of three pieces
    /// where the first shows a processor that is slowed.
    pub(super) fn slowdown(&self) -> f64 {
        lock(&self.state).slowdown(self.processors.as_ref())
    }

    /// Has the calling thread leave its processor where that is slowed; says whether it did.
    pub(super) fn settle(&self) -> bool {
        let processors = self.processors.as_ref();
        let Some(own) = processors.kept_on() else { return false };
        let chosen = lock(&self.state).choose(processors, own, Instant::now());
        stay_on(processors, chosen);
        chosen != own
    }

    /// The same, where the account holds a round of so many seconds.
    pub(super) fn settle_before(&self, round: f64) -> bool {
        let left = lock(&self.state).left(self.begun.elapsed().as_secs_f64());
        round <= left && self.settle()
    }

    /// Takes what a round took that followed a move from the account.
    pub(super) fn charge(&self, seconds: f64) {
        lock(&self.state).charged += seconds;
    }
}

impl State {
    /// The processor to stay on, for a thread that is on `own`.
    fn choose(&mut self, processors: &dyn Processors, own: usize, now: Instant) -> usize {
        let is_first = self.best.is_none();
        if self.slowdown(processors) <= SLOWED && !is_first || self.rests_until.is_some_and(|until| now < until) {
            return own;
        }
        let (mut fastest, mut least) = (own, f64::INFINITY);
        for cpu in processors.choices() {
            stay_on(processors, cpu);
            // The first piece finds other caches, and a processor that slept.
            processors.work();
            let time = (0..PIECES).map(|_| processors.work()).fold(f64::INFINITY, f64::min);
            let is_slow = self.times_best(time) > SLOWED;
            if time < least {
                (fastest, least) = (cpu, time);
            }
            if !is_first && !is_slow {
                break;
            }
        }
        self.rests_until = (self.times_best(least) > SLOWED).then_some(now + REST);
        fastest
    }

    /// What the account holds, so many seconds after the beginning.
    fn left(&self, elapsed: f64) -> f64 {
        AT_FIRST + GAINED * elapsed - self.charged
    }

    /// How many times the best the least of the pieces takes; one that shows that nothing slows the processor is enough.
    fn slowdown(&mut self, processors: &dyn Processors) -> f64 {
        let mut least = f64::INFINITY;
        for _ in 0..PIECES {
            least = least.min(self.times_best(processors.work()));
            if least <= SLOWED {
                break;
            }
        }
        least
    }

    /// How many times as long as the best, which it may be itself, a piece of work took.
    fn times_best(&mut self, seconds: f64) -> f64 {
        let best = self.best.map_or(seconds, |best| best.min(seconds));
        self.best = Some(best);
        seconds / best
    }
}

/// To stay where one is costs no call of the system.
fn stay_on(processors: &dyn Processors, cpu: usize) {
    if processors.kept_on() != Some(cpu) {
        processors.stay_on(cpu);
    }
}

/// The seconds of a piece of work. What the compiler knows nothing of, it neither joins nor leaves out.
fn piece() -> f64 {
    let start = Instant::now();
    for step in 0..STEPS {
        for other in 0..8 {
            black_box(black_box(other) ^ step);
        }
    }
    start.elapsed().as_secs_f64()
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Processors with such times of a piece of work; the thread is kept on the last one at first.
    #[derive(Clone, Debug)]
    pub(in crate::measure) struct Scripted {
        own: Arc<AtomicUsize>,
        times: Arc<Mutex<Vec<f64>>>,
        pieces: Arc<AtomicUsize>,
    }

    impl Scripted {
        pub(crate) fn new(times: &[f64]) -> Self {
            let own = Arc::new(AtomicUsize::new(times.len() - 1));
            Self { own, times: Arc::new(Mutex::new(times.to_vec())), pieces: Arc::default() }
        }

        pub(in crate::measure) fn own(&self) -> usize {
            self.own.load(Ordering::Relaxed)
        }

        pub(in crate::measure) fn set(&self, times: &[f64]) {
            *self.times.lock().unwrap() = times.to_vec();
        }

        /// How many pieces of work were done since the last time.
        fn pieces(&self) -> usize {
            self.pieces.swap(0, Ordering::Relaxed)
        }
    }

    impl Processors for Scripted {
        fn kept_on(&self) -> Option<usize> {
            Some(self.own())
        }

        fn choices(&self) -> Vec<usize> {
            (0..self.times.lock().unwrap().len()).rev().collect()
        }

        fn stay_on(&self, cpu: usize) {
            self.own.store(cpu, Ordering::Relaxed);
        }

        fn work(&self) -> f64 {
            self.pieces.fetch_add(1, Ordering::Relaxed);
            self.times.lock().unwrap()[self.own()]
        }
    }

    fn host(times: &[f64]) -> (HostSpeed, Scripted) {
        let processors = Scripted::new(times);
        (HostSpeed::on(processors.clone()), processors)
    }

    #[test]
    fn the_first_search_finds_the_fastest_of_all() {
        let (host, processors) = host(&[1.9, 1.0, 1.8, 1.2]);
        assert!(host.settle());
        assert_eq!(processors.own(), 1);
    }

    #[test]
    fn a_slowed_processor_is_left_for_the_first_that_is_not_slowed() {
        let (host, processors) = host(&[1.0; 4]);
        assert!(!host.settle());
        processors.set(&[1.1, 1.1, 1.1, 1.9]);
        assert!(host.settle());
        assert_eq!(processors.own(), 2);
        processors.pieces();
        assert!(!host.settle());
        assert_eq!(processors.pieces(), 1, "one piece of work shows that nothing slows it");
        processors.set(&[1.0, 1.0, 1.25, 1.0]);
        assert!(!host.settle(), "a clock that other cores share moves by as much");
    }

    #[test]
    fn one_piece_that_is_interrupted_moves_nothing() {
        #[derive(Debug)]
        struct Interrupted(Mutex<std::vec::IntoIter<f64>>);
        impl Processors for Interrupted {
            fn kept_on(&self) -> Option<usize> {
                Some(0)
            }
            fn choices(&self) -> Vec<usize> {
                vec![1, 0]
            }
            fn stay_on(&self, cpu: usize) {
                assert_eq!(cpu, 0);
            }
            fn work(&self) -> f64 {
                self.0.lock().unwrap().next().unwrap()
            }
        }
        let host = HostSpeed::on(Interrupted(Mutex::new(vec![1.0, 1.9, 1.1].into_iter())));
        assert_eq!(host.slowdown(), 1.0);
        assert!(!host.settle());
    }

    #[test]
    fn where_all_are_slowed_it_takes_the_fastest_and_rests() {
        let (processors, mut state, mut now) = (Scripted::new(&[1.0; 4]), State::default(), Instant::now());
        let mut choose = |times: &[f64], later: Duration| {
            processors.set(times);
            now += later;
            let chosen = state.choose(&processors, processors.own(), now);
            processors.stay_on(chosen);
            chosen
        };
        assert_eq!(choose(&[1.0; 4], Duration::ZERO), 3);
        assert_eq!(choose(&[1.9, 1.5, 1.8, 1.9], Duration::ZERO), 1);
        let one_is_free = [1.0, 1.9, 1.9, 1.9];
        assert_eq!(choose(&one_is_free, Duration::ZERO), 1, "no search");
        assert_eq!(choose(&one_is_free, REST), 0);
    }

    #[test]
    fn the_account_holds_half_a_second_and_a_share_of_the_time() {
        let state = State { charged: 2.0, ..State::default() };
        assert!(state.left(0.0) < 0.0 && (state.left(50.0) - 3.5).abs() < 1e-9);
        assert_eq!(State::default().left(0.0), AT_FIRST);
        let (host, processors) = host(&[1.0; 4]);
        host.settle();
        processors.set(&[1.0, 1.0, 1.0, 1.9]);
        assert!(!host.settle_before(1e6) && processors.own() == 3, "the account does not hold such a round");
        assert!(host.settle_before(0.1));
    }

    #[test]
    fn a_thread_that_is_not_kept_on_a_processor_is_not_moved() {
        let host = HostSpeed::new();
        host.slowdown();
        assert!(!host.settle() && !host.settle_before(0.0));
    }

    #[test]
    fn a_thread_that_is_kept_stays_on_one_of_its_processors() {
        let host = HostSpeed::new();
        affinity::kept(|| {
            host.settle();
            host.settle_before(0.0);
            assert!(affinity::kept_on().is_none_or(|cpu| affinity::choices().contains(&cpu)));
        });
    }
}
