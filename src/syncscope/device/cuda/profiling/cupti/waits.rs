//! Which calls of the driver can keep the host until the device has done its work: by the function and its arguments, never by
//! how long one took. So an answer holds on a fast device and with nothing pending, too.
//!
//! The library of no-wait tests (`src/audit/no_wait`) has this file as well: it uses nothing of this crate.
//!
//! # Method
//! The rules are what the chapters *What waits* of the book measured with a gate, on one NVIDIA H200 and driver 580. Where the
//! memory decides, the driver is asked which kind each pointer is of.
//!
//! # Limits
//! * A copy from pageable memory passes through memory of the driver. One of up to [`STAGED`] bytes did not wait. Several of them
//!   behind one another use that memory up, and then the next one waits: two of 1 MiB did not, eight of 256 KiB did.
//! * Calls that make something ready wait at most once, and a test would then depend on what ran before it: those that load
//!   code or create a context, and the first launch of a kernel. They are no waits here, and neither are calls that allocate or
//!   page-lock memory, which did not wait.
//! * Copies by `cuMemcpy3DBatchAsync`, and a launch for which the queue has no room, are not known.

use std::ffi::c_void;

/// The largest copy from pageable memory that returned while its stream was held: one of four bytes more waited.
pub(crate) const STAGED: u64 = 2 << 20;

/// Where memory lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    Pageable,
    Pinned,
    Managed,
    Device,
}

/// The kind of memory of a pointer, by what the driver answers to `CU_POINTER_ATTRIBUTE_MEMORY_TYPE` and
/// `CU_POINTER_ATTRIBUTE_IS_MANAGED`: nothing of memory that it does not know, which is pageable.
pub(crate) fn memory(kind: Option<u32>, managed: Option<u32>) -> Memory {
    const HOST: u32 = 1;
    match kind {
        None | Some(0) => Memory::Pageable,
        Some(_) if managed.is_some_and(|managed| managed & 0xff != 0) => Memory::Managed,
        Some(HOST) => Memory::Pinned,
        Some(_) => Memory::Device,
    }
}

/// What a call that can wait waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    pub(crate) why: &'static str,
    /// How many bytes it copies.
    pub(crate) bytes: Option<u64>,
}

/// When a function can wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Whatever its arguments are.
    Always(&'static str),
    /// If its first argument is not null: it frees nothing else.
    OfSomething(&'static str),
    /// If its first argument is the limit of the stack.
    OfStack(&'static str),
    /// If it fills memory that is not the device's.
    Fill,
    Copy(Shape, Timing),
    /// Many asynchronous copies.
    Batch,
}

/// Where a copy's arguments say where it copies from and to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// To, from and bytes.
    Plain,
    /// To memory and from an array, with an offset.
    FromArray,
    /// To an array, with an offset, and from memory.
    ToArray,
    /// A structure for two dimensions.
    Flat,
    /// One for three.
    Cuboid,
}

/// Whether a copy takes a stream, and by which function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timing {
    Synchronous,
    Asynchronous,
    /// The function names the direction: it waits for managed memory on the host's side.
    AsynchronousToDevice,
    AsynchronousToHost,
}

use Shape::{Cuboid, Flat, FromArray, Plain, ToArray};
use Timing::{Asynchronous, AsynchronousToDevice, AsynchronousToHost, Synchronous};

const ALL_STREAMS: &str = "waits for all streams";

