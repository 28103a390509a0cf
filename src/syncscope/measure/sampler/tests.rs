//! The sampler over scripted cases and, where time matters, a scripted clock.

use std::cell::{Cell, RefCell};
use std::num::NonZeroUsize;
use std::sync::Mutex;

use super::*;
use crate::measure::host::tests::Scripted;

const NAMES: [&str; 3] = ["a", "b", "c"];

/// Three cases that note their calls in `log` and return 1, 2 and 3.
fn logged<'a>(log: &'a RefCell<Vec<&'static str>>) -> Vec<Case<'a>> {
    let case = |index: usize| {
        Case::observed(NAMES[index], move || {
            log.borrow_mut().push(NAMES[index]);
            index as f64 + 1.0
        })
    };
    (0..3).map(case).collect()
}

/// A clock that advances by `step` seconds with each reading.
fn ticking(step: f64) -> impl FnMut() -> f64 {
    let mut reading = -step;
    move || {
        reading += step;
        reading
    }
}

fn nothing() -> Result<(), DeviceError> {
    Ok(())
}

fn failure() -> DeviceError {
    DeviceError::EventNotReady { reason: "scripted" }
}

#[test]
fn every_round_is_complete_and_the_order_is_shuffled() {
    let log = RefCell::new(Vec::new());
    Sampler::new(Protocol::samples(50).with_warmup(0)).sample(logged(&log)).unwrap();
    let log = log.into_inner();
    let mut orders = BTreeSet::new();
    for round in log.chunks(3) {
        let mut sorted = round.to_vec();
        sorted.sort_unstable();
        assert_eq!(sorted, NAMES);
        orders.insert(round.to_vec());
    }
    assert_eq!((log.len(), orders.len()), (150, 6));
}

#[test]
fn the_order_follows_the_seed() {
    let order = |seed| {
        let log = RefCell::new(Vec::new());
        Sampler::new(Protocol::samples(20).with_seed(seed)).sample(logged(&log)).unwrap();
        log.into_inner()
    };
    assert_eq!(order(1), order(1));
    assert_ne!(order(1), order(2));
}

#[test]
fn warm_up_rounds_are_run_and_not_kept() {
    let calls = Cell::new(0.0);
    let counting = Case::observed("count", || {
        calls.set(calls.get() + 1.0);
        calls.get()
    });
    let sampled = Sampler::new(Protocol::samples(3).with_warmup(4)).sample(vec![counting]).unwrap();
    // Its values rise all the time: the warm-up goes on to its limit, three times the rounds that were asked for.
    assert_eq!(sampled.sets[0].values(), [13.0, 14.0, 15.0]);
    assert_eq!(sampled.warmup[0], (1..=12).map(f64::from).collect::<Vec<_>>());
    let steady = Case::observed("steady", || 1.0);
    let sampled = Sampler::new(Protocol::samples(3).with_warmup(4)).sample(vec![steady]).unwrap();
    assert_eq!((sampled.warmup[0].len(), sampled.sets[0].len()), (4, 3));
}

#[test]
fn samples_of_one_index_are_of_one_round() {
    let calls = Cell::new(0);
    let round_of = |name| {
        let calls = &calls;
        Case::observed(name, move || {
            calls.set(calls.get() + 1);
            f64::from((calls.get() - 1) / 2)
        })
    };
    let sampled = Sampler::new(Protocol::samples(9).with_warmup(0)).sample(vec![round_of("x"), round_of("y")]).unwrap();
    assert_eq!(sampled.get("x").unwrap().values(), sampled.get("y").unwrap().values());
    assert_eq!(sampled.get("z"), None);
}

#[test]
fn the_stated_number_of_samples_ends_it() {
    let log = RefCell::new(Vec::new());
    let sampled = Sampler::new(Protocol::samples(4)).sample(logged(&log)).unwrap();
    assert_eq!(sampled.stopped_by, StoppedBy::Samples);
    assert!(sampled.sets.iter().all(|set| set.len() == 4));
}

#[test]
fn the_relative_error_of_the_worst_case_ends_it() {
    let calls = Cell::new(0);
    let narrowing = Case::observed("narrowing", || {
        calls.set(calls.get() + 1);
        if calls.get() <= 10 { 100.0 * f64::from(calls.get()) } else { 2_000.0 }
    });
    let steady = Case::observed("steady", || 1.0);
    let protocol = Protocol::until_relative_error(0.01).with_warmup(0);
    let sampled = Sampler::new(protocol).sample(vec![narrowing, steady]).unwrap();
    assert_eq!(sampled.stopped_by, StoppedBy::RelativeError);
    let estimate = sampled.sets[0].estimate();
    assert!(estimate.relative_error() <= 0.01 && estimate.n > 20, "{estimate:?}");
}

