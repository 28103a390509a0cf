//! Suites: which experiments to run, with which parameters, on which device (YAML).

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::SuiteError;
use crate::experiment::Entry;
use crate::measure::Protocol;

/// Which experiments to run, with which parameters, on which device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// The title of the book that is made of the results.
    pub title: String,
    /// The device: `auto` (`cuda:0` if there is one, else `cpu:0`) or a name.
    #[serde(default = "auto")]
    pub device: String,
    /// How rows are sampled.
    pub sampling: Protocol,
    /// The experiments, each with its parameters.
    #[serde(with = "serde_yaml::with::singleton_map_recursive")]
    #[schemars(with = "Vec<Entry>")]
    pub experiments: Vec<Entry>,
    /// The experiments to run instead where the device is one of the CPU engine.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "serde_yaml::with::singleton_map_recursive")]
    #[schemars(with = "Vec<Entry>")]
    pub on_cpu: Vec<Entry>,
}

fn auto() -> String {
    "auto".to_owned()
}

impl Suite {
    /// Reads a suite from a file.
    ///
    /// # Errors
    /// [`SuiteError`] says where in the file what is wrong, and the nearest known name to an unknown one.
    pub fn read(path: &Path) -> Result<Self, SuiteError> {
        let text =
            std::fs::read_to_string(path).map_err(|source| SuiteError::Unreadable { path: path.to_owned(), source })?;
        Self::parse(&text, &path.display().to_string())
    }

    /// Reads a suite from its text; `origin` names it in errors.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn parse(text: &str, origin: &str) -> Result<Self, SuiteError> {
        let suite: Suite = serde_yaml::from_str(text).map_err(|error| syntax(&error, origin))?;
        let whole = |message: String| SuiteError::Invalid {
            origin: origin.to_owned(),
            line: 0,
            column: 0,
            message,
            nearest: None,
        };
        suite.sampling.validate().map_err(|error| whole(error.to_string()))?;
        if suite.experiments.is_empty() {
            return Err(whole("`experiments` names no experiment".to_owned()));
        }
        Ok(suite)
    }

    /// The experiments for a device of `engine`.
    pub fn experiments_on(&self, engine: &str) -> &[Entry] {
        if engine == "cpu" && !self.on_cpu.is_empty() { &self.on_cpu } else { &self.experiments }
    }
}

/// The parser's error with its place, and the nearest known name to an unknown one.
fn syntax(error: &serde_yaml::Error, origin: &str) -> SuiteError {
    let (line, column) = error.location().map_or((0, 0), |location| (location.line(), location.column()));
    let text = error.to_string();
    let place = format!(" at line {line} column {column}");
    let message = text.strip_suffix(&place).unwrap_or(&text).to_owned();
    let nearest = nearest(&message);
    SuiteError::Invalid { origin: origin.to_owned(), line, column, message, nearest }
}

/// Of the names that serde lists as expected, the one most like the unknown one. serde puts every name in backticks,
/// the unknown one first.
fn nearest(message: &str) -> Option<String> {
    let known = message.find("unknown ").map(|start| &message[start..])?;
    let mut names = known.split('`').skip(1).step_by(2);
    let unknown = names.next()?;
    let likeness = |name: &&str| strsim::jaro_winkler(unknown, name);
    let best = names.max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(&best) > 0.7).then(|| best.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "title: T\nsampling: { samples: 3 }\nexperiments:\n  - sync-points: { iters: 5 }\n";

    fn error(text: &str) -> String {
        Suite::parse(text, "s.yaml").unwrap_err().to_string()
    }

    #[test]
    fn a_suite_keeps_what_it_states_and_fills_in_the_rest() {
        let suite = Suite::parse(GOOD, "s.yaml").unwrap();
        assert_eq!((suite.device.as_str(), suite.experiments.len()), ("auto", 1));
        assert_eq!(suite.experiments_on("cpu"), suite.experiments_on("cuda"));
    }

    #[test]
    fn an_unknown_key_is_named_with_its_place_and_the_nearest_one() {
        let text = error(&GOOD.replace("iters", "itres"));
        assert!(text.starts_with("s.yaml:4:") && text.contains("`itres`"), "{text}");
        assert!(text.ends_with("did you mean `iters`?"), "{text}");
    }

    #[test]
    fn an_unknown_experiment_is_named_with_the_nearest_one() {
        let text = error(&GOOD.replace("sync-points", "sync-pints"));
        assert!(text.starts_with("s.yaml:4:") && text.ends_with("did you mean `sync-points`?"), "{text}");
    }

    #[test]
    fn an_unknown_dtype_a_size_of_zero_and_a_wrong_type_have_a_place_and_say_what_was_expected() {
        for (bad, expected) in [
            ("{ dtypes: [fp17] }", "fp16"),
            ("{ big: 0 }", "nonzero"),
            ("{ big: many }", "nonzero"),
            ("{ iters: -3 }", "nonzero"),
            ("[1, 2, 3, 4, 5, 6, 7]", "expected"),
        ] {
            let text = error(&GOOD.replace("{ iters: 5 }", bad));
            assert!(text.starts_with("s.yaml:4:") && text.contains(expected), "{text}");
        }
    }

    #[test]
    fn a_sampling_that_cannot_end_and_no_experiment_are_refused() {
        assert!(error(&GOOD.replace("samples: 3", "warmup: 1")).contains("sampling plan"));
        assert!(error("title: T\nsampling: { samples: 3 }\nexperiments: []\n").contains("no experiment"));
    }

    #[test]
    fn a_text_that_is_no_yaml_has_a_place() {
        assert!(error("title: [").starts_with("s.yaml:"), "{}", error("title: ["));
    }
}
