//! CUDA's libraries, by the names of their calls in C: cuBLAS, cuBLASLt, cuSOLVER, cuSPARSE, cuRAND, cuFFT and NCCL.

mod dense;
mod handle;
mod nccl;
mod solver;
mod sparse;
mod transforms;

use std::process::ExitCode;
use std::rc::Rc;

use cudarc::driver::sys::CUstream;
use syncscope_peer::syncscope::device::{Device, Element, Stream};
use syncscope_peer::syncscope::tensor::Tensor;
use syncscope_peer::{Call, Calls, MetricSpec, Result, System, not_applicable, ordinal};

/// Rows and columns of a matrix.
const SIDE: usize = 256;

fn main() -> ExitCode {
    syncscope_peer::main::<Libraries>()
}

struct Libraries {
    device: Device,
    stream: Stream,
}

/// What a call is made on: its stream, and matrices of the library's tensors.
struct Fixture {
    ordinal: usize,
    stream: Stream,
    raw: CUstream,
    /// A symmetric, positive definite matrix: so much on the diagonal, and nothing beside it.
    a: Tensor<f32>,
    b: Tensor<f32>,
    c: Tensor<f32>,
    /// For whole numbers: what went wrong, and where rows were exchanged.
    places: Tensor<i64>,
}

impl System for Libraries {
    const NAME: &'static str = "CUDA libraries";
    type Fixture = Fixture;
    const CALLS: &'static [Calls<Fixture>] =
        &[dense::CALLS, solver::CALLS, sparse::CALLS, transforms::CALLS, nccl::CALLS];

    fn versions() -> Vec<(String, String)> {
        // Those of the toolkit: the libraries have no call in common that says it.
        Vec::new()
    }

    fn open(device: &Device) -> Result<Self> {
        ordinal(device)?;
        Ok(Self { device: device.clone(), stream: device.stream()? })
    }

    fn fixture(self: &Rc<Self>, _: &MetricSpec) -> Result<Fixture> {
        let stream = self.stream.clone();
        let diagonal = (0..SIDE * SIDE).map(|place| if place % (SIDE + 1) == 0 { 2.0 } else { 0.0 });
        Ok(Fixture {
            ordinal: ordinal(&self.device)?,
            raw: stream.lend_raw()?,
            a: stream.tensor(&diagonal.collect::<Vec<f32>>(), [SIDE * SIDE])?,
            b: stream.ones([SIDE * SIDE])?,
            c: stream.zeros([SIDE * SIDE])?,
            places: stream.zeros([SIDE * SIDE])?,
            stream,
        })
    }

    fn has_call(row: &MetricSpec) -> bool {
        row.id.starts_with("driver-calls.library.")
    }
}

type Shared = Rc<Fixture>;

/// A call on what is there.
fn call<R: 'static>(f: &Shared, call: impl Fn(&Fixture) -> Result<R> + 'static) -> Result<Call> {
    prepared(f, |_| Ok(()), move |f, ()| call(f))
}

/// A call on what is made anew for each time.
fn prepared<I: 'static, R: 'static>(
    f: &Shared,
    make: impl Fn(&Fixture) -> Result<I> + 'static,
    call: impl Fn(&Fixture, I) -> Result<R> + 'static,
) -> Result<Call> {
    Ok(Call::sharing(&f.stream, f, make, call))
}

/// The end of what is made anew for each time.
fn dropped<T: 'static>(f: &Shared, make: impl Fn(&Fixture) -> Result<T> + 'static) -> Result<Call> {
    prepared(f, make, |_, made| {
        drop(made);
        Ok(())
    })
}

/// The address of a tensor, for a library.
fn address<T: Element>(tensor: &Tensor<T>) -> Result<*mut T> {
    Ok(tensor.lend_raw()? as *mut T)
}

/// What came of a call whose errors have no words of their own.
fn checked<T, E: std::fmt::Debug>(outcome: std::result::Result<T, E>) -> Result<T> {
    outcome.map_err(|error| format!("{error:?}").into())
}

/// Says which library is not here, where it was not found.
fn found(is_here: bool, library: &str) -> Result<()> {
    is_here.then_some(()).ok_or_else(|| not_applicable(&format!("{library} was not found")))
}
