//! Calls that load code and ask about it.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::sys::{
    self, CUfunc_cache, CUfunction, CUfunction_attribute, CUfunctionLoadingState, CUkernel, CUlibrary, CUmodule,
    CUresult,
};

use super::owned::Owned;
use super::{Calls, KERNEL, function, in_turn, launch, module};
use crate::Result;
use crate::catalogue::Code;
use crate::made::plain;
use crate::{Made, RigStream, Steps};

/// A module that was loaded for one time alone, and its kernel, which has not been used.
type Loaded = (Owned<CUmodule>, CUfunction);

pub(super) fn steps(calls: &Arc<Calls>, call: Code) -> Result<Box<dyn Steps>> {
    let (c, context, image, kernel) = (Arc::clone(calls), calls.context.clone(), calls.image.clone(), calls.kernel);
    Ok(match call {
        Code::LoadModule => Made::new(
            move || Ok(Owned::empty(&context, sys::cuModuleUnload)),
            move |place| {
                let mut raw = ptr::null_mut();
                // Safety: an image carries its own length.
                let status = unsafe { sys::cuModuleLoadData(&mut raw, image.as_ptr().cast::<c_void>()) };
                place.keep("cuModuleLoadData", raw, status)
            },
        )
        .boxed(),
        Code::UnloadModule => {
            Made::new(move || module(&context, &image), |module| module.end("cuModuleUnload")).boxed()
        }
        Code::GetFunction => Made::new(
            move || module(&context, &image),
            move |module| function(&c.context, module.get()?, KERNEL).map(drop),
        )
        .boxed(),
        Code::FirstLaunch => {
            let own = calls.own.get()?;
            loaded(calls, move |c, (_, kernel)| launch(&c.context, *kernel, own, Duration::ZERO))
        }
        Code::LoadLibrary => {
            c.require("cuLibraryLoadData")?;
            Made::new(
                move || Ok(Owned::empty(&context, sys::cuLibraryUnload)),
                move |place| load_library(place, &image),
            )
            .boxed()
        }
        Code::UnloadLibrary => {
            c.require("cuLibraryLoadData")?;
            Made::new(move || library(&c, &image), |library| library.end("cuLibraryUnload")).boxed()
        }
        Code::UnloadUsedLibrary => {
            c.require("cuLibraryLoadData")?;
            let used = move || {
                let library = library(&c, &image)?;
                // The driver takes either kind of handle.
                let kernel = kernel_of(&c, &library)?.cast();
                launch(&c.context, kernel, c.own.get()?, Duration::ZERO)?;
                c.synchronize(RigStream::Own).map(|()| library)
            };
            Made::new(used, |library| library.end("cuLibraryUnload")).boxed()
        }
        Code::GetKernel => {
            c.require("cuLibraryLoadData")?;
            let made = Arc::clone(calls);
            Made::new(move || library(&made, &image), move |library| kernel_of(&c, library).map(drop)).boxed()
        }
        Code::KernelFunction => of_library(calls, |c, kernel| {
            let mut function = ptr::null_mut();
            // Safety: the library is loaded; writes one handle.
            c.check("cuKernelGetFunction", unsafe { sys::cuKernelGetFunction(&mut function, kernel) })
        })?,
        // The driver takes either kind of handle.
        Code::FirstLaunchOfLibrary => {
            of_library(calls, |c, kernel| launch(&c.context, kernel.cast(), c.own.get()?, Duration::ZERO))?
        }
        Code::LoadFunction => {
            c.require("cuFuncLoad")?;
            unloaded(calls, |c, (_, kernel)| {
                // Safety: the module is loaded.
                c.check("cuFuncLoad", unsafe { sys::cuFuncLoad(*kernel) })
            })?
        }
        Code::GetAttributeFirst => loaded(calls, |c, (_, kernel)| c.check("cuFuncGetAttribute", registers(*kernel))),
        Code::GetAttribute => plain(move || c.check("cuFuncGetAttribute", registers(kernel))),
        Code::SetAttribute => {
            let next = in_turn([16 << 10, 32 << 10]);
            plain(move || {
                let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
                // Safety: the module is loaded.
                let status = unsafe { sys::cuFuncSetAttribute(kernel, attribute, next()) };
                c.check("cuFuncSetAttribute", status)
            })
        }
        Code::SetCache => {
            let next = in_turn([CUfunc_cache::CU_FUNC_CACHE_PREFER_SHARED, CUfunc_cache::CU_FUNC_CACHE_PREFER_L1]);
            plain(move || {
                // Safety: as above.
                c.check("cuFuncSetCacheConfig", unsafe { sys::cuFuncSetCacheConfig(kernel, next()) })
            })
        }
        Code::Occupancy => plain(move || {
            let mut blocks = 0;
            // Safety: as above; writes one integer.
            let status = unsafe { sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut blocks, kernel, 128, 0) };
            c.check("cuOccupancyMaxActiveBlocksPerMultiprocessor", status)
        }),
    })
}

