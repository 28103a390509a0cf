//! The share of a measured peak rate that a row with known work came to.
//!
//! The peak rate of a row is the best rate that its run reached: the largest median rate among all rows whose work is known, those that search for a peak
//! (by several ways and sizes) and all others, the row itself among them. Only rows that the same roof stands over count:
//!
//! - for matmuls, those of the same element type;
//! - for copies and transfers, those of tensors at least as large: a smaller one may lie in a cache that this one does not
//!   fit into.
//!
//! So a median never lies above its peak; the end of an interval may, by the spread of the samples. (S. Williams,
//! A. Waterman, D. Patterson, *Roofline: an insightful visual performance model*, CACM 52, 2009, for the idea of a roof.)
//! The share is the work by the peak rate over the row's time. The peak is no upper bound of the hardware: a faster way may
//! exist that no row took.

use std::collections::HashMap;

use super::lookup::Lookup;
use super::metric::Metric;
use super::row::{MetricSpec, Parameter};
use super::work::{Limit, Work};
use crate::measure::Estimate;
use crate::statistics::mean;

/// A row's share of the peak rate that limits it; 1 is all of it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct PeakShare {
    /// What limits the row.
    pub limit: Limit,
    /// The share.
    pub share: f64,
    /// The ends of its interval, where the row has one: those of the row over the median of the peak, whose own spread is
    /// left out.
    pub interval: Option<(f64, f64)>,
}

/// What share of its measured peak rate a row came to; `None` where its work is not known, where it is itself a peak, or
/// where its run measured none.
pub fn share_of_peak(lookup: &Lookup<'_>, metric: &Metric<'_>, estimate: &Estimate) -> Option<PeakShare> {
    let work = metric.spec.work.as_ref().filter(|work| !work.peak)?;
    let peak = lookup.peaks().peak(metric.spec, work)?;
    let (rate, interval) = rate_of(metric, estimate, work)?;
    let interval = interval.ok().map(|(low, high)| (low / peak, high / peak));
    Some(PeakShare { limit: work.limit, share: rate / peak, interval })
}

/// A rate, with its interval or why it has none.
type Rate = (f64, Result<(f64, f64), String>);

/// The rate of a row whose work is known, with its interval or why it has none; `None` where it is no number above 0.
fn rate_of(metric: &Metric<'_>, estimate: &Estimate, work: &Work) -> Option<Rate> {
    let rate = |value: f64| work.rate(value, metric.spec.unit);
    let is_rate = |rate: f64| rate.is_finite() && rate > 0.0;
    let interval = metric.interval(estimate).and_then(|(low, high)| {
        let (one, other) = (rate(low), rate(high));
        let ends = Some((one.min(other), one.max(other))).filter(|ends| is_rate(ends.0) && is_rate(ends.1));
        ends.ok_or_else(|| "no interval: the time may be 0".to_owned())
    });
    Some((rate(estimate.median), interval)).filter(|(rate, _)| is_rate(*rate))
}

/// A rate by its arithmetic intensity: of a matmul, or of a kernel whose bytes and operations are stated.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RooflinePoint<'a> {
    /// The row.
    pub spec: &'a MetricSpec,
    /// The element type of the matmuls whose best rate is its roof: fp32 for a kernel.
    pub dtype: &'a str,
    /// The kernel, where it is one.
    pub kernel: Option<&'a str>,
    /// Floating-point operations for each byte: of a matmul, of the two operands and the result,
    /// 2 · size³ / (3 · size² · width).
    pub intensity: f64,
    /// Floating-point operations a second.
    pub rate: f64,
    /// The ends of its interval, or why it has none.
    pub interval: Result<(f64, f64), String>,
    /// The samples behind it.
    pub n: usize,
}

/// The kernel that a row is of, with the bytes and the operations of a launch, where all of them are stated.
pub fn stated_kernel(spec: &MetricSpec) -> Option<(&str, [f64; 2])> {
    let Some(Parameter::Text(kernel)) = spec.parameters.get("kernel") else { return None };
    let above_0 = |name: &str| spec.parameters.get(name)?.number().filter(|number| *number > 0.0);
    Some((kernel, [above_0("bytes")?, above_0("operations")?]))
}

