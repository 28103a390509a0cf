//! What slows the host on a shared machine, and which piece of work shows it: `cargo run --release --example host_states --
//! DEVICE [SECONDS [FILE]]`.
//!
//! Short pieces of work of the host alone are timed in turn with short calls of a device, on one processor for some seconds, and
//! then on the next. Where a call scatters because of a state that a piece shows, the two rise and fall together. The table says
//! how far: the rank correlation of each call with each piece beside it, and by how much the call scatters from second to second,
//! over all, and where the piece is among its faster half. Every second round does one piece alone, or none: by how much a piece
//! disturbs the call that follows it is told by these. FILE takes each round, as CSV, for other questions.

#![allow(clippy::unwrap_used, reason = "an example may panic")]

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use syncscope::device::{Device, Stream};
use syncscope::error::DeviceError;
use syncscope::tensor::Tensor;

const PIECES: [&str; 5] = ["arithmetic", "instructions", "branches", "L2", "system calls"];
const CALLS: [&str; 4] = ["20 launches", "synchronize", "a launch after a wait", "a wait of 2 ms"];
/// How long the host stays on a processor.
const STAY: Duration = Duration::from_secs(5);

struct Round {
    at: f64,
    processor: usize,
    /// The only piece that was done: past the last where none was. Otherwise all were.
    alone: Option<usize>,
    values: [f64; PIECES.len() + CALLS.len()],
}

fn main() -> Result<(), DeviceError> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_else(|| "cpu:0".to_owned());
    let seconds: f64 = arguments.next().map_or(60.0, |seconds| seconds.parse().unwrap());
    let device = Device::open(&name)?;
    let stream = device.stream()?;
    let x = stream.zeros::<f32>([16])?;
    let near = cycle(1 << 15);
    for _ in 0..200 {
        calls(&stream, &x)?;
    }
    let allowed = sched_getaffinity(None).unwrap();
    let processors: Vec<usize> = (0..CpuSet::MAX_CPU).rev().filter(|cpu| allowed.is_set(*cpu)).collect();
    let (begun, mut rounds) = (Instant::now(), Vec::new());
    for processor in processors.iter().copied().cycle() {
        let mut one = CpuSet::new();
        one.set(processor);
        sched_setaffinity(None, &one).unwrap();
        let until = begun.elapsed() + STAY;
        while begun.elapsed() < until {
            let at = begun.elapsed().as_secs_f64();
            let round = rounds.len();
            let alone = (round % 2 == 1).then_some(round / 2 % (PIECES.len() + 1));
            let (pieces, calls) = (pieces(&near, round, alone), calls(&stream, &x)?);
            let mut values = [0.0; PIECES.len() + CALLS.len()];
            pieces.into_iter().chain(calls).zip(&mut values).for_each(|(time, value)| *value = time);
            rounds.push(Round { at, processor, alone, values });
        }
        if begun.elapsed().as_secs_f64() > seconds {
            break;
        }
    }
    if let Some(path) = arguments.next() {
        std::fs::write(path, csv(&rounds)).unwrap();
    }
    print(&rounds);
    Ok(())
}

/// The seconds of each call.
fn calls(stream: &Stream, x: &Tensor<f32>) -> Result<[f64; CALLS.len()], DeviceError> {
    const WAIT: Duration = Duration::from_millis(2);
    stream.synchronize()?;
    let launches = timed(|| (0..20).try_for_each(|_| x.affine_in_place(1.0, 1.0)))?;
    stream.synchronize()?;
    let synchronize = timed(|| stream.synchronize())?;
    stream.spin(WAIT)?;
    let wait = timed(|| stream.synchronize())?;
    let launch = timed(|| x.affine_in_place(1.0, 1.0))?;
    Ok([launches, synchronize, launch, wait])
}

fn timed(call: impl FnOnce() -> Result<(), DeviceError>) -> Result<f64, DeviceError> {
    let start = Instant::now();
    call()?;
    Ok(start.elapsed().as_secs_f64())
}

/// The seconds of each piece, or of one of them; the cycle is entered elsewhere in each round.
fn pieces(near: &[u32], round: usize, alone: Option<usize>) -> [f64; PIECES.len()] {
    let all: [&dyn Fn(); PIECES.len()] =
        [&arithmetic, &instructions, &branches, &|| walk(near, round * 7919, 2000), &|| {
            (0..50).for_each(|_| _ = black_box(rustix::process::getppid()))
        }];
    std::array::from_fn(|place| {
        if alone.is_some_and(|alone| alone != place) {
            return f64::NAN;
        }
        let start = Instant::now();
        all[place]();
        start.elapsed().as_secs_f64()
    })
}

/// More chains beside each other than a core computes at once.
fn arithmetic() {
    let mut chains = black_box([1_u64, 2, 3, 4, 5, 6, 7, 8]);
    for step in 0..10_000 {
        for chain in &mut chains {
            *chain = (*chain ^ (*chain << 13)).wrapping_add(step);
        }
    }
    black_box(chains);
}

