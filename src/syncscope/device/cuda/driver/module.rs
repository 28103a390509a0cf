//! Loaded kernels and what they are launched with.

use std::ffi::{CString, c_void};
use std::marker::PhantomData;
use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{self, CUfunction, CUfunction_attribute, CUmodule};

use super::{Context, exit};
use crate::device::engine::Result;

/// Machine code on the device. Stays loaded as long as the context: to unload it can wait for the device.
pub(crate) struct Module {
    raw: CUmodule,
    context: Arc<Context>,
}

// Safety: modules may be used from any thread; the driver synchronizes its own calls.
unsafe impl Send for Module {}
// Safety: as above.
unsafe impl Sync for Module {}

/// A kernel of a loaded module.
#[derive(Clone, Copy)]
pub(crate) struct Function {
    raw: CUfunction,
    parameters: usize,
}

// Safety: a handle that may be used from any thread.
unsafe impl Send for Function {}
// Safety: as above.
unsafe impl Sync for Function {}

impl Module {
    /// Loads an image that the compiler made (or the cache kept, with its checksum). May wait for the device.
    pub(crate) fn load(context: &Arc<Context>, image: &[u8]) -> Result<Self> {
        context.bind()?;
        let (_inside, mut raw) = (exit::enter(), ptr::null_mut());
        // Safety: an image carries its own length.
        let status = unsafe { sys::cuModuleLoadData(&mut raw, image.as_ptr().cast::<c_void>()) };
        context.check("cuModuleLoadData", status).map(|()| Self { raw, context: context.clone() })
    }

    /// A kernel by its name, which takes that many parameters.
    pub(crate) fn function(&self, name: &str, parameters: usize) -> Result<Function> {
        let name = CString::new(name).unwrap_or_default();
        let mut raw = ptr::null_mut();
        // Safety: the module is live, the name terminated; writes one handle.
        let status = unsafe { sys::cuModuleGetFunction(&mut raw, self.raw, name.as_ptr()) };
        self.context.check("cuModuleGetFunction", status)?;
        // The driver loads lazily, up to the first launch; asking for an attribute makes it load now.
        let mut registers = 0;
        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_NUM_REGS;
        // Safety: the function is live; writes one integer.
        let status = unsafe { sys::cuFuncGetAttribute(&mut registers, attribute, raw) };
        self.context.check("cuFuncGetAttribute", status).map(|()| Function { raw, parameters })
    }
}

impl Function {
    #[inline]
    pub(super) fn raw(self) -> CUfunction {
        self.raw
    }

    /// How many parameters it declares: the driver reads as many arguments.
    #[inline]
    pub(super) fn parameters(self) -> usize {
        self.parameters
    }
}

/// The address of one argument of a launch.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Argument<'a>(*const c_void, PhantomData<&'a c_void>);

impl<'a> Argument<'a> {
    /// A value of the type that the kernel declares in this place (see the table of kernels).
    #[inline]
    pub(crate) fn of<T: Copy>(value: &'a T) -> Self {
        Self(ptr::from_ref(value).cast(), PhantomData)
    }
}

/// The arguments of a launch, from variables.
macro_rules! arguments {
    ($($argument:ident),+ $(,)?) => { [$($crate::device::cuda::driver::Argument::of(&$argument)),+] };
}
pub(crate) use arguments;
