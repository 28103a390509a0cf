//! Suites: which experiments to run, with which parameters, on which device (YAML).

mod check;
mod source;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use self::check::{check, no_device};
use crate::error::FileError;
use crate::experiment::{AnyExperiment, Registry};
use crate::measure::Protocol;
use crate::yaml::{self, Fault, Way};

/// Which experiments to run, with which parameters, on which device.
///
/// ```
/// use syncscope_suite::experiment::Registry;
/// use syncscope_suite::runner::Suite;
///
/// assert!(Suite::schema(&Registry::builtin()).get("properties").is_some());
/// ```
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// The title of the book that is made of the results.
    pub title: String,
    /// The device: `auto` (`cuda:0` if there is one, else `cpu:0`) or a name.
    #[serde(default = "auto")]
    pub device: String,
    /// How often it runs, each time in a process of its own.
    #[serde(default = "runs")]
    pub runs: NonZeroU32,
    /// How rows are sampled.
    pub sampling: Protocol,
    /// The experiments as they are written.
    experiments: Vec<Value>,
    #[serde(default)]
    engines: Engines,
    /// The experiments on the devices of each engine: those of `engines`, else `experiments`. A parameter that is not stated
    /// is the one that suits the engine.
    #[serde(skip)]
    on: BTreeMap<&'static str, Vec<Arc<dyn AnyExperiment>>>,
    /// Whether the other experiments of the registry run, too, with the parameters that suit the engine.
    #[serde(default)]
    pub all: bool,
    /// Experiments that do not run with `all`.
    #[serde(default)]
    pub except: Vec<String>,
    /// The suite as it was read.
    #[serde(skip)]
    pub source: Value,
}

/// How often a suite runs that does not say.
pub(super) const RUNS: NonZeroU32 = NonZeroU32::new(3).unwrap();

/// The engines that there are.
pub const ENGINES: [&str; 2] = ["cuda", "cpu"];

/// Lists of experiments by the engine.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Engines {
    cuda: Option<Vec<Value>>,
    cpu: Option<Vec<Value>>,
}

fn auto() -> String {
    "auto".to_owned()
}

fn runs() -> NonZeroU32 {
    RUNS
}

impl Suite {
    /// Reads a suite from a file.
    ///
    /// # Errors
    /// [`FileError`] says where in the file what is wrong, and the nearest known name to an unknown one.
    pub fn read(path: &Path, registry: &Registry) -> Result<Self, FileError> {
        let text = yaml::read(path)?;
        Self::parse_in(path.parent(), &text, &path.display().to_string(), registry)
    }

    /// Reads a suite from its text; `origin` names it in errors. It names no files.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn parse(text: &str, origin: &str, registry: &Registry) -> Result<Self, FileError> {
        Self::parse_in(None, text, origin, registry)
    }

    /// Reads a suite from its text, and the files that it names from `folder`.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn parse_in(folder: Option<&Path>, text: &str, origin: &str, registry: &Registry) -> Result<Self, FileError> {
        let mut source = yaml::parse_filled(text, origin, None)?;
        let whole = source::read(&mut source, folder, registry).and_then(|()| Self::of_source(source, registry));
        whole.map_err(|fault| fault.error(text, origin))
    }

    /// The suite of a results file; `origin` names the file in errors.
    ///
    /// # Errors
    /// [`FileError`] says what of it this program does not have.
    pub fn of_results(source: &Value, origin: &str, registry: &Registry) -> Result<Self, FileError> {
        let refused = |fault: Fault| FileError::whole(origin, format!("its suite: {}", fault.message));
        Self::of_source(source.clone(), registry).map_err(refused)
    }

    /// What a text or a results file takes the other does, too.
    fn of_source(source: Value, registry: &Registry) -> Result<Self, Fault> {
        let top = Way::default();
        let suite: Self = yaml::of_json(&source)?;
        let shared = |engine| listed(&top.key("experiments"), &suite.experiments, engine, registry);
        // It is read also where each engine has a list of its own.
        shared(ENGINES[0])?;
        let own = |engine, list: &Option<Vec<Value>>| match list {
            Some(list) => listed(&top.key("engines").key(engine), list, engine, registry),
            None => shared(engine),
        };
        let on = [("cuda", own("cuda", &suite.engines.cuda)?), ("cpu", own("cpu", &suite.engines.cpu)?)].into();
        if let Some((place, name)) = suite.except.iter().enumerate().find(|(_, name)| registry.get(name).is_none()) {
            return Err(Fault::at(top.key("except").item(place), registry.unknown(name)));
        }
        let suite = Self { on, source, ..suite };
        check(&suite).map_or(Ok(suite), Err)
    }

    /// Why no machine has a device of this name, with the nearest one that there can be.
    pub fn refuse_device(name: &str) -> Option<String> {
        no_device(name).map(|(message, near)| format!("{message}{near}"))
    }

    /// Whether its device may be one of `engine`.
    pub fn may_run_on(&self, engine: &str) -> bool {
        self.device == "auto" || self.device.split(':').next() == Some(engine)
    }

    /// The experiments for a device of `engine`.
    pub fn experiments_on(&self, engine: &str) -> &[Arc<dyn AnyExperiment>] {
        self.on.get(engine).or_else(|| self.on.get(ENGINES[0])).map_or(&[], Vec::as_slice)
    }

    /// Whether it names an experiment for devices of `engine`.
    pub fn names(&self, name: &str, engine: &str) -> bool {
        self.experiments_on(engine).iter().any(|own| own.name() == name)
    }
}

