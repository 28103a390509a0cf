use syncscope::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::best()?;
    let stream = device.stream()?;
    let w = stream.normal::<f32>([256, 256])?;
    let x = stream.normal::<f32>([256, 256])?;
    x.matmul(&w)?;
    stream.synchronize()?;

    // Launched, not read: the losses stay on the device.
    let (losses, free) = host_time(|| {
        let losses = (0..10).map(|_| x.matmul(&w)?.mean());
        losses.collect::<Result<Vec<_>, _>>()
    })?;
    println!("dispatch returned after {free:.6} s");

    // One synchronization point for all of them.
    let (mean, wait) = host_time(|| Tensor::stack(&losses)?.mean()?.item())?;
    println!("mean {mean}, after a wait of {wait:.6} s");

    // Printing synchronizes, too: it needs the elements.
    let (x, y) = (stream.ones::<f32>([1, 2])?, stream.ones::<f32>([1, 2])?);
    println!("{}", x.multiply(&y)?.add_scalar(2.0)?);
    Ok(())
}
