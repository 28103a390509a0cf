//! Kernels of one's own: code that is loaded, and launched with tensors and numbers.

use std::fmt;
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use half::{bf16, f16};

use super::engine::{EngineKernel, EngineModule, Result};
use super::operation::Region;
use super::tracer::{CallInfo, Kind, Site};
use super::{Device, Stream};
use crate::error::DeviceError;

/// What recordings call a launch of a kernel, which on the device has its own name.
pub(crate) const LAUNCH: &str = "launch";

/// The most arguments of a launch.
#[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "as of `Value`"))]
pub(crate) const MAX_ARGUMENTS: usize = 32;

/// Code for a device: CUDA C++ that is compiled for the device's own architecture when it is loaded, PTX, or a cubin.
///
/// ```no_run
/// use syncscope::prelude::*;
///
/// let stream = Device::open("cuda:0")?.stream()?;
/// let code = Code::cuda("scale.cu", r#"
///     extern "C" __global__ void scale(float* x, float by, unsigned n) {
///         unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
///         if (i < n) x[i] *= by;
///     }
/// "#);
/// let scale = stream.device().load(&code)?.kernel("scale")?;
/// let x = stream.ones::<f32>([1000])?;
/// scale.launch(&stream, Launch::over(1000, 256), (&x, 3.0_f32, 1000_u32))?;
/// assert_eq!(x.get([999])?.item()?, 3.0);
/// # Ok::<(), syncscope::error::DeviceError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    pub(crate) name: String,
    pub(crate) form: Form,
    pub(crate) options: Vec<String>,
}

/// What a code is given as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The source.
    Cuda(String),
    /// PTX or a cubin: the driver tells them apart.
    Image(Vec<u8>),
}

impl Code {
    /// A source in CUDA C++, for NVRTC. `name` stands in its errors.
    pub fn cuda(name: impl Into<String>, source: impl Into<String>) -> Self {
        Self { name: name.into(), form: Form::Cuda(source.into()), options: Vec::new() }
    }

    /// PTX, or a cubin or fatbin of the device's architecture, as `nvcc` writes them. `name` stands in its errors.
    pub fn image(name: impl Into<String>, image: impl Into<Vec<u8>>) -> Self {
        let mut image = image.into();
        // PTX is a text that ends in a zero.
        image.push(0);
        Self { name: name.into(), form: Form::Image(image), options: Vec::new() }
    }

    /// The code of a file: a source where its name ends in `.cu`, which finds what it includes beside it; PTX, a cubin or a
    /// fatbin otherwise.
    ///
    /// # Errors
    /// [`DeviceError::InvalidArgument`]: it cannot be read, or is no source in UTF-8.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let bytes =
            std::fs::read(path).map_err(|error| DeviceError::invalid("Code::read", format!("{name}: {error}")))?;
        if path.extension().is_none_or(|ending| !ending.eq_ignore_ascii_case("cu")) {
            return Ok(Self::image(name, bytes));
        }
        let source = String::from_utf8(bytes)
            .map_err(|error| DeviceError::invalid("Code::read", format!("{name} is no UTF-8: {error}")))?;
        Ok(Self::cuda(name, source).beside(path))
    }

    /// With what it includes looked for beside a file, as [`read`](Self::read) does.
    #[must_use]
    pub fn beside(self, file: impl AsRef<Path>) -> Self {
        let folder = file.as_ref().parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
        self.including(folder)
    }

    /// With an option of NVRTC: `--use_fast_math`, `-DWIDTH=4`.
    #[must_use]
    pub fn option(mut self, option: impl Into<String>) -> Self {
        self.options.push(option.into());
        self
    }

    /// With a folder in which what it includes is looked for.
    #[must_use]
    pub fn including(self, folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        self.option(format!("--include-path={}", folder.display()))
    }
}

