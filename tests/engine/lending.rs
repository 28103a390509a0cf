//! What is promised of streams and memory of other libraries, wrapped and lent: they are ordered, held, waited for and dropped
//! as the library's own are.

#[cfg(feature = "cuda")]
mod cuda {
    use std::sync::Arc;
    use std::time::Duration;

    use cudarc::driver::result::stream;
    use cudarc::driver::sys::{CUgraphInstantiate_flags, CUresult, CUstreamCaptureMode};
    use cudarc::driver::{CudaContext, CudaStream, DevicePtr, DriverError};
    use libtest_mimic::Failed;
    use syncscope::device::{Code, Device, Launch};
    use syncscope::error::DeviceError;
    use syncscope::tensor::Tensor;
    use syncscope::timeline::{Audit, SyncKind};

    use crate::{Check, ensure};

    pub(crate) const CHECKS: &[(&str, Check)] = &[
        ("a_stream_of_another_library_is_used_as_any_other", wrapped),
        ("a_default_stream_of_another_context_is_refused_with_its_memory", of_another_context),
        ("a_stream_that_is_lent_knows_the_work_of_others", lent),
        ("memory_goes_to_another_library_and_back_without_a_copy", slices),
        ("memory_for_another_library_carries_what_is_pending", carried),
        ("memory_that_another_stream_has_yet_to_read_is_not_written", read_elsewhere),
        ("memory_goes_to_no_library_whose_last_drop_failed", after_a_failed_drop),
        ("memory_of_another_library_outlives_its_use_on_held_streams", guests),
        ("calls_of_another_library_are_recorded_with_their_waits_and_lines", audited),
        ("a_stream_may_be_ended_by_its_owner_behind_a_wait_for_the_device", ended_by_its_owner),
        ("a_stream_that_another_library_captures_is_left_alone", captured_elsewhere),
        ("a_wrapped_stream_that_is_dropped_with_work_pending_ends_it", dropped),
        ("a_wrapped_stream_that_is_dropped_beside_a_held_one_waits_for_no_gate", dropped_beside_a_gate),
    ];

    /// Whether streams of CUDA can be wrapped here; that the others say so.
    fn wraps(device: &Device) -> Result<bool, Failed> {
        if device.properties().engine == "cuda" {
            return Ok(true);
        }
        let refused = device.stream()?.lend_raw();
        ensure(matches!(refused, Err(DeviceError::NotApplicable { .. })), || format!("{refused:?}"))?;
        let refused = device.stream()?.ones::<f32>([1])?.lend_raw();
        ensure(matches!(refused, Err(DeviceError::NotApplicable { .. })), || format!("{refused:?}"))?;
        Ok(false)
    }

    fn wrapped(device: &Device) -> Result<(), Failed> {
        if !wraps(device)? {
            return Ok(());
        }
        let context = CudaContext::new(0)?;
        let refused = device.wrap(&context.per_thread_stream());
        ensure(matches!(refused, Err(DeviceError::InvalidArgument { .. })), || format!("{refused:?}"))?;
        for theirs in [context.new_stream()?, context.default_stream()] {
            let stream = device.wrap(&theirs)?;
            let x = stream.normal::<f32>([100, 100])?;
            let y = x.matmul(&x)?.sum()?;
            let (_, graph) = stream.capture(|| x.affine_in_place(1.0, 0.0))?;
            graph.launch()?;
            let gate = device.gate()?;
            stream.wait_gate(&gate)?;
            let z = y.add_scalar(1.0)?;
            ensure(!stream.is_complete()?, || "a gate holds it".to_owned())?;
            // What their owner enqueues stands behind it, too.
            let mut memory = theirs.alloc_zeros::<f32>(1000)?;
            theirs.memset_zeros(&mut memory)?;
            gate.open();
            ensure(z.item()? == y.item()? + 1.0, || "its work is in order".to_owned())?;
            stream.synchronize()?;
            ensure(stream.is_complete()?, || "it is complete behind a wait".to_owned())?;
        }
        Ok(())
    }

