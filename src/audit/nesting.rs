//! Calls within calls: a library's call, and those of the driver by which it does its work.
//!
//! # Method
//! What a call does its work by is a part of it, and only the outer call is kept: it is the one that the program made. A call
//! within it that has a cost of another kind (code that is loaded at a launch) is kept, and its time is not the outer one's.
//!
//! # Limits
//! Calls of this library itself are left as they are: one within another tells of a wait in it.

use std::collections::HashMap;

use super::class::Class;
use super::recording::RecordedCall;

/// The most calls around one: no program has so many, and each is looked at for each call within. The outermost is forgotten.
const MAX_DEEP: usize = 64;

/// The calls, in the order of their enters, that contain the next one of their thread.
#[derive(Default)]
struct Open(HashMap<u32, Vec<usize>>);

impl Open {
    /// Those that have not ended when `call` does, the innermost last.
    fn around(&mut self, calls: &[RecordedCall], call: &RecordedCall) -> &mut Vec<usize> {
        let open = self.0.entry(call.thread).or_default();
        open.retain(|place| calls.get(*place).is_some_and(|outer| call.exit <= outer.exit));
        if open.len() == MAX_DEEP {
            open.remove(0);
        }
        open
    }
}

/// The calls without those that are a part of another. They are in the order of their enters, of two the longer first.
pub(crate) fn merged(calls: Vec<RecordedCall>) -> Vec<RecordedCall> {
    let mut kept: Vec<RecordedCall> = Vec::with_capacity(calls.len());
    let mut open = Open::default();
    for call in calls {
        let around = open.around(&kept, &call);
        match around.iter().copied().find(|place| is_part(&kept[*place], &call)) {
            Some(place) => {
                let outer = &mut kept[place];
                outer.stack = outer.stack.or(call.stack);
                // The copy may have the number of either.
                if matches!(call.class, Class::Copy { .. }) {
                    outer.correlation = outer.correlation.max(call.correlation);
                }
            }
            None => {
                around.push(kept.len());
                kept.push(call);
            }
        }
    }
    kept
}

/// Whether a call does its work by one within it.
fn is_part(outer: &RecordedCall, inner: &RecordedCall) -> bool {
    Class::is_known(&outer.name)
        && match (outer.class, inner.class) {
            (Class::Copy { .. }, Class::Copy { .. }) | (_, Class::Other) => true,
            // What can wait by itself does so by waiting.
            (Class::Copy { .. } | Class::Free | Class::Unlock | Class::Implicit, inner) if inner.is_explicit() => true,
            (outer, inner) => outer == inner || (outer.is_explicit() && inner.is_explicit()),
        }
}

/// Of each call, how much of its time is that of calls within it.
pub(crate) fn times_within(calls: &[RecordedCall]) -> Vec<u64> {
    let mut within = vec![0; calls.len()];
    let mut open = Open::default();
    for (place, call) in calls.iter().enumerate() {
        let around = open.around(calls, call);
        if let Some(outer) = around.last().copied().filter(|outer| Class::is_known(&calls[*outer].name)) {
            within[outer] += call.exit - call.enter;
        }
        around.push(place);
    }
    within
}

#[cfg(test)]
mod tests {
    use super::super::recording::by_hand::call;
    use super::*;

    fn kept(calls: &[RecordedCall]) -> Vec<(&str, u64)> {
        calls.iter().map(|call| (&*call.name, call.correlation)).collect()
    }

    #[test]
    fn what_a_call_does_its_work_by_is_a_part_of_it_also_behind_others() {
        let calls = vec![
            call("cudaMemcpy", (0, 100), 1),
            call("cuCtxGetCurrent", (5, 6), 2),
            call("cuMemcpyHtoDAsync_v2", (10, 50), 3),
            call("cuStreamSynchronize", (50, 90), 4),
            call("cudaMemcpy", (200, 300), 5),
        ];
        assert_eq!(kept(&merged(calls)), [("cudaMemcpy", 3), ("cudaMemcpy", 5)]);
    }

    #[test]
    fn a_call_of_another_kind_is_kept_and_its_time_is_not_the_outer_ones() {
        let calls = merged(vec![
            call("cudaLaunchKernel", (0, 100), 1),
            call("cuLibraryLoadData", (5, 85), 2),
            call("cuMemAlloc_v2", (10, 30), 3),
            call("cuLaunchKernel", (90, 95), 4),
        ]);
        assert_eq!(kept(&calls), [("cudaLaunchKernel", 1), ("cuLibraryLoadData", 2), ("cuMemAlloc_v2", 3)]);
        assert_eq!(times_within(&calls), [80, 20, 0]);
    }

    #[test]
    fn calls_of_another_thread_and_of_this_library_are_no_parts() {
        let other = RecordedCall { thread: 2, ..call("cuStreamSynchronize", (10, 20), 2) };
        let own = [call("item", (200, 300), 3), call("item", (210, 290), 4)];
        let calls = merged([vec![call("cudaStreamSynchronize", (0, 100), 1), other], own.to_vec()].concat());
        assert_eq!((calls.len(), times_within(&calls)), (4, vec![0; 4]));
    }

    /// As no program makes them: of the calls around one only the innermost are looked at.
    #[test]
    fn of_calls_that_lie_in_each_other_without_end_each_has_the_time_of_the_one_within() {
        let all: Vec<RecordedCall> = (0..1_000).map(|depth| call("cudaFree", (depth, 5_000 - depth), depth)).collect();
        let within = times_within(&all);
        assert!((0..999).all(|place| within[place] == all[place + 1].exit - all[place + 1].enter));
        let mut open = Open::default();
        for (place, call) in all.iter().enumerate() {
            open.around(&all, call).push(place);
            assert!(open.0[&1].len() <= MAX_DEEP);
        }
    }
}
