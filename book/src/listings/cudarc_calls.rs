//! The calls of cudarc.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use cudarc::cublas::{self, CudaBlas, Gemm, GemmConfig};
use cudarc::curand::{self, CudaRng};
use cudarc::driver::sys::{CUevent_flags, CUgraphInstantiate_flags, CUstreamCaptureMode};
use cudarc::driver::{
    CudaContext, CudaEvent, CudaGraph, CudaSlice, DeviceRepr, LaunchConfig, PinnedHostSlice, PushKernelArg,
    UnifiedSlice,
};
use cudarc::nvrtc::compile_ptx;
use syncscope_peer::{Call, Calls, Result, not_applicable};

use crate::{ELEMENTS, Fixture, SOURCE};

const LARGE: usize = 10_000_000;
const SIDE: usize = 256;

type Shared = Rc<Fixture>;

/// The calls, in the order of a page.
pub(crate) const CALLS: Calls<Fixture> = &[
    ("alloc", |f| call(f, |f| allocated(f, ELEMENTS))),
    ("alloc-zeros", |f| call(f, |f| Ok(f.stream.alloc_zeros::<f32>(ELEMENTS)?))),
    ("memset-zeros", |f| call(f, |f| Ok(f.stream.memset_zeros(&mut *f.x.borrow_mut())?))),
    ("clone-htod-4-bytes", |f| uploaded(f, 1)),
    ("clone-htod", |f| uploaded(f, ELEMENTS)),
    ("clone-htod-large", |f| uploaded(f, LARGE)),
    ("clone-htod-pinned", |f| {
        let host = pinned::<f32>(f, ELEMENTS)?;
        call(f, move |f| Ok(f.stream.clone_htod(&host)?))
    }),
    ("memcpy-htod", |f| {
        let host = vec![1.0; ELEMENTS];
        call(f, move |f| Ok(f.stream.memcpy_htod(&host, &mut *f.x.borrow_mut())?))
    }),
    ("memcpy-htod-large", |f| {
        let (host, large) = (vec![1.0; LARGE], RefCell::new(allocated(f, LARGE)?));
        call(f, move |f| Ok(f.stream.memcpy_htod(&host, &mut *large.borrow_mut())?))
    }),
    ("memcpy-htod-pinned", |f| {
        let host = pinned::<f32>(f, ELEMENTS)?;
        call(f, move |f| Ok(f.stream.memcpy_htod(&host, &mut *f.x.borrow_mut())?))
    }),
    ("memcpy-htod-pinned-large", |f| {
        let (host, large) = (pinned::<f32>(f, LARGE)?, RefCell::new(allocated(f, LARGE)?));
        call(f, move |f| Ok(f.stream.memcpy_htod(&host, &mut *large.borrow_mut())?))
    }),
    ("clone-dtoh-4-bytes", |f| call(f, |f| Ok(f.stream.clone_dtoh(&f.x.borrow().slice(..1))?))),
    ("clone-dtoh", |f| call(f, |f| Ok(f.stream.clone_dtoh(&*f.x.borrow())?))),
    ("clone-dtoh-large", |f| {
        let large = allocated(f, LARGE)?;
        call(f, move |f| Ok(f.stream.clone_dtoh(&large)?))
    }),
    ("memcpy-dtoh", |f| {
        let host = RefCell::new(vec![0.0; ELEMENTS]);
        call(f, move |f| Ok(f.stream.memcpy_dtoh(&*f.x.borrow(), &mut *host.borrow_mut())?))
    }),
    ("memcpy-dtoh-pinned", |f| {
        let host = RefCell::new(pinned::<f32>(f, ELEMENTS)?);
        call(f, move |f| Ok(f.stream.memcpy_dtoh(&*f.x.borrow(), &mut *host.borrow_mut())?))
    }),
    ("pinned-as-slice", |f| {
        let (host, own) = (Rc::new(RefCell::new(pinned::<f32>(f, ELEMENTS)?)), Rc::clone(f));
        let copied = Rc::clone(&host);
        let copies = move || Ok(own.stream.memcpy_dtoh(&*own.x.borrow(), &mut *copied.borrow_mut())?);
        Ok(call(f, move |_| Ok(host.borrow().as_slice()?[0]))?.behind_work(copies))
    }),
    ("memcpy-dtod", |f| call(f, |f| Ok(f.stream.memcpy_dtod(&*f.x.borrow(), &mut *f.y.borrow_mut())?))),
    ("clone-dtod", |f| call(f, |f| Ok(f.stream.clone_dtod(&*f.x.borrow())?))),
    ("slice-try-clone", |f| call(f, |f| Ok(f.x.borrow().try_clone()?))),
    ("slice-view", |f| call(f, |f| Ok(f.x.borrow().try_slice(1..2).is_some()))),
    ("drop", |f| dropped(f, |f| allocated(f, ELEMENTS))),
    ("drop-large", |f| dropped(f, |f| allocated(f, LARGE))),
    // Made by the first stream, and used by the one that the gate holds.
    ("drop-used-elsewhere", |f| {
        if !f.context.is_event_tracking() && !f.held.is_same(&f.held_first) {
            return Err(not_applicable("without cudarc's events nothing keeps the memory until its use is over"));
        }
        dropped_behind(f, |f| Ok(f.first.alloc_zeros(ELEMENTS)?), launch)
    }),
    ("drop-pinned", |f| {
        dropped_behind(f, |f| pinned(f, ELEMENTS), |f, host| Ok(f.stream.memcpy_dtoh(&*f.x.borrow(), host)?))
    }),
    ("alloc-pinned", |f| call(f, |f| pinned::<f32>(f, ELEMENTS))),
    ("alloc-unified", |f| call(f, unified)),
    ("unified-as-slice", |f| {
        let memory = unified(f)?;
        call(f, move |_| Ok(memory.as_slice()?[0]))
    }),
    ("drop-unified", |f| dropped(f, unified)),
    ("launch", |f| call(f, |f| launch(f, &mut f.x.borrow_mut()))),
    ("launch-timed", |f| call(f, |f| launched(f, Some(CUevent_flags::CU_EVENT_DEFAULT), false))),
    ("launch-cooperative", |f| call(f, |f| launched(f, None, true))),
    ("new-stream", |f| call(f, |f| Ok(f.context.new_stream()?))),
    ("new-stream-first", |f| {
        // In a context that has made none.
        let ordinal = f.ordinal;
        prepared(f, move |_| Ok(CudaContext::new(ordinal)?), |_, context| Ok(context.new_stream()?))
    }),
    ("drop-stream", |f| dropped(f, |f| Ok(f.context.new_stream()?))),
    ("fork", |f| call(f, |f| Ok(f.stream.fork()?))),
    ("join", |f| {
        let other = f.context.new_stream()?;
        call(f, move |f| Ok(other.join(&f.stream)?))
    }),
    ("new-event", |f| call(f, |f| Ok(f.context.new_event(None)?))),
    ("event-record", |f| {
        let event = f.context.new_event(None)?;
        call(f, move |f| Ok(event.record(&f.stream)?))
    }),
    ("event-synchronize", |f| of_event(f, None, |_, event| Ok(event.synchronize()?))),
    ("event-is-complete", |f| of_event(f, None, |_, event| Ok(event.try_is_complete()?))),
    ("event-elapsed", |f| of_event(f, Some(CUevent_flags::CU_EVENT_DEFAULT), |_, event| Ok(event.elapsed_ms(event)?))),
    ("stream-wait", |f| {
        let other = f.context.new_stream()?;
        of_event(f, None, move |_, event| Ok(other.wait(event)?))
    }),
    ("stream-synchronize", |f| call(f, |f| Ok(f.stream.synchronize()?))),
    ("context-synchronize", |f| call(f, |f| Ok(f.context.synchronize()?))),
    ("context-new", |f| {
        let ordinal = f.ordinal;
        call(f, move |_| Ok(CudaContext::new(ordinal)?))
    }),
    ("mem-get-info", |f| call(f, |f| Ok(f.context.mem_get_info()?))),
    ("compile-ptx", |f| call(f, |_| Ok(compile_ptx(SOURCE)?))),
    ("load-module", |f| call(f, |f| Ok(f.context.load_module(f.ptx.clone())?))),
    ("drop-module", |f| dropped(f, |f| Ok(f.context.load_module(f.ptx.clone())?))),
    ("load-function", |f| call(f, |f| Ok(f.module.load_function("scale")?))),
    ("function-num-regs", |f| call(f, |f| Ok(f.scale.num_regs()?))),
    ("capture", |f| call(f, captured)),
    ("graph-launch", |f| {
        let (graph, memory) = captured(f)?;
        call(f, move |_| {
            _ = &memory;
            Ok(graph.launch()?)
        })
    }),
    ("graph-upload", |f| prepared(f, captured, |_, (graph, _)| Ok(graph.upload()?))),
    ("drop-graph", |f| dropped(f, captured)),
    ("cublas-new", |f| {
        has_cublas()?;
        call(f, |f| Ok(CudaBlas::new(Arc::clone(&f.stream))?))
    }),
    ("cublas-gemm", |f| {
        has_cublas()?;
        let blas = CudaBlas::new(Arc::clone(&f.stream))?;
        call(f, move |f| multiply(f, &blas))
    }),
    ("cublas-drop", |f| {
        has_cublas()?;
        dropped(f, |f| Ok(CudaBlas::new(Arc::clone(&f.stream))?))
    }),
    ("curand-new", |f| {
        has_curand()?;
        call(f, |f| Ok(CudaRng::new(7, Arc::clone(&f.stream))?))
    }),
    ("curand-uniform", |f| {
        has_curand()?;
        let rng = CudaRng::new(7, Arc::clone(&f.stream))?;
        call(f, move |f| Ok(rng.fill_with_uniform(&mut *f.x.borrow_mut())?))
    }),
];

