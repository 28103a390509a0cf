//! Matrix multiplications by cuBLASLt: descriptors, the algorithms that it proposes, and the call.
//!
//! cuBLAS thinks in columns. A row-major `out[m, n] = a[m, k] · b[k, n]` is, read by columns, the multiplication
//! `outᵀ[n, m] = bᵀ[n, k] · aᵀ[k, m]` of the same memory: the operands change places and nothing is transposed.

use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::Arc;

use cudarc::cublaslt::sys::{
    self, cublasComputeType_t, cublasLtHandle_t, cublasLtMatmulAlgo_t, cublasLtMatmulDesc_t,
    cublasLtMatmulHeuristicResult_t, cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t,
    cublasLtMatrixLayout_t, cublasLtReductionScheme_t, cublasStatus_t, cudaDataType_t,
};

use super::libraries::Library;
use super::{Context, PoolSpan, Stream, exit};
use crate::device::DType;
use crate::device::engine::Result;
use crate::error::DeviceError;

/// A handle of the library. Lives as long as its context: to destroy it waits for the device.
pub(crate) struct Blas {
    raw: cublasLtHandle_t,
    context: Arc<Context>,
}

// Safety: cuBLASLt allows one handle to be used by several threads.
unsafe impl Send for Blas {}
// Safety: as above.
unsafe impl Sync for Blas {}

impl Blas {
    /// # Errors
    /// The library is missing.
    pub(crate) fn new(context: &Arc<Context>) -> Result<Self> {
        Library::CublasLt.require()?;
        context.bind()?;
        let mut raw = ptr::null_mut();
        // Safety: the library is there and the context current; writes one handle.
        check(context.name(), "cublasLtCreate", unsafe { sys::cublasLtCreate(&mut raw) })?;
        Ok(Self { raw, context: context.clone() })
    }
}

/// The version of the library: `13.1.0`; `None` where there is none.
pub(crate) fn version() -> Option<String> {
    // Safety: the library is there; the call only returns a number.
    Library::CublasLt.is_present().then(|| dotted(unsafe { sys::cublasLtGetVersion() }))
}

fn dotted(version: usize) -> String {
    format!("{}.{}.{}", version / 10_000, version / 100 % 100, version % 100)
}

/// What a plan depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MatmulShape {
    pub(crate) dtype: DType,
    /// `[m, k, n]`
    pub(crate) sizes: [usize; 3],
    /// Whether fp32 operands may be rounded to tf32.
    pub(crate) tf32: bool,
    /// What the addresses of a, b and out are multiples of: an algorithm may count on it.
    pub(crate) alignments: [u32; 3],
}

/// The alignment of an address, in the classes that algorithms tell apart.
pub(crate) fn alignment(address: u64) -> u32 {
    match address.trailing_zeros() {
        8.. => 256,
        bits => 1 << bits.min(4),
    }
}

/// Descriptors of a matrix multiplication, destroyed on drop.
pub(crate) struct Descriptors {
    operation: cublasLtMatmulDesc_t,
    layouts: [cublasLtMatrixLayout_t; 3],
}

// Safety: descriptors are only read once they are made.
unsafe impl Send for Descriptors {}
// Safety: as above.
unsafe impl Sync for Descriptors {}

/// A way to compute a matrix multiplication.
#[derive(Clone, Copy)]
pub(crate) struct Algorithm {
    algorithm: cublasLtMatmulAlgo_t,
    workspace: usize,
}

impl Algorithm {
    /// The bytes of workspace that it needs.
    #[inline]
    pub(crate) fn workspace(&self) -> usize {
        self.workspace
    }
}

