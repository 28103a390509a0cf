//! How long a run of a suite may take, before it has begun.
//!
//! # Method
//! The rows of a group are sampled together. A group takes its warm-up and then its samples or its time limit, but at least
//! as many rounds as the sampling says are the fewest. A round takes what the work in its rows takes at the rates below.
//!
//! # Limits
//! The rates are those of a small machine, and rows that do not say what work lies in them count as none. So this tells
//! seconds from minutes and minutes from hours, and no more. Setting up and recording are not in it.
//! How long its results file will be follows from the samples alone.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::time::Duration;

use crate::measure::Protocol;
use crate::results::{Limit, MetricSpec, Provenance, in_words};

/// How long a run may take.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Length {
    /// The sampling of one run, at most.
    pub run: Duration,
    /// The row with the longest sample, by its title, and how long that takes.
    pub longest: Option<(String, Duration)>,
}

/// How long one run of these rows may take on a device of `engine`.
pub fn length(rows: &[MetricSpec], sampling: &Protocol, engine: &str) -> Length {
    let mut groups: BTreeMap<(&str, &str, String), Vec<f64>> = BTreeMap::new();
    let mut longest: Option<(String, f64)> = None;
    for spec in rows {
        let Some(seconds) = sample(spec, engine) else { continue };
        groups.entry((spec.experiment(), &spec.group, in_words(&spec.parameters))).or_default().push(seconds);
        if longest.as_ref().is_none_or(|(_, most)| seconds > *most) {
            longest = Some((spec.title(), seconds));
        }
    }
    let seconds: f64 = groups.values().map(|rows| of_group(rows, sampling)).sum();
    let longest = longest.map(|(title, seconds)| (title, duration(seconds)));
    Length { run: duration(seconds), longest }
}

/// `rows` are sampled together: how long a sample of each takes.
fn of_group(rows: &[f64], sampling: &Protocol) -> f64 {
    let round: f64 = rows.iter().sum();
    let count = |samples: usize| samples as f64 * round;
    let all = sampling.samples.map(|samples| count(samples.get()));
    let passes = sampling.all_passes() / sampling.stride(round);
    let warmup: usize = (0..passes).map(|pass| sampling.of_pass(pass).warmup).sum();
    let least = count(sampling.least_rounds());
    let sampled = match (all, sampling.time_limit_of(rows.len())) {
        // Where the time of a round is not known, the limit is assumed.
        (Some(all), Some(limit)) if round > 0.0 => all.min(limit.max(least)),
        (Some(all), None) => all,
        (_, Some(limit)) => limit.max(least),
        (None, None) => count(Protocol::MAXIMUM),
    };
    count(warmup) + sampled
}

/// How long a sample takes; `None` of a row that is computed.
fn sample(spec: &MetricSpec, engine: &str) -> Option<f64> {
    let Provenance::Measured { iterations, .. } = spec.provenance else { return None };
    let work = spec.work.as_ref().map_or(0.0, |work| work.amount / rate(work.limit, engine));
    Some(work * iterations as f64)
}

/// The fewest and the most bytes of a results file of so many runs of these rows. What the sensors say is not in it.
pub fn bytes(rows: &[MetricSpec], sampling: &Protocol, runs: usize) -> [f64; 2] {
    /// Of a sample, which has a line for each of its parts: a value, and of a measured one its place, its start and how slow
    /// the host was.
    const VALUE: f64 = 42.0;
    const MEASURED: f64 = VALUE + 82.0;
    /// Of what else a run says, and of what it says of a row.
    const RUN: f64 = 65536.0;
    const ROW: f64 = 400.0;
    let all = sampling.samples.map_or(Protocol::MAXIMUM, NonZeroUsize::get);
    let has_all = sampling.samples.is_some() && sampling.time_limit.is_none() && sampling.relative_error.is_none();
    let fewest = if has_all { all } else { all.min(sampling.least_rounds()) };
    // Those of a warm-up are up to three times as many.
    let warmups = [sampling.warmup, 3 * (sampling.warmup + sampling.all_passes())];
    [0, 1].map(|most| {
        let of_row = |spec: &MetricSpec| {
            let count = [fewest, all][most] as f64;
            match spec.provenance {
                Provenance::Measured { .. } => ROW + count * MEASURED + warmups[most] as f64 * VALUE,
                Provenance::Derived { .. } => ROW + count * VALUE,
            }
        };
        runs as f64 * (RUN + rows.iter().map(of_row).sum::<f64>())
    })
}

