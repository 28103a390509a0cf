//! The documents' claims, judged by made-up samples of known truth and by the results that are kept with the program.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../fixtures/run.rs"]
mod fixture;
mod planted;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::LazyLock;

use syncscope::measure::{Clock, StoppedBy};
use syncscope_book::claims_text;
use syncscope_book::document::{Claim, ClaimKind, ClaimSubject, Document, Hardware, Names, TextPlace, Texts};
use syncscope_book::predicate::{ClaimVerdict, Judgement};
use syncscope_present::units::Unit;
use syncscope_report::carried_book;
use syncscope_results::{Catalog, MetricSpec, Outcome, Parameter, Parameters, Provenance, Results, Row, Run, Series};
use syncscope_suite::experiment::Registry;

/// What each run of a row measured, round by round.
struct Made {
    spec: MetricSpec,
    pytorch: Vec<Vec<f64>>,
    own: Vec<Vec<f64>>,
}

fn made(id: &str, parameters: &[(&str, Parameter)], (unit, clock): (Unit, Clock), runs: &[Vec<f64>]) -> Made {
    let parameters = parameters.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let (id, group, label, provenance) = (id.to_owned(), String::new(), String::new(), Provenance::measured(clock));
    let spec = MetricSpec { id, group, label, unit, parameters, provenance, work: None, floor: None };
    Made { spec, pytorch: runs.to_vec(), own: runs.to_vec() }
}

/// A time that came to `levels` in the runs.
fn time(id: &str, levels: &[f64]) -> Made {
    case(id, &[], levels)
}

fn case(id: &str, parameters: &[(&str, Parameter)], levels: &[f64]) -> Made {
    let runs: Vec<Vec<f64>> = levels.iter().map(|level| vec![*level; 3]).collect();
    made(id, parameters, (Unit::Seconds, Clock::Host), &runs)
}

/// Observations: trials of yes and no (a ratio), or counts (a number).
fn seen(id: &str, unit: Unit, runs: &[Vec<f64>]) -> Made {
    made(id, &[], (unit, Clock::Observed), runs)
}

/// Results with runs of PyTorch and of this program by turns.
fn results(rows: &[Made]) -> Results {
    let mut results = fixture::run();
    let run = results.run().clone();
    let most = rows.iter().map(|row| row.pytorch.len().max(row.own.len())).max().unwrap();
    let named = |system: &str, place| Run { id: format!("{system}-{place}"), system: system.to_owned(), ..run.clone() };
    results.runs = (0..most).flat_map(|place| [named("syncscope", place), named("PyTorch", place)]).collect();
    results.rows = rows
        .iter()
        .map(|row| {
            let series = |system: &str, runs: &[Vec<f64>]| -> Vec<Series> {
                let one = |(place, samples): (usize, &Vec<f64>)| {
                    let mut outcome = Outcome::of_samples(samples.clone(), StoppedBy::Samples);
                    for (round, sample) in outcome.measured_mut().unwrap().samples.iter_mut().enumerate() {
                        sample.started = Some(round as f64);
                    }
                    Series { run: format!("{system}-{place}"), outcome }
                };
                runs.iter().enumerate().map(one).collect()
            };
            let series = [series("PyTorch", &row.pytorch), series("syncscope", &row.own)].concat();
            Row { spec: row.spec.clone(), series }
        })
        .collect::<Vec<Row>>()
        .into();
    results
}

