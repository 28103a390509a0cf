//! Finding a row among those of a results file, and what its samples come to.
//!
//! A row is asked for by its identifier and by those of its parameters that matter to the asker; rows may have more.
//! What has no samples says why. A lookup sees the runs of one system.
//!
//! Samples beside which the host's pieces of work took more than [`FULL_SPEED`] times their best are left out of a run that
//! has others. So are the rounds of a computed row in which a sample of a measured one, by way of which it comes about,
//! was: what is compared is of the same host. No sample's value decides this: only the pieces of work do. Counts, and
//! observations of yes and no, take no time of the host, and stay.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use super::metric::{Metric, are_yes_or_no};
use super::missing::{Lacking, MissingReason};
use super::roofline::Peaks;
use super::row::{MetricSpec, Outcome, Parameter, Parameters, Provenance, Row, Sample};
use super::rows::Rows;
use super::run::{Run, TelemetrySample};
use super::sources::Sources;
use crate::measure::{Clock, Diagnosis, Estimate};
use crate::units::Unit;

/// Up to how many times its best a piece of work takes on a host that nothing slows.
const FULL_SPEED: f64 = 1.3;

/// Rows of one system to find things in.
#[derive(Clone, Debug)]
pub struct Lookup<'a> {
    pub(super) rows: &'a Rows,
    runs: Vec<&'a str>,
    /// The place of each run among them.
    places: BTreeMap<&'a str, usize>,
    /// What the sensors said in each run.
    pub(super) sensed: HashMap<&'a str, &'a [TelemetrySample]>,
    known: Arc<Known>,
}

/// What is found out once about the rows of a system.
#[derive(Debug, Default)]
pub(super) struct Known {
    sources: OnceLock<Sources>,
    peaks: OnceLock<Peaks>,
    diagnoses: OnceLock<Vec<Vec<Diagnosis>>>,
}

impl<'a> Lookup<'a> {
    /// A lookup among `rows`, for the runs with these identifiers.
    pub fn new(rows: &'a Rows, runs: Vec<&'a str>) -> Self {
        let places = runs.iter().enumerate().map(|(place, run)| (*run, place)).collect();
        let known = rows.known(&runs);
        Self { rows, runs, places, sensed: HashMap::new(), known }
    }

    /// With what the sensors said in these runs.
    pub(super) fn with_sensors(self, runs: impl Iterator<Item = &'a Run>) -> Self {
        Self { sensed: runs.map(|run| (run.id.as_str(), run.telemetry.as_slice())).collect(), ..self }
    }

    /// How many runs it sees.
    pub fn runs(&self) -> usize {
        self.runs.len()
    }

