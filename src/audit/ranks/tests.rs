//! Jobs whose ranks arrive at collectives at times that are known.

use super::super::recording::by_hand::call;
use super::super::recording::{Doing, Frame, RecordedCall, Sample};
use super::super::report::AuditReport;
use super::super::tables;
use super::*;

const MS: u64 = 1_000_000;
const ALL_REDUCE: &str = "ncclDevKernel_AllReduce_Sum_f32";

/// No two iterations take as long.
fn chance(iteration: u64) -> u64 {
    (iteration.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) * 20
}

/// Ranks of 100 iterations of 10 ms: each computes for 5 ms, arrives at the collective after its own delay, and leaves it
/// with the others. Each clock is later by as much as it is told.
fn job(delay: impl Fn(u32, u64) -> u64, clocks: &[u64]) -> ProgramRecording {
    job_from(delay, clocks, |_| 0)
}

/// The same, recorded from its own iteration on of each rank.
fn job_from(delay: impl Fn(u32, u64) -> u64, clocks: &[u64], begun: impl Fn(u32) -> u64) -> ProgramRecording {
    let mut recording = recorded(delay, clocks, begun);
    align(&mut recording);
    recording
}

fn recorded(delay: impl Fn(u32, u64) -> u64, clocks: &[u64], begun: impl Fn(u32) -> u64) -> ProgramRecording {
    recorded_beside(0, delay, clocks, begun)
}

/// The same, where each device computes for so long on another stream beside the collective.
fn recorded_beside(
    beside: u64,
    delay: impl Fn(u32, u64) -> u64,
    clocks: &[u64],
    begun: impl Fn(u32) -> u64,
) -> ProgramRecording {
    let process = |(rank, clock): (u32, &u64)| {
        let mut work = Vec::new();
        let mut samples = Vec::new();
        let mut at = 0;
        for iteration in 0..100 {
            let own = delay(rank, iteration);
            let last = (0..clocks.len() as u32).map(|rank| delay(rank, iteration)).max().unwrap_or(0);
            let piece = |name: &str, from: u64, to: u64, number: u64| RecordedWork {
                name: name.into(),
                start: clock + from,
                end: clock + to,
                correlation: number,
                ..RecordedWork::default()
            };
            work.push(piece("matmul", at, at + 5 * MS, 3 * iteration + 1));
            let end = at + 5 * MS + last + 100_000;
            let all_reduce = piece(ALL_REDUCE, at + 5 * MS + own, end, 3 * iteration + 2);
            work.push(RecordedWork { stream: 2, ..all_reduce });
            if beside > 0 {
                work.push(piece("backward", at + 5 * MS, at + 5 * MS + beside, 3 * iteration + 3));
            }
            let sample = Sample {
                asked: clock + at + 5 * MS + own * 7 / 8,
                had: clock + at + 5 * MS + own * 7 / 8,
                thread: rank,
                stack: Some(0),
                doing: Doing::Sleeping,
                ..Sample::default()
            };
            samples.push(sample);
            at = end.max(at + 5 * MS + beside) + 1_000;
            if iteration < begun(rank) {
                work.clear();
                samples.clear();
            }
        }
        let frames = vec![Frame { file: "train.py".to_owned(), line: 40, ..Frame::default() }];
        let stacks = vec![vec![0]];
        let mut process =
            Process { number: rank, rank: Some(rank), work, samples, frames, stacks, ..Process::default() };
        process.settle();
        process
    };
    let processes = (0..).zip(clocks).map(process).collect();
    ProgramRecording { processes, ..ProgramRecording::default() }
}

#[test]
fn a_rank_that_sleeps_is_named_with_its_line_whatever_the_clocks_say() {
    let recording = job(|rank, _| if rank == 2 { 4 * MS } else { 200_000 }, &[0, 70 * MS, 3 * MS, 0]);
    let (report, _) = AuditReport::of(&recording, "job", None);
    let late = report.late.unwrap();
    assert_eq!((&*late.rank, &*late.place, late.cause), ("rank 2", "train.py:40", Some(IdleCause::Sleep)));
    assert!((3_700_000..3_900_000).contains(&late.more_ns), "{late:?}");
    let each = late.others_idle_ns / 3 / late.collectives;
    assert!((3_790_000..3_810_000).contains(&each), "{late:?}");
    // The others' devices wait for it, and are not busy meanwhile.
    let waits = report.idle.iter().find(|place| place.cause == IdleCause::Rank).unwrap();
    assert_eq!(waits.place, "rank 2");
}

