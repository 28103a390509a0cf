//! Judging claims: on the system that each is about, by its kind.
//!
//! Each test of a claim is made for each of its cases. A case is a quantity ([`ResolvedExpression`]) against the test's region
//! ([`Evidence`](crate::measure), which says how a case is found to lie inside or outside, and how the error is held over
//! several). The kind then decides: of a claim that says *can*, one case inside is enough, and cases outside refute nothing; of
//! the others, every case has to lie inside. A model has no region: its verdict is how far it misses at most.
//!
//! Only the scatter between runs carries a verdict on times. What was measured in one run is shown, and judged it is not.
//! Trials that can only come out one way decide also in one run, where all agree.
//!
//! A claim about a GPU is not judged by the samples of an emulation, nor one about PyTorch by those of another program. A
//! case whose rows are missing decides nothing, and the verdict says so.

use super::case::{CaseResult, ClaimVerdict, named, why};
use super::operand::{Operand, operands_of};
use super::quantity::ResolvedExpression;
use super::source::source;
use super::test::Test;
use crate::document::{Claim, ClaimKind, ClaimSubject, Document, values_of};
use crate::measure::{Decision, Evidence, Observations, furthest};
use crate::results::{Lookup, MissingReason, Parameters, Results};

/// The system that the texts are about.
const PYTORCH: &str = "PyTorch";

/// The most cases that a claim compares with each other: of so many there are 4,950 pairs.
const MAX_COMPARED: usize = 100;

/// A verdict with what decided it.
///
/// ```
/// use syncscope_book::document::Document;
/// use syncscope_results::Results;
///
/// fn print_claims(document: &Document, results: &Results) {
///     for claim in &document.claims {
///         let judgement = claim.judge(document, results);
///         println!("{}: {}, because {}", claim.id, judgement.verdict.name(), judgement.why);
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: ClaimVerdict,
    /// The system on whose samples it was judged.
    pub system: String,
    /// The same of the system that the file is about, where another one decides.
    pub beside: Option<Box<Judgement>>,
    /// The cases that decided.
    pub cases: Vec<CaseResult>,
    /// Quantities beside them.
    pub shown: Vec<CaseResult>,
    /// Why, in one sentence.
    pub why: String,
}

impl Claim {
    /// Judges the claim of `document` by the runs of a results file: on the system that it is about, and beside it on the
    /// one that the file is about.
    pub fn judge(&self, document: &Document, results: &Results) -> Judgement {
        let own = results.run().system.as_str();
        let there = results.systems().contains(&PYTORCH);
        let engine = results.environment().device.engine.as_str();
        let judge_on = |system: &str| self.judge_on(system, document, results);
        match self.on {
            // What is shown beside figures is of a GPU, too.
            None if engine != "cuda" => Judgement { shown: Vec::new(), ..judge_on(own) },
            None if there => judge_on(PYTORCH),
            None | Some(ClaimSubject::Program) => judge_on(own),
            Some(subject @ (ClaimSubject::Pytorch | ClaimSubject::Cuda)) if engine != "cuda" => {
                let reason = format!(
                    "the claim is about a GPU, and this run is of the engine `{engine}`, an emulation: neither its times \
                     nor its calls are a GPU's"
                );
                // What CUDA does is asked of any program, so that no other one is named.
                self.not_judged(reason, if subject == ClaimSubject::Cuda { own } else { PYTORCH })
            }
            Some(ClaimSubject::Cuda) if !there => judge_on(own),
            Some(ClaimSubject::Cuda) => match judge_on(PYTORCH) {
                Judgement { verdict: ClaimVerdict::NotJudged(_), .. } => judge_on(own),
                judgement => judgement.beside(own, judge_on),
            },
            Some(ClaimSubject::Pytorch) => {
                let none = || "the text is about PyTorch, and this run has no PyTorch".to_owned();
                let judgement = if there { judge_on(PYTORCH) } else { self.not_judged(none(), PYTORCH) };
                let is_foreign = self.is_of_another(own, document, results);
                if is_foreign { judgement } else { judgement.beside(own, judge_on) }
            }
        }
    }

    /// Whether none of its rows has a meaning in a system: they are of the calls of another one.
    fn is_of_another(&self, system: &str, document: &Document, results: &Results) -> bool {
        let tests = self.tests.iter().filter_map(|text| Test::parse(text).ok());
        let operands = tests.filter_map(|test| operands_of(&test.quantity, document).ok()).flatten();
        let ids: Vec<String> = operands.filter_map(|(_, operand)| operand.measured().map(str::to_owned)).collect();
        let (lookup, all) = (results.lookup_of(system), Parameters::new());
        let mut rows = ids.iter().flat_map(|id| lookup.specs_of(id, &all)).peekable();
        rows.peek().is_some() && rows.all(|spec| matches!(lookup.of(spec), Err(MissingReason::NotApplicable(_))))
    }

