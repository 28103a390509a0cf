//! Other systems that are measured by turns with this one: each run is a process of a script that comes with the program.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Stdio;

use anyhow::Context;
use clap::ValueEnum;
use include_dir::{Dir, include_dir};
use serde::Serialize;

use super::interrupt::Forward;
use super::processes;
use super::run::Limits;
use super::{AppContext, UsageError, recorded};
use crate::files::Scratch;
use crate::measure::Protocol;
use crate::results::{MetricSpec, Results, System};
use crate::runner::{Suite, planned};

static SCRIPTS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../book/peers");

/// The one that measures PyTorch.
const SCRIPT: &str = "pytorch.py";

/// Another system that can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OtherSystem {
    /// PyTorch, by book/peers/pytorch.py
    #[value(name = "pytorch")]
    PyTorch,
}

/// What a script is to measure (JSON).
#[derive(Serialize)]
pub(super) struct PeerPlan {
    schema_version: u32,
    sampling: Protocol,
    device: String,
    rows: Vec<MetricSpec>,
}

impl PeerPlan {
    /// The rows of a suite on a device, for a run that draws by `seed`.
    pub(super) fn new(suite: &Suite, device: &str, context: &AppContext, seed: u64) -> Self {
        let engine = device.split(':').next().unwrap_or(device);
        let rows = planned(suite, &context.registry, engine);
        let sampling = Protocol { seed, short_passes: None, ..suite.sampling.clone() };
        Self { schema_version: 1, sampling, device: device.to_owned(), rows }
    }
}

impl OtherSystem {
    /// Its name in results files.
    pub(super) fn name(self) -> &'static str {
        let OtherSystem::PyTorch = self;
        "PyTorch"
    }

    /// The one that a results file was begun with; refused is one that this program cannot measure.
    pub(super) fn named(names: &[String]) -> Result<Option<Self>, UsageError> {
        let known = |name: &String| Self::value_variants().iter().copied().find(|peer| name == peer.name());
        match names {
            [] => Ok(None),
            [name] if known(name).is_some() => Ok(known(name)),
            [name] => Err(UsageError(format!("this program cannot measure {name}"))),
            _ => {
                let names = names.join(", ");
                Err(UsageError(format!("this program measures one system beside its own, and not {names}")))
            }
        }
    }

    /// Measures its next run, the `number`th.
    ///
    /// # Errors
    /// Why it cannot be measured here.
    pub(super) fn measure(
        self,
        limits: &Limits,
        results: &Results,
        number: usize,
        forward: &Forward,
        context: &AppContext,
    ) -> anyhow::Result<System> {
        let suite = Suite::of_results(&results.suite, "the suite", &context.registry)?;
        let mut plan = PeerPlan::new(&suite, &results.environment().device.name, context, number as u64);
        plan.rows.retain(|spec| results.selection.holds(&spec.id));
        let folder = Scratch::new().context("cannot make a folder for the other system's files")?;
        SCRIPTS.extract(folder.path()).context("cannot write the other system's script")?;
        let (planned, measured) = (folder.path().join("plan.json"), folder.path().join("measured.json"));
        fs::write(&planned, serde_json::to_string(&plan)?).context("cannot write the plan of the other system")?;
        let mut command = processes::measuring(&limits.python, limits);
        command.arg(folder.path().join(SCRIPT)).arg("--plan").arg(&planned).arg("--out").arg(&measured);
        command.arg("--attended").stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0);
        let child = command.spawn().with_context(|| format!("{} cannot be started", limits.python.display()))?;
        let status = forward.attend(child, |_| ())?;
        anyhow::ensure!(measured.is_file(), "{SCRIPT} ended with {status}");
        let catalog = recorded::catalog(std::slice::from_ref(results), context);
        let system = System::read(&measured, &catalog)?;
        match system.mismatches(results).first() {
            Some(mismatch) => anyhow::bail!("it ran elsewhere: {mismatch}"),
            None => Ok(system),
        }
    }
}
