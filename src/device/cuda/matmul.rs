//! Matrix products, by cuBLASLt with plans that are searched once.
//!
//! The first product of a shape searches its plan: cuBLASLt proposes up to eight algorithms, each is timed on an
//! internal stream with operands of its own, and the fastest is kept while the device is open. That blocks the host
//! for some milliseconds and loads cuBLAS kernels, which can wait for other streams: warm a shape up before it is
//! measured, and before a gate is closed. From then on a product is a look-up and a launch.

use std::collections::HashMap;
use std::ptr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use cudarc::cublaslt::sys::{self, cublasLtHandle_t};
use cudarc::driver::sys as driver;

use super::handles::EventHandle;
use super::libraries::Library;
use super::operations;
use super::plan::{self, Algorithm, Descriptors, Plan, Product};
use super::queue::{Queue, Scratch, WORKSPACE_BYTES};
use crate::device::DType;
use crate::device::engine::{Precision, Result};

/// Rounds over all candidates; the fastest round counts, so that clocks that still rise favour none.
const ROUNDS: usize = 3;

/// How long one measurement of a candidate should take, and the most runs in it.
const MEASUREMENT_MS: f32 = 1.0;
const MOST_RUNS: f32 = 20.0;

/// From this time for all candidates on, one round must do.
const LONG_SEARCH_MS: f32 = 500.0;

/// The products of one opened device. Fields are dropped in this order.
#[derive(Default)]
pub(super) struct Matmul {
    plans: RwLock<HashMap<Product, Plan>>,
    searching: Mutex<()>,
    library: OnceLock<Handle>,
}

/// A handle of cuBLASLt, destroyed on drop.
struct Handle(cublasLtHandle_t);

// Safety: cuBLASLt allows one handle to be used by several threads.
unsafe impl Send for Handle {}
// Safety: as above.
unsafe impl Sync for Handle {}

impl Drop for Handle {
    /// Runs when the device closes. An error has nobody to tell.
    fn drop(&mut self) {
        // Safety: the handle is live and not used again.
        unsafe { sys::cublasLtDestroy(self.0) };
    }
}

impl Matmul {
    /// Enqueues `out[m, n] = a[m, k] · b[k, n]`, none of the sizes 0; `pointers` are those of a, b and out.
    pub(super) fn enqueue(
        &self,
        queue: &Arc<Queue>,
        dtype: DType,
        sizes: [usize; 3],
        precision: Precision,
        pointers: [u64; 3],
    ) -> Result<()> {
        let tf32 = precision == Precision::Tf32 && dtype == DType::Fp32;
        let product = Product { dtype, sizes, tf32, alignments: pointers.map(plan::alignment) };
        if let Some(done) = self.enqueue_planned(queue, &product, pointers) {
            return done;
        }
        {
            let _one_at_a_time = self.searching.lock().unwrap_or_else(PoisonError::into_inner);
            // Another thread may have found it meanwhile.
            if !self.plans.read().unwrap_or_else(PoisonError::into_inner).contains_key(&product) {
                let plan = search(queue, self.library(queue)?, &product)?;
                self.plans.write().unwrap_or_else(PoisonError::into_inner).insert(product, plan);
            }
        }
        let missing = || Err(plan::no_algorithm(&product, queue.context.primary.name()));
        self.enqueue_planned(queue, &product, pointers).unwrap_or_else(missing)
    }

    /// `None` where there is no plan yet.
    #[inline]
    fn enqueue_planned(&self, queue: &Queue, product: &Product, pointers: [u64; 3]) -> Option<Result<()>> {
        let plans = self.plans.read().unwrap_or_else(PoisonError::into_inner);
        let (plan, library) = (plans.get(product)?, self.library.get()?.0);
        // Safety: the layers above checked that the regions have the product's sizes; the alignments are theirs.
        Some(unsafe { plan.descriptors.enqueue(&plan.algorithm, library, queue, pointers) })
    }

