//! The rows of the texts' loops, in any crate that has tensors: asynchronous against forced, reads of a value, overlap.
//!
//! They are the loops of the script for PyTorch, under the same identifiers. Rows under one heading with the same parameters are
//! sampled in turn.

use std::io::Write;
use std::rc::Rc;

use syncscope::measure::{Case, DeviceClock};
use syncscope_results::{MetricSpec, Parameter, Provenance};

use crate::{MakeCase, Result, System, not_applicable};

/// What the loops are made of.
pub trait Texts: System {
    /// A tensor on the device.
    type Tensor: 'static;

    /// A matrix of random numbers of a type: `fp32`.
    ///
    /// # Errors
    /// The crate has no such type; its own.
    fn normal(&self, rows: usize, columns: usize, dtype: &str) -> Result<Self::Tensor>;

    /// Numbers of the host on the device, as a row.
    ///
    /// # Errors
    /// The crate's own, here and below.
    fn of_host(&self, numbers: &[f32], dtype: &str) -> Result<Self::Tensor>;

    /// The product of two matrices.
    fn matmul(&self, a: &Self::Tensor, b: &Self::Tensor) -> Result<Self::Tensor>;

    /// Each number and one.
    fn plus_one(&self, x: &Self::Tensor) -> Result<Self::Tensor>;

    /// The mean of all numbers.
    fn mean(&self, x: &Self::Tensor) -> Result<Self::Tensor>;

    /// The first number of a matrix, on the host.
    fn item(&self, x: &Self::Tensor) -> Result<f32>;

    /// The mean of several numbers that are on the device, on the host.
    fn mean_item(&self, numbers: &[Self::Tensor]) -> Result<f32>;

    /// All numbers, on the host.
    fn to_host(&self, x: &Self::Tensor) -> Result<Vec<f32>>;

    /// Whether a number is greater than 0, on the host.
    fn is_any_positive(&self, x: &Self::Tensor) -> Result<bool>;

    /// Waits for the device, as the crate does it.
    fn synchronize(&self) -> Result<()>;

    /// Has all that was called launched, where the crate does so later, on a thread of its own.
    fn launch(&self) -> Result<()> {
        Ok(())
    }

    /// The clock of the stream on which the crate computes, where it lends one.
    fn clock(&self) -> Result<DeviceClock> {
        Err(not_applicable("the crate lends no stream that events could be recorded on"))
    }
}

/// The rows of a system that has tensors.
pub struct TextRows<S>(std::marker::PhantomData<S>);

/// Why a loop of two streams has no meaning.
const ONE_STREAM: &str = "the crate computes and copies on one stream, from memory that is not page-locked";