#[test]
fn a_rank_that_sleeps_is_named_also_in_recordings_that_begin_one_after_the_other() {
    let delay = |rank: u32, iteration: u64| if rank == 2 { 4 * MS + chance(iteration) } else { 200_000 };
    for clocks in [[0, 0, 0], [0, 700 * MS, 40 * MS]] {
        let recording = job_from(delay, &clocks, |rank| u64::from(rank) * 17);
        let late = AuditReport::of(&recording, "job", None).0.late.unwrap();
        assert_eq!((&*late.rank, &*late.place, late.cause), ("rank 2", "train.py:40", Some(IdleCause::Sleep)));
        let each = late.others_idle_ns / 2 / late.collectives;
        assert!((4_000_000..5_000_000).contains(&each), "{late:?}");
    }
}

#[test]
fn a_rank_that_sleeps_is_named_also_where_records_of_some_collectives_are_missing() {
    let delay = |rank: u32, iteration: u64| if rank == 1 { 4 * MS + chance(iteration) } else { 200_000 };
    for missing in [&[(0, 13)][..], &[(1, 62)], &[(0, 29), (1, 51), (0, 80)]] {
        let mut recording = recorded(delay, &[0, 70 * MS], |_| 0);
        for (process, iteration) in missing {
            recording.processes[*process].work.retain(|work| work.correlation != 3 * iteration + 2);
        }
        align(&mut recording);
        let late = AuditReport::of(&recording, "job", None).0.late.unwrap();
        assert_eq!(
            (&*late.rank, &*late.place, recording.job.collectives.len()),
            ("rank 1", "train.py:40", 100 - missing.len())
        );
    }
}

#[test]
fn a_rank_that_sleeps_is_named_also_where_its_clock_drifts_and_is_set_anew() {
    let delay = |rank: u32, iteration: u64| if rank == 1 { 4 * MS + chance(iteration) } else { 200_000 };
    let mut recording = recorded(delay, &[0, 70 * MS], |_| 0);
    for (place, work) in recording.processes[1].work.iter_mut().enumerate() {
        // 100 µs a second, 80 µs once, and ends that scatter.
        let off = work.start / 10_000 + if place > 150 { 80_000 } else { 0 };
        let scatter = if &*work.name == ALL_REDUCE && place % 3 == 1 { chance(place as u64) % 40_000 } else { 0 };
        (work.start, work.end) = (work.start + off, work.end + off + scatter);
    }
    align(&mut recording);
    assert!(recording.warnings.is_empty(), "{:?}", recording.warnings);
    let late = report(&recording).late.unwrap();
    assert_eq!((&*late.rank, &*late.place), ("rank 1", "train.py:40"));
    // Equal ranks stay equal.
    let mut recording = recorded(|_, iteration| 100_000 + chance(iteration), &[0, 70 * MS], |_| 0);
    let off = |work: &RecordedWork| work.start / 10_000;
    let late = &mut recording.processes[1].work;
    late.iter_mut().for_each(|work| (work.start, work.end) = (work.start + off(work), work.end + off(work)));
    align(&mut recording);
    assert!(recording.job.collectives.iter().all(|of| of.waited.is_empty()) && recording.job.collectives.len() > 90);
}

#[test]
fn of_ranks_that_are_late_in_turn_or_not_at_all_none_is_named() {
    // As if by chance: a hash of the iteration says which one is late.
    let chance = |iteration: u64| (iteration.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 62) as u32 % 2;
    let in_turn = job(|rank, iteration| if rank == chance(iteration) { 2 * MS } else { 100_000 }, &[0, 0]);
    assert!(AuditReport::of(&in_turn, "job", None).0.late.is_none());
    let equal = job(|rank, iteration| 100_000 + u64::from(rank == chance(iteration)) * 25_000, &[0, 0]);
    assert!(AuditReport::of(&equal, "job", None).0.late.is_none());
    let by_little = job(|rank, _| 100_000 + u64::from(rank) * 30_000, &[0, 0]);
    assert!(AuditReport::of(&by_little, "job", None).0.late.is_none(), "it costs less than two hundredths");
}

