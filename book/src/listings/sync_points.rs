use syncscope::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::best()?;
    let stream = device.stream()?;
    let x = stream.normal::<f16>([512, 512])?;
    let w = stream.normal::<f16>([512, 512])?;

    // Launched: the call returns at once.
    let y = x.matmul(&w)?;

    // Implicit synchronization: the value must exist before the host can read it.
    let first = y.get([0, 0])?.item()?;
    println!("{first}");

    // The same matmuls with one wait behind the last, and with a wait behind each, in alternation.
    let cost = Sampler::default().sync_between(&device).compare((
        ("one wait", || {
            (0..8).try_for_each(|_| x.matmul(&w).map(drop))?;
            device.synchronize()
        }),
        ("eight waits", || {
            (0..8).try_for_each(|_| {
                x.matmul(&w)?;
                device.synchronize()
            })
        }),
    ))?;
    println!("{cost}");
    Ok(())
}
