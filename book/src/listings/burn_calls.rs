//! The calls of burn.

use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Waker};

use burn::backend::cuda::CudaDevice;
use burn::backend::{Autodiff, Cuda};
use burn::grad_clipping::GradientClippingConfig;
use burn::module::Module;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::{DropoutConfig, LayerNormConfig, Linear, LinearConfig};
use burn::optim::{AdamWConfig, GradientsParams, Optimizer, SgdConfig};
use burn::record::{FullPrecisionSettings, NamedMpkFileRecorder};
use burn::tensor::activation::softmax;
use burn::tensor::backend::Backend;
use burn::tensor::module::{conv2d, embedding};
use burn::tensor::ops::ConvOptions;
use burn::tensor::{Bool, DType, Distribution, IndexingUpdateOp, Int, Tensor, TensorData, Transaction};
use syncscope_peer::{Call, Calls, Result};

use crate::{ELEMENTS, Fixture};

const LARGE: usize = 10_000_000;
/// Rows and columns of the square matrix.
const SIDE: usize = ELEMENTS.isqrt();
const LEARNING_RATE: f64 = 0.01;

type Shared = Rc<Fixture>;
type Training = Autodiff<Cuda>;
type Recorder = NamedMpkFileRecorder<FullPrecisionSettings>;

