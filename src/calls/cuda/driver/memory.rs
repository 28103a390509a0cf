//! Calls that allocate, free and map memory, or say something of it.

use std::ffi::c_void;
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;

use cudarc::driver::sys::{
    self, CUdeviceptr, CUmem_advise, CUmemAccess_flags, CUmemAccessDesc, CUmemAllocationGranularity_flags,
    CUmemAllocationHandleType, CUmemAllocationProp, CUmemAllocationProp_st__bindgen_ty_1, CUmemAllocationType,
    CUmemAttach_flags, CUmemGenericAllocationHandle, CUmemLocation, CUmemLocationType, CUmemPoolProps, CUmemoryPool,
    CUpointer_attribute, CUresult, CUstream,
};

use super::owned::{
    Block, Owned, allocate, allocate_managed, allocate_pinned, device, managed, pageable, pinned, register, registered,
};
use super::{Calls, Status, call, creates, ends, in_turn, made, plain};
use crate::catalogue::{Call, Memory};
use crate::{On, Result, StreamRole};

/// Calls that allocate and free so many bytes.
pub(super) fn allocations(bytes: usize) -> impl Iterator<Item = Call> {
    let freed_async = move |c: &Calls| {
        let place = Owned::new(&c.context, "cuMemAllocAsync", sys::cuMemFree_v2, allocate_async(bytes, c.own.get()?))?;
        c.synchronize(StreamRole::Given).map(|()| place)
    };
    // Memory of a stream's order is freed by the plain call, which is allowed, when all work is over.
    let from_pool = move |c: &Calls| Ok((Owned::empty(&c.context, sys::cuMemFree_v2), keeping_pool(c, bytes)?));
    let all = [
        creates("cuMemAlloc", On::Nothing, sys::cuMemFree_v2, move |_, place| Ok(allocate(place, bytes)))
            .of(Memory::Device, bytes),
        ends("cuMemFree", move |c| device(&c.context, bytes)).of(Memory::Device, bytes),
        creates("cuMemAllocAsync", On::Stream, sys::cuMemFree_v2, move |c, place| {
            Ok(allocate_async(bytes, c.own.get()?)(place))
        })
        .of(Memory::Device, bytes),
        made("cuMemAllocFromPoolAsync", On::Stream, from_pool, move |c, (place, pool)| {
            let allocate = allocate_from(bytes, pool.get()?, c.own.get()?);
            place.make(|address| Ok(allocate(address)))
        })
        .of(Memory::Device, bytes),
        made("cuMemFreeAsync", On::Stream, freed_async, free_async).of(Memory::Device, bytes),
        creates("cuMemHostAlloc", On::Nothing, sys::cuMemFreeHost, move |_, place| Ok(allocate_pinned(place, bytes)))
            .of(Memory::Pinned, bytes),
        ends("cuMemFreeHost", move |c| pinned(&c.context, bytes)).of(Memory::Pinned, bytes),
        call("cuMemHostRegister", On::Nothing, move |calls| {
            let block = pageable(bytes)?;
            let make = |c: &Calls| Ok(Owned::empty(&c.context, sys::cuMemHostUnregister));
            let run = move |_: &Calls, place: &mut Owned<_>| place.make(|start| Ok(register(start, &block, bytes)));
            Ok(calls.made("cuMemHostRegister", make, run).boxed())
        })
        .of(Memory::Registered, bytes),
        call("cuMemHostUnregister", On::Nothing, move |calls| {
            let block = pageable(bytes)?;
            let make = move |c: &Calls| registered(&c.context, &block, bytes);
            Ok(calls.made("cuMemHostUnregister", make, |_, place| place.end()).boxed())
        })
        .of(Memory::Registered, bytes),
        creates("cuMemAllocManaged", On::Nothing, sys::cuMemFree_v2, move |_, place| {
            Ok(allocate_managed(place, bytes))
        })
        .of(Memory::Managed, bytes),
        ends("cuMemFree", move |c| managed(&c.context, bytes, bytes)).of(Memory::Managed, bytes),
    ];
    all.into_iter()
}

