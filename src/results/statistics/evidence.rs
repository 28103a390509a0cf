//! Whether a quantity lies inside a region, and what several such cases come to together.
//!
//! # Method
//! Of several runs, the quantity is known by its value in each run, and two one-sided t tests ask whether its expected
//! value lies beyond an end of the region. The case lies *inside* where both ends are cleared at 2.5 % each, which is the
//! same as a 95 % interval that lies wholly inside: a test of equivalence (D. J. Schuirmann, *A comparison of the two
//! one-sided tests procedure and the power approach for assessing the equivalence of average bioavailability*,
//! J. Pharmacokinet. Biopharm. 15, 1987), so that "not distinguishable" shows nothing. It lies *outside* where it is beyond
//! one of them. One run says nothing of another one, and neither do runs that all came to the same value: they decide
//! nothing, whatever the scatter within them.
//!
//! Where one of several cases decides (one that lies outside refutes "always", one that lies inside shows "can"), the error
//! is held at 2.5 % over all of them by Holm's procedure ([`holm`]). Where all of them have to lie on one side, each is
//! tested at 2.5 %: the chance that all pass while one should not is no larger than that (R. L. Berger, *Multiparameter
//! hypothesis testing and acceptance sampling*, Technometrics 24, 1982).
//!
//! Trials that can only come out one way (a call behind a closed gate) decide where all agree.

use super::chances::{Student, holm};
use super::runs::{mean, standard_error, t_half_width};

/// The chance of a wrong finding on one side.
const ERROR: f64 = 0.025;

/// A part of the numbers: between two bounds, or beyond one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AcceptedRegion {
    /// The lower bound.
    pub low: Option<Bound>,
    /// The upper bound.
    pub high: Option<Bound>,
}

/// An end of a region.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// Where it is.
    pub value: f64,
    /// Whether it belongs to the region itself.
    pub included: bool,
}

impl AcceptedRegion {
    /// Whether a number lies in it.
    pub fn contains(&self, value: f64) -> bool {
        let above = self.low.is_none_or(|low| value > low.value || low.included && value == low.value);
        let below = self.high.is_none_or(|high| value < high.value || high.included && value == high.value);
        above && below
    }
}

/// What is known of a quantity.
#[derive(Clone, Debug, PartialEq)]
pub enum Observations {
    /// Its value: it is computed, not measured.
    Exact(f64),
    /// What it came to in each run, of which there is at least one.
    Runs(Vec<f64>),
    /// What each trial came to, where all trials have to come to the same.
    Trials(Vec<f64>),
    /// How many faults each trial met: one is enough to show that there are some, and none shows nothing.
    Faults(Vec<f64>),
}

impl Observations {
    /// Why it decides nothing, whatever it came to: nothing in it shows how far from it another run may lie.
    pub fn without_scatter(&self) -> Option<String> {
        match self {
            Observations::Runs(values) if standard_error(values).is_none() => Some(match values.len() {
                0 | 1 => "one run: another may say otherwise; measure three or more".to_owned(),
                several => format!(
                    "all {several} runs came to the same value, which shows no scatter: the clock is too coarse"
                ),
            }),
            _ => None,
        }
    }

    /// Its value with its 95 % interval, where it has one.
    pub fn value(&self) -> (f64, Option<(f64, f64)>) {
        self.at_level(1.0 - 2.0 * ERROR)
    }

    /// Its value with its interval of a level.
    pub fn at_level(&self, level: f64) -> (f64, Option<(f64, f64)>) {
        match self {
            Observations::Exact(value) => (*value, None),
            Observations::Runs(values) => {
                let centre = mean(values);
                (centre, t_half_width(values, level).map(|reach| (centre - reach, centre + reach)))
            }
            Observations::Trials(values) | Observations::Faults(values) => (mean(values), None),
        }
    }
}

/// How strongly the samples speak for either side: the chances of what was seen, were the other side right.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evidence {
    inside: f64,
    outside: f64,
}

