//! Installing the kernel: its program, and what evcxr would compile for the first cell, in a folder that each started
//! kernel links.
//!
//! All is made in a new folder beside the installed one, and takes its place at the end, so an install that fails leaves
//! the kernel that works.
//!
//! The library is copied, with the versions that the clone's lock file names, and the kernel's program compiles the copy as
//! each kernel does. Cargo takes what is linked for its own as long as sources, profile and flags are the same.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, bail};
use serde_json::{Value, json};
use toml::Table;

use super::NAMED;
use crate::UsageError;
use crate::files::{Scratch, replace};
use crate::library::{dependency, source};

/// What a cell needs of the library.
const FEATURES: &str = ", features = [\"notebook\"]";
/// The kernel's program, in its folder and as a package of the library's repository.
pub(crate) const PROGRAM: &str = "notebook-runner";

/// Installs the kernel in `folder`, in the place of an older one.
pub(super) fn install(folder: &Path, library: Option<&Path>) -> anyhow::Result<()> {
    let dependency = dependency(library, "src/syncscope", FEATURES)?;
    let source = source(library)?.filter(|source| source.join("notebooks/runner/Cargo.toml").exists());
    let Some(source) = source else {
        let text = "the kernel's program is in the library's repository: name the folder of a clone with --library";
        return Err(UsageError(text.to_owned()).into());
    };
    if folder.exists() && !is_kernel(folder) {
        let place = folder.display();
        return Err(UsageError(format!("{place}: this is no kernel of this program, so it is not replaced")).into());
    }
    let kernels = folder.parent().context("a kernel needs a folder")?;
    fs::create_dir_all(kernels).with_context(|| kernels.display().to_string())?;
    let beside = Scratch::within(kernels).with_context(|| kernels.display().to_string())?;
    let new = beside.path().join("kernel");

    let program = timed("compiling the kernel", || build(&source))?;
    let warm = new.join("warm");
    copy_library(&source, &warm.join(LIBRARY))?;
    write(&new.join("dependency.toml"), &format!("{dependency}\n"))?;
    fs::copy(&program, new.join(PROGRAM)).with_context(|| program.display().to_string())?;
    // All queues of a GPU: where streams share one, a gate that holds a stream can hold another.
    let mut variables = json!({ "CUDA_DEVICE_MAX_CONNECTIONS": "32", NAMED: crate::program() });
    if let Ok(toolchain) = std::env::var("RUSTUP_TOOLCHAIN") {
        variables["RUSTUP_TOOLCHAIN"] = json!(toolchain);
    }
    let kernel = json!({
        "argv": [folder.join(PROGRAM), "kernel", "{connection_file}"],
        "display_name": "Rust (syncscope)",
        "language": "rust",
        "interrupt_mode": "message",
        "env": variables,
    });
    write(&new.join("kernel.json"), &format!("{kernel:#}\n"))?;
    if is_installed(&new, folder)? {
        say!("installed already, of the same sources: {}", folder.display());
        return Ok(());
    }
    timed("compiling the library for cells", || compile(&program, &new))?;
    trim(&warm.join("target"))?;
    replace(&new, folder, &beside.path().join("old")).with_context(|| folder.display().to_string())?;
    say!("installed: {}", folder.display());
    Ok(())
}

/// Does a part of the installation, and says how long it took.
fn timed<T>(what: &str, part: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    say!("{what}");
    let begun = Instant::now();
    let made = part()?;
    say!("{what} took {} s", begun.elapsed().as_secs());
    Ok(made)
}

/// Whether the kernel in `folder` is what is made of the sources in `new`, by today's compiler.
fn is_installed(new: &Path, folder: &Path) -> anyhow::Result<bool> {
    let compiler = Command::new("rustc").arg("-vV").output().context("rustc does not start; cells need it")?.stdout;
    let is_same = |part: &str| is_same(&new.join(part), &folder.join(part));
    let parts = ["kernel.json", "dependency.toml", PROGRAM, &format!("warm/{LIBRARY}")];
    Ok(is_kernel(folder)
        && fs::read(folder.join("rustc.txt")).is_ok_and(|own| own == compiler)
        && parts.into_iter().all(is_same))
}

/// Whether two files, or all files of two folders, hold the same.
fn is_same(one: &Path, other: &Path) -> bool {
    if !one.is_dir() {
        return fs::read(one).is_ok_and(|own| fs::read(other).is_ok_and(|others| own == others));
    }
    let names = |folder: &Path| -> BTreeSet<OsString> {
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name()).collect()
    };
    let (own, others) = (names(one), names(other));
    own == others && own.iter().all(|name| is_same(&one.join(name), &other.join(name)))
}

/// Whether a folder holds a kernel that was installed by this program, today or before.
pub(super) fn is_kernel(folder: &Path) -> bool {
    ["kernel.json", "dependency.toml", PROGRAM].iter().all(|name| folder.join(name).is_file())
        && folder.join("warm").is_dir()
}

