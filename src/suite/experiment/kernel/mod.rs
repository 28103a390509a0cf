//! `kernel`: a kernel of the suite's author, over the combinations of its axes.
//!
//! - *time*: of one launch on the device, in batches behind a closed gate, with what the launch before left in the caches;
//!   *cold*: with the caches full of other data; *events*: by two events around one launch, with what it costs to begin it.
//! - *launch*: how long one launch holds the host.
//! - *rate*, *flops*: the bytes and the operations that the author states, over *time*.
//!
//! Launches follow each other on the same tensors: what the kernel reads it may have written. The check is of the first launch
//! alone, before anything is timed.
//!
//! What it does not cover: that the bytes and operations are those that the kernel moves and does. They are the author's.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde_json::Number;

use crate::device::{Argument, Code, Kernel as Loaded, Launch};
use crate::experiment::prelude::*;
use crate::measure::DeviceClock;
use crate::results::{Expression, nearest};

mod operand;

use operand::{Exact, Found, Given, Operand};

/// A kernel of one's own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Stated", into = "Stated")]
pub struct Kernel {
    stated: Stated,
    cases: Vec<Launched>,
}

/// What a suite states of a kernel.
///
/// Numbers can be formulas of the axes, `(rows + 2) * columns / 256`: numbers, names of axes, `+ - * /`, `**` for powers,
/// parentheses, `max(a, b)` and `min(a, b)`. Formulas compute with fractions. Counts (blocks, threads, bytes of shared memory,
/// elements of a tensor) are rounded up once, at the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Stated {
    /// The file of its source in CUDA C++, beside the suite or in a folder there.
    source: Option<Source>,
    /// Its name in the source.
    kernel: String,
    /// Options of NVRTC, such as `--use_fast_math`.
    options: Vec<String>,
    /// What is varied: names, each with its values.
    axes: BTreeMap<String, Vec<Size>>,
    /// Blocks of the grid: one number, or up to three. Rounded up: `elements / 256` has a thread for each element.
    grid: Sides,
    /// Threads of a block: as the grid.
    block: Sides,
    /// Bytes of dynamic shared memory for each block.
    shared_bytes: Amount,
    /// The arguments in the order of the kernel's parameters.
    arguments: Vec<Given>,
    /// Bytes that a launch reads and writes.
    bytes: Option<Amount>,
    /// Floating-point operations of a launch.
    operations: Option<Amount>,
    /// What the first launch leaves.
    check: Option<Check>,
    /// Launches in a sample of the host's time.
    launches: Count,
}

impl Default for Stated {
    fn default() -> Self {
        let (one, none) = (Amount::Number(1.into()), Amount::Number(0.into()));
        Self {
            source: None,
            kernel: String::new(),
            options: Vec::new(),
            axes: BTreeMap::new(),
            grid: Sides::One(one.clone()),
            block: Sides::One(one),
            shared_bytes: none,
            arguments: Vec::new(),
            bytes: None,
            operations: None,
            check: None,
            launches: count(20),
        }
    }
}

/// A file with its text, which travels with the suite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Source {
    file: String,
    text: String,
}

/// A number, or a formula of the axes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a number, or a formula of the axes")]
enum Amount {
    Number(Number),
    Formula(String),
}

/// One number, or up to three.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected one number, or a list of up to three")]
enum Sides {
    One(Amount),
    Several(Vec<Amount>),
}

/// What an argument has to hold after one launch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Check {
    /// The number of the argument, from 1.
    argument: usize,
    /// The value of each of its elements, rounded to their type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<Amount>,
    /// A kernel of the same source that leaves the same, from the same arguments. Infinity is the same as itself alone; a check of
    /// what is no number (NaN) fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kernel: Option<String>,
    /// By how much of its size, or of 1 where that is more, a value may be another.
    #[serde(default)]
    tolerance: f64,
}

/// A kernel at one combination of the axes.
#[derive(Clone, Debug, PartialEq)]
struct Launched {
    /// The axes, and what the author says of a launch.
    parameters: Parameters,
    launch: [[u32; 3]; 2],
    shared_bytes: u32,
    /// Of each argument how many elements a tensor has, or the bits of a number.
    amounts: Vec<u64>,
    /// What the check expects of each element.
    expected: Option<Found>,
}