fn document(fields: &str, rows: &[Made]) -> Document {
    let names = Names {
        rows: Arc::new(Catalog::new(rows.iter().map(|row| row.spec.clone()))),
        hardware: Arc::new(Hardware::parse("h", "chip: {model: M, source: S, rates: {fp16: 1e12}}").unwrap()),
        texts: Arc::new(Texts::parse("t", "'1': {file: f.txt, title: T, date: 2026-01-01, lines: 9}").unwrap()),
        chapters: Arc::default(),
        pages: Arc::default(),
        files: Arc::default(),
    };
    let text = format!(
        "id: d\norder: 1\ntitle: T\nsource: f.txt\nquestion: Q\nmethod: M\nclaims:\n  \
         - {{id: c, claim: C, places: ['1:2'], rationale: R, {fields}}}\n"
    );
    Document::parse("d.yaml", &text, &names).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn judged(fields: &str, rows: &[Made]) -> Judgement {
    judged_in(fields, rows, &results(rows))
}

fn judged_in(fields: &str, rows: &[Made], results: &Results) -> Judgement {
    let document = document(fields, rows);
    document.claims[0].judge(&document, results)
}

fn verdict(fields: &str, rows: &[Made]) -> ClaimVerdict {
    judged(fields, rows).verdict
}

const STEADY: [f64; 5] = [1.00, 1.01, 0.99, 1.00, 1.02];
const NOISY: [f64; 5] = [1.5, 0.6, 1.3, 0.8, 1.0];

/// Runs about a level, each level with a scatter of its own.
fn about(level: f64) -> Vec<f64> {
    let scatter = |run: usize| 1.0 + 2e-3 * (level * 7.0 + run as f64 * 2.3).sin();
    STEADY.iter().rev().enumerate().map(|(run, x)| level * x * scatter(run)).collect()
}

#[test]
fn a_sign_is_confirmed_refuted_or_left_open_by_the_runs() {
    let sign = "kind: sign, on: pytorch, tests: [t.a - t.b > 0]";
    let against = |b: &[f64]| verdict(sign, &[time("t.a", &STEADY), time("t.b", b)]);
    assert_eq!(against(&about(0.8)), ClaimVerdict::Confirmed);
    assert_eq!(against(&about(1.3)), ClaimVerdict::Refuted);
    assert_eq!(against(&NOISY), ClaimVerdict::Inconclusive);
    assert_eq!(against(&about(1.0)), ClaimVerdict::Inconclusive, "at the boundary");
}

#[test]
fn a_figure_of_another_machine_carries_over_or_differs_and_is_never_refuted() {
    let value =
        |levels: &[f64]| verdict("kind: value, on: pytorch, tests: [0.9 <= t.a <= 1.1]", &[time("t.a", levels)]);
    assert_eq!(value(&STEADY), ClaimVerdict::CarriesOver);
    assert_eq!(value(&about(2.0)), ClaimVerdict::DiffersHere);
    assert_eq!(value(&NOISY), ClaimVerdict::Inconclusive, "not distinguishable from the figure is not equal to it");
    assert_eq!(value(&about(1.1)), ClaimVerdict::Inconclusive);
}

fn sized(levels: &[(usize, &[f64])]) -> Vec<Made> {
    levels.iter().map(|(size, levels)| case("t.a", &[("size", (*size).into())], levels)).collect()
}

#[test]
fn always_asks_every_case_and_one_outside_refutes_it() {
    let always =
        |cases: &[(usize, &[f64])]| judged("kind: always, on: pytorch, each: size, tests: [t.a < 2]", &sized(cases));
    let (low, high) = (about(1.0), about(5.0));
    assert_eq!(always(&[(1, &low), (2, &low), (3, &low)]).verdict, ClaimVerdict::Confirmed);
    let refuted = always(&[(1, &low), (2, &high), (3, &NOISY)]);
    assert_eq!(refuted.verdict, ClaimVerdict::Refuted);
    assert!(refuted.why.contains("1 of 3 cases (size 2)"), "{}", refuted.why);
    let open = always(&[(1, &low), (2, &[0.1, 4.0, 2.0, 3.5, 0.4])]);
    assert_eq!(open.verdict, ClaimVerdict::Inconclusive);
    assert!(open.why.contains("size 2") && !open.why.contains("size 1"), "{}", open.why);
}

#[test]
fn can_asks_for_one_case_and_names_it() {
    let exists =
        |cases: &[(usize, &[f64])]| judged("kind: exists, on: pytorch, each: size, tests: [t.a < 2]", &sized(cases));
    let (low, high) = (about(1.0), about(5.0));
    let confirmed = exists(&[(1, &high), (2, &high), (3, &low)]);
    assert_eq!(confirmed.verdict, ClaimVerdict::Confirmed);
    assert!(confirmed.why.contains("1 of 3 cases (size 3)"), "{}", confirmed.why);
    for outside in [&[(1, &high[..]), (2, &high)][..], &[(1, &high)]] {
        let unseen = exists(outside);
        assert_eq!(unseen.verdict, ClaimVerdict::NotSeen, "another case may lie inside");
        assert!(unseen.why.ends_with("may show it."), "{}", unseen.why);
    }
    assert_eq!(exists(&[(1, &high), (2, &[0.1, 4.0, 2.0, 3.5, 0.4])]).verdict, ClaimVerdict::Inconclusive);
}

#[test]
fn a_model_is_good_to_within_its_largest_error_with_its_interval() {
    let rows = |errors: [f64; 2]| {
        let of = |size: usize, error: f64| {
            let measured: Vec<f64> =
                (0..).zip(&STEADY).map(|(run, level)| level * (1.0 + error + 1e-6 * f64::from(run % 2))).collect();
            [case("t.a", &[("size", size.into())], &measured), case("t.b", &[("size", size.into())], &STEADY)]
        };
        [of(1, errors[0]), of(2, errors[1])].into_iter().flatten().collect::<Vec<Made>>()
    };
    let model = "kind: model, on: pytorch, each: size, tests: [t.a / t.b - 1]";
    let ClaimVerdict::GoodToWithin(share) = verdict(model, &rows([0.02, -0.125])) else { panic!("a model") };
    assert!((share - 0.125).abs() < 1e-5, "{share}");
    let found = judged(model, &rows([0.02, -0.125]));
    let curve: Vec<f64> = found.cases.iter().map(|case| case.found.as_ref().unwrap().numbers().0).collect();
    assert!((curve[0] - 0.02).abs() < 1e-6 && (curve[1] + 0.125).abs() < 1e-6, "{curve:?}");
}

#[test]
fn what_was_recorded_decides_where_all_trials_agree() {
    let kind = "kind: implementation, on: pytorch, tests: [t.seen == 1]";
    let trials = |runs: &[Vec<f64>]| verdict(kind, &[seen("t.seen", Unit::Ratio, runs)]);
    assert_eq!(trials(&[vec![1.0; 5], vec![1.0; 5]]), ClaimVerdict::Confirmed);
    assert_eq!(trials(&[vec![0.0; 5], vec![0.0; 5]]), ClaimVerdict::Refuted);
    assert_eq!(trials(&[vec![1.0; 5], vec![1.0, 1.0, 0.0, 1.0, 1.0]]), ClaimVerdict::Inconclusive);
}

#[test]
fn one_fault_refutes_that_something_is_safe_and_none_shows_nothing() {
    let safe = "kind: always, on: pytorch, tests: [t.wrong == 0]";
    let faults = |runs: &[Vec<f64>]| verdict(safe, &[seen("t.wrong", Unit::Number, runs)]);
    assert_eq!(faults(&[vec![0.0; 20], vec![0.0, 0.0, 64.0, 0.0]]), ClaimVerdict::Refuted);
    assert_eq!(faults(&[vec![0.0; 20], vec![0.0; 20]]), ClaimVerdict::Inconclusive);
}

#[test]
fn equality_of_cases_needs_each_pair_inside_the_margin() {
    let equal = |how: &str, bounds: (f64, f64), cases: &[(usize, &[f64])]| {
        let fields = format!(
            "kind: always, on: pytorch, each: size, compare: {how}, tests: [{} <= t.a <= {}]",
            bounds.0, bounds.1
        );
        verdict(&fields, &sized(cases))
    };
    let (one, near, far) = (about(1.0), about(1.05), about(1.5));
    assert_eq!(equal("ratio", (0.9, 1.1), &[(1, &one), (2, &near), (3, &about(1.01))]), ClaimVerdict::Confirmed);
    assert_eq!(equal("ratio", (0.9, 1.1), &[(1, &one), (2, &near), (3, &far)]), ClaimVerdict::Refuted);
    assert_eq!(equal("difference", (-0.1, 0.1), &[(1, &one), (2, &near)]), ClaimVerdict::Confirmed);
    assert_eq!(equal("difference", (-0.01, 0.01), &[(1, &one), (2, &near)]), ClaimVerdict::Refuted);
    assert_eq!(equal("ratio", (0.9, 1.1), &[(1, &one), (2, &NOISY)]), ClaimVerdict::Inconclusive);
}

#[test]
fn cases_that_are_to_be_compared_judge_nothing_where_there_are_not_two() {
    let equal = "kind: always, on: pytorch, each: size, compare: ratio, tests: [0.9 <= t.a <= 1.1]";
    let one = about(1.0);
    let alone = verdict(equal, &sized(&[(1, &one)]));
    assert!(matches!(&alone, ClaimVerdict::NotJudged(reason) if reason.contains("one alone, size 1")), "{alone:?}");
    let planned = sized(&[(1, &one), (2, &one)]);
    let none = judged_in(equal, &planned, &results(&[time("t.b", &one)])).verdict;
    assert!(matches!(none, ClaimVerdict::NotJudged(_)), "{none:?}");
}

#[test]
fn more_cases_than_can_be_compared_with_each_other_judge_nothing() {
    let one = about(1.0);
    let of = |count: usize| {
        let cases: Vec<(usize, &[f64])> = (1..=count).map(|size| (size, &one[..])).collect();
        verdict("kind: always, on: pytorch, each: size, compare: ratio, tests: [0.9 <= t.a <= 1.1]", &sized(&cases))
    };
    let refuses =
        |verdict: &ClaimVerdict| matches!(verdict, ClaimVerdict::NotJudged(reason) if reason.contains("cases with"));
    let (few, many) = (of(12), of(101));
    assert!(!refuses(&few) && refuses(&many), "{few:?} {many:?}");
}

#[test]
fn a_case_of_an_open_claim_counts_alone_on_the_side_on_which_all_have_to_lie() {
    let sized = sized(&[(1, &about(1.0)), (2, &[1.75, 1.95, 1.8, 1.98, 1.85]), (3, &[0.1, 4.0, 2.0, 3.5, 0.4])]);
    let lie = |kind: &str, test: &str| -> Vec<&'static str> {
        let found = judged(&format!("kind: {kind}, on: pytorch, each: size, tests: [{test}]"), &sized);
        assert_eq!(found.verdict, ClaimVerdict::Inconclusive);
        found.cases.iter().map(|case| case.lies().unwrap()).collect()
    };
    assert_eq!(lie("always", "t.a < 2"), ["inside", "inside", "undecided"]);
    assert_eq!(lie("exists", "t.a >= 2"), ["outside", "outside", "undecided"]);
}

