//! The search for a product's plan: which algorithm is fastest, and whether it is right.
//!
//! On a stream and operands of its own: the user's stream may be held by a gate, and its data is not ours to write.
//! Operands are normals that the host can draw, too ([`philox`]). The fastest algorithm is kept if some elements of what
//! it computes, corners among them, are what the host computes in fp64; otherwise the next.

use cudarc::cublaslt::sys::cublasLtHandle_t;
use cudarc::driver::sys as driver;
use half::{bf16, f16};

use crate::device::cuda::driver::handles::EventHandle;
use crate::device::cuda::matmul::plan::{self, Algorithm, Descriptors, MatmulShape, Plan};
use crate::device::cuda::stream::inner::{Scratch, StreamInner, WORKSPACE_BYTES};
use crate::device::cuda::stream::operations;
use crate::device::engine::Result;
use crate::device::{DType, philox};
use crate::error::DeviceError;

/// Rounds over all candidates; the fastest round counts, so that clocks that still rise favour none.
const ROUNDS: usize = 3;

/// How long one measurement of a candidate should take, and the most runs in it.
const MEASUREMENT_MS: f32 = 1.0;
const MOST_RUNS: f32 = 20.0;

/// From this time for all candidates on, one round must do.
const LONG_SEARCH_MS: f32 = 500.0;

/// The seed of the operands; a is of sequence 0, b of sequence 1.
const SEED: u64 = 1;

/// The byte of operands that are all the same: about 1 in fp16, 0.01 in bf16 and fp32.
const SAME: u8 = 0x3c;

/// The fastest of the proposed algorithms that is right; the first one, unchecked, where there is no room to try them.
pub(crate) fn search(user: &StreamInner, library: cublasLtHandle_t, product: &MatmulShape) -> Result<Plan> {
    let device = user.context.primary.name();
    let descriptors = Descriptors::new(product, device)?;
    let candidates = descriptors.candidates(product, library, device)?;
    let Some(&first) = candidates.first() else {
        return Err(plan::no_algorithm(product, device));
    };
    let Ok(trial) = Autotune::new(user, product) else { return Ok(Plan::new(descriptors, first)) };
    let mut timed = trial.timed(&descriptors, library, &candidates)?;
    timed.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let right = timed.iter().find(|(_, algorithm)| trial.is_right(&descriptors, library, algorithm, product));
    right.map(|&(_, algorithm)| Plan::new(descriptors, algorithm)).ok_or_else(|| DeviceError::CallFailed {
        device: device.to_owned(),
        call: "cublasLtMatmul",
        reason: format!("none of {} algorithms computes {:?} rightly", timed.len(), product.sizes),
    })
}

/// A stream, operands and an output.
struct Autotune {
    start: EventHandle,
    end: EventHandle,
    /// With their sizes.
    memory: Vec<(u64, usize)>,
    pointers: [u64; 3],
    /// Whether the operands are normals; otherwise all are the same.
    normals: bool,
    queue: StreamInner,
}

impl Autotune {
    fn new(user: &StreamInner, product: &MatmulShape) -> Result<Self> {
        let (context, [m, k, n]) = (&user.context, product.sizes);
        let mut trial = Self {
            start: EventHandle::new(&context.primary, true)?,
            end: EventHandle::new(&context.primary, true)?,
            memory: Vec::new(),
            pointers: [0; 3],
            normals: true,
            queue: StreamInner::new(context.clone())?,
        };
        trial.queue.scratch(Scratch::Workspace, WORKSPACE_BYTES)?;
        for (i, len) in [m * k, k * n, m * n].into_iter().enumerate() {
            let bytes = len * product.dtype.size();
            // As badly aligned as the user's operands, so that the trial is of the same thing.
            let offset = u64::from(product.alignments[i]) % 256;
            let memory = trial.queue.allocate(bytes + 256)?;
            trial.memory.push((memory, bytes + 256));
            trial.pointers[i] = memory + offset;
            // Data changes the time of a product, zeros most of all.
            // Safety: the memory is that long. Without NVRTC one byte everywhere must do: it gives small numbers.
            unsafe {
                let (pointer, queue) = (trial.pointers[i], &trial.queue);
                if operations::launch_normal(queue, product.dtype, pointer, len, SEED, i as u64).is_err() {
                    driver::cuMemsetD8Async(pointer, SAME, bytes, queue.raw());
                    trial.normals = false;
                }
            }
        }
        trial.queue.synchronize()?;
        Ok(trial)
    }

