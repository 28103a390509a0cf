//! What a call can wait for, by its name: the driver's, the run-time library's, or syncscope's own.
//!
//! A name says only what a call *may* do. Whether it waited is judged by what was pending (`evidence`).

/// What a call is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Class {
    /// Waits for a stream.
    Stream,
    /// Waits for all streams.
    Context,
    /// Waits for an event.
    Event,
    /// Records an event.
    Record,
    /// Copies; with a stream it may return before the copy is done.
    Copy { asynchronous: bool },
    /// Frees memory, which waits for all streams.
    Free,
    /// Undoes a page-lock, which waits for all streams.
    Unlock,
    /// Allocates memory of the device, maps it or gives it back, none of which waits.
    Allocate,
    /// Page-locks host memory, which does not wait.
    PageLock,
    /// Loads code.
    Load,
    /// Fills memory, ends a context or changes its limits, which can wait for all streams.
    Implicit,
    /// A profiler's own, which the program does not make without it.
    Profiler,
    /// Anything else: it has no reason to wait, and can take long by itself, as the first launch of a kernel does.
    #[default]
    Other,
}

/// The functions of each class, of the driver and of the run-time library, without what their names begin and end with.
const NAMES: [(Class, &str); 10] = [
    (Class::Stream, "StreamSynchronize"),
    (Class::Context, "CtxSynchronize DeviceSynchronize ThreadSynchronize"),
    (Class::Event, "EventSynchronize"),
    (Class::Record, "EventRecord EventRecordWithFlags"),
    (Class::Free, "MemFree Free FreeArray FreeMipmappedArray ArrayDestroy MipmappedArrayDestroy"),
    (Class::Unlock, "MemFreeHost FreeHost HostFree MemHostUnregister HostUnregister"),
    (
        Class::Allocate,
        "MemAlloc Malloc MemAllocManaged MallocManaged MemAllocPitch MallocPitch Malloc3D MallocArray Malloc3DArray \
         MallocMipmappedArray ArrayCreate Array3DCreate MipmappedArrayCreate MemCreate MemMap MemUnmap MemRelease \
         MemSetAccess MemPoolTrimTo",
    ),
    (Class::PageLock, "MemAllocHost MallocHost MemHostAlloc HostAlloc HostMalloc MemHostRegister HostRegister"),
    (Class::Load, "KernelGetFunction FuncLoad FuncGetAttributes"),
    (
        Class::Implicit,
        "CtxDestroy DevicePrimaryCtxReset DevicePrimaryCtxRelease DeviceReset ThreadExit CtxSetLimit DeviceSetLimit \
         ThreadSetLimit",
    ),
];

impl Class {
    /// Whether a name is one of CUDA or HIP, and not one of this library.
    pub(crate) fn is_known(function: &str) -> bool {
        unprefixed(function).is_some_and(|name| name.starts_with(|first: char| first.is_ascii_uppercase()))
    }

    /// Of a function of the driver (`cuMemFree_v2`), of the run-time library (`cudaFree`) or of HIP (`hipFree`).
    pub(crate) fn of(function: &str) -> Self {
        let endings = ["_ptsz", "_ptds", "_spt", "_v2", "_v3", "_v1"];
        let name = endings.iter().fold(function, |name, ending| name.strip_suffix(ending).unwrap_or(name));
        let name = unprefixed(name).unwrap_or(name);
        let is_named = |(_, names): &&(Self, &str)| names.split(' ').any(|known| known == name);
        match NAMES.iter().find(is_named) {
            Some((class, _)) => *class,
            None if name.starts_with("Memset") && !name.ends_with("Async") => Self::Implicit,
            None if name.starts_with("Memcpy") => Self::Copy { asynchronous: name.ends_with("Async") },
            None if name.contains("Launch") => Self::Other,
            None if name.starts_with("Module") || name.starts_with("Library") => Self::Load,
            None => Self::Other,
        }
    }

