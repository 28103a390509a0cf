//! `report kernel`: a Jupyter kernel that starts with the library compiled.

mod install;

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Subcommand};

use super::{End, UsageError};

/// Install, list or uninstall the Jupyter kernel "Rust (syncscope)"
#[derive(Args)]
#[command(
    after_help = "Examples:\n  report kernel install\n  report kernel install --prefix .venv\n  report kernel list\n  \
                        report kernel uninstall"
)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compile the kernel and the library for cells, once, and install them
    Install {
        #[command(flatten)]
        place: Place,
        /// The library's folder, instead of the one that this program was built from
        #[arg(long, value_name = "DIR")]
        library: Option<PathBuf>,
    },
    /// List the installed kernels and their libraries
    List {
        #[command(flatten)]
        place: Place,
    },
    /// Remove the kernel and what was compiled for it
    Uninstall {
        #[command(flatten)]
        place: Place,
    },
}

/// Where Jupyter looks for the kernel.
#[derive(Args)]
pub(super) struct Place {
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
    let home = || variable("HOME");
    let usual = || match cfg!(target_os = "macos") {
        true => home().map(|home| home.join("Library/Jupyter")),
        false => {
            let data = variable("XDG_DATA_HOME").or_else(|| home().map(|home| home.join(".local/share")));
            data.map(|data| data.join("jupyter"))
        }
    };
    variable("JUPYTER_DATA_DIR").or_else(usual)
}

pub(super) fn execute(arguments: Arguments) -> anyhow::Result<End> {
    match arguments.command {
        Command::Install { place, library } => install::install(&place.folder()?, library.as_deref())?,
        Command::List { place } => {
            let folders = place.folders()?;
            for folder in &folders {
                let library = fs::read_to_string(folder.join("dependency.toml")).unwrap_or_default();
                say!("{}\nlibrary: {}", folder.display(), library.trim());
            }
            if folders.is_empty() {
                say!("no kernel is installed; `report kernel install` installs one");
            }
        }
        Command::Uninstall { place } => {
            let folder = place.folder()?;
            if !install::is_kernel(&folder) {
                return Err(UsageError(format!("there is no kernel in {}", folder.display())).into());
            }
            fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
            say!("uninstalled: {}", folder.display());
        }
    }
    Ok(End::Well)
}
