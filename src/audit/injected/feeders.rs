//! The threads that feed a device: those that made a watched call or a watched launch a short while ago.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::system;

/// The most that are known at a time; what is left out has no samples.
pub(crate) const MAX_FEEDERS: usize = 8;
/// For how long a thread feeds after a call, in nanoseconds.
const RECENT: u64 = 2_000_000_000;

struct Feeder {
    /// 0 for none.
    thread: AtomicU32,
    /// When its last call was.
    last: AtomicU64,
    /// Its state of Python, 0 where it has none.
    state: AtomicUsize,
}

static FEEDERS: [Feeder; MAX_FEEDERS] =
    [const { Feeder { thread: AtomicU32::new(0), last: AtomicU64::new(0), state: AtomicUsize::new(0) } }; MAX_FEEDERS];

/// This thread makes a call now.
pub(crate) fn calls(now: u64, state: usize) {
    thread_local!(static OWN: Cell<usize> = const { Cell::new(0) });
    let thread = system::thread();
    // A thread at its very end has no variables any more.
    let known = &FEEDERS[OWN.try_with(Cell::get).unwrap_or(0)];
    let feeder = match known.thread.load(Ordering::Relaxed) == thread {
        true => known,
        false => {
            let Some(place) = take_place(thread, now) else { return };
            let _ = OWN.try_with(|own| own.set(place));
            &FEEDERS[place]
        }
    };
    feeder.state.store(state, Ordering::Relaxed);
    feeder.last.store(now, Ordering::Relaxed);
}

/// A place that was free, or is that of a thread which feeds no more.
fn take_place(thread: u32, now: u64) -> Option<usize> {
    FEEDERS.iter().position(|feeder| {
        let before = feeder.thread.load(Ordering::Relaxed);
        let is_free = before == 0 || feeder.last.load(Ordering::Relaxed).saturating_add(RECENT) < now;
        is_free && feeder.thread.compare_exchange(before, thread, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    })
}

/// The number and the state of Python of each thread that feeds now. The state may have ended meanwhile.
pub(crate) fn recent(now: u64) -> impl Iterator<Item = (u32, usize)> {
    FEEDERS.iter().filter_map(move |feeder| {
        let thread = feeder.thread.load(Ordering::Relaxed);
        let is_recent = feeder.last.load(Ordering::Relaxed).saturating_add(RECENT) >= now;
        (thread != 0 && is_recent).then(|| (thread, feeder.state.load(Ordering::Relaxed)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_feeds_for_a_while_after_its_last_call_and_then_another_has_its_place() {
        let begin = 10 * RECENT;
        let numbers: Vec<u32> = (0..2 * MAX_FEEDERS)
            .map(|number| {
                let call = move || {
                    calls(begin, number);
                    system::thread()
                };
                std::thread::spawn(call).join().unwrap_or(0)
            })
            .collect();
        let known = |now| recent(now).collect::<Vec<_>>();
        let expected: Vec<_> = numbers.iter().copied().zip(0..).take(MAX_FEEDERS).collect();
        assert_eq!(known(begin + RECENT), expected);
        let later = begin + RECENT + 1;
        assert_eq!(known(later), []);
        calls(later, 7);
        assert_eq!(known(later), [(system::thread(), 7)]);
    }
}
