//! Calls about graphs: of one kernel, where nothing else is said.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::sys::{
    self, CUDA_KERNEL_NODE_PARAMS, CUgraph, CUgraphExec, CUgraphExecUpdateResult, CUgraphExecUpdateResultInfo,
    CUgraphNode, CUresult, CUstream, CUstream_flags, CUstreamCaptureMode,
};

use super::owned::Owned;
use super::{Calls, Status, call, creates, ends, made, stream};
use crate::catalogue::Call;
use crate::{On, Result, StreamRole};

pub(super) fn calls() -> Vec<Call> {
    vec![
        made("cuStreamBeginCapture", On::Nothing, Capturing::idle, |_, capturing| capturing.begin()),
        made("cuStreamEndCapture", On::Nothing, captured, |_, (capturing, graph)| {
            capturing.is_capturing = false;
            // Safety: the stream captures; writes one handle.
            graph.make(|raw| Ok(unsafe { sys::cuStreamEndCapture(capturing.stream.get()?, raw) }))
        }),
        creates("cuGraphCreate", On::Nothing, sys::cuGraphDestroy, |_, graph| Ok(create(graph))),
        made("cuGraphAddKernelNode", On::Nothing, empty, |c, graph| add_kernel(c, &mut ptr::null_mut(), graph.get()?)),
        made(
            "cuGraphInstantiate",
            On::Nothing,
            |c| Ok((one_kernel(c)?.0, Owned::empty(&c.context, sys::cuGraphExecDestroy))),
            |_, (graph, place)| place.make(|raw| Ok(instantiate(raw, graph.get()?))),
        ),
        update(),
        pending("cuGraphExecUpdate", |c| Ok((launched(c)?, one_kernel(c)?.0)), |pair| &pair.0, update_by),
        set_parameters(),
        made("cuGraphUpload", On::Stream, executable, |c, executable| {
            // Safety: both are live.
            Ok(unsafe { sys::cuGraphUpload(executable.raw.get()?, c.own.get()?) })
        }),
        made("cuGraphLaunch", On::Stream, executable, |c, executable| launch(c, executable)).way("first"),
        made("cuGraphLaunch", On::Stream, launched, |c, executable| launch(c, executable)).way("again"),
        pending("cuGraphLaunch", launched, |executable| executable, |c, executable| launch(c, executable)),
        made("cuGraphExecDestroy", On::Nothing, launched, |_, executable| executable.raw.end()),
        pending("cuGraphExecDestroy", launched, |executable| executable, |_, executable| executable.raw.end()),
        ends("cuGraphDestroy", |c| one_kernel(c).map(|(graph, _)| graph)),
    ]
}

/// An update of an executable graph by another one of the same nodes.
pub fn update() -> Call {
    made("cuGraphExecUpdate", On::Nothing, |c| Ok((executable(c)?, one_kernel(c)?.0)), update_by)
}

/// A change of the arguments of one node.
pub fn set_parameters() -> Call {
    made("cuGraphExecKernelNodeSetParams", On::Nothing, executable, |c, executable| {
        with_parameters(c, |parameters| {
            // Safety: the node is of the graph that the executable was made of.
            Ok(unsafe { sys::cuGraphExecKernelNodeSetParams_v2(executable.raw.get()?, executable.node, parameters) })
        })
    })
}

/// A call behind a launch of an executable graph that is part of what is made.
fn pending<T: 'static>(
    name: &'static str,
    make: impl Fn(&Calls) -> Result<T> + Copy + 'static,
    of: fn(&T) -> &Executable,
    run: impl Fn(&Calls, &mut T) -> Status + Copy + 'static,
) -> Call {
    let pending = call(name, On::Stream, move |calls| {
        let launcher = Arc::clone(calls);
        let behind = move |made: &mut T| launcher.check("cuGraphLaunch", launch(&launcher, of(made))?);
        Ok(calls.made(name, make, run).behind(behind).boxed())
    });
    pending.way("launched and not over")
}

