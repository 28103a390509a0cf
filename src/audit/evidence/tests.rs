use super::*;
use crate::recording::by_hand::call;

fn work(kind: WorkKind, stream: u32, (start, end): (u64, u64), correlation: u64) -> RecordedWork {
    RecordedWork { name: "w".into(), kind, start, end, correlation, context: 1, stream, ..RecordedWork::default() }
}

fn kernel(stream: u32, times: (u64, u64), correlation: u64) -> RecordedWork {
    work(WorkKind::Kernel, stream, times, correlation)
}

fn copy_of(direction: RecordedDirection, host: HostMemoryKind, times: (u64, u64), correlation: u64) -> RecordedWork {
    work(WorkKind::Copy { direction, host }, 1, times, correlation)
}

/// The last call, judged.
fn judged(calls: Vec<RecordedCall>, work: Vec<RecordedWork>) -> (Cause, u64, u64, u64) {
    let mut process = Process { calls, work, start: 1, ..Process::default() };
    process.settle();
    let judgements = judge(&process);
    let (call, last) = process.calls.iter().zip(&judgements).next_back().unwrap();
    assert_eq!(last.parts(call).iter().map(|(_, time)| time).sum::<u64>(), call.exit - call.enter);
    (last.cause, last.wait, last.copy, last.own)
}

const MS: u64 = 1_000_000;

#[test]
fn a_synchronization_waits_for_what_was_pending_on_its_stream_and_for_nothing_else() {
    let sync = |exit| call("cuStreamSynchronize", (1_000, exit), 10);
    assert_eq!(
        judged(vec![sync(MS + 2_000)], vec![kernel(1, (500, MS), 5)]),
        (Cause::Wait, MS - 1_000, 0, 3_000 - 1_000)
    );
    // Ended before; of another stream; enqueued later.
    for other in [kernel(1, (500, 900), 5), kernel(2, (500, 2_500), 5), kernel(1, (2_000, 2_500), 11)] {
        assert_eq!(judged(vec![sync(3_000)], vec![other]), (Cause::None, 0, 0, 2_000));
    }
}

#[test]
fn a_long_synchronization_that_no_work_explains_is_unknown_however_often_it_happens() {
    let calls =
        (0..5).map(|number| call("cuStreamSynchronize", (number * MS, number * MS + MS / 2), 10 + number)).collect();
    assert_eq!(judged(calls, vec![kernel(1, (10, 20), 5)]).0, Cause::Unknown);
}

#[test]
fn a_wait_for_a_stream_behind_another_is_explained_by_that_ones_work() {
    let found = judged(vec![call("cuStreamSynchronize", (1_000, MS + 2_000), 10)], vec![kernel(2, (500, MS), 5)]);
    assert_eq!((found.0, found.1), (Cause::Wait, MS - 1_000));
}

#[test]
fn an_event_is_waited_for_up_to_what_was_enqueued_before_it() {
    let event = |name, times, correlation| RecordedCall { event: 7, ..call(name, times, correlation) };
    let calls = vec![event("cuEventRecord", (600, 700), 6), event("cuEventSynchronize", (1_000, 5_000), 10)];
    let behind = kernel(1, (4_000, MS), 8);
    assert_eq!(judged(calls, vec![kernel(1, (500, 4_000), 5), behind]), (Cause::Wait, 3_000, 0, 1_000));
}

#[test]
fn that_a_short_kernel_ended_during_a_call_that_does_not_wait_is_no_cause() {
    let pinned = copy_of(RecordedDirection::ToDevice, HostMemoryKind::Pinned, (4_000, MS), 10);
    let copy = call("cuMemcpyHtoDAsync_v2", (1_000, 7_000), 10);
    assert_eq!(judged(vec![copy], vec![kernel(1, (500, 3_000), 5), pinned]), (Cause::None, 0, 0, 6_000));
    // An allocation that takes as long as it does with nothing pending.
    let allocations = [(1_000, 101_000), (200_000, 300_000), (400_000, 500_000)].into_iter().zip(10..);
    let calls = allocations.map(|(times, number)| call("cuMemAlloc_v2", times, number)).collect();
    assert_eq!(judged(calls, vec![kernel(1, (350_000, 490_000), 11)]).0, Cause::None);
    // One that takes longer than its like, perhaps since it is of more memory.
    for name in ["cuMemAlloc_v2", "cuMemHostAlloc", "cuLibraryLoadData"] {
        let calls = [(1_000, 11_000), (20_000, 30_000), (400_000, 500_000)].into_iter().zip(10..);
        let calls = calls.map(|(times, number)| call(name, times, number)).collect();
        assert_eq!(judged(calls, vec![kernel(1, (350_000, 490_000), 11)]).0, Cause::Uncertain, "{name}");
    }
}

