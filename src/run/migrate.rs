//! Results files of every schema version that there has been.
//!
//! A version that is no longer written keeps its own serde structs and its own reader here, which makes a run of today
//! from them; a new version is one line in [`READERS`]. A fixture of each version is kept in `tests/fixtures`, and all of
//! them are read by the tests.

use std::path::Path;

use serde::Deserialize;

use super::results::{Run, SCHEMA_VERSION};
use crate::error::ResultsError;

/// What reads the text of a results file of one version.
type Reader = fn(&str) -> Result<Run, serde_json::Error>;

/// The versions that are read. The last is the one that is written.
const READERS: &[(u32, Reader)] = &[(SCHEMA_VERSION, |text| serde_json::from_str(text))];

/// The one part that every version shares.
#[derive(Deserialize)]
struct Versioned {
    schema_version: serde_json::Value,
}

/// Reads results of any version from their text; `path` names it in errors.
pub(super) fn read(text: &str, path: &Path) -> Result<Run, ResultsError> {
    let syntax = |error: serde_json::Error| ResultsError::Syntax {
        path: path.to_owned(),
        line: error.line(),
        column: error.column(),
        message: error.to_string(),
    };
    let versioned: Versioned = serde_json::from_str(text).map_err(syntax)?;
    let found = READERS.iter().find(|(version, _)| versioned.schema_version == *version);
    let (_, reader) = found.ok_or_else(|| ResultsError::Version {
        path: path.to_owned(),
        found: versioned.schema_version.to_string(),
        supported: READERS.iter().map(|(version, _)| version.to_string()).collect::<Vec<_>>().join(", "),
    })?;
    reader(text).map_err(syntax)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fixture_of_every_version_is_read_and_every_reader_has_a_fixture() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        let mut versions = Vec::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let version = name.strip_prefix("results-v").and_then(|rest| rest.strip_suffix(".json"));
            if let Some(version) = version.and_then(|version| version.parse::<u32>().ok()) {
                let run = Run::read(&path).unwrap();
                assert!(run.rows().count() > 0 && run.schema_version == SCHEMA_VERSION, "{name}");
                versions.push(version);
            }
        }
        versions.sort_unstable();
        assert_eq!(versions, READERS.iter().map(|(version, _)| *version).collect::<Vec<_>>());
    }

    #[test]
    fn a_version_that_is_not_read_is_named_with_those_that_are() {
        let error = read(r#"{ "schema_version": 999 }"#, Path::new("r.json")).unwrap_err().to_string();
        assert!(error.contains("schema version 999") && error.contains("(1)"), "{error}");
    }
}
