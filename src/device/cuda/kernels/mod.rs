//! The device kernels: which there are, and their machine code.
//!
//! The sources lie in `kernels/`, a family a file, and are part of the library. A file is compiled for the device's
//! own architecture when one of its kernels is first needed, kept on disk (`$SYNCSCOPE_CACHE`, else
//! `$XDG_CACHE_HOME/syncscope`, else `$HOME/.cache/syncscope`), and loaded whole: a launch never loads anything, as
//! that can wait for the device.

mod cache;
pub(crate) mod compiler;

use std::ffi::{CString, c_void};
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

use cudarc::driver::sys::{self, CUdevice_attribute, CUfunction, CUfunction_attribute, CUmodule};

use crate::device::DType;
use crate::device::cuda::driver::primary::Primary;
use crate::device::cuda::kernels::cache::Cache;
use crate::device::cuda::kernels::compiler::Compiler;
use crate::device::engine::Result;
use crate::error::DeviceError;

/// Compiles every kernel file for `architecture` (`sm_90`), without a device and without the cache.
///
/// # Errors
/// [`DeviceError::EngineUnavailable`] where there is no NVRTC, [`DeviceError::KernelBuild`] with the compiler's log
/// for the first file that does not compile.
pub fn compile_all(architecture: &str) -> std::result::Result<Vec<Compiled>, DeviceError> {
    let compiler = Compiler::load()?;
    let compile = |source: &Source| {
        let cubin = compiler.compile(source.file, source.text, architecture)?;
        Ok(Compiled { file: source.file, compiler: format!("NVRTC {}", compiler.version()), cubin })
    };
    SOURCES.iter().map(compile).collect()
}

/// A compiled kernel file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compiled {
    /// The file's name in `kernels/`.
    pub file: &'static str,
    /// What compiled it: `NVRTC 13.0`.
    pub compiler: String,
    /// The machine code, an ELF image.
    pub cubin: Vec<u8>,
}

struct Source {
    file: &'static str,
    text: &'static str,
    kernels: &'static [&'static str],
}

macro_rules! sources {
    ($($file:literal: $($kernel:literal)+;)+) => {
        [$(Source { file: $file, text: include_str!(concat!("../../../../kernels/", $file)), kernels: &[$($kernel),+] }),+]
    };
}

/// In the order of [`Kernel`]'s files and indices.
const SOURCES: [Source; 6] = sources! {
    "random.cu": "normal_fp16" "normal_bf16" "normal_fp32";
    "elementwise.cu":
        "affine_fp16" "affine_bf16" "affine_fp32" "add_fp16" "add_bf16" "add_fp32"
        "subtract_fp16" "subtract_bf16" "subtract_fp32" "multiply_fp16" "multiply_bf16" "multiply_fp32"
        "greater_fp16" "greater_bf16" "greater_fp32" "fill";
    "reduce.cu": "sum_fp16" "sum_bf16" "sum_fp32" "any_fp16" "any_bf16" "any_fp32" "any_u8" "any_i64";
    "compact.cu":
        "mark_nonzero_fp16" "mark_nonzero_bf16" "mark_nonzero_fp32" "mark_nonzero_u8" "mark_nonzero_i64" "positions";
    "gather.cu": "gather_wide_16" "gather_wide_32" "gather_narrow_16" "gather_narrow_32";
    "spin.cu": "spin";
};

/// A kernel, by its place in the table of sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kernel {
    file: usize,
    index: usize,
}

