//! The engine: one opened device behind the common interface, and what is known of it.

use std::sync::Arc;
use std::time::Duration;

use cudarc::cublaslt;
use cudarc::driver::sys::{self, CUctx_flags, CUdevice_attribute};

use crate::device::cuda::ENGINE;
use crate::device::cuda::context::Context;
use crate::device::cuda::driver::libraries::Library;
use crate::device::cuda::driver::primary;
use crate::device::cuda::kernels::compiler::Compiler;
use crate::device::cuda::memory::host::CudaHostMemory;
use crate::device::cuda::profiling::cupti::Cupti;
use crate::device::cuda::profiling::telemetry::Sensors;
use crate::device::cuda::stream::CudaStream;
use crate::device::cuda::stream::event::CudaEvent;
use crate::device::cuda::stream::gate::CudaGate;
use crate::device::cuda::stream::operations;
use crate::device::engine::{Engine, EngineEvent, EngineGate, EngineStream, HostKind, HostMemory, Result};
use crate::device::tracer::{Source, Tracer};
use crate::device::{DType, Properties, Telemetry};

/// One opened CUDA device.
pub(crate) struct CudaEngine {
    properties: Properties,
    sensors: Option<Sensors>,
    tracer: Arc<Tracer>,
    context: Arc<Context>,
}

impl CudaEngine {
    /// Opens device `index`; the driver has been initialized.
    pub(crate) fn open(index: usize) -> Result<Self> {
        let context = Arc::new(Context::open(index)?);
        let sensors = context.primary.pci_bus_id().ok().and_then(Sensors::find);
        let mut memory = 0;
        // Safety: writes one size.
        let status = unsafe { sys::cuDeviceTotalMem_v2(&mut memory, context.primary.device()) };
        context.check("cuDeviceTotalMem", status)?;
        let properties = Properties {
            name: context.primary.name().to_owned(),
            model: primary::model(index)?,
            engine: ENGINE,
            memory_bytes: Some(memory as u64),
            wait_policy: wait_policy(&context)?.to_owned(),
            facts: facts(&context, sensors.as_ref())?,
        };
        Ok(Self { properties, sensors, tracer: Arc::default(), context })
    }
}

impl Engine for CudaEngine {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn create_stream(&self, _: u32) -> Result<Arc<dyn EngineStream>> {
        Ok(Arc::new(CudaStream::new(self.context.clone())?))
    }

    fn create_event(&self, timing: bool) -> Result<Arc<dyn EngineEvent>> {
        Ok(Arc::new(CudaEvent::new(self.context.clone(), timing)?))
    }

    fn create_gate(&self) -> Result<Arc<dyn EngineGate>> {
        Ok(Arc::new(CudaGate::new(self.context.clone())?))
    }

    fn allocate_host(&self, kind: HostKind, dtype: DType, len: usize) -> Result<Box<dyn HostMemory>> {
        Ok(Box::new(CudaHostMemory::new(&self.context, kind, dtype, len)?))
    }

    fn synchronize(&self) -> Result<()> {
        self.context.bind()?;
        self.context.synchronize()
    }

    fn tracer(&self) -> &Arc<Tracer> {
        &self.tracer
    }

    fn source(&self) -> Source {
        match Cupti::begin(&self.context.primary) {
            Ok((cupti, label)) => Source::Recorder(Arc::new(cupti), label),
            Err(reason) => Source::Events(reason),
        }
    }

    fn telemetry(&self) -> Result<Option<Telemetry>> {
        Ok(self.sensors.as_ref().and_then(Sensors::read))
    }

    fn raw_launch_loop(&self, stream: &dyn EngineStream, launches: usize) -> Result<Duration> {
        operations::raw_launch_loop(CudaStream::of(stream, &self.context)?.queue(), launches)
    }
}

/// How a host thread waits in this context: whoever made it chose.
fn wait_policy(context: &Context) -> Result<&'static str> {
    let mut flags = 0;
    // Safety: writes one word; the context is current.
    context.check("cuCtxGetFlags", unsafe { sys::cuCtxGetFlags(&mut flags) })?;
    Ok(policy(flags))
}

fn policy(flags: u32) -> &'static str {
    const SPIN: u32 = CUctx_flags::CU_CTX_SCHED_SPIN as u32;
    const YIELD: u32 = CUctx_flags::CU_CTX_SCHED_YIELD as u32;
    const BLOCKING: u32 = CUctx_flags::CU_CTX_SCHED_BLOCKING_SYNC as u32;
    match flags & CUctx_flags::CU_CTX_SCHED_MASK as u32 {
        SPIN => "spin",
        YIELD => "yield",
        BLOCKING => "blocking",
        _ => "auto (spin when there are at least as many processors as contexts, else yield)",
    }
}

fn facts(context: &Context, sensors: Option<&Sensors>) -> Result<Vec<(String, String)>> {
    let unavailable = || "not available".to_owned();
    let attribute = |attribute| context.primary.attribute(attribute).map(|value| value.to_string());
    // What NVML alone knows; what it does not tell is no fact.
    let sensed = [
        ("driver", sensors.and_then(Sensors::driver_version)),
        ("fingerprint", sensors.and_then(Sensors::fingerprint)),
    ];
    let sensed = sensed.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let facts = [
        ("CUDA driver interface", primary::dotted(primary::driver_version())),
        ("NVRTC", Compiler::load().map(Compiler::version).unwrap_or_else(|_| unavailable())),
        ("cuBLASLt", cublaslt_version().unwrap_or_else(unavailable)),
        ("architecture", context.kernels.architecture().to_owned()),
        ("multiprocessors", context.kernels.multiprocessors().to_string()),
        ("L2 cache (bytes)", attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?),
        ("GPUs of this machine", primary::device_count()?.to_string()),
        ("copy engines", attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT)?),
    ];
    Ok(sensed.chain(facts).map(|(name, value)| (name.to_owned(), value)).collect())
}

/// The version: `13.1.0`.
fn cublaslt_version() -> Option<String> {
    if !Library::CublasLt.is_present() {
        return None;
    }
    // Safety: the library is there; the call only returns a number.
    let version = unsafe { cublaslt::sys::cublasLtGetVersion() };
    Some(cublas_version(version))
}

fn cublas_version(version: usize) -> String {
    format!("{}.{}.{}", version / 10_000, version / 100 % 100, version % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_policy_is_read_from_the_scheduling_bits_alone() {
        assert_eq!([policy(8 | 1), policy(2), policy(16 | 4)], ["spin", "yield", "blocking"]);
        assert!(policy(8).starts_with("auto"));
    }

    #[test]
    fn versions_are_shown_as_their_makers_write_them() {
        assert_eq!(cublas_version(130_100), "13.1.0");
        assert_eq!(cublas_version(120_401), "12.4.1");
        assert_eq!(primary::dotted(12_090), "12.9");
    }
}
