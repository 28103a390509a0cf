//! Calls that allocate, free and map memory, or say something of it.

use std::ffi::c_void;
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;

use cudarc::driver::sys::{
    self, CUdeviceptr, CUmem_advise, CUmemAccess_flags, CUmemAccessDesc, CUmemAllocationGranularity_flags,
    CUmemAllocationHandleType, CUmemAllocationProp, CUmemAllocationProp_st__bindgen_ty_1, CUmemAllocationType,
    CUmemAttach_flags, CUmemGenericAllocationHandle, CUmemLocation, CUmemLocationType, CUmemPoolProps, CUmemoryPool,
    CUpointer_attribute, CUstream,
};

use super::owned::{Block, Owned, allocate, allocate_managed, allocate_pinned, pageable, register};
use super::{Calls, in_turn};
use crate::Result;
use crate::catalogue::{Allocate, Memory};
use crate::made::plain;
use crate::{Made, RigStream, Steps};

pub(super) fn steps(calls: &Arc<Calls>, call: Allocate) -> Result<Box<dyn Steps>> {
    let c = Arc::clone(calls);
    let context = calls.context.clone();
    Ok(match call {
        Allocate::Alloc(bytes) => {
            Made::new(move || Ok(Owned::empty(&context, sys::cuMemFree_v2)), move |p| allocate(p, bytes)).boxed()
        }
        Allocate::Free(bytes) => {
            freed(move || made(Owned::empty(&context, sys::cuMemFree_v2), |p| allocate(p, bytes)), "cuMemFree")
        }
        Allocate::AllocAsync(bytes) => {
            let own = calls.own.get()?;
            // Freed by the plain call, which is allowed, when all work is over.
            Made::new(
                move || Ok(Owned::empty(&context, sys::cuMemFree_v2)),
                move |place| allocate_async(place, bytes, own),
            )
            .boxed()
        }
        Allocate::AllocFromPool(bytes) => {
            let (own, mut pool) = (calls.own.get()?, keeping_pool(calls, bytes)?);
            // The memory is freed by the plain call, as above, before its pool ends.
            let made = move || Ok((Owned::empty(&context, sys::cuMemFree_v2), pool()?));
            Made::new(made, move |(place, pool)| allocate_from(place, bytes, pool.get()?, own)).boxed()
        }
        Allocate::FreeAsync(bytes) => {
            let own = calls.own.get()?;
            let made = move || {
                let place = made(Owned::empty(&context, sys::cuMemFree_v2), |p| allocate_async(p, bytes, own))?;
                c.synchronize(RigStream::Own).map(|()| place)
            };
            let c = Arc::clone(calls);
            Made::new(made, move |place| free_async(&c, place, own)).boxed()
        }
        Allocate::HostAlloc(bytes) => {
            Made::new(move || Ok(Owned::empty(&context, sys::cuMemFreeHost)), move |p| allocate_pinned(p, bytes))
                .boxed()
        }
        Allocate::FreeHost(bytes) => freed(
            move || made(Owned::empty(&context, sys::cuMemFreeHost), |p| allocate_pinned(p, bytes)),
            "cuMemFreeHost",
        ),
        Allocate::Register(bytes) => {
            let block = pageable(bytes)?;
            Made::new(move || Ok(Owned::empty(&context, sys::cuMemHostUnregister)), move |p| register(p, &block, bytes))
                .boxed()
        }
        Allocate::Unregister(bytes) => {
            let block = pageable(bytes)?;
            let registered =
                move || made(Owned::empty(&context, sys::cuMemHostUnregister), |p| register(p, &block, bytes));
            freed(registered, "cuMemHostUnregister")
        }
        Allocate::AllocManaged(bytes) => {
            Made::new(move || Ok(Owned::empty(&context, sys::cuMemFree_v2)), move |p| allocate_managed(p, bytes))
                .boxed()
        }
        Allocate::FreeManaged(bytes) => {
            // As a program frees it: its pages are there.
            let written = move |p: &mut Owned<CUdeviceptr>| {
                allocate_managed(p, bytes)?;
                // Safety: new and that long; no work uses it.
                unsafe { (p.get()? as *mut u8).write_bytes(1, bytes) };
                Ok(())
            };
            freed(move || made(Owned::empty(&context, sys::cuMemFree_v2), written), "cuMemFree")
        }
        Allocate::CreatePool => {
            let properties = pool_properties(calls);
            let made = move || Ok(Owned::empty(&context, sys::cuMemPoolDestroy));
            Made::new(made, move |place| create_pool(place, &properties)).boxed()
        }
        Allocate::DestroyPool => {
            let properties = pool_properties(calls);
            let pool =
                move || made(Owned::empty(&context, sys::cuMemPoolDestroy), |place| create_pool(place, &properties));
            freed(pool, "cuMemPoolDestroy")
        }
        Allocate::TrimPool => trim(calls)?,
        Allocate::Info => plain(move || {
            let (mut free, mut total) = (0, 0);
            // Safety: writes two sizes.
            c.check("cuMemGetInfo", unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) })
        }),
        Allocate::Attribute => {
            let block = Block::new(&context, Memory::Device, PIECE)?;
            let address = block.address()?;
            plain(move || {
                let (_kept, mut kind) = (&block, 0u32);
                let attribute = CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
                // Safety: the attribute is one word.
                let status = unsafe { sys::cuPointerGetAttribute((&raw mut kind).cast(), attribute, address) };
                c.check("cuPointerGetAttribute", status)
            })
        }
        Allocate::Prefetch => {
            c.require("cuMemPrefetchAsync_v2")?;
            let (block, here, own) = (Block::new(&context, Memory::Managed, PIECE)?, here(calls), calls.own.get()?);
            let (address, block) = (block.address()?, Rc::new(block));
            let touched = Rc::clone(&block);
            // What the host has written lies with it, and moves.
            let touch = move || {
                // Safety: managed memory of that size, which no work uses now.
                unsafe { touched.start()?.cast::<u8>().write_bytes(1, touched.bytes()) };
                Ok(())
            };
            Made::new(touch, move |()| {
                // Safety: managed memory of that size.
                let status = unsafe { sys::cuMemPrefetchAsync_v2(address, block.bytes(), here, 0, own) };
                c.check("cuMemPrefetchAsync", status)
            })
            .boxed()
        }
        Allocate::Advise => {
            c.require("cuMemAdvise_v2")?;
            let (block, here) = (Block::new(&context, Memory::Managed, PIECE)?, here(calls));
            let address = block.address()?;
            let next =
                in_turn([CUmem_advise::CU_MEM_ADVISE_SET_ACCESSED_BY, CUmem_advise::CU_MEM_ADVISE_UNSET_ACCESSED_BY]);
            plain(move || {
                // Safety: as above.
                c.check("cuMemAdvise", unsafe { sys::cuMemAdvise_v2(address, block.bytes(), next(), here) })
            })
        }
        Allocate::Attach => {
            let own = calls.own.get()?;
            // New memory belongs to all streams.
            Made::new(
                move || Block::new(&context, Memory::Managed, PIECE),
                move |block| {
                    let flags = CUmemAttach_flags::CU_MEM_ATTACH_SINGLE as u32;
                    // Safety: the start of managed memory; 0 is all of it.
                    let status = unsafe { sys::cuStreamAttachMemAsync(own, block.address()?, 0, flags) };
                    c.check("cuStreamAttachMemAsync", status)
                },
            )
            .boxed()
        }
        Allocate::Reserve
        | Allocate::FreeAddress
        | Allocate::Create
        | Allocate::Release
        | Allocate::Map
        | Allocate::SetAccess
        | Allocate::Unmap => mapped(calls, call)?,
    })
}

