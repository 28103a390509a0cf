//! CUPTI's library, found in the process, and what its callbacks are told.

use std::ffi::{CString, c_char, c_int, c_void};

use crate::system;

/// The domain of the driver's calls.
pub(crate) const DRIVER_CALLS: u32 = 1;

pub(crate) type Status = c_int;
/// What CUPTI answers to a second subscriber, and to one too many.
pub(crate) const TAKEN: [Status; 2] = [39, 12];

/// What a callback is told of a call.
#[repr(C)]
pub(crate) struct Call {
    /// 0 at its enter, 1 at its exit.
    pub(crate) site: c_int,
    pub(crate) function: *const c_char,
    pub(crate) arguments: *const c_void,
    pub(crate) status: *const c_int,
    symbol: *const c_char,
    pub(crate) context: *mut c_void,
    pub(crate) context_number: u32,
    /// 8 bytes from the enter to the exit of the call.
    pub(crate) kept: *mut u64,
    pub(crate) correlation: u32,
}

pub(crate) type Callback = unsafe extern "C" fn(*mut c_void, u32, u32, *const Call);

/// The library: the one that the process has already, else one by its name, else one from where it usually lies.
pub(crate) fn library() -> Option<*mut c_void> {
    const NAMES: [&str; 3] = ["libcupti.so.13", "libcupti.so.12", "libcupti.so"];
    let open = |name: &str, flags| {
        let name = CString::new(name).unwrap_or_default();
        // Safety: runs CUPTI's initialisers, which expect to be loaded so.
        let library = unsafe { system::dlopen(name.as_ptr(), flags) };
        (!library.is_null()).then_some(library)
    };
    let loaded = NAMES.iter().find_map(|name| open(name, system::NOW | system::ALREADY_LOADED));
    let near = || beside().iter().find_map(|path| open(path, system::NOW));
    let named = || NAMES.iter().find_map(|name| open(name, system::NOW));
    loaded.or_else(near).or_else(named).or_else(|| of_toolkits().iter().find_map(|path| open(path, system::NOW)))
}

/// Where packages of Python put CUPTI: beside the run-time library that the process has loaded.
fn beside() -> Vec<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut paths = maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..]));
    let Some(runtime) = paths.find(|path| path.contains("libcudart.so")) else { return Vec::new() };
    let folder = runtime.rsplit_once('/').map_or("", |(folder, _)| folder);
    let folders = [folder.to_owned(), format!("{folder}/../../cuda_cupti/lib")];
    folders.iter().flat_map(|folder| [13, 12].map(|version| format!("{folder}/libcupti.so.{version}"))).collect()
}

/// Where toolkits have it.
fn of_toolkits() -> Vec<String> {
    let roots = ["CUDA_HOME", "CUDA_PATH"].iter().filter_map(|name| std::env::var(name).ok());
    let roots = roots.chain(["/usr/local/cuda".to_owned(), "/opt/cuda".to_owned()]);
    roots
        .flat_map(|root| ["extras/CUPTI/lib64", "lib64"].map(|folder| format!("{root}/{folder}/libcupti.so")))
        .collect()
}
