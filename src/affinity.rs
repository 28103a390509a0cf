//! The processor on which the host's thread measures.
//!
//! A thread that the system moves between processors meets other caches and other clocks: what it measures changes from run
//! to run by more than samples within a run show. So the thread that takes samples stays on one processor, where there are
//! enough of them for everything else. A thread or a process inherits the processors of the thread that starts it: what
//! a measurement starts is started [`elsewhere`], so that it does not compete with the thread that it is measured from: not on
//! its processor, nor on one that shares a core with it, where enough others are left.
//!
//! Limits: only on Linux, and only in programs with the feature `report`. What a library starts by itself (a thread of the
//! driver) stays with the thread that made it do so.

/// From how many processors on the measuring thread is kept on one of them.
#[cfg(all(feature = "report", target_os = "linux"))]
const ENOUGH: usize = 4;

#[cfg(all(feature = "report", target_os = "linux"))]
mod linux {
    use std::cell::Cell;

    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    thread_local! {
        /// The processors for what a thread that is kept on one starts.
        static OTHERS: Cell<Option<CpuSet>> = const { Cell::new(None) };
    }

    /// Gives the calling thread its processors, when it is dropped.
    struct Back(CpuSet);

    impl Drop for Back {
        fn drop(&mut self) {
            // A processor that is gone since is no reason to end a run.
            let _ = sched_setaffinity(None, &self.0);
        }
    }

    /// The last of so many processors: interrupts tend to reach the first ones.
    fn one_of(allowed: &CpuSet) -> Option<usize> {
        let last = (0..CpuSet::MAX_CPU).rev().find(|cpu| allowed.is_set(*cpu))?;
        (allowed.count() as usize >= super::ENOUGH).then_some(last)
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
        if others.count() as usize >= super::ENOUGH { others } else { *allowed }
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

    /// The processor that [`kept`] keeps a thread on that is not kept yet.
    pub(super) fn measuring() -> Option<usize> {
        sched_getaffinity(None).ok().and_then(|allowed| one_of(&allowed))
    }

    pub(super) fn kept<R>(work: impl FnOnce() -> R) -> R {
        let allowed = sched_getaffinity(None).ok().filter(|_| OTHERS.get().is_none());
        let Some((allowed, own)) = allowed.and_then(|allowed| Some((allowed, one_of(&allowed)?))) else {
            return work();
        };
        if sched_setaffinity(None, &only(own)).is_err() {
            return work();
        }
        /// No thread is kept any more, whichever way the work ended.
        struct Free;
        impl Drop for Free {
            fn drop(&mut self) {
                OTHERS.set(None);
            }
        }
        let _back = Back(allowed);
        let _free = Free;
        OTHERS.set(Some(others(&allowed, own, &core_of(own))));
        work()
    }

    pub(super) fn elsewhere<R>(start: impl FnOnce() -> R) -> R {
        let Some(others) = OTHERS.get() else { return start() };
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
            assert_eq!((one_of(&first(3)), one_of(&first(4))), (None, Some(3)));
        }

        #[test]
        fn what_is_started_elsewhere_has_no_processor_of_the_core_where_enough_others_are_left() {
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
            let (inside, started, after) = super::super::kept(|| {
                let started = super::super::elsewhere(|| std::thread::spawn(processors).join().unwrap());
                (processors(), started, processors())
            });
            let own = one_of(&before);
            assert_eq!((inside, after), (own.map_or(before, only), inside));
            assert_eq!(started, own.map_or(before, |own| others(&before, own, &core_of(own))));
            assert_eq!(processors(), before);
        }

        #[test]
        fn a_panic_gives_the_processors_back() {
            let before = processors();
            assert!(std::panic::catch_unwind(|| super::super::kept(|| panic!("planned"))).is_err());
            assert_eq!((processors(), OTHERS.get()), (before, None));
        }
    }
}

/// Keeps the calling thread on one processor while it works, where the process may use four or more.
#[cfg(feature = "report")]
pub(crate) fn kept<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(target_os = "linux")]
    return linux::kept(work);
    #[cfg(not(target_os = "linux"))]
    work()
}

/// The processor that [`kept`] keeps a thread on, where it keeps one; asked of a thread that is not kept yet.
#[cfg(feature = "report")]
pub(crate) fn measuring() -> Option<usize> {
    #[cfg(target_os = "linux")]
    return linux::measuring();
    #[cfg(not(target_os = "linux"))]
    None
}

/// Starts threads or processes that may run on the other processors of the process, also from a thread that is kept on one.
pub(crate) fn elsewhere<R>(start: impl FnOnce() -> R) -> R {
    #[cfg(all(feature = "report", target_os = "linux"))]
    return linux::elsewhere(start);
    #[cfg(not(all(feature = "report", target_os = "linux")))]
    start()
}

/// How many threads can run at once in this process, whatever the calling thread is kept on. It is asked once: the answer
/// takes the system some microseconds.
pub(crate) fn processors() -> usize {
    static PROCESSORS: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    *PROCESSORS.get_or_init(|| elsewhere(|| std::thread::available_parallelism().map_or(1, usize::from)))
}