/// The most combinations of axes.
const MAX_COMBINATIONS: usize = 1000;
/// What an axis cannot be called: rows have parameters of that name.
const TAKEN: [&str; 4] = ["bytes", "kernel", "operations", "source"];

impl Experiment for Kernel {
    const NAME: &'static str = "kernel";
    const SUMMARY: &'static str = "How long a kernel of your own takes";
    const ITERATIONS: Option<&'static str> = Some("launches");
    const FILES: &'static [&'static str] = &["source"];

    fn groups(&self, _engine: &str) -> Vec<Group> {
        let Some(source) = &self.stated.source else { return Vec::new() };
        let code = Code::cuda(&source.file, &source.text).beside(&source.file);
        let code = self.stated.options.iter().fold(code, |code, option| code.option(option));
        self.cases.iter().map(|case| self.group(&code, case)).collect()
    }
}

impl Kernel {
    /// The rows of one combination.
    fn group(&self, code: &Code, case: &Launched) -> Group {
        let (code, stated, own) = (code.clone(), self.stated.clone(), case.clone());
        let launches = self.stated.launches.get();
        let parameters = case.parameters.iter().map(|(name, value)| (name.as_str(), value.clone()));
        let amount = |name: &str| case.parameters.get(name).and_then(Parameter::number);
        let mut group = Group::of("Kernels", parameters)
            .setup(move |device| Prepared::new(device, &code, &stated, &own).map(Rc::new))
            .device_time_by(Clock::DeviceBatch, "kernel.time", "Time on the device", |own| {
                own.timed(DeviceClock::behind_gate)
            });
        if let Some(bytes) = amount("bytes") {
            group = group.work(Work::copy(bytes, "bytes", bytes / 2.0));
        } else if let Some(operations) = amount("operations") {
            group = group.work(Work::matmul(operations, "operations"));
        }
        group = group
            .device_time_by(Clock::DeviceBatch, "kernel.cold", "The same, with cold caches", |own| {
                let (clock, launch) = own.timed(DeviceClock::behind_gate)?;
                Ok((clock.cold()?, launch))
            })
            .device_time_by(Clock::DeviceEvents, "kernel.events", "The same, by events around one launch", |own| {
                own.timed(DeviceClock::by_events)
            })
            .host_time_within("kernel.launch", "Launch, on the host", move |own| {
                let own = Rc::clone(own);
                Ok(move |watch: &mut Stopwatch| own.launched(launches, watch))
            })
            .per(launches);
        if amount("bytes").is_some() {
            group = group.derived("kernel.rate", "Bytes read and written", Unit::BytesPerSecond, "bytes / time");
        }
        if amount("operations").is_some() {
            group = group.derived("kernel.flops", "Operations", Unit::FlopsPerSecond, "operations / time");
        }
        group.build()
    }
}

impl TryFrom<Stated> for Kernel {
    type Error = String;

    /// Computes each combination: what is wrong with one is wrong with the suite.
    fn try_from(stated: Stated) -> Result<Self, String> {
        if stated.source.is_none() {
            return Err("`source`, the file of the kernel, is missing".to_owned());
        }
        let cases = stated.cases()?;
        Ok(Self { stated, cases })
    }
}

impl From<Kernel> for Stated {
    fn from(kernel: Kernel) -> Self {
        kernel.stated
    }
}

impl Stated {
    fn cases(&self) -> Result<Vec<Launched>, String> {
        if self.kernel.is_empty() {
            return Err("`kernel`, the name of the kernel in the source, is missing".to_owned());
        }
        let mut all = vec![Parameters::from([("kernel".to_owned(), self.kernel.as_str().into())])];
        for (name, values) in &self.axes {
            let is_name = Expression::parse(name).is_ok_and(|name| name.is_name());
            if !is_name || TAKEN.contains(&name.as_str()) {
                return Err(format!("an axis cannot be called `{name}`"));
            }
            let with = |(combination, value): (&Parameters, &Size)| {
                let mut combination = combination.clone();
                combination.insert(name.clone(), value.get().into());
                combination
            };
            all = all.iter().flat_map(|one| values.iter().map(move |value| (one, value))).map(with).collect();
            if all.len() > MAX_COMBINATIONS {
                return Err(format!("the axes have more than {MAX_COMBINATIONS} combinations"));
            }
        }
        all.into_iter().map(|axes| self.launched(axes)).collect()
    }