#[test]
fn of_results_that_hold_no_row_of_a_claim_it_is_not_judged() {
    for name in KEPT {
        let kept = kept(name);
        for (document, claim) in claims().filter(|(_, claim)| claim.kind != ClaimKind::Arithmetic) {
            let judgement = claim.judge(document, &kept);
            for judged in std::iter::once(&judgement).chain(judgement.beside.as_deref()) {
                let found = judged.cases.iter().filter(|case| case.found.is_ok()).count();
                let is_judged = !matches!(judged.verdict, ClaimVerdict::NotJudged(_));
                assert!(found > 0 || !is_judged, "{name}: {} is {:?} by no value", claim.id, judged.verdict);
            }
        }
    }
}

#[test]
fn arithmetic_is_decided_by_figures_and_shows_them() {
    let of = |test: &str| judged(&format!("kind: arithmetic, tests: ['{test}']"), &[time("t.a", &STEADY)]);
    assert_eq!(of("peak.chip.fp16 > 1e11").verdict, ClaimVerdict::Confirmed);
    let refuted = of("2 * 1024 ** 3 / peak.chip.fp16 < 1e-3");
    assert_eq!(refuted.verdict, ClaimVerdict::Refuted);
    let case = &refuted.cases[0];
    let found = case.found.as_ref().unwrap();
    assert_eq!(found.written(), "2.147 ms");
    assert_eq!(found.filled.as_deref(), Some("2 * 1024 ** 3 / 1.00 TFLOP/s"));
    assert_eq!(case.bounds().as_deref(), Some("below 1.00 ms"));
}