/// The calls, in the order of a page.
pub(crate) const CALLS: Calls<Fixture> = &[
    ("empty", |f| call(f, |f| Tensor::<Cuda, 1>::empty([ELEMENTS], &f.gpu))),
    ("zeros", |f| call(f, |f| Tensor::<Cuda, 1>::zeros([ELEMENTS], &f.gpu))),
    ("ones", |f| call(f, |f| ones(f, ELEMENTS))),
    ("full", |f| call(f, |f| Tensor::<Cuda, 1>::full([ELEMENTS], 2.0, &f.gpu))),
    ("arange", |f| call(f, |f| Tensor::<Cuda, 1, Int>::arange(0..ELEMENTS as i64, &f.gpu))),
    ("random", |f| call(f, |f| Tensor::<Cuda, 1>::random([ELEMENTS], Distribution::Default, &f.gpu))),
    ("random-normal", |f| call(f, |f| Tensor::<Cuda, 1>::random([ELEMENTS], Distribution::Normal(0.0, 1.0), &f.gpu))),
    ("seed", |f| call(f, |f| <Cuda>::seed(&f.gpu, 7))),
    ("from-floats", |f| call(f, |f| Tensor::<Cuda, 1>::from_floats([1.0, 2.0, 3.0], &f.gpu))),
    ("from-data", |f| uploaded(f, ELEMENTS, false)),
    ("from-data-large", |f| uploaded(f, LARGE, false)),
    ("from-data-staged", |f| uploaded(f, ELEMENTS, true)),
    ("from-data-staged-large", |f| uploaded(f, LARGE, true)),
    ("staging", |f| {
        prepared(
            f,
            |_| host(ELEMENTS),
            |f, mut data| {
                <Cuda>::staging([&mut data].into_iter(), &f.gpu);
                Ok(data)
            },
        )
    }),
    ("to-device-same", |f| call(f, |f| f.x.clone().to_device(&f.gpu))),
    ("into-data", |f| call(f, |f| f.x.clone().into_data())),
    ("into-data-large", |f| {
        let large = ones(f, LARGE);
        call(f, move |_| large.clone().into_data())
    }),
    ("try-into-data", |f| prepared(f, |_| (), |f, ()| Ok(f.x.clone().try_into_data()?))),
    // As an executor asks the future the first time.
    ("into-data-async", |f| {
        call(f, |f| pin!(f.x.clone().into_data_async()).poll(&mut Context::from_waker(Waker::noop())))
    }),
    ("into-scalar", |f| {
        let one = ones(f, 1);
        call(f, move |_| one.clone().into_scalar())
    }),
    ("try-into-scalar", |f| {
        let one = ones(f, 1);
        prepared(f, |_| (), move |_, ()| Ok(one.clone().try_into_scalar()?))
    }),
    ("slice-into-scalar", |f| call(f, |f| f.x.clone().slice(7..8).into_scalar())),
    ("slice-into-data", |f| call(f, |f| f.x.clone().slice(0..8).into_data())),
    // The view is of 40 MB.
    ("slice-into-data-large", |f| {
        let large = ones(f, LARGE);
        call(f, move |_| large.clone().slice(0..8).into_data())
    }),
    ("transaction-execute", |f| {
        call(f, |f| Transaction::<Cuda>::default().register(f.x.clone()).register(f.y.clone()).execute())
    }),
    ("display", |f| call(f, |f| f.x.clone().slice(7..8).to_string())),
    ("any-in-if", |f| call(f, |f| if f.x.clone().greater_elem(0).any().into_scalar() != 0 { 1 } else { 0 })),
    ("all-close", |f| call(f, |f| f.x.clone().all_close(f.y.clone(), None, None))),
    ("contains-nan-in-if", |f| call(f, |f| if f.x.clone().contains_nan().into_scalar() != 0 { 1 } else { 0 })),
    ("drop", |f| dropped(f, ELEMENTS)),
    ("drop-large", |f| dropped(f, LARGE)),
    ("clone", |f| call(f, |f| f.x.clone())),
    ("cast", |f| call(f, |f| f.x.clone().cast(DType::F16))),
    ("int", |f| call(f, |f| f.x.clone().int())),
    ("reshape", |f| call(f, |f| f.x.clone().reshape([2, ELEMENTS / 2]))),
    ("transpose", |f| call(f, |f| f.square.clone().transpose())),
    ("narrow", |f| call(f, |f| f.x.clone().narrow(0, 1, 8))),
    ("slice", |f| call(f, |f| f.square.clone().slice(1..3))),
    ("slice-assign", |f| {
        let source = ones(f, 8);
        call(f, move |f| f.y.clone().slice_assign(4..12, source.clone()))
    }),
    ("slice-fill", |f| call(f, |f| f.y.clone().slice_fill(4..12, 2.0))),
    ("select", |f| call(f, |f| f.square.clone().select(0, f.rows.clone()))),
    ("select-host-rows", |f| {
        call(f, |f| f.square.clone().select(0, Tensor::<Cuda, 1, Int>::from_ints([2, 0, 1], &f.gpu)))
    }),
    ("select-assign", |f| {
        let source = f.square.clone().slice(0..3);
        call(f, move |f| f.square.clone().select_assign(0, f.rows.clone(), source.clone(), IndexingUpdateOp::Add))
    }),
    ("embedding", |f| call(f, |f| embedding(f.square.clone(), f.rows.clone().unsqueeze()))),
    ("gather", |f| {
        let places = Tensor::<Cuda, 2, Int>::zeros([SIDE, SIDE], &f.gpu);
        call(f, move |f| f.square.clone().gather(0, places.clone()))
    }),
    ("scatter", |f| {
        let places = Tensor::<Cuda, 2, Int>::zeros([SIDE, SIDE], &f.gpu);
        call(f, move |f| f.square.clone().scatter(0, places.clone(), f.square.clone(), IndexingUpdateOp::Add))
    }),
    ("mask-where", |f| {
        let mask = f.x.clone().greater_elem(0);
        call(f, move |f| f.x.clone().mask_where(mask.clone(), f.y.clone()))
    }),
    ("mask-fill", |f| {
        let mask = f.x.clone().greater_elem(0);
        call(f, move |f| f.x.clone().mask_fill(mask.clone(), 0.0))
    }),
    ("tril-mask", |f| call(f, |f| Tensor::<Cuda, 2, Bool>::tril_mask([SIDE, SIDE], 0, &f.gpu))),
    ("nonzero", |f| {
        let mask = f.x.clone().greater_elem(2);
        call(f, move |_| mask.clone().nonzero())
    }),
    ("argwhere", |f| {
        let mask = f.x.clone().greater_elem(2);
        call(f, move |_| mask.clone().argwhere())
    }),
    ("one-hot", |f| call(f, |f| f.rows.clone().one_hot::<2>(4))),
    ("cat", |f| call(f, |f| Tensor::cat(vec![f.x.clone(), f.y.clone()], 0))),
    ("stack", |f| call(f, |f| Tensor::stack::<2>(vec![f.x.clone(), f.y.clone()], 0))),
    ("add", |f| call(f, |f| f.x.clone() + f.y.clone())),
    ("add-scalar", |f| call(f, |f| f.x.clone() + 1.0)),
    ("exp", |f| call(f, |f| f.x.clone().exp())),
    ("greater-elem", |f| call(f, |f| f.x.clone().greater_elem(0))),
    ("sum", |f| call(f, |f| f.x.clone().sum())),
    ("mean", |f| call(f, |f| f.x.clone().mean())),
    ("mean-dim", |f| call(f, |f| f.square.clone().mean_dim(1))),
    ("max", |f| call(f, |f| f.x.clone().max())),
    ("max-dim", |f| call(f, |f| f.square.clone().max_dim(1))),
    ("argmax", |f| call(f, |f| f.square.clone().argmax(1))),
    ("any", |f| call(f, |f| f.x.clone().greater_elem(0).any())),
    ("all", |f| call(f, |f| f.x.clone().greater_elem(0).all())),
    ("cumsum", |f| call(f, |f| f.square.clone().cumsum(1))),
    ("sort", |f| call(f, |f| f.square.clone().sort(1))),
    ("topk", |f| call(f, |f| f.square.clone().topk(4, 1))),
    ("topk-with-indices", |f| call(f, |f| f.square.clone().topk_with_indices(4, 1))),
    ("median", |f| call(f, |f| f.square.clone().median(1))),
    ("matmul", |f| call(f, |f| f.square.clone().matmul(f.square.clone()))),
    ("matmul-batched", |f| {
        let batch = f.x.clone().reshape([16, 64, 64]);
        call(f, move |_| batch.clone().matmul(batch.clone()))
    }),
    ("conv2d", |f| {
        let (images, kernels) = (f.x.clone().reshape([1, 16, 64, 64]), Tensor::<Cuda, 4>::ones([8, 16, 3, 3], &f.gpu));
        let options = ConvOptions::new([1, 1], [1, 1], [1, 1], 1);
        call(f, move |_| conv2d(images.clone(), kernels.clone(), None, options.clone()))
    }),
    ("softmax", |f| call(f, |f| softmax(f.square.clone(), 1))),
    ("categorical", |f| {
        let likely = softmax(f.square.clone(), 1);
        call(f, move |_| likely.clone().categorical(1))
    }),
    ("linear", |f| {
        let layer = layer::<Cuda>(f);
        call(f, move |f| layer.forward(f.square.clone()))
    }),
    ("layer-norm", |f| {
        let norm = LayerNormConfig::new(SIDE).init::<Cuda>(&f.gpu);
        call(f, move |f| norm.forward(f.square.clone()))
    }),
    ("dropout", |f| {
        let dropout = DropoutConfig::new(0.5).init();
        call(f, move |f| dropout.forward(Tensor::<Training, 1>::from_inner(f.x.clone())))
    }),
    ("cross-entropy", |f| {
        let (loss, classes) =
            (CrossEntropyLossConfig::new().init(&f.gpu), Tensor::<Cuda, 1, Int>::zeros([SIDE], &f.gpu));
        call(f, move |f| loss.forward(f.square.clone(), classes.clone()))
    }),
    ("backward", |f| {
        let weights = Tensor::<Training, 2>::from_inner(f.square.clone()).require_grad();
        call(f, move |_| (weights.clone() * weights.clone()).mean().backward())
    }),
    ("sgd-step", |f| stepped(f, SgdConfig::new().init())),
    ("adamw-step", |f| stepped(f, AdamWConfig::new().init())),
    ("adamw-step-clipped", |f| {
        stepped(f, AdamWConfig::new().with_grad_clipping(Some(GradientClippingConfig::Norm(1.0))).init())
    }),
    ("sync", |f| prepared(f, |_| (), |f, ()| Ok(<Cuda>::sync(&f.gpu)?))),
    ("memory-cleanup", |f| call(f, |f| <Cuda>::memory_cleanup(&f.gpu))),
    ("record-save", |f| {
        let layer = layer::<Cuda>(f);
        prepared(f, move |_| layer.clone(), |f, layer| Ok(layer.save_file(&f.file, &Recorder::new())?))
    }),
    ("record-load", |f| {
        let layer = layer::<Cuda>(f);
        layer.clone().save_file(&f.file, &Recorder::new())?;
        prepared(f, move |_| layer.clone(), |f, layer| Ok(layer.load_file(&f.file, &Recorder::new(), &f.gpu)?))
    }),
];

