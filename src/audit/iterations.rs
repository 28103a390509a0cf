//! The iterations of a program, and from when on they are alike.
//!
//! # Method
//! What a process enqueued is a sequence of names: of work and of synchronizations, by their correlations. A name at each of
//! whose places an iteration may begin cuts the sequence into parts, and so does a name with those that follow it: in a step of
//! layers, each name may stand several times. How well one cuts is the share of the sequence that is in parts of one length, to a
//! twentieth, without what they do not have in common with the usual part. A layer of a network cuts parts that are alike, and one
//! long part per iteration that is not. Where few parts have the same names, as shapes differ, lengths have to be alike in most of
//! the sequence.
//!
//! The one that cuts best tells the period of the whole sequence. Of those that do equally well, to a hundredth, the one that cuts
//! most parts begins the iterations: a step that logs now and then is a step. If it cuts fewer than [`FEWEST`], there are no
//! iterations, whatever repeats within them, unless that is most of the sequence: a few epochs have many steps. One piece of work with other work between is no iteration. Where the program names
//! its iterations, by ranges or by the steps of PyTorch's profiler, or a line is stated at which each begins, these are taken.
//!
//! The steady state begins with the first two iterations that take at most [`LONG`] times as long as nine in ten of the second
//! half do, and behind the iterations of the first half in which code was loaded or memory allocated, unless that goes on.
//!
//! # Limits
//! An iteration that enqueues nothing has no beginning.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::ops::Range;

use super::class::Activity;
use super::evidence::CallJudgement;
use super::places::NOTHING;
use super::recording::{Process, RecordedCall};
use super::steps::Step;
use crate::units::counted;

/// Fewer are no steady state.
pub(crate) const FEWEST: usize = 5;
/// By what share cuts may differ and do equally well.
const EQUAL: f64 = 0.01;
/// How much of the sequence is in parts that are alike, at least, and where that is most of it.
const LEAST: f64 = 0.5;
const MOST: f64 = 0.9;
/// Of how many parts the names are the same, where names tell.
const SAME: f64 = 0.6;
/// How many names that follow each other are looked at, at most.
const LONGEST: usize = 256;
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
    let names: Vec<u64> = elements.iter().map(|element| element.name).collect();
    let Cut { mut places, length, .. } = best_cut(&names).filter(|cut| cut.places.len() > FEWEST)?;
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

/// A way to cut a sequence of names into parts.
struct Cut {
    places: Vec<usize>,
    /// Of the usual part.
    length: usize,
    /// How much of the sequence is in parts that are alike: at most, by their lengths, until [`Cut::compared`].
    share: f64,
    /// The usual part, where names tell.
    usual: Option<Range<usize>>,
}

/// A cut with its share by lengths and its first place: of cuts that are alike, the greatest share and the earliest place count.
type RankedCut = ((u32, Reverse<usize>), Cut);

