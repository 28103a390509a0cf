//! `report kernel`: a Jupyter kernel that starts with the library compiled.

mod install;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{End, UsageError};

/// The variable by which the kernel's program, which advises to install the kernel anew, knows the name of this one.
pub(super) const NAMED: &str = "SYNCSCOPE_PROGRAM";

/// Install the Jupyter kernel "Rust (syncscope)"; `jupyter kernelspec` lists and uninstalls it
#[derive(Args)]
#[command(after_help = "Examples:\n  report kernel install\n  report kernel install --prefix .venv")]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compile the kernel and the library for cells, once, and install them
    #[command(after_help = "Examples:\n  report kernel install\n  report kernel install --prefix .venv")]
    Install {
        #[command(flatten)]
        place: Place,
        /// The library's folder, instead of the one that this program was built from
        #[arg(long, value_name = "DIR")]
        library: Option<PathBuf>,
    },
}

/// Where Jupyter looks for the kernel.
#[derive(Args)]
pub(crate) struct Place {
    /// The environment of Python, such as .venv; without it, the user's own folder for Jupyter
    #[arg(long, value_name = "DIR")]
    prefix: Option<PathBuf>,
}

impl Place {
    /// The kernel's folder.
    fn folder(&self) -> Result<PathBuf, UsageError> {
        let data = match &self.prefix {
            Some(prefix) => Some(prefix.join("share/jupyter")),
            None => user_data(),
        };
        let data = data.ok_or_else(|| UsageError("there is no home folder here; give one with --prefix".to_owned()))?;
        let data = std::path::absolute(&data).map_err(|error| UsageError(format!("{}: {error}", data.display())))?;
        Ok(data.join("kernels/syncscope"))
    }

    /// The folders in which Jupyter may find the kernel, this one first.
    pub(super) fn folders(&self) -> Result<Vec<PathBuf>, UsageError> {
        let environment = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
        let others = environment.chain(["/usr/local", "/usr"].map(PathBuf::from));
        let mut folders = vec![self.folder()?];
        folders.extend(others.map(|prefix| prefix.join("share/jupyter/kernels/syncscope")));
        folders.dedup();
        Ok(folders.into_iter().filter(|folder| install::is_kernel(folder)).collect())
    }
}

/// Jupyter's folder for data of the user.
fn user_data() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let data = || variable("XDG_DATA_HOME").or_else(|| variable("HOME").map(|home| home.join(".local/share")));
    variable("JUPYTER_DATA_DIR").or_else(|| data().map(|data| data.join("jupyter")))
}

pub(super) fn execute(arguments: Arguments) -> anyhow::Result<End> {
    let Command::Install { place, library } = arguments.command;
    install::install(&place.folder()?, library.as_deref())?;
    Ok(End::Well)
}
