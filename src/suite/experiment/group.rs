//! A group of rows: declared one after the other, sampled together.

use std::num::NonZeroUsize;
use std::rc::Rc;

use super::bench::{Bench, Part};
use crate::device::{Device, Stream};
use crate::error::{DeviceError, MeasureError};
use crate::measure::{Case, Clock, StoppedBy, Stopwatch};
use crate::results::{
    Derivation, FormulaOperand, MetricSpec, Outcome, Parameter, Parameters, Provenance, Work, computed,
};
use crate::units::Unit;

/// A group of rows under a heading. Its cases are sampled together, interleaved, so that a reader may compare them; rows
/// that differ in parameters stand in one group by [`having`](Self::having). `S` is what the cases share: made once, by
/// [`setup`](Self::setup), before the first of them.
///
/// Nothing is measured before [`run`](Self::run).
#[must_use = "a group is measured by `run`"]
pub struct Group<'a, S> {
    bench: &'a mut Bench,
    heading: String,
    /// Those of all its rows.
    parameters: Parameters,
    /// Those of the rows that are declared from now on.
    current: Parameters,
    part: Part,
    repeats: Repeats,
    setup: Setup<'a, S>,
    left_out: Option<String>,
    rows: Vec<Declared<'a, S>>,
}

/// How its rows are sampled.
#[derive(Clone, Copy)]
enum Repeats {
    /// As the run's protocol says.
    AsStated,
    /// The same without a warm-up.
    Unwarmed,
    /// So many, without a warm-up.
    Trials(NonZeroUsize),
}

type Setup<'a, S> = Box<dyn FnOnce(&Device) -> Result<S, DeviceError> + 'a>;
type Make<'a, S> = Box<dyn FnOnce(&S, String) -> Result<Case<'static>, DeviceError> + 'a>;

struct Declared<'a, S> {
    spec: MetricSpec,
    kind: Kind<'a, S>,
}

enum Kind<'a, S> {
    Sampled(Make<'a, S>),
    Derived,
}

/// How a derived row is computed, round by round.
pub struct Formula {
    derivation: Derivation,
    text: String,
    operands: Vec<FormulaOperand>,
}