#[test]
fn a_time_limit_ends_it_after_whole_rounds() {
    let log = RefCell::new(Vec::new());
    let sampler = Sampler::new(Protocol::for_seconds(1.0).with_warmup(5));
    let sampled = sampler.sample_by(logged(&log), &mut ticking(0.25)).unwrap();
    assert_eq!((sampled.stopped_by, sampled.sets[0].len()), (StoppedBy::TimeLimit, 12), "3 cases have 3 s");
}

#[test]
fn a_time_limit_leaves_enough_samples_for_an_interval() {
    let log = RefCell::new(Vec::new());
    let sampler = Sampler::new(Protocol::for_seconds(2.0));
    let sampled = sampler.sample_by(logged(&log), &mut ticking(60.0)).unwrap();
    assert_eq!((sampled.stopped_by, sampled.sets[0].len()), (StoppedBy::TimeLimit, Protocol::MINIMUM));
    assert!(sampled.sets[0].estimate().is_interval());
}

#[test]
fn fewer_samples_than_the_minimum_are_taken_where_the_plan_says_so() {
    let log = RefCell::new(Vec::new());
    let sampler = Sampler::new(Protocol::samples(2).with_time_limit(2.0));
    let sampled = sampler.sample_by(logged(&log), &mut ticking(60.0)).unwrap();
    assert_eq!((sampled.stopped_by, sampled.sets[0].len()), (StoppedBy::Samples, 2));
}

#[test]
fn a_time_limit_leaves_as_few_samples_as_the_plan_says() {
    let log = RefCell::new(Vec::new());
    let sampler = Sampler::new(Protocol { fewest: NonZeroUsize::new(3), ..Protocol::samples(20).with_time_limit(2.0) });
    let sampled = sampler.sample_by(logged(&log), &mut ticking(60.0)).unwrap();
    assert_eq!((sampled.stopped_by, sampled.sets[0].len()), (StoppedBy::TimeLimit, 3));
}

#[test]
fn a_slowed_processor_is_left_before_a_round_which_is_one_of_the_warm_up() {
    for (warmup, left_for, warm, kept, slowdown) in [
        (2, 2, vec![0.0, 1.0, 3.0], [2.0, 4.0, 5.0], [1.9, 1.0, 1.0]),
        (0, 3, vec![], [0.0, 1.0, 2.0], [1.0, 1.0, 1.9]),
    ] {
        let processors = Scripted::new(&[1.0; 4]);
        let number = Cell::new(0.0);
        let case = Case::observed("numbers", || {
            // The third round is kept; before the fourth, the processor is slowed.
            processors.set(if number.get() == 2.0 { &[1.0, 1.0, 1.0, 1.9] } else { &[1.0; 4] });
            number.replace(number.get() + 1.0)
        });
        let host = Arc::new(HostSpeed::on(processors.clone()));
        let sampler = Sampler::new(Protocol::samples(3).with_warmup(warmup)).watching(Some(host));
        let sampled = sampler.sample(vec![case]).unwrap();
        assert_eq!((sampled.warmup[0].clone(), sampled.sets[0].values()), (warm, &kept[..]));
        assert_eq!((processors.own(), &sampled.slowdown[0][..]), (left_for, &slowdown[..]));
    }
}

#[test]
fn a_sample_is_kept_with_how_slow_the_host_was_before_or_after_it_whichever_is_more() {
    let processors = Scripted::new(&[1.0]);
    let host = Arc::new(HostSpeed::on(processors.clone()));
    // What a piece of work takes behind each call.
    let mut behind = [1.0, 1.9, 1.0, 1.25, 1.9].into_iter();
    let case = Case::observed("one", || {
        processors.set(&[behind.next().unwrap()]);
        1.0
    });
    let sampler = Sampler::new(Protocol::samples(5).with_warmup(0)).watching(Some(host));
    assert_eq!(sampler.sample(vec![case]).unwrap().slowdown, [[1.0, 1.9, 1.9, 1.25, 1.9]]);
    let unwatched = Sampler::new(Protocol::samples(2)).sample(vec![Case::observed("one", || 1.0)]).unwrap();
    assert_eq!(unwatched.slowdown, [[0.0; 0]]);
}

