//! Who else uses the GPU, by NVML.
//!
//! NVML lists the processes that compute on the device, by numbers that are those of this machine, of this container, or of
//! the host around it, and a driver may leave out those of other containers. So a second sign is read: the device's memory
//! that none of the listed processes holds. It says nothing where NVML does not tell how much each of them holds.

use nvml_wrapper::Device;
use nvml_wrapper::enums::device::UsedGpuMemory;

/// What a device holds beside what processes ask for: the contexts' own share, and what NVML rounds.
const OWN: u64 = 1 << 30;

/// How many processes besides this one compute on the device; `None` where NVML cannot tell.
pub(super) fn computing(device: &Device<'_>) -> Option<u32> {
    let listed = device.running_compute_processes().ok()?;
    besides(std::process::id(), &listed.iter().map(|process| process.pid).collect::<Vec<u32>>())
}

/// The bytes of the device's memory that no listed process holds, where they are more than the driver's own; `None` where
/// NVML cannot tell.
pub(super) fn unlisted(device: &Device<'_>) -> Option<u64> {
    let used = device.memory_info().ok()?.used;
    let held = |memory: &UsedGpuMemory| match memory {
        UsedGpuMemory::Used(bytes) => Some(*bytes),
        UsedGpuMemory::Unavailable => None,
    };
    let listed = device.running_compute_processes().ok()?;
    beyond(used, &listed.iter().map(|process| held(&process.used_gpu_memory)).collect::<Vec<_>>())
}

/// Those that are not `own`. Where the numbers are of another place, this process is one of them, unless there are none.
fn besides(own: u32, listed: &[u32]) -> Option<u32> {
    let others = listed.iter().filter(|process| **process != own).count();
    let others = if others == listed.len() { others.checked_sub(1)? } else { others };
    u32::try_from(others).ok()
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
    fn this_process_is_not_another_whether_it_is_listed_by_its_number_or_by_one_of_the_host() {
        assert_eq!([besides(7, &[7]), besides(7, &[7, 8, 9]), besides(7, &[8, 7])], [Some(0), Some(2), Some(1)]);
        assert_eq!([besides(7, &[4711]), besides(7, &[4711, 0])], [Some(0), Some(1)]);
        assert_eq!(besides(7, &[]), None);
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