    fn not_judged(&self, reason: String, system: &str) -> Judgement {
        let verdict = ClaimVerdict::NotJudged(reason);
        let why = why(&verdict, self.kind, self.compare, &[]);
        let (cases, shown) = (Vec::new(), Vec::new());
        Judgement { verdict, system: system.to_owned(), beside: None, cases, shown, why }
    }

    /// Judges the claim by the runs of one system.
    fn judge_on(&self, system: &str, document: &Document, results: &Results) -> Judgement {
        let lookup = results.lookup_of(system);
        if let Some(given) = &self.given {
            let reason = match holds(given, document, &lookup) {
                Ok(Held { finding: Decision::Inside, .. }) => None,
                Ok(Held { without_scatter: Some(reason), .. }) => Some(reason),
                Ok(_) => Some(format!("it asks why {given}, and the samples do not show that")),
                Err(reason) => Some(reason),
            };
            if let Some(reason) = reason {
                return self.not_judged(reason, system);
            }
        }
        let made = |tests: &[String]| -> Vec<CaseResult> {
            tests.iter().flat_map(|text| self.made(text, document, results, &lookup)).collect()
        };
        let (shown, mut cases) = (made(&self.shown), made(&self.tests));
        // Of no case at all every test would hold.
        if cases.iter().all(|case| case.found.is_err()) {
            let missing = cases.iter().find_map(|case| case.found.as_ref().err());
            let reason = missing.cloned().unwrap_or_else(|| "there is no case of it".to_owned());
            return Judgement { shown, ..self.not_judged(reason, system) };
        }
        let verdict = if self.kind == ClaimKind::Model {
            let errors: Vec<Observations> = cases.iter().filter_map(CaseResult::known).cloned().collect();
            match errors.iter().find_map(Observations::without_scatter) {
                Some(reason) => ClaimVerdict::NotJudged(reason),
                None => ClaimVerdict::GoodToWithin(furthest(&errors)),
            }
        } else {
            let evidence: Vec<Evidence> = cases.iter().map(CaseResult::evidence).collect();
            // On the side on which all cases have to lie, each counts alone.
            let (finding, side) = match self.kind {
                ClaimKind::Exists => (Evidence::any(&evidence), Decision::Outside),
                _ => (Evidence::all(&evidence), Decision::Inside),
            };
            for ((case, each), evidence) in cases.iter_mut().zip(Evidence::each(&evidence)).zip(&evidence) {
                case.finding = Some(if evidence.finding() == side { side } else { each });
            }
            match without_scatter(finding, cases.iter().filter_map(|case| Some((case.finding?, case.known())))) {
                Some(reason) => ClaimVerdict::NotJudged(reason),
                None => ClaimVerdict::of(finding, self.kind),
            }
        };
        let why = why(&verdict, self.kind, self.compare, &cases);
        Judgement { verdict, system: system.to_owned(), beside: None, cases, shown, why }
    }

