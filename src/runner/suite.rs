//! Suites: which experiments to run, with which parameters, on which device (YAML).

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::path::Path;

use schemars::{Schema, SchemaGenerator, json_schema};

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use crate::error::FileError;
use crate::experiment::{AnyExperiment, Registry};
use crate::measure::Protocol;
use crate::yaml;

/// Which experiments to run, with which parameters, on which device.
pub struct Suite {
    /// The title of the book that is made of the results.
    pub title: String,
    /// The device: `auto` (`cuda:0` if there is one, else `cpu:0`) or a name.
    pub device: String,
    /// How often it runs, each time in a process of its own.
    pub runs: NonZeroU32,
    /// How rows are sampled.
    pub sampling: Protocol,
    /// The experiments, each with its parameters.
    pub experiments: Vec<Box<dyn AnyExperiment>>,
    /// The experiments to run instead on the devices of an engine, by the engine's name.
    pub engines: BTreeMap<String, Vec<Box<dyn AnyExperiment>>>,
    /// Whether the other experiments of the registry run, too, with the parameters that suit the engine.
    pub all: bool,
    /// The suite as it was read.
    pub source: serde_json::Value,
}

/// How often a suite runs that does not say.
const RUNS: NonZeroU32 = NonZeroU32::new(3).unwrap();

/// A key of a suite. An unknown one is refused where it stands.
#[derive(serde::Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Key {
    Title,
    Device,
    Runs,
    Sampling,
    Experiments,
    Engines,
    All,
}

impl Suite {
    /// Reads a suite from a file.
    ///
    /// # Errors
    /// [`FileError`] says where in the file what is wrong, and the nearest known name to an unknown one.
    pub fn read(path: &Path, registry: &Registry) -> Result<Self, FileError> {
        let text = yaml::read(path)?;
        Self::parse(&text, &path.display().to_string(), registry)
    }

    /// Reads a suite from its text; `origin` names it in errors.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn parse(text: &str, origin: &str, registry: &Registry) -> Result<Self, FileError> {
        let source: serde_json::Value = yaml::parse(text, origin)?;
        let suite = yaml::parse_seed(text, origin, SuiteSeed { registry, source })?;
        suite.check().map_err(|message| FileError::whole(origin, message))?;
        Ok(suite)
    }

    /// The suite of a results file; `origin` names the file in errors.
    ///
    /// # Errors
    /// [`FileError`] says what of it this program does not have.
    pub fn of_results(source: &serde_json::Value, origin: &str, registry: &Registry) -> Result<Self, FileError> {
        let seed = SuiteSeed { registry, source: source.clone() };
        let suite =
            seed.deserialize(source).map_err(|error| FileError::whole(origin, format!("its suite: {error}")))?;
        suite.check().map_err(|message| FileError::whole(origin, message))?;
        Ok(suite)
    }

    fn check(&self) -> Result<(), String> {
        self.sampling.validate().map_err(|error| error.to_string())?;
        let empty = self.engines.iter().find(|(_, experiments)| experiments.is_empty());
        if self.experiments.is_empty() {
            return Err("`experiments` names no experiment".to_owned());
        }
        match empty {
            Some((engine, _)) => Err(format!("`engines` names no experiment for `{engine}`")),
            None => Ok(()),
        }
    }

    /// The experiments for a device of `engine`.
    pub fn experiments_on(&self, engine: &str) -> &[Box<dyn AnyExperiment>] {
        self.engines.get(engine).unwrap_or(&self.experiments)
    }

    /// The JSON Schema of suites with the experiments of `registry`.
    pub fn schema(registry: &Registry) -> Schema {
        let mut generator = SchemaGenerator::default();
        let entry = entry_schema(registry, &mut generator);
        let sampling = generator.subschema_for::<Protocol>();
        let list = json_schema!({ "type": "array", "items": entry, "minItems": 1 });
        let mut schema = json_schema!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Suite",
            "description": "Which experiments to run, with which parameters, on which device.",
            "type": "object",
            "properties": {
                "title": { "type": "string", "description": "The title of the book that is made of the results." },
                "device": { "type": "string", "default": "auto", "description": "The device: `auto` (`cuda:0` if there is one, else `cpu:0`) or a name." },
                "runs": { "type": "integer", "minimum": 1, "default": RUNS, "description": "How often it runs, each time in a process of its own." },
                "sampling": sampling,
                "experiments": list,
                "engines": {
                    "type": "object",
                    "description": "The experiments to run instead on the devices of an engine, by the engine's name.",
                    "properties": { "cuda": list, "cpu": list },
                    "additionalProperties": false,
                },
                "all": { "type": "boolean", "default": false, "description": "Whether the experiments that it does not name run, too, with the parameters that suit the engine." },
            },
            "required": ["title", "sampling", "experiments"],
            "additionalProperties": false,
        });
        schema.insert("$defs".to_owned(), generator.take_definitions(true).into());
        schema
    }
}

fn entry_schema(registry: &Registry, generator: &mut SchemaGenerator) -> Schema {
    let one = |entry: &crate::experiment::Entry, generator: &mut SchemaGenerator| {
        let parameters = entry.schema(generator);
        json_schema!({
            "type": "object",
            "description": entry.summary,
            "properties": { entry.name: parameters },
            "required": [entry.name],
            "additionalProperties": false,
        })
    };
    let entries: Vec<Schema> = registry.entries().iter().map(|entry| one(entry, generator)).collect();
    json_schema!({ "oneOf": entries })
}

