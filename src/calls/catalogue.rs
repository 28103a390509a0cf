//! The calls that are measured, by engine and family.

#![allow(missing_docs, reason = "what is named by the driver's functions, which the tables below give in full")]

use super::layer::Layer;
use super::{Family, On, OwnCall};

/// A call of a catalogue.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The function's name, without the version that its symbol may carry.
    pub name: &'static str,
    /// What sets it apart from other calls of the same function.
    pub way: Option<&'static str>,
    /// The kind of memory that it is about.
    pub memory: Option<Memory>,
    /// How many bytes of it.
    pub bytes: Option<usize>,
    /// The stream that it is given.
    pub on: On,
    /// What it does.
    pub action: Action,
}

impl Call {
    /// The kind of memory that it is about, or both where it goes from one kind of host memory to another.
    pub fn memories(&self) -> Option<String> {
        let memory = self.memory?;
        Some(match self.action {
            Action::Copy(Copy { direction: CopyDirection::HostTo(to), .. }) => {
                format!("{} to {}", memory.name(), to.name())
            }
            _ => memory.name().to_owned(),
        })
    }

    /// Whether each time makes and ends a context of the driver, or connects devices, which takes most of a second on a GPU.
    pub fn takes_long(&self) -> bool {
        matches!(
            self.action,
            Action::Device(DeviceCall::CreateContext | DeviceCall::DestroyContext)
                | Action::AllReduce(AllReduceCall::First)
        )
    }

    /// Whether all later calls of the process are slower once this one was made. After `cuStreamAttachMemAsync`, each launch on
    /// an idle device, and each copy of managed memory, takes some ten microseconds longer for as long as the process lives
    /// (seen in each of three processes on an H200, driver 580), and each all-reduce takes three times as long (two H100s).
    pub fn slows_the_process(&self) -> bool {
        matches!(self.action, Action::Memory(Allocate::Attach))
    }

    /// Whether it connects devices: NCCL enables access between them, which stays.
    pub fn connects(&self) -> bool {
        matches!(self.action, Action::AllReduce(_))
    }
}

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Waits, asks or orders.
    Wait(Wait),
    /// Copies.
    Copy(Copy),
    /// Fills memory.
    Fill {
        /// Of this kind.
        memory: Memory,
        /// So much.
        bytes: usize,
        /// By the call that takes a stream.
        asynchronous: bool,
    },
    /// Allocates or frees.
    Memory(Allocate),
    /// Loads code.
    Code(Code),
    /// Makes or ends a stream or an event.
    Object(Object),
    /// Is about a graph.
    Graph(GraphCall),
    /// Launches, or changes the context.
    Launch(Launch),
    /// Is about contexts and devices.
    Device(DeviceCall),
    /// Is an all-reduce over this device and another one.
    AllReduce(AllReduceCall),
    /// Launches through a layer.
    Layer(Layer),
    /// A call of the engine's own interface.
    Own(OwnCall),
}

/// A kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Ordinary host memory.
    Pageable,
    /// Page-locked by its allocation.
    Pinned,
    /// Ordinary host memory that was page-locked afterwards.
    Registered,
    /// Memory that the driver moves between host and device.
    Managed,
    /// Memory of the device.
    Device,
}

impl Memory {
    /// Those that a host thread can read and write.
    const OF_HOST: [Self; 4] = [Self::Pageable, Self::Pinned, Self::Registered, Self::Managed];

    /// All kinds.
    const ALL: [Self; 5] = [Self::Pageable, Self::Pinned, Self::Registered, Self::Managed, Self::Device];

    /// Its name, as a parameter of a row.
    pub fn name(self) -> &'static str {
        match self {
            Memory::Pageable => "pageable",
            Memory::Pinned => "pinned",
            Memory::Registered => "registered",
            Memory::Managed => "managed",
            Memory::Device => "device",
        }
    }
}

/// Calls that wait, ask or order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    Context,
    Stream,
    Legacy,
    QueryStream,
    Event,
    BlockingEvent,
    QueryEvent,
    Elapsed,
    Record,
    StreamAfterEvent,
    StreamAfterValue,
    WriteValue,
    HostFunction,
    Callback,
}

/// A copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy {
    /// Which way.
    pub direction: CopyDirection,
    /// The kind of memory on the host, or of both sides; of two kinds, that which is copied from.
    pub memory: Memory,
    /// How much.
    pub bytes: usize,
    /// Whether it is the call that takes a stream.
    pub asynchronous: bool,
}

