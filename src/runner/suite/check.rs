//! Suites: what stands for nothing, or contradicts itself.

use std::collections::HashMap;

use serde_json::Value;

use super::{ENGINES, Suite};
use crate::experiment::{AnyExperiment, Bench};
use crate::results::nearest;
use crate::yaml::{BLANK, Way, is_blank};

/// How often a suite may run.
const MOST_RUNS: u32 = 1000;

/// What of a suite cannot be, and where it stands.
pub(super) struct SuiteFault {
    pub(super) way: Way,
    pub(super) message: String,
    pub(super) hint: String,
}

/// Finds the first thing in a suite that cannot be: a device that there is not, a list without an item, a sampling without
/// an end, a row that would be measured twice.
pub(super) fn check(suite: &Suite) -> Option<SuiteFault> {
    let found = |way: Way, message: String| SuiteFault { way, message, hint: String::new() };
    let device = suite.device.as_str();
    let is_one = |(engine, number): (&str, &str)| ENGINES.contains(&engine) && number.parse::<u32>().is_ok();
    if device != "auto" && !device.split_once(':').is_some_and(is_one) {
        let message = format!("`{device}` names no device: `auto`, or an engine and a number, as in `cuda:0`");
        let hint = nearest(device, ["auto", "cuda:0", "cpu:0"].into_iter());
        return Some(SuiteFault { way: Way::default().key("device"), message, hint });
    }
    if suite.runs.get() > MOST_RUNS {
        let message = format!("{} is more than {MOST_RUNS}, the most runs of a suite", suite.runs);
        return Some(found(Way::default().key("runs"), message));
    }
    let first = |is_wanted: fn(&Value) -> bool| Way::default().first(&suite.source, &|_, value| is_wanted(value));
    if let Some(way) = first(|value| value.as_array().is_some_and(Vec::is_empty)) {
        return Some(found(way, "an empty list measures nothing: name an item, or leave the parameter out".to_owned()));
    }
    if let Some(way) = first(is_blank) {
        return Some(found(way, BLANK.to_owned()));
    }
    if let Err(error) = suite.sampling.validate() {
        return Some(found(Way::default().key("sampling"), error.to_string()));
    }
    ENGINES.into_iter().find_map(|engine| {
        let of_engine = suite.source.get("engines").is_some_and(|engines| engines.get(engine).is_some());
        let list = Way::default();
        let list = if of_engine { list.key("engines").key(engine) } else { list.key("experiments") };
        let (place, message) = measured_twice(suite.experiments_on(engine), engine)?;
        Some(found(list.item(place), message))
    })
}

/// The first experiment that has a row of another one, or one row twice.
fn measured_twice(experiments: &[Box<dyn AnyExperiment>], engine: &str) -> Option<(usize, String)> {
    let mut titles = HashMap::new();
    experiments.iter().enumerate().find_map(|(place, experiment)| {
        let plan = Bench::plan(experiment.as_ref(), engine).into_iter().map(|spec| spec.title());
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
        assert_eq!(error(&twice).unwrap(), "s.yaml:5:1: the key `title` stands twice in one mapping, first in line 1");
        let once = format!("{head}  - launch-path: {{}}\n  - idle-device: {{}}\n");
        assert_eq!(error(&once), None);
    }
}