impl Kernel {
    pub(crate) const NORMAL: Self = Self { file: 0, index: 0 };
    pub(crate) const AFFINE: Self = Self { file: 1, index: 0 };
    pub(crate) const ADD: Self = Self { file: 1, index: 3 };
    pub(crate) const SUBTRACT: Self = Self { file: 1, index: 6 };
    pub(crate) const MULTIPLY: Self = Self { file: 1, index: 9 };
    pub(crate) const GREATER: Self = Self { file: 1, index: 12 };
    pub(crate) const FILL: Self = Self { file: 1, index: 15 };
    pub(crate) const SUM: Self = Self { file: 2, index: 0 };
    pub(crate) const ANY: Self = Self { file: 2, index: 3 };
    pub(crate) const MARK_NONZERO: Self = Self { file: 3, index: 0 };
    pub(crate) const POSITIONS: Self = Self { file: 3, index: 5 };
    pub(crate) const GATHER_WIDE: Self = Self { file: 4, index: 0 };
    pub(crate) const GATHER_NARROW: Self = Self { file: 4, index: 2 };
    pub(crate) const SPIN: Self = Self { file: 5, index: 0 };

    /// The variant for a type, where the family's names go fp16, bf16, fp32, and, where it takes any type, u8, i64.
    #[inline]
    pub(crate) fn of(self, dtype: DType) -> Self {
        let variant = match dtype {
            DType::F16 => 0,
            DType::BF16 => 1,
            DType::F32 => 2,
            DType::U8 => 3,
            DType::I64 => 4,
        };
        Self { index: self.index + variant, ..self }
    }

    /// The variant for the size of a type, where the family's names go 16, 32.
    #[inline]
    pub(crate) fn of_width(self, dtype: DType) -> Self {
        Self { index: self.index + usize::from(dtype.size() == 4), ..self }
    }
}

/// The kernels of one opened device.
pub(crate) struct Kernels {
    architecture: String,
    multiprocessors: u32,
    start_early: bool,
    loaded: [OnceLock<Loaded>; SOURCES.len()],
    loading: Mutex<()>,
}

/// A loaded file: its module, unloaded on drop, and its kernels in the table's order.
struct Loaded {
    module: CUmodule,
    functions: Vec<CUfunction>,
}

// Safety: modules and functions may be used from any thread; the driver synchronizes its own calls.
unsafe impl Send for Loaded {}
// Safety: as above.
unsafe impl Sync for Loaded {}

impl Kernels {
    pub(crate) fn new(primary: &Primary) -> Result<Self> {
        let major = primary.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = primary.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        let multiprocessors = primary.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        Ok(Self {
            architecture: format!("sm_{major}{minor}"),
            multiprocessors: multiprocessors.unsigned_abs(),
            start_early: major >= 9,
            loaded: Default::default(),
            loading: Mutex::default(),
        })
    }

    /// The device's architecture: `sm_90`.
    pub(crate) fn architecture(&self) -> &str {
        &self.architecture
    }

    /// The number of multiprocessors.
    pub(crate) fn multiprocessors(&self) -> u32 {
        self.multiprocessors
    }

    /// Whether a kernel can be started while the one before it ends: since architecture 9.0.
    #[inline]
    pub(crate) fn start_early(&self) -> bool {
        self.start_early
    }

    /// The handle of a kernel; compiles and loads its file the first time.
    #[inline]
    pub(crate) fn function(&self, primary: &Primary, kernel: Kernel) -> Result<CUfunction> {
        let known = self.loaded.get(kernel.file).and_then(OnceLock::get).and_then(|l| l.functions.get(kernel.index));
        match known {
            Some(&function) => Ok(function),
            None => self.load(primary, kernel),
        }
    }

    /// Loads every file that is not loaded yet.
    pub(crate) fn load_all(&self, primary: &Primary) -> Result<()> {
        (0..SOURCES.len()).try_for_each(|file| self.load(primary, Kernel { file, index: 0 }).map(|_| ()))
    }