/// The functions that can wait, without the marks of a thread's own default stream.
const RULES: &[(&str, Rule)] = &[
    ("cuStreamSynchronize", Rule::Always("waits for a stream")),
    ("cuEventSynchronize", Rule::Always("waits for an event")),
    ("cuCtxSynchronize", Rule::Always(ALL_STREAMS)),
    ("cuCtxSynchronize_v2", Rule::Always(ALL_STREAMS)),
    ("cuCtxDestroy_v2", Rule::Always(ALL_STREAMS)),
    ("cuDevicePrimaryCtxReset_v2", Rule::Always(ALL_STREAMS)),
    ("cuModuleUnload", Rule::Always(ALL_STREAMS)),
    ("cuLibraryUnload", Rule::Always(ALL_STREAMS)),
    ("cuMemFree_v2", Rule::OfSomething(ALL_STREAMS)),
    ("cuMemFreeHost", Rule::OfSomething(ALL_STREAMS)),
    ("cuMemHostUnregister", Rule::OfSomething(ALL_STREAMS)),
    ("cuArrayDestroy", Rule::OfSomething(ALL_STREAMS)),
    ("cuMipmappedArrayDestroy", Rule::OfSomething(ALL_STREAMS)),
    ("cuCtxSetLimit", Rule::OfStack(ALL_STREAMS)),
    ("cuMemsetD8_v2", Rule::Fill),
    ("cuMemsetD16_v2", Rule::Fill),
    ("cuMemsetD32_v2", Rule::Fill),
    ("cuMemsetD2D8_v2", Rule::Fill),
    ("cuMemsetD2D16_v2", Rule::Fill),
    ("cuMemsetD2D32_v2", Rule::Fill),
    ("cuMemcpy", Rule::Copy(Plain, Synchronous)),
    ("cuMemcpyHtoD_v2", Rule::Copy(Plain, Synchronous)),
    ("cuMemcpyDtoH_v2", Rule::Copy(Plain, Synchronous)),
    ("cuMemcpyDtoD_v2", Rule::Copy(Plain, Synchronous)),
    ("cuMemcpyAtoH_v2", Rule::Copy(FromArray, Synchronous)),
    ("cuMemcpyHtoA_v2", Rule::Copy(ToArray, Synchronous)),
    ("cuMemcpy2D_v2", Rule::Copy(Flat, Synchronous)),
    ("cuMemcpy2DUnaligned_v2", Rule::Copy(Flat, Synchronous)),
    ("cuMemcpy3D_v2", Rule::Copy(Cuboid, Synchronous)),
    ("cuMemcpy3DPeer", Rule::Copy(Cuboid, Synchronous)),
    ("cuMemcpyAsync", Rule::Copy(Plain, Asynchronous)),
    ("cuMemcpyHtoDAsync_v2", Rule::Copy(Plain, AsynchronousToDevice)),
    ("cuMemcpyDtoHAsync_v2", Rule::Copy(Plain, AsynchronousToHost)),
    ("cuMemcpyAtoHAsync_v2", Rule::Copy(FromArray, AsynchronousToHost)),
    ("cuMemcpyHtoAAsync_v2", Rule::Copy(ToArray, AsynchronousToDevice)),
    ("cuMemcpy2DAsync_v2", Rule::Copy(Flat, Asynchronous)),
    ("cuMemcpy3DAsync_v2", Rule::Copy(Cuboid, Asynchronous)),
    ("cuMemcpy3DPeerAsync", Rule::Copy(Cuboid, Asynchronous)),
    ("cuMemcpyBatchAsync", Rule::Batch),
    ("cuMemcpyBatchAsync_v2", Rule::Batch),
];

/// The rule of a function, by the name that CUPTI gives it. `None` where it never waits.
pub(crate) fn rule(function: &str) -> Option<Rule> {
    let plain = function.strip_suffix("_ptds").or_else(|| function.strip_suffix("_ptsz")).unwrap_or(function);
    RULES.iter().find(|(name, _)| *name == plain).map(|(_, rule)| *rule)
}

/// A copy's ends, where memory is known by its address.
struct Ends {
    to: Memory,
    from: Memory,
    bytes: u64,
}

