//! Which experiments there are: a registry is a value, to which a crate of your own adds its experiments.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::group::Group;
use super::recorder::TraceRecorder;
use crate::error::panic_message;
use crate::results::{Catalog, MetricSpec, Selection, declare_code, nearest};

/// An experiment: a struct of its parameters, which a suite states in YAML, and the rows that it produces.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use syncscope_suite::experiment::{Experiment, Group, Registry};
///
/// /// What a sum costs its caller.
/// #[derive(Clone, Serialize, Deserialize, schemars::JsonSchema)]
/// #[serde(deny_unknown_fields, default)]
/// struct Sums {
///     elements: usize,
/// }
///
/// impl Default for Sums {
///     fn default() -> Self {
///         Self { elements: 1000 }
///     }
/// }
///
/// impl Experiment for Sums {
///     const NAME: &'static str = "sums";
///     const SUMMARY: &'static str = "What a sum costs its caller";
///
///     fn groups(&self, _engine: &str) -> Vec<Group> {
///         let elements = self.elements;
///         let sums = Group::of("Sums", [("elements", elements.into())])
///             .setup(move |device| device.stream()?.ones::<f32>([elements]))
///             .host_time("sums.dispatch", "Dispatch", |x| {
///                 let x = x.clone();
///                 Ok(move || x.sum())
///             });
///         vec![sums.build()]
///     }
/// }
///
/// let registry = Registry::builtin().with::<Sums>();
/// assert!(registry.catalog("cpu").get("sums.dispatch").is_some());
/// ```
pub trait Experiment: Clone + Default + Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static {
    /// The name, by which a suite names it. The identifiers of its rows begin with it and a dot.
    const NAME: &'static str;

    /// What it asks, in one sentence without a full stop.
    const SUMMARY: &'static str;

    /// The parameter that counts the iterations of its timed loop, where it has one: a command line may set it.
    const ITERATIONS: Option<&'static str> = None;

    /// The parameter that lists its element types, where there is a choice.
    const ELEMENT_TYPES: Option<&'static str> = None;

    /// The parameters that name a file, of which a suite has the name and the experiment an object of `file` and `text`.
    const FILES: &'static [&'static str] = &[];

    /// The parameters that suit the CPU engine; its defaults suit the others.
    fn for_cpu() -> Self {
        Self::default()
    }

    /// The parameters that suit an engine.
    fn default_for(engine: &str) -> Self {
        if engine == "cpu" { Self::for_cpu() } else { Self::default() }
    }

    /// Declares its rows on devices of an engine, in groups that are sampled together. Nothing is measured here: it needs no
    /// device. A run asks for them once and measures them in each of its passes.
    fn groups(&self, engine: &str) -> Vec<Group>;

    /// Records its scenarios as timelines; none where it has none.
    fn record(&self, _recorder: &mut TraceRecorder) {}
}

/// An [`Experiment`] of any type.
pub trait AnyExperiment: Send + Sync {
    /// As [`Experiment::NAME`].
    fn name(&self) -> &'static str;

    /// As [`Experiment::SUMMARY`].
    fn summary(&self) -> &'static str;

    /// As [`Experiment::groups`].
    fn groups(&self, engine: &str) -> Vec<Group>;

    /// As [`Experiment::record`].
    fn record(&self, recorder: &mut TraceRecorder);
}

impl<E: Experiment> AnyExperiment for E {
    fn name(&self) -> &'static str {
        E::NAME
    }

    fn summary(&self) -> &'static str {
        E::SUMMARY
    }

    fn groups(&self, engine: &str) -> Vec<Group> {
        Experiment::groups(self, engine)
    }

    fn record(&self, recorder: &mut TraceRecorder) {
        Experiment::record(self, recorder);
    }
}

