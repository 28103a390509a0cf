//! A thread is kept on one of the processors that its process may use.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// From how many processors on the measuring thread is kept on one of them.
const ENOUGH: usize = 4;

/// A thread that is kept on one processor.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Kept {
    on: usize,
    /// The processors that it had before.
    allowed: CpuSet,
    /// Those for what it starts.
    others: CpuSet,
}

thread_local! {
    static KEPT: Cell<Option<Kept>> = const { Cell::new(None) };
}

/// Where a thread was kept last: what was good for one measurement is tried first for the next.
static LAST: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Gives the calling thread its processors, when it is dropped.
struct Back(CpuSet);

impl Drop for Back {
    fn drop(&mut self) {
        // A processor that is gone since is no reason to end a run.
        let _ = sched_setaffinity(None, &self.0);
    }
}

/// All of them, the last one first: interrupts tend to reach the first ones.
fn of(allowed: &CpuSet) -> impl Iterator<Item = usize> {
    (0..CpuSet::MAX_CPU).rev().filter(|cpu| allowed.is_set(*cpu))
}

/// One of so many processors: the one that was kept last, or the last one.
fn one_of(allowed: &CpuSet, last: usize) -> Option<usize> {
    let enough = allowed.count() as usize >= ENOUGH;
    let is_there = last < CpuSet::MAX_CPU && allowed.is_set(last);
    enough.then(|| if is_there { Some(last) } else { of(allowed).next() }).flatten()
}

fn only(cpu: usize) -> CpuSet {
    let mut one = CpuSet::new();
    one.set(cpu);
    one
}

/// Those that share no core with `own`, whose core has the processors `core`; all where too few would be left.
fn others(allowed: &CpuSet, own: usize, core: &[usize]) -> CpuSet {
    let mut others = *allowed;
    core.iter().chain([&own]).filter(|cpu| **cpu < CpuSet::MAX_CPU).for_each(|cpu| others.unset(*cpu));
    if others.count() as usize >= ENOUGH { others } else { *allowed }
}

/// The processors of the core of `cpu`, as far as the system tells.
fn core_of(cpu: usize) -> Vec<usize> {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    std::fs::read_to_string(path).map(|list| listed(&list)).unwrap_or_default()
}

/// The numbers of a list such as `3,35` or `2-3`.
fn listed(list: &str) -> Vec<usize> {
    let part = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse().ok()?..=last.trim().parse::<usize>().ok()?.min(CpuSet::MAX_CPU))
    };
    list.split(',').filter_map(part).flatten().collect()
}

/// The processor that [`kept`] keeps a thread on, where it keeps one; asked of a thread that is not kept yet.
pub fn measuring() -> Option<usize> {
    sched_getaffinity(None).ok().and_then(|allowed| one_of(&allowed, LAST.load(Ordering::Relaxed)))
}

/// The processor that the calling thread is kept on.
pub(crate) fn kept_on() -> Option<usize> {
    KEPT.get().map(|kept| kept.on)
}

/// The processors that the calling thread may [`stay_on`], the likeliest first; none where it is not kept on one.
pub(crate) fn choices() -> Vec<usize> {
    KEPT.get().map(|kept| of(&kept.allowed).collect()).unwrap_or_default()
}

/// Puts the calling thread, which had the processors `allowed`, on one of them; says whether the system did.
fn keep_on(allowed: CpuSet, on: usize) -> bool {
    let is_kept = sched_setaffinity(None, &only(on)).is_ok();
    if is_kept {
        KEPT.set(Some(Kept { on, allowed, others: others(&allowed, on, &core_of(on)) }));
    }
    is_kept
}

/// Keeps the calling thread on this one of its [`choices`]; where the system refuses, it stays where it is.
pub(crate) fn stay_on(cpu: usize) {
    if KEPT.get().is_some_and(|kept| keep_on(kept.allowed, cpu)) {
        LAST.store(cpu, Ordering::Relaxed);
    }
}

/// Keeps the calling thread on one processor while it works, where the process may use four or more.
pub fn kept<R>(work: impl FnOnce() -> R) -> R {
    let allowed = sched_getaffinity(None).ok().filter(|_| KEPT.get().is_none());
    let Some((allowed, own)) = allowed.zip(measuring()) else { return work() };
    if !keep_on(allowed, own) {
        return work();
    }
    /// No thread is kept any more, whichever way the work ended.
    struct Free;
    impl Drop for Free {
        fn drop(&mut self) {
            KEPT.set(None);
        }
    }
    let _back = Back(allowed);
    let _free = Free;
    work()
}

/// Starts threads or processes that may run on the other processors of the process, also from a thread that is kept on one.
pub fn elsewhere<R>(start: impl FnOnce() -> R) -> R {
    let Some(Kept { others, .. }) = KEPT.get() else { return start() };
    let kept = sched_getaffinity(None).ok().filter(|_| sched_setaffinity(None, &others).is_ok());
    let _back = kept.map(Back);
    start()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn processors() -> CpuSet {
        sched_getaffinity(None).unwrap()
    }

    fn first(many: usize) -> CpuSet {
        let mut set = CpuSet::new();
        (0..many).for_each(|cpu| set.set(cpu));
        set
    }

    #[test]
    fn a_thread_is_kept_on_the_last_processor_of_four_and_on_none_of_three() {
        assert_eq!((one_of(&first(3), usize::MAX), one_of(&first(4), usize::MAX)), (None, Some(3)));
        assert_eq!(
            (one_of(&first(4), 1), one_of(&first(4), 4)),
            (Some(1), Some(3)),
            "where it was kept, if that is there"
        );
    }

    #[test]
    fn what_is_started_elsewhere_leaves_the_core_where_others_are_left() {
        let mut six = first(6);
        six.unset(5);
        six.unset(1);
        assert_eq!(others(&first(6), 5, &listed("1,5\n")), six);
        assert_eq!(others(&first(5), 4, &listed("3-4")), first(5), "too few would be left");
        assert_eq!(others(&first(8), 7, &[]).count(), 7, "the system tells of no core");
        assert_eq!((listed("2-4,8"), listed("none")), (vec![2, 3, 4, 8], vec![]));
    }

    #[test]
    fn what_is_started_elsewhere_has_the_other_processors_and_the_thread_is_kept_on() {
        let before = processors();
        let (inside, started, after) = kept(|| {
            let started = elsewhere(|| std::thread::spawn(processors).join().unwrap());
            (processors(), started, processors())
        });
        assert_eq!(after, inside);
        let own = of(&inside).next().filter(|_| before.count() as usize >= ENOUGH);
        assert_eq!(inside, own.map_or(before, only));
        assert_eq!(started, own.map_or(before, |own| others(&before, own, &core_of(own))));
        assert_eq!(processors(), before);
    }

    #[test]
    fn a_panic_gives_the_processors_back() {
        let before = processors();
        assert!(std::panic::catch_unwind(|| kept(|| panic!("planned"))).is_err());
        assert_eq!((processors(), KEPT.get()), (before, None));
    }

    #[test]
    fn a_thread_that_is_kept_stays_where_it_is_told_and_others_do_not_move() {
        let before = processors();
        stay_on(0);
        assert_eq!((processors(), choices()), (before, Vec::new()), "it is not kept");
        kept(|| {
            for cpu in choices() {
                stay_on(cpu);
                assert_eq!(processors(), only(cpu));
                assert_eq!(elsewhere(processors), others(&before, cpu, &core_of(cpu)));
            }
        });
        assert_eq!(processors(), before);
    }
}
