//! Four kernels of one's own at five sizes, by every stopwatch, with hot and with cold caches, beside a loop between two plain
//! events by `cudarc` alone: one JSON object a line.

use std::error::Error;
use std::time::Instant;

use cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg, sys};
use cudarc::nvrtc::Ptx;
use syncscope::device::{Argument, Code, Device, Kernel, Launch, Module};
use syncscope::measure::{DeviceClock, Protocol, Sampler, median};
use syncscope::tensor::Tensor;

const SOURCE: &str = include_str!("../../book/peers/pytorch_system/kernels.cu");

struct Row<'a> {
    name: &'static str,
    n: u32,
    launch: Launch,
    arguments: Vec<Argument<'a>>,
    bytes: f64,
    operations: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::open("cuda:0")?;
    let stream = device.stream()?;
    let module = device.load(&Code::cuda("kernels.cu", SOURCE))?;
    let theirs = CudaContext::new(0)?;
    let loaded = theirs.load_module(Ptx::from_binary(module.image().to_vec()))?;
    let lent = stream.lend()?;
    // First: records cost each later call of the driver some time.
    // What a launch costs the host, by each way, in alternation.
    let function = loaded.load_function("saxpy")?;
    let (x, y) = (stream.ones::<f32>([256])?, stream.zeros::<f32>([256])?);
    let saxpy = module.kernel("saxpy")?;
    let raw = function.cu_function();
    let (mut own, mut bare, mut builder, mut affine) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let slice = lent.alloc_zeros::<f32>(256)?;
    let target = lent.alloc_zeros::<f32>(256)?;
    const CALLS: usize = 500;
    for _ in 0..400 {
        stream.synchronize()?;
        let begun = Instant::now();
        for _ in 0..CALLS {
            saxpy.launch(&stream, Launch::over(256, 256), (0.5_f32, &x, &y, 256_u32))?;
        }
        own.push(begun.elapsed().as_secs_f64() / CALLS as f64);
        stream.synchronize()?;
        let (a, n) = (0.5_f32, 256_u32);
        let (p, q) = (address(&slice, &lent), address(&target, &lent));
        let mut arguments: [*mut std::ffi::c_void; 4] =
            [(&raw const a) as _, (&raw const p) as _, (&raw const q) as _, (&raw const n) as _];
        let begun = Instant::now();
        for _ in 0..CALLS {
            // Safety: as many arguments as the kernel has, all alive.
            unsafe {
                sys::cuLaunchKernel(
                    raw,
                    1,
                    1,
                    1,
                    256,
                    1,
                    1,
                    0,
                    lent.cu_stream(),
                    arguments.as_mut_ptr(),
                    std::ptr::null_mut(),
                )
            };
        }
        bare.push(begun.elapsed().as_secs_f64() / CALLS as f64);
        stream.synchronize()?;
        let begun = Instant::now();
        for _ in 0..CALLS {
            x.affine_in_place(1.0, 0.0)?;
        }
        affine.push(begun.elapsed().as_secs_f64() / CALLS as f64);
        stream.synchronize()?;
        let begun = Instant::now();
        for _ in 0..CALLS {
            let mut launch = lent.launch_builder(&function);
            launch.arg(&a).arg(&slice).arg(&target).arg(&n);
            // Safety: the kernel's own arguments.
            unsafe {
                launch.launch(LaunchConfig { grid_dim: (1, 1, 1), block_dim: (256, 1, 1), shared_mem_bytes: 0 })?
            };
        }
        builder.push(begun.elapsed().as_secs_f64() / CALLS as f64);
    }
    eprintln!("affine {:e}", median(affine));
    let (own, bare, builder) = (median(own), median(bare), median(builder));
    println!("{{\"launch\": {own:e}, \"bare\": {bare:e}, \"cudarc\": {builder:e}, \"ratio\": {}}}", own / bare);
    for size in 0..5_u32 {
        let n = [1 << 12, 1 << 16, 1 << 20, 1 << 23, 1 << 26][size as usize];
        let side = [64, 256, 1024, 2048, 4096][size as usize];
        let small = [64, 128, 256, 512, 1024][size as usize];
        let (x, y) = (stream.ones::<f32>([n as usize])?, stream.zeros::<f32>([n as usize])?);
        let out = stream.zeros::<f32>([1])?;
        let (s, t) = (stream.ones::<f32>([(side * side) as usize])?, stream.ones::<f32>([(side * side) as usize])?);
        let square =
            || -> Result<Tensor<f32>, syncscope::error::DeviceError> { stream.ones([(small * small) as usize]) };
        let (a, b, c) = (square()?, square()?, square()?);
        let (blocks, tiles) = (f64::from(n), f64::from(side) * f64::from(side));
        let rows = [
            Row {
                name: "saxpy",
                n,
                launch: Launch::over(n as usize, 256),
                arguments: vec![0.5_f32.into(), (&x).into(), (&y).into(), n.into()],
                bytes: 12.0 * blocks,
                operations: 2.0 * blocks,
            },
            Row {
                name: "sum",
                n,
                launch: Launch::over((n as usize / 4).min(1 << 18), 256),
                arguments: vec![(&x).into(), (&out).into(), n.into()],
                bytes: 4.0 * blocks,
                operations: blocks,
            },
            Row {
                name: "transpose",
                n: side,
                launch: Launch::new([side.div_ceil(32), side.div_ceil(32), 1], [32, 8, 1]),
                arguments: vec![(&s).into(), (&t).into(), side.into()],
                bytes: 8.0 * tiles,
                operations: 0.0,
            },
            Row {
                name: "matmul",
                n: small,
                launch: Launch::new([small / 16, small / 16, 1], [16, 16, 1]),
                arguments: vec![(&a).into(), (&b).into(), (&c).into(), small.into()],
                bytes: 12.0 * f64::from(small).powi(2),
                operations: 2.0 * f64::from(small).powi(3),
            },
        ];
        for row in rows {
            measure(&module, &stream, row)?;
        }
    }
    let nothing = Code::cuda("nothing.cu", "extern \"C\" __global__ void nothing() {}");
    let nothing = device.load(&nothing)?.kernel("nothing")?;
    let launch = Launch::new([1; 3], [32, 1, 1]);
    for cold in [false, true] {
        let clock = DeviceClock::new(&stream)?;
        let clock = if cold { clock.cold()? } else { clock };
        let read = sampler().stopwatches(&clock, || nothing.launch(&stream, launch, ()))?;
        print_row("nothing", 0, cold, &read, None);
        records(&stream, "nothing", 0, || nothing.launch(&stream, launch, ()))?;
    }
    Ok(())
}