    /// Default streams have one handle in all contexts.
    fn of_another_context(device: &Device) -> Result<(), Failed> {
        if !wraps(device)? {
            return Ok(());
        }
        let other = CudaContext::new_non_primary(0, 0)?;
        for theirs in [other.default_stream(), other.new_stream()?] {
            let refused = device.wrap(&theirs);
            ensure(matches!(refused, Err(DeviceError::ForeignObject { .. })), || format!("{refused:?}"))?;
        }
        let stream = device.wrap(&CudaContext::new(0)?.default_stream())?;
        let refused = Tensor::of_slice(&stream, other.default_stream().clone_htod(&[1.0_f32])?, [1]);
        ensure(matches!(refused, Err(DeviceError::InvalidArgument { .. })), || format!("{refused:?}"))
    }

    fn lent(device: &Device) -> Result<(), Failed> {
        if !wraps(device)? {
            return Ok(());
        }
        let (stream, held) = (device.stream()?, device.stream()?);
        let (theirs, gate) = (stream.lend()?, device.gate()?);
        stream.synchronize()?;
        held.wait_gate(&gate)?;
        // By calls of theirs alone.
        theirs.join(&*held.lend()?)?;
        let memory = theirs.alloc_zeros::<f32>(1 << 20)?;
        ensure(!stream.is_complete()?, || "the driver is asked for work of others".to_owned())?;
        gate.open();
        stream.synchronize()?;
        ensure(stream.is_complete()? && theirs.clone_dtoh(&memory)?.iter().all(|&x| x == 0.0), || "zeros".to_owned())
    }

    fn slices(device: &Device) -> Result<(), Failed> {
        if !wraps(device)? {
            return Ok(());
        }
        let theirs = CudaContext::new(0)?.new_stream()?;
        let stream = device.wrap(&theirs)?;
        let slice = theirs.clone_htod(&[1.0_f32, 2.0, 3.0, 4.0])?;
        let address = slice.device_ptr(&theirs).0;
        let x = Tensor::of_slice(&stream, slice, [2, 2])?;
        ensure(x.lend_raw()? == address && x.get([1, 0])?.lend_raw()? == address + 8, || "its address".to_owned())?;
        ensure(stream.zeros::<f32>([0])?.lend_raw().is_err(), || "no elements have no address".to_owned())?;
        ensure(x.matmul(&x)?.to_vec()? == [7.0, 10.0, 15.0, 22.0], || "a tensor of their memory".to_owned())?;
        x.affine_in_place(2.0, 0.0)?;
        let back = x.into_slice()?;
        ensure(theirs.clone_dtoh(&back)? == [2.0, 4.0, 6.0, 8.0], || "their memory again".to_owned())?;
        let own = stream.full::<f32>([1000], 5.0)?.into_slice()?;
        ensure(theirs.clone_dtoh(&own)?.iter().all(|&x| x == 5.0), || "memory of ours".to_owned())?;
        let shared = stream.ones::<f32>([10])?;
        ensure(shared.clone().into_slice().is_err(), || "shared memory is nobody's to give".to_owned())?;
        ensure(shared.get([3])?.into_slice().is_err(), || "a part of it neither".to_owned())?;
        ensure(stream.zeros::<f32>([0])?.into_slice()?.is_empty(), || "no elements".to_owned())?;
        let elsewhere = device.stream()?;
        let slice = theirs.clone_htod(&[1.0_f32])?;
        ensure(Tensor::of_slice(&elsewhere, slice, [1]).is_err(), || "of another stream".to_owned())?;
        let slice = theirs.clone_htod(&[1.0_f32; 3])?;
        ensure(Tensor::of_slice(&stream, slice, [2]).is_err(), || "of another size".to_owned())
    }