impl<S: Texts> TextRows<S> {
    /// Each with what makes its case.
    pub const ROWS: &'static [(&'static str, MakeCase<S>)] = &[
        ("async-frontend.dispatch", |s, row| random_loop(s, row, Waits::Never)),
        ("async-frontend.complete", |s, row| random_loop(s, row, Waits::AtTheEnd)),
        ("async-frontend.same.a", |s, row| random_loop(s, row, Waits::AtTheEnd)),
        ("async-frontend.same.b", |s, row| random_loop(s, row, Waits::AtTheEnd)),
        ("async-frontend.barriers.print.pending", |s, row| read_behind_loop(s, row, false, print)),
        ("async-frontend.barriers.print.ready", |s, row| read_behind_loop(s, row, true, print)),
        ("async-frontend.barriers.item.pending", |s, row| read_behind_loop(s, row, false, item)),
        ("async-frontend.barriers.item.ready", |s, row| read_behind_loop(s, row, true, item)),
        ("async-frontend.barriers.copy.pending", |s, row| read_behind_loop(s, row, false, copy)),
        ("async-frontend.barriers.copy.ready", |s, row| read_behind_loop(s, row, true, copy)),
        ("async-frontend.barriers.branch.pending", |s, row| read_behind_loop(s, row, false, branch)),
        ("async-frontend.barriers.branch.ready", |s, row| read_behind_loop(s, row, true, branch)),
        ("async-frontend.throughput", throughput),
        ("synchronize.timing.without", |s, row| once(s, row, false)),
        ("synchronize.timing.with", |s, row| once(s, row, true)),
        ("synchronize.loop.each", |s, row| random_loop(s, row, Waits::EachTime)),
        ("synchronize.loop.enqueue", |s, row| random_loop(s, row, Waits::Never)),
        ("synchronize.loop.complete", |s, row| random_loop(s, row, Waits::AtTheEnd)),
        ("synchronize.same.a", |s, row| once(s, row, true)),
        ("synchronize.same.b", |s, row| once(s, row, true)),
        ("overlap.execution.dispatch", |s, row| three_random_tensors(s, row, false)),
        ("overlap.execution.complete", |s, row| three_random_tensors(s, row, true)),
        ("overlap.finish.host-free", |s, row| additions(s, row, false)),
        ("overlap.finish.complete", |s, row| additions(s, row, true)),
        ("overlap.double-buffer.total", |_, _| Err(not_applicable(ONE_STREAM))),
        ("overlap.one-way.total", |_, _| Err(not_applicable(ONE_STREAM))),
        ("overlap.buffers.total", |_, _| Err(not_applicable(ONE_STREAM))),
        ("sync-points.big.async", |s, row| matmul_loop(s, row, false)),
        ("sync-points.big.forced", |s, row| matmul_loop(s, row, true)),
        ("sync-points.small.async", |s, row| matmul_loop(s, row, false)),
        ("sync-points.small.forced", |s, row| matmul_loop(s, row, true)),
        ("sync-points.item.pending", |s, row| read_of_product(s, row, false, item)),
        ("sync-points.item.ready", |s, row| read_of_product(s, row, true, item)),
        ("sync-points.print.pending", |s, row| read_of_product(s, row, false, print)),
        ("sync-points.print.ready", |s, row| read_of_product(s, row, true, print)),
        ("sync-points.training-loop.each-step", |s, row| training_loop(s, row, true)),
        ("sync-points.training-loop.accumulated", |s, row| training_loop(s, row, false)),
        ("sync-points.inference.single", |s, row| inference(s, row, true)),
        ("sync-points.inference.batch", |s, row| inference(s, row, false)),
        ("sync-points.timing.wall", |s, row| product(s, row, false)),
        ("sync-points.timing.complete", |s, row| product(s, row, true)),
    ];
}

/// When a loop waits for the device.
#[derive(Clone, Copy, PartialEq)]
enum Waits {
    Never,
    EachTime,
    AtTheEnd,
}

type Read<S> = fn(&S, &<S as Texts>::Tensor) -> Result<()>;

fn item<S: Texts>(system: &S, x: &S::Tensor) -> Result<()> {
    system.item(x).map(drop)
}

fn copy<S: Texts>(system: &S, x: &S::Tensor) -> Result<()> {
    system.to_host(x).map(drop)
}

fn branch<S: Texts>(system: &S, x: &S::Tensor) -> Result<()> {
    system.is_any_positive(x).map(drop)
}

/// A print costs a system call, but not the speed of a terminal.
fn print<S: Texts>(system: &S, x: &S::Tensor) -> Result<()> {
    let mut nowhere = std::fs::File::options().write(true).open("/dev/null")?;
    Ok(writeln!(nowhere, "{}", system.item(x)?)?)
}

fn number(row: &MetricSpec, name: &str) -> Result<usize> {
    match row.parameters.get(name) {
        Some(Parameter::Integer(number)) => Ok(usize::try_from(*number)?),
        _ => Err(format!("the plan's row has no number `{name}`").into()),
    }
}

fn dtype(row: &MetricSpec) -> String {
    row.parameters.get("dtype").map_or_else(|| "fp32".to_owned(), Parameter::to_string)
}