impl Descriptors {
    pub(crate) fn new(shape: &MatmulShape, device: &str) -> Result<Self> {
        let compute = match (shape.dtype, shape.tf32) {
            (DType::F32, true) => cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32,
            _ => cublasComputeType_t::CUBLAS_COMPUTE_32F,
        };
        let element = match shape.dtype {
            DType::F16 => cudaDataType_t::CUDA_R_16F,
            DType::BF16 => cudaDataType_t::CUDA_R_16BF,
            DType::F32 => cudaDataType_t::CUDA_R_32F,
            dtype @ (DType::I64 | DType::U8) => {
                let reason = format!("there is no matrix multiplication of {dtype}");
                return Err(DeviceError::invalid("matmul", reason));
            }
        };
        let mut made = Self { operation: ptr::null_mut(), layouts: [ptr::null_mut(); 3] };
        // Safety: writes one handle, which is destroyed on drop.
        let status = unsafe { sys::cublasLtMatmulDescCreate(&mut made.operation, compute, cudaDataType_t::CUDA_R_32F) };
        check(device, "cublasLtMatmulDescCreate", status)?;
        let [m, k, n] = shape.sizes.map(|size| size as u64);
        for (layout, (rows, columns)) in made.layouts.iter_mut().zip([(n, k), (k, m), (n, m)]) {
            // Safety: writes one handle, which is destroyed on drop.
            let status = unsafe { sys::cublasLtMatrixLayoutCreate(layout, element, rows, columns, rows as i64) };
            check(device, "cublasLtMatrixLayoutCreate", status)?;
        }
        Ok(made)
    }

    /// The algorithm that cuBLASLt expects to be fastest.
    pub(crate) fn proposed(&self, shape: &MatmulShape, blas: &Blas, workspace: usize) -> Result<Algorithm> {
        let device = blas.context.name();
        let preference = Preference::new(shape, workspace, device)?;
        // Safety: numbers and a status, of which zero is a valid value.
        let mut found: cublasLtMatmulHeuristicResult_t = unsafe { std::mem::zeroed() };
        let mut count = 0;
        let [first, second, out] = self.layouts;
        let _inside = exit::enter();
        // Safety: all handles are live; writes at most the one result that is asked for.
        let status = unsafe {
            sys::cublasLtMatmulAlgoGetHeuristic(
                blas.raw,
                self.operation,
                first,
                second,
                out,
                out,
                preference.0,
                1,
                &mut found,
                &mut count,
            )
        };
        // The call loads tables of the library, which it takes away at the end.
        exit::come_first();
        let is_none = status == cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED;
        if is_none || count == 0 && status == cublasStatus_t::CUBLAS_STATUS_SUCCESS {
            let ([m, k, n], dtype) = (shape.sizes, shape.dtype);
            let reason = format!("no algorithm for {dtype} [{m}, {k}] · [{k}, {n}]");
            return Err(failed(device, "cublasLtMatmulAlgoGetHeuristic", reason));
        }
        check(device, "cublasLtMatmulAlgoGetHeuristic", status)?;
        check(device, "cublasLtMatmulAlgoGetHeuristic", found.state)?;
        Ok(Algorithm { algorithm: found.algo, workspace: found.workspaceSize })
    }
}

impl Stream {
    /// Has cuBLASLt enqueue a multiplication by one algorithm; `operands` are a, b and out, of the sizes and alignments that
    /// the descriptors were made for, and `workspace` is as large as the algorithm needs.
    #[inline]
    pub(crate) fn multiply(
        &self,
        blas: &Blas,
        descriptors: &Descriptors,
        algorithm: &Algorithm,
        workspace: Option<PoolSpan>,
        operands: [PoolSpan; 3],
    ) -> Result<()> {
        let [a, b, out] = operands.map(|operand| operand.address() as *mut c_void);
        let [first, second, result] = descriptors.layouts;
        let (one, zero) = (1.0f32, 0.0f32);
        let workspace = workspace.map_or(ptr::null_mut(), |workspace| workspace.address() as *mut c_void);
        let _inside = exit::enter();
        // Safety: all handles are live; scalars are copied; the rest is the caller's promise.
        let status = unsafe {
            sys::cublasLtMatmul(
                blas.raw,
                descriptors.operation,
                (&raw const one).cast(),
                b,
                first,
                a,
                second,
                (&raw const zero).cast(),
                out,
                result,
                out,
                result,
                &algorithm.algorithm,
                workspace,
                algorithm.workspace,
                self.raw().cast(),
            )
        };
        check(self.context().name(), "cublasLtMatmul", status)
    }
}

