//! A stream: the calls of the interface, each to its queue.

use std::any::Any;
use std::sync::Arc;

use super::clock::{CpuEvent, CpuGate};
use super::memory::{CpuHostMemory, CpuMemory};
use super::queue::{Job, Step, StreamInner};
use super::{CpuDevice, kernels};
use crate::device::DType;
use crate::device::engine::{
    Captured, DeviceMemory, EngineEvent, EngineGate, EngineGraph, EngineStream, HostMemory, Result,
};
use crate::device::injection::Injected;
use crate::device::operation::{Operation, Region};
use crate::device::reserved::{copied, with_room};
use crate::error::DeviceError;

/// A handle of a stream. When it is dropped the worker finishes what is enqueued and ends.
pub(super) struct CpuStream {
    inner: Arc<StreamInner>,
}

/// Operations of a stream, to be enqueued again.
struct CpuGraph {
    stream: Arc<StreamInner>,
    steps: Vec<Step>,
}

impl EngineGraph for CpuGraph {
    fn launch(&self) -> Result<()> {
        self.stream.launch(&self.steps)
    }
}

impl CpuStream {
    pub(super) fn start(device: &Arc<CpuDevice>, number: u32) -> Result<Self> {
        StreamInner::start(device, number).map(|inner| Self { inner })
    }

    pub(super) fn inner(&self) -> &Arc<StreamInner> {
        &self.inner
    }
}

impl Drop for CpuStream {
    fn drop(&mut self) {
        self.inner.close();
    }
}

impl EngineStream for CpuStream {
    fn allocate(&self, dtype: DType, len: usize) -> Result<Arc<dyn DeviceMemory>> {
        let device = &self.inner.device;
        device.check()?;
        if device.injection.strikes(Injected::Allocation) {
            let requested = len.saturating_mul(dtype.size());
            return Err(DeviceError::OutOfMemory { device: device.name.clone(), requested, free: None });
        }
        Ok(Arc::new(CpuMemory::new(device, dtype, len)?))
    }