/// The experiments of the list at `way`, each with the parameters that it states and else those that suit the engine.
fn listed(way: &Way, list: &[Value], engine: &str, registry: &Registry) -> Result<Vec<Arc<dyn AnyExperiment>>, Fault> {
    let one = |(place, item): (usize, &Value)| {
        let way = way.item(place);
        let only =
            |map: &Map<String, Value>| Some((map.keys().next()?.clone(), map.values().next()?.as_object()?.clone()));
        let Some((name, stated)) = item.as_object().filter(|map| map.len() == 1).and_then(only) else {
            let message = "expected one experiment with its parameters: `sync-points: { iters: 20 }`";
            return Err(Fault::at(way, message));
        };
        let Some(entry) = registry.get(&name) else {
            return Err(Fault::at(way.name(&name), registry.unknown(&name)));
        };
        entry.suited(engine, &stated).map_err(|error| yaml::refused(&error, way.key(&name)))
    };
    list.iter().enumerate().map(one).collect()
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
    fn a_number_that_is_written_as_a_text_is_refused_where_it_stands() {
        for number in ["\"3\"", "1_000", "007"] {
            let said = parse(&GOOD.replace("samples: 3", &format!("samples: {number}"))).err().unwrap().to_string();
            assert!(said.starts_with("s.yaml:2:22: sampling.samples: found the text"), "{said}");
            assert!(said.ends_with("expected a whole number above 0"), "{said}");
        }
    }

    #[test]
    fn a_suite_keeps_what_it_states_and_fills_in_the_rest() {
        let suite = parse(GOOD).unwrap();
        assert_eq!((suite.device.as_str(), suite.experiments_on("cuda").len()), ("auto", 1));
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
    fn an_unknown_dtype_zero_size_or_wrong_type_says_place_and_expectation() {
        for (bad, expected) in [
            ("{ dtypes: [fp17] }", "fp16"),
            ("{ big: 0 }", "a whole number above 0"),
            ("{ big: many }", "a whole number"),
            ("{ iters: -3 }", "a whole number"),
            ("[1, 2, 3, 4, 5, 6, 7]", "expected"),
        ] {
            let text = error(&GOOD.replace("{ iters: 5 }", bad));
            assert!(text.starts_with("s.yaml:4:") && text.contains(expected), "{text}");
        }
    }

    #[test]
    fn an_unknown_engine_has_its_place() {
        let text = error(&format!("{GOOD}engines:\n  cpu: [sync-points: {{}}]\n  gpu: [sync-points: {{}}]\n"));
        assert!(text.starts_with("s.yaml:7:3:") && text.contains("`gpu`"), "{text}");
    }

    #[test]
    fn a_sampling_that_cannot_end_and_no_experiment_are_refused() {
        let text = error(&GOOD.replace("samples: 3", "warmup: 1"));
        assert!(text.starts_with("s.yaml:2:11: ") && text.contains("sampling plan"), "{text}");
        let text = error("title: T\nsampling: { samples: 3 }\nexperiments: []\n");
        assert!(text.starts_with("s.yaml:3:14: an empty list"), "{text}");
        let source = serde_json::json!({"title": "T", "sampling": {"samples": 3}, "experiments": []});
        let text = Suite::of_results(&source, "r.json", &Registry::builtin()).err().unwrap().to_string();
        assert!(text.starts_with("r.json: its suite: an empty list"), "{text}");
    }

    #[test]
    fn counts_of_rounds_and_runs_have_a_bound_and_the_refusal_its_place() {
        for (text, place) in [
            (GOOD.replace("samples: 3", "samples: 3, warmup: 18446744073709551615"), "s.yaml:2:33: "),
            (GOOD.replace("samples: 3", "samples: 18446744073709551615"), "s.yaml:2:22: "),
            (GOOD.replace("sampling", "runs: 4294967295\nsampling"), "s.yaml:2:7: "),
            (GOOD.replace("iters: 5", "small: 9, iters: 100000000000"), "s.yaml:4:37: "),
            (GOOD.replace("iters: 5", "small: 9, loops: [3, 100000000000]"), "s.yaml:4:41: "),
            (format!("{GOOD}engines: {{ cpu: [sync-points: {{ iters: 1, steps: 9999999 }}] }}\n"), "s.yaml:5:50: "),
        ] {
            let text = error(&text);
            assert!(text.starts_with(place) && text.contains("more than"), "{text}");
        }
    }

    #[test]
    fn what_a_suite_does_not_state_suits_the_engine_and_what_it_states_stays() {
        let suite = parse(&GOOD.replace("{ iters: 5 }", "{ iters: 5, small: 32 }")).unwrap();
        let rows = |engine| suite.experiments_on(engine)[0].plan(engine);
        let sizes = |engine| {
            let sizes = rows(engine).into_iter().filter_map(|spec| spec.parameters.get("size")?.number());
            sizes.fold((f64::INFINITY, 0.0_f64), |(low, high), size| (low.min(size), high.max(size)))
        };
        assert_eq!(sizes("cuda"), (32.0, 8192.0));
        let (low, high) = sizes("cpu");
        assert!(low == 32.0 && high < 1000.0, "{high}");
    }

    #[test]
    fn a_device_that_none_can_be_and_an_empty_list_are_refused_with_their_place() {
        for (device, hint) in [
            ("gpu0", ""),
            ("cpu:4", "; did you mean `cpu:0`?"),
            ("cuda:x", "; did you mean `cuda:0`?"),
            ("cuda", "; did you mean `cuda:0`?"),
        ] {
            let text = error(&GOOD.replace("sampling", &format!("device: {device}\nsampling")));
            assert!(
                text.starts_with(&format!("s.yaml:2:9: `{device}` names no device")) && text.ends_with(hint),
                "{text}"
            );
        }
        let text = error(&GOOD.replace("iters: 5", "loops: []"));
        assert!(text.starts_with("s.yaml:4:27: an empty list"), "{text}");
    }

    #[test]
    fn a_value_out_of_bounds_and_an_empty_experiment_have_their_places() {
        for (wrong, place) in [
            ("small: 9, kernels: [0.1, -2.0]", "s.yaml:4:45: "),
            ("small: 9, kernels: [0.1, 1.0e+9]", "s.yaml:4:45: "),
            ("small: 9, iters: 0", "s.yaml:4:37: "),
        ] {
            let text = error(&GOOD.replace("iters: 5", wrong));
            assert!(text.starts_with(place), "{wrong}: {text}");
        }
        let text = error(&GOOD.replace(" { iters: 5 }", ""));
        assert!(text.starts_with("s.yaml:4:") && text.contains("nothing stands here"), "{text}");
        let text = error(&GOOD.replace("samples: 3", "samples: 3, time_limit: -1"));
        assert!(text.starts_with("s.yaml:2:37: "), "{text}");
    }

    #[test]
    fn what_is_left_out_of_all_experiments_is_refused_where_it_leaves_out_none() {
        for (tail, place, says) in [
            ("except: [layers]\n", "s.yaml:5:1: ", "all: true"),
            ("all: false\nexcept: [layers]\n", "s.yaml:6:1: ", "all: true"),
            ("all: true\nexcept: [layers, layers]\n", "s.yaml:6:18: ", "twice"),
            ("all: true\nexcept: [layers, self-audit]\n", "s.yaml:6:18: ", "every run"),
            ("all: true\nexcept: [sync-points]\n", "s.yaml:6:10: ", "`experiments`"),
        ] {
            let text = error(&format!("{GOOD}{tail}"));
            assert!(text.starts_with(place) && text.contains(says), "{tail}: {text}");
        }
        // What runs on one engine alone is left out on the other.
        let of_engine = "all: true\nexcept: [layers]\nengines: { cpu: [layers: {}] }\n";
        assert!(parse(&format!("{GOOD}{of_engine}")).is_ok());
    }

    #[test]
    fn a_text_that_is_no_yaml_has_a_place() {
        assert!(error("title: [").starts_with("s.yaml:"), "{}", error("title: ["));
    }
}
