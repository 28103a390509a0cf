use syncscope::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::best()?;
    // Every device has a second stream. Few machines have a second device.
    let (busy, idle) = (device.stream()?, device.stream()?);

    let iterate = || -> Result<(), DeviceError> {
        let a = busy.normal::<f32>([100, 100])?;
        a.matmul(&a)?;
        Ok(())
    };
    let plan = Protocol::samples(20).with_time_limit(0.5);
    let cost = Sampler::new(plan).sync_between(&device).compare((
        ("other", || {
            iterate()?;
            idle.synchronize()
        }),
        ("same", || {
            iterate()?;
            busy.synchronize()
        }),
    ))?;
    println!("{cost}");
    Ok(())
}
