//! Programs by chance with waits that are known, against an account that knows the format alone.

use super::super::super::evidence::{Cause, judge};
use super::super::super::recording::Process;
use super::simulated::{Awaited, Called, Chance, Program, waited};
use super::*;

/// The cause of each call of a process, by its number.
fn causes(process: &Process) -> HashMap<u64, (Cause, u64)> {
    let judged = process.calls.iter().zip(judge(process));
    judged.map(|(call, judgement)| (call.correlation, (judgement.cause, judgement.wait))).collect()
}

fn programs(count: u64) -> impl Iterator<Item = (u64, Program)> {
    (0..count).map(|seed| (seed, Program::new(&mut Chance(seed), seed % 2 == 0)))
}

fn process_of(events: &[Value]) -> Process {
    read_text(trace_of(events).as_bytes()).0.processes.remove(0)
}

#[test]
fn each_planted_wait_of_two_thousand_traces_is_found_and_nothing_else_is_called_one() {
    let (mut waits, mut none, mut open) = (0, 0, 0);
    for (seed, program) in programs(2_000) {
        let found = causes(&process_of(&program.events(10, 0)));
        for called in &program.calls {
            let (cause, _) = found[&called.correlation];
            let (count, is_right) = match waited(called) {
                Some(true) => (&mut waits, cause == Cause::Wait),
                _ if called.awaited == Awaited::NothingAskedFor => {
                    (&mut open, cause != Cause::Wait || program.may_explain(called))
                }
                Some(false) => (&mut none, cause == Cause::None),
                None => (&mut open, matches!(cause, Cause::Uncertain | Cause::Unknown)),
            };
            *count += 1;
            assert!(is_right, "{seed}: {called:?} {cause:?}");
        }
    }
    println!("{waits} waits, {none} calls without one, {open} that the trace leaves open");
    assert!(waits > 5_000 && none > 20_000 && open > 50, "{waits} {none} {open}");
}

#[test]
fn the_same_events_from_a_recording_and_from_a_trace_have_the_same_verdicts() {
    for (seed, program) in programs(500) {
        let recorded = program.recorded();
        let (first, found) = (program.calls.first().map_or(0, |call| call.enter), process_of(&program.events(10, 0)));
        let times = |process: &Process, from: u64| -> Vec<(String, u64, u64)> {
            process.calls.iter().map(|call| (call.name.to_string(), call.enter - from, call.exit - from)).collect()
        };
        assert_eq!(times(&recorded, first), times(&found, found.calls.first().map_or(0, |call| call.enter)), "{seed}");
        let awaited = |process: &Process| -> Vec<_> {
            let all = judge(process);
            all.into_iter().map(|own| (own.cause, own.wait, own.copy, own.unknown, own.own, own.awaited)).collect()
        };
        assert_eq!(awaited(&recorded), awaited(&found), "{seed}");
    }
}

/// What a report says of each kind of loss, whatever the places are called.
fn losses(report: &AuditReport) -> Vec<(String, Reason, u64, u64)> {
    let mut sums: BTreeMap<(String, Reason), (u64, u64)> = BTreeMap::new();
    for place in &report.places {
        let (count, total) = sums.entry((place.call.clone(), place.reason)).or_default();
        (*count, *total) = (*count + place.count, *total + place.total_ns);
    }
    sums.into_iter().map(|((call, reason), (count, total))| (call, reason, count, total)).collect()
}

#[test]
fn verdicts_stay_when_times_move_ranks_are_renamed_or_no_waits_dropped() {
    for (seed, program) in programs(200) {
        let events = program.events(10, 0);
        let own = losses(&report_of(&events));
        let moved: Vec<Value> = events
            .iter()
            .cloned()
            .map(|mut event| {
                event["ts"] = json!(event["ts"].as_f64().unwrap() + 131_072.0);
                event
            })
            .collect();
        assert_eq!(losses(&report_of(&moved)), own, "{seed}: moved");
        assert_eq!(losses(&report_of(&program.events(777, 3))), own, "{seed}: renamed");
        let without: Vec<Value> = events.iter().filter(|event| event["cat"] != "cpu_op").cloned().collect();
        assert_eq!(losses(&report_of(&without)), own, "{seed}: without operators");
        let mut backwards = events.clone();
        backwards.reverse();
        assert_eq!(losses(&report_of(&backwards)), own, "{seed}: in another order");
    }
}

#[test]
fn verdicts_of_a_rank_stay_when_another_is_added_and_when_the_file_is_split() {
    let folder = tempfile::tempdir().unwrap();
    for seed in 0..100 {
        let one = Program::new(&mut Chance(seed), seed % 2 == 0);
        let other = Program::new(&mut Chance(seed + 10_000), seed % 3 == 0);
        let of = |program: &Program, number, device| {
            (program.events(number, device), causes(&process_of(&program.events(number, device))))
        };
        let ((first, own), (second, others)) = (of(&one, 10, 0), of(&other, 11, 1));
        let has_all = |events: &[Value]| {
            ["kernel", "gpu_memcpy"].iter().any(|kind| events.iter().any(|event| event["cat"] == **kind))
        };
        if !has_all(&first) || !has_all(&second) {
            continue;
        }
        let merged = read_text(trace_of(&[first.clone(), second.clone()].concat()).as_bytes()).0;
        let by_number = |number| merged.processes.iter().find(|process| process.number == number).map(causes).unwrap();
        assert_eq!((by_number(10), by_number(11)), (own.clone(), others.clone()), "{seed}");
        let files = [("a.json", first), ("b.json", second)].map(|(name, events)| {
            let path = folder.path().join(name);
            fs::write(&path, trace_of(&events)).unwrap();
            path
        });
        let split = read(&files).unwrap();
        assert_eq!(split.processes.iter().map(causes).collect::<Vec<_>>(), [own, others], "{seed}");
    }
}

/// The account itself: what leaves no doubt, and what does.
#[test]
fn the_account_says_open_where_both_are_possible() {
    let program = Program::new(&mut Chance(1), false);
    let open = |called: &&Called| waited(called).is_none();
    let all: usize = programs(200).map(|(_, program)| program.calls.iter().filter(open).count()).sum();
    assert!(all > 0 && program.calls.iter().all(|called| called.exit > called.enter));
}