    /// The handle; made by the one search that is under way.
    fn library(&self, queue: &Queue) -> Result<cublasLtHandle_t> {
        if let Some(handle) = self.library.get() {
            return Ok(handle.0);
        }
        Library::CublasLt.require()?;
        let mut raw = ptr::null_mut();
        // Safety: the library is there and the context current; writes one handle, which is destroyed on drop.
        plan::check(queue.context.primary.name(), "cublasLtCreate", unsafe { sys::cublasLtCreate(&mut raw) })?;
        Ok(self.library.get_or_init(|| Handle(raw)).0)
    }
}

/// The fastest of the proposed algorithms; the first one where there is no room to try them.
fn search(user: &Queue, library: cublasLtHandle_t, product: &Product) -> Result<Plan> {
    let device = user.context.primary.name();
    let descriptors = Descriptors::new(product, device)?;
    let candidates = descriptors.candidates(product, library, device)?;
    let Some(&first) = candidates.first() else {
        return Err(plan::no_algorithm(product, device));
    };
    let fastest = match Trial::new(user, product) {
        Ok(trial) => trial.fastest(&descriptors, library, &candidates)?,
        Err(_) => None,
    };
    Ok(Plan { descriptors, algorithm: fastest.unwrap_or(first) })
}

/// A stream and operands of its own: the user's stream may be held by a gate, and its data is not ours to write.
struct Trial {
    start: EventHandle,
    end: EventHandle,
    /// With their sizes.
    memory: Vec<(u64, usize)>,
    pointers: [u64; 3],
    queue: Queue,
}

impl Trial {
    fn new(user: &Queue, product: &Product) -> Result<Self> {
        let (context, [m, k, n]) = (&user.context, product.sizes);
        let mut trial = Self {
            start: EventHandle::new(&context.primary, true)?,
            end: EventHandle::new(&context.primary, true)?,
            memory: Vec::new(),
            pointers: [0; 3],
            queue: Queue::new(context.clone())?,
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
            // Safety: the memory is that long. Without NVRTC one byte everywhere must do: 0x3c gives small numbers.
            unsafe {
                let (pointer, queue) = (trial.pointers[i], &trial.queue);
                if operations::launch_normal(queue, product.dtype, pointer, len, 1, i as u64).is_err() {
                    driver::cuMemsetD8Async(pointer, 0x3c, bytes, queue.raw());
                }
            }
        }
        trial.queue.synchronize()?;
        Ok(trial)
    }

    /// `None` where no candidate runs.
    fn fastest(
        &self,
        descriptors: &Descriptors,
        library: cublasLtHandle_t,
        candidates: &[Algorithm],
    ) -> Result<Option<Algorithm>> {
        // The first run of a candidate loads its kernel; the second tells how often to repeat it.
        let mut runners = Vec::new();
        for candidate in candidates {
            let once = |runs| self.time(descriptors, library, candidate, runs);
            if let Some(time) = once(1).and_then(|_| once(1)) {
                runners.push((*candidate, (MEASUREMENT_MS / time.max(1e-3)).clamp(1.0, MOST_RUNS) as u32, time));
            }
        }
        let round: f32 = runners.iter().map(|&(_, runs, time)| runs as f32 * time).sum();
        let rounds = if round > LONG_SEARCH_MS { 1 } else { ROUNDS };
        let mut fastest: Option<(f32, Algorithm)> = None;
        for (candidate, runs, _) in runners.iter().cycle().take(rounds * runners.len()) {
            let Some(time) = self.time(descriptors, library, candidate, *runs) else { continue };
            if fastest.is_none_or(|(best, _)| time < best) {
                fastest = Some((time, *candidate));
            }
        }
        // What went wrong in a trial must not be laid to the next call.
        self.queue.synchronize()?;
        Ok(fastest.map(|(_, algorithm)| algorithm))
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
        record(&self.start)?;
        for _ in 0..runs {
            // Safety: the operands have the product's sizes and alignments.
            unsafe { descriptors.enqueue(candidate, library, queue, self.pointers) }.ok()?;
        }
        record(&self.end)?;
        queue.synchronize().ok()?;
        let (milliseconds, status) = primary.elapsed_time(self.start.raw(), self.end.raw());
        primary.check("cuEventElapsedTime", status).ok()?;
        Some(milliseconds / runs as f32)
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        for (memory, bytes) in self.memory.drain(..) {
            self.queue.free(memory, bytes);
        }
    }
}
