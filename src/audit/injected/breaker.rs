//! How Python's main thread is told that there is a call for it.
//!
//! # Method
//! A thread that runs Python looks at one flag (`eval_breaker`) for whether there is anything else to do. Before Python 3.13 a call
//! that another thread posts does not set the flag: the main thread finds the call when it takes the interpreter's lock the next
//! time. There the flag is set here, as other threads set it that want the lock. The interpreter sets it anew each time that it
//! made calls. A thread that finds nothing to do goes on.
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
                12 => is_head(&words, limit, |address| python.lock.contains(&(address as usize))).then_some(0),
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

/// Whether the state begins with the flag, as in 3.12: flag, request for the lock, recursion limit, nothing; the address of the lock;
/// whether that is its own.
fn is_head(words: &[u64], limit: u32, is_lock: impl Fn(u64) -> bool) -> bool {
    let ([flag, request], [found, _], [own, _]) = (halves(words[0]), halves(words[1]), halves(words[3]));
    are_flags(&[flag, request]) && found == limit && is_lock(words[2]) && own == 1
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
    let mut places = (0..WORDS - 4 - 2 * ROOM).filter(fits);
    let place = places.next()?;
    places.next().is_none().then_some(2 * place + if has_tracing { 2 } else { 1 })
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
    fn a_state_that_begins_with_the_flag_has_the_lock_behind_it() {
        let words = [word(0, 1), word(1000, 0), 0x55, word(1, 0)];
        assert!(is_head(&words, 1000, |address| address == 0x55));
        assert!(!is_head(&words, 1000, |address| address == 0x56));
        assert!(!is_head(&words, 999, |address| address == 0x55));
        assert!(!is_head(&[word(0, 2), words[1], words[2], words[3]], 1000, |address| address == 0x55));
    }
}
