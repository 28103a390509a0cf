//! Judging claims: whether one holds on the machine of a results file.
//!
//! The predicate is evaluated over draws of what its rows come to: of several runs, joint draws of the expected medians of
//! a run ([`RunDraws`]); of one run, bootstrap resamples of its samples, as [`judge`](crate::measure::judge) evaluates a
//! statement, and then the verdict is about that run alone. It is *confirmed* where the predicate holds in at least 97.5 %
//! of the draws, *refuted* where it fails in as many, and otherwise *inconclusive*. The draws are seeded, so that a file has
//! one verdict. A claim about published figures alone is evaluated once.
//!
//! Counts (stale elements, wrong elements) are judged by the largest that was seen: one bad round is enough to refute that
//! something is safe. That none was seen proves nothing: a claim that can only be refuted (`refutable_only`) is then
//! *inconclusive*. A call behind a closed gate blocks in all trials or in none; one that blocked in some decides nothing.
//!
//! A claim whose samples are missing, or fewer than six of one run, or whose predicate cannot be evaluated (a division by
//! zero), is *not testable*, never judged.

use std::collections::BTreeMap;

use minijinja::{Expression, Value};

use super::operand::{Operand, is_selected};
use super::{compile, environment, operands_of};
use crate::book::document::{Claim, Document, Figure, Needs};
use crate::measure::{Bootstrap, RunDraws, Verdict, median};
use crate::results::{Lookup, Metric, MetricSpec, MissingReason, Results};
use crate::units::Unit;

/// A verdict with the numbers that decided it.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// The system on whose samples it was judged.
    pub system: String,
    /// The same of the system that the file is about, where the claim is about another.
    pub beside: Option<Box<Judgement>>,
    /// Each operand of the predicate: its name, and what it was.
    pub evidence: Vec<(String, String)>,
    /// The least number of runs behind an operand; 0 where nothing measured is in the predicate.
    pub runs: usize,
    /// For a claim about figures alone: the predicate with the numbers in it, and what its two sides come to.
    pub calculation: Option<String>,
}

impl Judgement {
    fn not_testable(reason: String, system: &str, evidence: Vec<(String, String)>) -> Self {
        let (verdict, system) = (Verdict::NotTestable(reason), system.to_owned());
        Self { verdict, system, beside: None, evidence, runs: 0, calculation: None }
    }
}

/// An operand with its values.
pub(in crate::book) enum OperandValue<'a> {
    /// What was measured.
    Samples(Metric<'a>),
    /// What is printed, with its unit.
    Fixed(f64, Unit),
}

impl Claim {
    /// Judges the claim of `document` by the runs of a results file: on the system that it is about, and beside it on the
    /// one that the file is about.
    pub fn judge(&self, document: &Document, results: &Results) -> Judgement {
        let own = results.run().system.as_str();
        match self.system(document) {
            None => self.judge_on(own, document, results),
            Some(system) => {
                let beside = Some(Box::new(self.judge_on(own, document, results)));
                let there = results.systems().contains(&system);
                let judgement = if there {
                    self.judge_on(system, document, results)
                } else {
                    let reason = format!("the text is about {system}, and this run has none");
                    Judgement::not_testable(reason, system, Vec::new())
                };
                Judgement { beside, ..judgement }
            }
        }
    }

    /// Judges the claim by the runs of one system.
    fn judge_on(&self, system: &str, document: &Document, results: &Results) -> Judgement {
        if self.needs == Needs::Gpu && results.environment().device.engine != "cuda" {
            return Judgement::not_testable("the claim is about a GPU".to_owned(), system, Vec::new());
        }
        let judgement = judged(&self.predicate, document, results, system);
        match judgement.verdict {
            Verdict::Confirmed(share) if self.refutable_only => {
                Judgement { verdict: Verdict::Inconclusive(share), ..judgement }
            }
            _ => judgement,
        }
    }
}

/// Judges a predicate by the runs of one system.
pub(in crate::book) fn judged(predicate: &str, document: &Document, results: &Results, system: &str) -> Judgement {
    let operands = match operands_of(predicate, document) {
        Ok(operands) => operands,
        Err(unknown) => return Judgement::not_testable(unknown.message, system, Vec::new()),
    };
    let lookup = results.lookup_of(system);
    let (mut values, mut evidence) = (Vec::new(), Vec::new());
    for (name, operand) in &operands {
        match look_up(operand, &lookup) {
            Ok((value, text)) => {
                values.push(value);
                evidence.push((name.clone(), text));
            }
            Err(absence) => {
                return Judgement::not_testable(format!("{name} was not measured: {absence}"), system, evidence);
            }
        }
    }
    let names: Vec<&str> = operands.iter().map(|(name, _)| name.as_str()).collect();
    let share = share_of_true(predicate, &names, &values);
    let fixed: Option<Vec<f64>> = values.iter().map(OperandValue::fixed).collect();
    Judgement {
        verdict: share.map_or_else(Verdict::NotTestable, Verdict::of_share),
        system: system.to_owned(),
        beside: None,
        evidence,
        runs: values.iter().filter_map(OperandValue::metric).map(|metric| metric.runs.len()).min().unwrap_or(0),
        calculation: fixed.and_then(|values| calculation(predicate, &names, &values)),
    }
}