fn report(recording: &ProgramRecording) -> AuditReport {
    AuditReport::of(recording, "job", None).0
}

#[test]
fn a_rank_for_which_no_device_is_idle_is_not_named_however_late_it_is() {
    let late = |rank: u32, _| if rank == 1 { 4 * MS } else { 200_000 };
    let mut hidden = recorded_beside(6 * MS, late, &[0, 0], |_| 0);
    align(&mut hidden);
    let report = report(&hidden);
    assert!(report.late.is_none(), "{:?}", report.late);
    assert!(report.idle.iter().all(|place| place.cause != IdleCause::Rank), "{:?}", report.idle);
}

#[test]
fn a_late_rank_is_named_where_the_steady_state_of_another_begins_later() {
    let late = |rank: u32, iteration| if rank == 1 { 4 * MS + chance(iteration) } else { 200_000 };
    let mut recording = recorded(late, &[0, 0], |_| 0);
    // What is unlike the rest is start-up.
    let first = &mut recording.processes[0];
    let at = first.work[90].clone();
    first.work.insert(91, RecordedWork { name: "validate".into(), start: at.end, end: at.end + 500, ..at });
    align(&mut recording);
    let report = report(&recording);
    let iterations: Vec<u64> = report.steady().map(|(_, steady)| steady.iterations).collect();
    assert!(iterations[0] + 20 < iterations[1], "{iterations:?}");
    let late = report.late.as_ref().unwrap();
    assert_eq!((&*late.rank, &*late.place), ("rank 1", "train.py:40"));
}

#[test]
fn a_lag_that_devices_regain_is_no_loss() {
    // Hosts take 10 ms for what devices do in 6 ms, and one is 0.5 ms behind.
    let process = |rank: u32| {
        let piece = |name: &str, start: u64, end: u64, correlation: u64| RecordedWork {
            name: name.into(),
            start,
            end,
            correlation,
            context: 1,
            ..RecordedWork::default()
        };
        let lag = u64::from(rank) * MS / 2;
        let iteration = |number: u64| {
            let at = 10 * MS * number;
            let reduced = at + 4 * MS + 500_000 + 10_000 * (number % 7);
            [
                piece("matmul", at + lag, at + 3 * MS + lag, 4 * number + 1),
                piece(ALL_REDUCE, at + 4 * MS + lag, reduced + 100_000, 4 * number + 2),
                piece("matmul", reduced + 200_000, reduced + 3 * MS, 4 * number + 3),
            ]
        };
        let work = (0..100).flat_map(iteration).collect();
        let mut process = Process { number: rank, rank: Some(rank), work, ..Process::default() };
        process.settle();
        process
    };
    let mut equal = ProgramRecording { processes: (0..2).map(process).collect(), ..ProgramRecording::default() };
    align(&mut equal);
    assert!(report(&equal).late.is_none(), "{:?}", report(&equal).late);
    // A host that waits for all that is launched does not go on before the other rank has.
    for process in &mut equal.processes {
        let wait = |number: u64| {
            let at = 10 * MS * number;
            call("cuCtxSynchronize", (at + 4 * MS + MS / 2, at + 8 * MS), 4 * number + 4)
        };
        process.calls = (0..100).map(|number| RecordedCall { thread: process.number, ..wait(number) }).collect();
        process.settle();
    }
    assert_eq!(report(&equal).late.map(|late| late.rank), Some("rank 1".to_owned()));
}

