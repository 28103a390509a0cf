//! What a registry knows of a results file that does not say it itself.

use serde_json::Value;

use crate::experiment::{AnyExperiment, Bench, Registry};
use crate::results::{Catalog, Results};

/// Puts heading, label, clock and work of rows, and what experiments ask, where the file does not say it: a file of
/// schema 1 names rows by their identifiers alone. What the registry does not have stays as it is.
pub fn describe(results: &mut Results, registry: &Registry) {
    // To ask the experiments for their rows takes longer than to read a file.
    if !results.is_described() {
        results.describe(&catalog(results, registry));
    }
    for left in results.runs.iter_mut().flat_map(|run| &mut run.order).filter(|left| left.summary.is_empty()) {
        if let Some(entry) = registry.get(&left.name) {
            entry.summary.clone_into(&mut left.summary);
        }
    }
}

/// The rows that the experiments of a file have: by the suite's parameters first, then by those that suit the engine.
fn catalog(results: &Results, registry: &Registry) -> Catalog {
    let engine = &results.environment().device.engine;
    let planned = experiments(&results.suite, engine, registry);
    let planned = planned.iter().flat_map(|experiment| Bench::plan(experiment.as_ref(), engine));
    Catalog::new(planned).with(registry.catalog(engine).specs().iter().cloned())
}

/// The experiments that a file's suite names for an engine, of those that the registry has and whose parameters it can
/// read.
fn experiments(suite: &Value, engine: &str, registry: &Registry) -> Vec<Box<dyn AnyExperiment>> {
    let of_engine = suite.get("engines").and_then(|engines| engines.get(engine));
    let list = of_engine.or_else(|| suite.get("experiments")).and_then(Value::as_array);
    let named = list.into_iter().flatten().filter_map(Value::as_object).flatten();
    named.filter_map(|(name, parameters)| registry.get(name)?.read(parameters).ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::experiment::Experiment;

    static ASKED: AtomicUsize = AtomicUsize::new(0);

    /// It counts how often it is asked for its rows.
    #[derive(Clone, Default, Serialize, Deserialize, schemars::JsonSchema)]
    struct Counted {}

    impl Experiment for Counted {
        const NAME: &'static str = "counted";
        const SUMMARY: &'static str = "How often is it asked?";

        fn run(&self, _: &mut Bench) {
            ASKED.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn old() -> Results {
        let path =
            std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("tests/fixtures/results-v1.json");
        Results::read(&path).unwrap()
    }

    #[test]
    fn rows_of_a_file_of_schema_1_get_the_labels_that_are_declared_for_their_parameters() {
        let mut results = old();
        let mut row = results.rows[0].clone();
        let id = "launch-path.batched.host-free";
        row.spec = crate::results::MetricSpec {
            id: id.to_owned(),
            group: "batched".to_owned(),
            label: "host free".to_owned(),
            parameters: [("operations", 7_usize), ("elements", 64)].map(|(n, v)| (n.to_owned(), v.into())).into(),
            ..row.spec
        };
        results.rows = vec![row].into();
        results.suite["experiments"] = serde_json::json!([
            { "gone": { "size": 3 } },
            { "launch-path": { "operations": [7], "elements": 64 } },
        ]);
        describe(&mut results, &Registry::builtin());
        let planned = Bench::plan(Registry::builtin().get("launch-path").unwrap().default_for("cpu").as_ref(), "cpu");
        let declared = planned.iter().find(|spec| spec.id == id).unwrap();
        assert_eq!(results.rows[0].spec.label, declared.label);
        assert_eq!(results.rows[0].spec.group, declared.group);
    }

    #[test]
    fn a_file_that_explains_itself_asks_no_experiment_for_its_rows() {
        let registry = Registry::new().with::<Counted>();
        let mut results = old();
        for row in &mut results.rows {
            row.spec.label.push_str(", in words of its own");
        }
        describe(&mut results, &registry);
        assert_eq!(ASKED.load(Ordering::Relaxed), 0);
        describe(&mut old(), &registry);
        assert_ne!(ASKED.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn what_an_experiment_asks_comes_from_the_registry_and_one_that_is_gone_stays_as_it_is() {
        let mut results = old();
        let mut gone = results.runs[0].order[0].clone();
        gone.name = "gone".to_owned();
        let known = crate::results::ExperimentRun { name: "launch-path".to_owned(), ..gone.clone() };
        results.runs[0].order = vec![gone, known];
        describe(&mut results, &Registry::builtin());
        let summaries: Vec<&str> = results.runs[0].order.iter().map(|left| left.summary.as_str()).collect();
        assert_eq!(summaries, ["", Registry::builtin().get("launch-path").unwrap().summary]);
    }
}