/// The direction of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyDirection {
    ToDevice,
    ToHost,
    WithinDevice,
    WithinHost,
    /// From one kind of memory of the host to this other kind.
    HostTo(Memory),
}

/// Calls that allocate, free, or say something of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocate {
    Alloc(usize),
    Free(usize),
    AllocAsync(usize),
    AllocFromPool(usize),
    FreeAsync(usize),
    HostAlloc(usize),
    FreeHost(usize),
    Register(usize),
    Unregister(usize),
    AllocManaged(usize),
    FreeManaged(usize),
    TrimPool,
    CreatePool,
    DestroyPool,
    Info,
    Attribute,
    Prefetch,
    Advise,
    Attach,
    Reserve,
    FreeAddress,
    Create,
    Release,
    Map,
    SetAccess,
    Unmap,
}

/// Calls that load code or ask about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    LoadModule,
    UnloadModule,
    GetFunction,
    FirstLaunch,
    LoadLibrary,
    UnloadLibrary,
    UnloadUsedLibrary,
    GetKernel,
    KernelFunction,
    FirstLaunchOfLibrary,
    LoadFunction,
    GetAttribute,
    GetAttributeFirst,
    SetAttribute,
    SetCache,
    Occupancy,
}

/// Calls that make and end streams and events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    CreateStream,
    CreateNonBlocking,
    CreateWithPriority,
    DestroyStream,
    DestroyPendingStream,
    GetPriority,
    CreateEvent,
    DestroyEvent,
    DestroyPendingEvent,
}

/// Calls about graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphCall {
    BeginCapture,
    EndCapture,
    Create,
    AddKernel,
    Instantiate,
    Update,
    UpdatePending,
    SetParameters,
    Upload,
    FirstLaunch,
    Launch,
    LaunchPending,
    DestroyExecutable,
    DestroyPendingExecutable,
    Destroy,
}

/// Launches, and settings of the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launch {
    Plain,
    Legacy,
    Programmatic,
    Cooperative,
    FullQueue,
    GetLimit,
    SetStack,
    SetPrintf,
    SetHeap,
    SetCache,
    ResetL2,
    SetFlags,
}

/// Calls about contexts and devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceCall {
    GetAttribute,
    RetainPrimary,
    ReleasePrimary,
    SetPrimaryFlags,
    GetPrimaryState,
    CreateContext,
    DestroyContext,
    CanAccessPeer,
    EnablePeer,
    DisablePeer,
    CopyPeer(usize),
    CopyPeerAsync(usize),
}

/// All-reduces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllReduceCall {
    /// The first one of a connection.
    First,
    /// One of a connection that has made others.
    Later,
}

/// The calls of a family on an engine; `sizes` are those of transfers.
pub fn calls(engine: &str, family: Family, sizes: &[usize]) -> Vec<Call> {
    if engine == "cpu" {
        return OwnCall::of(family).map(|own| call(own.name(), None, own.on(), Action::Own(own))).collect();
    }
    let ends = [sizes.first().copied().unwrap_or(4), sizes.last().copied().unwrap_or(4)];
    let ends = if ends[0] == ends[1] { &ends[..1] } else { &ends[..] };
    match family {
        Family::Wait => waits(),
        Family::Copy => sizes.iter().flat_map(|bytes| copies(*bytes)).collect(),
        Family::Fill => sizes.iter().flat_map(|bytes| fills(*bytes)).collect(),
        Family::Memory => ends.iter().flat_map(|bytes| allocations(*bytes)).chain(memory()).collect(),
        Family::Code => code(),
        Family::Object => objects(),
        Family::Graph => graphs(),
        Family::Launch => launches(),
        Family::Device => {
            devices().into_iter().chain(ends.iter().flat_map(|bytes| peers(*bytes))).chain(all_reduces()).collect()
        }
    }
}

fn call(name: &'static str, way: Option<&'static str>, on: On, action: Action) -> Call {
    Call { name, way, memory: None, bytes: None, on, action }
}

