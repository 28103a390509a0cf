//! The picture of a row over all machines: a strip with a mark a machine.
//!
//! All whiskers are one path and all marks another, so that a thousand machines take some kilobytes.

use minijinja::{Value, context};

use super::table::FleetRow;
use crate::measure::Outliers;

const WIDTH: f64 = 1040.0;
const HEIGHT: f64 = 180.0;
const LEFT: f64 = 64.0;

/// The strip of a row: the values of `have` by the centre, in percent.
pub(super) fn strip(row: &FleetRow, outliers: &Outliers, have: &[usize], names: impl Fn(usize) -> String) -> Value {
    let share = |value: f64| value / outliers.centre - 1.0;
    let values: Vec<(f64, Option<(f64, f64)>)> = have
        .iter()
        .filter_map(|place| row.values[*place].as_ref())
        .map(|own| (share(own.median), own.interval.map(|(low, high)| (share(low), share(high)))))
        .collect();
    // Whiskers may leave the picture; marks may not.
    let extreme = values.iter().map(|(value, _)| value.abs()).fold(outliers.spread * 4.0, f64::max).max(1e-6) * 1.1;
    let x = |place: usize| LEFT + (WIDTH - LEFT - 8.0) * (place as f64 + 0.5) / values.len() as f64;
    let y = |value: f64| HEIGHT / 2.0 - (HEIGHT / 2.0 - 8.0) * value.clamp(-extreme, extreme) / extreme;
    let places = || values.iter().enumerate().map(|(place, (value, ends))| (x(place), *value, *ends));
    let whisker = |(x, _, ends): (f64, f64, Option<(f64, f64)>)| {
        ends.map(|(low, high)| format!("M{x:.0} {:.0}V{:.0}", y(low), y(high)))
    };
    let far = outliers.found.iter().map(|outlier| {
        let name = format!("{}: {:+.1} %", names(have[outlier.place]), (outlier.ratio - 1.0) * 100.0);
        (format!("{:.0}", x(outlier.place)), format!("{:.0}", y(outlier.ratio - 1.0)), name)
    });
    let edge = extreme / 1.1;
    context! {
        title => format!("{} of {} machines", row.title, values.len()),
        percent => format!("{:.1}", edge * 100.0),
        heights => [edge, 0.0, -edge].map(|value| format!("{:.0}", y(value) + 4.0)).to_vec(),
        whiskers => places().filter_map(whisker).collect::<String>(),
        marks => places().map(|(x, value, _)| format!("M{x:.0} {:.0}h0", y(value))).collect::<String>(),
        far => far.collect::<Value>(),
    }
}