#[test]
fn why_something_is_so_is_judged_only_where_it_is_so() {
    let kind = "kind: implementation, on: pytorch, given: t.a - t.b > 0, tests: [t.seen == 1]";
    let rows =
        |b: &[f64]| [time("t.a", &STEADY), time("t.b", b), seen("t.seen", Unit::Ratio, &[vec![1.0; 5], vec![1.0; 5]])];
    assert_eq!(verdict(kind, &rows(&about(0.8))), ClaimVerdict::Confirmed);
    let none = verdict(kind, &rows(&NOISY));
    assert!(matches!(&none, ClaimVerdict::NotJudged(reason) if reason.contains("t.a - t.b > 0")), "{none:?}");
}

#[test]
fn a_verdict_shows_the_mean_of_the_runs_with_its_t_interval_and_the_values_put_in() {
    let rows = [time("t.a", &[3.0, 4.0, 5.0]), time("t.b", &[1.0, 1.0, 1.0])];
    let found = judged("kind: sign, on: pytorch, tests: [t.a - t.b > 0]", &rows);
    let case = &found.cases[0];
    // Differences 2, 3, 4: mean 3, standard deviation 1, t of two degrees of freedom 4.3027.
    let found = case.found.as_ref().unwrap();
    let (value, interval) = found.numbers();
    let half_width = 4.302_653 / 3.0_f64.sqrt();
    assert!((value - 3.0).abs() < 1e-12 && (interval.unwrap().1 - 3.0 - half_width).abs() < 1e-5);
    assert_eq!(found.filled.as_deref(), Some("4.00 s - 1.00 s"));
    assert!(found.written().contains("3 runs"), "{case:?}");
    assert!(found.operands.iter().any(|(name, value)| name == "t.a" && value.starts_with("4.0")), "{case:?}");
}

#[test]
fn rows_sampled_in_turn_are_paired_round_by_round() {
    let swing = |place: usize| -> Vec<f64> { (0..9).map(|round| 1.0 + ((round * 7 + place * 4) % 9) as f64).collect() };
    let (a, b): (Vec<_>, Vec<_>) = (0..4)
        .map(|place| {
            (swing(place), swing(place).iter().enumerate().map(|(i, x)| x - 0.01 - 1e-4 * (i + place) as f64).collect())
        })
        .unzip();
    let of = |id, runs: &[Vec<f64>]| made(id, &[], (Unit::Seconds, Clock::Host), runs);
    let rows = [of("t.a", &a), of("t.b", &b)];
    let fields = "kind: sign, on: pytorch, tests: [t.a - t.b > 0]";
    let paired = judged(fields, &rows);
    assert!(
        paired.verdict == ClaimVerdict::Confirmed && paired.cases[0].found.as_ref().unwrap().by_rounds,
        "{paired:?}"
    );
    // One after the other, in each run.
    let mut apart = results(&rows);
    for series in &mut apart.rows[1].series {
        let samples = series.outcome.measured_mut().unwrap().samples.iter_mut();
        samples.filter_map(|sample| sample.started.as_mut()).for_each(|second| *second += 100.0);
    }
    assert!(!judged_in(fields, &rows, &apart).cases[0].found.as_ref().unwrap().by_rounds);
}

