//! Results without what says whose they are, for a file that is handed on.
//!
//! # Method
//! What stays is listed field by field. Each structure is taken apart by all of its fields, so that a new field does not compile
//! before somebody has decided on it. Of further facts, those stay that [`FACTS`] names. What was measured stays: rows with
//! their names, parameters and samples, names of systems and experiments, times, sensors, and the suite but for its title. Of
//! processor, device, system and program stay what they are. The name of the machine, the command, environment variables' values,
//! flags of the compiler, places in a program, and reasons why something failed or was skipped go: they may hold anything.
//!
//! The fingerprint of a GPU is put through a hash with a key that is nowhere kept: two runs of one file still show that they
//! had the same GPU, and nobody who knows its UUID can find it.
//!
//! # What it does not cover
//! Who names an experiment, a row, a parameter or a system after a person hands that name on.

use std::hash::{BuildHasher, RandomState};

use super::environment::{DeviceDescription, Environment, Host, Program};
use super::provenance::names_of_variables;
use super::row::{Outcome, Row, Series};
use super::run::{ExperimentRun, Recorded, RecordedTimeline, Results, Run};
use super::system::FINGERPRINT;
use crate::timeline::{Span, Timeline};

/// The facts that stay, by name: none holds what a user wrote, but for the values of variables.
const FACTS: &str = "ECC, CUDA driver interface, CUDA, GPUs of this machine, L2 cache (bytes), MIG, NCCL, NUMA nodes, NVRTC, NumPy, \
    PCIe generation, PCIe lanes, Python, SM clock asked for (MHz), architecture, binary (SHA-256), clock rate, compiler, \
    copy engines, cuBLASLt, driver, environment variables, fingerprint, gates, governor, greatest SM clock (MHz), \
    lock file (FNV-1a), logical processors, matmul, measuring code (FNV-1a), multiprocessors, persistence mode, power limit (W), \
    processors that the program may use, target features, threads of PyTorch on the host, virtual machine, worker threads";
/// The fact of which only names stay.
const VARIABLES: &str = "environment variables";
/// What stands in the place of a text.
const WITHHELD: &str = "withheld";

impl Results {
    /// The results without what says whose they are.
    pub fn anonymous(&self) -> Self {
        let Self { schema_version, suite, selection, plan, runs, rows, timelines, samples_sha256: _ } = self.clone();
        let mut suite = suite;
        if let Some(title) = suite.get_mut("title") {
            *title = WITHHELD.into();
        }
        let key = RandomState::new();
        Self {
            schema_version,
            suite,
            selection,
            plan,
            runs: runs.into_iter().map(|run| of_run(run, &key)).collect(),
            rows: rows.iter().cloned().map(of_row).collect(),
            timelines: timelines.into_iter().map(of_timeline).collect(),
            samples_sha256: None,
        }
    }
}

fn of_run(run: Run, key: &RandomState) -> Run {
    let Run { id, system, started, resumed, environment, telemetry, algorithms, order, outcome } = run;
    let order = order.into_iter().map(|left| {
        let ExperimentRun { name, summary, duration, code, failure } = left;
        ExperimentRun { name, summary, duration, code, failure: failure.map(|_| WITHHELD.to_owned()) }
    });
    let environment = of_environment(environment, key);
    Run { id, system, started, resumed, environment, telemetry, algorithms, order: order.collect(), outcome }
}

fn of_environment(environment: Environment, key: &RandomState) -> Environment {
    let Environment { host, device, program, cuda_unavailable } = environment;
    let Host { cpu, logical_cpus, memory_bytes, system, facts } = host;
    // A site names its own kernels behind the version.
    let system = system.map(|system| system.split('-').next().unwrap_or_default().to_owned());
    let host = Host { cpu, logical_cpus, memory_bytes, system, facts: of_facts(facts, key) };
    let DeviceDescription { name, engine, model, memory_bytes, wait_policy, facts } = device;
    let device = DeviceDescription { name, engine, model, memory_bytes, wait_policy, facts: of_facts(facts, key) };
    let Program { name, version, libraries, commit, dirty, profile, command: _, facts } = program;
    let (libraries, facts) = (of_facts(libraries, key), of_facts(facts, key));
    let program = Program { name, version, libraries, commit, dirty, profile, command: Vec::new(), facts };
    Environment { host, device, program, cuda_unavailable: cuda_unavailable.map(|_| WITHHELD.to_owned()) }
}

fn of_facts(facts: Vec<(String, String)>, key: &RandomState) -> Vec<(String, String)> {
    let stays = facts.into_iter().filter(|(name, _)| FACTS.split(", ").any(|fact| fact == name));
    let cleaned = stays.map(|(name, value)| match name.as_str() {
        FINGERPRINT => (name, format!("{:08x}", key.hash_one(value) >> 32)),
        VARIABLES => (name, names_of_variables(&value)),
        _ => (name, value),
    });
    cleaned.collect()
}

