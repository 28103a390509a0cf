//! What a run was made by and under, as far as it can be told without asking the user.
//!
//! No user names, home paths, serial numbers or UUIDs: of environment variables only those that change how CUDA, PyTorch or a
//! host library computes, of the program its digest.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use sha2::{Digest, Sha256};

/// The beginnings of the names of environment variables that are noted.
const VARIABLES: [&str; 10] =
    ["CUDA_", "CUBLAS", "NVIDIA_TF32", "NCCL_", "NVSHMEM_", "PYTORCH_", "TORCH_", "OMP_", "MKL_", "OPENBLAS_"];

/// What is noted where none of them is set.
const NO_VARIABLES: &str = "none that change how CUDA or a library computes";

/// The host: its governor, what the program may use of it, whether it is a virtual machine or a container.
pub(super) fn of_host() -> Vec<(String, String)> {
    let read = |path: &str| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let governor = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    let nodes = read("/sys/devices/system/node/online");
    let status = read("/proc/self/status").unwrap_or_default();
    let allowed =
        status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).map(|list| list.trim().to_owned());
    let virtual_machine = read("/proc/cpuinfo").map(|text| text.contains(" hypervisor"));
    let container = ["/.dockerenv", "/run/.containerenv"].iter().any(|path| Path::new(path).exists());
    let yes_or_no = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
    let unknown = || "not offered".to_owned();
    [
        ("governor", governor.unwrap_or_else(unknown)),
        ("clock rate", super::host_clock::source().to_owned()),
        ("NUMA nodes", nodes.unwrap_or_else(unknown)),
        ("processors that the program may use", allowed.unwrap_or_else(unknown)),
        ("virtual machine", virtual_machine.map_or_else(unknown, yes_or_no)),
        ("container", yes_or_no(container)),
        ("environment variables", variables()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

fn variables() -> String {
    let noted = |(name, _): &(String, String)| VARIABLES.iter().any(|start| name.starts_with(start));
    let set =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let mut set: Vec<String> = set.filter(noted).map(|(name, value)| noted_as(&name, &value)).collect();
    set.sort();
    if set.is_empty() { NO_VARIABLES.to_owned() } else { set.join(", ") }
}

/// The names of the variables in what [`variables`] noted: a value may be anything, also what looks like the next one.
pub(super) fn names_of_variables(noted: &str) -> String {
    let is_name = |name: &&str| {
        VARIABLES.iter().any(|start| name.starts_with(start))
            && name.bytes().all(|c| c == b'_' || c.is_ascii_uppercase() || c.is_ascii_digit())
    };
    let names = noted.split(", ").filter_map(|part| part.split(['=', ' ']).next()).filter(is_name);
    let names: Vec<&str> = names.collect();
    if names.is_empty() { NO_VARIABLES.to_owned() } else { names.join(", ") }
}

/// A variable without what says whose machine it is: a path, and the UUIDs of GPUs.
fn noted_as(name: &str, value: &str) -> String {
    match value {
        value if ["GPU-", "MIG-"].iter().any(|start| value.contains(start)) => format!("{name} (by UUID)"),
        value if value.contains('/') => format!("{name} (a path)"),
        value => format!("{name}={value}"),
    }
}

/// The program: compiler and flags, lock file, binary.
pub(super) fn of_program() -> Vec<(String, String)> {
    let binary = std::env::current_exe().and_then(fs::read).map(Sha256::digest);
    let hex = |digest: &[u8]| digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    [
        ("compiler", option_env!("SYNCSCOPE_COMPILER").map(str::to_owned)),
        ("flags of the compiler", option_env!("SYNCSCOPE_FLAGS").map(str::to_owned)),
        ("target features", option_env!("SYNCSCOPE_FEATURES").map(str::to_owned)),
        ("lock file (FNV-1a)", option_env!("SYNCSCOPE_LOCK").map(str::to_owned)),
        ("binary (SHA-256)", binary.ok().map(|digest| hex(&digest))),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name.to_owned(), value?)))
    .collect()
}

/// The digest of the code that measures an experiment that comes with the library, on an engine.
pub fn code_of(experiment: &str, engine: &str) -> Option<&'static str> {
    code_of_system(&format!("{experiment} {engine}"))
}

/// The digests of the code that measures, as `NAME=DIGEST;…`.
static CODE: OnceLock<&str> = OnceLock::new();

/// States the digests of the code that measures: who has the experiments knows them.
pub fn declare_code(digests: &'static str) {
    CODE.get_or_init(|| digests);
}

/// The digest of the code that measures another system.
pub fn code_of_system(system: &str) -> Option<&'static str> {
    let all = CODE.get()?;
    all.split(';').filter_map(|entry| entry.split_once('=')).find(|(name, _)| *name == system).map(|(_, code)| code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_variable_that_names_gpus_by_their_uuids_that_is_noted_alone() {
        let uuid = "4f5e8899-aabb-ccdd-eeff-001122334455";
        for value in [format!("GPU-{uuid}"), format!("0,MIG-{uuid}"), format!("MIG-GPU-{uuid}/1/0")] {
            assert_eq!(noted_as("CUDA_VISIBLE_DEVICES", &value), "CUDA_VISIBLE_DEVICES (by UUID)");
        }
        assert_eq!(noted_as("CUDA_VISIBLE_DEVICES", "0,1"), "CUDA_VISIBLE_DEVICES=0,1");
        assert_eq!(noted_as("CUDA_HOME", "/usr"), "CUDA_HOME (a path)");
    }

    #[test]
    fn what_is_noted_of_host_and_program_names_no_path() {
        for (name, value) in of_host().into_iter().chain(of_program()) {
            assert!(!value.is_empty() && !value.contains('/'), "{name}: {value}");
        }
    }
}
