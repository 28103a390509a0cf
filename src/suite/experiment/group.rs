//! A group of rows: declared one after the other, sampled together.

use std::num::NonZeroUsize;
use std::rc::Rc;

use super::Result;
use super::each_round::EachRound;
use super::formula::Formula;
use crate::device::{Device, Stream};
use crate::error::DeviceError;
use crate::measure::{Case, Clock, DeviceClock, Stopwatch};
use crate::results::{Derivation, MetricSpec, Parameter, Parameters, Provenance, Work};
use crate::units::Unit;

/// The identifier of a row: it stands as a whole where the row is declared.
pub type RowId = &'static str;

/// Rows under a heading, and how they are measured: [`of`](Self::of) begins one. Its cases are sampled together,
/// interleaved, so that a reader may compare them.
///
/// A group says what would be measured. A bench measures it, once in each pass of a run.
pub struct Group {
    pub(super) part: Part,
    pub(super) repeats: Repeats,
    /// Why none of its rows is measured.
    pub(super) left_out: Option<String>,
    pub(super) rows: Vec<MetricSpec>,
    cases: Box<MakeCases>,
}

/// The cases of some rows, or why there is none; an error of the whole is one of their setup.
type Cases = Result<Vec<Result<Case<'static>>>>;
type MakeCases = dyn Fn(&Device, &[usize]) -> Cases;

/// The parts of a run: what changes the process for the calls after it is measured after those.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Rows that need no recording.
    Timed,
    /// Rows that need devices which are connected. The access between these stays.
    Connected,
    /// Rows that come from recordings. Once a process has recorded its device, its later calls take longer.
    Recorded,
    /// Rows whose measurement makes all later calls of the process slower.
    Last,
}

/// How its rows are sampled.
#[derive(Clone, Copy)]
pub(super) enum Repeats {
    /// As the run's protocol says.
    AsStated,
    /// The same without a warm-up.
    Unwarmed,
    /// So many, without a warm-up.
    Trials(NonZeroUsize),
}

impl Group {
    /// Begins a group under a heading, whose rows all have these parameters.
    pub fn of<'p>(heading: &str, parameters: impl IntoIterator<Item = (&'p str, Parameter)>) -> GroupBuilder<Device> {
        let parameters = named(parameters.into_iter().collect());
        let (part, repeats, cases) =
            (Part::Timed, Repeats::AsStated, Box::new(|_: &Device, _: &[usize]| Ok(Vec::new())));
        GroupBuilder {
            heading: heading.to_owned(),
            current: parameters.clone(),
            parameters,
            group: Self { part, repeats, left_out: None, rows: Vec::new(), cases },
            setup: Box::new(|device: &Device| Ok(device.clone())),
            makes: Vec::new(),
        }
    }

    /// Its rows, in the order in which they were declared.
    pub fn rows(&self) -> &[MetricSpec] {
        &self.rows
    }

    /// The part of a run that it is of.
    pub fn part(&self) -> Part {
        self.part
    }

    /// The cases of the measured rows at these places: set up once, for all of them.
    pub(super) fn cases(&self, device: &Device, places: &[usize]) -> Cases {
        (self.cases)(device, places)
    }
}

/// A group that is being declared. Rows that differ in parameters stand in one group by
/// [`with_parameters`](Self::with_parameters). `S` is what the cases share: made once, by [`setup`](Self::setup), before the
/// first of them.
#[must_use = "a group is declared by `build`"]
pub struct GroupBuilder<S> {
    heading: String,
    /// Those of all its rows.
    parameters: Parameters,
    /// Those of the rows that are declared from now on.
    current: Parameters,
    /// The group as far as it is declared, which has no cases yet.
    group: Group,
    setup: Setup<S>,
    /// What makes the case of each row; a computed one has none.
    makes: Vec<Option<Make<S>>>,
}

type Setup<S> = Box<dyn Fn(&Device) -> Result<S>>;
type Make<S> = Box<dyn Fn(&Rc<S>, String) -> Result<Case<'static>>>;

/// A row of a part of an event: its identifier, label, unit and clock, and which part.
type EventPart<'l, T> = (RowId, &'l str, Unit, Clock, fn(&T) -> f64);