#[test]
fn rounds_and_samples_of_a_slowed_host_decide_no_claim() {
    // In most rounds the second row was slowed; at full speed it takes less than the first.
    let level = |run: usize| 1.0 + 1e-3 * (run as f64 * 2.3).sin();
    let of = |id, share: f64, slowed: f64| {
        let run = |run| (0..9).map(|round| level(run) * if round < 5 { slowed } else { share }).collect();
        made(id, &[], (Unit::Seconds, Clock::Host), &(0..4).map(run).collect::<Vec<Vec<f64>>>())
    };
    let rows = [of("t.a", 1.0, 1.0), of("t.b", 0.9, 2.0)];
    let mut results = results(&rows);
    for series in &mut results.rows[1].series {
        for (round, sample) in series.outcome.measured_mut().unwrap().samples.iter_mut().enumerate() {
            sample.slowdown = Some(if round < 5 { 1.8 } else { 1.05 });
        }
    }
    let fields = "kind: sign, on: pytorch, tests: [t.a - t.b > 0]";
    let judged = |results: &Results| judged_in(fields, &rows, results);
    let in_turn = judged(&results);
    assert!(
        in_turn.verdict == ClaimVerdict::Confirmed && in_turn.cases[0].found.as_ref().unwrap().by_rounds,
        "{in_turn:?}"
    );
    for series in &mut results.rows[1].series {
        let samples = series.outcome.measured_mut().unwrap().samples.iter_mut();
        samples.filter_map(|sample| sample.started.as_mut()).for_each(|second| *second += 100.0);
    }
    let apart = judged(&results);
    assert!(apart.verdict == ClaimVerdict::Confirmed && !apart.cases[0].found.as_ref().unwrap().by_rounds, "{apart:?}");
}

#[test]
fn a_claim_about_pytorch_is_judged_on_pytorch_with_this_program_beside_it() {
    let mut row = time("t.a", &about(1.0));
    row.own = about(5.0).into_iter().map(|level| vec![level; 3]).collect();
    let fields = "kind: always, on: pytorch, tests: [t.a < 2]";
    let found = judged(fields, &[row]);
    let beside = found.beside.as_ref().unwrap();
    assert_eq!((found.system.as_str(), &found.verdict), ("PyTorch", &ClaimVerdict::Confirmed));
    assert_eq!((beside.system.as_str(), &beside.verdict), ("syncscope", &ClaimVerdict::Refuted));
}

#[test]
fn without_pytorch_nothing_is_said_of_it_and_what_this_program_does_is_shown() {
    let rows = [time("t.a", &STEADY)];
    let mut own = results(&rows);
    own.runs.retain(|run| run.system != "PyTorch");
    let fields = |on: &str| format!("kind: always, on: {on}, tests: [t.a < 2]");
    let pytorch = judged_in(&fields("pytorch"), &rows, &own);
    let why = "the text is about PyTorch, and this run has no PyTorch";
    assert_eq!(pytorch.verdict, ClaimVerdict::NotJudged(why.to_owned()));
    assert_eq!(pytorch.beside.unwrap().verdict, ClaimVerdict::Confirmed);
    let cuda = judged_in(&fields("cuda"), &rows, &own);
    assert_eq!((cuda.system.as_str(), cuda.verdict), ("syncscope", ClaimVerdict::Confirmed));
}

#[test]
fn an_emulation_says_nothing_of_a_gpu() {
    let rows = [time("t.a", &STEADY)];
    let mut emulated = results(&rows);
    emulated.runs.iter_mut().for_each(|run| run.environment.device.engine = "cpu".to_owned());
    for on in ["pytorch", "cuda"] {
        let found = judged_in(&format!("kind: always, on: {on}, tests: [t.a < 2]"), &rows, &emulated);
        assert!(matches!(&found.verdict, ClaimVerdict::NotJudged(why) if why.contains("an emulation")), "{found:?}");
        assert!(found.beside.is_none() && found.cases.is_empty());
    }
    let figures = "kind: arithmetic, tests: [peak.chip.fp16 > 1], shown: [t.a]";
    assert!(judged_in(figures, &rows, &emulated).shown.is_empty());
    assert_eq!(judged_in(figures, &rows, &results(&rows)).shown.len(), 1);
    let program = judged_in("kind: always, on: program, tests: [t.a < 2]", &rows, &emulated);
    assert_eq!(program.verdict, ClaimVerdict::Confirmed);
}

#[test]
fn a_case_whose_row_is_missing_is_named_and_decides_nothing() {
    let rows = sized(&[(1, &STEADY), (2, &STEADY)]);
    let mut without = results(&rows);
    for series in &mut without.rows[1].series {
        series.outcome = Outcome::Skipped { reason: "no room".to_owned() };
    }
    let fields = |kind: &str, bound| format!("kind: {kind}, on: pytorch, each: size, tests: [t.a < {bound}]");
    let open = judged_in(&fields("always", 2.0), &rows, &without);
    assert_eq!(open.verdict, ClaimVerdict::Inconclusive);
    assert!(open.why.contains("not measured: size 2"), "{}", open.why);
    assert!(open.cases[1].found.as_ref().unwrap_err().contains("skipped: no room"));
    assert_eq!(
        judged_in(&fields("always", 0.5), &rows, &without).verdict,
        ClaimVerdict::Refuted,
        "the other case decides"
    );
    assert_eq!(judged_in(&fields("exists", 2.0), &rows, &without).verdict, ClaimVerdict::Confirmed);
    without.rows.remove(0);
    let none = judged_in(&fields("always", 2.0), &rows, &without);
    assert!(matches!(&none.verdict, ClaimVerdict::NotJudged(why) if why.contains("no room")), "{none:?}");
}

