//! candle: a chain of matrix multiplications timed on its own stream, and a small transformer that decodes with random weights.
//!
//! The first loop reads each token on the host, which waits for it. The second keeps the token on the device and reads all of
//! them at the end. Both give the same tokens.

use std::process::ExitCode;

use candle_core::{DType, Device, Result, Tensor};
use syncscope::error::CaseError;
use syncscope::measure::{DeviceClock, Sampler};

const WIDTH: usize = 512;
const WORDS: usize = 4096;
const LAYERS: usize = 4;
const TOKENS: usize = 32;

fn main() -> ExitCode {
    syncscope_others::ended(run())
}

fn run() -> std::result::Result<(), CaseError> {
    // The library says what is missing on a machine without a GPU; cudarc, which candle uses, panics.
    let device = syncscope::device::Device::open("cuda:0")?;
    // Its default, the per-thread stream, is another one on each thread.
    let gpu = Device::new_cuda_with_stream(0)?;
    let stream = device.wrap(&gpu.as_cuda_device()?.cuda_stream())?;

    let model = Model::new(&gpu)?;
    if model.decode_waiting(&gpu)? != model.decode(&gpu)? {
        return Err("the two loops differ".into());
    }
    // Before anything is recorded: a recording makes later calls of the driver slower.
    let sampler = Sampler::default();
    println!("{TOKENS} tokens, with a synchronization at their end:");
    println!(
        "{}",
        sampler.compare((
            ("a read for each token", || model.decode_waiting(&gpu).and_then(|_| gpu.synchronize())),
            ("one read", || model.decode(&gpu).and_then(|_| gpu.synchronize())),
        ))?
    );

    println!("\nWhere the host waits with a read for each token:");
    println!("{}", device.audit(|| model.decode_waiting(&gpu).map_err(CaseError::from))?.1);
    println!("\nWith one read:");
    println!("{}", device.audit(|| model.decode(&gpu).map_err(CaseError::from))?.1);

    let x = Tensor::randn(0_f32, 0.05, (WIDTH, WIDTH), &gpu)?;
    println!("\nFour multiplications of {WIDTH} x {WIDTH} matrices on the device:");
    let chain = || (0..4).try_fold(x.clone(), |product, _| product.matmul(&x));
    let operations = 4.0 * 2.0 * (WIDTH as f64).powi(3);
    print!("{}", sampler.stopwatches(&DeviceClock::new(&stream)?, chain)?.computing(operations));
    Ok(())
}

struct Model {
    /// Of words, one a row; also what the last layer is compared with.
    embedding: Tensor,
    layers: Vec<Layer>,
}

struct Layer {
    query: Tensor,
    up: Tensor,
    down: Tensor,
    /// What the tokens so far were here, one a row: keys and values at once.
    seen: Tensor,
}

impl Model {
    fn new(gpu: &Device) -> Result<Self> {
        let random = |rows, columns| Tensor::randn(0_f32, 0.05, (rows, columns), gpu);
        let layer = |_| {
            let seen = Tensor::zeros((TOKENS, WIDTH), DType::F32, gpu)?;
            Ok(Layer {
                query: random(WIDTH, WIDTH)?,
                up: random(WIDTH, 4 * WIDTH)?,
                down: random(4 * WIDTH, WIDTH)?,
                seen,
            })
        };
        Ok(Self { embedding: random(WORDS, WIDTH)?, layers: (0..LAYERS).map(layer).collect::<Result<_>>()? })
    }

    /// The token after `token`, which is the one at `place`.
    fn next(&self, token: &Tensor, place: usize) -> Result<Tensor> {
        let mut x = self.embedding.index_select(token, 0)?;
        for layer in &self.layers {
            layer.seen.slice_set(&x, 0, place)?;
            let seen = layer.seen.narrow(0, 0, place + 1)?;
            let scores = x.matmul(&layer.query)?.matmul(&seen.t()?)?.exp()?;
            x = (&x + scores.broadcast_div(&scores.sum_keepdim(1)?)?.matmul(&seen)?)?;
            x = (&x + x.matmul(&layer.up)?.relu()?.matmul(&layer.down)?)?;
        }
        x.matmul(&self.embedding.t()?)?.argmax(1)
    }

    fn decode_waiting(&self, gpu: &Device) -> Result<Vec<u32>> {
        let mut tokens = vec![1];
        for place in 0..TOKENS {
            let token = Tensor::new(&tokens[place..], gpu)?;
            tokens.push(self.next(&token, place)?.squeeze(0)?.to_scalar()?);
        }
        Ok(tokens)
    }

    fn decode(&self, gpu: &Device) -> Result<Vec<u32>> {
        let mut tokens = vec![Tensor::new(&[1_u32], gpu)?];
        for place in 0..TOKENS {
            tokens.push(self.next(&tokens[place], place)?);
        }
        Tensor::cat(&tokens, 0)?.to_vec1()
    }
}
