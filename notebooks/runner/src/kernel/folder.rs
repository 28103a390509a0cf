//! The folder that a kernel compiles cells in.
//!
//! Two kernels in one folder overwrite each other's cells, so each has its own. The library is compiled in it already:
//! what is large is linked from the installed kernel's folder and not copied. Cargo puts a new file in the place of a
//! linked one and never writes into it; the small files that it does write into are copied.

use std::ffi::OsStr;
use std::fs::{self, File, FileTimes};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use rustix::process::{Pid, test_kill_process};
use sha2::{Digest, Sha256};
use syncscope_jupyter::INSTALL;

use super::tools;
use crate::cells;

/// evcxr's variable for the folder.
const FOLDER: &str = "EVCXR_TMPDIR";
/// Where in the folder rust-analyzer finds the standard library, and where that is.
const SOURCES: &str = "standard-library";
const SOURCES_BEHIND: &str = "standard-library-behind";
/// The parts of them that no variable of a cell has a type of: the processors' own instructions, what asks for them, vectors
/// that are not stable, and the reader of stacks.
const UNMET: [&str; 4] = ["stdarch", "std_detect", "portable-simd", "backtrace"];
/// Beginning of the folder's name; the host and the process's number stand behind it.
const NAME: &str = "session-";
/// The namespace of processes that a host begins with; containers have others.
const HOSTS_PROCESSES: &str = "pid:[4026531836]";

/// What is wrong where a kernel's library cannot be used, and what to do.
pub(super) fn unusable() -> String {
    format!("the library of the kernel cannot be used; in the clone, `{INSTALL}` installs it again")
}

/// What the installation has put beside this program.
pub(super) struct Installed {
    home: PathBuf,
}

impl Installed {
    pub(super) fn find() -> anyhow::Result<Self> {
        let program = std::env::current_exe()?;
        let home = program.parent().context("this program is in no folder")?.to_owned();
        if !home.join("warm/Cargo.lock").exists() {
            anyhow::bail!("{}: no compiled library; in the clone, run `{INSTALL}`", home.display());
        }
        Ok(Self { home })
    }

    /// What is in `home`, which is being installed.
    pub(super) fn new(home: &Path) -> Self {
        Self { home: home.to_owned() }
    }

    /// The library as a dependency, in the folder that it was copied from: the text behind `syncscope =`.
    pub(super) fn dependency(&self) -> anyhow::Result<String> {
        let file = self.home.join("dependency.toml");
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        Ok(text.trim().to_owned())
    }

    /// The folder that each kernel's folder is a copy of.
    pub(super) fn warm(&self) -> PathBuf {
        self.home.join("warm")
    }

    /// The compiler that the library was compiled with, in its own words.
    pub(super) fn compiler(&self) -> PathBuf {
        self.home.join("rustc.txt")
    }