/// Where one case, or all of them together, lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Inside the region.
    Inside,
    /// Wholly outside of it.
    Outside,
    /// The samples do not say.
    Undecided,
}

impl Evidence {
    /// Of nothing measured.
    pub const NONE: Self = Self { inside: 1.0, outside: 1.0 };

    /// What is known of a quantity, against a region.
    pub fn of(known: &Observations, region: &AcceptedRegion) -> Self {
        let certain =
            |inside: bool| Self { inside: f64::from(u8::from(!inside)), outside: f64::from(u8::from(inside)) };
        match known {
            Observations::Exact(value) => certain(region.contains(*value)),
            Observations::Trials(values) => {
                let inside = values.iter().filter(|value| region.contains(**value)).count();
                if inside == values.len() || inside == 0 { certain(inside > 0) } else { Self::NONE }
            }
            Observations::Faults(values) if values.iter().all(|value| region.contains(*value)) => Self::NONE,
            Observations::Faults(_) => certain(false),
            Observations::Runs(values) => {
                let Some(student) = Student::of(values) else { return Self::NONE };
                let chances = |end: Bound| (student.chance_above(end.value), student.chance_below(end.value));
                let low = region.low.map(chances);
                let high = region.high.map(chances).map(|(above, below)| (below, above));
                let ends = || low.into_iter().chain(high);
                Self {
                    inside: ends().map(|(inside, _)| inside).fold(0.0, f64::max),
                    outside: ends().map(|(_, outside)| outside).fold(1.0, f64::min),
                }
            }
        }
    }

    /// Where a single case lies.
    pub fn finding(&self) -> Decision {
        Self::all(std::slice::from_ref(self))
    }

    /// Whether every one of the cases lies inside: one that lies outside is enough to say no.
    pub fn all(cases: &[Self]) -> Decision {
        match decided(cases, |case| case.outside, |case| case.inside) {
            [true, _] => Decision::Outside,
            [_, true] => Decision::Inside,
            _ => Decision::Undecided,
        }
    }

    /// Whether one of the cases lies inside: all must lie outside to say no.
    pub fn any(cases: &[Self]) -> Decision {
        match decided(cases, |case| case.inside, |case| case.outside) {
            [true, _] => Decision::Inside,
            [_, true] => Decision::Outside,
            _ => Decision::Undecided,
        }
    }

    /// Where each of the cases lies, where one of them is enough to decide: those that count among all.
    pub fn each(cases: &[Self]) -> Vec<Decision> {
        let inside = holm(&cases.iter().map(|case| case.inside).collect::<Vec<f64>>(), ERROR);
        let outside = holm(&cases.iter().map(|case| case.outside).collect::<Vec<f64>>(), ERROR);
        let finding = |(inside, outside)| match (inside, outside) {
            (true, _) => Decision::Inside,
            (_, true) => Decision::Outside,
            _ => Decision::Undecided,
        };
        inside.into_iter().zip(outside).map(finding).collect()
    }
}

/// Whether one case is known to lie on one side, and whether all are known to lie on the other, by the chances of either.
fn decided(cases: &[Evidence], one: fn(&Evidence) -> f64, other: fn(&Evidence) -> f64) -> [bool; 2] {
    let chances: Vec<f64> = cases.iter().map(one).collect();
    [holm(&chances, ERROR).contains(&true), cases.iter().all(|case| other(case) <= ERROR)]
}

