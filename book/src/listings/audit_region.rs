use syncscope::prelude::*;
use syncscope_audit::{self as audit, Budget};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::best()?;
    let stream = device.stream()?;
    let (sum, region) = audit::region(&device, || stream.ones::<f32>([256, 256])?.sum()?.item())?;
    println!("{sum}");
    for place in &region.report.places {
        println!("{} {}: {} ns. {}", place.place, place.call, place.total_ns, place.advice);
    }
    // One wait is expected, the read.
    let budget = Budget { waits: Some(1), ..Budget::default() };
    if let Some(complaint) = region.complaint(&budget) {
        println!("{complaint}");
    }
    Ok(())
}