impl Device {
    /// Loads code, a source after it was compiled for this device: once a machine, as what was compiled is kept on disk, but for a
    /// source that includes files. May wait for all work on the device: load code before a gate is closed.
    ///
    /// # Errors
    /// [`DeviceError::NotApplicable`] on an engine that runs no code of one's own; [`DeviceError::KernelBuild`] with file, line
    /// and the line itself for a source that does not compile, and for an image that is cut off; [`DeviceError::EngineUnavailable`]
    /// where there is no compiler; [`DeviceError::CallFailed`] for an image that the driver refuses.
    pub fn load(&self, code: &Code) -> Result<Module> {
        Ok(Module { raw: self.engine().load(code)?, name: code.name.clone().into() })
    }
}

/// Loaded code. Cheap to clone.
#[derive(Clone)]
pub struct Module {
    raw: Arc<dyn EngineModule>,
    name: Arc<str>,
}

impl Module {
    /// The names of its kernels, as the code's machine has them: those of C++ that are not `extern "C"` are mangled.
    ///
    /// # Errors
    /// The driver's.
    pub fn kernels(&self) -> Result<Vec<String>> {
        self.raw.kernels()
    }

    /// A kernel by its name: the mangled one, or that of the source, `space::kernel`, where one kernel alone has it.
    ///
    /// # Errors
    /// [`DeviceError::InvalidArgument`] names the kernels that there are.
    pub fn kernel(&self, name: &str) -> Result<Kernel> {
        let known = self.kernels()?;
        let fits: Vec<&String> = match known.iter().find(|kernel| *kernel == name) {
            Some(kernel) => vec![kernel],
            None => known.iter().filter(|kernel| unmangled(kernel).as_deref() == Some(name)).collect(),
        };
        match fits.as_slice() {
            [kernel] => Ok(Kernel { raw: self.raw.kernel(kernel)?, name: name.into() }),
            [] => {
                let named = |kernel: &String| match unmangled(kernel) {
                    Some(name) => format!("{name} ({kernel})"),
                    None => kernel.clone(),
                };
                let known: Vec<String> = known.iter().map(named).collect();
                Err(invalid(format!("{} has no kernel `{name}`; it has: {}", self.name, known.join(", "))))
            }
            _ => {
                let fits: Vec<&str> = fits.into_iter().map(String::as_str).collect();
                Err(invalid(format!("{} has several kernels `{name}`: {}", self.name, fits.join(", "))))
            }
        }
    }

    /// The machine code, for another library that loads it.
    pub fn image(&self) -> &[u8] {
        self.raw.image()
    }
}

/// The name of a function in its source, with its namespaces, where it is mangled by the Itanium C++ ABI (section 5.1.2).
fn unmangled(mangled: &str) -> Option<String> {
    let rest = mangled.strip_prefix("_Z")?;
    let (is_nested, mut rest) = rest.strip_prefix('N').map_or((false, rest), |rest| (true, rest));
    let mut names = Vec::new();
    while names.is_empty() || is_nested && rest.starts_with(|c: char| c.is_ascii_digit()) {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let end = digits.checked_add(rest[..digits].parse().ok()?)?;
        names.push(rest.get(digits..end)?);
        rest = &rest[end..];
    }
    Some(names.join("::"))
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Module({})", self.name)
    }
}

/// A kernel of loaded code. Cheap to clone.
#[derive(Clone)]
pub struct Kernel {
    raw: Arc<dyn EngineKernel>,
    name: Arc<str>,
}

/// How a kernel is launched: blocks in the grid, threads in a block, and the bytes of shared memory that each block is given
/// beside what the kernel declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Blocks in each direction.
    pub grid: [u32; 3],
    /// Threads of a block in each direction.
    pub block: [u32; 3],
    /// Bytes.
    pub shared_bytes: u32,
}

impl Launch {
    /// Blocks and threads in each direction.
    #[inline]
    pub fn new(grid: [u32; 3], block: [u32; 3]) -> Self {
        Self { grid, block, shared_bytes: 0 }
    }

    /// As many blocks of `threads` as have a thread for each of `elements`: for none it is a launch of nothing, which is refused.
    #[inline]
    pub fn over(elements: usize, threads: u32) -> Self {
        let blocks = elements.div_ceil(threads.max(1) as usize);
        Self::new([u32::try_from(blocks).unwrap_or(u32::MAX), 1, 1], [threads, 1, 1])
    }

