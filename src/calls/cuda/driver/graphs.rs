//! Calls about graphs: of one kernel, where nothing else is said.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::sys::{
    self, CUDA_KERNEL_NODE_PARAMS, CUgraph, CUgraphExec, CUgraphExecUpdateResult, CUgraphExecUpdateResultInfo,
    CUgraphNode, CUstream, CUstream_flags, CUstreamCaptureMode,
};

use super::owned::Owned;
use super::{Calls, stream};
use crate::Result;
use crate::catalogue::GraphCall;
use crate::{Made, RigStream, Steps};

pub(super) fn steps(calls: &Arc<Calls>, call: GraphCall) -> Result<Box<dyn Steps>> {
    let (c, context, own) = (Arc::clone(calls), calls.context.clone(), calls.own.get()?);
    Ok(match call {
        GraphCall::BeginCapture => Made::new(
            move || stream(&c.context, CUstream_flags::CU_STREAM_NON_BLOCKING).map(Capturing::idle),
            begin(calls),
        )
        .boxed(),
        GraphCall::EndCapture => {
            let (begin, kernel) = (begin(calls), Arc::clone(calls));
            let captured = move || {
                let mut capturing = stream(&c.context, CUstream_flags::CU_STREAM_NON_BLOCKING).map(Capturing::idle)?;
                begin(&mut capturing)?;
                kernel.launch(capturing.stream.get()?, Duration::ZERO)?;
                Ok((capturing, Owned::empty(&c.context, sys::cuGraphDestroy)))
            };
            let c = Arc::clone(calls);
            Made::new(captured, move |(capturing, graph)| {
                let mut raw = ptr::null_mut();
                capturing.is_capturing = false;
                // Safety: the stream captures; writes one handle.
                let status = unsafe { sys::cuStreamEndCapture(capturing.stream.get()?, &mut raw) };
                c.check("cuStreamEndCapture", status)?;
                graph.keep("cuStreamEndCapture", raw, status)
            })
            .boxed()
        }
        GraphCall::Create => Made::new(move || Ok(Owned::empty(&context, sys::cuGraphDestroy)), create).boxed(),
        GraphCall::AddKernel => Made::new(move || empty(&c), {
            let c = Arc::clone(calls);
            move |graph: &mut Owned<CUgraph>| add_kernel(&c, graph.get()?).map(drop)
        })
        .boxed(),
        GraphCall::Instantiate => {
            let made = move || Ok((one_kernel(&c)?.0, Owned::empty(&c.context, sys::cuGraphExecDestroy)));
            Made::new(made, |(graph, place)| instantiate(graph.get()?, place)).boxed()
        }
        GraphCall::Update => {
            let made = move || Ok((executable(&c)?, one_kernel(&c)?.0));
            let c = Arc::clone(calls);
            Made::new(made, move |(executable, graph)| update(&c, executable, graph.get()?)).boxed()
        }
        GraphCall::UpdatePending => {
            let (launcher, updater) = (Arc::clone(calls), Arc::clone(calls));
            Made::new(
                move || Ok((launched(&c, own)?, one_kernel(&c)?.0)),
                move |(executable, graph)| update(&updater, executable, graph.get()?),
            )
            .behind(move |(executable, _)| launch(&launcher, executable.raw.get()?, own))
            .boxed()
        }
        GraphCall::SetParameters => {
            let made = move || executable(&c);
            let c = Arc::clone(calls);
            Made::new(made, move |executable| {
                with_parameters(&c, |parameters| {
                    // Safety: the node is of the graph that the executable was made of.
                    let status = unsafe {
                        sys::cuGraphExecKernelNodeSetParams_v2(executable.raw.get()?, executable.node, parameters)
                    };
                    c.check("cuGraphExecKernelNodeSetParams", status)
                })
            })
            .boxed()
        }
        GraphCall::Upload => {
            let made = move || executable(&c);
            let c = Arc::clone(calls);
            Made::new(made, move |executable| {
                // Safety: both are live.
                c.check("cuGraphUpload", unsafe { sys::cuGraphUpload(executable.raw.get()?, own) })
            })
            .boxed()
        }
        GraphCall::FirstLaunch => {
            let made = move || executable(&c);
            let c = Arc::clone(calls);
            Made::new(made, move |executable| launch(&c, executable.raw.get()?, own)).boxed()
        }
        GraphCall::Launch => {
            let made = move || launched(&c, own);
            let c = Arc::clone(calls);
            Made::new(made, move |executable| launch(&c, executable.raw.get()?, own)).boxed()
        }
        GraphCall::LaunchPending => {
            let (launcher, again) = (Arc::clone(calls), Arc::clone(calls));
            Made::new(move || launched(&c, own), move |executable| launch(&again, executable.raw.get()?, own))
                .behind(move |executable| launch(&launcher, executable.raw.get()?, own))
                .boxed()
        }
        GraphCall::DestroyExecutable => {
            Made::new(move || launched(&c, own), |executable| executable.raw.end("cuGraphExecDestroy")).boxed()
        }
        GraphCall::DestroyPendingExecutable => {
            let launcher = Arc::clone(calls);
            Made::new(move || launched(&c, own), |executable| executable.raw.end("cuGraphExecDestroy"))
                .behind(move |executable| launch(&launcher, executable.raw.get()?, own))
                .boxed()
        }
        GraphCall::Destroy => {
            Made::new(move || one_kernel(&c).map(|(graph, _)| graph), |graph| graph.end("cuGraphDestroy")).boxed()
        }
    })
}

