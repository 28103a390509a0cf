//! Streams and memory of other libraries, in and out: those of `cudarc` 0.19, which candle 0.11 and cubecl 0.12 use too, and
//! the driver's own handles, as C libraries give and take them.
//!
//! A wrapped stream is used as any other: gates hold it, captures and recordings take in what is called through it, and drops
//! wait for nothing. What its owner enqueues by other ways is in the stream's order like all else. A wrapped stream and others
//! are put in order as any two are: by an [`Event`](crate::device::Event). The driver itself orders the legacy default stream alone, and
//! that against all streams that were created as blocking: a gate on it holds them, too, and one on any of them holds it.
//!
//! A call makes the context of its GPU current on the thread that calls, and leaves it so: who calls the driver beside it, in another
//! context, makes that current again.
//!
//! # Beside candle
//! Both crates go into one program as they are; `examples/others` in the repository has one. This library has `cudarc` load CUDA's
//! libraries at run time, unless another crate asks for them to be linked, as candle does. A program that links them is built where
//! the CUDA toolkit is, and starts only where the libraries and a driver of CUDA 12.4 or newer are. This library adds none to those
//! that candle links, except CUPTI and the runtime by the feature `cupti`. A crate must not ask `cudarc` for `dynamic-loading` beside
//! one that links: `fallback-dynamic-loading` goes with both.
//!
//! Make candle's device by `Device::new_cuda_with_stream`. That of `Device::new_cuda` works on the per-thread default stream, which
//! is another one on each thread: [`Device::wrap`] refuses it.
//!
//! While one library captures a stream ([`Stream::capture`] captures apart, and leaves the stream itself alone), the others must
//! not use it: what they enqueue becomes a part of the capture without a word, and the driver has their questions and waits fail, also
//! those for the device, and the capture with them. Calls on other streams, and drops, leave it alone.

use std::any::Any;
use std::sync::Arc;

use cudarc::driver::sys::{CUdeviceptr, CUstream};
use cudarc::driver::{CudaSlice, CudaStream};

use super::driver::Foreign;
use super::engine::CudaEngine;
use super::memory::device::CudaMemory;
use super::stream::CudaStream as OwnStream;
use super::stream::guard::StreamInner;
use crate::device::code::{Argument, Value};
use crate::device::engine::{EngineStream, Result};
use crate::device::{Device, Element, Stream};
use crate::error::DeviceError;
use crate::tensor::Tensor;

/// Streams of other libraries.
impl Device {
    /// A stream of `cudarc` as one of this device. It is kept alive as long as the stream is used here.
    ///
    /// ```no_run
    /// use cudarc::driver::CudaContext;
    /// use syncscope::prelude::*;
    ///
    /// let theirs = CudaContext::new(0).and_then(|context| context.new_stream()).map_err(|error| error.to_string())?;
    /// let stream = Device::open("cuda:0")?.wrap(&theirs)?;
    /// stream.ones::<f32>([1000])?.sum()?.item()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`DeviceError::NotApplicable`] for a device of another engine; [`DeviceError::ForeignObject`] for a stream of another GPU
    /// or of a context that is not the GPU's primary one; [`DeviceError::InvalidArgument`] for the per-thread default stream, which
    /// is another one on each thread.
    pub fn wrap(&self, stream: &Arc<CudaStream>) -> Result<Stream> {
        wrap(self, Foreign::of(stream)?)
    }

    /// A stream of the driver as one of this device; the null stream is the legacy default one of the device's GPU.
    ///
    /// # Safety
    /// The handle is that of a stream, which its owner keeps until nobody has a handle of the [`Stream`], nor of a tensor or
    /// graph of it or of its memory, and [`Device::synchronize`] has returned after that, beside which no other thread was in a call on
    /// the stream or the device: such a call may look at all streams. Where that is not known it is kept as long as the process.
    ///
    /// # Errors
    /// As [`wrap`](Self::wrap).
    #[expect(unsafe_code, reason = "the caller promises what a handle cannot")]
    pub unsafe fn wrap_raw(&self, stream: CUstream) -> Result<Stream> {
        wrap(self, Foreign::raw(stream)?)
    }
}

fn wrap(device: &Device, stream: Foreign) -> Result<Stream> {
    let engine: &dyn Any = &**device.engine();
    match engine.downcast_ref::<CudaEngine>() {
        Some(engine) => Ok(Stream::of(device, engine.wrap(stream)?)),
        None => Err(elsewhere(device)),
    }
}