/// By how much the errors of a model miss 0 at most: the furthest end of the intervals, which hold together at 95 %.
pub fn furthest(errors: &[Observations]) -> f64 {
    let level = 1.0 - 2.0 * ERROR / errors.len() as f64;
    let reach = |error: &Observations| match error.at_level(level) {
        (value, None) => value.abs(),
        (_, Some((low, high))) => low.abs().max(high.abs()),
    };
    errors.iter().map(reach).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::Xoshiro256PlusPlus;
    use rand_distr::{Distribution, StandardNormal};

    use super::*;

    fn between(low: f64, high: f64) -> AcceptedRegion {
        let end = |value| Some(Bound { value, included: false });
        AcceptedRegion { low: end(low), high: end(high) }
    }

    fn above(low: f64) -> AcceptedRegion {
        AcceptedRegion { high: None, ..between(low, 0.0) }
    }

    fn finding(values: &[f64], region: AcceptedRegion) -> Decision {
        Evidence::of(&Observations::Runs(values.to_vec()), &region).finding()
    }

    #[test]
    fn an_interval_lies_inside_outside_or_across_an_end() {
        let runs = [0.9, 1.0, 1.1, 1.0, 1.0];
        // Mean 1, standard error 0.0316, t of four degrees of freedom 2.776: 0.912 to 1.088.
        assert_eq!(finding(&runs, between(0.91, 1.09)), Decision::Inside);
        assert_eq!(finding(&runs, between(0.915, 1.5)), Decision::Undecided, "it reaches over the lower end");
        assert_eq!(finding(&runs, between(1.09, 1.5)), Decision::Outside);
        assert_eq!(finding(&runs, above(1.05)), Decision::Undecided);
        assert_eq!(finding(&runs, above(0.0)), Decision::Inside);
    }

    #[test]
    fn a_wide_interval_around_the_right_value_shows_no_equality() {
        assert_eq!(finding(&[0.2, 1.8, 1.0, 0.4, 1.6], between(0.9, 1.1)), Decision::Undecided);
    }

    #[test]
    fn runs_that_are_all_equal_show_no_scatter_and_decide_nothing() {
        assert_eq!(finding(&[2.0, 2.0], above(1.0)), Decision::Undecided);
        assert_eq!(finding(&[2.0; 5], above(3.0)), Decision::Undecided);
        assert_eq!(Observations::Runs(vec![2.0, 2.0]).value(), (2.0, None));
    }

    #[test]
    fn an_end_counts_only_where_it_is_included() {
        let above = |included| AcceptedRegion { low: Some(Bound { value: 2.0, included }), high: None };
        let of = |region| Evidence::of(&Observations::Exact(2.0), &region).finding();
        assert_eq!((of(above(true)), of(above(false))), (Decision::Inside, Decision::Outside));
    }

    #[test]
    fn trials_decide_where_all_agree_and_one_fault_is_enough() {
        let is = |value| AcceptedRegion {
            low: Some(Bound { value, included: true }),
            high: Some(Bound { value, included: true }),
        };
        let of = |known: Observations, region| Evidence::of(&known, &region).finding();
        assert_eq!(of(Observations::Trials(vec![1.0; 9]), is(1.0)), Decision::Inside);
        assert_eq!(of(Observations::Trials(vec![0.0; 9]), is(1.0)), Decision::Outside);
        assert_eq!(of(Observations::Trials(vec![0.0, 1.0, 1.0]), is(1.0)), Decision::Undecided);
        assert_eq!(of(Observations::Faults(vec![0.0, 0.0, 7.0]), is(0.0)), Decision::Outside);
        assert_eq!(of(Observations::Faults(vec![0.0; 99]), is(0.0)), Decision::Undecided);
    }

    #[test]
    fn one_run_decides_nothing() {
        for bound in [-1e9, 5.0, 1e9] {
            assert_eq!(finding(&[5.0], above(bound)), Decision::Undecided, "{bound}");
        }
        let one = Observations::Runs(vec![5.0]);
        assert_eq!(one.value(), (5.0, None));
        assert!(one.without_scatter().unwrap().starts_with("one run: another may say otherwise"));
        assert!(
            Observations::Runs(vec![5.0, 5.0])
                .without_scatter()
                .unwrap()
                .starts_with("all 2 runs came to the same value")
        );
        assert_eq!(Observations::Runs(vec![5.0, 6.0]).without_scatter(), None);
        assert_eq!(Observations::Trials(vec![1.0]).without_scatter(), None);
    }

    #[test]
    fn a_case_that_is_missing_leaves_open_what_the_others_do_not_decide() {
        let inside = Evidence::of(&Observations::Exact(1.0), &above(0.0));
        let outside = Evidence::of(&Observations::Exact(-1.0), &above(0.0));
        assert_eq!(Evidence::all(&[inside, Evidence::NONE]), Decision::Undecided);
        assert_eq!(Evidence::all(&[outside, Evidence::NONE]), Decision::Outside);
        assert_eq!(Evidence::any(&[inside, Evidence::NONE]), Decision::Inside);
        assert_eq!(Evidence::any(&[outside, Evidence::NONE]), Decision::Undecided);
    }

    /// Several cases of five runs each, whose expected values are `truths`, of standard deviation 1.
    fn share(truths: &[f64], region: AcceptedRegion, says: impl Fn(&[Evidence]) -> bool) -> f64 {
        const TRIALS: usize = 4000;
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
        let case = |truth: &f64, rng: &mut Xoshiro256PlusPlus| {
            let values = (0..5).map(|_| truth + Distribution::<f64>::sample(&StandardNormal, rng)).collect();
            Evidence::of(&Observations::Runs(values), &region)
        };
        let said = (0..TRIALS).filter(|_| {
            let cases: Vec<Evidence> = truths.iter().map(|truth| case(truth, &mut rng)).collect();
            says(&cases)
        });
        said.count() as f64 / TRIALS as f64
    }

    /// Three standard errors of the simulation above 2.5 %.
    const MAX: f64 = 0.025 + 3.0 * 0.0025;

    #[test]
    fn over_eight_cases_on_the_boundary_a_wrong_finding_is_no_more_frequent_than_of_one() {
        let (ties, region) = ([0.0; 8], above(0.0));
        assert!(share(&ties, region, |cases| Evidence::all(cases) == Decision::Outside) < MAX);
        assert!(share(&ties, region, |cases| Evidence::any(cases) == Decision::Inside) < MAX);
        let alone = share(&ties, region, |cases| cases.iter().any(|case| case.finding() == Decision::Outside));
        assert!(alone > 0.1, "without Holm's procedure it would be: {alone}");
    }

    #[test]
    fn a_case_at_the_end_of_its_margin_is_not_called_equal_and_clear_cases_are_found() {
        let margin = between(-3.0, 3.0);
        assert!(share(&[3.0, 0.0], margin, |cases| Evidence::all(cases) == Decision::Inside) < MAX);
        let far = between(-9.0, 9.0);
        assert!(share(&[0.0, 1.0], far, |cases| Evidence::all(cases) == Decision::Inside) > 0.99);
        assert!(share(&[0.0, 19.0], far, |cases| Evidence::all(cases) == Decision::Outside) > 0.95);
        assert!(share(&[-19.0, 19.0], far, |cases| Evidence::any(cases) == Decision::Outside) > 0.95);
        assert!(share(&[-19.0, 0.0], far, |cases| Evidence::any(cases) == Decision::Inside) > 0.95);
    }

    #[test]
    fn the_reach_of_a_model_covers_its_largest_error() {
        let errors = [Observations::Exact(-0.2), Observations::Runs(vec![0.1, 0.1001])];
        assert_eq!(furthest(&errors), 0.2);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(9);
        let run = |truth: f64, rng: &mut Xoshiro256PlusPlus| {
            Observations::Runs((0..5).map(|_| truth + Distribution::<f64>::sample(&StandardNormal, rng)).collect())
        };
        let held = (0..2000).filter(|_| furthest(&[0.0, -7.0, 3.0].map(|truth| run(truth, &mut rng))) >= 7.0).count();
        assert!(held > 1940, "{held} of 2000");
    }
}
