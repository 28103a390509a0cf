//! What a run of a suite will do, on each engine, and how long it may take.

use std::time::Duration;

use serde::Serialize;

use super::terminal;
use super::{AppContext, UsageError, output};
use crate::measure::Protocol;
use crate::results::{LONGEST_FILE, MAX_RUNS, MetricSpec, grouped};
use crate::runner::{ENGINES, Length, Suite, bytes, length, planned};
use crate::units::counted;

/// A sample that is longer than this cannot be waited for: Ctrl-C ends a run after a sample.
const LONG_SAMPLE: Duration = Duration::from_secs(10);

/// A suite that is longer than this on one machine is a matter of planning.
const LONG_SUITE: Duration = Duration::from_secs(30 * 60);

/// What a suite will do.
#[derive(Serialize)]
pub(super) struct Planned {
    suite: String,
    device: String,
    runs: u32,
    engines: Vec<OnEngine>,
}

/// What it will do on the devices of one engine.
#[derive(Serialize)]
struct OnEngine {
    engine: &'static str,
    experiments: Vec<Chosen>,
    /// The sampling of all runs, at most, in seconds; by rough rates of a small machine.
    seconds: f64,
    warnings: Vec<String>,
}

/// An experiment that runs.
#[derive(Serialize)]
struct Chosen {
    name: String,
    rows: usize,
    /// Whether the suite names it; else it is one of every run, or of a suite with `all`.
    named: bool,
}

impl Planned {
    /// What the suite of this name will do; refused is one whose results no file can hold.
    pub(super) fn of(name: &str, suite: &Suite, carried: &AppContext) -> Result<Self, UsageError> {
        let engines = ENGINES.into_iter().filter(|engine| suite.may_run_on(engine));
        let engines = engines.map(|engine| OnEngine::of(suite, engine, carried)).collect::<Result<_, UsageError>>();
        let engines = engines.map_err(|UsageError(why)| UsageError(format!("{name}: {why}")))?;
        Ok(Self { suite: name.to_owned(), device: suite.device.clone(), runs: suite.runs.get(), engines })
    }

    /// Says it.
    pub(super) fn say(&self) {
        say!("{}: good.", self.suite);
        self.engines.iter().for_each(|own| own.say(self.runs));
    }
}

impl OnEngine {
    fn of(suite: &Suite, engine: &'static str, carried: &AppContext) -> Result<Self, UsageError> {
        let rows = planned(suite, &carried.registry, engine);
        let chosen = |(name, rows): (&str, Vec<_>)| Chosen {
            name: name.to_owned(),
            rows: rows.len(),
            named: suite.names(name, engine),
        };
        let experiments = grouped(rows.iter().map(|spec| (spec.experiment(), ()))).into_iter().map(chosen).collect();
        let length = length(&rows, &suite.sampling, engine);
        let seconds = length.run.as_secs_f64() * f64::from(suite.runs.get());
        let mut warnings = warnings(&length, seconds);
        warnings.extend(check_size(&rows, &suite.sampling, suite.runs.get() as usize)?);
        Ok(Self { engine, experiments, seconds, warnings })
    }

    fn say(&self, runs: u32) {
        let list = |named: bool| {
            let own = self.experiments.iter().filter(|experiment| experiment.named == named);
            own.map(|own| format!("{} ({})", own.name, counted(own.rows, "row"))).collect::<Vec<_>>().join(", ")
        };
        let place = if self.engine == "cpu" { "on the CPU engine" } else { "on a GPU" };
        let unnamed = list(false);
        let unnamed = if unnamed.is_empty() { unnamed } else { format!("; not named, and run: {unnamed}") };
        let (times, most) = (if runs == 1 { "run" } else { "runs" }, words(self.seconds));
        say!("  {place}, {runs} {times}, sampling at most about {most}: {}{unnamed}", list(true));
        self.warnings
            .iter()
            .for_each(|warning| output::message(&format!("  warning: {warning}"), Some(terminal::WARNING)));
    }
}

/// Refuses so many runs, of all systems, where no results file can hold their samples; says where one may not.
pub(super) fn check_size(rows: &[MetricSpec], sampling: &Protocol, runs: usize) -> Result<Option<String>, UsageError> {
    if runs > MAX_RUNS {
        return Err(UsageError(format!("{runs} runs are more than {MAX_RUNS}, the most of a results file")));
    }
    let [fewest, most] = bytes(rows, sampling, runs).map(|bytes| bytes.ceil() as usize);
    let megabytes = |bytes: usize| bytes.div_ceil(1 << 20);
    let (counted_runs, counted_rows) = (counted(runs, "run"), counted(rows.len(), "row"));
    let of = |bytes| {
        let (bytes, limit) = (megabytes(bytes), megabytes(LONGEST_FILE));
        format!("{bytes} MB of results, and {limit} MB are the most of a file: take fewer samples, runs or rows")
    };
    match fewest > LONGEST_FILE {
        true => Err(UsageError(format!("{counted_runs} of {counted_rows} leave {}", of(fewest)))),
        false => Ok((most > LONGEST_FILE).then(|| {
            format!(
                "{counted_runs} of {counted_rows} may leave up to {}; a run that does not fit is not begun",
                of(most)
            )
        })),
    }
}

/// What is said of a run that takes long.
fn warnings(length: &Length, seconds: f64) -> Vec<String> {
    let sample = length.longest.as_ref().filter(|(_, sample)| *sample > LONG_SAMPLE).map(|(title, sample)| {
        let sample = words(sample.as_secs_f64());
        format!("a single sample of {title} may take {sample}, and no run ends within one: take smaller sizes")
    });
    let suite = (seconds > LONG_SUITE.as_secs_f64()).then(|| {
        format!("it may take {}: `--budget 9m` ends it between two runs, fewer runs or --only sooner", words(seconds))
    });
    sample.into_iter().chain(suite).collect()
}

/// A time to one digit or two.
fn words(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 90.0 => format!("{:.0} s", seconds.max(1.0)),
        seconds if seconds < 5400.0 => format!("{:.0} min", seconds / 60.0),
        seconds => format!("{:.0} h", seconds / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_said_in_the_unit_that_fits() {
        assert_eq!([0.2, 75.0, 100.0, 7200.0].map(words), ["1 s", "75 s", "2 min", "2 h"]);
    }

    #[test]
    fn results_too_large_for_a_file_are_refused_and_large_ones_warned_of() {
        let registry = crate::experiment::Registry::builtin();
        let rows = registry.plan("cpu");
        let checked = |sampling: Protocol, runs| check_size(&rows[..2], &sampling, runs);
        let refused = checked(Protocol::samples(65_535), 30).unwrap_err().0;
        assert!(
            refused.starts_with("30 runs of 2 rows leave ") && refused.contains("256 MB are the most"),
            "{refused}"
        );
        assert!(
            checked(Protocol::samples(65_535).with_time_limit(1.0), 30).unwrap().unwrap().contains("may leave up to")
        );
        assert!(checked(Protocol::samples(30), 30).unwrap().is_none());
        assert!(checked(Protocol::samples(1), MAX_RUNS + 1).is_err());
    }

    #[test]
    fn a_sample_that_cannot_be_waited_for_is_warned_of() {
        let length = |seconds| {
            let longest = Some(("a.b".to_owned(), Duration::from_secs(seconds)));
            Length { run: Duration::from_secs(10 * seconds), longest }
        };
        assert!(warnings(&length(1), 30.0).is_empty());
        let long = warnings(&length(600), 6000.0);
        assert!(long.len() == 2 && long[0].contains("a.b may take 10 min"), "{long:?}");
    }
}
