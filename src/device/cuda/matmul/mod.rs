//! Matrix products, by cuBLASLt with plans that are searched once.
//!
//! The first product of a shape searches its plan: cuBLASLt proposes up to eight algorithms, each is timed on an
//! internal stream with operands of its own, and the fastest is kept while the device is open. That blocks the host
//! for some milliseconds and loads cuBLAS kernels, which can wait for other streams: warm a shape up before it is
//! measured, and before a gate is closed. From then on a product is a look-up and a launch.

mod autotune;
pub(crate) mod plan;

use std::collections::HashMap;
use std::ptr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use cudarc::cublaslt::sys::{self, cublasLtHandle_t};

use crate::device::DType;
use crate::device::cuda::driver::handles::StreamHandle;
use crate::device::cuda::driver::libraries::Library;
use crate::device::cuda::stream::inner::StreamInner;
use crate::device::engine::{MatmulPrecision, Result};
use plan::{MatmulShape, Plan};

/// The products of one opened device. Fields are dropped in this order.
#[derive(Default)]
pub(crate) struct Matmul {
    plans: RwLock<HashMap<MatmulShape, Plan>>,
    searching: Mutex<()>,
    library: OnceLock<Handle>,
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
        let product = MatmulShape { dtype, sizes, tf32, alignments: pointers.map(plan::alignment) };
        if let Some(done) = self.enqueue_planned(queue, &product, pointers) {
            return done;
        }
        {
            let _one_at_a_time = self.searching.lock().unwrap_or_else(PoisonError::into_inner);
            // Another thread may have found it meanwhile.
            if !self.plans.read().unwrap_or_else(PoisonError::into_inner).contains_key(&product) {
                let plan = autotune::search(queue, self.library(queue)?, &product)?;
                self.plans.write().unwrap_or_else(PoisonError::into_inner).insert(product, plan);
            }
        }
        let missing = || Err(plan::no_algorithm(&product, queue.context.primary.name()));
        self.enqueue_planned(queue, &product, pointers).unwrap_or_else(missing)
    }

    /// `None` where there is no plan yet.
    #[inline]
    fn enqueue_planned(&self, queue: &StreamInner, product: &MatmulShape, pointers: [u64; 3]) -> Option<Result<()>> {
        let plans = self.plans.read().unwrap_or_else(PoisonError::into_inner);
        let (plan, library) = (plans.get(product)?, self.library.get()?);
        // Safety: the layers above checked that the regions have the product's sizes; the alignments are theirs.
        Some(unsafe { plan.enqueue(library.raw, queue, &library.apart, pointers) })
    }

    /// The handle; made by the one search that is under way.
    fn library(&self, queue: &StreamInner) -> Result<cublasLtHandle_t> {
        if let Some(handle) = self.library.get() {
            return Ok(handle.raw);
        }
        Library::CublasLt.require()?;
        let mut raw = ptr::null_mut();
        let apart = Mutex::new(StreamHandle::new(&queue.context.primary)?);
        // Safety: the library is there and the context current; writes one handle, which is destroyed on drop.
        plan::check(queue.context.primary.name(), "cublasLtCreate", unsafe { sys::cublasLtCreate(&mut raw) })?;
        Ok(self.library.get_or_init(|| Handle { raw, apart }).raw)
    }
}
