//! The driver's calls that are watched, by CUPTI's numbers for them (`cupti_driver_cbid.h` of CUDA 12 and 13, where a number
//! never changes its meaning), and where their arguments lie (`generated_cuda_meta.h`).
//!
//! # Limits
//! Launches are watched for short times only (`launches`): they would pay for it. Queries, stream-ordered allocations and event
//! creation, which return at once, are never watched.

use std::ffi::c_void;

/// Where a call's arguments lie in its structure of arguments, in bytes.
#[derive(Clone, Copy, Default)]
pub(crate) struct Arguments {
    bytes: Option<usize>,
    stream: Option<usize>,
    event: Option<usize>,
    /// Its legacy default stream is the thread's own.
    pub(crate) of_thread: bool,
    /// It records an event: such calls have neither a stack nor a place in the report.
    pub(crate) records: bool,
    /// Streams may end in it.
    pub(crate) ends_streams: bool,
}

/// What a watched call was given.
#[derive(Clone, Copy, Default)]
pub(crate) struct Given {
    pub(crate) bytes: u64,
    pub(crate) stream: Option<*mut c_void>,
    pub(crate) event: u64,
}

const PLAIN: Arguments =
    Arguments { bytes: None, stream: None, event: None, of_thread: false, records: false, ends_streams: false };
const SIZE_8: Arguments = Arguments { bytes: Some(8), ..PLAIN };
const SIZE_16: Arguments = Arguments { bytes: Some(16), ..PLAIN };
const SIZE_32: Arguments = Arguments { bytes: Some(32), ..PLAIN };
const ON_0: Arguments = Arguments { stream: Some(0), ..PLAIN };
const ON_8: Arguments = Arguments { stream: Some(8), ..PLAIN };
const COPY: Arguments = Arguments { stream: Some(24), ..SIZE_16 };
const PEER: Arguments = Arguments { stream: Some(40), ..SIZE_32 };
const EVENT: Arguments = Arguments { event: Some(0), ..PLAIN };
const END: Arguments = Arguments { ends_streams: true, ..PLAIN };
const RECORD: Arguments = Arguments { stream: Some(8), records: true, ..EVENT };

const fn own(arguments: Arguments) -> Arguments {
    Arguments { of_thread: true, ..arguments }
}