/// A stream that may capture.
struct Capturing {
    stream: Owned<CUstream>,
    is_capturing: bool,
}

impl Capturing {
    fn idle(calls: &Calls) -> Result<Self> {
        let stream = stream(&calls.context, CUstream_flags::CU_STREAM_NON_BLOCKING)?;
        Ok(Self { stream, is_capturing: false })
    }

    /// Begins a capture that forbids no calls of other threads.
    fn begin(&mut self) -> Status {
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // Safety: the stream is live.
        let status = unsafe { sys::cuStreamBeginCapture_v2(self.stream.get()?, mode) };
        self.is_capturing = status == CUresult::CUDA_SUCCESS;
        Ok(status)
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

/// A capture of one launch, and a place for its graph.
fn captured(calls: &Calls) -> Result<(Capturing, Owned<CUgraph>)> {
    let mut capturing = Capturing::idle(calls)?;
    calls.check("cuStreamBeginCapture", capturing.begin()?)?;
    calls.launch(capturing.stream.get()?, Duration::ZERO)?;
    Ok((capturing, Owned::empty(&calls.context, sys::cuGraphDestroy)))
}

fn create(graph: &mut CUgraph) -> CUresult {
    // Safety: writes one handle.
    unsafe { sys::cuGraphCreate(graph, 0) }
}

fn empty(calls: &Calls) -> Result<Owned<CUgraph>> {
    Owned::new(&calls.context, "cuGraphCreate", sys::cuGraphDestroy, create)
}

/// Calls `run` with a launch of the kernel.
fn with_parameters(calls: &Calls, run: impl FnOnce(&CUDA_KERNEL_NODE_PARAMS) -> Status) -> Status {
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

fn add_kernel(calls: &Calls, node: &mut CUgraphNode, graph: CUgraph) -> Status {
    with_parameters(calls, |parameters| {
        // Safety: the graph is live; the driver copies the arguments. Writes one handle.
        Ok(unsafe { sys::cuGraphAddKernelNode_v2(node, graph, ptr::null(), 0, parameters) })
    })
}

fn one_kernel(calls: &Calls) -> Result<(Owned<CUgraph>, CUgraphNode)> {
    let (graph, mut node) = (empty(calls)?, ptr::null_mut());
    calls.check("cuGraphAddKernelNode", add_kernel(calls, &mut node, graph.get()?)?)?;
    Ok((graph, node))
}

fn instantiate(executable: &mut CUgraphExec, graph: CUgraph) -> CUresult {
    // Safety: the graph is live; writes one handle.
    unsafe { sys::cuGraphInstantiateWithFlags(executable, graph, 0) }
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
    let of = graph.get()?;
    let raw = Owned::new(&calls.context, "cuGraphInstantiate", sys::cuGraphExecDestroy, |raw| instantiate(raw, of))?;
    Ok(Executable { raw, node, graph })
}

/// One that has been launched once, and is over.
fn launched(calls: &Calls) -> Result<Executable> {
    let executable = executable(calls)?;
    calls.check("cuGraphLaunch", launch(calls, &executable)?)?;
    calls.synchronize(StreamRole::Given)?;
    Ok(executable)
}

/// Gives an executable graph the arguments of a graph of the same nodes. Launches that are enqueued keep theirs.
fn update_by(_: &Calls, (executable, graph): &mut (Executable, Owned<CUgraph>)) -> Status {
    let mut result = CUgraphExecUpdateResultInfo {
        result: CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_SUCCESS,
        errorNode: ptr::null_mut(),
        errorFromNode: ptr::null_mut(),
    };
    // Safety: both are live, of the same nodes; writes one result.
    Ok(unsafe { sys::cuGraphExecUpdate_v2(executable.raw.get()?, graph.get()?, &mut result) })
}

/// Launches on the call's stream.
fn launch(calls: &Calls, executable: &Executable) -> Status {
    // Safety: both are live.
    Ok(unsafe { sys::cuGraphLaunch(executable.raw.get()?, calls.own.get()?) })
}
