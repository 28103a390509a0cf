//! The iterations of a program, and from when on they are alike.
//!
//! # Method
//! What a process enqueued is a sequence of names: of work and of synchronizations, by their correlations. A name at each of
//! whose places an iteration may begin cuts the sequence into parts. How well it does so is the share of the sequence that is
//! in parts of one length, to a twentieth, without what is beyond that length; where most have the same names. A name within a layer
//! of a network cuts parts that are alike, and one long part per iteration that is not. The name that does best begins the
//! iterations, where it does so for half of the sequence and there are more than [`FEWEST`]. Of names that do equally well, to half
//! a hundredth, it is the one that cuts most parts: a step that logs now and then is a step. Where the
//! program names its iterations, by ranges or by the steps of PyTorch's profiler, or a line is stated at which each begins, these are
//! taken.
//!
//! The steady state begins with the first two iterations that take at most [`LONG`] times as long as nine in ten of the second
//! half do, and behind the iterations of the first half in which code was loaded or memory allocated, unless that goes on.
//!
//! # Limits
//! An iteration that enqueues nothing has no beginning.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use super::class::Activity;
use super::evidence::CallJudgement;
use super::places::NOTHING;
use super::recording::{Process, RecordedCall};
use super::steps::Step;
use crate::units::counted;

/// Fewer are no steady state.
const FEWEST: usize = 5;
/// How much longer than usual a steady iteration may be.
const LONG: f64 = 1.5;

/// The steady state of a process.
#[derive(Clone, Debug)]
pub(crate) struct SteadyState {
    /// What the iterations were known by, in words.
    pub(crate) by: String,
    /// When the host began each, and when the last ended, in nanoseconds.
    pub(crate) begins: Vec<u64>,
    /// From when to when they went on: where work tells iterations, on the device.
    pub(crate) window: (u64, u64),
    /// Of each begin, the first number of work behind it.
    pub(crate) numbers: Vec<u64>,
}

impl SteadyState {
    pub(crate) fn iterations(&self) -> u64 {
        self.begins.len().saturating_sub(1) as u64
    }

    /// Whether a time of the host lies in it.
    pub(crate) fn holds(&self, at: u64) -> bool {
        let (first, last) = (self.begins.first(), self.begins.last());
        first.zip(last).is_some_and(|(first, last)| (*first..*last).contains(&at))
    }
}

/// Where an iteration begins.
#[derive(Clone, Copy)]
struct Begin {
    host: u64,
    device: u64,
    number: u64,
}

/// The steady state, where there are iterations.
pub(crate) fn steady(process: &Process, judgements: &[CallJudgement], step: Option<&Step>) -> Option<SteadyState> {
    let stated = step.map(|step| (step.words(), step.begins(process)));
    let of_profiler = || Some(("the steps of PyTorch's profiler".to_owned(), Step::of_profiler().begins(process)));
    let numbers = numbers_behind(process);
    let of_host = |at: u64| {
        let next = numbers.partition_point(|(start, _)| *start < at);
        Begin { host: at, device: at, number: numbers.get(next).map_or(u64::MAX, |(_, number)| *number) }
    };
    let (by, begins) = match stated.or_else(|| of_profiler().filter(|(_, begins)| !begins.is_empty())) {
        Some((by, begins)) => (by, begins.into_iter().map(of_host).collect()),
        None => repeated(process)?,
    };
    let first = first_steady(process, judgements, &begins)?;
    let steady = begins.get(first..).filter(|steady| steady.len() > FEWEST)?;
    // Ranges may reach beyond what was recorded.
    let (begin, end) = (steady.first()?.device.max(process.start), steady.last()?.device.min(process.end));
    let host = steady.iter().map(|begin| begin.host).collect();
    let numbers = steady.iter().map(|begin| begin.number).collect();
    (end > begin).then_some(SteadyState { by, begins: host, window: (begin, end), numbers })
}