/// A call on what is there. burn panics where one fails.
fn call<R: 'static>(f: &Shared, call: impl Fn(&Fixture) -> R + 'static) -> Result<Call> {
    prepared(f, |_| (), move |f, ()| Ok(call(f)))
}

/// A call on what is made anew for each time.
fn prepared<I: 'static, R: 'static>(
    f: &Shared,
    make: impl Fn(&Fixture) -> I + 'static,
    call: impl Fn(&Fixture, I) -> Result<R> + 'static,
) -> Result<Call> {
    let gpu = f.gpu.clone();
    Ok(Call::sharing(&f.held, f, move |f| Ok(make(f)), call).launched_by(move || Ok(<Cuda>::sync(&gpu)?)))
}

fn ones(f: &Fixture, elements: usize) -> Tensor<Cuda, 1> {
    Tensor::ones([elements], &f.gpu)
}

fn host(elements: usize) -> TensorData {
    TensorData::new(vec![1_f32; elements], [elements])
}

/// A copy of pageable memory, or of what was staged in pinned memory, to the device.
fn uploaded(f: &Shared, elements: usize, is_staged: bool) -> Result<Call> {
    let make = move |f: &Fixture| {
        let mut data = host(elements);
        if is_staged {
            <Cuda>::staging([&mut data].into_iter(), &f.gpu);
        }
        data
    };
    prepared(f, make, |f, data| Ok(Tensor::<Cuda, 1>::from_data(data, &f.gpu)))
}

