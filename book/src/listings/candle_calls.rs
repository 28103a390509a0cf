//! The calls of candle.

use std::collections::HashMap;
use std::rc::Rc;

use candle_core::safetensors::{self, MmapedSafetensors};
use candle_core::{DType, Device, IndexOp, Tensor, Var};
use candle_nn::{AdamW, Optimizer, SGD, loss, ops};
use syncscope_peer::{Call, Calls, Result};

use crate::{ELEMENTS, Fixture};

const LARGE: usize = 10_000_000;

type Shared = Rc<Fixture>;

/// The calls, in the order of a page.
pub(crate) const CALLS: Calls<Fixture> = &[
    ("zeros", |f| call(f, |f| Tensor::zeros(ELEMENTS, DType::F32, &f.gpu))),
    ("ones", |f| call(f, |f| Tensor::ones(ELEMENTS, DType::F32, &f.gpu))),
    ("full", |f| call(f, |f| Tensor::full(2_f32, ELEMENTS, &f.gpu))),
    ("arange", |f| call(f, |f| Tensor::arange(0_f32, ELEMENTS as f32, &f.gpu))),
    ("rand", |f| call(f, |f| Tensor::rand(0_f32, 1.0, ELEMENTS, &f.gpu))),
    ("randn", |f| call(f, |f| Tensor::randn(0_f32, 1.0, ELEMENTS, &f.gpu))),
    ("set-seed", |f| call(f, |f| f.gpu.set_seed(7))),
    ("new-scalar", |f| call(f, |f| Tensor::new(1_f32, &f.gpu))),
    ("from-slice", |f| uploaded(f, ELEMENTS)),
    ("from-slice-large", |f| uploaded(f, LARGE)),
    ("from-vec", |f| prepared(f, |_| Ok(vec![1_f32; ELEMENTS]), |f, host| Tensor::from_vec(host, ELEMENTS, &f.gpu))),
    ("to-device-cuda", |f| {
        let host = Tensor::ones(ELEMENTS, DType::F32, &Device::Cpu)?;
        call(f, move |f| host.to_device(&f.gpu))
    }),
    ("to-device-cpu", |f| call(f, |f| f.x.to_device(&Device::Cpu))),
    ("to-device-cpu-large", |f| {
        let large = Tensor::ones(LARGE, DType::F32, &f.gpu)?;
        call(f, move |_| large.to_device(&Device::Cpu))
    }),
    ("to-scalar", |f| {
        let one = Tensor::new(1_f32, &f.gpu)?;
        call(f, move |_| one.to_scalar::<f32>())
    }),
    ("get-to-scalar", |f| call(f, |f| f.x.get(7)?.to_scalar::<f32>())),
    // The view is of 40 MB.
    ("get-to-scalar-large", |f| {
        let large = Tensor::ones(LARGE, DType::F32, &f.gpu)?;
        call(f, move |_| large.get(7)?.to_scalar::<f32>())
    }),
    ("to-vec1", |f| call(f, |f| f.x.to_vec1::<f32>())),
    ("narrow-to-vec1", |f| call(f, |f| f.x.narrow(0, 0, 8)?.to_vec1::<f32>())),
    ("narrow-to-vec1-large", |f| {
        let large = Tensor::ones(LARGE, DType::F32, &f.gpu)?;
        call(f, move |_| large.narrow(0, 0, 8)?.to_vec1::<f32>())
    }),
    ("to-vec2", |f| call(f, |f| f.square.to_vec2::<f32>())),
    ("display", |f| call(f, |f| Ok(f.x.get(7)?.to_string()))),
    ("any-in-if", |f| {
        call(f, |f| {
            let positive = f.x.gt(0_f32)?.to_dtype(DType::F32)?.sum_all()?.to_scalar::<f32>()?;
            Ok(if positive > 0.0 { 1 } else { 0 })
        })
    }),
    ("drop", |f| dropped(f, ELEMENTS)),
    ("drop-large", |f| dropped(f, LARGE)),
    ("clone", |f| call(f, |f| Ok(f.x.clone()))),
    ("copy", |f| call(f, |f| f.x.copy())),
    ("detach", |f| call(f, |f| Ok(f.x.detach()))),
    ("to-dtype", |f| call(f, |f| f.x.to_dtype(DType::F16))),
    ("contiguous", |f| call(f, |f| f.square.t()?.contiguous())),
    ("reshape", |f| call(f, |f| f.x.reshape((2, ELEMENTS / 2)))),
    ("transpose", |f| call(f, |f| f.square.t())),
    ("narrow", |f| call(f, |f| f.x.narrow(0, 1, 8))),
    ("i-range", |f| call(f, |f| f.square.i((1..3, ..)))),
    ("index-select", |f| call(f, |f| f.square.index_select(&f.rows, 0))),
    ("index-select-host-rows", |f| call(f, |f| f.square.index_select(&Tensor::new(&[2_u32, 0, 1], &f.gpu)?, 0))),
    ("embedding", |f| call(f, |f| f.square.embedding(&f.rows))),
    ("gather", |f| {
        let places = Tensor::zeros(f.square.shape(), DType::U32, &f.gpu)?;
        call(f, move |f| f.square.gather(&places, 0))
    }),
    ("scatter-add", |f| {
        let places = Tensor::zeros(f.square.shape(), DType::U32, &f.gpu)?;
        call(f, move |f| f.square.scatter_add(&places, &f.square, 0))
    }),
    ("index-add", |f| {
        let source = f.square.narrow(0, 0, 3)?.contiguous()?;
        call(f, move |f| f.square.index_add(&f.rows, &source, 0))
    }),
    ("where-cond", |f| {
        let mask = f.x.gt(0_f32)?;
        call(f, move |f| mask.where_cond(&f.x, &f.y))
    }),
    ("cat", |f| call(f, |f| Tensor::cat(&[&f.x, &f.y], 0))),
    ("stack", |f| call(f, |f| Tensor::stack(&[&f.x, &f.y], 0))),
    ("slice-set", |f| {
        let source = Tensor::zeros(8, DType::F32, &f.gpu)?;
        call(f, move |f| f.y.slice_set(&source, 0, 4))
    }),
    ("add", |f| call(f, |f| &f.x + &f.y)),
    ("broadcast-add", |f| {
        let row = f.square.narrow(0, 0, 1)?;
        call(f, move |f| f.square.broadcast_add(&row))
    }),
    ("affine", |f| call(f, |f| f.x.affine(2.0, 1.0))),
    ("exp", |f| call(f, |f| f.x.exp())),
    ("gt", |f| call(f, |f| f.x.gt(0_f32))),
    ("sum-all", |f| call(f, |f| f.x.sum_all())),
    ("mean", |f| call(f, |f| f.square.mean(1))),
    ("max", |f| call(f, |f| f.square.max(1))),
    ("argmax", |f| call(f, |f| f.square.argmax(1))),
    ("cumsum", |f| call(f, |f| f.square.cumsum(1))),
    ("sort", |f| call(f, |f| f.square.sort_last_dim(true))),
    ("matmul", |f| call(f, |f| f.square.matmul(&f.square))),
    ("matmul-batched", |f| {
        let batch = f.x.reshape((16, 64, 64))?;
        call(f, move |_| batch.matmul(&batch))
    }),
    ("conv2d", |f| {
        let (images, kernels) = (f.x.reshape((1, 16, 64, 64))?, Tensor::ones((8, 16, 3, 3), DType::F32, &f.gpu)?);
        call(f, move |_| images.conv2d(&kernels, 1, 1, 1, 1))
    }),
    ("softmax", |f| call(f, |f| ops::softmax(&f.square, 1))),
    ("softmax-last-dim", |f| call(f, |f| ops::softmax_last_dim(&f.square))),
    ("rms-norm", |f| {
        let weight = Tensor::ones(f.square.dim(1)?, DType::F32, &f.gpu)?;
        call(f, move |f| ops::rms_norm(&f.square, &weight, 1e-5))
    }),
    ("dropout", |f| call(f, |f| ops::dropout(&f.x, 0.5))),
    ("cross-entropy", |f| {
        let classes = Tensor::zeros(f.square.dim(0)?, DType::U32, &f.gpu)?;
        call(f, move |f| loss::cross_entropy(&f.square, &classes))
    }),
    ("backward", |f| {
        let weights = Var::from_tensor(&f.square)?;
        call(f, move |_| weights.as_tensor().sqr()?.mean_all()?.backward())
    }),
    ("sgd-step", |f| stepped::<SGD>(f, 0.01)),
    ("adamw-step", |f| stepped::<AdamW>(f, candle_nn::ParamsAdamW::default())),
    ("var-set", |f| {
        let weights = Var::from_tensor(&f.x)?;
        call(f, move |f| weights.set(&f.y))
    }),
    ("synchronize", |f| call(f, |f| f.gpu.synchronize())),
    ("new-cuda-with-stream", |f| {
        let ordinal = f.ordinal;
        call(f, move |_| Device::new_cuda_with_stream(ordinal))
    }),
    ("safetensors-load", |f| {
        saved(f)?;
        call(f, |f| safetensors::load(&f.file, &f.gpu))
    }),
    ("safetensors-load-mapped", |f| {
        saved(f)?;
        // Safety: nobody else changes the file while it is mapped.
        let mapped = unsafe { MmapedSafetensors::new(&f.file) }?;
        call(f, move |f| mapped.load("x", &f.gpu))
    }),
    ("safetensors-save", |f| call(f, |f| safetensors::save(&HashMap::from([("x", f.square.clone())]), &f.file))),
];

