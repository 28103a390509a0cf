//! The first `new_stream` of a context waits for all work of the GPU, and the next one does not.
use std::time::Instant;

use cudarc::driver::{CudaContext, DriverError};

fn main() -> Result<(), DriverError> {
    let (busy, context) = (CudaContext::new(0)?.default_stream(), CudaContext::new(0)?);
    let (from, mut to) = (busy.alloc_zeros::<u8>(1 << 30)?, busy.alloc_zeros::<u8>(1 << 30)?);
    (0..50).try_for_each(|_| busy.memcpy_dtod(&from, &mut to))?;
    for name in ["first", "second"] {
        let begun = Instant::now();
        std::mem::forget(context.new_stream()?);
        println!("{name}: {:?}", begun.elapsed());
    }
    Ok(())
}
