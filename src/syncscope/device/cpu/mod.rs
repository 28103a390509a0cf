//! The CPU engine: really asynchronous, so that what a host and a device do to each other can be learned and tested
//! where there is no GPU.
//!
//! A stream is a queue and a worker thread that takes work from it in order; enqueueing returns as soon as the work
//! stands in the queue. Events, gates and synchronization points mean what they mean on a GPU. A matmul or a sum runs on its
//! stream's one thread, so that two streams overlap as far as the machine has cores, and results repeat bit for bit.
//!
//! It does not pretend to be a GPU: there is no link to copy across (a copy is a copy within memory), so pinned
//! memory and its kind are answered with [`NotApplicable`](crate::error::DeviceError::NotApplicable).

mod clock;
mod kernels;
mod memory;
mod queue;
mod stream;

use std::sync::{Arc, Mutex, OnceLock, Weak};

use super::engine::{Engine, EngineEvent, EngineGate, EngineStream, Footprint, HostKind, HostMemory, Result};
use super::injection::{self, Injected, Injection};
use super::orphaned::Orphaned;
use super::tracer::{TraceSource, Tracer};
use super::{DType, Listing, Properties, Telemetry};
use crate::affinity;
use crate::device::lock;
use crate::error::DeviceError;
use clock::{CpuEvent, CpuGate};
use memory::CpuHostMemory;
use stream::CpuStream;

/// How many CPU devices there are. A CPU device is a set of worker threads, so the number is a choice: enough to try
/// code for several devices.
pub const DEVICES: usize = 4;

/// The CPU devices there are.
pub(crate) fn list() -> Vec<Listing> {
    (0..DEVICES).map(|index| Listing { name: name(index), model: MODEL.to_owned() }).collect()
}

/// Opens CPU device `index`.
pub(crate) fn open(index: usize) -> Arc<dyn Engine> {
    let threads = affinity::processors();
    Arc::new(CpuEngine {
        properties: Properties {
            name: name(index),
            model: MODEL.to_owned(),
            engine: "cpu",
            memory_bytes: None,
            cache_bytes: None,
            wait_policy: "condition variable".to_owned(),
            facts: vec![
                ("worker threads".to_owned(), "one a stream".to_owned()),
                ("logical processors".to_owned(), threads.to_string()),
                ("matmul".to_owned(), "ndarray over matrixmultiply, fp32 arithmetic, one thread a stream".to_owned()),
            ],
        },
        streams: Mutex::default(),
        device: Arc::new(CpuDevice {
            name: name(index),
            tracer: Arc::default(),
            injection: Injection::default(),
            lost: OnceLock::new(),
            orphaned: Orphaned::default(),
        }),
    })
}

/// What the streams, events and memory of one opened device share.
struct CpuDevice {
    name: String,
    tracer: Arc<Tracer>,
    injection: Injection,
    lost: OnceLock<DeviceError>,
    /// What tells of streams whose handles are gone.
    orphaned: Orphaned,
}

impl CpuDevice {
    /// Fails with the first cause once the device is lost.
    fn check(&self) -> Result<()> {
        if self.injection.strikes(Injected::DeviceLoss) {
            self.lost.get_or_init(|| self.injected("DeviceLoss"));
        }
        self.lost.get().map_or(Ok(()), |cause| Err(cause.clone()))
    }

    /// Fails if a test asked for it.
    fn may_fail(&self, what: Injected, call: &'static str) -> Result<()> {
        if self.injection.strikes(what) { Err(self.injected(call)) } else { Ok(()) }
    }

    fn injected(&self, call: &'static str) -> DeviceError {
        DeviceError::call_failed(self.name.clone(), call, injection::REASON)
    }
}

const MODEL: &str = "CPU engine";

fn name(index: usize) -> String {
    format!("cpu:{index}")
}

/// One CPU device: the streams that were made on it and still have a handle or work.
struct CpuEngine {
    properties: Properties,
    streams: Mutex<Vec<Weak<queue::StreamInner>>>,
    device: Arc<CpuDevice>,
}

impl Engine for CpuEngine {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn create_stream(&self, number: u32) -> Result<Arc<dyn EngineStream>> {
        self.device.check()?;
        let stream = CpuStream::start(&self.device, number)?;
        let mut streams = lock(&self.streams);
        streams.retain(|s| s.strong_count() > 0);
        streams.push(Arc::downgrade(stream.inner()));
        Ok(Arc::new(stream))
    }

    fn create_event(&self, timing: bool) -> Result<Arc<dyn EngineEvent>> {
        self.device.check()?;
        Ok(Arc::new(CpuEvent::new(&self.device, timing)))
    }

    fn create_gate(&self) -> Result<Arc<dyn EngineGate>> {
        self.device.check()?;
        Ok(Arc::new(CpuGate::new(&self.device)))
    }

    fn allocate_host(&self, kind: HostKind, dtype: DType, len: usize) -> Result<Box<dyn HostMemory>> {
        match kind {
            HostKind::Pageable => Ok(Box::new(CpuHostMemory::new(&self.device, dtype, len)?)),
            HostKind::Pinned | HostKind::WriteCombined => Err(DeviceError::not_applicable(
                format!("{kind} host memory"),
                self.properties.name.clone(),
                "the workers share the host's memory: no device reads it across a link",
            )),
        }
    }

    /// Jobs keep what they use.
    fn retire_host(&self, memory: Box<dyn HostMemory>, _: Vec<Arc<dyn EngineEvent>>) {
        drop(memory);
    }

    fn synchronize(&self) -> Result<()> {
        self.device.check()?;
        let streams: Vec<_> = lock(&self.streams).iter().filter_map(Weak::upgrade).collect();
        // All are waited for before a failure is reported: nothing may still run after this.
        streams.iter().for_each(|stream| stream.wait());
        let (gone, living): (Vec<_>, Vec<_>) = streams.into_iter().partition(|stream| stream.is_closed());
        gone.iter().for_each(|stream| stream.leave_failure());
        self.device.orphaned.tell()?;
        // The others' failures can still be asked for.
        living.iter().try_for_each(|stream| stream.check_failure())
    }

    fn check(&self) -> Result<()> {
        self.device.check()
    }

    /// Nothing is cached.
    fn trim(&self) -> Result<()> {
        self.device.check()
    }

    fn footprint(&self) -> Footprint {
        let streams = lock(&self.streams).iter().filter(|stream| stream.strong_count() > 0).count();
        Footprint { streams, pinned_bytes: 0 }
    }

    fn injection(&self) -> &Injection {
        &self.device.injection
    }

    fn tracer(&self) -> &Arc<Tracer> {
        &self.device.tracer
    }

    fn source(&self) -> TraceSource {
        TraceSource::Engine("the worker threads' own clock readings".to_owned())
    }

    fn telemetry(&self) -> Result<Option<Telemetry>> {
        Ok(None)
    }
}