impl Rule {
    /// Whether a call can wait. `memory` says of which kind a pointer is.
    ///
    /// # Safety
    /// `arguments` is the structure of the arguments of the rule's function (`generated_cuda_meta.h`), and what it points to is
    /// there.
    pub(crate) unsafe fn judge(self, arguments: *const c_void, memory: impl Fn(u64) -> Memory) -> Option<Wait> {
        // Safety: each function below has an argument of 8 bytes at these places; a limit has 4 and padding.
        let at = |place: usize| unsafe { u64_at(arguments, place) };
        let because = |holds: bool, why| holds.then_some(Wait { why, bytes: None });
        match self {
            Self::Always(why) => because(true, why),
            Self::OfSomething(why) => because(at(0) != 0, why),
            // `CU_LIMIT_STACK_SIZE` is 0.
            Self::OfStack(why) => because(at(0) as u32 == 0, why),
            Self::Fill => because(memory(at(0)) != Memory::Device, "fills memory that the host can read"),
            Self::Batch => (0..at(24) as usize).find_map(|copy| {
                // Safety: three lists of so many numbers.
                let [to, from, bytes] = [0, 8, 16].map(|list| unsafe { u64_at(at(list) as *const c_void, 8 * copy) });
                Ends { to: memory(to), from: memory(from), bytes }.wait(Asynchronous)
            }),
            Self::Copy(shape, timing) => {
                // Safety: the caller's promise; the rule's shape is its function's.
                unsafe { Ends::of(shape, arguments, memory) }.wait(timing)
            }
        }
    }
}

/// # Safety
/// 8 bytes lie at the place.
unsafe fn u64_at(structure: *const c_void, place: usize) -> u64 {
    // Safety: the caller's promise.
    unsafe { structure.cast::<u8>().add(place).cast::<u64>().read_unaligned() }
}

impl Ends {
    /// # Safety
    /// `arguments` are those of a function that copies in this shape.
    unsafe fn of(shape: Shape, arguments: *const c_void, memory: impl Fn(u64) -> Memory) -> Self {
        // Safety: the caller's promise, for each place below.
        let at = |place: usize| unsafe { u64_at(arguments, place) };
        match shape {
            Plain => Self { to: memory(at(0)), from: memory(at(8)), bytes: at(16) },
            FromArray => Self { to: memory(at(0)), from: Memory::Device, bytes: at(24) },
            ToArray => Self { to: Memory::Device, from: memory(at(16)), bytes: at(24) },
            Flat | Cuboid => {
                let structure = at(0) as *const c_void;
                // Where the two kinds of memory stand, and the size.
                let (from, to, sizes): (usize, usize, &[usize]) = match shape {
                    Flat => (16, 72, &[112, 120]),
                    _ => (32, 120, &[176, 184, 192]),
                };
                // Safety: the function's structure (`CUDA_MEMCPY2D`, `CUDA_MEMCPY3D`, `CUDA_MEMCPY3D_PEER`).
                let of = |place: usize| unsafe { u64_at(structure, place) };
                let end = |place: usize| match of(place) as u32 {
                    // `CU_MEMORYTYPE_HOST`, which is followed by the host's pointer; `CU_MEMORYTYPE_UNIFIED`, by the device's.
                    1 => memory(of(place + 8)),
                    4 => memory(of(place + 16)),
                    _ => Memory::Device,
                };
                Self { to: end(to), from: end(from), bytes: sizes.iter().map(|place| of(*place)).product() }
            }
        }
    }

