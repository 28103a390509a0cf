//! Who else uses the GPU, by NVML.
//!
//! NVML lists the processes that compute on the device, by numbers that are those of this machine, of this container, or of
//! the host around it, and a driver may leave out those of other containers. So a second sign is read: the device's memory
//! that none of the listed processes holds. It says nothing where NVML does not tell how much each of them holds.
//!
//! A run starts processes itself that use the device: they are no others, and neither are those that they start. The system
//! says who started whom (Linux). While there are any, memory that no listed process holds says nothing: they come and go
//! between two readings.

use std::collections::{BTreeMap, BTreeSet};

use nvml_wrapper::Device;
use nvml_wrapper::enums::device::UsedGpuMemory;

/// What a device holds beside what processes ask for: the contexts' own share, and what NVML rounds.
const OWN: u64 = 1 << 30;

/// How many processes compute on the device besides this one and those that it started; `None` where NVML cannot tell.
pub(super) fn computing(device: &Device<'_>) -> Option<u32> {
    let listed = || -> Option<BTreeSet<u32>> {
        Some(device.running_compute_processes().ok()?.iter().map(|process| process.pid).collect())
    };
    let (own, before) = (std::process::id(), listed()?);
    if before.len() < 2 {
        return besides(own, &BTreeSet::new(), &before);
    }
    // One that this process started may have ended before the system is asked, or begin behind it.
    let started = started_by(own);
    besides(own, &started, &before.intersection(&listed()?).copied().collect())
}

/// The bytes of the device's memory that no listed process holds, where they are more than the driver's own; `None` where
/// NVML cannot tell.
pub(super) fn unlisted(device: &Device<'_>) -> Option<u64> {
    let held = |memory: &UsedGpuMemory| if let UsedGpuMemory::Used(bytes) = memory { Some(*bytes) } else { None };
    let rest = || {
        let used = device.memory_info().ok()?.used;
        let listed = device.running_compute_processes().ok()?;
        beyond(used, &listed.iter().map(|process| held(&process.used_gpu_memory)).collect::<Vec<_>>())
    };
    match rest()? {
        0 => Some(0),
        _ if !started_by(std::process::id()).is_empty() => None,
        // It may have been that of one that has just ended.
        before => Some(before.min(rest()?)),
    }
}

/// Those that are neither `own` nor one that it started. Where the numbers are of another place, this process is one of them,
/// unless there are none, and so may be each that it started.
fn besides(own: u32, started: &BTreeSet<u32>, listed: &BTreeSet<u32>) -> Option<u32> {
    let others = match listed.contains(&own) {
        true => listed.difference(started).filter(|process| **process != own).count(),
        false => listed.len().checked_sub(1)?.saturating_sub(started.len()),
    };
    u32::try_from(others).ok()
}

/// The processes that this one has started, and those that they have started; none where the system does not say.
fn started_by(own: u32) -> BTreeSet<u32> {
    let parent = |entry: std::fs::DirEntry| {
        let process: u32 = entry.file_name().to_str()?.parse().ok()?;
        let said = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        Some((process, parent_in(&said)?))
    };
    let parents: BTreeMap<u32, u32> =
        std::fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(parent).collect();
    descendants(own, &parents)
}

/// The parent in the line that Linux says of a process: behind its name, which may hold anything, and its state.
fn parent_in(said: &str) -> Option<u32> {
    said.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

fn descendants(own: u32, parents: &BTreeMap<u32, u32>) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    loop {
        let next = parents.iter().filter(|(_, parent)| **parent == own || found.contains(*parent));
        let more: Vec<u32> = next.map(|(process, _)| *process).filter(|process| !found.contains(process)).collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

fn beyond(used: u64, held: &[Option<u64>]) -> Option<u64> {
    if held.is_empty() {
        return None;
    }
    let held = held.iter().copied().sum::<Option<u64>>()?;
    let rest = used.saturating_sub(held);
    Some(if rest > OWN { rest } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_not_another_by_its_own_number_or_that_of_the_host() {
        let besides = |own, listed: &[u32]| besides(own, &BTreeSet::new(), &listed.iter().copied().collect());
        assert_eq!([besides(7, &[7]), besides(7, &[7, 8, 9]), besides(7, &[8, 7])], [Some(0), Some(2), Some(1)]);
        assert_eq!([besides(7, &[4711]), besides(7, &[4711, 0])], [Some(0), Some(1)]);
        assert_eq!(besides(7, &[]), None);
    }

    #[test]
    fn what_this_process_started_is_no_other_and_neither_is_what_that_started() {
        let parents = BTreeMap::from([(7, 1), (8, 7), (9, 8), (10, 1), (11, 10)]);
        let started = descendants(7, &parents);
        assert_eq!(started, BTreeSet::from([8, 9]));
        let besides = |listed: &[u32]| besides(7, &started, &listed.iter().copied().collect());
        assert_eq!([besides(&[7, 8, 9]), besides(&[7, 9, 10, 11])], [Some(0), Some(2)]);
        // By the host's numbers: this process, and as many as it started.
        assert_eq!([besides(&[4711, 4712]), besides(&[1, 2, 3, 4])], [Some(0), Some(1)]);
    }

    #[test]
    fn the_parent_of_a_process_is_found_whatever_its_name() {
        assert_eq!(parent_in("42 (a) b (c)) S 7 42 42 0 -1 4194304"), Some(7));
        assert_eq!([parent_in(""), parent_in("42 (x) S"), parent_in("42 (x) S y")], [None; 3]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_that_this_one_has_started_is_found_while_it_runs() {
        // It reads until its input ends.
        let mut child = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let found = started_by(std::process::id());
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(found.contains(&child.id()), "{found:?}");
        assert!(!started_by(std::process::id()).contains(&child.id()));
    }

    #[test]
    fn memory_that_no_listed_process_holds_is_somebody_elses() {
        const GIB: u64 = 1 << 30;
        assert_eq!(beyond(9 * GIB, &[Some(9 * GIB)]), Some(0));
        assert_eq!(beyond(9 * GIB, &[Some(8 * GIB + GIB / 2)]), Some(0));
        assert_eq!(beyond(9 * GIB, &[Some(2 * GIB), Some(GIB)]), Some(6 * GIB));
        assert_eq!([beyond(9 * GIB, &[Some(GIB), None]), beyond(9 * GIB, &[])], [None, None]);
    }
}
