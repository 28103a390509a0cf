//! In the place of `cupti`, in a build without the feature `cupti`: nothing records what the device does.

use std::sync::Arc;

use crate::device::cuda::gpu::Gpu;
use crate::device::tracer::{ActivitySource, Traced};

/// A recording by CUPTI: there is none.
pub(crate) enum Cupti {}

impl Cupti {
    pub(crate) fn begin(_: &Arc<Gpu>) -> Result<(Self, String), String> {
        Err("this build has no CUPTI: the feature `cupti` is off".to_owned())
    }
}

impl ActivitySource for Cupti {
    fn enter(&self, _: u64) {
        match *self {}
    }

    fn leave(&self) {
        match *self {}
    }

    fn finish(&self) -> Traced {
        match *self {}
    }

    fn abandon(&self) {
        match *self {}
    }
}