impl GroupBuilder<Device> {
    /// With `setup` run once before the first case; what it returns is shared by all cases, which are declared after it.
    pub fn setup<S>(self, setup: impl Fn(&Device) -> Result<S> + 'static) -> GroupBuilder<S> {
        let Self { heading, parameters, current, group, .. } = self;
        GroupBuilder { heading, parameters, current, group, setup: Box::new(setup), makes: Vec::new() }
    }
}

impl<S: 'static> GroupBuilder<S> {
    /// The parameters of the group.
    pub fn parameters(&self) -> Parameters {
        self.parameters.clone()
    }

    /// The rows declared from now on have these parameters beside those of the group, in place of what an earlier call
    /// stated. Their computations take operands with the same parameters.
    pub fn with_parameters<'p>(mut self, parameters: impl IntoIterator<Item = (&'p str, Parameter)>) -> Self {
        self.current = self.parameters.clone();
        self.current.extend(named(parameters.into_iter().collect()));
        self
    }

    /// Its rows are measured in this part of a run.
    pub fn measured_in(mut self, part: Part) -> Self {
        self.group.part = part;
        self
    }

    /// Its rows are decided by this many rounds, without a warm-up: what they show is a yes or a no, and more rounds would say
    /// it again.
    pub fn trials(mut self, count: NonZeroUsize) -> Self {
        self.group.repeats = Repeats::Trials(count);
        self
    }

    /// Its rows are sampled without a warm-up: for work of the host alone that loads nothing and takes most of a second.
    pub fn without_warmup(mut self) -> Self {
        self.group.repeats = Repeats::Unwarmed;
        self
    }

    /// Leaves all rows as skipped where there is a reason.
    pub fn skipped(mut self, reason: Option<String>) -> Self {
        self.group.left_out = reason;
        self
    }

    /// A row of the host's clock: for how long what `make` returns holds the host.
    pub fn host_time<B, R>(self, id: RowId, label: &str, make: impl Fn(&S) -> Result<B> + 'static) -> Self
    where
        B: FnMut() -> Result<R> + 'static,
        R: 'static,
    {
        let make = Box::new(move |shared: &Rc<S>, id| Ok(Case::single(id, make(shared)?)));
        self.sampled(id, label, Unit::Seconds, Clock::Host, make)
    }

    /// A row of the host's clock, of the part of what `make` returns that it runs by the stopwatch.
    pub fn host_time_within<B>(self, id: RowId, label: &str, make: impl Fn(&S) -> Result<B> + 'static) -> Self
    where
        B: FnMut(&mut Stopwatch) -> Result<()> + 'static,
    {
        let make = Box::new(move |shared: &Rc<S>, id| Ok(Case::within(id, make(shared)?)));
        self.sampled(id, label, Unit::Seconds, Clock::Host, make)
    }

    /// A row of two events on a stream: how many seconds lie on it from the beginning to the end of what `make` returns
    /// beside it.
    pub fn device_time<B, R>(self, id: RowId, label: &str, make: impl Fn(&S) -> Result<(Stream, B)> + 'static) -> Self
    where
        B: FnMut() -> Result<R> + 'static,
        R: 'static,
    {
        self.device_time_by(Clock::DeviceEvents, id, label, move |shared| {
            let (stream, body) = make(shared)?;
            Ok((DeviceClock::new(&stream)?, body))
        })
    }

    /// A row of a clock of a device, which is of the kind `clock`: the seconds of what `make` returns beside it.
    pub fn device_time_by<B, R>(
        self,
        clock: Clock,
        id: RowId,
        label: &str,
        make: impl Fn(&S) -> Result<(DeviceClock, B)> + 'static,
    ) -> Self
    where
        B: FnMut() -> Result<R> + 'static,
        R: 'static,
    {
        let make = Box::new(move |shared: &Rc<S>, id| {
            let (clock, body) = make(shared)?;
            Case::on_device(id, clock, body)
        });
        self.sampled(id, label, Unit::Seconds, clock, make)
    }

    /// A row of times that what `make` returns takes from `clock` by itself, in seconds.
    pub fn time_by<B>(self, clock: Clock, id: RowId, label: &str, make: impl Fn(&S) -> Result<B> + 'static) -> Self
    where
        B: FnMut() -> Result<f64> + 'static,
    {
        let make = Box::new(move |shared: &Rc<S>, id| Ok(Case::timed_by(clock, id, make(shared)?)));
        self.sampled(id, label, Unit::Seconds, clock, make)
    }

    /// A row of values that what `make` returns observes: a count, a yes (1) or no (0).
    pub fn observed<B>(self, id: RowId, label: &str, unit: Unit, make: impl Fn(&S) -> Result<B> + 'static) -> Self
    where
        B: FnMut() -> Result<f64> + 'static,
    {
        let make = Box::new(move |shared: &Rc<S>, id| Ok(Case::observed(id, make(shared)?)));
        self.sampled(id, label, unit, Clock::Observed, make)
    }

    /// A row that has a meaning in another system alone, for this reason.
    pub fn foreign(self, id: RowId, label: &str, unit: Unit, reason: &'static str) -> Self {
        self.observed(id, label, unit, move |_| no_meaning(id, reason))
    }

    /// A row of the host's clock that has a meaning in another system alone, for this reason.
    pub fn foreign_time(self, id: RowId, label: &str, reason: &'static str) -> Self {
        self.time_by(Clock::Host, id, label, move |_| no_meaning(id, reason))
    }

    /// A row of the host's clock: for how long `call` holds the host.
    pub fn host_time_of<R: 'static>(self, id: RowId, label: &str, call: impl Fn(&S) -> Result<R> + 'static) -> Self {
        let make = of_shared(call, |id, shared, call| Case::single(id, move || call(&shared)));
        self.sampled(id, label, Unit::Seconds, Clock::Host, make)
    }

    /// A row of the host's clock, of the part of `call` that it runs by the stopwatch.
    pub fn stopwatch_of(
        self,
        id: RowId,
        label: &str,
        call: impl Fn(&S, &mut Stopwatch) -> Result<()> + 'static,
    ) -> Self {
        let make = of_shared(call, |id, shared, call| Case::within(id, move |watch| call(&shared, watch)));
        self.sampled(id, label, Unit::Seconds, Clock::Host, make)
    }

    /// A row of times that `call` takes from `clock` by itself, in seconds.
    pub fn seconds_of(self, clock: Clock, id: RowId, label: &str, call: impl Fn(&S) -> Result<f64> + 'static) -> Self {
        let make = of_shared(call, move |id, shared, call| Case::timed_by(clock, id, move || call(&shared)));
        self.sampled(id, label, Unit::Seconds, clock, make)
    }

    /// A row of values that `call` observes: a count, a yes (1) or no (0).
    pub fn value_of(self, id: RowId, label: &str, unit: Unit, call: impl Fn(&S) -> Result<f64> + 'static) -> Self {
        let make = of_shared(call, |id, shared, call| Case::observed(id, move || call(&shared)));
        self.sampled(id, label, unit, Clock::Observed, make)
    }

    /// The group of the same code twice: two rows of the host's clock, and the ratio of the second to the first. A reader sees
    /// what the method makes of a difference that is none.
    pub fn twice<R: 'static>(
        self,
        [first, second, ratio]: [RowId; 3],
        call: impl Fn(&S) -> Result<R> + 'static,
    ) -> Group {
        let call = Rc::new(call);
        let again = Rc::clone(&call);
        self.host_time_of(first, "The same code, first", move |shared| call(shared))
            .host_time_of(second, "The same code, second", move |shared| again(shared))
            .derived(
                ratio,
                "The same code twice, ratio",
                Unit::Ratio,
                Formula::of("second / first", [("second", second), ("first", first)]).is(Derivation::SameCode),
            )
            .build()
    }

    /// Rows of the parts of an event of which there is one in each round, such as a wait: each by the clock that took it. Where
    /// the group has several such events, `event` is the number of this one.
    pub(super) fn parts<T: 'static, const ROWS: usize>(
        self,
        event: usize,
        events: impl Fn(&S) -> Result<Rc<EachRound<T>>> + Copy + 'static,
        rows: [EventPart<'_, T>; ROWS],
    ) -> Self {
        rows.into_iter().fold(self, |group, (id, label, unit, clock, part)| {
            let row = group.makes.len();
            let make = move |shared: &Rc<S>, id| {
                let events = events(shared)?;
                Ok(Case::timed_by(clock, id, move || events.part(row, part)).of_event(event))
            };
            group.sampled(id, label, unit, clock, Box::new(make))
        })
    }

    fn sampled(self, id: RowId, label: &str, unit: Unit, clock: Clock, make: Make<S>) -> Self {
        self.declared(id, label, unit, Provenance::measured(clock), Some(make))
    }

    /// A row that is computed, round by round, from rows that stand here or were measured before. What is missing of an
    /// operand is missing of the row, for the same reason.
    ///
    /// Operands of one group were interleaved, so that their samples of one round belong together; for others, pairing
    /// is by order alone, up to the shorter.
    pub fn derived(self, id: RowId, label: &str, unit: Unit, formula: impl Into<Formula>) -> Self {
        let declared = || self.group.rows.iter().map(|spec| spec.id.as_str());
        let Formula { derivation, text: formula, operands } = formula.into().with_operands(declared);
        self.declared(id, label, unit, Provenance::Derived { derivation, formula, operands }, None)
    }

    /// The difference of two times of the group: the first less the second, round by round.
    pub fn difference(self, id: RowId, label: &str, [from, less]: [RowId; 2]) -> Self {
        let short = |id: RowId| id.rsplit('.').next().unwrap_or(id);
        let [from, less] = [from, less].map(|id| (short(id), id));
        let formula = Formula::of(format!("{} − {}", from.0, less.0), [from, less]);
        self.derived(id, label, Unit::Seconds, formula.is(Derivation::Difference))
    }

    /// The last row, whose samples are divided by `count`: they are of one iteration of a loop of `count`. A derived row
    /// stays as it is.
    pub fn per(mut self, count: usize) -> Self {
        if let Some(Provenance::Measured { iterations, .. }) =
            self.group.rows.last_mut().map(|last| &mut last.provenance)
        {
            *iterations = count as u64;
        }
        self.changed(move |case| case.per(count))
    }

    /// The last row, whose work another processor does: see [`Case::elsewhere`].
    pub fn elsewhere(self) -> Self {
        self.changed(Case::elsewhere)
    }

    /// The last row, whose case is what `change` makes of it.
    fn changed(mut self, change: impl Fn(Case<'static>) -> Case<'static> + 'static) -> Self {
        let changed = |make: Make<S>| -> Make<S> { Box::new(move |shared, id| Ok(change(make(shared, id)?))) };
        if let Some(last) = self.makes.last_mut() {
            *last = last.take().map(changed);
        }
        self
    }

    /// States how much work a sample of the last row holds.
    pub fn work(mut self, work: Work) -> Self {
        if let Some(last) = self.group.rows.last_mut() {
            last.work = Some(work);
        }
        self
    }

    /// Marks the last row as the floor of a clock: the least time that the clock shows.
    pub fn floor_of(mut self, clock: Clock) -> Self {
        if let Some(last) = self.group.rows.last_mut() {
            last.floor = Some(clock);
        }
        self
    }

    fn declared(mut self, id: RowId, label: &str, unit: Unit, provenance: Provenance, make: Option<Make<S>>) -> Self {
        let (id, group, label) = (id.to_owned(), self.heading.clone(), label.to_owned());
        let parameters = self.current.clone();
        let spec = MetricSpec { id, group, label, unit, parameters, provenance, work: None, floor: None };
        self.group.rows.push(spec);
        self.makes.push(make);
        self
    }

    /// The group, with all its rows declared.
    pub fn build(self) -> Group {
        let Self { setup, makes, group, .. } = self;
        let titles: Vec<String> = group.rows.iter().map(MetricSpec::title).collect();
        let cases = move |device: &Device, places: &[usize]| {
            let shared = Rc::new(setup(device)?);
            let case = |place: &usize| Some(makes[*place].as_ref()?(&shared, titles[*place].clone()));
            Ok(places.iter().filter_map(case).collect())
        };
        Group { cases: Box::new(cases), ..group }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

/// Parameters by their names. The compiler makes this once, and not for each way to list them.
fn named(parameters: Vec<(&str, Parameter)>) -> Parameters {
    parameters.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Makes the case of a call on what the cases of a group share.
fn of_shared<S: 'static, C: 'static>(
    call: C,
    case: impl Fn(String, Rc<S>, Rc<C>) -> Case<'static> + 'static,
) -> Make<S> {
    let call = Rc::new(call);
    Box::new(move |shared, id| Ok(case(id, Rc::clone(shared), Rc::clone(&call))))
}

/// Why a row is not measured here.
fn no_meaning(id: &str, reason: &str) -> Result<fn() -> Result<f64>> {
    Err(DeviceError::NotApplicable { what: id.to_owned(), device: String::new(), reason: reason.to_owned() })
}
