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
            Form::Image(image) => image.clone(),
            Form::Cuda(source) => compiled(code, source, &device.gpu.kernels.architecture)?,
        };
        let module = Module::load(&device.gpu.context, &image)?;
        Ok(Self { device: device.clone(), module, image })
    }
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
        let (limits, [x, y, z]) = (&self.limits, launch.block);
        let threads = u64::from(x) * u64::from(y) * u64::from(z);
        let within = |all: &[u32; 3], most: &[u32; 3]| all[0] <= most[0] && all[1] <= most[1] && all[2] <= most[2];
        let fits = threads > 0
            && !launch.grid.contains(&0)
            && threads <= u64::from(limits.threads)
            && within(&launch.grid, &limits.grid)
            && within(&launch.block, &limits.block)
            && launch.shared_bytes <= limits.shared_bytes;
        if fits { Ok(()) } else { Err(self.refused(launch, threads)) }
    }

    /// Which bound a launch is beyond.
    #[cold]
    fn refused(&self, launch: &Launch, threads: u64) -> DeviceError {
        let (limits, Launch { grid, block, shared_bytes }) = (&self.limits, *launch);
        let beyond = if threads == 0 || grid.contains(&0) {
            format!("a grid of {grid:?} blocks of {block:?} threads has nothing to run")
        } else if threads > u64::from(limits.threads) {
            format!(
                "a block of {block:?} has {threads} threads, and this kernel takes {} on this device",
                limits.threads
            )
        } else if shared_bytes > limits.shared_bytes {
            format!("{shared_bytes} bytes of shared memory are asked for, and {} are left for it", limits.shared_bytes)
        } else {
            format!(
                "the device takes grids up to {:?} and blocks up to {:?}: not {grid:?} of {block:?}",
                limits.grid, limits.block
            )
        };
        DeviceError::invalid("launch", format!("`{}`: {beyond}", self.name))
    }

    /// Tells the driver of more shared memory than is usual, once.
    #[inline]
    fn allow(&self, shared_bytes: u32) -> Result<()> {
        if shared_bytes <= self.shared.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.device.gpu.context.allow_shared(self.function, shared_bytes)?;
        self.shared.fetch_max(shared_bytes, Ordering::Relaxed);
        Ok(())
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