const ONE_RUN: &str = "one run: another may say otherwise; measure three or more";

#[test]
fn a_time_of_one_run_is_shown_and_judges_nothing_however_clear_it_is() {
    let row = |id: &str, from: f64| {
        let samples = (0..40).map(|i| from + f64::from(i * 7 % 40) * 1e-6).collect();
        made(id, &[("size", 1_usize.into())], (Unit::Seconds, Clock::Host), &[samples])
    };
    let rows = [row("t.a", 2.0), row("t.b", 1.0)];
    for fields in [
        "kind: sign, on: pytorch, tests: [t.a - t.b > 0]",
        "kind: always, on: pytorch, each: size, tests: [t.a / t.b < 9]",
        "kind: exists, on: pytorch, tests: [t.a < t.b]",
        "kind: value, on: pytorch, tests: [1 < t.a < 3]",
        "kind: model, on: pytorch, each: size, tests: [t.a / t.b - 1]",
    ] {
        let found = judged(fields, &rows);
        for judgement in [&found, found.beside.as_ref().unwrap()] {
            assert_eq!(judgement.verdict, ClaimVerdict::NotJudged(ONE_RUN.to_owned()), "{fields}");
            let case = &judgement.cases[0];
            assert!(case.found.as_ref().unwrap().written().ends_with("(one run, no interval)"), "{case:?}");
            assert!(
                case.found.as_ref().unwrap().numbers().1.is_none() && judgement.why.starts_with(ONE_RUN),
                "{judgement:?}"
            );
        }
        let text = claims_text(&[document(fields, &rows)], &results(&rows));
        assert!(text.contains(&format!("PyTorch: not judged: {ONE_RUN}")), "{text}");
        assert!(text.contains("NOT JUDGED") && text.ends_with("not judged 1\n"), "{text}");
    }
    let given = "kind: implementation, on: pytorch, given: t.a - t.b > 0, tests: [t.seen == 1]";
    let rows = [row("t.a", 2.0), row("t.b", 1.0), seen("t.seen", Unit::Ratio, &[vec![1.0; 3]])];
    assert_eq!(verdict(given, &rows), ClaimVerdict::NotJudged(ONE_RUN.to_owned()));
}

#[test]
fn three_agreeing_trials_of_one_run_decide() {
    let kind = "kind: always, on: pytorch, tests: [t.seen == 1]";
    let trials = |samples: &[f64]| judged(kind, &[seen("t.seen", Unit::Ratio, &[samples.to_vec()])]);
    let all = trials(&[1.0; 3]);
    assert_eq!((&all.verdict, all.runs()), (&ClaimVerdict::Confirmed, 1));
    assert_eq!(all.cases[0].found.as_ref().unwrap().written(), "1 in all 3 trials of one run");
    assert_eq!(trials(&[0.0; 3]).verdict, ClaimVerdict::Refuted);
    assert_eq!(trials(&[0.0, 1.0, 1.0]).verdict, ClaimVerdict::Inconclusive);
}

#[test]
fn runs_that_all_came_to_the_same_time_judge_nothing() {
    let fields = "kind: always, on: pytorch, tests: [-5 < t.a - t.b < 5]";
    let same = |a: &[f64], b: &[f64]| verdict(fields, &[time("t.a", a), time("t.b", b)]);
    for (a, b) in [([16.0; 2], [10.0; 2]), ([1.0; 2], [1.0; 2])] {
        let none = same(&a, &b);
        assert!(
            matches!(&none, ClaimVerdict::NotJudged(why) if why.contains("all 2 runs came to the same value")),
            "{none:?}"
        );
    }
    assert_eq!(same(&[1.0, 1.001, 0.999], &[1.0; 3]), ClaimVerdict::Confirmed);
}

/// A row of which a run of each system failed, and a common factor of each pair of runs.
#[test]
fn a_quantity_is_of_the_runs_that_measured_all_of_it() {
    let levels = [1.0, 2.0, 4.0, 8.0, 16.0];
    let twice: Vec<f64> =
        [2.0, 2.001, 1.999, 2.0, 2.002].iter().zip(levels).map(|(ratio, level)| ratio * level).collect();
    let rows = [time("t.a", &twice), time("t.b", &levels)];
    let mut lacking = results(&rows);
    for (row, run) in [(0, "PyTorch-1"), (1, "PyTorch-3")] {
        let series = lacking.rows[row].series.iter_mut().find(|series| series.run == run).unwrap();
        series.outcome = Outcome::Failed { reason: "planted".to_owned() };
    }
    let found = judged_in("kind: value, on: pytorch, tests: [1.9 < t.a / t.b < 2.1]", &rows, &lacking);
    assert_eq!(found.verdict, ClaimVerdict::CarriesOver);
    let value = found.cases[0].found.as_ref().unwrap().written();
    assert!(value.starts_with("2.0") && value.ends_with("3 of 5 runs)"), "{value}");
    // What stands beside the test is of the same runs.
    let (a, b) =
        (&found.cases[0].found.as_ref().unwrap().operands[0].1, &found.cases[0].found.as_ref().unwrap().operands[1].1);
    assert!(a.starts_with("14.0") && b.starts_with("7.0"), "{a}; {b}");
}

