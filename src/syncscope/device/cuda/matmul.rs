//! Matrix multiplications, by cuBLASLt with a plan for each shape.
//!
//! The first multiplication of a shape asks cuBLASLt which algorithm it expects to be fastest, and loads its kernels, which
//! can wait for other streams: warm a shape up before it is measured, and before a gate is closed. From then on a
//! multiplication is a look-up and a call of the library.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use super::driver::PoolSpan;
use super::driver::blas::{self, Algorithm, Descriptors, MatmulShape};
use super::stream::guard::{Scratch, StreamGuard, WORKSPACE_BYTES};
use crate::device::DType;
use crate::device::engine::Result;
use crate::device::operation::MatmulPrecision;

/// The most plans that a device keeps. A program that needs more makes them again.
const MAX_PLANS: usize = 4096;

/// The plans of one opened device.
#[derive(Default)]
pub(crate) struct Matmul(RwLock<HashMap<MatmulShape, Arc<(Descriptors, Algorithm)>>>);

impl Matmul {
    /// Enqueues a · b = out, for matrices of `sizes` [m, k, n] that hold elements. Accumulates in fp32.
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
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner).get(&shape).cloned();
        let plan = known.map_or_else(|| self.prepare(guard, shape), Ok)?;
        let (descriptors, algorithm) = &*plan;
        let workspace = match algorithm.workspace() {
            0 => None,
            _ => Some(guard.scratch(Scratch::Workspace, WORKSPACE_BYTES)?),
        };
        guard.multiply(descriptors, algorithm, workspace, operands)
    }

    #[cold]
    fn prepare(&self, guard: &StreamGuard<'_>, shape: MatmulShape) -> Result<Arc<(Descriptors, Algorithm)>> {
        let device = &guard.stream().device;
        let descriptors = Descriptors::new(&shape, device.name())?;
        let algorithm = descriptors.proposed(&shape, device.gpu.blas()?, WORKSPACE_BYTES)?;
        let plan = Arc::new((descriptors, algorithm));
        let mut plans = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if plans.len() >= MAX_PLANS {
            plans.clear();
        }
        plans.insert(shape, plan.clone());
        Ok(plan)
    }
}
