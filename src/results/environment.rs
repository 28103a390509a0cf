//! Where, when and with what a run was made. No user names, home paths or device serial numbers.

use std::time::SystemTime;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::provenance;
use crate::device::Device;

/// Where, when and with what a run was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Environment {
    /// The host.
    pub host: Host,
    /// The device.
    pub device: DeviceDescription,
    /// The program.
    pub program: Program,
    /// Why there was no CUDA device, where there was none.
    pub cuda_unavailable: Option<String>,
}

/// The host that enqueued.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// The processor's model.
    pub cpu: String,
    /// Logical processors that the program may use.
    pub logical_cpus: Option<usize>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Operating system and kernel.
    pub system: Option<String>,
    /// Further facts in order: governor, source of the clock rate, processors, virtual machine, environment variables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<(String, String)>,
}

/// The device that was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeviceDescription {
    /// The name it was opened by: `cuda:0`.
    pub name: String,
    /// The engine: `cuda`, `cpu`.
    pub engine: String,
    /// The hardware.
    pub model: String,
    /// Its memory in bytes, where it could be told.
    pub memory_bytes: Option<u64>,
    /// How a blocked host thread waits.
    pub wait_policy: Option<String>,
    /// Further facts in order: driver, library versions, architecture.
    pub facts: Vec<(String, String)>,
}

impl DeviceDescription {
    /// The value of the fact `name`.
    pub fn fact(&self, name: &str) -> Option<&str> {
        self.facts.iter().find(|(fact, _)| fact == name).map(|(_, value)| value.as_str())
    }
}

/// The program that measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The versions of what it stands on, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub libraries: Vec<(String, String)>,
    /// The commit it was built from, where it was built in a checkout.
    pub commit: Option<String>,
    /// Whether the checkout had uncommitted changes.
    pub dirty: Option<bool>,
    /// Compiler optimisations: `release` or `debug`.
    pub profile: Option<String>,
    /// The command line, with the program's own folder left out.
    pub command: Vec<String>,
    /// Further facts in order: compiler, its flags, target features, lock file, binary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<(String, String)>,
}

/// The name of the fact that holds the name which the user gave the machine.
pub(super) const MACHINE: &str = "machine";

impl Host {
    /// The name that the user gave the machine, where one was given.
    pub fn machine(&self) -> Option<&str> {
        self.facts.iter().find(|(name, _)| name == MACHINE).map(|(_, value)| value.as_str())
    }

    /// Notes the name of the machine.
    pub fn name_machine(&mut self, machine: &str) {
        self.facts.retain(|(name, _)| name != MACHINE);
        self.facts.push((MACHINE.to_owned(), machine.to_owned()));
    }
}

impl Environment {
    /// The further facts of the device, the host and the program, in order.
    pub fn facts(&self) -> impl Iterator<Item = &(String, String)> {
        self.device.facts.iter().chain(&self.host.facts).chain(&self.program.facts)
    }

