//! Runs cases in rounds and keeps their samples.
//!
//! # Protocol
//! In each round every case runs exactly once. The order is shuffled anew in each round (Fisher–Yates over xoshiro256++,
//! from the protocol's seed). The device is synchronized before and after each measurement. Warm-up rounds are the same;
//! their samples are kept apart. The warm-up goes on until it is steady ([`Warmup`]), or up to a limit. In runs of a suite
//! a round before which the thread has left a slowed processor ([`HostSpeed`]) is one of the warm-up, too, and by how much
//! the processor was slowed is kept with each sample. Without a warm-up, it is a case of a millisecond or more before which the
//! thread leaves a slowed processor. The stopping rules are checked after each complete round. No sample
//! is dropped, except those of a round that an interrupt left incomplete.
//!
//! # What it does not cover
//! Without [`Sampler::sync_between`], work that one case enqueued without waiting may still run when the next case begins:
//! a case that waits then pays for it. Cases that use a device asynchronously need it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::SliceRandom;

use super::case::Case;
use super::compared::Cases;
use super::host::HostSpeed;
use super::optimised;
use super::protocol::{Protocol, StoppedBy};
use super::samples::Samples;
use super::stopping::Stopping;
use super::warmup::Warmup;
use crate::device::Device;
use crate::error::{CaseError, DeviceError, MeasureError};

/// A callback after each round, outside of every measurement.
pub type Observer = Arc<dyn Fn(Progress) + Send + Sync>;

/// The progress of a measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// Whether the round belonged to the warm-up.
    pub warming_up: bool,
    /// The round that has ended, from 1; the warm-up is counted separately.
    pub round: usize,
    /// The number of rounds, where the protocol states it; another rule may stop sampling earlier.
    pub rounds: Option<usize>,
    /// The progress of the stopping rule that is nearest to being met, from 0 to 1; 0 during warm-up.
    pub share: f64,
}

/// The samples of all cases, round by round.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Rounds {
    /// The samples of each case, in the order in which the cases were given; all of the same length.
    pub sets: Vec<Samples>,
    /// The position of each sample within its round, from 0; indexed as `sets`.
    pub order: Vec<Vec<u32>>,
    /// When each sample began; indexed as `sets`.
    pub started: Vec<Vec<Instant>>,
    /// How many times its best a piece of work of the host took beside each sample; empty where the sampler did not watch its
    /// processors. Indexed as `sets`.
    pub slowdown: Vec<Vec<f64>>,
    /// The samples of the warm-up of each case, in order, and of rounds after the thread had left a slowed processor; indexed as
    /// `sets`. No estimate takes them in.
    pub warmup: Vec<Vec<f64>>,
    /// How many calls a sample of each case timed together and was divided by; 1 where it is not of a batch. Indexed as
    /// `sets`.
    pub calls: Vec<usize>,
    /// The rule that ended the sampling.
    pub stopped_by: StoppedBy,
}

impl Rounds {
    /// The samples of the case `name`.
    pub fn get(&self, name: &str) -> Option<&Samples> {
        self.sets.iter().find(|samples| samples.name() == name)
    }
}

/// From which length on a case without a warm-up is sampled on a processor that is not slowed, where one is found.
const LONG: Duration = Duration::from_millis(1);

/// One sample.
#[derive(Clone, Copy)]
struct Taken {
    value: f64,
    started: Instant,
    /// How long the case took, or the event that it is a part of.
    took: Duration,
    /// How many times its best a piece of work of the host took before or after it.
    slowdown: Option<f64>,
}