    /// The folder of this process. A process without one makes it, and begins again in it.
    pub(super) fn enter(&self) -> anyhow::Result<PathBuf> {
        let host = host();
        let own = format!("{}{}", of_host(&host), std::process::id());
        if let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from)
            && folder.file_name().is_some_and(|name| name == own.as_str())
        {
            return Ok(folder);
        }
        let place = place();
        fs::create_dir_all(&place).with_context(|| place.display().to_string())?;
        remove_left(&place, &host);
        let folder = place.join(own);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        link(&self.warm(), &folder).with_context(|| folder.display().to_string())?;
        Err(self.begin_again(&folder)?)
    }

    /// Enters the folder that is copied for each kernel.
    pub(super) fn enter_warm(&self) -> anyhow::Result<PathBuf> {
        let warm = self.warm();
        match std::env::var_os(FOLDER).is_some_and(|folder| Path::new(&folder) == warm) {
            true => Ok(warm),
            false => Err(self.begin_again(&warm)?),
        }
    }

    /// Begins this process again in `folder`, with the environment that cells are always compiled in. Where that succeeds, it
    /// does not return; otherwise it says why.
    fn begin_again(&self, folder: &Path) -> anyhow::Result<anyhow::Error> {
        let mut again = Command::new(std::env::current_exe()?);
        for (name, _) in std::env::vars_os().filter(|(name, _)| changes_builds(name)) {
            again.env_remove(name);
        }
        // A file `evcxr.toml` of the user's is for other kernels.
        again.args(std::env::args_os().skip(1)).env(FOLDER, folder).env("EVCXR_CONFIG_DIR", &self.home);
        let libraries = standard_library()?;
        let variable = if cfg!(target_os = "macos") { "DYLD_FALLBACK_LIBRARY_PATH" } else { "LD_LIBRARY_PATH" };
        let before = std::env::var_os(variable).unwrap_or_default();
        let folders = std::env::split_paths(&before).filter(|folder| !folder.as_os_str().is_empty());
        again.env(variable, std::env::join_paths(folders.chain([libraries.clone()]))?);
        if let Some(sources) = sources_of(&libraries) {
            hide_sources(folder, &sources)?;
            again.env("RUST_SRC_PATH", folder.join(SOURCES));
        }
        // The programs themselves in the place of those that choose among several toolchains, at each of a dozen calls.
        let programs = libraries.ancestors().nth(4).map(|root| root.join("bin"));
        let programs = programs.filter(|programs| programs.join("cargo").exists());
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path: Vec<PathBuf> = programs.into_iter().chain(std::env::split_paths(&path)).collect();
        tools::give(&mut again, folder, &path)?;
        // rust-analyzer's threads leave memory to the kernel, not each its own.
        again.env(cells::ARENAS, "1");
        Ok(anyhow::Error::new(again.exec()).context("the kernel does not start"))
    }
}

/// The sources of the standard library, where they are installed.
fn sources_of(libraries: &Path) -> Option<PathBuf> {
    let own = std::env::var_os("RUST_SRC_PATH").map(PathBuf::from);
    let usual = || libraries.ancestors().nth(2).map(|rustlib| rustlib.join("src/rust/library"));
    own.or_else(usual).filter(|sources| sources.join("core").is_dir())
}

/// Puts an empty library in the place where rust-analyzer looks for the sources of the standard library.
fn hide_sources(folder: &Path, sources: &Path) -> io::Result<()> {
    fs::create_dir_all(folder.join(SOURCES).join("core"))?;
    // No link: rust-analyzer would follow it, as all within the folder is a package, and load all of them.
    fs::write(folder.join(SOURCES_BEHIND), sources.as_os_str().as_bytes())
}