    /// The kernel at one combination of the axes.
    fn launched(&self, axes: Parameters) -> Result<Launched, String> {
        let amount = |(place, argument): (usize, &Given)| {
            argument.amount(&axes).map_err(|why| format!("argument {}: {why}", place + 1))
        };
        let amounts: Vec<u64> = self.arguments.iter().enumerate().map(amount).collect::<Result<_, _>>()?;
        let launch = [self.grid.of(&axes, "grid")?, self.block.of(&axes, "block")?];
        let shared_bytes =
            self.shared_bytes.whole(&axes, 0..=u32::MAX.into()).map_err(|why| format!("shared_bytes: {why}"))?;
        let expected = match &self.check {
            Some(check) if check.kernel.as_ref() == Some(&self.kernel) => {
                return Err(format!("check: `{}` cannot check itself: name another kernel of the source", self.kernel));
            }
            Some(check) => check.expected(&axes, &self.arguments).map_err(|why| format!("check: {why}"))?,
            None => None,
        };
        let mut parameters = axes.clone();
        for (name, amount) in [("bytes", &self.bytes), ("operations", &self.operations)] {
            if let Some(amount) = amount {
                let number = amount.of(&axes).map_err(|why| format!("{name}: {why}"))?;
                if number < 0.0 {
                    return Err(format!("{name}: {amount} comes to {number}: it has to be at least 0"));
                }
                parameters.insert(name.to_owned(), number.into());
            }
        }
        Ok(Launched { parameters, launch, shared_bytes: shared_bytes as u32, amounts, expected })
    }
}

impl Amount {
    /// The number, where the axes have these values.
    fn of(&self, axes: &Parameters) -> Result<f64, String> {
        let number = match self {
            Amount::Number(number) => number.as_f64().unwrap_or(f64::NAN),
            Amount::Formula(text) => {
                let formula = Expression::parse(text).map_err(|error| error.message)?;
                let value = |name: &str| axes.get(name).and_then(Parameter::number);
                if let Some(unknown) = formula.names().into_iter().find(|name| value(name).is_none()) {
                    let known = axes.keys().map(String::as_str).filter(|name| value(name).is_some());
                    return Err(format!("`{unknown}` in `{text}` is no axis{}", nearest(unknown, known)));
                }
                formula.evaluate(&value).unwrap_or(f64::NAN)
            }
        };
        if number.is_finite() {
            Ok(number)
        } else {
            Err(format!("{self} has no finite value: it divides by 0, or comes to too large a number"))
        }
    }

    /// The number as it is written, where it is whole: a floating-point number holds not every one. A formula computes with those.
    fn exact(&self, axes: &Parameters) -> Result<Exact, String> {
        match self {
            Amount::Number(number) => Ok(Exact::of(number)),
            Amount::Formula(_) => self.of(axes).map(Exact::of_computed),
        }
    }

    /// The number, rounded up, in a range.
    fn whole(&self, axes: &Parameters, range: RangeInclusive<u64>) -> Result<usize, String> {
        let number = self.of(axes)?;
        // `elements * 0.1` is a little more than 3 where elements is 30.
        let whole = (number * (1.0 - 4.0 * f64::EPSILON)).ceil();
        if number >= 0.0 && range.contains(&(whole as u64)) {
            Ok(whole as usize)
        } else {
            Err(format!("{self} comes to {number}: it has to be from {} to {}", range.start(), range.end()))
        }
    }
}

impl std::fmt::Display for Amount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Amount::Number(number) => write!(f, "{number}"),
            Amount::Formula(text) => write!(f, "`{text}`"),
        }
    }
}

impl Sides {
    fn all(&self) -> &[Amount] {
        match self {
            Sides::One(one) => std::slice::from_ref(one),
            Sides::Several(several) => several,
        }
    }

