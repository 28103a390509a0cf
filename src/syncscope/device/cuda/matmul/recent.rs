//! A map of a bounded number of entries: a new one takes the place of the one that was used least recently.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};

/// At most `limit` entries.
pub(super) struct Recent<K, V> {
    limit: usize,
    entries: HashMap<K, Entry<V>>,
    /// Counts uses.
    uses: AtomicU64,
}

struct Entry<V> {
    value: V,
    /// The number of its last use.
    used: AtomicU64,
}

impl<K: Eq + Hash + Clone, V> Recent<K, V> {
    /// No entries, and room for `limit` of them.
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, entries: HashMap::new(), uses: AtomicU64::new(0) }
    }

    /// The value of `key`, which has now been used.
    #[inline]
    pub(super) fn get(&self, key: &K) -> Option<&V> {
        let entry = self.entries.get(key)?;
        entry.used.store(self.uses.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        Some(&entry.value)
    }

    /// All entries, in no order. None has been used by this.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.entries.iter().map(|(key, entry)| (key, &entry.value))
    }

    /// Adds an entry; gives the one that had to go.
    pub(super) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let full = self.entries.len() >= self.limit && !self.entries.contains_key(&key);
        let oldest = || self.entries.iter().min_by_key(|(_, entry)| entry.used.load(Ordering::Relaxed));
        let gone = full.then(oldest).flatten().map(|(key, _)| key.clone());
        let gone = gone.and_then(|key| self.entries.remove(&key));
        let used = AtomicU64::new(self.uses.fetch_add(1, Ordering::Relaxed));
        let replaced = self.entries.insert(key, Entry { value, used });
        gone.or(replaced).map(|entry| entry.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_that_was_used_least_recently_makes_room() {
        let mut recent = Recent::new(2);
        assert_eq!((recent.insert("a", 1), recent.insert("b", 2)), (None, None));
        assert_eq!(recent.get(&"a"), Some(&1));
        assert_eq!(recent.insert("c", 3), Some(2));
        assert_eq!([recent.get(&"a"), recent.get(&"b"), recent.get(&"c")], [Some(&1), None, Some(&3)]);
    }

    #[test]
    fn a_thousand_entries_leave_no_more_than_the_limit() {
        let mut recent = Recent::new(7);
        let gone = (0..1000).filter_map(|i| recent.insert(i, i)).count();
        assert_eq!((gone, recent.entries.len()), (993, 7));
    }

    #[test]
    fn a_key_that_is_there_is_replaced() {
        let mut recent = Recent::new(2);
        recent.insert("a", 1);
        recent.insert("b", 2);
        assert_eq!(recent.insert("a", 3), Some(1));
        assert_eq!((recent.get(&"a"), recent.get(&"b")), (Some(&3), Some(&2)));
    }
}
