//! The crates of the repository as dependencies of another crate.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::UsageError;

/// Where this program was built.
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A crate of the repository, which lies in `place` there, as a line of a `Cargo.toml`, with `more` behind where it comes from.
/// It comes from the repository in `folder`, where one is named, from that which this program was built from, where that is
/// there, or else by its version.
pub(super) fn dependency(folder: Option<&Path>, place: &str, more: &str) -> Result<String, UsageError> {
    let (key, value) = match source(folder)? {
        Some(path) => ("path", path.join(place).display().to_string()),
        None => ("version", format!("={}", env!("CARGO_PKG_VERSION"))),
    };
    // A JSON string without control characters is a string of TOML.
    let value = json!(value);
    Ok(format!("{{ {key} = {value}{more} }}"))
}

/// The repository's folder: the one that is named, or the one that this program was built from, where that is there.
pub(super) fn source(folder: Option<&Path>) -> Result<Option<PathBuf>, UsageError> {
    let clone = |path: &Path| fs::canonicalize(path).ok().filter(|path| path.join("src/syncscope/Cargo.toml").exists());
    let Some(path) = folder else { return Ok(clone(Path::new(SOURCE))) };
    clone(path).map(Some).ok_or_else(|| UsageError(format!("{} is not the folder of a clone", path.display())))
}