/// The size of memory where it is not the size that matters.
const PIECE: usize = 2 << 20;

fn made<H: Copy>(mut place: Owned<H>, make: impl FnOnce(&mut Owned<H>) -> Result<()>) -> Result<Owned<H>> {
    make(&mut place)?;
    Ok(place)
}

/// A call that ends what was made.
fn freed<H: Copy + 'static>(made: impl FnMut() -> Result<Owned<H>> + 'static, call: &'static str) -> Box<dyn Steps> {
    Made::new(made, move |place| place.end(call)).boxed()
}

fn allocate_async(place: &mut Owned<CUdeviceptr>, bytes: usize, stream: CUstream) -> Result<()> {
    let mut address = 0;
    // Safety: writes one address; the stream is live.
    let status = unsafe { sys::cuMemAllocAsync(&mut address, bytes, stream) };
    place.keep("cuMemAllocAsync", address, status)
}

fn free_async(calls: &Calls, place: &mut Owned<CUdeviceptr>, stream: CUstream) -> Result<()> {
    let address = place.get()?;
    place.forget();
    // Safety: allocated, and not used again.
    calls.check("cuMemFreeAsync", unsafe { sys::cuMemFreeAsync(address, stream) })
}

/// The device, as a place of memory.
pub(super) fn here(calls: &Calls) -> CUmemLocation {
    CUmemLocation { type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id: calls.context.device() }
}