/// A call on the kernel of a module that is loaded anew each time.
fn loaded(calls: &Arc<Calls>, call: impl Fn(&Calls, &Loaded) -> Result<()> + 'static) -> Box<dyn Steps> {
    of_module(calls, |calls, module| function(&calls.context, module, KERNEL), call)
}

/// The same, where the driver has not loaded the kernel yet. To ask for it by its name would load it (`cuModuleGetFunction`);
/// the list of the module's kernels does not.
fn unloaded(calls: &Arc<Calls>, call: impl Fn(&Calls, &Loaded) -> Result<()> + 'static) -> Result<Box<dyn Steps>> {
    ["cuModuleEnumerateFunctions", "cuFuncIsLoaded"].iter().try_for_each(|symbol| calls.require(symbol))?;
    let first = |calls: &Calls, module| {
        let (mut kernel, mut state) = (ptr::null_mut(), CUfunctionLoadingState::CU_FUNCTION_LOADING_STATE_UNLOADED);
        // Safety: the module is live, and has one kernel; writes one handle.
        let status = unsafe { sys::cuModuleEnumerateFunctions(&mut kernel, 1, module) };
        calls.check("cuModuleEnumerateFunctions", status)?;
        // Safety: the module is live; writes one number that the type has.
        calls.check("cuFuncIsLoaded", unsafe { sys::cuFuncIsLoaded(&mut state, kernel) })?;
        match state {
            CUfunctionLoadingState::CU_FUNCTION_LOADING_STATE_UNLOADED => Ok(kernel),
            _ => Err(calls.missing("a kernel that is not loaded", "the driver loads a kernel with its module here")),
        }
    };
    Ok(of_module(calls, first, call))
}

fn of_module(
    calls: &Arc<Calls>,
    kernel: impl Fn(&Calls, CUmodule) -> Result<CUfunction> + 'static,
    call: impl Fn(&Calls, &Loaded) -> Result<()> + 'static,
) -> Box<dyn Steps> {
    let (made, c) = (Arc::clone(calls), Arc::clone(calls));
    let load = move || {
        let module = module(&made.context, &made.image)?;
        let kernel = kernel(&made, module.get()?)?;
        Ok((module, kernel))
    };
    Made::new(load, move |loaded| call(&c, loaded)).boxed()
}

/// A call on the kernel of a library that is loaded anew each time: the driver has not loaded the kernel yet.
fn of_library(calls: &Arc<Calls>, call: impl Fn(&Calls, CUkernel) -> Result<()> + 'static) -> Result<Box<dyn Steps>> {
    calls.require("cuLibraryLoadData")?;
    let (made, c) = (Arc::clone(calls), Arc::clone(calls));
    let load = move || {
        let library = library(&made, &made.image)?;
        let kernel = kernel_of(&made, &library)?;
        Ok((library, kernel))
    };
    Ok(Made::new(load, move |(_, kernel)| call(&c, *kernel)).boxed())
}

fn library(calls: &Calls, image: &[u8]) -> Result<Owned<CUlibrary>> {
    let mut library = Owned::empty(&calls.context, sys::cuLibraryUnload);
    load_library(&mut library, image).map(|()| library)
}

fn kernel_of(calls: &Calls, library: &Owned<CUlibrary>) -> Result<CUkernel> {
    let (mut raw, name) = (ptr::null_mut(), terminated(KERNEL));
    // Safety: the library is live, the name terminated; writes one handle.
    let status = unsafe { sys::cuLibraryGetKernel(&mut raw, library.get()?, name.as_ptr().cast()) };
    calls.check("cuLibraryGetKernel", status).map(|()| raw)
}

fn load_library(place: &mut Owned<CUlibrary>, image: &[u8]) -> Result<()> {
    let (mut raw, none, nothing) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    // Safety: an image carries its own length; there are no options.
    let status = unsafe {
        sys::cuLibraryLoadData(
            &mut raw,
            image.as_ptr().cast::<c_void>(),
            ptr::null_mut(),
            none,
            0,
            ptr::null_mut(),
            nothing,
            0,
        )
    };
    place.keep("cuLibraryLoadData", raw, status)
}

fn registers(kernel: CUfunction) -> CUresult {
    let mut registers = 0;
    let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_NUM_REGS;
    // Safety: the module is loaded; writes one integer.
    unsafe { sys::cuFuncGetAttribute(&mut registers, attribute, kernel) }
}

fn terminated(name: &str) -> Vec<u8> {
    name.bytes().chain([0]).collect()
}
