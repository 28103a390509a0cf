//! PyTorch's operators around a call: functions of its library (`at::_ops::nonzero::call`), which the native stack holds.
//!
//! The thread that makes the call only walks its stack. What function an address lies in is looked up by the watcher, once each: in a library
//! of a hundred thousand names that takes most of a millisecond.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::file::{self, Fields};
use crate::format::tag;
use crate::{python, unwind};

/// The most addresses of a stack, the innermost, and the most stacks and addresses that are kept apart.
const DEPTH: usize = 64;
const MOST: usize = 1 << 14;
const _: () = assert!(DEPTH * size_of::<u64>() <= file::TEXT);
/// What the names of operators begin with, as the linker has them: their length and the name itself follow.
const OPERATORS: &[u8] = b"_ZN2at4_ops";
/// How many addresses are looked up at a time, and at the end of the process.
pub(crate) const SOME: usize = 4;
pub(crate) const LAST: usize = 64;

#[derive(Default)]
struct Known {
    stacks: HashMap<Vec<usize>, u32>,
    /// Whether an address was looked up, and what was found.
    addresses: HashMap<usize, Option<String>>,
    /// Those that were not.
    new: Vec<usize>,
}

static KNOWN: Mutex<Option<Known>> = Mutex::new(None);

fn known() -> MutexGuard<'static, Option<Known>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Another file begins, which holds no stack and no operator. What is known of addresses stays so.
pub(crate) fn forget() {
    let mut known = known();
    let known = known.get_or_insert_default();
    known.stacks.clear();
    for (address, operator) in &known.addresses {
        write(*address, operator.as_deref());
    }
}

/// The number of the native stack of this thread; 0 where there is no Python, or no room.
pub(crate) fn here() -> u32 {
    if python::running().is_none() {
        return 0;
    }
    let addresses: Vec<usize> = unwind::addresses().into_iter().take(DEPTH).collect();
    let mut known = known();
    let known = known.get_or_insert_default();
    if let Some(number) = known.stacks.get(&addresses) {
        return *number;
    }
    if known.stacks.len() >= MOST || known.addresses.len() >= MOST {
        return 0;
    }
    let number = known.stacks.len() as u32 + 1;
    let text: Vec<u8> = addresses.iter().flat_map(|address| (*address as u64).to_le_bytes()).collect();
    Fields::new().u32(number).write(tag::NATIVE, &text);
    // Operators are among the innermost, which are looked up first.
    for address in addresses.iter().rev() {
        if !known.addresses.contains_key(address) {
            known.addresses.insert(*address, None);
            known.new.push(*address);
        }
    }
    known.stacks.insert(addresses, number);
    number
}

/// Looks up so many of the addresses that are new, for the watcher.
pub(crate) fn look_up(most: usize) {
    for _ in 0..most {
        // No lock is held meanwhile: it is the program's threads that would wait.
        let Some(address) = known().as_mut().and_then(|known| known.new.pop()) else { return };
        let operator = unwind::place(address).and_then(|place| operator(place.function));
        write(address, operator.as_deref());
        if let Some(known) = known().as_mut() {
            known.addresses.insert(address, operator);
        }
    }
}

fn write(address: usize, operator: Option<&str>) {
    if let Some(operator) = operator {
        Fields::new().u64(address as u64).write(tag::OPERATOR, operator.as_bytes());
    }
}

/// PyTorch's name of an operator, by a function of its library. An overload's name follows the operator's, and begins with a capital letter
/// mostly: `index_Tensor`.
fn operator(function: &[u8]) -> Option<String> {
    let rest = str::from_utf8(function.strip_prefix(OPERATORS)?).ok()?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let name = rest.get(digits..)?.get(..rest[..digits].parse().ok()?)?;
    let is_overload = |at: &usize| name[at + 1..].starts_with(|first: char| first.is_ascii_uppercase());
    let end = name.match_indices('_').map(|(at, _)| at).find(is_overload).unwrap_or(name.len());
    Some(format!("aten::{}", &name[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_is_told_by_its_function_without_the_overload() {
        for (function, expected) in [
            ("_ZN2at4_ops19_local_scalar_dense4callERKNS_6TensorE", Some("aten::_local_scalar_dense")),
            ("_ZN2at4_ops12index_Tensor10redispatchE", Some("aten::index")),
            ("_ZN2at4_ops11add__Tensor4callE", Some("aten::add_")),
            ("_ZN2at4_ops7nonzero4callE", Some("aten::nonzero")),
            ("_ZN2at6native7nonzeroE", None),
            ("_ZN2at4_ops99nonzero4callE", None),
            ("_ZN2at4_ops", None),
            ("", None),
        ] {
            assert_eq!(operator(function.as_bytes()).as_deref(), expected, "{function}");
        }
    }
}
