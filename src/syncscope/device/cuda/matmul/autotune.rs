//! The search for the plan of a matrix multiplication: which algorithm is fastest, and whether it is right.
//!
//! On a stream and operands of its own: the user's stream may be held by a gate, and its data is not ours to write.
//!
//! **Speed.** Candidates are timed on normals, as data changes the time. All take part in each round, so that a clock that
//! changes favours none, and the median of the rounds counts. Candidates that are clearly slower leave after the first
//! round. Short ones are enqueued behind a kernel that keeps the device busy meanwhile: otherwise the host's calls would be
//! timed.
//!
//! **Correctness.** The operands of the check are integers of -2 to 2. Such a number is exact in every type, and so is each
//! partial sum below 2²⁴ in fp32, in any order: the error γₖ·Σ│aᵢ·bᵢ│ of an inner product (N. Higham, *Accuracy and
//! Stability of Numerical Algorithms*, section 3.1) is that of roundings, and nothing is rounded but the result. So the
//! bound is ε/2·│result│, with no term for the operands, at every inner size; and an algorithm that rounds its partial sums
//! to the output's type exceeds it.

use std::sync::Arc;
use std::time::Duration;

use half::{bf16, f16};

use crate::device::cuda::driver::blas::{self, Algorithm, Descriptors, MatmulShape};
use crate::device::cuda::driver::{Allocation, Event, PoolSpan};
use crate::device::cuda::memory::pinned::{SLOT_BYTES, Slot};
use crate::device::cuda::opened::Opened;
use crate::device::cuda::stream::guard::{Scratch, StreamInner, WORKSPACE_BYTES};
use crate::device::cuda::stream::limbo::Kept;
use crate::device::cuda::stream::operations;
use crate::device::engine::Result;
use crate::device::{DType, philox};
use crate::error::DeviceError;

/// Rounds over the candidates that are left.
const ROUNDS: usize = 5;

/// A candidate stays while its first round took at most so many times the best one's.
const STAYS: f32 = 1.25;

/// How long one measurement of a candidate should take, and the most runs in it.
const MEASUREMENT_MS: f32 = 0.5;
const MAX_RUNS: f32 = 20.0;

/// Once the candidates have taken so long, no further one is tried, and one round must do.
const LONG_SEARCH_MS: f32 = 300.0;

/// Runs shorter than this are enqueued behind a busy device, for which a call of cuBLASLt takes at most so long.
const SHORT_MS: f32 = 0.02;
const ENQUEUE: Duration = Duration::from_micros(10);

/// The seed of the operands; a is of sequence 0, b of sequence 1.
const SEED: u64 = 1;

/// The length of the pattern of integers that fills the operands of the check: a prime, so that rows differ.
const PATTERN: usize = 65_521;

/// An algorithm, and whether it was tried.
pub(super) enum Found {
    /// The fastest of the proposed algorithms that is right.
    Right(Algorithm),
    /// The first of them: there is nothing to try them with now.
    Proposed(Algorithm),
}

/// Searches the algorithm for a shape.
pub(super) fn search(device: &Arc<Opened>, shape: &MatmulShape, descriptors: &Descriptors) -> Result<Found> {
    let candidates = descriptors.candidates(shape, device.gpu.blas()?, WORKSPACE_BYTES)?;
    let Some(&first) = candidates.first() else {
        return Err(blas::no_algorithm(shape, device.name()));
    };
    let Ok(autotune) = Autotune::new(device, shape, descriptors) else { return Ok(Found::Proposed(first)) };
    let timed = autotune.fastest_first(&candidates)?;
    let patterns = autotune.integers()?;
    let right = timed.iter().find(|algorithm| autotune.is_right(algorithm, &patterns));
    right.map(|right| Found::Right(*right)).ok_or_else(|| DeviceError::CallFailed {
        device: device.name().to_owned(),
        call: "cublasLtMatmul",
        reason: format!("none of {} algorithms computes {:?} rightly", timed.len(), shape.sizes),
    })
}

