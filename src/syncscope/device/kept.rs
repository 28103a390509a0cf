//! What a recording keeps, within a bound of memory.
//!
//! # Method
//! Whatever is kept first takes its bytes from a [`ByteBudget`]: its own, those of the index by which it is found, and those of
//! the spans that it becomes, with their texts. What finds no room is counted as dropped. So the bound holds whatever is
//! kept: calls, work, threads or names. Calls and work have a budget each, so that neither leaves the other without.
//!
//! # Limits
//! Texts are counted as an allocator rounds them. What a driver keeps of its own (the events around calls, the buffers of
//! CUPTI) is not counted here.

#![cfg_attr(not(feature = "cupti"), allow(dead_code, reason = "no other source of times has so much to keep"))]

use std::ops::Deref;
use std::sync::Arc;

/// What a recording and its timeline take at most, in bytes.
pub(crate) const MAX_BYTES: usize = 192 << 20;

/// What lists and indexes take beside their entries.
const FIXED_BYTES: usize = 8 << 20;

/// The size of a span, which a timeline makes of what is kept here.
pub(crate) const SPAN_BYTES: usize = 160;

/// An entry of an index by correlation, in a table that has just grown to be half full.
pub(crate) const INDEX_BYTES: usize = 64;

/// The name of a call in a span of its work.
pub(crate) const CALL_NAME_BYTES: usize = text_bytes(32);

/// Bytes that can still be taken.
#[derive(Debug)]
pub(crate) struct ByteBudget(usize);

impl Default for ByteBudget {
    /// For one of the two that have one.
    fn default() -> Self {
        Self((MAX_BYTES - FIXED_BYTES) / 2)
    }
}

impl ByteBudget {
    /// Takes all of `bytes`, or nothing.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        let left = self.0.checked_sub(bytes);
        self.0 = left.unwrap_or(self.0);
        left.is_some()
    }

    /// Gives bytes back that were taken.
    pub(crate) fn give_back(&mut self, bytes: usize) {
        self.0 += bytes;
    }
}

/// What an allocator takes for a text of `len` bytes.
pub(crate) const fn text_bytes(len: usize) -> usize {
    len.next_multiple_of(16) + 16
}

/// The name of work: one of this library's, or one that many pieces of work share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Own(&'static str),
    Told(Arc<str>),
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Name::Own(name) => name,
            Name::Told(name) => name,
        }
    }
}

/// A list that never moves what it has: it grows without a moment in which it takes its memory twice, and gives it back as it
/// is consumed.
#[derive(Debug)]
pub(crate) struct ChunkedVec<T>(Vec<Vec<T>>);

impl<T> ChunkedVec<T> {
    pub(crate) fn push(&mut self, value: T) {
        match self.0.last_mut() {
            Some(chunk) if chunk.len() < chunk.capacity() => chunk.push(value),
            _ => {
                let mut chunk = Vec::with_capacity(16 << self.0.len().min(6));
                chunk.push(value);
                self.0.push(chunk);
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(Vec::len).sum()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flatten()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().flatten()
    }

    /// Its values, of which each chunk is freed when it has been gone through.
    pub(crate) fn into_values(self) -> impl Iterator<Item = T> {
        self.0.into_iter().flatten()
    }

    /// Forgets what does not fit.
    pub(crate) fn retain(&mut self, fits: impl Fn(&T) -> bool) {
        *self = std::mem::take(self).into_values().filter(fits).collect();
    }

    pub(crate) fn into_vec(self) -> Vec<T> {
        let mut all = Vec::with_capacity(self.len());
        all.extend(self.into_values());
        all
    }
}

impl<T> Default for ChunkedVec<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> FromIterator<T> for ChunkedVec<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut all = Self::default();
        values.into_iter().for_each(|value| all.push(value));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_taken_whole_or_not_at_all() {
        let mut room = ByteBudget(10);
        assert_eq!([room.take(7), room.take(4), room.take(3), room.take(1)], [true, false, true, false]);
        room.give_back(1);
        assert!(room.take(1));
    }

    #[test]
    fn a_chunked_vector_keeps_its_order_and_forgets_what_does_not_fit() {
        let mut values: ChunkedVec<usize> = (0..5000).collect();
        assert!(values.iter().copied().eq(0..5000));
        values.retain(|x| x % 2 == 0);
        assert_eq!((values.len(), values.iter().nth(9).copied()), (2500, Some(18)));
        assert_eq!(values.into_vec().len(), 2500);
    }
}
