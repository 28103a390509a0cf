//! A C library by its handle: cuBLAS multiplies tensors of this library, on one of its streams, beside its own multiplication.
//!
//! The library lends cuBLAS a stream and addresses: nothing is copied, and gates hold what cuBLAS enqueues as all else.

use std::process::ExitCode;

use cudarc::cublas::{result, sys};
use syncscope::device::Device;
use syncscope::error::CaseError;
use syncscope::measure::{Case, DeviceClock, Sampler};
use syncscope::tensor::Tensor;

const SIDE: usize = 1024;

fn main() -> ExitCode {
    syncscope_others::ended(run())
}

fn run() -> Result<(), CaseError> {
    let device = Device::open("cuda:0")?;
    let stream = device.stream()?;
    let (a, b) = (stream.normal::<f32>([SIDE, SIDE])?, stream.normal::<f32>([SIDE, SIDE])?);
    let c = stream.zeros::<f32>([SIDE, SIDE])?;
    let handle = Handle(result::create_handle()?);
    // Safety: a handle lives as long as its owner, and a stream that was lent as long as the process.
    unsafe { result::set_stream(handle.0, stream.lend_raw()?.cast())? };

    // Once each, before a gate is closed: a first call loads kernels, which may wait for the device.
    multiply(&handle, &a, &b, &c)?;
    let own = a.matmul(&b)?.to_vec()?;
    let apart = c.to_vec()?.iter().zip(&own).map(|(c, own)| (c - own).abs()).fold(0.0, f32::max);
    println!("two products of {SIDE} x {SIDE} matrices, whose elements differ by {apart:.1e} at most\n");

    let (sampler, clock) = (Sampler::default(), DeviceClock::new(&stream)?);
    let cases = (
        Case::on_device("cuBLAS", clock.clone().behind_gate(), || multiply(&handle, &a, &b, &c))?,
        Case::on_device("syncscope", clock.clone().behind_gate(), || a.matmul(&b))?,
    );
    println!("Behind a gate:\n{}\n", sampler.compare(cases)?);

    let operations = 2.0 * (SIDE as f64).powi(3);
    println!("cuBLAS by each stopwatch:");
    print!("{}", sampler.stopwatches(&clock, || multiply(&handle, &a, &b, &c))?.computing(operations));
    Ok(())
}

/// A handle of cuBLAS, until it is dropped.
struct Handle(sys::cublasHandle_t);

impl Drop for Handle {
    fn drop(&mut self) {
        // Safety: it was made by `create_handle`, and this is its end.
        let _ = unsafe { result::destroy_handle(self.0) };
    }
}

/// Enqueues c = a b. cuBLAS has columns where the library has rows, and thus computes cᵀ = bᵀ aᵀ.
fn multiply(handle: &Handle, a: &Tensor<f32>, b: &Tensor<f32>, c: &Tensor<f32>) -> Result<(), CaseError> {
    let (a, b, c) = (a.lend_raw()? as *const f32, b.lend_raw()? as *const f32, c.lend_raw()? as *mut f32);
    let (n, plain) = (SIDE as i32, sys::cublasOperation_t::CUBLAS_OP_N);
    // Safety: three square matrices of so many rows on the stream of the handle; the two factors are read before it returns.
    Ok(unsafe { result::sgemm(handle.0, plain, plain, n, n, n, &1.0, b, n, a, n, &0.0, c, n) }?)
}