/// A stream, operands and an output.
struct Autotune<'a> {
    shape: &'a MatmulShape,
    descriptors: &'a Descriptors,
    start: Event,
    end: Event,
    memory: Vec<Allocation>,
    operands: [PoolSpan; 3],
    workspace: PoolSpan,
    /// Where elements of the output are read, gone in the drop alone. Taken before all else: while a gate is closed there may
    /// be none.
    read: Option<Slot>,
    stream: Arc<StreamInner>,
}

impl<'a> Autotune<'a> {
    fn new(device: &Arc<Opened>, shape: &'a MatmulShape, descriptors: &'a Descriptors) -> Result<Self> {
        let (context, [m, k, n]) = (&device.gpu.context, shape.sizes);
        let (start, end) = (Event::new(context, true)?, Event::new(context, true)?);
        let read =
            device.gpu.slot(size_of::<f32>(), 0)?.ok_or_else(|| device.gpu.used_up("pinned memory for reads"))?;
        let stream = StreamInner::new(device)?;
        let workspace = stream.enter()?.scratch(Scratch::Workspace, WORKSPACE_BYTES)?;
        let mut memory = Vec::new();
        let made = [(m * k, 0), (k * n, 1), (m * n, 2)].map(|(len, i)| -> Result<PoolSpan> {
            let bytes = len * shape.dtype.size();
            // As badly aligned as the user's operands, so that the search is for the same thing.
            let offset = shape.alignments[i] as usize % 256;
            let guard = stream.enter()?;
            let allocation = guard.allocate(bytes + 256)?;
            let span = allocation.span().part(offset, bytes);
            memory.push(allocation);
            let span = span.ok_or_else(|| blas::no_algorithm(shape, device.name()))?;
            // Without NVRTC the times are those of zeros.
            operations::launch_normal(&guard, shape.dtype, span, len, SEED, i as u64)
                .or_else(|_| guard.fill(span, 0))?;
            Ok(span)
        });
        let [first, second, out] = made;
        let operands = match (first, second, out) {
            (Ok(first), Ok(second), Ok(out)) => [first, second, out],
            (first, second, out) => {
                memory.into_iter().for_each(|allocation| stream.free(allocation));
                return Err(first
                    .and(second)
                    .and(out)
                    .err()
                    .unwrap_or_else(|| blas::no_algorithm(shape, device.name())));
            }
        };
        let autotune = Self { shape, descriptors, start, end, memory, operands, workspace, read: Some(read), stream };
        autotune.stream.synchronize()?;
        Ok(autotune)
    }

    /// The candidates that run: those that stayed to the last round, the fastest of them first, then the others likewise.
    fn fastest_first(&self, candidates: &[Algorithm]) -> Result<Vec<Algorithm>> {
        let mut timed: Vec<(f32, Algorithm)> = Vec::new();
        let mut spent = 0.0;
        for candidate in candidates {
            // The first run of a candidate loads its kernel.
            if let Some(time) = self.time(candidate, 1, 0.0).and_then(|_| self.time(candidate, 1, 0.0)) {
                timed.push((time, *candidate));
                spent += 2.0 * time;
            }
            if spent > LONG_SEARCH_MS {
                break;
            }
        }
        self.measure_again(&mut timed, 1);
        let stay = timed.iter().filter(|(time, _)| *time <= STAYS * timed[0].0).count();
        if spent <= LONG_SEARCH_MS {
            self.measure_again(&mut timed[..stay], ROUNDS);
        }
        // What went wrong in a search must not be laid to the next call.
        self.stream.synchronize()?;
        Ok(timed.into_iter().map(|(_, algorithm)| algorithm).collect())
    }

    /// Replaces each time by the median of `rounds` measurements, taken in turn, and sorts by it.
    fn measure_again(&self, timed: &mut [(f32, Algorithm)], rounds: usize) {
        let mut measured = vec![Vec::with_capacity(rounds); timed.len()];
        for _ in 0..rounds {
            for ((time, candidate), measured) in timed.iter().zip(&mut measured) {
                let runs = (MEASUREMENT_MS / time.max(1e-3)).clamp(1.0, MAX_RUNS);
                measured.push(self.time(candidate, runs as u32, *time).unwrap_or(f32::INFINITY));
            }
        }
        for ((time, _), mut measured) in timed.iter_mut().zip(measured) {
            measured.sort_by(f32::total_cmp);
            *time = measured[measured.len() / 2];
        }
        timed.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    }

