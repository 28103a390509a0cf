//! The CPU engine: really asynchronous, so that what a host and a device do to each other can be learned and tested
//! where there is no GPU.
//!
//! A stream is a queue and a worker thread that takes work from it in order; enqueueing returns as soon as the work
//! stands in the queue. Events, gates and barriers mean what they mean on a GPU. A product or a sum runs on its
//! stream's one thread, so that two streams overlap as far as the machine has cores, and results repeat bit for bit.
//!
//! It does not pretend to be a GPU: there is no link to copy across (a copy is a copy within memory), so pinned
//! memory and its kind are answered with [`NotApplicable`](crate::error::DeviceError::NotApplicable).

mod clock;
mod kernels;
mod memory;
mod stream;

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use super::engine::{Engine, EngineEvent, EngineGate, EngineStream, HostKind, HostMemory, Result};
use super::tracer::{Source, Tracer};
use super::{DType, Listing, Properties, Telemetry};
use crate::error::DeviceError;
use clock::{CpuEvent, CpuGate};
use memory::CpuHostMemory;
use stream::CpuStream;

/// How many CPU devices there are. A CPU device is a set of worker threads, so the number is a choice: enough to try
/// code for several devices.
pub(crate) const DEVICES: usize = 4;

/// The CPU devices there are.
pub(crate) fn list() -> Vec<Listing> {
    (0..DEVICES).map(|index| Listing { name: name(index), model: MODEL.to_owned() }).collect()
}

/// Opens CPU device `index`.
pub(crate) fn open(index: usize) -> Arc<dyn Engine> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    Arc::new(CpuEngine {
        properties: Properties {
            name: name(index),
            model: MODEL.to_owned(),
            engine: "cpu",
            memory_bytes: None,
            wait_policy: "condition variable".to_owned(),
            facts: vec![
                ("worker threads".to_owned(), "one a stream".to_owned()),
                ("logical processors".to_owned(), threads.to_string()),
                ("matmul".to_owned(), "ndarray over matrixmultiply, fp32 arithmetic, one thread a stream".to_owned()),
            ],
        },
        streams: Mutex::default(),
        tracer: Arc::default(),
    })
}

const MODEL: &str = "CPU engine";

fn name(index: usize) -> String {
    format!("cpu:{index}")
}

/// One CPU device: the streams that were made on it and still have a handle or work.
struct CpuEngine {
    properties: Properties,
    streams: Mutex<Vec<Weak<stream::StreamInner>>>,
    tracer: Arc<Tracer>,
}

impl Engine for CpuEngine {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn create_stream(&self, number: u32) -> Result<Arc<dyn EngineStream>> {
        let stream = CpuStream::start(&self.properties.name, number, &self.tracer)?;
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.retain(|s| s.strong_count() > 0);
        streams.push(Arc::downgrade(stream.queue()));
        Ok(Arc::new(stream))
    }

    fn create_event(&self, timing: bool) -> Result<Arc<dyn EngineEvent>> {
        Ok(Arc::new(CpuEvent::new(timing)))
    }

    fn create_gate(&self) -> Result<Arc<dyn EngineGate>> {
        Ok(Arc::new(CpuGate::default()))
    }

    fn allocate_host(&self, kind: HostKind, dtype: DType, len: usize) -> Result<Box<dyn HostMemory>> {
        match kind {
            HostKind::Pageable => Ok(Box::new(CpuHostMemory::new(&self.properties.name, dtype, len)?)),
            HostKind::Pinned | HostKind::WriteCombined => Err(DeviceError::NotApplicable {
                what: format!("{kind} host memory"),
                device: self.properties.name.clone(),
                reason: "the workers share the host's memory: no device reads it across a link".to_owned(),
            }),
        }
    }

    fn synchronize(&self) -> Result<()> {
        let streams: Vec<_> = {
            let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
            streams.iter().filter_map(Weak::upgrade).collect()
        };
        // All are waited for before a failure is reported: nothing may still run after a barrier.
        let outcomes: Vec<_> = streams.iter().map(|queue| queue.synchronize()).collect();
        outcomes.into_iter().collect()
    }

    fn raw_launch_loop(&self, _: &dyn EngineStream, _: usize) -> Result<Duration> {
        Err(DeviceError::NotApplicable {
            what: "a bare kernel launch".to_owned(),
            device: self.properties.name.clone(),
            reason: "the engine's queue is its lowest level".to_owned(),
        })
    }

    fn tracer(&self) -> &Arc<Tracer> {
        &self.tracer
    }

    fn source(&self) -> Source {
        Source::Engine("the worker threads' own clock readings".to_owned())
    }

    fn telemetry(&self) -> Result<Option<Telemetry>> {
        Ok(None)
    }
}