/// What a small machine does in a second.
fn rate(limit: Limit, engine: &str) -> f64 {
    match (engine, limit) {
        ("cpu", Limit::Matmul) => 1e10,
        ("cpu", Limit::Copy | Limit::ToDevice | Limit::ToHost) => 2e9,
        (_, Limit::Matmul) => 2e13,
        (_, Limit::Copy) => 2e11,
        (_, Limit::ToDevice | Limit::ToHost) => 5e9,
        (_, Limit::Launch) => 1e5,
    }
}

fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;
    use crate::measure::{Clock, StoppedBy};
    use crate::results::{Environment, Outcome, Plan, Row, Selection, Series, Work};
    use crate::runner::empty_results;
    use crate::units::Unit;

    fn matmul(size: f64, iterations: u64) -> MetricSpec {
        let provenance = Provenance::Measured { clock: Clock::Host, iterations };
        let work = Some(Work::matmul(2.0 * size.powi(3), "2 · size³"));
        let [id, group, label] = ["a.b", "G", "B"].map(str::to_owned);
        MetricSpec { id, group, label, unit: Unit::Seconds, parameters: [].into(), provenance, work, floor: None }
    }

    #[test]
    fn a_matmul_of_gpus_takes_minutes_on_a_host_and_a_time_limit_cuts_no_sample() {
        let sampling = Protocol::samples(10).with_warmup(0).with_time_limit(0.5);
        let large = length(&[matmul(8192.0, 10)], &sampling, "cpu");
        let (_, sample) = large.longest.unwrap();
        assert!(sample > Duration::from_secs(600) && large.run >= sample * 6, "{:?}", large.run);
        assert!(length(&[matmul(8192.0, 10)], &sampling, "cuda").run < Duration::from_secs(30));
        let small = length(&[matmul(128.0, 10), matmul(128.0, 10)], &sampling, "cpu");
        assert!(small.run < Duration::from_millis(500), "{:?}", small.run);
    }

    #[test]
    fn a_results_file_is_no_longer_than_is_foretold_of_its_samples() {
        let spec = matmul(8.0, 1);
        let sampling = |samples| Protocol::samples(samples).with_warmup(0);
        let text = |samples: usize| {
            let mut outcome = Outcome::of_samples(vec![-1.234_567_890_123_456_7e-300; samples], StoppedBy::Samples);
            for sample in &mut outcome.measured_mut().unwrap().samples {
                (sample.order, sample.started) = (Some(9999), Some(86_399.123_456_789));
                sample.slowdown = Some(100.25);
            }
            let environment = Environment::now(&Device::open("cpu:0").unwrap(), Vec::new());
            let mut results = empty_results("suite".into(), Selection::default(), Plan::default(), environment);
            results.rows =
                vec![Row { spec: spec.clone(), series: vec![Series { run: "r".to_owned(), outcome }] }].into();
            results.to_content("r.json".as_ref()).unwrap().len() as f64
        };
        let foretold = |samples| bytes(std::slice::from_ref(&spec), &sampling(samples), 1);
        assert!(
            text(1000) <= foretold(1000)[0] && text(1000) - text(500) > 0.9 * (foretold(1000)[0] - foretold(500)[0])
        );
        let [fewest, most] = bytes(std::slice::from_ref(&spec), &sampling(1000).with_time_limit(1.0), 3);
        assert!(fewest < 0.1 * most + 3.0 * 65536.0 && most >= 3.0 * foretold(1000)[0]);
    }
}