    /// The rows that these runs left, in the order of the file.
    pub fn rows(&self) -> impl Iterator<Item = &'a Row> {
        self.rows.iter().filter(|row| self.left(row))
    }

    fn left(&self, row: &Row) -> bool {
        row.series.iter().any(|series| self.places.contains_key(series.run.as_str()))
    }

    /// What each run left of a row, in the order of the runs.
    pub fn outcomes(&self, row: &'a Row) -> impl Iterator<Item = (&'a str, Option<&'a Outcome>)> {
        let mut outcomes = vec![None; self.runs.len()];
        for series in &row.series {
            if let Some(place) = self.places.get(series.run.as_str()) {
                outcomes[*place] = Some(&series.outcome);
            }
        }
        self.runs.iter().copied().zip(outcomes)
    }

    /// What each row is, in the order of the file.
    pub fn specs(&self) -> impl Iterator<Item = &'a MetricSpec> {
        self.rows().map(|row| &row.spec)
    }

    /// Each row, in the order of the file, with its samples or the reason why it has none.
    pub fn metrics(&self) -> impl Iterator<Item = (&'a MetricSpec, Result<Metric<'a>, MissingReason>)> {
        self.rows().map(|row| (&row.spec, self.metric(row)))
    }

    /// The rows that are `wanted` and have samples, in the order of the file. What is not wanted is not put together: many
    /// look for a few rows among all.
    pub fn measured_of(&self, wanted: impl Fn(&MetricSpec) -> bool) -> impl Iterator<Item = Metric<'a>> {
        let rows = self.rows().filter(move |row| wanted(&row.spec));
        rows.filter_map(|row| self.metric(row).ok())
    }

    /// The rows with this identifier whose parameters hold all of `select`.
    pub fn specs_of<'b>(&'b self, id: &'b str, select: &'b Parameters) -> impl Iterator<Item = &'a MetricSpec> + 'b {
        self.rows.having(id, select).filter(|row| self.left(row)).map(|row| &row.spec)
    }

    /// The rows with this identifier that have no other value of a parameter of `select`.
    pub fn agreeing<'b>(&'b self, id: &'b str, select: &'b Parameters) -> impl Iterator<Item = &'a Row> + 'b {
        self.rows.agreeing(id, select).filter(|row| self.left(row))
    }

    /// The row with this identifier and these parameters. Of several, the one that also holds all of `prefer` or is nearest to
    /// it, or the one without further parameters.
    ///
    /// # Errors
    /// Says why there are no samples, or which rows there are to choose from.
    pub fn find(&self, id: &str, select: &Parameters, prefer: &Parameters) -> Result<Metric<'a>, MissingReason> {
        match preferred(self.specs_of(id, select), prefer).as_slice() {
            [] => Err(MissingReason::NotInRun),
            [spec] => self.of(spec),
            [one, other, ..] => {
                let (one, other) = (one.title(), other.title());
                Err(MissingReason::Inconsistent(format!("`{id}` fits several rows, such as {one} and {other}")))
            }
        }
    }

    /// The row of a specification.
    ///
    /// # Errors
    /// Says why there are no samples.
    pub fn of(&self, spec: &MetricSpec) -> Result<Metric<'a>, MissingReason> {
        self.metric(self.at(&spec.id, &spec.parameters).ok_or(MissingReason::NotInRun)?)
    }

    /// The estimate of the row with this identifier and these parameters.
    ///
    /// # Errors
    /// Says why there is none.
    pub fn estimate(&self, id: &str, select: &Parameters) -> Result<Estimate, MissingReason> {
        self.find(id, select, &Parameters::new())?.estimate()
    }

    /// The row with this identifier and these parameters.
    pub fn at(&self, id: &str, parameters: &Parameters) -> Option<&'a Row> {
        self.rows.at(id, parameters).find(|row| self.left(row))
    }

    /// Of so many rounds that these rows share in the run with this place, those at full speed of the host in all of them, and
    /// in the rows that they are computed from; all where none is left.
    pub fn shared_at_full_speed(&self, rows: &[&'a Row], place: usize, rounds: usize) -> Vec<usize> {
        let sources = || rows.iter().filter_map(|row| self.sources().at(self.rows.place(row)).slowed(place));
        let left: Vec<usize> = (0..rounds).filter(|round| !sources().any(|slowed| slowed.contains(round))).collect();
        if left.is_empty() { (0..rounds).collect() } else { left }
    }

    fn sources(&self) -> &Sources {
        self.known.sources.get_or_init(|| Sources::of(self))
    }

    /// The diagnoses of the samples of a row.
    pub fn diagnoses(&self, row: &Row) -> &[Diagnosis] {
        &self.known.diagnoses.get_or_init(|| self.diagnosed())[self.rows.place(row)]
    }

    /// Why the device held its clocks back within the passes of a row, or of those that it comes of, as its sensors said.
    pub fn held_back(&self, row: &Row) -> impl Iterator<Item = &str> {
        self.sources().at(self.rows.place(row)).held.iter().map(|reason| &**reason)
    }

    /// The peak rates of the system.
    pub(super) fn peaks(&self) -> &Peaks {
        self.known.peaks.get_or_init(|| Peaks::of(self))
    }

    pub(super) fn metric(&self, row: &'a Row) -> Result<Metric<'a>, MissingReason> {
        let (mut runs, mut places, mut lacking): (Vec<Cow<'a, [f64]>>, Vec<usize>, Vec<Lacking<'a>>) =
            Default::default();
        let own = self.rows.place(row);
        let is_computed = matches!(row.spec.provenance, Provenance::Derived { .. });
        let source = is_computed.then(|| self.sources().at(own));
        let (mut left_out, mut slowed_runs) = (0, 0);
        for (place, (run, outcome)) in self.outcomes(row).enumerate() {
            let reason = match outcome {
                Some(outcome @ (Outcome::Measured(_) | Outcome::Derived { .. })) => {
                    let samples = outcome.values().unwrap_or_default();
                    if samples.is_empty() {
                        let reason = format!("`{}` is marked as measured and holds no samples", row.spec.id);
                        return Err(MissingReason::Inconsistent(reason));
                    }
                    let slowed = match source {
                        Some(source) => source.slowed(place).map(Cow::Borrowed).unwrap_or_default(),
                        None => Cow::Owned(slowed_rounds(&row.spec, outcome)),
                    };
                    let all = samples.len();
                    let left = || samples.iter().enumerate().filter(|(round, _)| !slowed.contains(round));
                    let kept = match left().count() {
                        0 => {
                            slowed_runs += 1;
                            samples
                        }
                        count if count < all => left().map(|(_, sample)| *sample).collect(),
                        _ => samples,
                    };
                    left_out += all - kept.len();
                    runs.push(kept);
                    places.push(place);
                    continue;
                }
                Some(Outcome::NotApplicable { reason }) => MissingReason::NotApplicable(reason.clone()),
                Some(Outcome::Interrupted) => MissingReason::Interrupted,
                Some(Outcome::Skipped { reason }) => MissingReason::Skipped(reason.clone()),
                Some(Outcome::Failed { reason }) => MissingReason::Failed(reason.clone()),
                None => MissingReason::NotInRun,
            };
            lacking.push(Lacking { run, reason });
        }
        if runs.is_empty() {
            let reasons = lacking.into_iter().map(|lacking| lacking.reason);
            let known = reasons.reduce(|first, next| if first == MissingReason::NotInRun { next } else { first });
            return Err(known.unwrap_or(MissingReason::NotInRun));
        }
        let count = runs.iter().map(|run| run.len()).sum::<usize>() + left_out;
        let of_longer = source.and_then(|_| self.sources().unsteady(self, own, count));
        let observed = match (&row.spec.provenance, source) {
            (Provenance::Measured { clock, .. }, _) => *clock == Clock::Observed,
            (_, source) => source.is_some_and(|source| source.observed == Some(true)),
        };
        Ok(Metric { spec: &row.spec, runs, left_out, slowed_runs, places, lacking, observed, of_longer })
    }
}

/// The rounds of a measured row in which its sample is of a slowed host. What takes no time of the host has none.
pub(super) fn slowed_rounds(spec: &MetricSpec, outcome: &Outcome) -> BTreeSet<usize> {
    if !takes_time(spec, outcome) {
        return BTreeSet::new();
    }
    let samples = outcome.measured().into_iter().flat_map(|measured| &measured.samples).enumerate();
    let is_slowed = |sample: &Sample| sample.slowdown.is_some_and(|times| times > FULL_SPEED);
    samples.filter(|(_, sample)| is_slowed(sample)).map(|(round, _)| round).collect()
}

/// Whether what a run left of a measured row depends on how fast the machine is: a count, and yes or no, do not.
pub(super) fn takes_time(spec: &MetricSpec, outcome: &Outcome) -> bool {
    let is_observed = matches!(spec.provenance, Provenance::Measured { clock: Clock::Observed, .. });
    let are_yes_or_no = || outcome.values().is_some_and(|values| are_yes_or_no(&values));
    !(is_observed && (spec.unit == Unit::Number || are_yes_or_no()))
}

/// What rows there are to choose from: those that hold all of `prefer`, else those whose numbers are nearest to it; of these
/// the plain one, where one has no parameter that another lacks. Rows with the same parameters are one.
pub fn preferred<'a>(specs: impl Iterator<Item = &'a MetricSpec>, prefer: &Parameters) -> Vec<&'a MetricSpec> {
    let mut seen = HashSet::new();
    let mut found: Vec<&MetricSpec> = specs.filter(|spec| seen.insert(&spec.parameters)).collect();
    if found.iter().any(|spec| holds(&spec.parameters, prefer)) {
        found.retain(|spec| holds(&spec.parameters, prefer));
    }
    let distance = |spec: &MetricSpec| {
        let of = |(name, wanted): (&String, &Parameter)| {
            let (own, wanted) = (spec.parameters.get(name)?.number()?, wanted.number()?);
            Some((own / wanted).ln().abs()).filter(|distance| distance.is_finite())
        };
        prefer.iter().filter_map(of).sum::<f64>()
    };
    let nearest = found.iter().map(|spec| distance(spec)).fold(f64::INFINITY, f64::min);
    found.retain(|spec| distance(spec) <= nearest);
    let fewest = found.iter().min_by_key(|spec| spec.parameters.len());
    let plain = fewest.filter(|plain| found.iter().all(|spec| holds(&spec.parameters, &plain.parameters)));
    plain.map_or_else(|| found.clone(), |plain| vec![plain])
}

