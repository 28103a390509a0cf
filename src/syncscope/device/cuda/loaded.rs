//! Code of the user's: compiled, loaded, and launched by the guard of a stream.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::driver::compiler::{Compiler, Source};
use super::driver::{self, Function, Limits, Module, PoolSpan, context};
use super::kernels::cache::{self, Cache};
use super::memory::device::CudaMemory;
use super::opened::Opened;
use super::stream::guard::{StreamGuard, StreamInner};
use crate::device::code::{Argument, Code, Form, Launch, MAX_ARGUMENTS, Value};
use crate::device::engine::{EngineKernel, EngineModule, Result, own};
use crate::device::operation::Region;
use crate::error::DeviceError;

/// As many arguments as most kernels take at most.
const FEW: usize = 8;

/// The first driver that tells the parameters of a kernel.
const TELLS_PARAMETERS: i32 = 12_040;

/// What a kernel has of dynamic shared memory without being asked for more (*CUDA C++ Programming Guide*, section
/// "Shared Memory" of the compute capabilities).
const USUAL_SHARED: u32 = 48 << 10;

/// Loaded code of the user's.
pub(super) struct CudaModule {
    device: Arc<Opened>,
    module: Module,
    image: Vec<u8>,
}

impl CudaModule {
    /// Compiles a source, and loads the code.
    pub(super) fn load(device: &Arc<Opened>, code: &Code) -> Result<Self> {
        device.check()?;
        if context::driver_version() < TELLS_PARAMETERS {
            let needed = context::dotted(TELLS_PARAMETERS);
            let reason = format!("the driver tells a kernel's parameters, which are checked, from CUDA {needed} on");
            return Err(DeviceError::not_applicable(format!("`{}`", code.name), device.name(), reason));
        }
        let image = match &code.form {
            // The driver reads as far as the image says by itself.
            Form::Image(image) if !is_whole(image) => {
                let log = "it is cut off: it ends before what its header names".to_owned();
                let (file, architecture) = (code.name.clone(), device.gpu.kernels.architecture.to_string());
                return Err(DeviceError::KernelBuild { file, architecture, log });
            }
            Form::Image(image) => image.clone(),
            Form::Cuda(source) => compiled(code, source, &device.gpu.kernels.architecture)?,
        };
        let module = Module::load(&device.gpu.context, &image)?;
        Ok(Self { device: device.clone(), module, image })
    }
}

/// Whether an image has all the bytes that its header names: of a cubin (a 64-bit ELF file: headers and sections), or of a fatbin
/// (a header with its own size and that of what follows). PTX is a text that ends in a zero.
fn is_whole(image: &[u8]) -> bool {
    let number = |at: usize, bytes: usize| {
        let bytes = image.get(at..at.checked_add(bytes)?)?;
        Some(bytes.iter().rev().fold(0_usize, |number, byte| number << 8 | usize::from(*byte)))
    };
    let is_there = |from: Option<usize>, size: Option<usize>| {
        let end = from.zip(size).and_then(|(from, size)| from.checked_add(size));
        end.is_some_and(|end| end <= image.len())
    };
    if image.starts_with(&0xba55_ed50_u32.to_le_bytes()) {
        return is_there(number(6, 2), number(8, 8));
    }
    if !image.starts_with(b"\x7fELF") {
        return image.len() > 1;
    }
    // A table of entries: where it begins, how long one is, and how many there are.
    let whole_table = |from: usize, size: usize, count: usize| {
        let (from, size, count) = (number(from, 8)?, number(size, 2)?, number(count, 2)?);
        is_there(Some(from), size.checked_mul(count)).then_some((from, size, count))
    };
    const NO_BYTES: usize = 8;
    let is_section_there =
        |at: usize| number(at + 4, 4) == Some(NO_BYTES) || is_there(number(at + 0x18, 8), number(at + 0x20, 8));
    whole_table(0x20, 0x36, 0x38).is_some()
        && whole_table(0x28, 0x3a, 0x3c)
            .is_some_and(|(from, size, count)| (0..count).all(|place| is_section_there(from + size * place)))
}

/// The cubin of a source, from the cache where it is known what decides what that is.
fn compiled(code: &Code, text: &str, architecture: &str) -> Result<Vec<u8>> {
    let (compiler, cache) = (Compiler::load()?, Cache::from_environment());
    let source = Source::of_user(&code.name, text, &code.options);
    let compile = || compiler.compile(&source, architecture);
    if source.may_read_files() {
        return compile();
    }
    let inputs = compiler.inputs(&source, architecture);
    let key = cache::hash(inputs.iter().map(|input| input.as_bytes()));
    if let Some(image) = cache.load(key) {
        return Ok(image);
    }
    let image = compile()?;
    cache.store(key, &image);
    Ok(image)
}

impl EngineModule for CudaModule {
    fn kernels(&self) -> Result<Vec<String>> {
        self.module.names()
    }