/// What is computed in a file is computed again when it is read.
#[test]
fn the_kept_results_follow_from_their_samples_and_a_changed_operand_is_found() {
    for name in KEPT {
        assert_eq!(kept(name).recompute().contradictions, [], "{name}");
    }
    let mut doubled = kept(ONE_GPU);
    let forced = doubled.rows.iter_mut().find(|row| row.spec.id == "sync-points.small.forced").unwrap();
    for series in &mut forced.series {
        series.outcome.values_mut().into_iter().for_each(|sample| *sample *= 2.0);
    }
    let found = doubled.recompute().contradictions;
    assert!(
        found.len() >= 5 && found.iter().all(|found| found.row.starts_with("sync-points.small.delta")),
        "{found:?}"
    );
    assert!(found[0].to_string().contains("where its formula `forced − async` gives"), "{}", found[0]);
}

#[test]
fn a_quantity_that_divides_by_zero_is_no_verdict() {
    let rows = [time("t.a", &STEADY), time("t.b", &[0.0; 5])];
    let none = verdict("kind: always, on: pytorch, tests: [t.a / t.b < 2]", &rows);
    assert!(matches!(&none, ClaimVerdict::NotJudged(why) if why.contains("divides by 0")), "{none:?}");
}

const ONE_GPU: &str = "book/results/one-gpu.json.gz";
const TWO_GPUS: &str = "book/results/two-gpus.json.gz";
const KEPT: [&str; 3] = [ONE_GPU, TWO_GPUS, "book/results/calls.json.gz"];

fn kept(name: &str) -> Results {
    Results::read(&Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(name)).unwrap()
}

fn documents() -> &'static [Document] {
    static DOCUMENTS: LazyLock<Vec<Document>> =
        LazyLock::new(|| carried_book().documents(&Registry::builtin().catalog("cuda")).unwrap());
    &DOCUMENTS
}

fn claims() -> impl Iterator<Item = (&'static Document, &'static Claim)> {
    documents().iter().flat_map(|document| document.claims.iter().map(move |claim| (document, claim)))
}

#[test]
fn each_text_has_claims_and_each_claim_stands_in_one() {
    let texts = carried_book().texts().unwrap();
    let mut files = BTreeSet::new();
    for (document, claim) in claims() {
        let stands: BTreeSet<&str> = claim.places.iter().map(|place| place.text.as_str()).collect();
        let sources = claim.sources(document);
        assert_eq!(sources.len(), stands.len(), "{}", claim.id);
        for place in &claim.places {
            let text = texts.get(&place.text).unwrap();
            assert!(place.last <= text.lines, "{}: {place}", claim.id);
            let lines = TextPlace::lines(&[place]);
            let range = lines.split_once(' ').unwrap().1;
            let named = |source: &String| source.starts_with(&text.dated()) && source.contains(range);
            assert!(sources.iter().any(named), "{}: {sources:?}", claim.id);
            files.insert(text.file.clone());
        }
    }
    let texts = documents().iter().filter_map(|document| document.source.clone()).collect();
    assert_eq!(files, texts);
}

#[test]
fn a_claim_that_stands_in_a_text_is_about_pytorch_cuda_or_figures() {
    for (_, claim) in claims().filter(|(_, claim)| !claim.places.is_empty()) {
        assert_ne!(claim.on, Some(ClaimSubject::Program), "{}", claim.id);
    }
}

#[test]
fn every_claim_has_an_identifier_of_its_own_in_the_whole_book() {
    let mut known = BTreeSet::new();
    for (_, claim) in claims() {
        assert!(known.insert(&claim.id), "{} is claimed twice", claim.id);
    }
}

/// A statement stands alone in the table of all claims and among those that a machine contradicts.
#[test]
fn no_claim_begins_with_what_another_one_said() {
    const OF_ANOTHER: [&str; 6] = ["it", "they", "this", "these", "those", "such"];
    for (_, claim) in claims() {
        let plain = claim.claim.to_lowercase();
        assert!(!plain.starts_with("the difference "), "{}: {plain}", claim.id);
        let is_of_another =
            |text: &str, first: usize| text.split_whitespace().take(first).any(|word| OF_ANOTHER.contains(&word));
        // Before a first comma may stand where it holds, such as `On those GPUs, it takes`; the subject follows.
        let is_where = ["on ", "with ", "for ", "in ", "from "].iter().any(|word| plain.starts_with(word));
        let subject = plain.split_once(", ").filter(|_| is_where).map_or(plain.as_str(), |(_, subject)| subject);
        assert!(!is_of_another(&plain, 2) && !is_of_another(subject, 1), "{}: {plain}", claim.id);
    }
}

