//! Whether the libraries that are loaded at run time are there, and what to say when one is not.
//!
//! The bindings panic where a library is missing. So every use of one begins with [`Library::require`], whose error
//! names the library, where it was looked for, and, where a usual folder holds it though the loader does not look
//! there, what to set. Only the driver is needed to open a device; the others fail the operations that need them.
//!
//! The bindings link the libraries instead where another crate of the program asks for that: candle does. All are there then.

use std::env;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

#[cfg(feature = "cupti")]
use cudarc::cupti;
use cudarc::{cublaslt, driver, nvrtc};

use crate::device::cuda::ENGINE;
use crate::device::engine::Result;
use crate::error::DeviceError;

/// A library that is loaded at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Library {
    /// The driver itself: comes with the GPU's driver, never with the toolkit.
    Driver,
    /// The run-time compiler of the kernels.
    Nvrtc,
    /// Matrix multiplications.
    CublasLt,
    /// Activity records.
    #[cfg(feature = "cupti")]
    Cupti,
}

impl Library {
    /// The name without prefix and ending.
    fn stem(self) -> &'static str {
        match self {
            Self::Driver => "cuda",
            Self::Nvrtc => "nvrtc",
            Self::CublasLt => "cublasLt",
            #[cfg(feature = "cupti")]
            Self::Cupti => "cupti",
        }
    }

    fn purpose(self) -> &'static str {
        match self {
            Self::Driver => "the NVIDIA driver",
            Self::Nvrtc => "NVRTC, which compiles the kernels",
            Self::CublasLt => "cuBLASLt, which multiplies matrices",
            #[cfg(feature = "cupti")]
            Self::Cupti => "CUPTI, which records what the device does",
        }
    }

    fn origin(self) -> &'static str {
        match self {
            Self::Driver => "it comes with the NVIDIA driver of the machine",
            Self::Nvrtc => "it comes with the CUDA toolkit 12 or 13, or with the PyPI package `nvidia-cuda-nvrtc`",
            Self::CublasLt => "it comes with the CUDA toolkit 12 or 13, or with the PyPI package `nvidia-cublas`",
            #[cfg(feature = "cupti")]
            Self::Cupti => "it comes with the CUDA toolkit 12 or 13, or with the PyPI package `nvidia-cuda-cupti`",
        }
    }

    /// Whether the loader finds the library. Loads and unloads it: for set-up, not for every call.
    #[allow(unused_imports, reason = "without loading there is no such function to import")]
    pub(crate) fn is_present(self) -> bool {
        // Each block calls the bindings' function of this name, or the one of this module where the bindings have none.
        // Safety: loading runs the library's initialisers; these are NVIDIA's own, which expect to be loaded so.
        unsafe {
            match self {
                Self::Driver => {
                    use driver::sys::*;
                    is_culib_present()
                }
                Self::Nvrtc => {
                    use nvrtc::sys::*;
                    is_culib_present()
                }
                Self::CublasLt => {
                    use cublaslt::sys::*;
                    is_culib_present()
                }
                #[cfg(feature = "cupti")]
                Self::Cupti => {
                    use cupti::sys::*;
                    is_culib_present()
                }
            }
        }
    }

    /// Fails with what is missing unless the loader finds the library.
    pub(crate) fn require(self) -> Result<()> {
        if self.is_present() {
            return Ok(());
        }
        let path = env::var("LD_LIBRARY_PATH").unwrap_or_default();
        let holder = usual_folders().into_iter().find(|folder| holds(folder, &self.file_name()));
        Err(DeviceError::EngineUnavailable { engine: ENGINE, reason: self.explain(&path, holder.as_deref()) })
    }

    /// As [`require`](Self::require), for a library that lies where the loader does not look, as CUPTI does within a
    /// toolkit: it is loaded by its path, after which its name finds it.
    #[cfg(feature = "cupti")]
    pub(crate) fn load(self) -> Result<()> {
        if self.is_present() {
            return Ok(());
        }
        for path in usual_folders().into_iter().flat_map(|folder| versions(&folder, &self.file_name())) {
            // Safety: as in `is_present`.
            let library = unsafe { libloading::Library::new(path) };
            if library.is_ok() && self.is_present() {
                // For as long as the process: the bindings keep pointers into it.
                std::mem::forget(library);
                return Ok(());
            }
        }
        self.require()
    }

    fn file_name(self) -> String {
        format!("{}{}{}", env::consts::DLL_PREFIX, self.stem(), env::consts::DLL_SUFFIX)
    }

    /// `holder` is a folder that holds the library though the loader does not look there.
    fn explain(self, path: &str, holder: Option<&Path>) -> String {
        let file = self.file_name();
        let mut text = format!("{file} ({}) was not found", self.purpose());
        let versions = match self {
            Self::Driver => format!("{file}, {file}.1"),
            _ => format!("{file}, {file}.13, {file}.12"),
        };
        let searched = if path.is_empty() { "(not set)".to_owned() } else { format!("`{path}`") };
        // Writing to a String cannot fail.
        let _ = write!(text, "; looked for {versions} in LD_LIBRARY_PATH {searched} and the system loader's folders; ");
        match holder {
            Some(folder) => {
                let _ = write!(text, "{} holds it: add this folder to LD_LIBRARY_PATH", folder.display());
            }
            None => text.push_str(self.origin()),
        }
        text
    }
}