    /// Fills the operands with integers: the patterns of a and of b, which the fill repeats from the first element on.
    fn integers(&self) -> Result<[Vec<i8>; 2]> {
        let [m, k, n] = self.shape.sizes;
        let patterns = [0, 1].map(pattern);
        let guard = self.stream.enter()?;
        let operands = [(m * k, self.operands[0]), (k * n, self.operands[1])];
        for (pattern, (len, operand)) in patterns.iter().zip(operands) {
            let bytes = encoded(pattern, self.shape.dtype);
            let size = len * self.shape.dtype.size();
            let part = |from, bytes| operand.part(from, bytes).ok_or_else(|| blas::no_algorithm(self.shape, "cuda"));
            let mut filled = bytes.len().min(size);
            for (i, bytes) in bytes[..filled].chunks(SLOT_BYTES).enumerate() {
                guard.upload_aside(bytes, part(i * SLOT_BYTES, bytes.len())?)?;
            }
            // A whole number of patterns each time, but the last.
            while filled < size {
                let more = filled.min(size - filled);
                guard.copy(part(0, more)?, part(filled, more)?)?;
                filled += more;
            }
        }
        drop(guard);
        self.stream.synchronize()?;
        Ok(patterns)
    }

    /// Whether some elements of the result, corners among them, are those of the integers, rounded once.
    fn is_right(&self, algorithm: &Algorithm, [first, second]: &[Vec<i8>; 2]) -> bool {
        let [m, k, n] = self.shape.sizes;
        // All ones are no number: what is left out is seen.
        if self.stream.enter().and_then(|guard| guard.fill(self.operands[2], 0xff)).is_err() {
            return false;
        }
        if self.time(algorithm, 1, 0.0).is_none() {
            return false;
        }
        let places = [(0, 0), (m - 1, n - 1), (0, n - 1), (m - 1, 0), (m / 2, n / 3), (m / 3, n / 2), (m / 5, n / 7)];
        places.into_iter().all(|(row, column)| {
            let exact: i64 = (0..k)
                .map(|l| i64::from(first[(row * k + l) % PATTERN]) * i64::from(second[(l * n + column) % PATTERN]))
                .sum();
            self.output(row * n + column).is_some_and(|computed| is_rounded(computed, exact as f64, self.shape.dtype))
        })
    }

    /// Element `at` of the output; the stream is idle.
    fn output(&self, at: usize) -> Option<f64> {
        let (size, mut bytes) = (self.shape.dtype.size(), [0; 4]);
        let from = self.operands[2].part(at * size, size)?;
        let slot = self.read.as_ref()?;
        self.stream.enter().ok()?.download_piece(from, slot).ok()?;
        self.stream.synchronize().ok()?;
        slot.receive(&mut bytes[..size]);
        Some(decoded(self.shape.dtype, bytes))
    }

    /// Milliseconds a run, over `runs` in a row, of an algorithm that is expected to take `expected`; `None` where it does
    /// not run.
    fn time(&self, candidate: &Algorithm, runs: u32, expected: f32) -> Option<f32> {
        let guard = self.stream.enter().ok()?;
        let workspace = (candidate.workspace() > 0).then_some(self.workspace);
        if runs > 1 && expected < SHORT_MS {
            // Without NVRTC there is no such kernel, and the host's calls are in the time.
            let _ = operations::spin(&guard, ENQUEUE * runs);
        }
        guard.record(&self.start).ok()?;
        for _ in 0..runs {
            guard.multiply(self.descriptors, candidate, workspace, self.operands).ok()?;
        }
        guard.record(&self.end).ok()?;
        drop(guard);
        self.stream.synchronize().ok()?;
        let time = self.end.elapsed_since(&self.start).ok()??;
        Some(time.as_secs_f32() * 1e3 / runs as f32)
    }
}

impl Drop for Autotune<'_> {
    fn drop(&mut self) {
        self.memory.drain(..).for_each(|allocation| self.stream.free(allocation));
        // After a failure a copy may yet come.
        self.read.take().into_iter().for_each(|slot| self.stream.keep(Kept::Slot { _slot: slot }));
    }
}