/// The place of the first iteration of the steady state.
fn first_steady(process: &Process, judgements: &[CallJudgement], begins: &[Begin]) -> Option<usize> {
    let times: Vec<u64> = begins.windows(2).map(|pair| pair[1].device.saturating_sub(pair[0].device)).collect();
    let half = times.len() / 2;
    let mut usual = times.get(half..).filter(|times| !times.is_empty())?.to_vec();
    usual.sort_unstable();
    // Some may be long again and again: every second one waits for a batch.
    let most = usual[usual.len() * 9 / 10] as f64 * LONG;
    let is_usual = |place: usize| times.get(place).is_some_and(|time| *time as f64 <= most);
    let first = (0..times.len()).find(|place| is_usual(*place) && is_usual(place + 1))?;
    let prepares = |(call, judgement): &(&RecordedCall, &CallJudgement)| {
        judgement.own > NOTHING
            && matches!(call.class.cost(), Activity::Loading | Activity::Allocating | Activity::PageLocking)
    };
    let calls = process.calls.iter().zip(judgements).filter(prepares);
    let of = |call: &RecordedCall| begins.partition_point(|begin| begin.host <= call.enter).checked_sub(1);
    let mut preparing: Vec<usize> = calls.filter_map(|(call, _)| of(call)).collect();
    preparing.sort_unstable();
    preparing.dedup();
    let later = preparing.iter().filter(|place| **place >= half).count();
    let goes_on = later * 4 >= times.len() - half;
    let prepared = preparing.iter().filter(|place| **place < half && !goes_on).max().map_or(0, |last| last + 1);
    Some(first.max(prepared))
}

/// Something that was enqueued, or a synchronization.
struct Element {
    name: u64,
    correlation: u64,
    at: u64,
}

/// The iterations by the sequence of what is enqueued.
fn repeated(process: &Process) -> Option<(String, Vec<Begin>)> {
    let mut elements: Vec<Element> = Vec::new();
    let hash = |name: &str| {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        hasher.finish()
    };
    let mut names: HashMap<*const u8, u64> = HashMap::new();
    for work in &process.work {
        let name = *names.entry(work.name.as_ptr()).or_insert_with(|| hash(&work.name));
        elements.push(Element { name, correlation: work.correlation, at: work.start });
    }
    for call in process.calls.iter().filter(|call| call.class.is_explicit()) {
        let name = *names.entry(call.name.as_ptr()).or_insert_with(|| hash(&call.name));
        elements.push(Element { name, correlation: call.correlation, at: call.enter });
    }
    elements.sort_by_key(|element| element.correlation);
    let mut places: HashMap<u64, Vec<usize>> = HashMap::new();
    // Of all elements up to each place, a sum that their order does not change.
    let mut sums = vec![0_u64];
    for (place, element) in elements.iter().enumerate() {
        places.entry(element.name).or_default().push(place);
        sums.push(sums[place].wrapping_add(element.name.wrapping_mul(element.name | 1)));
    }
    let rated = places.into_values().filter_map(|mut places| {
        let share = alike(&mut places, &sums)?;
        Some(((share * 200.0).round() as u32, places))
    });
    let best = |(share, places): &(u32, Vec<usize>)| (*share, places.len(), std::cmp::Reverse(places[0]));
    let (_, mut places) = rated.filter(|(share, _)| *share >= 100).max_by_key(best)?;
    let length = median(places.windows(2).map(|pair| pair[1] - pair[0]))?;
    // The last iteration has no next one to end it.
    let end = places.last()? + length;
    if end <= elements.len() {
        places.push(end);
    }
    let host = host_times(process);
    let last = Begin { host: process.end, device: process.work.iter().map(|work| work.end).max()?, number: u64::MAX };
    let begin = |place: usize| {
        let Some(element) = elements.get(place) else { return last };
        let at = host.partition_point(|(correlation, _)| *correlation < element.correlation);
        let host = host.get(at).map_or(process.end, |(_, enter)| *enter);
        Begin { host, device: element.at, number: element.correlation }
    };
    let mut begins: Vec<Begin> = places.into_iter().map(begin).collect();
    // Work of two streams may begin in another order than it was enqueued in.
    for place in 1..begins.len() {
        begins[place].device = begins[place].device.max(begins[place - 1].device);
    }
    Some((format!("work that repeats, {} with what waits for them", counted(length as u64, "piece")), begins))
}

