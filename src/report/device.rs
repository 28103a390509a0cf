//! Which device a command means, and why there is none of CUDA's.

use std::env;

use crate::runner::Suite;
use syncscope::device::Device;

/// The device that the command names, else the one that the suite asks for. Says what it is, and why it is no GPU.
pub(super) fn open(named: Option<&str>, suite: Option<&Suite>) -> anyhow::Result<Device> {
    let asked = named.or(suite.map(|suite| suite.device.as_str()));
    let device = match asked.filter(|name| *name != "auto") {
        Some(name) => Device::open(name)?,
        None => {
            if let Some(reason) = why_no_gpu() {
                note!("no GPU: {reason}");
            }
            Device::best()?
        }
    };
    note!("device: {} ({})", device.name(), device.properties().model);
    Ok(device)
}

/// Why there is no GPU, where there is none.
pub(super) fn why_no_gpu() -> Option<String> {
    Device::cuda_unavailable().map(|reason| format!("{reason}{}", hidden()))
}

/// What the variables that hide GPUs say of them, to be read behind a reason why one is not there.
pub(super) fn hidden() -> String {
    let is_set = |name| env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    let of_cuda = is_set("CUDA_VISIBLE_DEVICES").map(|value| of_cuda(&value));
    let of_container = is_set("NVIDIA_VISIBLE_DEVICES").and_then(|value| of_container(&value));
    of_cuda.into_iter().chain(of_container).map(|said| format!("; {said}")).collect()
}

/// CUDA takes the list up to the first entry that is neither a number nor a UUID of a GPU or of a part of one.
fn of_cuda(value: &str) -> String {
    let entries: Vec<&str> = value.split(',').map(str::trim).collect();
    let is_number = |entry: &str| !entry.is_empty() && entry.bytes().all(|byte| byte.is_ascii_digit());
    let is_gpu = |entry: &&&str| is_number(entry) || ["GPU-", "MIG-"].iter().any(|start| entry.starts_with(start));
    match entries.iter().take_while(is_gpu).count() {
        0 => format!("CUDA_VISIBLE_DEVICES is `{value}`, which hides all GPUs"),
        1 => format!("CUDA_VISIBLE_DEVICES is `{value}`, which leaves cuda:0 at most"),
        seen => format!("CUDA_VISIBLE_DEVICES is `{value}`, which leaves cuda:0 to cuda:{} at most", seen - 1),
    }
}

/// A container that was started without GPUs has one of these words.
fn of_container(value: &str) -> Option<String> {
    let is_none = ["", "void", "none"].contains(&value.trim());
    is_none.then(|| format!("NVIDIA_VISIBLE_DEVICES is `{value}`: the container runtime gives no GPU by it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_of_a_variable_that_hides_gpus_is_said_in_words() {
        for none in ["", " ", "-1", "-1,0", "NoDevFiles", "all", "none", "void", ",0", "GPU"] {
            assert_eq!(of_cuda(none), format!("CUDA_VISIBLE_DEVICES is `{none}`, which hides all GPUs"));
        }
        let uuid = "4f5e8899-aabb-ccdd-eeff-001122334455";
        for one in
            ["0", "3,-1", "7,x,1", &format!("GPU-{uuid}"), &format!("MIG-{uuid}"), &format!("MIG-GPU-{uuid}/1/0")]
        {
            assert!(of_cuda(one).ends_with("which leaves cuda:0 at most"), "{one}");
        }
        for two in ["0,1", "2, 3", "GPU-4f5e,MIG-4f5e", "1,0,-1,2"] {
            assert!(of_cuda(two).ends_with("which leaves cuda:0 to cuda:1 at most"), "{two}");
        }
        assert!(["", "void", "none"].iter().all(|none| of_container(none).is_some()));
        assert!(["all", "0", "0,1", "GPU-4f5e", "MIG-4f5e"].iter().all(|some| of_container(some).is_none()));
    }
}