/// The value of an operand in the results, and the same as text.
pub(in crate::book) fn look_up<'a>(
    operand: &Operand,
    lookup: &Lookup<'a>,
) -> Result<(OperandValue<'a>, String), MissingReason> {
    match operand {
        Operand::Measured { id, selectors, .. } => {
            let of_row = |spec: &&MetricSpec| spec.id == *id && is_selected(spec, selectors);
            let spec = lookup.specs().find(of_row).ok_or(MissingReason::NotInRun)?;
            let metric = lookup.find(id, &spec.parameters, &spec.parameters)?;
            let estimate = metric.estimate()?;
            if !estimate.is_interval() {
                return Err(MissingReason::Inconsistent(format!("{} samples are too few to judge by", estimate.n)));
            }
            let text = estimate.format(spec.unit);
            Ok((OperandValue::Samples(metric), text))
        }
        Operand::Published(Figure { value, digits, .. }, unit) => {
            Ok((OperandValue::Fixed(*value, *unit), format!("{} (published)", unit.format(*value, *digits))))
        }
        Operand::Peak(rate) => Ok((
            OperandValue::Fixed(*rate, Unit::FlopsPerSecond),
            format!("{} (peak rate)", Unit::FlopsPerSecond.format(*rate, 4)),
        )),
    }
}

/// In which share of the draws the predicate is true.
fn share_of_true(predicate: &str, names: &[&str], values: &[OperandValue<'_>]) -> Result<f64, String> {
    let environment = environment();
    let flat = flattened(predicate, names);
    let expression = compile(&environment, &flat)?;
    let mut drawn = Vec::new();
    let kinds: Vec<Drawn> = values.iter().map(|value| Drawn::of(value, &mut drawn)).collect();
    if drawn.is_empty() && !kinds.contains(&Drawn::Either) {
        return evaluate(&expression, &kinds, &[], false).map(f64::from);
    }
    let (mut failure, mut draw) = (None, 0);
    let mut truth = |middles: &[f64]| {
        draw += 1;
        match evaluate(&expression, &kinds, middles, draw % 2 == 0) {
            Ok(holds) => f64::from(holds),
            Err(message) => {
                failure.get_or_insert(message);
                f64::NAN
            }
        }
    };
    let one_run = drawn.iter().all(|metric| metric.runs.len() == 1);
    let truths = if one_run {
        let sets: Vec<&[f64]> = drawn.iter().map(|metric| metric.runs[0]).collect();
        Bootstrap::default().distribution(&sets, |resampled| {
            truth(&resampled.iter().map(|set| median(set.clone())).collect::<Vec<f64>>())
        })
    } else if let Some(single) = drawn.iter().find(|metric| metric.runs.len() == 1) {
        return Err(format!("`{}` was measured in one run alone", single.spec.title()));
    } else {
        let rows: Vec<Vec<f64>> = drawn.iter().map(|metric| metric.run_medians()).collect();
        let rows: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
        RunDraws::default().distribution(&rows, truth)
    };
    match failure {
        Some(message) => Err(message),
        None => Ok(truths.iter().sum::<f64>() / truths.len() as f64),
    }
}

/// Where the value of an operand in a draw comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Drawn {
    /// It is the same in all.
    Fixed(f64),
    /// It is 0 in half of them and 1 in the others: yes in some trials and no in others.
    Either,
    /// It is drawn.
    Middle,
}

impl Drawn {
    /// `drawn` takes the metrics that are drawn, in the order of the operands.
    fn of<'v, 'a>(value: &'v OperandValue<'a>, drawn: &mut Vec<&'v Metric<'a>>) -> Self {
        let metric = match value {
            OperandValue::Fixed(value, _) => return Drawn::Fixed(*value),
            OperandValue::Samples(metric) => metric,
        };
        let samples = || metric.runs.iter().copied().flatten().copied();
        let (least, most) = (samples().fold(f64::INFINITY, f64::min), samples().fold(f64::NEG_INFINITY, f64::max));
        if metric.is_observed() && metric.spec.unit == Unit::Number {
            return Drawn::Fixed(most);
        }
        match metric.is_share() {
            true if least == most => Drawn::Fixed(most),
            true => Drawn::Either,
            false => {
                drawn.push(metric);
                Drawn::Middle
            }
        }
    }
}

