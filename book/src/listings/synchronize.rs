use std::time::Duration;

use syncscope::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::best()?;
    let (producer, consumer) = (device.stream()?, device.stream()?);
    let shared = producer.zeros::<f32>([1024])?;
    let copy = consumer.zeros::<f32>([1024])?;
    device.synchronize()?;

    // The producer is busy first, and then writes.
    producer.spin(Duration::from_millis(5))?;
    shared.affine_in_place(1.0, 1.0)?;
    let written = device.event()?;
    producer.record(&written)?;

    // The consumer waits on the device. The host goes on.
    // Without this line the copy might contain zeros.
    consumer.wait(&written)?;
    copy.assign(&shared.on(&consumer)?)?;
    println!("written yet: {}", written.is_complete()?);

    // Synchronizes one stream. `device.synchronize()` waits for all streams.
    let ((), wait) = host_time(|| consumer.synchronize())?;
    let value = copy.get([0])?.item()?;
    println!("waited {wait:.6} s for {value}");
    Ok(())
}