#[test]
fn launch_gaps_beside_a_collective_are_no_loss_by_a_late_rank() {
    let late = |rank: u32, _| if rank == 1 { 4 * MS } else { 200_000 };
    let mut hidden = recorded_beside(6 * MS, late, &[0, 0], |_| 0);
    for process in &mut hidden.processes {
        // Each 0.1 ms a kernel of half that time.
        let pieces = |work: &RecordedWork| {
            let starts = (work.start..work.end).step_by(if &*work.name == "backward" { 100_000 } else { usize::MAX });
            let end = |start: u64| if &*work.name == "backward" { start + 50_000 } else { work.end };
            starts.map(|start| RecordedWork { start, end: end(start), ..work.clone() }).collect::<Vec<_>>()
        };
        process.work = process.work.iter().flat_map(pieces).collect();
    }
    align(&mut hidden);
    let report = report(&hidden);
    assert!(report.late.is_none(), "{:?}", report.late);
}

#[test]
fn a_late_rank_costs_what_is_left_idle_beside_other_work() {
    let late = |rank: u32, iteration| if rank == 1 { 4 * MS + chance(iteration) } else { 200_000 };
    let mut exposed = recorded_beside(3 * MS, late, &[0, 0], |_| 0);
    align(&mut exposed);
    let report = report(&exposed);
    let late = report.late.as_ref().unwrap();
    assert_eq!((&*late.rank, &*late.place), ("rank 1", "train.py:40"));
    let each = late.others_idle_ns / late.collectives;
    assert!((1_000_000..2_400_000).contains(&each), "{late:?}");
    // No time of a device is told twice.
    let told: u64 = report.idle.iter().map(|place| place.idle_ns).sum();
    let of_devices = report.processes.iter().flat_map(|own| &own.devices).flat_map(|device| &device.idle);
    let idle: u64 = of_devices.map(|share| share.ns).sum();
    assert!(told.abs_diff(idle) < 1_000, "{told} of {idle}");
}

#[test]
fn what_a_late_rank_costs_is_the_same_in_the_sentence_and_in_the_table() {
    let late = |rank: u32, iteration| if rank == 1 { 4 * MS + chance(iteration) } else { 200_000 };
    for ranks in [2, 4] {
        let report = report(&job(late, &vec![0; ranks]));
        let row = report.idle.iter().find(|place| place.cause == IdleCause::Rank).unwrap();
        assert_eq!((row.idle_ns, &*row.place), (report.late.as_ref().unwrap().others_idle_ns, "rank 1"));
        let table = tables::idle(&report, 5).to_console();
        let row = table.lines().find(|line| line.starts_with("rank 1")).unwrap();
        let time = row["rank 1".len()..].trim_start().split("  ").next().unwrap();
        let sentence = tables::late(&report).unwrap();
        assert!(
            sentence.contains(&format!("the {ranks} GPUs are idle for {time} of an iteration on average")),
            "{sentence}\n{table}"
        );
    }
}

#[test]
fn a_rank_that_is_late_by_all_its_lines_is_not_called_late_and_the_idle_time_is_told_to_be_for_it() {
    let mut recording = recorded(|rank, _| if rank == 1 { 4 * MS } else { 200_000 }, &[0, 0], |_| 0);
    let late = &mut recording.processes[1];
    late.frames = (0..20).map(|line| Frame { line: 40 + line, ..late.frames[0].clone() }).collect();
    late.stacks = (0..20).map(|frame| vec![frame]).collect();
    late.samples.iter_mut().zip(0..).for_each(|(sample, number)| sample.stack = Some(number % 20));
    align(&mut recording);
    let report = report(&recording);
    assert!(report.late.is_none(), "{:?}", report.late);
    assert!(report.idle.iter().any(|place| place.cause == IdleCause::Rank && place.name() == "(another rank)"));
}

#[test]
fn the_iterations_of_a_job_are_those_of_a_rank() {
    let equal = |rank: u32, iteration| 100_000 + chance(iteration) / (1 + u64::from(rank));
    for (ranks, said) in [(1, ""), (2, " in each of 2 ranks"), (4, " in each of 4 ranks")] {
        let report = report(&job(equal, &vec![0; ranks]));
        let each = report.processes[0].steady.as_ref().unwrap().iterations;
        let words = tables::iterations(&report).unwrap();
        assert!(
            words.starts_with(&format!("{each} iterations of ")) && words.contains(&format!("ms{said}, told by")),
            "{words}"
        );
        let headline = tables::headline(&report).unwrap();
        assert_eq!(headline.contains("on average"), ranks > 1, "{headline}");
    }
}

