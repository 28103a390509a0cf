//! Results files of every schema version that there has been.
//!
//! A version that is no longer written keeps its own serde structs and its own reader here, which makes results of today
//! from them; a new version is one line in [`READERS`]. A fixture of each version is kept in `tests/fixtures`, and all of
//! them are read by the tests.

pub(super) mod v1;

use serde::Deserialize;

use super::catalog::Catalog;
use super::row::{MetricSpec, Outcome, Provenance};
use super::run::{Results, SCHEMA_VERSION};
use crate::error::FileError;

/// What reads the text of a results file of one version.
type Reader = fn(&str) -> Result<Results, serde_json::Error>;

/// The versions that are read. The last is the one that is written.
const READERS: &[(u32, Reader)] = &[(1, v1::read), (SCHEMA_VERSION, |text| serde_json::from_str(text))];

/// The one part that every version shares.
#[derive(Deserialize)]
pub(super) struct Versioned {
    pub(super) schema_version: u64,
}

/// Reads results of any version from their text; `origin` names it in errors.
pub(crate) fn read(text: &str, origin: &str) -> Result<Results, FileError> {
    let syntax = |error| FileError::json(origin, "a whole results file", &error);
    let versioned: Versioned = serde_json::from_str(text).map_err(syntax)?;
    let found = READERS.iter().find(|(version, _)| versioned.schema_version == u64::from(*version));
    let (_, reader) = found.ok_or_else(|| FileError::Version {
        origin: origin.to_owned(),
        found: versioned.schema_version.to_string(),
        supported: READERS.iter().map(|(version, _)| version.to_string()).collect::<Vec<_>>().join(", "),
    })?;
    reader(text).map_err(syntax)
}

/// The heading and the label of a row of which only the identifier is known: its parts in words.
pub(super) fn described(id: &str) -> (String, String) {
    let words = |text: &str| text.replace(['.', '-'], " ");
    let mut parts = id.splitn(3, '.');
    let (experiment, group, rest) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
    (words(group.unwrap_or(experiment)), words(rest.or(group).unwrap_or(experiment)))
}

impl MetricSpec {
    /// Whether it says more of itself than its identifier does.
    fn is_described(&self) -> bool {
        described(&self.id) != (self.group.clone(), self.label.clone())
    }
}

impl Results {
    /// Whether each row says what it is: no file of a schema since the second has one that does not.
    pub fn is_described(&self) -> bool {
        self.rows.iter().all(|row| row.spec.is_described())
    }

    /// Puts what `catalog` declares of a row where the file does not say it: a file of schema 1 names rows by their
    /// identifiers alone.
    pub fn describe(&mut self, catalog: &Catalog) {
        for row in &mut self.rows {
            let mut declared = catalog.of(&row.spec.id);
            let Some(known) = declared.find(|spec| spec.parameters == row.spec.parameters) else { continue };
            if row.spec.is_described() || known.unit != row.spec.unit {
                continue;
            }
            let measured = row.series.iter().any(|series| matches!(series.outcome, Outcome::Measured { .. }));
            let provenance = match (&row.spec.provenance, &known.provenance) {
                (Provenance::Measured { clock: one, .. }, Provenance::Measured { clock: other, .. })
                    if measured && one != other =>
                {
                    row.spec.provenance.clone()
                }
                _ => known.provenance.clone(),
            };
            row.spec = MetricSpec { provenance, ..known.clone() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fixture_of_every_older_version_is_read() {
        let folder = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("tests/fixtures");
        for (version, _) in READERS.iter().filter(|(version, _)| *version != SCHEMA_VERSION) {
            let path = folder.join(format!("results-v{version}.json"));
            let results = Results::read(&path).unwrap();
            assert!(!results.rows.is_empty() && results.schema_version == SCHEMA_VERSION, "{version}");
        }
    }

    #[test]
    fn a_version_that_is_not_read_is_named_with_those_that_are() {
        let error = read(r#"{ "schema_version": 999 }"#, "r.json").unwrap_err().to_string();
        assert!(error.contains("schema version 999") && error.contains("(1, 2)"), "{error}");
        // Whatever stands there is not held in memory.
        let error = read(r#"{ "schema_version": [0, 0, 0] }"#, "r.json").unwrap_err().to_string();
        assert!(error.starts_with("r.json:1:"), "{error}");
    }

    #[test]
    fn an_identifier_is_put_in_words() {
        let words = |id| described(id);
        assert_eq!(words("overlap.transfer.host-read"), ("transfer".to_owned(), "host read".to_owned()));
        assert_eq!(words("idle-device.other"), ("other".to_owned(), "other".to_owned()));
    }
}
