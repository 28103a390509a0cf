//! To read one number of a tensor, candle copies all that its memory holds: 40 MB here.
use std::time::Instant;

use candle_core::{DType, Device, Result, Tensor};

fn main() -> Result<()> {
    let gpu = Device::new_cuda(0)?;
    let x = Tensor::zeros(10_000_000, DType::F32, &gpu)?;
    for (name, number) in [("x.get(0)", x.get(0)?), ("x.get(0) + 0", (x.get(0)? + 0.0)?)] {
        gpu.synchronize()?;
        let begun = Instant::now();
        number.to_scalar::<f32>()?;
        println!("{name}: {:?}", begun.elapsed());
    }
    Ok(())
}