/// By how many iterations a row's samples are divided.
fn iterations(row: &MetricSpec) -> usize {
    match row.provenance {
        Provenance::Measured { iterations, .. } => usize::try_from(iterations).unwrap_or(1),
        Provenance::Derived { .. } => 1,
    }
}

/// One iteration of the texts' loop: a random matrix, multiplied by itself.
fn random_matmul<S: Texts>(system: &S, size: usize) -> Result<S::Tensor> {
    let a = system.normal(size, size, "fp32")?;
    system.matmul(&a, &a)
}

fn looped<S: Texts>(system: &S, iters: usize, size: usize, waits: Waits) -> Result<Option<S::Tensor>> {
    let mut last = None;
    for _ in 0..iters {
        last = Some(random_matmul(system, size)?);
        if waits == Waits::EachTime {
            system.synchronize()?;
        }
    }
    if waits == Waits::AtTheEnd {
        system.synchronize()?;
    }
    Ok(last)
}

/// Times calls that may leave work behind, of which nothing is left to be launched in the next sample.
fn calls<S: Texts, R>(
    system: &Rc<S>,
    row: &MetricSpec,
    region: impl Fn(&S) -> Result<R> + 'static,
) -> Result<Case<'static>> {
    let system = Rc::clone(system);
    Ok(Case::within(row.title(), move |watch| {
        let made = watch.time(|| region(&system))?;
        system.launch()?;
        drop(made);
        Ok::<_, crate::Error>(())
    }))
}

fn random_loop<S: Texts>(system: &Rc<S>, row: &MetricSpec, waits: Waits) -> Result<Case<'static>> {
    let (iters, size) = (number(row, "iters")?, number(row, "size")?);
    calls(system, row, move |system| looped(system, iters, size, waits))
}

fn read_behind_loop<S: Texts>(
    system: &Rc<S>,
    row: &MetricSpec,
    is_ready: bool,
    read: Read<S>,
) -> Result<Case<'static>> {
    let (iters, size) = (number(row, "iters")?, number(row, "size")?);
    let last =
        move |system: &S| looped(system, iters, size, Waits::Never)?.ok_or_else(|| "a loop without iterations".into());
    reading(system, row, is_ready, last, read)
}

/// Times a read of what `make` makes, which is pending or complete.
fn reading<S: Texts>(
    system: &Rc<S>,
    row: &MetricSpec,
    is_ready: bool,
    make: impl Fn(&S) -> Result<S::Tensor> + 'static,
    read: Read<S>,
) -> Result<Case<'static>> {
    let system = Rc::clone(system);
    Ok(Case::within(row.title(), move |watch| {
        let made = make(&system)?;
        if is_ready {
            system.synchronize()?;
        }
        watch.time(|| read(&system, &made))
    }))
}

fn throughput<S: Texts>(system: &Rc<S>, row: &MetricSpec) -> Result<Case<'static>> {
    let (steps, every, size) = (number(row, "steps")?, number(row, "every")?.max(1), number(row, "size")?);
    let (system, x, w) = (Rc::clone(system), system.normal(size, size, "fp32")?, system.normal(size, size, "fp32")?);
    let case = Case::single(row.title(), move || {
        let mut losses = Vec::new();
        for step in 1..=steps {
            losses.push(system.mean(&system.matmul(&x, &w)?)?);
            if losses.len() == every || step == steps {
                system.mean_item(&losses)?;
                losses.clear();
            }
        }
        Ok::<_, crate::Error>(())
    });
    Ok(case.per(iterations(row)))
}

fn once<S: Texts>(system: &Rc<S>, row: &MetricSpec, waits: bool) -> Result<Case<'static>> {
    let size = number(row, "size")?;
    let waits = if waits { Waits::AtTheEnd } else { Waits::Never };
    calls(system, row, move |system| looped(system, 1, size, waits))
}

