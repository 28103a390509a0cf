//! `report kernel`: a Jupyter kernel that starts with the library compiled.

mod install;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{End, UsageError};

/// Install or remove the Jupyter kernel "Rust (syncscope)"
#[derive(Args)]
#[command(
    after_help = "Examples:\n  report kernel install\n  report kernel install --prefix .venv\n  report kernel remove"
)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compile the library for cells, once, and install a kernel that starts with it
    Install {
        #[command(flatten)]
        place: Place,
        /// The library's folder, instead of the one that this program was built from
        #[arg(long, value_name = "DIR")]
        library: Option<PathBuf>,
    },
    /// Remove the kernel and what was compiled for it
    Remove {
        #[command(flatten)]
        place: Place,
    },
}

/// Where Jupyter looks for the kernel.
#[derive(Args)]
struct Place {
    /// The environment of Python to install it in, such as .venv; without it, it is the user's own
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
        Command::Install { place, library } => install::install(&place.folder()?, library)?,
        Command::Remove { place } => {
            let folder = place.folder()?;
            if !folder.join("kernel.json").exists() {
                return Err(UsageError(format!("there is no kernel in {}", folder.display())).into());
            }
            std::fs::remove_dir_all(&folder)?;
            say!("removed: {}", folder.display());
        }
    }
    Ok(End::Well)
}
