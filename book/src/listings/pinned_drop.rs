//! Where pinned memory is dropped that no stream has used, the host waits for all work of the GPU.
use std::time::Instant;

use cudarc::driver::{CudaContext, DriverError};

fn main() -> Result<(), DriverError> {
    let context = CudaContext::new(0)?;
    let busy = context.default_stream();
    let (from, mut to) = (busy.alloc_zeros::<u8>(1 << 30)?, busy.alloc_zeros::<u8>(1 << 30)?);
    // Safety: nothing reads it.
    let pinned = unsafe { context.alloc_pinned::<u8>(1 << 20)? };
    (0..50).try_for_each(|_| busy.memcpy_dtod(&from, &mut to))?;
    let begun = Instant::now();
    drop(pinned);
    println!("drop: {:?}", begun.elapsed());
    Ok(())
}