fn waits() -> Vec<Call> {
    let wait = |name, way, on, wait| call(name, way, on, Action::Wait(wait));
    vec![
        wait("cuCtxSynchronize", None, On::Nothing, Wait::Context),
        wait("cuStreamSynchronize", None, On::Stream, Wait::Stream),
        wait("cuStreamSynchronize", Some("legacy default stream"), On::Legacy, Wait::Legacy),
        wait("cuStreamQuery", None, On::Stream, Wait::QueryStream),
        wait("cuEventSynchronize", None, On::Stream, Wait::Event),
        wait("cuEventSynchronize", Some("blocking event"), On::Stream, Wait::BlockingEvent),
        wait("cuEventQuery", None, On::Stream, Wait::QueryEvent),
        wait("cuEventElapsedTime", None, On::Stream, Wait::Elapsed),
        wait("cuEventRecord", None, On::Stream, Wait::Record),
        wait("cuStreamWaitEvent", None, On::Stream, Wait::StreamAfterEvent),
        wait("cuStreamWaitValue32", None, On::Stream, Wait::StreamAfterValue),
        wait("cuStreamWriteValue32", None, On::Stream, Wait::WriteValue),
        wait("cuLaunchHostFunc", None, On::Stream, Wait::HostFunction),
        wait("cuStreamAddCallback", None, On::Stream, Wait::Callback),
    ]
}

fn copies(bytes: usize) -> impl Iterator<Item = Call> {
    use CopyDirection::{HostTo, ToDevice, ToHost, WithinDevice, WithinHost};
    const WITHIN_HOST: [&str; 2] = ["cuMemcpy", "cuMemcpyAsync"];
    let names = [
        (ToDevice, ["cuMemcpyHtoD", "cuMemcpyHtoDAsync"], &Memory::OF_HOST[..]),
        (ToHost, ["cuMemcpyDtoH", "cuMemcpyDtoHAsync"], &Memory::OF_HOST[..]),
        (WithinDevice, ["cuMemcpyDtoD", "cuMemcpyDtoDAsync"], &[Memory::Managed, Memory::Device][..]),
        (WithinHost, WITHIN_HOST, &Memory::OF_HOST[..]),
        // The driver may treat a copy by what it knows of either side.
        (HostTo(Memory::Pinned), WITHIN_HOST, &[Memory::Pageable, Memory::Managed][..]),
        (HostTo(Memory::Pageable), WITHIN_HOST, &[Memory::Pinned, Memory::Managed][..]),
        (HostTo(Memory::Managed), WITHIN_HOST, &[Memory::Pageable, Memory::Pinned][..]),
    ];
    names.into_iter().flat_map(move |(direction, names, kinds)| {
        names.into_iter().zip([false, true]).flat_map(move |(name, asynchronous)| {
            kinds.iter().map(move |&memory| {
                let action = Action::Copy(Copy { direction, memory, bytes, asynchronous });
                let way = matches!(direction, WithinHost | HostTo(_)).then_some("host to host");
                Call { memory: Some(memory), bytes: Some(bytes), ..call(name, way, stream_if(asynchronous), action) }
            })
        })
    })
}

fn fills(bytes: usize) -> impl Iterator<Item = Call> {
    [("cuMemsetD8", false), ("cuMemsetD8Async", true)].into_iter().flat_map(move |(name, asynchronous)| {
        Memory::ALL.into_iter().map(move |memory| {
            let action = Action::Fill { memory, bytes, asynchronous };
            Call { memory: Some(memory), bytes: Some(bytes), ..call(name, None, stream_if(asynchronous), action) }
        })
    })
}

fn stream_if(asynchronous: bool) -> On {
    if asynchronous { On::Stream } else { On::Nothing }
}

fn allocations(bytes: usize) -> impl Iterator<Item = Call> {
    [
        ("cuMemAlloc", Memory::Device, On::Nothing, Allocate::Alloc(bytes)),
        ("cuMemFree", Memory::Device, On::Nothing, Allocate::Free(bytes)),
        ("cuMemAllocAsync", Memory::Device, On::Stream, Allocate::AllocAsync(bytes)),
        ("cuMemAllocFromPoolAsync", Memory::Device, On::Stream, Allocate::AllocFromPool(bytes)),
        ("cuMemFreeAsync", Memory::Device, On::Stream, Allocate::FreeAsync(bytes)),
        ("cuMemHostAlloc", Memory::Pinned, On::Nothing, Allocate::HostAlloc(bytes)),
        ("cuMemFreeHost", Memory::Pinned, On::Nothing, Allocate::FreeHost(bytes)),
        ("cuMemHostRegister", Memory::Registered, On::Nothing, Allocate::Register(bytes)),
        ("cuMemHostUnregister", Memory::Registered, On::Nothing, Allocate::Unregister(bytes)),
        ("cuMemAllocManaged", Memory::Managed, On::Nothing, Allocate::AllocManaged(bytes)),
        ("cuMemFree", Memory::Managed, On::Nothing, Allocate::FreeManaged(bytes)),
    ]
    .into_iter()
    .map(move |(name, memory, on, allocate)| Call {
        memory: Some(memory),
        bytes: Some(bytes),
        ..call(name, None, on, Action::Memory(allocate))
    })
}