/// Reads a suite, whose experiments a registry knows.
struct SuiteSeed<'a> {
    registry: &'a Registry,
    source: serde_json::Value,
}

impl<'de> DeserializeSeed<'de> for SuiteSeed<'_> {
    type Value = Suite;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Suite, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for SuiteSeed<'_> {
    type Value = Suite;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a suite: `title`, `sampling` and `experiments`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Suite, A::Error> {
        let (mut title, mut device, mut runs) = (None, None, None);
        let (mut sampling, mut experiments, mut engines, mut all) = (None, None, None, None);
        while let Some(key) = map.next_key()? {
            match key {
                Key::Title => title = Some(map.next_value()?),
                Key::Device => device = Some(map.next_value()?),
                Key::Runs => runs = Some(map.next_value()?),
                Key::Sampling => sampling = Some(map.next_value()?),
                Key::Experiments => experiments = Some(map.next_value_seed(List(self.registry))?),
                Key::Engines => engines = Some(map.next_value_seed(Engines(self.registry))?),
                Key::All => all = Some(map.next_value()?),
            }
        }
        Ok(Suite {
            title: title.ok_or_else(|| A::Error::missing_field("title"))?,
            device: device.unwrap_or_else(|| "auto".to_owned()),
            runs: runs.unwrap_or(RUNS),
            sampling: sampling.ok_or_else(|| A::Error::missing_field("sampling"))?,
            experiments: experiments.ok_or_else(|| A::Error::missing_field("experiments"))?,
            engines: engines.unwrap_or_default(),
            all: all.unwrap_or_default(),
            source: self.source,
        })
    }
}

/// The name of an engine.
#[derive(serde::Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Engine {
    Cuda,
    Cpu,
}

/// Lists of experiments by engine.
struct Engines<'a>(&'a Registry);

impl<'de> DeserializeSeed<'de> for Engines<'_> {
    type Value = BTreeMap<String, Vec<Box<dyn AnyExperiment>>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Engines<'_> {
    type Value = BTreeMap<String, Vec<Box<dyn AnyExperiment>>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("lists of experiments by the engine: `cpu: [...]`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut engines = BTreeMap::new();
        while let Some(engine) = map.next_key()? {
            let engine = match engine {
                Engine::Cuda => "cuda",
                Engine::Cpu => "cpu",
            };
            engines.insert(engine.to_owned(), map.next_value_seed(List(self.0))?);
        }
        Ok(engines)
    }
}

/// A list of experiments.
struct List<'a>(&'a Registry);

impl<'de> DeserializeSeed<'de> for List<'_> {
    type Value = Vec<Box<dyn AnyExperiment>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for List<'_> {
    type Value = Vec<Box<dyn AnyExperiment>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of experiments: `- sync-points: { iters: 20 }`")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut experiments = Vec::new();
        while let Some(experiment) = seq.next_element_seed(One(self.0))? {
            experiments.push(experiment);
        }
        Ok(experiments)
    }
}

/// One experiment: its name and its parameters.
struct One<'a>(&'a Registry);

impl<'de> DeserializeSeed<'de> for One<'_> {
    type Value = Box<dyn AnyExperiment>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for One<'_> {
    type Value = Box<dyn AnyExperiment>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one experiment with its parameters: `sync-points: { iters: 20 }`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let name = map.next_key::<String>()?.ok_or_else(|| A::Error::invalid_length(0, &self))?;
        let entry = self.0.get(&name).ok_or_else(|| A::Error::custom(self.0.unknown(&name)))?;
        let experiment = map.next_value_seed(Parameters(entry))?;
        match map.next_key::<String>()? {
            Some(other) => {
                Err(A::Error::custom(format!("`{other}` stands beside `{name}`: an item is one experiment")))
            }
            None => Ok(experiment),
        }
    }
}

/// The parameters of an experiment.
struct Parameters<'a>(&'a crate::experiment::Entry);

impl<'de> DeserializeSeed<'de> for Parameters<'_> {
    type Value = Box<dyn AnyExperiment>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        self.0.read(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "title: T\nsampling: { samples: 3 }\nexperiments:\n  - sync-points: { iters: 5 }\n";

    fn parse(text: &str) -> Result<Suite, FileError> {
        Suite::parse(text, "s.yaml", &Registry::builtin())
    }

    fn error(text: &str) -> String {
        parse(text).err().unwrap().to_string()
    }

    #[test]
    fn a_suite_keeps_what_it_states_and_fills_in_the_rest() {
        let suite = parse(GOOD).unwrap();
        assert_eq!((suite.device.as_str(), suite.experiments.len()), ("auto", 1));
        assert_eq!(suite.experiments_on("cpu").len(), suite.experiments_on("cuda").len());
        assert_eq!(suite.source["experiments"][0]["sync-points"], serde_json::json!({ "iters": 5 }));
        assert!(Suite::of_results(&suite.source, "r.json", &Registry::builtin()).is_ok());
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
    fn a_key_of_an_older_program_is_an_error_that_names_the_one_of_today() {
        let text = error(&format!("{GOOD}on_cpu: []\n"));
        assert!(text.starts_with("s.yaml:5:1:") && text.contains("`engines: {cpu: …}`"), "{text}");
    }

    #[test]
    fn an_unknown_engine_has_its_place() {
        let text = error(&format!("{GOOD}engines:\n  cpu: [sync-points: {{}}]\n  gpu: [sync-points: {{}}]\n"));
        assert!(text.starts_with("s.yaml:7:3:") && text.contains("`gpu`"), "{text}");
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
