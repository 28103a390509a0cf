//! A matrix product prepared for one shape: descriptors and algorithm, ready to enqueue.
//!
//! cuBLASLt takes some microseconds to turn a product into its launch, each time. So a product whose operands lie where
//! they lay before is kept as a graph of its own, which the driver launches in one: the first time it is enqueued by
//! cuBLASLt, the second time its graph is made, and from then on launched.
//!
//! cuBLAS thinks in columns. A row-major `out[m, n] = a[m, k] · b[k, n]` is, read by columns, the product
//! `outᵀ[n, m] = bᵀ[n, k] · aᵀ[k, m]` of the same memory: the operands change places and nothing is transposed.

use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::{Mutex, PoisonError};

use cudarc::cublaslt::sys::{
    self, cublasComputeType_t, cublasLtHandle_t, cublasLtMatmulAlgo_t, cublasLtMatmulDesc_t,
    cublasLtMatmulHeuristicResult_t, cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t,
    cublasLtMatrixLayout_t, cublasLtReductionScheme_t, cublasStatus_t, cudaDataType_t,
};
use cudarc::driver::sys::CUstream;

use crate::device::DType;
use crate::device::cuda::driver::handles::StreamHandle;
use crate::device::cuda::stream::graph::GraphHandle;
use crate::device::cuda::stream::inner::{Scratch, StreamInner, WORKSPACE_BYTES};
use crate::device::engine::Result;
use crate::error::DeviceError;

/// How many algorithms are asked for.
const CANDIDATES: usize = 32;

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

/// Descriptors of a product, destroyed on drop.
pub(crate) struct Descriptors {
    operation: cublasLtMatmulDesc_t,
    layouts: [cublasLtMatrixLayout_t; 3],
}

// Safety: descriptors are only read once they are made.
unsafe impl Send for Descriptors {}
// Safety: as above.
unsafe impl Sync for Descriptors {}

/// A way to compute a product.
#[derive(Clone, Copy)]
pub(crate) struct Algorithm {
    algorithm: cublasLtMatmulAlgo_t,
    workspace: usize,
}

/// A product ready to enqueue.
pub(crate) struct Plan {
    descriptors: Descriptors,
    algorithm: Algorithm,
    /// Where operands lay, the latest last.
    places: Mutex<Vec<(Place, Launch)>>,
}

/// How many places a plan remembers.
const PLACES: usize = 16;

/// The addresses of a, b, out and the workspace, which is 0 where there is none.
type Place = ([u64; 3], u64);

/// How a product at one place is enqueued.
enum Launch {
    /// By cuBLASLt; a graph next time.
    Once,
    /// By cuBLASLt, as it cannot be captured.
    Library,
    Graph(GraphHandle),
}

impl Plan {
    pub(crate) fn new(descriptors: Descriptors, algorithm: Algorithm) -> Self {
        Self { descriptors, algorithm, places: Mutex::default() }
    }

    /// Enqueues the product; `apart` is a stream to capture on.
    ///
    /// # Safety
    /// `pointers` name a, b and out of the product that the plan was made for, of its alignments, in the order of `queue`.
    #[inline]
    pub(crate) unsafe fn enqueue(
        &self,
        library: cublasLtHandle_t,
        queue: &StreamInner,
        apart: &Mutex<StreamHandle>,
        pointers: [u64; 3],
    ) -> Result<()> {
        let workspace = self.algorithm.workspace(queue)?;
        let by_library = |stream| {
            // Safety: the caller's promise; the workspace is that of the stream that the work will run on.
            unsafe { self.descriptors.enqueue(&self.algorithm, library, queue, stream, workspace, pointers) }
        };
        if queue.is_capturing() {
            return by_library(queue.raw());
        }
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let place = (pointers, workspace);
        let Some((_, launch)) = places.iter_mut().rfind(|known| known.0 == place) else {
            if places.len() == PLACES {
                places.remove(0);
            }
            places.push((place, Launch::Once));
            drop(places);
            return by_library(queue.raw());
        };
        if let Launch::Once = launch {
            *launch = captured(queue, apart, by_library).map_or(Launch::Library, Launch::Graph);
        }
        match launch {
            Launch::Graph(graph) => graph.launch(queue),
            Launch::Once | Launch::Library => by_library(queue.raw()),
        }
    }
}

/// What `enqueue` enqueues, as a graph; `None` where it cannot be captured.
#[cold]
fn captured(
    queue: &StreamInner,
    apart: &Mutex<StreamHandle>,
    enqueue: impl Fn(CUstream) -> Result<()>,
) -> Option<GraphHandle> {
    let (apart, primary) = (apart.lock().unwrap_or_else(PoisonError::into_inner), &queue.context.primary);
    GraphHandle::begin_capture(primary, apart.raw()).ok()?;
    let enqueued = enqueue(apart.raw());
    let graph = GraphHandle::end_capture(primary, apart.raw());
    enqueued.and(graph).ok()
}

impl Algorithm {
    /// The workspace that it needs, of the stream that its work will run on; 0 where it needs none.
    #[inline]
    pub(crate) fn workspace(&self, queue: &StreamInner) -> Result<u64> {
        if self.workspace == 0 { Ok(0) } else { queue.scratch(Scratch::Workspace, WORKSPACE_BYTES) }
    }
}