fn memory() -> Vec<Call> {
    let memory = |name, on, allocate| call(name, None, on, Action::Memory(allocate));
    vec![
        memory("cuMemPoolCreate", On::Nothing, Allocate::CreatePool),
        memory("cuMemPoolDestroy", On::Nothing, Allocate::DestroyPool),
        memory("cuMemPoolTrimTo", On::Nothing, Allocate::TrimPool),
        memory("cuMemGetInfo", On::Nothing, Allocate::Info),
        memory("cuPointerGetAttribute", On::Nothing, Allocate::Attribute),
        memory("cuMemPrefetchAsync", On::Stream, Allocate::Prefetch),
        memory("cuMemAdvise", On::Nothing, Allocate::Advise),
        memory("cuStreamAttachMemAsync", On::Stream, Allocate::Attach),
        memory("cuMemAddressReserve", On::Nothing, Allocate::Reserve),
        memory("cuMemAddressFree", On::Nothing, Allocate::FreeAddress),
        memory("cuMemCreate", On::Nothing, Allocate::Create),
        memory("cuMemRelease", On::Nothing, Allocate::Release),
        memory("cuMemMap", On::Nothing, Allocate::Map),
        memory("cuMemSetAccess", On::Nothing, Allocate::SetAccess),
        memory("cuMemUnmap", On::Nothing, Allocate::Unmap),
    ]
}

fn code() -> Vec<Call> {
    let code = |name, way, on, code| call(name, way, on, Action::Code(code));
    vec![
        code("cuModuleLoadData", None, On::Nothing, Code::LoadModule),
        code("cuModuleUnload", None, On::Nothing, Code::UnloadModule),
        code("cuModuleGetFunction", None, On::Nothing, Code::GetFunction),
        code("cuLaunchKernel", Some("first of a module"), On::Stream, Code::FirstLaunch),
        code("cuLibraryLoadData", None, On::Nothing, Code::LoadLibrary),
        code("cuLibraryUnload", None, On::Nothing, Code::UnloadLibrary),
        code("cuLibraryUnload", Some("with a loaded kernel"), On::Nothing, Code::UnloadUsedLibrary),
        code("cuLibraryGetKernel", None, On::Nothing, Code::GetKernel),
        code("cuKernelGetFunction", None, On::Nothing, Code::KernelFunction),
        code("cuLaunchKernel", Some("first of a library"), On::Stream, Code::FirstLaunchOfLibrary),
        code("cuFuncLoad", None, On::Nothing, Code::LoadFunction),
        code("cuFuncGetAttribute", None, On::Nothing, Code::GetAttribute),
        code("cuFuncGetAttribute", Some("first of a module"), On::Nothing, Code::GetAttributeFirst),
        code("cuFuncSetAttribute", None, On::Nothing, Code::SetAttribute),
        code("cuFuncSetCacheConfig", None, On::Nothing, Code::SetCache),
        code("cuOccupancyMaxActiveBlocksPerMultiprocessor", None, On::Nothing, Code::Occupancy),
    ]
}

fn objects() -> Vec<Call> {
    let object = |name, way, on, object| call(name, way, on, Action::Object(object));
    vec![
        object("cuStreamCreate", None, On::Nothing, Object::CreateStream),
        object("cuStreamCreate", Some("non-blocking"), On::Nothing, Object::CreateNonBlocking),
        object("cuStreamCreateWithPriority", None, On::Nothing, Object::CreateWithPriority),
        object("cuStreamDestroy", None, On::Nothing, Object::DestroyStream),
        object("cuStreamDestroy", Some("with pending work"), On::Stream, Object::DestroyPendingStream),
        object("cuStreamGetPriority", None, On::Stream, Object::GetPriority),
        object("cuEventCreate", None, On::Nothing, Object::CreateEvent),
        object("cuEventDestroy", None, On::Nothing, Object::DestroyEvent),
        object("cuEventDestroy", Some("recorded and not reached"), On::Stream, Object::DestroyPendingEvent),
    ]
}

