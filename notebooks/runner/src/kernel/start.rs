//! The session that a kernel begins with: evcxr with the library, in a folder where both are compiled.
//!
//! The installation begins one in the folder that all kernels' folders are copies of. So what is installed was compiled as
//! a kernel compiles, by the same program, and a kernel that starts compiles nothing but its first cell.
//!
//! The library lies in that folder, too: what a path within the folder leads to has the same name for Cargo in each copy,
//! and a change of the clone does not change it.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, OnceLock};

use anyhow::{Context, bail};
use syncscope_jupyter::INSTALL;

use super::folder::{self, Installed};
use crate::library;
use crate::session::{ATTRIBUTES, Control, Session, Sink};

/// What every cell may use. The last line has evcxr expect `?` from the first cell on: where it finds that out by an
/// error, it forgets how to show a value.
const PRELUDE: &str = "use syncscope::prelude::*;\nOk::<(), std::fmt::Error>(())?;";

/// Where the copy of the repository lies in a kernel's folder.
pub(super) const LIBRARY: &str = "library";

/// A session with the library, and the library as a dependency: the text behind `syncscope =`.
pub(super) fn begin(
    installed: &Installed,
    folder: &Path,
    versions: &Path,
    sink: Option<Sink>,
    ending: &OnceLock<Arc<Control>>,
) -> anyhow::Result<(Session, String)> {
    let own = library::in_folder(&installed.dependency()?, &library::place(&folder.join(LIBRARY)))?;
    let mut session = Session::new(sink)?;
    let _ = ending.set(session.control());
    folder::show_sources(folder).context("the sources of the standard library")?;
    // evcxr's first compilation, of nothing, forgets the versions. Without them, Cargo looks for newer ones.
    fs::copy(versions, folder.join("Cargo.lock")).with_context(|| versions.display().to_string())?;
    // evcxr takes the linker that it finds, and another one at the start than at the installation compiles all again.
    let left = session.run(&format!(":linker system\n{}{ATTRIBUTES}{PRELUDE}", library::lines(&own)));
    match left.failure {
        Some(failure) => bail!("{}", failure.text),
        None => Ok((session, own)),
    }
}

/// Compiles the library in the folder of a kernel that is being installed.
pub(crate) fn prepare(home: &Path) -> anyhow::Result<()> {
    let installed = Installed::new(home);
    let folder = installed.enter_warm()?;
    let (session, _) = begin(&installed, &folder, &folder.join(LIBRARY).join("Cargo.lock"), None, &OnceLock::new())?;
    session.control().kill();
    folder::forget_sources(&folder)?;
    fs::write(installed.compiler(), compiler()?)?;
    Ok(())
}

/// What has changed since the kernel was installed, in sentences.
pub(super) fn changes(installed: &Installed) -> anyhow::Result<Vec<String>> {
    let mut said = Vec::new();
    if fs::read(installed.compiler())? != compiler()? {
        said.push(format!(
            "The library of this kernel was compiled by another version of rustc, so each start compiles it again; \
             in the clone, `{INSTALL}` does it once."
        ));
    }
    if let Some(clone) = library::newer(&installed.dependency()?, &installed.warm().join(LIBRARY)) {
        let clone = clone.display();
        said.push(format!(
            "The library of this kernel is not that of {clone} any more; `{INSTALL}` there compiles it again."
        ));
    }
    Ok(said)
}

/// The compiler in its own words.
pub(super) fn compiler() -> anyhow::Result<Vec<u8>> {
    let output = Command::new("rustc").arg("-vV").output().context("rustc does not start; cells need it")?;
    if !output.status.success() {
        bail!("rustc does not say its version; cells need it: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(output.stdout)
}