/// Instructions that wait for none before them, as many at once as a core takes.
fn instructions() {
    for step in 0..2_500_u64 {
        for chain in 0..8_u64 {
            black_box(black_box(chain) ^ step);
        }
    }
}

/// Branches that nothing foretells.
fn branches() {
    let (mut state, mut sum) = (black_box(0x9e37_79b9_7f4a_7c15_u64), 0_u64);
    for _ in 0..4000 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        sum = if state & 1 == 0 { black_box(sum + 1) } else { black_box(sum ^ state) };
    }
    black_box(sum);
}

/// A walk of dependent reads, sixteen numbers to a line of a cache.
fn walk(cycle: &[u32], from: usize, steps: usize) {
    let mut at = (from * 16 % cycle.len()) as u32;
    for _ in 0..steps {
        at = cycle[at as usize];
    }
    black_box(at);
}

/// The lines of so many numbers, each with the place of the next in an order without a pattern.
fn cycle(numbers: usize) -> Vec<u32> {
    let lines = numbers / 16;
    let mut next = vec![0_u32; numbers];
    // A step that shares no factor with a power of two, and is far from a multiple of anything.
    let (step, mut at) = ((lines * 618 / 1000) | 1, 0);
    for _ in 0..lines {
        let to = (at + step) % lines;
        next[at * 16] = (to * 16) as u32;
        at = to;
    }
    next
}

fn csv(rounds: &[Round]) -> String {
    let mut text = format!("seconds,processor,alone,{},{}\n", PIECES.join(","), CALLS.join(","));
    for round in rounds {
        let values: Vec<String> = round.values.iter().map(|value| format!("{:.3}", value * 1e6)).collect();
        let alone = round.alone.map_or("all", |alone| PIECES.get(alone).copied().unwrap_or("none"));
        writeln!(text, "{:.4},{},{alone},{}", round.at, round.processor, values.join(",")).unwrap();
    }
    text
}

fn print(all: &[Round]) {
    let rounds: Vec<&Round> = all.iter().filter(|round| round.alone.is_none()).collect();
    let processors: std::collections::BTreeSet<usize> = rounds.iter().map(|round| round.processor).collect();
    println!("{} rounds on {} processors\n", rounds.len(), processors.len());
    println!("{:24}{:>12}{:>12}  correlation with; scatter of seconds in the faster half of", "", "median", "scatter");
    println!("{:48}  {}", "", PIECES.map(|piece| format!("{piece:>16}")).concat());
    for (place, name) in PIECES.into_iter().chain(CALLS).enumerate() {
        let of = |rounds: &[&Round]| rounds.iter().map(|round| round.values[place]).collect::<Vec<f64>>();
        let columns = (0..PIECES.len()).map(|piece| {
            let beside: Vec<f64> = rounds.iter().map(|round| round.values[piece]).collect();
            let (middle, correlation) = (median(&beside), correlation(&ranks(&of(&rounds)), &ranks(&beside)));
            let faster: Vec<&Round> = rounds.iter().copied().filter(|round| round.values[piece] <= middle).collect();
            format!("{:>8.2}{:>6.1} %", correlation, 100.0 * scatter(&faster, place))
        });
        let columns: String = columns.collect();
        println!(
            "{name:24}{:>9.2} µs{:>10.1} %  {columns}",
            median(&of(&rounds)) * 1e6,
            100.0 * scatter(&rounds, place)
        );
    }
    println!("\n{:24}{:>16}{}", "µs, after", "none", PIECES.map(|piece| format!("{piece:>16}")).concat());
    for (place, name) in CALLS.into_iter().enumerate() {
        let after = |piece: usize| {
            let rounds = all.iter().filter(|round| round.alone == Some(piece));
            median(&rounds.map(|round| round.values[PIECES.len() + place] * 1e6).collect::<Vec<f64>>())
        };
        let columns =
            std::iter::once(PIECES.len()).chain(0..PIECES.len()).map(|piece| format!("{:>16.2}", after(piece)));
        println!("{name:24}{}", columns.collect::<String>());
    }
}

/// By how much the medians of whole seconds scatter about theirs: the standard deviation as a share of the mean.
fn scatter(rounds: &[&Round], place: usize) -> f64 {
    let mut seconds: std::collections::BTreeMap<u64, Vec<f64>> = Default::default();
    rounds.iter().for_each(|round| seconds.entry(round.at as u64).or_default().push(round.values[place]));
    let medians: Vec<f64> = seconds.values().filter(|values| values.len() >= 8).map(|values| median(values)).collect();
    let mean = medians.iter().sum::<f64>() / medians.len() as f64;
    (medians.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (medians.len() as f64 - 1.0)).sqrt() / mean
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    order.into_iter().enumerate().for_each(|(rank, place)| ranks[place] = rank as f64);
    ranks
}

fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (a_mean, b_mean) = (mean(a), mean(b));
    let product: f64 = a.iter().zip(b).map(|(a, b)| (a - a_mean) * (b - b_mean)).sum();
    let square = |values: &[f64], mean: f64| values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    product / (square(a, a_mean) * square(b, b_mean)).sqrt()
}
