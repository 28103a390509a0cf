//! The processor on which the host's thread measures.
//!
//! A thread that the system moves between processors meets other caches and other clocks: what it measures changes from run
//! to run by more than samples within a run show. So the thread that takes samples stays on one processor, where there are
//! enough of them for everything else. A thread or a process inherits the processors of the thread that starts it: what
//! a measurement starts is started [`elsewhere`], so that it does not compete with the thread that it is measured from.
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
        /// The processors that this thread had before it was kept on one.
        static BEFORE: Cell<Option<CpuSet>> = const { Cell::new(None) };
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
    fn one_of(allowed: &CpuSet) -> Option<CpuSet> {
        let last = (0..CpuSet::MAX_CPU).rev().find(|cpu| allowed.is_set(*cpu))?;
        let mut one = CpuSet::new();
        one.set(last);
        (allowed.count() as usize >= super::ENOUGH).then_some(one)
    }

    pub(super) fn kept<R>(work: impl FnOnce() -> R) -> R {
        let allowed = sched_getaffinity(None).ok().filter(|_| BEFORE.get().is_none());
        let Some((allowed, one)) = allowed.and_then(|allowed| Some((allowed, one_of(&allowed)?))) else {
            return work();
        };
        if sched_setaffinity(None, &one).is_err() {
            return work();
        }
        /// No thread is kept any more, whichever way the work ended.
        struct Free;
        impl Drop for Free {
            fn drop(&mut self) {
                BEFORE.set(None);
            }
        }
        let _back = Back(allowed);
        let _free = Free;
        BEFORE.set(Some(allowed));
        work()
    }

    pub(super) fn elsewhere<R>(start: impl FnOnce() -> R) -> R {
        let Some(allowed) = BEFORE.get() else { return start() };
        let kept = sched_getaffinity(None).ok().filter(|_| sched_setaffinity(None, &allowed).is_ok());
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
            assert_eq!(one_of(&first(3)), None);
            let one = one_of(&first(4)).unwrap();
            assert!(one.is_set(3) && one.count() == 1);
        }

        #[test]
        fn what_is_started_elsewhere_has_all_processors_and_the_thread_is_kept_on() {
            let before = processors();
            let (inside, started, after) = super::super::kept(|| {
                let started = super::super::elsewhere(|| std::thread::spawn(processors).join().unwrap());
                (processors(), started, processors())
            });
            assert_eq!((started, inside), (before, after));
            assert_eq!(inside, one_of(&before).unwrap_or(before));
            assert_eq!(processors(), before);
        }

        #[test]
        fn a_panic_gives_the_processors_back() {
            let before = processors();
            assert!(std::panic::catch_unwind(|| super::super::kept(|| panic!("planned"))).is_err());
            assert_eq!((processors(), BEFORE.get()), (before, None));
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

/// Starts threads or processes that may run on all processors of the process, also from a thread that is kept on one.
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
