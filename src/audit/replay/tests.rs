//! Programs whose host and device are simulated, with what only an audit sees of them; and the same without one of their places.

use std::collections::HashMap;

use super::super::evidence::judge;
use super::super::iterations;
use super::super::recording::by_hand::call;
use super::super::recording::{Doing, HostMemoryKind, RecordedCall, RecordedDirection, RecordedWork, Sample, WorkKind};
use super::super::shares;
use super::*;

/// What a program does, one after the other. Times are microseconds.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// Computes at this line.
    Own(u32, f64),
    /// Sleeps at this line.
    Sleep(u32, f64),
    /// Launches work from this line, which takes the host and the device so long, on this stream.
    Launch(u32, f64, f64, u32),
    /// Waits for a stream at this line.
    Wait(u32, u32),
    /// Reads a result of a stream at this line.
    Read(u32, u32),
    /// Reads a result of a stream at this line as PyTorch does: it copies, then waits for the stream.
    Item(u32, u32),
    /// Frees memory at this line, which waits for all streams.
    Free(u32),
    /// What comes on the first stream begins behind what is on the second one.
    Behind(u32, u32),
}

/// Numbers that look random, from 0 to 1.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// From one number to another.
    fn between(&mut self, from: f64, to: f64) -> f64 {
        from + (to - from) * self.next()
    }
}

/// Work that the host launches on a stream at a time, and when it begins.
fn enqueued(streams: &mut HashMap<u32, f64>, stream: u32, at: f64, takes: f64, number: u64) -> (f64, RecordedWork) {
    let free = streams.entry(stream).or_default();
    let start = (at + 3_500.0).max(*free + 800.0);
    *free = start + takes;
    let times = RecordedWork { start: start as u64, end: *free as u64, ..RecordedWork::default() };
    (start, RecordedWork { correlation: number, context: 1, stream, ..times })
}

/// Has a program do this so often; what an audit sees of it, and how long an iteration took, in nanoseconds.
fn simulated(acts: &[Act], iterations: usize, seed: u64) -> (Process, f64) {
    let mut random = Random(seed);
    let mut process = Process { number: 1, ..Process::default() };
    let mut streams: HashMap<u32, f64> = HashMap::new();
    // When the thread was at which line, and whether it slept.
    let mut lines: Vec<(f64, f64, u32, bool)> = Vec::new();
    let mut starts: Vec<f64> = Vec::new();
    let (mut at, mut number) = (1_000.0, 1);
    let mut begins = Vec::new();
    for _ in 0..iterations {
        let first = process.work.len();
        for act in acts.iter().flat_map(|act| match *act {
            Act::Item(line, stream) => vec![Act::Read(line, stream), Act::Wait(line, stream)],
            act => vec![act],
        }) {
            // Nothing takes equally long each time.
            let mut takes = |time: f64| time * 1_000.0 * random.between(0.95, 1.05);
            let from = at;
            match act {
                Act::Own(line, time) | Act::Sleep(line, time) => {
                    at += takes(time);
                    lines.push((from, at, line, matches!(act, Act::Sleep(..))));
                }
                Act::Launch(line, host, device, stream) => {
                    if let Some(first) = starts.len().checked_sub(1_024) {
                        at = at.max(starts[first]);
                    }
                    at += takes(host);
                    lines.push((from, at, line, false));
                    number += 1;
                    let (start, work) = enqueued(&mut streams, stream, at, takes(device), number);
                    starts.push(start);
                    process.work.push(RecordedWork { name: format!("kernel {line}").into(), ..work });
                }
                Act::Wait(line, stream) => {
                    number += 1;
                    at = (at + 1_500.0).max(streams.get(&stream).copied().unwrap_or(0.0) + 8_000.0);
                    let synchronized = call("cuStreamSynchronize", (from as u64, at as u64), number);
                    process.calls.push(RecordedCall { stream: Some(stream), stack: Some(line), ..synchronized });
                }
                Act::Read(line, stream) => {
                    number += 1;
                    let (_, work) = enqueued(&mut streams, stream, at, takes(2.0), number);
                    at = streams[&stream] + 8_000.0;
                    let (direction, host) = (RecordedDirection::ToHost, HostMemoryKind::Pageable);
                    process.work.push(RecordedWork { kind: WorkKind::Copy { direction, host }, ..work });
                    let copied = call("cuMemcpyDtoHAsync_v2", (from as u64, at as u64), number);
                    process.calls.push(RecordedCall { stream: Some(stream), stack: Some(line), ..copied });
                }
                Act::Free(line) => {
                    number += 1;
                    let last = streams.values().copied().fold(0.0, f64::max);
                    at = (at + takes(3.0)).max(last + 8_000.0);
                    let freed = call("cuMemFree_v2", (from as u64, at as u64), number);
                    process.calls.push(RecordedCall { stream: None, stack: Some(line), ..freed });
                }
                Act::Item(..) => unreachable!("it is a read and a wait"),
                Act::Behind(stream, other) => {
                    let other = streams.get(&other).copied().unwrap_or(0.0);
                    let own = streams.entry(stream).or_default();
                    *own = own.max(other);
                }
            }
        }
        begins.push(process.work[first].start as f64);
    }
    let stack =
        |line: u32| Frame { file: "train.py".to_owned(), line, function: "step".to_owned(), ..Frame::default() };
    process.frames = (0..32).map(stack).collect();
    process.stacks = (0..32).map(|line| vec![line]).collect();
    let mut sampled = 0.0;
    while sampled < at {
        sampled += random.between(0.0, 8_000_000.0);
        let seen = lines[..lines.partition_point(|(from, ..)| *from <= sampled)].last();
        if let Some((.., line, sleeps)) = seen.filter(|(_, to, ..)| *to > sampled) {
            let doing = if *sleeps { Doing::Sleeping } else { Doing::Running };
            let asked = sampled as u64;
            process.samples.push(Sample {
                asked,
                had: asked,
                thread: 1,
                stack: Some(*line),
                doing,
                ..Sample::default()
            });
        }
    }
    process.settle();
    let quarter = begins.len() / 4;
    let last = begins.len() - 1;
    (process, (begins[last] - begins[quarter]) / (last - quarter) as f64)
}