    #[cold]
    fn load(&self, primary: &Primary, kernel: Kernel) -> Result<CUfunction> {
        let _one_at_a_time = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = || DeviceError::CallFailed {
            device: primary.name().to_owned(),
            call: "cuModuleGetFunction",
            reason: format!("there is no kernel {kernel:?}"),
        };
        let (source, cell) = SOURCES.get(kernel.file).zip(self.loaded.get(kernel.file)).ok_or_else(missing)?;
        let loaded = match cell.get() {
            Some(loaded) => loaded,
            None => {
                let loaded = self.build(primary, source)?;
                cell.get_or_init(|| loaded)
            }
        };
        loaded.functions.get(kernel.index).copied().ok_or_else(missing)
    }

    /// A cached cubin that the driver refuses is compiled anew.
    fn build(&self, primary: &Primary, source: &Source) -> Result<Loaded> {
        let compiler = Compiler::load()?;
        let cache = Cache::from_environment();
        let cubin = |fresh| compiler.cubin(source.file, source.text, &self.architecture, &cache, fresh);
        Loaded::new(primary, source, &cubin(false)?).or_else(|_| Loaded::new(primary, source, &cubin(true)?))
    }
}

impl Loaded {
    fn new(primary: &Primary, source: &Source, cubin: &[u8]) -> Result<Self> {
        let mut module = ptr::null_mut();
        // Safety: a cubin carries its own length; it came from the compiler, or from the cache with its checksum.
        let status = unsafe { sys::cuModuleLoadData(&mut module, cubin.as_ptr().cast::<c_void>()) };
        primary.check("cuModuleLoadData", status)?;
        let mut loaded = Self { module, functions: Vec::with_capacity(source.kernels.len()) };
        for kernel in source.kernels {
            loaded.functions.push(loaded.function(primary, kernel)?);
        }
        Ok(loaded)
    }

    fn function(&self, primary: &Primary, kernel: &'static str) -> Result<CUfunction> {
        let name = CString::new(kernel).unwrap_or_default();
        let mut function = ptr::null_mut();
        // Safety: the module is live, the name terminated; writes one handle.
        let status = unsafe { sys::cuModuleGetFunction(&mut function, self.module, name.as_ptr()) };
        primary.check("cuModuleGetFunction", status)?;
        // The driver loads lazily, up to the first launch; asking for an attribute makes it load now.
        let mut registers = 0;
        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_NUM_REGS;
        // Safety: the function is live; writes one integer.
        let status = unsafe { sys::cuFuncGetAttribute(&mut registers, attribute, function) };
        primary.check("cuFuncGetAttribute", status)?;
        Ok(function)
    }
}

impl Drop for Loaded {
    /// Runs when the device closes: nothing is enqueued any more. A drop cannot return an error.
    fn drop(&mut self) {
        // Safety: the module is live and its functions are not used again.
        unsafe { sys::cuModuleUnload(self.module) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_is_found_under_its_name() {
        let name = |kernel: Kernel| SOURCES[kernel.file].kernels[kernel.index];
        for (kernel, expected) in [
            (Kernel::NORMAL.of(DType::BF16), "normal_bf16"),
            (Kernel::AFFINE.of(DType::F16), "affine_fp16"),
            (Kernel::ADD.of(DType::F32), "add_fp32"),
            (Kernel::SUBTRACT.of(DType::F16), "subtract_fp16"),
            (Kernel::MULTIPLY.of(DType::BF16), "multiply_bf16"),
            (Kernel::GREATER.of(DType::F32), "greater_fp32"),
            (Kernel::FILL, "fill"),
            (Kernel::SUM.of(DType::F32), "sum_fp32"),
            (Kernel::ANY.of(DType::U8), "any_u8"),
            (Kernel::MARK_NONZERO.of(DType::U8), "mark_nonzero_u8"),
            (Kernel::POSITIONS, "positions"),
            (Kernel::GATHER_WIDE.of_width(DType::F32), "gather_wide_32"),
            (Kernel::GATHER_NARROW.of_width(DType::BF16), "gather_narrow_16"),
            (Kernel::SPIN, "spin"),
        ] {
            assert_eq!(name(kernel), expected);
        }
    }
}