    /// The environment of a run on `device`, started by `command` (the program and its arguments). The program
    /// itself knows of which commit it is.
    pub fn now(device: &Device, command: Vec<String>) -> Self {
        let properties = device.properties();
        Self {
            host: Host::here(),
            device: DeviceDescription {
                name: properties.name.clone(),
                engine: properties.engine.to_owned(),
                model: properties.model.clone(),
                memory_bytes: properties.memory_bytes,
                wait_policy: Some(properties.wait_policy.clone()),
                facts: properties.facts.clone(),
            },
            program: Program {
                name: super::SYNCSCOPE.to_owned(),
                libraries: Vec::new(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                commit: None,
                dirty: None,
                profile: Some(if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned()),
                command: without_folders(command),
                facts: provenance::of_program(),
            },
            cuda_unavailable: Device::cuda_unavailable().map(|error| without_home(&error.to_string())),
        }
    }
}

/// This moment in UTC, RFC 3339, to the second.
///
/// ```
/// use syncscope_results::now;
///
/// assert!(now().ends_with('Z'));
/// ```
pub fn now() -> String {
    written(SystemTime::now())
}

/// A clock beyond the years that RFC 3339 can write, -9999 to 9999, is written as the nearest of them.
pub(super) fn written(time: SystemTime) -> String {
    let nearest = if time < SystemTime::UNIX_EPOCH { Timestamp::MIN } else { Timestamp::MAX };
    let time = Timestamp::try_from(time).unwrap_or(nearest);
    format!("{time:.0}")
}

impl Host {
    fn here() -> Self {
        use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind, System};
        let what = RefreshKind::nothing()
            .with_cpu(CpuRefreshKind::nothing())
            .with_memory(MemoryRefreshKind::nothing().with_ram());
        let system = System::new_with_specifics(what);
        let unknown = || "unknown".to_owned();
        Self {
            cpu: system.cpus().first().map_or_else(unknown, |cpu| cpu.brand().trim().to_owned()),
            logical_cpus: std::thread::available_parallelism().ok().map(usize::from),
            memory_bytes: Some(system.total_memory()),
            system: Some(format!(
                "{}, kernel {}",
                System::long_os_version().unwrap_or_else(unknown),
                System::kernel_version().unwrap_or_else(unknown)
            )),
            facts: provenance::of_host(),
        }
    }
}

/// A text with the user's home folder written as `~`.
fn without_home(text: &str) -> String {
    match std::env::var("HOME").ok().filter(|home| home.len() > 1) {
        Some(home) => text.replace(&home, "~"),
        None => text.to_owned(),
    }
}

/// A command without the folders of the paths in it that are not relative: they may hold a user's name.
pub fn without_folders(command: impl IntoIterator<Item = String>) -> Vec<String> {
    command.into_iter().map(|argument| name_of_path(&argument)).collect()
}

/// An argument without the folders of an absolute path in it.
fn name_of_path(argument: &str) -> String {
    let (option, value) = match argument.split_once('=') {
        Some((option, value)) if option.starts_with('-') => (format!("{option}="), value),
        _ => (String::new(), argument),
    };
    let path = std::path::Path::new(value);
    let inside = path.is_absolute() || value.starts_with('~') || value.starts_with("..");
    match path.file_name().filter(|_| inside) {
        Some(name) => format!("{option}{}", name.to_string_lossy()),
        None => argument.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn folders_that_may_name_a_user_are_left_out_of_the_command() {
        assert_eq!(name_of_path("/home/someone/suite.yaml"), "suite.yaml");
        assert_eq!(name_of_path("--out=/home/someone/site"), "--out=site");
        assert_eq!(name_of_path("../../someone/suite.yaml"), "suite.yaml");
        assert_eq!(name_of_path("book/suites/quick.yaml"), "book/suites/quick.yaml");
        assert_eq!(name_of_path("--iters=5"), "--iters=5");
    }

    #[test]
    fn any_clock_is_written_so_that_it_can_be_read() {
        let years = |years: u64| Duration::from_secs(years * 31_556_952);
        for time in [
            SystemTime::UNIX_EPOCH - years(30_000),
            SystemTime::UNIX_EPOCH - Duration::from_millis(1),
            SystemTime::UNIX_EPOCH,
            SystemTime::UNIX_EPOCH + years(30_000),
        ] {
            let written = written(time);
            assert!(written.parse::<Timestamp>().is_ok(), "{written}");
        }
    }

    #[test]
    fn an_environment_holds_no_name_or_home_of_its_user() {
        let device = Device::open("cpu:0").unwrap();
        let text = serde_json::to_string(&Environment::now(&device, vec!["run".to_owned()])).unwrap();
        for secret in ["HOME", "USER", "LOGNAME"].iter().filter_map(|name| std::env::var(name).ok()) {
            // A user named `root` is in words such as these anyway; a short name proves nothing.
            assert!(secret.len() < 6 || !text.contains(&secret), "{text}");
        }
    }
}
