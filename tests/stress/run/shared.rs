//! Streams that two libraries use, and memory that goes from one to the other and back. The other library is cudarc; where the
//! engine is not CUDA's, this library does its part.

use syncscope::device::{DType, Device, Stream};
use syncscope::tensor::Tensor;

use crate::Outcome;
use crate::held::{Held, integers};
use crate::program::How;
use crate::run::text;

/// The place of a stream that is used by its handle alone, among those that are kept.
pub(super) type Raw = usize;

/// A stream for both, and what to give back when nobody uses it any more.
pub(super) fn stream(device: &Device, how: How) -> Outcome<(Stream, Option<Raw>)> {
    #[cfg(feature = "cuda")]
    if device.properties().engine == "cuda" {
        return cuda::stream(device, how);
    }
    let _ = how;
    Ok((device.stream().map_err(text)?, None))
}

/// Nobody has a handle of what used them, and their devices were waited for.
pub(super) fn give_back(raw: Vec<Raw>) {
    #[cfg(feature = "cuda")]
    cuda::give_back(raw);
    #[cfg(not(feature = "cuda"))]
    drop(raw);
}

/// Their memory with these values.
pub(super) fn upload(stream: &Stream, values: &[i64]) -> Outcome<Held> {
    #[cfg(feature = "cuda")]
    if stream.device().properties().engine == "cuda" {
        return cuda::upload(stream, values).map(Held::F32);
    }
    Held::upload(stream, DType::F32, values).map_err(text)
}

/// A copy that they made; the original is freed by them.
pub(super) fn copied(stream: &Stream, x: Tensor<f32>) -> Outcome<Held> {
    #[cfg(feature = "cuda")]
    if stream.device().properties().engine == "cuda" {
        return cuda::copied(stream, x).map(Held::F32);
    }
    let _ = stream;
    Ok(Held::F32(x))
}

/// What they read; they wait for the stream.
pub(super) fn read(stream: &Stream, x: Tensor<f32>) -> Outcome<Vec<Option<i64>>> {
    #[cfg(feature = "cuda")]
    if stream.device().properties().engine == "cuda" {
        return cuda::read(stream, x);
    }
    let _ = stream;
    Ok(integers(&x.to_vec().map_err(text)?))
}

#[cfg(feature = "cuda")]
mod cuda {
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};

    use cudarc::driver::{CudaContext, CudaStream, DriverError};
    use syncscope::device::{Device, Stream};
    use syncscope::tensor::Tensor;

    use super::Raw;
    use crate::Outcome;
    use crate::held::integers;
    use crate::program::How;
    use crate::run::{lock, text};

    /// A stream that was lent is never used again: a long run lends no more.
    const MAX_LENT: usize = 20;

    /// By the number of their GPU.
    static CONTEXTS: Mutex<BTreeMap<usize, Arc<CudaContext>>> = Mutex::new(BTreeMap::new());

    /// Streams that are used by their handles: all of them, and those that nobody uses.
    static KEPT: Mutex<Vec<Arc<CudaStream>>> = Mutex::new(Vec::new());
    static UNUSED: Mutex<Vec<Raw>> = Mutex::new(Vec::new());

    fn said(error: DriverError) -> String {
        error.to_string()
    }

    fn context(device: &Device) -> Outcome<Arc<CudaContext>> {
        let number = device.name().rsplit(':').next().and_then(|number| number.parse().ok()).unwrap_or(0);
        let mut contexts = lock(&CONTEXTS);
        if let Some(context) = contexts.get(&number) {
            return Ok(context.clone());
        }
        let context = CudaContext::new(number).map_err(said)?;
        untracked(&context);
        contexts.insert(number, context.clone());
        Ok(context)
    }

    /// To make an event may wait for all of a device, and an event for each piece of memory is what orders their streams.
    fn untracked(context: &CudaContext) {
        // Safety: a piece of memory is used on other streams behind events of the program alone.
        unsafe { context.disable_event_tracking() };
    }

    pub(super) fn stream(device: &Device, how: How) -> Outcome<(Stream, Option<Raw>)> {
        static LENT: AtomicUsize = AtomicUsize::new(0);
        match how {
            How::Lent if LENT.fetch_add(1, Ordering::Relaxed) < MAX_LENT => {
                let stream = device.stream().map_err(text)?;
                stream.lend_raw().map_err(text)?;
                Ok((stream, None))
            }
            How::Raw => {
                let context = context(device)?;
                let mut kept = lock(&KEPT);
                let fits = |place: &Raw| kept[*place].context() == &context;
                let mut unused = lock(&UNUSED);
                let raw = match unused.iter().position(fits) {
                    Some(at) => unused.swap_remove(at),
                    None => {
                        kept.push(context.new_stream().map_err(said)?);
                        kept.len() - 1
                    }
                };
                // Safety: it is kept as long as the process.
                let stream = unsafe { device.wrap_raw(kept[raw].cu_stream()) };
                Ok((stream.map_err(text)?, Some(raw)))
            }
            _ => Ok((device.wrap(&context(device)?.new_stream().map_err(said)?).map_err(text)?, None)),
        }
    }

    pub(super) fn give_back(raw: Vec<Raw>) {
        lock(&UNUSED).extend(raw);
    }

    fn theirs(stream: &Stream) -> Outcome<Arc<CudaStream>> {
        let theirs = stream.lend().map_err(text)?;
        untracked(theirs.context());
        Ok(theirs)
    }

    pub(super) fn upload(stream: &Stream, values: &[i64]) -> Outcome<Tensor<f32>> {
        let values: Vec<f32> = values.iter().map(|&x| x as f32).collect();
        let slice = theirs(stream)?.clone_htod(&values).map_err(said)?;
        Tensor::of_slice(stream, slice, [values.len()]).map_err(text)
    }

    pub(super) fn copied(stream: &Stream, x: Tensor<f32>) -> Outcome<Tensor<f32>> {
        let (len, slice) = (x.len(), x.into_slice().map_err(text)?);
        let copy = theirs(stream)?.clone_dtod(&slice).map_err(said)?;
        drop(slice);
        Tensor::of_slice(stream, copy, [len]).map_err(text)
    }

    pub(super) fn read(stream: &Stream, x: Tensor<f32>) -> Outcome<Vec<Option<i64>>> {
        let slice = x.into_slice().map_err(text)?;
        Ok(integers(&theirs(stream)?.clone_dtoh(&slice).map_err(said)?))
    }
}
