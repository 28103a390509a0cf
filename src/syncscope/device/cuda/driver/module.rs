//! Loaded kernels and what they are launched with.

use std::ffi::{CStr, CString, c_void};
use std::marker::PhantomData;
use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{self, CUdevice_attribute, CUfunction, CUfunction_attribute, CUmodule, CUresult};

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
        let function = Function { raw: self.handle(name)?, parameters };
        // The driver loads lazily, up to the first launch; asking for an attribute makes it load now.
        self.attribute(function, CUfunction_attribute::CU_FUNC_ATTRIBUTE_NUM_REGS).map(|_| function)
    }
}

/// What a launch of a kernel may ask for.
pub(crate) struct Limits {
    /// Blocks in each direction.
    pub(crate) grid: [u32; 3],
    /// Threads of a block in each direction, and at all.
    pub(crate) block: [u32; 3],
    pub(crate) threads: u32,
    /// Bytes of dynamic shared memory.
    pub(crate) shared_bytes: u32,
}

/// What is asked of code that is not the library's own.
impl Module {
    /// The names of the kernels.
    pub(crate) fn names(&self) -> Result<Vec<String>> {
        self.context.bind()?;
        let mut count = 0;
        // Safety: the module is live; writes one integer.
        let status = unsafe { sys::cuModuleGetFunctionCount(&mut count, self.raw) };
        self.context.check("cuModuleGetFunctionCount", status)?;
        let mut functions = vec![ptr::null_mut(); count as usize];
        // Safety: there is room for as many handles.
        let status = unsafe { sys::cuModuleEnumerateFunctions(functions.as_mut_ptr(), count, self.raw) };
        self.context.check("cuModuleEnumerateFunctions", status)?;
        functions.into_iter().map(|function| self.name(function)).collect()
    }

    fn name(&self, function: CUfunction) -> Result<String> {
        let mut name = ptr::null();
        // Safety: the function is live; writes a pointer to a text that lives as long.
        self.context.check("cuFuncGetName", unsafe { sys::cuFuncGetName(&mut name, function) })?;
        // Safety: terminated, as said.
        Ok(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
    }

    fn handle(&self, name: &str) -> Result<CUfunction> {
        self.context.bind()?;
        let name = CString::new(name).unwrap_or_default();
        let mut raw = ptr::null_mut();
        // Safety: the module is live, the name terminated; writes one handle.
        let status = unsafe { sys::cuModuleGetFunction(&mut raw, self.raw, name.as_ptr()) };
        self.context.check("cuModuleGetFunction", status).map(|()| raw)
    }

    /// The size of each parameter of a kernel, in bytes.
    pub(crate) fn parameters(&self, name: &str) -> Result<Vec<usize>> {
        let (function, mut sizes) = (self.handle(name)?, Vec::new());
        loop {
            let (mut offset, mut size) = (0, 0);
            // Safety: the function is live; writes two sizes.
            match unsafe { sys::cuFuncGetParamInfo(function, sizes.len(), &mut offset, &mut size) } {
                CUresult::CUDA_SUCCESS => sizes.push(size),
                CUresult::CUDA_ERROR_INVALID_VALUE => return Ok(sizes),
                status => return self.context.check("cuFuncGetParamInfo", status).map(|()| sizes),
            }
        }
    }

    /// What a launch may ask for.
    pub(crate) fn limits(&self, function: Function) -> Result<Limits> {
        use CUdevice_attribute as Of;
        let all = |attributes: [CUdevice_attribute; 3]| -> Result<[u32; 3]> {
            let [x, y, z] = attributes.map(|attribute| self.context.attribute(attribute));
            Ok([x?, y?, z?])
        };
        let threads = self.attribute(function, CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?;
        let declared = self.attribute(function, CUfunction_attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?;
        let most = self.context.attribute(Of::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
        Ok(Limits {
            grid: all([
                Of::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X,
                Of::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
                Of::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z,
            ])?,
            block: all([
                Of::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X,
                Of::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
                Of::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z,
            ])?,
            threads,
            shared_bytes: most.saturating_sub(declared),
        })
    }

    fn attribute(&self, function: Function, attribute: CUfunction_attribute) -> Result<u32> {
        let mut value = 0;
        // Safety: the function is live; writes one integer.
        let status = unsafe { sys::cuFuncGetAttribute(&mut value, attribute, function.raw) };
        self.context.check("cuFuncGetAttribute", status).map(|()| value.unsigned_abs())
    }
}

impl Context {
    /// Lets launches of a kernel ask for so much dynamic shared memory.
    pub(crate) fn allow_shared(&self, function: Function, bytes: u32) -> Result<()> {
        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
        // Safety: the function is live.
        self.check("cuFuncSetAttribute", unsafe { sys::cuFuncSetAttribute(function.raw, attribute, bytes) })
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

    /// Those of words, of which a kernel reads as many bytes as it declares in each place.
    #[inline]
    pub(crate) fn of_words<const N: usize>(words: &'a [u64; N]) -> [Self; N] {
        let mut places = [Self(ptr::null(), PhantomData); N];
        // No iterators: how far they are inlined differs between builds.
        let mut place = 0;
        while place < N {
            places[place] = Self::of(&words[place]);
            place += 1;
        }
        places
    }
}

/// The arguments of a launch, from variables.
macro_rules! arguments {
    ($($argument:ident),+ $(,)?) => { [$($crate::device::cuda::driver::Argument::of(&$argument)),+] };
}
pub(crate) use arguments;