fn call<R: 'static>(f: &Shared, call: impl Fn(&Fixture) -> Result<R> + 'static) -> Result<Call> {
    prepared(f, |_| Ok(()), move |f, ()| call(f))
}

/// A call on what is made anew for each time.
fn prepared<I: 'static, R: 'static>(
    f: &Shared,
    make: impl Fn(&Fixture) -> Result<I> + 'static,
    call: impl Fn(&Fixture, I) -> Result<R> + 'static,
) -> Result<Call> {
    let call = Call::sharing(&f.held, f, make, call);
    // Of one stream, the first is no other one.
    Ok(if f.held.is_same(&f.held_first) { call } else { call.beside(&f.held_first) })
}

/// The drop of what is made anew for each time.
fn dropped<T: 'static>(f: &Shared, make: impl Fn(&Fixture) -> Result<T> + 'static) -> Result<Call> {
    prepared(f, make, |_, made| {
        drop(made);
        Ok(())
    })
}

/// The same, which is used behind the gate before it is dropped.
fn dropped_behind<T: 'static>(
    f: &Shared,
    make: impl Fn(&Fixture) -> Result<T> + 'static,
    uses: impl Fn(&Fixture, &mut T) -> Result<()> + 'static,
) -> Result<Call> {
    let (place, own) = (Rc::new(RefCell::new(None)), Rc::clone(f));
    let (made, used) = (Rc::clone(&place), Rc::clone(&place));
    let make = move |f: &Fixture| {
        made.replace(Some(make(f)?));
        Ok(())
    };
    let drops = move |_: &Fixture, ()| {
        drop(place.take());
        Ok(())
    };
    Ok(prepared(f, make, drops)?
        .behind_work(move || used.borrow_mut().as_mut().map_or(Ok(()), |made| uses(&own, made))))
}