    fn of(&self, axes: &Parameters, what: &str) -> Result<[u32; 3], String> {
        let all = self.all();
        if all.is_empty() || all.len() > 3 {
            return Err(format!("{what}: expected one number, or up to three"));
        }
        let mut sides = [1; 3];
        for (side, amount) in sides.iter_mut().zip(all) {
            *side = amount.whole(axes, 1..=i32::MAX as u64).map_err(|why| format!("{what}: {why}"))? as u32;
        }
        Ok(sides)
    }
}

impl Check {
    /// What each element has to be, where that is one value.
    fn expected(&self, axes: &Parameters, arguments: &[Given]) -> Result<Option<Found>, String> {
        let argument = self.argument.checked_sub(1).and_then(|place| arguments.get(place));
        let Some(dtype) = argument.and_then(Given::elements_type) else {
            return Err(format!("argument {} is no tensor", self.argument));
        };
        if !(0.0..=1.0).contains(&self.tolerance) {
            return Err(format!("a tolerance is between 0 and 1, not {}", self.tolerance));
        }
        match (&self.value, &self.kernel) {
            (Some(value), None) => value.exact(axes)?.held(dtype).map(Some),
            (None, Some(_)) => Ok(None),
            _ => Err("expected either `value` or `kernel`".to_owned()),
        }
    }
}

/// A kernel with its arguments on a device.
struct Prepared {
    stream: Stream,
    kernel: Loaded,
    launch: Launch,
    operands: Vec<Operand>,
}

impl Prepared {
    /// Loads it, makes its arguments, launches it once, and checks what it left.
    fn new(device: &Device, code: &Code, stated: &Stated, case: &Launched) -> Result<Self> {
        let (stream, module) = (device.stream()?, device.load(code)?);
        let arguments = stated.arguments.iter().zip(&case.amounts);
        let operands: Vec<Operand> =
            arguments.map(|(argument, amount)| argument.made(&stream, *amount)).collect::<Result<_>>()?;
        let [grid, block] = case.launch;
        let launch = Launch::new(grid, block).with_shared(case.shared_bytes);
        let with = |kernel: &str, operands| -> Result<Self> {
            Ok(Self { stream: stream.clone(), kernel: module.kernel(kernel)?, launch, operands })
        };
        let reference = stated.check.as_ref().and_then(|check| check.kernel.as_ref());
        let reference = match reference {
            Some(kernel) => Some(with(kernel, operands.iter().map(Operand::copied).collect::<Result<_>>()?)?),
            None => None,
        };
        let own = with(&stated.kernel, operands)?;
        for prepared in reference.iter().chain([&own]) {
            prepared.kernel.launch(&stream, launch, &prepared.arguments()[..])?;
        }
        stream.synchronize()?;
        if let Some(check) = &stated.check {
            let left = |prepared: &Self| prepared.operands[check.argument - 1].values();
            let wanted = reference.as_ref().map(left).transpose()?;
            let wanted = |place: usize| wanted.as_ref().map_or(case.expected, |all| all.get(place).copied());
            for (place, found) in left(&own)?.into_iter().enumerate() {
                let why = wanted(place).and_then(|wanted| found.differs(wanted, check.tolerance));
                if let Some(why) = why {
                    let why = format!("element {place} of argument {} is {why}", check.argument);
                    return Err(DeviceError::invalid("kernel", format!("`{}`: {why}", stated.kernel)));
                }
            }
        }
        Ok(own)
    }

    fn arguments(&self) -> Vec<Argument<'_>> {
        self.operands.iter().map(Operand::argument).collect()
    }

    /// A clock of its stream, and a launch to time by it.
    fn timed(
        self: &Rc<Self>,
        by: fn(DeviceClock) -> DeviceClock,
    ) -> Result<(DeviceClock, impl FnMut() -> Result<()> + use<>)> {
        let own = Rc::clone(self);
        let launch = move || own.kernel.launch(&own.stream, own.launch, &own.arguments()[..]);
        Ok((by(DeviceClock::new(&self.stream)?), launch))
    }

    /// Times so many launches on the host, before it waits for them.
    fn launched(&self, launches: usize, watch: &mut Stopwatch) -> Result<()> {
        let arguments = self.arguments();
        let launch = || self.kernel.launch(&self.stream, self.launch, &arguments[..]);
        watch.time(|| (0..launches).try_for_each(|_| launch()))?;
        self.stream.synchronize()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
