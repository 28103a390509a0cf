//! Any values make a plot of a bounded size, soon.

use proptest::prelude::*;

use super::*;
use crate::Estimate;
use crate::units::Unit;

/// More than a plot of a handful of values needs.
const MAX_BYTES: usize = 32 << 10;

fn any() -> impl Strategy<Value = f64> {
    prop_oneof![proptest::num::f64::ANY, 1e-9..1e3, Just(0.0), Just(f64::MAX), Just(f64::MIN_POSITIVE), Just(1e160)]
}

proptest! {
    #[test]
    fn a_plot_of_any_values_ends(values in proptest::collection::vec(any(), 1..6), is_log in proptest::bool::ANY) {
        let spacing = if is_log { Spacing::Log } else { Spacing::Linear };
        let times: Vec<(&str, f64)> = values.iter().map(|value| ("a", *value)).collect();
        let bars = BarPlot { spacing, ..BarPlot::of_times("T", &times) };
        let points: Vec<(f64, f64)> = values.iter().map(|value| (*value, *value)).collect();
        let lines = LinePlot::of_times("T", "x", vec![Line::predicted("a", 0, &points)]);
        let lines = LinePlot { x_spacing: spacing, y_spacing: spacing, x_ticks: Ticks::Round, ..lines };
        let (median, low) = (values[0], values[values.len() - 1]);
        let estimate = Estimate {
            median,
            low,
            high: median,
            lower_quartile: low,
            upper_quartile: median,
            n: values.len(),
            runs: 1,
            spread: None,
            coverage: 0.95,
        };
        let histogram = Histogram { title: "T".to_owned(), unit: Unit::Seconds, samples: values, estimate };
        for svg in [bars.to_svg("p"), lines.to_svg("p"), histogram.to_svg("p")] {
            prop_assert!(svg.ends_with("</svg>\n") && svg.len() < MAX_BYTES, "{svg}");
        }
    }
}
