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

    // The same work with and without explicit synchronization, in alternation.
    let cost = Sampler::default().sync_between(&device).compare((
        ("async", || x.matmul(&w).map(drop)),
        ("forced", || {
            x.matmul(&w)?;
            device.synchronize()
        }),
    ))?;
    println!("{cost}");
    Ok(())
}
