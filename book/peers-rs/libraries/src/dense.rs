//! cuBLAS and cuBLASLt.

use cudarc::cublas::{result, sys};
use cudarc::cublaslt::{result as lt_result, sys as lt};
use syncscope_peer::{Calls, Result};

use crate::handle::Handle;
use crate::{Fixture, SIDE, address, call, dropped, found, prepared};

pub(crate) const CALLS: Calls<Fixture> = &[
    ("cublasCreate", |f| {
        has_blas()?;
        call(f, |_| Ok(Blas::new(result::create_handle()?, end)))
    }),
    ("cublasDestroy", |f| dropped(f, blas)),
    ("cublasSetStream", |f| {
        let own = blas(f)?;
        // Safety: both live as long as the call.
        call(f, move |f| Ok(unsafe { result::set_stream(own.raw(), f.raw.cast()) }?))
    }),
    ("cublasSetWorkspace", |f| {
        let own = blas(f)?;
        call(f, move |f| {
            let (memory, bytes) = (address(&f.c)?.cast(), size_of::<f32>() * SIDE * SIDE);
            // Safety: the memory has so many bytes, and lives as long as the handle.
            Ok(unsafe { sys::cublasSetWorkspace_v2(own.raw(), memory, bytes) }.result()?)
        })
    }),
    ("cublasSetPointerMode", |f| {
        let own = blas(f)?;
        call(f, move |_| pointers(&own, sys::cublasPointerMode_t::CUBLAS_POINTER_MODE_HOST))
    }),
    ("cublasSgemm first", |f| prepared(f, blas, |f, own| multiply(f, &own, SIDE))),
    ("cublasSgemm later", |f| {
        let own = blas(f)?;
        call(f, move |f| multiply(f, &own, SIDE))
    }),
    ("cublasSgemv later", |f| {
        let (own, n) = (blas(f)?, SIDE as i32);
        call(f, move |f| {
            let (a, x, y) = (address(&f.a)?, address(&f.b)?, address(&f.c)?);
            // Safety: a square matrix and two vectors of so many numbers.
            Ok(unsafe {
                result::sgemv(own.raw(), sys::cublasOperation_t::CUBLAS_OP_N, n, n, &1.0, a, n, x, 1, &0.0, y, 1)
            }?)
        })
    }),
    ("cublasSdot host-result", |f| {
        let own = blas(f)?;
        call(f, move |f| {
            let mut dot = 0.0;
            // Safety: the result is a number of the host, which outlives the call.
            unsafe { dot_into(f, &own, &mut dot) }?;
            Ok(dot)
        })
    }),
    ("cublasSdot device-result", |f| {
        let own = blas(f)?;
        pointers(&own, sys::cublasPointerMode_t::CUBLAS_POINTER_MODE_DEVICE)?;
        // Safety: the result is a number of the device, which lives as long as the fixture.
        call(f, move |f| unsafe { dot_into(f, &own, address(&f.c)?) })
    }),
    ("cublasSnrm2 host-result", |f| {
        let own = blas(f)?;
        call(f, move |f| {
            let mut norm = 0.0_f32;
            // Safety: so many numbers; the result outlives the call.
            unsafe { sys::cublasSnrm2_v2(own.raw(), (SIDE * SIDE) as i32, address(&f.b)?, 1, &mut norm) }.result()?;
            Ok(norm)
        })
    }),
    ("cublasIsamax host-result", |f| {
        let own = blas(f)?;
        call(f, move |f| {
            let mut place = 0;
            // Safety: as above.
            unsafe { sys::cublasIsamax_v2(own.raw(), (SIDE * SIDE) as i32, address(&f.b)?, 1, &mut place) }.result()?;
            Ok(place)
        })
    }),
    ("cublasSetVector", |f| {
        has_blas()?;
        let host = vec![1_f32; SIDE * SIDE];
        call(f, move |f| {
            let (n, size) = ((SIDE * SIDE) as i32, size_of::<f32>() as i32);
            // Safety: both sides have so many numbers.
            Ok(unsafe { sys::cublasSetVector(n, size, host.as_ptr().cast(), 1, address(&f.c)?.cast(), 1) }.result()?)
        })
    }),
    ("cublasGetVector", |f| {
        has_blas()?;
        call(f, |f| {
            let (n, size, mut host) = ((SIDE * SIDE) as i32, size_of::<f32>() as i32, vec![0_f32; SIDE * SIDE]);
            // Safety: as above.
            unsafe { sys::cublasGetVector(n, size, address(&f.b)?.cast(), 1, host.as_mut_ptr().cast(), 1) }.result()?;
            Ok(host)
        })
    }),
    ("cublasLtCreate", |f| {
        has_lt()?;
        call(f, |_| Ok(Lt::new(lt_result::create_handle()?, end_lt)))
    }),
    ("cublasLtDestroy", |f| dropped(f, light)),
    ("cublasLtMatmulAlgoGetHeuristic", |f| {
        let product = Product::new(f)?;
        call(f, move |_| product.algorithm())
    }),
    ("cublasLtMatmul first", |f| {
        prepared(f, Product::new, |f, product| {
            let algorithm = product.algorithm()?;
            product.multiply(f, &algorithm)
        })
    }),
    ("cublasLtMatmul later", |f| {
        let product = Product::new(f)?;
        let algorithm = product.algorithm()?;
        call(f, move |f| product.multiply(f, &algorithm))
    }),
];

