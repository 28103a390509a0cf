//! What a reader should know before trusting a run's figures.

use std::fmt;

use crate::device::Telemetry;
use crate::results::{Results, Run, RunOutcome, code_of};

/// Something that limits what a run's figures say. Its text gives the cause and the remedy.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Warning {
    /// The program was built without optimisation.
    DebugBuild,
    /// The program was built from a checkout with uncommitted changes.
    DirtyCheckout,
    /// The device held its clocks back.
    Throttled {
        /// During which experiment.
        experiment: String,
        /// The driver's words.
        reasons: Vec<String>,
    },
    /// Another process computed on the device.
    Shared {
        /// Around which experiment.
        experiment: String,
        /// How many there were, at most.
        processes: u32,
    },
    /// Memory of the device was held by somebody whom the driver does not list.
    SharedUnseen {
        /// Around which experiment.
        experiment: String,
        /// How much, at most.
        bytes: u64,
    },
    /// An interrupt came before some rows or cut their sampling short.
    Interrupted {
        /// In which experiment.
        experiment: String,
        /// How many of its rows.
        rows: usize,
    },
    /// The process of a run ended before its time.
    RunFailed {
        /// Which.
        run: String,
    },
    /// The code that measures an experiment has changed since.
    Outdated {
        /// Which.
        experiment: String,
    },
    /// An experiment failed as a whole.
    ExperimentFailed {
        /// Which.
        experiment: String,
        /// Why.
        reason: String,
    },
    /// CUDA could not be used.
    NoCuda {
        /// Why.
        reason: String,
    },
}

impl Warning {
    /// All warnings about a file, those about the program first, then in the order of the experiments.
    pub fn of(results: &Results) -> Vec<Self> {
        let environment = results.environment();
        let mut warnings = Vec::new();
        if environment.program.profile.as_deref() == Some("debug") {
            warnings.push(Warning::DebugBuild);
        }
        if environment.program.dirty == Some(true) {
            warnings.push(Warning::DirtyCheckout);
        }
        if let Some(reason) = &environment.cuda_unavailable {
            warnings.push(Warning::NoCuda { reason: reason.clone() });
        }
        for failed in results.runs.iter().filter(|run| run.outcome == RunOutcome::Failed) {
            warnings.push(Warning::RunFailed { run: failed.id.clone() });
        }
        for experiment in results.experiments() {
            warnings.extend(Self::about(results, experiment));
        }
        warnings
    }

    /// Whether another program measured than one of this code that was built from a commit.
    pub fn is_of_other_code(&self) -> bool {
        matches!(self, Warning::DebugBuild | Warning::DirtyCheckout | Warning::Outdated { .. })
    }

