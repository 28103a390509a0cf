//! Measures the rows of a plan in one process: in each pass all groups, in a random order.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use syncscope::affinity;
use syncscope::device::Device;
use syncscope::error::{CaseError, DeviceError, MeasureError, panic_message};
use syncscope::measure::{Case, Clock, HostSpeed, Protocol, Sampler};
use syncscope_results::{MetricSpec, Outcome, Parameter, PeerPlan, Provenance, grouped};

use crate::answer::Answer;
use crate::call::{Call, Held};
use crate::program::one_line;
use crate::{Result, System, not_applicable};

const NOT_REACHED: &str = "the run was interrupted before this row was reached";

/// After how long the answer is kept again: writing it takes longer than many a group.
const OFTEN: Duration = Duration::from_secs(2);

/// How often a call is sampled that takes long.
const FEW: usize = 2;

/// How a run ended.
#[derive(Debug, PartialEq)]
pub(crate) enum Ended {
    Well,
    /// An error of CUDA stays: no call works any more in this process.
    DeviceLost,
}

pub(crate) struct Run<'a, S> {
    plan: &'a PeerPlan,
    device: &'a Device,
    system: Rc<S>,
    interrupt: Arc<AtomicBool>,
    out: &'a Path,
    answer: Answer,
    sampler: Sampler,
    begun: Instant,
}

impl<'a, S: System> Run<'a, S> {
    pub(crate) fn new(
        plan: &'a PeerPlan,
        device: &'a Device,
        system: S,
        interrupt: Arc<AtomicBool>,
        out: &'a Path,
    ) -> Self {
        // Where the thread has no processor of its own, what computes beside it is part of the run.
        let host = affinity::measuring().map(|_| Arc::new(HostSpeed::new()));
        let sampler = Sampler::default().sync_between(device).interrupted_by(Arc::clone(&interrupt)).watching(host);
        let answer = Answer::of::<S>(device, plan.rows.len());
        Self { plan, device, system: Rc::new(system), interrupt, out, answer, sampler, begun: Instant::now() }
    }

