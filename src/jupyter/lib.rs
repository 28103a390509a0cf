//! Where the Jupyter kernel "Rust (syncscope)" is installed: for its own program, which installs it, and for
//! `report lab check`, which runs cells in it.
//!
//! Source of the folders: Jupyter's documentation, "Jupyter's Common Directories and File Locations".

#![forbid(unsafe_code)]

use std::env;
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};

/// The kernel's program, in its folder and in the workspace.
pub const PROGRAM: &str = "notebook-runner";

/// The command that installs the kernel, in the folder of a clone.
pub const INSTALL: &str = "cargo run --release --bin notebook-runner -- install";

/// The kernel's folder, in Jupyter's folder for data.
const KERNEL: &str = "kernels/syncscope";

/// The kernel's folder in an environment of Python, or in the user's own folder for Jupyter where none is named.
///
/// # Errors
/// Where none is named and the user has no home folder.
pub fn folder(prefix: Option<&Path>) -> Result<PathBuf> {
    let data = prefix.map(data_of).or_else(data_of_user);
    let none = || Error::new(ErrorKind::NotFound, "there is no home folder here; give one with --prefix");
    Ok(std::path::absolute(data.ok_or_else(none)?)?.join(KERNEL))
}

/// The folder of the installed kernel that Jupyter finds: that of [`folder`], else one of an environment or of the system.
///
/// # Errors
/// As of [`folder`].
pub fn installed(prefix: Option<&Path>) -> Result<Option<PathBuf>> {
    let environment = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(env::var_os).map(PathBuf::from);
    let others = environment.chain(["/usr/local", "/usr"].map(PathBuf::from));
    let others = others.map(|prefix| data_of(&prefix).join(KERNEL));
    Ok([folder(prefix)?].into_iter().chain(others).find(|folder| is_kernel(folder)))
}

/// Whether a folder holds a kernel that its program installed, today or before.
pub fn is_kernel(folder: &Path) -> bool {
    ["kernel.json", "dependency.toml", PROGRAM].iter().all(|name| folder.join(name).is_file())
        && folder.join("warm").is_dir()
}

/// Jupyter's folder for data of an environment.
fn data_of(prefix: &Path) -> PathBuf {
    prefix.join("share/jupyter")
}

/// Jupyter's folder for data of the user.
fn data_of_user() -> Option<PathBuf> {
    let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let data = || variable("XDG_DATA_HOME").or_else(|| variable("HOME").map(|home| home.join(".local/share")));
    variable("JUPYTER_DATA_DIR").or_else(|| data().map(|data| data.join("jupyter")))
}