/// The places that leave the device idle, each with what it would bring.
fn told(process: &Process) -> Vec<IdlePlace> {
    let judgements = judge(process);
    let steady = iterations::steady(process, &judgements, None).unwrap();
    let host = shares::host(process, &judgements, Some(1), steady.window);
    let (_, gaps) = shares::devices(process, &host, steady.window).remove(0);
    let mut places = idle::of(process, &judgements, &[(0, gaps)], steady.iterations());
    without(process, &judgements, &steady, &mut places);
    places
}

/// A program's acts without those of a place; what it reads there, it copies without waiting.
fn mended(acts: &[Act], line: u32) -> Vec<Act> {
    let left = |act: &Act| match *act {
        Act::Own(at, _) | Act::Sleep(at, _) | Act::Wait(at, _) if at == line => None,
        Act::Item(at, stream) | Act::Read(at, stream) if at == line => Some(Act::Launch(at, 4.0, 2.0, stream)),
        act => Some(act),
    };
    acts.iter().filter_map(left).collect()
}

/// A training step: a loader, a forward pass, a log that waits, a backward pass, an optimizer of many small kernels.
fn any_program(random: &mut Random) -> Vec<Act> {
    let mut acts = vec![Act::Sleep(1, random.between(0.0, 8_000.0))];
    let layers = 4 + (random.next() * 12.0) as usize;
    let (host, device) = (random.between(5.0, 30.0), random.between(5.0, 300.0));
    acts.extend((0..layers * 3).map(|_| Act::Launch(2, host, device, 7)));
    acts.push(Act::Wait(3, 7));
    acts.push(Act::Own(4, random.between(0.0, 4_000.0)));
    acts.extend((0..layers * 6).map(|_| Act::Launch(5, host, device * 0.8, 7)));
    if random.next() < 0.5 {
        acts.push(Act::Launch(6, 6.0, device * 2.0, 8));
        acts.push(Act::Wait(7, 8));
    }
    acts.extend((0..(random.next() * 200.0) as usize).map(|_| Act::Launch(8, host, 4.0, 7)));
    acts
}

/// The intervals are of two standard errors.
#[test]
fn an_iteration_without_a_place_takes_as_long_as_is_said() {
    let mut random = Random(7);
    let (mut inside, mut all, mut errors) = (0, 0, Vec::new());
    for seed in 0..12 {
        let acts = any_program(&mut random);
        let (process, _) = simulated(&acts, 60, seed);
        for place in told(&process).iter().take(4) {
            let line = place.place.rsplit(':').next().and_then(|line| line.parse::<u32>().ok());
            let launches = |line: &u32| acts.iter().any(|act| matches!(act, Act::Launch(at, ..) if at == line));
            let Some(line) = line.filter(|line| !launches(line)) else { continue };
            let Some([least, most]) = place.without_ns else { continue };
            let (_, truth) = simulated(&mended(&acts, line), 60, seed + 1_000);
            all += 1;
            inside += usize::from((least as f64..=most as f64).contains(&truth));
            let error = ((least + most) as f64 / 2.0 - truth).abs() / truth;
            errors.push(error);
        }
    }
    errors.sort_by(f64::total_cmp);
    let median = errors[errors.len() / 2];
    assert!(all > 18 && inside * 10 >= all * 9 && median < 0.05, "{inside} of {all}, median error {median}");
}

