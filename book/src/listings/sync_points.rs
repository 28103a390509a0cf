use syncscope::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::best()?;
    let stream = device.stream()?;
    let x = stream.normal::<f16>([512, 512])?;
    let w = stream.normal::<f16>([512, 512])?;

    // Enqueued: the host goes on at once.
    let y = x.matmul(&w)?;

    // An implicit barrier: the value has to exist before the host can hold it.
    let first = y.get([0, 0])?.item()?;
    println!("{first}");

    // The same work without and with an explicit barrier, in turn.
    let cost = Sampler::default().sync_between(&device).compare(
        ("async", || {
            x.matmul(&w)?;
            Ok(())
        }),
        ("forced", || {
            x.matmul(&w)?;
            device.synchronize()
        }),
    )?;
    println!("{cost}");
    Ok(())
}