fn pool_properties(calls: &Calls) -> CUmemPoolProps {
    CUmemPoolProps {
        allocType: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        handleTypes: CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
        location: here(calls),
        win32SecurityAttributes: ptr::null_mut(),
        maxSize: 0,
        usage: 0,
        reserved: [0; 54],
    }
}

fn create_pool(place: &mut Owned<CUmemoryPool>, properties: &CUmemPoolProps) -> Result<()> {
    let mut raw = ptr::null_mut();
    // Safety: writes one handle.
    let status = unsafe { sys::cuMemPoolCreate(&mut raw, properties) };
    place.keep("cuMemPoolCreate", raw, status)
}

fn allocate_from(place: &mut Owned<CUdeviceptr>, bytes: usize, pool: CUmemoryPool, stream: CUstream) -> Result<()> {
    let mut address = 0;
    // Safety: writes one address; pool and stream are live.
    let status = unsafe { sys::cuMemAllocFromPoolAsync(&mut address, bytes, pool, stream) };
    place.keep("cuMemAllocFromPoolAsync", address, status)
}

/// A new pool each time that keeps so much memory, which nobody uses.
fn keeping_pool(calls: &Arc<Calls>, bytes: usize) -> Result<impl FnMut() -> Result<Owned<CUmemoryPool>> + use<>> {
    let (properties, own, context) = (pool_properties(calls), calls.own.get()?, calls.context.clone());
    let filler = Arc::clone(calls);
    Ok(move || {
        let pool = made(Owned::empty(&context, sys::cuMemPoolDestroy), |place| create_pool(place, &properties))?;
        let mut threshold = u64::MAX;
        let keep = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        // Safety: the attribute is a 64-bit size.
        let status = unsafe { sys::cuMemPoolSetAttribute(pool.get()?, keep, (&raw mut threshold).cast::<c_void>()) };
        filler.check("cuMemPoolSetAttribute", status)?;
        let mut piece = Owned::empty(&context, sys::cuMemFree_v2);
        allocate_from(&mut piece, bytes, pool.get()?, own)?;
        free_async(&filler, &mut piece, own)?;
        filler.synchronize(RigStream::Own)?;
        Ok(pool)
    })
}

/// Of a pool that keeps memory.
fn trim(calls: &Arc<Calls>) -> Result<Box<dyn Steps>> {
    let c = Arc::clone(calls);
    Ok(Made::new(keeping_pool(calls, PIECE)?, move |pool: &mut Owned<CUmemoryPool>| {
        // Safety: the pool is live; memory in use is not touched.
        c.check("cuMemPoolTrimTo", unsafe { sys::cuMemPoolTrimTo(pool.get()?, 0) })
    })
    .boxed())
}

/// What a mapping consists of, as far as it has been made.
struct Mapping {
    calls: Arc<Calls>,
    size: usize,
    address: CUdeviceptr,
    handle: Option<CUmemGenericAllocationHandle>,
    is_mapped: bool,
}

impl Mapping {
    fn new(calls: &Arc<Calls>) -> Result<Self> {
        let (mut size, minimum) = (0, CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM);
        let properties = properties(calls);
        // Safety: writes one size.
        let status = unsafe { sys::cuMemGetAllocationGranularity(&mut size, &properties, minimum) };
        calls.check("cuMemGetAllocationGranularity", status)?;
        Ok(Self { calls: calls.clone(), size, address: 0, handle: None, is_mapped: false })
    }

