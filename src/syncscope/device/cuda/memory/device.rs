//! Device memory that is freed in stream order, whichever streams used it.
//!
//! Memory belongs to the stream it was allocated on, its home, and is freed there: no event, no call of the driver,
//! one pointer comparison a use. Another stream that uses it is remembered, and not held on to: one that is gone is past its
//! work. If there were others, the memory goes home when each of them is past its last use: no stream is ordered behind
//! another by a drop, and no free waits for another.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::device::DType;
use crate::device::cuda::driver::{CudaSlice, CudaStream, PoolSpan};
use crate::device::cuda::stream::guard::StreamInner;
use crate::device::cuda::stream::limbo::{Content, Kept, LimboState};
use crate::device::engine::{DeviceMemory, Result};
use crate::device::lock;
use crate::device::operation::Region;
use crate::error::DeviceError;

/// Memory of a CUDA device.
pub(crate) struct CudaMemory {
    /// `None` for no elements, which take no memory.
    content: Option<Content>,
    /// `None` for no elements, which take no memory.
    span: Option<PoolSpan>,
    dtype: DType,
    len: usize,
    home: Arc<StreamInner>,
    guests: Mutex<Vec<Weak<StreamInner>>>,
}

impl CudaMemory {
    /// Memory for `len` elements, usable by work on `home` from now on.
    pub(crate) fn new(home: Arc<StreamInner>, dtype: DType, len: usize) -> Result<Self> {
        let (content, span) = match len.checked_mul(dtype.size()) {
            Some(0) => {
                home.device.check()?;
                (None, None)
            }
            Some(bytes) => {
                let allocation = home.allocate(bytes)?;
                let span = allocation.span().part(0, bytes);
                (Some(Content::Own(allocation)), span)
            }
            None => {
                let device = home.device.name().to_owned();
                return Err(DeviceError::OutOfMemory { device, requested: usize::MAX, free: None });
            }
        };
        Ok(Self { content, span, dtype, len, home, guests: Mutex::default() })
    }

    /// Memory for `len` elements at `address` of another library, which `owner` frees in the order of `home` when it is dropped.
    pub(crate) fn of_other(
        home: Arc<StreamInner>,
        dtype: DType,
        len: usize,
        address: u64,
        owner: Box<dyn Any + Send + Sync>,
    ) -> Self {
        let span = (len > 0).then(|| PoolSpan::new(address, len * dtype.size()));
        Self { content: Some(Content::Other(owner)), span, dtype, len, home, guests: Mutex::default() }
    }

    /// Its content as memory of `cudarc`, of `len` elements, with an event behind what is pending; `None` where other streams than
    /// its home use it.
    ///
    /// # Errors
    /// Work of its home has failed; the driver's.
    pub(crate) fn into_slice<T: 'static>(
        mut self,
        stream: &Arc<CudaStream>,
        len: usize,
    ) -> Result<Option<CudaSlice<T>>> {
        if len != self.len || !lock(&self.guests).is_empty() || !self.home.is(stream) {
            return Ok(None);
        }
        let home = self.home.clone();
        let _guard = home.enter()?;
        let context = &home.device.gpu.context;
        // Before the content is taken, which a failure then frees.
        context.check_lent(stream)?;
        let slice = match self.content.take() {
            Some(Content::Own(allocation)) => Some(allocation.into_slice(stream, len)),
            Some(Content::Other(owner)) => owner.downcast().ok().map(|slice| *slice),
            None => stream.null().ok(),
        };
        slice.map(|slice| context.written(slice).map(|(slice, _)| slice)).transpose()
    }

    /// Where a region lies, for work on `stream`, which is remembered as a user. An empty region lies nowhere.
    #[inline]
    pub(crate) fn of(region: Region<'_>, stream: &Arc<StreamInner>) -> Result<PoolSpan> {
        let memory: &dyn Any = &**region.memory;
        let Some(memory) = memory.downcast_ref::<Self>() else { return Err(foreign(stream)) };
        if !Arc::ptr_eq(&memory.home, stream) {
            memory.remember(stream)?;
        }
        let size = memory.dtype.size();
        // The layers above keep every region inside; a slip there must not become an access outside.
        let inside = region.offset.checked_add(region.len).is_some_and(|end| end <= memory.len);
        match memory.span.and_then(|span| span.part(region.offset * size, region.len * size)) {
            Some(span) if inside => Ok(span),
            _ => Err(outside(stream)),
        }
    }

    /// The address of a region that is not empty, for work on its home; `None` for what is to be asked of [`of`](Self::of).
    #[inline(always)]
    pub(crate) fn address_at_home(region: &Region<'_>, home: &Arc<StreamInner>) -> Option<u64> {
        let memory: &dyn Any = &**region.memory;
        let memory = memory.downcast_ref::<Self>().filter(|memory| Arc::ptr_eq(&memory.home, home))?;
        let is_whole = region.offset == 0 && region.len <= memory.len;
        memory.span.filter(|_| is_whole).map(PoolSpan::address)
    }

    #[cold]
    fn remember(&self, stream: &Arc<StreamInner>) -> Result<()> {
        if !Arc::ptr_eq(&self.home.device, &stream.device) {
            return Err(foreign(stream));
        }
        let mut guests = lock(&self.guests);
        if !guests.iter().any(|guest| std::ptr::eq(guest.as_ptr(), Arc::as_ptr(stream))) {
            guests.retain(|guest| guest.strong_count() > 0);
            guests.push(Arc::downgrade(stream));
        }
        Ok(())
    }
}

#[cold]
fn outside(stream: &StreamInner) -> DeviceError {
    let reason = format!("a region lies outside of its memory on {}", stream.device.name());
    DeviceError::invalid("region", reason)
}

#[cold]
fn foreign(stream: &StreamInner) -> DeviceError {
    DeviceError::ForeignObject { what: "a tensor", device: stream.device.name().to_owned() }
}

impl DeviceMemory for CudaMemory {
    fn dtype(&self) -> DType {
        self.dtype
    }
}

impl Drop for CudaMemory {
    /// Pushes on lists, and calls the driver for nothing.
    fn drop(&mut self) {
        let guests = std::mem::take(self.guests.get_mut().unwrap_or_else(PoisonError::into_inner));
        let guests: Vec<_> = guests.iter().filter_map(Weak::upgrade).collect();
        match self.content.take() {
            None => {}
            Some(content) if guests.is_empty() => content.free(&self.home),
            Some(content) => {
                let memory = Arc::new(LimboState::new(content, self.home.clone()));
                guests.iter().for_each(|guest| guest.keep(Kept::Memory { _memory: memory.clone() }));
            }
        }
    }
}
