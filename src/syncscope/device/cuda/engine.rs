//! The engine: one opened device behind the common interface, and what is known of it.

use std::sync::Arc;
use std::time::Duration;

use super::ENGINE;
use super::driver::compiler::Compiler;
use super::driver::{Context, Foreign, blas, context, nccl};
use super::loaded::CudaModule;
use super::memory::host::CudaHostMemory;
use super::opened::Opened;
#[cfg(feature = "cupti")]
use super::profiling::cupti::Cupti;
use super::profiling::telemetry::Sensors;
use super::stream::event::CudaEvent;
use super::stream::gate::CudaGate;
use super::stream::{CudaStream, operations};
use crate::device::code::Code;
use crate::device::engine::{
    Engine, EngineEvent, EngineGate, EngineModule, EngineStream, Footprint, HostKind, HostMemory, Result,
};
use crate::device::injection::Injection;
#[cfg(feature = "cupti")]
use crate::device::tracer::BEHIND_A_GATE;
use crate::device::tracer::{TraceSource, Tracer};
use crate::device::{DType, Properties, Telemetry};

/// One opened CUDA device.
pub(super) struct CudaEngine {
    properties: Properties,
    sensors: Option<Sensors>,
    tracer: Arc<Tracer>,
    device: Arc<Opened>,
}

impl CudaEngine {
    /// Opens device `index`; the driver has been initialized.
    pub(super) fn open(index: usize) -> Result<Self> {
        let device = Opened::open(index)?;
        let context = &device.gpu.context;
        let sensors = context.pci_bus_id().ok().and_then(Sensors::find);
        let properties = Properties {
            name: device.name().to_owned(),
            model: context::model(index)?,
            engine: ENGINE,
            memory_bytes: Some(context.memory_bytes()? as u64),
            cache_bytes: Some(context.cache_bytes()?.into()),
            wait_policy: context.wait_policy()?.to_owned(),
            facts: facts(&device, sensors.as_ref())?,
        };
        Ok(Self { properties, sensors, tracer: Arc::default(), device })
    }

    /// A stream of another library.
    pub(super) fn wrap(&self, stream: Foreign) -> Result<Arc<dyn EngineStream>> {
        Ok(Arc::new(CudaStream::wrap(&self.device, stream)?))
    }

    /// As [`raw::launch_loop`](super::raw::launch_loop).
    pub(super) fn launch_loop(&self, stream: &dyn EngineStream, launches: usize) -> Result<Duration> {
        operations::raw_launch_loop(CudaStream::of(stream, &self.device)?, launches)
    }

    /// The context of its GPU.
    pub(super) fn context(&self) -> Result<Arc<Context>> {
        self.device.check().map(|()| self.device.gpu.context.clone())
    }
}

impl Engine for CudaEngine {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn create_stream(&self, _: u32) -> Result<Arc<dyn EngineStream>> {
        Ok(Arc::new(CudaStream::new(&self.device)?))
    }

    fn create_event(&self, timing: bool) -> Result<Arc<dyn EngineEvent>> {
        Ok(Arc::new(CudaEvent::new(&self.device, timing)?))
    }

    fn create_gate(&self) -> Result<Arc<dyn EngineGate>> {
        Ok(Arc::new(CudaGate::new(&self.device)?))
    }

    fn allocate_host(&self, kind: HostKind, dtype: DType, len: usize) -> Result<Box<dyn HostMemory>> {
        Ok(Box::new(CudaHostMemory::new(&self.device, kind, dtype, len)?))
    }

    fn retire_host(&self, memory: Box<dyn HostMemory>, pending: Vec<Arc<dyn EngineEvent>>) {
        if pending.is_empty() { drop(memory) } else { self.device.gpu.retire_host(memory, pending) }
    }

    fn synchronize(&self) -> Result<()> {
        self.device.synchronize()
    }

    fn load(&self, code: &Code) -> Result<Arc<dyn EngineModule>> {
        Ok(Arc::new(CudaModule::load(&self.device, code)?))
    }

    fn check(&self) -> Result<()> {
        self.device.check()
    }

    fn trim(&self) -> Result<()> {
        self.device.check()?;
        self.device.gpu.trim()
    }

    fn footprint(&self) -> Footprint {
        self.device.gpu.footprint()
    }

    fn injection(&self) -> &Injection {
        &self.device.injection
    }

    /// Some more than a thousand on drivers of today (`launch-path.queue.depth` measures it): what is behind a thousand
    /// others is as good as waiting.
    fn launch_queue(&self) -> Option<usize> {
        Some(1000)
    }

    fn tracer(&self) -> &Arc<Tracer> {
        &self.tracer
    }

    /// To begin and end CUPTI's records can wait for the whole GPU.
    fn source(&self) -> TraceSource {
        #[cfg(not(feature = "cupti"))]
        return TraceSource::Events("this build has no CUPTI: the feature `cupti` is off".to_owned());
        #[cfg(feature = "cupti")]
        {
            // Until they are on no gate begins to hold.
            let Some(_making) = self.device.gpu.may_make() else {
                return TraceSource::Events(BEHIND_A_GATE.to_owned());
            };
            match Cupti::begin(&self.device.gpu, &self.tracer) {
                Ok((cupti, label)) => TraceSource::Recorder(Arc::new(cupti), label),
                Err(reason) => TraceSource::Events(reason),
            }
        }
    }

    fn telemetry(&self) -> Result<Option<Telemetry>> {
        Ok(self.sensors.as_ref().and_then(Sensors::read))
    }
}

fn facts(device: &Opened, sensors: Option<&Sensors>) -> Result<Vec<(String, String)>> {
    let unavailable = || "not available".to_owned();
    let (gpu, context) = (&device.gpu, &device.gpu.context);
    let gates = match gpu.waits_for_flags {
        true => "waits of a stream for a word of memory",
        false => "a kernel of one thread that polls a word of memory: this driver has no such wait",
    };
    let facts = [
        ("CUDA driver interface", context::dotted(context::driver_version())),
        ("NVRTC", Compiler::load().map(Compiler::version).unwrap_or_else(|_| unavailable())),
        ("cuBLASLt", blas::version().unwrap_or_else(unavailable)),
        ("architecture", gpu.kernels.architecture.clone()),
        ("multiprocessors", gpu.kernels.multiprocessors.to_string()),
        ("L2 cache (bytes)", context.cache_bytes()?.to_string()),
        ("GPUs of this machine", context::device_count()?.to_string()),
        ("copy engines", context.copy_engines()?.to_string()),
        ("gates", gates.to_owned()),
    ];
    // It is a large library, of use to several GPUs alone.
    let nccl = if context::device_count()? > 1 { nccl::version() } else { None };
    let nccl = nccl.map(|version| ("NCCL", version));
    let settings = sensors.map(Sensors::settings).unwrap_or_default();
    Ok(settings.into_iter().chain(facts).chain(nccl).map(|(name, value)| (name.to_owned(), value)).collect())
}
