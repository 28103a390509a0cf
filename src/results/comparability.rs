//! Whether two results files measured the same thing on the same kind of machine.
//!
//! Another GPU, driver, engine or suite makes every row another measurement: two such files are compared only where it is
//! asked for. What else differs (the program, the host, a library) may be the very thing that is to be compared: it is
//! said, and does not refuse.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

use super::run::Results;
use super::system::MEASURING_CODE;
use crate::clean::terminal_line;
use crate::measure::Protocol;

/// Something that two files do not share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Mismatch {
    /// What it is: `driver`.
    pub what: String,
    /// What it is of the first.
    pub a: String,
    /// What it is of the second.
    pub b: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [what, a, b] = [&self.what, &self.a, &self.b].map(|text| terminal_line(text));
        write!(f, "{what} differs: {a} and {b}")
    }
}

/// What forbids to compare two files: engine, device model, driver, sampling, and the experiments with their parameters,
/// as the rows tell them.
pub fn mismatches(a: &Results, b: &Results) -> Vec<Mismatch> {
    let (one, other) = (&a.environment().device, &b.environment().device);
    let mut found = Mismatches::default();
    found.check("engine", &one.engine, &other.engine);
    found.check("device model", &one.model, &other.model);
    found.check("driver", fact(a, "driver"), fact(b, "driver"));
    found.check("sampling of the suite", sampling(a), sampling(b));
    let (first, second) = (experiments(a), experiments(b));
    let names = |of: &BTreeMap<&str, _>| of.keys().copied().collect::<Vec<_>>().join(", ");
    found.check("list of experiments of the suite", names(&first), names(&second));
    for (name, one) in &first {
        let Some(other) = second.get(name) else { continue };
        let only = |of: &BTreeSet<String>, less: &BTreeSet<String>| {
            let first = of.difference(less).next().cloned();
            first.unwrap_or_else(|| "rows of them all".to_owned())
        };
        if one != other {
            let what = format!("set of parameters of `{name}`");
            found.0.push(Mismatch { what, a: only(one, other), b: only(other, one) });
        }
    }
    found.0
}

/// What else differs between two files, and may explain a difference between their values.
pub fn remarks(a: &Results, b: &Results) -> Vec<Mismatch> {
    let (one, other) = (a.environment(), b.environment());
    let mut found = Mismatches::default();
    found.check("host processor", &one.host.cpu, &other.host.cpu);
    found.check("number of logical processors", known(&one.host.logical_cpus), known(&other.host.logical_cpus));
    found.check("operating system", known(&one.host.system), known(&other.host.system));
    found.check("way of waiting", known(&one.device.wait_policy), known(&other.device.wait_policy));
    for (name, value) in one.device.facts.iter().filter(|(name, _)| name != "driver") {
        found.check(name, value, fact(b, name));
    }
    found.check("version of the program", &one.program.version, &other.program.version);
    found.check("commit of the program", known(&one.program.commit), known(&other.program.commit));
    found.check("build profile", known(&one.program.profile), known(&other.program.profile));
    for system in a.systems().into_iter().filter(|system| b.systems().contains(system)) {
        found.check(&format!("code that measures {system}"), measuring_code(a, system), measuring_code(b, system));
    }
    found.0
}

const UNKNOWN: &str = "unknown";

fn known(value: &Option<impl fmt::Display>) -> String {
    value.as_ref().map_or_else(|| UNKNOWN.to_owned(), ToString::to_string)
}

/// The digest of the code that measured a system beside this one.
fn measuring_code(results: &Results, system: &str) -> String {
    let mut facts = results.runs_of(system).flat_map(|run| &run.environment.program.facts);
    let found = facts.find(|(name, _)| name == MEASURING_CODE).map(|(_, code)| code);
    known(&found)
}

fn fact<'a>(results: &'a Results, name: &str) -> &'a str {
    results.environment().device.fact(name).unwrap_or(UNKNOWN)
}

/// The suite's sampling with what it leaves out filled in; as it stands there, where it is none.
fn sampling(results: &Results) -> String {
    let stated = results.suite.get("sampling").cloned().unwrap_or_default();
    let filled =
        serde_json::from_value::<Protocol>(stated.clone()).and_then(|protocol| serde_json::to_string(&protocol));
    filled.unwrap_or_else(|_| stated.to_string())
}

/// The experiments with the sets of parameters that their rows have. Rows that were derived share those of their operands.
fn experiments(results: &Results) -> BTreeMap<&str, BTreeSet<String>> {
    let mut found: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for spec in results.lookup().specs() {
        found.entry(spec.experiment()).or_default().insert(spec.title());
    }
    found
}

#[derive(Default)]
struct Mismatches(Vec<Mismatch>);

impl Mismatches {
    fn check(&mut self, what: &str, a: impl fmt::Display, b: impl fmt::Display) {
        let (a, b) = (a.to_string(), b.to_string());
        if a != b {
            self.0.push(Mismatch { what: what.to_owned(), a, b });
        }
    }
}
