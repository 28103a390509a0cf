use syncscope::prelude::*;

const LOOPS: usize = 100;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::best()?;
    // Every device has a second stream. Few machines have a second device.
    let (busy, idle) = (device.stream()?, device.stream()?);

    let iterate = || -> Result<(), DeviceError> {
        let a = busy.normal::<f32>([100, 100])?;
        a.matmul(&a)?;
        Ok(())
    };
    // Both loops end with their work done.
    let loop_with = |stream: &Stream| {
        (0..LOOPS).try_for_each(|_| iterate().and_then(|()| stream.synchronize())).and_then(|()| busy.synchronize())
    };
    let plan = Protocol::samples(20).with_time_limit(0.5);
    let sampler = Sampler::new(plan).sync_between(&device);
    let cost = sampler.compare((("other", || loop_with(&idle)), ("same", || loop_with(&busy))))?;
    println!("{LOOPS} iterations: {cost}");
    Ok(())
}