/// The others.
pub(super) fn calls() -> Vec<Call> {
    vec![
        creates("cuMemPoolCreate", On::Nothing, sys::cuMemPoolDestroy, |c, place| Ok(create_pool(c, place))),
        ends("cuMemPoolDestroy", pool),
        made(
            "cuMemPoolTrimTo",
            On::Nothing,
            |c| keeping_pool(c, PIECE),
            |_, pool| {
                // Safety: the pool is live; memory in use is not touched.
                Ok(unsafe { sys::cuMemPoolTrimTo(pool.get()?, 0) })
            },
        ),
        plain("cuMemGetInfo", On::Nothing, |_| {
            let (mut free, mut total) = (0, 0);
            // Safety: writes two sizes.
            Ok(unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) })
        }),
        call("cuPointerGetAttribute", On::Nothing, |calls| {
            let block = Block::new(&calls.context, Memory::Device, PIECE)?;
            let address = block.address()?;
            Ok(calls.plain("cuPointerGetAttribute", move |_| {
                let (_kept, mut kind) = (&block, 0u32);
                let attribute = CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
                // Safety: the attribute is one word.
                Ok(unsafe { sys::cuPointerGetAttribute((&raw mut kind).cast(), attribute, address) })
            }))
        }),
        call("cuMemPrefetchAsync", On::Stream, |calls| {
            calls.require("cuMemPrefetchAsync_v2")?;
            let block = Rc::new(Block::new(&calls.context, Memory::Managed, PIECE)?);
            let (address, here, touched) = (block.address()?, here(calls), Rc::clone(&block));
            // What the host has written lies with it, and moves.
            let touch = move |_: &Calls| {
                // Safety: managed memory of that size, which no work uses now.
                unsafe { touched.start()?.cast::<u8>().write_bytes(1, touched.bytes()) };
                Ok(())
            };
            let prefetch = move |c: &Calls, (): &mut ()| {
                // Safety: managed memory of that size.
                Ok(unsafe { sys::cuMemPrefetchAsync_v2(address, block.bytes(), here, 0, c.own.get()?) })
            };
            Ok(calls.made("cuMemPrefetchAsync", touch, prefetch).boxed())
        }),
        call("cuMemAdvise", On::Nothing, |calls| {
            calls.require("cuMemAdvise_v2")?;
            let (block, here) = (Block::new(&calls.context, Memory::Managed, PIECE)?, here(calls));
            let address = block.address()?;
            let next =
                in_turn([CUmem_advise::CU_MEM_ADVISE_SET_ACCESSED_BY, CUmem_advise::CU_MEM_ADVISE_UNSET_ACCESSED_BY]);
            // Safety: as above.
            let advise = move |_: &Calls| Ok(unsafe { sys::cuMemAdvise_v2(address, block.bytes(), next(), here) });
            Ok(calls.plain("cuMemAdvise", advise))
        }),
        // New memory belongs to all streams.
        made(
            "cuStreamAttachMemAsync",
            On::Stream,
            |c| Block::new(&c.context, Memory::Managed, PIECE),
            |c, block| {
                let flags = CUmemAttach_flags::CU_MEM_ATTACH_SINGLE as u32;
                // Safety: the start of managed memory; 0 is all of it.
                Ok(unsafe { sys::cuStreamAttachMemAsync(c.own.get()?, block.address()?, 0, flags) })
            },
        ),
        mapped(RESERVE, &[]),
        mapped(("cuMemAddressFree", Mapping::free_address), &[RESERVE]),
        mapped(CREATE, &[]),
        mapped(("cuMemRelease", Mapping::release), &[CREATE]),
        mapped(MAP, &[RESERVE, CREATE]),
        mapped(SET_ACCESS, &[RESERVE, CREATE, MAP]),
        mapped(("cuMemUnmap", Mapping::unmap), &[RESERVE, CREATE, MAP, SET_ACCESS]),
    ]
}

/// The size of memory where it is not the size that matters.
const PIECE: usize = 2 << 20;

fn allocate_async(bytes: usize, stream: CUstream) -> impl Fn(&mut CUdeviceptr) -> CUresult {
    // Safety: writes one address; the stream is live.
    move |address| unsafe { sys::cuMemAllocAsync(address, bytes, stream) }
}

fn allocate_from(bytes: usize, pool: CUmemoryPool, stream: CUstream) -> impl Fn(&mut CUdeviceptr) -> CUresult {
    // Safety: writes one address; pool and stream are live.
    move |address| unsafe { sys::cuMemAllocFromPoolAsync(address, bytes, pool, stream) }
}

fn free_async(calls: &Calls, place: &mut Owned<CUdeviceptr>) -> Status {
    // Safety: allocated, and not used again.
    Ok(unsafe { sys::cuMemFreeAsync(place.take()?, calls.own.get()?) })
}

/// The device, as a place of memory.
pub(super) fn here(calls: &Calls) -> CUmemLocation {
    CUmemLocation { type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id: calls.context.device() }
}