    /// What the runs say of one experiment.
    fn about(results: &Results, name: &str) -> Vec<Self> {
        let experiment = || name.to_owned();
        let mut warnings = Vec::new();
        let runs: Vec<&Run> = results.runs_of(&results.run().system).collect();
        let failures = runs.iter().flat_map(|run| &run.order).filter(|left| left.name == name);
        if let Some(reason) = failures.filter_map(|left| left.failure.clone()).next() {
            warnings.push(Warning::ExperimentFailed { experiment: experiment(), reason });
        }
        let codes = runs.iter().flat_map(|run| &run.order).filter(|left| left.name == name);
        let mut codes = codes.filter_map(|left| left.code.as_deref());
        if code_of(name).is_some_and(|now| codes.any(|then| then != now)) {
            warnings.push(Warning::Outdated { experiment: experiment() });
        }
        let open = runs.iter().filter(|run| !run.is_over());
        let rows = open.flat_map(|run| results.rows.iter().filter_map(|row| Some((row, row.outcome(&run.id)?))));
        let rows = rows.filter(|(row, outcome)| row.spec.experiment() == name && !outcome.is_finished()).count();
        if rows > 0 {
            warnings.push(Warning::Interrupted { experiment: experiment(), rows });
        }
        let mut reasons: Vec<&str> = runs.iter().flat_map(|run| run.throttle_reasons(name)).collect();
        reasons.sort_unstable();
        reasons.dedup();
        if !reasons.is_empty() {
            let reasons = reasons.into_iter().map(str::to_owned).collect();
            warnings.push(Warning::Throttled { experiment: experiment(), reasons });
        }
        let samples = runs.iter().flat_map(|run| run.telemetry_of(name));
        let sensors: Vec<&Telemetry> = samples.map(|sample| &sample.sensors).collect();
        let others = sensors.iter().filter_map(|sensors| sensors.other_processes).max().unwrap_or(0);
        let unseen = sensors.iter().filter_map(|sensors| sensors.unlisted_bytes).max().unwrap_or(0);
        if others > 0 {
            warnings.push(Warning::Shared { experiment: experiment(), processes: others });
        } else if unseen > 0 {
            warnings.push(Warning::SharedUnseen { experiment: experiment(), bytes: unseen });
        }
        warnings
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::DebugBuild => f.write_str(
                "The program was built without optimisation: host times are too long. Build it with `--release`.",
            ),
            Warning::DirtyCheckout => f.write_str(
                "The program was built from a checkout with uncommitted changes: the commit does not tell what ran. \
                 Commit and run again.",
            ),
            Warning::NoCuda { reason } => write!(f, "CUDA could not be used: {reason}"),
            Warning::Interrupted { experiment, rows } => write!(
                f,
                "The run was interrupted during {experiment}: {rows} of its rows hold fewer samples than its plan asks \
                 for, or none. Resume it (`report run --resume`)."
            ),
            Warning::RunFailed { run } => write!(
                f,
                "The process of the run {run} ended before its time: rows have its samples as far as it came, and those of \
                 the other runs."
            ),
            Warning::Outdated { experiment } => write!(
                f,
                "The code that measures {experiment} has changed since: a run of today may give other values."
            ),
            Warning::ExperimentFailed { experiment, reason } => {
                write!(f, "The experiment {experiment} failed; the rows it had left are kept. {reason}")
            }
            Warning::Shared { experiment, processes } => {
                let who =
                    if *processes == 1 { "another process".to_owned() } else { format!("{processes} other processes") };
                write!(
                    f,
                    "The device was shared with {who} around {experiment}: times may be too long, and scatter. End what else \
                     uses it (`nvidia-smi` names it), and run again."
                )
            }
            Warning::SharedUnseen { experiment, bytes } => {
                let held = *bytes as f64 / 1e9;
                write!(
                    f,
                    "{held:.1} GB of the device's memory were held around {experiment} by no process that the driver lists \
                     here, as by one of another container: times may be too long, and scatter. End what else uses the \
                     device, and run again."
                )
            }
            Warning::Throttled { experiment, reasons } => {
                let reasons = reasons.join(", ");
                write!(
                    f,
                    "The device held its clocks back around {experiment} ({reasons}): times may be too long. Let it \
                     cool, or lock its clocks, and run again."
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::trial::nothing;
    use super::*;
    use crate::results::{ExperimentRun, TelemetrySample};

    #[test]
    fn another_process_on_the_device_is_said() {
        let mut results = nothing();
        let sample = |other_processes| {
            let sensors = Telemetry { other_processes, ..Telemetry::default() };
            TelemetrySample { at: None, experiment: "a".to_owned(), sensors }
        };
        let (name, summary) = ("a".to_owned(), String::new());
        results.runs[0].order = vec![ExperimentRun { name, summary, duration: 1.0, code: None, failure: None }];
        results.runs[0].telemetry = vec![sample(None), sample(Some(0))];
        assert_eq!(Warning::of(&results), []);
        results.runs[0].telemetry.push(sample(Some(2)));
        let warnings: Vec<String> = Warning::of(&results).iter().map(ToString::to_string).collect();
        assert!(warnings.len() == 1 && warnings[0].contains("shared with 2 other processes around a"), "{warnings:?}");
        let sensors = Telemetry { other_processes: Some(0), unlisted_bytes: Some(5 << 30), ..Telemetry::default() };
        results.runs[0].telemetry = vec![TelemetrySample { at: None, experiment: "a".to_owned(), sensors }];
        let warnings: Vec<String> = Warning::of(&results).iter().map(ToString::to_string).collect();
        assert!(warnings.len() == 1 && warnings[0].contains("5.4 GB of the device's memory"), "{warnings:?}");
    }

    #[test]
    fn results_of_other_code_are_told_from_those_of_this_program() {
        let mut results = nothing();
        let of_other_code = |results: &Results| Warning::of(results).iter().any(Warning::is_of_other_code);
        let (name, code) = ("launch-path".to_owned(), code_of("launch-path").map(str::to_owned));
        results.runs[0].order =
            vec![ExperimentRun { name, summary: String::new(), duration: 1.0, code, failure: None }];
        assert!(!of_other_code(&results));
        let mut changed = results.clone();
        changed.runs[0].order[0].code = Some("0".repeat(16));
        assert!(of_other_code(&changed));
        results.runs[0].environment.program.dirty = Some(true);
        assert!(of_other_code(&results));
    }
}
