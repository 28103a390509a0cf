//! Installing the kernel: this program, and what evcxr would compile for the first cell, in a folder that each started
//! kernel links.
//!
//! All is made in a new folder beside the installed one, and takes its place at the end, so an install that fails leaves
//! the kernel that works.
//!
//! The library is copied, with the versions that the clone's lock file names, and this program compiles the copy as each
//! kernel does. Cargo takes what is linked for its own as long as sources, profile and flags are the same.

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, bail};
use serde_json::json;
use syncscope_jupyter::{PROGRAM, is_kernel};
use toml::Table;

use super::folder::Installed;
use super::start::{LIBRARY, compiler};
use crate::library::{self, MANIFEST, PARTS, is_same};

/// What a cell needs of the library.
const DEPENDENCY: &str = "{ features = [\"notebook\"] }";
/// Where a kernel is made. What an install that was killed left there goes with the next one.
const BESIDE: &str = ".syncscope-new";

/// Installs the kernel in the environment `prefix`, or for the user, in the place of an older one.
pub(crate) fn install(prefix: Option<&Path>, library: Option<&Path>) -> anyhow::Result<()> {
    let folder = syncscope_jupyter::folder(prefix)?;
    let clone = library.unwrap_or(Path::new(library::CLONE));
    let source = fs::canonicalize(clone).ok().filter(|source| library::place(source).join("Cargo.toml").exists());
    let source = source.with_context(|| {
        let clone = clone.display();
        format!("{clone}: this is not the folder of a clone; name the one with the library by --library")
    })?;
    if folder.exists() && !is_kernel(&folder) {
        bail!("{}: this is no kernel of this program, so it is not replaced", folder.display());
    }
    let kernels = folder.parent().context("a kernel needs a folder")?;
    let failed = || kernels.display().to_string();
    fs::create_dir_all(kernels).with_context(failed)?;
    let lock = File::open(kernels).with_context(failed)?;
    // Where a file system keeps no locks, another installation is not seen.
    if matches!(lock.try_lock(), Err(TryLockError::WouldBlock)) {
        bail!("{}: another installation is at work there", kernels.display());
    }
    match fs::remove_dir_all(kernels.join(BESIDE)) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error).with_context(failed),
        _ => {}
    }
    let beside = tempfile::Builder::new().prefix(BESIDE).rand_bytes(0).tempdir_in(kernels).with_context(failed)?;
    let new = beside.path().join("kernel");
    make(&new, &folder, &source)?;
    if is_installed(&new, &folder)? {
        println!("installed already, of the same sources: {}", folder.display());
        return Ok(());
    }
    println!("compiling the library for cells, which takes one to two minutes");
    let begun = Instant::now();
    compile(&new)?;
    println!("compiling the library for cells took {} s", begun.elapsed().as_secs());
    replace(&new, &folder, &beside.path().join("old")).with_context(|| folder.display().to_string())?;
    println!("installed: {}", folder.display());
    Ok(())
}

/// Makes in `new` what is to be the kernel in `folder`, all but what is compiled.
fn make(new: &Path, folder: &Path, source: &Path) -> anyhow::Result<()> {
    copy_library(source, &new.join("warm").join(LIBRARY))?;
    let dependency = library::in_folder(DEPENDENCY, &library::place(source))?;
    write(&new.join("dependency.toml"), &format!("{dependency}\n"))?;
    let program = std::env::current_exe()?;
    fs::copy(&program, new.join(PROGRAM)).with_context(|| program.display().to_string())?;
    // All queues of a GPU: where streams share one, a gate that holds a stream can hold another.
    let mut variables = json!({ "CUDA_DEVICE_MAX_CONNECTIONS": "32" });
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
    write(&new.join("kernel.json"), &format!("{kernel:#}\n"))
}

/// Whether the kernel in `folder` is what is made of the sources in `new`, by today's compiler.
fn is_installed(new: &Path, folder: &Path) -> anyhow::Result<bool> {
    let compiler = compiler()?;
    let is_same = |part: &str| is_same(&new.join(part), &folder.join(part));
    let parts = ["kernel.json", "dependency.toml", PROGRAM, &format!("warm/{LIBRARY}")];
    Ok(is_kernel(folder)
        && fs::read(Installed::new(folder).compiler()).is_ok_and(|own| own == compiler)
        && parts.into_iter().all(is_same))
}

/// Puts `new` in the place of `folder`; what was there lies at `old` then.
fn replace(new: &Path, folder: &Path, old: &Path) -> std::io::Result<()> {
    if folder.exists() {
        fs::rename(folder, old)?;
    }
    // The first error is the one to report.
    fs::rename(new, folder).inspect_err(|_| _ = fs::rename(old, folder))
}

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
    write(&to.join(MANIFEST), &text)?;
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

/// Compiles the library in the folder of a kernel, in a process that begins as each kernel does, and with the same flags.
fn compile(kernel: &Path) -> anyhow::Result<()> {
    let status = Command::new(std::env::current_exe()?).arg("prepare").arg(kernel).status();
    if !status.context("this program does not start again")?.success() {
        bail!("the library does not compile for cells");
    }
    trim(&Installed::new(kernel).warm().join("target"))
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
        let other = syncscope_jupyter::folder(Some(folder.path())).unwrap();
        write(&other.join("kernel.json"), "{}").unwrap();
        fs::create_dir(other.join("warm")).unwrap();
        assert!(!is_kernel(&other));
        let error = install(Some(folder.path()), None).unwrap_err();
        assert!(error.to_string().contains("no kernel of this program"), "{error}");
        assert_eq!(fs::read_to_string(other.join("kernel.json")).unwrap(), "{}");
    }
}