#[test]
fn like_iterations_of_processes_of_no_job_are_those_of_a_process() {
    let mut recording = recorded(|_, iteration| 100_000 + chance(iteration), &[0, 0], |_| 0);
    for process in &mut recording.processes {
        process.rank = None;
        process.work.retain(|work| &*work.name == "matmul");
    }
    align(&mut recording);
    let words = tables::iterations(&report(&recording)).unwrap();
    assert!(words.starts_with("100 iterations of ") && words.contains(" in each of 2 processes, told by"), "{words}");
}

#[test]
fn iterations_of_processes_that_differ_are_told_one_by_one() {
    let mut recording = recorded(|_, iteration| 4 * MS + chance(iteration), &[0, 0], |_| 0);
    let short = &mut recording.processes[1];
    short.work.iter_mut().for_each(|work| (work.start, work.end) = (work.start / 4, work.end / 4));
    short.work.retain(|work| &*work.name == "matmul");
    (short.start, short.end) = (0, 0);
    short.settle();
    let report = report(&recording);
    let words = tables::iterations(&report).unwrap();
    assert!(
        words.contains("of 9.")
            && words.contains("in rank 0")
            && words.contains("of 2.")
            && words.contains("in rank 1"),
        "{words}"
    );
    let (headline, table) = (tables::headline(&report).unwrap(), tables::idle(&report, 5).to_console());
    assert!(headline.contains("of their iterations,"), "{headline}");
    assert!(!table.contains("an iteration"), "{table}");
}

#[test]
fn that_collectives_of_ranks_match_nowhere_is_said_with_the_reason() {
    type Change<'a> = &'a dyn Fn(&mut Process);
    let equal = |_, iteration| 100_000 + chance(iteration);
    let warned = |change: Change<'_>| {
        let mut recording = recorded(equal, &[0, 0], |_| 0);
        change(&mut recording.processes[1]);
        align(&mut recording);
        recording.warnings
    };
    let renamed = |process: &mut Process| {
        let all = process.work.iter_mut().filter(|work| &*work.name == ALL_REDUCE);
        all.for_each(|work| work.name = "ncclDevKernel_AllGather_RING_LL".into());
    };
    let few = |process: &mut Process| process.work.retain(|work| &*work.name != ALL_REDUCE || work.correlation < 20);
    let none = |process: &mut Process| process.work.retain(|work| &*work.name != ALL_REDUCE);
    let apart = |process: &mut Process| {
        let mut moved = 0;
        for work in &mut process.work {
            moved += chance(work.correlation + 7);
            (work.start, work.end) = (work.start + moved, work.end + moved);
        }
    };
    let cases: [(Change<'_>, &str); 4] = [
        (&renamed, "those of rank 1 have other names"),
        (&few, "rank 1 has 6 of"),
        (&none, "rank 1 has none of"),
        (&apart, "end together"),
    ];
    for (change, reason) in cases {
        let warnings = warned(change);
        let [warning] = &warnings[..] else { panic!("{reason}: {warnings:?}") };
        assert!(warning.contains("look like ranks of a job") && warning.contains(reason), "{warning}");
    }
    assert_eq!(warned(&|_| {}), [""; 0]);
    // Programs that know of no job and have no collectives are none.
    let mut others = recorded(equal, &[0, 0], |_| 0);
    others.processes.iter_mut().for_each(|process| {
        process.rank = None;
        none(process);
    });
    align(&mut others);
    assert_eq!(others.warnings, [""; 0]);
}

#[test]
fn equal_ranks_that_are_last_by_turns_are_not_named_anywhere() {
    let chance = |iteration: u64| (iteration.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 62) as u32 % 2;
    let report = report(&job(|rank, iteration| if rank == chance(iteration) { 4 * MS } else { 100_000 }, &[0, 0]));
    assert!(report.late.is_none());
    assert_eq!(report.idle.iter().filter(|place| place.cause == IdleCause::Rank).count(), 1, "{:?}", report.idle);
    let text = tables::headline(&report).unwrap() + &tables::idle(&report, 5).to_console();
    assert!(!text.contains("rank 0") && !text.contains("rank 1"), "{text}");
}
