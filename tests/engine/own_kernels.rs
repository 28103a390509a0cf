//! What is promised of kernels of one's own: they are found, checked, launched, captured and recorded as the library's
//! operations are; an engine without them says so.

use std::fs;

use libtest_mimic::Failed;
use syncscope::device::{Argument, Code, Device, Kernel, Launch};
use syncscope::error::DeviceError;

use crate::{Check, ensure};

pub(crate) const CHECKS: &[(&str, Check)] = &[
    ("a_kernel_of_ones_own_computes_from_tensors_and_numbers", computes),
    ("a_launch_that_does_not_fit_is_refused_by_its_argument_or_bound", refuses),
    ("a_kernel_is_found_by_its_name_in_the_source", finds),
    ("a_source_that_does_not_compile_is_shown_with_its_line", compiles),
    ("a_kernel_runs_behind_gates_in_graphs_and_recordings", runs_everywhere),
    ("a_kernel_may_take_all_shared_memory_of_a_block", shared_memory),
    ("a_source_finds_what_it_includes_beside_it", includes),
];

const SAXPY: &str = r#"
extern "C" __global__ void saxpy(float a, const float* x, float* y, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
"#;

/// Whether a device runs kernels of one's own; that it says so where it does not.
fn runs_kernels(device: &Device) -> Result<bool, Failed> {
    match device.load(&Code::cuda("saxpy.cu", SAXPY)) {
        Ok(_) => Ok(true),
        Err(DeviceError::NotApplicable { what, .. }) if what == "`saxpy.cu`" => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn saxpy(device: &Device) -> Result<Kernel, DeviceError> {
    device.load(&Code::cuda("saxpy.cu", SAXPY))?.kernel("saxpy")
}

fn computes(device: &Device) -> Result<(), Failed> {
    if !runs_kernels(device)? {
        return Ok(());
    }
    let (stream, kernel) = (device.stream()?, saxpy(device)?);
    ensure(kernel.parameters() == [4, 8, 8, 4], || format!("{kernel:?}"))?;
    let (x, y) = (stream.full::<f32>([1000], 2.0)?, stream.ones::<f32>([1000])?);
    for _ in 0..3 {
        kernel.launch(&stream, Launch::over(999, 128), (0.5_f32, &x, &y, 999_u32))?;
    }
    let values = y.to_vec()?;
    ensure(values[..999].iter().all(|&y| y == 4.0) && values[999] == 1.0, || format!("{:?}", &values[990..]))?;
    let arguments = [Argument::from(1.0_f32), (&x).into(), (&y).into(), 1000_u32.into()];
    kernel.launch(&stream, Launch::over(1000, 1024), &arguments[..])?;
    ensure(y.get([999])?.item()? == 3.0, || "a slice of arguments".to_owned())
}

fn refuses(device: &Device) -> Result<(), Failed> {
    if !runs_kernels(device)? {
        return Ok(());
    }
    let (stream, other, kernel) = (device.stream()?, device.stream()?, saxpy(device)?);
    let (x, y) = (stream.ones::<f32>([64])?, other.ones::<f32>([64])?);
    let fits = Launch::over(64, 64);
    let refused = [
        (kernel.launch(&stream, fits, (1.0_f32, &x)), "takes 4 arguments, and 2 are given"),
        (
            kernel.launch(&stream, fits, (1.0_f64, &x, &x, 64_u32)),
            "argument 1 of `saxpy` has 8 bytes, and the kernel takes 4",
        ),
        (kernel.launch(&stream, fits, (1.0_f32, &x, &y, 64_u32)), ".on(&stream)"),
        (kernel.launch(&stream, Launch::over(64, 2048), (1.0_f32, &x, &x, 64_u32)), "has 2048 threads"),
        (kernel.launch(&stream, Launch::over(0, 64), (1.0_f32, &x, &x, 64_u32)), "nothing to run"),
        (
            kernel.launch(&stream, Launch::new([1, 70_000, 1], [1; 3]), (1.0_f32, &x, &x, 64_u32)),
            "the device takes grids up to",
        ),
        (kernel.launch(&stream, fits.with_shared(1 << 30), (1.0_f32, &x, &x, 64_u32)), "bytes of shared memory"),
    ];
    for (outcome, says) in refused {
        let said = outcome.err().map(|error| error.to_string()).unwrap_or_default();
        ensure(said.contains(says), || format!("{said:?} does not say {says:?}"))?;
    }
    kernel.launch(&stream, fits, (1.0_f32, &x, &y.on(&stream)?, 64_u32))?;
    ensure(x.add(&x)?.to_vec()? == [2.0; 64], || "the stream goes on".to_owned())
}

fn finds(device: &Device) -> Result<(), Failed> {
    if !runs_kernels(device)? {
        return Ok(());
    }
    let source = "__global__ void one(int* x) { *x = 1; } __global__ void two(int* x) { *x = 2; }
        template <typename T> __global__ void three(T* x) { *x = 3; }
        template __global__ void three<int>(int*); template __global__ void three<long>(long*);";
    let module = device.load(&Code::cuda("names.cu", source))?;
    ensure(module.kernels()?.len() == 4, || format!("{:?}", module.kernels()))?;
    module.kernel("two")?;
    module.kernel("_Z3onePi")?;
    for (name, says) in [("four", "it has: "), ("three", "several kernels `three`"), ("on", "no kernel `on`")] {
        let said = module.kernel(name).err().map(|error| error.to_string()).unwrap_or_default();
        ensure(said.contains(says), || format!("{name}: {said}"))?;
    }
    // What was compiled is loaded as an image, too.
    let again = device.load(&Code::image("names.cubin", module.image()))?;
    ensure(again.kernels()?.len() == 4, || "a cubin".to_owned())?;
    let ptx = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing()\n{\nret;\n}\n";
    let nothing = device.load(&Code::image("nothing.ptx", ptx))?.kernel("nothing")?;
    nothing.launch(&device.stream()?, Launch::new([1; 3], [1; 3]), ())?;
    let broken = device.load(&Code::image("broken.ptx", "no code at all"));
    ensure(matches!(broken, Err(DeviceError::CallFailed { .. })), || format!("{broken:?}"))
}

fn compiles(device: &Device) -> Result<(), Failed> {
    if !runs_kernels(device)? {
        return Ok(());
    }
    let broken = "__global__ void broken(float* x) {\n    x[0] = undefined_name;\n}\n";
    let said = device.load(&Code::cuda("broken.cu", broken)).err().map(|error| error.to_string()).unwrap_or_default();
    for says in ["broken.cu(2)", "undefined_name", "x[0] = undefined_name;"] {
        ensure(said.contains(says), || format!("{says:?} is not in {said}"))?;
    }
    let warned = Code::cuda("options.cu", "__global__ void scaled(int* x) { *x = WIDTH; }").option("-DWIDTH=7");
    let (stream, kernel) = (device.stream()?, device.load(&warned)?.kernel("scaled")?);
    let x = stream.zeros::<i64>([1])?;
    kernel.launch(&stream, Launch::new([1; 3], [1; 3]), (&x,))?;
    ensure(x.item()? == 7, || "an option".to_owned())
}

fn runs_everywhere(device: &Device) -> Result<(), Failed> {
    if !runs_kernels(device)? {
        return Ok(());
    }
    let (stream, kernel) = (device.stream()?, saxpy(device)?);
    let (x, y) = (stream.ones::<f32>([256])?, stream.zeros::<f32>([256])?);
    let launch = || kernel.launch(&stream, Launch::over(256, 256), (1.0_f32, &x, &y, 256_u32));
    let gate = device.gate()?;
    stream.wait_gate(&gate)?;
    launch()?;
    ensure(!stream.is_complete()?, || "a gate holds a launch".to_owned())?;
    gate.open();
    let (_, graph) = stream.capture(|| launch().and_then(|()| launch()))?;
    ensure(graph.len() == 2, || format!("{graph:?}"))?;
    graph.launch()?;
    graph.launch()?;
    ensure(y.to_vec()? == [5.0; 256], || "launches in a graph".to_owned())?;
    let (_, timeline) = device.record(launch)?;
    let ran = timeline.spans.iter().filter(|span| span.stream == Some(stream.number())).count();
    ensure(ran >= 2, || format!("{:?}", timeline.spans))?;
    // Used in a graph alone, of which the tensor is kept.
    let graph = {
        let z = stream.ones::<f32>([256])?;
        stream.capture(|| kernel.launch(&stream, Launch::over(256, 256), (1.0_f32, &z, &y, 256_u32)))?.1
    };
    (0..4).try_for_each(|_| stream.full::<f32>([256], 9.0).map(drop))?;
    graph.launch()?;
    stream.synchronize()?;
    Ok(())
}

fn shared_memory(device: &Device) -> Result<(), Failed> {
    if !runs_kernels(device)? {
        return Ok(());
    }
    let source = "extern \"C\" __global__ void last(int* out, unsigned n) {
        extern __shared__ int kept[];
        for (unsigned i = threadIdx.x; i < n; i += blockDim.x) kept[i] = i;
        __syncthreads();
        if (threadIdx.x == 0) *out = kept[n - 1];
    }";
    let (stream, module) = (device.stream()?, device.load(&Code::cuda("shared.cu", source))?);
    // What one handle of it was given less is not taken from the other.
    let (kernel, again) = (module.kernel("last")?, module.kernel("last")?);
    let out = stream.zeros::<i64>([1])?;
    for (kernel, bytes) in
        [(&kernel, 4 << 10), (&kernel, 96 << 10), (&again, 64 << 10), (&kernel, 80 << 10), (&kernel, 96 << 10)]
    {
        kernel.launch(&stream, Launch::new([1; 3], [256, 1, 1]).with_shared(bytes), (&out, bytes / 4))?;
        ensure(out.item()? == i64::from(bytes / 4 - 1), || format!("{bytes} bytes"))?;
    }
    Ok(())
}

fn includes(device: &Device) -> Result<(), Failed> {
    if !runs_kernels(device)? {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let (stream, x) = (device.stream()?, device.stream()?.zeros::<i64>([1])?);
    let x = x.on(&stream)?;
    for value in [3, 4] {
        fs::write(folder.path().join("value.h"), format!("#define VALUE {value}\n"))?;
        let source = folder.path().join("includes.cu");
        fs::write(&source, "#include \"value.h\"\nextern \"C\" __global__ void set(int* x) { *x = VALUE; }\n")?;
        let kernel = device.load(&Code::read(&source)?)?.kernel("set")?;
        kernel.launch(&stream, Launch::new([1; 3], [1; 3]), (&x,))?;
        ensure(x.item()? == value, || format!("what was included before is not in place of {value}"))?;
    }
    ensure(Code::read(folder.path().join("none.cu")).is_err(), || "a file that is not there".to_owned())
}
