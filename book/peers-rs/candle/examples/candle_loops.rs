//! Two loops in candle with random weights, each with waits that can be removed and without them: a decoder that makes one token
//! an iteration, and a training loop.
//!
//! `candle_loops` compares each with its mended version, in turn. `candle_loops decode waiting` runs one of them, to be audited.

use std::process::ExitCode;

use candle_core::backprop::GradStore;
use candle_core::{DType, Device, Result, Tensor, Var};
use candle_nn::{AdamW, Optimizer, ParamsAdamW, loss, ops};
use syncscope_peer::Error;
use syncscope_peer::syncscope::measure::{Protocol, Sampler};

const WIDTH: usize = 512;
const WORDS: usize = 4096;
const LAYERS: usize = 4;
const TOKENS: usize = 64;
const BATCH: usize = 256;
const STEPS: usize = 50;
const LONGEST_GRADIENT: f64 = 1.0;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[&str]) -> std::result::Result<(), Error> {
    // The library says what is missing on a machine without a GPU.
    syncscope_peer::syncscope::device::Device::open("cuda:0")?;
    let gpu = Device::new_cuda_with_stream(0)?;
    let (decoder, data) = (Decoder::new(&gpu)?, Data::new(&gpu)?);
    match arguments {
        [] => {
            if decoder.waiting()? != decoder.mended()? {
                return Err("the two decoders differ".into());
            }
            let logs = [waiting_training(&data)?, mended_training(&data)?];
            if (0..2).any(|place| (logs[0][place] - logs[1][place]).abs() > 1e-3 * logs[0][place].abs()) {
                return Err(format!("the logs of the two training loops differ: {logs:?}").into());
            }
            let sampler = Sampler::new(Protocol::samples(20));
            println!("{TOKENS} tokens:");
            println!("{}", sampler.compare((("waiting", || decoder.waiting()), ("mended", || decoder.mended())))?);
            println!("\n{STEPS} steps of training:");
            let training = (("waiting", || waiting_training(&data)), ("mended", || mended_training(&data)));
            println!("{}", sampler.compare(training)?);
        }
        ["decode", "waiting"] => (0..10).try_for_each(|_| decoder.waiting().map(drop))?,
        ["decode", "mended"] => (0..10).try_for_each(|_| decoder.mended().map(drop))?,
        ["train", "waiting"] => (0..10).try_for_each(|_| waiting_training(&data).map(drop))?,
        ["train", "mended"] => (0..10).try_for_each(|_| mended_training(&data).map(drop))?,
        _ => return Err("usage: candle_loops [decode|train waiting|mended]".into()),
    }
    Ok(())
}

/// A small transformer.
struct Decoder {
    gpu: Device,
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

impl Decoder {
    fn new(gpu: &Device) -> Result<Self> {
        let random = |rows, columns| Tensor::randn(0_f32, 0.05, (rows, columns), gpu);
        let layer = |_| {
            Ok(Layer {
                query: random(WIDTH, WIDTH)?,
                up: random(WIDTH, 4 * WIDTH)?,
                down: random(4 * WIDTH, WIDTH)?,
                seen: Tensor::zeros((TOKENS, WIDTH), DType::F32, gpu)?,
            })
        };
        let layers = (0..LAYERS).map(layer).collect::<Result<_>>()?;
        Ok(Self { gpu: gpu.clone(), embedding: random(WORDS, WIDTH)?, layers })
    }

    /// How likely each word is behind `token`, which is the one at `place`.
    fn logits(&self, token: &Tensor, place: usize) -> Result<Tensor> {
        let mut x = self.embedding.index_select(token, 0)?;
        for layer in &self.layers {
            layer.seen.slice_set(&x, 0, place)?;
            let seen = layer.seen.narrow(0, 0, place + 1)?;
            let scores = ops::softmax(&x.matmul(&layer.query)?.matmul(&seen.t()?)?, 1)?;
            x = (&x + scores.matmul(&seen)?)?;
            x = (&x + x.matmul(&layer.up)?.relu()?.matmul(&layer.down)?)?;
        }
        x.matmul(&self.embedding.t()?)
    }

    /// Each iteration checks the logits, reads them all to choose a word, and waits for the device to time itself.
    fn waiting(&self) -> Result<Vec<u32>> {
        let mut tokens = vec![1_u32];
        for place in 0..TOKENS {
            let token = Tensor::new(&tokens[place..], &self.gpu)?;
            let logits = self.logits(&token, place)?;
            if logits.sum_all()?.to_scalar::<f32>()?.is_nan() {
                candle_core::bail!("the logits are no numbers");
            }
            let logits = logits.squeeze(0)?.to_vec1::<f32>()?;
            let best = (0..WORDS).max_by(|a, b| logits[*a].total_cmp(&logits[*b]));
            tokens.push(best.unwrap_or_default() as u32);
            self.gpu.synchronize()?;
        }
        Ok(tokens)
    }

