//! Whether two results files measured the same thing on the same kind of machine.
//!
//! Another GPU, driver, engine or suite makes every row another measurement: two such files are compared only where it is
//! asked for. What else differs (the program, the host, a library) may be the very thing that is to be compared: it is
//! said, and does not refuse.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use serde::Serialize;

use super::row::Row;
use super::run::{Results, Run};
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

impl Mismatch {
    /// What `what` is of each, where it is not the same.
    pub(super) fn of(what: &str, a: impl fmt::Display, b: impl fmt::Display) -> Option<Self> {
        let (what, a, b) = (what.to_owned(), a.to_string(), b.to_string());
        (a != b).then_some(Self { what, a, b })
    }
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
    let (first, second) = (experiments(a), experiments(b));
    let names = |of: &BTreeMap<&str, _>| of.keys().copied().collect::<Vec<_>>().join(", ");
    let of_file = [
        Mismatch::of("engine", &one.engine, &other.engine),
        Mismatch::of("device model", &one.model, &other.model),
        Mismatch::of("driver", fact(a, "driver"), fact(b, "driver")),
        Mismatch::of("sampling of the suite", sampling(a), sampling(b)),
        Mismatch::of("list of experiments of the suite", names(&first), names(&second)),
    ];
    let of_rows = first.iter().filter_map(|(name, one)| {
        let other = second.get(name)?;
        let only = |of: &BTreeSet<String>, less: &BTreeSet<String>| {
            let first = of.difference(less).next().cloned();
            first.unwrap_or_else(|| "rows of them all".to_owned())
        };
        let what = format!("set of parameters of `{name}`");
        (one != other).then(|| Mismatch { what, a: only(one, other), b: only(other, one) })
    });
    of_file.into_iter().flatten().chain(of_rows).collect()
}

/// What else differs between two files, and may explain a difference between their values.
pub fn remarks(a: &Results, b: &Results) -> Vec<Mismatch> {
    let (one, other) = (a.environment(), b.environment());
    let of_places = [
        Mismatch::of("host processor", &one.host.cpu, &other.host.cpu),
        Mismatch::of("number of logical processors", known(&one.host.logical_cpus), known(&other.host.logical_cpus)),
        Mismatch::of("operating system", known(&one.host.system), known(&other.host.system)),
        Mismatch::of("way of waiting", known(&one.device.wait_policy), known(&other.device.wait_policy)),
    ];
    let facts = one.device.facts.iter().filter(|(name, _)| name != "driver");
    let facts = facts.map(|(name, value)| Mismatch::of(name, value, fact(b, name)));
    let of_programs = [
        Mismatch::of("version of the program", &one.program.version, &other.program.version),
        Mismatch::of("commit of the program", known(&one.program.commit), known(&other.program.commit)),
        Mismatch::of("build profile", known(&one.program.profile), known(&other.program.profile)),
    ];
    let systems = a.systems().into_iter().filter(|system| b.systems().contains(system)).map(|system| {
        let what = format!("code that measures {system}");
        Mismatch::of(&what, measuring_code(a, system), measuring_code(b, system))
    });
    of_places.into_iter().chain(facts).chain(of_programs).chain(systems).flatten().collect()
}

/// The runs of `a` that are in `b`, too: of one system, begun at the same time, and with the same samples of all rows that both
/// measured.
pub fn shared_runs<'a>(a: &'a Results, b: &Results) -> Vec<&'a str> {
    let others: HashMap<String, &Row> = b.rows.iter().map(|row| (row.spec.title(), row)).collect();
    let series = |row: &Row, run: &Run| row.series.iter().position(|series| series.run == run.id);
    let is_same = |one: &Run, other: &Run| {
        let pairs = a.rows.iter().filter_map(|row| {
            let of_b = others.get(&row.spec.title())?;
            let [mine, theirs] = [&row.series[series(row, one)?], &of_b.series[series(of_b, other)?]]
                .map(|series| series.outcome.values());
            Some(mine? == theirs?)
        });
        let mut rows = pairs.peekable();
        rows.peek().is_some() && rows.all(|same| same)
    };
    let shared = a.runs.iter().filter(|one| {
        let candidates = b.runs.iter().filter(|other| other.system == one.system && other.started == one.started);
        candidates.into_iter().any(|other| is_same(one, other))
    });
    shared.map(|run| run.id.as_str()).collect()
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
