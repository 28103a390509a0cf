//! candle: its tensors on a stream of its own.

#[path = "../../../src/listings/candle_calls.rs"]
mod calls;

use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;

use candle_core::{DType, Device, Tensor};
use syncscope_peer::syncscope::device::{Device as HeldDevice, Stream};
use syncscope_peer::syncscope::measure::{Case, DeviceClock};
use syncscope_peer::{Calls, MetricSpec, Result, Rows, System, TextRows, Texts, not_applicable, ordinal, pinned};

const ELEMENTS: usize = 1 << 16;

fn main() -> ExitCode {
    syncscope_peer::main::<Candle>()
}

struct Candle {
    ordinal: usize,
    gpu: Device,
    stream: Stream,
}

/// What a call is made on.
struct Fixture {
    ordinal: usize,
    gpu: Device,
    /// candle's stream, as the library has it.
    held: Stream,
    /// Random numbers: so many, as a row.
    x: Tensor,
    y: Tensor,
    /// The same numbers as a square matrix.
    square: Tensor,
    /// Three numbers of rows of the matrix.
    rows: Tensor,
    /// A file of a matrix of this size.
    file: PathBuf,
}

impl System for Candle {
    const NAME: &'static str = "candle";
    type Fixture = Fixture;
    const CALLS: &'static [Calls<Fixture>] = &[calls::CALLS];
    const ROWS: &'static [Rows<Self>] =
        &[TextRows::<Self>::ROWS, &[("crate-calls.same.a", same), ("crate-calls.same.b", same)]];

    fn versions() -> Vec<(String, String)> {
        vec![("candle".to_owned(), pinned(include_str!("../../Cargo.toml"), "candle-core"))]
    }

    fn open(device: &HeldDevice) -> Result<Self> {
        let ordinal = ordinal(device)?;
        // Its default, the per-thread stream, is another one on each thread.
        let gpu = Device::new_cuda_with_stream(ordinal)?;
        let stream = device.wrap(&gpu.as_cuda_device()?.cuda_stream())?;
        Ok(Self { ordinal, gpu, stream })
    }

    fn fixture(self: &Rc<Self>, _: &MetricSpec) -> Result<Fixture> {
        let x = Tensor::randn(0_f32, 1.0, ELEMENTS, &self.gpu)?;
        let side = ELEMENTS.isqrt();
        let file = std::env::temp_dir().join(format!("syncscope-candle-{}.safetensors", std::process::id()));
        Ok(Fixture {
            ordinal: self.ordinal,
            gpu: self.gpu.clone(),
            held: self.stream.clone(),
            y: Tensor::ones(ELEMENTS, DType::F32, &self.gpu)?,
            square: x.reshape((side, side))?,
            rows: Tensor::new(&[2_u32, 0, 1], &self.gpu)?,
            x,
            file,
        })
    }
}

impl Texts for Candle {
    type Tensor = Tensor;

    fn normal(&self, rows: usize, columns: usize, dtype: &str) -> Result<Tensor> {
        Ok(Tensor::randn(0_f32, 1.0, (rows, columns), &self.gpu)?.to_dtype(of_name(dtype)?)?)
    }

    fn of_host(&self, numbers: &[f32], dtype: &str) -> Result<Tensor> {
        Ok(Tensor::from_slice(numbers, numbers.len(), &self.gpu)?.to_dtype(of_name(dtype)?)?)
    }

    fn matmul(&self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        // A row is as many of the matrix's as its numbers fill.
        let a = if a.rank() == 1 { a.reshape(((), b.dim(0)?))? } else { a.clone() };
        Ok(a.matmul(b)?)
    }

    fn plus_one(&self, x: &Tensor) -> Result<Tensor> {
        Ok((x + 1.0)?)
    }

    fn mean(&self, x: &Tensor) -> Result<Tensor> {
        Ok(x.mean_all()?)
    }

    fn item(&self, x: &Tensor) -> Result<f32> {
        Ok(x.get(0)?.get(0)?.to_dtype(DType::F32)?.to_scalar()?)
    }

    fn mean_item(&self, numbers: &[Tensor]) -> Result<f32> {
        // A single number is read as it is: a stack of one would add to the cost of the read.
        let mean = if let [one] = numbers { one.clone() } else { Tensor::stack(numbers, 0)?.mean_all()? };
        Ok(mean.to_dtype(DType::F32)?.to_scalar()?)
    }

    fn to_host(&self, x: &Tensor) -> Result<Vec<f32>> {
        Ok(x.flatten_all()?.to_dtype(DType::F32)?.to_vec1()?)
    }

    fn is_any_positive(&self, x: &Tensor) -> Result<bool> {
        Ok(x.gt(0_f32)?.to_dtype(DType::F32)?.sum_all()?.to_scalar::<f32>()? > 0.0)
    }

    fn synchronize(&self) -> Result<()> {
        Ok(self.gpu.synchronize()?)
    }

    fn clock(&self) -> Result<DeviceClock> {
        Ok(DeviceClock::new(&self.stream)?)
    }
}

/// candle's type of a name.
fn of_name(dtype: &str) -> Result<DType> {
    match dtype {
        "fp32" => Ok(DType::F32),
        "fp16" => Ok(DType::F16),
        "bf16" => Ok(DType::BF16),
        other => Err(not_applicable(&format!("candle's rows are measured for fp32, fp16 and bf16, not for {other}"))),
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        // Most calls wrote none.
        _ = std::fs::remove_file(&self.file);
    }
}

/// A call that does not wait, twice.
fn same(system: &Rc<Candle>, row: &MetricSpec) -> Result<Case<'static>> {
    let fixture = system.fixture(row)?;
    Ok(Case::single(row.title(), move || fixture.x.sum_all()))
}