fn call<R: 'static>(f: &Shared, call: impl Fn(&Fixture) -> candle_core::Result<R> + 'static) -> Result<Call> {
    prepared(f, |_| Ok(()), move |f, ()| call(f))
}

/// A call on what is made anew for each time.
fn prepared<I: 'static, R: 'static>(
    f: &Shared,
    make: impl Fn(&Fixture) -> candle_core::Result<I> + 'static,
    call: impl Fn(&Fixture, I) -> candle_core::Result<R> + 'static,
) -> Result<Call> {
    Ok(Call::sharing(&f.held, f, move |f| Ok(make(f)?), move |f, input| Ok(call(f, input)?)))
}

fn uploaded(f: &Shared, elements: usize) -> Result<Call> {
    let host = vec![1_f32; elements];
    call(f, move |f| Tensor::from_slice(&host, elements, &f.gpu))
}

fn dropped(f: &Shared, elements: usize) -> Result<Call> {
    let make = move |f: &Fixture| Tensor::ones(elements, DType::F32, &f.gpu);
    prepared(f, make, |_, tensor| {
        drop(tensor);
        Ok(())
    })
}

/// A step of an optimizer over four matrices, whose gradients are there.
fn stepped<O: Optimizer + 'static>(f: &Shared, config: O::Config) -> Result<Call> {
    let weights = (0..4).map(|_| Var::from_tensor(&f.square)).collect::<candle_core::Result<Vec<_>>>()?;
    let squares = weights.iter().map(|own| own.as_tensor().sqr()?.mean_all());
    let loss = squares.reduce(|sum, one| sum? + one?).ok_or("there are no weights")??;
    let (gradients, optimizer) = (loss.backward()?, std::cell::RefCell::new(O::new(weights, config)?));
    call(f, move |_| optimizer.borrow_mut().step(&gradients))
}

/// Writes the file of the fixture.
fn saved(f: &Fixture) -> Result<()> {
    Ok(safetensors::save(&HashMap::from([("x", f.square.clone())]), &f.file)?)
}
