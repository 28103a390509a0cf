//! The least work that lies in a row, and the share of a measured ceiling that it came to.
//!
//! The work of a row (bytes, floating-point operations, launches) follows from its parameters by a formula of the table
//! below, which is at once what is computed and what is shown. A formula counts what cannot be left out: operands read
//! once, results written once, no temporary. `width` is the bytes of an element, 4 where a row names no type.
//!
//! The ceiling is what the same run measured: the copy, on the device or over the link, whose size is nearest to that of
//! the row's tensors and, of several, the fastest; the fastest product of the row's type; the bare launch. The share is the work by that rate over the
//! row's time. More than 100 % says that the row had help that the ceiling had not, such as a cache.
//!
//! A maker's peak rate is another thing: claims are held against those, and they come from `book/hardware.yaml`.

use super::ceilings;
use super::find::{Lookup, Metric};
use super::row::{Parameter, Parameters, Row};
use crate::measure::Estimate;
use crate::units::Unit;

/// What limits a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ceiling {
    /// Bytes read and written by a copy on the device.
    Copy,
    /// Floating-point operations of a product.
    Matmul,
    /// Bytes over the link to the device.
    ToDevice,
    /// Bytes over the link to the host.
    ToHost,
    /// Launches by the host.
    Launch,
}

impl Ceiling {
    /// Its name, as it stands behind a share.
    pub fn name(self) -> &'static str {
        match self {
            Ceiling::Copy => "the measured copy rate",
            Ceiling::Matmul => "the measured matmul rate",
            Ceiling::ToDevice => "the measured link rate to the device",
            Ceiling::ToHost => "the measured link rate to the host",
            Ceiling::Launch => "the measured bare launch rate",
        }
    }

    /// What is counted.
    pub fn counts(self) -> &'static str {
        match self {
            Ceiling::Copy | Ceiling::ToDevice | Ceiling::ToHost => "bytes",
            Ceiling::Matmul => "floating-point operations",
            Ceiling::Launch => "launches",
        }
    }
}

/// The work of some rows.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Work {
    /// The rows.
    pub rows: &'static [&'static str],
    /// What limits them.
    pub ceiling: Ceiling,
    formula: &'static str,
    amount: fn(&Parameters) -> Option<f64>,
}

macro_rules! work {
    ($($ceiling:ident [$($name:ident),*] $amount:expr => $($row:literal)+;)+) => {
        &[$(Work {
            rows: &[$($row),+],
            ceiling: Ceiling::$ceiling,
            formula: stringify!($amount),
            amount: |parameters| {
                $(let $name = value(parameters, stringify!($name))?;)*
                let _ = parameters;
                Some($amount)
            },
        }),+]
    };
}

/// The work of all rows that have a ceiling.
pub const WORK: &[Work] = work! {
    Launch [iters] 2.0 * iters => "async-frontend.dispatch" "synchronize.loop.enqueue"
        "idle-device.other" "idle-device.same" "idle-device.stream.other" "idle-device.stream.same";
    Launch [] 1.0 => "async-frontend.model.t1" "sync-points.timing.wall";
    Launch [] 2.0 => "synchronize.timing.without";
    Launch [] 3.0 => "overlap.execution.dispatch";
    Launch [adds] 1.0 + adds => "overlap.finish.host-free";
    Launch [scales] 1.0 * scales => "overlap.nonzero.enqueue";
    Matmul [size] 2.0 * size * size * size => "async-frontend.model.t2" "async-frontend.throughput"
        "synchronize.timing.with" "synchronize.timing.events" "sync-points.timing.events" "sync-points.timing.complete"
        "sync-points.big.async" "sync-points.big.forced" "sync-points.small.async" "sync-points.small.forced";
    Matmul [size] 4.0 * size * size * size => "sync-points.multi-stream.one-stream" "sync-points.multi-stream.two-streams";
    Matmul [size, iters] 2.0 * size * size * size * iters => "async-frontend.complete"
        "synchronize.loop.each" "synchronize.loop.complete";
    Matmul [size, chain] 4.0 * size * size * size * chain => "async-frontend.graph.one-stream"
        "async-frontend.graph.two-streams";
    Matmul [size, operations] 2.0 * size * size * size * operations => "async-frontend.model.queued"
        "async-frontend.model.serial";
    Matmul [size, steps] 2.0 * size * size * size * steps => "sync-points.training-loop.each-step"
        "sync-points.training-loop.accumulated";
    Matmul [size, samples] 2.0 * size * size * samples => "sync-points.inference.single" "sync-points.inference.batch";
    Copy [width, elements] 3.0 * width * elements => "overlap.execution.complete";
    Copy [width, elements, adds] width * elements + 2.0 * width * elements * adds => "overlap.finish.complete";
    Copy [width, elements] (width + 8.0) * elements => "overlap.nonzero.alone";
    Copy [width, elements, scales] 2.0 * width * elements * scales + (width + 8.0) * elements => "overlap.nonzero.whole";
    Copy [width, elements, steps] 2.0 * width * elements * (steps - 1.0) => "overlap.double-buffer.computes";
    ToDevice [bytes] 1.0 * bytes => "overlap.transfer.h2d.done" "overlap.transfer.h2d.rate";
    ToDevice [width, elements, steps] width * elements * (steps - 1.0) => "overlap.double-buffer.total"
        "overlap.double-buffer.copies" "overlap.one-way.total" "overlap.single-buffer.total";
    ToHost [bytes] 1.0 * bytes => "overlap.transfer.d2h.done" "overlap.transfer.d2h.rate" "overlap.transfer.d2h.new-array";
    ToHost [width, size] width * size * size => "sync-points.other.copy.ready" "sync-points.other.array.ready";
};