fn three_random_tensors<S: Texts>(system: &Rc<S>, row: &MetricSpec, waits: bool) -> Result<Case<'static>> {
    let elements = number(row, "elements")?;
    calls(system, row, move |system| {
        let made = (0..3).map(|_| system.normal(1, elements, "fp32")).collect::<Result<Vec<_>>>()?;
        if waits {
            system.synchronize()?;
        }
        Ok(made)
    })
}

fn additions<S: Texts>(system: &Rc<S>, row: &MetricSpec, waits: bool) -> Result<Case<'static>> {
    let (elements, adds) = (number(row, "elements")?, number(row, "adds")?);
    calls(system, row, move |system| {
        let x = system.normal(1, elements, "fp32")?;
        for _ in 0..adds {
            system.plus_one(&x)?;
        }
        if waits { system.synchronize() } else { Ok(()) }
    })
}

/// Two random matrices of a row's size and type.
fn operands<S: Texts>(system: &S, row: &MetricSpec) -> Result<[S::Tensor; 2]> {
    let (size, dtype) = (number(row, "size")?, dtype(row));
    Ok([system.normal(size, size, &dtype)?, system.normal(size, size, &dtype)?])
}

fn matmul_loop<S: Texts>(system: &Rc<S>, row: &MetricSpec, is_forced: bool) -> Result<Case<'static>> {
    let (clock, iters, [x, w]) = (system.clock()?, number(row, "iters")?, operands(&**system, row)?);
    let system = Rc::clone(system);
    let region = move || {
        for _ in 0..iters {
            system.matmul(&x, &w)?;
            if is_forced {
                system.synchronize()?;
            }
        }
        // The event behind the region is behind its work.
        system.launch()
    };
    Ok(Case::on_device(row.title(), clock, region)?.per(iterations(row)))
}

fn read_of_product<S: Texts>(system: &Rc<S>, row: &MetricSpec, is_ready: bool, read: Read<S>) -> Result<Case<'static>> {
    let [x, w] = operands(&**system, row)?;
    reading(system, row, is_ready, move |system| system.matmul(&x, &w), read)
}

fn training_loop<S: Texts>(system: &Rc<S>, row: &MetricSpec, reads_each: bool) -> Result<Case<'static>> {
    let (steps, [x, w]) = (number(row, "steps")?, operands(&**system, row)?);
    let system = Rc::clone(system);
    Ok(Case::single(row.title(), move || {
        let losses = (0..steps).map(|_| {
            let loss = system.mean(&system.matmul(&x, &w)?)?;
            if reads_each {
                system.mean_item(std::slice::from_ref(&loss))?;
            }
            Ok(loss)
        });
        let losses = losses.collect::<Result<Vec<_>>>()?;
        if reads_each { Ok(()) } else { system.mean_item(&losses).map(drop) }
    }))
}

fn inference<S: Texts>(system: &Rc<S>, row: &MetricSpec, is_single: bool) -> Result<Case<'static>> {
    let (size, samples, dtype) = (number(row, "size")?, number(row, "samples")?, dtype(row));
    let (system, w) = (Rc::clone(system), system.normal(size, size, &dtype)?);
    let inputs = vec![1_f32; size * samples];
    Ok(Case::single(row.title(), move || {
        let parts = if is_single { inputs.chunks(size) } else { inputs.chunks(size * samples) };
        for part in parts {
            // A row or several of them, times the weights.
            let x = system.of_host(part, &dtype)?;
            system.to_host(&system.matmul(&x, &w)?)?;
        }
        Ok::<_, crate::Error>(())
    }))
}

fn product<S: Texts>(system: &Rc<S>, row: &MetricSpec, waits: bool) -> Result<Case<'static>> {
    let [x, w] = operands(&**system, row)?;
    calls(system, row, move |system| {
        let made = system.matmul(&x, &w)?;
        if waits {
            system.synchronize()?;
        }
        Ok(made)
    })
}