/// When work began, in this order, and the least number of what began then or later.
fn numbers_behind(process: &Process) -> Vec<(u64, u64)> {
    with_least_behind(process.work.iter().map(|work| (work.start, work.correlation)))
}

/// Of each call, in the order of their numbers, when the host entered it or the first one with a later number.
fn host_times(process: &Process) -> Vec<(u64, u64)> {
    with_least_behind(process.calls.iter().map(|call| (call.correlation, call.enter)))
}

/// Pairs in order, each with the least second of itself and of those behind it.
fn with_least_behind(pairs: impl Iterator<Item = (u64, u64)>) -> Vec<(u64, u64)> {
    let mut pairs: Vec<(u64, u64)> = pairs.collect();
    pairs.sort_unstable();
    let mut least = u64::MAX;
    for (_, second) in pairs.iter_mut().rev() {
        least = least.min(*second);
        *second = least;
    }
    pairs
}

/// How much of a sequence the parts are that lie between these places and are alike, where the places span half of it.
///
/// What a program begins with is unlike the rest: parts before the last one of the first half that is much shorter or longer than
/// usual are passed over.
fn alike(places: &mut Vec<usize>, sums: &[u64]) -> Option<f64> {
    let lengths = |places: &[usize]| places.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<usize>>();
    let own = lengths(places);
    let usual = median(own[own.len() / 2..].iter().copied())?;
    let is_unusual = |length: &usize| *length < usual / 2 || *length > usual * 2;
    let last = own[..own.len() / 2].iter().rposition(is_unusual).map_or(0, |last| last + 1);
    places.drain(..last);
    let (span, whole) = (places.last()? - places.first()?, sums.len() - 1);
    if places.len() <= FEWEST || span * 2 < whole {
        return None;
    }
    let parts = || places.windows(2).map(|pair| (pair[1] - pair[0], sums[pair[1]].wrapping_sub(sums[pair[0]])));
    let mut of_names: HashMap<u64, usize> = HashMap::new();
    parts().for_each(|(length, names)| *of_names.entry(names).or_default() += length);
    let same = of_names.into_values().max().unwrap_or(0) as f64 / span as f64;
    let length = median(parts().map(|(length, _)| length))?;
    let as_long = parts().map(|(length, _)| length).filter(|own| own.abs_diff(length) * 20 <= length);
    let explained = as_long.map(|own| own.min(length)).sum::<usize>() as f64 / span as f64;
    // Shapes that differ have other names each time. Two parts by turns are one iteration.
    Some(if same > 0.6 { explained } else { (same + explained) / 2.0 })
}