#[test]
fn cases_of_one_event_are_slowed_together() {
    let processors = Scripted::new(&[1.0]);
    let host = Arc::new(HostSpeed::on(processors.clone()));
    // The first that is asked spans the event.
    let asked = Cell::new(0);
    let part = |name| {
        let (asked, processors) = (&asked, processors.clone());
        Case::observed(name, move || {
            let number = asked.replace(asked.get() + 1);
            processors.set(&[if number % 3 == 0 { 1.9 } else { 1.0 }]);
            number as f64
        })
    };
    let sampler = Sampler::new(Protocol::samples(8).with_warmup(0)).watching(Some(host));
    let cases = vec![part("one").of_event(4), part("two").of_event(4), part("three").of_event(4)];
    assert_eq!(sampler.sample(cases).unwrap().slowdown, [[1.9; 8]; 3]);
    let cases = vec![part("one").of_event(0), part("two").of_event(1), part("three")];
    let apart = sampler.sample(cases).unwrap().slowdown;
    assert!(apart.iter().flatten().any(|slowdown| *slowdown < 1.9), "{apart:?}");
}

#[test]
fn a_long_case_without_a_warm_up_leaves_a_slowed_processor_and_a_short_one_does_not() {
    for (length, left) in [(LONG * 2, true), (Duration::ZERO, false)] {
        let processors = Scripted::new(&[1.0, 1.0]);
        let host = Arc::new(HostSpeed::on(processors.clone()));
        host.settle();
        let sampler = Sampler::new(Protocol::samples(3).with_warmup(0)).watching(Some(host));
        let case = Case::observed("case", || {
            std::thread::sleep(length);
            processors.set(&[1.0, 1.9]);
            1.0
        });
        let slowdown = sampler.sample(vec![case]).unwrap().slowdown.remove(0);
        // The first is on the processor on which it began.
        assert_eq!(slowdown[1..].iter().all(|slowdown| *slowdown == 1.0), left, "{slowdown:?}");
    }
}

#[test]
fn whichever_case_of_a_long_event_is_first_leaves_a_slowed_processor() {
    let processors = Scripted::new(&[1.0, 1.0]);
    let host = Arc::new(HostSpeed::on(processors.clone()));
    host.settle();
    let asked = Cell::new(0);
    let part = |name| {
        let (asked, processors) = (&asked, &processors);
        Case::observed(name, move || {
            // The first of a round makes the event.
            if asked.replace(asked.get() + 1) % 2 == 0 {
                std::thread::sleep(LONG * 2);
            }
            processors.set(&[1.0, 1.9]);
            1.0
        })
        .of_event(0)
    };
    let sampler = Sampler::new(Protocol::samples(8).with_warmup(0)).watching(Some(host));
    let slowdown = sampler.sample(vec![part("one"), part("two")]).unwrap().slowdown;
    assert!(slowdown.iter().all(|case| case[1..] == [1.0; 7]), "{slowdown:?}");
}

#[test]
fn what_runs_elsewhere_is_not_marked_by_the_state_of_this_processor() {
    let host = Arc::new(HostSpeed::on(Scripted::new(&[1.9])));
    let sampler = Sampler::new(Protocol::samples(3).with_warmup(0)).watching(Some(host));
    let cases = vec![Case::observed("here", || 1.0), Case::observed("elsewhere", || 1.0).elsewhere()];
    let rounds = sampler.sample(cases).unwrap();
    assert_eq!([rounds.slowdown[0].len(), rounds.slowdown[1].len()], [3, 0]);
}

#[test]
fn an_interrupt_drops_the_incomplete_round_and_keeps_the_others() {
    let flag = Arc::new(AtomicBool::new(false));
    let calls = Cell::new(0);
    let case = |name| {
        let (calls, flag) = (&calls, &flag);
        Case::observed(name, move || {
            calls.set(calls.get() + 1);
            flag.store(calls.get() == 7, Ordering::Relaxed);
            1.0
        })
    };
    let sampler = Sampler::new(Protocol::samples(100).with_warmup(0)).interrupted_by(flag.clone());
    let sampled = sampler.sample(vec![case("a"), case("b")]).unwrap();
    assert_eq!((sampled.stopped_by, calls.get()), (StoppedBy::Interrupt, 7));
    assert!(sampled.sets.iter().all(|set| set.len() == 3));
}

#[test]
fn an_interrupt_before_the_first_whole_round_is_an_error() {
    for warmup in [0, 3] {
        let flag = Arc::new(AtomicBool::new(true));
        let sampler = Sampler::new(Protocol::samples(9).with_warmup(warmup)).interrupted_by(flag);
        let interrupted = sampler.sample(vec![Case::observed("a", || 1.0)]);
        assert!(matches!(interrupted, Err(MeasureError::Interrupted)));
    }
}

#[test]
fn a_failing_case_names_itself() {
    let cases = vec![Case::observed("good", || 1.0), Case::observed("bad", || Err::<f64, _>(failure()))];
    let failed = Sampler::default().sample(cases).unwrap_err();
    assert!(
        matches!(&failed, MeasureError::Case { case, cause } if case == "bad" && cause.downcast_ref() == Some(&failure()))
    );
}