impl Work {
    /// The work of the row `id`, where it has a ceiling.
    pub fn of(id: &str) -> Option<&'static Self> {
        WORK.iter().find(|work| work.rows.contains(&id))
    }

    /// How much it is with these parameters; `None` where one of the formula is missing.
    pub fn amount(&self, parameters: &Parameters) -> Option<f64> {
        (self.amount)(parameters)
    }

    /// The formula by which it follows from a row's parameters.
    pub fn formula(&self) -> String {
        let cubed = self.formula.replace("size * size * size", "size³").replace("size * size", "size²");
        cubed.replace(".0", "").replace("1 * ", "").replace('*', "·").replace('-', "−")
    }
}

/// A row's share of the ceiling that limits it; 1 is all of it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct CeilingShare {
    /// What limits the row.
    pub ceiling: Ceiling,
    /// The share.
    pub share: f64,
    /// The ends of its interval: those of the row over the median of the ceiling, whose own spread is left out.
    pub interval: (f64, f64),
}

/// What share of its measured ceiling a row came to; `None` where it has none, or its run measured none.
pub fn share_of_ceiling(lookup: &Lookup<'_>, metric: &Metric<'_>, estimate: &Estimate) -> Option<CeilingShare> {
    let row = metric.row;
    let work = Work::of(&row.id)?;
    let rate = rate(lookup, work.ceiling, row)?;
    let amount = work.amount(&row.parameters)?;
    let share = |value: f64| match row.unit {
        Unit::BytesPerSecond => value / rate,
        _ => amount / rate / value,
    };
    let (one, other) = (share(estimate.low), share(estimate.high));
    let (share, interval) = (share(estimate.median), (one.min(other), one.max(other)));
    let sensible = [share, interval.0, interval.1].iter().all(|share| share.is_finite() && *share > 0.0);
    sensible.then_some(CeilingShare { ceiling: work.ceiling, share, interval })
}

/// The rate that the run measured as the ceiling of a row.
fn rate(lookup: &Lookup<'_>, ceiling: Ceiling, row: &Row) -> Option<f64> {
    let medians = |id: &str, holds: &dyn Fn(&Parameters) -> bool| {
        let rows = lookup.rows_of(id, &NONE).filter(|row| holds(&row.parameters));
        rows.filter_map(|row| row.metric().ok()?.estimate().ok()).map(|estimate| estimate.median).reduce(f64::max)
    };
    let nearest = |id: &str| {
        let own = tensor_bytes(&row.parameters)?;
        let distance = |bytes: f64| (bytes / own).ln().abs();
        let sizes = lookup.rows_of(id, &NONE).filter_map(|row| value(&row.parameters, "bytes"));
        let nearest = sizes.min_by(|a, b| distance(*a).total_cmp(&distance(*b)))?;
        medians(id, &|parameters| value(parameters, "bytes") == Some(nearest))
    };
    match ceiling {
        Ceiling::Copy => nearest(ceilings::COPY[1]),
        Ceiling::ToDevice => nearest(ceilings::TO_DEVICE[1]),
        Ceiling::ToHost => nearest(ceilings::TO_HOST[1]),
        Ceiling::Matmul => {
            let fp32 = Parameter::Text("fp32".to_owned());
            let dtype = row.parameters.get("dtype").unwrap_or(&fp32);
            medians(ceilings::MATMUL[1], &|parameters| parameters.get("dtype") == Some(dtype))
        }
        Ceiling::Launch => Some(1.0 / lookup.estimate("self-audit.enqueue.raw", &NONE).ok()?.median),
    }
}

/// The bytes of a tensor of the row.
fn tensor_bytes(parameters: &Parameters) -> Option<f64> {
    let square = || Some(value(parameters, "size")?.powi(2));
    let elements = || value(parameters, "elements").or_else(square);
    value(parameters, "bytes").or_else(|| Some(value(parameters, "width")? * elements()?))
}

static NONE: Parameters = Parameters::new();

/// A parameter as a number; `width` is the bytes of an element of the row's type.
fn value(parameters: &Parameters, name: &str) -> Option<f64> {
    match (name, parameters.get(name)) {
        ("width", _) => Some(match parameters.get("dtype") {
            Some(Parameter::Text(dtype)) if dtype == "fp16" || dtype == "bf16" => 2.0,
            _ => 4.0,
        }),
        (_, Some(Parameter::Integer(value))) => Some(*value as f64),
        (_, Some(Parameter::Float(value))) => Some(*value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Entry;
    use super::*;

    #[test]
    fn every_row_that_has_work_is_planned_and_has_it_once() {
        let entries: Vec<Entry> = Entry::NAMES.iter().filter_map(|name| Entry::default_for(name, "cuda")).collect();
        let plans: Vec<_> = entries.iter().flat_map(|entry| entry.experiment().rows()).collect();
        for id in WORK.iter().flat_map(|work| work.rows) {
            assert!(plans.iter().any(|plan| plan.id == *id), "{id}");
            assert_eq!(WORK.iter().filter(|work| work.rows.contains(id)).count(), 1, "{id}");
        }
    }

    #[test]
    fn the_formula_that_is_shown_is_the_one_that_is_computed() {
        let finish = Work::of("overlap.finish.complete").unwrap();
        assert_eq!(finish.formula(), "width · elements + 2 · width · elements · adds");
        let parameters =
            [("elements", 10_000_000), ("adds", 100)].map(|(name, value)| (name.to_owned(), Parameter::Integer(value)));
        assert_eq!(finish.amount(&Parameters::from(parameters)), Some(8.04e9));
        assert_eq!(finish.amount(&Parameters::new()), None);
        assert_eq!(Work::of("sync-points.big.async").unwrap().formula(), "2 · size³");
        assert!(Work::of("sync-points.big.delta").is_none());
    }
}
