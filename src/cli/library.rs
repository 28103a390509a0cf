//! The library as a dependency of another crate.

use std::fs;
use std::path::PathBuf;

use serde_json::json;

use super::UsageError;

/// Where this program was built.
const SOURCE: &str = env!("CARGO_MANIFEST_DIR");

/// The library as a line of a `Cargo.toml`, with `more` behind where it comes from. It comes from `folder`, where one is
/// named, from the source that this program was built from, where that is there, or else by its version.
pub(super) fn dependency(folder: Option<PathBuf>, more: &str) -> Result<String, UsageError> {
    let source = match folder {
        Some(path) => Some(
            fs::canonicalize(&path)
                .ok()
                .filter(|path| path.join("Cargo.toml").exists())
                .ok_or_else(|| UsageError(format!("{} is not the library's folder", path.display())))?,
        ),
        None => Some(PathBuf::from(SOURCE)).filter(|path| path.join("Cargo.toml").exists()),
    };
    let (key, value) = match source {
        Some(path) => ("path", path.display().to_string()),
        None => ("version", format!("={}", env!("CARGO_PKG_VERSION"))),
    };
    // A JSON string without control characters is a string of TOML.
    let value = json!(value);
    Ok(format!("{{ {key} = {value}{more} }}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dependency_is_a_path_where_the_source_is_there() {
        let text = dependency(Some(PathBuf::from(SOURCE)), ", features = [\"cuda\"]").unwrap();
        assert!(text.starts_with("{ path = \"/") && text.ends_with("\", features = [\"cuda\"] }"), "{text}");
        assert_eq!(dependency(None, "").unwrap(), format!("{{ path = \"{SOURCE}\" }}"));
        assert!(dependency(Some(PathBuf::from("/nowhere")), "").is_err());
    }
}
