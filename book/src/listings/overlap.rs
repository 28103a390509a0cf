use syncscope::prelude::*;

const ELEMENTS: usize = 100_000;
const ITERATIONS: usize = 6;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::best()?;
    let (transfer, compute) = (device.stream()?, device.stream()?);

    // An engine without pinned (page-locked) memory uses pageable memory.
    let host_buffer = || {
        let pinned = device.host_buffer::<f32>(HostKind::Pinned, ELEMENTS);
        pinned.or_else(|_| device.host_buffer(HostKind::Pageable, ELEMENTS))
    };
    let mut batches = [host_buffer()?, host_buffer()?];
    let buffer = || transfer.zeros::<f32>([ELEMENTS]);
    let buffers = [buffer()?, buffer()?];
    let filled = [device.event()?, device.event()?];
    let used = [device.event()?, device.event()?];
    device.synchronize()?;

    let mut sums = Vec::new();
    for iteration in 0..ITERATIONS {
        let now = iteration % 2;
        // Waits until the copy from this host buffer is complete.
        batches[now].write()?.fill(iteration as f32);

        // The copy must not overwrite a buffer that a kernel still reads.
        transfer.wait(&used[now])?;
        buffers[now].copy_from(&batches[now])?;
        transfer.record(&filled[now])?;

        // The kernel must not start before the copy is complete.
        compute.wait(&filled[now])?;
        let batch = buffers[now].on(&compute)?;
        sums.push(batch.multiply_scalar(2.0)?.mean()?);
        compute.record(&used[now])?;
    }
    println!("{}", Tensor::stack(&sums)?);
    Ok(())
}
