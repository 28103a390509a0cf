//! The folder that a kernel compiles cells in.
//!
//! Two kernels in one folder overwrite each other's cells, so each has its own. The library is compiled in it already:
//! what is large is linked from the installed kernel's folder and not copied. Cargo puts a new file in the place of a
//! linked one and never writes into it; the small files that it does write into are copied.

use std::ffi::OsString;
use std::fs::{self, File, FileTimes};
use std::io;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use rustix::process::{Pid, test_kill_process};

/// evcxr's variable for the folder.
const FOLDER: &str = "EVCXR_TMPDIR";
/// Beginning of the folder's name; the process's number stands behind it.
const NAME: &str = "session-";

/// What `report kernel install` has put beside this program.
pub(super) struct Installed {
    home: PathBuf,
}

impl Installed {
    pub(super) fn find() -> anyhow::Result<Self> {
        let program = std::env::current_exe()?;
        let home = program.parent().context("this program is in no folder")?.to_owned();
        if !home.join("warm/Cargo.lock").exists() {
            anyhow::bail!("{}: no compiled library; run `report kernel install`", home.display());
        }
        Ok(Self { home })
    }

    /// The library as a dependency: the text behind `syncscope =`.
    pub(super) fn dependency(&self) -> anyhow::Result<String> {
        let file = self.home.join("dependency.toml");
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        Ok(text.trim().to_owned())
    }

    /// Puts the versions that the library was compiled with into `folder`: without them, Cargo looks for newer ones.
    pub(super) fn lock(&self, folder: &Path) -> io::Result<()> {
        fs::copy(self.home.join("warm/Cargo.lock"), folder.join("Cargo.lock")).map(drop)
    }

    /// The folder of this process. A process without one makes it, and begins again in it.
    pub(super) fn enter(&self) -> anyhow::Result<PathBuf> {
        let own = format!("{NAME}{}", std::process::id());
        if let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from)
            && folder.file_name().is_some_and(|name| name == own.as_str())
        {
            return Ok(folder);
        }
        let place = place();
        fs::create_dir_all(&place).with_context(|| place.display().to_string())?;
        remove_left(&place);
        let folder = place.join(own);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        link(&self.home.join("warm"), &folder).with_context(|| folder.display().to_string())?;
        let mut again = Command::new(std::env::current_exe()?);
        // A file `evcxr.toml` of the user's is for other kernels.
        again.args(std::env::args_os().skip(1)).env(FOLDER, &folder).env("EVCXR_CONFIG_DIR", &self.home);
        let (variable, paths) = standard_library()?;
        again.env(variable, paths);
        Err(again.exec()).context("the kernel does not start")
    }
}

/// The variable by which programs find the standard library of Rust, and its value. A cell is moved one folder up after
/// it was linked, so it does not find the library where both have a folder in common.
fn standard_library() -> anyhow::Result<(&'static str, OsString)> {
    let output = Command::new("rustc").args(["--print", "target-libdir"]).output();
    let output = output.context("rustc does not start; cells need it")?;
    let folder = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    let variable = if cfg!(target_os = "macos") { "DYLD_FALLBACK_LIBRARY_PATH" } else { "LD_LIBRARY_PATH" };
    let before = std::env::var_os(variable).unwrap_or_default();
    let folders = std::env::split_paths(&before).filter(|folder| !folder.as_os_str().is_empty());
    Ok((variable, std::env::join_paths(folders.chain([folder]))?))
}

/// Where such folders are: in the user's cache, which is on the disk of the installed kernel as a rule.
fn place() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")));
    let writable = |folder: &PathBuf| fs::create_dir_all(folder).is_ok() && tempfile_in(folder);
    cache.map(|cache| cache.join("syncscope/kernel")).filter(writable).unwrap_or_else(|| {
        let user = rustix::process::getuid().as_raw();
        std::env::temp_dir().join(format!("syncscope-kernel-{user}"))
    })
}

fn tempfile_in(folder: &Path) -> bool {
    let probe = folder.join(format!("probe-{}", std::process::id()));
    let made = File::create(&probe).is_ok();
    made && fs::remove_file(probe).is_ok()
}

/// Removes the folders of kernels that were killed.
fn remove_left(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(NAME)).and_then(|number| number.parse().ok());
        let gone = process.and_then(Pid::from_raw).is_some_and(|process| test_kill_process(process).is_err());
        if gone {
            // Another kernel may do it at the same time.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// `to` as a copy of the folder `from`, with large files linked.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            link(&from, &to)?;
            continue;
        }
        let large =
            from.extension().is_some_and(|end| ["rlib", "rmeta", "so", "dylib"].iter().any(|large| end == *large));
        match large {
            // Across disks, and of another user's files, there are no hard links.
            true => fs::hard_link(&from, &to).or_else(|_| symlink(&from, &to))?,
            false => {
                fs::copy(&from, &to)?;
                // Cargo compares when files were written.
                let written = entry.metadata()?.modified()?;
                File::options().append(true).open(&to)?.set_times(FileTimes::new().set_modified(written))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn what_is_large_is_linked_and_what_cargo_writes_into_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::create_dir_all(from.join("deps")).unwrap();
        fs::write(from.join("deps/a.rlib"), "library").unwrap();
        fs::write(from.join("deps/a.d"), "fingerprint").unwrap();
        link(&from, &to).unwrap();
        let of = |folder: &Path, name: &str| fs::metadata(folder.join("deps").join(name)).unwrap();
        assert_eq!(of(&from, "a.rlib").ino(), of(&to, "a.rlib").ino());
        assert_ne!(of(&from, "a.d").ino(), of(&to, "a.d").ino());
        assert_eq!(of(&from, "a.d").modified().unwrap(), of(&to, "a.d").modified().unwrap());
    }

    #[test]
    fn the_folder_of_a_kernel_that_was_killed_is_removed_by_the_next() {
        let place = tempfile::tempdir().unwrap();
        let mut gone = Command::new("true").spawn().unwrap();
        gone.wait().unwrap();
        let left = place.path().join(format!("{NAME}{}", gone.id()));
        let living = place.path().join(format!("{NAME}{}", std::process::id()));
        for folder in [&left, &living] {
            fs::create_dir_all(folder).unwrap();
        }
        remove_left(place.path());
        assert!(!left.exists() && living.exists());
    }
}
