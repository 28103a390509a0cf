//! Lists in the order in which things come first.

use std::borrow::Borrow;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;

/// Each item once.
pub(super) fn each_once<T: Clone + Eq + Hash>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut seen = HashSet::new();
    items.into_iter().filter(|item| seen.insert(item.clone())).collect()
}

/// `a, b and c`.
pub(super) fn listed<S: Borrow<str>>(names: &[S]) -> String {
    match names {
        [all @ .., last] if !all.is_empty() => format!("{} and {}", all.join(", "), last.borrow()),
        _ => names.concat(),
    }
}

/// The items of each key.
pub(super) fn grouped<K: Clone + Eq + Hash, T>(items: impl IntoIterator<Item = (K, T)>) -> Vec<(K, Vec<T>)> {
    let mut groups: Vec<(K, Vec<T>)> = Vec::new();
    let mut places: HashMap<K, usize> = HashMap::new();
    for (key, item) in items {
        let place = *places.entry(key).or_insert_with_key(|key| {
            groups.push((key.clone(), Vec::new()));
            groups.len() - 1
        });
        groups[place].1.push(item);
    }
    groups
}