impl OperandValue<'_> {
    /// The value, of samples what they come to.
    pub(in crate::book) fn middle(&self) -> Result<f64, MissingReason> {
        match self {
            OperandValue::Samples(metric) => Ok(metric.estimate()?.median),
            OperandValue::Fixed(value, _) => Ok(*value),
        }
    }

    fn fixed(&self) -> Option<f64> {
        match self {
            OperandValue::Samples(_) => None,
            OperandValue::Fixed(value, _) => Some(*value),
        }
    }
}

impl<'a> OperandValue<'a> {
    fn metric(&self) -> Option<&Metric<'a>> {
        match self {
            OperandValue::Samples(metric) => Some(metric),
            OperandValue::Fixed(..) => None,
        }
    }
}

/// The predicate with numbers in the place of names and, where it compares two sides once, what the sides come to:
/// `2 * 8192 ** 3 / 989400000000000 <= 0.0008: 0.001111 against 0.0008`.
fn calculation(predicate: &str, names: &[&str], values: &[f64]) -> Option<String> {
    let mut numbers = flattened(predicate, names);
    for (i, value) in values.iter().enumerate() {
        numbers = numbers.replace(&flat_name(i), &value.to_string());
    }
    let operators = ["<=", ">=", "<", ">"];
    let found =
        operators.iter().find(|operator| numbers.matches(**operator).count() == 1 && !numbers.contains(" and "));
    let sides = found.and_then(|operator| numbers.split_once(operator)).and_then(|(left, right)| {
        let environment = environment();
        let side = |text: &str| {
            let value = environment.compile_expression(text.trim()).ok()?.eval(()).ok()?;
            f64::try_from(value).ok().map(|value| Unit::Number.format(value, 4))
        };
        Some(format!(": {} against {}", side(left)?, side(right)?))
    });
    Some(format!("{numbers}{}", sides.unwrap_or_default()))
}

/// Evaluates the flattened predicate; `middles` are the values of the operands that are drawn, in order.
fn evaluate(expression: &Expression<'_, '_>, kinds: &[Drawn], middles: &[f64], yes: bool) -> Result<bool, String> {
    let mut middles = middles.iter();
    let values = kinds.iter().enumerate().map(|(i, kind)| {
        let value = match kind {
            Drawn::Fixed(value) => *value,
            Drawn::Either => f64::from(u8::from(yes)),
            Drawn::Middle => middles.next().copied().unwrap_or(f64::NAN),
        };
        (flat_name(i), value)
    });
    let context: BTreeMap<String, f64> = values.collect();
    let result = expression.eval(Value::from(context)).map_err(|error| format!("the predicate fails: {error:#}"))?;
    bool::try_from(result.clone())
        .ok()
        .filter(|_| result.kind() == minijinja::value::ValueKind::Bool)
        .ok_or_else(|| format!("the predicate gives {result}, which is neither true nor false"))
}

pub(in crate::book) fn flat_name(index: usize) -> String {
    format!("q{index}_")
}

