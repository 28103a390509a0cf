//! burn's loops, with waits that can be removed and without them: see the module [`loops`](syncscope_peer::loops).

use std::process::ExitCode;

use burn::backend::cuda::CudaDevice;
use burn::backend::{Autodiff, Cuda};
use burn::module::Param;
use burn::nn::Linear;
use burn::nn::loss::{CrossEntropyLoss, CrossEntropyLossConfig};
use burn::optim::adaptor::OptimizerAdaptor;
use burn::optim::{AdamW, AdamWConfig, GradientsParams, Optimizer};
use burn::tensor::activation::{relu, softmax};
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{Distribution, Int, Tensor};
use syncscope_peer::Result;
use syncscope_peer::loops::{self, BATCH, CLASSES, LAYERS, LONGEST_GRADIENT, Log, Loops, STEPS, TOKENS, WIDTH, WORDS};

const LEARNING_RATE: f64 = 1e-3;

type Training = Autodiff<Cuda>;
type Gradients = <Training as AutodiffBackend>::Gradients;

fn main() -> ExitCode {
    loops::main::<BurnLoops>()
}

struct BurnLoops {
    decoder: Decoder,
    data: Data,
}

impl Loops for BurnLoops {
    const NAME: &'static str = "burn_loops";

    fn new() -> Result<Self> {
        let gpu = CudaDevice::new(0);
        Ok(Self { decoder: Decoder::new(&gpu), data: Data::new(&gpu) })
    }

    fn waiting_decoder(&self) -> Result<Vec<u32>> {
        self.decoder.waiting()
    }

    fn mended_decoder(&self) -> Result<Vec<u32>> {
        self.decoder.mended()
    }

    fn waiting_training(&self) -> Result<Log> {
        waiting_training(&self.data)
    }

    fn mended_training(&self) -> Result<Log> {
        mended_training(&self.data)
    }
}

fn random(rows: usize, columns: usize, deviation: f64, gpu: &CudaDevice) -> Tensor<Cuda, 2> {
    Tensor::random([rows, columns], Distribution::Normal(0.0, deviation), gpu)
}

/// A small transformer.
struct Decoder {
    gpu: CudaDevice,
    /// Of words, one a row; also what the last layer is compared with.
    embedding: Tensor<Cuda, 2>,
    layers: Vec<Layer>,
}

struct Layer {
    query: Tensor<Cuda, 2>,
    up: Tensor<Cuda, 2>,
    down: Tensor<Cuda, 2>,
}

/// What the tokens so far were in each layer, one a row: keys and values at once.
type Seen = Vec<Tensor<Cuda, 2>>;

impl Decoder {
    fn new(gpu: &CudaDevice) -> Self {
        let random = |rows, columns| random(rows, columns, 0.05, gpu);
        let layer =
            |_| Layer { query: random(WIDTH, WIDTH), up: random(WIDTH, 4 * WIDTH), down: random(4 * WIDTH, WIDTH) };
        let layers = (0..LAYERS).map(layer).collect();
        Self { gpu: gpu.clone(), embedding: random(WORDS, WIDTH), layers }
    }

    fn nothing_seen(&self) -> Seen {
        self.layers.iter().map(|_| Tensor::zeros([TOKENS, WIDTH], &self.gpu)).collect()
    }

    /// How likely each word is behind `token`, which is the one at `place`.
    fn logits(&self, seen: &mut Seen, token: Tensor<Cuda, 1, Int>, place: usize) -> Tensor<Cuda, 2> {
        let mut x = self.embedding.clone().select(0, token);
        for (layer, seen) in self.layers.iter().zip(seen) {
            // Of a tensor with one handle, burn changes the memory in place.
            *seen = std::mem::replace(seen, x.clone()).slice_assign(place..place + 1, x.clone());
            let seen = seen.clone().narrow(0, 0, place + 1);
            let scores = softmax(x.clone().matmul(layer.query.clone()).matmul(seen.clone().transpose()), 1);
            x = x + scores.matmul(seen);
            x = x.clone() + relu(x.matmul(layer.up.clone())).matmul(layer.down.clone());
        }
        x.matmul(self.embedding.clone().transpose())
    }

    fn waiting(&self) -> Result<Vec<u32>> {
        let (mut tokens, mut seen) = (vec![1_u32], self.nothing_seen());
        for place in 0..TOKENS {
            let token = Tensor::from_ints([i32::try_from(tokens[place])?], &self.gpu);
            let logits = self.logits(&mut seen, token, place);
            if logits.clone().contains_nan().try_into_scalar()? != 0 {
                return Err("the logits are no numbers".into());
            }
            let logits: Vec<f32> = logits.try_into_data()?.iter().collect();
            let best = (0..WORDS).max_by(|a, b| logits[*a].total_cmp(&logits[*b]));
            tokens.push(u32::try_from(best.unwrap_or_default())?);
            <Cuda>::sync(&self.gpu)?;
        }
        Ok(tokens)
    }

