//! What a reader should know before trusting a run's figures.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use crate::in_order::listed;
use crate::results::{
    Catalog, ExperimentRun, MEASURING_CODE, Recomputation, Results, Row, Run, RunOutcome, TelemetrySample, code_of,
    code_of_system, in_another_unit,
};
use crate::units::counted;

/// Something that limits what a run's figures say. Its text gives the cause and the remedy.
#[derive(Clone, Debug, PartialEq)]
pub struct Warning {
    /// What it is about.
    pub about: WarningSubject,
    text: String,
}

/// What a warning is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarningSubject {
    /// Another program measured than one of this code that was built from a commit.
    Code,
    /// Another process used the device.
    Sharing,
    /// What the runs left, and how.
    Run,
}

impl Warning {
    fn new(about: WarningSubject, text: impl Into<String>) -> Self {
        Self { about, text: text.into() }
    }

    /// All warnings about a file, those about the program first, then in the order of the experiments.
    pub fn of(results: &Results) -> Vec<Self> {
        const DEBUG: &str =
            "The program was built without optimisation: host times are too long. Build it with `--release`.";
        const DIRTY: &str = "The program was built from a checkout with uncommitted changes: the commit does not tell what ran. \
                             Commit and run again.";
        let environment = results.environment();
        let is_debug = environment.program.profile.as_deref() == Some("debug");
        let of_code = [(is_debug, DEBUG), (environment.program.dirty == Some(true), DIRTY)];
        let of_code = of_code.into_iter().filter(|(is_so, _)| *is_so);
        let mut warnings: Vec<Self> = of_code.map(|(_, text)| Self::new(WarningSubject::Code, text)).collect();
        let mut of_run = |text: String| warnings.push(Self::new(WarningSubject::Run, text));
        if let Some(reason) = &environment.cuda_unavailable {
            of_run(format!("CUDA could not be used: {reason}"));
        }
        for Run { id, .. } in results.runs.iter().filter(|run| run.outcome == RunOutcome::Failed) {
            of_run(format!(
                "The process of the run {id} ended before its time: rows have its samples as far as it came, and those of \
                 the other runs."
            ));
        }
        for (run, rows, of) in interrupted(results) {
            of_run(format!(
                "The run {run} was interrupted: {rows} of {of} rows hold fewer of its samples than its plan asks for, or \
                 none. Resume it (`--resume`)."
            ));
        }
        let Recomputation { contradictions, unchecked } = results.recompute();
        if let Some(first) = contradictions.first() {
            let rows = counted(contradictions.len(), "computed row");
            of_run(format!("The file contradicts itself in {rows}: {first}. Take it anew from where it was measured."));
        }
        if let Some(first) = unchecked.first() {
            of_run(format!(
                "{} cannot be computed again: the file does not say from which rows, or does not hold them. The first is \
                 {first}.",
                counted(unchecked.len(), "computed row")
            ));
        }
        warnings.extend(Self::of_experiments(results, &results.experiments()));
        for system in results.systems().into_iter().skip(1) {
            let facts = results.runs_of(system).flat_map(|run| run.environment.facts());
            let mut codes = facts.filter(|(name, _)| name == MEASURING_CODE).map(|(_, code)| code.as_str());
            if code_of_system(system).is_some_and(|now| codes.any(|then| then != now)) {
                let [before, after] = OUTDATED;
                warnings.push(Self::new(WarningSubject::Code, format!("{before}the rows of {system}{after}")));
            }
        }
        warnings
    }

    /// That rows of a file are in units of another kind than those that `catalog` declares, where they are.
    pub fn of_units(results: &Results, catalog: &Catalog) -> Option<Self> {
        let reason = |row: &Row| in_another_unit(&row.spec, catalog.get(&row.spec.id)?.unit);
        let mut reasons = results.rows.iter().filter_map(reason);
        let first = reasons.next()?;
        let text = format!(
            "The file has {} in another unit than it was declared with: {first}. It is shown as the file has it, and \
             neither drawn beside other rows nor set against published figures and claims. Take the file anew from \
             where it was measured.",
            counted(1 + reasons.count(), "row")
        );
        Some(Self::new(WarningSubject::Run, text))
    }

