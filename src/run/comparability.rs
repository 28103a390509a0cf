//! Whether two runs measured the same thing on the same kind of machine.
//!
//! Another GPU, driver, engine or suite makes every row another measurement: two such runs are compared only where it is
//! asked for. What else differs (the program, the host, a library) may be the very thing that is to be compared: it is
//! said, and does not refuse.

use std::fmt;

use serde::Serialize;

use super::results::Run;

/// Something that two runs do not share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Mismatch {
    /// What it is: `driver`.
    pub what: String,
    /// What it is of the first run.
    pub a: String,
    /// What it is of the second.
    pub b: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} differs: {} and {}", self.what, self.a, self.b)
    }
}

/// What forbids to compare two runs: engine, device model, driver, sampling, experiments with their parameters.
pub fn mismatches(a: &Run, b: &Run) -> Vec<Mismatch> {
    let (one, other) = (&a.environment.device, &b.environment.device);
    let mut found = Mismatches::default();
    found.check("engine", &one.engine, &other.engine);
    found.check("device model", &one.model, &other.model);
    found.check("driver", fact(a, "driver"), fact(b, "driver"));
    found.check("sampling of the suite", json(&a.suite.sampling), json(&b.suite.sampling));
    let experiments = |run: &Run| run.suite.experiments_on(&run.environment.device.engine).to_vec();
    let (first, second) = (experiments(a), experiments(b));
    let names = |of: &[crate::experiment::Entry]| of.iter().map(|entry| entry.name()).collect::<Vec<_>>().join(", ");
    found.check("list of experiments of the suite", names(&first), names(&second));
    if found.0.last().is_none_or(|last| !last.what.starts_with("list")) {
        for (one, other) in first.iter().zip(&second) {
            found.check(&format!("parameters of `{}`", one.name()), json(one), json(other));
        }
    }
    found.0
}

/// What else differs between two runs, and may explain a difference between their values.
pub fn remarks(a: &Run, b: &Run) -> Vec<Mismatch> {
    let (one, other) = (&a.environment, &b.environment);
    let mut found = Mismatches::default();
    found.check("host processor", &one.host.cpu, &other.host.cpu);
    found.check("number of logical processors", one.host.logical_cpus, other.host.logical_cpus);
    found.check("operating system", &one.host.system, &other.host.system);
    found.check("way of waiting", &one.device.wait_policy, &other.device.wait_policy);
    for (name, value) in one.device.facts.iter().filter(|(name, _)| name != "driver") {
        found.check(name, value, fact(b, name));
    }
    found.check("version of the program", &one.program.version, &other.program.version);
    let commit = |run: &Run| run.environment.program.commit.clone().unwrap_or_else(|| UNKNOWN.to_owned());
    found.check("commit of the program", commit(a), commit(b));
    found.check("build profile", &one.program.profile, &other.program.profile);
    found.0
}

const UNKNOWN: &str = "unknown";

fn fact<'a>(run: &'a Run, name: &str) -> &'a str {
    run.environment.device.fact(name).unwrap_or(UNKNOWN)
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| error.to_string())
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