/// A stream that may capture.
struct Capturing {
    stream: Owned<CUstream>,
    is_capturing: bool,
}

impl Capturing {
    fn idle(stream: Owned<CUstream>) -> Self {
        Self { stream, is_capturing: false }
    }
}

impl Drop for Capturing {
    /// The capture ends, and its graph with it. A drop cannot return an error.
    fn drop(&mut self) {
        if let (true, Ok(stream)) = (self.is_capturing, self.stream.get()) {
            let mut graph = ptr::null_mut();
            // Safety: the stream is live; the graph is not used.
            unsafe {
                sys::cuStreamEndCapture(stream, &mut graph);
                if !graph.is_null() {
                    sys::cuGraphDestroy(graph);
                }
            }
        }
    }
}

/// Begins a capture that forbids no calls of other threads.
fn begin(calls: &Arc<Calls>) -> impl Fn(&mut Capturing) -> Result<()> + 'static {
    let c = Arc::clone(calls);
    move |capturing| {
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // Safety: the stream is live.
        let status = unsafe { sys::cuStreamBeginCapture_v2(capturing.stream.get()?, mode) };
        c.check("cuStreamBeginCapture", status)?;
        capturing.is_capturing = true;
        Ok(())
    }
}

fn create(place: &mut Owned<CUgraph>) -> Result<()> {
    let mut raw = ptr::null_mut();
    // Safety: writes one handle.
    let status = unsafe { sys::cuGraphCreate(&mut raw, 0) };
    place.keep("cuGraphCreate", raw, status)
}

fn empty(calls: &Calls) -> Result<Owned<CUgraph>> {
    let mut graph = Owned::empty(&calls.context, sys::cuGraphDestroy);
    create(&mut graph).map(|()| graph)
}

/// Calls `run` with a launch of the kernel.
fn with_parameters(calls: &Calls, run: impl FnOnce(&CUDA_KERNEL_NODE_PARAMS) -> Result<()>) -> Result<()> {
    let mut nanoseconds = 0u64;
    let mut arguments = [(&raw mut nanoseconds).cast::<c_void>()];
    run(&CUDA_KERNEL_NODE_PARAMS {
        func: calls.kernel,
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 1,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        kernelParams: arguments.as_mut_ptr(),
        extra: ptr::null_mut(),
        kern: ptr::null_mut(),
        ctx: ptr::null_mut(),
    })
}

fn add_kernel(calls: &Calls, graph: CUgraph) -> Result<CUgraphNode> {
    let mut node = ptr::null_mut();
    with_parameters(calls, |parameters| {
        // Safety: the graph is live; the driver copies the arguments. Writes one handle.
        let status = unsafe { sys::cuGraphAddKernelNode_v2(&mut node, graph, ptr::null(), 0, parameters) };
        calls.check("cuGraphAddKernelNode", status)
    })?;
    Ok(node)
}

fn one_kernel(calls: &Calls) -> Result<(Owned<CUgraph>, CUgraphNode)> {
    let graph = empty(calls)?;
    let node = add_kernel(calls, graph.get()?)?;
    Ok((graph, node))
}

fn instantiate(graph: CUgraph, place: &mut Owned<CUgraphExec>) -> Result<()> {
    let mut raw = ptr::null_mut();
    // Safety: the graph is live; writes one handle.
    let status = unsafe { sys::cuGraphInstantiateWithFlags(&mut raw, graph, 0) };
    place.keep("cuGraphInstantiate", raw, status)
}

/// An executable graph, and the graph that it was made of, to which the node belongs.
struct Executable {
    raw: Owned<CUgraphExec>,
    node: CUgraphNode,
    #[allow(dead_code, reason = "kept for its node")]
    graph: Owned<CUgraph>,
}

fn executable(calls: &Calls) -> Result<Executable> {
    let (graph, node) = one_kernel(calls)?;
    let mut raw = Owned::empty(&calls.context, sys::cuGraphExecDestroy);
    instantiate(graph.get()?, &mut raw)?;
    Ok(Executable { raw, node, graph })
}

/// One that has been launched once, and is over.
fn launched(calls: &Calls, own: CUstream) -> Result<Executable> {
    let executable = executable(calls)?;
    launch(calls, executable.raw.get()?, own)?;
    calls.synchronize(RigStream::Own)?;
    Ok(executable)
}

/// Gives an executable graph the arguments of a graph of the same nodes. Launches that are enqueued keep theirs.
#[inline]
fn update(calls: &Calls, executable: &Executable, graph: CUgraph) -> Result<()> {
    let mut result = CUgraphExecUpdateResultInfo {
        result: CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_SUCCESS,
        errorNode: ptr::null_mut(),
        errorFromNode: ptr::null_mut(),
    };
    // Safety: both are live, of the same nodes; writes one result.
    let status = unsafe { sys::cuGraphExecUpdate_v2(executable.raw.get()?, graph, &mut result) };
    calls.check("cuGraphExecUpdate", status)
}

#[inline]
fn launch(calls: &Calls, executable: CUgraphExec, stream: CUstream) -> Result<()> {
    // Safety: both are live.
    calls.check("cuGraphLaunch", unsafe { sys::cuGraphLaunch(executable, stream) })
}