/// The rates of all rows that are square matmuls of a known size and element type, or kernels of known bytes and operations.
pub fn roofline_points<'a>(lookup: &Lookup<'a>) -> Vec<RooflinePoint<'a>> {
    let found = lookup.measured_of(|spec| spec.work.is_some()).filter_map(|metric| {
        let spec = metric.spec;
        let work = spec.work.as_ref()?;
        let (kernel, operations, intensity) = match stated_kernel(spec) {
            Some((kernel, [bytes, operations])) => (Some(kernel), operations, operations / bytes),
            None if work.limit == Limit::Matmul => {
                let size = spec.parameters.get("size")?.number()?;
                (None, work.amount, 2.0 * size / (3.0 * width(dtype(spec))?))
            }
            None => return None,
        };
        let estimate = metric.estimate().ok()?;
        let work = Work::matmul(operations, &work.formula);
        let (rate, interval) = rate_of(&metric, &estimate, &work)?;
        Some(RooflinePoint { spec, dtype: dtype(spec), kernel, intensity, rate, interval, n: estimate.n })
    });
    found.collect()
}

/// The best rate of copies of the largest tensors for which a run searched: that of the memory, and not of a cache.
pub fn memory_rate(lookup: &Lookup<'_>) -> Option<f64> {
    let mut rates: Vec<(f64, f64)> = Vec::new();
    let is_peak = |spec: &MetricSpec| spec.work.as_ref().is_some_and(|work| work.limit == Limit::Copy && work.peak);
    for metric in lookup.measured_of(is_peak) {
        if let Some((bytes, work)) = metric.spec.work.as_ref().and_then(|work| Some((work.bytes?, work))) {
            rates.push((bytes, work.rate(mean(&metric.run_medians()), metric.spec.unit)));
        }
    }
    let largest = rates.iter().map(|(bytes, _)| *bytes).max_by(f64::total_cmp)?;
    rates.into_iter().filter(|(bytes, _)| *bytes == largest).map(|(_, rate)| rate).reduce(f64::max)
}

/// The bytes of an element.
fn width(dtype: &str) -> Option<f64> {
    match dtype {
        "fp16" | "bf16" => Some(2.0),
        "fp32" => Some(4.0),
        "fp64" => Some(8.0),
        _ => None,
    }
}

/// The best rates of a run, by what limits them, those of matmuls by the element type.
#[derive(Debug)]
pub(super) struct Peaks(HashMap<(Limit, Option<String>), Roof>);

/// The best rates of what one thing limits.
#[derive(Debug, Default)]
struct Roof {
    /// By the size of a tensor, the best rate of those at least as large.
    by_size: Vec<(f64, f64)>,
    /// The best rate of the largest tensors for which the run searched for a peak; none where it searched for none.
    of_largest: Option<f64>,
}

impl Peaks {
    pub(super) fn of(lookup: &Lookup<'_>) -> Self {
        let mut rates: HashMap<_, Vec<(f64, f64, bool)>> = HashMap::new();
        for metric in lookup.measured_of(|spec| spec.work.is_some()) {
            let Some(work) = &metric.spec.work else { continue };
            let rate = work.rate(mean(&metric.run_medians()), metric.spec.unit);
            if rate.is_finite() && rate > 0.0 {
                let size = work.bytes.unwrap_or(f64::INFINITY);
                rates.entry(limit(metric.spec, work)).or_default().push((size, rate, work.peak));
            }
        }
        Self(rates.into_iter().map(|(limit, rates)| (limit, Roof::of(rates))).collect())
    }

    /// The best rate that the run reached of what limits a row; `None` where no row of the run searched for it.
    fn peak(&self, spec: &MetricSpec, own: &Work) -> Option<f64> {
        let Roof { by_size, of_largest } = self.0.get(&limit(spec, own))?;
        let from = by_size.partition_point(|(size, _)| *size < own.bytes.unwrap_or(0.0));
        // Where no peak was searched for with tensors as large, those of the largest stand for it.
        let largest = (*of_largest)?;
        Some(by_size.get(from).map_or(largest, |(_, rate)| rate.max(largest)))
    }
}

impl Roof {
    /// Of sizes, rates and whether they were searched for.
    fn of(mut rates: Vec<(f64, f64, bool)>) -> Self {
        rates.sort_by(|(one, ..), (other, ..)| one.total_cmp(other));
        let peaks = || rates.iter().filter(|(.., peak)| *peak).map(|(size, rate, _)| (*size, *rate));
        let largest = peaks().map(|(size, _)| size).next_back();
        let of_largest = peaks().filter(|(size, _)| Some(*size) == largest).map(|(_, rate)| rate).reduce(f64::max);
        let mut by_size: Vec<(f64, f64)> = rates.iter().map(|(size, rate, _)| (*size, *rate)).collect();
        for place in (1..by_size.len()).rev() {
            by_size[place - 1].1 = by_size[place - 1].1.max(by_size[place].1);
        }
        Self { by_size, of_largest }
    }
}

