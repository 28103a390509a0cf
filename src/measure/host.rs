//! How fast the host computes now, against how fast it has computed.
//!
//! # Method
//! The host does a fixed piece of work, some tens of microseconds long, and takes its time. The shortest time so far is its
//! best. While the least of three pieces in a row takes more than 1.3 times the best, the host is slowed: its clock is held
//! back, or the processor computes for somebody else too, as in a virtual machine or beside another thread of the same core.
//! The work needs no memory and no system call, so that nothing else explains the difference.
//!
//! The work is done before each sample, too: a host that has waited has to wake and to raise its clock, and both would be in
//! the sample. A warm-up goes on while the host is slowed, as far as the account allows: half a second, and 5 % of the time
//! since the first piece of work. No sample decides this: only the work does.
//!
//! # What it does not cover
//! A host that is slowed from the first piece to the last has its best there. Caches, buses and the memory that others use
//! are not seen. What slows the host after a warm-up is in the samples.

use std::hint::black_box;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// From how many times its best on a piece of work shows a host that is slowed. A processor that does the work of two threads
/// takes 1.5 to 2 times as long; one whose other cores begin to compute lowers its clock by less.
const SLOWED: f64 = 1.3;
/// The pieces of which the shortest counts: an interrupt lengthens one of them.
const PIECES: usize = 3;
/// The steps in a piece of work: fewer where the compiler does not make them fast.
const STEPS: u64 = if cfg!(debug_assertions) { 1_000 } else { 20_000 };
/// What the account holds from the beginning, in seconds, and what it gains in a second.
const AT_FIRST: f64 = 0.5;
const GAINED: f64 = 0.05;

/// Watches the host through a run.
#[derive(Debug)]
pub(crate) struct HostSpeed {
    begun: Instant,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The shortest time of a piece of work, in seconds.
    best: f64,
    /// For how many seconds warm-ups have gone on because the host was slowed.
    waited: f64,
}

impl HostSpeed {
    /// A host that nothing is known of.
    #[cfg(any(test, feature = "report"))]
    pub(crate) fn new() -> Self {
        Self { begun: Instant::now(), state: Mutex::new(State { best: f64::INFINITY, waited: 0.0 }) }
    }

    /// A host that is slowed for ever, whose account holds so many seconds.
    #[cfg(test)]
    pub(super) fn slowed(account: f64) -> Self {
        // Nothing is as fast as this.
        Self { state: Mutex::new(State { best: 1e-12, waited: AT_FIRST - account }), ..Self::new() }
    }

    /// Keeps the host busy for a piece of work.
    pub(super) fn keep_busy(&self) {
        self.state().slowdown(piece());
    }

    /// Whether a warm-up goes on because the host is slowed, where its next round takes `round` seconds, and the account holds
    /// so much. What it takes then is [`charge`](Self::charge)d.
    pub(super) fn is_waited_for(&self, round: f64) -> bool {
        let elapsed = self.begun.elapsed().as_secs_f64();
        let mut state = self.state();
        state.is_slowed(piece) && round <= state.left(elapsed)
    }

    /// Takes what a round took from the account.
    pub(super) fn charge(&self, seconds: f64) {
        self.state().waited += seconds;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// How many times its best a piece of work took.
    fn slowdown(&mut self, seconds: f64) -> f64 {
        self.best = self.best.min(seconds);
        if self.best > 0.0 { seconds / self.best } else { 1.0 }
    }

    /// Whether the host is slowed, by pieces of work that take what `piece` says.
    fn is_slowed(&mut self, mut piece: impl FnMut() -> f64) -> bool {
        (0..PIECES).all(|_| self.slowdown(piece()) > SLOWED)
    }

    /// What the account holds, so many seconds after the beginning.
    fn left(&self, elapsed: f64) -> f64 {
        AT_FIRST + GAINED * elapsed - self.waited
    }
}

/// The seconds of a piece of work: eight chains beside each other, more than a core computes at once, so that another thread
/// of the same core takes its share of it.
fn piece() -> f64 {
    let start = Instant::now();
    let mut chains = black_box([1_u64, 2, 3, 4, 5, 6, 7, 8]);
    for step in 0..STEPS {
        for chain in &mut chains {
            *chain = (*chain ^ (*chain << 13)).wrapping_add(step);
        }
    }
    black_box(chains);
    start.elapsed().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> State {
        State { best: f64::INFINITY, waited: 0.0 }
    }

    /// Whether a host whose best is 1 is slowed, by pieces of these lengths.
    fn slowed(pieces: [f64; 3]) -> bool {
        let (mut host, mut pieces) = (host(), pieces.into_iter());
        host.slowdown(1.0);
        host.is_slowed(|| pieces.next().unwrap())
    }

    #[test]
    fn a_host_is_slowed_where_every_piece_of_work_takes_longer_than_its_best() {
        assert!(slowed([1.9, 1.4, 2.0]));
        assert!(!slowed([1.9, 1.1, 2.0]), "two were interrupted");
        assert!(!slowed([1.2, 1.9, 1.9]), "a clock that other cores share moves by as much");
        assert!(!host().is_slowed(|| 3.0), "its first work is its best");
    }

    #[test]
    fn the_account_holds_half_a_second_and_a_share_of_the_time() {
        let mut host = host();
        assert_eq!(host.left(0.0), AT_FIRST);
        host.waited = 2.0;
        assert!(host.left(0.0) < 0.0 && (host.left(50.0) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_host_that_is_not_slowed_is_not_waited_for_and_an_empty_account_waits_for_none() {
        let host = HostSpeed::new();
        host.keep_busy();
        assert!(host.state().best.is_finite());
        let host = HostSpeed::slowed(1.0);
        assert!(host.is_waited_for(0.9) && !host.is_waited_for(1e3));
        host.charge(1e6);
        assert!(!host.is_waited_for(0.0));
    }
}