/// In place of the bindings' function where another crate has them link the libraries: a program that has started has them.
#[allow(dead_code, reason = "called without loading only")]
unsafe fn is_culib_present() -> bool {
    true
}

/// A function of the driver by its name in the library, for what the bindings do not have.
///
/// # Safety
/// The function has this type. The driver has been initialized, and so stays loaded.
///
/// # Errors
/// The driver has no function of this name.
pub unsafe fn driver_function<F: Copy>(name: &str) -> std::result::Result<F, libloading::Error> {
    // Safety: it is loaded already.
    let open = |file| unsafe { libloading::Library::new(file) };
    let driver = open("libcuda.so.1").or_else(|_| open("libcuda.so")).or_else(|_| open("nvcuda.dll"))?;
    // Safety: the caller knows the type.
    unsafe { driver.get::<F>(name) }.map(|function| *function)
}

/// Where toolkits usually lie.
pub(super) fn usual_folders() -> Vec<PathBuf> {
    let mut roots: Vec<PathBuf> =
        ["CUDA_HOME", "CUDA_PATH"].iter().filter_map(env::var_os).map(PathBuf::from).collect();
    roots.extend(["/usr/local/cuda", "/opt/cuda"].map(PathBuf::from));
    if let Ok(entries) = Path::new("/usr/local").read_dir() {
        let mut versions: Vec<_> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("cuda-")))
            .collect();
        versions.sort();
        roots.extend(versions.into_iter().rev());
    }
    let inside = ["lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib", "extras/CUPTI/lib64"];
    let mut folders: Vec<_> = roots.iter().flat_map(|root| inside.map(|folder| root.join(folder))).collect();
    folders.extend(["/usr/local/nvidia/lib64", "/usr/lib/wsl/lib", "/usr/lib/x86_64-linux-gnu"].map(PathBuf::from));
    folders
}

/// The folder of the toolkit's headers, such as `cuda_fp16.h`.
pub(super) fn toolkit_headers() -> Option<PathBuf> {
    let mut folders = usual_folders().into_iter().map(|folder| folder.with_file_name("include"));
    folders.find(|folder| folder.join("cuda_fp16.h").is_file())
}

/// Whether `folder` holds `file` or a version of it: `libnvrtc.so.13` for `libnvrtc.so`.
fn holds(folder: &Path, file: &str) -> bool {
    !versions(folder, file).is_empty()
}

/// `file` and the versions of it that `folder` holds.
fn versions(folder: &Path, file: &str) -> Vec<PathBuf> {
    let entries = folder.read_dir().into_iter().flatten().filter_map(|entry| entry.ok());
    let found = entries.filter(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.strip_prefix(file).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    });
    found.map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_named_with_where_it_was_looked_for() {
        let text = Library::Nvrtc.explain("/a:/b", None);
        for part in ["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "`/a:/b`", "CUDA toolkit"] {
            assert!(text.contains(part), "{part} is not in: {text}");
        }
    }

    #[test]
    fn a_library_off_the_loader_path_is_answered_with_the_folder_to_add() {
        let text = Library::CublasLt.explain("", Some(Path::new("/usr/local/cuda/lib64")));
        assert!(text.contains("/usr/local/cuda/lib64 holds it: add this folder to LD_LIBRARY_PATH"), "{text}");
        assert!(text.contains("LD_LIBRARY_PATH (not set)"), "{text}");
    }

    #[test]
    fn a_versioned_file_counts_and_another_library_of_a_longer_name_does_not() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("libnvrtc-builtins.so.13.0"), "")?;
        assert!(!holds(folder.path(), "libnvrtc.so"));
        std::fs::write(folder.path().join("libnvrtc.so.13"), "")?;
        assert!(holds(folder.path(), "libnvrtc.so"));
        Ok(())
    }
}
