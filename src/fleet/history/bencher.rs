//! The newest values of a history in Bencher's metric format (<https://bencher.dev/docs/reference/bencher-metric-format/>):
//! benchmark, measure, value with its bounds. A time is Bencher's `latency`, in nanoseconds.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::series::{History, RowHistory};
use crate::files::read_text;
use crate::units::Unit;

/// The most bytes of such a file that are read.
const MOST: usize = 64 << 20;

type Benchmarks<'a> = BTreeMap<String, BTreeMap<Cow<'a, str>, Metric>>;

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Metric {
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lower_value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper_value: Option<f64>,
}

/// What the last file of each machine says of each row. With several machines a benchmark is called by its machine, too.
///
/// # Errors
/// A value is no number that JSON has.
pub fn bencher(history: &History) -> serde_json::Result<String> {
    let mut benchmarks = Benchmarks::new();
    for machine in &history.machines {
        for track in &machine.tracks {
            let last = track.values.last().filter(|value| value.entry + 1 == machine.entries.len());
            let Some(value) = last else { continue };
            let name = match history.machines.len() {
                1 => track.title.clone(),
                _ => format!("{}: {}", machine.name, track.title),
            };
            let (measure, factor) = measure(track);
            let [lower_value, upper_value] =
                [value.interval.map(|(low, _)| low * factor), value.interval.map(|(_, high)| high * factor)];
            let metric = Metric { value: value.median * factor, lower_value, upper_value };
            benchmarks.entry(name).or_default().insert(measure.into(), metric);
        }
    }
    serde_json::to_string_pretty(&benchmarks).map(|text| text + "\n")
}

/// Whether a file is in that format.
pub fn is_bencher(path: &Path) -> bool {
    read_text(path, MOST).is_ok_and(|text| serde_json::from_str::<Benchmarks<'_>>(&text).is_ok())
}

/// The slug of the measure, and the factor from the base unit to its unit.
fn measure(track: &RowHistory) -> (&'static str, f64) {
    match track.unit {
        Unit::Seconds => ("latency", 1e9),
        Unit::BytesPerSecond => ("bytes-per-second", 1.0),
        Unit::FlopsPerSecond => ("flop-per-second", 1.0),
        Unit::Bytes => ("bytes", 1.0),
        Unit::Number => ("number", 1.0),
        Unit::Ratio => ("ratio", 1.0),
    }
}