    /// The device chooses the word, the check is added up there, and both are read at the end.
    fn mended(&self) -> Result<Vec<u32>> {
        let mut tokens = vec![Tensor::new(&[1_u32], &self.gpu)?];
        let mut sum = Tensor::zeros((), DType::F32, &self.gpu)?;
        for place in 0..TOKENS {
            let logits = self.logits(&tokens[place], place)?;
            sum = (sum + logits.sum_all()?)?;
            tokens.push(logits.argmax(1)?);
        }
        if sum.to_scalar::<f32>()?.is_nan() {
            candle_core::bail!("the logits are no numbers");
        }
        Tensor::cat(&tokens, 0)?.to_vec1()
    }
}

/// Random images with random classes, and the weights that training begins with.
struct Data {
    images: Tensor,
    classes: Tensor,
    first: Tensor,
    second: Tensor,
}

impl Data {
    fn new(gpu: &Device) -> Result<Self> {
        Ok(Self {
            images: Tensor::randn(0_f32, 1.0, (BATCH, WIDTH), gpu)?,
            classes: Tensor::zeros(BATCH, DType::U32, gpu)?,
            first: Tensor::randn(0_f32, 0.05, (WIDTH, WIDTH), gpu)?,
            second: Tensor::randn(0_f32, 0.05, (WIDTH, 10), gpu)?,
        })
    }

    fn weights(&self) -> Result<[Var; 2]> {
        Ok([Var::from_tensor(&self.first)?, Var::from_tensor(&self.second)?])
    }

    fn logits(&self, [first, second]: &[Var; 2]) -> Result<Tensor> {
        self.images.matmul(first.as_tensor())?.relu()?.matmul(second.as_tensor())
    }

    /// How many images are given their class.
    fn right(&self, logits: &Tensor) -> Result<Tensor> {
        logits.argmax(1)?.eq(&self.classes)?.to_dtype(DType::F32)?.sum_all()
    }
}

/// The sum of the losses, and how many images were given their class.
type Log = [f32; 2];

/// The square of the length of all gradients together.
fn squared_length(gradients: &GradStore, weights: &[Var; 2]) -> Result<Tensor> {
    let squares = weights.iter().filter_map(|own| gradients.get(own.as_tensor())).map(|own| own.sqr()?.sum_all());
    squares.reduce(|sum, one| sum? + one?).unwrap_or_else(|| Tensor::new(0_f32, weights[0].device()))
}

/// Each step reads the loss and the accuracy for a log, and the length of the gradients to shorten them.
fn waiting_training(data: &Data) -> Result<Log> {
    let weights = data.weights()?;
    let mut optimizer = AdamW::new(weights.to_vec(), ParamsAdamW::default())?;
    let (mut losses, mut right) = (0.0, 0.0);
    for _ in 0..STEPS {
        let logits = data.logits(&weights)?;
        let loss = loss::cross_entropy(&logits, &data.classes)?;
        let mut gradients = loss.backward()?;
        losses += loss.to_scalar::<f32>()?;
        right += data.right(&logits)?.to_scalar::<f32>()?;
        let length = f64::from(squared_length(&gradients, &weights)?.to_scalar::<f32>()?).sqrt();
        if length > LONGEST_GRADIENT {
            for own in &weights {
                if let Some(gradient) = gradients.remove(own.as_tensor()) {
                    gradients.insert(own.as_tensor(), (gradient * (LONGEST_GRADIENT / length))?);
                }
            }
        }
        optimizer.step(&gradients)?;
    }
    Ok([losses, right])
}

/// The log is added up on the device and read at the end, and the gradients are shortened there.
fn mended_training(data: &Data) -> Result<Log> {
    let weights = data.weights()?;
    let mut optimizer = AdamW::new(weights.to_vec(), ParamsAdamW::default())?;
    let none = Tensor::zeros((), DType::F32, data.images.device())?;
    let (mut losses, mut right) = (none.clone(), none);
    for _ in 0..STEPS {
        let logits = data.logits(&weights)?;
        let loss = loss::cross_entropy(&logits, &data.classes)?;
        let mut gradients = loss.backward()?;
        losses = (losses + loss.detach())?;
        right = (right + data.right(&logits.detach())?)?;
        let factor = (squared_length(&gradients, &weights)?.sqrt()?.recip()? * LONGEST_GRADIENT)?.clamp(0.0, 1.0)?;
        for own in &weights {
            if let Some(gradient) = gradients.remove(own.as_tensor()) {
                gradients.insert(own.as_tensor(), gradient.broadcast_mul(&factor)?);
            }
        }
        optimizer.step(&gradients)?;
    }
    let log = Tensor::stack(&[losses, right], 0)?.to_vec1()?;
    log.try_into().map_err(|_| candle_core::Error::Msg("the log has two numbers".to_owned()))
}