    /// The candidates that run, with the time of a run in milliseconds: the least of some rounds.
    fn timed(
        &self,
        descriptors: &Descriptors,
        library: cublasLtHandle_t,
        candidates: &[Algorithm],
    ) -> Result<Vec<(f32, Algorithm)>> {
        // The first run of a candidate loads its kernel; the second tells how often to repeat it.
        let mut timed = Vec::new();
        for candidate in candidates {
            let once = |runs| self.time(descriptors, library, candidate, runs);
            if let Some(time) = once(1).and_then(|_| once(1)) {
                timed.push((time, *candidate));
            }
        }
        let runs = timed.iter().map(|(time, _)| (MEASUREMENT_MS / time.max(1e-3)).clamp(1.0, MOST_RUNS));
        let runs: Vec<f32> = runs.map(f32::floor).collect();
        let round: f32 = runs.iter().zip(&timed).map(|(runs, (time, _))| runs * time).sum();
        timed.iter_mut().for_each(|(best, _)| *best = f32::INFINITY);
        for _ in 0..if round > LONG_SEARCH_MS { 1 } else { ROUNDS } {
            for ((best, candidate), runs) in timed.iter_mut().zip(&runs) {
                if let Some(time) = self.time(descriptors, library, candidate, *runs as u32) {
                    *best = best.min(time);
                }
            }
        }
        // What went wrong in a trial must not be laid to the next call.
        self.queue.synchronize()?;
        Ok(timed)
    }

    /// Whether elements of the product are what the host computes of them; not asked where the operands are no normals.
    ///
    /// The operands of the host differ from the device's by up to 4·10⁻⁵ before and one rounding after that, each of the
    /// `k` summands independently; an algorithm that is wrong is off by about the root of the sum of their squares.
    fn is_right(
        &self,
        descriptors: &Descriptors,
        library: cublasLtHandle_t,
        algorithm: &Algorithm,
        product: &MatmulShape,
    ) -> bool {
        // Of operands that are all the same, errors of rounding add up, and elements that changed places are not seen.
        if !self.normals {
            return true;
        }
        let [m, k, n] = product.sizes;
        let bytes = m * n * product.dtype.size();
        // All ones are no number: what is left out is seen.
        // Safety: the output is that long.
        unsafe { driver::cuMemsetD8Async(self.pointers[2], 0xff, bytes, self.queue.raw()) };
        if self.time(descriptors, library, algorithm, 1).is_none() {
            return false;
        }
        let (epsilon, places) =
            (epsilon(product), [(0, 0), (m - 1, n - 1), (0, n - 1), (m - 1, 0), (m / 2, n / 3), (m / 3, n / 2)]);
        places.into_iter().all(|(row, column)| {
            let summand =
                |l| Self::operand(product.dtype, 0, row * k + l) * Self::operand(product.dtype, 1, l * n + column);
            let (sum, squares) = (0..k).map(summand).fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
            let limit = epsilon * sum.abs() + (16.0 * epsilon + 4e-4) * squares.sqrt();
            let computed = self.output(product.dtype, row * n + column);
            computed.is_some_and(|computed| (computed - sum).abs() <= limit)
        })
    }

    /// Element `at` of an operand, as the host knows it.
    fn operand(dtype: DType, sequence: u64, at: usize) -> f64 {
        let normal = philox::normals(philox::block(SEED, sequence, at as u64 / 4))[at % 4];
        match dtype {
            DType::F16 => f16::from_f32(normal).to_f64(),
            DType::BF16 => bf16::from_f32(normal).to_f64(),
            _ => normal.into(),
        }
    }

    /// Element `at` of the output; the stream is idle.
    fn output(&self, dtype: DType, at: usize) -> Option<f64> {
        let (size, mut bytes) = (dtype.size(), [0; 4]);
        let from = self.pointers[2] + (at * size) as u64;
        // Safety: the output holds the element; writes `size` bytes, at most 4.
        let status = unsafe { driver::cuMemcpyDtoH_v2(bytes.as_mut_ptr().cast(), from, size.min(4)) };
        self.queue.check("cuMemcpyDtoH", status).ok().map(|()| decoded(dtype, bytes))
    }

    /// Milliseconds a run, over `runs` in a row; `None` where the algorithm does not run.
    fn time(
        &self,
        descriptors: &Descriptors,
        library: cublasLtHandle_t,
        candidate: &Algorithm,
        runs: u32,
    ) -> Option<f32> {
        let (queue, primary) = (&self.queue, &self.queue.context.primary);
        let record = |event: &EventHandle| {
            // Safety: both handles are live.
            primary.check("cuEventRecord", unsafe { driver::cuEventRecord(event.raw(), queue.raw()) }).ok()
        };
        let workspace = candidate.workspace(queue).ok()?;
        record(&self.start)?;
        for _ in 0..runs {
            // Safety: the operands have the product's sizes and alignments.
            unsafe { descriptors.enqueue(candidate, library, queue, queue.raw(), workspace, self.pointers) }.ok()?;
        }
        record(&self.end)?;
        queue.synchronize().ok()?;
        let (milliseconds, status) = primary.elapsed_time(self.start.raw(), self.end.raw());
        primary.check("cuEventElapsedTime", status).ok()?;
        Some(milliseconds / runs as f32)
    }
}

impl Drop for Autotune {
    fn drop(&mut self) {
        for (memory, bytes) in self.memory.drain(..) {
            self.queue.free(memory, bytes);
        }
    }
}

/// What the products of operands of a type are rounded to, relative to 1.
fn epsilon(product: &MatmulShape) -> f64 {
    match product.dtype {
        DType::F16 => f16::EPSILON.to_f64(),
        DType::BF16 => bf16::EPSILON.to_f64(),
        _ if product.tf32 => f16::EPSILON.to_f64(),
        _ => f32::EPSILON.into(),
    }
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
