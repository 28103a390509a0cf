//! One opened device of a GPU.

use std::sync::{Arc, OnceLock, Weak};

use super::gpu::Gpu;
use super::matmul::Matmul;
use crate::device::engine::Result;
use crate::device::injection::{Injected, Injection};
use crate::device::orphaned::Orphaned;
use crate::error::DeviceError;

/// One opened device.
pub(crate) struct Opened {
    pub(crate) gpu: Arc<Gpu>,
    pub(crate) matmul: Matmul,
    pub(crate) injection: Injection,
    /// What tells of streams whose handles are gone.
    pub(crate) orphaned: Orphaned,
    lost: OnceLock<DeviceError>,
}

impl Opened {
    /// Opens device `index`; the driver has been initialized.
    pub(crate) fn open(index: usize) -> Result<Arc<Self>> {
        let gpu = Gpu::open(index)?;
        gpu.sweep();
        let (matmul, injection, orphaned, lost) = Default::default();
        Ok(Arc::new(Self { gpu, matmul, injection, orphaned, lost }))
    }

    /// Its name: `cuda:0`.
    pub(super) fn name(&self) -> &str {
        self.gpu.name()
    }

    /// Whether streams wait for flags by themselves, and no kernel has to.
    pub(crate) fn waits_for_flags(&self) -> bool {
        self.gpu.waits_for_flags && !self.injection.is_set(Injected::StreamWait)
    }

    /// Fails with the first cause once the device is lost.
    #[inline]
    pub(super) fn check(&self) -> Result<()> {
        self.lost.get().map_or_else(|| self.gpu.context.check_loss(), |cause| Err(cause.clone()))
    }

    /// The device is lost by `cause`.
    pub(crate) fn lose(&self, cause: DeviceError) -> DeviceError {
        self.lost.get_or_init(|| cause).clone()
    }

    /// Blocks until all work of this opened device has completed, and fails if some of it did. By the driver's call for the
    /// whole context, which also waits for other openings of the GPU, and then stream by stream: by these alone where a
    /// capture is in progress or a gate is closed.
    pub(super) fn synchronize(&self) -> Result<()> {
        self.check()?;
        self.gpu.context.synchronize(|| self.gpu.is_held())?;
        let listed = self.gpu.listed_streams();
        let own = || {
            let streams = listed.iter().filter_map(Weak::upgrade);
            streams.filter(|stream| std::ptr::eq(&*stream.device, self))
        };
        // All are waited for before a failure is reported: nothing may still run after this.
        let waited: Vec<_> = own().map(|stream| stream.wait_and_let_go()).collect();
        let (gone, living): (Vec<_>, Vec<_>) = own().partition(|stream| stream.is_closed());
        for stream in &gone {
            stream.leave_failure();
            // Memory of another library that came home has just been freed there. What failed was told of above.
            let _ = stream.wait_unless_idle();
        }
        drop(gone);
        self.gpu.sweep();
        waited.into_iter().collect::<Result<()>>()?;
        self.orphaned.tell()?;
        // The others' failures can still be asked for.
        living.iter().try_for_each(|stream| stream.check_failure())
    }
}