    fn mended(&self) -> Result<Vec<u32>> {
        let (mut tokens, mut seen) = (vec![Tensor::from_ints([1], &self.gpu)], self.nothing_seen());
        let mut sum = Tensor::<Cuda, 1>::zeros([1], &self.gpu);
        for place in 0..TOKENS {
            let logits = self.logits(&mut seen, tokens[place].clone(), place);
            sum = sum + logits.clone().sum();
            tokens.push(logits.argmax(1).squeeze_dim(1));
        }
        if sum.try_into_scalar()?.is_nan() {
            return Err("the logits are no numbers".into());
        }
        Ok(Tensor::cat(tokens, 0).try_into_data()?.iter().collect())
    }
}

/// Random images with random classes, and the weights that training begins with.
struct Data {
    images: Tensor<Training, 2>,
    classes: Tensor<Training, 1, Int>,
    model: Model,
    loss: CrossEntropyLoss<Training>,
}

/// Two layers without biases.
type Model = Vec<Linear<Training>>;

impl Data {
    fn new(gpu: &CudaDevice) -> Self {
        let layer = |columns| Linear {
            weight: Param::from_tensor(Tensor::from_inner(random(WIDTH, columns, 0.05, gpu))),
            bias: None,
        };
        Self {
            images: Tensor::from_inner(random(BATCH, WIDTH, 1.0, gpu)),
            classes: Tensor::zeros([BATCH], gpu),
            model: vec![layer(WIDTH), layer(CLASSES)],
            loss: CrossEntropyLossConfig::new().init(gpu),
        }
    }

    fn logits(&self, model: &Model) -> Tensor<Training, 2> {
        model[1].forward(relu(model[0].forward(self.images.clone())))
    }

    /// How many images are given their class.
    fn right(&self, logits: Tensor<Training, 2>) -> Tensor<Cuda, 1> {
        let classes = logits.inner().argmax(1).squeeze_dim::<1>(1);
        classes.equal(self.classes.clone().inner()).int().sum().float()
    }
}

fn optimizer() -> OptimizerAdaptor<AdamW, Model, Training> {
    AdamWConfig::new().init()
}

/// The square of the length of all gradients together.
fn squared_length(gradients: &Gradients, model: &Model) -> Result<Tensor<Cuda, 1>> {
    let squares = model.iter().filter_map(|layer| layer.weight.val().grad(gradients)).map(|own| own.square().sum());
    squares.reduce(|sum, one| sum + one).ok_or_else(|| "there are no gradients".into())
}

/// Multiplies all gradients.
fn shorten(gradients: &mut Gradients, model: &Model, shorter: impl Fn(Tensor<Cuda, 2>) -> Tensor<Cuda, 2>) {
    for weights in model.iter().map(|layer| layer.weight.val()) {
        if let Some(gradient) = weights.grad(gradients) {
            weights.grad_replace(gradients, shorter(gradient));
        }
    }
}

fn waiting_training(data: &Data) -> Result<Log> {
    let (mut model, mut optimizer) = (data.model.clone(), optimizer());
    let (mut losses, mut right) = (0.0, 0.0);
    for _ in 0..STEPS {
        let logits = data.logits(&model);
        let loss = data.loss.forward(logits.clone(), data.classes.clone());
        let mut gradients = loss.backward();
        losses += loss.try_into_scalar()?;
        right += data.right(logits).try_into_scalar()?;
        let length = f64::from(squared_length(&gradients, &model)?.try_into_scalar()?).sqrt();
        if length > LONGEST_GRADIENT {
            shorten(&mut gradients, &model, |gradient| gradient * (LONGEST_GRADIENT / length));
        }
        let gradients = GradientsParams::from_grads(gradients, &model);
        model = optimizer.step(LEARNING_RATE, model, gradients);
    }
    Ok([losses, right])
}

fn mended_training(data: &Data) -> Result<Log> {
    let (mut model, mut optimizer) = (data.model.clone(), optimizer());
    let none = Tensor::<Cuda, 1>::zeros([1], &data.images.device());
    let (mut losses, mut right) = (none.clone(), none);
    for _ in 0..STEPS {
        let logits = data.logits(&model);
        let loss = data.loss.forward(logits.clone(), data.classes.clone());
        let mut gradients = loss.backward();
        losses = losses + loss.inner();
        right = right + data.right(logits);
        let factor = (squared_length(&gradients, &model)?.sqrt().recip() * LONGEST_GRADIENT).clamp(0.0, 1.0);
        shorten(&mut gradients, &model, |gradient| gradient * factor.clone().unsqueeze::<2>());
        let gradients = GradientsParams::from_grads(gradients, &model);
        model = optimizer.step(LEARNING_RATE, model, gradients);
    }
    let log: Vec<f32> = Tensor::cat(vec![losses, right], 0).try_into_data()?.iter().collect();
    log.try_into().map_err(|_| "the log has two numbers".into())
}
