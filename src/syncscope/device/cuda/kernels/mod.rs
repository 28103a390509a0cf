//! The device kernels: which there are, and their machine code.
//!
//! The sources lie in `kernels/`, a family a file, and are part of the library. A file is compiled for the device's
//! own architecture when one of its kernels is first needed, kept on disk (`$SYNCSCOPE_CACHE`, else
//! `$XDG_CACHE_HOME/syncscope`, else `$HOME/.cache/syncscope`), and loaded whole: a launch never loads anything, as
//! that can wait for the device.

pub(super) mod cache;

use std::sync::{Arc, Mutex, OnceLock};

use crate::device::DType;
use crate::device::cuda::driver::compiler::{self, Compiler};
use crate::device::cuda::driver::{Context, Function, Module};
use crate::device::engine::Result;
use crate::device::lock;
use crate::error::DeviceError;
use cache::Cache;

/// Compiles every kernel file for `architecture` (`sm_90`), without a device and without the cache.
///
/// # Errors
/// [`DeviceError::EngineUnavailable`] where there is no NVRTC, [`DeviceError::KernelBuild`] with the compiler's log
/// for the first file that does not compile.
pub fn compile_all(architecture: &str) -> std::result::Result<Vec<Compiled>, DeviceError> {
    let compiler = Compiler::load()?;
    let compile = |source: &Source| {
        let cubin = compiler.compile(&compiler::Source::own(source.file, source.text), architecture)?;
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
    /// By their names, with the number of their parameters.
    kernels: &'static [(&'static str, usize)],
}

macro_rules! sources {
    ($($file:literal: $($kernel:literal $parameters:literal),+;)+) => {
        [$(Source {
            file: $file,
            text: include_str!(concat!("../../../kernels/", $file)),
            kernels: &[$(($kernel, $parameters)),+],
        }),+]
    };
}