fn create_pool(calls: &Calls, pool: &mut CUmemoryPool) -> CUresult {
    let properties = CUmemPoolProps {
        allocType: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        handleTypes: CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
        location: here(calls),
        win32SecurityAttributes: ptr::null_mut(),
        maxSize: 0,
        usage: 0,
        reserved: [0; 54],
    };
    // Safety: writes one handle.
    unsafe { sys::cuMemPoolCreate(pool, &properties) }
}

fn pool(calls: &Calls) -> Result<Owned<CUmemoryPool>> {
    Owned::new(&calls.context, "cuMemPoolCreate", sys::cuMemPoolDestroy, |pool| create_pool(calls, pool))
}

/// A pool that keeps so much memory, which nobody uses.
fn keeping_pool(calls: &Calls, bytes: usize) -> Result<Owned<CUmemoryPool>> {
    let (pool, mut threshold) = (pool(calls)?, u64::MAX);
    let keep = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    // Safety: the attribute is a 64-bit size.
    let status = unsafe { sys::cuMemPoolSetAttribute(pool.get()?, keep, (&raw mut threshold).cast::<c_void>()) };
    calls.check("cuMemPoolSetAttribute", status)?;
    let allocate = allocate_from(bytes, pool.get()?, calls.own.get()?);
    let mut piece = Owned::new(&calls.context, "cuMemAllocFromPoolAsync", sys::cuMemFree_v2, allocate)?;
    calls.check("cuMemFreeAsync", free_async(calls, &mut piece)?)?;
    calls.synchronize(StreamRole::Given)?;
    Ok(pool)
}

/// A step of a mapping, by the name of its call.
type Step = (&'static str, fn(&mut Mapping) -> Status);

const RESERVE: Step = ("cuMemAddressReserve", Mapping::reserve);
const CREATE: Step = ("cuMemCreate", Mapping::create);
const MAP: Step = ("cuMemMap", Mapping::map);
const SET_ACCESS: Step = ("cuMemSetAccess", Mapping::set_access);

/// A call about a mapping that has come so far.
fn mapped((name, run): Step, before: &'static [Step]) -> Call {
    call(name, On::Nothing, move |calls| {
        let c = Arc::clone(calls);
        Ok(calls.made(name, move |_| Mapping::after(&c, before), move |_, mapping| run(mapping)).boxed())
    })
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
    /// Up to the step before the one that is measured.
    fn after(calls: &Arc<Calls>, steps: &[Step]) -> Result<Self> {
        let (mut size, minimum) = (0, CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM);
        let properties = properties(calls);
        // Safety: writes one size.
        let status = unsafe { sys::cuMemGetAllocationGranularity(&mut size, &properties, minimum) };
        calls.check("cuMemGetAllocationGranularity", status)?;
        let mut mapping = Self { calls: calls.clone(), size, address: 0, handle: None, is_mapped: false };
        steps.iter().try_for_each(|(name, step)| calls.check(name, step(&mut mapping)?))?;
        Ok(mapping)
    }

    fn reserve(&mut self) -> Status {
        // Safety: writes one address.
        Ok(unsafe { sys::cuMemAddressReserve(&mut self.address, self.size, 0, 0, 0) })
    }

    fn free_address(&mut self) -> Status {
        let address = std::mem::take(&mut self.address);
        // Safety: reserved with this size; nothing is mapped there.
        Ok(unsafe { sys::cuMemAddressFree(address, self.size) })
    }

    fn create(&mut self) -> Status {
        let (mut handle, properties) = (0, properties(&self.calls));
        // Safety: writes one handle.
        let status = unsafe { sys::cuMemCreate(&mut handle, self.size, &properties, 0) };
        self.handle = (status == CUresult::CUDA_SUCCESS).then_some(handle);
        Ok(status)
    }

    fn release(&mut self) -> Status {
        match self.handle.take() {
            // Safety: the handle is live, and not used again.
            Some(handle) => Ok(unsafe { sys::cuMemRelease(handle) }),
            None => Ok(CUresult::CUDA_SUCCESS),
        }
    }

    fn map(&mut self) -> Status {
        // Safety: both have this size.
        let status = unsafe { sys::cuMemMap(self.address, self.size, 0, self.handle.unwrap_or_default(), 0) };
        self.is_mapped = status == CUresult::CUDA_SUCCESS;
        Ok(status)
    }

    fn set_access(&mut self) -> Status {
        let flags = CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        let access = CUmemAccessDesc { location: here(&self.calls), flags };
        // Safety: mapped with this size.
        Ok(unsafe { sys::cuMemSetAccess(self.address, self.size, &access, 1) })
    }

    fn unmap(&mut self) -> Status {
        self.is_mapped = false;
        // Safety: mapped with this size, and used by nothing.
        Ok(unsafe { sys::cuMemUnmap(self.address, self.size) })
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
