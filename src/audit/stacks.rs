//! The stacks and operators of calls of which none was taken.
//!
//! # Method
//! A stack that a sample found while a call was in progress is the call's. What is left has the stack of the calls that are made
//! at the same place of an iteration: of the same function on the same thread, behind the same two pieces of work, where all of these that have a
//! stack have the same place. The operator is that of the calls of the same function at the same place, where all known ones agree.

use std::collections::HashMap;
use std::sync::Arc;

use super::class::Class;
use super::places;
use super::recording::{Process, RecordedCall};

/// What calls at one place of an iteration have in common.
type Like = (Arc<str>, u32, Option<u32>, [Option<Arc<str>>; 2]);

/// Gives calls the stacks that can be told.
pub(crate) fn complete(process: &mut Process) {
    let lacks = |call: &RecordedCall| call.stack.is_none() && call.class != Class::Record;
    let mut found: Vec<(usize, u32)> = Vec::new();
    for sample in process.samples.iter().filter(|sample| sample.stack.is_some()) {
        // Calls are in the order of their enters.
        let last = process.calls.partition_point(|call| call.enter <= sample.asked);
        let own =
            process.calls[..last].iter().enumerate().rev().take(64).find(|(_, call)| call.thread == sample.thread);
        if let Some((place, _)) = own.filter(|(_, call)| lacks(call) && sample.had <= call.exit) {
            found.extend(sample.stack.map(|stack| (place, stack)));
        }
    }
    for (place, stack) in found {
        process.calls[place].stack = Some(stack);
    }
    // Of each place of an iteration the stack, while all agree.
    let mut known: HashMap<Like, Option<(String, u32)>> = HashMap::new();
    for call in process.calls.iter().filter(|call| call.class != Class::Record) {
        let Some(stack) = call.stack else { continue };
        let Some(place) = places::frame(&process.stack(call)).map(|frame| frame.place()) else { continue };
        let own = known.entry(like(process, call)).or_insert_with(|| Some((place.clone(), stack)));
        if own.as_ref().is_some_and(|(other, _)| *other != place) {
            *own = None;
        }
    }
    let of_like: Vec<Option<u32>> = process
        .calls
        .iter()
        .map(|call| known.get(&like(process, call)).filter(|_| lacks(call))?.as_ref().map(|(_, stack)| *stack))
        .collect();
    for (call, stack) in process.calls.iter_mut().zip(of_like) {
        call.stack = call.stack.or(stack);
    }
    operators(process);
}

/// Gives calls the operators that others at their places have.
fn operators(process: &mut Process) {
    let at = |call: &RecordedCall| Some((Arc::clone(&call.name), places::frame(&process.stack(call))?.place()));
    let of: Vec<Option<(Arc<str>, String)>> = process.calls.iter().map(at).collect();
    let mut known: HashMap<&(Arc<str>, String), Option<Arc<str>>> = HashMap::new();
    for (call, at) in process.calls.iter().zip(&of) {
        let Some((at, operator)) = at.as_ref().zip(call.operator.clone()) else { continue };
        let own = known.entry(at).or_insert_with(|| Some(Arc::clone(&operator)));
        if own.as_ref().is_some_and(|other| *other != operator) {
            *own = None;
        }
    }
    for (call, at) in process.calls.iter_mut().zip(&of) {
        let told = || known.get(at.as_ref()?)?.clone();
        call.operator = call.operator.take().or_else(told);
    }
}

fn like(process: &Process, call: &RecordedCall) -> Like {
    let before = process.work.partition_point(|work| work.correlation < call.correlation);
    let behind = |back: usize| Some(Arc::clone(&process.work[before.checked_sub(back)?].name));
    (Arc::clone(&call.name), call.thread, call.stream, [behind(1), behind(2)])
}

#[cfg(test)]
mod tests {
    use super::super::recording::by_hand::call;
    use super::super::recording::{Doing, Frame, RecordedWork, Sample};
    use super::*;

    #[test]
    fn a_call_has_the_stack_of_a_sample_within_it_or_of_those_at_the_same_place_where_they_agree() {
        let frame = |line| Frame { file: "train.py".to_owned(), line, ..Frame::default() };
        let work = |name: &str, correlation| RecordedWork { name: name.into(), correlation, ..RecordedWork::default() };
        let wait = |number: u64, stack| RecordedCall {
            stack,
            ..call("cuStreamSynchronize", (100 * number, 100 * number + 50), 10 * number)
        };
        // Behind `loss` the same line, behind `norm` two.
        let calls =
            vec![wait(1, None), wait(2, None), wait(3, Some(1)), wait(4, Some(0)), wait(5, None), wait(6, None)];
        let names = ["loss", "loss", "norm", "norm", "norm", "loss"];
        let works = names.iter().zip(1..).map(|(name, number)| work(name, 10 * number - 1));
        let twice: Vec<RecordedWork> = works.flat_map(|own| [own.clone(), own]).collect();
        let sample =
            Sample { asked: 110, had: 140, thread: 1, stack: Some(2), doing: Doing::Locked, ..Sample::default() };
        let mut process = Process {
            calls,
            work: twice,
            samples: vec![sample],
            frames: vec![frame(1), frame(2), frame(3)],
            stacks: vec![vec![0], vec![1], vec![2]],
            ..Process::default()
        };
        process.settle();
        complete(&mut process);
        let stacks: Vec<Option<u32>> = process.calls.iter().map(|call| call.stack).collect();
        assert_eq!(stacks, [Some(2), Some(2), Some(1), Some(0), None, Some(2)]);
    }
}