fn graphs() -> Vec<Call> {
    let graph = |name, way, on, graph| call(name, way, on, Action::Graph(graph));
    vec![
        graph("cuStreamBeginCapture", None, On::Nothing, GraphCall::BeginCapture),
        graph("cuStreamEndCapture", None, On::Nothing, GraphCall::EndCapture),
        graph("cuGraphCreate", None, On::Nothing, GraphCall::Create),
        graph("cuGraphAddKernelNode", None, On::Nothing, GraphCall::AddKernel),
        graph("cuGraphInstantiate", None, On::Nothing, GraphCall::Instantiate),
        graph("cuGraphExecUpdate", None, On::Nothing, GraphCall::Update),
        graph("cuGraphExecUpdate", Some("launched and not over"), On::Stream, GraphCall::UpdatePending),
        graph("cuGraphExecKernelNodeSetParams", None, On::Nothing, GraphCall::SetParameters),
        graph("cuGraphUpload", None, On::Stream, GraphCall::Upload),
        graph("cuGraphLaunch", Some("first"), On::Stream, GraphCall::FirstLaunch),
        graph("cuGraphLaunch", Some("again"), On::Stream, GraphCall::Launch),
        graph("cuGraphLaunch", Some("launched and not over"), On::Stream, GraphCall::LaunchPending),
        graph("cuGraphExecDestroy", None, On::Nothing, GraphCall::DestroyExecutable),
        graph("cuGraphExecDestroy", Some("launched and not over"), On::Stream, GraphCall::DestroyPendingExecutable),
        graph("cuGraphDestroy", None, On::Nothing, GraphCall::Destroy),
    ]
}

fn launches() -> Vec<Call> {
    let launch = |name, way, on, launch| call(name, way, on, Action::Launch(launch));
    vec![
        launch("cuLaunchKernel", None, On::Stream, Launch::Plain),
        launch("cuLaunchKernel", Some("legacy default stream"), On::Legacy, Launch::Legacy),
        launch("cuLaunchKernelEx", Some("programmatic"), On::Stream, Launch::Programmatic),
        launch("cuLaunchCooperativeKernel", None, On::Stream, Launch::Cooperative),
        launch("cuLaunchKernel", Some("full queue"), On::Stream, Launch::FullQueue),
        launch("cuCtxGetLimit", None, On::Nothing, Launch::GetLimit),
        launch("cuCtxSetLimit", Some("stack"), On::Nothing, Launch::SetStack),
        launch("cuCtxSetLimit", Some("printf buffer"), On::Nothing, Launch::SetPrintf),
        launch("cuCtxSetLimit", Some("heap"), On::Nothing, Launch::SetHeap),
        launch("cuCtxSetCacheConfig", None, On::Nothing, Launch::SetCache),
        launch("cuCtxResetPersistingL2Cache", None, On::Nothing, Launch::ResetL2),
        launch("cuCtxSetFlags", None, On::Nothing, Launch::SetFlags),
    ]
}

fn devices() -> Vec<Call> {
    let device = |name, device| call(name, None, On::Nothing, Action::Device(device));
    vec![
        device("cuDeviceGetAttribute", DeviceCall::GetAttribute),
        device("cuDevicePrimaryCtxRetain", DeviceCall::RetainPrimary),
        device("cuDevicePrimaryCtxRelease", DeviceCall::ReleasePrimary),
        device("cuDevicePrimaryCtxSetFlags", DeviceCall::SetPrimaryFlags),
        device("cuDevicePrimaryCtxGetState", DeviceCall::GetPrimaryState),
        device("cuCtxCreate", DeviceCall::CreateContext),
        device("cuCtxDestroy", DeviceCall::DestroyContext),
        device("cuDeviceCanAccessPeer", DeviceCall::CanAccessPeer),
        device("cuCtxEnablePeerAccess", DeviceCall::EnablePeer),
        device("cuCtxDisablePeerAccess", DeviceCall::DisablePeer),
    ]
}

fn peers(bytes: usize) -> impl Iterator<Item = Call> {
    [
        ("cuMemcpyPeer", On::Nothing, DeviceCall::CopyPeer(bytes)),
        ("cuMemcpyPeerAsync", On::Stream, DeviceCall::CopyPeerAsync(bytes)),
    ]
    .into_iter()
    .map(move |(name, on, peer)| Call {
        memory: Some(Memory::Device),
        bytes: Some(bytes),
        ..call(name, None, on, Action::Device(peer))
    })
}

fn all_reduces() -> [Call; 2] {
    let all_reduce = |way, which| call("ncclAllReduce", Some(way), On::Stream, Action::AllReduce(which));
    [all_reduce("first", AllReduceCall::First), all_reduce("later", AllReduceCall::Later)]
}