/// Puts the sources of the standard library where rust-analyzer looks for them. It reads all of them whenever the
/// dependencies are others, which takes as long as all else at the start, and evcxr begins with none. More than two thirds of
/// them it needs for no variable's type.
pub(super) fn show_sources(folder: &Path) -> io::Result<()> {
    let (shown, behind) = (folder.join(SOURCES), folder.join(SOURCES_BEHIND));
    let Ok(sources) = fs::read(behind) else { return Ok(()) };
    fs::remove_dir_all(&shown)?;
    fs::create_dir(&shown)?;
    for entry in fs::read_dir(OsStr::from_bytes(&sources))? {
        let entry = entry?;
        if UNMET.iter().all(|part| entry.file_name() != *part) {
            symlink(entry.path(), shown.join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// Where they are shown.
pub(super) fn shown_sources(folder: &Path) -> PathBuf {
    folder.join(SOURCES)
}

/// Removes what leads to them.
pub(super) fn forget_sources(folder: &Path) -> io::Result<()> {
    for own in [folder.join(SOURCES), folder.join(SOURCES_BEHIND)] {
        let removed = if own.is_dir() { fs::remove_dir_all(&own) } else { fs::remove_file(&own) };
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Whether a variable changes what Cargo compiles. The kernel is installed from one environment and started in others, and
/// with another flag the first cell would compile the library again.
fn changes_builds(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let is_of_cargo = name == "CARGO" || name.starts_with("CARGO_");
    let is_of_rustc = name == "RUSTC" || name.starts_with("RUSTC_") || ["RUSTFLAGS", "RUSTDOCFLAGS"].contains(&&*name);
    // Where packages are, and the way to them.
    let is_kept =
        ["CARGO_HOME", "CARGO_HTTP_", "CARGO_NET_", "CARGO_REGISTR"].iter().any(|kept| name.starts_with(kept));
    is_of_rustc || is_of_cargo && !is_kept
}

/// The folder of the standard library of Rust, which programs have to be told: a cell is moved one folder up after it was
/// linked, so it does not find the library where both have a folder in common.
fn standard_library() -> anyhow::Result<PathBuf> {
    let output = Command::new("rustc").args(["--print", "target-libdir"]).output();
    let output = output.context("rustc does not start; cells need it")?;
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

/// Where such folders are: in the user's cache, which is on the disk of the installed kernel as a rule.
fn place() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")));
    let fits = |folder: &PathBuf| fs::create_dir_all(folder).is_ok() && tempfile_in(folder);
    cache.map(|cache| cache.join("syncscope/kernel")).filter(fits).unwrap_or_else(|| {
        let user = rustix::process::getuid().as_raw();
        std::env::temp_dir().join(format!("syncscope-kernel-{user}"))
    })
}

fn tempfile_in(folder: &Path) -> bool {
    let probe = folder.join(format!("probe-{}", std::process::id()));
    let made = File::create(&probe).is_ok();
    made && fs::remove_file(probe).is_ok()
}

/// What tells where a process's number means this process: hosts may share a home folder, and containers a host's name.
fn host() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
    let processes = fs::read_link("/proc/self/ns/pid").unwrap_or_default().display().to_string();
    // Such numbers of a container begin anew with the host; those of a host mean the same after it was started again.
    let start = if processes == HOSTS_PROCESSES { String::new() } else { read("/proc/sys/kernel/random/boot_id") };
    host_of(&name, &[&read("/etc/machine-id"), &processes, &start])
}

/// The name of a host with a digest of what else tells it from others, as a part of a file's name.
fn host_of(name: &str, more: &[&str]) -> String {
    let digest = Sha256::digest(more.join("\n"));
    let digest: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    let name: String = name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect();
    format!("{name}-{digest}")
}

/// Beginning of the names of a host's folders.
fn of_host(host: &str) -> String {
    format!("{NAME}{host}-")
}

/// Removes the folders of kernels of this host that were killed. Which processes of another host live is not known here.
fn remove_left(place: &Path, host: &str) {
    let own = of_host(host);
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(&own)).and_then(|number| number.parse().ok());
        let gone = process.and_then(Pid::from_raw).is_some_and(|process| test_kill_process(process).is_err());
        if gone {
            // Another kernel may do it at the same time.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The endings of what is large, beside programs.
const LARGE: [&str; 4] = ["rlib", "rmeta", "so", "dylib"];

/// `to` as a copy of the folder `from`, with large files and programs linked: of Cargo's build scripts there are dozens.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        let written = entry.metadata()?.modified()?;
        if entry.file_type()?.is_dir() {
            link(&from, &to)?;
            File::open(&to)?.set_times(FileTimes::new().set_modified(written))?;
            continue;
        }
        let is_large = from.extension().is_some_and(|end| LARGE.iter().any(|large| end == *large));
        let is_program = entry.metadata()?.permissions().mode() & 0o111 != 0;
        match is_large || is_program {
            // Across disks, and of another user's files, there are no hard links.
            true => fs::hard_link(&from, &to).or_else(|_| symlink(&from, &to))?,
            false => {
                fs::copy(&from, &to)?;
                // Cargo compares when files and folders were written.
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
        fs::write(from.join("deps/build-script-build"), "program").unwrap();
        fs::set_permissions(from.join("deps/build-script-build"), fs::Permissions::from_mode(0o755)).unwrap();
        link(&from, &to).unwrap();
        let of = |folder: &Path, name: &str| fs::metadata(folder.join("deps").join(name)).unwrap();
        for linked in ["a.rlib", "build-script-build"] {
            assert_eq!(of(&from, linked).ino(), of(&to, linked).ino(), "{linked}");
        }
        assert_ne!(of(&from, "a.d").ino(), of(&to, "a.d").ino());
        assert_eq!(of(&from, "a.d").modified().unwrap(), of(&to, "a.d").modified().unwrap());
        assert_eq!(of(&from, ".").modified().unwrap(), of(&to, ".").modified().unwrap());
    }

    #[test]
    fn a_kernel_is_compiled_for_with_the_same_flags_wherever_it_is_started() {
        let removed =
            ["RUSTFLAGS", "RUSTC_WRAPPER", "CARGO_INCREMENTAL", "CARGO_TARGET_DIR", "CARGO_PROFILE_DEV_DEBUG"];
        assert!(removed.iter().all(|name| changes_builds(OsStr::new(name))));
        let kept =
            ["CARGO_HOME", "CARGO_NET_OFFLINE", "CARGO_HTTP_PROXY", "RUSTUP_TOOLCHAIN", "PATH", "CUDA_VISIBLE_DEVICES"];
        assert!(!kept.iter().any(|name| changes_builds(OsStr::new(name))));
    }

    #[test]
    fn the_standard_library_is_empty_until_it_is_shown() {
        let folder = tempfile::tempdir().unwrap();
        let (own, sources) = (folder.path().join("session"), folder.path().join("sources"));
        fs::create_dir_all(sources.join("core/src")).unwrap();
        fs::create_dir(sources.join(UNMET[0])).unwrap();
        hide_sources(&own, &sources).unwrap();
        assert!(own.join(SOURCES).join("core").is_dir() && !own.join(SOURCES).join("core/src").exists());
        show_sources(&own).unwrap();
        assert!(own.join(SOURCES).join("core/src").is_dir() && !own.join(SOURCES).join(UNMET[0]).exists());
        forget_sources(&own).unwrap();
        assert!(!own.join(SOURCES).exists() && sources.join("core/src").exists());
        show_sources(&own).unwrap();
        forget_sources(&own).unwrap();
    }

    #[test]
    fn the_folder_of_a_kernel_that_was_killed_is_removed_by_the_next() {
        let place = tempfile::tempdir().unwrap();
        let mut gone = Command::new("true").spawn().unwrap();
        gone.wait().unwrap();
        let folder = |host: &str, process: u32| place.path().join(format!("{}{process}", of_host(host)));
        let (own, other) = (host(), host_of("other", &[]));
        let (left, living, others) =
            (folder(&own, gone.id()), folder(&own, std::process::id()), folder(&other, gone.id()));
        for folder in [&left, &living, &others] {
            fs::create_dir_all(folder).unwrap();
        }
        remove_left(place.path(), &own);
        assert!(!left.exists() && living.exists() && others.exists());
    }

    #[test]
    fn hosts_and_containers_that_share_a_home_folder_have_folders_of_different_names() {
        let hosts = [
            host_of("login", &["one", HOSTS_PROCESSES, ""]),
            host_of("node-1", &["one", HOSTS_PROCESSES, ""]),
            host_of("login", &["two", HOSTS_PROCESSES, ""]),
            host_of("login", &["one", "pid:[1]", "start"]),
            host_of("login", &["one", "pid:[2]", "start"]),
            host_of("login", &["one", "pid:[1]", "another start"]),
        ];
        for (place, host) in hosts.iter().enumerate() {
            assert!(!hosts[..place].contains(host), "{host}");
            assert!(!host.contains(['/', ' ']), "{host}");
        }
        assert_eq!(host(), host());
    }
}