/// A call on an event that is recorded behind the gate.
fn of_event<R: 'static>(
    f: &Shared,
    flags: Option<CUevent_flags>,
    ask: impl Fn(&Fixture, &CudaEvent) -> Result<R> + 'static,
) -> Result<Call> {
    let event = Rc::new(f.context.new_event(flags)?);
    let (recorded, own) = (Rc::clone(&event), Rc::clone(f));
    Ok(call(f, move |f| ask(f, &event))?.behind_work(move || Ok(recorded.record(&own.stream)?)))
}

fn allocated(f: &Fixture, elements: usize) -> Result<CudaSlice<f32>> {
    // Safety: any bits are a number, and what they are decides nothing.
    Ok(unsafe { f.stream.alloc(elements) }?)
}

fn uploaded(f: &Shared, elements: usize) -> Result<Call> {
    let host = vec![1.0_f32; elements];
    call(f, move |f| Ok(f.stream.clone_htod(&host)?))
}

fn pinned<T: DeviceRepr>(f: &Fixture, elements: usize) -> Result<PinnedHostSlice<T>> {
    // Safety: any bits are a number, and what they are decides nothing.
    Ok(unsafe { f.context.alloc_pinned(elements) }?)
}

fn unified(f: &Fixture) -> Result<UnifiedSlice<f32>> {
    // Safety: any bits are a number.
    Ok(unsafe { f.context.alloc_unified(ELEMENTS, true) }?)
}