#[test]
fn a_value_that_is_not_finite_names_its_case() {
    let failed = Sampler::default().sample(vec![Case::observed("quotient", || f64::INFINITY)]).unwrap_err();
    assert!(matches!(failed, MeasureError::NotFinite { case, index: 0, .. } if case == "quotient"));
}

#[test]
fn no_cases_and_cases_of_one_name_are_refused() {
    assert!(matches!(Sampler::default().sample(Vec::<Case>::new()), Err(MeasureError::Plan(_))));
    let twins = vec![Case::observed("a", || 1.0), Case::observed("a", || 2.0)];
    assert!(matches!(Sampler::default().sample(twins), Err(MeasureError::Plan(reason)) if reason.contains("`a`")));
}

#[test]
fn the_observer_sees_every_round_and_the_end() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let notes = seen.clone();
    let observer: Observer = Arc::new(move |progress| notes.lock().unwrap().push(progress));
    let sampler = Sampler::new(Protocol::samples(4).with_warmup(2)).observed_by(observer);
    sampler.clone().sample(vec![Case::observed("a", || 1.0)]).unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 6);
    assert!(seen[0].warming_up && seen[0].share == 0.0);
    assert_eq!(seen[5], Progress { warming_up: false, round: 4, rounds: Some(4), share: 1.0 });
}

#[test]
fn a_comparison_subtracts_the_first_case_from_the_second() {
    let comparison =
        Sampler::new(Protocol::samples(12)).compare([("a", nothing), ("b", nothing), ("c", nothing)]).unwrap();
    let names: Vec<_> = comparison.iter().map(|pair| (pair.samples().0.name(), pair.samples().1.name())).collect();
    assert_eq!((names, comparison[1].difference.n), (vec![("a", "b"), ("a", "c")], 12));
    assert_eq!(comparison.to_string().lines().count(), 2);
    assert!(Sampler::default().compare([("alone", nothing)]).is_err());
}

#[test]
fn a_budget_ends_a_sampling_within_a_round_and_keeps_the_whole_ones() {
    let log = RefCell::new(Vec::new());
    let sampler = Sampler::new(Protocol::samples(50).with_warmup(0)).with_budget(5.5);
    // One second for each case: two cases of the second round fit.
    let sampled = sampler.sample_by(logged(&log), &mut ticking(1.0)).unwrap();
    assert_eq!((sampled.stopped_by, sampled.sets[0].len()), (StoppedBy::TimeLimit, 1));
    assert!(log.borrow().len() < 6, "{}", log.borrow().len());
}

#[test]
fn a_budget_holds_for_the_warm_up_too_and_says_that_nothing_was_kept() {
    let log = RefCell::new(Vec::new());
    let sampler = Sampler::new(Protocol::samples(50).with_warmup(40)).with_budget(4.5);
    let error = sampler.sample_by(logged(&log), &mut ticking(1.0)).unwrap_err();
    assert!(matches!(error, MeasureError::OverBudget { seconds: 4.5 }), "{error}");
    assert!((1..=4).contains(&log.borrow().len()), "{}", log.borrow().len());
}

#[test]
fn a_case_fails_with_an_error_of_any_type() {
    #[derive(Debug, PartialEq, thiserror::Error)]
    #[error("not today")]
    struct Own;
    let cases: [fn() -> Case<'static>; 5] = [
        || Case::observed("observed", || Err::<f64, _>(Own)),
        || Case::new("timed", || Err::<(), _>(Own)),
        || Case::within("in part", |watch| watch.time(|| Err(Own))),
        || Case::timed_by(crate::measure::Clock::Host, "by itself", || Err(Own)),
        || Case::new("in batches", || Err::<(), _>(Own)),
    ];
    for case in cases {
        let failed = Sampler::default().sample(vec![case()]).unwrap_err();
        let MeasureError::Case { case, cause } = &failed else { panic!("{failed}") };
        assert_eq!(cause.downcast_ref(), Some(&Own), "{case}");
    }
    let worded = Sampler::default().compare((("a", || Err::<(), _>("in words")), ("b", nothing))).unwrap_err();
    assert_eq!(worded.to_string(), "case `a`: in words");
}

#[test]
fn a_round_says_how_many_calls_each_sample_is_of() {
    let cases = vec![Case::observed("observed", || 1.0), Case::new("in batches", || 1).with_calls(7)];
    let sampled = Sampler::new(Protocol::samples(3)).sample(cases).unwrap();
    assert_eq!(sampled.calls, [1, 7]);
}
