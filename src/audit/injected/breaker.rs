//! How Python's main thread is told that there is a call for it.
//!
//! # Method
//! A thread that runs Python looks at one flag (`eval_breaker`) for whether there is anything else to do. Before
//! Python 3.13 a call that another thread posts does not set the flag: the main thread finds the call when it takes the
//! interpreter's lock the next time. So this library sets the flag, as each thread does that wants the lock. The interpreter
//! computes the flag anew when it has made the calls, and whenever the lock is taken. A thread that finds nothing to do goes
//! on.
//!
//! No function sets the flag, and its place depends on the version (`pycore_interp.h`, `pycore_ceval_state.h`). It is looked for
//! once, with the lock held, and used only where all that lies around it is what should lie there. Else the main thread is not
//! asked at all.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::python::Python;

/// The words of an interpreter's state that are looked at. All versions have more.
const WORDS: usize = 512;
/// How many posted calls have room.
const ROOM: usize = 32;

/// How the main thread is told.
#[derive(Clone, Copy)]
pub(crate) enum Breaker {
    /// That is not known (yet).
    Unknown,
    /// The interpreter does it.
    Needless,
    /// By this flag.
    Flag(&'static AtomicU32),
}

impl Breaker {
    /// Looks for the flag.
    ///
    /// # Safety
    /// The caller holds the lock.
    pub(crate) unsafe fn find(python: &Python) -> Self {
        let minor = match python.minor_version() {
            Some(13..) => return Self::Needless,
            Some(minor) => minor,
            None => return Self::Unknown,
        };
        // The main thread finds it sooner or later.
        if minor < 12 && !python.post(nothing) {
            return Self::Unknown;
        }
        // Safety: the caller's promise. The main interpreter's state is there, and is longer than what is looked at.
        unsafe {
            let state = python.main_interpreter().cast::<u64>();
            let words: [u64; WORDS] = std::array::from_fn(|place| state.add(place).read_volatile());
            let limit = python.recursion_limit();
            let place = match minor {
                12 => before_lock(&words, limit, |address| python.lock.contains(&(address as usize))),
                _ => before_calls(&words, limit, nothing as *const c_void as u64, minor == 9),
            };
            place.map_or(Self::Unknown, |place| Self::Flag(AtomicU32::from_ptr(state.cast::<u32>().add(place))))
        }
    }

    /// Tells the main thread, after a call was posted.
    pub(crate) fn set(self) {
        if let Self::Flag(flag) = self {
            flag.store(1, Ordering::SeqCst);
        }
    }
}

/// By which the place of posted calls is found.
unsafe extern "C" fn nothing(_: *mut c_void) -> c_int {
    0
}

fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

fn are_flags(numbers: &[u32]) -> bool {
    numbers.iter().all(|number| *number <= 1)
}

/// The one place that fits.
fn only(mut places: impl Iterator<Item = usize>) -> Option<usize> {
    let place = places.next()?;
    places.next().is_none().then_some(place)
}

/// The place of the flag in 3.12, in halves of words. There lie: flag, request for the lock; recursion limit, nothing; the
/// address of the lock; whether that is its own, whether garbage is to be collected; whether calls are made, nothing; the
/// address of a lock; whether there are calls, whether there is an exception.
fn before_lock(words: &[u64; WORDS], limit: u32, is_lock: impl Fn(u64) -> bool) -> Option<usize> {
    let fits = |at: &usize| {
        let [flags, found, lock, owned, made, other, calls] = [0, 1, 2, 3, 4, 5, 6].map(|next| words[at + next]);
        let [own, collection] = halves(owned);
        [flags, calls].iter().all(|word| are_flags(&halves(*word)))
            && halves(found)[0] == limit
            && is_lock(lock)
            && own == 1
            && are_flags(&[collection, halves(made)[0]])
            && other != 0
    };
    only((0..WORDS - 6).filter(fits)).map(|place| 2 * place)
}

/// The place of the flag, in halves of words, where the last one of the posted calls is `call`. Before 3.12 there lie: recursion
/// limit, in 3.9 whether there is tracing, flag, request for the lock; the address of a lock; whether there are calls, whether
/// there is an exception; the calls, each with an argument; the first of them, the end.
fn before_calls(words: &[u64; WORDS], limit: u32, call: u64, has_tracing: bool) -> Option<usize> {
    let fits = |at: &usize| {
        let ([found, second], [third, fourth]) = (halves(words[*at]), halves(words[at + 1]));
        let others = if has_tracing { [third, fourth] } else { [second, third] };
        let ([is_there, exception], [first, end]) = (halves(words[at + 3]), halves(words[at + 4 + 2 * ROOM]));
        let end = end as usize;
        found == limit
            && are_flags(&others)
            && words[at + 2] != 0
            && is_there == 1
            && are_flags(&[exception])
            && first < ROOM as u32
            && end < ROOM
            && words[at + 4 + 2 * ((end + ROOM - 1) % ROOM)] == call
    };
    only((0..WORDS - 4 - 2 * ROOM).filter(fits)).map(|place| 2 * place + if has_tracing { 2 } else { 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(low: u32, high: u32) -> u64 {
        u64::from(high) << 32 | u64::from(low)
    }

    #[test]
    fn the_flag_is_found_where_all_that_lies_around_it_is_as_in_the_version() {
        const CALL: u64 = 0x7f00_1234_5678;
        for has_tracing in [true, false] {
            let mut words = [0; WORDS];
            words[40..44].copy_from_slice(&[word(1000, 0), word(1, 0), 0x55, word(1, 0)]);
            words[44 + 2 * 31] = CALL;
            words[44 + 2 * ROOM] = word(31, 0);
            let expected = if has_tracing { 82 } else { 81 };
            assert_eq!(before_calls(&words, 1000, CALL, has_tracing), Some(expected));
            for (at, other) in [(40, word(999, 0)), (41, word(7, 7)), (42, 0), (43, 0), (43, word(1, 9)), (106, 8)] {
                let mut words = words;
                words[at] = other;
                assert_eq!(before_calls(&words, 1000, CALL, has_tracing), None, "{at}");
            }
        }
    }

    #[test]
    fn the_flag_of_3_12_is_found_by_what_follows_it() {
        const AT: usize = 30;
        let known = [word(0, 1), word(1000, 0), 0x55, word(1, 0), 0, 0x77, word(0, 0)];
        let place = |words: &[u64; WORDS]| before_lock(words, 1000, |address| address == 0x55);
        let mut words = [0; WORDS];
        words[AT..AT + known.len()].copy_from_slice(&known);
        assert_eq!(place(&words), Some(2 * AT));
        for (at, other) in [(0, 2), (1, 999), (2, 0x56), (3, 0), (4, 2), (5, 0), (6, word(0, 2))] {
            let mut words = words;
            words[AT + at] = other;
            assert_eq!(place(&words), None, "{at}");
        }
    }
}