    /// With so many bytes of shared memory for each block, beside what the kernel declares.
    #[must_use]
    pub fn with_shared(self, bytes: u32) -> Self {
        Self { shared_bytes: bytes, ..self }
    }
}

/// One argument of a launch: a tensor, of which the kernel gets the address, or a number.
#[derive(Clone, Copy)]
pub struct Argument<'a>(pub(crate) Value<'a>);

/// What an argument is.
#[derive(Clone, Copy)]
#[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "no other engine runs code of one's own"))]
pub(crate) enum Value<'a> {
    /// The elements of a tensor of this stream.
    Memory(Region<'a>, &'a Stream),
    /// A number's bytes, and how many there are.
    Number([u8; 8], usize),
}

macro_rules! numbers {
    ($($type:ty),+) => {
        $(impl From<$type> for Argument<'_> {
            #[inline]
            fn from(number: $type) -> Self {
                let (mut bytes, own) = ([0; 8], number.to_ne_bytes());
                let mut place = 0;
                while place < own.len() {
                    bytes[place] = own[place];
                    place += 1;
                }
                Self(Value::Number(bytes, own.len()))
            }
        })+
    };
}
numbers!(i8, u8, i16, u16, i32, u32, i64, u64, isize, usize, f16, bf16, f32, f64);

impl Argument<'_> {
    /// As many bytes as the kernel reads of it.
    #[inline]
    fn size(&self) -> usize {
        match self.0 {
            Value::Memory(..) => size_of::<u64>(),
            Value::Number(_, size) => size,
        }
    }
}

