//! What the sensors of a device say, by NVML.
//!
//! NVML numbers devices by itself, so that the device is found by its place in the machine. Where NVML is missing
//! there is no telemetry: that is no error.

use std::ffi::OsStr;

use nvml_wrapper::Nvml;
use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};

use super::others;
use crate::device::Telemetry;

/// The sensors of one device.
pub(crate) struct Sensors {
    nvml: Nvml,
    pci_bus_id: String,
}

impl Sensors {
    /// `None` where NVML is missing or does not know the device.
    pub(crate) fn find(pci_bus_id: String) -> Option<Self> {
        // A machine without the development files has the versioned name alone.
        let nvml = Nvml::init().or_else(|_| Nvml::builder().lib_path(OsStr::new("libnvidia-ml.so.1")).init()).ok()?;
        nvml.device_by_pci_bus_id(pci_bus_id.as_str()).ok()?;
        Some(Self { nvml, pci_bus_id })
    }

    /// What NVML alone knows of the device, as far as it says: its driver, limits, modes, its link to the host.
    pub(crate) fn settings(&self) -> Vec<(&'static str, String)> {
        let Ok(device) = self.nvml.device_by_pci_bus_id(self.pci_bus_id.as_str()) else { return Vec::new() };
        let yes_or_no = |yes: bool| if yes { "on" } else { "off" }.to_owned();
        let said = [
            ("driver", self.nvml.sys_driver_version().ok()),
            ("fingerprint", device.uuid().ok().map(|uuid| fingerprint(&uuid))),
            ("power limit (W)", device.enforced_power_limit().ok().map(|limit| (limit / 1000).to_string())),
            ("greatest SM clock (MHz)", device.max_clock_info(Clock::SM).ok().map(|clock| clock.to_string())),
            ("SM clock asked for (MHz)", device.applications_clock(Clock::SM).ok().map(|clock| clock.to_string())),
            ("persistence mode", device.is_in_persistent_mode().ok().map(yes_or_no)),
            ("ECC", device.is_ecc_enabled().ok().map(|state| yes_or_no(state.currently_enabled))),
            ("MIG", device.mig_mode().ok().map(|mode| yes_or_no(mode.current != 0))),
            ("PCIe generation", device.max_pcie_link_gen().ok().map(|generation| generation.to_string())),
            ("PCIe lanes", device.max_pcie_link_width().ok().map(|lanes| lanes.to_string())),
        ];
        said.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// What the sensors say now; each on its own, as not every device has all.
    pub(crate) fn read(&self) -> Option<Telemetry> {
        let device = self.nvml.device_by_pci_bus_id(self.pci_bus_id.as_str()).ok()?;
        Some(Telemetry {
            sm_clock_mhz: device.clock_info(Clock::SM).ok(),
            memory_clock_mhz: device.clock_info(Clock::Memory).ok(),
            temperature_c: device.temperature(TemperatureSensor::Gpu).ok(),
            power_w: device.power_usage().ok().map(|milliwatts| f64::from(milliwatts) / 1e3),
            throttle_reasons: device.current_throttle_reasons().map(words).unwrap_or_default(),
            other_processes: others::computing(&device),
            unlisted_bytes: others::unlisted(&device),
        })
    }
}

/// FNV-1a (G. Fowler, L. C. Noll, K.-P. Vo), 32 bits, of the UUID in lower case without `GPU-` before it.
fn fingerprint(uuid: &str) -> String {
    let uuid = uuid.to_lowercase();
    let bytes = uuid.strip_prefix("gpu-").unwrap_or(&uuid).bytes();
    let hash = bytes.fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("{hash:08x}")
}

/// The reasons in the words of `nvidia-smi`. An idle device is not held back.
fn words(reasons: ThrottleReasons) -> Vec<String> {
    [
        (ThrottleReasons::APPLICATIONS_CLOCKS_SETTING, "applications clocks setting"),
        (ThrottleReasons::SW_POWER_CAP, "SW power cap"),
        (ThrottleReasons::HW_SLOWDOWN, "HW slowdown"),
        (ThrottleReasons::SYNC_BOOST, "sync boost"),
        (ThrottleReasons::SW_THERMAL_SLOWDOWN, "SW thermal slowdown"),
        (ThrottleReasons::HW_THERMAL_SLOWDOWN, "HW thermal slowdown"),
        (ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN, "HW power brake slowdown"),
        (ThrottleReasons::DISPLAY_CLOCK_SETTING, "display clocks setting"),
    ]
    .into_iter()
    .filter(|&(reason, _)| reasons.contains(reason))
    .map(|(_, words)| words.to_owned())
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_the_hash_of_the_uuid_alone() {
        let (prefixed, bare) = ("GPU-FFC79498-8ff3-c2dc-3b0d-fafd804516ae", "ffc79498-8ff3-c2dc-3b0d-fafd804516ae");
        assert_eq!(fingerprint(prefixed), fingerprint(bare));
        assert_eq!(fingerprint("a"), "e40c292c");
    }

    #[test]
    fn an_idle_device_is_not_throttled_and_a_capped_one_says_why() {
        assert!(words(ThrottleReasons::GPU_IDLE).is_empty());
        assert_eq!(words(ThrottleReasons::GPU_IDLE | ThrottleReasons::SW_POWER_CAP), ["SW power cap"]);
    }
}
