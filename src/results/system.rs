//! What another program measured of the same work on the same machine, in one process: a run of another *system* under
//! test.
//!
//! It comes as a file of its own (JSON), such as `book/peers/pytorch.py` writes, and becomes a run of that system in a
//! results file. The file may come from anywhere: its version is checked first, then that every row is one that is
//! declared, in that row's unit, with samples that can be estimated. It stands beside a run only where both were measured
//! on one machine: what both of them name (the device's model, its fingerprint, the driver, the host's processor) must be
//! the same.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::catalog::{Catalog, nearest};
use super::comparability::Mismatch;
use super::environment::{DeviceDescription, Environment, Host, Program};
use super::expression::FormulaOperand;
use super::file::{MAX_BYTES, of_version};
use super::lookup::Lookup;
use super::missing::MissingReason;
use super::row::{MetricSpec, Outcome, Parameters, Provenance, Row, Series, each_once, titled};
use super::run::{Plan, Results, Run, RunOutcome, SCHEMA_VERSION};
use super::selection::Selection;
use crate::device::Device;
use crate::error::{FileError, at};
use crate::files::read_text;
use crate::measure::{Clock, Protocol};
use crate::units::Unit;

/// The version of the schema that this program reads.
pub const SYSTEM_SCHEMA_VERSION: u32 = 2;

/// The version of the plans that this program writes.
const PLAN_SCHEMA_VERSION: u32 = 1;

/// The fact of a run's device that tells the GPUs of one machine apart.
pub const FINGERPRINT: &str = "fingerprint";

/// The fact of a run's program that is the digest of the code that measured another system.
pub const MEASURING_CODE: &str = "measuring code (FNV-1a)";

/// What another program is to measure (JSON).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PeerPlan {
    /// The version of its schema.
    pub schema_version: u32,
    /// How the rows are sampled, and the seed of every order.
    pub sampling: Protocol,
    /// The device: `cuda:0`.
    pub device: String,
    /// The rows, in the order of the suite. The program leaves out those that have no meaning in it, and those that are computed
    /// from others.
    pub rows: Vec<MetricSpec>,
}

impl PeerPlan {
    /// The plan of these rows.
    pub fn new(sampling: Protocol, device: &str, rows: Vec<MetricSpec>) -> Self {
        Self { schema_version: PLAN_SCHEMA_VERSION, sampling, device: device.to_owned(), rows }
    }

    /// Reads a plan.
    ///
    /// # Errors
    /// [`FileError`] says whether the file cannot be read, is no plan, has another version, never stops, or holds a row twice.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let (text, origin) = (read_text(path, MAX_BYTES).map_err(at(path))?, path.display().to_string());
        let plan: Self = of_version(PLAN_SCHEMA_VERSION, &text, &origin, "a plan")?;
        plan.sampling.validate().map_err(|error| FileError::whole(&origin, error.to_string()))?;
        let mut titles = BTreeSet::new();
        match plan.rows.iter().map(MetricSpec::title).find(|title| !titles.insert(title.clone())) {
            Some(twice) => Err(FileError::whole(&origin, format!("`{twice}` stands there twice"))),
            None => Ok(plan),
        }
    }
}

/// What another program measured on one machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// The version of this schema.
    pub schema_version: u32,
    /// The program: `PyTorch`.
    pub name: String,
    /// When it began, in UTC, RFC 3339.
    pub started: String,
    /// The versions of the program and of what it stands on, in order.
    pub versions: Vec<(String, String)>,
    /// Where it ran.
    pub machine: Machine,
    /// The digest of the code that measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// What it measured, by the identifiers and parameters of the experiments' rows.
    pub rows: Vec<SystemRow>,
}

/// Where a system ran, as far as its program could tell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The device's hardware: `NVIDIA H200`.
    pub model: String,
    /// What tells the device from others of its model.
    pub fingerprint: Option<String>,
    /// The version of the device's driver.
    pub driver: Option<String>,
    /// The model of the host's processor.
    pub cpu: Option<String>,
}