impl dyn AnyExperiment + '_ {
    /// The groups that it declares on an engine.
    ///
    /// # Errors
    /// What it panicked with, or the first row that cannot be.
    pub fn declared(&self, engine: &str) -> Result<Vec<Group>, String> {
        let groups = catch_unwind(AssertUnwindSafe(|| self.groups(engine))).map_err(|panic| panic_message(&*panic))?;
        let mut rows = groups.iter().flat_map(Group::rows);
        rows.try_for_each(|row| row.check().map_err(|why| format!("`{}` {why}", row.title())))?;
        Ok(groups)
    }

    /// The rows that it produces on an engine, in the order in which it declares them; none where it cannot declare them, which
    /// a run of it says. Needs no device.
    pub fn plan(&self, engine: &str) -> Vec<MetricSpec> {
        self.declared(engine).unwrap_or_default().into_iter().flat_map(|group| group.rows).collect()
    }
}

/// What is wrong with parameters, and with which.
pub type WrongParameters = serde_path_to_error::Error<serde_json::Error>;
type Suited = fn(&str, &Map<String, Value>) -> Result<Arc<dyn AnyExperiment>, WrongParameters>;

/// What is known of an experiment before it has parameters.
#[derive(Clone, Debug)]
pub struct RegistryEntry {
    /// The name.
    pub name: &'static str,
    /// What it asks.
    pub summary: &'static str,
    /// As [`Experiment::ITERATIONS`].
    pub iterations: Option<&'static str>,
    /// As [`Experiment::ELEMENT_TYPES`].
    pub element_types: Option<&'static str>,
    /// As [`Experiment::FILES`].
    pub files: &'static [&'static str],
    default_for: fn(&str) -> Arc<dyn AnyExperiment>,
    suited: Suited,
    schema: fn(&mut SchemaGenerator) -> Schema,
}

impl RegistryEntry {
    fn of<E: Experiment>() -> Self {
        Self {
            name: E::NAME,
            summary: E::SUMMARY,
            iterations: E::ITERATIONS,
            element_types: E::ELEMENT_TYPES,
            files: E::FILES,
            default_for: |engine| Arc::new(E::default_for(engine)),
            suited: |engine, stated| suited::<E>(engine, stated).map(|experiment| Arc::new(experiment) as _),
            schema: SchemaGenerator::subschema_for::<E>,
        }
    }

    /// The experiment with the parameters that suit an engine.
    pub fn default_for(&self, engine: &str) -> Arc<dyn AnyExperiment> {
        (self.default_for)(engine)
    }

    /// The experiment with the parameters that are stated, and for the others those that suit an engine.
    ///
    /// # Errors
    /// What is stated are not parameters of the experiment.
    pub fn suited(&self, engine: &str, stated: &Map<String, Value>) -> Result<Arc<dyn AnyExperiment>, WrongParameters> {
        (self.suited)(engine, stated)
    }

    /// The JSON Schema of its parameters.
    pub fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        (self.schema)(generator)
    }
}

fn suited<E: Experiment>(engine: &str, stated: &Map<String, Value>) -> Result<E, WrongParameters> {
    let mut all = serde_json::to_value(E::default_for(engine)).unwrap_or_default();
    match &mut all {
        Value::Object(all) => all.extend(stated.clone()),
        _ => all = Value::Object(stated.clone()),
    }
    serde_path_to_error::deserialize(all)
}

/// Which experiments there are. Cheap to clone.
///
/// ```
/// use syncscope_suite::experiment::Registry;
///
/// let catalog = Registry::builtin().catalog("cpu");
/// assert!(catalog.has_experiment("overlap"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Registry {
    entries: Arc<Vec<RegistryEntry>>,
}

impl Registry {
    /// A registry without experiments.
    pub fn new() -> Self {
        Self::default()
    }

    /// The experiments that come with the library.
    pub fn builtin() -> Self {
        declare_code(env!("SYNCSCOPE_DIGESTS"));
        super::builtin(Self::new())
    }

    /// With the experiment `E`, in place of one of that name where there is one.
    #[must_use]
    pub fn with<E: Experiment>(mut self) -> Self {
        let entries = Arc::make_mut(&mut self.entries);
        entries.retain(|entry| entry.name != E::NAME);
        entries.push(RegistryEntry::of::<E>());
        self
    }

