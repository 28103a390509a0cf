//! NCCL, the library for several devices: where it is, and its version.
//!
//! The library is loaded when it is first asked for, by the names under which it is installed: with development files, or
//! without them, where only the name with its major version is there.

use std::ffi::{OsString, c_int};
use std::path::PathBuf;
use std::sync::OnceLock;

use libloading::Library;

use super::libraries::usual_folders;
use crate::device::engine::Result;
use crate::error::DeviceError;

/// Its names, the first found is taken.
const NAMES: [&str; 2] = ["libnccl.so.2", "libnccl.so"];

/// The library; loaded by the first that asks for it, and kept as long as the process, since it starts threads.
///
/// # Errors
/// [`NotApplicable`](DeviceError::NotApplicable) says where it was looked for.
pub fn library() -> Result<&'static Library> {
    static NCCL: OnceLock<Option<Library>> = OnceLock::new();
    // Safety: loading runs the library's initialisers, which expect to be loaded so.
    let open = |name| unsafe { Library::new(name) }.ok();
    NCCL.get_or_init(|| candidates().find_map(open)).as_ref().ok_or_else(|| DeviceError::not_applicable("an all-reduce", "this machine", format!(
            "{} (NCCL) was not found in LD_LIBRARY_PATH, the system loader's folders or those of a CUDA toolkit; it comes with \
             the package `libnccl2`, or with the PyPI package `nvidia-nccl-cu13`",
            NAMES[0]
        )))
}

/// Its version: `2.28.3`; `None` where there is no NCCL, or where it does not tell.
pub(crate) fn version() -> Option<String> {
    let mut version = 0;
    // Safety: the type is that of the library's header, the same in every version 2; it writes one integer.
    let status = unsafe {
        library().ok()?.get::<unsafe extern "C" fn(*mut c_int) -> c_int>(b"ncclGetVersion").ok()?(&mut version)
    };
    // Since 2.9 with two digits for the second number.
    let [major, minor] = if version >= 10_000 { [10_000, 100] } else { [1000, 100] };
    (status == 0).then(|| format!("{}.{}.{}", version / major, version % major / minor, version % minor))
}

/// Where the library may be: where the loader looks, then in the usual folders.
fn candidates() -> impl Iterator<Item = OsString> {
    let folders = usual_folders().into_iter().map(Some);
    [None].into_iter().chain(folders).flat_map(|folder: Option<PathBuf>| {
        NAMES.map(|name| folder.as_ref().map_or_else(|| name.into(), |folder| folder.join(name).into_os_string()))
    })
}
