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
mod plan;
mod recent;

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::driver::PoolSpan;
use super::driver::blas::{self, Algorithm, Descriptors, MatmulShape};
use super::gpu::lock;
use super::stream::guard::StreamGuard;
use crate::device::DType;
use crate::device::engine::Result;
use crate::device::operation::MatmulPrecision;
use autotune::Found;
use plan::MatmulPlan;
use recent::Recent;

/// The most plans that a device keeps, and the most algorithms.
const PLANS: usize = 128;
const ALGORITHMS: usize = 1 << 14;

/// The matrix multiplications of one opened device.
pub(crate) struct Matmul {
    plans: RwLock<Recent<MatmulShape, Arc<MatmulPlan>>>,
    /// What the searches found.
    algorithms: Mutex<Recent<MatmulShape, Algorithm>>,
    /// Locked while a search is under way: two at once would disturb each other's times.
    searching: Mutex<()>,
}

impl Default for Matmul {
    fn default() -> Self {
        Self {
            plans: RwLock::new(Recent::new(PLANS)),
            algorithms: Mutex::new(Recent::new(ALGORITHMS)),
            searching: Mutex::default(),
        }
    }
}

impl Matmul {
    /// Enqueues `out[m, n] = a[m, k] · b[k, n]`, none of the sizes 0; `operands` are a, b and out.
    pub(super) fn enqueue(
        &self,
        guard: &StreamGuard<'_>,
        dtype: DType,
        sizes: [usize; 3],
        precision: MatmulPrecision,
        operands: [PoolSpan; 3],
    ) -> Result<()> {
        let tf32 = precision == MatmulPrecision::Tf32 && dtype == DType::F32;
        let alignments = operands.map(|operand| blas::alignment(operand.address()));
        let shape = MatmulShape { dtype, sizes, tf32, alignments };
        // Not enqueued with the plans locked: the driver may block while the queue of the stream is full.
        let known = self.plans.read().unwrap_or_else(PoisonError::into_inner).get(&shape).cloned();
        match known {
            Some(plan) => plan.enqueue(guard, operands),
            None => self.prepare(guard, shape)?.enqueue(guard, operands),
        }
    }

    /// The algorithms that the searches found, by type and shape, in words. Of shapes that differ in alignment alone, each one.
    pub(crate) fn found(&self) -> Vec<(String, String)> {
        let algorithms = lock(&self.algorithms);
        let mut found: Vec<(String, String)> =
            algorithms.iter().map(|(shape, algorithm)| (shape.in_words(), algorithm.in_words())).collect();
        found.sort();
        found.dedup();
        found
    }

    /// A new plan; its algorithm is searched if it is not known. One that was not tried is for this time alone.
    #[cold]
    fn prepare(&self, guard: &StreamGuard<'_>, shape: MatmulShape) -> Result<Arc<MatmulPlan>> {
        let descriptors = Descriptors::new(&shape, guard.stream().device.name())?;
        let algorithm = match self.known(&shape).map_or_else(|| self.search(guard, &shape, &descriptors), Ok)? {
            Found::Right(algorithm) => algorithm,
            Found::Proposed(first) => return Ok(Arc::new(MatmulPlan::new(descriptors, first))),
        };
        let plan = Arc::new(MatmulPlan::new(descriptors, algorithm));
        let gone = self.plans.write().unwrap_or_else(PoisonError::into_inner).insert(shape, plan.clone());
        // Not while the plans are locked: its graphs are destroyed.
        drop(gone);
        Ok(plan)
    }

    /// What a search has found for a shape. A search that is under way is not waited for.
    fn known(&self, shape: &MatmulShape) -> Option<Found> {
        lock(&self.algorithms).get(shape).copied().map(Found::Right)
    }

    fn search(&self, guard: &StreamGuard<'_>, shape: &MatmulShape, descriptors: &Descriptors) -> Result<Found> {
        let _one_at_a_time = lock(&self.searching);
        // Another thread may have searched it meanwhile.
        if let Some(known) = self.known(shape) {
            return Ok(known);
        }
        let found = autotune::search(&guard.stream().device, shape, descriptors)?;
        if let Found::Right(algorithm) = found {
            lock(&self.algorithms).insert(*shape, algorithm);
        }
        Ok(found)
    }
}