    /// The experiments, in the order in which they were added.
    pub fn entries(&self) -> &[RegistryEntry] {
        &self.entries
    }

    /// Those that need no file of the user's to have rows.
    pub fn ready(&self) -> impl Iterator<Item = &RegistryEntry> {
        self.entries().iter().filter(|entry| entry.files.is_empty())
    }

    /// The experiment with this name.
    pub fn get(&self, name: &str) -> Option<&RegistryEntry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// That there is no experiment `name`, with the nearest name or all that there are.
    pub fn unknown(&self, name: &str) -> String {
        let names = || self.entries.iter().map(|entry| entry.name);
        match nearest(name, names()) {
            hint if hint.is_empty() => {
                format!("there is no experiment `{name}`; there are: {}", names().collect::<Vec<_>>().join(", "))
            }
            hint => format!("there is no experiment `{name}`{hint}"),
        }
    }

    /// The rows of all experiments with the parameters that suit an engine.
    pub fn plan(&self, engine: &str) -> Vec<MetricSpec> {
        let planned = |entry: &RegistryEntry| entry.default_for(engine).plan(engine);
        self.entries.iter().flat_map(planned).collect()
    }

    /// The rows of all experiments, for checking texts that name them: those of an engine first.
    pub fn catalog(&self, engine: &str) -> Catalog {
        let other = if engine == "cpu" { "cuda" } else { "cpu" };
        Catalog::default().with_together(self.plan(engine)).with_together(self.plan(other))
    }

    /// The first name of a selection that stands for no row of any experiment, nor for one of `more`, as what is wrong with it:
    /// an experiment may have rows only where a suite states its parameters.
    pub fn refuse(&self, selection: &Selection, more: Vec<MetricSpec>) -> Option<String> {
        let catalog = self.catalog("cuda").with(more);
        let unknown = selection.unknown(catalog.ids());
        unknown.map(|name| {
            // A name is an identifier or its beginning up to a dot.
            let dots = |id: &'_ str| id.match_indices('.').map(|(at, _)| at).chain([id.len()]).collect::<Vec<_>>();
            let names = catalog.ids().flat_map(|id| dots(id).into_iter().map(move |end| &id[..end]));
            format!("no row begins with `{name}`{}", nearest(name, names))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Work, code_of};
    use crate::units::Unit;

    /// An experiment whose row says what no file may hold.
    #[derive(Clone, Default, Serialize, serde::Deserialize, JsonSchema)]
    struct Wrong {
        work: bool,
    }

    impl Experiment for Wrong {
        const NAME: &'static str = "wrong";
        const SUMMARY: &'static str = "What a row cannot say";

        fn groups(&self, _: &str) -> Vec<Group> {
            let factor = if self.work { 1.0 } else { f64::NAN };
            let row = Group::of("Wrong", [("factor", factor.into())]);
            let row = row.observed("wrong.row", "Row", Unit::Number, |_| Ok(|| Ok(1.0)));
            vec![row.work(Work::launches(1.0 / (factor - 1.0), "1 / (factor − 1)")).build()]
        }
    }

    #[test]
    fn a_row_that_no_file_may_hold_is_not_declared() {
        for (work, says) in [(true, "holds a work of inf a sample"), (false, "holds a work of NaN a sample")] {
            let experiment: &dyn AnyExperiment = &Wrong { work };
            let why = experiment.declared("cpu").err();
            assert!(why.as_ref().is_some_and(|why| why.starts_with("`wrong.row") && why.contains(says)), "{why:?}");
            assert!(experiment.plan("cpu").is_empty());
        }
    }

    #[test]
    fn the_code_of_each_experiment_on_each_engine_has_a_digest_of_its_own() {
        let mut seen = std::collections::BTreeSet::new();
        for entry in Registry::builtin().entries() {
            for engine in ["cuda", "cpu"] {
                let code = code_of(entry.name, engine);
                assert!(code.is_some_and(|code| code.len() == 16 && seen.insert(code)), "{}: {code:?}", entry.name);
            }
        }
        assert_eq!(code_of("gone", "cpu"), None);
    }
}
