//! Matrix multiplications, by cuBLASLt with plans that are searched once.
//!
//! The first multiplication of a shape searches its plan: cuBLASLt proposes algorithms, each is timed on an internal stream
//! with operands of its own, and the fastest is kept. That blocks the host for some tens of milliseconds and loads cuBLAS
//! kernels, which can wait for other streams: warm a shape up before it is measured, and before a gate is closed. From then
//! on a multiplication is a look-up and a launch.
//!
//! Plans hold graphs and are large, so only the most recently used are kept; the algorithms that were found take some
//! hundred bytes each, so that a plan that had to go is made again without a search.

mod autotune;
pub(crate) mod plan;
mod recent;

use std::ptr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use cudarc::cublaslt::sys::{self, cublasLtHandle_t};

use crate::device::DType;
use crate::device::cuda::driver::handles::StreamHandle;
use crate::device::cuda::driver::libraries::Library;
use crate::device::cuda::stream::inner::StreamInner;
use crate::device::engine::{MatmulPrecision, Result};
use plan::{Algorithm, Descriptors, MatmulShape, Plan};
use recent::Recent;

/// The most plans that a device keeps, and the most algorithms.
const PLANS: usize = 128;
const ALGORITHMS: usize = 1 << 14;

/// The matrix multiplications of one opened device. Fields are dropped in this order.
pub(crate) struct Matmul {
    plans: RwLock<Recent<MatmulShape, Plan>>,
    /// What the searches found. Locked while one is under way: two at once would disturb each other's times.
    algorithms: Mutex<Recent<MatmulShape, Algorithm>>,
    library: OnceLock<Handle>,
}

impl Default for Matmul {
    fn default() -> Self {
        let (plans, algorithms) = (RwLock::new(Recent::new(PLANS)), Mutex::new(Recent::new(ALGORITHMS)));
        Self { plans, algorithms, library: OnceLock::new() }
    }
}

/// A handle of cuBLASLt, destroyed on drop, and a stream to capture products on.
struct Handle {
    raw: cublasLtHandle_t,
    apart: Mutex<StreamHandle>,
}

// Safety: cuBLASLt allows one handle to be used by several threads.
unsafe impl Send for Handle {}
// Safety: as above.
unsafe impl Sync for Handle {}

impl Drop for Handle {
    /// Runs when the device closes. A drop cannot return an error.
    fn drop(&mut self) {
        // Safety: the handle is live and not used again.
        unsafe { sys::cublasLtDestroy(self.raw) };
    }
}

impl Matmul {
    /// Enqueues `out[m, n] = a[m, k] · b[k, n]`, none of the sizes 0; `pointers` are those of a, b and out.
    pub(crate) fn enqueue(
        &self,
        queue: &Arc<StreamInner>,
        dtype: DType,
        sizes: [usize; 3],
        precision: MatmulPrecision,
        pointers: [u64; 3],
    ) -> Result<()> {
        let tf32 = precision == MatmulPrecision::Tf32 && dtype == DType::F32;
        let shape = MatmulShape { dtype, sizes, tf32, alignments: pointers.map(plan::alignment) };
        if let Some(done) = self.enqueue_planned(queue, &shape, pointers) {
            return done;
        }
        let plan = self.prepare(queue, &shape)?;
        let library = self.library(queue)?;
        // Safety: the layers above checked that the regions have the shape's sizes; the alignments are theirs.
        let done = unsafe { plan.enqueue(library.raw, queue, &library.apart, pointers) };
        let gone = self.plans.write().unwrap_or_else(PoisonError::into_inner).insert(shape, plan);
        // Not while the plans are locked: its graphs are destroyed.
        drop(gone);
        done
    }

    /// A new plan; its algorithm is searched if it is not known.
    #[cold]
    fn prepare(&self, queue: &StreamInner, shape: &MatmulShape) -> Result<Plan> {
        let descriptors = Descriptors::new(shape, queue.context.primary.name())?;
        let mut algorithms = self.algorithms.lock().unwrap_or_else(PoisonError::into_inner);
        let algorithm = match algorithms.get(shape) {
            Some(&known) => known,
            None => {
                let found = autotune::search(queue, self.library(queue)?.raw, shape, &descriptors)?;
                algorithms.insert(*shape, found);
                found
            }
        };
        Ok(Plan::new(descriptors, algorithm))
    }

    /// `None` where there is no plan.
    #[inline]
    fn enqueue_planned(&self, queue: &StreamInner, shape: &MatmulShape, pointers: [u64; 3]) -> Option<Result<()>> {
        let plans = self.plans.read().unwrap_or_else(PoisonError::into_inner);
        let (plan, library) = (plans.get(shape)?, self.library.get()?);
        // Safety: the layers above checked that the regions have the shape's sizes; the alignments are theirs.
        Some(unsafe { plan.enqueue(library.raw, queue, &library.apart, pointers) })
    }

    /// The handle; made by the first search.
    fn library(&self, queue: &StreamInner) -> Result<&Handle> {
        if let Some(handle) = self.library.get() {
            return Ok(handle);
        }
        Library::CublasLt.require()?;
        let mut raw = ptr::null_mut();
        let apart = Mutex::new(StreamHandle::new(&queue.context.primary)?);
        // Safety: the library is there and the context current; writes one handle, which is destroyed on drop.
        plan::check(queue.context.primary.name(), "cublasLtCreate", unsafe { sys::cublasLtCreate(&mut raw) })?;
        Ok(self.library.get_or_init(|| Handle { raw, apart }))
    }
}