    /// What the host does in such a call beside waiting.
    pub(crate) fn cost(self) -> Activity {
        match self {
            Self::Allocate | Self::Free => Activity::Allocating,
            Self::PageLock | Self::Unlock => Activity::PageLocking,
            Self::Load => Activity::Loading,
            _ => Activity::Calling,
        }
    }

    /// Whether it asks for nothing but to wait.
    pub(crate) fn is_explicit(self) -> bool {
        matches!(self, Self::Stream | Self::Context | Self::Event)
    }
}

/// A function's name without what the names of its library begin with.
fn unprefixed(function: &str) -> Option<&str> {
    ["cuda", "cu", "hip"].iter().find_map(|library| function.strip_prefix(library))
}

/// What a host does at a time, in the order of a report.
///
/// ```
/// use syncscope_audit::Activity;
/// use syncscope::prelude::*;
///
/// let device = Device::open("cpu:0")?;
/// let stream = device.stream()?;
/// let (_, region) = syncscope_audit::region(&device, || stream.ones::<f32>([64])?.sum()?.item())?;
/// // What the host did adds up to the whole time.
/// let process = &region.report.processes[0];
/// assert_eq!(process.host.iter().map(|share| share.ns).sum::<u64>(), process.wall_ns);
/// let waited = process.host.iter().find(|share| share.doing == Activity::Waiting);
/// println!("waited for {} ns", waited.map_or(0, |share| share.ns));
/// # Ok::<(), DeviceError>(())
/// ```
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Activity {
    /// It waits for work that was pending.
    Waiting,
    /// It is blocked by a copy that it asked for, with nothing pending before.
    Copying,
    /// It loads code, often at the first launch of a kernel.
    Loading,
    /// It allocates or frees memory.
    Allocating,
    /// It page-locks host memory, or undoes that.
    PageLocking,
    /// It is in another call of the driver, for the call's own cost.
    Calling,
    /// It is in a call that took long for a reason that the records do not tell.
    Unknown,
    /// It is in no call that is watched: the program's own code, and launches.
    Own,
    /// The device had not begun, or had ended.
    Outside,
}

impl Activity {
    /// In words, of a host.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Waiting => "waiting for pending work",
            Self::Copying => "blocked by a copy of its own",
            Self::Loading => "loading code",
            Self::Allocating => "allocating and freeing",
            Self::PageLocking => "page-locking",
            Self::Calling => "cost of other watched calls",
            Self::Unknown => "unknown: a call took long, and no record says why",
            Self::Own => "own code and launches",
            Self::Outside => "before the first work and after the last",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_each_library_has_the_class_of_what_it_does() {
        for (name, class) in [
            ("cuStreamSynchronize_ptsz", Class::Stream),
            ("cudaDeviceSynchronize", Class::Context),
            ("cuCtxSynchronize_v2", Class::Context),
            ("cuMemcpyDtoHAsync_v2_ptsz", Class::Copy { asynchronous: true }),
            ("cuMemcpyDtoH_v2", Class::Copy { asynchronous: false }),
            ("cudaMemcpy", Class::Copy { asynchronous: false }),
            ("cuMemFree_v2", Class::Free),
            ("cuMemHostRegister_v2", Class::PageLock),
            ("cudaHostUnregister", Class::Unlock),
            ("cudaFreeHost", Class::Unlock),
            ("cuLibraryLoadData", Class::Load),
            ("cuMemsetD8_v2", Class::Implicit),
            ("cudaMemset", Class::Implicit),
            ("cuArrayCreate_v2", Class::Allocate),
            ("cudaMalloc3DArray", Class::Allocate),
            ("cudaMallocAsync", Class::Other),
            ("cuMemsetD8Async_ptsz", Class::Other),
            ("cudaLaunchKernel", Class::Other),
            ("cuLaunchKernelEx", Class::Other),
            ("cudaGraphLaunch", Class::Other),
        ] {
            assert_eq!(Class::of(name), class, "{name}");
            assert!(Class::is_known(name), "{name}");
        }
        assert!(!Class::is_known("cumsum") && !Class::is_known("Stream::synchronize"));
    }
}