impl Descriptors {
    pub(crate) fn new(product: &MatmulShape, device: &str) -> Result<Self> {
        let compute = match (product.dtype, product.tf32) {
            (DType::F32, true) => cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32,
            _ => cublasComputeType_t::CUBLAS_COMPUTE_32F,
        };
        let element = match product.dtype {
            DType::F16 => cudaDataType_t::CUDA_R_16F,
            DType::BF16 => cudaDataType_t::CUDA_R_16BF,
            DType::F32 => cudaDataType_t::CUDA_R_32F,
            dtype @ (DType::I64 | DType::U8) => {
                let reason = format!("there is no product of {dtype}");
                return Err(DeviceError::InvalidArgument { operation: "matmul", reason });
            }
        };
        let mut made = Self { operation: ptr::null_mut(), layouts: [ptr::null_mut(); 3] };
        // Safety: writes one handle, which is destroyed on drop.
        let status = unsafe { sys::cublasLtMatmulDescCreate(&mut made.operation, compute, cudaDataType_t::CUDA_R_32F) };
        check(device, "cublasLtMatmulDescCreate", status)?;
        let [m, k, n] = product.sizes.map(|size| size as u64);
        for (layout, (rows, columns)) in made.layouts.iter_mut().zip([(n, k), (k, m), (n, m)]) {
            // Safety: writes one handle, which is destroyed on drop.
            let status = unsafe { sys::cublasLtMatrixLayoutCreate(layout, element, rows, columns, rows as i64) };
            check(device, "cublasLtMatrixLayoutCreate", status)?;
        }
        Ok(made)
    }

    /// The algorithms that cuBLASLt proposes, the one it expects to be fastest first.
    pub(crate) fn candidates(
        &self,
        product: &MatmulShape,
        library: cublasLtHandle_t,
        device: &str,
    ) -> Result<Vec<Algorithm>> {
        let preference = Preference::new(product, device)?;
        // Safety: numbers and a status, of which zero is a valid value.
        let mut found: [cublasLtMatmulHeuristicResult_t; CANDIDATES] = unsafe { std::mem::zeroed() };
        let mut count = 0;
        let [first, second, out] = self.layouts;
        // Safety: all handles are live; writes at most as many results as there is room for.
        let status = unsafe {
            let (room, results) = (CANDIDATES as i32, found.as_mut_ptr());
            sys::cublasLtMatmulAlgoGetHeuristic(
                library,
                self.operation,
                first,
                second,
                out,
                out,
                preference.0,
                room,
                results,
                &mut count,
            )
        };
        match status {
            // Its word for an empty list.
            cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED => return Ok(Vec::new()),
            status => check(device, "cublasLtMatmulAlgoGetHeuristic", status)?,
        }
        Ok(found
            .iter()
            .take(usize::try_from(count).unwrap_or(0))
            .filter(|result| result.state == cublasStatus_t::CUBLAS_STATUS_SUCCESS)
            .map(|result| Algorithm { algorithm: result.algo, workspace: result.workspaceSize })
            .collect())
    }

    /// Has cuBLASLt enqueue the product on `stream` by one algorithm.
    ///
    /// # Safety
    /// `pointers` name a, b and out of the product that the descriptors were made for, of its alignments, in the
    /// order of `queue`, on which the work runs and whose workspace this is.
    #[inline]
    pub(crate) unsafe fn enqueue(
        &self,
        algorithm: &Algorithm,
        library: cublasLtHandle_t,
        queue: &StreamInner,
        stream: CUstream,
        workspace: u64,
        pointers: [u64; 3],
    ) -> Result<()> {
        let [a, b, out] = pointers.map(|pointer| pointer as *mut c_void);
        let [first, second, result] = self.layouts;
        let (one, zero) = (1.0f32, 0.0f32);
        // Safety: the caller's promise; the workspace is that large and this stream's own; scalars are copied.
        let status = unsafe {
            sys::cublasLtMatmul(
                library,
                self.operation,
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
                workspace as *mut c_void,
                algorithm.workspace,
                stream.cast(),
            )
        };
        check(queue.context.primary.name(), "cublasLtMatmul", status)
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
/// schemes round the parts to the output's type, which the error bound of a product has no room for. In fp32 that is the type
/// of the computation.
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
    fn new(product: &MatmulShape, device: &str) -> Result<Self> {
        use cublasLtMatmulPreferenceAttributes_t as Attribute;
        let mut raw = ptr::null_mut();
        // Safety: writes one handle, which is destroyed on drop.
        check(device, "cublasLtMatmulPreferenceCreate", unsafe { sys::cublasLtMatmulPreferenceCreate(&mut raw) })?;
        let preference = Self(raw);
        preference.set(Attribute::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &(WORKSPACE_BYTES as u64), device)?;
        preference.set(Attribute::CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions(product.dtype), device)?;
        let [a, b, out] = product.alignments;
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

/// That cuBLASLt proposes nothing for a product.
pub(crate) fn no_algorithm(product: &MatmulShape, device: &str) -> DeviceError {
    let ([m, k, n], dtype) = (product.sizes, product.dtype);
    failed(device, "cublasLtMatmulAlgoGetHeuristic", format!("no algorithm for {dtype} [{m}, {k}] · [{k}, {n}]"))
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
    DeviceError::CallFailed { device: device.to_owned(), call, reason }
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