/// The cut whose parts are the iterations.
fn best_cut(names: &[u64]) -> Option<Cut> {
    // Of all names up to each place, a sum that their order does not change.
    let mut sums = vec![0_u64];
    for (place, name) in names.iter().enumerate() {
        sums.push(sums[place].wrapping_add(name.wrapping_mul(name | 1)));
    }
    // Cuts into as many parts of one length are one, at other places of the iteration.
    let mut cuts: HashMap<(usize, usize), RankedCut> = HashMap::new();
    // Of each place, the name and those that follow it.
    let mut follow = names.to_vec();
    let mut reach = 1;
    loop {
        let mut order: Vec<usize> = (0..names.len()).collect();
        order.sort_unstable_by_key(|place| (follow[*place], *place));
        for places in order.chunk_by(|one, next| follow[*one] == follow[*next]) {
            let Some(cut) = Cut::of(places, &sums).filter(|cut| cut.usual.is_some() || reach == 1) else { continue };
            let rank = ((cut.share * 1e4) as u32, Reverse(cut.places[0]));
            let key = (cut.places.len(), cut.length);
            if cuts.get(&key).is_none_or(|(known, _)| rank > *known) {
                cuts.insert(key, (rank, cut.compared(names, &sums)));
            }
        }
        let share_of = |key: &(usize, usize)| cuts[key].1.share;
        let most = |fewest| cuts.keys().filter(|key| key.0 > fewest).map(share_of).fold(0.0, f64::max);
        let most = if most(FEWEST) >= MOST { most(FEWEST) } else { most(0) };
        let best = cuts.keys().filter(|key| share_of(key) >= most - EQUAL).max().copied();
        let is_found = best.is_some_and(|best| share_of(&best) >= 1.0 - EQUAL && best.0 > FEWEST && best.1 <= reach);
        if is_found || reach >= LONGEST.min(names.len()) {
            let best = cuts.remove(&best?).map(|(_, cut)| cut);
            return best.filter(|cut| cut.usual.is_none() || cut.share >= LEAST);
        }
        for place in 0..names.len() - reach {
            follow[place] = follow[place].rotate_left(5).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ follow[place + reach];
        }
        reach *= 2;
    }
}

impl Cut {
    /// The cut at some places, where they span half of the sequence.
    ///
    /// What a program begins with is unlike the rest: parts before the last one of the first half that is much shorter or longer
    /// than usual are passed over.
    fn of(places: &[usize], sums: &[u64]) -> Option<Self> {
        let lengths = |places: &[usize]| places.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<usize>>();
        let own = lengths(places);
        let usual = median(own[own.len() / 2..].to_vec())?;
        let is_unusual = |length: &usize| *length < usual / 2 || *length > usual * 2;
        let last = own[..own.len() / 2].iter().rposition(is_unusual).map_or(0, |last| last + 1);
        let places = &places[last..];
        let (count, span) = (places.len() - 1, places.last()? - places.first()?);
        if count < 2 || span * 2 < sums.len() - 1 {
            return None;
        }
        let length = median(lengths(places))?;
        let parts = || places.windows(2).map(|pair| pair[0]..pair[1]);
        let explained: usize = parts().filter(|part| is_as_long(part, length)).map(|part| part.len().min(length)).sum();
        let explained = explained as f64 / span as f64;
        if explained < LEAST || length == 1 && explained < 1.0 {
            return None;
        }
        let mut of_names: HashMap<u64, (usize, Range<usize>)> = HashMap::new();
        parts().for_each(|part| of_names.entry(sum(&part, sums)).or_insert((0, part)).0 += 1);
        let (most, usual) = of_names.into_values().max_by_key(|(count, part)| (*count, Reverse(part.start)))?;
        // Two parts by turns are one iteration, and so is a long part with short ones. What happens once is like nothing.
        let same = ((most - 1) as f64 / (count - 1) as f64).min((most * usual.len()) as f64 / span as f64);
        let usual = (same > SAME).then_some(usual);
        let share = if usual.is_some() { explained } else { (same + explained) / 2.0 };
        (usual.is_some() || places.len() > FEWEST && explained >= MOST).then(|| Self {
            places: places.to_vec(),
            length,
            share,
            usual,
        })
    }

    /// Where names tell, the share without what parts have and the usual one has not.
    fn compared(self, names: &[u64], sums: &[u64]) -> Self {
        let Some(usual) = &self.usual else { return self };
        let mut counts: HashMap<u64, usize> = HashMap::new();
        names[usual.clone()].iter().for_each(|name| *counts.entry(*name).or_default() += 1);
        let mut known = HashMap::from([(sum(usual, sums), usual.len())]);
        let common = |part: Range<usize>| {
            *known.entry(sum(&part, sums)).or_insert_with(|| {
                let mut left = counts.clone();
                let is_there = |name: &&u64| {
                    left.get_mut(name).is_some_and(|count| std::mem::replace(count, count.saturating_sub(1)) > 0)
                };
                names[part].iter().filter(is_there).count()
            })
        };
        let parts = self.places.windows(2).map(|pair| pair[0]..pair[1]);
        let alike: usize = parts.filter(|part| is_as_long(part, self.length)).map(common).sum();
        let span = self.places.last().zip(self.places.first()).map_or(1, |(last, first)| last - first);
        Self { share: alike as f64 / span as f64, ..self }
    }
}