fn dropped(f: &Shared, elements: usize) -> Result<Call> {
    prepared(
        f,
        move |f| ones(f, elements),
        |_, tensor| {
            drop(tensor);
            Ok(())
        },
    )
}

/// A matrix of weights.
fn layer<B: Backend<Device = CudaDevice>>(f: &Fixture) -> Linear<B> {
    let layer: Linear<B> = LinearConfig::new(SIDE, SIDE).with_bias(false).init(&f.gpu);
    // burn makes weights when they are first asked for.
    drop(layer.weight.val());
    layer
}

/// A step of an optimizer over four matrices, whose gradients are there.
fn stepped(f: &Shared, optimizer: impl Optimizer<Vec<Linear<Training>>, Training> + 'static) -> Result<Call> {
    let layers: Vec<_> = (0..4).map(|_| layer::<Training>(f)).collect();
    let (weights, optimizer) = (layers.clone(), RefCell::new(optimizer));
    let make = move |f: &Fixture| {
        let x = Tensor::<Training, 2>::from_inner(f.square.clone());
        let loss = layers.iter().fold(x, |x, layer| layer.forward(x)).mean();
        GradientsParams::from_grads(loss.backward(), &layers)
    };
    prepared(f, make, move |_, gradients| Ok(optimizer.borrow_mut().step(LEARNING_RATE, weights.clone(), gradients)))
}