    fn enqueue(&self, operations: &[Operation<'_>]) -> Result<()> {
        let device = &self.inner.device;
        let prepare = |operation| kernels::prepare(operation, &mut |region| CpuMemory::slice(region, device));
        let mut runs = with_room(operations.len()).map_err(|none| none.on(&device.name))?;
        operations.iter().try_for_each(|operation| prepare(operation).map(|run| runs.push(run)))?;
        self.inner.enqueue(operations, runs)
    }

    fn enqueue_upload(&self, source: &dyn HostMemory, target: Region<'_>, done: &dyn EngineEvent) -> Result<()> {
        let device = &self.inner.device;
        let done = CpuEvent::of(done, device)?;
        let (source, target) = (CpuHostMemory::content(source, device)?, CpuMemory::slice(&target, device)?);
        self.inner.push_copy("copy_from", "upload", Some(done), move || {
            let source = source.snapshot();
            Ok(target.write_bytes(source.bytes())?)
        })
    }

    fn enqueue_download(&self, source: Region<'_>, target: &dyn HostMemory, done: &dyn EngineEvent) -> Result<()> {
        let device = &self.inner.device;
        let done = CpuEvent::of(done, device)?;
        let (source, target) = (CpuMemory::slice(&source, device)?, CpuHostMemory::content(target, device)?);
        self.inner.push_copy("copy_to", "download", Some(done), move || {
            let cells = source.content.snapshot();
            Ok(target.write(|bytes| bytes.bytes_mut().copy_from_slice(source.bytes_of(&cells)))?)
        })
    }

    fn upload(&self, source: &[u8], target: Region<'_>) -> Result<()> {
        let device = &self.inner.device;
        let target = CpuMemory::slice(&target, device)?;
        let source = copied(source).map_err(|none| none.on(&device.name))?;
        self.inner.push_copy("upload", "upload", None, move || Ok(target.write_bytes(&source)?))
    }

    fn download(&self, source: Region<'_>, target: &mut [u8]) -> Result<()> {
        let source = self.read(source)?;
        let cells = source.content.snapshot();
        let bytes = source.bytes_of(&cells);
        if bytes.len() != target.len() {
            let reason = format!("{} bytes on the host and {} on the device", target.len(), bytes.len());
            return Err(DeviceError::invalid("download", reason));
        }
        target.copy_from_slice(bytes);
        Ok(())
    }

    fn download_all(&self, source: Region<'_>) -> Result<Box<dyn Any>> {
        self.read(source)?.to_vec().map_err(|none| none.on(&self.inner.device.name))
    }

    fn record(&self, event: &dyn EngineEvent) -> Result<()> {
        let event = CpuEvent::of(event, &self.inner.device)?;
        event.renew(|mark| self.inner.push("record", [Job::Reach(mark)]))
    }

    fn wait_event(&self, event: &dyn EngineEvent) -> Result<()> {
        match CpuEvent::of(event, &self.inner.device)?.latest() {
            Some(mark) => self.inner.push("wait", [Job::Wait(mark)]),
            None => self.inner.check("wait"),
        }
    }

    fn wait_gate(&self, gate: &dyn EngineGate) -> Result<()> {
        let mark = CpuGate::mark_of(gate, &self.inner.device)?;
        self.inner.push("wait_gate", [Job::Wait(mark)])
    }

    fn begin_capture(&self) -> Result<()> {
        self.inner.begin_capture()
    }

    fn end_capture(&self) -> Result<(Arc<dyn EngineGraph>, Captured)> {
        let (steps, captured) = self.inner.end_capture()?;
        Ok((Arc::new(CpuGraph { stream: self.inner.clone(), steps }), captured))
    }

    fn give_up_capture(&self) {
        self.inner.give_up_capture();
    }

    fn is_capturing(&self) -> bool {
        self.inner.is_capturing()
    }

    fn enqueued(&self) -> Option<u64> {
        Some(self.inner.enqueued())
    }

    fn is_complete(&self) -> Result<bool> {
        self.inner.is_complete()
    }

    fn synchronize(&self) -> Result<()> {
        if self.inner.is_capturing() {
            self.inner.check("synchronize")?;
        }
        self.inner.synchronize()
    }
}

impl CpuStream {
    /// A region whose elements can be read: all work before is over.
    fn read(&self, source: Region<'_>) -> Result<super::memory::Slice> {
        let source = CpuMemory::slice(&source, &self.inner.device)?;
        self.inner.check("download")?;
        self.inner.device.may_fail(Injected::Copy, "download")?;
        self.inner.synchronize()?;
        Ok(source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::lock;
    use std::sync::{Barrier, Mutex, OnceLock};

    fn stream() -> (Arc<CpuDevice>, CpuStream) {
        let device = Arc::new(CpuDevice {
            name: "cpu:0".to_owned(),
            tracer: Arc::default(),
            injection: Default::default(),
            lost: OnceLock::new(),
            orphaned: Default::default(),
        });
        let stream = CpuStream::start(&device, 0).unwrap();
        (device, stream)
    }

    fn fail(stream: &CpuStream) {
        stream.inner.push_copy("upload", "upload", None, || panic!("broken")).unwrap();
    }

    #[test]
    fn a_panic_in_a_worker_reaches_the_next_call_and_hangs_nobody() {
        let (device, stream) = stream();
        let (event, gate) = (CpuEvent::new(&device, false), CpuGate::new(&device));
        stream.wait_gate(&gate).unwrap();
        fail(&stream);
        stream.record(&event).unwrap();
        gate.open();
        let failure = stream.inner.synchronize().unwrap_err();
        assert_eq!(failure.to_string(), "work enqueued on cpu:0 failed in `upload`: broken");
        assert_eq!(event.synchronize(), Err(failure.clone()));
        let spin = Operation::Spin { duration: std::time::Duration::ZERO };
        assert_eq!(stream.enqueue(&[spin]), Err(failure));
    }

    #[test]
    fn a_failure_that_was_not_told_is_left_with_the_device() {
        let (device, stream) = stream();
        fail(&stream);
        let worker = stream.inner.clone();
        drop(stream);
        while Arc::strong_count(&worker) > 1 {
            std::thread::yield_now();
        }
        assert!(device.orphaned.tell().is_err());
    }

    #[test]
    fn what_is_read_at_once_is_refused_by_a_capture_that_began_before_it_is_enqueued() {
        let (_, stream) = stream();
        let [x, out] = [4, 1].map(|len| stream.allocate(DType::U8, len).unwrap());
        let region = |memory, len| Region { memory, offset: 0, len };
        stream.begin_capture().unwrap();
        let any = Operation::Any { x: region(&x, 4), out: region(&out, 1) };
        assert_eq!(stream.enqueue(&[any]), Err(DeviceError::Capturing { call: "any" }));
        assert_eq!(stream.end_capture().unwrap().1.operations, 0);
    }

    #[test]
    fn a_capture_holds_on_to_each_memory_once_and_finds_room_before_it_takes_anything() {
        let (_, stream) = stream();
        let memory = [4, 4].map(|len| stream.allocate(DType::U8, len).unwrap());
        let [x, out] = [&memory[0], &memory[1]].map(|memory| Region { memory, offset: 0, len: 4 });
        stream.begin_capture().unwrap();
        (0..3)
            .for_each(|_| stream.enqueue(&[Operation::Copy { x, out }, Operation::Fill { out, value: 1.0 }]).unwrap());
        let (_, mut captured) = stream.end_capture().unwrap();
        assert_eq!((captured.operations, captured.memory.len()), (6, 2));
        assert!(captured.reserve(usize::MAX).is_err());
        assert!(memory.iter().all(|memory| Arc::strong_count(memory) == 2));
    }

    #[test]
    fn threads_enqueue_on_one_stream_and_nothing_is_lost() {
        const THREADS: usize = 4;
        const EACH: usize = 16;
        let (_, stream) = stream();
        let (count, start) = (Arc::new(Mutex::new(0)), Barrier::new(THREADS));
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    start.wait();
                    for _ in 0..EACH {
                        let count = count.clone();
                        let add = move || {
                            *lock(&count) += 1;
                            Ok(())
                        };
                        stream.inner.push_copy("upload", "upload", None, add).unwrap();
                    }
                    stream.synchronize().unwrap();
                });
            }
        });
        assert_eq!(*lock(&count), THREADS * EACH);
    }
}
