//! Who else uses the GPU, by NVML.
//!
//! NVML lists one entry for each process that computes on the device. This process is one of them; in a container its
//! number there may be another than its own, so that entries are counted and not compared.

/// How many processes besides this one compute on the device; `None` where NVML cannot tell.
pub(super) fn computing(device: &nvml_wrapper::Device<'_>) -> Option<u32> {
    device.running_compute_processes_count().ok().map(besides_this)
}

/// Where NVML does not see this process either, as in some containers, it sees none.
fn besides_this(all: u32) -> u32 {
    all.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_not_another() {
        assert_eq!([0, 1, 3].map(besides_this), [0, 0, 2]);
    }
}
