//! candle's loops, with waits that can be removed and without them: see the module [`loops`](syncscope_peer::loops).

use std::process::ExitCode;

use candle_core::backprop::GradStore;
use candle_core::{DType, Device, Result, Tensor, Var};
use candle_nn::{AdamW, Optimizer, ParamsAdamW, loss, ops};
use syncscope_peer::Result as PeerResult;
use syncscope_peer::loops::{self, BATCH, CLASSES, LAYERS, LONGEST_GRADIENT, Log, Loops, STEPS, TOKENS, WIDTH, WORDS};

fn main() -> ExitCode {
    loops::main::<CandleLoops>()
}

struct CandleLoops {
    decoder: Decoder,
    data: Data,
}

impl Loops for CandleLoops {
    const NAME: &'static str = "candle_loops";

    fn new() -> PeerResult<Self> {
        let gpu = Device::new_cuda_with_stream(0)?;
        Ok(Self { decoder: Decoder::new(&gpu)?, data: Data::new(&gpu)? })
    }

    fn waiting_decoder(&self) -> PeerResult<Vec<u32>> {
        Ok(self.decoder.waiting()?)
    }

    fn mended_decoder(&self) -> PeerResult<Vec<u32>> {
        Ok(self.decoder.mended()?)
    }

    fn waiting_training(&self) -> PeerResult<Log> {
        Ok(waiting_training(&self.data)?)
    }

    fn mended_training(&self) -> PeerResult<Log> {
        Ok(mended_training(&self.data)?)
    }
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
            second: Tensor::randn(0_f32, 0.05, (WIDTH, CLASSES), gpu)?,
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

/// The square of the length of all gradients together.
fn squared_length(gradients: &GradStore, weights: &[Var; 2]) -> Result<Tensor> {
    let squares = weights.iter().filter_map(|own| gradients.get(own.as_tensor())).map(|own| own.sqr()?.sum_all());
    squares.reduce(|sum, one| sum? + one?).unwrap_or_else(|| Tensor::new(0_f32, weights[0].device()))
}

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