/// In the order of [`Kernel`]'s files and indices.
const SOURCES: [Source; 9] = sources! {
    "random.cu": "normal_fp16" 4, "normal_bf16" 4, "normal_fp32" 4;
    "elementwise.cu":
        "affine_fp16" 6, "affine_bf16" 6, "affine_fp32" 6, "add_fp16" 5, "add_bf16" 5, "add_fp32" 5,
        "subtract_fp16" 5, "subtract_bf16" 5, "subtract_fp32" 5, "multiply_fp16" 5, "multiply_bf16" 5,
        "multiply_fp32" 5, "greater_fp16" 5, "greater_bf16" 5, "greater_fp32" 5, "fill" 3;
    "reduce.cu":
        "sum_fp16" 4, "sum_bf16" 4, "sum_fp32" 4, "any_fp16" 4, "any_bf16" 4, "any_fp32" 4, "any_u8" 4, "any_i64" 4;
    "compact.cu":
        "mark_nonzero_fp16" 7, "mark_nonzero_bf16" 7, "mark_nonzero_fp32" 7, "mark_nonzero_u8" 7,
        "mark_nonzero_i64" 7, "positions" 4;
    "gather.cu": "gather_wide_16" 8, "gather_wide_32" 8, "gather_narrow_16" 8, "gather_narrow_32" 8;
    "spin.cu": "spin" 1;
    "hold.cu": "hold" 2;
    "transfer.cu": "transfer" 3, "copies" 3;
    "instruments.cu": "spin_and_mark" 3, "tell_time" 4, "spin_in_halves" 1;
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
    pub(crate) const HOLD: Self = Self { file: 6, index: 0 };
    pub(crate) const COPIES: Self = Self { file: 7, index: 1 };

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

/// The kernels of a GPU.
pub(crate) struct Kernels {
    context: Arc<Context>,
    pub(crate) architecture: String,
    pub(crate) multiprocessors: u32,
    pub(crate) start_early: bool,
    loaded: [OnceLock<Vec<Function>>; SOURCES.len()],
    loading: Mutex<()>,
}

impl Kernels {
    pub(crate) fn new(context: &Arc<Context>) -> Result<Self> {
        let (major, minor) = context.architecture()?;
        Ok(Self {
            architecture: format!("sm_{major}{minor}"),
            multiprocessors: context.multiprocessors()?,
            start_early: major >= 9,
            loaded: Default::default(),
            loading: Mutex::default(),
            context: context.clone(),
        })
    }

    /// The handle of a kernel; compiles and loads its file the first time.
    #[inline]
    pub(crate) fn function(&self, kernel: Kernel) -> Result<Function> {
        let known = self.loaded.get(kernel.file).and_then(OnceLock::get).and_then(|loaded| loaded.get(kernel.index));
        match known {
            Some(&function) => Ok(function),
            None => self.load(kernel),
        }
    }

    /// Loads every file that is not loaded yet.
    pub(crate) fn load_all(&self) -> Result<()> {
        (0..SOURCES.len()).try_for_each(|file| self.load(Kernel { file, index: 0 }).map(drop))
    }

    #[cold]
    fn load(&self, kernel: Kernel) -> Result<Function> {
        let _one_at_a_time = lock(&self.loading);
        let missing = || self.missing(&format!("kernel {kernel:?}"));
        let (source, cell) = SOURCES.get(kernel.file).zip(self.loaded.get(kernel.file)).ok_or_else(missing)?;
        let loaded = match cell.get() {
            Some(loaded) => loaded,
            None => {
                let loaded = self.build(source)?;
                cell.get_or_init(|| loaded)
            }
        };
        loaded.get(kernel.index).copied().ok_or_else(missing)
    }

    /// The machine code of a file, to be loaded by itself.
    pub(crate) fn image_of(&self, file: &str) -> Result<Vec<u8>> {
        let source = SOURCES.iter().find(|source| source.file == file);
        let source = source.ok_or_else(|| self.missing(&format!("file of kernels `{file}`")))?;
        self.image(source, |image| Ok(image.to_vec()))
    }

    fn missing(&self, what: &str) -> DeviceError {
        DeviceError::call_failed(self.context.name(), "Kernels::load", format!("there is no {what}"))
    }

    fn build(&self, source: &Source) -> Result<Vec<Function>> {
        self.image(source, |image| self.functions(source, image))
    }

    /// What `load` makes of a file's machine code. A cached image that it refuses is compiled anew.
    fn image<T>(&self, source: &Source, load: impl Fn(&[u8]) -> Result<T>) -> Result<T> {
        let (compiler, cache) = (Compiler::load()?, Cache::from_environment());
        let own = compiler::Source::own(source.file, source.text);
        let inputs = compiler.inputs(&own, &self.architecture);
        let key = cache::hash(inputs.iter().map(|input| input.as_bytes()));
        if let Some(loaded) = cache.load(key).and_then(|image| load(&image).ok()) {
            return Ok(loaded);
        }
        let image = compiler.compile(&own, &self.architecture)?;
        cache.store(key, &image);
        load(&image)
    }

    fn functions(&self, source: &Source, image: &[u8]) -> Result<Vec<Function>> {
        let module = Module::load(&self.context, image)?;
        source.kernels.iter().map(|&(name, parameters)| module.function(name, parameters)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_is_found_under_its_name() {
        let name = |kernel: Kernel| SOURCES[kernel.file].kernels[kernel.index].0;
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
            (Kernel::HOLD, "hold"),
            (Kernel::COPIES, "copies"),
        ] {
            assert_eq!(name(kernel), expected);
        }
    }

    /// What stands between the parentheses that follow the first occurrence of `name`.
    fn parameters<'a>(text: &'a str, name: &str) -> Option<&'a str> {
        let after = text.split_once(&format!("{name}("))?.1;
        after.split_once(") {").map(|(parameters, _)| parameters)
    }

    #[test]
    fn a_kernel_declares_as_many_parameters_as_the_table_says() {
        for source in &SOURCES {
            for (name, expected) in source.kernels {
                // A family is declared by a macro, under its name up to the type.
                let family = name.rsplit_once('_').map_or(name.to_string(), |(family, _)| format!("{family}_##NAME"));
                let found = parameters(source.text, name).or_else(|| parameters(source.text, &family));
                let found = found.unwrap_or_else(|| panic!("{name} is not declared in {}", source.file));
                assert_eq!(found.split(',').count(), *expected, "{name} in {}: {found}", source.file);
            }
        }
    }
}