/// What limits a row; of a matmul, for its element type.
fn limit(spec: &MetricSpec, work: &Work) -> (Limit, Option<String>) {
    (work.limit, (work.limit == Limit::Matmul).then(|| dtype(spec).to_owned()))
}

/// The element type of a row; fp32 where it names none.
fn dtype(spec: &MetricSpec) -> &str {
    match spec.parameters.get("dtype") {
        Some(Parameter::Text(dtype)) => dtype,
        _ => "fp32",
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::{Outcome, Parameters, Provenance, Row, Series};
    use super::super::rows::Rows;
    use super::*;
    use crate::measure::{Clock, StoppedBy};
    use crate::units::Unit;

    fn row(id: &str, dtype: &str, unit: Unit, work: Option<Work>, sample: f64) -> Row {
        let (group, label) = ("G".to_owned(), "L".to_owned());
        // Rows of one identifier differ in their parameters.
        let place = work.as_ref().and_then(|work| work.bytes).unwrap_or(sample);
        let parameters =
            Parameters::from([("dtype".to_owned(), dtype.into()), ("place".to_owned(), Parameter::Number(place))]);
        let provenance = Provenance::measured(Clock::Host);
        let spec = MetricSpec { id: id.to_owned(), group, label, unit, parameters, provenance, work, floor: None };
        let outcome = Outcome::of_samples(vec![sample; 6], StoppedBy::Samples);
        Row { spec, series: vec![Series { run: "1".to_owned(), outcome }] }
    }

    fn copy_peak(bytes: f64, rate: f64) -> Row {
        row("p.copy", "fp32", Unit::BytesPerSecond, Some(Work::copy(2.0 * bytes, "2 · bytes", bytes).as_peak()), rate)
    }

    /// The share of the first of `rows`, where all of them were measured in one run.
    fn share(rows: &[Row]) -> Option<f64> {
        let rows = rows.to_vec().into();
        let lookup = Lookup::new(&rows, vec!["1"]);
        let (_, metric) = lookup.metrics().next().unwrap();
        let metric = metric.unwrap();
        share_of_peak(&lookup, &metric, &metric.estimate().unwrap()).map(|share| share.share)
    }

    #[test]
    fn the_peak_is_the_best_rate_of_a_tensor_at_least_as_large_whichever_row_reached_it() {
        let time = |bytes: f64, seconds| {
            let work = Work::copy(6.0 * bytes, "6 · bytes", bytes);
            row("a.time", "fp32", Unit::Seconds, Some(work), seconds)
        };
        // 600 bytes in 2 s are 300 a second.
        let own = || time(100.0, 2.0);
        assert_eq!(share(&[own(), copy_peak(100.0, 500.0), copy_peak(1000.0, 600.0)]), Some(0.5));
        assert_eq!(share(&[own(), copy_peak(100.0, 500.0), copy_peak(10.0, 9000.0)]), Some(0.6));
        // Another row was faster than what searched for the peak, and so was this one.
        assert_eq!(share(&[own(), copy_peak(100.0, 500.0), time(200.0, 2.0)]), Some(0.5));
        assert_eq!(share(&[own(), copy_peak(100.0, 200.0)]), Some(1.0));
        // Nothing as large was searched for: the largest stands for it.
        assert_eq!(share(&[own(), copy_peak(50.0, 600.0), copy_peak(10.0, 9000.0)]), Some(0.5));
    }

    #[test]
    fn no_median_lies_above_its_peak() {
        let sizes = [10.0, 100.0, 1000.0];
        let timed = sizes.iter().zip([3.0, 1.0, 2.0]).map(|(bytes, seconds)| {
            let work = Work::copy(6.0 * bytes, "6 · bytes", *bytes);
            row("a.time", "fp32", Unit::Seconds, Some(work), seconds)
        });
        let rows: Rows = timed.chain([copy_peak(50.0, 1.0)]).collect::<Vec<Row>>().into();
        let lookup = Lookup::new(&rows, vec!["1"]);
        let shares: Vec<f64> = lookup
            .metrics()
            .filter_map(|(_, metric)| {
                let metric = metric.unwrap();
                share_of_peak(&lookup, &metric, &metric.estimate().unwrap()).map(|share| share.share)
            })
            .collect();
        assert!(shares.len() == 3 && shares.iter().all(|share| *share <= 1.0), "{shares:?}");
    }

    #[test]
    fn the_intensity_of_a_matmul_follows_from_its_size_and_its_element_type() {
        let time = |dtype: &str| {
            let mut row = row("a.time", dtype, Unit::Seconds, Some(Work::matmul(6e3, "6")), 2.0);
            row.spec.parameters.insert("size".to_owned(), Parameter::Integer(12));
            row
        };
        let rows = vec![time("fp16"), time("fp32"), time("odd")].into();
        let lookup = Lookup::new(&rows, vec!["1"]);
        let found: Vec<(f64, f64)> = roofline_points(&lookup).iter().map(|one| (one.intensity, one.rate)).collect();
        assert_eq!(found, [(4.0, 3e3), (2.0, 3e3)]);
    }

    #[test]
    fn a_kernel_has_its_place_by_the_bytes_and_operations_that_are_stated() {
        let mut kernel = row("kernel.time", "fp32", Unit::Seconds, Some(Work::copy(12.0, "bytes", 6.0)), 2.0);
        kernel.spec.parameters = [
            ("kernel".to_owned(), Parameter::Text("saxpy".to_owned())),
            ("bytes".to_owned(), Parameter::Integer(12)),
            ("operations".to_owned(), Parameter::Integer(6)),
        ]
        .into();
        let mut unknown = kernel.clone();
        unknown.spec.parameters.remove("operations");
        let rows = vec![kernel, unknown].into();
        let lookup = Lookup::new(&rows, vec!["1"]);
        let found = roofline_points(&lookup);
        let [one] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((one.kernel, one.intensity, one.rate), (Some("saxpy"), 0.5, 3.0));
    }

    #[test]
    fn the_rate_of_the_memory_is_that_of_the_largest_tensors() {
        let rows = vec![copy_peak(10.0, 900.0), copy_peak(1000.0, 50.0), copy_peak(1000.0, 60.0)].into();
        assert_eq!(memory_rate(&Lookup::new(&rows, vec!["1"])), Some(60.0));
    }

    #[test]
    fn a_matmul_is_compared_with_the_peak_of_its_own_element_type() {
        let work = || Work::matmul(16.0, "2 · size³");
        let peak = |dtype, rate| row("p.matmul", dtype, Unit::FlopsPerSecond, Some(work().as_peak()), rate);
        let time = |dtype| row("a.time", dtype, Unit::Seconds, Some(work()), 2.0);
        assert_eq!(share(&[time("fp16"), peak("fp16", 32.0), peak("fp32", 8.0)]), Some(0.25));
        assert_eq!(share(&[time("bf16"), peak("fp16", 32.0)]), None);
    }

    #[test]
    fn a_peak_that_is_a_time_counts_its_own_work_and_a_rate_is_taken_as_it_is() {
        let raw = row("p.raw", "fp32", Unit::Seconds, Some(Work::launches(1.0, "1").as_peak()), 0.5);
        let time = row("a.time", "fp32", Unit::Seconds, Some(Work::launches(3.0, "3")), 3.0);
        assert_eq!(share(&[time, raw]), Some(0.5));
        let peak = Work::to_device(64.0, "bytes", 64.0).as_peak();
        let peak = row("p.h2d", "fp32", Unit::BytesPerSecond, Some(peak), 200.0);
        let rate = Work::to_device(64.0, "bytes", 64.0);
        assert_eq!(share(&[row("a.rate", "fp32", Unit::BytesPerSecond, Some(rate), 50.0), peak]), Some(0.25));
    }

    #[test]
    fn a_share_of_a_peak_needs_work_and_another_peak_of_that_limit() {
        assert_eq!(share(&[copy_peak(100.0, 5.0), copy_peak(100.0, 6.0)]), None);
        let time = |work| row("a.time", "fp32", Unit::Seconds, work, 2.0);
        assert_eq!(share(&[time(None), copy_peak(100.0, 5.0)]), None);
        assert_eq!(share(&[time(Some(Work::to_host(8.0, "bytes", 8.0))), copy_peak(100.0, 5.0)]), None);
    }

    #[test]
    fn the_interval_of_a_share_has_its_smaller_end_first() {
        let time = row("a.time", "fp32", Unit::Seconds, Some(Work::launches(1.0, "1")), 2.0);
        let raw = row("p.raw", "fp32", Unit::Seconds, Some(Work::launches(1.0, "1").as_peak()), 1.0);
        let rows = vec![time, raw].into();
        let lookup = Lookup::new(&rows, vec!["1"]);
        let (_, metric) = lookup.metrics().next().unwrap();
        let metric = metric.unwrap();
        let estimate = Estimate { low: 1.0, high: 4.0, ..metric.estimate().unwrap() };
        let share = share_of_peak(&lookup, &metric, &estimate).unwrap();
        assert_eq!((share.share, share.interval), (0.5, Some((0.25, 1.0))));
    }
}
