//! Results without what says whose they are, for a file that is handed on.
//!
//! # Method
//! What stays is listed field by field. Each structure is taken apart by all of its fields, so that a new field does not compile
//! before somebody has decided on it. Of further facts, those stay that [`FACTS`] names. What was measured stays: rows with
//! their names, parameters and samples, names of systems and experiments, times, sensors, and the suite but for its title and the
//! folders of its files. Of processor, device, system and program stay what they are. The name of the machine, the command, environment variables' values,
//! flags of the compiler, places in a program, and reasons why something failed or was skipped go: they may hold anything.
//!
//! The fingerprint of a GPU is put through a hash with a key that is nowhere kept: two runs of one file still show that they
//! had the same GPU, and nobody who knows its UUID can find it.
//!
//! # What it does not cover
//! Who names an experiment, a row, a parameter or a system after a person hands that name on.

use std::hash::{BuildHasher, RandomState};
use std::path::Path;

use serde_json::Value;

use super::environment::{DeviceDescription, Environment, Host, Program};
use super::provenance::names_of_variables;
use super::row::{Outcome, Row, Series};
use super::run::{ExperimentRun, Recorded, RecordedTimeline, Results, Run};
use super::system::FINGERPRINT;
use crate::timeline::Timeline;

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
        let mut all = self.clone();
        let key = RandomState::new();
        let Self { schema_version: _, suite, selection: _, plan: _, runs, rows, timelines, samples_sha256 } = &mut all;
        suite.get_mut("title").into_iter().for_each(|title| *title = WITHHELD.into());
        change_files(suite);
        runs.iter_mut().for_each(|run| change_run(run, &key));
        rows.iter_mut().for_each(change_row);
        timelines.iter_mut().for_each(change_timeline);
        *samples_sha256 = None;
        all
    }
}

/// Takes the folder from the name of each file that a suite holds, `{ file, text }`.
fn change_files(value: &mut Value) {
    match value {
        Value::Object(map) if map.contains_key("text") => {
            if let Some(Value::String(file)) = map.get_mut("file") {
                *file = Path::new(file).file_name().unwrap_or_default().to_string_lossy().into_owned();
            }
        }
        Value::Object(map) => map.values_mut().for_each(change_files),
        Value::Array(list) => list.iter_mut().for_each(change_files),
        _ => {}
    }
}

fn change_run(run: &mut Run, key: &RandomState) {
    let Run { id: _, system: _, started: _, resumed: _, environment, telemetry: _, algorithms: _, order, outcome: _ } =
        run;
    for ExperimentRun { name: _, summary: _, duration: _, code: _, failure } in order {
        failure.iter_mut().for_each(withhold);
    }
    let Environment { host, device, program, cuda_unavailable } = environment;
    cuda_unavailable.iter_mut().for_each(withhold);
    let Host { cpu: _, logical_cpus: _, memory_bytes: _, system, facts: of_host } = host;
    // A site names its own kernels behind the version.
    system.iter_mut().for_each(|system| system.truncate(system.find('-').unwrap_or(system.len())));
    let DeviceDescription { name: _, engine: _, model: _, memory_bytes: _, wait_policy: _, facts: of_device } = device;
    let Program { name: _, version: _, libraries, commit: _, dirty: _, profile: _, command, facts } = program;
    command.clear();
    [of_host, of_device, libraries, facts].into_iter().for_each(|facts| change_facts(facts, key));
}

fn change_facts(facts: &mut Vec<(String, String)>, key: &RandomState) {
    facts.retain(|(name, _)| FACTS.split(", ").any(|fact| fact == name));
    for (name, value) in facts {
        match name.as_str() {
            FINGERPRINT => *value = format!("{:08x}", key.hash_one(&*value) >> 32),
            VARIABLES => *value = names_of_variables(value),
            _ => {}
        }
    }
}

fn change_row(Row { spec: _, series }: &mut Row) {
    for Series { run: _, outcome } in series {
        if let Outcome::Skipped { reason } | Outcome::Failed { reason } = outcome {
            withhold(reason);
        }
    }
}

fn change_timeline(scenario: &mut RecordedTimeline) {
    let RecordedTimeline { run: _, name: _, parameters: _, recorded, untraced_s: _, traced_s: _ } = scenario;
    match recorded {
        Recorded::Failed(reason) => withhold(reason),
        Recorded::Timeline(Timeline { device: _, source: _, tracks: _, spans, dropped: _, region_ns: _ }) => {
            spans.iter_mut().for_each(|span| span.site = None);
        }
    }
}

fn withhold(text: &mut String) {
    WITHHELD.clone_into(text);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    /// Results in which every text that a user, a site or an error may have written holds a secret.
    fn planted() -> Results {
        let mut results = Results::read(
            &Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("book/results/two-gpus.json.gz"),
        )
        .unwrap();
        let secret = || "sekret".to_owned();
        results.suite["title"] = "sekret".into();
        let kernel = json!({ "source": { "file": "/home/sekret/k.cu", "text": "" } });
        results.suite["experiments"] = json!([{ "kernel": kernel }]);
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