impl Machine {
    /// The one of an open device.
    pub fn of(device: &Device) -> Self {
        let Environment { host, device, .. } = Environment::now(device, Vec::new());
        let fact = |name| device.fact(name).map(str::to_owned);
        let (fingerprint, driver) = (fact(FINGERPRINT), fact("driver"));
        Self { model: device.model, fingerprint, driver, cpu: Some(host.cpu) }
    }

    /// One of which no more is known than the model of its device.
    pub fn of_model(model: impl Into<String>) -> Self {
        Self { model: model.into(), fingerprint: None, driver: None, cpu: None }
    }
}

/// A row of another system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SystemRow {
    /// The identifier.
    pub id: String,
    /// The parameters.
    #[serde(default, deserialize_with = "each_once")]
    pub parameters: Parameters,
    /// The unit of the samples.
    pub unit: Unit,
    /// What came of it.
    pub outcome: Outcome,
}

impl System {
    /// Reads the file of another system, which may be packed by gzip; `catalog` holds the rows that there are.
    ///
    /// # Errors
    /// [`FileError`] says whether the file cannot be read, is not whole, has a version that is not read, or holds a row
    /// that means nothing here.
    pub fn read(path: &Path, catalog: &Catalog) -> Result<Self, FileError> {
        let text = read_text(path, MAX_BYTES).map_err(at(path))?;
        Self::parse(&text, &path.display().to_string(), catalog)
    }

