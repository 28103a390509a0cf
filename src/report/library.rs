//! The library as a dependency of another crate.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::UsageError;

/// Where this program was built.
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The library as a line of a `Cargo.toml`, with `more` behind where it comes from. It comes from `folder`, where one is
/// named, from the source that this program was built from, where that is there, or else by its version.
pub(super) fn dependency(folder: Option<&Path>, more: &str) -> Result<String, UsageError> {
    let (key, value) = match source(folder)? {
        Some(path) => ("path", path.display().to_string()),
        None => ("version", format!("={}", env!("CARGO_PKG_VERSION"))),
    };
    // A JSON string without control characters is a string of TOML.
    let value = json!(value);
    Ok(format!("{{ {key} = {value}{more} }}"))
}

/// The library's folder: the one that is named, or the one that this program was built from, where that is there.
pub(super) fn source(folder: Option<&Path>) -> Result<Option<PathBuf>, UsageError> {
    match folder {
        Some(path) => {
            let found = fs::canonicalize(path).ok().filter(|path| path.join("Cargo.toml").exists());
            found.map(Some).ok_or_else(|| UsageError(format!("{} is not the library's folder", path.display())))
        }
        None => Ok(Some(PathBuf::from(SOURCE)).filter(|path| path.join("Cargo.toml").exists())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dependency_is_a_path_where_the_source_is_there() {
        let text = dependency(Some(Path::new(SOURCE)), ", features = [\"cuda\"]").unwrap();
        assert!(text.starts_with("{ path = \"/") && text.ends_with("\", features = [\"cuda\"] }"), "{text}");
        assert_eq!(dependency(None, "").unwrap(), format!("{{ path = \"{SOURCE}\" }}"));
        assert!(dependency(Some(Path::new("/nowhere")), "").is_err());
    }
}
