//! A loop on cudarc: it copies a batch to the GPU, launches a kernel and reads a number.

use cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::compile_ptx;

const ELEMENTS: usize = 4_000_000;
const KERNEL: &str = r#"extern "C" __global__ void approach(float* x, const float* target, float rate, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += rate * (target[i] - x[i]);
}"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let stream = CudaContext::new(0)?.new_stream()?;
    let approach = stream.context().load_module(compile_ptx(KERNEL)?)?.load_function("approach")?;
    let (rate, n) = (0.5_f32, ELEMENTS as i32);
    let batch = vec![1.0_f32; ELEMENTS];
    let mut x = stream.alloc_zeros::<f32>(ELEMENTS)?;
    for step in 0..100 {
        let target = stream.clone_htod(&batch)?;
        let mut launch = stream.launch_builder(&approach);
        launch.arg(&mut x).arg(&target).arg(&rate).arg(&n);
        // SAFETY: the arguments are those of the kernel, which stays within `n` elements of both.
        unsafe { launch.launch(LaunchConfig::for_num_elems(ELEMENTS as u32))? };
        stream.synchronize()?;
        let first = stream.clone_dtoh(&x.slice(0..1))?;
        if step % 50 == 0 {
            println!("step {step}: {}", first[0]);
        }
    }
    Ok(())
}
