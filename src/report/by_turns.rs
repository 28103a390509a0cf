//! Measures two programs, or two suites, by turns until their rows are decided: fresh processes of both, in an order that is
//! drawn for each pair.
//!
//! What a program measures is asked of it by its command line and taken from its results file, so that another build need know
//! nothing of this one.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::Value;

use super::course::CourseArgument;
use super::interrupt::Forward;
use super::processes::{measuring, own_program};
use super::run::Limits;
use super::{AlreadyReported, AppContext, End, told};
use crate::error::at;
use crate::files::{Scratch, is_json, is_missing};
use crate::results::statistics::{FIRST_LOOK, drawn_orders};
use crate::results::{Compared, MetricSpec, Results, Selection, Tolerance, look};

/// The suite of two programs of which neither names one.
const SUITE: &str = "quick";

/// How long both are measured where no time is named.
pub(super) const TIME: Duration = Duration::from_secs(300);

/// A program, and what it measures.
pub(super) struct Side {
    program: PathBuf,
    /// What is said of it.
    name: String,
    suite: PathBuf,
    device: Option<String>,
    selection: Selection,
}

/// What an argument names.
enum Named {
    /// A program with this command line.
    Program(PathBuf),
    /// What is to be measured by this one.
    Suite(PathBuf, Option<Box<Results>>),
}

impl Side {
    fn new(program: PathBuf, suite: PathBuf, device: Option<String>) -> Self {
        let name = program.display().to_string();
        Self { program, name, suite, device, selection: Selection::default() }
    }

    /// Two programs that measure the same suite.
    pub(super) fn of_suite(
        programs: [PathBuf; 2],
        suite: &Value,
        device: Option<&String>,
        scratch: &Scratch,
    ) -> anyhow::Result<[Self; 2]> {
        let file = scratch.path().join("suite.yaml");
        fs::write(&file, suite.to_string()).context("cannot write the suite")?;
        let [a, b] =
            programs.map(|program| found(&program).map(|program| Self::new(program, file.clone(), device.cloned())));
        Ok([a?, b?])
    }

    /// The two that arguments name. A program without a suite has that of the other one.
    pub(super) fn both(named: [&Path; 2], scratch: &Scratch, context: &AppContext) -> anyhow::Result<[Self; 2]> {
        let [a, b] = named.map(|path| Named::of(path, context));
        let (a, b) = (a?, b?);
        let file = |name: &str| scratch.path().join(name);
        Ok([a.side(&b, &file("suite-a.yaml"))?, b.side(&a, &file("suite-b.yaml"))?])
    }
}

impl OneSide for Side {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn command(&self, before: Option<&mut Results>, file: &Path, only: &[String]) -> anyhow::Result<Command> {
        let limits = Limits { budget: None, python: PathBuf::from("python3"), allow_multicast: false };
        let mut command = measuring(&self.program, &limits);
        command.args(["run", "--quiet"]);
        match before {
            Some(before) => {
                if !only.is_empty() {
                    let specs: Vec<MetricSpec> = before.rows.iter().map(|row| row.spec.clone()).collect();
                    let only = Selection { only: only.to_vec(), skip: self.selection.skip.clone() };
                    before.selection = only.with_operands(&specs);
                }
                before.plan.runs += 1;
                before.write(file)?;
                command.arg("--resume").arg(file);
            }
            None => {
                command.args(["--runs", "1", "--suite"]).arg(&self.suite).arg("--out").arg(file);
                self.device.iter().for_each(|device| _ = command.arg("--device").arg(device));
                self.selection.only.iter().for_each(|rows| _ = command.arg("--only").arg(rows));
                self.selection.skip.iter().for_each(|rows| _ = command.arg("--skip").arg(rows));
            }
        }
        Ok(command)
    }
}

/// What is measured run by run.
pub(super) trait OneSide {
    /// What is said of it.
    fn name(&self) -> String;

    /// What measures its next run into `file`: of these rows, where there are earlier runs.
    fn command(&self, before: Option<&mut Results>, file: &Path, only: &[String]) -> anyhow::Result<Command>;

    /// Has its process measure the next run, and takes that from the results file that it leaves.
    fn next(
        &self,
        results: &mut Option<Results>,
        file: &Path,
        only: &[String],
        forward: &Forward,
    ) -> anyhow::Result<()> {
        let runs = results.as_ref().map_or(0, |before| before.runs.len());
        let mut command = self.command(results.as_mut(), file, only)?;
        let said = file.with_extension("said");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&said).context("a file for what a run says")?);
        // Its own group: a signal of the terminal reaches it through this process alone, once.
        let child = command.process_group(0).spawn();
        let status = forward.attend(child.with_context(|| format!("{} cannot be started", self.name()))?, |_| ())?;
        if forward.is_interrupted() {
            return Ok(());
        }
        let measured = Results::read(file).ok().filter(|measured| measured.runs.len() > runs && !measured.is_partial());
        let Some(measured) = measured else {
            let said = fs::read_to_string(&said).unwrap_or_default();
            let last = said.lines().map(str::trim).rfind(|line| !line.is_empty());
            let why = last.map_or_else(
                || format!("it ended with {status}"),
                |line| line.trim_start_matches("error: ").to_owned(),
            );
            anyhow::bail!("{} left no run: {why}", self.name());
        };
        *results = Some(measured);
        Ok(())
    }
}

