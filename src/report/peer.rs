//! Other systems that are measured by turns with this one: each run is a process of a script that comes with this program, or of a
//! program of its own.

use std::env;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;
use clap::ValueEnum;
use include_dir::{Dir, include_dir};

use super::interrupt::Forward;
use super::processes;
use super::run::Limits;
use super::{AppContext, UsageError, recorded};
use crate::files::Scratch;
use crate::measure::Protocol;
use crate::results::{PeerPlan, Results, System};
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
    /// cudarc, by syncscope-cudarc
    Cudarc,
    /// candle, by syncscope-candle
    Candle,
    /// burn, by syncscope-burn
    Burn,
    /// CUDA's libraries, such as cuBLAS and NCCL, by syncscope-libraries
    Libraries,
}

/// The rows of a suite on a device as a plan for another program, for a run that draws by `seed`.
pub(super) fn plan_of(suite: &Suite, device: &str, context: &AppContext, seed: u64) -> PeerPlan {
    let engine = device.split(':').next().unwrap_or(device);
    let sampling = Protocol { seed, short_passes: None, ..suite.sampling.clone() };
    PeerPlan::new(sampling, device, planned(suite, &context.registry, engine))
}

impl OtherSystem {
    /// Its name in results files.
    pub(super) fn name(self) -> &'static str {
        ["PyTorch", "cudarc", "candle", "burn", "CUDA libraries"][self as usize]
    }

    /// Those that a results file was begun with; refused is one that this program cannot measure.
    pub(super) fn named(names: &[String]) -> Result<Vec<Self>, UsageError> {
        let known = |name: &String| Self::value_variants().iter().copied().find(|peer| name == peer.name());
        let named = |name| known(name).ok_or_else(|| UsageError(format!("this program cannot measure {name}")));
        names.iter().map(named).collect()
    }

    /// What measures it: its script, by the Python of the limits, or its program. The script is written to `folder`.
    fn command(self, folder: &Path, limits: &Limits) -> anyhow::Result<(Command, String)> {
        if self == Self::PyTorch {
            SCRIPTS.extract(folder).context("cannot write the other system's script")?;
            let mut command = processes::measuring(&limits.python, limits);
            command.arg(folder.join(SCRIPT));
            return Ok((command, SCRIPT.to_owned()));
        }
        let value = self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        let program = format!("syncscope-{value}");
        let beside = processes::own_program()?.with_file_name(&program);
        let on_path = env::var_os("PATH");
        let on_path = on_path.iter().flat_map(env::split_paths).map(|folder| folder.join(&program));
        let found: Option<PathBuf> = std::iter::once(beside).chain(on_path).find(|path| path.is_file());
        let found = found.with_context(|| {
            format!(
                "there is no program {program} beside this one or on PATH; in a clone of the repository, \
                 `cargo install --path book/peers-rs/{value}` installs it"
            )
        })?;
        Ok((processes::measuring(found, limits), program))
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
        let mut plan = plan_of(&suite, &results.environment().device.name, context, number as u64);
        plan.rows.retain(|spec| results.selection.holds(&spec.id));
        let folder = Scratch::new().context("cannot make a folder for the other system's files")?;
        let (planned, measured) = (folder.path().join("plan.json"), folder.path().join("measured.json"));
        fs::write(&planned, serde_json::to_string(&plan)?).context("cannot write the plan of the other system")?;
        let (mut command, program) = self.command(folder.path(), limits)?;
        command.arg("--plan").arg(&planned).arg("--out").arg(&measured);
        command.arg("--attended").stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0);
        let child =
            command.spawn().with_context(|| format!("{} cannot be started", command.get_program().display()))?;
        let status = forward.attend(child, |_| ())?;
        anyhow::ensure!(measured.is_file(), "{program} ended with {status}");
        let catalog = recorded::catalog(std::slice::from_ref(results), context);
        let system = System::read(&measured, &catalog)?;
        match system.mismatches(results).first() {
            Some(mismatch) => anyhow::bail!("it ran elsewhere: {mismatch}"),
            None => Ok(system),
        }
    }
}