    /// Reads the file of another system from its text; `origin` names it in errors.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn parse(text: &str, origin: &str, catalog: &Catalog) -> Result<Self, FileError> {
        let mut system: Self = of_version(SYSTEM_SCHEMA_VERSION, text, origin, "the measurements of another program")?;
        system.compute(catalog);
        system.check(catalog).map_err(|message| FileError::whole(origin, message))?;
        Ok(system)
    }

    /// Adds the rows that are computed from its rows and that it does not have. What one of these lacks, they lack, for the same
    /// reason.
    fn compute(&mut self, catalog: &Catalog) {
        let place = |(place, row): (usize, &SystemRow)| (titled(&row.id, &row.parameters), place);
        let mut places: HashMap<String, usize> = self.rows.iter().enumerate().map(place).collect();
        for spec in catalog.specs() {
            let Provenance::Derived { formula, operands, .. } = &spec.provenance else { continue };
            let Some(first) = operands.first() else { continue };
            let own = operands.iter().all(|operand| operand.parameters.is_none());
            let measured = self.rows.iter().filter(|row| own && row.id == first.id).map(|row| row.parameters.clone());
            let sets: Vec<Parameters> = measured.chain((!own).then(|| spec.parameters.clone())).collect();
            for parameters in sets {
                let title = titled(&spec.id, &parameters);
                let of = |operand: &FormulaOperand| {
                    let title = titled(&operand.id, operand.parameters.as_ref().unwrap_or(&parameters));
                    Some(&self.rows[*places.get(&title)?].outcome)
                };
                let found = operands.iter().map(of).collect::<Option<Vec<&Outcome>>>();
                let Some(found) = found.filter(|_| !places.contains_key(&title)) else { continue };
                let outcome = match found.iter().find(|outcome| outcome.values().is_none()) {
                    Some(absent) => (*absent).clone(),
                    None => {
                        let named = operands.iter().zip(&found);
                        let named = named.filter_map(|(own, outcome)| Some((own.name.as_str(), outcome.values()?)));
                        Outcome::computed(formula, &named.collect::<Vec<_>>(), &parameters)
                    }
                };
                places.insert(title, self.rows.len());
                self.rows.push(SystemRow { id: spec.id.clone(), parameters, unit: spec.unit, outcome });
            }
        }
    }

    /// Finds the first thing in it that means nothing here.
    fn check(&self, catalog: &Catalog) -> Result<(), String> {
        if self.name.trim().is_empty() {
            return Err("`name` names no program".to_owned());
        }
        if self.rows.is_empty() {
            return Err("it holds no rows".to_owned());
        }
        let mut titles = BTreeSet::new();
        for row in &self.rows {
            let title = titled(&row.id, &row.parameters);
            let unknown = || format!("there is no row `{}`{}", row.id, nearest(&row.id, catalog.ids()));
            let spec = catalog.get(&row.id).ok_or_else(unknown)?;
            if spec.unit != row.unit {
                return Err(format!("`{title}` is in {:?}, and here in {:?}", row.unit, spec.unit));
            }
            if !titles.insert(title.clone()) {
                return Err(format!("`{title}` stands there twice"));
            }
        }
        let (run, rows) = self.clone().into_run(format!("{}-1", self.name), catalog);
        run.check().map_err(|why| format!("it {why}"))?;
        rows.iter().try_for_each(|row| row.check().map_err(|why| format!("`{}` {why}", row.spec.title())))?;
        for (_, metric) in Lookup::new(&rows.into(), vec![&run.id]).metrics() {
            if let Some(MissingReason::Inconsistent(message)) = metric.and_then(|metric| metric.estimate()).err() {
                return Err(message);
            }
        }
        Ok(())
    }

    /// What of its machine is not as in the first run of `results`: of what both name.
    pub fn mismatches(&self, results: &Results) -> Vec<Mismatch> {
        let (environment, machine) = (results.environment(), &self.machine);
        let pairs = [
            ("device model", Some(&machine.model), Some(environment.device.model.as_str())),
            ("GPU (by its fingerprint)", machine.fingerprint.as_ref(), environment.device.fact(FINGERPRINT)),
            ("driver", machine.driver.as_ref(), environment.device.fact("driver")),
            ("host processor", machine.cpu.as_ref(), Some(environment.host.cpu.as_str())),
        ];
        pairs.into_iter().filter_map(|(what, system, run)| Mismatch::of(what, system?, run?)).collect()
    }

    /// The system by itself, as the one run of results without a suite.
    pub fn into_results(self, catalog: &Catalog) -> Results {
        let id = format!("{}-1", self.name);
        let (run, rows) = self.into_run(id, catalog);
        Results {
            schema_version: SCHEMA_VERSION,
            suite: serde_json::Value::Null,
            selection: Selection::default(),
            plan: Plan::default(),
            runs: vec![run],
            rows: rows.into(),
            timelines: Vec::new(),
            samples_sha256: None,
        }
    }

    /// The system as a run and its rows. What a row is comes from the first in `catalog` that has its identifier, of
    /// several from one with its parameters.
    pub(super) fn into_run(self, id: String, catalog: &Catalog) -> (Run, Vec<Row>) {
        let rows = self.rows.into_iter().map(|row| {
            let mut named = catalog.of(&row.id);
            let known = named.find(|spec| spec.parameters == row.parameters).or_else(|| catalog.get(&row.id));
            // What was measured is what the row says, by the clock that it says.
            let provenance = known.map_or(Provenance::measured(Clock::Host), |known| known.provenance.clone());
            let declared = known.map(|known| (known.group.clone(), known.label.clone()));
            let (group, label) = declared.unwrap_or_else(|| described(&row.id));
            let work = known.filter(|known| known.parameters == row.parameters).and_then(|known| known.work.clone());
            let (parameters, floor) = (row.parameters, None);
            let spec = MetricSpec { id: row.id, group, label, unit: row.unit, parameters, provenance, work, floor };
            Row { spec, series: vec![Series { run: id.clone(), outcome: row.outcome }] }
        });
        let rows = rows.collect();
        let machine = self.machine;
        let fact = |name: &str, value: Option<String>| value.map(|value| (name.to_owned(), value));
        let facts = [fact("driver", machine.driver), fact(FINGERPRINT, machine.fingerprint)];
        let mut libraries = self.versions;
        let version = libraries.iter().position(|(name, _)| *name == self.name).map(|place| libraries.remove(place).1);
        let environment = Environment {
            host: Host { cpu: machine.cpu.unwrap_or_else(|| "unknown".to_owned()), ..Host::default() },
            device: DeviceDescription {
                engine: "cuda".to_owned(),
                model: machine.model,
                facts: facts.into_iter().flatten().collect(),
                ..DeviceDescription::default()
            },
            program: Program {
                name: self.name.clone(),
                version: version.unwrap_or_default(),
                libraries,
                facts: fact(MEASURING_CODE, self.code).into_iter().collect(),
                ..Program::default()
            },
            cuda_unavailable: None,
        };
        let (system, started) = (self.name, self.started);
        let (resumed, telemetry, algorithms) = (Vec::new(), Vec::new(), Vec::new());
        let (order, outcome) = (Vec::new(), RunOutcome::Complete);
        (Run { id, system, started, resumed, environment, telemetry, algorithms, order, outcome }, rows)
    }
}