    fn carried(device: &Device) -> Result<(), Failed> {
        if !wraps(device)? {
            return Ok(());
        }
        const LEN: usize = 1 << 16;
        let context = CudaContext::new(0)?;
        let (theirs, reader) = (context.new_stream()?, context.new_stream()?);
        for stream in [device.wrap(&theirs)?, device.stream()?] {
            let own = stream.zeros::<f32>([LEN])?;
            let lent = stream.lend()?;
            let other = Tensor::of_slice(&stream, lent.clone_htod(&vec![0.0_f32; LEN])?, [LEN])?;
            stream.synchronize()?;
            let gate = device.gate()?;
            stream.wait_gate(&gate)?;
            for x in [own, other] {
                x.affine_in_place(1.0, 5.0)?;
                let slice = x.into_slice()?;
                let (copy, _use) = slice.device_ptr(&reader);
                ensure(copy != 0, || "memory has an address".to_owned())?;
                let pending = reader.record_event(None)?;
                ensure(!pending.is_complete(), || format!("{stream:?}: the reader waits for what is pending"))?;
            }
            gate.open();
            reader.synchronize()?;
        }
        Ok(())
    }

    /// A write waits for what another stream has yet to read.
    fn read_elsewhere(device: &Device) -> Result<(), Failed> {
        if !wraps(device)? {
            return Ok(());
        }
        const LEN: usize = 1 << 10;
        let context = CudaContext::new(0)?;
        let (theirs, reader) = (context.new_stream()?, context.new_stream()?);
        let (stream, held) = (device.wrap(&theirs)?, device.wrap(&reader)?);
        let slice = theirs.clone_htod(&[1.0_f32; LEN])?;
        let mut copy = reader.alloc_zeros::<f32>(LEN)?;
        let gate = device.gate()?;
        held.wait_gate(&gate)?;
        reader.memcpy_dtod(&slice, &mut copy)?;
        let x = Tensor::of_slice(&stream, slice, [LEN])?;
        x.affine_in_place(0.0, 5.0)?;
        std::thread::sleep(Duration::from_millis(20));
        ensure(!stream.is_complete()?, || "the write waits for the read".to_owned())?;
        gate.open();
        ensure(reader.clone_dtoh(&copy)? == [1.0; LEN] && x.to_vec()? == [5.0; LEN], || "both are right".to_owned())
    }

    /// What `cudarc` keeps of a drop that failed is an error of the next call, and no panic.
    fn after_a_failed_drop(device: &Device) -> Result<(), Failed> {
        if !wraps(device)? {
            return Ok(());
        }
        let theirs = CudaContext::new(0)?.new_stream()?;
        let stream = device.wrap(&theirs)?;
        let fails = || theirs.context().record_err::<()>(Err(DriverError(CUresult::CUDA_ERROR_INVALID_VALUE)));
        let slice = theirs.clone_htod(&[1.0_f32; 3])?;
        let (one, other) = (stream.ones::<f32>([3])?, stream.ones::<f32>([3])?);
        fails();
        let taken = one.into_slice().map(drop);
        fails();
        let given = Tensor::of_slice(&stream, slice, [3]).map(drop);
        for outcome in [taken, given] {
            let said = outcome.err().map(|error| error.to_string()).unwrap_or_default();
            ensure(said.contains("CUDA_ERROR_INVALID_VALUE"), || format!("{said:?} does not name the failure"))?;
        }
        ensure(theirs.clone_dtoh(&other.into_slice()?)? == [1.0; 3], || "the next goes through".to_owned())
    }

    fn guests(device: &Device) -> Result<(), Failed> {
        if !wraps(device)? {
            return Ok(());
        }
        const LEN: usize = 1 << 16;
        let theirs = CudaContext::new(0)?.new_stream()?;
        let (stream, guest) = (device.wrap(&theirs)?, device.stream()?);
        let x = Tensor::of_slice(&stream, theirs.clone_htod(&vec![1.0_f32; LEN])?, [LEN])?;
        stream.synchronize()?;
        let gate = device.gate()?;
        guest.wait_gate(&gate)?;
        let y = x.on(&guest)?.add_scalar(1.0)?;
        drop(x);
        // Their allocator would give the memory out again.
        let others = (0..8).map(|_| theirs.clone_htod(&vec![9.0_f32; LEN])).collect::<Result<Vec<_>, _>>()?;
        stream.synchronize()?;
        gate.open();
        ensure(y.to_vec()?.iter().all(|&y| y == 2.0), || "the guest read what was its own".to_owned())?;
        drop(others);
        Ok(())
    }

