//! burn: its tensors on the CUDA backend, without fusion and autotuning, which compile and run further kernels at first calls.
//!
//! A call of burn makes no call of the driver. It puts tasks into a queue of 32, which a thread of cubecl's carries out: once the
//! queue is full, or a call needs an answer from that thread, as a read does. So a call that came back has waited for nothing on
//! the device, and its work may not yet be launched. What the thread waits for while the host goes on, a call finds out that
//! asks it next: a copy of much pageable memory waits for its stream there.

#[path = "../../../src/listings/burn_calls.rs"]
mod calls;
mod stream;

use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;

use burn::backend::Cuda;
use burn::backend::cuda::CudaDevice;
use burn::tensor::backend::Backend;
use burn::tensor::{DType, Distribution, Int, Tensor, TensorData};
use syncscope_peer::syncscope::device::{Device, Stream};
use syncscope_peer::syncscope::measure::{Case, DeviceClock};
use syncscope_peer::{
    Calls, Error, MetricSpec, Result, Rows, System, TextRows, Texts, not_applicable, ordinal, pinned,
};

const ELEMENTS: usize = 1 << 16;

fn main() -> ExitCode {
    syncscope_peer::main::<Burn>()
}

struct Burn {
    gpu: CudaDevice,
    stream: Stream,
}

/// What a call is made on.
struct Fixture {
    gpu: CudaDevice,
    /// burn's stream, as the library has it.
    held: Stream,
    /// Random numbers: so many, as a row.
    x: Tensor<Cuda, 1>,
    y: Tensor<Cuda, 1>,
    /// The same numbers as a square matrix.
    square: Tensor<Cuda, 2>,
    /// Three numbers of rows of the matrix.
    rows: Tensor<Cuda, 1, Int>,
    /// A file of a module, for burn's recorder, which adds an extension.
    file: PathBuf,
}

impl System for Burn {
    const NAME: &'static str = "burn";
    type Fixture = Fixture;
    const CALLS: &'static [Calls<Fixture>] = &[calls::CALLS];
    const ROWS: &'static [Rows<Self>] =
        &[TextRows::<Self>::ROWS, &[("crate-calls.same.a", same), ("crate-calls.same.b", same)]];

    fn versions() -> Vec<(String, String)> {
        vec![("burn".to_owned(), pinned(include_str!("../../Cargo.toml"), "burn"))]
    }

    fn open(device: &Device) -> Result<Self> {
        let gpu = CudaDevice::new(ordinal(device)?);
        let stream = stream::of(&gpu, device)?;
        Ok(Self { gpu, stream })
    }

    fn fixture(self: &Rc<Self>, _: &MetricSpec) -> Result<Fixture> {
        let x = Tensor::random([ELEMENTS], Distribution::Normal(0.0, 1.0), &self.gpu);
        let side = ELEMENTS.isqrt();
        Ok(Fixture {
            gpu: self.gpu.clone(),
            held: self.stream.clone(),
            y: Tensor::ones([ELEMENTS], &self.gpu),
            square: x.clone().reshape([side, side]),
            rows: Tensor::from_ints([2, 0, 1], &self.gpu),
            x,
            file: std::env::temp_dir().join(format!("syncscope-burn-{}", std::process::id())),
        })
    }
}

impl Texts for Burn {
    type Tensor = Tensor<Cuda, 2>;

    fn normal(&self, rows: usize, columns: usize, dtype: &str) -> Result<Self::Tensor> {
        let options = (&self.gpu, of_name(dtype)?);
        Ok(Tensor::random([rows, columns], Distribution::Normal(0.0, 1.0), options))
    }

    fn of_host(&self, numbers: &[f32], dtype: &str) -> Result<Self::Tensor> {
        let data = TensorData::new(numbers.to_vec(), [1, numbers.len()]);
        Ok(Tensor::<Cuda, 2>::from_data(data, &self.gpu).cast(of_name(dtype)?))
    }

    fn matmul(&self, a: &Self::Tensor, b: &Self::Tensor) -> Result<Self::Tensor> {
        // Numbers of the host are as many rows of the matrix's as they fill.
        let inner = b.dims()[0];
        let a = if a.dims()[1] == inner { a.clone() } else { a.clone().reshape([-1, i64::try_from(inner)?]) };
        Ok(a.matmul(b.clone()))
    }

    fn plus_one(&self, x: &Self::Tensor) -> Result<Self::Tensor> {
        Ok(x.clone() + 1.0)
    }

    fn mean(&self, x: &Self::Tensor) -> Result<Self::Tensor> {
        Ok(x.clone().mean().unsqueeze())
    }

    fn item(&self, x: &Self::Tensor) -> Result<f32> {
        number(x.clone().slice([0..1, 0..1]))
    }

    fn mean_item(&self, numbers: &[Self::Tensor]) -> Result<f32> {
        // A single number is read as it is: joining one would add to the cost of the read.
        number(if let [one] = numbers { one.clone() } else { self.mean(&Tensor::cat(numbers.to_vec(), 0))? })
    }

    fn to_host(&self, x: &Self::Tensor) -> Result<Vec<f32>> {
        x.clone().cast(DType::F32).try_into_data()?.into_vec().map_err(|error| format!("{error:?}").into())
    }

    fn is_any_positive(&self, x: &Self::Tensor) -> Result<bool> {
        Ok(x.clone().greater_elem(0).any().try_into_scalar()? != 0)
    }

    fn synchronize(&self) -> Result<()> {
        Ok(<Cuda>::sync(&self.gpu)?)
    }

    fn launch(&self) -> Result<()> {
        stream::launch(&self.gpu)
    }

    fn clock(&self) -> Result<DeviceClock> {
        Ok(DeviceClock::new(&self.stream)?)
    }
}

/// A number of a tensor of one, on the host.
fn number(one: Tensor<Cuda, 2>) -> Result<f32> {
    Ok(one.cast(DType::F32).try_into_scalar()?)
}

/// burn's type of a name.
fn of_name(dtype: &str) -> Result<DType> {
    match dtype {
        "fp32" => Ok(DType::F32),
        "fp16" => Ok(DType::F16),
        "bf16" => Ok(DType::BF16),
        other => Err(not_applicable(&format!("burn's rows are measured for fp32, fp16 and bf16, not for {other}"))),
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        // Most calls wrote none.
        _ = std::fs::remove_file(self.file.with_extension("mpk"));
    }
}

/// A call that does not wait, twice.
fn same(system: &Rc<Burn>, row: &MetricSpec) -> Result<Case<'static>> {
    let fixture = system.fixture(row)?;
    Ok(Case::within(row.title(), move |watch| {
        watch.time(|| Ok::<_, Error>(fixture.x.clone().sum()))?;
        stream::launch(&fixture.gpu)
    }))
}