    fn wait(&self, timing: Timing) -> Option<Wait> {
        use Memory::{Device, Managed, Pageable, Pinned};
        let Self { to, from, bytes } = *self;
        let is_staged = bytes <= STAGED;
        let why = match (from, to) {
            _ if bytes == 0 => None,
            (Device, Device) => None,
            _ if timing == Synchronous => Some("copies, and the function takes no stream"),
            (_, Pageable) => Some("copies into pageable memory"),
            (Pageable, Pinned) => Some("copies from pageable memory to the host"),
            (Pageable, Device | Managed) if is_staged => None,
            (Pageable, Device | Managed) => Some("copies from pageable memory, more than the driver sets aside"),
            (Pinned, Pinned) => Some("copies from the host to the host"),
            (Managed, _) if timing == AsynchronousToDevice => Some("copies from managed memory to the device"),
            (_, Managed) if timing == AsynchronousToHost => Some("copies from the device to managed memory"),
            _ => None,
        }?;
        Some(Wait { why, bytes: Some(bytes) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGEABLE: u64 = 1 << 40;
    const PINNED: u64 = 1 << 41;
    const MANAGED: u64 = 1 << 42;
    const DEVICE: u64 = 1 << 43;

    fn kind(pointer: u64) -> Memory {
        match pointer {
            PINNED => Memory::Pinned,
            MANAGED => Memory::Managed,
            DEVICE => Memory::Device,
            _ => Memory::Pageable,
        }
    }

    fn waits(function: &str, arguments: &[u64]) -> bool {
        // Safety: the arguments of the function, in words of 8 bytes.
        rule(function).is_some_and(|rule| unsafe { rule.judge(arguments.as_ptr().cast(), kind) }.is_some())
    }

    /// Of the chapter *What waits: copies*: the function, where it copies to and from, and the sizes of those that waited and
    /// of those that did not.
    #[test]
    fn copies_wait_as_they_did_behind_a_gate() {
        const SIZES: [u64; 5] = [4, 65_536, 65_537, 2 << 20, (2 << 20) + 4];
        type OfBytes = fn(u64) -> bool;
        let [all, none, large]: [OfBytes; 3] = [|_| true, |_| false, |bytes| bytes > 2 << 20];
        let measured: [(&str, u64, u64, OfBytes); 27] = [
            ("cuMemcpyHtoD_v2", DEVICE, PAGEABLE, all),
            ("cuMemcpyHtoD_v2", DEVICE, PINNED, all),
            ("cuMemcpyHtoD_v2", DEVICE, MANAGED, all),
            ("cuMemcpyHtoDAsync_v2", DEVICE, PAGEABLE, large),
            ("cuMemcpyHtoDAsync_v2", DEVICE, PINNED, none),
            ("cuMemcpyHtoDAsync_v2", DEVICE, MANAGED, all),
            ("cuMemcpyDtoH_v2", PAGEABLE, DEVICE, all),
            ("cuMemcpyDtoH_v2", PINNED, DEVICE, all),
            ("cuMemcpyDtoH_v2", MANAGED, DEVICE, all),
            ("cuMemcpyDtoHAsync_v2", PAGEABLE, DEVICE, all),
            ("cuMemcpyDtoHAsync_v2", PINNED, DEVICE, none),
            ("cuMemcpyDtoHAsync_v2", MANAGED, DEVICE, all),
            ("cuMemcpyDtoD_v2", MANAGED, MANAGED, all),
            ("cuMemcpyDtoD_v2", DEVICE, DEVICE, none),
            ("cuMemcpyDtoDAsync_v2", MANAGED, MANAGED, none),
            ("cuMemcpyDtoDAsync_v2", DEVICE, DEVICE, none),
            ("cuMemcpy", PAGEABLE, PAGEABLE, all),
            ("cuMemcpy", MANAGED, PINNED, all),
            ("cuMemcpyAsync", PAGEABLE, PAGEABLE, all),
            ("cuMemcpyAsync", PINNED, PINNED, all),
            ("cuMemcpyAsync", MANAGED, MANAGED, none),
            ("cuMemcpyAsync", PINNED, PAGEABLE, all),
            ("cuMemcpyAsync", PINNED, MANAGED, none),
            ("cuMemcpyAsync", PAGEABLE, PINNED, all),
            ("cuMemcpyAsync", PAGEABLE, MANAGED, all),
            ("cuMemcpyAsync", MANAGED, PINNED, none),
            ("cuMemcpyAsync", MANAGED, PAGEABLE, large),
        ];
        for (function, to, from, measured) in measured {
            for bytes in SIZES {
                let found = waits(function, &[to, from, bytes, 0]);
                assert_eq!(found, measured(bytes), "{function} to {to:x} from {from:x}, {bytes} bytes");
            }
            assert!(!waits(function, &[to, from, 0, 0]), "{function}");
        }
    }

    /// Of the chapters on waits, memory, fills, code, objects, graphs, launches and devices.
    #[test]
    fn other_calls_wait_as_they_did_behind_a_gate() {
        for (function, arguments, measured) in [
            ("cuStreamSynchronize", [0, 0], true),
            ("cuStreamSynchronize_ptsz", [0, 0], true),
            ("cuEventSynchronize", [1, 0], true),
            ("cuCtxSynchronize", [0, 0], true),
            ("cuMemFree_v2", [DEVICE, 0], true),
            ("cuMemFree_v2", [0, 0], false),
            ("cuMemFreeHost", [PINNED, 0], true),
            ("cuMemHostUnregister", [PINNED, 0], true),
            ("cuMemsetD8_v2", [DEVICE, 0], false),
            ("cuMemsetD8_v2_ptds", [PINNED, 0], true),
            ("cuMemsetD8_v2", [MANAGED, 0], true),
            ("cuMemsetD8Async", [PINNED, 0], false),
            ("cuModuleUnload", [1, 0], true),
            ("cuCtxSetLimit", [0, 1024], true),
            ("cuCtxSetLimit", [1, 1024], false),
            ("cuCtxDestroy_v2", [1, 0], true),
            ("cuStreamQuery", [0, 0], false),
            ("cuEventQuery", [0, 0], false),
            ("cuEventRecord", [0, 0], false),
            ("cuStreamWaitEvent", [0, 0], false),
            ("cuMemAlloc_v2", [0, 0], false),
            ("cuMemFreeAsync", [DEVICE, 0], false),
            ("cuMemHostAlloc", [0, 0], false),
            ("cuMemHostRegister_v2", [0, 0], false),
            ("cuMemPoolTrimTo", [0, 0], false),
            ("cuModuleLoadData", [0, 0], false),
            ("cuStreamDestroy_v2", [1, 0], false),
            ("cuEventDestroy_v2", [1, 0], false),
            ("cuGraphLaunch", [1, 0], false),
            ("cuGraphExecDestroy", [1, 0], false),
            ("cuLaunchKernel", [1, 0], false),
        ] {
            assert_eq!(waits(function, &arguments), measured, "{function} {arguments:?}");
        }
    }

    #[test]
    fn the_ends_of_a_copy_in_more_dimensions_are_read_from_its_structure() {
        let flat = |to: [u64; 2], from: [u64; 2]| {
            let mut words = [0_u64; 16];
            (words[2], words[9], words[14], words[15]) = (from[0], to[0], 4, 2);
            (words[if from[0] == 1 { 3 } else { 4 }], words[if to[0] == 1 { 10 } else { 11 }]) = (from[1], to[1]);
            let is = waits("cuMemcpy2DAsync_v2", &[words.as_ptr() as u64, 0]);
            (is, waits("cuMemcpy2D_v2", &[words.as_ptr() as u64]))
        };
        assert_eq!(flat([1, PAGEABLE], [2, DEVICE]), (true, true));
        assert_eq!(flat([1, PINNED], [2, DEVICE]), (false, true));
        assert_eq!(flat([4, PAGEABLE], [4, DEVICE]), (true, true));
        assert_eq!(flat([2, DEVICE], [2, DEVICE]), (false, false));
        let mut cuboid = [0_u64; 25];
        (cuboid[4], cuboid[6], cuboid[15], cuboid[16]) = (2, DEVICE, 1, PAGEABLE);
        (cuboid[22], cuboid[23], cuboid[24]) = (4, 2, 3);
        let arguments = [cuboid.as_ptr() as u64, 0];
        // Safety: the arguments of a copy in three dimensions.
        let wait =
            rule("cuMemcpy3DAsync_v2_ptsz").and_then(|rule| unsafe { rule.judge(arguments.as_ptr().cast(), kind) });
        assert_eq!(wait.and_then(|wait| wait.bytes), Some(24));
    }

    #[test]
    fn a_batch_waits_if_one_of_its_copies_does() {
        let batch = |to: [u64; 2]| {
            let (from, bytes) = ([DEVICE; 2], [4_u64; 2]);
            waits("cuMemcpyBatchAsync", &[to.as_ptr() as u64, from.as_ptr() as u64, bytes.as_ptr() as u64, 2])
        };
        assert!(batch([PINNED, PAGEABLE]) && !batch([PINNED, PINNED]));
    }
}