/// Integers of -2 to 2, other ones for each `sequence`.
fn pattern(sequence: u64) -> Vec<i8> {
    let words = (0..PATTERN as u64).map(|i| philox::block(SEED, sequence, i)[0]);
    words.map(|word| (word % 5) as i8 - 2).collect()
}

/// Small integers as elements of `dtype`.
fn encoded(integers: &[i8], dtype: DType) -> Vec<u8> {
    let real = integers.iter().map(|&integer| f32::from(integer));
    match dtype {
        DType::F16 => real.flat_map(|x| f16::from_f32(x).to_ne_bytes()).collect(),
        DType::BF16 => real.flat_map(|x| bf16::from_f32(x).to_ne_bytes()).collect(),
        _ => real.flat_map(f32::to_ne_bytes).collect(),
    }
}

/// Whether `computed` is `exact`, rounded once to nearest.
fn is_rounded(computed: f64, exact: f64, dtype: DType) -> bool {
    let epsilon = match dtype {
        DType::F16 => f16::EPSILON.to_f64(),
        DType::BF16 => bf16::EPSILON.to_f64(),
        _ => f32::EPSILON.into(),
    };
    (computed - exact).abs() <= epsilon / 2.0 * exact.abs()
}

/// A number from its bytes, of which the types of 2 bytes have the first two.
fn decoded(dtype: DType, bytes: [u8; 4]) -> f64 {
    let [first, second, ..] = bytes;
    match dtype {
        DType::F16 => f16::from_ne_bytes([first, second]).to_f64(),
        DType::BF16 => bf16::from_ne_bytes([first, second]).to_f64(),
        _ => f32::from_ne_bytes(bytes).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result of a right algorithm for every small inner size: the terms summed in fp32, the sum rounded once.
    #[test]
    fn a_right_result_passes_at_every_inner_size() {
        let (first, second) = (pattern(0), pattern(1));
        for k in (1..=4).chain([17, 1000, 60_000]) {
            for start in 0..100 {
                let terms = || (0..k).map(|l| (first[(start + l) % PATTERN], second[(7 * l + start) % PATTERN]));
                let exact: i64 = terms().map(|(a, b)| i64::from(a) * i64::from(b)).sum();
                let sum = terms().fold(0.0f32, |sum, (a, b)| sum + f32::from(a) * f32::from(b));
                for (computed, dtype) in [
                    (f16::from_f32(sum).to_f64(), DType::F16),
                    (bf16::from_f32(sum).to_f64(), DType::BF16),
                    (f64::from(sum), DType::F32),
                ] {
                    assert!(is_rounded(computed, exact as f64, dtype), "{dtype}, {k} terms: {computed}, not {exact}");
                }
            }
        }
    }

    #[test]
    fn partial_sums_that_were_rounded_are_noticed() {
        let (first, second) = (pattern(0), pattern(1));
        let part = |from: usize| -> f32 {
            (from..from + 30_000).map(|l| f32::from(first[l % PATTERN]) * f32::from(second[l * 3 % PATTERN])).sum()
        };
        let wrong = (0..50).filter(|start| {
            let (one, other) = (part(*start), part(start + 30_000));
            let reduced = bf16::from_f32(bf16::from_f32(one).to_f32() + bf16::from_f32(other).to_f32());
            !is_rounded(reduced.to_f64(), f64::from(one + other), DType::BF16)
        });
        assert!(wrong.count() > 10);
    }

    #[test]
    fn what_is_not_written_or_of_another_place_is_noticed() {
        assert!(!is_rounded(decoded(DType::F32, [0xff; 4]), 3.0, DType::F32));
        assert!(!is_rounded(decoded(DType::F16, [0xff; 4]), 3.0, DType::F16));
        assert!(!is_rounded(4.0, 3.0, DType::BF16));
        assert!(is_rounded(0.0, 0.0, DType::BF16));
    }

    #[test]
    fn a_pattern_holds_each_integer_in_about_equal_number() {
        for sequence in [0, 1] {
            let pattern = pattern(sequence);
            for integer in -2..=2 {
                let count = pattern.iter().filter(|x| **x == integer).count();
                assert!(count.abs_diff(PATTERN / 5) < PATTERN / 50, "{integer}: {count} of {PATTERN}");
            }
        }
    }
}
