//! The peak rates of a device, to hold others to.

use std::time::Duration;

use super::device_clock::DeviceClock;
use crate::device::Stream;
use crate::error::DeviceError;

/// The greatest rates that were measured on a device: what share of them a kernel reaches says what is left to win.
///
/// # Method
/// Memory: the best of ten copies by a kernel between two tensors of eight times the last cache, at least 64 MiB; what is read and
/// what is written counts. Arithmetic: the best product of square matrices of fp32, whose size doubles from 256 until one takes
/// 5 ms; a multiplication and an addition count as two.
///
/// What it does not cover: caches and the units for smaller types have higher rates, so that a share can be above 100 %.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Peaks {
    /// Of the device's memory.
    pub bytes_per_second: f64,
    /// Of fp32.
    pub flops_per_second: f64,
}

impl Peaks {
    /// Measures them, in well under a second on a GPU.
    ///
    /// ```no_run
    /// use syncscope::prelude::*;
    ///
    /// let stream = Device::open("cuda:0")?.stream()?;
    /// println!("{} GB/s", Peaks::measure(&stream)?.bytes_per_second / 1e9);
    /// # Ok::<(), DeviceError>(())
    /// ```
    ///
    /// # Errors
    /// No room for two such tensors; those of the stream.
    pub fn measure(stream: &Stream) -> Result<Self, DeviceError> {
        const TRIES: usize = 10;
        const LEAST_BYTES: u64 = 64 << 20;
        const LONG: Duration = Duration::from_millis(5);
        let mut clock = DeviceClock::new(stream)?;
        let mut best = |call: &dyn Fn() -> Result<(), DeviceError>| {
            let mut seconds = f64::INFINITY;
            for _ in 0..TRIES {
                seconds = clock.time(call)?.1.min(seconds);
            }
            Ok::<f64, DeviceError>(seconds)
        };
        let bytes = stream.device().properties().cache_bytes.map_or(0, |bytes| 8 * bytes).max(LEAST_BYTES);
        let elements = usize::try_from(bytes).unwrap_or(usize::MAX) / size_of::<f32>();
        let x = stream.ones::<f32>([elements])?;
        let seconds = best(&|| x.affine(1.0, 1.0).map(drop))?;
        let bytes_per_second = 2.0 * bytes as f64 / seconds;
        drop(x);
        let (mut flops_per_second, mut size) = (0.0_f64, 256_usize);
        loop {
            let x = stream.ones::<f32>([size, size])?;
            let seconds = best(&|| x.matmul(&x).map(drop))?;
            flops_per_second = flops_per_second.max(2.0 * (size as f64).powi(3) / seconds);
            if seconds >= LONG.as_secs_f64() {
                return Ok(Self { bytes_per_second, flops_per_second });
            }
            size *= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;

    #[test]
    fn a_device_has_peaks() {
        let peaks = Peaks::measure(&Device::open("cpu:0").unwrap().stream().unwrap()).unwrap();
        assert!(peaks.bytes_per_second > 1e6 && peaks.flops_per_second > 1e6, "{peaks:?}");
    }
}
