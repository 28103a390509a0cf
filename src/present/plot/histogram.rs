//! Histograms: the distribution of samples, with the median and its interval above.
//!
//! The number of bins is that of Freedman and Diaconis (*On the histogram as a density estimator*, 1981), within limits:
//! the width of a bin follows the quartiles, so that a few extremes do not decide it. Samples far outside the quartiles
//! count in the outermost bins, and the axis says so.

use super::svg::{Paint, Side, Svg, picture};
use super::text::{LINE, WIDTH, Weight, title_height};
use crate::Estimate;
use crate::units::{Unit, counted};

/// A histogram of samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// What is drawn.
    pub title: String,
    /// The unit of the samples.
    pub unit: Unit,
    /// The samples, of which there is at least one.
    pub samples: Vec<f64>,
    /// Their estimate.
    pub estimate: Estimate,
}

const LEFT: i32 = 12;
const RIGHT: i32 = WIDTH - 12;
const HEIGHT: i32 = 96;
const AXIS: i32 = 30;
/// How many interquartile ranges beyond the quartiles a sample may lie and still widen the axis.
const REACH: f64 = 3.0;
const BINS: std::ops::RangeInclusive<f64> = 4.0..=24.0;

impl Histogram {
    /// The plot as SVG. `id` must be unique in the page: the identifiers within the picture begin with it.
    pub fn to_svg(&self, id: &str) -> String {
        let height = self.top() + HEIGHT + AXIS;
        picture(id, &[], (&self.title, &self.description()), height, |svg| self.draw(svg))
    }

    /// What the picture shows, in words.
    pub fn description(&self) -> String {
        let (bins, (low, high)) = (self.bins(), self.ends());
        let fullest = bins.iter().copied().max().unwrap_or(0);
        format!(
            "Histogram of {} from {} to {}: median {}, the fullest of {} holds {fullest}.",
            counted(self.samples.len(), "sample"),
            self.unit.format(low, 3),
            self.unit.format(high, 3),
            self.estimate.format(self.unit),
            counted(bins.len(), "bin"),
        )
    }

    fn top(&self) -> i32 {
        title_height(&self.title) + LINE
    }

    /// The ends of the axis.
    fn ends(&self) -> (f64, f64) {
        let Estimate { lower_quartile, upper_quartile, .. } = self.estimate;
        let reach = REACH * (upper_quartile - lower_quartile);
        let low = self.samples.iter().copied().fold(f64::INFINITY, f64::min).max(lower_quartile - reach);
        let high = self.samples.iter().copied().fold(f64::NEG_INFINITY, f64::max).min(upper_quartile + reach);
        if high > low { (low, high) } else { (low - low.abs().max(1e-12) / 2.0, low + low.abs().max(1e-12) / 2.0) }
    }

    /// How many samples each bin holds.
    fn bins(&self) -> Vec<usize> {
        let (low, high) = self.ends();
        let Estimate { lower_quartile, upper_quartile, .. } = self.estimate;
        let width = 2.0 * (upper_quartile - lower_quartile) / (self.samples.len() as f64).cbrt();
        let count = if width > 0.0 { (high - low) / width } else { 1.0 };
        // Of values that are no numbers, the fewest.
        let mut bins = vec![0; count.ceil().max(*BINS.start()).min(*BINS.end()) as usize];
        let last = bins.len() - 1;
        for sample in &self.samples {
            let place = ((sample - low) / (high - low) * bins.len() as f64).max(0.0) as usize;
            bins[place.min(last)] += 1;
        }
        bins
    }

    fn x(&self, value: f64) -> i32 {
        let (low, high) = self.ends();
        LEFT + (f64::from(RIGHT - LEFT) * ((value - low) / (high - low)).clamp(0.0, 1.0)).round() as i32
    }

