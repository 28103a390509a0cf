//! Suites: what stands for nothing, or contradicts itself.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::super::OF_EVERY_RUN;
use super::{ENGINES, Suite};
use crate::device::cpu;
use crate::experiment::{AnyExperiment, Experiment, Kernel};
use crate::results::nearest;
use crate::yaml::{Fault, Way};

/// How often a suite may run, each system.
const MAX_RUNS: u32 = 1000;

impl Suite {
    /// Why no suite runs so often, if none does.
    pub fn refuse_runs(runs: NonZeroU32) -> Option<String> {
        (runs.get() > MAX_RUNS).then(|| format!("{runs} is more than {MAX_RUNS}, the most runs of a suite"))
    }
}

/// Finds the first thing in a suite that cannot be: a device that there is not, a list without an item, a sampling without
/// an end, a row that would be measured twice.
pub(super) fn check(suite: &Suite) -> Option<Fault> {
    if let Some((message, hint)) = no_device(&suite.device) {
        return Some(Fault { way: Way::default().key("device"), message, hint });
    }
    if let Some(message) = Suite::refuse_runs(suite.runs) {
        return Some(Fault::at(Way::default().key("runs"), message));
    }
    // A kernel may have no parameters, and be compiled as it is.
    let may_be_empty = ["arguments", "options"].map(|list| format!(".{}.{list}", Kernel::NAME));
    let is_empty = |way: &Way, value: &Value| {
        value.as_array().is_some_and(Vec::is_empty) && !may_be_empty.iter().any(|end| way.in_words().ends_with(end))
    };
    if let Some(way) = Way::default().first(&suite.source, &is_empty) {
        return Some(Fault::at(way, "an empty list measures nothing: name an item, or leave the parameter out"));
    }
    if let Err(error) = suite.sampling.validate() {
        let message = error.to_string();
        return Some(Fault::at(of_sampling(&suite.source, &message), message));
    }
    if let Some(fault) = left_out(suite) {
        return Some(fault);
    }
    ENGINES.into_iter().find_map(|engine| {
        let of_engine = suite.source.get("engines").is_some_and(|engines| engines.get(engine).is_some());
        let list = Way::default();
        let list = if of_engine { list.key("engines").key(engine) } else { list.key("experiments") };
        let (place, message) = measured_twice(suite.experiments_on(engine), engine)?;
        Some(Fault::at(list.item(place), message))
    })
}

/// Why no machine has a device of this name, and the nearest one that there can be.
pub(super) fn no_device(name: &str) -> Option<(String, String)> {
    let is_one = |(engine, number): (&str, &str)| match number.parse::<usize>() {
        // Every machine has the same ones of this engine.
        Ok(number) if engine == "cpu" => number < cpu::DEVICES,
        Ok(_) => ENGINES.contains(&engine),
        Err(_) => false,
    };
    if name == "auto" || name.split_once(':').is_some_and(is_one) {
        return None;
    }
    let last = cpu::DEVICES - 1;
    let message = format!("`{name}` names no device: `auto`, `cuda:` and a number, or `cpu:0` to `cpu:{last}`");
    Some((message, nearest(name, ["auto", "cuda:0", "cpu:0"].into_iter())))
}

/// The first name of `except` that leaves out nothing: it is of the experiments that run with `all` and are not named.
fn left_out(suite: &Suite) -> Option<Fault> {
    let top = Way::default();
    if suite.source.get("except").is_some() && !suite.all {
        let message = "it leaves experiments out of all, and the suite has no `all: true`";
        return Some(Fault::at(top.name("except"), message));
    }
    suite.except.iter().enumerate().find_map(|(place, name)| {
        let why = if suite.except[..place].contains(name) {
            "stands there twice"
        } else if OF_EVERY_RUN.contains(&name.as_str()) {
            "is in every run"
        } else if ENGINES.iter().all(|engine| suite.names(name, engine)) {
            "is named in `experiments`, and runs"
        } else {
            return None;
        };
        Some(Fault::at(top.key("except").item(place), format!("`{name}` {why}")))
    })
}

/// The key of the sampling that a message names, else the sampling as a whole.
fn of_sampling(source: &Value, message: &str) -> Way {
    let way = Way::default().key("sampling");
    let keys = source.get("sampling").and_then(Value::as_object).into_iter().flat_map(Map::keys);
    // The one that is named first is wrong, beside the others.
    let named = keys.filter_map(|key| Some((message.find(&format!("`{key}`"))?, key)));
    named.min().map_or(way.clone(), |(_, key)| way.key(key))
}

/// The first experiment that has a row of another one, or one row twice.
fn measured_twice(experiments: &[Arc<dyn AnyExperiment>], engine: &str) -> Option<(usize, String)> {
    let mut titles = HashMap::new();
    experiments.iter().enumerate().find_map(|(place, experiment)| {
        let plan = experiment.plan(engine).into_iter().map(|spec| spec.title());
        let (twice, first) = plan.into_iter().find_map(|title| Some((title.clone(), titles.insert(title, place)?)))?;
        let remedy = if first == place { "state each value once" } else { "give it to a suite of its own" };
        Some((place, format!("`{}` measures {twice} a second time: {remedy}", experiment.name())))
    })
}

#[cfg(test)]
mod tests {
    use crate::experiment::Registry;
    use crate::runner::Suite;

    #[test]
    fn an_experiment_that_would_measure_a_row_a_second_time_has_its_place() {
        let registry = Registry::builtin();
        let error = |text: &str| Suite::parse(text, "s.yaml", &registry).err().map(|error| error.to_string());
        let head = "title: T\nsampling: { samples: 3 }\nexperiments:\n";
        let twice = format!("{head}  - launch-path: {{ patience: 0.01 }}\n  - launch-path: {{ patience: 0.02 }}\n");
        let message = error(&twice).unwrap();
        assert!(message.starts_with("s.yaml:5:5: `launch-path` measures launch-path."), "{message}");
        let of_engine =
            format!("{twice}engines: {{ cpu: [launch-path: {{}}, idle-device: {{}}, idle-device: {{}}] }}\n");
        let of_engine = of_engine.replacen("  - launch-path: { patience: 0.02 }\n", "", 1);
        let message = error(&of_engine).unwrap();
        assert!(message.starts_with("s.yaml:5:") && message.contains("`idle-device` measures"), "{message}");
        let value = format!("{head}  - sync-points: {{ loops: [3, 3] }}\n");
        assert!(error(&value).unwrap().ends_with("a second time: state each value once"));
        let blank = format!("{head}  - launch-path: {{}}\n").replace("title: T", "title: ''");
        assert!(error(&blank).unwrap().starts_with("s.yaml:1:8: nothing stands here"));
        let twice = format!("{head}  - launch-path: {{}}\ntitle: U\n");
        assert_eq!(error(&twice).unwrap(), "s.yaml:5:1: the key `title` stands twice in one mapping");
        let once = format!("{head}  - launch-path: {{}}\n  - idle-device: {{}}\n");
        assert_eq!(error(&once), None);
    }
}