/// Whether parameters hold all of `select`.
pub fn holds(parameters: &Parameters, select: &Parameters) -> bool {
    select.iter().all(|(name, value)| parameters.get(name) == Some(value))
}

/// Whether they have no other value of one of `select`.
pub fn agrees(parameters: &Parameters, select: &Parameters) -> bool {
    select.iter().all(|(name, wanted)| parameters.get(name).is_none_or(|value| value == wanted))
}

#[cfg(test)]
mod tests {
    use super::super::expression::FormulaOperand;
    use super::super::row::{Derivation, Series};
    use super::*;
    use crate::measure::StoppedBy;

    fn text(name: &str, value: &str) -> Parameters {
        Parameters::from([(name.to_owned(), Parameter::from(value))])
    }

    fn row(dtype: &str, unit: Unit, clock: Clock, outcomes: &[Outcome]) -> Row {
        let (id, group, label) = ("a".to_owned(), "G".to_owned(), "A".to_owned());
        let (parameters, provenance) = (text("dtype", dtype), Provenance::measured(clock));
        let spec = MetricSpec { id, group, label, unit, parameters, provenance, work: None, floor: None };
        let series =
            (1..).zip(outcomes).map(|(run, outcome)| Series { run: run.to_string(), outcome: outcome.clone() });
        Row { spec, series: series.collect() }
    }