    fn draw(&self, svg: &mut Svg<'_>) {
        let (bins, (low, high), top) = (self.bins(), self.ends(), self.top());
        let (bottom, fullest) = (top + HEIGHT, bins.iter().copied().max().unwrap_or(1).max(1));
        let edge = |index: usize| LEFT + (RIGHT - LEFT) * index as i32 / bins.len() as i32;
        for (index, &count) in bins.iter().enumerate().filter(|(_, count)| **count > 0) {
            let height = (f64::from(HEIGHT) * count as f64 / fullest as f64).round().max(1.0) as i32;
            svg.fill([(edge(index), bottom - height), (edge(index + 1) - 1, bottom)], Paint::Series(0));
        }
        svg.path(&[(LEFT, bottom), (RIGHT, bottom)], Paint::Muted, 1);
        self.draw_estimate(svg, top - LINE / 2);

        let (scale, decimals) = self.unit.scale_of(high, (low, high));
        let below = if self.samples.iter().any(|sample| *sample < low) { "≤ " } else { "" };
        let above = if self.samples.iter().any(|sample| *sample > high) { "≥ " } else { "" };
        let (first, last) = (scale.fixed(low, decimals), scale.fixed(high, decimals));
        let (first, last) = (format!("{below}{first}"), format!("{above}{last}"));
        svg.text(&first, (LEFT, bottom + 12), Weight::Regular, Paint::Muted, Side::Left);
        svg.text(&last, (RIGHT, bottom + 12), Weight::Regular, Paint::Muted, Side::Right);
    }

    /// The median as a mark and its interval as a line through it.
    fn draw_estimate(&self, svg: &mut Svg<'_>, y: i32) {
        let Estimate { median, low, high, .. } = self.estimate;
        svg.path(&[(self.x(low), y), (self.x(high), y)], Paint::Whisker, 1);
        for (end, half) in [(low, 3), (high, 3), (median, 6)] {
            svg.path(&[(self.x(end), y - half), (self.x(end), y + half)], Paint::Whisker, 1);
        }
        let (side, x) = match self.x(high) < WIDTH / 2 {
            true => (Side::Left, self.x(high) + 6),
            false => (Side::Right, self.x(low) - 6),
        };
        svg.text(&self.unit.format(median, 3), (x, y), Weight::Regular, Paint::Text, side);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(values: Vec<f64>) -> Histogram {
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        let at = |share: f64| sorted[(share * (sorted.len() - 1) as f64) as usize];
        let estimate = Estimate {
            median: at(0.5),
            low: at(0.4),
            high: at(0.6),
            lower_quartile: at(0.25),
            upper_quartile: at(0.75),
            n: sorted.len(),
            runs: 1,
            spread: None,
            coverage: 0.95,
        };
        Histogram { title: "read".to_owned(), unit: Unit::Seconds, samples: values, estimate }
    }

    #[test]
    fn every_sample_is_in_one_bin() {
        let plot = histogram((0..100).map(f64::from).collect());
        assert_eq!(plot.bins().iter().sum::<usize>(), 100);
        assert!(plot.bins().len() >= 4);
    }

    #[test]
    fn an_extreme_does_not_squeeze_the_others_together() {
        let mut values: Vec<f64> = (0..100).map(|i| 10.0 + f64::from(i % 10)).collect();
        values.push(1e6);
        let plot = histogram(values);
        assert!(plot.ends().1 < 60.0 && plot.bins().iter().sum::<usize>() == 101);
        assert!(plot.to_svg("p").contains('≥'));
    }

    #[test]
    fn both_ends_of_the_axis_have_as_many_digits() {
        let mut values: Vec<f64> = (0..40).map(|i| 2.69e-3 + 1e-7 * f64::from(i)).collect();
        values.push(5e-3);
        let svg = histogram(values).to_svg("p");
        assert!(svg.contains(">2&#46;6900 ms<") && svg.contains(">≥ 2&#46;6990 ms<"), "{svg}");
    }

    #[test]
    fn equal_samples_are_still_a_picture() {
        for value in [0.0, 3.0] {
            let plot = histogram(vec![value; 7]);
            assert_eq!(plot.bins().iter().sum::<usize>(), 7);
            assert!(plot.to_svg("p").contains("</svg>"));
        }
    }
}