/// A program by its whole path: a name without a folder would be looked for among the user's programs.
pub(super) fn found(program: &Path) -> anyhow::Result<PathBuf> {
    Ok(fs::canonicalize(program).map_err(at(program))?)
}

impl Named {
    fn of(path: &Path, context: &AppContext) -> anyhow::Result<Self> {
        let is_suite = path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml");
        if is_json(path) {
            return Ok(Self::Suite(path.to_owned(), Some(Box::new(Results::read(path)?))));
        }
        if !is_suite && !is_missing(path) {
            return Ok(Self::Program(found(path)?));
        }
        CourseArgument::default().suite(path, &context.book, context)?;
        Ok(Self::Suite(path.to_owned(), None))
    }

    /// This one beside the other; the suite of a results file is written to `file`.
    fn side(&self, other: &Self, file: &Path) -> anyhow::Result<Side> {
        let program = match self {
            Self::Program(program) => program.clone(),
            Self::Suite(..) => own_program()?,
        };
        let suite = [self, other].into_iter().find_map(|named| match named {
            Self::Suite(suite, results) => Some((suite, results)),
            Self::Program(_) => None,
        });
        let mut side = match suite {
            Some((_, Some(results))) => {
                fs::write(file, results.suite.to_string()).context("cannot write the suite")?;
                let device = results.environment().device.name.clone();
                Side { selection: results.selection.clone(), ..Side::new(program, file.to_owned(), Some(device)) }
            }
            Some((suite, None)) => Side::new(program, suite.clone(), None),
            None => Side::new(program, PathBuf::from(SUITE), None),
        };
        if let Self::Suite(named, _) = self {
            side.name = named.display().to_string();
        }
        Ok(side)
    }
}

/// What was measured by turns.
pub(super) struct Measured {
    pub(super) compared: Compared,
    /// What each left in its first run, which says where and with what both were measured.
    pub(super) first: [Results; 2],
    pub(super) end: End,
}

/// Measures both until each row is decided or the time is over. `check` refuses what their first runs say.
pub(super) fn measure(
    sides: &[impl OneSide; 2],
    scratch: &Scratch,
    tolerance: Tolerance,
    time: Duration,
    check: impl FnOnce(&Results, &Results) -> anyhow::Result<()>,
) -> anyhow::Result<Measured> {
    let forward = Forward::listen()?;
    let files = ["a.json", "b.json"].map(|name| scratch.path().join(name));
    let mut turns = Turns { sides, files, orders: drawn_orders(), results: [None, None], forward };
    let begun = Instant::now();
    note!("pair 1 of runs; the first look takes {FIRST_LOOK}");
    turns.pair(&[])?;
    let [Some(a), Some(b)] = turns.results.clone() else {
        alert!("nothing was measured by both");
        return Err(AlreadyReported(End::Interrupted).into());
    };
    check(&a, &b)?;
    let first = [a, b];
    let (mut pairs, mut latest, mut end) = (1, begun.elapsed(), End::Well);
    let mut compared: Option<Compared> = None;
    loop {
        let open: Vec<String> = compared.iter().flat_map(Compared::open).map(|pair| pair.id.clone()).collect();
        if compared.is_some() && open.is_empty() {
            break;
        }
        if begun.elapsed() + latest > time {
            note!("the time leaves none for another pair of runs");
            break;
        }
        let rows = if compared.is_some() { format!("; open rows: {}", open.len()) } else { String::new() };
        note!("pair {} of runs{rows}", pairs + 1);
        let start = Instant::now();
        if let Err(error) = turns.pair(&open) {
            alert!("error: {}; what was measured before stands", told(&error));
            end = End::Failed;
            break;
        }
        if turns.forward.is_interrupted() {
            end = End::Interrupted;
            break;
        }
        (pairs, latest) = (pairs + 1, start.elapsed());
        if Compared::is_next_look(compared.as_ref(), pairs) {
            compared = turns.look(tolerance, compared);
        }
    }
    if compared.as_ref().is_none_or(|compared| compared.runs.iter().all(|runs| *runs < pairs)) {
        compared = turns.look(tolerance, compared);
    }
    let compared = compared.context("nothing was measured by both")?;
    Ok(Measured { compared, first, end })
}

/// The runs of both, as they are measured by turns.
struct Turns<'a, S, O> {
    sides: &'a [S; 2],
    files: [PathBuf; 2],
    /// Which of both is first in each pair.
    orders: O,
    results: [Option<Results>; 2],
    forward: Forward,
}

impl<S: OneSide, O: Iterator<Item = [usize; 2]>> Turns<'_, S, O> {
    /// Measures a run of each: of these rows, or of all where none is named.
    fn pair(&mut self, only: &[String]) -> anyhow::Result<()> {
        for side in self.orders.next().unwrap_or([0, 1]) {
            self.sides[side].next(&mut self.results[side], &self.files[side], only, &self.forward)?;
            if self.forward.is_interrupted() {
                break;
            }
        }
        Ok(())
    }

    fn look(&self, tolerance: Tolerance, before: Option<Compared>) -> Option<Compared> {
        let [Some(a), Some(b)] = &self.results else { return before };
        Some(look(a, b, tolerance, before.as_ref()))
    }
}
