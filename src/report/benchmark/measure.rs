//! One run: the functions of each group, sampled by turns.

use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use serde_json::json;

use super::super::processes::command_line;
use super::{Benchmarks, Function};
use crate::measure::{Case, Clock, Protocol, Sampler};
use crate::results::{
    Environment, ExperimentRun, MetricSpec, Outcome, Parameters, Plan, Provenance, Results, Row, RunOutcome, Selection,
    Series, grouped,
};
use crate::runner::empty_results;
use crate::units::Unit;
use syncscope::device::Device;

/// Samples of a function in a run, and the seconds after which fewer are enough.
const SAMPLES: usize = 50;
const TIME_LIMIT: f64 = 1.0;

impl<'a> Benchmarks<'a> {
    /// Measures a run and puts it to those in `file`, or into a new file.
    pub(super) fn measure_next(self, file: &Path) -> anyhow::Result<()> {
        let name = self.name.clone();
        let begun = Instant::now();
        let suite = json!({ "title": name, "sampling": protocol() });
        let mut empty = empty_results(suite, Selection::default(), Plan::default(), environment(&name)?);
        let mut run = empty.runs.remove(0);
        let mut results = if file.exists() { Results::read(file)? } else { empty };
        let number = results.runs.len() + 1;
        run.id = format!("{name}-{number}");
        let mut rows = Vec::new();
        let protocol = protocol().with_seed(number as u64);
        for group in self.groups(number) {
            rows.extend(sampled(group, &protocol, &run.id, begun, &name, &results)?);
        }
        let summary = format!("What the functions of {name} take");
        let duration = begun.elapsed().as_secs_f64();
        run.order = vec![ExperimentRun { name: name.clone(), summary, duration, code: None, failure: None }];
        (run.system, run.outcome) = (name, RunOutcome::Complete);
        // All runs are of one program on one machine.
        if let Some(first) = results.runs.first() {
            run.environment = first.environment.clone();
        }
        results.runs.push(run);
        results.plan.runs = u32::try_from(number).unwrap_or(u32::MAX);
        results.merge(rows);
        Ok(results.write(file)?)
    }

    /// The functions by their headings; each run begins with another group.
    fn groups(self, number: usize) -> Vec<Vec<Function<'a>>> {
        let of_headings = grouped(self.functions.into_iter().map(|function| (function.heading.clone(), function)));
        let mut groups: Vec<_> = of_headings.into_iter().map(|(_, functions)| functions).collect();
        let first = number % groups.len().max(1);
        groups.rotate_left(first);
        groups
    }
}

fn protocol() -> Protocol {
    Protocol::samples(SAMPLES).with_time_limit(TIME_LIMIT)
}

/// Where and with what the run is made: the program is the user's.
fn environment(name: &str) -> anyhow::Result<Environment> {
    let device = Device::open("cpu:0").context("the host as a device")?;
    let mut environment = crate::device::environment(&device, command_line());
    let program = &mut environment.program;
    program.libraries =
        vec![(std::mem::replace(&mut program.name, name.to_owned()), std::mem::take(&mut program.version))];
    // Cargo tells it to what it runs.
    program.version = std::env::var("CARGO_PKG_VERSION").unwrap_or_else(|_| "unknown".to_owned());
    (program.commit, program.dirty) = (None, None);
    Ok(environment)
}

/// Samples a group by turns.
fn sampled(
    group: Vec<Function<'_>>,
    protocol: &Protocol,
    run: &str,
    begun: Instant,
    name: &str,
    results: &Results,
) -> anyhow::Result<Vec<Row>> {
    let (mut specs, mut cases) = (Vec::new(), Vec::new());
    for Function { heading, case } in group {
        let spec = spec(name, heading, &case);
        // The calls of a sample are those of the first run: so the runs are of one measurement.
        let known = results.rows.iter().find(|row| row.spec.is(&spec.id, &spec.parameters));
        cases.push(match known.map(|row| &row.spec.provenance) {
            Some(Provenance::Measured { iterations, .. }) => {
                let calls = usize::try_from(*iterations).unwrap_or(usize::MAX) / case.iterations().max(1);
                case.with_calls(calls)
            }
            _ => case,
        });
        specs.push(spec);
    }
    let by: Vec<usize> = cases.iter().map(Case::iterations).collect();
    let rounds = Sampler::new(protocol.clone()).sample(cases)?;
    let calls = rounds.calls.clone();
    let outcomes = Outcome::of_rounds(rounds, begun);
    let rows = specs.into_iter().zip(outcomes).zip(calls.into_iter().zip(by));
    Ok(rows
        .map(|((mut spec, outcome), (calls, by))| {
            if let Provenance::Measured { iterations, .. } = &mut spec.provenance {
                *iterations = (calls * by) as u64;
            }
            Row { spec, series: vec![Series { run: run.to_owned(), outcome }] }
        })
        .collect())
}

fn spec(name: &str, group: String, case: &Case<'_>) -> MetricSpec {
    let unit = if case.clock() == Clock::Observed { Unit::Number } else { Unit::Seconds };
    MetricSpec {
        id: format!("{name}.{}", case.name()),
        group,
        label: case.name().to_owned(),
        unit,
        parameters: Parameters::new(),
        provenance: Provenance::measured(case.clock()),
        work: None,
        floor: None,
    }
}