fn address(slice: &cudarc::driver::CudaSlice<f32>, stream: &std::sync::Arc<cudarc::driver::CudaStream>) -> u64 {
    use cudarc::driver::DevicePtr;
    slice.device_ptr(stream).0
}

fn sampler() -> Sampler {
    Sampler::new(Protocol::samples(30))
}

fn measure(module: &Module, stream: &syncscope::device::Stream, row: Row<'_>) -> Result<(), Box<dyn Error>> {
    let kernel: Kernel = module.kernel(row.name)?;
    let region = || kernel.launch(stream, row.launch, &row.arguments[..]);
    for cold in [false, true] {
        let clock = DeviceClock::new(stream)?;
        let clock = if cold { clock.cold()? } else { clock };
        let read = sampler().stopwatches(&clock, region)?.moving(row.bytes).computing(row.operations);
        // Two plain events of cudarc around a loop of launches, as is usual.
        let plain = if cold { None } else { Some(plain(stream, region)?) };
        print_row(row.name, row.n, cold, &read, plain);
        if !cold {
            records(stream, row.name, row.n, region)?;
        }
    }
    Ok(())
}

fn records(
    stream: &syncscope::device::Stream,
    name: &str,
    n: u32,
    region: impl Fn() -> Result<(), syncscope::error::DeviceError>,
) -> Result<(), Box<dyn Error>> {
    let device = stream.device();
    let gate = device.gate()?;
    let (_, timeline) = device.record(|| {
        stream.wait_gate(&gate)?;
        (0..60).try_for_each(|_| region())?;
        gate.open();
        stream.synchronize()
    })?;
    let mut spans: Vec<(u64, u64)> =
        timeline.spans.iter().filter(|s| s.name == name).map(|s| (s.start_ns, s.end_ns)).collect();
    spans.sort_unstable();
    let lengths = median(spans.iter().map(|(a, b)| (b - a) as f64).collect());
    let periods = median(spans.windows(2).map(|w| (w[1].0 - w[0].0) as f64).collect());
    println!(
        "{{\"records\": \"{name}\", \"n\": {n}, \"spans\": {}, \"length\": {lengths}, \"period\": {periods}}}",
        spans.len()
    );
    Ok(())
}

fn plain(
    stream: &syncscope::device::Stream,
    region: impl Fn() -> Result<(), syncscope::error::DeviceError>,
) -> Result<f64, Box<dyn Error>> {
    let theirs = stream.lend()?;
    let timing = Some(sys::CUevent_flags::CU_EVENT_DEFAULT);
    let mut all = Vec::new();
    for _ in 0..20 {
        let start = theirs.record_event(timing)?;
        (0..100).try_for_each(|_| region())?;
        let end = theirs.record_event(timing)?;
        all.push(f64::from(start.elapsed_ms(&end)?) / 1e3 / 100.0);
    }
    Ok(median(all))
}

fn print_row(name: &str, n: u32, cold: bool, read: &syncscope::measure::Stopwatches, plain: Option<f64>) {
    let by: Vec<String> = read
        .by
        .iter()
        .map(|reading| {
            let estimate = reading.samples.estimate();
            format!(
                "{{\"clock\": \"{}\", \"calls\": {}, \"median\": {:e}, \"low\": {:e}, \"high\": {:e}}}",
                reading.clock.name(),
                reading.calls,
                estimate.median,
                estimate.low,
                estimate.high
            )
        })
        .collect();
    let plain = plain.map_or("null".to_owned(), |seconds| format!("{seconds:e}"));
    let less = read.without_pauses().unwrap_or(f64::NAN);
    println!(
        "{{\"kernel\": \"{name}\", \"n\": {n}, \"cold\": {cold}, \"plain\": {plain}, \"less\": {less:e}, \"by\": [{}]}}",
        by.join(", ")
    );
    eprintln!("{name} {n} {}\n{read}", if cold { "cold" } else { "hot" });
}
