//! Calls that load code and ask about it.

use std::ffi::c_void;
use std::ptr;

use cudarc::driver::sys::{
    self, CUfunc_cache, CUfunction, CUfunction_attribute, CUfunctionLoadingState, CUkernel, CUlibrary, CUmodule,
    CUresult,
};

use super::owned::Owned;
use super::{
    Calls, KERNEL, Status, call, creates, ends, find_function, function, in_turn, load, made, module, plain, provided,
    start,
};
use crate::catalogue::Call;
use crate::{On, Result, StreamRole};

pub(super) fn calls() -> Vec<Call> {
    vec![
        creates("cuModuleLoadData", On::Nothing, sys::cuModuleUnload, |c, module| Ok(load(module, &c.image))),
        ends("cuModuleUnload", |c| module(&c.context, &c.image)),
        made(
            "cuModuleGetFunction",
            On::Nothing,
            |c| module(&c.context, &c.image),
            |_, module| find_function(&mut ptr::null_mut(), module.get()?, KERNEL),
        ),
        of_module("cuLaunchKernel", On::Stream, |c, kernel| Ok(start(kernel, c.own.get()?))).way("first of a module"),
        of_library(
            "cuLibraryLoadData",
            On::Nothing,
            |c| Ok(Owned::empty(&c.context, sys::cuLibraryUnload)),
            |c, place| place.make(|library| Ok(load_library(library, &c.image))),
        ),
        of_library("cuLibraryUnload", On::Nothing, library, |_, library| library.end()),
        of_library("cuLibraryUnload", On::Nothing, used_library, |_, library| library.end())
            .way("with a loaded kernel"),
        of_library("cuLibraryGetKernel", On::Nothing, library, |_, library| {
            find_kernel(&mut ptr::null_mut(), library.get()?)
        }),
        of_library("cuKernelGetFunction", On::Nothing, kernel_of_library, |_, (_, kernel)| {
            let mut function = ptr::null_mut();
            // Safety: the library is loaded; writes one handle.
            Ok(unsafe { sys::cuKernelGetFunction(&mut function, *kernel) })
        }),
        // The driver takes either kind of handle.
        of_library("cuLaunchKernel", On::Stream, kernel_of_library, |c, (_, kernel)| {
            Ok(start(kernel.cast(), c.own.get()?))
        })
        .way("first of a library"),
        provided(
            |c| FUNC_LOAD.iter().try_for_each(|symbol| c.require(symbol)),
            // Safety: the module is loaded.
            made("cuFuncLoad", On::Nothing, unloaded, |_, (_, kernel)| Ok(unsafe { sys::cuFuncLoad(*kernel) })),
        ),
        plain("cuFuncGetAttribute", On::Nothing, |c| Ok(registers(c.kernel))),
        of_module("cuFuncGetAttribute", On::Nothing, |_, kernel| Ok(registers(kernel))).way("first of a module"),
        call("cuFuncSetAttribute", On::Nothing, |calls| {
            let next = in_turn([16 << 10, 32 << 10]);
            Ok(calls.plain("cuFuncSetAttribute", move |c| {
                let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
                // Safety: the module is loaded.
                Ok(unsafe { sys::cuFuncSetAttribute(c.kernel, attribute, next()) })
            }))
        }),
        call("cuFuncSetCacheConfig", On::Nothing, |calls| {
            let next = in_turn([CUfunc_cache::CU_FUNC_CACHE_PREFER_SHARED, CUfunc_cache::CU_FUNC_CACHE_PREFER_L1]);
            // Safety: as above.
            let set = move |c: &Calls| Ok(unsafe { sys::cuFuncSetCacheConfig(c.kernel, next()) });
            Ok(calls.plain("cuFuncSetCacheConfig", set))
        }),
        plain("cuOccupancyMaxActiveBlocksPerMultiprocessor", On::Nothing, |c| {
            let mut blocks = 0;
            // Safety: as above; writes one integer.
            Ok(unsafe { sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut blocks, c.kernel, 128, 0) })
        }),
    ]
}

/// What it takes to load a kernel by itself.
const FUNC_LOAD: [&str; 3] = ["cuFuncLoad", "cuModuleEnumerateFunctions", "cuFuncIsLoaded"];

