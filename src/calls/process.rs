//! What a process does once before its first work on a device is done: the steps, each timed.
//!
//! They are a process's first use of the device: whoever has used it before finds most of them done. On a GPU the first ones
//! are the driver's own, before this library begins: loading it, the context, the machine code of a kernel (compiled, or from
//! the library's folder of compiled kernels), its module, its first launches. The others are this library's.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use syncscope::device::raw::{self, Context};
use syncscope::device::{Device, HostKind};
use syncscope::error::DeviceError;
use syncscope::measure::host_time;

use crate::{Result, cuda};

/// The elements of a buffer of a megabyte.
const MEGABYTE: usize = (1 << 20) / size_of::<f32>();

/// The rows and columns of the first matrices.
const SIZE: usize = 256;

/// What the steps took in a process.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct FirstSteps {
    /// The seconds of each step, by its name.
    pub seconds: BTreeMap<String, f64>,
    /// Why a step is not here, by its name.
    pub absent: BTreeMap<String, String>,
    /// From the beginning of the first to the end of the last.
    pub total: f64,
}

impl FirstSteps {
    /// The driver's own steps, in their order.
    const OF_DRIVER: [&'static str; 7] = ["driver", "context", "code", "module", "function", "launch", "launch-again"];

    /// Makes the steps on the device of this name; nothing in this process has used it before.
    ///
    /// # Errors
    /// That of a step which has to be there for the others.
    pub fn made(name: &str) -> Result<Self> {
        let start = Instant::now();
        let mut steps = Self::default();
        // The driver's context lives until the last step is done.
        let context = steps.of_driver(name)?;
        let device = steps.timed("open", || Device::open(name))?;
        steps.of_library(&device)?;
        steps.total = start.elapsed().as_secs_f64();
        drop(context);
        Ok(steps)
    }

    /// The driver's own, on a device that stands on one.
    fn of_driver(&mut self, name: &str) -> Result<Option<Arc<Context>>> {
        let Some(index) = name.strip_prefix("cuda:").and_then(|index| index.parse().ok()) else {
            let absent = Self::OF_DRIVER.iter().map(|step| ((*step).to_owned(), NO_DRIVER.to_owned()));
            self.absent.extend(absent);
            return Ok(None);
        };
        self.timed("driver", raw::device_count)?;
        let context = self.timed("context", || Context::retain(index).map(Arc::new))?;
        let image = self.timed("code", || raw::image(&context, "spin.cu"))?;
        let kernel = cuda::first_kernel(&context, &image)?;
        self.seconds.extend(Self::OF_DRIVER[3..].iter().map(|step| (*step).to_owned()).zip(kernel));
        Ok(Some(context))
    }

    fn of_library(&mut self, device: &Device) -> Result<()> {
        let stream = device.stream()?;
        let x = self.timed("memory", || {
            let x = stream.zeros::<f32>([MEGABYTE])?;
            stream.synchronize().map(|()| x)
        })?;
        let a = stream.zeros::<f32>([SIZE, SIZE])?;
        stream.synchronize()?;
        self.timed("product", || {
            let product = a.matmul(&a)?;
            stream.synchronize().map(|()| product)
        })?;
        self.timed("graph", || {
            let (_, graph) = stream.capture(|| x.affine_in_place(1.0, 1.0))?;
            graph.launch()?;
            stream.synchronize().map(|()| graph)
        })?;
        let pinned = self.timed("pinned", || device.host_buffer::<f32>(HostKind::Pinned, MEGABYTE));
        let buffer = match pinned {
            Err(DeviceError::NotApplicable { reason, .. }) => {
                self.absent.insert("pinned".to_owned(), reason);
                device.host_buffer::<f32>(HostKind::Pageable, MEGABYTE)?
            }
            other => other?,
        };
        self.timed("copy", || {
            x.copy_from(&buffer)?;
            stream.synchronize()
        })
    }

    fn timed<T>(&mut self, step: &'static str, make: impl FnOnce() -> Result<T>) -> Result<T> {
        let (made, seconds) = host_time(make)?;
        self.seconds.insert(step.to_owned(), seconds);
        Ok(made)
    }
}

/// Why the driver's own steps are not here.
const NO_DRIVER: &str = "this engine stands on no driver";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_is_there_or_says_why_it_is_not_and_the_total_holds_all() {
        let steps = FirstSteps::made("cpu:0").unwrap();
        let of_library = ["open", "memory", "product", "graph", "pinned", "copy"];
        for name in FirstSteps::OF_DRIVER.into_iter().chain(of_library) {
            assert!(steps.seconds.contains_key(name) != steps.absent.contains_key(name), "{name}: {steps:?}");
        }
        assert!(steps.total >= steps.seconds.values().sum::<f64>(), "{steps:?}");
    }
}