/// The heading and the label of a row of which only the identifier is known: its parts in words.
fn described(id: &str) -> (String, String) {
    let words = |text: &str| text.replace(['.', '-'], " ");
    let mut parts = id.splitn(3, '.');
    let (experiment, group, rest) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
    (words(group.unwrap_or(experiment)), words(rest.or(group).unwrap_or(experiment)))
}

impl Results {
    /// Puts another system beside the runs; an earlier one of the same name gives way.
    ///
    /// # Errors
    /// What differs between the machine of the system and that of the first run.
    pub fn attach(&mut self, system: System) -> Result<(), Vec<Mismatch>> {
        let mismatches = system.mismatches(self);
        if !mismatches.is_empty() {
            return Err(mismatches);
        }
        self.remove(&self.runs_of(&system.name).map(|run| run.id.clone()).collect::<Vec<_>>());
        self.add_run(system);
        Ok(())
    }

    /// Adds what a system measured as its next run.
    pub fn add_run(&mut self, system: System) {
        self.add_run_of(system, &Catalog::new(self.rows.iter().map(|row| row.spec.clone())));
    }

    /// The same, where `catalog` says what rows are.
    pub(super) fn add_run_of(&mut self, system: System, catalog: &Catalog) {
        let id = format!("{}-{}", system.name, self.runs_of(&system.name).count() + 1);
        let (run, rows) = system.into_run(id, catalog);
        self.runs.push(run);
        self.merge(rows);
    }

    /// Takes the runs with these identifiers away, with what they left.
    pub fn remove(&mut self, gone: &[String]) {
        self.runs.retain(|run| !gone.contains(&run.id));
        self.rows.iter_mut().for_each(|row| row.series.retain(|series| !gone.contains(&series.run)));
        self.rows.retain(|row| !row.series.is_empty());
    }

    /// Puts rows of a new run to those that are there. Of one system a row is one, and is what its first run says; where the
    /// system has none, the row goes to the same one of another system.
    pub fn merge(&mut self, rows: impl IntoIterator<Item = Row>) {
        let systems: HashMap<&str, &str> = self.runs.iter().map(|run| (run.id.as_str(), run.system.as_str())).collect();
        let system_of = |series: &Series| systems.get(series.run.as_str()).copied();
        let mut places: HashMap<String, Vec<usize>> = HashMap::new();
        for (place, row) in self.rows.iter().enumerate() {
            places.entry(row.spec.id.clone()).or_default().push(place);
        }
        for row in rows {
            let places = places.entry(row.spec.id.clone()).or_default();
            let find = |is_wanted: &dyn Fn(&Row) -> bool| {
                let taken = |known: &Row| row.series.iter().any(|series| known.outcome(&series.run).is_some());
                places.iter().copied().find(|place| is_wanted(&self.rows[*place]) && !taken(&self.rows[*place]))
            };
            let of_system = |known: &Row| {
                let is_own = |series: &Series| row.series.iter().any(|own| system_of(own) == system_of(series));
                known.spec.unit == row.spec.unit
                    && known.spec.parameters == row.spec.parameters
                    && known.series.iter().any(is_own)
            };
            match find(&of_system).or_else(|| find(&|known| known.spec == row.spec)) {
                Some(place) => self.rows[place].series.extend(row.series),
                None => {
                    places.push(self.rows.len());
                    self.rows.push(row);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::described;

    #[test]
    fn an_identifier_is_put_in_words() {
        assert_eq!(described("overlap.transfer.host-read"), ("transfer".to_owned(), "host read".to_owned()));
        assert_eq!(described("idle-device.other"), ("other".to_owned(), "other".to_owned()));
    }
}