    /// What `region` waits for, behind a gate, and its line.
    fn waits(
        device: &Device,
        theirs: &Arc<CudaStream>,
        region: impl Fn() -> Result<u32, Failed>,
    ) -> Result<(u32, Audit), Failed> {
        let (stream, gate) = (device.wrap(theirs)?, device.gate()?);
        let audited = std::thread::scope(|scope| {
            device.audit(|| {
                stream.wait_gate(&gate)?;
                let pending = stream.zeros::<f32>([64])?;
                scope.spawn(|| {
                    std::thread::sleep(Duration::from_millis(50));
                    gate.open();
                });
                let line = region().map_err(|failed| DeviceError::invalid("region", format!("{failed:?}")));
                drop(pending);
                line
            })
        });
        Ok(audited?)
    }

    fn audited(device: &Device) -> Result<(), Failed> {
        if !wraps(device)? {
            return Ok(());
        }
        let context = CudaContext::new(0)?;
        let theirs = context.new_stream()?;
        let memory = theirs.alloc_zeros::<f32>(1 << 16)?;
        let copy = || -> Result<u32, Failed> {
            let line = line!() + 1;
            theirs.clone_dtoh(&memory)?;
            Ok(line)
        };
        let synchronize = || -> Result<u32, Failed> {
            let line = line!() + 1;
            theirs.synchronize()?;
            Ok(line)
        };
        let event = || -> Result<u32, Failed> {
            let event = theirs.record_event(None)?;
            let line = line!() + 1;
            event.synchronize()?;
            Ok(line)
        };
        let all = || -> Result<u32, Failed> {
            let line = line!() + 1;
            context.synchronize()?;
            Ok(line)
        };
        type Region<'a> = &'a dyn Fn() -> Result<u32, Failed>;
        let regions: [(&str, SyncKind, Region<'_>); 4] = [
            ("cuMemcpyDtoHAsync", SyncKind::Implicit, &copy),
            ("cuStreamSynchronize", SyncKind::Stream, &synchronize),
            ("cuEventSynchronize", SyncKind::Event, &event),
            ("cuCtxSynchronize", SyncKind::Device, &all),
        ];
        for (name, kind, region) in regions {
            let (line, audit) = waits(device, &theirs, region)?;
            if !audit.source.starts_with("activity records") || audit.source.contains("no calls of other libraries") {
                return Ok(());
            }
            let found: Vec<_> = audit.stalls(&[]).filter(|point| point.name == name && point.kind == kind).collect();
            let [point] = found.as_slice() else { return Err(format!("{name}: {audit}").into()) };
            // A program without line tables knows no line.
            let here = format!("tests/engine/lending.rs:{line}");
            ensure(point.site.as_ref().is_none_or(|site| site.ends_with(&here)), || format!("{here}: {audit}"))?;
        }
        // Launches and copies of theirs that wait for nothing; a call of this library is listed once.
        let stream = device.wrap(&theirs)?;
        let (_, audit) = device.audit(|| {
            let copied = theirs.clone_dtod(&memory).map_err(|error| DeviceError::invalid("copy", error.to_string()))?;
            stream.synchronize().map(|()| copied)
        })?;
        let names: Vec<&str> = audit.sync_points.iter().map(|point| point.name.as_str()).collect();
        ensure(names == ["Stream::synchronize"], || audit.to_string())
    }

    /// The driver's stream is not used any more, also where a guest used its memory.
    fn ended_by_its_owner(device: &Device) -> Result<(), Failed> {
        if !wraps(device)? {
            return Ok(());
        }
        let (guest, context) = (device.stream()?, CudaContext::new(0)?);
        device.synchronize()?;
        let before = device.footprint().streams;
        for _ in 0..3 {
            context.bind_to_thread()?;
            let raw = stream::create(stream::StreamKind::NonBlocking)?;
            let y = {
                // Safety: it is ended after the wait for the device.
                let theirs = unsafe { device.wrap_raw(raw) }?;
                let x = theirs.ones::<f32>([4096])?;
                let of = Tensor::of_slice(&theirs, theirs.lend()?.clone_htod(&[1.0_f32; 4096])?, [4096])?;
                let event = device.event()?;
                theirs.record(&event)?;
                guest.wait(&event)?;
                x.on(&guest)?.add(&of.on(&guest)?)?
            };
            device.synchronize()?;
            let now = device.footprint().streams;
            ensure(now == before, || format!("{now} streams are kept in place of {before}"))?;
            // Safety: nobody uses it any more.
            unsafe { stream::destroy(raw) }?;
            ensure(y.sum()?.item()? == 8192.0, || "what the guest computed".to_owned())?;
            guest.ones::<f32>([70_000])?;
            device.trim()?;
        }
        Ok(())
    }

    /// What is dropped, and calls on other streams, ask nothing of a stream that another library captures.
    fn captured_elsewhere(device: &Device) -> Result<(), Failed> {
        if !wraps(device)? {
            return Ok(());
        }
        let (own, context) = (device.stream()?, CudaContext::new(0)?);
        let theirs = context.new_stream()?;
        let (stream, again) = (device.wrap(&theirs)?, device.wrap(&theirs)?);
        let x = stream.ones::<f32>([1000])?;
        x.sum()?.item()?;
        again.ones::<f32>([10])?.sum()?.item()?;
        let of = Tensor::of_slice(&stream, theirs.clone_htod(&[1.0_f32; 100])?, [100])?;
        stream.synchronize()?;
        // Safety: one stream uses it.
        unsafe { context.disable_event_tracking() };
        let mut slice = theirs.alloc_zeros::<f32>(1000)?;
        theirs.synchronize()?;
        theirs.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED)?;
        theirs.memset_zeros(&mut slice)?;
        drop((x, again, of));
        for size in [33_333, 77_777, 200_001] {
            own.ones::<f32>([size])?;
        }
        ensure(device.stream()?.ones::<f32>([10])?.sum()?.item()? == 10.0, || "another stream".to_owned())?;
        device.trim()?;
        let graph = theirs.end_capture(CUgraphInstantiate_flags(0))?;
        ensure(graph.is_some(), || "the capture goes on".to_owned())?;
        ensure(stream.ones::<f32>([1000])?.sum()?.item()? == 1000.0, || "and the stream behind it".to_owned())
    }