/// Compiles the kernel's program and says where it is.
fn build(source: &Path) -> anyhow::Result<PathBuf> {
    let mut command = Command::new("cargo");
    // Without a package: with the features that `report` was built with, by `cargo run --release --bin report`.
    command.args(["build", "--release", "--locked", "--bin", PROGRAM]);
    command.args(["--message-format", "json-render-diagnostics"]).current_dir(source).stderr(Stdio::inherit());
    let output = command.output().context("cargo does not start; a notebook needs it, too")?;
    if !output.status.success() {
        bail!("the kernel does not compile; where the clone cannot be written, CARGO_TARGET_DIR names another place");
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut programs = messages.filter_map(|message| message["executable"].as_str().map(PathBuf::from));
    programs.next_back().context("cargo does not say where the kernel is")
}

/// The folder of the library's copy, within that which is compiled in.
const LIBRARY: &str = "library";
/// What of the repository a cell needs: the library, what it shows, and the audit.
const PARTS: [&str; 5] = ["Cargo.lock", "src/syncscope", "src/present", "src/audit", "report-templates"];

/// Copies the library into a folder of its own, so that a kernel has the one that it was compiled with, whatever becomes of
/// the clone. The workspace has no other crates there.
fn copy_library(source: &Path, to: &Path) -> anyhow::Result<()> {
    let manifest = source.join("Cargo.toml");
    let text = fs::read_to_string(&manifest).with_context(|| manifest.display().to_string())?;
    let mut table: Table = toml::from_str(&text).with_context(|| manifest.display().to_string())?;
    table.remove("profile");
    if let Some(workspace) = table.get_mut("workspace").and_then(toml::Value::as_table_mut) {
        workspace.insert("members".to_owned(), vec!["src/syncscope", "src/present", "src/audit"].into());
        workspace.remove("default-members");
    }
    write(&to.join("Cargo.toml"), &toml::to_string(&table).context("the library's manifest")?)?;
    write(&to.join("Cargo.toml.orig"), &text)?;
    PARTS.iter().try_for_each(|part| copy(&source.join(part), &to.join(part)))
}

/// Copies a file or a folder. What cannot be written in the one can be in the other.
fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let failed = || from.display().to_string();
    if from.is_dir() {
        fs::create_dir_all(to).with_context(failed)?;
        let entries = fs::read_dir(from).with_context(failed)?;
        return entries.into_iter().try_for_each(|entry| {
            let name = entry.with_context(failed)?.file_name();
            copy(&from.join(&name), &to.join(&name))
        });
    }
    fs::read(from).and_then(|content| fs::write(to, content)).with_context(failed)
}

/// Has the kernel's program compile the library in the folder of a kernel: as each kernel does, and with the same flags.
fn compile(program: &Path, kernel: &Path) -> anyhow::Result<()> {
    let status = Command::new(program).arg("prepare").arg(kernel).status();
    let status = status.with_context(|| program.display().to_string())?;
    if !status.success() {
        bail!("the library does not compile for cells");
    }
    Ok(())
}

/// Removes what was made of the first cell: other cells take its place.
fn trim(folder: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let own = name == "incremental"
            || name.starts_with("libcode_")
            || ["ctx", "libctx"]
                .iter()
                .any(|own| name.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.'])));
        match entry.file_type()?.is_dir() {
            true if own => fs::remove_dir_all(&path)?,
            true => trim(&path)?,
            false if own => fs::remove_file(&path)?,
            false => {}
        }
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).and_then(|()| fs::write(path, text)).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_copy_of_the_library_has_its_code_and_its_versions_and_no_program() {
        let source = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("library");
        copy_library(source, &copy).unwrap();
        for same in ["Cargo.lock", "src/syncscope/lib.rs", "src/audit/lib.rs", "src/syncscope/kernels/spin.cu"] {
            assert_eq!(fs::read(source.join(same)).unwrap(), fs::read(copy.join(same)).unwrap(), "{same}");
        }
        let table: Table = toml::from_str(&fs::read_to_string(copy.join("Cargo.toml")).unwrap()).unwrap();
        assert_eq!(table["workspace"]["members"].as_array().map(Vec::len), Some(3));
        assert!(table["workspace"].get("dependencies").is_some() && !copy.join("src/report").exists());
    }

    #[test]
    fn a_kernel_is_installed_already_until_one_file_of_it_is_another() {
        let folder = tempfile::tempdir().unwrap();
        let (new, old) = (folder.path().join("new"), folder.path().join("old"));
        for kernel in [&new, &old] {
            for name in ["kernel.json", "dependency.toml", PROGRAM, "warm/library/src/lib.rs"] {
                write(&kernel.join(name), "the same").unwrap();
            }
        }
        let compiler = Command::new("rustc").arg("-vV").output().unwrap().stdout;
        assert!(!is_installed(&new, &old).unwrap(), "it was not compiled");
        fs::write(old.join("rustc.txt"), &compiler).unwrap();
        fs::write(old.join("warm/Cargo.lock"), "of the compilation").unwrap();
        assert!(is_installed(&new, &old).unwrap());
        for name in ["kernel.json", PROGRAM, "warm/library/src/lib.rs", "warm/library/src/more.rs", "rustc.txt"] {
            let kept = fs::read(old.join(name));
            write(&old.join(name), "another").unwrap();
            assert!(!is_installed(&new, &old).unwrap(), "{name}");
            kept.map_or_else(|_| fs::remove_file(old.join(name)), |kept| fs::write(old.join(name), kept)).unwrap();
        }
        assert!(is_installed(&new, &old).unwrap());
    }

    #[test]
    fn a_folder_of_another_kernel_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let other = folder.path().join("syncscope");
        write(&other.join("kernel.json"), "{}").unwrap();
        fs::create_dir(other.join("warm")).unwrap();
        assert!(!is_kernel(&other));
        let error = install(&other, None).unwrap_err();
        assert!(error.to_string().contains("no kernel of this program"), "{error}");
        assert_eq!(fs::read_to_string(other.join("kernel.json")).unwrap(), "{}");
    }
}