fn of_row(row: Row) -> Row {
    let Row { spec, series } = row;
    let withheld = || WITHHELD.to_owned();
    let series = series.into_iter().map(|Series { run, outcome }| match outcome {
        Outcome::Skipped { .. } => Series { run, outcome: Outcome::Skipped { reason: withheld() } },
        Outcome::Failed { .. } => Series { run, outcome: Outcome::Failed { reason: withheld() } },
        outcome => Series { run, outcome },
    });
    Row { spec, series: series.collect() }
}

fn of_timeline(scenario: RecordedTimeline) -> RecordedTimeline {
    let RecordedTimeline { run, name, parameters, recorded, untraced_s, traced_s } = scenario;
    let recorded = match recorded {
        Recorded::Failed(_) => Recorded::Failed(WITHHELD.to_owned()),
        Recorded::Timeline(Timeline { device, source, tracks, spans, dropped, region_ns }) => {
            let spans = spans.into_iter().map(|span| Span { site: None, ..span }).collect();
            Recorded::Timeline(Timeline { device, source, tracks, spans, dropped, region_ns })
        }
    };
    RecordedTimeline { run, name, parameters, recorded, untraced_s, traced_s }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// Results in which every text that a user, a site or an error may have written holds a secret.
    fn planted() -> Results {
        let mut results = Results::read(
            &Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("book/results/two-gpus.json.gz"),
        )
        .unwrap();
        let secret = || "sekret".to_owned();
        results.suite["title"] = "sekret".into();
        for run in &mut results.runs {
            let Environment { host, program, cuda_unavailable, .. } = &mut run.environment;
            host.name_machine("sekret-node7");
            host.system = Some("Linux (Ubuntu 24.04), kernel 6.8.0-sekret".to_owned());
            let variables =
                "CUDA_HOME (a path), NCCL_SOCKET_IFNAME=sekret, of sekret, OMP_PLACES=x, sekret=1".to_owned();
            host.facts.retain(|(name, _)| name != VARIABLES);
            host.facts.extend([(VARIABLES.to_owned(), variables), ("serial".to_owned(), secret())]);
            program.command = vec!["report".to_owned(), "/home/sekret/r.json".to_owned()];
            program.facts.push(("flags of the compiler".to_owned(), secret()));
            program.libraries.push(("sekret's".to_owned(), "1".to_owned()));
            *cuda_unavailable = Some("/home/sekret/libcuda.so".to_owned());
            run.order.iter_mut().for_each(|left| left.failure = Some(secret()));
        }
        let reasons = [Outcome::Skipped { reason: secret() }, Outcome::Failed { reason: secret() }];
        for (row, outcome) in results.rows.iter_mut().zip(reasons) {
            row.series[0].outcome = outcome;
        }
        let (run, name) = (results.run().id.clone(), results.rows[2].spec.id.clone());
        let recorded = Recorded::Failed(secret());
        let (parameters, untraced_s, traced_s) = Default::default();
        results.timelines = vec![RecordedTimeline { run, name, parameters, recorded, untraced_s, traced_s }];
        results
    }

    #[test]
    fn nothing_that_a_user_a_site_or_an_error_wrote_is_handed_on() {
        let before = planted();
        let after = before.anonymous();
        let text = serde_json::to_string(&after).unwrap();
        assert_eq!(text.find("sekret").map(|at| &text[at.saturating_sub(200)..at + 20]), None);
        let variables = after.runs[0].environment.host.facts.iter().find(|(name, _)| name == VARIABLES).unwrap();
        assert_eq!(variables.1, "CUDA_HOME, NCCL_SOCKET_IFNAME, OMP_PLACES");
        assert_eq!(after.samples_digest(), before.samples_digest());
        assert_eq!(after.rows[2..], before.rows[2..]);
        let [one, other] = [&before, &after].map(|results| results.environment());
        assert_eq!((&one.device.model, &one.host.cpu), (&other.device.model, &other.host.cpu));
        assert_eq!(other.host.system.as_deref(), Some("Linux (Ubuntu 24.04), kernel 6.8.0"));
        assert_eq!(one.device.facts.len(), other.device.facts.len(), "no fact of a device is lost");
    }

    #[test]
    fn a_gpu_is_the_same_within_a_file_and_another_in_the_next() {
        let before = planted();
        let fingerprints = || -> BTreeSet<String> {
            let runs = before.anonymous().runs;
            runs.iter().filter_map(|run| run.environment.device.fact(FINGERPRINT)).map(str::to_owned).collect()
        };
        let (one, other) = (fingerprints(), fingerprints());
        assert!(one.len() == 1 && other.len() == 1 && one != other, "{one:?} {other:?}");
        assert!(!one.contains(before.environment().device.fact(FINGERPRINT).unwrap()));
    }
}