    /// A test, made for each of its cases, with what is known of each that was measured.
    fn made(&self, text: &str, document: &Document, results: &Results, lookup: &Lookup<'_>) -> Vec<CaseResult> {
        let Ok(test) = Test::parse(text) else { return Vec::new() };
        let operands = operands_of(&test.quantity, document).map_err(|unknown| unknown.message);
        let of = |select: &Parameters| {
            let operands = operands.as_ref().map_err(String::clone)?;
            ResolvedExpression::of_operands((&test.quantity, operands), document, (lookup, select))
        };
        let selects = self.selects(operands.as_deref().unwrap_or_default(), document, results);
        let found = |quantity: Result<ResolvedExpression<'_>, String>, case: String, select: &Parameters| {
            CaseResult::of(&test, case, select, quantity.and_then(|quantity| quantity.found()))
        };
        let Some(compare) = self.compare else {
            return selects.iter().map(|select| found(of(select), named(select), select)).collect();
        };
        if selects.len() > MAX_COMPARED {
            let many = format!("it compares {} cases with each other, and {MAX_COMPARED} are the most", selects.len());
            return vec![found(Err(many), String::new(), &Parameters::new())];
        }
        if let [only] = &selects[..] {
            let which = if only.is_empty() { String::new() } else { format!(", {}", named(only)) };
            let alone = format!("it compares cases, and there is one alone{which}");
            let none = of(only).and_then(|quantity| quantity.found()).and(Err(alone));
            return vec![found(none, named(only), only)];
        }
        let pairs = selects.iter().enumerate().flat_map(|(place, one)| selects[..place].iter().map(move |b| (one, b)));
        let pair = |(one, other): (&Parameters, &Parameters)| {
            let both = of(one).and_then(|one| one.compared(compare, of(other)?));
            found(both, format!("{} against {}", named(one), named(other)), one)
        };
        pairs.map(pair).collect()
    }

    /// What the cases of a test select: of the parameters that its rows have.
    fn selects(&self, operands: &[(String, Operand)], document: &Document, results: &Results) -> Vec<Parameters> {
        let ids: Vec<&str> = operands.iter().filter_map(|(_, operand)| operand.measured()).collect();
        let known = document.names.rows.parameters(&ids);
        let mut selects: Vec<Parameters> = match &self.each {
            Some(name) => {
                let values = values_of(name, std::slice::from_ref(results), |id| ids.contains(&id));
                values.into_iter().map(|value| Parameters::from([(name.clone(), value.clone())])).collect()
            }
            None => self.cases.clone(),
        };
        for select in &mut selects {
            select.retain(|name, _| known.contains_key(name.as_str()));
        }
        selects.dedup();
        if selects.is_empty() { vec![Parameters::new()] } else { selects }
    }
}

impl Judgement {
    /// With what the system that the file is about shows, where it is another one.
    fn beside(self, own: &str, judge_on: impl FnOnce(&str) -> Self) -> Self {
        let beside = (self.system != own).then(|| Box::new(judge_on(own)));
        Self { beside, ..self }
    }

    /// The least number of runs behind a case that was measured; 0 where nothing measured is in it.
    pub fn runs(&self) -> usize {
        self.cases.iter().filter_map(|case| Some(case.found.as_ref().ok()?.runs)).min().unwrap_or(0)
    }
}

/// Why nothing is decided, where all measured cases that are undecided could decide nothing: of each its finding, and what is
/// known of it.
fn without_scatter<'k>(
    finding: Decision,
    cases: impl Iterator<Item = (Decision, Option<&'k Observations>)>,
) -> Option<String> {
    let open = cases.filter(|(of_case, _)| finding == Decision::Undecided && *of_case == Decision::Undecided);
    let reasons: Option<Vec<String>> = open.filter_map(|(_, known)| Some(known?.without_scatter())).collect();
    reasons?.into_iter().next()
}

/// What the tests of a text come to together.
pub(crate) struct Held {
    /// Whether all of them hold.
    pub finding: Decision,
    /// Why that could not be decided, whatever was measured.
    pub without_scatter: Option<String>,
}

/// Whether all tests of a text hold of a system.
pub(crate) fn holds(text: &str, document: &Document, lookup: &Lookup<'_>) -> Result<Held, String> {
    let tests = Test::all(text).map_err(|unknown| unknown.message)?;
    let known = |test: &Test| -> Result<(Evidence, Observations), String> {
        let found = ResolvedExpression::of(&test.quantity, document, lookup)?.found()?;
        let region = test.region.ok_or_else(|| format!("`{}` has no bound", test.quantity.text()))?;
        Ok((Evidence::of(&found.known, &region), found.known))
    };
    let (evidence, known): (Vec<Evidence>, Vec<Observations>) = tests.iter().map(known).collect::<Result<_, _>>()?;
    let finding = Evidence::all(&evidence);
    let cases = evidence.iter().map(Evidence::finding).zip(known.iter().map(Some));
    Ok(Held { finding, without_scatter: without_scatter(finding, cases) })
}

/// Whether measurements that tests name have no meaning in the system that the file is about, such as calls of another program.
/// Nothing is said of that system then. A row that has a meaning there, and was not measured, is said to be missing.
pub(crate) fn is_foreign(tests: &str, document: &Document, results: &Results) -> bool {
    let lookup = results.lookup();
    let foreign = |operand: &Operand| {
        matches!(source(operand, &lookup, &Parameters::new()), Err(MissingReason::NotApplicable(_)))
    };
    let names_foreign = |test: &Test| {
        let operands = operands_of(&test.quantity, document);
        operands.is_ok_and(|operands| operands.iter().any(|(_, operand)| foreign(operand)))
    };
    Test::all(tests).is_ok_and(|tests| tests.iter().any(names_foreign))
}