    pub(crate) fn measure(mut self) -> Result<Ended> {
        let own = self.plan.rows.iter().enumerate().filter(|(_, spec)| is_measured::<S>(spec));
        // Rows under one heading that agree in all parameters are sampled in turn.
        let key = |spec: &'a MetricSpec| (spec.experiment(), &spec.group, &spec.parameters);
        let mut groups: Vec<Vec<usize>> =
            grouped(own.map(|(row, spec)| (key(spec), row))).into_iter().map(|(_, rows)| rows).collect();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(self.plan.sampling.seed);
        let (mut ended, mut kept) = (Ended::Well, Instant::now());
        'run: for pass in 0..self.plan.sampling.all_passes() {
            groups.shuffle(&mut random);
            for group in &groups {
                let protocol = Protocol { seed: random.random(), ..self.plan.sampling.of_pass(pass) };
                self.measure_group(group, pass, protocol);
                if self.device.is_lost() {
                    ended = Ended::DeviceLost;
                }
                if ended == Ended::DeviceLost || self.interrupt.load(Ordering::Relaxed) {
                    break 'run;
                }
                if kept.elapsed() >= OFTEN {
                    self.keep()?;
                    kept = Instant::now();
                }
            }
        }
        self.cut_short(&groups, &ended);
        self.keep()?;
        Ok(ended)
    }

    fn keep(&self) -> Result<()> {
        let error = |error| format!("{} cannot be written: {error}", self.out.display()).into();
        self.answer.write(&self.plan.rows, self.out).map_err(error)
    }

    /// What was not reached says so, and rows of which a pass is missing were interrupted.
    fn cut_short(&mut self, groups: &[Vec<usize>], ended: &Ended) {
        let (sampling, passes) = (&self.plan.sampling, self.plan.sampling.all_passes());
        let is_due = |outcome: &Option<Outcome>| outcome.as_ref().is_none_or(|own| own.passes_done(sampling) < passes);
        for row in
            groups.iter().flatten().copied().filter(|row| is_due(&self.answer.outcomes[*row])).collect::<Vec<_>>()
        {
            let outcome = match (&self.answer.outcomes[row], ended) {
                (Some(_), _) => Outcome::Interrupted,
                (None, Ended::DeviceLost) => failed("the device could not be used any more"),
                (None, Ended::Well) => Outcome::Skipped { reason: NOT_REACHED.to_owned() },
            };
            self.answer.add(row, outcome);
        }
    }

    /// Measures the rows of a group that this pass is to measure.
    fn measure_group(&mut self, group: &[usize], pass: usize, protocol: Protocol) {
        let is_due = |row: &usize| {
            let earlier = self.answer.outcomes[*row].as_ref();
            earlier.map_or(pass == 0, |outcome| outcome.passes_done(&self.plan.sampling) <= pass)
        };
        let due: Vec<usize> = group.iter().copied().filter(is_due).collect();
        let sampled = catch_unwind(AssertUnwindSafe(|| affinity::kept(|| self.sampled(&due, protocol))));
        // A panic is a defect of one group, or how the crate says that a call failed.
        let outcomes = sampled.unwrap_or_else(|panic| all(&due, &failed(&panic_message(&*panic))));
        for (row, outcome) in outcomes {
            if let Outcome::Failed { reason } = &outcome {
                eprintln!("  failed: {}: {reason}", self.plan.rows[row].title());
            }
            self.answer.add(row, outcome);
        }
    }

    fn sampled(&self, due: &[usize], protocol: Protocol) -> Vec<(usize, Outcome)> {
        let (mut cases, mut places, mut outcomes, mut call) = (Vec::new(), Vec::new(), Vec::new(), None);
        for row in due.iter().copied() {
            match self.case(&self.plan.rows[row], &mut call) {
                Ok(case) => {
                    cases.push(case);
                    places.push(row);
                }
                Err(error) => outcomes.push((row, unmade(&error))),
            }
        }
        if cases.is_empty() {
            return outcomes;
        }
        let takes_long = call.is_some_and(|call| call.borrow_mut().takes_long().unwrap_or(false));
        let protocol =
            if takes_long { Protocol::samples(FEW).with_warmup(0).with_seed(protocol.seed) } else { protocol };
        let stride = places.iter().filter_map(|row| self.answer.outcomes[*row].as_ref());
        let stride = stride.map(|outcome| outcome.stride(&self.plan.sampling)).max().unwrap_or(1);
        let sampler = self.sampler.changed(|_| protocol.of_stride(stride));
        match sampler.sample(cases) {
            Ok(rounds) => outcomes.extend(places.into_iter().zip(Outcome::of_rounds(rounds, self.begun))),
            Err(MeasureError::Interrupted) => {}
            Err(MeasureError::Case { cause, .. }) => outcomes.extend(all(&places, &unmade(&cause))),
            Err(error) => outcomes.extend(all(&places, &failed(&error.to_string()))),
        }
        outcomes
    }

    /// The case of a row. Rows of one group that are about a call share it, as `shared`.
    fn case(&self, row: &MetricSpec, shared: &mut Option<Rc<RefCell<Call>>>) -> Result<Case<'static>> {
        if let Some((_, make)) = S::ROWS.iter().copied().flatten().find(|(id, _)| *id == row.id) {
            return make(&self.system, row);
        }
        let call = match shared {
            Some(call) => Rc::clone(call),
            None => Rc::clone(shared.insert(Rc::new(RefCell::new(self.call(row)?)))),
        };
        self.of_call(row, &call)
    }

    /// The call that a row is about. One that the program lacks is not applicable.
    fn call(&self, row: &MetricSpec) -> Result<Call> {
        let words = ["call", "way"].into_iter().filter_map(|name| row.parameters.get(name).map(Parameter::to_string));
        let name = words.collect::<Vec<_>>().join(" ");
        let make = S::CALLS.iter().copied().flatten().find(|(known, _)| *known == name).map(|(_, make)| make);
        let make = make.ok_or_else(|| not_applicable(&format!("the program for {} has no call `{name}`", S::NAME)))?;
        let call = make(&Rc::new(self.system.fixture(row)?))?;
        self.device.synchronize()?;
        Ok(call)
    }

    /// What the last part of a row's identifier asks about a call. What has no meaning is said before the rounds.
    fn of_call(&self, row: &MetricSpec, call: &Rc<RefCell<Call>>) -> Result<Case<'static>> {
        let is_other = row.parameters.get("held").is_some_and(|held| held.to_string() != "same");
        let (clock, look): (Clock, fn(&mut Call) -> Result<f64>) = match row.id.rsplit('.').next() {
            Some("blocks") if !is_other => (Clock::Observed, |call| call.blocks(Held::Own)),
            Some("blocks" | "blocks-other") => (Clock::Observed, |call| call.blocks(Held::Other)),
            Some("pending") => (Clock::Observed, Call::pending),
            Some("recorded") => (Clock::Observed, Call::recorded),
            Some("ready") => (Clock::Host, Call::ready),
            Some("behind") => (Clock::Host, Call::behind),
            _ => return Err(format!("the program for {} does not know the row `{}`", S::NAME, row.id).into()),
        };
        // What it loads and allocates for the first time is not what it does each time.
        look(&mut call.borrow_mut())?;
        let call = Rc::clone(call);
        let measure = move || look(&mut call.borrow_mut());
        Ok(match clock {
            Clock::Observed => Case::observed(row.title(), measure),
            clock => Case::timed_by(clock, row.title(), measure),
        })
    }
}

/// Whether a system measures a row.
fn is_measured<S: System>(row: &MetricSpec) -> bool {
    let is_known = S::ROWS.iter().copied().flatten().any(|(id, _)| *id == row.id) || S::has_call(row);
    is_known && matches!(row.provenance, Provenance::Measured { .. })
}

fn all(rows: &[usize], outcome: &Outcome) -> Vec<(usize, Outcome)> {
    rows.iter().map(|row| (*row, outcome.clone())).collect()
}

fn failed(reason: &str) -> Outcome {
    Outcome::Failed { reason: one_line(reason) }
}

/// What a case could not be made for.
fn unmade(error: &CaseError) -> Outcome {
    match error.downcast_ref::<DeviceError>() {
        Some(DeviceError::NotApplicable { reason, .. }) => Outcome::NotApplicable { reason: reason.clone() },
        _ => failed(&error.to_string()),
    }
}