/// Of the cases of one event the first spans it, and the others only ask for their parts. Which is the first differs by round.
fn share_event(cases: &[Case<'_>], taken: &mut [Taken]) {
    let mut most: BTreeMap<usize, (Duration, Option<f64>)> = BTreeMap::new();
    for (case, one) in cases.iter().zip(&*taken) {
        let Some(event) = case.event else { continue };
        let (took, slowdown) = most.entry(event).or_default();
        *took = one.took.max(*took);
        *slowdown = one.slowdown.map(|own| slowdown.map_or(own, |most| most.max(own))).or(*slowdown);
    }
    for (case, one) in cases.iter().zip(taken) {
        if let Some((took, slowdown)) = case.event.and_then(|event| most.get(&event)) {
            (one.took, one.slowdown) = (*took, *slowdown);
        }
    }
}

/// Takes samples by a protocol. It owns its parts, is cheap to clone, and keeps no state between two measurements.
///
/// ```
/// use syncscope::measure::{Case, Protocol, Sampler};
///
/// let lines = Case::observed("lines", || "a\nb".lines().count() as f64);
/// let rounds = Sampler::new(Protocol::samples(10)).sample(vec![lines])?;
/// assert_eq!(rounds.get("lines").map(|samples| samples.len()), Some(10));
/// # Ok::<(), syncscope::error::MeasureError>(())
/// ```
#[derive(Clone, Default)]
pub struct Sampler {
    protocol: Protocol,
    device: Option<Device>,
    interrupt: Option<Arc<AtomicBool>>,
    budget: Option<f64>,
    observer: Option<Observer>,
    host: Option<Arc<HostSpeed>>,
}

impl Sampler {
    /// A sampler that follows `protocol`.
    pub fn new(protocol: Protocol) -> Self {
        Self { protocol, ..Self::default() }
    }

    /// With `device` synchronized before and after each measurement, outside of it.
    #[must_use]
    pub fn sync_between(mut self, device: &Device) -> Self {
        self.device = Some(device.clone());
        self
    }

    /// Stops after the current sample once `flag` is true. The samples of complete rounds are kept.
    #[must_use]
    pub fn interrupted_by(mut self, flag: Arc<AtomicBool>) -> Self {
        self.interrupt = Some(flag);
        self
    }

    /// Stops after the current sample once `seconds` have passed since sampling began, including its warm-up. The samples of
    /// complete rounds are kept, however few.
    ///
    /// The protocol's time limit counts from the first round that is kept and waits for enough of them. A budget does
    /// neither: it is for places where nobody can interrupt, such as a notebook cell. It cannot interrupt a single sample.
    #[must_use]
    pub fn with_budget(mut self, seconds: f64) -> Self {
        // What is no number is no limit.
        self.budget = Some(seconds).filter(|seconds| !seconds.is_nan());
        self
    }

    /// The same by the protocol that `change` makes of its own.
    pub fn changed(&self, change: impl FnOnce(&Protocol) -> Protocol) -> Self {
        Self { protocol: change(&self.protocol), ..self.clone() }
    }

    /// With the host kept busy before each sample, and slowed processors left.
    #[must_use]
    pub fn watching(mut self, host: Option<Arc<HostSpeed>>) -> Self {
        self.host = host;
        self
    }

    /// With `observer` called after each round. The next round waits until it returns.
    #[must_use]
    pub fn observed_by(mut self, observer: Observer) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Who is called after each round.
    pub(super) fn observer(&self) -> Option<Observer> {
        self.observer.clone()
    }

    /// Samples `cases`, interleaved.
    ///
    /// # Errors
    /// [`MeasureError::Plan`] for a protocol that never stops, for no cases and for two with the same name;
    /// [`MeasureError::Case`] and [`MeasureError::NotFinite`] name the case that failed;
    /// [`MeasureError::Interrupted`] and [`MeasureError::OverBudget`] where no round was kept.
    pub fn sample<'a>(&self, cases: impl Cases<'a>) -> Result<Rounds, MeasureError> {
        optimised::say_if_not();
        let begun = Instant::now();
        self.sample_by(cases.into_cases(), &mut || begun.elapsed().as_secs_f64())
    }

    /// `seconds` says how long ago sampling began.
    fn sample_by(&self, mut cases: Vec<Case<'_>>, seconds: &mut dyn FnMut() -> f64) -> Result<Rounds, MeasureError> {
        self.protocol.validate()?;
        check_names(&cases)?;
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(self.protocol.seed);
        let mut order: Vec<usize> = (0..cases.len()).collect();
        let mut taken =
            vec![Taken { value: 0.0, started: Instant::now(), took: Duration::ZERO, slowdown: None }; cases.len()];

        let begun = seconds();
        // Without a warm-up the caches of another processor would be in the samples.
        let host = self.host.as_ref().filter(|_| self.protocol.warmup > 0);
        if let Some(host) = host {
            host.settle();
        }
        for case in &mut cases {
            self.prepare(case).map_err(|cause| MeasureError::Case { case: case.name().to_owned(), cause })?;
        }
        let conditions = || self.device.as_ref().and_then(|device| device.telemetry().ok().flatten());
        // Without a warm-up nothing is compared with them, and to read them takes time.
        let at_first = if self.protocol.warmup > 0 { conditions() } else { None };
        let mut warmup = Warmup::new(&self.protocol, cases.len(), at_first.as_ref());
        let mut last_round = 0.0;
        while !warmup.is_over(seconds() - begun) {
            order.shuffle(&mut rng);
            let round_begun = Instant::now();
            if let Some(end) = self.round(&mut cases, &order, 0, &mut taken, &mut || seconds() - begun)? {
                return Err(self.nothing_kept(end));
            }
            last_round = round_begun.elapsed().as_secs_f64();
            warmup.keep(taken.iter().map(|one| one.value), conditions().as_ref());
            let (round, rounds) = (warmup.rounds, Some(self.protocol.warmup));
            self.report(Progress { warming_up: true, round, rounds, share: 0.0 });
        }

        let mut kept = vec![Vec::new(); cases.len()];
        let (mut places, mut started) = (vec![Vec::new(); cases.len()], vec![Vec::new(); cases.len()]);
        let mut slowdown = vec![Vec::new(); cases.len()];
        let mut stopping = Stopping::new(&self.protocol, cases.len());
        let first_kept = seconds();
        let stopped_by = loop {
            let moved = host.filter(|host| host.settle_before(last_round));
            order.shuffle(&mut rng);
            let (index, round_begun) = (stopping.rounds, Instant::now());
            if let Some(end) = self.round(&mut cases, &order, index, &mut taken, &mut || seconds() - begun)? {
                break end;
            }
            last_round = round_begun.elapsed().as_secs_f64();
            if let Some(host) = moved {
                host.charge(last_round);
                warmup.keep(taken.iter().map(|one| one.value), None);
                continue;
            }
            for (case, one) in taken.iter().enumerate() {
                kept[case].push(one.value);
                started[case].push(one.started);
                slowdown[case].extend(one.slowdown);
            }
            for (place, case) in (0..).zip(&order) {
                places[*case].push(place);
            }
            stopping.keep(taken.iter().map(|one| one.value));
            let elapsed = seconds() - first_kept;
            self.report(Progress {
                warming_up: false,
                round: stopping.rounds,
                rounds: self.protocol.samples.map(usize::from),
                share: stopping.share(elapsed),
            });
            if let Some(rule) = stopping.met(elapsed) {
                break rule;
            }
        };
        if stopping.rounds == 0 {
            return Err(self.nothing_kept(stopped_by));
        }
        let sets = cases
            .iter()
            .zip(kept)
            .map(|(case, set)| Ok(Samples::new(case.name(), set)?.taken_by(case.clock(), case.floor())));
        let (sets, calls) = (sets.collect::<Result<_, MeasureError>>()?, cases.iter().map(Case::calls).collect());
        Ok(Rounds { sets, order: places, started, slowdown, warmup: warmup.samples, calls, stopped_by })
    }

    /// Runs every case once. Returns what left the round incomplete, if anything did.
    fn round(
        &self,
        cases: &mut [Case<'_>],
        order: &[usize],
        index: usize,
        taken: &mut [Taken],
        spent: &mut dyn FnMut() -> f64,
    ) -> Result<Option<StoppedBy>, MeasureError> {
        for &place in order {
            if self.is_interrupted() {
                return Ok(Some(StoppedBy::Interrupt));
            }
            if self.budget.is_some_and(|budget| spent() >= budget) {
                return Ok(Some(StoppedBy::TimeLimit));
            }
            // What takes so long warms the caches of another processor itself.
            if let Some(host) = &self.host
                && self.protocol.warmup == 0
                && taken[place].took >= LONG
            {
                host.settle();
            }
            let case = &mut cases[place];
            let one = self.run(case).map_err(|cause| MeasureError::Case { case: case.name().to_owned(), cause })?;
            if !one.value.is_finite() {
                return Err(MeasureError::NotFinite { case: case.name().to_owned(), index, value: one.value });
            }
            taken[place] = one;
        }
        share_event(cases, taken);
        Ok(None)
    }

    fn prepare(&self, case: &mut Case<'_>) -> Result<(), CaseError> {
        self.synchronize()?;
        case.prepare()?;
        Ok(self.synchronize()?)
    }

    fn run(&self, case: &mut Case<'_>) -> Result<Taken, CaseError> {
        let host = self.host.as_ref().filter(|_| !case.is_elsewhere);
        let slowdown = || host.map(|host| host.slowdown());
        self.synchronize()?;
        let before = slowdown();
        let started = Instant::now();
        let value = case.measure()?;
        let took = started.elapsed();
        // Before the device is synchronized: the host may sleep meanwhile.
        let after = slowdown();
        // Again, so that a failure of the work of this case is reported for this case.
        self.synchronize()?;
        Ok(Taken { value, started, took, slowdown: before.zip(after).map(|(before, after)| before.max(after)) })
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        self.device.as_ref().map_or(Ok(()), Device::synchronize)
    }

    fn nothing_kept(&self, stopped_by: StoppedBy) -> MeasureError {
        match (stopped_by, self.budget) {
            (StoppedBy::TimeLimit, Some(seconds)) => MeasureError::OverBudget { seconds },
            _ => MeasureError::Interrupted,
        }
    }

    /// Whether it was told to stop, by its flag or as what measures in a cell of a notebook.
    pub fn is_interrupted(&self) -> bool {
        self.interrupt.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed)) || is_cell_interrupted()
    }

    fn report(&self, progress: Progress) {
        if let Some(observer) = &self.observer {
            observer(progress);
        }
    }
}

impl fmt::Debug for Sampler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sampler")
            .field("protocol", &self.protocol)
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}

/// Whether the cell of a notebook that runs is asked to end: a file says so, whose name the kernel gives to the process of its
/// cells. Elsewhere there is none to look for.
fn is_cell_interrupted() -> bool {
    static ASKS: LazyLock<Option<PathBuf>> =
        LazyLock::new(|| std::env::var_os("SYNCSCOPE_INTERRUPT").map(PathBuf::from));
    ASKS.as_ref().is_some_and(|file| file.exists())
}

/// Cases are identified by name.
fn check_names(cases: &[Case<'_>]) -> Result<(), MeasureError> {
    if cases.is_empty() {
        return Err(MeasureError::Plan("there is no case to sample".to_owned()));
    }
    let mut seen = BTreeSet::new();
    match cases.iter().find(|case| !seen.insert(case.name())) {
        Some(twice) => {
            Err(MeasureError::Plan(format!("two cases are named `{}`; give each its own name", twice.name())))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