fn median(lengths: impl Iterator<Item = usize>) -> Option<usize> {
    let mut lengths: Vec<usize> = lengths.collect();
    lengths.sort_unstable();
    lengths.get(lengths.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::super::evidence::judge;
    use super::super::recording::RecordedWork;
    use super::super::recording::by_hand::call;
    use super::*;

    /// A process that did pieces of work of these names, one each microsecond.
    fn process(names: &[&str]) -> Process {
        let work = names.iter().enumerate().map(|(number, name)| RecordedWork {
            name: (*name).into(),
            start: 1_000 * number as u64,
            end: 1_000 * number as u64 + 500,
            correlation: number as u64 + 1,
            ..RecordedWork::default()
        });
        let mut process = Process { work: work.collect(), ..Process::default() };
        process.settle();
        process
    }

    fn found(names: &[&str]) -> Option<(u64, (u64, u64))> {
        let process = process(names);
        let steady = steady(&process, &judge(&process), None)?;
        Some((steady.iterations(), steady.window))
    }

    #[test]
    fn an_iteration_of_layers_is_found_and_not_a_layer() {
        let layers = ["norm", "matmul", "gelu"].repeat(4);
        let iteration = [&["embed"][..], &layers, &["loss"], &["back", "sum"].repeat(6), &["step"]].concat();
        let names = [&["fill"; 7][..], &iteration.repeat(8)].concat();
        assert_eq!(iteration.len(), 27);
        assert_eq!(found(&names), Some((8, (7_000, (7 + 8 * 27 - 1) * 1_000 + 500))));
        // Every fourth also logs.
        let log = [&iteration[..], &["log"]].concat();
        let names = [iteration.repeat(3), log].concat().repeat(5);
        assert_eq!(found(&names).unwrap().0, 20);
    }

    #[test]
    fn iterations_that_wait_for_a_loader_now_and_then_are_steady() {
        let iteration = ["matmul", "tanh"].repeat(20);
        let mut process = process(&iteration.repeat(170));
        let sync = |number: u64| call("cuEventSynchronize", (0, 0), 40 * number + 40);
        let mut at = 0;
        for (number, work) in process.work.iter_mut().enumerate() {
            if number % 80 == 0 && number >= 800 {
                at += 64_000_000;
            }
            (work.start, work.end) = (at, at + 100_000);
            at += 101_000;
        }
        process.calls = (20..170)
            .map(|number| RecordedCall {
                enter: process.work[40 * number as usize + 39].start,
                exit: process.work[40 * number as usize + 39].end,
                ..sync(number)
            })
            .collect();
        process.settle();
        assert_eq!(steady(&process, &judge(&process), None).map(|steady| steady.iterations()), Some(149));
    }

    #[test]
    fn a_network_of_many_layers_and_a_head_is_no_layer_and_steps_that_log_are_steps() {
        let layer = ["norm", "qkv", "attention", "out", "add", "norm", "wide", "gelu", "back", "add"];
        let token =
            [&layer.repeat(48)[..], &["norm", "head", "scale", "softmax", "sort", "sum", "draw", "cat"]].concat();
        // The last one has no next one to end it.
        assert_eq!(found(&token.repeat(8)).unwrap().0, 7);
        let step = [&["embed"][..], &["matmul", "tanh"].repeat(40), &["loss"], &["back"; 60], &["step"]].concat();
        let ten = [&step.repeat(10)[..], &["copy"]].concat();
        assert_eq!(found(&[step.repeat(3), ten.repeat(8)].concat()).unwrap().0, 83);
    }

    #[test]
    fn what_does_not_repeat_has_no_iterations() {
        let names: Vec<String> = (0..100).map(|number| format!("kernel {}", number * number % 97)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(found(&names), None);
        assert_eq!(found(&["a", "b", "a", "b"]), None);
        assert_eq!(found(&[]), None);
    }

    #[test]
    fn a_loop_of_one_kernel_has_one_per_iteration() {
        assert_eq!(found(&["only"; 20]).unwrap().0, 20);
    }

    #[test]
    fn iterations_that_load_code_are_before_the_steady_state_unless_all_do() {
        let mut process = process(&["a", "b"].repeat(20));
        let load = |at: u64| call("cuLibraryLoadData", (at, at + 600_000), at / 1_000 + 1);
        // The work stands still meanwhile: only what the calls say counts.
        process.calls = vec![load(2_000)];
        process.settle();
        let once = steady(&process, &judge(&process), None).unwrap();
        assert!(once.iterations() < 20, "{}", once.iterations());
        process.calls = (0..20).map(|number| load(2_000 * number)).collect();
        process.settle();
        assert_eq!(steady(&process, &judge(&process), None).unwrap().iterations(), 20);
    }
}
