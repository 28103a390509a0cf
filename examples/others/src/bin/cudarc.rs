//! cudarc alone: its compiler, its launch, its stream, wrapped so that the library can time it.
//!
//! A launch takes longer on the host while cudarc tracks by events which stream uses what: is that much? Nothing is recorded
//! before that is compared, as a recording makes later calls of the driver slower.

use std::process::ExitCode;
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaFunction, CudaSlice, CudaStream, DriverError, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::compile_ptx;
use syncscope::device::Device;
use syncscope::error::CaseError;
use syncscope::measure::{DeviceClock, Sampler};

const SOURCE: &str = r#"extern "C" __global__ void scale(float* x, float by, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= by;
}"#;
const ELEMENTS: usize = 1 << 20;

fn main() -> ExitCode {
    syncscope_others::ended(run())
}

fn run() -> Result<(), CaseError> {
    // The library says what is missing on a machine without a GPU; cudarc panics.
    let device = Device::open("cuda:0")?;
    let context = CudaContext::new(0)?;
    let theirs = context.new_stream()?;
    let stream = device.wrap(&theirs)?;
    let scale = context.load_module(compile_ptx(SOURCE)?)?.load_function("scale")?;

    let mut tracked = theirs.alloc_zeros::<f32>(ELEMENTS)?;
    // Safety: what is allocated until tracking is on again is used on one stream alone.
    unsafe { context.disable_event_tracking() };
    let mut bare = theirs.alloc_zeros::<f32>(ELEMENTS)?;
    // Safety: as above.
    unsafe { context.enable_event_tracking() };

    let sampler = Sampler::default();
    println!("100 launches, with a synchronization at their end:");
    println!(
        "{}",
        sampler.compare((
            ("with event tracking", || launches(100, &theirs, &scale, &mut tracked)),
            ("without", || launches(100, &theirs, &scale, &mut bare)),
        ))?
    );

    println!("\nOne launch on the device:");
    let one = sampler.stopwatches(&DeviceClock::new(&stream)?, || launch(&theirs, &scale, &mut bare))?;
    print!("{}", one.moving(8.0 * ELEMENTS as f64));

    println!("\nWhere the host waits in a loop that reads one number an iteration:");
    let (_, audit) = device.audit(|| {
        for _ in 0..5 {
            launch(&theirs, &scale, &mut bare)?;
            theirs.clone_dtoh(&bare.slice(..1))?;
        }
        Ok::<_, CaseError>(())
    })?;
    println!("{audit}");
    Ok(())
}

fn launch(stream: &Arc<CudaStream>, scale: &CudaFunction, x: &mut CudaSlice<f32>) -> Result<(), DriverError> {
    let (by, n) = (1.5_f32, ELEMENTS as u32);
    let mut launch = stream.launch_builder(scale);
    launch.arg(x).arg(&by).arg(&n);
    // Safety: the arguments are those of the kernel, which stays within the `n` elements of `x`.
    unsafe { launch.launch(LaunchConfig::for_num_elems(n)) }.map(drop)
}

fn launches(
    count: usize,
    stream: &Arc<CudaStream>,
    scale: &CudaFunction,
    x: &mut CudaSlice<f32>,
) -> Result<(), DriverError> {
    for _ in 0..count {
        launch(stream, scale, x)?;
    }
    stream.synchronize()
}