/// A module that was loaded for one time alone, and its kernel, which has not been used.
type Loaded = (Owned<CUmodule>, CUfunction);

/// A call on the kernel of a module that is loaded anew each time.
fn of_module(name: &'static str, on: On, run: impl Fn(&Calls, CUfunction) -> Status + Copy + 'static) -> Call {
    let loaded = |c: &Calls| -> Result<Loaded> {
        let module = module(&c.context, &c.image)?;
        let kernel = function(&c.context, module.get()?, KERNEL)?;
        Ok((module, kernel))
    };
    made(name, on, loaded, move |c, (_, kernel)| run(c, *kernel))
}

/// The same, where the driver has not loaded the kernel yet. To ask for it by its name would load it (`cuModuleGetFunction`);
/// the list of the module's kernels does not.
fn unloaded(calls: &Calls) -> Result<Loaded> {
    let module = module(&calls.context, &calls.image)?;
    let (mut kernel, mut state) = (ptr::null_mut(), CUfunctionLoadingState::CU_FUNCTION_LOADING_STATE_UNLOADED);
    // Safety: the module is live, and has one kernel; writes one handle.
    let status = unsafe { sys::cuModuleEnumerateFunctions(&mut kernel, 1, module.get()?) };
    calls.check("cuModuleEnumerateFunctions", status)?;
    // Safety: the module is live; writes one number that the type has.
    calls.check("cuFuncIsLoaded", unsafe { sys::cuFuncIsLoaded(&mut state, kernel) })?;
    match state {
        CUfunctionLoadingState::CU_FUNCTION_LOADING_STATE_UNLOADED => Ok((module, kernel)),
        _ => Err(calls.missing("a kernel that is not loaded", "the driver loads a kernel with its module here")),
    }
}

/// A call about a library, where the driver has them.
fn of_library<T: 'static>(
    name: &'static str,
    on: On,
    make: impl Fn(&Calls) -> Result<T> + Copy + 'static,
    run: impl Fn(&Calls, &mut T) -> Status + Copy + 'static,
) -> Call {
    provided(|c| c.require("cuLibraryLoadData"), made(name, on, make, run))
}

fn load_library(library: &mut CUlibrary, image: &[u8]) -> CUresult {
    let none = ptr::null_mut();
    // Safety: an image carries its own length; there are no options. Writes one handle.
    unsafe {
        sys::cuLibraryLoadData(
            library,
            image.as_ptr().cast::<c_void>(),
            none,
            none.cast(),
            0,
            none.cast(),
            none.cast(),
            0,
        )
    }
}

fn library(calls: &Calls) -> Result<Owned<CUlibrary>> {
    let load = |library: &mut CUlibrary| load_library(library, &calls.image);
    Owned::new(&calls.context, "cuLibraryLoadData", sys::cuLibraryUnload, load)
}

/// A library and its kernel, which the driver has not loaded yet.
fn kernel_of_library(calls: &Calls) -> Result<(Owned<CUlibrary>, CUkernel)> {
    let (library, mut kernel) = (library(calls)?, ptr::null_mut());
    calls.check("cuLibraryGetKernel", find_kernel(&mut kernel, library.get()?)?)?;
    Ok((library, kernel))
}

/// A library whose kernel has run.
fn used_library(calls: &Calls) -> Result<Owned<CUlibrary>> {
    let (library, kernel) = kernel_of_library(calls)?;
    // The driver takes either kind of handle.
    calls.check("cuLaunchKernel", start(kernel.cast(), calls.own.get()?))?;
    calls.synchronize(StreamRole::Given).map(|()| library)
}

fn find_kernel(kernel: &mut CUkernel, library: CUlibrary) -> Status {
    // Safety: the library is live, the name terminated; writes one handle.
    Ok(unsafe { sys::cuLibraryGetKernel(kernel, library, KERNEL.as_ptr()) })
}

fn registers(kernel: CUfunction) -> CUresult {
    let mut registers = 0;
    let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_NUM_REGS;
    // Safety: the module is loaded; writes one integer.
    unsafe { sys::cuFuncGetAttribute(&mut registers, attribute, kernel) }
}