fn is_as_long(part: &Range<usize>, length: usize) -> bool {
    part.len().abs_diff(length) * 20 <= length
}

/// The sum of the names of a part.
fn sum(part: &Range<usize>, sums: &[u64]) -> u64 {
    sums[part.end].wrapping_sub(sums[part.start])
}

fn median(mut lengths: Vec<usize>) -> Option<usize> {
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
    fn a_step_in_which_each_name_stands_several_times_is_found_and_not_a_layer_of_it() {
        let forward = ["norm", "matmul", "gelu"].repeat(4);
        let backward = ["gelu back", "matmul", "norm back"].repeat(4);
        let step = [&forward[..], &backward, &["adam"; 6]].concat();
        assert_eq!(found(&[&["fill"; 7][..], &step.repeat(20)].concat()).unwrap().0, 20);
        // Most parts of one length have the same names.
        let block = |last: &'static str| vec!["matmul", "add", "gelu", "scale", last];
        let step = [block("norm").repeat(4), block("loss"), vec!["matmul", "adam", "adam", "adam", "adam"]].concat();
        assert_eq!(found(&step.repeat(20)).unwrap().0, 19);
        // Gradients of several batches are one step.
        let batch = ["embed", "matmul", "gelu", "loss", "gelu back", "matmul back"].repeat(4);
        assert_eq!(found(&[&batch[..], &["adam", "zero"]].concat().repeat(30)).unwrap().0, 29);
    }

    #[test]
    fn steps_that_alternate_in_size_are_pairs_and_one_piece_among_others_is_no_iteration() {
        let pair = [&["k"; 10][..], &["sync"], &["k"; 30], &["sync"]].concat();
        assert_eq!(found(&pair.repeat(12)).unwrap().0, 12);
        let pair = [&["k"; 1_000][..], &["sync"], &["k"; 3_000], &["sync"]].concat();
        assert_eq!(found(&pair.repeat(12)), None);
        assert_eq!(found(&[&["k"; 400][..], &["sync"]].concat().repeat(8)).unwrap().0, 7);
    }

    #[test]
    fn too_few_iterations_are_none_and_not_those_of_a_loop_within() {
        let inner = ["norm", "matmul", "gelu", "add", "matmul", "add", "gelu", "scale"];
        let step = [&inner.repeat(3)[..], &["loss", "back", "back", "back", "back", "adam"]].concat();
        assert_eq!(found(&step.repeat(3)), None);
        assert_eq!(found(&step.repeat(4)), None);
        assert_eq!(found(&step.repeat(8)).unwrap().0, 7);
        // Three epochs of many steps have these: in the first half, what lies before an unlike part is start-up.
        let epoch = [&step.repeat(50)[..], &["forward", "sum"].repeat(40)].concat();
        assert_eq!(found(&epoch.repeat(3)).unwrap().0, 100);
    }

    #[test]
    fn steps_whose_names_differ_are_told_by_their_length_and_those_that_log_are_steps() {
        let shapes: Vec<String> = (0..30).map(|number| format!("matmul {}", number * number % 31)).collect();
        let step = |number: usize| [&["embed"][..], &[&*shapes[number]; 8], &["loss", "adam"]].concat();
        assert_eq!(found(&(0..30).flat_map(step).collect::<Vec<_>>()).unwrap().0, 30);
        // No name stands once in a step, and one in each tenth.
        let step = [["matmul", "gelu"].repeat(60), ["gelu back", "matmul"].repeat(60)].concat();
        assert_eq!(found(&[&step.repeat(10)[..], &["copy"]].concat().repeat(8)).unwrap().0, 80);
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