    /// Up to the step before `call`.
    fn before(calls: &Arc<Calls>, call: Allocate) -> Result<Self> {
        let mut mapping = Self::new(calls)?;
        let steps: &[fn(&mut Self) -> Result<()>] = match call {
            Allocate::FreeAddress => &[Self::reserve],
            Allocate::Release => &[Self::create],
            Allocate::Map => &[Self::reserve, Self::create],
            Allocate::SetAccess => &[Self::reserve, Self::create, Self::map],
            Allocate::Unmap => &[Self::reserve, Self::create, Self::map, Self::set_access],
            _ => &[],
        };
        steps.iter().try_for_each(|step| step(&mut mapping))?;
        Ok(mapping)
    }

    fn reserve(&mut self) -> Result<()> {
        // Safety: writes one address.
        let status = unsafe { sys::cuMemAddressReserve(&mut self.address, self.size, 0, 0, 0) };
        self.calls.check("cuMemAddressReserve", status)
    }

    fn free_address(&mut self) -> Result<()> {
        let address = std::mem::take(&mut self.address);
        // Safety: reserved with this size; nothing is mapped there.
        self.calls.check("cuMemAddressFree", unsafe { sys::cuMemAddressFree(address, self.size) })
    }

    fn create(&mut self) -> Result<()> {
        let (mut handle, properties) = (0, properties(&self.calls));
        // Safety: writes one handle.
        let status = unsafe { sys::cuMemCreate(&mut handle, self.size, &properties, 0) };
        self.calls.check("cuMemCreate", status)?;
        self.handle = Some(handle);
        Ok(())
    }

    fn release(&mut self) -> Result<()> {
        match self.handle.take() {
            // Safety: the handle is live, and not used again.
            Some(handle) => self.calls.check("cuMemRelease", unsafe { sys::cuMemRelease(handle) }),
            None => Ok(()),
        }
    }

    fn map(&mut self) -> Result<()> {
        // Safety: both have this size.
        let status = unsafe { sys::cuMemMap(self.address, self.size, 0, self.handle.unwrap_or_default(), 0) };
        self.calls.check("cuMemMap", status)?;
        self.is_mapped = true;
        Ok(())
    }

    fn set_access(&mut self) -> Result<()> {
        let flags = CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        let access = CUmemAccessDesc { location: here(&self.calls), flags };
        // Safety: mapped with this size.
        let status = unsafe { sys::cuMemSetAccess(self.address, self.size, &access, 1) };
        self.calls.check("cuMemSetAccess", status)
    }

    fn unmap(&mut self) -> Result<()> {
        self.is_mapped = false;
        // Safety: mapped with this size, and used by nothing.
        self.calls.check("cuMemUnmap", unsafe { sys::cuMemUnmap(self.address, self.size) })
    }
}

impl Drop for Mapping {
    /// A drop cannot return an error.
    fn drop(&mut self) {
        let _ = self.calls.bind();
        if self.is_mapped {
            let _ = self.unmap();
        }
        let _ = self.release();
        if self.address != 0 {
            let _ = self.free_address();
        }
    }
}

fn mapped(calls: &Arc<Calls>, call: Allocate) -> Result<Box<dyn Steps>> {
    let run = match call {
        Allocate::Reserve => Mapping::reserve,
        Allocate::FreeAddress => Mapping::free_address,
        Allocate::Create => Mapping::create,
        Allocate::Release => Mapping::release,
        Allocate::Map => Mapping::map,
        Allocate::SetAccess => Mapping::set_access,
        _ => Mapping::unmap,
    };
    let c = Arc::clone(calls);
    Ok(Made::new(move || Mapping::before(&c, call), run).boxed())
}

fn properties(calls: &Calls) -> CUmemAllocationProp {
    CUmemAllocationProp {
        type_: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        requestedHandleTypes: CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
        location: here(calls),
        win32HandleMetaData: ptr::null_mut(),
        allocFlags: CUmemAllocationProp_st__bindgen_ty_1 {
            compressionType: 0,
            gpuDirectRDMACapable: 0,
            usage: 0,
            reserved: [0; 4],
        },
    }
}