fn elsewhere(device: &Device) -> DeviceError {
    DeviceError::not_applicable("a stream of CUDA", device.name(), "it is none of its streams")
}

/// Streams for other libraries.
impl Stream {
    /// This stream for `cudarc`, and for what is built on it. From then on the stream asks the driver what is pending, as others
    /// enqueue on it, too. The driver's stream behind it is never given to another: lend one stream often, not many once.
    ///
    /// # Errors
    /// [`DeviceError::NotApplicable`] for a stream of another engine; the driver's.
    pub fn lend(&self) -> Result<Arc<CudaStream>> {
        self.inner()?.lend()
    }

    /// As [`lend`](Self::lend), by the driver's own handle: it is valid as long as the process.
    ///
    /// # Errors
    /// As [`lend`](Self::lend).
    pub fn lend_raw(&self) -> Result<CUstream> {
        Ok(self.inner()?.lend_raw())
    }

    fn inner(&self) -> Result<&Arc<StreamInner>> {
        let stream: &dyn EngineStream = self.raw();
        let stream: &dyn Any = stream;
        stream.downcast_ref::<OwnStream>().map(OwnStream::inner).ok_or_else(|| elsewhere(self.device()))
    }
}

/// Memory of other libraries.
impl<T: Element> Tensor<T> {
    /// A tensor of `cudarc`'s memory, without a copy: of the stream on which that was allocated, [wrapped](Device::wrap) or
    /// [lent](Stream::lend). The stream waits for what other streams of `cudarc` have yet to read or write there, by the events that
    /// the memory carries, if it does: see [`into_slice`](Self::into_slice).
    ///
    /// # Errors
    /// [`DeviceError::InvalidArgument`] where it was allocated on another stream, or has another number of elements than the
    /// shape; the driver's, also one that `cudarc` kept of an earlier call, as of a drop, for its next.
    pub fn of_slice(stream: &Stream, slice: CudaSlice<T>, shape: impl Into<Vec<usize>>) -> Result<Self> {
        let inner = stream.inner()?;
        if !inner.is(slice.stream()) {
            let reason = "the memory was allocated on another stream: wrap that one";
            return Err(DeviceError::invalid("of_slice", reason));
        }
        let (slice, address) = inner.device.gpu.context.written(slice)?;
        let len = slice.len();
        let memory = CudaMemory::of_other(inner.clone(), T::DTYPE, len, address, Box::new(slice));
        Self::of_memory(stream, Arc::new(memory), len, shape.into())
    }

    /// The tensor's memory for `cudarc`, without a copy; the other way round of [`of_slice`](Self::of_slice).
    ///
    /// It carries an event behind what is pending on its stream, for which `cudarc` has other streams wait. Where the event tracking
    /// of its context is off ([`CudaContext::disable_event_tracking`](cudarc::driver::CudaContext::disable_event_tracking)), as in
    /// candle, it carries none: order the other stream behind this one before it uses the memory.
    ///
    /// # Errors
    /// [`DeviceError::InvalidArgument`] where something else uses the memory: another handle of the tensor, a part of it, or another
    /// stream; a failure of the stream; the driver's, as in [`of_slice`](Self::of_slice).
    pub fn into_slice(self) -> Result<CudaSlice<T>> {
        let stream = self.stream().lend()?;
        let shared = || DeviceError::invalid("into_slice", "another tensor or stream uses the memory, too");
        let (memory, len) = self.into_memory().ok_or_else(shared)?;
        let memory: Arc<dyn Any + Send + Sync> = memory;
        let memory = memory.downcast::<CudaMemory>().ok().and_then(Arc::into_inner).ok_or_else(shared)?;
        memory.into_slice(&stream, len)?.ok_or_else(shared)
    }

    /// The address of the tensor's first element, for a C library: valid for what is enqueued on the tensor's
    /// [stream](Stream::lend_raw) as long as there is a handle of the tensor.
    ///
    /// # Errors
    /// [`DeviceError::NotApplicable`] for a tensor of another engine; [`DeviceError::InvalidArgument`] for one without elements.
    pub fn lend_raw(&self) -> Result<CUdeviceptr> {
        let inner = self.stream().inner()?;
        match Argument::from(self).0 {
            Value::Memory(region, _) if region.len > 0 => Ok(CudaMemory::of(region, inner)?.address()),
            _ => Err(DeviceError::invalid("lend_raw", "a tensor without elements has no address")),
        }
    }
}