impl Drop for Descriptors {
    /// A drop cannot return an error.
    fn drop(&mut self) {
        // Safety: each handle is live or null, and not used again.
        unsafe {
            for layout in self.layouts.into_iter().filter(|layout| !layout.is_null()) {
                sys::cublasLtMatrixLayoutDestroy(layout);
            }
            if !self.operation.is_null() {
                sys::cublasLtMatmulDescDestroy(self.operation);
            }
        }
    }
}

/// How the parts of a split sum may be added up, as a mask; not to split is always allowed. In fp16 and bf16 the other
/// schemes round the parts to the output's type, which the error bound of a matrix multiplication has no room for. In fp32
/// that is the type of the computation.
fn reductions(dtype: DType) -> u32 {
    use cublasLtReductionScheme_t as Scheme;
    match dtype {
        DType::F32 => Scheme::CUBLASLT_REDUCTION_SCHEME_MASK as u32,
        _ => Scheme::CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE as u32,
    }
}

/// What an algorithm may use and count on.
struct Preference(cublasLtMatmulPreference_t);

impl Preference {
    fn new(shape: &MatmulShape, workspace: usize, device: &str) -> Result<Self> {
        use cublasLtMatmulPreferenceAttributes_t as Attribute;
        let mut raw = ptr::null_mut();
        // Safety: writes one handle, which is destroyed on drop.
        check(device, "cublasLtMatmulPreferenceCreate", unsafe { sys::cublasLtMatmulPreferenceCreate(&mut raw) })?;
        let preference = Self(raw);
        preference.set(Attribute::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &(workspace as u64), device)?;
        preference.set(Attribute::CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions(shape.dtype), device)?;
        let [a, b, out] = shape.alignments;
        for (attribute, alignment) in [
            // In the order of cuBLAS, for which `b` is the first operand.
            (Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, b),
            (Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, a),
            (Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, out),
            (Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, out),
        ] {
            preference.set(attribute, &alignment, device)?;
        }
        Ok(preference)
    }

    fn set<T>(&self, attribute: cublasLtMatmulPreferenceAttributes_t, value: &T, device: &str) -> Result<()> {
        // Safety: the value has the type that the attribute is documented with: 64 bits for the workspace, 32 for
        // alignments and reductions.
        let status = unsafe {
            let (value, size) = (ptr::from_ref(value).cast(), size_of::<T>());
            sys::cublasLtMatmulPreferenceSetAttribute(self.0, attribute, value, size)
        };
        check(device, "cublasLtMatmulPreferenceSetAttribute", status)
    }
}

impl Drop for Preference {
    fn drop(&mut self) {
        // Safety: the handle is live and not used again. A drop cannot return an error.
        unsafe { sys::cublasLtMatmulPreferenceDestroy(self.0) };
    }
}

/// Turns a status of cuBLASLt into a result.
#[inline]
pub(crate) fn check(device: &str, call: &'static str, status: cublasStatus_t) -> Result<()> {
    match status {
        cublasStatus_t::CUBLAS_STATUS_SUCCESS => Ok(()),
        status => Err(failed(device, call, words(status))),
    }
}

#[cold]
fn failed(device: &str, call: &'static str, reason: String) -> DeviceError {
    DeviceError::call_failed(device, call, reason)
}

#[cold]
fn words(status: cublasStatus_t) -> String {
    // Safety: gives a static, terminated text for every status.
    let text = unsafe { sys::cublasLtGetStatusString(status) };
    if text.is_null() {
        return format!("{status:?}");
    }
    // Safety: as above.
    format!("{status:?} ({})", unsafe { CStr::from_ptr(text) }.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_shown_as_its_maker_writes_it() {
        assert_eq!([dotted(130_100), dotted(120_401)], ["13.1.0", "12.4.1"]);
    }

    #[test]
    fn no_sum_of_two_byte_types_is_rounded_between_its_parts() {
        assert_eq!([DType::F16, DType::BF16, DType::F32].map(reductions), [2, 2, 7]);
    }

    #[test]
    fn an_address_falls_into_the_class_it_is_a_multiple_of() {
        for (address, class) in [(0x7f00_0000_0000, 256), (256, 256), (128, 16), (16, 16), (8, 8), (36, 4), (2, 2)] {
            assert_eq!(alignment(address), class, "{address}");
        }
    }
}