fn launch(f: &Fixture, x: &mut CudaSlice<f32>) -> Result<()> {
    let (by, n) = (1.5_f32, ELEMENTS as u32);
    let mut launch = f.stream.launch_builder(&f.scale);
    launch.arg(x).arg(&by).arg(&n);
    // Safety: the arguments are those of the kernel, which stays within the `n` elements of `x`.
    unsafe { launch.launch(LaunchConfig::for_num_elems(n)) }?;
    Ok(())
}

fn launched(f: &Fixture, timed: Option<CUevent_flags>, is_cooperative: bool) -> Result<Option<(CudaEvent, CudaEvent)>> {
    let (by, n, mut x) = (1.5_f32, ELEMENTS as u32, f.x.borrow_mut());
    let mut launch = f.stream.launch_builder(&f.scale);
    launch.arg(&mut *x).arg(&by).arg(&n);
    if let Some(flags) = timed {
        launch.record_kernel_launch(flags);
    }
    let config = LaunchConfig::for_num_elems(n);
    // Safety: as above; 64 blocks are on the device together.
    Ok(unsafe { if is_cooperative { launch.launch_cooperative(config) } else { launch.launch(config) } }?)
}

/// A graph, and what it writes to.
type Captured = (CudaGraph, CudaSlice<f32>);

/// A graph of one operation, captured on the stream.
fn captured(f: &Fixture) -> Result<Captured> {
    // Safety: the memory is used by the graph alone. To wait for an event from before a capture is an error in it, so that memory
    // with cudarc's events cannot be used there.
    unsafe { f.context.disable_event_tracking() };
    let memory = allocated(f, ELEMENTS);
    // Safety: as above.
    unsafe { f.context.enable_event_tracking() };
    let mut memory = memory?;
    f.stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)?;
    let enqueued = f.stream.memset_zeros(&mut memory);
    let graph = f.stream.end_capture(CUgraphInstantiate_flags(0));
    enqueued?;
    Ok((graph?.ok_or("the capture left no graph")?, memory))
}

fn multiply(f: &Fixture, blas: &CudaBlas) -> Result<()> {
    let (n, plain) = (SIDE as i32, cublas::sys::cublasOperation_t::CUBLAS_OP_N);
    let config =
        GemmConfig { transa: plain, transb: plain, m: n, n, k: n, alpha: 1.0, lda: n, ldb: n, beta: 0.0, ldc: n };
    // Safety: three square matrices of so many rows.
    unsafe { blas.gemm(config, &*f.x.borrow(), &*f.x.borrow(), &mut *f.y.borrow_mut()) }?;
    Ok(())
}

fn has_cublas() -> Result<()> {
    // Safety: it looks for the library, and calls nothing of it.
    let is_here = unsafe { cublas::sys::is_culib_present() };
    is_here.then_some(()).ok_or_else(|| not_applicable("libcublas was not found"))
}

fn has_curand() -> Result<()> {
    // Safety: as above.
    let is_here = unsafe { curand::sys::is_culib_present() };
    is_here.then_some(()).ok_or_else(|| not_applicable("libcurand was not found"))
}