impl Formula {
    /// A formula as a reader sees it, and the rows that its words stand for: each word with an identifier. Other words are
    /// numeric parameters of the row. [`evaluate`](crate::results::evaluate) says how it is written.
    pub fn of<const N: usize>(text: impl Into<String>, operands: [(&str, &'static str); N]) -> Self {
        let operand =
            |(name, id): (&str, &str)| FormulaOperand { name: name.to_owned(), id: id.to_owned(), parameters: None };
        let operands = operands.into_iter().map(operand).collect();
        Self { derivation: Derivation::Computation, text: text.into(), operands }
    }

    /// The formula as a computation of this kind.
    #[must_use]
    pub fn is(self, derivation: Derivation) -> Self {
        Self { derivation, ..self }
    }

    /// The formula with the operand of this name from the row with these parameters, in place of the group's.
    #[must_use]
    pub fn from_row(mut self, name: &str, parameters: &Parameters) -> Self {
        let named = self.operands.iter_mut().filter(|operand| operand.name == name);
        named.for_each(|operand| operand.parameters = Some(parameters.clone()));
        self
    }
}

impl<'a> Group<'a, Device> {
    pub(crate) fn new(bench: &'a mut Bench, heading: &str, parameters: Parameters) -> Self {
        let setup = Box::new(|device: &Device| Ok(device.clone()));
        let (current, part) = (parameters.clone(), Part::Timed);
        let (heading, repeats, left_out) = (heading.to_owned(), Repeats::AsStated, None);
        Self { bench, heading, parameters, current, part, repeats, setup, left_out, rows: Vec::new() }
    }

    /// With `setup` run once before the first case; what it returns is shared by all cases, which are declared after it.
    pub fn setup<S>(self, setup: impl FnOnce(&Device) -> Result<S, DeviceError> + 'a) -> Group<'a, S> {
        let Self { bench, heading, parameters, current, part, repeats, left_out, .. } = self;
        Group { bench, heading, parameters, current, part, repeats, setup: Box::new(setup), left_out, rows: Vec::new() }
    }
}

impl<'a, S: 'a> Group<'a, S> {
    /// The parameters of the group.
    pub fn parameters(&self) -> Parameters {
        self.parameters.clone()
    }

    /// The rows declared from now on have these parameters beside those of the group, in place of what an earlier call
    /// stated. Their computations take operands with the same parameters.
    pub fn having<const N: usize>(mut self, parameters: [(&str, Parameter); N]) -> Self {
        self.current = self.parameters.clone();
        self.current.extend(parameters.into_iter().map(|(name, value)| (name.to_owned(), value)));
        self
    }

    /// It connects devices, and the access between these stays: its rows are measured after those that need none.
    pub fn connected(mut self) -> Self {
        self.part = Part::Connected;
        self
    }

    /// Its rows come from recordings of the device. Later calls of the process take longer, so these rows are measured after
    /// all others.
    pub fn recorded(mut self) -> Self {
        self.part = Part::Recorded;
        self
    }

    /// What it does makes all later calls of the process slower: its rows are measured after all others of the run.
    pub fn last(mut self) -> Self {
        self.part = Part::Last;
        self
    }

    /// Its rows are decided by this many rounds, without a warm-up: what they show is a yes or a no, and more rounds would say
    /// it again.
    pub fn trials(mut self, count: NonZeroUsize) -> Self {
        self.repeats = Repeats::Trials(count);
        self
    }

    /// Its rows are sampled without a warm-up: for work of the host alone that loads nothing and takes most of a second.
    pub fn without_warmup(mut self) -> Self {
        self.repeats = Repeats::Unwarmed;
        self
    }

    /// Leaves all rows as skipped where there is a reason.
    pub fn skipped(mut self, reason: Option<String>) -> Self {
        self.left_out = reason;
        self
    }

    /// A row of the host's clock: for how long what `make` returns holds the host.
    pub fn host_time<B, R>(
        self,
        id: &'static str,
        label: &str,
        make: impl FnOnce(&S) -> Result<B, DeviceError> + 'a,
    ) -> Self
    where
        B: FnMut() -> Result<R, DeviceError> + 'static,
        R: 'static,
    {
        let make = Box::new(|shared: &S, id| Ok(Case::host_timed(id, make(shared)?)));
        self.sampled(id, label, Unit::Seconds, Clock::Host, make)
    }

    /// A row of the host's clock, of the part of what `make` returns that it runs by the stopwatch.
    pub fn host_time_within<B>(
        self,
        id: &'static str,
        label: &str,
        make: impl FnOnce(&S) -> Result<B, DeviceError> + 'a,
    ) -> Self
    where
        B: FnMut(&mut Stopwatch) -> Result<(), DeviceError> + 'static,
    {
        let make = Box::new(|shared: &S, id| Ok(Case::host_timed_within(id, make(shared)?)));
        self.sampled(id, label, Unit::Seconds, Clock::Host, make)
    }

    /// A row of two events on a stream: how many seconds lie on it from the beginning to the end of what `make` returns
    /// beside it.
    pub fn device_time<B, R>(
        self,
        id: &'static str,
        label: &str,
        make: impl FnOnce(&S) -> Result<(Stream, B), DeviceError> + 'a,
    ) -> Self
    where
        B: FnMut() -> Result<R, DeviceError> + 'static,
        R: 'static,
    {
        let make = Box::new(|shared: &S, id| {
            let (stream, body) = make(shared)?;
            Case::device_timed(id, &stream, body)
        });
        self.sampled(id, label, Unit::Seconds, Clock::DeviceEvents, make)
    }

    /// A row of times that what `make` returns takes from `clock` by itself, in seconds.
    pub fn time_by<B>(
        self,
        clock: Clock,
        id: &'static str,
        label: &str,
        make: impl FnOnce(&S) -> Result<B, DeviceError> + 'a,
    ) -> Self
    where
        B: FnMut() -> Result<f64, DeviceError> + 'static,
    {
        let make = Box::new(move |shared: &S, id| Ok(Case::timed_by(clock, id, make(shared)?)));
        self.sampled(id, label, Unit::Seconds, clock, make)
    }

    /// A row of values that what `make` returns observes: a count, a yes (1) or no (0).
    pub fn observed<B>(
        self,
        id: &'static str,
        label: &str,
        unit: Unit,
        make: impl FnOnce(&S) -> Result<B, DeviceError> + 'a,
    ) -> Self
    where
        B: FnMut() -> Result<f64, DeviceError> + 'static,
    {
        let make = Box::new(|shared: &S, id| Ok(Case::new(id, make(shared)?)));
        self.sampled(id, label, unit, Clock::Observed, make)
    }

    /// A row that has a meaning in another system alone, for this reason.
    pub fn foreign(self, id: &'static str, label: &str, unit: Unit, reason: &'static str) -> Self {
        self.observed(id, label, unit, move |_| no_meaning(id, reason))
    }

    /// A row of the host's clock that has a meaning in another system alone, for this reason.
    pub fn foreign_time(self, id: &'static str, label: &str, reason: &'static str) -> Self {
        self.time_by(Clock::Host, id, label, move |_| no_meaning(id, reason))
    }

    /// The same code twice, as two rows of the host's clock, and the ratio of the second to the first: a reader sees what
    /// the method makes of a difference that is none.
    pub fn twice<B, R>(
        self,
        [first, second, ratio]: [&'static str; 3],
        make: impl Fn(&S) -> Result<B, DeviceError> + 'a,
    ) -> Self
    where
        B: FnMut() -> Result<R, DeviceError> + 'static,
        R: 'static,
    {
        let make = Rc::new(make);
        let again = Rc::clone(&make);
        self.host_time(first, "The same code, first", move |shared| make(shared))
            .host_time(second, "The same code, second", move |shared| again(shared))
            .derived(
                ratio,
                "The same code twice, ratio",
                Unit::Ratio,
                Formula::of("second / first", [("second", second), ("first", first)]).is(Derivation::SameCode),
            )
    }

    fn sampled(self, id: &'static str, label: &str, unit: Unit, clock: Clock, make: Make<'a, S>) -> Self {
        self.declared(id, label, unit, Provenance::measured(clock), Kind::Sampled(make))
    }

    /// A row that is computed, round by round, from rows that stand here or were measured before. What is missing of an
    /// operand is missing of the row, for the same reason.
    ///
    /// Operands of one group were interleaved, so that their samples of one round belong together; for others, pairing
    /// is by order alone, up to the shorter.
    pub fn derived(self, id: &'static str, label: &str, unit: Unit, formula: Formula) -> Self {
        let Formula { derivation, text: formula, operands } = formula;
        self.declared(id, label, unit, Provenance::Derived { derivation, formula, operands }, Kind::Derived)
    }

    /// The difference of two times of the group: the first less the second, round by round.
    pub fn difference(self, id: &'static str, label: &str, [from, less]: [&'static str; 2]) -> Self {
        let short = |id: &'static str| id.rsplit('.').next().unwrap_or(id);
        let [from, less] = [from, less].map(|id| (short(id), id));
        let formula = Formula::of(format!("{} − {}", from.0, less.0), [from, less]);
        self.derived(id, label, Unit::Seconds, formula.is(Derivation::Difference))
    }

    /// The last row, whose samples are divided by `count`: they are of one iteration of a loop of `count`. A derived row
    /// stays as it is.
    pub fn per(mut self, count: usize) -> Self {
        if let Some(Provenance::Measured { iterations, .. }) =
            self.rows.last_mut().map(|last| &mut last.spec.provenance)
        {
            *iterations = count as u64;
        }
        self.changed(move |case| case.per(count))
    }

    /// The last row, whose work another processor does: see [`Case::elsewhere`].
    pub fn elsewhere(self) -> Self {
        self.changed(Case::elsewhere)
    }

    /// The last row, whose samples are parts of one event of each round: see [`Case::of_event`].
    pub fn of_event(self, event: usize) -> Self {
        self.changed(move |case| case.of_event(event))
    }

    /// The last row, whose case is what `change` makes of it.
    fn changed(mut self, change: impl FnOnce(Case<'static>) -> Case<'static> + 'a) -> Self {
        let last = self.rows.pop();
        self.rows.extend(last.map(|Declared { spec, kind }| match kind {
            Kind::Sampled(make) => {
                let make: Make<'a, S> = Box::new(move |shared, id| Ok(change(make(shared, id)?)));
                Declared { spec, kind: Kind::Sampled(make) }
            }
            Kind::Derived => Declared { spec, kind },
        }));
        self
    }

    /// States how much work a sample of the last row holds.
    pub fn work(mut self, work: Work) -> Self {
        if let Some(last) = self.rows.last_mut() {
            last.spec.work = Some(work);
        }
        self
    }

    /// Marks the last row as the floor of a clock: the least time that the clock shows.
    pub fn floor_of(mut self, clock: Clock) -> Self {
        if let Some(last) = self.rows.last_mut() {
            last.spec.floor = Some(clock);
        }
        self
    }

    fn declared(
        mut self,
        id: &'static str,
        label: &str,
        unit: Unit,
        provenance: Provenance,
        kind: Kind<'a, S>,
    ) -> Self {
        let (id, group, label) = (id.to_owned(), self.heading.clone(), label.to_owned());
        let parameters = self.current.clone();
        let spec = MetricSpec { id, group, label, unit, parameters, provenance, work: None, floor: None };
        self.rows.push(Declared { spec, kind });
        self
    }

    /// Measures the rows in the turn of the group; in the last turn computes those that are derived.
    pub fn run(self) {
        let Self { bench, setup, left_out, rows, part, repeats, .. } = self;
        let (of_part, measures, computes) = bench.next_group(part);
        let before = bench.left();
        if bench.measuring.is_none() {
            rows.iter().filter(|_| of_part).for_each(|row| bench.declare(&row.spec));
            return;
        }
        let left_out = |bench: &Bench, spec: &MetricSpec| match &left_out {
            _ if !bench.selection.holds(&spec.id) => Some(skipped(NOT_CHOSEN)),
            reason => reason.as_deref().map(skipped),
        };
        let (mut sampled, mut derived) = (Vec::new(), Vec::new());
        for Declared { spec, kind } in rows {
            match (kind, left_out(bench, &spec)) {
                (Kind::Sampled(_), Some(absent)) if measures => bench.push(spec, absent),
                (Kind::Derived, Some(absent)) if computes => bench.push(spec, absent),
                (Kind::Sampled(make), None) if measures && bench.is_due(&spec) => sampled.push((spec, make)),
                (Kind::Derived, None) if computes => derived.push(spec),
                _ => {}
            }
        }
        if !sampled.is_empty() {
            sample(bench, setup, sampled, repeats);
        }
        for spec in derived {
            let outcome = compute(bench, &spec);
            bench.push(spec, outcome);
        }
        // In most turns a group leaves nothing: it is the turn of another.
        if bench.left() > before {
            bench.tell();
        }
    }
}

const NOT_CHOSEN: &str = "left out by choice";

fn skipped(reason: &str) -> Outcome {
    Outcome::Skipped { reason: reason.to_owned() }
}

/// What a case could not be made for.
fn unmade(error: &DeviceError) -> Outcome {
    match error {
        DeviceError::NotApplicable { reason, .. } => Outcome::NotApplicable { reason: reason.clone() },
        error => Outcome::Failed { reason: error.to_string() },
    }
}

fn sample<S>(bench: &mut Bench, setup: Setup<'_, S>, rows: Vec<(MetricSpec, Make<'_, S>)>, repeats: Repeats) {
    let Some(measuring) = bench.measuring.clone() else { return };
    let ids: Vec<&str> = rows.iter().map(|(spec, _)| spec.id.as_str()).collect();
    let parameters = rows.first().map(|(spec, _)| spec.parameters.clone()).unwrap_or_default();
    bench.interrupted |= measuring.sampler.is_interrupted();
    let outcomes = if bench.interrupted {
        rows.into_iter().map(|(spec, _)| (spec, Outcome::Interrupted)).collect()
    } else {
        measuring.observer.group(&ids, &parameters);
        match setup(&measuring.device) {
            Ok(shared) => {
                let (mut cases, mut outcomes, mut specs) = (Vec::new(), Vec::new(), Vec::new());
                for (spec, make) in rows {
                    match make(&shared, spec.title()) {
                        Ok(case) => {
                            cases.push(case);
                            specs.push(spec);
                        }
                        Err(error) => outcomes.push((spec, unmade(&error))),
                    }
                }
                drop(shared);
                outcomes.extend(sampled(bench, &measuring, specs, cases, repeats));
                outcomes
            }
            Err(error) => rows.into_iter().map(|(spec, _)| (spec, unmade(&error))).collect::<Vec<_>>(),
        }
    };
    outcomes.into_iter().for_each(|(spec, outcome)| bench.push(spec, outcome));
}

/// Samples the cases, one for each of `specs`.
fn sampled(
    bench: &mut Bench,
    measuring: &super::bench::Measuring,
    specs: Vec<MetricSpec>,
    cases: Vec<Case<'static>>,
    repeats: Repeats,
) -> Vec<(MetricSpec, Outcome)> {
    let all =
        |specs: Vec<MetricSpec>, outcome: Outcome| specs.into_iter().map(|spec| (spec, outcome.clone())).collect();
    if cases.is_empty() {
        return Vec::new();
    }
    let sampler = &measuring.sampler.of_stride(bench.stride(&specs));
    let kept = match repeats {
        Repeats::AsStated => sampler.sample(cases),
        Repeats::Unwarmed => sampler.without_warmup().sample(cases),
        Repeats::Trials(count) => sampler.of_trials(count).sample(cases),
    };
    match kept {
        Ok(kept) => {
            bench.interrupted |= kept.stopped_by == StoppedBy::Interrupt;
            let in_passes = bench.takes_part_in_passes(matches!(repeats, Repeats::Trials(_)));
            let outcomes = Outcome::of_rounds(kept, measuring.begun).map(|mut outcome| {
                if let (Outcome::Measured { passes, .. }, false) = (&mut outcome, in_passes) {
                    passes.clear();
                }
                outcome
            });
            specs.into_iter().zip(outcomes).collect()
        }
        Err(MeasureError::Interrupted) => {
            bench.interrupted = true;
            all(specs, Outcome::Interrupted)
        }
        Err(error) => all(specs, Outcome::Failed { reason: error.to_string() }),
    }
}

fn compute(bench: &Bench, spec: &MetricSpec) -> Outcome {
    let Provenance::Derived { formula, operands, .. } = &spec.provenance else {
        return Outcome::Failed { reason: "a measured row has no formula".to_owned() };
    };
    let of = |operand: &FormulaOperand| {
        let samples = bench.samples(&operand.id, operand.parameters.as_ref().unwrap_or(&spec.parameters))?;
        Ok((operand.name.clone(), samples))
    };
    let found = match operands.iter().map(of).collect::<Result<Vec<(String, &[f64])>, Box<Outcome>>>() {
        Err(absent) => match *absent {
            Outcome::Skipped { reason } if reason == NOT_CHOSEN => {
                return skipped("the rows that it is computed from were left out by choice");
            }
            absent => return absent,
        },
        Ok(found) => found,
    };
    let found: Vec<(&str, &[f64])> = found.iter().map(|(name, samples)| (name.as_str(), *samples)).collect();
    computed(formula, &found, &spec.parameters)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

/// Why a row is not measured here.
fn no_meaning(id: &str, reason: &str) -> Result<fn() -> Result<f64, DeviceError>, DeviceError> {
    Err(DeviceError::NotApplicable { what: id.to_owned(), device: String::new(), reason: reason.to_owned() })
}