/// The calls.
const WATCHED: &[(Arguments, &[u32])] = &[
    // cuCtxSynchronize.
    (PLAIN, &[17, 800]),
    // cuStreamSynchronize.
    (ON_0, &[126]),
    (own(ON_0), &[440]),
    // cuEventSynchronize.
    (EVENT, &[121]),
    // cuEventRecord, with flags.
    (RECORD, &[119, 587]),
    (own(RECORD), &[441, 588]),
    // cuMemcpyHtoD, DtoH, DtoD, cuMemcpy.
    (SIZE_16, &[276, 278, 280, 305]),
    (own(SIZE_16), &[397, 398, 399, 408]),
    // The same, asynchronous.
    (COPY, &[277, 279, 281, 306]),
    (own(COPY), &[421, 422, 423, 418]),
    // cuMemcpy2D, 2DUnaligned, 3D, to, from and between arrays, 3DPeer.
    (PLAIN, &[287, 288, 290, 282, 284, 285, 286, 283, 292, 320]),
    (own(PLAIN), &[400, 401, 402, 403, 404, 405, 406, 407, 410]),
    // cuMemcpy2DAsync, 3DAsync.
    (ON_8, &[289, 291]),
    (own(ON_8), &[424, 425]),
    // cuMemcpyHtoAAsync, 3DPeerAsync, BatchAsync, 3DBatchAsync: their streams are not read.
    (PLAIN, &[293, 321, 776, 778]),
    (own(PLAIN), &[419, 420, 427, 777, 779]),
    // cuMemcpyPeer and cuMemcpyPeerAsync.
    (SIZE_32, &[318]),
    (own(SIZE_32), &[409]),
    (PEER, &[319]),
    (own(PEER), &[426]),
    // cuMemsetD8 to D2D32.
    (PLAIN, &[249, 250, 251, 252, 253, 254]),
    (own(PLAIN), &[411, 412, 413, 414, 415, 416]),
    // cuMemAlloc, Managed, Pitch; cuMemCreate, Map, SetAccess.
    (SIZE_8, &[243, 371, 549, 551]),
    (PLAIN, &[244, 553]),
    // cuMemFree, Release, Unmap; cuMemPoolTrimTo.
    (PLAIN, &[245, 550, 552, 602]),
    // cuMemAllocHost, HostAlloc, HostRegister.
    (SIZE_8, &[294, 39, 271, 301, 379]),
    // cuMemFreeHost, HostUnregister.
    (PLAIN, &[38, 302]),
    // cuModuleLoad…, GetFunction, Unload; cuLibraryLoad…, Unload, GetModule; cuKernelGetFunction; cuFuncLoad.
    (PLAIN, &[18, 19, 20, 21, 23, 22, 678, 679, 680, 682, 683, 742]),
    // cuArrayCreate, Array3DCreate, MipmappedArrayCreate, and what destroys them.
    (PLAIN, &[272, 274, 347, 89, 349]),
    // cuCtxSetLimit.
    (PLAIN, &[136]),
    // cuGraphInstantiate, InstantiateWithFlags, ExecDestroy, Upload; cuDeviceGraphMemTrim.
    (PLAIN, &[513, 578, 643, 656, 657, 516, 580, 581, 640]),
    // cuStreamDestroy, cuCtxDestroy, cuDevicePrimaryCtxRetain and Reset.
    (END, &[326, 322, 386, 545]),
];

/// The numbers of all that are watched.
pub(crate) fn watched() -> impl Iterator<Item = u32> {
    WATCHED.iter().flat_map(|(_, functions)| functions.iter().copied())
}

/// More than any number of a function.
const NUMBERS: usize = 1024;

/// Where the arguments of a function lie.
pub(crate) fn arguments(function: u32) -> Arguments {
    /// For each number the place in `WATCHED`: this is looked up at each call. What is not watched has the first one, whose
    /// arguments are not read.
    static PLACES: [u8; NUMBERS] = {
        let mut places = [0; NUMBERS];
        let mut place = 0;
        while place < WATCHED.len() {
            let functions = WATCHED[place].1;
            let mut at = 0;
            while at < functions.len() {
                places[functions[at] as usize] = place as u8;
                at += 1;
            }
            place += 1;
        }
        places
    };
    PLACES.get(function as usize).map_or(PLAIN, |place| WATCHED[*place as usize].0)
}

impl Arguments {
    /// Reads them.
    ///
    /// # Safety
    /// `place` is null or the structure of the function that this is of.
    pub unsafe fn read(&self, place: *const c_void) -> Given {
        if place.is_null() {
            return Given::default();
        }
        // Safety: the caller's promise; each place holds 8 bytes.
        let at = |offset: usize| unsafe { place.cast::<u8>().add(offset).cast::<u64>().read_unaligned() };
        Given {
            bytes: self.bytes.map_or(0, at),
            stream: self.stream.map(|offset| at(offset) as *mut c_void),
            event: self.event.map_or(0, at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_function_is_watched_once() {
        let mut all: Vec<u32> = watched().collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn arguments_are_read_where_the_driver_has_them() {
        let copy: [u64; 4] = [1, 2, 4096, 7];
        // Safety: the four arguments of an asynchronous copy.
        let given = unsafe { arguments(277).read(copy.as_ptr().cast()) };
        assert_eq!((given.bytes, given.stream), (4096, Some(7 as *mut c_void)));
        // Safety: null is allowed.
        let given = unsafe { arguments(277).read(std::ptr::null()) };
        assert_eq!((given.bytes, given.stream), (0, None));
    }
}
