//! Which machine a results file is of, and where it lies in a store.

use std::path::PathBuf;

use sha2::{Digest, Sha256};

use crate::Results;

/// How many digits of a digest a name holds.
const DIGITS: usize = 8;
/// The most characters of a text that a name holds.
const LONGEST: usize = 64;

/// The folder of the machine: the name that the user gave it (`report run --machine`). Without one its model, with a digest
/// of what its processor, memory and device say of themselves; so two machines of one make cannot be told apart.
pub fn machine_of(results: &Results) -> String {
    let environment = results.environment();
    let (host, device) = (&environment.host, &environment.device);
    match host.machine() {
        Some(name) => {
            let slug = slug(name);
            // Two names that differ in what a folder's name does not hold are two machines.
            if slug == name { slug } else { format!("{slug}-{}", digest(name)) }
        }
        None => format!("{}-{}", slug(&device.model), digest(&described(results))),
    }
}

/// What the processor, the memory and the device of a machine say of themselves.
pub fn described(results: &Results) -> String {
    let environment = results.environment();
    let (host, device) = (&environment.host, &environment.device);
    format!(
        "{} {:?} {:?} {} {} {:?}",
        host.cpu, host.logical_cpus, host.memory_bytes, device.name, device.model, device.memory_bytes
    )
}

/// Where a file lies in a store.
pub fn place_of(results: &Results) -> PathBuf {
    let run = results.run();
    let time: String = run.started.chars().filter(char::is_ascii_alphanumeric).take(LONGEST).collect();
    let commit = run.environment.program.commit.as_deref().map_or_else(|| "unknown".to_owned(), slug);
    let name = format!("{time}-{commit}-{}.json", &results.samples_digest()[..DIGITS]);
    PathBuf::from(machine_of(results)).join(name)
}

/// A text as a name of a file: lower case letters, digits, dots, hyphens and underscores, and no dot in front.
fn slug(text: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || "._".contains(c) { c.to_ascii_lowercase() } else { '-' };
    let slug: String = text.chars().map(allowed).take(LONGEST).collect();
    let slug = slug.trim_matches(['-', '.']);
    if slug.is_empty() { "unnamed".to_owned() } else { slug.to_owned() }
}

fn digest(text: &str) -> String {
    Sha256::digest(text).iter().take(DIGITS / 2).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_nowhere_else_and_two_names_stay_two() {
        assert_eq!(slug("../../etc/passwd"), "etc-passwd");
        assert_eq!(slug(" ... "), "unnamed");
        assert_eq!(slug("NVIDIA H200 (SXM)"), "nvidia-h200--sxm");
        assert_eq!(slug(&"a".repeat(500)).len(), LONGEST);
    }
}
