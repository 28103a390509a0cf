//! The picture of a row over all machines: a strip with a mark a machine.
//!
//! All whiskers are one path and all marks another, so that a thousand machines take some kilobytes.

use std::fmt::Write as _;

use super::table::FleetRow;
use crate::measure::Outliers;
use crate::present::escape;

const WIDTH: f64 = 1040.0;
const HEIGHT: f64 = 180.0;
const LEFT: f64 = 64.0;

/// The strip of a row: the values of `have` by the centre, in percent.
pub(super) fn strip(row: &FleetRow, outliers: &Outliers, have: &[usize], names: impl Fn(usize) -> String) -> String {
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
    let (mut whiskers, mut marks, mut far) = (String::new(), String::new(), String::new());
    for (place, (value, interval)) in values.iter().enumerate() {
        if let Some((low, high)) = interval {
            // Writing to a string cannot fail.
            let _ = write!(whiskers, "M{:.0} {:.0}V{:.0}", x(place), y(*low), y(*high));
        }
        let _ = write!(marks, "M{:.0} {:.0}h0", x(place), y(*value));
    }
    for outlier in &outliers.found {
        let name = escape(&format!("{}: {:+.1} %", names(have[outlier.place]), (outlier.ratio - 1.0) * 100.0));
        let (x, y) = (x(outlier.place), y(outlier.ratio - 1.0));
        let _ = write!(far, "<circle class=\"far\" cx=\"{x:.0}\" cy=\"{y:.0}\" r=\"5\"><title>{name}</title></circle>");
    }
    let (percent, title) = (extreme / 1.1 * 100.0, escape(&format!("{} of {} machines", row.title, values.len())));
    format!(
        "<div class=\"scroll\"><svg class=\"strip\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\">\
         <path class=\"zero\" d=\"M{LEFT} {0}H{WIDTH}\"/><text x=\"0\" y=\"{1:.0}\">+{percent:.1} %</text><text x=\"0\" y=\"{2:.0}\">0</text>\
         <text x=\"0\" y=\"{3:.0}\">−{percent:.1} %</text><path class=\"whisker\" d=\"{whiskers}\"/><path class=\"mark\" d=\"{marks}\"/>{far}</svg></div>\n",
        HEIGHT / 2.0,
        y(extreme / 1.1) + 4.0,
        HEIGHT / 2.0 + 4.0,
        y(-extreme / 1.1) + 4.0,
    )
}