    /// What the runs say of each of these experiments.
    pub(super) fn of_experiments(results: &Results, names: &[&str]) -> Vec<Self> {
        let (mut ran, mut sensed) =
            (HashMap::<&str, Vec<&ExperimentRun>>::new(), HashMap::<&str, Vec<Sensed<'_>>>::new());
        for run in results.runs_of(&results.run().system) {
            run.order.iter().for_each(|left| ran.entry(&left.name).or_default().push(left));
            for (name, samples) in run.telemetry_by_experiment() {
                sensed.entry(name).or_default().push(samples);
            }
        }
        let engine = &results.environment().device.engine;
        let (lookup, mut held) = (results.lookup(), HashMap::<&str, BTreeSet<&str>>::new());
        lookup.rows().for_each(|row| held.entry(row.spec.experiment()).or_default().extend(lookup.held_back(row)));
        let about = |name: &str| {
            let (ran, sensed) = (ran.get(name), sensed.get(name));
            let held: Vec<&str> = held.get(name).into_iter().flatten().copied().collect();
            Self::about((name, engine), ran.map_or(&[], Vec::as_slice), sensed.map_or(&[], Vec::as_slice), &held)
        };
        // What holds for several experiments is said once.
        let mut found: Vec<(WarningSubject, [String; 2], Vec<&str>)> = Vec::new();
        for (name, (subject, words)) in
            names.iter().flat_map(|name| about(name).into_iter().map(move |one| (name, one)))
        {
            match found.iter_mut().find(|(of, known, _)| (*of, known) == (subject, &words)) {
                Some((.., names)) => names.push(name),
                None => found.push((subject, words, vec![name])),
            }
        }
        let said = |(about, [before, after], names): (WarningSubject, [String; 2], Vec<&str>)| {
            Self::new(about, format!("{before}{}{after}", listed(&names)))
        };
        found.into_iter().map(said).collect()
    }

    /// What the runs say of one experiment, in the words before and behind its name: those in which it ran, what the sensors
    /// said in each run, and what held back the clocks while a row was measured.
    fn about(
        (name, engine): (&str, &str),
        ran: &[&ExperimentRun],
        sensed: &[Sensed<'_>],
        held: &[&str],
    ) -> Vec<(WarningSubject, [String; 2])> {
        use WarningSubject::{Code, Run, Sharing};
        let mut warnings = Vec::new();
        let mut warn = |about, before: &str, after: String| warnings.push((about, [before.to_owned(), after]));
        if let Some(reason) = ran.iter().find_map(|left| left.failure.as_ref()) {
            warn(Run, "The experiment ", format!(" failed; the rows it had left are kept. {reason}"));
        }
        let mut codes = ran.iter().filter_map(|left| left.code.as_deref());
        if code_of(name, engine).is_some_and(|now| codes.any(|then| then != now)) {
            warn(Code, OUTDATED[0], OUTDATED[1].to_owned());
        }
        if !held.is_empty() {
            let marked = format!(
                " ({}): their times may be too long, and those of syncscope are marked. Let it cool, or lock its clocks, and run again.",
                held.join(", ")
            );
            warn(Run, "The device held its clocks back within rows of ", marked);
        }
        let others = sensed.iter().flatten().filter_map(|sample| sample.sensors.other_processes).max().unwrap_or(0);
        // What an experiment has the driver manage is listed as nobody's, too, and is gone when it ends.
        let ends = sensed.iter().flat_map(|samples| [samples.first(), samples.last()].into_iter().flatten());
        let unseen = ends.filter_map(|sample| sample.sensors.unlisted_bytes).max().unwrap_or(0);
        if others > 0 {
            let who = if others == 1 { "another process".to_owned() } else { format!("{others} other processes") };
            let end =
                ": times may be too long, and scatter. End what else uses it (`nvidia-smi` names it), and run again.";
            warn(Sharing, &format!("The device was shared with {who} around "), end.to_owned());
        } else if unseen > 0 {
            let held = unseen as f64 / 1e9;
            let by = " by no process that the driver lists here, as by one of another container: times may be too long, and \
                      scatter. End what else uses the device, and run again.";
            warn(Sharing, &format!("{held:.1} GB of the device's memory were held around "), by.to_owned());
        }
        warnings
    }
}

/// Before and behind what was measured by other code than that of today.
const OUTDATED: [&str; 2] = ["The code that measures ", " has changed since: a run of today may give other values."];

/// What the sensors said around an experiment in one run.
type Sensed<'a> = Vec<&'a TelemetrySample>;

/// The runs that are not over, of how many rows of their system an interrupt left less than was planned, and how many there are.
fn interrupted(results: &Results) -> Vec<(&str, usize, usize)> {
    let mut left: HashMap<&str, (usize, usize)> = HashMap::new();
    for system in results.systems() {
        let lookup = results.lookup_of(system);
        let of = lookup.rows().count();
        for (run, outcome) in lookup.rows().flat_map(|row| lookup.outcomes(row)) {
            let (open, _) = left.entry(run).or_insert((0, of));
            *open += usize::from(outcome.is_none_or(|outcome| !outcome.is_finished()));
        }
    }
    let open = results.runs.iter().filter(|run| !run.is_over());
    let cut = open.filter_map(|run| left.get(run.id.as_str()).map(|(rows, of)| (run.id.as_str(), *rows, *of)));
    cut.filter(|(_, rows, _)| *rows > 0).collect()
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::nothing;
    use super::*;
    use crate::results::{ExperimentRun, MetricSpec, Outcome, Parameters, Provenance, Series, TelemetrySample};
    use crate::results::{code_of, code_of_system, declare_code};
    use crate::units::Unit;
    use syncscope::device::Telemetry;

    #[test]
    fn a_row_in_another_unit_than_it_was_declared_with_is_named() {
        let spec = |unit| MetricSpec {
            id: "a.b".to_owned(),
            group: "G".to_owned(),
            label: "L".to_owned(),
            unit,
            parameters: Parameters::new(),
            provenance: Provenance::measured(crate::measure::Clock::Observed),
            work: None,
            floor: None,
        };
        let catalog = Catalog::new([spec(Unit::Seconds)]);
        let warned = |unit| {
            let mut results = nothing();
            results.rows = vec![Row { spec: spec(unit), series: Vec::new() }].into();
            Warning::of_units(&results, &catalog).map(|warning| warning.to_string())
        };
        assert_eq!(warned(Unit::Seconds), None);
        let text = warned(Unit::Bytes).unwrap();
        assert!(text.contains("1 row in another unit") && text.contains("`a.b` is in bytes in the results"), "{text}");
    }

    #[test]
    fn a_run_that_was_interrupted_before_rows_of_other_runs_is_named() {
        let mut results = nothing();
        let (mut second, provenance) = (results.runs[0].clone(), Provenance::measured(crate::measure::Clock::Host));
        (second.id, second.outcome) = ("syncscope-2".to_owned(), RunOutcome::Interrupted);
        results.runs.push(second);
        let spec = MetricSpec {
            id: "a.b".to_owned(),
            group: String::new(),
            label: String::new(),
            unit: crate::units::Unit::Seconds,
            parameters: Parameters::new(),
            provenance,
            work: None,
            floor: None,
        };
        let series = |run: &str| Series { run: run.to_owned(), outcome: Outcome::Skipped { reason: "R".to_owned() } };
        results.rows = vec![Row { spec, series: vec![series("syncscope-1")] }].into();
        let warnings: Vec<String> = Warning::of(&results).iter().map(ToString::to_string).collect();
        assert!(
            warnings.len() == 1 && warnings[0].starts_with("The run syncscope-2 was interrupted: 1 of 1"),
            "{warnings:?}"
        );
        results.rows[0].series.push(series("syncscope-2"));
        assert_eq!(Warning::of(&results), []);
    }

    #[test]
    fn another_process_on_the_device_is_said() {
        let mut results = nothing();
        let sample = |other_processes| {
            let sensors = Telemetry { other_processes, ..Telemetry::default() };
            TelemetrySample { at: None, experiment: "a".to_owned(), sensors, host_mhz: None }
        };
        let (name, summary) = ("a".to_owned(), String::new());
        results.runs[0].order = vec![ExperimentRun { name, summary, duration: 1.0, code: None, failure: None }];
        results.runs[0].telemetry = vec![sample(None), sample(Some(0))];
        assert_eq!(Warning::of(&results), []);
        results.runs[0].telemetry.push(sample(Some(2)));
        let warnings: Vec<String> = Warning::of(&results).iter().map(ToString::to_string).collect();
        assert!(warnings.len() == 1 && warnings[0].contains("shared with 2 other processes around a"), "{warnings:?}");
        let held = |bytes| {
            let sensors = Telemetry { other_processes: Some(0), unlisted_bytes: Some(bytes), ..Telemetry::default() };
            TelemetrySample { at: None, experiment: "a".to_owned(), sensors, host_mhz: None }
        };
        results.runs[0].telemetry = vec![held(0), held(5 << 30)];
        let warnings: Vec<String> = Warning::of(&results).iter().map(ToString::to_string).collect();
        assert!(warnings.len() == 1 && warnings[0].contains("5.4 GB of the device's memory"), "{warnings:?}");
        // What came and went within an experiment was its own.
        results.runs[0].telemetry.push(held(0));
        assert_eq!(Warning::of(&results), []);
    }

    #[test]
    fn results_of_other_code_are_told_from_those_of_this_program() {
        declare_code("launch-path cpu=1;launch-path cuda=1;PyTorch=1");
        let mut results = nothing();
        let of_other_code =
            |results: &Results| Warning::of(results).iter().any(|warning| warning.about == WarningSubject::Code);
        let (name, code) =
            ("launch-path".to_owned(), code_of("launch-path", &results.environment().device.engine).map(str::to_owned));
        results.runs[0].order =
            vec![ExperimentRun { name, summary: String::new(), duration: 1.0, code, failure: None }];
        assert!(!of_other_code(&results));
        let mut changed = results.clone();
        changed.runs[0].order[0].code = Some("0".repeat(16));
        assert!(of_other_code(&changed));
        results.runs[0].environment.program.dirty = Some(true);
        assert!(of_other_code(&results));
    }

    #[test]
    fn another_system_that_other_code_measured_is_named() {
        declare_code("launch-path cpu=1;launch-path cuda=1;PyTorch=1");
        let mut results = nothing();
        let mut other = results.runs[0].clone();
        other.system = "PyTorch".to_owned();
        results.runs.push(other);
        let mut warned = |code: &str| {
            results.runs[1].environment.program.facts = vec![(MEASURING_CODE.to_owned(), code.to_owned())];
            Warning::of(&results).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(warned(code_of_system("PyTorch").unwrap()), Vec::<String>::new());
        let warnings = warned("0");
        assert!(warnings.len() == 1 && warnings[0].contains("rows of PyTorch has changed"), "{warnings:?}");
    }
}