type Blas = Handle<sys::cublasHandle_t>;
type Lt = Handle<lt::cublasLtHandle_t>;

fn has_blas() -> Result<()> {
    // Safety: it looks for the library, and calls nothing of it.
    found(unsafe { sys::is_culib_present() }, "cuBLAS")
}

fn has_lt() -> Result<()> {
    // Safety: as above.
    found(unsafe { lt::is_culib_present() }, "cuBLASLt")
}

fn end(handle: sys::cublasHandle_t) {
    // Safety: it is ended once, by its owner.
    _ = unsafe { result::destroy_handle(handle) };
}

fn end_lt(handle: lt::cublasLtHandle_t) {
    // Safety: as above.
    _ = unsafe { lt_result::destroy_handle(handle) };
}

/// A handle on the stream of the fixture.
fn blas(f: &Fixture) -> Result<Blas> {
    has_blas()?;
    let handle = Blas::new(result::create_handle()?, end);
    // Safety: the stream lives as long as the process.
    unsafe { result::set_stream(handle.raw(), f.raw.cast()) }?;
    Ok(handle)
}

fn light(_: &Fixture) -> Result<Lt> {
    has_lt()?;
    Ok(Lt::new(lt_result::create_handle()?, end_lt))
}

fn pointers(handle: &Blas, mode: sys::cublasPointerMode_t) -> Result<()> {
    // Safety: the handle is alive.
    Ok(unsafe { sys::cublasSetPointerMode_v2(handle.raw(), mode) }.result()?)
}

fn multiply(f: &Fixture, handle: &Blas, side: usize) -> Result<()> {
    let (n, plain) = (side as i32, sys::cublasOperation_t::CUBLAS_OP_N);
    let (a, b, c) = (address(&f.a)?, address(&f.b)?, address(&f.c)?);
    // Safety: three square matrices of so many rows on the stream of the handle; the factors are read before it returns.
    Ok(unsafe { result::sgemm(handle.raw(), plain, plain, n, n, n, &1.0, a, n, b, n, &0.0, c, n) }?)
}

/// # Safety
/// The result is a number of the host or of the device, as the handle's pointer mode says.
unsafe fn dot_into(f: &Fixture, handle: &Blas, result: *mut f32) -> Result<()> {
    let (a, b, n) = (address(&f.a)?, address(&f.b)?, (SIDE * SIDE) as i32);
    // Safety: two vectors of so many numbers; of the result the caller says it.
    Ok(unsafe { sys::cublasSdot_v2(handle.raw(), n, a, 1, b, 1, result) }.result()?)
}

/// A multiplication of square matrices.
struct Product {
    handle: Lt,
    product: Handle<lt::cublasLtMatmulDesc_t>,
    matrix: Handle<lt::cublasLtMatrixLayout_t>,
    preference: Handle<lt::cublasLtMatmulPreference_t>,
}

impl Product {
    fn new(f: &Fixture) -> Result<Self> {
        let handle = light(f)?;
        let number = lt::cudaDataType::CUDA_R_32F;
        let product = lt_result::create_matmul_desc(lt::cublasComputeType_t::CUBLAS_COMPUTE_32F, number)?;
        let (n, matrix) = (SIDE as u64, lt_result::create_matrix_layout);
        Ok(Self {
            handle,
            product: Handle::new(product, |raw| {
                // Safety: it is ended once, by its owner.
                _ = unsafe { lt_result::destroy_matmul_desc(raw) };
            }),
            matrix: Handle::new(matrix(number, n, n, n as i64)?, |raw| {
                // Safety: as above.
                _ = unsafe { lt_result::destroy_matrix_layout(raw) };
            }),
            preference: Handle::new(lt_result::create_matmul_pref()?, |raw| {
                // Safety: as above.
                _ = unsafe { lt_result::destroy_matmul_pref(raw) };
            }),
        })
    }

    fn algorithm(&self) -> Result<lt::cublasLtMatmulHeuristicResult_t> {
        let (product, matrix) = (self.product.raw(), self.matrix.raw());
        // Safety: all of them are alive.
        Ok(unsafe {
            lt_result::get_matmul_algo_heuristic(
                self.handle.raw(),
                product,
                matrix,
                matrix,
                matrix,
                matrix,
                self.preference.raw(),
            )
        }?)
    }

    fn multiply(&self, f: &Fixture, algorithm: &lt::cublasLtMatmulHeuristicResult_t) -> Result<()> {
        let (a, b, c) = (address(&f.a)?.cast(), address(&f.b)?.cast(), address(&f.c)?.cast());
        let (product, matrix, factors) = (self.product.raw(), self.matrix.raw(), [1_f32, 0.0]);
        let [one, none] = [&factors[0], &factors[1]].map(|factor| std::ptr::from_ref(factor).cast());
        // Safety: three square matrices of the layout; without a workspace, as the preference says.
        Ok(unsafe {
            lt_result::matmul(
                self.handle.raw(),
                product,
                one,
                none,
                a,
                matrix,
                b,
                matrix,
                c,
                matrix,
                c,
                matrix,
                &algorithm.algo,
                std::ptr::null_mut(),
                0,
                f.raw.cast(),
            )
        }?)
    }
}