    /// One row of half precision.
    fn rows(unit: Unit, clock: Clock, outcomes: &[Outcome]) -> Rows {
        vec![row("fp16", unit, clock, outcomes)].into()
    }

    fn measured(samples: &[f64]) -> Outcome {
        Outcome::of_samples(samples.to_vec(), StoppedBy::Samples)
    }

    /// Samples of which those of these rounds are of a slowed host.
    fn marked(samples: &[f64], slowed: &[usize]) -> Outcome {
        let mut outcome = measured(samples);
        for (round, sample) in outcome.measured_mut().unwrap().samples.iter_mut().enumerate() {
            sample.slowdown = Some(if slowed.contains(&round) { 1.31 } else { 1.3 });
        }
        outcome
    }

    fn found(rows: &Rows) -> Result<Metric<'_>, MissingReason> {
        Lookup::new(rows, vec!["1", "2"]).find("a", &Parameters::new(), &Parameters::new())
    }

    #[test]
    fn of_several_rows_the_preferred_parameters_win_and_without_them_none_does() {
        let time = |dtype, sample| row(dtype, Unit::Seconds, Clock::DeviceEvents, &[measured(&[sample])]);
        let rows = Rows::from(vec![time("fp16", 1.0), time("fp32", 7.0)]);
        let lookup = Lookup::new(&rows, vec!["1"]);
        let found = lookup.find("a", &Parameters::new(), &text("dtype", "fp32")).unwrap();
        assert_eq!(found.slices(), [[7.0]]);
        let several = lookup.find("a", &Parameters::new(), &Parameters::new()).unwrap_err().to_string();
        assert!(several.contains("`a` fits several rows, such as a (dtype fp16) and a (dtype fp32)"), "{several}");
        assert_eq!(lookup.estimate("a", &text("dtype", "none")), Err(MissingReason::NotInRun));
        let sized = |size: usize| Row {
            spec: MetricSpec { parameters: [("size".to_owned(), size.into())].into(), ..rows[0].spec.clone() },
            series: rows[0].series.clone(),
        };
        let rows = vec![sized(4), sized(400), sized(40)].into();
        let nearest = Parameters::from([("size".to_owned(), Parameter::from(4000_usize))]);
        let found = Lookup::new(&rows, vec!["1"]);
        assert_eq!(found.find("a", &Parameters::new(), &nearest).unwrap().spec.parameters["size"], 400_usize.into());
    }

    #[test]
    fn several_runs_stand_in_their_order_and_a_run_of_another_system_is_not_seen() {
        let samples = [measured(&[1.0]), measured(&[2.0, 3.0]), measured(&[9.0])];
        let row = rows(Unit::Seconds, Clock::Host, &samples);
        let found = found(&row).unwrap();
        assert_eq!(found.slices(), [&[1.0][..], &[2.0, 3.0]]);
        let estimate = found.estimate().unwrap();
        assert_eq!((estimate.median, estimate.runs), (1.75, 2), "each run counts once, by its median");
        assert!(Lookup::new(&row, vec!["4"]).specs().next().is_none());
    }

    #[test]
    fn samples_of_a_slowed_host_are_left_out_of_a_run_that_has_others() {
        let outcomes = [marked(&[1.0, 9.0, 2.0, 8.0], &[1, 3]), marked(&[5.0, 7.0], &[0, 1])];
        let row = rows(Unit::Seconds, Clock::Host, &outcomes);
        let time = found(&row).unwrap();
        assert_eq!((time.slices(), time.left_out), (vec![&[1.0, 2.0][..], &[5.0, 7.0]], 2));
        assert_eq!(time.estimate().unwrap().median, (1.5 + 6.0) / 2.0);
        let row = rows(Unit::Ratio, Clock::Observed, &[marked(&[1.0, 0.0], &[0])]);
        assert_eq!(found(&row).unwrap().slices(), [[1.0, 0.0]], "what is observed is no time");
    }

    #[test]
    fn a_round_of_a_computed_row_is_left_out_where_a_sample_that_it_comes_of_is() {
        let measured = |id: &str, clock, slowed: &[usize]| {
            let mut row = row("fp16", Unit::Seconds, clock, &[marked(&[1.0, 2.0, 3.0, 4.0], slowed)]);
            row.spec.id = id.to_owned();
            row
        };
        let computed = |id: &str, of: [&str; 2]| {
            let operands = of.map(|id| FormulaOperand { name: id.to_owned(), id: id.to_owned(), parameters: None });
            let mut row = measured(id, Clock::Host, &[]);
            let (derivation, formula) = (Derivation::Difference, format!("{} − {}", of[0], of[1]));
            row.spec.provenance = Provenance::Derived { derivation, formula, operands: operands.to_vec() };
            row.series[0].outcome = Outcome::Derived { samples: vec![10.0, 20.0, 30.0, 40.0] };
            row
        };
        let mut counted = measured("o", Clock::Observed, &[0]);
        counted.spec.unit = Unit::Number;
        let rows: Rows = vec![
            measured("p", Clock::Host, &[1]),
            measured("q", Clock::DeviceEvents, &[3]),
            counted,
            measured("s", Clock::Observed, &[2]),
            computed("d", ["p", "q"]),
            computed("e", ["d", "o"]),
            computed("f", ["d", "s"]),
        ]
        .into();
        let lookup = Lookup::new(&rows, vec!["1"]);
        let of = |id: &str| lookup.find(id, &Parameters::new(), &Parameters::new()).unwrap();
        assert_eq!((of("d").slices(), of("d").left_out), (vec![&[10.0, 30.0][..]], 2));
        assert_eq!(of("e").slices(), [[10.0, 30.0]], "also by way of another computed row; and a count is no time");
        assert_eq!((of("o").left_out, of("f").slices()), (0, vec![&[10.0][..]]), "an observed time is one");
        let shared = |ids: [&str; 2]| {
            let rows = ids.map(|id| lookup.rows().find(|row| row.spec.id == id).unwrap());
            lookup.shared_at_full_speed(&rows, 0, 4)
        };
        assert_eq!((shared(["p", "q"]), shared(["e", "s"])), (vec![0, 2], vec![0]));
    }

    #[test]
    fn rows_are_paired_by_the_run_and_not_by_their_place_among_those_that_have_samples() {
        let failed = || Outcome::Failed { reason: "planted".to_owned() };
        let lookup_of = |row: &Row| {
            let rows = vec![row.clone()].into();
            let lookup = Lookup::new(&rows, vec!["1", "2", "3"]);
            lookup.metrics().map(|(_, metric)| metric.unwrap().run_medians()).next().unwrap()
        };
        let [one, other] = [
            row("fp16", Unit::Seconds, Clock::Host, &[measured(&[1.0]), failed(), measured(&[4.0])]),
            row("fp32", Unit::Seconds, Clock::Host, &[failed(), measured(&[20.0]), measured(&[40.0])]),
        ];
        assert_eq!((lookup_of(&one), lookup_of(&other)), (vec![1.0, 4.0], vec![20.0, 40.0]));
        let rows = vec![one, other].into();
        let lookup = Lookup::new(&rows, vec!["1", "2", "3"]);
        let metrics: Vec<Metric<'_>> = lookup.metrics().map(|(_, metric)| metric.unwrap()).collect();
        assert_eq!(metrics[0].paired(&metrics[1]).run_medians(), [4.0]);
        assert_eq!(metrics[1].paired(&metrics[0]).run_medians(), [40.0]);
        assert_eq!(metrics[0].planned(), 3);
        let reason = MissingReason::Failed("planted".to_owned());
        assert_eq!(metrics[0].lacking, [Lacking { run: "2", reason }]);
    }

    #[test]
    fn a_row_without_samples_says_why_and_one_good_run_is_enough() {
        let skipped = Outcome::Skipped { reason: "no room".to_owned() };
        let none = rows(Unit::Seconds, Clock::Host, &[skipped.clone(), Outcome::Interrupted]);
        assert_eq!(found(&none), Err(MissingReason::Skipped("no room".to_owned())));
        assert!(found(&rows(Unit::Seconds, Clock::Host, &[skipped, measured(&[1.0])])).is_ok());
        let hollow = rows(Unit::Seconds, Clock::Host, &[measured(&[])]);
        assert!(matches!(found(&hollow), Err(MissingReason::Inconsistent(_))));
    }

    #[test]
    fn a_sample_that_is_no_number_is_no_estimate() {
        let row = rows(Unit::Ratio, Clock::Host, &[measured(&[1.0, f64::INFINITY])]);
        let absent = found(&row).unwrap().estimate().unwrap_err();
        assert!(matches!(absent, MissingReason::Inconsistent(_)), "{absent}");
    }

    #[test]
    fn a_time_has_no_interval_below_0() {
        let row = rows(Unit::Seconds, Clock::Host, &[measured(&[1.0]), measured(&[9.0])]);
        let estimate = found(&row).unwrap().estimate().unwrap();
        assert_eq!((estimate.median, estimate.low), (5.0, 0.0));
    }

    #[test]
    fn yes_and_no_come_to_their_share() {
        let samples = [measured(&[1.0, 1.0, 1.0, 0.0])];
        let observed = rows(Unit::Ratio, Clock::Observed, &samples);
        let share = found(&observed).unwrap().estimate().unwrap();
        assert_eq!(share.median, 0.75);
        assert!(share.low > 0.25 && share.high < 1.0, "{share:?}");
        let timed = rows(Unit::Ratio, Clock::Host, &samples);
        assert_eq!(found(&timed).unwrap().estimate().unwrap().median, 1.0);
    }
}