    fn kernel(&self, name: &str) -> Result<Arc<dyn EngineKernel>> {
        let sizes = self.module.parameters(name)?;
        if sizes.len() > MAX_ARGUMENTS {
            let reason = format!("`{name}` takes {} arguments, and {MAX_ARGUMENTS} are the most", sizes.len());
            return Err(DeviceError::invalid("kernel", reason));
        }
        let function = self.module.function(name, sizes.len())?;
        let limits = self.module.limits(function)?;
        let name = name.to_owned();
        Ok(Arc::new(CudaKernel {
            device: self.device.clone(),
            name,
            function,
            sizes,
            limits,
            shared: USUAL_SHARED.into(),
        }))
    }

    fn image(&self) -> &[u8] {
        &self.image
    }
}

/// A kernel of the user's.
pub(super) struct CudaKernel {
    device: Arc<Opened>,
    name: String,
    function: Function,
    sizes: Vec<usize>,
    limits: Limits,
    /// How much dynamic shared memory a launch may ask for without telling the driver.
    shared: AtomicU32,
}

impl EngineKernel for CudaKernel {
    fn parameters(&self) -> &[usize] {
        &self.sizes
    }
}

impl CudaKernel {
    /// Enqueues a launch on a stream.
    pub(super) fn launch(
        stream: &Arc<StreamInner>,
        kernel: &dyn Any,
        launch: &Launch,
        arguments: &[Argument<'_>],
    ) -> Result<()> {
        let device = &stream.device;
        let kernel: &Self = own(kernel, |kernel: &Self| &kernel.device, (device, device.name()), "a kernel")?;
        kernel.check(launch)?;
        // Most kernels take few: what is not used costs time, too.
        match arguments.len() {
            0..=FEW => kernel.launch_with::<FEW>(stream, launch, arguments),
            _ => kernel.launch_with_many(stream, launch, arguments),
        }
    }

    /// Apart, so that its room on the stack costs the others nothing.
    #[inline(never)]
    fn launch_with_many(&self, stream: &Arc<StreamInner>, launch: &Launch, arguments: &[Argument<'_>]) -> Result<()> {
        self.launch_with::<MAX_ARGUMENTS>(stream, launch, arguments)
    }

    /// Enqueues a launch with at most `N` arguments.
    #[inline(always)]
    fn launch_with<const N: usize>(
        &self,
        stream: &Arc<StreamInner>,
        launch: &Launch,
        arguments: &[Argument<'_>],
    ) -> Result<()> {
        // Aligned to 8 bytes, as the largest number asks.
        let mut words = [0u64; N];
        for (place, argument) in arguments.iter().enumerate() {
            words[place] = match &argument.0 {
                Value::Number(bytes, _) => u64::from_ne_bytes(*bytes),
                Value::Memory(region, _) => match CudaMemory::address_at_home(region, stream) {
                    Some(address) => address,
                    None => address_of(*region, stream)?,
                },
            };
        }
        let mut places = driver::Argument::of_words(&words);
        let mut guard = stream.enter_inlined()?;
        self.allow(launch.shared_bytes)?;
        let outcome = guard.launch_own(self.function, launch, &mut places[..arguments.len()]);
        keep(&mut guard, arguments, &outcome);
        outcome
    }

    /// Whether the device and the kernel take such a launch.
    #[inline]
    fn check(&self, launch: &Launch) -> Result<()> {
        if fits(&self.limits, launch) { Ok(()) } else { Err(self.refused(launch)) }
    }

    #[cold]
    fn refused(&self, launch: &Launch) -> DeviceError {
        DeviceError::invalid("launch", format!("`{}`: {}", self.name, beyond(&self.limits, launch)))
    }

    /// Tells the driver of more shared memory than is usual, once: of all that there is, as what it is told last holds for all who
    /// have the kernel.
    #[inline]
    fn allow(&self, shared_bytes: u32) -> Result<()> {
        if shared_bytes <= self.shared.load(Ordering::Relaxed) {
            return Ok(());
        }
        let most = self.limits.shared_bytes;
        self.device.gpu.context.allow_shared(self.function, most)?;
        self.shared.store(most, Ordering::Relaxed);
        Ok(())
    }
}

/// Whether a launch is within all bounds.
#[inline]
fn fits(limits: &Limits, launch: &Launch) -> bool {
    let [x, y, z] = launch.block;
    // Where it wraps around, one of the three is beyond its own bound.
    let threads = (u64::from(x) * u64::from(y)).wrapping_mul(z.into());
    let within = |all: &[u32; 3], most: &[u32; 3]| all[0] <= most[0] && all[1] <= most[1] && all[2] <= most[2];
    threads > 0
        && !launch.grid.contains(&0)
        && threads <= u64::from(limits.threads)
        && within(&launch.grid, &limits.grid)
        && within(&launch.block, &limits.block)
        && launch.shared_bytes <= limits.shared_bytes
}

/// Which bound a launch is beyond.
fn beyond(limits: &Limits, launch: &Launch) -> String {
    let Launch { grid, block, shared_bytes } = *launch;
    let threads: u128 = block.map(u128::from).iter().product();
    if threads == 0 || grid.contains(&0) {
        format!("a grid of {grid:?} blocks of {block:?} threads has nothing to run")
    } else if threads > limits.threads.into() {
        format!("a block of {block:?} has {threads} threads, and this kernel takes {} on this device", limits.threads)
    } else if shared_bytes > limits.shared_bytes {
        format!("{shared_bytes} bytes of shared memory are asked for, and {} are left for it", limits.shared_bytes)
    } else {
        format!(
            "the device takes grids up to {:?} and blocks up to {:?}: not {grid:?} of {block:?}",
            limits.grid, limits.block
        )
    }
}

/// The address of any region, 0 of an empty one.
#[cold]
fn address_of(region: Region<'_>, stream: &Arc<StreamInner>) -> Result<u64> {
    if region.len == 0 { Ok(0) } else { CudaMemory::of(region, stream).map(PoolSpan::address) }
}

/// Has a capture in progress hold on to the tensors of a launch.
fn keep(guard: &mut StreamGuard<'_>, arguments: &[Argument<'_>], outcome: &Result<()>) {
    let regions = arguments.iter().filter_map(|argument| match argument.0 {
        Value::Memory(region, _) => Some(region),
        Value::Number(..) => None,
    });
    guard.keep_all(regions, outcome);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A 64-bit ELF file of one section with these bytes, as far as its header, its section and the table of sections go.
    fn cubin(section: &[u8]) -> Vec<u8> {
        let (begin, table) = (0x40_u64, 0x40 + section.len() as u64);
        let mut image = vec![0; 0x40];
        image[..4].copy_from_slice(b"\x7fELF");
        image[0x28..0x30].copy_from_slice(&table.to_le_bytes());
        image[0x3a..0x3c].copy_from_slice(&0x40_u16.to_le_bytes());
        image[0x3c..0x3e].copy_from_slice(&1_u16.to_le_bytes());
        image.extend(section);
        let mut entry = [0; 0x40];
        entry[4] = 1;
        entry[0x18..0x20].copy_from_slice(&begin.to_le_bytes());
        entry[0x20..0x28].copy_from_slice(&(section.len() as u64).to_le_bytes());
        image.extend(entry);
        image
    }

    #[test]
    fn a_block_of_more_threads_than_a_number_says_is_refused_with_how_many_they_are() {
        let limits =
            Limits { grid: [u32::MAX >> 1, 65_535, 65_535], block: [1024, 1024, 64], threads: 1024, shared_bytes: 100 };
        let launch = |block| Launch::new([1; 3], block);
        assert!(fits(&limits, &launch([1024, 1, 1])) && !fits(&limits, &launch([1024, 2, 1])));
        // Around 64 bits the second has none.
        for (block, threads) in
            [([u32::MAX; 3], "79228162458924105385300197375"), ([1 << 22, 1 << 21, 1 << 21], "18446744073709551616")]
        {
            assert!(!fits(&limits, &launch(block)));
            let said = beyond(&limits, &launch(block));
            assert!(said.contains(&format!("has {threads} threads")), "{said}");
        }
    }

    #[test]
    fn an_image_that_is_cut_off_anywhere_or_names_more_than_there_is_is_not_whole() {
        let whole = cubin(&[7; 100]);
        assert!(is_whole(&whole));
        assert!((4..whole.len()).all(|len| !is_whole(&whole[..len])));
        for at in [0x28, 0x3c, 0x40 + 100 + 0x18, 0x40 + 100 + 0x20] {
            let mut other = whole.clone();
            other[at..at + 2].fill(0xff);
            assert!(!is_whole(&other), "{at:#x}");
        }
        let fatbin = [&0xba55_ed50_u32.to_le_bytes()[..], &[1, 0, 16, 0], &8_u64.to_le_bytes(), &[0; 8]].concat();
        assert!(is_whole(&fatbin) && !is_whole(&fatbin[..fatbin.len() - 1]));
        assert!(is_whole(b".version 9.0\0") && !is_whole(b"\0") && !is_whole(b""));
    }

    #[test]
    fn what_nvrtc_makes_is_whole_and_an_option_by_which_it_makes_nothing_is_an_error() {
        let compiler = match Compiler::load() {
            Err(missing) => return println!("skipped: {missing}"),
            Ok(compiler) => compiler,
        };
        let text = "extern \"C\" __global__ void scale(float* x) { x[threadIdx.x] *= 2.0f; }";
        let with = |options: &[String]| compiler.compile(&Source::of_user("a.cu", text, options), "sm_90");
        let image = with(&[]).unwrap();
        assert!(is_whole(&image) && !is_whole(&image[..image.len() / 2]) && !is_whole(&image[..image.len() - 1]));
        let none = with(&["-dlto".to_owned()]).unwrap_err();
        assert!(none.to_string().contains("no machine code was made"), "{none}");
    }
}