#[test]
fn every_claim_is_printed_with_its_verdict_where_it_stands_and_what_decided_it() {
    for name in [ONE_GPU, TWO_GPUS] {
        let results = kept(name);
        let text = claims_text(documents(), &results);
        let mut counted = 0;
        for (document, claim) in claims() {
            let judgement = claim.judge(document, &results);
            let start = text.find(&format!(" {}: {}", claim.id, claim.claim.trim())).unwrap();
            let line = text[..start].lines().last().unwrap();
            assert_eq!(line.trim().to_lowercase(), judgement.verdict.name().to_lowercase(), "{}", claim.id);
            let about = text[start..].lines().skip(1).take_while(|line| line.starts_with("       "));
            let about = about.map(str::trim).collect::<Vec<_>>().join(" ");
            assert!(claim.sources(document).iter().all(|source| about.contains(source)), "{about}");
            for case in &judgement.cases {
                let value = case.found.as_ref().map_or_else(Clone::clone, |found| found.written());
                // A reason begins with the name that stands before it already.
                let value = value.strip_prefix(&case.quantity).unwrap_or(&value);
                let twice = format!("{0}: {0} ", case.quantity);
                assert!(!about.contains(&twice), "{twice} in {about}");
                assert!(about.contains(&case.quantity) && about.contains(value), "{} in {about}", case.quantity);
            }
            counted += 1;
        }
        // The last lines: of this machine, and of what printed figures show on none.
        let of_line = |line: &str| -> usize {
            line.split(", ").map(|part| part.rsplit(' ').next().unwrap().parse::<usize>().unwrap()).sum()
        };
        let tallies: Vec<usize> = text.lines().rev().take_while(|line| !line.is_empty()).map(of_line).collect();
        let of_figures = claims().filter(|(_, claim)| claim.is_about_figures()).count();
        assert_eq!(tallies, [of_figures, counted - of_figures], "{text}");
    }
}

#[test]
fn the_two_systems_are_judged_apart_in_the_kept_results() {
    let results = kept(ONE_GPU);
    let of = |id: &str| {
        let (document, claim) = claims().find(|(_, claim)| claim.id == id).unwrap();
        claim.judge(document, &results)
    };
    // PyTorch copies host indices from pageable memory and waits, this program from pinned memory and does not.
    let indices = of("c-host-index");
    assert_eq!((indices.verdict, indices.beside.unwrap().verdict), (ClaimVerdict::Confirmed, ClaimVerdict::Refuted));
    let one_gpu = of("c-idle-delta").verdict;
    assert!(matches!(&one_gpu, ClaimVerdict::NotJudged(reason) if reason.contains("finds one GPU")), "{one_gpu:?}");
}

/// That nothing is left to chance: the same file has the same verdicts.
#[test]
fn a_file_has_one_verdict() {
    let results = kept(ONE_GPU);
    for (document, claim) in claims() {
        assert_eq!(claim.judge(document, &results), claim.judge(document, &results), "{}", claim.id);
    }
}

#[test]
fn parameters_of_cases_may_be_fractions() {
    let of = |spin: f64, levels: &[f64]| case("t.a", &[("spin_seconds", spin.into())], levels);
    let rows = [of(0.002, &about(0.002)), of(0.02, &about(0.02))];
    let each = "kind: always, on: pytorch, each: spin_seconds, tests: [0.9 < t.a / spin_seconds < 1.1]";
    let found = judged(each, &rows);
    assert_eq!(found.verdict, ClaimVerdict::Confirmed);
    let cases: Vec<&str> = found.cases.iter().map(|case| case.case.as_str()).collect();
    assert_eq!(cases, ["spin 2 ms", "spin 20 ms"]);
    let one = "kind: always, on: pytorch, tests: [t.a.spin_seconds_0_02 - t.a.spin_seconds_0_002 > 0.01]";
    assert_eq!(verdict(one, &rows), ClaimVerdict::Confirmed);
    let none: Parameters = found.cases[0].select.clone();
    assert_eq!(none.get("spin_seconds"), Some(&Parameter::Number(0.002)));
}

#[test]
fn an_answer_is_about_the_system_in_which_its_rows_have_a_meaning() {
    let rows = [seen("t.a", Unit::Ratio, &[vec![1.0; 3], vec![1.0; 3]])];
    let mut results = results(&rows);
    for series in results.rows[0].series.iter_mut().filter(|series| series.run.starts_with("syncscope")) {
        series.outcome = Outcome::NotApplicable { reason: "it is another program's call".to_owned() };
    }
    let answer =
        "answer:\n  - {if: 't.a > 0.5', then: 'It waited in {{ t.a|percent }}.', else: It returned., unclear: Open.";
    let document = document(&format!("kind: always, on: pytorch, tests: [t.a == 1]}}\n{answer}"), &rows);
    let of = |results: &Results, system: &str| document.answer[0].said(&document, results, system);
    let said = of(&results, "PyTorch").unwrap();
    assert!(format!("{:?}", said.pieces).contains("100") && of(&results, "syncscope").is_err(), "{said:?}");
    // Where it was skipped in the system that the file is about, no other one answers for it.
    for series in results.rows[0].series.iter_mut().filter(|series| series.run.starts_with("syncscope")) {
        series.outcome = Outcome::Skipped { reason: "there was no time".to_owned() };
    }
    assert!(of(&results, "syncscope").unwrap_err().contains("there was no time"));
}