/// The predicate with a plain name in the place of each dotted one, so that its context is flat.
pub(in crate::book) fn flattened(predicate: &str, names: &[&str]) -> String {
    let is_path = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let mut out = String::with_capacity(predicate.len());
    let mut rest = predicate;
    while let Some(first) = rest.chars().next() {
        let length = if is_path(first) { rest.find(|c| !is_path(c)).unwrap_or(rest.len()) } else { first.len_utf8() };
        let (token, tail) = rest.split_at(length);
        match names.iter().position(|name| *name == token) {
            Some(index) => out.push_str(&flat_name(index)),
            None => out.push_str(token),
        }
        rest = tail;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Clock;
    use crate::results::{Parameters, Provenance};

    fn row(id: &str, unit: Unit, clock: Clock, samples: Vec<f64>) -> (MetricSpec, Vec<f64>) {
        let (id, group, label, parameters) = (id.to_owned(), String::new(), String::new(), Parameters::new());
        let provenance = Provenance::measured(clock);
        (MetricSpec { id, group, label, unit, parameters, provenance, work: None, floor: None }, samples)
    }

    fn timed(samples: Vec<f64>) -> (MetricSpec, Vec<f64>) {
        row("t", Unit::Seconds, Clock::Host, samples)
    }

    fn share(predicate: &str, names: &[&str], rows: &[(MetricSpec, Vec<f64>)]) -> Result<f64, String> {
        let values: Vec<_> =
            rows.iter().map(|(spec, samples)| OperandValue::Samples(Metric::new(spec, samples))).collect();
        share_of_true(predicate, names, &values)
    }

    /// 1 + spread · (−1 … 1), evenly, in an order that is no trend.
    fn around_one(spread: f64) -> Vec<f64> {
        (0..31).map(|i| 1.0 + spread * (f64::from(i * 7 % 31) / 15.0 - 1.0)).collect()
    }

    #[test]
    fn a_clear_difference_is_confirmed_its_opposite_refuted_and_noise_neither() {
        let (low, high) = (timed(around_one(0.1)), timed(around_one(0.1).iter().map(|x| x + 1.0).collect()));
        let rows = [low.clone(), high];
        assert_eq!(Verdict::of_share(share("a < b", &["a", "b"], &rows).unwrap()), Verdict::Confirmed(1.0));
        assert_eq!(Verdict::of_share(share("a > b", &["a", "b"], &rows).unwrap()), Verdict::Refuted(0.0));
        let even = share("a > 1.0", &["a"], &[low]).unwrap();
        assert!(matches!(Verdict::of_share(even), Verdict::Inconclusive(_)), "{even}");
    }

    #[test]
    fn rounds_stay_paired() {
        // Both swing by far more than they differ, together.
        let swing: Vec<f64> = around_one(0.5);
        let (a, b) = (timed(swing.clone()), timed(swing.iter().map(|x| x + 0.01).collect()));
        assert_eq!(share("a < b", &["a", "b"], &[a, b]), Ok(1.0));
    }

    #[test]
    fn what_blocks_in_some_trials_alone_decides_nothing() {
        let blocked = |every: usize| {
            let samples = (0..30).map(|i| f64::from(u8::from(i % every == 0))).collect();
            share("a > 0.5", &["a"], &[row("t", Unit::Ratio, Clock::Observed, samples)])
        };
        assert_eq!((blocked(1), blocked(2), blocked(30)), (Ok(1.0), Ok(0.5), Ok(0.5)));
    }

    #[test]
    fn of_several_runs_each_counts_once_by_its_median() {
        let spec = timed(Vec::new()).0;
        let verdict = |a: &[f64], b: &[f64]| {
            let runs = |levels: &[f64]| -> Vec<Vec<f64>> {
                levels.iter().map(|level| around_one(0.001).iter().map(|x| level * x).collect()).collect()
            };
            let runs = [runs(a), runs(b)];
            let metrics =
                runs.each_ref().map(|runs| Metric { spec: &spec, runs: runs.iter().map(Vec::as_slice).collect() });
            let values = metrics.map(OperandValue::Samples);
            share_of_true("a < b", &["a", "b"], &values).map(Verdict::of_share)
        };
        let steady = [1.0, 1.01, 0.99];
        assert!(matches!(verdict(&steady, &[1.5, 1.52, 1.51]), Ok(Verdict::Confirmed(_))));
        // Within the runs all is clear; between them it is not.
        assert!(matches!(verdict(&steady, &[1.3, 0.9, 1.2]), Ok(Verdict::Inconclusive(_))));
        assert!(verdict(&steady, &[1.5]).unwrap_err().contains("in one run alone"));
        // Runs of both that move together.
        assert!(matches!(verdict(&[1.0, 2.0, 1.5], &[1.1, 2.1, 1.6]), Ok(Verdict::Confirmed(_))));
    }

    #[test]
    fn one_bad_round_refutes_that_something_is_safe() {
        // In fewer than half of the rounds: the median of most resamples is 0.
        let counts = |bad: usize| (0..30).map(|i| if i < bad { 64.0 } else { 0.0 }).collect();
        let rare = row("t", Unit::Number, Clock::Observed, counts(12));
        assert!(share("a == 0", &["a"], &[rare]).unwrap() < 0.025);
        let never = row("t", Unit::Number, Clock::Observed, counts(0));
        assert_eq!(share("a == 0", &["a"], &[never]), Ok(1.0), "and then only a refutable claim is told from a proof");
    }

    #[test]
    fn what_cannot_be_evaluated_is_an_error_and_no_verdict() {
        let zero = || timed(vec![0.0; 9]);
        assert!(share("1 / a > 5", &["a"], &[zero()]).unwrap_err().contains("the predicate fails"));
        assert!(share("a > b", &["a"], &[zero()]).is_err(), "a name without a value");
        assert!(share("a + 1", &["a"], &[zero()]).unwrap_err().contains("neither true nor false"));
    }

    #[test]
    fn a_claim_about_figures_alone_shows_its_calculation() {
        let text = calculation("2 * 8192 ** 3 / peak.h100 <= 0.0008", &["peak.h100"], &[989.4e12]).unwrap();
        assert_eq!(text, "2 * 8192 ** 3 / 989400000000000 <= 0.0008: 0.001111 against 0.0008000");
    }

    #[test]
    fn dotted_names_are_replaced_whole() {
        let flat = flattened("small.a / small.a.b > 0.5 and (small.a)|abs < 1e-3", &["small.a", "small.a.b"]);
        assert_eq!(flat, "q0_ / q1_ > 0.5 and (q0_)|abs < 1e-3");
    }
}