/// The arguments of a launch, in the order of the kernel's parameters: a tuple of up to 12 tensors and numbers, or a slice of up
/// to 32 [`Argument`]s.
pub trait Arguments<'a> {
    /// Calls `launch` with them.
    ///
    /// # Errors
    /// Those of `launch`.
    fn give(self, launch: &mut dyn FnMut(&[Argument<'a>]) -> Result<()>) -> Result<()>;
}

impl<'a> Arguments<'a> for &[Argument<'a>] {
    fn give(self, launch: &mut dyn FnMut(&[Argument<'a>]) -> Result<()>) -> Result<()> {
        launch(self)
    }
}

macro_rules! tuples {
    ($($($name:ident)*;)+) => {
        $(impl<'a, $($name: Into<Argument<'a>>),*> Arguments<'a> for ($($name,)*) {
            #[allow(non_snake_case)]
            fn give(self, launch: &mut dyn FnMut(&[Argument<'a>]) -> Result<()>) -> Result<()> {
                let ($($name,)*) = self;
                launch(&[$($name.into()),*])
            }
        })+
    };
}
tuples! {
    ; A; A B; A B C; A B C D; A B C D E; A B C D E F; A B C D E F G; A B C D E F G H; A B C D E F G H I; A B C D E F G H I J;
    A B C D E F G H I J K; A B C D E F G H I J K L;
}

impl Kernel {
    /// The name that it was asked for by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The size of each parameter in bytes, in their order; a pointer has 8.
    pub fn parameters(&self) -> &[usize] {
        self.raw.parameters()
    }

    /// Enqueues a launch.
    ///
    /// The number and the sizes of the arguments are checked, and grid, block and shared memory against what the device and the
    /// kernel take. What the kernel does with its arguments is its author's: one that writes outside of a tensor changes what lies
    /// there, or ends the device's context. `compute-sanitizer PROGRAM` says where it does.
    ///
    /// # Errors
    /// [`DeviceError::InvalidArgument`] says which argument or which bound does not fit, also where a tensor belongs to another
    /// stream: use it through [`on`](crate::tensor::Tensor::on) after an event has put the two in order; a failure of the stream;
    /// no room for more work.
    #[track_caller]
    pub fn launch<'a>(&self, stream: &Stream, launch: Launch, arguments: impl Arguments<'a>) -> Result<()> {
        let site = Some(Location::caller());
        arguments.give(&mut |arguments| self.enqueue(stream, &launch, arguments, site))
    }

    /// Apart from what each type of arguments has of its own.
    fn enqueue(&self, stream: &Stream, launch: &Launch, arguments: &[Argument<'_>], site: Site) -> Result<()> {
        self.check(stream, arguments)?;
        let note = CallInfo::enqueue(LAUNCH, Some(Kind::Kernel));
        stream.noted(note, site, || stream.raw().launch(&*self.raw, launch, arguments))
    }

    #[inline]
    fn check(&self, stream: &Stream, arguments: &[Argument<'_>]) -> Result<()> {
        let sizes = self.raw.parameters();
        let mut fit = arguments.len() == sizes.len();
        for (place, size) in sizes.iter().enumerate() {
            fit = fit
                && arguments[place].size() == *size
                && !matches!(arguments[place].0, Value::Memory(_, own) if !own.is_same(stream));
        }
        if fit { Ok(()) } else { Err(self.misfit(stream, arguments)) }
    }

    /// Which argument does not fit.
    #[cold]
    fn misfit(&self, stream: &Stream, arguments: &[Argument<'_>]) -> DeviceError {
        let (name, sizes) = (&self.name, self.raw.parameters());
        if arguments.len() != sizes.len() {
            return invalid(format!("`{name}` takes {} arguments, and {} are given", sizes.len(), arguments.len()));
        }
        for (place, (argument, size)) in (1..).zip(arguments.iter().zip(sizes)) {
            match argument.0 {
                Value::Memory(_, own) if !own.is_same(stream) => {
                    return invalid(format!(
                        "argument {place} of `{name}` is a tensor of {own:?}, not of {stream:?}: {ON}"
                    ));
                }
                _ if argument.size() != *size => {
                    let given = argument.size();
                    return invalid(format!(
                        "argument {place} of `{name}` has {given} bytes, and the kernel takes {size}"
                    ));
                }
                _ => {}
            }
        }
        invalid(format!("the arguments of `{name}` do not fit"))
    }
}

/// What to do with an operand of another stream.
pub(crate) const ON: &str = "take it by `.on(&stream)`, after an event has put the streams in order";

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kernel({}, {:?})", self.name, self.raw.parameters())
    }
}

fn invalid(reason: String) -> DeviceError {
    DeviceError::invalid("kernel", reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mangled_name_is_that_of_its_function_and_of_no_other() {
        let named = |mangled| unmangled(mangled).unwrap_or_default();
        assert_eq!([named("_Z5saxpyPfS_fj"), named("_Z5saxpyIfEvPT_")], ["saxpy", "saxpy"]);
        assert_eq!([named("_Z6saxpy2Pf"), named("saxpy")], ["saxpy2", ""]);
        assert_eq!([named("_ZN1a2bc5saxpyEPf"), named("_ZN1a5saxpyIfEEvPT_")], ["a::bc::saxpy", "a::saxpy"]);
        assert_eq!([named("_Z"), named("_Z9"), named("_Z99999999999999999999999x"), named("_ZNK")], [""; 4]);
    }

    #[test]
    fn a_launch_over_elements_has_a_thread_for_each() {
        assert_eq!(Launch::over(1000, 256).grid, [4, 1, 1]);
        assert_eq!(Launch::over(1024, 256).grid, [4, 1, 1]);
        assert_eq!(Launch::over(0, 256).grid, [0, 1, 1]);
    }

    #[test]
    fn the_cpu_engine_says_that_it_runs_no_code_of_ones_own() {
        let device = Device::open("cpu:0").map_err(|error| error.to_string());
        let refused = device.map(|device| device.load(&Code::cuda("a.cu", "")).map(drop));
        assert!(matches!(refused, Ok(Err(DeviceError::NotApplicable { .. }))), "{refused:?}");
    }

    #[test]
    fn a_number_has_the_bytes_of_its_type() {
        assert_eq!(Argument::from(2.0_f32).size(), 4);
        assert_eq!(Argument::from(7_u64).size(), 8);
        assert_eq!(Argument::from(f16::ONE).size(), 2);
    }
}