    /// Its owner ends it by a call that may wait for all streams.
    fn dropped_beside_a_gate(device: &Device) -> Result<(), Failed> {
        if !wraps(device)? {
            return Ok(());
        }
        let (held, gate) = (device.stream()?, device.gate()?);
        let stream = device.wrap(&CudaContext::new(0)?.new_stream()?)?;
        stream.ones::<f32>([10])?.sum()?.item()?;
        held.wait_gate(&gate)?;
        drop(stream);
        // Makes a stream, before which those that are over end.
        ensure(device.stream()?.ones::<f32>([10])?.sum()?.item()? == 10.0, || "another stream".to_owned())?;
        ensure(!held.is_complete()?, || "the gate is closed".to_owned())?;
        gate.open();
        Ok(())
    }

    fn dropped(device: &Device) -> Result<(), Failed> {
        if !wraps(device)? {
            return Ok(());
        }
        // A driver that does not tell the parameters of kernels launches none.
        let kernel = match device.load(&Code::cuda("set.cu", "extern \"C\" __global__ void set(int* x) { *x = 6; }")) {
            Err(DeviceError::NotApplicable { .. }) => None,
            module => Some(module?.kernel("set")?),
        };
        for _ in 0..50 {
            let theirs = CudaContext::new(0)?.new_stream()?;
            let stream = device.wrap(&theirs)?;
            drop(theirs);
            let gate = device.gate()?;
            stream.wait_gate(&gate)?;
            let x = stream.zeros::<i64>([1])?;
            if let Some(kernel) = &kernel {
                kernel.launch(&stream, Launch::new([1; 3], [1; 3]), (&x,))?;
            }
            drop((x, stream));
            gate.open();
        }
        device.synchronize()?;
        Ok(())
    }
}

#[cfg(feature = "cuda")]
pub(crate) use cuda::CHECKS;
#[cfg(not(feature = "cuda"))]
pub(crate) const CHECKS: &[(&str, crate::Check)] = &[];