/// A network of twenty-one layers.
fn layers() -> Vec<Act> {
    [&[Act::Launch(1, 10.0, 100.0, 7)][..], &[Act::Launch(2, 10.0, 200.0, 7)].repeat(20)].concat()
}

/// What is said of a line holds what the program without it takes; both, and how long it takes with it.
fn held(acts: &[Act], line: u32) -> ([u64; 2], f64, f64) {
    let (process, with) = simulated(acts, 60, 3);
    let places = told(&process);
    let place = places.iter().find(|place| place.place == format!("train.py:{line}")).unwrap();
    let (_, without) = simulated(&mended(acts, line), 60, 1_003);
    let told = place.without_ns.unwrap();
    assert!((told[0] as f64..=told[1] as f64).contains(&without), "{told:?}, and it is {without}, with it {with}");
    (told, without, with)
}

#[test]
fn a_wait_in_front_of_another_one_brings_no_more_than_what_lies_between_them() {
    for other in [Act::Wait(6, 7), Act::Read(6, 7), Act::Item(6, 7), Act::Free(6)] {
        let acts = [&layers()[..], &[Act::Wait(3, 7), Act::Own(4, 300.0), other, Act::Own(5, 800.0)]].concat();
        let (_, without, with) = held(&acts, 3);
        assert!(without > 0.9 * with, "{other:?}: {without} of {with}");
    }
}

#[test]
fn a_line_that_waits_in_several_calls_is_one_place_and_without_it_none_of_them_waits() {
    for wait in [Act::Item(3, 7), Act::Read(3, 7)] {
        let ends = [wait, Act::Own(4, 800.0), Act::Launch(2, 10.0, 700.0, 7), wait, Act::Own(5, 600.0)];
        let acts = [&layers()[..], &ends].concat();
        let (_, without, with) = held(&acts, 3);
        assert!(without < 0.85 * with, "{wait:?}: {without} of {with}");
        let (process, _) = simulated(&acts, 60, 3);
        let of_line = told(&process).into_iter().filter(|place| place.place == "train.py:3").map(|place| place.cause);
        assert_eq!(of_line.collect::<Vec<_>>(), [IdleCause::Wait], "{wait:?}");
    }
}

#[test]
fn work_that_depends_on_another_streams_is_not_taken_to_go_ahead_of_it() {
    let behind =
        [Act::Wait(3, 7), Act::Own(4, 600.0), Act::Behind(8, 7), Act::Launch(6, 10.0, 900.0, 8), Act::Behind(7, 8)];
    let (told, ..) = held(&[&layers()[..], &behind].concat(), 3);
    assert!(told[1] - told[0] > 100_000, "whether it depends on it is not known: {told:?}");
}

#[test]
fn of_a_device_that_several_threads_feed_nothing_is_told() {
    let acts = [&layers()[..], &[Act::Wait(3, 7), Act::Own(4, 600.0)]].concat();
    let (mut process, _) = simulated(&acts, 60, 5);
    assert!(told(&process).iter().any(|place| place.without_ns.is_some()));
    let of_other = process.calls.iter().step_by(2).map(|call| RecordedCall { thread: 2, ..call.clone() });
    let of_other: Vec<RecordedCall> = of_other.collect();
    process.calls.extend(of_other);
    process.settle();
    assert!(told(&process).iter().all(|place| place.without_ns.is_none()));
}

#[test]
fn what_takes_no_time_of_the_host_that_the_device_waits_for_brings_nothing() {
    // Behind the launches the host computes, for less time than they take.
    let launches = [Act::Launch(2, 10.0, 200.0, 7)].repeat(20);
    let first = [Act::Launch(1, 10.0, 100.0, 7)];
    let acts = [&first[..], &launches, &[Act::Own(4, 2_000.0)], &launches, &[Act::Own(5, 100.0)]].concat();
    let (process, recorded) = simulated(&acts, 60, 1);
    let judgements = judge(&process);
    let steady = iterations::steady(&process, &judgements, None).unwrap();
    let steps = steps(&process, &judgements, Some(1));
    let replay = Replay::of(&process, &steady, &steps, 1.0, pause(&process)).unwrap();
    let half = Removed { parts: vec![(1.0, 0.5)], ..Removed::default() };
    for removed in [Removed::default(), half] {
        let share = replay.iteration(&removed) / recorded;
        assert!((0.99..1.01).contains(&share), "{share}");
    }
}