#[test]
fn a_copy_of_pageable_memory_waits_where_it_returned_after_it_had_begun() {
    let copy = |exit| call("cuMemcpyHtoDAsync_v2", (1_000, exit), 10);
    let pageable = copy_of(RecordedDirection::ToDevice, HostMemoryKind::Pageable, (MS, 2 * MS), 10);
    let found = judged(vec![copy(2 * MS + 1_000)], vec![kernel(1, (500, MS), 5), pageable.clone()]);
    assert_eq!(found, (Cause::Wait, MS - 1_000, MS, 1_000));
    // Staged: it returned long before.
    assert_eq!(judged(vec![copy(7_000)], vec![kernel(1, (500, MS), 5), pageable]).0, Cause::None);
}

/// The driver returned when it had read the memory; the device has the last part later.
#[test]
fn a_copy_of_pageable_memory_blocks_the_host_though_the_device_ends_later() {
    let copy = call("cuMemcpyHtoDAsync_v2", (1_000, MS), 10);
    let pageable = copy_of(RecordedDirection::ToDevice, HostMemoryKind::Pageable, (MS / 2, 2 * MS), 10);
    assert_eq!(judged(vec![copy.clone()], vec![pageable]), (Cause::None, 0, MS - 1_000, 0));
    let pinned = copy_of(RecordedDirection::ToDevice, HostMemoryKind::Pinned, (MS / 2, 2 * MS), 10);
    assert_eq!(judged(vec![copy], vec![pinned]), (Cause::None, 0, 0, MS - 1_000));
}

#[test]
fn a_read_with_nothing_pending_is_blocked_by_its_own_copy_alone() {
    let own = copy_of(RecordedDirection::ToHost, HostMemoryKind::Pageable, (3_000, 5_000), 10);
    assert_eq!(judged(vec![call("cuMemcpyDtoH_v2", (1_000, 6_000), 10)], vec![own]), (Cause::None, 0, 2_000, 3_000));
}

#[test]
fn a_free_waits_for_all_streams_and_a_load_that_may_have_waited_is_uncertain() {
    let work = vec![kernel(1, (500, 3_000), 5), kernel(2, (500, MS), 6)];
    for name in ["cuMemFree_v2", "cuMemFreeHost", "cuMemHostUnregister"] {
        let free = call(name, (1_000, MS + 60_000), 10);
        assert_eq!(judged(vec![free], work.clone()), (Cause::Wait, MS - 1_000, 0, 60_000), "{name}");
    }
    let load = call("cuLibraryLoadData", (1_000, 3 * MS), 10);
    assert_eq!(judged(vec![load], work).0, Cause::Uncertain);
}

/// A launch may load its kernel's code, or stand in a full queue; the same holds for each call that has no reason to wait.
#[test]
fn a_call_without_a_reason_to_wait_that_takes_long_while_a_kernel_ends_is_uncertain() {
    for name in
        ["cudaLaunchKernel", "cuLaunchKernelEx", "cudaGraphLaunch", "cudaOccupancyMaxActiveBlocksPerMultiprocessor"]
    {
        let launches = [(1_000, 6_000), (20_000, 25_000), (40_000, 45_000), (MS, 11 * MS)].into_iter().zip(10..);
        let calls = launches.map(|(times, number)| call(name, times, number)).collect();
        assert_eq!(
            judged(calls, vec![kernel(1, (MS - 1_000, 6 * MS), 12)]),
            (Cause::Uncertain, 0, 0, 10 * MS),
            "{name}"
        );
    }
    let fills = [(1_000, 6_000), (20_000, 25_000), (40_000, 45_000), (MS, 6 * MS + 5_000)].into_iter().zip(10..);
    let calls = fills.map(|(times, number)| call("cuMemsetD8_v2", times, number)).collect();
    assert_eq!(judged(calls, vec![kernel(1, (MS - 1_000, 6 * MS), 12)]).0, Cause::Wait);
}

#[test]
fn an_unknown_event_was_waited_for_only_if_the_call_returned_after_work() {
    let wait = |exit| call("cudaEventSynchronize", (1_000, exit), 10);
    let work = |end| vec![kernel(1, (500, end), 5)];
    assert_eq!(judged(vec![wait(MS + 1_000)], work(7_000)).0, Cause::Unknown);
    assert_eq!(judged(vec![wait(5_500)], work(5_000)), (Cause::None, 0, 0, 4_500));
    assert_eq!(judged(vec![wait(45_500)], work(45_000)), (Cause::Wait, 44_000, 0, 500));
    let found = judged(vec![wait(MS + 1_000)], work(MS));
    assert_eq!((found.0, found.1), (Cause::Wait, MS - 1_000));
}

#[test]
fn a_call_has_only_the_time_that_the_calls_within_it_leave() {
    let calls = vec![call("cudaLaunchKernel", (1_000, 10 * MS), 10), call("cuLibraryLoadData", (2_000, 9 * MS), 11)];
    let mut process = Process { calls, work: vec![kernel(1, (500, 5 * MS), 5)], start: 1, ..Process::default() };
    process.settle();
    let judgements = judge(&process);
    assert_eq!((judgements[0].cause, judgements[0].own), (Cause::None, MS + 1_000));
    assert_eq!((judgements[1].cause, judgements[1].own), (Cause::Uncertain, 9 * MS - 2_000));
}
